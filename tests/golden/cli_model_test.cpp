// What `gpumem model` and `gpumem batch` print.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "command_line.hpp"
#include "gpumem/all.hpp"
#include "own_path.hpp"

namespace gpumem {
namespace {

namespace fs = std::filesystem;
using testing::expect_golden_run;
using testing::kResnet50;
using testing::Outcome;
using testing::run;

constexpr const char* kBinsModel = "tests/golden/models/bins";
constexpr const char* kSequenceModel = "tests/golden/models/sequence";

TEST(CliModelShow, PrintsATable) {
  expect_golden_run("model_show_bins", std::string("model show ") + kBinsModel);
  expect_golden_run("model_show_sequence", std::string("model show ") + kSequenceModel);
}

TEST(CliModelShow, PrintsTheConfig) {
  const Outcome result = run(std::string("model show --json ") + kBinsModel);
  ASSERT_EQ(result.exit, 0) << result.err;
  EXPECT_EQ(result.out, testing::text_of(fs::path(GPUMEM_SOURCE_DIR) / kBinsModel / "config.json"));
}

TEST(CliModelVerify, SaysHowCloseEachModelIs) {
  expect_golden_run("model_verify", std::string("model verify ") + kBinsModel + " " + kSequenceModel);
}

TEST(CliModelVerify, FindsDamageAndGoesOn) {
  const fs::path folder = testing::own_path("damaged");
  fs::create_directories(folder);
  const fs::path sound = fs::path(GPUMEM_SOURCE_DIR) / kBinsModel;
  fs::copy_file(sound / "config.json", folder / "config.json");
  std::string weights = testing::text_of(sound / "model.safetensors");
  weights[weights.size() - 2] ^= 0x40;
  std::ofstream(folder / "model.safetensors", std::ios::binary) << weights;
  const Outcome result = run("model verify '" + folder.string() + "' " + kBinsModel);
  EXPECT_EQ(result.exit, 3);
  EXPECT_NE(result.err.find("config.json: /test_vectors/0: is not what the weights give"), std::string::npos)
      << result.err;
  EXPECT_NE(result.out.find("made-up-bins"), std::string::npos);
  fs::remove_all(folder);
}

/// The numbers of a list in JSON.
std::vector<double> numbers_of(const nlohmann::json& list) { return list.get<std::vector<double>>(); }

void expect_near(const std::vector<double>& got, const std::vector<double>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t index = 0; index < got.size(); ++index) EXPECT_NEAR(got[index], wanted[index], 1e-4) << index;
}

TEST(CliModelRun, GivesBinsWithTheirProbabilities) {
  const Outcome result = run(std::string("model run ") + kBinsModel,
                             R"({"id": "a", "features": [25557032, 10000000, 32], "layers": [[[1]]], "sequence": 7})");
  ASSERT_EQ(result.exit, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  const auto config = nlohmann::json::parse(testing::text_of(fs::path(GPUMEM_SOURCE_DIR) / kBinsModel / "config.json"));
  const std::vector<double> logits = numbers_of(config["test_vectors"][0]["outputs"]);
  expect_near(numbers_of(json["logits"]), logits);
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit);
  std::vector<double> probabilities;
  for (const double logit : logits) probabilities.push_back(std::exp(logit) / sum);
  expect_near(numbers_of(json["probabilities"]), probabilities);
  EXPECT_EQ(json["class"], 3);
  EXPECT_EQ(json["range_mib"], nlohmann::json({24000, 40960}));
  EXPECT_EQ(json["id"], "a");
  EXPECT_EQ(json["line"], 1);
}

TEST(CliModelRun, GivesValuesByTheirNames) {
  const auto config =
      nlohmann::json::parse(testing::text_of(fs::path(GPUMEM_SOURCE_DIR) / kSequenceModel / "config.json"));
  std::string input;
  for (const auto& vector : config["test_vectors"]) input += vector.dump() + "\n";
  const Outcome result = run(std::string("model run ") + kSequenceModel + " -", input);
  ASSERT_EQ(result.exit, 0) << result.err;
  std::istringstream lines(result.out);
  for (const auto& vector : config["test_vectors"]) {
    std::string line;
    ASSERT_TRUE(std::getline(lines, line));
    const auto json = nlohmann::json::parse(line);
    ASSERT_TRUE(json.contains("values")) << line;
    expect_near({json["values"]["log_ratio"], json["values"]["spread"]}, numbers_of(vector["outputs"]));
  }
}

TEST(CliModelRun, AnswersBadLinesByErrorsAndGoesOn) {
  expect_golden_run("model_run_errors", std::string("model run ") + kSequenceModel,
                    "\n"
                    "not JSON\n"
                    "[1]\n"
                    "{\"id\": 4}\n"
                    "{\"id\": [5], \"features\": [8]}\n"
                    "{\"features\": [8, 9], \"sequence\": []}\n"
                    "{\"features\": [\"8\"], \"sequence\": []}\n"
                    "{\"features\": [8], \"features\": [8]}\n"
                    "{\"features\": [8], \"sequence\": [[1, 2, 3], [1, 2]]}\n"
                    "{\"features\": [8], \"sequence\": [[1, 2, 3], [1, -2, 3]]}\n"
                    "{\"features\": [1e999], \"sequence\": []}\n");
}

TEST(CliBatch, TakesDataParallel) {
  const Outcome one = run("batch", R"({"summary": "models/graphs/gpt_like.json", "batch_size": 8, )"
                                   R"("estimator": "zero-1", "data_parallel": 4, "precision": "bf16"})");
  ASSERT_EQ(one.exit, 0) << one.err;
  const auto json = nlohmann::json::parse(one.out);
  EXPECT_EQ(json["job"]["data_parallel"], 4);
  EXPECT_EQ(json["estimates"][0]["expected_bytes"], 4 * 124439808 + 12 * 124439808 / 4);
}

TEST(CliBatch, AnswersEveryLineInOrderAndBadLinesByErrors) {
  expect_golden_run("batch_jobs", "batch tests/golden/cli/jobs.jsonl");
}

TEST(CliBatch, ReadsStandardInputAndTakesDefaults) {
  expect_golden_run("batch_defaults", "batch --batch 8 --gpu t4-16gb --precision bf16",
                    "{\"summary\": \"models/summaries/vgg16.torchsummary.txt\"}\n"
                    "{\"summary\": \"models/summaries/vgg16.torchsummary.txt\", \"batch\": 16, \"gpu\": \"a100\"}");
}

TEST(CliBatch, OfNoJobsAnswersNothing) {
  const Outcome result = run("batch");
  EXPECT_EQ(result.exit, 0);
  EXPECT_EQ(result.out, "");
}

TEST(CliBatch, ManyLinesAreAnsweredInOrderAsEachAlone) {
  constexpr int kLines = 2500;
  const auto job = [](int number) {
    const std::string graph = number % 3 == 0 ? "resnet18" : "gpt_like";
    return R"({"summary": "models/graphs/)" + graph + R"(.json", "estimator": "replay", "id": )" +
           std::to_string(number) + R"(, "batch_size": )" + std::to_string(1 + number % 7) + "}\n";
  };
  const auto bytes_of = [](const nlohmann::json& answer) { return answer["estimates"][0]["expected_bytes"]; };
  std::string all;
  for (int number = 0; number < kLines; ++number) all += job(number);
  const Outcome result = run("batch", all);
  ASSERT_EQ(result.exit, 0) << result.err;
  std::vector<nlohmann::json> alone;
  constexpr int kDistinct = 21;
  for (int number = 0; number < kDistinct; ++number) {
    alone.push_back(bytes_of(nlohmann::json::parse(run("batch", job(number)).out)));
  }
  std::istringstream lines(result.out);
  int number = 0;
  for (std::string line; std::getline(lines, line); ++number) {
    const auto answer = nlohmann::json::parse(line);
    ASSERT_EQ(answer["id"], number);
    ASSERT_EQ(answer["line"], number + 1);
    ASSERT_EQ(bytes_of(answer), alone[static_cast<std::size_t>(number % kDistinct)]) << number;
  }
  EXPECT_EQ(number, kLines);
}

TEST(CliBatch, ALineThatIsFarTooLongIsAnsweredAndTheRunGoesOn) {
  const std::string job = std::string(R"({"summary": ")") + kResnet50 + R"(", "batch_size": 1})";
  const Outcome result = run("batch", std::string(std::size_t{3} << 20, 'x') + "\n" + job + "\n");
  ASSERT_EQ(result.exit, 0) << result.err;
  std::istringstream lines(result.out);
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(nlohmann::json::parse(line)["error"]["code"], "malformed_input");
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(nlohmann::json::parse(line)["line"], 2);
  EXPECT_TRUE(nlohmann::json::parse(line).contains("estimates"));
}

TEST(CliBatch, AnswersBytesThatAreNotUtf8WithJson) {
  const Outcome result = run("batch", "{\"summary\": \"\xFF\", \"batch_size\": 1}\n{\"id\": \"\xC3\"}\n");
  ASSERT_EQ(result.exit, 0) << result.err;
  std::istringstream lines(result.out);
  int answers = 0;
  for (std::string line; std::getline(lines, line); ++answers) {
    EXPECT_TRUE(nlohmann::json::accept(line)) << line;
  }
  EXPECT_EQ(answers, 2);
}

}  // namespace
}  // namespace gpumem
