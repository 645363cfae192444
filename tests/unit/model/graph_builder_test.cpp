#include "gpumem/model/graph_builder.hpp"

#include <gtest/gtest.h>

#include <array>

#include "graphs.hpp"

namespace gpumem::model {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::N;
using testing::shape;
using testing::succeeds;

const OpTraits* op(std::string_view name) { return ops::vocabulary().find_op(name); }

TEST(GraphBuilder, KeepsWhatALayerSays) {
  GraphBuilder builder("test", "model.txt");
  builder.add_input({"x", shape({N, 3})});
  const std::array<LayerIndex, 1> from_input = {kFirstGraphInput};
  const std::array<core::Shape, 1> output = {shape({N, 4})};
  const std::array<Attribute, 2> attributes = {{{"in_features", std::int64_t{3}}, {"out_features", std::int64_t{4}}}};
  const LayerIndex first = builder.add({.name = "fc",
                                        .class_name = "Linear",
                                        .op = op("linear"),
                                        .outputs = output,
                                        .inputs = from_input,
                                        .attributes = attributes,
                                        .line = 7});
  EXPECT_EQ(first, 0);
  const auto graph = std::move(builder).build();
  ASSERT_TRUE(succeeds(graph));
  ASSERT_EQ(graph->layers().size(), 1U);
  const Layer& layer = graph->layers()[0];
  EXPECT_EQ(graph->name(layer), "fc");
  EXPECT_EQ(graph->class_name(layer), "Linear");
  EXPECT_EQ(graph->op(layer), "linear");
  EXPECT_EQ(layer.line, 7U);
  EXPECT_EQ(layer.parameters, 16);
  EXPECT_EQ(graph->outputs(layer)[0], output[0]);
  EXPECT_EQ(graph->inputs(layer)[0], kFirstGraphInput);
  EXPECT_EQ(graph->attributes(layer).integer("out_features"), 4);
  EXPECT_EQ(graph->file(), "model.txt");
  EXPECT_EQ(graph->format(), "test");
  EXPECT_FALSE(graph->edges_inferred());
}

TEST(GraphBuilder, TakesAttributesInsteadOfCopyingThem) {
  GraphBuilder builder("test");
  std::vector<Attribute> attributes = {{"in_features", std::int64_t{3}}, {"out_features", std::int64_t{4}}};
  builder.add({.name = "fc", .op = op("linear")}, std::move(attributes));
  builder.add({.name = "act", .op = op("relu")}, {{"inplace", true}});
  builder.add({.name = "last", .op = op("linear"), .line = 9}, {});
  EXPECT_TRUE(fails(std::move(builder).build(), ErrorCode::missing_information, 9, "the sizes that give it"));
  const ModelGraph& graph = builder.graph();
  ASSERT_EQ(graph.layers().size(), 2U);
  EXPECT_EQ(graph.layers()[0].parameters, 16);
  EXPECT_EQ(graph.attributes(graph.layers()[0]).integer("out_features"), 4);
  EXPECT_TRUE(graph.attributes(graph.layers()[1]).flag("inplace", false));
}

TEST(GraphBuilder, NamesThatLookAlikeStayApart) {
  GraphBuilder builder("test");
  // The same length, and the same bytes at the front, in the middle and at the end.
  for (const std::string_view name : {"axbyc", "azbwc", "axbyc", "", "azbwc"}) {
    builder.add({.name = "layer", .class_name = name, .op = op("relu")});
  }
  const auto graph = std::move(builder).build();
  ASSERT_TRUE(succeeds(graph));
  std::vector<std::string> classes;
  for (const Layer& layer : graph->layers()) classes.emplace_back(graph->class_name(layer));
  EXPECT_EQ(classes, (std::vector<std::string>{"axbyc", "azbwc", "axbyc", "relu", "azbwc"}));
}

TEST(GraphBuilder, AGraphNeedsALayer) {
  EXPECT_TRUE(fails(GraphBuilder("test").build(), ErrorCode::malformed_input, 1, "holds no layers"));
}

TEST(GraphBuilder, UnknownIsNotZero) {
  GraphBuilder builder("test", "model.txt");
  builder.add({.name = "fc", .op = op("linear"), .line = 3});
  const auto graph = std::move(builder).build();
  ASSERT_TRUE(fails(graph, ErrorCode::missing_information, 3, "neither its parameter count nor the sizes"));
  EXPECT_EQ(graph.error().place.element, "fc");
  EXPECT_EQ(graph.error().place.file, "model.txt");
}

TEST(GraphBuilder, RefusesEdgesThatDoNotPointBackwards) {
  for (const LayerIndex edge : {LayerIndex{0}, LayerIndex{1}, LayerIndex{-2}, LayerIndex{-1000}}) {
    GraphBuilder builder("test");
    builder.add_input({"x", shape({N, 3})});
    const std::array<LayerIndex, 1> inputs = {edge};
    builder.add({.name = "relu", .op = op("relu"), .inputs = inputs, .line = 2});
    EXPECT_TRUE(fails(std::move(builder).build(), ErrorCode::malformed_input, 2, "neither an earlier layer"));
  }
}

TEST(GraphBuilder, RefusesSizesThatAreNotPositive) {
  for (const std::int64_t size : {std::int64_t{0}, std::int64_t{-3}, INT64_MIN}) {
    GraphBuilder builder("test");
    const std::array<core::Shape, 1> output = {shape({N, size})};
    builder.add({.name = "relu", .op = op("relu"), .outputs = output, .line = 2});
    EXPECT_TRUE(fails(std::move(builder).build(), ErrorCode::malformed_input, 2, "not positive"));
  }
}

TEST(GraphBuilder, RefusesANegativeParameterCount) {
  GraphBuilder builder("test");
  builder.add({.name = "fc", .parameters = -1, .line = 4});
  EXPECT_TRUE(fails(std::move(builder).build(), ErrorCode::malformed_input, 4, "negative parameter count"));
}

TEST(GraphBuilder, TheFirstErrorStays) {
  GraphBuilder builder("test");
  builder.add({.name = "a", .parameters = -1, .line = 1});
  builder.add({.name = "b", .parameters = -1, .line = 2});
  builder.fail({ErrorCode::overflow, "later", {}});
  EXPECT_TRUE(builder.failed());
  EXPECT_TRUE(fails(std::move(builder).build(), ErrorCode::malformed_input, 1, "negative"));
}

TEST(GraphBuilder, RefusesParametersBeyondSixtyFourBits) {
  GraphBuilder builder("test");
  builder.add({.name = "a", .parameters = INT64_MAX});
  builder.add({.name = "b", .parameters = 1});
  EXPECT_TRUE(fails(std::move(builder).build(), ErrorCode::overflow, 0, "do not fit 64 bits"));
}

TEST(GraphBuilder, RefusesSizesWhoseProductIsBeyondSixtyFourBits) {
  GraphBuilder builder("test");
  const std::array<Attribute, 2> attributes = {
      {{"in_features", std::int64_t{1} << 40}, {"out_features", std::int64_t{1} << 40}}};
  builder.add({.name = "fc", .op = op("linear"), .attributes = attributes, .line = 5});
  EXPECT_TRUE(fails(std::move(builder).build(), ErrorCode::overflow, 5, "does not fit 64 bits"));
}

TEST(GraphBuilder, APrintedCountWinsOverTheSizesAndIsWarnedOf) {
  GraphBuilder builder("test");
  const std::array<Attribute, 2> attributes = {{{"in_features", std::int64_t{3}}, {"out_features", std::int64_t{4}}}};
  builder.add({.name = "fc", .op = op("linear"), .attributes = attributes, .parameters = 99, .line = 5});
  const auto graph = std::move(builder).build();
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->parameters(), 99);
  EXPECT_EQ(testing::warnings(*graph),
            testing::Described{"5: layer 'fc' prints 99 parameters, its sizes give 16; the printed count is used"});
}

TEST(GraphBuilder, CountsTiedParametersOnceAndFrozenOnesAsUntrained) {
  GraphBuilder builder("test");
  builder.add({.name = "embedding", .parameters = 100});
  const LayerIndex head = builder.add({.name = "head", .parameters = 110});
  builder.add({.name = "backbone", .parameters = 1000, .frozen = true});
  builder.tie(head, 100);
  const auto graph = std::move(builder).build();
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->parameters(), 1110);
  EXPECT_EQ(graph->trainable_parameters(), 110);
}

TEST(GraphBuilder, RefusesToTieMoreThanALayerHolds) {
  GraphBuilder builder("test");
  builder.add({.name = "head", .parameters = 10, .tied_parameters = 11, .line = 6});
  EXPECT_TRUE(fails(std::move(builder).build(), ErrorCode::malformed_input, 6, "ties more parameters"));
}

TEST(GraphBuilder, WarnsOfATotalThatDisagrees) {
  GraphBuilder builder("test");
  builder.add({.name = "fc", .parameters = 1000});
  builder.warn("something else", 1);
  builder.printed_total(3000, 9);
  const auto graph = std::move(builder).build();
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(testing::warnings(*graph), (testing::Described{"9: the summary prints a total of 3,000 parameters; its "
                                                           "layers hold 1,000, which is used",
                                                           "1: something else"}));
}

TEST(GraphBuilder, DoesNotWarnOfATotalThatAgrees) {
  GraphBuilder builder("test");
  builder.add({.name = "fc", .parameters = 1000});
  builder.printed_total(1000, 9);
  EXPECT_TRUE(std::move(builder).build()->warnings().empty());
}

TEST(GraphBuilder, KeepsTwentyWarningsAndCountsTheRest) {
  GraphBuilder builder("test");
  builder.add({.name = "fc", .parameters = 1});
  for (int line = 1; line <= 25; ++line) builder.warn("odd", line);
  builder.warn("odd", 1);  // said before
  const auto graph = std::move(builder).build();
  ASSERT_TRUE(succeeds(graph));
  ASSERT_EQ(graph->warnings().size(), 21U);
  EXPECT_EQ(graph->warnings()[20].message, "and 5 more warnings");
}

TEST(GraphBuilder, WarnsOfADoubtAndKeepsIt) {
  GraphBuilder builder("test");
  builder.add({.name = "fc", .parameters = 3});
  builder.doubt({Doubt::About::model_type, "the model type is not known"});
  auto graph = std::move(builder).build();
  ASSERT_TRUE(succeeds(graph));
  GraphBuilder::add_doubt(*graph, {Doubt::About::parameters, "the name says more", false, 2.0});
  ASSERT_EQ(graph->doubts().size(), 2U);
  EXPECT_EQ(graph->doubts()[1].times, 2.0);
  ASSERT_EQ(graph->warnings().size(), 2U);
  EXPECT_EQ(graph->warnings()[1].message, "the name says more");
}

TEST(GraphBuilder, WarnsOfARepeatedModuleOnce) {
  GraphBuilder builder("test");
  builder.add({.name = "fc", .parameters = 1});
  for (int copy = 0; copy < 12; ++copy) builder.warn("odd", 4);
  EXPECT_EQ(std::move(builder).build()->warnings().size(), 1U);
}

TEST(GraphBuilder, AddsALayerLikeAnother) {
  GraphBuilder builder("test", "model.txt");
  builder.add_input({"x", shape({N, 3})});
  const std::array<LayerIndex, 1> from_input = {kFirstGraphInput};
  const std::array<Attribute, 2> attributes = {{{"in_features", std::int64_t{3}}, {"out_features", std::int64_t{3}}}};
  const LayerIndex first = builder.add(
      {.name = "first", .op = op("linear"), .inputs = from_input, .attributes = attributes, .frozen = true, .line = 7});
  builder.open_scope("block", "Block");
  const std::array<LayerIndex, 1> from_first = {first};
  EXPECT_EQ(builder.add_like(first, "second", {}, from_first, 8), 1);
  builder.close_scope();
  const std::array<LayerIndex, 1> from_nowhere = {5};
  GraphBuilder wrong("test", "model.txt");
  wrong.add({.name = "first", .op = op("relu")});
  EXPECT_EQ(wrong.add_like(0, "second", {}, from_nowhere, 8), 1) << "as add() does";
  EXPECT_TRUE(fails(std::move(wrong).build(), ErrorCode::malformed_input, 8, "neither an earlier layer"));

  const auto graph = std::move(builder).build();
  ASSERT_TRUE(succeeds(graph));
  const Layer& made = graph->layers()[1];
  EXPECT_TRUE(same_but_for_place(made, graph->layers()[0]));
  EXPECT_EQ(graph->path(made), "block.second");
  EXPECT_EQ(graph->inputs(made)[0], first);
  EXPECT_EQ(made.line, 8U);
  EXPECT_EQ(made.parameters, 12);
  EXPECT_TRUE(made.frozen);
  EXPECT_EQ(graph->parameters(), 24);
}

TEST(GraphBuilder, CountsUnknownLayersThatAreLikeAnother) {
  GraphBuilder builder("test");
  const LayerIndex first = builder.add({.name = "odd", .class_name = "Odd", .parameters = 5});
  (void)builder.add_like(first, "odder", {}, {}, 0);
  EXPECT_EQ(std::move(builder).build()->unknown_layers(), 2);
}

TEST(GraphBuilder, HoldsTheAttributesOfRepeatedLayersOnce) {
  GraphBuilder builder("test");
  const auto add = [&](std::int64_t features, bool moved) {
    std::vector<Attribute> attributes = {{"in_features", features}, {"sizes", std::vector<std::int64_t>{1, features}}};
    if (moved) return builder.add({.name = "fc", .op = op("relu")}, std::move(attributes));
    return builder.add({.name = "fc", .op = op("relu"), .attributes = attributes});
  };
  for (const bool moved : {false, true}) {
    for (const std::int64_t features : {3, 4, 3}) add(features, moved);
  }
  const auto graph = std::move(builder).build();
  ASSERT_TRUE(succeeds(graph));
  const auto at = [&](std::size_t layer) { return graph->attributes(graph->layers()[layer]); };
  EXPECT_NE(at(0).all().data(), at(1).all().data());
  for (std::size_t layer = 0; layer < 6; ++layer) {
    const std::size_t alike = layer % 3 == 1 ? 1 : 0;
    EXPECT_EQ(at(layer).all().data(), at(alike).all().data()) << layer;
    EXPECT_EQ(at(layer).integer("in_features"), alike == 1 ? 4 : 3);
  }
}

}  // namespace
}  // namespace gpumem::model
