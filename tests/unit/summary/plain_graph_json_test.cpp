#include "gpumem/summary/plain_graph_json.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "gpumem/core/file.hpp"
#include "gpumem/summary/graph_json.hpp"
#include "graphs.hpp"

namespace gpumem::summary {
namespace {

using testing::describe;
using testing::Described;

std::optional<model::ModelGraph> read_plain(std::string_view text) {
  ReadOptions options;
  options.vocabulary = &ops::vocabulary();
  return read_plain_graph_json(text, text.find('{'), options);
}

/// The file around these nodes.
std::string file_of(std::string_view nodes) {
  return R"({"format": "gpumem-graph", "version": 1, "inputs": [{"name": "x", "shape": ["N", 3]}], "nodes": [)" +
         std::string(nodes) + "]}";
}

std::string relu(std::string_view fields) {
  return R"({"name": "a", "op": "relu", "inputs": ["x"])" + std::string(fields) + "}";
}

/// The same JSON with an escape in it, which only the full parser reads.
std::string escaped(const std::string& text) {
  constexpr std::string_view kKey = "\"format\"";
  std::string other = text;
  return other.replace(other.find(kKey), kKey.size(), "\"\\u0066ormat\"");
}

void expect_same(const model::ModelGraph& left, const model::ModelGraph& right) {
  EXPECT_EQ(to_graph_json(left), to_graph_json(right));
  EXPECT_EQ(describe(left), describe(right));
  EXPECT_EQ(testing::warnings(left), testing::warnings(right));
  EXPECT_TRUE(std::ranges::equal(left.graph_inputs(), right.graph_inputs()));
  EXPECT_TRUE(std::ranges::equal(left.class_names(), right.class_names()));
  EXPECT_TRUE(std::ranges::equal(left.ops(), right.ops()));
  EXPECT_EQ(left.edges_inferred(), right.edges_inferred());
  ASSERT_EQ(left.layers().size(), right.layers().size());
  for (std::size_t at = 0; at < left.layers().size(); ++at) {
    const model::Layer& one = left.layers()[at];
    const model::Layer& other = right.layers()[at];
    EXPECT_EQ(one.line, other.line);
    EXPECT_EQ(one.scope, other.scope);
    EXPECT_TRUE(std::ranges::equal(left.inputs(one), right.inputs(other)));
    EXPECT_TRUE(std::ranges::equal(left.attributes(one).all(), right.attributes(other).all()));
  }
}

TEST(PlainGraphJson, MakesTheGraphThatTheFullParserMakes) {
  int graphs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(GPUMEM_SOURCE_DIR "/models/graphs")) {
    if (entry.path().extension() != ".json") continue;
    SCOPED_TRACE(entry.path());
    const auto text = core::read_file(entry.path().string());
    const auto plain = read_plain(*text);
    const std::string other = escaped(*text);
    EXPECT_FALSE(read_plain(other));
    const auto full = parse_summary(other);
    ASSERT_TRUE(plain);
    ASSERT_TRUE(testing::succeeds(full));
    expect_same(*plain, *full);
    ++graphs;
  }
  EXPECT_GE(graphs, 10);
}

/// Bytes changed, taken out, doubled and moved: what the plain reader takes, the full one takes, too, as the same
/// graph.
TEST(PlainGraphJson, TakesNothingThatTheFullParserDoesNot) {
  const std::string text = file_of(R"({"name": "m", "op": "constant", "attrs": {"shape": ["N", 3, -1]}, "output": []},
    {"name": "a", "op": "linear", "class": "Head", "scope": [["enc", "E"]], "inputs": ["x"], "attrs": {"in_features": 3,
     "out_features": 4, "bias": false, "p": 0.5, "pad": [1, -1]}, "output": [["N", 4], ["64N", "?"]], "frozen": true},
    {"name": "b", "op": "add", "inputs": ["a", "m"], "output": ["N", 4], "parameters": 0})");
  constexpr int kTexts = 20'000;
  constexpr std::string_view kBytes = "\"{}[],:0123456789-.eN?a truefalsn\n\\";
  std::mt19937 random(1);
  const auto below = [&](std::size_t count) { return static_cast<std::size_t>(random() % count); };
  int taken = 0;
  for (int time = 0; time < kTexts; ++time) {
    std::string other = text;
    for (std::size_t changes = 1 + below(3); changes > 0; --changes) {
      const std::size_t at = below(other.size());
      const std::size_t length = 1 + below(12);
      switch (below(4)) {
        case 0: other[at] = kBytes[below(kBytes.size())]; break;
        case 1: other.erase(at, length); break;
        case 2: other.insert(below(other.size()), other.substr(at, length)); break;
        default: other.insert(at, 1, kBytes[below(kBytes.size())]); break;
      }
    }
    if (!other.starts_with('{')) continue;  // no graph JSON to either
    const auto plain = read_plain(other);
    if (!plain) continue;
    ++taken;
    const auto full = parse_summary(escaped(other));
    ASSERT_TRUE(testing::succeeds(full)) << other;
    ASSERT_NO_FATAL_FAILURE(expect_same(*plain, *full)) << other;
  }
  EXPECT_GT(taken, kTexts / 100);
}

TEST(PlainGraphJson, ReadsEverythingThatANodeMaySay) {
  const std::string text = file_of(R"(
    {"name": "mask", "op": "constant", "attrs": {"shape": ["N", 3, -1]}, "output": []},
    {"name": "a", "op": "linear", "class": "Head", "scope": [["enc", "E"], ["0", "L"]], "inputs": ["x"],
     "attrs": {"in_features": 3, "out_features": 4, "bias": false, "p": 0.5, "mode": "same", "list": [], "pad": [1, -1]},
     "output": [["N", 4], ["64N", "?"]], "parameters": 12, "tied_parameters": 6, "frozen": true, "returned": false},
    {"returned": true, "output": ["N", 4], "inputs": ["a", "mask"], "op": "add", "name": "b"})");
  const auto plain = read_plain(text);
  ASSERT_TRUE(plain);
  EXPECT_EQ(describe(*plain), (Described{"constant mask 0", "linear enc.0.a [N, 4] [64N, ?] 12 tied 6 frozen",
                                         "add b [N, 4] 0 returned"}));
  const auto full = parse_summary(escaped(text));
  ASSERT_TRUE(testing::succeeds(full));
  expect_same(*plain, *full);
}

TEST(PlainGraphJson, ReadsAFileWithoutEdges) {
  const auto graph = read_plain(
      R"( {"edges": "inferred", "name": "two", "printed_outputs": 7, "nodes": [{"name": "a", "op": "relu"}, {"name": "a", "op": "relu"}],
           "version": 1, "format": "gpumem-graph"} )");
  ASSERT_TRUE(graph);
  EXPECT_TRUE(graph->edges_inferred());
  EXPECT_EQ(graph->printed_outputs(), 7);
  EXPECT_EQ(graph->layers().size(), 2U);
  EXPECT_FALSE(read_plain(R"({"format": "gpumem-graph", "version": 1, "edges": "inferred", "printed_outputs": -7,
                              "nodes": [{"name": "a", "op": "relu"}]})"));
}

/// Some of these are wrong, and some the full parser takes: it decides.
TEST(PlainGraphJson, GivesUpWhatIsNotPlainOrNotRight) {
  ASSERT_TRUE(read_plain(file_of(relu(""))));
  for (const std::string_view field : {R"("name": "b")",
                                       R"("inputs": ["y"])",
                                       R"("inputs": [1])",
                                       R"("op": 1)",
                                       R"("frozen": 1)",
                                       R"("frozen": null)",
                                       R"("parameters": 1.0)",
                                       R"("parameters": -1)",
                                       R"("attrs": {"a": 1, "a": 1})",
                                       R"("attrs": {"a": null})",
                                       R"("attrs": {"a": [1.5]})",
                                       R"("attrs": {"a": ["?"]})",
                                       R"("attrs": {"a": ["N", -2]})",
                                       R"("attrs": [])",
                                       R"("output": [["N"], 3])",
                                       R"("output": [3, ["N"]])",
                                       R"("output": [0])",
                                       R"("output": [1,1,1,1,1,1,1,1,1])",
                                       R"("scope": [["a"]])",
                                       R"("scope": [["a", "b", "c"]])",
                                       R"("class": "\u0061")",
                                       R"("unknown": 1)",
                                       R"("a" 1)",
                                       R"("class": "a",)",
                                       R"("output": [3,])"}) {
    EXPECT_FALSE(read_plain(file_of(relu(", " + std::string(field))))) << field;
  }
  std::string many = R"(, "attrs": {"a": 1)";
  for (int attribute = 0; attribute < 100; ++attribute) many += ", \"a" + std::to_string(attribute) + "\": 1";
  EXPECT_FALSE(read_plain(file_of(relu(many + "}"))));
  EXPECT_TRUE(parse_summary(file_of(relu(many + "}"))));
}

TEST(PlainGraphJson, GivesUpFilesThatAreNotWhole) {
  const std::string whole = file_of(relu(""));
  for (std::size_t length = 1; length < whole.size(); ++length) EXPECT_FALSE(read_plain(whole.substr(0, length)));
  EXPECT_FALSE(read_plain(whole + "x"));
  EXPECT_FALSE(read_plain(R"({"version": 1, "nodes": [{"name": "a", "op": "constant"}]})"));
  EXPECT_FALSE(read_plain(R"({"format": "gpumem-graph", "nodes": [{"name": "a", "op": "constant"}]})"));
  EXPECT_FALSE(read_plain(R"({"format": "gpumem-graph", "version": 1, "nodes": []})"));
  EXPECT_FALSE(read_plain(R"({"format": "gpumem-graph", "version": 1, "nodes": [{"name": "a", "op": "constant"}],
                              "inputs": [{"name": "x", "shape": [1]}]})"));
}

}  // namespace
}  // namespace gpumem::summary
