// What `gpumem evaluate` and `replay-trace` print of runs and recordings.
#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "command_line.hpp"
#include "gpumem/all.hpp"
#include "own_path.hpp"

namespace gpumem {
namespace {

namespace fs = std::filesystem;
using testing::expect_golden_run;
using testing::kEvaluate;
using testing::Outcome;
using testing::run;

/// By a formula that stays as it was published.
constexpr const char* kEvaluateHorus = "evaluate tests/golden/cli/evaluate_runs_made_up.csv --estimator horus";

TEST(CliEvaluate, PrintsATable) { expect_golden_run("evaluate_table", kEvaluateHorus); }

TEST(CliEvaluate, PrintsOneJsonObject) { expect_golden_run("evaluate_json", std::string(kEvaluateHorus) + " --json"); }

TEST(CliEvaluate, JudgesTheRunsThatAreAskedFor) {
  expect_golden_run("evaluate_filter", std::string(kEvaluateHorus) + " --filter vgg --gpu v100-16gb");
}

TEST(CliEvaluate, ReadsATableOfStartsOfServers) {
  constexpr const char* kStarts = "evaluate tests/golden/cli/serving_runs_made_up.csv";
  expect_golden_run("evaluate_serving_table", kStarts);
  expect_golden_run("evaluate_serving_json", std::string(kStarts) + " --json --filter o");
}

TEST(CliEvaluate, SaysWhatOfALogItDoesNotFollowAndPrintsNoControlBytes) {
  const fs::path log = testing::own_path("start.log");
  std::ofstream(log)
      << "non-default args: {'max_model_len': 2048, 'spec\x1b[2J': 1}\n"
         "Initializing a V1 LLM engine (v0.19.0\x1b[1m) with config: model='m\x1b[2J', max_seq_len=2048\n"
         "CUDA out of memory \x1b[31m\x07\n";
  for (const std::string form : {"", " --json"}) {
    const Outcome result = run("evaluate --vllm-log '" + log.string() +
                               "' --gpu h100-80gb --config examples/configs/llama3_8b/config.json" + form);
    ASSERT_EQ(result.exit, 0) << result.err;
    EXPECT_NE(result.out.find("the log's option spec?[2J"), std::string::npos) << result.out;
    EXPECT_EQ(result.out.find('\x1b'), std::string::npos) << "it would speak to the terminal";
    EXPECT_EQ(result.out.find("\\u001b"), std::string::npos) << result.out;
  }
  fs::remove(log);
}

TEST(CliEvaluate, WritesEachPrediction) {
  const fs::path out = testing::own_path("predictions.csv");
  const Outcome result = run(std::string(kEvaluateHorus) + " --out '" + out.string() + "'");
  ASSERT_EQ(result.exit, 0) << result.err;
  testing::expect_golden(fs::path(GPUMEM_GOLDEN_DIR) / "cli" / "evaluate_out.golden", testing::text_of(out));
  fs::remove(out);
}

TEST(CliEvaluate, EveryEstimatorIsJudged) {
  const Outcome result = run(std::string(kEvaluate) + " --estimator all --json");
  ASSERT_EQ(result.exit, 0) << result.err;
  EXPECT_EQ(nlohmann::json::parse(result.out)["estimators"].size(), estimate::estimators().size());
}

TEST(CliEvaluate, OfRunsThatAllFailIsAnError) {
  const Outcome result = run(std::string(kEvaluate) + " --filter missing");
  EXPECT_EQ(result.exit, 4);
  EXPECT_NE(result.out.find("1 failed"), std::string::npos) << result.out;
  EXPECT_NE(result.err.find("none of its runs could be judged"), std::string::npos) << result.err;
}

/// Its figures are made up: they measure nothing.
constexpr const char* kEvaluateLanguageModels = "evaluate tests/golden/cli/language_model_runs_made_up.csv";

TEST(CliEvaluateLanguageModels, CountsEveryRowOnceBySourceFigureAndTraining) {
  const Outcome result = run(std::string(kEvaluateLanguageModels) + " --json");
  ASSERT_EQ(result.exit, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["format"], "language-models");
  EXPECT_EQ(json["runs"], 8);
  const auto& replay = json["estimators"][0];
  EXPECT_EQ(replay["fitted"], 4);
  for (const char* by : {"source", "figure", "training"}) {
    std::int64_t runs = 0;
    std::int64_t answered = 0;
    for (const auto& group : replay["groups"][by]) {
      runs += group["runs"].get<std::int64_t>();
      answered += group["answered"].get<std::int64_t>();
    }
    EXPECT_EQ(runs, 8) << by;
    EXPECT_EQ(answered, 4) << by;
  }
  EXPECT_EQ(replay["groups"]["source"][0]["name"], "one/source");
  EXPECT_EQ(replay["groups"]["source"][0]["answered"], 2);
  EXPECT_EQ(replay["groups"]["figure"].size(), 4U) << "allocated, reserved, device, active";
  EXPECT_EQ(replay["groups"]["training"][1]["name"], "LoRA on invented");
}

TEST(CliEvaluateLanguageModels, SaysWhyARowIsNotAnswered) {
  const Outcome result = run(std::string(kEvaluateLanguageModels) + " --json");
  ASSERT_EQ(result.exit, 0) << result.err;
  std::map<std::string, int> reasons;
  const auto json = nlohmann::json::parse(result.out);
  for (const auto& refusal : json["estimators"][0]["not_answered"]) {
    reasons[refusal["reason"].get<std::string>()] = refusal["runs"].get<int>();
    EXPECT_GE(refusal["first"]["line"], 4);
  }
  EXPECT_EQ(reasons["not modelled: optimizer invented"], 1);
  EXPECT_EQ(reasons["a GPU without a profile"], 1);
  EXPECT_EQ(reasons["a model that is not read"], 1);
  EXPECT_EQ(reasons.size(), 4U);  // and the base in a type that nobody has
}

TEST(CliEvaluateLanguageModels, PrintsATableOfGroups) {
  const Outcome result = run(kEvaluateLanguageModels);
  ASSERT_EQ(result.exit, 0) << result.err;
  for (const char* line : {"by source", "one/source", "by figure", "active", "by training",
                           "not answered:", "1 not modelled: optimizer invented (one-unknown-optimizer, line 4:"}) {
    EXPECT_NE(result.out.find(line), std::string::npos) << line << "\n" << result.out;
  }
}

constexpr const char* kEvaluateUtilisation = "evaluate tests/golden/cli/utilisation_runs_made_up.csv --utilisation";

TEST(CliEvaluateUtilisation, PrintsATable) {
  expect_golden_run("evaluate_utilisation_table", std::string(kEvaluateUtilisation) + " --estimator roofline");
}

TEST(CliEvaluateUtilisation, PrintsOneJsonObject) {
  expect_golden_run("evaluate_utilisation_json", std::string(kEvaluateUtilisation) + " --estimator roofline --json");
}

TEST(CliEvaluateUtilisation, WritesEachEstimate) {
  const fs::path out = testing::own_path("utilisation.csv");
  const Outcome result = run(std::string(kEvaluateUtilisation) + " --estimator roofline --out '" + out.string() + "'");
  ASSERT_EQ(result.exit, 0) << result.err;
  testing::expect_golden(fs::path(GPUMEM_GOLDEN_DIR) / "cli" / "evaluate_utilisation_out.golden",
                         testing::text_of(out));
  fs::remove(out);
}

TEST(CliEvaluateUtilisation, JudgesEveryEstimatorUnlessOneIsNamed) {
  const Outcome result = run(std::string(kEvaluateUtilisation) + " --json");
  ASSERT_EQ(result.exit, 0) << result.err;
  EXPECT_EQ(nlohmann::json::parse(result.out)["estimators"].size(), utilisation::utilisation_estimators().size());
}

TEST(CliReplayTrace, SaysWhatATraceNeeds) {
  expect_golden_run("replay_trace", "replay-trace tests/golden/traces/mlp_cpu.json");
}

TEST(CliReplayTrace, SaysWhetherItFits) {
  expect_golden_run("replay_trace_gpu", "replay-trace tests/golden/traces/mlp_cpu.json --gpu a100-40gb");
}

TEST(CliReplayTrace, PrintsOneJsonObject) {
  expect_golden_run("replay_trace_json", "replay-trace - --gpu t4-16gb --alloc-conf expandable_segments:True --json",
                    testing::text_of(fs::path(GPUMEM_SOURCE_DIR) / "tests/golden/traces/mlp_cpu.json"));
}

TEST(CliReplayTrace, SaysWhereMemoryEnds) {
  const std::string request = R"({"action": "alloc", "addr": 1, "size": 20000000000})";
  expect_golden_run("replay_trace_does_not_fit", "replay-trace - --gpu t4-16gb",
                    R"({"device_traces": [[{"action": "free_completed", "addr": 7, "size": 512}, )" + request + "]]}");
}

TEST(CliReplayTrace, SaysWhatIsWrong) {
  expect_golden_run("replay_trace_wrong_option", "replay-trace - --alloc-conf max_split_size_mb:1");
  expect_golden_run("replay_trace_wrong_trace", "replay-trace -", R"({"traceEvents": [{"name": "[memory]"}]})");
}

// What the shipped recording says about itself, and what the rules make of it, worked out apart from the library: its
// largest request is 524,288 B, so that all come from the small pool.
TEST(ReplayOfARecording, HasThePeaksThatItsEventsSumTo) {
  const std::string text = testing::text_of(fs::path(GPUMEM_SOURCE_DIR) / "tests/golden/traces/mlp_cpu.json");
  std::int64_t requested = 0;
  std::int64_t allocated = 0;
  std::int64_t peak_requested = 0;
  std::int64_t peak_allocated = 0;
  std::int64_t recorded = 0;
  const auto parsed = nlohmann::json::parse(text);
  for (const auto& event : parsed["traceEvents"]) {
    const auto& args = event["args"];
    const auto bytes = args["Bytes"].get<std::int64_t>();
    requested += bytes;
    allocated += bytes > 0 ? (bytes + 511) / 512 * 512 : -((511 - bytes) / 512 * 512);
    peak_requested = std::max(peak_requested, requested);
    peak_allocated = std::max(peak_allocated, allocated);
    recorded = std::max(recorded, args["Total Allocated"].get<std::int64_t>());
  }
  const auto trace = device::read_allocation_trace(text);
  ASSERT_TRUE(trace.has_value());
  EXPECT_EQ(trace->unknown_frees + trace->missing_frees, 0);
  const device::TraceReplay result = device::replay(*trace);
  EXPECT_EQ(result.peak_requested, recorded);
  EXPECT_EQ(result.peak_requested, peak_requested);
  EXPECT_EQ(result.peak_allocated, peak_allocated);
  EXPECT_EQ(result.peak_reserved, 2 * (std::int64_t{2} << 20));
}

}  // namespace
}  // namespace gpumem
