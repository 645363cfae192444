#include "gpumem/summary/graph_json.hpp"

#include <array>
#include <limits>

#include "graphs.hpp"

namespace gpumem::summary {
namespace {

using testing::describe;
using testing::Described;
using testing::succeeds;

TEST(ToGraphJson, IsReadBackTheSame) {
  const auto graph = parse_summary(testing::kSmallGraph);
  ASSERT_TRUE(succeeds(graph));
  const std::string text = to_graph_json(*graph);
  const auto again = parse_summary(text);
  ASSERT_TRUE(succeeds(again));
  EXPECT_EQ(describe(*again), describe(*graph));
  EXPECT_EQ(to_graph_json(*again), text);
}

TEST(ToGraphJson, KeepsBlocksOfOneNameApart) {
  const auto graph = parse_summary(
      "M(\n  (h): ModuleList(\n    (3-5): 3 x Block(\n      (fc): Linear(in_features=4, out_features=4, bias=True)\n"
      "    )\n  )\n)\n");
  ASSERT_TRUE(succeeds(graph));
  const auto again = parse_summary(to_graph_json(*graph));
  ASSERT_TRUE(succeeds(again));
  ASSERT_EQ(again->layers().size(), 3U);
  EXPECT_EQ(again->scopes(), graph->scopes());
  EXPECT_EQ(again->path(again->layers()[0]), "h.3.fc");
  EXPECT_EQ(again->path(again->layers()[2]), "h.5.fc");
}

TEST(ToGraphJson, WritesOneNodeALine) {
  const auto graph = parse_summary(testing::kSmallGraph);
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(to_graph_json(*graph),
            "{\"format\": \"gpumem-graph\", \"version\": 1,\n"
            " \"inputs\": [{\"name\":\"x\",\"shape\":[\"N\",3,8,8],\"dtype\":\"float32\"}],\n"
            " \"nodes\": [\n"
            "  {\"name\":\"conv\",\"op\":\"conv2d\",\"inputs\":[\"x\"],\"attrs\":{\"in_channels\":3,\"out_channels\":4,"
            "\"kernel_size\":[3,3]},\"parameters\":112},\n"
            "  {\"name\":\"relu\",\"op\":\"relu\",\"inputs\":[\"conv\"],\"parameters\":0},\n"
            "  {\"name\":\"sum\",\"op\":\"add\",\"inputs\":[\"conv\",\"relu\"],\"parameters\":0}\n"
            " ]}\n");
}

TEST(ToGraphJson, WritesAListOfDimensions) {
  model::GraphBuilder builder("test");
  builder.infer_edges();
  const std::array<model::Attribute, 1> attributes = {
      {{"shape", std::vector<core::Dim>{testing::N, core::Dim::fixed(-1)}}}};
  builder.add({.name = "token", .op = ops::vocabulary().find_op("expand"), .attributes = attributes});
  const std::string text = to_graph_json(*std::move(builder).build());
  EXPECT_NE(text.find(R"("attrs":{"shape":["N",-1]})"), std::string::npos) << text;
  const auto again = parse_summary(text);
  ASSERT_TRUE(succeeds(again));
  EXPECT_EQ(again->attributes(again->layers()[0]).all()[0], attributes[0]);
}

TEST(ToGraphJson, LeavesOutNumbersThatAreNotFinite) {
  model::GraphBuilder builder("test");
  builder.infer_edges();
  const std::array<model::Attribute, 2> attributes = {
      {{"max_val", std::numeric_limits<double>::infinity()}, {"min_val", -1.5}}};
  builder.add({.name = "act", .op = ops::vocabulary().find_op("hardtanh"), .attributes = attributes});
  const auto again = parse_summary(to_graph_json(*std::move(builder).build()));
  ASSERT_TRUE(succeeds(again));
  EXPECT_EQ(again->attributes(again->layers()[0]).find("max_val"), nullptr);
  EXPECT_NE(again->attributes(again->layers()[0]).find("min_val"), nullptr);
}

TEST(ToGraphJson, KeepsWhatTheFootOfATableTells) {
  model::GraphBuilder builder("test");
  builder.infer_edges();
  builder.printed_outputs(100'000);
  builder.add({.name = "act", .op = ops::vocabulary().find_op("relu")});
  const std::string text = to_graph_json(*std::move(builder).build());
  EXPECT_NE(text.find("\"printed_outputs\": 100000,\n"), std::string::npos) << text;
  const auto again = parse_summary(text);
  ASSERT_TRUE(succeeds(again));
  EXPECT_EQ(again->printed_outputs(), 100'000);
}

TEST(ToGraphJson, OfInputsOfOneNameIsReadBack) {
  model::GraphBuilder builder("test");
  builder.infer_edges();
  for (int copy = 0; copy < 2; ++copy) builder.add_input({"x", testing::shape({testing::N, 3})});
  builder.add({.name = "act", .op = ops::vocabulary().find_op("relu")});
  const auto again = parse_summary(to_graph_json(*std::move(builder).build()));
  ASSERT_TRUE(succeeds(again));
  ASSERT_EQ(again->graph_inputs().size(), 2U);
  EXPECT_EQ(again->graph_inputs()[1].name, "x#2");
}

TEST(ToGraphJson, OfLayersOfOneNameKeepsTheirEdges) {
  model::GraphBuilder builder("test");
  builder.add_input({"x", testing::shape({testing::N, 3})});
  const std::array<model::LayerIndex, 1> from_input = {model::kFirstGraphInput};
  const std::array<model::LayerIndex, 1> from_first = {0};
  const std::array<model::LayerIndex, 1> from_second = {1};
  builder.add({.name = "act", .op = ops::vocabulary().find_op("relu"), .inputs = from_input});
  builder.add({.name = "act", .op = ops::vocabulary().find_op("tanh"), .inputs = from_first});
  builder.add({.name = "x", .op = ops::vocabulary().find_op("gelu"), .inputs = from_second});
  const auto again = parse_summary(to_graph_json(*std::move(builder).build()));
  ASSERT_TRUE(succeeds(again));
  EXPECT_EQ(describe(*again), (Described{"relu act 0", "tanh act#2 0", "gelu x#2 0"}));
  EXPECT_EQ(again->inputs(again->layers()[2])[0], 1);
}

TEST(ToGraphJson, ReplacesBytesThatAreNotUtf8) {
  model::GraphBuilder builder("test");
  builder.infer_edges();
  builder.add({.name = "\xFF", .op = ops::vocabulary().find_op("relu")});
  const auto again = parse_summary(to_graph_json(*std::move(builder).build()));
  ASSERT_TRUE(succeeds(again));
  EXPECT_EQ(again->name(again->layers()[0]), "\xEF\xBF\xBD");
}

}  // namespace
}  // namespace gpumem::summary
