// What `gpumem estimate --trainer` makes of trainers' files. What it says about memory changes with the options that
// gpumem has: these tests hold it to the same job given by words.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "command_line.hpp"
#include "gpumem/all.hpp"
#include "own_path.hpp"
#include "trainer_files.hpp"

namespace gpumem {
namespace {

namespace fs = std::filesystem;
using testing::Outcome;
using testing::run;

constexpr const char* kArguments = "estimate --trainer examples/trainers/training_arguments.json";

nlohmann::json answer_to(const std::string& words) {
  const Outcome result = run(words + " --json");
  EXPECT_EQ(result.exit, 0) << words << ": " << result.err;
  return result.exit == 0 ? nlohmann::json::parse(result.out) : nlohmann::json();
}

/// The notes on the trainer's file, one a line.
std::string notes_of(const nlohmann::json& answer) {
  std::string text;
  for (const auto& assumed : answer["estimates"][0]["assumed"]) {
    if (assumed["about"] == "trainer") text += assumed["text"].get<std::string>() + "\n";
  }
  return text;
}

TEST(CliTrainer, TakesTheModelAndTheJobFromTheFile) {
  const auto answer = answer_to(kArguments);
  EXPECT_EQ(answer["summary"]["file"], "examples/trainers/tinyllama/config.json");
  EXPECT_EQ(answer["summary"]["parameters"], 1'100'048'384);
  EXPECT_EQ(answer["job"]["batch_size"], 2);
  EXPECT_EQ(answer["job"]["seq_length"], 1024);
  EXPECT_EQ(answer["job"]["accumulate"], 4);
  EXPECT_EQ(answer["job"]["precision"], "bf16");
  EXPECT_EQ(answer["job"]["optimizer"], "adamw");
  EXPECT_EQ(answer["job"]["fused"], true);
}

TEST(CliTrainer, AnswersAsTheSameJobInWords) {
  // Only what the words below say as well.
  const std::string file = R"({"per_device_train_batch_size": 2, "max_seq_length": 256, "torch_dtype": "bfloat16",
                               "optim": "sgd", "gradient_accumulation_steps": 2})";
  const fs::path path = testing::own_path("trainer.json");
  std::ofstream(path) << file;
  const auto from_file =
      answer_to("estimate examples/trainers/tinyllama/config.json --trainer '" + path.string() + "'");
  fs::remove(path);
  std::string words =
      "estimate examples/trainers/tinyllama/config.json --batch 2 --seq 256 --precision bf16 "
      "--optimizer sgd --accumulate 2";
  if (job::find_option("loop") != nullptr) words += " --loop hf-trainer";
  const auto from_words = answer_to(words);
  EXPECT_EQ(from_file["job"], from_words["job"]);
  EXPECT_EQ(from_file["estimates"][0]["expected_bytes"], from_words["estimates"][0]["expected_bytes"]);
}

TEST(CliTrainer, WordsOfTheCommandLineCount) {
  const auto answer = answer_to(std::string(kArguments) + " --batch 1 --optimizer sgd");
  EXPECT_EQ(answer["job"]["batch_size"], 1);
  EXPECT_EQ(answer["job"]["optimizer"], "sgd");
  EXPECT_EQ(answer["job"]["seq_length"], 1024);
}

TEST(CliTrainer, NamesWhatIsNotModelled) {
  const auto answer = answer_to(
      "estimate examples/trainers/tinyllama/config.json --trainer examples/trainers/ds_config.json --seq 128");
  EXPECT_NE(notes_of(answer).find("zero_optimization.allgather_bucket_size 200000000"), std::string::npos)
      << notes_of(answer);
  EXPECT_EQ(answer["job"]["zero_reduce_bucket"], 200000000);
  const auto adapted = answer_to(std::string(kArguments) + " --adapter examples/trainers/adapter");
  EXPECT_EQ(adapted["job"]["train"], "*lm_head");
  if (job::find_option("lora") == nullptr) {
    EXPECT_NE(notes_of(adapted).find("lora 16 (r)"), std::string::npos) << notes_of(adapted);
  }
}

TEST(CliTrainer, SaysWhatIsWrong) {
  const std::string config = "estimate examples/trainers/tinyllama/config.json ";
  const std::vector<std::pair<std::string, const char*>> failures = {
      {config + "--trainer examples/trainers/missing.json", "missing.json"},
      {config + "--trainer examples/trainers/tinyllama/config.json",
       "it is not a trainer's file that gpumem knows by its keys"},
      {config + "--trainer examples/trainers/adapter/adapter_config.json", "give it as --adapter"},
      {"estimate --trainer examples/trainers/ds_config.json", "the file names no model; name its config.json"},
      // Without a length there is no answer, and the keys that are not modelled are named all the same.
      {config + "--trainer examples/trainers/ds_config.json", "allgather_bucket_size 200000000"},
      {config, "--batch is required"},
  };
  for (const auto& [words, part] : failures) {
    const Outcome result = run(words);
    EXPECT_NE(result.exit, 0) << words;
    EXPECT_EQ(result.out, "") << words;
    EXPECT_NE(result.err.find(part), std::string::npos) << words << ": " << result.err;
  }
}

TEST(CliTrainer, EveryExampleIsRead) {
  for (const char* file : {"llama_factory.yaml", "axolotl.yaml", "torchtune.yaml"}) {
    if (!trainer_files::reads_yaml()) GTEST_SKIP() << "built without yaml-cpp";
    const auto answer = answer_to(std::string("estimate --trainer examples/trainers/") + file);
    EXPECT_EQ(answer["job"]["batch_size"], 2) << file;
    EXPECT_EQ(answer["job"]["seq_length"], 1024) << file;
    EXPECT_EQ(notes_of(answer).find("gpumem does not know"), std::string::npos) << notes_of(answer);
  }
}

}  // namespace
}  // namespace gpumem
