// What holds for every graph: shipped summaries, and random ones whose seed is printed on failure.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <random>

#include "gpumem/connect/connect.hpp"
#include "graphs.hpp"

namespace gpumem {
namespace {

using testing::describe;
using testing::Described;
using testing::shape;
using testing::succeeds;

constexpr unsigned kGraphSeeds = 200;

class RandomGraph {
 public:
  explicit RandomGraph(unsigned seed) : engine_(seed) {}

  /// A number of low..high, both included.
  std::int64_t number(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
  }
  bool chance(int percent) { return number(1, 100) <= percent; }

  core::Dim dim() {
    const std::int64_t kind = number(0, 9);
    if (kind == 0) return core::Dim::batch(number(1, 64));
    return core::Dim::fixed(number(1, 300));
  }
  core::Shape output() {
    core::Shape result;
    result.push_back(core::Dim::batch(chance(80) ? 1 : number(2, 49)));
    for (std::int64_t axes = number(0, 4); axes > 0; --axes) result.push_back(dim());
    return result;
  }
  std::string word() {
    std::string result;
    for (std::int64_t length = number(1, 8); length > 0; --length) {
      result += static_cast<char>('a' + static_cast<char>(number(0, 25)));
    }
    return result;
  }
  model::AttributeValue value() {
    switch (number(0, 5)) {
      case 0: return chance(50);
      case 1: return number(INT64_MIN, INT64_MAX);
      case 2: return static_cast<double>(number(-1000, 1000)) / 7.0;
      case 3: return word() + "\"\\\n\t│";
      case 4: return std::vector<core::Dim>{core::Dim::batch(number(1, 64)), core::Dim::fixed(-1), core::Dim::fixed(7)};
      default: break;
    }
    std::vector<std::int64_t> list;
    for (std::int64_t size = number(0, 3); size > 0; --size) list.push_back(number(-5, 5));
    return list;
  }

 private:
  std::mt19937 engine_;
};

/// A graph with everything that a graph may have.
ModelGraph random_graph(unsigned seed, bool with_edges) {
  RandomGraph random(seed);
  GraphBuilder builder("random");
  if (!with_edges) builder.infer_edges();
  builder.add_input({"x", shape({testing::N, 3}), core::DType::float32});
  if (random.chance(50)) builder.add_input({"ids", shape({testing::N, 12}), core::DType::int64});
  const auto inputs = static_cast<model::LayerIndex>(builder.graph().graph_inputs().size());
  const auto layers = static_cast<model::LayerIndex>(random.number(1, 30));
  for (model::LayerIndex layer = 0; layer < layers; ++layer) {
    if (random.chance(20)) builder.open_scope(random.word(), random.word());
    if (random.chance(20) && builder.current_scope() != 0) builder.close_scope();
    const auto& ops = ops::catalogue();
    const ops::Op* op = ops[static_cast<std::size_t>(random.number(0, static_cast<std::int64_t>(ops.size()) - 1))];
    std::vector<core::Shape> outputs;
    for (std::int64_t count = random.number(1, 2); count > 0; --count) outputs.push_back(random.output());
    std::vector<model::LayerIndex> edges;
    for (std::int64_t count = random.number(1, 3); with_edges && count > 0; --count) {
      edges.push_back(static_cast<model::LayerIndex>(random.number(-inputs, layer - 1)));
    }
    std::vector<model::Attribute> attributes;
    for (std::int64_t count = random.number(0, 3); count > 0; --count) {
      attributes.push_back({"a" + std::to_string(count), random.value()});
    }
    const std::int64_t parameters = random.chance(50) ? random.number(0, 1'000'000) : 0;
    const std::string name = random.word() + std::to_string(layer);
    const std::string class_name = random.chance(50) ? random.word() : "";
    builder.add({.name = name,
                 .class_name = class_name,
                 .op = random.chance(90) ? &op->traits : nullptr,
                 .outputs = outputs,
                 .inputs = edges,
                 .attributes = attributes,
                 .parameters = parameters,
                 .tied_parameters = random.chance(10) ? parameters : 0,
                 .frozen = random.chance(10)});
  }
  auto graph = std::move(builder).build();
  EXPECT_TRUE(succeeds(graph)) << "seed " << seed;
  return graph ? *std::move(graph) : ModelGraph();
}

/// All that two graphs can differ in, except where they came from.
void expect_same_graph(const ModelGraph& left, const ModelGraph& right) {
  EXPECT_EQ(describe(left), describe(right));
  EXPECT_EQ(left.parameters(), right.parameters());
  EXPECT_EQ(left.trainable_parameters(), right.trainable_parameters());
  EXPECT_EQ(left.unknown_layers(), right.unknown_layers());
  EXPECT_EQ(left.edges_inferred(), right.edges_inferred());
  EXPECT_EQ(left.shapes_printed(), right.shapes_printed());
  ASSERT_EQ(left.graph_inputs().size(), right.graph_inputs().size());
  for (std::size_t input = 0; input < left.graph_inputs().size(); ++input) {
    EXPECT_EQ(left.graph_inputs()[input], right.graph_inputs()[input]);
  }
  ASSERT_EQ(left.layers().size(), right.layers().size());
  for (std::size_t index = 0; index < left.layers().size(); ++index) {
    const model::Layer& one = left.layers()[index];
    const model::Layer& other = right.layers()[index];
    EXPECT_EQ(left.class_name(one), right.class_name(other));
    const auto edges = left.inputs(one);
    const auto other_edges = right.inputs(other);
    EXPECT_TRUE(std::equal(edges.begin(), edges.end(), other_edges.begin(), other_edges.end())) << left.path(one);
    const auto attributes = left.attributes(one).all();
    const auto other_attributes = right.attributes(other).all();
    EXPECT_TRUE(std::equal(attributes.begin(), attributes.end(), other_attributes.begin(), other_attributes.end()))
        << left.path(one);
  }
}

/// The shipped summaries that can be read, by file. Some show what cannot: a table without shapes, one that is
/// cut at a depth (which lenient reading takes).
std::map<std::string, ModelGraph> shipped_graphs() {
  std::map<std::string, ModelGraph> graphs;
  for (const auto& entry : std::filesystem::directory_iterator(GPUMEM_SOURCE_DIR "/models/summaries")) {
    const auto extension = entry.path().extension();
    if (extension != ".txt" && extension != ".json") continue;
    auto graph = read_summary(entry.path().string(), true);
    if (graph) graphs.emplace(entry.path().filename().string(), *std::move(graph));
  }
  EXPECT_GE(graphs.size(), 20U);
  return graphs;
}

TEST(GraphJson, OfARandomGraphIsReadBackEqual) {
  for (unsigned seed = 0; seed < kGraphSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const ModelGraph graph = random_graph(seed, seed % 2 == 0);
    const std::string text = to_graph_json(graph);
    const auto again = parse_summary(text);
    ASSERT_TRUE(succeeds(again)) << text;
    expect_same_graph(graph, *again);
    EXPECT_EQ(to_graph_json(*again), text);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(GraphJson, OfAShippedSummaryIsStable) {
  for (const auto& [file, graph] : shipped_graphs()) {
    SCOPED_TRACE(file);
    const std::string text = to_graph_json(graph);
    const auto again = parse_summary(text);
    ASSERT_TRUE(succeeds(again));
    EXPECT_EQ(again->layers().size(), graph.layers().size());
    EXPECT_EQ(again->parameters(), graph.parameters());
    EXPECT_EQ(again->trainable_parameters(), graph.trainable_parameters());
    EXPECT_EQ(again->unknown_layers(), graph.unknown_layers());
    EXPECT_EQ(to_graph_json(*again), text);
  }
}

/// One row as torchsummary prints it, and what it should be read as.
struct Row {
  std::string printed;
  std::string read;  ///< empty: a container, no layer
  std::int64_t parameters = 0;
};

Row random_row(RandomGraph& random, std::int64_t number) {
  struct Kind {
    const char* class_name;
    const char* op;
    bool holds;
  };
  static constexpr std::array<Kind, 8> kKinds = {{{"Conv2d", "conv2d", true},
                                                  {"Linear", "linear", true},
                                                  {"BatchNorm2d", "batch_norm", true},
                                                  {"ReLU", "relu", false},
                                                  {"MaxPool2d", "max_pool2d", false},
                                                  {"Dropout", "dropout", false},
                                                  {"NonDynamicallyQuantizableLinear", "linear", true},
                                                  {"MyBlock", "", false}}};
  const Kind& kind = kKinds[static_cast<std::size_t>(random.number(0, kKinds.size() - 1))];
  const std::string name = std::string(kind.class_name) + "-" + std::to_string(number);
  std::string printed_shape = "[-1";
  std::string read_shape = "[N";
  for (std::int64_t axes = random.number(1, 4); axes > 0; --axes) {
    const std::string size = ", " + std::to_string(random.number(1, 5000));
    printed_shape += size;
    read_shape += size;
  }
  Row row;
  row.parameters = kind.holds ? random.number(0, 100'000'000) : 0;
  const std::string count = core::with_separators(row.parameters);
  // torchsummary's own format: "{:>20}  {:>25} {:>15}".
  const auto right = [](const std::string& text, std::size_t width) {
    return std::string(text.size() < width ? width - text.size() : 0, ' ') + text;
  };
  row.printed = right(name, 20) + "  " + right(printed_shape + "]", 25) + " " + right(count, 15) + "\n";
  if (*kind.op != 0)
    row.read = std::string(kind.op) + " " + name + " " + read_shape + "] " + std::to_string(row.parameters);
  return row;
}

TEST(Torchsummary, ARandomTableIsReadBackAsItWasPrinted) {
  for (unsigned seed = 0; seed < kGraphSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomGraph random(seed);
    const std::string rule(64, '-');
    std::string text =
        rule + "\n        Layer (type)               Output Shape         Param #\n" + std::string(64, '=') + "\n";
    Described expected;
    std::int64_t total = 0;
    const std::int64_t rows = random.number(1, 60);
    for (std::int64_t number = 1; number <= rows; ++number) {
      const Row row = random_row(random, number);
      text += row.printed;
      total += row.parameters;
      if (!row.read.empty()) expected.push_back(row.read);
    }
    text += std::string(64, '=') + "\nTotal params: " + core::with_separators(total) + "\n" + rule + "\n";
    if (expected.empty()) continue;
    const auto graph = parse_summary(text);
    ASSERT_TRUE(succeeds(graph)) << text;
    EXPECT_EQ(describe(*graph), expected);
    EXPECT_EQ(graph->parameters(), total);
    EXPECT_TRUE(graph->warnings().empty());
  }
}

/// Horus at many batch sizes: it must not shrink, and its parts must sum to it.
void expect_monotone_graph(const std::shared_ptr<const ModelGraph>& graph, const TrainingJob& like) {
  const auto gpu = find_profile("a100-40gb");
  ASSERT_TRUE(succeeds(gpu));
  const auto estimator = make_estimator("horus");
  ASSERT_TRUE(succeeds(estimator));
  Bytes before;
  bool overflowed = false;
  for (const std::int64_t batch : {1, 2, 3, 7, 8, 31, 32, 33, 64, 128, 1000, 100'000}) {
    TrainingJob job = like;
    job.graph = graph;
    job.batch_size = batch;
    const auto estimate = (*estimator)->estimate(job, *gpu);
    if (!estimate) {
      // Too large for 64 bits is larger than all before, and so must be every larger batch.
      ASSERT_EQ(estimate.error().code, ErrorCode::overflow) << core::to_string(estimate.error());
      overflowed = true;
      continue;
    }
    EXPECT_FALSE(overflowed) << "batch " << batch << " fits 64 bits, a smaller one did not";
    EXPECT_GE(estimate->expected, before) << "batch " << batch;
    EXPECT_EQ(estimate->breakdown.total().value(), estimate->expected.count()) << "batch " << batch;
    EXPECT_LE(estimate->lower, estimate->expected);
    EXPECT_GE(estimate->upper, estimate->expected);
    before = estimate->expected;
  }
}

TEST(Horus, NeverShrinksWhenTheBatchGrowsOnRandomGraphs) {
  unsigned estimated = 0;
  for (unsigned seed = 0; seed < 2 * kGraphSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto graph = std::make_shared<const ModelGraph>(random_graph(seed, true));
    if (!connect::connect(TrainingJob(graph, 1), ops::catalogue())) continue;  // it reads what no tensor leaves
    ++estimated;
    expect_monotone_graph(graph, TrainingJob());
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(estimated, kGraphSeeds);
}

TEST(Horus, NeverShrinksWhenTheBatchGrowsOnShippedSummaries) {
  for (auto& [file, graph] : shipped_graphs()) {
    SCOPED_TRACE(file);
    // Trees print no shapes, and Keras' sequential models no input: images and token ids are given as a user would.
    TrainingJob like;
    const bool tree = !graph.shapes_printed() || (graph.format().starts_with("keras") && graph.graph_inputs().empty());
    const bool reads_text = file.find("transformer") != std::string::npos;
    if (tree && !reads_text) like.input_shape = {3, 224, 224};
    if (tree && reads_text) like.sequence_length = 128;
    expect_monotone_graph(std::make_shared<const ModelGraph>(std::move(graph)), like);
  }
}

}  // namespace
}  // namespace gpumem
