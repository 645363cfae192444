// The command line as a script sees it: what it prints, where, and its exit code.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "golden.hpp"
#include "gpumem/gpumem.hpp"

namespace gpumem {
namespace {

namespace fs = std::filesystem;

struct Outcome {
  int exit = -1;
  std::string out;
  std::string err;
};

/// Runs the command line with these words (as a shell takes them) in the root of the sources.
Outcome run(const std::string& words, std::string_view input = "") {
  const fs::path folder = fs::path(::testing::TempDir()) / ("gpumem_cli_" + std::to_string(getpid()));
  fs::create_directories(folder);
  std::ofstream(folder / "in", std::ios::binary) << input;
  const std::string command = "cd '" GPUMEM_SOURCE_DIR "' && '" GPUMEM_CLI "' " + words + " <'" +
                              (folder / "in").string() + "' >'" + (folder / "out").string() + "' 2>'" +
                              (folder / "err").string() + "'";
  const int status = std::system(command.c_str());
  Outcome result = {WIFEXITED(status) ? WEXITSTATUS(status) : -1, testing::text_of(folder / "out"),
                    testing::text_of(folder / "err")};
  fs::remove_all(folder);
  return result;
}

/// The text with every time set to 0: it differs from run to run.
std::string without_times(std::string text) {
  constexpr std::string_view kMark = "\"seconds\":";
  for (std::size_t at = text.find(kMark); at != std::string::npos; at = text.find(kMark, at)) {
    at = text.find_first_not_of(' ', at + kMark.size());
    text.replace(at, text.find_first_of(",}\n", at) - at, "0");
  }
  return text;
}

void expect_golden_run(const std::string& name, const std::string& words, std::string_view input = "") {
  const Outcome result = run(words, input);
  const std::string text = "$ gpumem " + words + "\nexit code " + std::to_string(result.exit) + "\n--- stdout\n" +
                           without_times(result.out) + "--- stderr\n" + result.err;
  testing::expect_golden(fs::path(GPUMEM_GOLDEN_DIR) / "cli" / (name + ".golden"), text);
}

constexpr const char* kResnet50 = "models/summaries/resnet50.torchsummary.txt";

std::string resnet50(std::string_view options) {
  return std::string("estimate ") + kResnet50 + " " + std::string(options);
}

constexpr const char* kPlaceServer = " --server tests/golden/cli/place/server.json";

std::string place_rad(std::string_view options) {
  return std::string("place tests/golden/cli/place/vgg.rad") + kPlaceServer + " " + std::string(options);
}

std::string place_vgg(std::string_view options) {
  return std::string("place models/summaries/vgg16.torchsummary.txt --id vgg16") + kPlaceServer + " " +
         std::string(options);
}

TEST(CliEstimate, PrintsATable) { expect_golden_run("estimate_table", resnet50("--batch 32")); }

TEST(CliEstimate, PrintsOneJsonObject) { expect_golden_run("estimate_json", resnet50("--batch 32 --json")); }

TEST(CliEstimate, SaysThatAJobDoesNotFit) {
  expect_golden_run("estimate_does_not_fit", resnet50("--batch 256 --gpu t4-16gb --precision fp32 --optimizer sgd"));
}

TEST(CliEstimate, ModelStatesAreALowerBound) {
  expect_golden_run("estimate_model_states", "estimate models/graphs/gpt_like.json --batch 8 --estimator model-states");
}

TEST(CliEstimate, ZeroIsOfOneOfManyGpus) {
  expect_golden_run("estimate_zero",
                    "estimate models/graphs/gpt_like.json --batch 8 --estimator zero-3-offload "
                    "--data-parallel 8 --precision bf16");
  expect_golden_run("estimate_zero_json",
                    "estimate models/graphs/gpt_like.json --batch 8 --estimator zero-2 "
                    "--data-parallel 8 --json");
}

TEST(CliEstimate, OfOneGpuDoesNotTakeSeveral) {
  expect_golden_run("estimate_data_parallel", resnet50("--batch 32 --data-parallel 8"));
}

TEST(CliFit, OfALowerBoundIsNotKnown) {
  expect_golden_run("fit_lower_bound", "fit models/graphs/gpt_like.json --estimator zero-3 --data-parallel 8");
}

TEST(CliBatch, TakesDataParallel) {
  const Outcome one = run("batch", R"({"summary": "models/graphs/gpt_like.json", "batch_size": 8, )"
                                   R"("estimator": "zero-1", "data_parallel": 4, "precision": "bf16"})");
  ASSERT_EQ(one.exit, 0) << one.err;
  const auto json = nlohmann::json::parse(one.out);
  EXPECT_EQ(json["job"]["data_parallel"], 4);
  EXPECT_EQ(json["estimates"][0]["expected_bytes"], 4 * 124439808 + 12 * 124439808 / 4);
}

TEST(CliEstimate, EveryEstimatorAnswersForItself) {
  const Outcome result = run(resnet50("--batch 32 --estimator all --json"));
  ASSERT_EQ(result.exit, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["estimates"].size(), estimate::estimators().size());
}

TEST(CliEstimate, JsonHasTheDocumentedFields) {
  const Outcome result = run(resnet50("--batch 32 --json"));
  ASSERT_EQ(result.exit, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["summary"]["file"], kResnet50);
  EXPECT_EQ(json["summary"]["format"], "torchsummary");
  EXPECT_EQ(json["summary"]["parameters"], 25557032);
  EXPECT_EQ(json["gpu"], "a100-40gb");
  const auto& answer = json["estimates"][0];
  for (const char* field : {"estimator", "expected_bytes", "lower_bytes", "upper_bytes", "allocated_bytes",
                            "reserved_bytes", "device_bytes", "fits", "breakdown", "peak", "coverage", "seconds"}) {
    EXPECT_TRUE(answer.contains(field)) << field;
  }
  std::int64_t sum = 0;
  for (const auto& part : answer["breakdown"]) sum += part.get<std::int64_t>();
  EXPECT_EQ(sum, answer["expected_bytes"].get<std::int64_t>());
  EXPECT_GE(answer["seconds"].get<double>(), 0.0);
  EXPECT_EQ(answer["estimator"], "replay");
  EXPECT_EQ(answer["peak"]["phase"], "backward");
  EXPECT_TRUE(answer["peak"]["layer"].is_string());
}

TEST(CliEstimate, TakesHowTheJobIsTrained) {
  const Outcome result =
      run(resnet50("--batch 32 --samples 1000 --zero-grad step-end --fused --no-foreach --accumulate 2 --validation "
                   "--software eager-loading --alloc-conf expandable_segments:True --json"));
  ASSERT_EQ(result.exit, 0) << result.err;
  const auto job = nlohmann::json::parse(result.out)["job"];
  EXPECT_EQ(job["samples"], 1000);
  EXPECT_EQ(job["zero_grad"], "step-end");
  EXPECT_EQ(job["fused"], true);
  EXPECT_EQ(job["foreach"], false);
  EXPECT_EQ(job["accumulate"], 2);
  EXPECT_EQ(job["validation"], true);
  EXPECT_EQ(job["software"], "eager-loading");
  EXPECT_EQ(job["alloc_conf"], "expandable_segments:True");
}

TEST(CliEstimate, TakesEveryOptimizerByItsName) {
  std::string lines;
  for (const model::OptimizerRow& row : model::kOptimizerRows) {
    const std::string name(row.name);
    const Outcome words = run(resnet50("--batch 1 --json --optimizer " + name));
    ASSERT_EQ(words.exit, 0) << words.err;
    EXPECT_EQ(nlohmann::json::parse(words.out)["job"]["optimizer"], name);
    lines += R"({"summary": ")" + std::string(kResnet50) + R"(", "batch_size": 1, "optimizer": ")" + name + "\"}\n";
  }
  const Outcome batch = run("batch", lines);
  EXPECT_EQ(batch.exit, 0) << batch.err;
  std::istringstream answers(batch.out);
  std::string answer;
  for (const model::OptimizerRow& row : model::kOptimizerRows) {
    ASSERT_TRUE(std::getline(answers, answer));
    EXPECT_EQ(nlohmann::json::parse(answer)["job"]["optimizer"], row.name);
  }
}

TEST(CliEstimate, TheAllocatorsOptionsDecideWhatIsReserved) {
  const auto reserved = [](const std::string& options) {
    const Outcome result = run(resnet50("--batch 32 --json " + options));
    return nlohmann::json::parse(result.out)["estimates"][0]["reserved_bytes"].get<std::int64_t>();
  };
  EXPECT_LT(reserved("--alloc-conf expandable_segments:True"), reserved(""));
}

constexpr const char* kFit = "fit models/graphs/resnet50.json --gpu rtx4090-24gb ";

TEST(CliFit, SaysTheLargestBatchAndWhatOneMoreNeeds) {
  const Outcome text = run(kFit);
  ASSERT_EQ(text.exit, 0) << text.err;
  const Outcome result = run(std::string(kFit) + "--json");
  ASSERT_EQ(result.exit, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["schema"], 1);
  EXPECT_FALSE(json["job"].contains("batch_size"));
  EXPECT_EQ(json["at_least"], false);
  const std::int64_t capacity = json["capacity_bytes"];
  EXPECT_LE(json["estimate"]["expected_bytes"].get<std::int64_t>(), capacity);
  EXPECT_GT(json["one_more"]["expected_bytes"].get<std::int64_t>(), capacity);
  EXPECT_TRUE(json["estimate"]["fits"]);
  EXPECT_FALSE(json["one_more"]["fits"]);
  const std::int64_t batch = json["largest_batch"];
  EXPECT_NE(text.out.find("largest batch " + core::with_separators(batch) + ": "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("; batch " + core::with_separators(batch + 1) + " would need "), std::string::npos);
}

TEST(CliFit, OfAJobThatIsTooLargeAtBatchOneSaysTheNeed) {
  const std::string gpu =
      R"({"format": "gpumem-gpu", "version": 1, "name": "tiny", "title": "Tiny", "architecture": "none", "compute_capability": "1.0",
    "figures": {"memory_bytes": {"value": 1000000, "source": "made up"}}})";
  const fs::path profile = fs::path(::testing::TempDir()) / ("gpumem_tiny_" + std::to_string(getpid()) + ".json");
  std::ofstream(profile) << gpu;
  const std::string fit = "fit models/graphs/gpt_like.json --gpu '" + profile.string() + "'";
  const Outcome text = run(fit);
  EXPECT_EQ(text.exit, 4);
  EXPECT_EQ(text.out, "");
  EXPECT_NE(text.err.find("not even batch 1 fits: it would need "), std::string::npos) << text.err;
  const Outcome json = run(fit + " --json");
  EXPECT_EQ(json.exit, 4);
  EXPECT_EQ(nlohmann::json::parse(json.out)["largest_batch"], 0);
  fs::remove(profile);
}

std::string vgg16(std::string_view options) {
  return "request models/summaries/vgg16.torchsummary.txt --batch 64 " + std::string(options);
}

TEST(CliRequest, PrintsWhatEachTargetTakes) {
  for (const auto& target : request::targets()) {
    std::string name = "request_" + std::string(target.name);
    std::replace(name.begin(), name.end(), '-', '_');
    expect_golden_run(name, vgg16("--for " + std::string(target.name)));
  }
}

TEST(CliRequest, PrintsOneJsonObject) { expect_golden_run("request_json", vgg16("--for hami --margin 2GiB --json")); }

TEST(CliRequest, SaysNeedAndLimitWhereNoGpuHoldsIt) {
  expect_golden_run("request_does_not_fit", "request models/summaries/vgg16.torchsummary.txt --batch 1024 --for slurm");
  expect_golden_run("request_no_slice", vgg16("--gpu t4-16gb --for nvidia-mig"));
}

TEST(CliRequest, RefusesWrongWordsBeforeItReads) {
  EXPECT_EQ(run("request nowhere.txt --batch 1 --for k8s").exit, 2);
  EXPECT_EQ(run("request nowhere.txt --batch 1 --for ray --margin 2").exit, 2);
  EXPECT_EQ(run("request nowhere.txt --batch 1 --for ray --estimator all").exit, 2);
  EXPECT_EQ(run("request nowhere.txt --batch 1 --for ray").exit, 3);
  EXPECT_EQ(run("request nowhere.txt --batch 1").exit, 2);
}

TEST(CliRequest, OnlyTheRequestGoesToStandardOutput) {
  const Outcome result = run(vgg16("--for slurm"));
  EXPECT_TRUE(result.out.starts_with("--gres=shard:")) << result.out;
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 1);
  EXPECT_NE(result.err.find(" at batch 64 needs "), std::string::npos) << result.err;
}

/// The page of `gpumem timeline` with these words.
std::string page_of(const std::string& words) {
  const fs::path file = fs::path(::testing::TempDir()) / ("gpumem_timeline_" + std::to_string(getpid()) + ".html");
  const Outcome result = run("timeline " + words + " -o '" + file.string() + "'");
  EXPECT_EQ(result.exit, 0) << result.err;
  std::string page = testing::text_of(file);
  fs::remove(file);
  return page;
}

/// What stands between two marks; the page must hold both.
std::string between(const std::string& page, const std::string& begin, const std::string& end) {
  const std::size_t from = page.find(begin);
  const std::size_t to = page.find(end, from);
  if (from == std::string::npos || to == std::string::npos) return "no " + begin;
  return page.substr(from + begin.size(), to - from - begin.size());
}

nlohmann::json data_of(const std::string& page) {
  return nlohmann::json::parse(between(page, "<script type=\"application/json\" id=\"data\">", "</script>"));
}

TEST(CliTimeline, HoldsTheRunThatIsEstimated) {
  const std::string job = "models/graphs/resnet50.json --batch 32 --gpu rtx4090-24gb";
  const auto data = data_of(page_of(job));
  const auto json = nlohmann::json::parse(run("estimate " + job + " --json").out);
  const auto& estimate = json["estimates"][0];
  EXPECT_EQ(data["peak"]["allocated_bytes"], estimate["allocated_bytes"]);
  EXPECT_EQ(data["peak"]["reserved_bytes"], estimate["reserved_bytes"]);
  EXPECT_EQ(data["context_bytes"], estimate["breakdown"]["context"]);
  EXPECT_EQ(data["peak"]["phase"], estimate["peak"]["phase"]);
  EXPECT_EQ(data["layers"][data["peak"]["layer"].get<std::size_t>()][0], estimate["peak"]["layer"]);
  EXPECT_EQ(data["gpu"]["capacity_bytes"], json["capacity_bytes"]);

  // The columns hold differences: summed up to the peak they are what it is made of.
  const auto& points = data["points"];
  const std::size_t peak = data["peak"]["point"];
  std::int64_t allocated = 0;
  for (const auto& column : points["allocated"]) {
    ASSERT_EQ(column.size(), points["event"].size());
    for (std::size_t point = 0; point <= peak; ++point) allocated += column[point].get<std::int64_t>();
  }
  EXPECT_EQ(allocated, estimate["allocated_bytes"].get<std::int64_t>());
  EXPECT_EQ(points["allocated"].size(), data["categories"].size());
  for (const char* column : {"reserved", "bytes", "category", "layer"}) {
    EXPECT_EQ(points[column].size(), points["event"].size()) << column;
  }
}

TEST(CliTimeline, LoadsNothingFromElsewhere) {
  const std::string page = page_of("models/graphs/resnet50.json --batch 1");
  for (const char* part : {"http:", "https:", "//cdn", "src=", "@import", "url("}) {
    EXPECT_EQ(page.find(part), std::string::npos) << part;
  }
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
}

TEST(CliTimeline, TextOfTheSummaryStaysText) {
  const std::string tame = page_of("models/graphs/resnet50.json --batch 1");
  const std::string page = page_of("tests/browser/hostile.json --batch 1");
  const auto count = [](const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
  };
  for (const char* part : {"<script", "</script", "<img", "<!--"})
    EXPECT_EQ(count(page, part), count(tame, part)) << part;
  EXPECT_EQ(page.find("window.pwned=1<"), std::string::npos);
  const auto data = data_of(page);
  std::set<std::string> names;
  for (const auto& layer : data["layers"]) names.insert(layer[0].get<std::string>());
  EXPECT_TRUE(names.contains("<img src=x onerror='window.pwned=2'>")) << data["layers"];
  EXPECT_TRUE(names.contains("</script><script>window.pwned=1</script>")) << data["layers"];
}

TEST(CliEstimate, ReadsStandardInput) {
  const Outcome result = run("estimate - --batch 4 --json", testing::text_of(fs::path(GPUMEM_SOURCE_DIR) / kResnet50));
  ASSERT_EQ(result.exit, 0) << result.err;
  EXPECT_EQ(nlohmann::json::parse(result.out)["summary"]["parameters"], 25557032);
}

TEST(CliEstimate, PrintsWarningsToStandardError) {
  expect_golden_run("estimate_warning", "estimate tests/golden/cli/wrong_total.txt --batch 1");
}

TEST(CliEstimate, AnUnknownLayerIsCountedOnlyIfAsked) {
  expect_golden_run("estimate_unknown_layer", "estimate tests/golden/cli/unknown_layer.txt --batch 1");
  expect_golden_run("estimate_lenient",
                    "estimate tests/golden/cli/unknown_layer.txt --batch 1 --input 10 --lenient --estimator horus");
}

/// Its figures are invented for this test: they measure nothing.
constexpr const char* kEvaluate = "evaluate tests/golden/cli/evaluate_runs_made_up.csv";
/// By a formula that stays as it was published.
constexpr const char* kEvaluateHorus = "evaluate tests/golden/cli/evaluate_runs_made_up.csv --estimator horus";

constexpr const char* kCalibrate = "calibrate tests/golden/cli/evaluate_runs_made_up.csv --estimator horus";

struct Failure {
  const char* name;
  std::string words;
  int exit;
  const char* part;  ///< of standard error
};

TEST(CliErrors, HaveTheDocumentedExitCodesAndNameThePlace) {
  const std::vector<Failure> failures = {
      {"nothing", "", 2, "A subcommand is required"},
      {"unknown command", "frobnicate", 2, "gpumem: error: "},
      {"no batch", std::string("estimate ") + kResnet50, 2, "--batch is required"},
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
      {"missing file", "estimate nowhere.txt --batch 1", 3, "nowhere.txt: cannot open: No such file or directory"},
      {"directory", "estimate models --batch 1", 3, "models: is a directory"},
      {"no summary", "estimate LICENSE --batch 1", 3, "LICENSE:1: holds none of the summaries"},
      {"empty file", "estimate - --batch 1", 3, "-:1: is empty"},
      {"bad profile", resnet50("--batch 1 --gpu ./LICENSE"), 3, "./LICENSE: is not JSON"},
      {"missing profile", resnet50("--batch 1 --gpu ./nowhere.json"), 3, "./nowhere.json: cannot open"},
      {"no shapes", "estimate models/summaries/resnet50.module_tree.txt --batch 1", 4, "module_tree.txt:2: conv1: "},
      {"overflow", resnet50("--batch 9223372036854775807"), 4, "does not fit 64 bits"},
      {"unknown zero_grad", resnet50("--batch 1 --zero-grad never"), 2, "no zero_grad 'never'"},
      {"unknown software", resnet50("--batch 1 --software none"), 2, "has no software stack 'none'"},
      {"unknown allocator option", resnet50("--batch 1 --alloc-conf speed:11"), 2, "'speed' is not an option"},
      {"no passes", resnet50("--batch 1 --accumulate 0"), 2, "gradient accumulation is 0"},
      {"no samples", resnet50("--batch 1 --samples 0"), 2, "the number of samples an epoch is 0"},
      {"checkpointing", "estimate models/summaries/vgg16.torchsummary.txt --batch 1 --checkpointing", 4,
       "checkpointing"},
      {"fit by all", std::string(kFit) + "--estimator all", 2, "fit takes one estimator"},
      {"fit of nothing", "fit nowhere.txt", 3, "nowhere.txt: cannot open"},
      {"fit of unknown layers", "fit tests/golden/cli/unknown_layer.txt --lenient", 4, "no batch is known to fit"},
      {"timeline to nowhere", "timeline models/graphs/resnet50.json --batch 1 -o nowhere/x.html", 3, "cannot write"},
      {"timeline of nothing", "timeline nowhere.txt --batch 1 -o x.html", 3, "nowhere.txt: cannot open"},
      {"timeline without a page", "timeline models/graphs/resnet50.json --batch 1", 2, "--out is required"},
      {"missing jobs", "batch nowhere.jsonl", 3, "nowhere.jsonl: cannot be opened"},
      {"jobs in a directory", "batch models", 3, "models: "},
      {"missing runs", "evaluate nowhere.csv", 3, "nowhere.csv: cannot open"},
      {"no runs", "evaluate CONTRIBUTING.md", 3, "CONTRIBUTING.md:"},
      {"unknown table", "evaluate tests/golden/cli/jobs.jsonl", 3, "tests/golden/cli/jobs.jsonl:"},
      {"evaluated by nobody", std::string(kEvaluate) + " --estimator horos", 2, "no estimator 'horos'"},
      {"unknown estimator of utilisation", std::string("utilisation ") + kResnet50 + " --batch 1 --estimator horus", 2,
       "no estimator of utilisation 'horus'; choose one of utilisation-mlp"},
      {"model of another kind", std::string("utilisation ") + kResnet50 + " --batch 1 --model gpumemnet-mlp-mlp", 2,
       "does not tell a GPU's counters"},
      {"utilisation by an estimator of memory", std::string(kEvaluate) + " --utilisation --estimator horus", 2,
       "no estimator of utilisation 'horus'"},
      {"evaluated on no GPU", std::string(kEvaluate) + " --gpu gtx9999", 2, "no GPU profile 'gtx9999'"},
      {"predictions to nowhere", std::string(kEvaluate) + " --out nowhere/x.csv", 3, "nowhere/x.csv: cannot write"},
      {"calibrated by nothing", std::string(kCalibrate) + " -o /dev/null/x.json", 4, "does not tell reserved memory"},
      {"calibrated to no profile", std::string(kCalibrate) + " -o x.txt", 2, "'x.txt' must end in .json"},
      {"calibrated on no GPU", std::string(kCalibrate) + " -o x.json --gpu gtx9999", 2, "no GPU profile 'gtx9999'"},
      {"no model command", "model", 2, "A subcommand is required"},
      {"show no model", "model show models", 3, "models/config.json: cannot open: No such file or directory"},
      {"verify no model", "model verify nowhere", 2,
       "there is no trained model 'nowhere'; choose one of gpumemnet-mlp-cnn"},
      {"verify nothing", "model verify", 2, "folders is required"},
      {"run no model", "model run ./LICENSE", 3, "./LICENSE/config.json: cannot open: Not a directory"},
      {"run on no inputs", "model run tests/golden/models/bins nowhere.jsonl", 3, "nowhere.jsonl: cannot be opened"},
      {"run on a folder", "model run tests/golden/models/bins models", 3, "models: is a directory"},
      {"unknown profile", "gpus gtx9999", 2, "no GPU profile 'gtx9999'"},
  };
  for (const Failure& failure : failures) {
    const Outcome result = run(failure.words);
    EXPECT_EQ(result.exit, failure.exit) << failure.name;
    EXPECT_EQ(result.out, "") << failure.name;
    EXPECT_NE(result.err.find(failure.part), std::string::npos) << failure.name << ": " << result.err;
    EXPECT_TRUE(result.err.starts_with("gpumem: error: ")) << failure.name << ": " << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << failure.name << ": " << result.err;
  }
}

TEST(CliEvaluate, PrintsATable) { expect_golden_run("evaluate_table", kEvaluateHorus); }

TEST(CliEvaluate, PrintsOneJsonObject) { expect_golden_run("evaluate_json", std::string(kEvaluateHorus) + " --json"); }

TEST(CliEvaluate, JudgesTheRunsThatAreAskedFor) {
  expect_golden_run("evaluate_filter", std::string(kEvaluateHorus) + " --filter vgg --gpu v100-16gb");
}

TEST(CliEvaluate, WritesEachPrediction) {
  const fs::path out = fs::path(::testing::TempDir()) / ("gpumem_predictions_" + std::to_string(getpid()) + ".csv");
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

constexpr const char* kEvaluateUtilisation = "evaluate tests/golden/cli/utilisation_runs_made_up.csv --utilisation";

TEST(CliEvaluateUtilisation, PrintsATable) {
  expect_golden_run("evaluate_utilisation_table", std::string(kEvaluateUtilisation) + " --estimator roofline");
}

TEST(CliEvaluateUtilisation, PrintsOneJsonObject) {
  expect_golden_run("evaluate_utilisation_json", std::string(kEvaluateUtilisation) + " --estimator roofline --json");
}

TEST(CliEvaluateUtilisation, WritesEachEstimate) {
  const fs::path out = fs::path(::testing::TempDir()) / ("gpumem_utilisation_" + std::to_string(getpid()) + ".csv");
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

TEST(CliUtilisation, PrintsATable) {
  expect_golden_run("utilisation_table", std::string("utilisation ") + kResnet50 + " --batch 32 --estimator all");
}

TEST(CliUtilisation, PrintsOneJsonObject) {
  expect_golden_run("utilisation_json",
                    std::string("utilisation ") + kResnet50 + " --batch 32 --gpu h200-141gb --estimator all --json");
}

TEST(CliHelp, IsNoError) {
  for (const char* words : {"--help", "estimate --help", "batch --help", "evaluate --help", "calibrate --help",
                            "gpus --help", "replay-trace --help", "model --help", "model run --help", "fit --help",
                            "timeline --help", "simulate --help"}) {
    const Outcome result = run(words);
    EXPECT_EQ(result.exit, 0) << words;
    EXPECT_NE(result.out.find("Usage"), std::string::npos) << words;
    EXPECT_EQ(result.err, "") << words;
  }
  const Outcome version = run("--version");
  EXPECT_EQ(version.exit, 0);
  EXPECT_EQ(version.out, "gpumem " GPUMEM_VERSION_STRING "\n");
}

TEST(CliGpus, ListsEveryProfile) {
  const Outcome result = run("gpus");
  ASSERT_EQ(result.exit, 0) << result.err;
  std::istringstream lines(result.out);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "name                         memory   SMs  bandwidth   GPU");
  for (const device::BuiltinProfile& builtin : device::builtin_profiles()) {
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_TRUE(line.starts_with(std::string(builtin.name) + " ")) << line;
  }
  EXPECT_FALSE(std::getline(lines, line));
  EXPECT_NE(result.out.find("a100-40gb                  40.0 GiB   108  1555 GB/s   NVIDIA A100 40GB\n"),
            std::string::npos);
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

constexpr const char* kJobs = "simulate tests/golden/simulate/jobs.csv ";

TEST(CliSimulate, SaysWhatBecomesOfATrace) {
  const std::string jobs = kJobs;
  expect_golden_run("simulate", jobs + "--gpus 2xa100-40gb");
  expect_golden_run("simulate_exclusive", jobs + "--gpus 2xa100-40gb --policy exclusive --missing-duration 120");
  expect_golden_run("simulate_column", jobs + "--gpus 3xa100-40gb --estimator guess --margin 0 --recovery growing");
  expect_golden_run("simulate_true",
                    jobs + "--gpus a100-40gb,h200-141gb --estimator true --margin 1.15x --sharing streams --seed 7");
}

TEST(CliSimulate, EstimatesTheSummariesThatATraceNames) {
  expect_golden_run("simulate_own", std::string(kJobs) + "--gpus 2xa100-40gb --estimator replay --margin upper");
}

TEST(CliSimulate, PrintsOneJsonObject) {
  const Outcome result = run(std::string(kJobs) + "--gpus 2xa100-40gb --estimator other --json");
  ASSERT_EQ(result.exit, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["options"]["policy"], "magm");
  EXPECT_EQ(json["totals"]["finished"], 12);
  EXPECT_EQ(json["jobs"].size(), 12U);
  EXPECT_EQ(json["runs"].size(), 12U + json["totals"]["out_of_memory"].get<std::size_t>());
  double busy = 0.0;
  for (const auto& share : json["over_time"]["smact"]) busy += share.get<double>();
  const auto steps = static_cast<double>(json["over_time"]["smact"].size());
  EXPECT_NEAR(busy / steps, json["totals"]["mean_smact"].get<double>(), 1e-9);
  EXPECT_EQ(json["over_time"]["waiting"].back(), 0);
}

TEST(CliSimulate, DrawsAPicture) {
  const fs::path file = fs::path(::testing::TempDir()) / ("gpumem_simulate_" + std::to_string(getpid()) + ".svg");
  const Outcome result = run(std::string(kJobs) + "--gpus 2xa100-40gb -o '" + file.string() + "'");
  ASSERT_EQ(result.exit, 0) << result.err;
  const std::string picture = testing::text_of(file);
  fs::remove(file);
  EXPECT_TRUE(picture.starts_with("<svg") || picture.starts_with("<?xml")) << picture.substr(0, 40);
  for (const char* word : {"GPU 0", "GPU 1", "waiting", "resnet50", "since the first arrival", "</svg>"}) {
    EXPECT_NE(picture.find(word), std::string::npos) << word;
  }
}

TEST(CliSimulate, SaysWhatIsWrong) {
  const std::string jobs = kJobs;
  std::string text;
  for (const std::string& words :
       {jobs + "--gpus 4xb100", jobs + "--gpus 0xa100-40gb", jobs + "--gpus t4-16gb", jobs + "--gpus 1xa100-40gb",
        jobs + "--policy fastest", jobs + "--estimator fake", jobs + "--estimator guess --margin upper",
        jobs + "--margin lots", jobs + "--sharing mig", jobs + "--recovery never", jobs + "--smact-cap 80",
        jobs + "--free-floor lots", jobs + "--missing-duration long", jobs + "--smact 2", jobs + "--window -1",
        jobs + "--idle-watts 50", std::string("simulate none.csv")}) {
    const Outcome result = run(words);
    text += "$ gpumem " + words + "\nexit code " + std::to_string(result.exit) + "\n" + result.out + result.err;
  }
  testing::expect_golden(fs::path(GPUMEM_GOLDEN_DIR) / "cli/simulate_wrong.golden", text);
  const std::string header = "arrival_s,task,gpus,duration_s,measured_mib\n";
  text.clear();
  for (const std::string& input :
       {std::string(), header, header + "-1,a,1,1,1\n", header + "0,a,1,1,1\n0,a,1,1,-1\n", header + "0,a,1,1,99999\n",
        header + "0,a,9,1,1\n", header + "0,a,1,,1\n", "job," + header + "x,0,a,1,1,1\nx,0,b,1,1,1\n"}) {
    const Outcome result = run("simulate -", input);
    text += result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_NE(result.exit, 0) << input;
  }
  testing::expect_golden(fs::path(GPUMEM_GOLDEN_DIR) / "cli/simulate_wrong_trace.golden", text);
}

// What the shipped recording says of itself, and what the rules make of it, worked out apart from the library: its
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

TEST(CliPlace, ReadsARadFile) { expect_golden_run("place_rad", place_rad("")); }

TEST(CliPlace, PutsAJobBesideOthers) { expect_golden_run("place_magm", place_rad("--policy EST-MAGM --gpus 2")); }

TEST(CliPlace, PrintsOneJsonObject) {
  expect_golden_run("place_json", place_vgg("--batch 64 --policy best-fit --margin upper --json"));
}

TEST(CliPlace, SaysThatAJobHasToWait) {
  expect_golden_run("place_waits", place_vgg("--batch 192"));
  expect_golden_run("place_waits_json", place_vgg("--estimator none --policy first-fit --exclusive --gpus 2 --json"));
}

TEST(CliPlace, SaysThatAJobCanNeverRun) { expect_golden_run("place_never", place_vgg("--batch 512")); }

TEST(CliPlace, NeedsNoEstimate) { expect_golden_run("place_no_estimate", place_vgg("--estimator none")); }

TEST(CliPlace, ConditionsAreValues) {
  const auto words = [](std::string_view options) {
    const Outcome result = run(place_rad(std::string(options) + " --policy magm --json"));
    EXPECT_EQ(result.err, "");
    return nlohmann::json::parse(result.out)["decision"]["words"].get<std::string>();
  };
  EXPECT_EQ(words("--smact-cap none"), "on GPU 2: 31.6 GiB free, SM activity 93 %, beside 1 other job");
  EXPECT_EQ(words("--idle-first"), "on GPU 3-mig-1: 19.5 GiB free, SM activity 0 %");
  EXPECT_EQ(words("--free-floor 30GiB"), "on GPU 3-mig-1: 19.5 GiB free, SM activity 0 %");
  EXPECT_EQ(words("--smact-cap 0.4 --margin 8GiB"), "on GPU 3-mig-1: 19.5 GiB free, SM activity 0 %");
}

TEST(CliPlace, RefusesWhatCannotBeMeant) {
  const auto refuses = [](const std::string& words, int exit, std::string_view part) {
    const Outcome result = run(words);
    EXPECT_EQ(result.exit, exit) << words;
    EXPECT_EQ(result.out, "") << words;
    EXPECT_NE(result.err.find(part), std::string::npos) << words << "\n" << result.err;
  };
  refuses(place_vgg(""), 2, "a summary tells no batch size");
  refuses(place_rad("--policy magic"), 2, "there is no policy 'magic'");
  refuses(place_rad("--margin lots"), 2, "--margin takes memory such as 2GiB, or upper");
  refuses(place_rad("--margin -1GiB"), 2, "--margin");
  refuses(place_rad("--free-floor 5GB"), 2, "--free-floor takes memory such as 2GiB");
  refuses(place_rad("--free-floor 99999999999TiB"), 2, "--free-floor");
  refuses(place_rad("--smact-cap 80"), 2, "--smact-cap takes a share");
  refuses(place_rad("--gpus 0"), 2, "asks for 0 GPUs");
  refuses(place_rad("--estimator all"), 2, "place takes one estimator");
  refuses("place tests/golden/cli/place/unknown_policy.rad" + std::string(kPlaceServer), 3,
          "unknown_policy.rad:5: there is no policy 'sometimes'");
  refuses("place tests/golden/cli/place/vgg.rad --server nowhere.json", 3, "nowhere.json: ");
  refuses("place tests/golden/cli/place/vgg.rad --server tests/golden/cli/place/vgg.rad", 3, "vgg.rad:1: ");
  refuses("place nowhere.rad" + std::string(kPlaceServer), 3, "nowhere.rad: ");
}

TEST(CliBatch, AnswersEveryLineInOrderAndBadLinesByErrors) {
  expect_golden_run("batch_jobs", "batch tests/golden/cli/jobs.jsonl");
}

TEST(CliBatch, ReadsStandardInputAndTakesDefaults) {
  expect_golden_run("batch_defaults", "batch --batch 8 --gpu t4-16gb --precision bf16",
                    "{\"summary\": \"models/summaries/vgg16.torchsummary.txt\"}\n"
                    "{\"summary\": \"models/summaries/vgg16.torchsummary.txt\", \"batch\": 16, \"gpu\": \"a100\"}");
}

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
  const fs::path folder = fs::path(::testing::TempDir()) / ("gpumem_damaged_" + std::to_string(getpid()));
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
