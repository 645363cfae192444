// One model, one answer: small models of transformers on every road (roads/*.json.gz, made by make_goldens.py there).
// The figures of a config.json, of print(model), of torchinfo's table and of the exported graph against the recording
// of the same program. A table whose class is not known is a guess of the same model: it says so, and its range holds.
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "golden.hpp"
#include "gpumem/all.hpp"
#include "gpumem/analysis/analysis.hpp"
#include "gpumem/core/file.hpp"
#include "graphs.hpp"

namespace gpumem {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Between a config.json and the printed tree of one model.
constexpr double kBetweenRoads = 0.005;
/// Between the peaks of live tensors: how much of them the road and the recording hold at once.
constexpr double kOfTensors = 0.005;
/// What the allocator adds to that: of two blocks, one tensor more or less shows where a block is not split.
constexpr double kOfBlocks = 0.022;

/// Where the tensors of a road are off by more, and by how much at most. Rows of one road come before those of all.
struct KnownRoad {
  std::string_view name;
  std::string_view road;  ///< empty: every one
  double plain;
  double autocast;
  double again;  ///< with checkpointing
};
constexpr KnownRoad kKnownRoads[] = {
    // Graphs do not show the names of a program, which end with their functions, nor which cache is held.
    {"deepseek", "graph", 0.005, 0.007, 0.011},
    {"gemma", "graph", 0.005, 0.01, 0.005},
    {"gpt2", "graph", 0.005, 0.017, 0.005},
    {"gpt_bigcode", "graph", 0.005, 0.009, 0.039},
    {"gpt_neox", "graph", 0.005, 0.021, 0.005},
    {"granite", "graph", 0.005, 0.018, 0.005},
    {"mistral", "graph", 0.005, 0.015, 0.005},
    {"olmo", "graph", 0.005, 0.023, 0.005},
    {"olmo2", "graph", 0.005, 0.008, 0.005},
    {"phi", "graph", 0.005, 0.015, 0.005},
    {"phi3", "graph", 0.005, 0.019, 0.005},
    {"qwen2", "graph", 0.005, 0.011, 0.005},
    {"qwen3", "graph", 0.005, 0.027, 0.04},
    {"stablelm", "graph", 0.031, 0.041, 0.006},
    {"stablelm_parallel", "graph", 0.005, 0.08, 0.005},
    {"starcoder2", "graph", 0.005, 0.028, 0.005},
    // Small tensors: biases of XLNet's attention under autocast, DeBERTa's index tables, the gradient of a leaf in T5.
    {"bart", "", 0.013, 0.005, 0.005},
    {"deberta", "", 0.005, 0.007, 0.008},
    {"gpt_bigcode", "", 0.005, 0.005, 0.008},
    {"stablelm", "", 0.005, 0.005, 0.006},
    {"t5", "", 0.005, 0.005, 0.009},
    {"whisper", "", 0.007, 0.005, 0.005},
    {"xlnet", "", 0.005, 0.009, 0.005},
    {"xlnet_lm", "", 0.005, 0.009, 0.005},
};

/// Tables that are chained row by row though their class is known, and why.
constexpr std::pair<std::string_view, std::string_view> kChained[] = {
    {"clip", "two towers of their own depth: no one number of blocks makes both"},
    {"deberta", "its projections are called a second time, on the positions' embeddings, which no row shows"},
};

bool is_chained(std::string_view name) {
  return std::any_of(std::begin(kChained), std::end(kChained), [&](const auto& row) { return row.first == name; });
}

/// A table does not print how often a dropout drops, and these models do not have their class's default (0: no mask).
/// How far that takes the table from the config.
constexpr std::pair<std::string_view, double> kDropouts[] = {
    {"bloom", 0.15}, {"gpt_neo", 0.14}, {"gptj", 0.06}, {"phi", 0.02}};

double between_roads(std::string_view name, std::string_view road) {
  for (const auto& [other, apart] : kDropouts) {
    if (other == name && road == "table") return apart;
  }
  return kBetweenRoads;
}

double road_tolerance(std::string_view name, std::string_view road, const json& run) {
  for (const KnownRoad& known : kKnownRoads) {
    if (known.name != name || (!known.road.empty() && known.road != road)) continue;
    if (run["activation_checkpointing"].get<bool>()) return known.again;
    return run["precision"] == "amp-bf16" ? known.autocast : known.plain;
  }
  return kOfTensors;
}

json golden_of(const fs::path& file) {
  constexpr std::size_t kMost = std::size_t{64} << 20U;
  const auto text = core::unpack_gzip(testing::text_of(file), kMost);
  EXPECT_TRUE(testing::succeeds(text)) << file;
  return json::parse(*text);
}

std::vector<fs::path> road_goldens() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(fs::path(GPUMEM_GOLDEN_DIR) / "roads")) {
    if (entry.path().extension() == ".gz") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// A recording has its sizes and its checkpointing itself.
/// A table has its tokens.
TrainingJob road_job(const model::ModelGraph& graph, const json& golden, const json& run, bool recorded) {
  TrainingJob job(graph, golden["batch_size"].get<std::int64_t>());
  job.optimizer = Optimizer::adamw;
  job.precision = *model::value_of(model::kPrecisions, run["precision"].get<std::string>());
  if (!recorded) {
    const bool says = golden.contains("sequence_length") && graph.format() != "torchinfo";
    if (says) job.sequence_length = golden["sequence_length"].get<std::int64_t>();
    job.transformers = model::Transformers::v4_52;
    job.activation_checkpointing = run["activation_checkpointing"].get<bool>();
    job.padding = run["padding"].get<bool>();
  }
  return job;
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

/// What an answer says of the allocator's peak, and the most that tensors hold at once.
struct Peaks {
  MemoryEstimate estimate;
  double allocated = 0.0;
  double tensors = 0.0;
};

Result<MemoryEstimate> estimate_of(const TrainingJob& job) {
  const auto replay = make_estimator("replay");
  if (!replay) return replay.error();
  return (*replay)->estimate(job, *find_profile("a100-80gb"));
}

Result<Peaks> peaks_of(const model::ModelGraph& graph, const json& golden, const json& run, bool recorded) {
  const TrainingJob job = road_job(graph, golden, run, recorded);
  const auto estimate = estimate_of(job);
  if (!estimate) return estimate.error();
  analysis::Analysis analysis(job);
  const auto steps = analysis.steps();
  if (!steps) return steps.error();
  return Peaks{*estimate, static_cast<double>(estimate->allocated->count()), static_cast<double>((*steps)->peak_bytes)};
}

/// How many answers were compared with recordings, and how many were within half a per cent, by road.
struct Counts {
  std::map<std::string, std::size_t> compared;
  std::map<std::string, std::size_t> tensors;    ///< of live tensors
  std::map<std::string, std::size_t> allocated;  ///< of the allocator
};

void compare(const std::string& name, const json& golden, const json& run, Counts& counts) {
  const auto recording = parse_summary(run["recording"].get<std::string>());
  ASSERT_TRUE(testing::succeeds(recording)) << name;
  const auto recorded = peaks_of(*recording, golden, run, true);
  ASSERT_TRUE(testing::succeeds(recorded)) << name;
  std::map<std::string, MemoryEstimate> answers;
  for (const auto& [road, graph] : roads_of(name, golden, run)) {
    ASSERT_TRUE(testing::succeeds(graph)) << name << ' ' << road;
    const auto answer = peaks_of(*graph, golden, run, false);
    ASSERT_TRUE(testing::succeeds(answer)) << name << ' ' << road;
    const double tensors = answer->tensors / recorded->tensors - 1.0;
    const double allocated = answer->allocated / recorded->allocated - 1.0;
    const double tolerance = road_tolerance(name, road, run);
    const std::string way = name + ' ' + road + ' ' + run["precision"].get<std::string>() +
                            (run["activation_checkpointing"] ? " checkpointed" : "") +
                            (run["padding"] ? " padded" : "");
    EXPECT_LE(std::abs(tensors), tolerance) << way << ' ' << tensors;
    EXPECT_LE(std::abs(allocated), tolerance + kOfBlocks) << way << ' ' << allocated;
    ++counts.compared[road];
    if (std::abs(tensors) <= kOfTensors) ++counts.tensors[road];
    if (std::abs(allocated) <= kBetweenRoads) ++counts.allocated[road];
    answers.emplace(road, answer->estimate);
  }
  if (golden.contains("table") && !is_chained(name)) {
    const auto table = parse_summary(golden["table"].get<std::string>());
    ASSERT_TRUE(testing::succeeds(table)) << name;
    const auto answer = estimate_of(road_job(*table, golden, run, false));
    ASSERT_TRUE(testing::succeeds(answer)) << name;
    ++counts.compared["table"];
    answers.emplace("table", *answer);
  }
  const MemoryEstimate& config = answers.at("config");
  for (const auto& [road, answer] : answers) {
    if (road != "tree" && road != "table") continue;
    for (const char* about : {"context", "padding", "precision"}) {
      EXPECT_EQ(assumed_of(config, about), assumed_of(answer, about)) << name << ' ' << road;
    }
    EXPECT_NE(assumed_of(answer, "edges").find("the code of its model's class"), std::string::npos)
        << name << ' ' << road;
    const auto of_config = static_cast<double>(config.allocated->count());
    const double between = static_cast<double>(answer.allocated->count()) / of_config - 1.0;
    EXPECT_LE(std::abs(between), between_roads(name, road))
        << name << ' ' << road << ' ' << run["precision"] << run["activation_checkpointing"];
  }
}

TEST(Roads, LeadToOneFigure) {
  constexpr std::size_t kLeastTables = 250;
  Counts counts;
  for (const fs::path& file : road_goldens()) {
    const json golden = golden_of(file);
    for (const json& run : golden["runs"]) compare(file.stem().stem().string(), golden, run, counts);
  }
  EXPECT_GE(counts.compared["config"], 300U);
  EXPECT_GE(counts.tensors["config"], counts.compared["config"] * 9 / 10) << "within half a per cent";
  EXPECT_GE(counts.allocated["config"], counts.compared["config"] * 3 / 5) << "within half a per cent";
  EXPECT_GE(counts.compared["table"], kLeastTables);
  EXPECT_GE(counts.compared["graph"], 96U);
  EXPECT_GE(counts.tensors["graph"], counts.compared["graph"] / 2) << "within half a per cent";
  EXPECT_GE(counts.allocated["graph"], counts.compared["graph"] / 2) << "within half a per cent";
}

/// One of each family, whose tables are also read as those of a class that nobody knows.
constexpr std::string_view kGuessed[] = {"albert",  "bert",  "bert_masked_lm", "deit", "distilbert", "electra",
                                         "gpt2",    "llama", "gpt_neo",        "opt",  "gpt_neox",   "phi",
                                         "mistral", "qwen2", "qwen3",          "vit"};

/// The table of a class that nobody knows: its rows have no names, so they are chained.
std::string table_of_unknown_class(const json& golden) {
  std::string table = golden["table"].get<std::string>();
  const auto name = golden["config"]["architectures"][0].get<std::string>();
  table.replace(table.find("\n" + name) + 1, name.size(), std::string(name.size(), 'X'));
  return table;
}

void compare_table(const std::string& name, const json& golden, const json& run, std::size_t& near) {
  constexpr double kNear = 0.1;
  const auto table = parse_summary(table_of_unknown_class(golden));
  const auto recording = parse_summary(run["recording"].get<std::string>());
  ASSERT_TRUE(testing::succeeds(table)) << name;
  ASSERT_TRUE(testing::succeeds(recording)) << name;
  const auto guessed = estimate_of(road_job(*table, golden, run, false));
  const auto recorded = estimate_of(road_job(*recording, golden, run, true));
  ASSERT_TRUE(testing::succeeds(guessed)) << name;
  ASSERT_TRUE(testing::succeeds(recorded)) << name;
  EXPECT_LE(guessed->lower, recorded->expected) << name << ' ' << run["precision"];
  EXPECT_GE(guessed->upper, recorded->expected) << name << ' ' << run["precision"];
  EXPECT_NE(assumed_of(*guessed, "edges").find("inferred"), std::string::npos) << name;
  const auto of_recording = static_cast<double>(recorded->allocated->count());
  if (std::abs(static_cast<double>(guessed->allocated->count()) / of_recording - 1.0) <= kNear) ++near;
}

TEST(Roads, ATableIsAGuessWhoseRangeHolds) {
  std::size_t compared = 0;
  std::size_t near = 0;
  for (const fs::path& file : road_goldens()) {
    const std::string name = file.stem().stem().string();
    if (std::find(std::begin(kGuessed), std::end(kGuessed), name) == std::end(kGuessed)) continue;
    const json golden = golden_of(file);
    for (const json& run : golden["runs"]) {
      if (run["padding"]) continue;
      ++compared;
      compare_table(name, golden, run, near);
    }
  }
  EXPECT_GE(compared, 90U);
  EXPECT_GE(near, compared / 2) << "within a tenth";
}

}  // namespace
}  // namespace gpumem
