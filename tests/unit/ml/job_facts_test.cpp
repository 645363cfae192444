#include "gpumem/ml/features.hpp"

#include "expect.hpp"
#include "gpumem/all.hpp"
#include "gpumem/connect/connect.hpp"

namespace gpumem::ml {
namespace {

using core::ErrorCode;

/// A convolution to 4 x 8 x 8, an activation, a view, a linear layer.
std::string small_cnn(const std::string& activation) {
  return R"({"format": "gpumem-graph", "version": 1,
 "inputs": [{"name": "x", "shape": ["N", 3, 8, 8], "dtype": "float32"}],
 "nodes": [
  {"name": "conv1", "op": "conv2d", "inputs": ["x"],
   "attrs": {"in_channels": 3, "out_channels": 4, "kernel_size": [3, 3], "padding": [1, 1]}},
  {"name": "conv2", "op": "conv2d", "inputs": ["conv1"],
   "attrs": {"in_channels": 4, "out_channels": 4, "kernel_size": [3, 3], "padding": [1, 1]}},
  {"name": "act", "op": ")" +
         activation + R"(", "inputs": ["conv2"]},
  {"name": "drop", "op": "dropout", "inputs": ["act"]},
  {"name": "flat", "op": "flatten", "inputs": ["drop"], "attrs": {"start_dim": 1}},
  {"name": "fc", "op": "linear", "inputs": ["flat"], "attrs": {"in_features": 256, "out_features": 10}}
 ]})";
}

struct Facts {
  TrainingJob job;
  core::Result<JobFacts> facts;
};

Facts facts_of_text(const std::string& text, std::int64_t batch = 2) {
  auto graph = parse_summary(text);
  EXPECT_TRUE(testing::succeeds(graph));
  Facts made{TrainingJob(*std::move(graph), batch), core::Error{}};
  const auto wired = connect::connect(made.job, ops::catalogue());
  EXPECT_TRUE(testing::succeeds(wired));
  made.facts = facts_of(made.job, *made.job.graph, [&](std::size_t layer) { return wired->outputs(layer); });
  EXPECT_TRUE(testing::succeeds(made.facts));
  return made;
}

TEST(JobFacts, CountsLayersByFamily) {
  const Facts made = facts_of_text(small_cnn("relu"));
  const JobFacts& facts = *made.facts;
  EXPECT_EQ(facts.kind, NetKind::cnn);
  EXPECT_EQ(facts.layers_of(OpFamily::conv), 2);
  EXPECT_EQ(facts.layers_of(OpFamily::activation), 1);
  EXPECT_EQ(facts.layers_of(OpFamily::dropout), 1);
  EXPECT_EQ(facts.layers_of(OpFamily::view), 1);
  EXPECT_EQ(facts.layers_of(OpFamily::linear), 1);
  EXPECT_EQ(facts.function, ActivationFunction::relu);
  EXPECT_EQ(facts.layers[0].outputs, 256.0);
  EXPECT_EQ(facts.layers[0].positions, 64.0);
  EXPECT_EQ(facts.layers[5].positions, 10.0);
  EXPECT_EQ(facts.largest_output, 256.0);
  EXPECT_EQ(facts.largest_parameters, 2570.0);
  EXPECT_EQ(facts.convolution_operands, 512.0);
}

TEST(JobFacts, WhatBackwardReadsAgainIsCountedOnceThroughViews) {
  // conv1 (conv2's input), relu's output, the dropout's output (the linear layer's input, after a view).
  EXPECT_EQ(facts_of_text(small_cnn("relu")).facts->kept, 3 * 256.0);
  // silu reads conv2's output again; its own is the dropout's input, which that does not keep.
  EXPECT_EQ(facts_of_text(small_cnn("silu")).facts->kept, 3 * 256.0);
}

TEST(JobFacts, KnowsKindsOfNets) {
  const std::string mlp = R"({"format": "gpumem-graph", "version": 1,
 "inputs": [{"name": "x", "shape": ["N", 8], "dtype": "float32"}],
 "nodes": [{"name": "fc", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 8, "out_features": 4}}]})";
  const Facts made = facts_of_text(mlp);
  EXPECT_EQ(made.facts->kind, NetKind::mlp);
  EXPECT_EQ(made.facts->function, ActivationFunction::none);
  std::string transformer = mlp;
  transformer.insert(transformer.rfind("]}"),
                     R"(,{"name": "norm", "op": "layer_norm", "inputs": ["fc"], "attrs": {"normalized_shape": [4]}})");
  EXPECT_EQ(facts_of_text(transformer).facts->kind, NetKind::transformer);
}

TEST(JobFacts, AnUnknownDimensionIsAnErrorThatNamesTheLayer) {
  const TrainingJob job(*parse_summary(small_cnn("relu")), 2);
  core::Shape shape;
  shape.push_back(core::Dim::batch());
  shape.push_back(core::Dim::unknown());
  const auto facts = facts_of(job, *job.graph, [&](std::size_t) { return std::span<const core::Shape>(&shape, 1); });
  ASSERT_FALSE(facts);
  EXPECT_EQ(facts.error().code, ErrorCode::missing_information);
  EXPECT_EQ(facts.error().place.element, "conv1");
}

TEST(JobFacts, ASizeBeyond64BitsIsAnError) {
  const TrainingJob job(*parse_summary(small_cnn("relu")), 2);
  core::Shape shape;
  for (int axis = 0; axis < 3; ++axis) shape.push_back(core::Dim::fixed(std::int64_t{1} << 40));
  const auto facts = facts_of(job, *job.graph, [&](std::size_t) { return std::span<const core::Shape>(&shape, 1); });
  ASSERT_FALSE(facts);
  EXPECT_EQ(facts.error().code, ErrorCode::overflow);
}

}  // namespace
}  // namespace gpumem::ml
