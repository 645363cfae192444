// One model, one answer: small models of transformers on every road (roads/*.json.gz, made by make_goldens.py there).
// The figures of a config.json, of print(model) and of the exported graph against the recording of the same program.
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "golden.hpp"
#include "gpumem/all.hpp"
#include "gpumem/core/file.hpp"
#include "graphs.hpp"

namespace gpumem {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Between a config.json and the printed tree of one model.
constexpr double kBetweenRoads = 0.005;
/// Of the allocator's peak, as a recording has it: of two blocks, one tensor more or less at the peak shows.
constexpr double kOfARecording = 0.016;

/// Where a road is off by more, and by how much at most. The graphs say what of a block's first calls backward runs
/// again only by the modules beside them, so under checkpointing norms that are written out stay; that is `again`.
struct Known {
  std::string_view name;
  std::string_view road;  ///< empty: every one
  double plain;
  double autocast;
  double again;  ///< with checkpointing
};
constexpr Known kKnown[] = {
    // Under autocast the cast copies of weights and of the head's logits end in another order.
    {"bert", "", 0.016, 0.042, 0.04},
    {"bert_masked_lm", "", 0.016, 0.016, 0.024},
    {"distilbert", "", 0.016, 0.043, 0.044},
    {"electra", "", 0.016, 0.046, 0.066},
    {"clip", "", 0.055, 0.028, 0.016},
    {"deberta", "", 0.052, 0.056, 0.06},
    {"vit", "", 0.028, 0.016, 0.018},
    {"deit", "", 0.028, 0.016, 0.018},
    {"gpt2", "graph", 0.086, 0.066, 0.0},
    {"gpt2", "", 0.016, 0.016, 0.042},
    {"phi", "", 0.016, 0.016, 0.042},
    {"gpt_bigcode", "", 0.016, 0.016, 0.076},
    {"stablelm", "graph", 0.033, 0.033, 0.016},
    {"stablelm_parallel", "", 0.024, 0.083, 0.016},
    // transformers 4.52 changed the class since 4.48, whose code the architecture follows: norms and rotary positions
    // in float32 (OLMo), a cache apart from copied keys (OPT), masks and softcaps (Gemma 2 and 3, MPT, BLOOM, T5).
    {"olmo", "graph", 0.044, 0.022, 0.096},
    {"olmo", "", 0.024, 0.055, 0.016},
    {"olmo2", "", 0.07, 0.042, 0.05},
    {"opt", "", 0.072, 0.042, 0.016},
    {"opt_norms_behind", "", 0.072, 0.042, 0.016},
    {"gemma2", "", 0.056, 0.08, 0.026},
    {"gemma3", "", 0.04, 0.07, 0.028},
    {"bart", "", 0.056, 0.036, 0.03},
    {"whisper", "", 0.03, 0.016, 0.026},
    {"gptj", "", 0.025, 0.036, 0.032},
    {"falcon_grouped", "", 0.068, 0.016, 0.016},
    {"falcon_alibi", "", 0.016, 0.175, 0.15},
    {"mpt", "", 0.114, 0.083, 0.021},
    {"bloom", "", 0.137, 0.073, 0.228},
    {"t5", "", 0.06, 0.072, 0.1},
    {"xlnet", "", 0.205, 0.155, 0.0},
    {"xlnet_lm", "", 0.15, 0.146, 0.0},
    // Graphs of norms that are written out, under checkpointing.
    {"deepseek", "graph", 0.016, 0.016, 0.108},
    {"gemma", "graph", 0.016, 0.024, 0.112},
    {"granite", "graph", 0.016, 0.022, 0.142},
    {"llama", "graph", 0.016, 0.016, 0.128},
    {"mistral", "graph", 0.016, 0.018, 0.122},
    {"phi3", "graph", 0.016, 0.016, 0.12},
    {"qwen2", "graph", 0.016, 0.016, 0.128},
    {"qwen3", "graph", 0.016, 0.023, 0.107},
    {"starcoder2", "graph", 0.016, 0.024, 0.016},
    {"gpt_neox", "graph", 0.016, 0.019, 0.016},
};

double tolerance_of(std::string_view name, std::string_view road, const json& run) {
  for (const Known& known : kKnown) {
    if (known.name != name || (!known.road.empty() && known.road != road)) continue;
    if (run["activation_checkpointing"].get<bool>()) return known.again;
    return run["precision"] == "amp-bf16" ? known.autocast : known.plain;
  }
  return kOfARecording;
}

json golden_of(const fs::path& file) {
  constexpr std::size_t kMost = std::size_t{64} << 20U;
  const auto text = core::unpack_gzip(testing::text_of(file), kMost);
  EXPECT_TRUE(testing::succeeds(text)) << file;
  return json::parse(*text);
}

std::vector<fs::path> goldens() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(fs::path(GPUMEM_GOLDEN_DIR) / "roads")) {
    if (entry.path().extension() == ".gz") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// A recording has its sizes and its checkpointing itself.
Result<MemoryEstimate> answer_of(const model::ModelGraph& graph, const json& golden, const json& run, bool recorded) {
  TrainingJob job(graph, golden["batch_size"].get<std::int64_t>());
  job.optimizer = Optimizer::adamw;
  job.precision = *model::value_of(model::kPrecisions, run["precision"].get<std::string>());
  if (!recorded) {
    if (golden.contains("sequence_length")) job.sequence_length = golden["sequence_length"].get<std::int64_t>();
    job.transformers = model::Transformers::v4_51;
    job.activation_checkpointing = run["activation_checkpointing"].get<bool>();
    job.padding = run["padding"].get<bool>();
  }
  const auto replay = make_estimator("replay");
  if (!replay) return replay.error();
  return (*replay)->estimate(job, *find_profile("a100-80gb"));
}

std::string assumed_of(const MemoryEstimate& estimate, std::string_view about) {
  for (const auto& each : estimate.assumed) {
    if (each.about == about) return each.text;
  }
  return {};
}

/// The roads of a golden that say the same of the model. A graph has no kernel that a mask could join, and of the cache
/// what the exported forward() returned; GPT-2's shows no blocks.
std::map<std::string, Result<model::ModelGraph>> roads_of(const std::string& name, const json& golden,
                                                          const json& run) {
  std::map<std::string, Result<model::ModelGraph>> roads;
  roads.emplace("config", parse_summary(golden["config"].dump()));
  roads.emplace("tree", parse_summary(golden["tree"].get<std::string>()));
  const bool again = run["activation_checkpointing"].get<bool>();
  const char* graph = again ? "graph_without_cache" : "graph";
  if (golden.contains(graph) && !run["padding"].get<bool>() && !(again && name == "gpt2")) {
    roads.emplace("graph", parse_summary(golden[graph].get<std::string>()));
  }
  return roads;
}

/// How many answers were compared with recordings, and how many were within half a per cent, by road.
struct Counts {
  std::map<std::string, std::size_t> compared;
  std::map<std::string, std::size_t> close;
};

void compare(const std::string& name, const json& golden, const json& run, Counts& counts) {
  const auto recording = parse_summary(run["recording"].get<std::string>());
  ASSERT_TRUE(testing::succeeds(recording)) << name;
  const auto recorded = answer_of(*recording, golden, run, true);
  ASSERT_TRUE(testing::succeeds(recorded)) << name;
  const auto expected = static_cast<double>(recorded->allocated->count());
  std::map<std::string, MemoryEstimate> answers;
  for (const auto& [road, graph] : roads_of(name, golden, run)) {
    ASSERT_TRUE(testing::succeeds(graph)) << name << ' ' << road;
    const auto answer = answer_of(*graph, golden, run, false);
    ASSERT_TRUE(testing::succeeds(answer)) << name << ' ' << road;
    const double error = static_cast<double>(answer->allocated->count()) / expected - 1.0;
    EXPECT_LE(std::abs(error), tolerance_of(name, road, run))
        << name << ' ' << road << ' ' << run["precision"] << run["activation_checkpointing"] << run["padding"] << error;
    ++counts.compared[road];
    if (std::abs(error) <= kBetweenRoads) ++counts.close[road];
    answers.emplace(road, *answer);
  }
  const MemoryEstimate& config = answers.at("config");
  const MemoryEstimate& tree = answers.at("tree");
  for (const char* about : {"context", "padding", "precision"}) {
    EXPECT_EQ(assumed_of(config, about), assumed_of(tree, about)) << name;
  }
  const auto of_config = static_cast<double>(config.allocated->count());
  const double between = static_cast<double>(tree.allocated->count()) / of_config - 1.0;
  EXPECT_LE(std::abs(between), kBetweenRoads) << name << ' ' << run["precision"] << run["activation_checkpointing"];
}

TEST(Roads, LeadToOneFigure) {
  Counts counts;
  for (const fs::path& file : goldens()) {
    const json golden = golden_of(file);
    for (const json& run : golden["runs"]) compare(file.stem().stem().string(), golden, run, counts);
  }
  EXPECT_GE(counts.compared["config"], 300U);
  EXPECT_GE(counts.close["config"], counts.compared["config"] * 2 / 5) << "within half a per cent";
  EXPECT_GE(counts.compared["graph"], 96U);
  EXPECT_GE(counts.close["graph"], counts.compared["graph"] * 3 / 10) << "within half a per cent";
}

}  // namespace
}  // namespace gpumem
