#include "gpumem/connect/wired_graph.hpp"

#include <algorithm>

#include "gpumem/connect/connect.hpp"
#include "graphs.hpp"

namespace gpumem::connect {
namespace {

using testing::succeeds;

WiredGraph wired(const TrainingJob& job) {
  auto connected = connect(job, ops::catalogue());
  EXPECT_TRUE(succeeds(connected));
  return *std::move(connected);
}

constexpr std::string_view kTokens = R"({"format": "gpumem-graph", "version": 1,
  "inputs": [{"name": "x", "shape": ["N", 8]}, {"name": "ids", "shape": ["N", "?"], "dtype": "int64"}], "nodes": [
  {"name": "a", "op": "relu", "inputs": ["x"]},
  {"name": "e", "op": "embedding", "inputs": ["ids"], "attrs": {"num_embeddings": 9, "embedding_dim": 7}},
  {"name": "w", "op": "parameter", "parameters": 5}]})";

TEST(WiredGraph, FeedsTheInputsAsTheJobSays) {
  TrainingJob job(*parse_summary(kTokens), 2);
  job.input_shape = {16};
  job.sequence_length = 12;
  const WiredGraph graph = wired(job);
  ASSERT_EQ(graph.input_shapes().size(), 2U);
  EXPECT_EQ(core::to_string(graph.input_shapes()[0]), "[N, 16]");
  EXPECT_EQ(core::to_string(graph.input_shapes()[1]), "[N, 12]");
  EXPECT_EQ(graph.input_dtype(1), core::DType::int64);
  EXPECT_EQ(core::to_string(graph.outputs(1)[0]), "[N, 12, 7]");
  EXPECT_TRUE(graph.outputs(2).empty()) << "a bare parameter";
}

TEST(WiredGraph, DependsOnNothingElseOfTheJob) {
  TrainingJob job(*parse_summary(testing::kSmallGraph), 2);
  const WiredGraph one = wired(job);
  job.batch_size = 64;
  job.precision = model::Precision::amp_bf16;
  job.optimizer = model::Optimizer::sgd;
  const WiredGraph other = wired(job);
  EXPECT_EQ(one.shared_graph(), other.shared_graph());
  for (std::size_t layer = 0; layer < one.graph().layers().size(); ++layer) {
    EXPECT_TRUE(std::ranges::equal(one.outputs(layer), other.outputs(layer))) << layer;
  }
}

TEST(WiredGraph, KnowsTheRuleOfEveryOp) {
  const WiredGraph graph = wired(TrainingJob(*parse_summary(testing::kSmallGraph), 2));
  for (const model::Layer& layer : graph.graph().layers()) {
    ASSERT_NE(graph.op(layer), nullptr);
    EXPECT_EQ(graph.op(layer)->traits.name, graph.graph().op(layer));
  }
}

TEST(WiredGraph, BehindAnUnknownLayerTheLatestTensorThatFitsIsRead) {
  const auto graph = wired(TrainingJob(*parse_summary(R"({"format": "gpumem-graph", "version": 1,
  "inputs": [{"name": "x", "shape": ["N", 4]}], "nodes": [
  {"name": "a", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 4, "out_features": 8}},
  {"name": "u", "op": "mystery", "inputs": ["a"], "parameters": 7},
  {"name": "b", "op": "linear", "inputs": ["u"], "attrs": {"in_features": 8, "out_features": 4}},
  {"name": "v", "op": "mystery", "inputs": ["b"]},
  {"name": "c", "op": "linear", "inputs": ["v"], "attrs": {"in_features": 16, "out_features": 2}},
  {"name": "d", "op": "relu", "inputs": ["c"]}]})",
                                                      true),
                                       2));
  EXPECT_EQ(graph.op(graph.graph().layers()[1]), nullptr);
  EXPECT_TRUE(graph.outputs(1).empty());
  ASSERT_EQ(graph.inputs(2).size(), 1U);
  EXPECT_EQ(graph.inputs(2)[0], 0) << "a's 8 features";
  EXPECT_TRUE(graph.inputs(4).empty()) << "nothing has 16 features";
  EXPECT_TRUE(graph.outputs(4).empty());
  ASSERT_EQ(graph.inputs(5).size(), 1U);
  EXPECT_EQ(graph.inputs(5)[0], 2);
}

TEST(WiredGraph, SaysWhichLayersNoRowShows) {
  const auto graph = read_summary(GPUMEM_SOURCE_DIR "/models/summaries/resnet50.torchsummary.txt");
  ASSERT_TRUE(succeeds(graph));
  const WiredGraph resnet = wired(TrainingJob(*graph, 2));
  std::size_t shown = 0;
  for (const model::Layer& layer : resnet.graph().layers()) shown += layer.inferred ? 0 : 1;
  EXPECT_EQ(shown, graph->layers().size());
  EXPECT_GT(resnet.graph().layers().size(), shown) << "16 sums, and the flattening before the classifier";
}

}  // namespace
}  // namespace gpumem::connect
