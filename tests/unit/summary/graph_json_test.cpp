#include "gpumem/summary/graph_json.hpp"

#include <array>

#include "graphs.hpp"

namespace gpumem::summary {
namespace {

using core::ErrorCode;
using testing::describe;
using testing::Described;
using testing::fails;
using testing::read_layers;
using testing::succeeds;

/// A graph of these nodes, the first of which is in line 3.
std::string graph_of(std::string_view nodes) {
  return "{\"format\": \"gpumem-graph\", \"version\": 1,\n\"inputs\": [{\"name\": \"x\", \"shape\": [\"N\", 3]}], "
         "\"nodes\": [\n" +
         std::string(nodes) + "]}";
}

TEST(GraphJson, ReadsNodesInputsAndEdges) {
  const auto graph = parse_summary(testing::kSmallGraph);
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->format(), "graph_json");
  EXPECT_EQ(describe(*graph), (Described{"conv2d conv 112", "relu relu 0", "add sum 0"}));
  EXPECT_EQ(graph->layers()[1].line, 5U);
  EXPECT_FALSE(graph->edges_inferred());
  ASSERT_EQ(graph->graph_inputs().size(), 1U);
  EXPECT_EQ(graph->graph_inputs()[0], (model::GraphInput{"x", testing::shape({testing::N, 3, 8, 8})}));
  EXPECT_EQ(graph->inputs(graph->layers()[0])[0], model::kFirstGraphInput);
  ASSERT_EQ(graph->inputs(graph->layers()[2]).size(), 2U);
  EXPECT_EQ(graph->inputs(graph->layers()[2])[0], 0);
  EXPECT_EQ(graph->inputs(graph->layers()[2])[1], 1);
}

TEST(GraphJson, ReadsEverythingThatANodeMaySay) {
  EXPECT_EQ(read_layers(graph_of(R"({"name": "a", "op": "linear", "class": "Head", "scope": [["enc", "E"], ["0", "L"]],
      "inputs": ["x"], "output": ["64N", 7, "?"], "parameters": 30, "tied_parameters": 20, "frozen": true,
      "returned": true,
      "attrs": {"bias": false, "eps": 0.5, "mode": "x", "list": [1, -2], "n": 3}})")),
            (Described{"linear enc.0.a [64N, 7, ?] 30 tied 20 frozen returned"}));
  EXPECT_EQ(read_layers(graph_of(R"({"name": "a", "op": "split", "inputs": ["x"], "output": [["N", 1], ["N", 2]]})")),
            (Described{"split a [N, 1] [N, 2] 0"}));
}

TEST(GraphJson, ReadsParametersAndConstantsThatReadNothing) {
  EXPECT_EQ(read_layers(graph_of(R"({"name": "token", "op": "parameter", "attrs": {"shape": [1, 3]}, "frozen": true},
      {"name": "bare", "op": "parameter", "parameters": 7},
      {"name": "mask", "op": "constant", "attrs": {"shape": [3], "dtype": "bool"}},
      {"name": "sum", "op": "add", "inputs": ["x", "token", "mask"]})")),
            (Described{"parameter token 3 frozen", "parameter bare 7", "constant mask 0", "add sum 0"}));
}

TEST(GraphJson, ReadsAListOfDimensions) {
  const auto graph = parse_summary(
      graph_of(R"({"name": "a", "op": "expand", "inputs": ["x"], "attrs": {"shape": ["N", -1, "8N", 4]}})"));
  ASSERT_TRUE(succeeds(graph));
  const model::AttributeValue* shape = graph->attributes(graph->layers()[0]).find("shape");
  ASSERT_NE(shape, nullptr);
  EXPECT_EQ(*shape, model::AttributeValue(std::vector<core::Dim>{testing::N, core::Dim::fixed(-1), core::Dim::batch(8),
                                                                 core::Dim::fixed(4)}));
}

TEST(GraphJson, NamesTheLineOfANodeThatIsWrong) {
  struct Case {
    std::string_view node;
    ErrorCode code;
    std::string_view part;
  };
  const std::vector<Case> cases = {
      {R"({"op": "relu", "inputs": ["x"]})", ErrorCode::malformed_input, "needs a name and an op"},
      {R"({"name": "a", "inputs": ["x"]})", ErrorCode::malformed_input, "needs a name and an op"},
      {R"({"name": "a", "op": "relu"})", ErrorCode::malformed_input, "node 'a' has no \"inputs\""},
      {R"({"name": "a", "op": "relu", "inputs": ["y"]})", ErrorCode::malformed_input, "reads 'y'"},
      {R"({"name": "a", "op": "relu", "inputs": ["a"]})", ErrorCode::malformed_input, "reads 'a'"},
      {R"({"name": "a", "op": "relu", "inputs": [1]})", ErrorCode::malformed_input, "named by text"},
      {R"({"name": "x", "op": "relu", "inputs": ["x"]})", ErrorCode::malformed_input, "the name 'x' is taken"},
      {R"({"name": "a", "op": "rleu", "inputs": ["x"]})", ErrorCode::unknown_layer, "unknown op 'rleu'"},
      {R"({"name": "a", "op": "relu", "inputs": ["x"], "colour": 1})", ErrorCode::malformed_input, "'colour'"},
      {R"({"name": "a", "op": "relu", "inputs": "x"})", ErrorCode::malformed_input, "'inputs'"},
      {R"({"name": "a", "op": "relu", "inputs": ["x"], "output": [0]})", ErrorCode::malformed_input, "at least 1"},
      {R"({"name": "a", "op": "relu", "inputs": ["x"], "output": [-5]})", ErrorCode::malformed_input, "at least 1"},
      {R"({"name": "a", "op": "relu", "inputs": ["x"], "output": ["0N"]})", ErrorCode::malformed_input, "64N"},
      {R"({"name": "a", "op": "relu", "inputs": ["x"], "output": [1.5]})", ErrorCode::malformed_input, "64N"},
      {R"({"name": "a", "op": "relu", "inputs": ["x"], "output": [18446744073709551615]})", ErrorCode::malformed_input,
       "64N"},
      {R"({"name": "a", "op": "relu", "inputs": ["x"], "output": [1,1,1,1,1,1,1,1,1]})", ErrorCode::malformed_input,
       "more than 8 dimensions"},
      {R"({"name": "a", "op": "relu", "inputs": ["x"], "parameters": -1})", ErrorCode::malformed_input, "negative"},
      {R"({"name": "a", "op": "relu", "inputs": ["x"], "parameters": 18446744073709551615})",
       ErrorCode::malformed_input, "'parameters'"},
      {R"({"name": "a", "op": "relu", "inputs": ["x"], "tied_parameters": 3})", ErrorCode::malformed_input,
       "ties more parameters"},
      {R"({"name": "a", "op": "relu", "inputs": ["x"], "attrs": {"k": null}})", ErrorCode::malformed_input,
       "attribute 'k' must be"},
      {R"({"name": "a", "op": "relu", "inputs": ["x"], "attrs": {"k": [1.5]}})", ErrorCode::malformed_input,
       "attribute 'k' must be"},
      {R"({"name": "a", "op": "expand", "inputs": ["x"], "attrs": {"shape": ["N", 0]}})", ErrorCode::malformed_input,
       "list of dimensions"},
      {R"({"name": "a", "op": "expand", "inputs": ["x"], "attrs": {"shape": ["N", "?"]}})", ErrorCode::malformed_input,
       "list of dimensions"},
      {R"({"name": "a", "op": "expand", "inputs": ["x"], "attrs": {"shape": ["N", "M"]}})", ErrorCode::malformed_input,
       "list of dimensions"},
      {R"({"name": "a", "op": "linear", "inputs": ["x"]})", ErrorCode::missing_information, "neither its parameter"},
      {R"({"name": "a", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 9223372036854775807, "out_features": 9}})",
       ErrorCode::overflow, "does not fit 64 bits"},
      {R"("a")", ErrorCode::malformed_input, "list of objects"},
      {R"({"name": "a", "op": "relu", "inputs": ["x"]}, {"name": "a", "op": "relu", "inputs": ["x"]})",
       ErrorCode::malformed_input, "the name 'a' is taken"},
      {R"({"name": "a", "op": "relu", "inputs": ["x"], "attrs": {"k": [[[[1]]]]}})", ErrorCode::malformed_input,
       "nests deeper"},
      {R"({"name": "a", "op": "relu", "inputs": ["x"],})", ErrorCode::malformed_input, "is not JSON"},
  };
  for (const Case& row : cases) {
    EXPECT_TRUE(fails(parse_summary(graph_of(row.node)), row.code, 3, row.part)) << row.node;
  }
}

TEST(GraphJson, RefusesAGraphThatPrintsSomeShapesOnly) {
  // The shapes that are printed stand for all: a layer without one would count as nothing.
  EXPECT_TRUE(fails(parse_summary(graph_of(R"({"name": "a", "op": "relu", "inputs": ["x"], "output": ["N", 3]},
{"name": "b", "op": "relu", "inputs": ["a"]})")),
                    ErrorCode::malformed_input, 4, "node 'b' has no \"output\""));
  EXPECT_FALSE(parse_summary(graph_of(R"({"name": "a", "op": "relu", "inputs": ["x"]},
{"name": "b", "op": "relu", "inputs": ["a"], "output": ["N", 3]})")));
}

TEST(GraphJson, NamesTheElementThatIsWrong) {
  const auto graph = parse_summary(graph_of(R"({"name": "a", "op": "relu", "inputs": ["x"]},
{"name": "b", "op": "relu", "inputs": ["y"]})"));
  ASSERT_TRUE(fails(graph, ErrorCode::malformed_input, 4, "node 'b': reads 'y'"));
  EXPECT_EQ(graph.error().place.element, "/nodes/1");
}

TEST(GraphJson, NamesTheNodeOrInputWhoseFieldIsWrongWhereverItsNameStands) {
  EXPECT_TRUE(fails(parse_summary(graph_of(R"({"inputs": ["y"], "op": "relu", "name": "late"})")),
                    ErrorCode::malformed_input, 3, "node 'late': reads 'y'"));
  EXPECT_TRUE(fails(parse_summary(graph_of(R"({"name": "a", "op": "relu", "inputs": ["x"], "output": ["N", 0]})")),
                    ErrorCode::malformed_input, 3, "node 'a': a dimension is 0"));
  EXPECT_TRUE(fails(parse_summary(R"({"format": "gpumem-graph", "version": 1,
"inputs": [{"name": "x", "shape": ["N", 0]}], "nodes": []})"),
                    ErrorCode::malformed_input, 2, "input 'x': a dimension is 0"));
}

TEST(GraphJson, ChecksItsHead) {
  EXPECT_TRUE(fails(parse_summary(R"({"format": "other"})"), ErrorCode::malformed_input, 1, "not '\"other\"'"));
  EXPECT_TRUE(fails(parse_summary(R"({"format": "gpumem-graph", "version": 2})"), ErrorCode::malformed_input, 1,
                    "must be 1, not '2'"));
  EXPECT_TRUE(fails(parse_summary(R"({"version": 1})"), ErrorCode::malformed_input, 1, "names no \"format\""));
  EXPECT_TRUE(fails(parse_summary(R"({"format": "gpumem-graph"})"), ErrorCode::malformed_input, 1, "names no"));
  EXPECT_TRUE(fails(parse_summary(R"({"format": "gpumem-graph", "version": 1, "nodes": []})"),
                    ErrorCode::malformed_input, 1, "holds no layers"));
  EXPECT_TRUE(fails(parse_summary(R"({"format": "gpumem-graph", "version": 1, "extra": 1})"),
                    ErrorCode::malformed_input, 1, "is not a field of graph JSON"));
  EXPECT_TRUE(fails(parse_summary(R"({"hidden_size": 64, "num_hidden_layers": 2})"), ErrorCode::malformed_input, 1,
                    "must say its model_type"));
  for (const char* count : {"-1", "1.5", "\"many\"", "18446744073709551615"}) {
    const std::string text =
        R"({"format": "gpumem-graph", "version": 1, "printed_outputs": )" + std::string(count) + "}";
    EXPECT_TRUE(fails(parse_summary(text), ErrorCode::malformed_input, 1, "must be a count of elements")) << count;
  }
}

TEST(GraphJson, RefusesADeepNestingWithoutDescending) {
  EXPECT_TRUE(fails(parse_summary(R"({"format": "gpumem-graph", "nodes": )" + std::string(100'000, '[') + "}"),
                    ErrorCode::malformed_input, 1, "nests deeper"));
}

TEST(GraphJson, LenientReadingTakesUnknownOps) {
  const auto graph = parse_summary(graph_of(R"({"name": "a", "op": "odd", "inputs": ["x"], "parameters": 12})"), true);
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->unknown_layers(), 1);
  EXPECT_EQ(graph->parameters(), 12);
}

TEST(GraphJson, AFileCutOffAnywhereIsAnError) {
  EXPECT_EQ(testing::readable_prefixes(testing::kSmallGraph), 1) << "but for the last line's end, every byte counts";
}

}  // namespace
}  // namespace gpumem::summary
