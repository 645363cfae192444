#include "gpumem_datasets/runs_tables.hpp"

#include <gtest/gtest.h>

#include "expect.hpp"
#include "gpumem/ops/catalogue.hpp"

namespace gpumem::datasets {
namespace {

using core::ErrorCode;
using model::LayerIndex;
using model::ModelGraph;
using testing::fails;
using testing::N;
using testing::shape;
using testing::succeeds;

core::Result<ModelGraph> build(std::string_view architecture, std::int64_t channels, std::int64_t side,
                               std::vector<ListedLayer> layers) {
  const GpumemnetNet net = {std::move(layers), architecture, channels, side, 0.25};
  return build_net(net, ops::vocabulary(), "t.csv", 7);
}

/// The ops in order, in one line.
std::string ops_of(const ModelGraph& graph) {
  std::string text;
  for (const model::Layer& layer : graph.layers()) text += (text.empty() ? "" : " ") + std::string(graph.op(layer));
  return text;
}

std::vector<LayerIndex> inputs_of(const ModelGraph& graph, std::size_t layer) {
  const auto inputs = graph.inputs(graph.layers()[layer]);
  return {inputs.begin(), inputs.end()};
}

core::Shape output_of(const ModelGraph& graph, std::size_t layer) { return graph.outputs(graph.layers()[layer])[0]; }

/// Whether every op's own rule gives the shape that the graph holds.
void expect_sound(const ModelGraph& graph) {
  EXPECT_FALSE(graph.edges_inferred());
  EXPECT_TRUE(graph.warnings().empty());
  for (const model::Layer& layer : graph.layers()) {
    std::vector<core::Shape> inputs;
    for (const LayerIndex input : graph.inputs(layer)) {
      inputs.push_back(input < 0 ? graph.graph_inputs()[0].shape : output_of(graph, static_cast<std::size_t>(input)));
    }
    for (const ops::Op* op : ops::catalogue()) {
      if (op->traits.name != graph.op(layer)) continue;
      const auto expected = op->output_shape({graph.attributes(layer), inputs});
      ASSERT_TRUE(succeeds(expected)) << graph.name(layer);
      EXPECT_EQ(core::to_string(*expected), core::to_string(graph.outputs(layer)[0])) << graph.name(layer);
    }
  }
}

TEST(LayerList, IsReadAsPythonPrintsIt) {
  const auto layers = parse_layer_list("[('conv2d', 64, 20), ('ReLU',64,0)]");
  ASSERT_TRUE(succeeds(layers));
  ASSERT_EQ(layers->size(), 2U);
  EXPECT_EQ(layers->at(0).type, "conv2d");
  EXPECT_EQ(layers->at(0).activations, 64);
  EXPECT_EQ(layers->at(0).parameters, 20);
  EXPECT_EQ(layers->at(1).type, "ReLU");
  EXPECT_TRUE(parse_layer_list("[]")->empty());
}

TEST(LayerList, OfAnotherFormIsRefused) {
  for (const char* text :
       {"", "[", "]", "[('a', 1, 2)", "[('a', 1, 2),]", "[('a', 1)]", "[('a', -1, 2)]", "[('a, 1, 2)]", "[(a, 1, 2)]",
        "[('a', 1.5, 2)]", "[('a', 99999999999999999999, 2)]", "[('a', 1, 2) ('b', 1, 2)]", "[('a', 1, 2)] x"}) {
    EXPECT_TRUE(fails(parse_layer_list(text), ErrorCode::malformed_input, 0, "not of the form")) << text;
  }
}

TEST(GpumemnetNet, AnMlpIsAChain) {
  const auto graph = build("pyramid", 10, 0,
                           {{"linear", 4, 44},
                            {"batch_normalization", 4, 8},
                            {"PReLU", 4, 0},
                            {"dropout", 4, 0},
                            {"linear", 3, 15},
                            {"Softmax", 3, 0}});
  ASSERT_TRUE(succeeds(graph));
  expect_sound(*graph);
  EXPECT_EQ(ops_of(*graph), "linear batch_norm prelu dropout linear softmax");
  EXPECT_EQ(graph->parameters(), 44 + 8 + 1 + 15);  // the slope of PReLU is not listed
  EXPECT_EQ(inputs_of(*graph, 0), std::vector<LayerIndex>{-1});
  EXPECT_EQ(inputs_of(*graph, 4), std::vector<LayerIndex>{3});
  EXPECT_EQ(graph->graph_inputs()[0].shape, shape({N, 10}));
  EXPECT_EQ(output_of(*graph, 5), shape({N, 3}));
}

TEST(GpumemnetNet, AChainOfConvolutionsGetsItsChannelsFromTheParameters) {
  const auto graph = build("gradual", 3, 8,
                           {{"conv2d", 64, 5 * 28},
                            {"batch_norm2d", 64, 10},
                            {"GELU", 64, 0},
                            {"dropout", 64, 0},
                            {"max_pool2d", 16, 0},
                            {"conv2d", 16, 6 * 46},
                            {"GELU", 16, 0},
                            {"adaptive_avg_pool2d", 1, 0},
                            {"linear", 2, 14}});
  ASSERT_TRUE(succeeds(graph));
  expect_sound(*graph);
  EXPECT_EQ(ops_of(*graph), "conv2d batch_norm gelu dropout max_pool2d conv2d gelu adaptive_avg_pool2d flatten linear");
  EXPECT_EQ(output_of(*graph, 0), shape({N, 5, 8, 8}));
  EXPECT_EQ(output_of(*graph, 5), shape({N, 6, 4, 4}));
  EXPECT_EQ(output_of(*graph, 8), shape({N, 6}));
  EXPECT_EQ(*std::get_if<double>(graph->attributes(graph->layers()[3]).find("p")), 0.25);
}

TEST(GpumemnetNet, AResidualBlockAddsItsShortcut) {
  const auto graph =
      build("residual", 1, 5,
            {{"conv2d", 25, 4},  // 1x1 to 2 channels
             {"Identity", 25, 0},    {"conv2d", 25, 20},
             {"Tanh", 25, 0},        {"conv2d", 25, 38},
             {"Tanh", 25, 0},        {"conv2d", 9, 9},  // 1x1 to 3 channels, stride 2
             {"batch_norm2d", 9, 6}, {"conv2d", 9, 57},
             {"batch_norm2d", 9, 6}, {"Tanh", 9, 0},
             {"dropout", 9, 0},      {"conv2d", 9, 84},
             {"Tanh", 9, 0},         {"conv2d", 9, 84},  // no shortcut is listed: the block's input is added
             {"Tanh", 9, 0},         {"conv2d", 9, 84},
             {"Tanh", 9, 0},         {"adaptive_avg_pool2d", 1, 0},
             {"linear", 5, 20},      {"Softmax", 5, 0}});
  ASSERT_TRUE(succeeds(graph));
  expect_sound(*graph);
  EXPECT_EQ(ops_of(*graph),
            "conv2d identity conv2d tanh conv2d tanh add "
            "conv2d batch_norm conv2d batch_norm tanh dropout conv2d tanh add "
            "conv2d tanh conv2d tanh add "
            "adaptive_avg_pool2d flatten linear softmax");
  EXPECT_EQ(inputs_of(*graph, 2), std::vector<LayerIndex>{-1});
  EXPECT_EQ(inputs_of(*graph, 6), (std::vector<LayerIndex>{5, 1}));
  EXPECT_EQ(inputs_of(*graph, 7), std::vector<LayerIndex>{6});
  EXPECT_EQ(inputs_of(*graph, 9), std::vector<LayerIndex>{6});
  EXPECT_EQ(inputs_of(*graph, 15), (std::vector<LayerIndex>{14, 8}));
  EXPECT_EQ(inputs_of(*graph, 20), (std::vector<LayerIndex>{19, 15}));
  EXPECT_EQ(output_of(*graph, 15), shape({N, 3, 3, 3}));
  EXPECT_EQ(graph->attributes(graph->layers()[0]).per_axis("kernel_size", 0), 1);
  EXPECT_EQ(graph->attributes(graph->layers()[7]).per_axis("stride", 0), 2);
  EXPECT_EQ(graph->attributes(graph->layers()[9]).per_axis("stride", 0), 2);
  EXPECT_EQ(graph->attributes(graph->layers()[9]).per_axis("kernel_size", 0), 3);
}

/// A dense group of four blocks of 32 channels over an input of this many.
void add_group(std::vector<ListedLayer>& layers, std::int64_t channels, std::int64_t area) {
  for (std::int64_t before = channels; before < channels + 128; before += 32) {
    layers.push_back({"conv2d", area, 32 * (9 * before + 1)});
    layers.push_back({"SELU", area, 0});
  }
}

TEST(GpumemnetNet, ADenseGroupConcatenatesAllThatCameBefore) {
  std::vector<ListedLayer> layers;
  add_group(layers, 2, 16);
  layers.insert(layers.end(), {{"conv2d", 16, 65 * 131}, {"ReLU", 16, 0}, {"d", 4, 0}});
  add_group(layers, 65, 4);
  layers.insert(layers.end(), {{"adaptive_avg_pool2d", 1, 0}, {"linear", 2, 388}, {"Softmax", 2, 0}});
  const auto graph = build("dense", 2, 4, layers);
  ASSERT_TRUE(succeeds(graph));
  expect_sound(*graph);
  EXPECT_EQ(ops_of(*graph),
            "concat conv2d selu concat conv2d selu concat conv2d selu concat conv2d selu concat "
            "conv2d relu avg_pool2d "
            "concat conv2d selu concat conv2d selu concat conv2d selu concat conv2d selu concat "
            "adaptive_avg_pool2d flatten linear softmax");
  EXPECT_EQ(inputs_of(*graph, 0), std::vector<LayerIndex>{-1});
  EXPECT_EQ(inputs_of(*graph, 12), (std::vector<LayerIndex>{-1, 2, 5, 8, 11}));
  EXPECT_EQ(output_of(*graph, 12), shape({N, 130, 4, 4}));
  EXPECT_EQ(output_of(*graph, 15), shape({N, 65, 2, 2}));
  EXPECT_EQ(inputs_of(*graph, 19), (std::vector<LayerIndex>{15, 18}));
}

struct Misfit {
  std::string_view architecture;
  std::vector<ListedLayer> layers;
  const char* message;
};

TEST(GpumemnetNet, AListThatContradictsItselfNamesTheLayer) {
  const ListedLayer pool = {"adaptive_avg_pool2d", 1, 0};
  const std::vector<Misfit> misfits = {
      {"gradual", {}, "its end is all it holds"},
      {"gradual", {{"conv2d", 16, 29}, {"ReLU", 16, 0}}, "layer 1, 'conv2d', has parameters that no number"},
      {"gradual", {{"conv2d", 16, 0}, {"ReLU", 16, 0}}, "has parameters that no number"},
      {"gradual", {{"conv2d", 15, 28}, {"ReLU", 15, 0}}, "neither its input's size nor half of it"},
      {"gradual", {{"conv2d", 1, 28}, {"ReLU", 1, 0}}, "neither its input's size nor half of it"},
      {"gradual", {{"conv2d", 16, 28}, pool}, "layer 2, 'adaptive_avg_pool2d', is where an activation should be"},
      {"gradual", {{"conv2d", 16, 28}, {"ReLU", 8, 0}}, "layer 2, 'ReLU', has an output of another size"},
      {"gradual", {{"conv2d", 16, 28}, {"batch_norm2d", 16, 3}}, "layer 2, 'batch_norm2d', has parameters"},
      {"gradual", {{"conv2d", 16, 28}, {"Swish", 16, 0}}, "layer 2, 'Swish', is where an activation should be"},
      {"gradual", {{"d", 9, 0}}, "not half its input"},
      {"gradual", {{"flatten", 48, 0}}, "layer 1, 'flatten', is where a conv2d should be"},
      {"gradual", {{"adaptive_avg_pool2d", 4, 0}}, "should pool to 1 x 1"},
      {"gradual", {pool, {"linear", 2, 9}}, "layer 2, 'linear', has parameters"},
      {"gradual", {pool, {"linear", 2, 8}, {"Softmax", 2, 0}, pool}, "layer 4, 'adaptive_avg_pool2d', is listed after"},
      {"residual",
       {{"conv2d", 16, 56}, {"ReLU", 16, 0}, {"conv2d", 16, 38}, {"ReLU", 16, 0}},
       "another shape than its shortcut"},
      {"dense", {{"conv2d", 16, 896}, {"ReLU", 16, 0}, pool}, "layer 3, 'adaptive_avg_pool2d', is where a conv2d"},
      {"gradual", {{"conv2d", 16, INT64_MAX / 28 * 28}, {"ReLU", 16, 0}}, "has parameters that no number"},
  };
  for (const Misfit& misfit : misfits) {
    const auto graph = build(misfit.architecture, 3, 4, misfit.layers);
    EXPECT_TRUE(fails(graph, ErrorCode::malformed_input, 7, misfit.message));
    if (!graph) {
      EXPECT_EQ(graph.error().place.file, "t.csv");
    }
  }
  EXPECT_TRUE(fails(build("pyramid", 0, 0, {{"linear", 1, 1}}), ErrorCode::malformed_input, 7, "no usable size"));
}

}  // namespace
}  // namespace gpumem::datasets
