#include "nets.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "expect.hpp"
#include "gpumem/connect/connect.hpp"

namespace gpumem::train {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::succeeds;

template <typename Net>
std::int64_t parameters(const Net& net) {
  const auto graph = build(net);
  EXPECT_TRUE(succeeds(graph));
  return graph ? graph->parameters() : -1;
}

/// The output of every layer of this op on this axis.
std::vector<std::int64_t> sizes(const model::ModelGraph& graph, std::string_view op, std::size_t axis) {
  std::vector<std::int64_t> all;
  for (const model::Layer& layer : graph.layers()) {
    if (graph.op(layer) == op) all.push_back(graph.outputs(layer)[0][axis].size);
  }
  return all;
}

std::int64_t count(const model::ModelGraph& graph, std::string_view op) {
  return static_cast<std::int64_t>(sizes(graph, op, 0).size());
}

/// Whether the ops' rules, applied from the input on, give the shapes that the graph holds.
void expect_sound(model::ModelGraph graph) {
  EXPECT_FALSE(graph.edges_inferred());
  EXPECT_TRUE(graph.warnings().empty());
  EXPECT_EQ(graph.unknown_layers(), 0);
  const model::TrainingJob job(std::move(graph), 2);
  EXPECT_TRUE(succeeds(connect::connect(job, ops::catalogue())));
}

// Total Parameters of rows of GPUMemNet's MLP set (itu-rad/GPUMemNet, CC BY 4.0).

TEST(MlpNet, HasTheParametersThatItsRowPrints) {
  EXPECT_EQ(parameters(MlpNet{2346, 197, 2, Architecture::pyramid, "relu", 34, true}), 3560152);
  EXPECT_EQ(parameters(MlpNet{1873, 453, 8, Architecture::pyramid, "softplus", 17, false}), 3639009);
  EXPECT_EQ(parameters(MlpNet{804, 113, 5, Architecture::gradual, "silu", 0, true}), 1238885);
  EXPECT_EQ(parameters(MlpNet{779, 2, 2, Architecture::uniform, "selu", 0, true}), 1219916);
  EXPECT_EQ(parameters(MlpNet{1290, 187, 1, Architecture::bottleneck, "leaky_relu", 49, false}), 1101108);
}

TEST(MlpNet, IsAChainOfHiddenLayersAndAHead) {
  const auto graph = build(MlpNet{25, 1, 7, Architecture::bottleneck, "prelu", 18, true});
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(sizes(*graph, "linear", 1), (std::vector<std::int64_t>{12, 6, 3, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(count(*graph, "batch_norm"), 8);
  EXPECT_EQ(count(*graph, "prelu"), 8);
  EXPECT_EQ(count(*graph, "dropout"), 8);
  EXPECT_EQ(graph->op(graph->layers().back()), "sigmoid");
  expect_sound(*graph);
}

TEST(MlpNet, NarrowsGraduallyToItsOutputs) {
  const auto graph = build(MlpNet{3567, 528, 9, Architecture::gradual});
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(sizes(*graph, "linear", 1),
            (std::vector<std::int64_t>{3230, 2893, 2556, 2219, 1882, 1545, 1208, 871, 534, 528}));
  EXPECT_EQ(count(*graph, "batch_norm") + count(*graph, "dropout"), 0);
}

TEST(MlpNet, OfSizesThatMakeNoSenseIsRefused) {
  EXPECT_TRUE(fails(build(MlpNet{0, 1, 1}), ErrorCode::invalid_argument, 0, "inputs is 0"));
  EXPECT_TRUE(fails(build(MlpNet{1, 1, -1}), ErrorCode::invalid_argument, 0, "depth is -1"));
  EXPECT_TRUE(fails(build(MlpNet{1, 1, 2000}), ErrorCode::invalid_argument, 0, "depth is 2000"));
  EXPECT_TRUE(fails(build(MlpNet{4, 2, 1, Architecture::dense}), ErrorCode::invalid_argument, 0, "not dense"));
  EXPECT_TRUE(fails(build(MlpNet{4, 2, 1, Architecture::pyramid, "linear"}), ErrorCode::invalid_argument, 0,
                    "no activation 'linear'"));
}

// Total Parameters of rows of GPUMemNet's CNN set, an earlier public version (itu-rad/GPUMemNet, CC BY 4.0).

TEST(CnnNet, HasTheParametersThatItsRowPrints) {
  using enum Architecture;
  EXPECT_EQ(parameters(CnnNet{3, 174, 453, 22, uniform, 98, 3, "gelu", 34, false}), 1864805);
  EXPECT_EQ(parameters(CnnNet{3, 108, 104, 9, pyramid, 40, 3, "silu", 45, false}), 17547546);
  EXPECT_EQ(parameters(CnnNet{1, 16, 895, 17, bottleneck, 64, 3, "gelu", 0, true}), 57496575);
  EXPECT_EQ(parameters(CnnNet{3, 108, 128, 25, gradual, 51, 3, "leaky_relu", 0, false}), 5336091);
  EXPECT_EQ(parameters(CnnNet{1, 102, 981, 29, hourglass, 110, 3, "softplus", 0, false}), 148861286);
  EXPECT_EQ(parameters(CnnNet{3, 122, 685, 27, residual, 18, 3, "tanh", 0, true}), 247238);
  EXPECT_EQ(parameters(CnnNet{1, 202, 479, 18, residual, 89, 3, "gelu", 11, false}), 7363263);
  EXPECT_EQ(parameters(CnnNet{3, 170, 730, 28, dense, 25, 3, "leaky_relu", 0, false, 7}), 3669944);
  EXPECT_EQ(parameters(CnnNet{1, 122, 524, 25, dense, 126, 3, "gelu", 24, true, 7}), 2556300);
}

TEST(CnnNet, WidthsThatAreWholeNumbersAreNotMissed) {
  const auto graph = build(CnnNet{.side = 8, .classes = 2, .depth = 10, .base_filters = 64});
  ASSERT_TRUE(succeeds(graph));
  // 64 x 32^(i / 10): doubles every second block.
  EXPECT_EQ(sizes(*graph, "conv2d", 1), (std::vector<std::int64_t>{64, 90, 128, 181, 256, 362, 512, 724, 1024, 1448}));
}

TEST(CnnNet, ResidualPairsHalveTheImageUntilItIsSmall) {
  const auto graph =
      build(CnnNet{.side = 30, .classes = 5, .depth = 29, .architecture = Architecture::residual, .base_filters = 16});
  ASSERT_TRUE(succeeds(graph));
  expect_sound(*graph);
  // A shortcut and two blocks each; the fourth pair ends at 7 (30, 15, 7 by halves; convolutions make it 8).
  EXPECT_EQ(sizes(*graph, "conv2d", 2), (std::vector<std::int64_t>{30, 30, 30, 15, 15, 15, 15, 15, 15, 8, 8, 8}));
  EXPECT_EQ(count(*graph, "add"), 4);
}

TEST(CnnNet, DenseGroupsReadAllBeforeThem) {
  const CnnNet net = {.side = 20, .classes = 5, .depth = 9, .architecture = Architecture::dense, .base_filters = 16};
  const auto graph = build(net);
  ASSERT_TRUE(succeeds(graph));
  expect_sound(*graph);
  EXPECT_EQ(sizes(*graph, "concat", 1), (std::vector<std::int64_t>{3, 35, 67, 99, 131, 65, 97, 129, 161, 193}));
  EXPECT_EQ(sizes(*graph, "avg_pool2d", 2), std::vector<std::int64_t>{10});
}

TEST(CnnNet, KernelsOfAnyOddSizeKeepTheImage) {
  for (const std::int64_t kernel : {1, 3, 5, 7}) {
    const auto graph = build(CnnNet{.side = 9, .classes = 2, .depth = 1, .base_filters = 16, .kernel = kernel});
    ASSERT_TRUE(succeeds(graph));
    EXPECT_EQ(sizes(*graph, "conv2d", 2), std::vector<std::int64_t>{9});
    EXPECT_EQ(graph->parameters(), 16 * (3 * kernel * kernel + 1) + 2 * 17);
  }
  EXPECT_TRUE(fails(build(CnnNet{.side = 9, .classes = 2, .depth = 1, .base_filters = 16, .kernel = 4}),
                    ErrorCode::invalid_argument, 0, "kernel is even"));
}

TEST(CnnNet, OfSizesThatMakeNoSenseIsRefused) {
  EXPECT_TRUE(fails(build(CnnNet{}), ErrorCode::invalid_argument, 0, "side is 0"));
  const std::int64_t huge = std::int64_t{1} << 40;
  EXPECT_TRUE(fails(build(CnnNet{.side = 9, .classes = 2, .depth = 1, .base_filters = huge}),
                    ErrorCode::invalid_argument, 0, "base_filters is 1099511627776"));
}

TEST(TransformerNet, HasTheParametersOfPyTorchsEncoder) {
  // nn.TransformerEncoder(nn.TransformerEncoderLayer(512, 8, 2048), 6) has 18,914,304 (PyTorch 1.13.1).
  const TransformerNet net = {.vocabulary = 50000,
                              .sequence = 128,
                              .embedding = 512,
                              .heads = 8,
                              .feed_forward = 2048,
                              .layers = 6,
                              .classes = 10,
                              .dropout_percent = 10};
  const auto graph = build(net);
  ASSERT_TRUE(succeeds(graph));
  expect_sound(*graph);
  EXPECT_EQ(graph->parameters(), 18914304 + 50000 * 512 + 128 * 512 + 512 * 10 + 10);
  EXPECT_EQ(count(*graph, "multihead_attention"), 6);
  EXPECT_EQ(count(*graph, "linear"), 6 * 3 + 1);
  EXPECT_EQ(count(*graph, "dropout"), 6 * 3);
  EXPECT_EQ(std::count_if(graph->layers().begin(), graph->layers().end(),
                          [&](const model::Layer& layer) {
                            return graph->class_name(layer) == "NonDynamicallyQuantizableLinear";
                          }),
            6);
}

TEST(TransformerNet, WithProjectionsApartIsBerts) {
  // The 12 layers of bert-base-uncased have 85,054,464 parameters.
  const TransformerNet net = {.vocabulary = 30522,
                              .sequence = 512,
                              .embedding = 768,
                              .heads = 12,
                              .feed_forward = 3072,
                              .layers = 12,
                              .classes = 2,
                              .activation = "gelu",
                              .dropout_percent = 10,
                              .packed = false};
  const auto graph = build(net);
  ASSERT_TRUE(succeeds(graph));
  expect_sound(*graph);
  EXPECT_EQ(graph->parameters(), 85054464 + 30522 * 768 + 512 * 768 + 2 * 769);
  EXPECT_EQ(count(*graph, "scaled_dot_product_attention"), 12);
  EXPECT_EQ(count(*graph, "linear"), 12 * 6 + 1);
  EXPECT_EQ(count(*graph, "dropout"), 12 * 2);
}

TEST(TransformerNet, HeadsMustDivideTheEmbedding) {
  const TransformerNet net = {100, 8, 10, 3, 20, 1, 2};
  EXPECT_TRUE(fails(build(net), ErrorCode::invalid_argument, 0, "heads do not divide"));
  EXPECT_TRUE(fails(build(TransformerNet{}), ErrorCode::invalid_argument, 0, "vocabulary is 0"));
}

}  // namespace
}  // namespace gpumem::train
