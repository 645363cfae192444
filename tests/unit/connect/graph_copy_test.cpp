#include "gpumem/connect/graph_copy.hpp"

#include "adapted_jobs.hpp"
#include "wired.hpp"

namespace gpumem::connect {
namespace {

/// The graph copied layer by layer, with nothing put in.
core::Result<connect::WiredGraph> copied(const connect::WiredGraph& wired) {
  GraphCopy copy(wired, ops::catalogue());
  for (const model::Layer& layer : wired.graph().layers()) copy.copy({}, layer.frozen);
  return std::move(copy).finish();
}

void expect_same(const connect::WiredGraph& copy, const connect::WiredGraph& source) {
  const ModelGraph& left = copy.graph();
  const ModelGraph& right = source.graph();
  ASSERT_EQ(left.layers().size(), right.layers().size());
  ASSERT_EQ(left.scopes(), right.scopes());
  EXPECT_EQ(left.parameters(), right.parameters());
  EXPECT_EQ(left.warnings().size(), right.warnings().size());
  EXPECT_EQ(copy.edges(), source.edges());
  for (std::size_t at = 0; at < left.layers().size(); ++at) {
    const model::Layer& one = left.layers()[at];
    const model::Layer& other = right.layers()[at];
    EXPECT_EQ(left.path(one), right.path(other));
    EXPECT_EQ(left.class_name(one), right.class_name(other));
    EXPECT_EQ(one.scope, other.scope);
    EXPECT_EQ(copy.op(one), source.op(other));
    EXPECT_TRUE(std::ranges::equal(copy.inputs(at), source.inputs(at))) << at;
    EXPECT_TRUE(std::ranges::equal(copy.outputs(at), source.outputs(at))) << at;
    EXPECT_TRUE(std::ranges::equal(left.attributes(one).all(), right.attributes(other).all())) << at;
  }
}

TEST(GraphCopy, OfATreeIsTheSameTree) {
  const auto job = testing::shipped_tree("gpt2", 64);
  ASSERT_TRUE(testing::succeeds(job));
  const auto wired = connect::connect(*job, ops::catalogue());
  ASSERT_TRUE(testing::succeeds(wired));
  const auto copy = copied(*wired);
  ASSERT_TRUE(testing::succeeds(copy));
  expect_same(*copy, *wired);
}

TEST(GraphCopy, LayersThatAreAlikeMayBeCopiedDifferently) {
  const auto job = testing::shipped_tree("gpt2", 64);
  ASSERT_TRUE(testing::succeeds(job));
  const auto wired = connect::connect(*job, ops::catalogue());
  ASSERT_TRUE(testing::succeeds(wired));
  const auto layers = wired->graph().layers();
  const auto frozen = [](std::size_t at) { return at / 50 % 2 == 1; };
  GraphCopy copy(*wired, ops::catalogue());
  for (std::size_t at = 0; at < layers.size(); ++at) copy.copy({}, frozen(at), {}, !frozen(at));
  const auto made = std::move(copy).finish();
  ASSERT_TRUE(testing::succeeds(made));
  for (std::size_t at = 0; at < layers.size(); ++at) {
    const model::Layer& one = made->graph().layers()[at];
    EXPECT_EQ(one.frozen, frozen(at)) << at;
    EXPECT_EQ(one.tied_parameters, frozen(at) ? 0 : layers[at].tied_parameters) << at;
    EXPECT_EQ(one.parameters, layers[at].parameters) << at;
    EXPECT_EQ(made->graph().path(one), wired->graph().path(layers[at]));
  }
}

TEST(GraphCopy, OfATableKeepsItsPrintedShapesAndBlocks) {
  const auto graph = read_summary(GPUMEM_SOURCE_DIR "/models/summaries/resnet50.torchsummary.txt");
  ASSERT_TRUE(testing::succeeds(graph));
  const auto wired = connect::connect(TrainingJob(*graph, 2), ops::catalogue());
  ASSERT_TRUE(testing::succeeds(wired));
  const auto copy = copied(*wired);
  ASSERT_TRUE(testing::succeeds(copy));
  expect_same(*copy, *wired);
  EXPECT_EQ(copy->graph().block_marks().size(), wired->graph().block_marks().size());
}

TEST(GraphCopy, LeavesALayerOutAndPutsAnotherInItsPlace) {
  const auto wired = connect::connect(testing::small_model(), ops::catalogue());
  ASSERT_TRUE(testing::succeeds(wired));
  GraphCopy copy(*wired, ops::catalogue());
  copy.copy({}, false);
  copy.copy({}, false);
  copy.omit(copy.now(1));  // the activation
  const model::LayerIndex put =
      copy.put({.name = "model.layers.0.other",
                .op = "linear",
                .inputs = {copy.now(2)},
                .output = wired->outputs(3)[0],
                .attributes = {{"in_features", std::int64_t{16}}, {"out_features", std::int64_t{16}}, {"bias", false}},
                .frozen = true});
  copy.copy({}, false);
  const auto made = std::move(copy).finish();
  ASSERT_TRUE(testing::succeeds(made));
  ASSERT_EQ(made->graph().layers().size(), 4U);
  EXPECT_EQ(put, 2);
  EXPECT_EQ(made->inputs(2)[0], 1) << "it reads what the layer that is left out read";
  EXPECT_EQ(made->inputs(3)[0], 2);
  EXPECT_TRUE(made->graph().layers()[2].frozen);
}

TEST(GraphCopy, LayersReadWhatWasPutInALayersPlace) {
  const auto wired = connect::connect(testing::net(), ops::catalogue());
  ASSERT_TRUE(testing::succeeds(wired));
  GraphCopy copy(*wired, ops::catalogue());
  const model::LayerIndex a = copy.copy({}, false);
  copy.replace(0, copy.insert({.name = "twice", .op = "mul", .inputs = {a}, .output = wired->outputs(0)[0]}));
  copy.copy({.dtype = core::DType::bfloat16}, true);
  copy.copy({}, false);
  const auto made = std::move(copy).finish();
  ASSERT_TRUE(testing::succeeds(made));
  ASSERT_EQ(made->graph().layers().size(), 4U);
  EXPECT_EQ(made->inputs(1)[0], 0);
  EXPECT_EQ(made->inputs(2)[0], 1) << "the relu reads what was put in";
  EXPECT_EQ(made->inputs(3)[0], 2);
  EXPECT_EQ(made->outputs(1)[0], wired->outputs(0)[0]);
  EXPECT_EQ(made->weights(2).dtype, core::DType::bfloat16);
  EXPECT_TRUE(made->graph().layers()[2].frozen);
}

TEST(GraphCopy, AnOpThatThereIsNotIsAnError) {
  const auto wired = connect::connect(testing::net(), ops::catalogue());
  ASSERT_TRUE(testing::succeeds(wired));
  GraphCopy copy(*wired, ops::catalogue());
  copy.copy({}, false);
  copy.insert({.name = "odd", .op = "no such op", .inputs = {0}, .output = wired->outputs(0)[0]});
  EXPECT_TRUE(testing::fails(std::move(copy).finish(), core::ErrorCode::missing_information, 0, "no such op"));
}

}  // namespace
}  // namespace gpumem::connect
