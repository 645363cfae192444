// What the command line says to wrong words and wrong input, its help, `gpumem gpus` and `gpumem models`.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "command_line.hpp"
#include "gpumem/all.hpp"
#include "gpumem/architectures/architecture.hpp"
#include "gpumem/summary/model_folder.hpp"

namespace gpumem {
namespace {

namespace fs = std::filesystem;
using testing::kEvaluate;
using testing::kFit;
using testing::kResnet50;
using testing::Outcome;
using testing::resnet50;
using testing::run;

constexpr const char* kCalibrate = "calibrate tests/golden/cli/evaluate_runs_made_up.csv --estimator horus";

struct Failure {
  const char* name;
  std::string words;
  int exit;
  const char* part;  ///< of standard error
};

/// Each fails with its exit code, prints nothing, and says why in one line.
void expect_failures(const std::vector<Failure>& failures) {
  for (const Failure& failure : failures) {
    const Outcome result = run(failure.words);
    EXPECT_EQ(result.exit, failure.exit) << failure.name;
    EXPECT_EQ(result.out, "") << failure.name;
    EXPECT_NE(result.err.find(failure.part), std::string::npos) << failure.name << ": " << result.err;
    EXPECT_TRUE(result.err.starts_with("gpumem: error: ")) << failure.name << ": " << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << failure.name << ": " << result.err;
  }
}

TEST(CliErrors, OptionsOfOtherProgramsAreToldWhatTheyAreCalledHere) {
  expect_failures({
      {"an option as transformers calls it", std::string("estimate ") + kResnet50 + " --gradient-accumulation-steps 4",
       2, "(did you mean '--accumulate'?)"},
      {"an option with underscores", std::string("estimate ") + kResnet50 + " --per_device_train_batch_size=4", 2,
       "(did you mean '--batch'?)"},
      {"an option of another command", "serve nobody/Nothing-1B --batch 4", 2, "(did you mean '--max-num-seqs'?)"},
      {"how many GPUs", std::string("fit ") + kResnet50 + " --num-gpus 4", 2, "(did you mean '--data-parallel'?)"},
      {"how many GPUs of a plan", std::string("plan ") + kResnet50 + " --num-gpus 4", 2, "(did you mean '--gpus'?)"},
  });
}

TEST(CliErrors, WrongWordsAreNamed) {
  expect_failures({
      {"unknown command", "frobnicate", 2, "there is no command 'frobnicate'; gpumem --help lists the commands"},
      {"unknown command of model", "model shwo", 2,
       "there is no command 'shwo' (did you mean 'show'?); gpumem model --help"},
      {"no command of model", "model", 2, "no command is named; see gpumem model --help"},
      {"unknown option", "gpus --optimiser adam", 2,
       "gpumem gpus has no option '--optimiser' (did you mean '--optimizer'?); see gpumem gpus --help"},
      {"a word too many", "gpus a100 t4", 2, "gpumem gpus takes no further word 't4'"},
      {"misspelt option before a missing one", std::string("estimate ") + kResnet50 + " --bacth 4", 2,
       "gpumem estimate has no option '--bacth' (did you mean '--batch'?)"},
      {"misspelt command", "estimat x", 2, "there is no command 'estimat' (did you mean 'estimate'?)"},
      {"a model that nobody loaded", "estimate nobody/Nothing-1B --batch 1", 3,
       "the HuggingFace cache of this machine has none"},
      {"a price without a job", "gpus --price h100=2", 2, "--price needs --for"},
      {"no price", std::string("gpus --for ") + kResnet50 + " --price h100", 2, "say it as h100-80gb=2.50"},
      {"no batch", std::string("estimate ") + kResnet50, 2, "--batch is required"},
      {"batch without a number", std::string("estimate ") + kResnet50 + " --batch", 2, "--batch needs a value"},
      {"post-training without a batch", "posttrain examples/configs/llama3_8b/config.json --seq 64", 2, "give --batch"},
      {"batch not a number", resnet50("--batch many"), 2, "many"},
      {"batch zero", resnet50("--batch 0"), 2, "the batch size is 0"},
      {"batch negative", resnet50("--batch -1"), 2, "the batch size is -1"},
      {"batch beyond 64 bits", resnet50("--batch 99999999999999999999"), 2, "gpumem: error: "},
      {"unknown option", resnet50("--batch 1 --colour red"), 2, "--colour"},
      {"unknown gpu", resnet50("--batch 1 --gpu gtx9999"), 2, "no GPU profile 'gtx9999'"},
      {"unknown estimator", resnet50("--batch 1 --estimator horos"), 2, "no estimator 'horos'"},
      {"unknown optimizer", resnet50("--batch 1 --optimizer adamm"), 2, "no optimizer 'adamm'; choose one of sgd, "},
      {"unknown precision", resnet50("--batch 1 --precision fp8"), 2, "no precision 'fp8'"},
      {"bad input", resnet50("--batch 1 --input 3x224x"), 2, "is not of the form 3x224x224"},
      {"zero input", resnet50("--batch 1 --input 3x0x224"), 2, "an input dimension is 0"},
      {"bad sequence", resnet50("--batch 1 --seq 0"), 2, "the sequence length is 0"},
      {"tokens of images", resnet50("--batch 1 --seq 512"), 2, "the model reads no tokens; leave --seq out"},
      {"no sequence", "estimate gpt2 --batch 1", 4, "gpt2: the model reads tokens: say how many a sample has"},
      {"unknown zero_grad", resnet50("--batch 1 --zero-grad never"), 2, "no zero_grad 'never'"},
      {"unknown software", resnet50("--batch 1 --software none"), 2, "has no software stack 'none'"},
      {"unknown allocator option", resnet50("--batch 1 --alloc-conf speed:11"), 2, "'speed' is not an option"},
      {"no passes", resnet50("--batch 1 --accumulate 0"), 2, "gradient accumulation is 0"},
      {"no samples", resnet50("--batch 1 --samples 0"), 2, "the number of samples an epoch is 0"},
      {"fit by all", std::string(kFit) + "--estimator all", 2, "fit takes one estimator"},
      {"fit of both", std::string(kFit) + "--batch 2 --seq 64", 2, "leave out --seq or --batch"},
      {"advise by all", std::string("advise ") + kResnet50 + " --batch 8 --estimator all", 2,
       "advise takes one estimator"},
      {"timeline without a page", "timeline models/graphs/resnet50.json --batch 1", 2, "--out is required"},
      {"evaluated by nobody", std::string(kEvaluate) + " --estimator horos", 2, "no estimator 'horos'"},
      {"unknown estimator of utilisation", std::string("utilisation ") + kResnet50 + " --batch 1 --estimator horus", 2,
       "no estimator of utilisation 'horus'; choose one of utilisation-mlp"},
      {"model of another kind", std::string("utilisation ") + kResnet50 + " --batch 1 --model gpumemnet-mlp-mlp", 2,
       "does not tell a GPU's counters"},
      {"utilisation by an estimator of memory", std::string(kEvaluate) + " --utilisation --estimator horus", 2,
       "no estimator of utilisation 'horus'"},
      {"evaluated on no GPU", std::string(kEvaluate) + " --gpu gtx9999", 2, "no GPU profile 'gtx9999'"},
      {"calibrated to no profile", std::string(kCalibrate) + " -o x.txt", 2, "'x.txt' must end in .json"},
      {"calibrated on no GPU", std::string(kCalibrate) + " -o x.json --gpu gtx9999", 2, "no GPU profile 'gtx9999'"},
      {"verify no model", "model verify nowhere", 2,
       "there is no trained model 'nowhere'; choose one of gpumemnet-mlp-cnn"},
      {"verify nothing", "model verify", 2, "folders is required"},
      {"unknown profile", "gpus gtx9999", 2, "no GPU profile 'gtx9999'"},
      {"unknown model", "models nothing-of-the-kind", 4, "has 'nothing-of-the-kind' in its name"},
  });
}

TEST(CliErrors, WrongInputNamesThePlace) {
  expect_failures({
      {"missing file", "estimate nowhere.txt --batch 1", 3, "nowhere.txt: cannot open: No such file or directory"},
      {"a server of a model that nobody loaded", "serve nobody/Nothing-1B", 3,
       "the HuggingFace cache of this machine has none"},
      {"directory", "estimate models --batch 1", 3, "models: is a directory"},
      {"no summary", "estimate LICENSE --batch 1", 3, "LICENSE:1: holds none of the summaries"},
      {"empty file", "estimate - --batch 1", 3, "-:1: is empty"},
      {"bad profile", resnet50("--batch 1 --gpu ./LICENSE"), 3, "./LICENSE: is not JSON"},
      {"missing profile", resnet50("--batch 1 --gpu ./nowhere.json"), 3, "./nowhere.json: cannot open"},
      {"no shapes", "estimate models/summaries/resnet50.module_tree.txt --batch 1", 4, "module_tree.txt:2: conv1: "},
      {"overflow", resnet50("--batch 9223372036854775807"), 4, "does not fit 64 bits"},
      {"checkpointing", "estimate models/summaries/vgg16.torchsummary.txt --batch 1 --checkpointing", 4,
       "checkpointing"},
      {"fit of nothing", "fit nowhere.txt", 3, "nowhere.txt: cannot open"},
      {"fit of unknown layers", "fit tests/golden/cli/unknown_layer.txt --lenient", 4, "no batch is known to fit"},
      {"timeline to nowhere", "timeline models/graphs/resnet50.json --batch 1 -o nowhere/x.html", 3, "cannot write"},
      {"timeline of nothing", "timeline nowhere.txt --batch 1 -o x.html", 3, "nowhere.txt: cannot open"},
      {"missing jobs", "batch nowhere.jsonl", 3, "nowhere.jsonl: cannot be opened"},
      {"jobs in a directory", "batch models", 3, "models: "},
      {"missing runs", "evaluate nowhere.csv", 3, "nowhere.csv: cannot open"},
      {"no runs", "evaluate CONTRIBUTING.md", 3, "CONTRIBUTING.md:"},
      {"unknown table", "evaluate tests/golden/cli/jobs.jsonl", 3, "tests/golden/cli/jobs.jsonl:"},
      {"predictions to nowhere", std::string(kEvaluate) + " --out nowhere/x.csv", 3, "nowhere/x.csv: cannot write"},
      {"calibrated by nothing", std::string(kCalibrate) + " -o /dev/null/x.json", 4, "does not tell reserved memory"},
      {"show no model", "model show models", 3, "models/config.json: cannot open: No such file or directory"},
      {"run no model", "model run ./LICENSE", 3, "./LICENSE/config.json: cannot open: Not a directory"},
      {"run on no inputs", "model run tests/golden/models/bins nowhere.jsonl", 3, "nowhere.jsonl: cannot be opened"},
      {"run on a folder", "model run tests/golden/models/bins models", 3, "models: is a directory"},
  });
}

TEST(CliHelp, IsNoError) {
  for (const char* words : {"--help", "estimate --help", "batch --help", "evaluate --help", "calibrate --help",
                            "gpus --help", "models --help", "server --help", "replay-trace --help", "model --help",
                            "model run --help", "fit --help", "advise --help", "timeline --help", "simulate --help"}) {
    const Outcome result = run(words);
    EXPECT_EQ(result.exit, 0) << words;
    EXPECT_NE(result.out.find("Usage"), std::string::npos) << words;
    EXPECT_EQ(result.err, "") << words;
  }
  const Outcome version = run("--version");
  EXPECT_EQ(version.exit, 0);
  EXPECT_EQ(version.out, "gpumem " GPUMEM_VERSION_STRING "\n");
}

TEST(CliHelp, IsShownWhereNothingIsAskedFor) {
  const Outcome result = run("");
  EXPECT_EQ(result.exit, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, run("--help").out);
}

TEST(CliGpus, ListsEveryProfile) {
  const Outcome result = run("gpus");
  ASSERT_EQ(result.exit, 0) << result.err;
  std::istringstream lines(result.out);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "name                      memory  SMs  bandwidth  GPU");
  for (const device::BuiltinProfile& builtin : device::builtin_profiles()) {
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_TRUE(line.starts_with(std::string(builtin.name) + " ")) << line;
  }
  EXPECT_FALSE(std::getline(lines, line));
  EXPECT_NE(result.out.find("a100-40gb               40.0 GiB  108  1555 GB/s  NVIDIA A100 40GB\n"), std::string::npos);
}

TEST(CliGpus, PrintsTheListAsJson) {
  const Outcome result = run("gpus --json");
  ASSERT_EQ(result.exit, 0) << result.err;
  EXPECT_EQ(nlohmann::json::parse(result.out).size(), device::builtin_profiles().size());
}

TEST(CliGpus, PrintsOneProfileAsItsFileHasIt) {
  const Outcome result = run("gpus T4");
  ASSERT_EQ(result.exit, 0) << result.err;
  EXPECT_EQ(result.out, testing::text_of(fs::path(GPUMEM_SOURCE_DIR) / "models/gpus/t4-16gb.json"));
}

TEST(CliModels, AreThoseOfTheLists) {
  const Outcome result = run("models");
  ASSERT_EQ(result.exit, 0) << result.err;
  const Outcome as_json = run("models --json");
  ASSERT_EQ(as_json.exit, 0) << as_json.err;
  const nlohmann::json json = nlohmann::json::parse(as_json.out);
  ASSERT_EQ(json["architectures"].size(), architectures::architectures().size());
  for (std::size_t at = 0; at < json["architectures"].size(); ++at) {
    const architectures::Architecture& architecture = *architectures::architectures()[at];
    EXPECT_EQ(json["architectures"][at]["architecture"], architecture.name);
    EXPECT_EQ(json["architectures"][at]["model_types"].size(), architecture.model_types.size());
    EXPECT_EQ(json["architectures"][at]["printed_classes"].empty(), architecture.classes.empty());
    for (const std::string_view type : architecture.model_types) {
      EXPECT_NE(result.out.find(type), std::string::npos) << type;
    }
  }
  const auto names = summary::published_model_names();
  ASSERT_EQ(json["models"].size(), names.size());
  for (std::size_t at = 0; at < names.size(); ++at) {
    EXPECT_EQ(json["models"][at]["name"], names[at]);
    EXPECT_GT(json["models"][at]["parameters"], 0) << names[at];
  }
}

TEST(CliModels, AreThoseWithATextInTheirNames) {
  const nlohmann::json json = nlohmann::json::parse(run("models SMOLLM3 --json").out, nullptr, false);
  ASSERT_EQ(json["architectures"].size(), 1U);
  EXPECT_EQ(json["architectures"][0]["model_types"], nlohmann::json::array({"smollm3"}));
  EXPECT_EQ(json["architectures"][0]["printed_classes"], nlohmann::json::array({"SmolLM3"}));
  EXPECT_EQ(json["models"][0]["name"], "HuggingFaceTB/SmolLM3-3B");
  EXPECT_EQ(run("models zamba2").out, "architecture  read from  model types\nzamba2        config     zamba2\n");
}

TEST(CliGpus, SayWhichHoldAJob) {
  const std::string asked =
      std::string("gpus --for ") + kResnet50 + " --batch 180 --price 4090=0.4,t4=0.1,a10=0.2 --json";
  const Outcome result = run(asked);
  ASSERT_EQ(result.exit, 0) << result.err;
  const nlohmann::json gpus = nlohmann::json::parse(result.out)["gpus"];
  EXPECT_EQ(gpus.size(), device::builtin_profiles().size());
  EXPECT_EQ(gpus[0]["gpu"], "a10-24gb");  // the T4, which is cheaper, does not hold it
  EXPECT_EQ(gpus[0]["price"], 0.2);
  EXPECT_EQ(gpus[1]["gpu"], "rtx4090-24gb");
  EXPECT_GE(gpus[0]["largest_batch"], 180);
  EXPECT_EQ(gpus.back()["verdict"], "does_not_fit");
}

}  // namespace
}  // namespace gpumem
