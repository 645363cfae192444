#include "gpumem/ml/segment_sketch.hpp"

#include <gtest/gtest.h>

#include "gpumem/connect/connect.hpp"
#include "gpumem/gpumem.hpp"
#include "graphs.hpp"

namespace gpumem::ml {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kReservedMiB = 1048576;

TEST(SegmentSketch, SmallTensorsFillSegmentsOfTwoMebibytes) {
  LargeBlocks large;
  SegmentSketch pool(large);
  const auto first = pool.take(1 * kMiB);
  static_cast<void>(pool.take(1 * kMiB));
  EXPECT_EQ(pool.reserved(), 2 * kReservedMiB);
  pool.give_back(first);
  static_cast<void>(pool.take(kMiB / 2));
  EXPECT_EQ(pool.reserved(), 2 * kReservedMiB);
}

TEST(SegmentSketch, MediumTensorsShareSegmentsOfTwenty) {
  LargeBlocks large;
  SegmentSketch pool(large);
  static_cast<void>(pool.take(9 * kMiB));
  static_cast<void>(pool.take(9 * kMiB));
  EXPECT_EQ(pool.reserved(), 20 * kReservedMiB);
  static_cast<void>(pool.take(3 * kMiB));
  EXPECT_EQ(pool.reserved(), 40 * kReservedMiB);
}

TEST(SegmentSketch, FreedBlocksMergeAndServeAgain) {
  LargeBlocks large;
  SegmentSketch pool(large);
  const auto first = pool.take(9 * kMiB);
  const auto second = pool.take(9 * kMiB);
  pool.give_back(first);
  pool.give_back(second);
  static_cast<void>(pool.take(19 * kMiB + kMiB / 2));
  EXPECT_EQ(pool.reserved(), 20 * kReservedMiB);
}

TEST(SegmentSketch, NothingTakesNothing) {
  LargeBlocks large;
  SegmentSketch pool(large);
  const auto none = pool.take(0.0);
  pool.give_back(none);
  EXPECT_EQ(pool.reserved(), 0);
}

/// Views that are read twice, a sum of a tensor and itself, layers that read the graph's input, an output that its own
/// backward reads and whose last reader is a view, dropouts.
constexpr std::string_view kTangledGraph = R"({"format": "gpumem-graph", "version": 1,
 "inputs": [{"name": "x", "shape": ["N", 256], "dtype": "float32"}],
 "nodes": [
  {"name": "first", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 256, "out_features": 2048}},
  {"name": "relu", "op": "relu", "inputs": ["first"]},
  {"name": "folded", "op": "reshape", "inputs": ["relu"], "attrs": {"shape": [-1, 1024]}},
  {"name": "unfolded", "op": "reshape", "inputs": ["folded"], "attrs": {"shape": [-1, 2048]}},
  {"name": "left", "op": "linear", "inputs": ["unfolded"], "attrs": {"in_features": 2048, "out_features": 512}},
  {"name": "right", "op": "linear", "inputs": ["unfolded"], "attrs": {"in_features": 2048, "out_features": 512}},
  {"name": "doubled", "op": "add", "inputs": ["left", "left"]},
  {"name": "drop", "op": "dropout", "inputs": ["doubled"], "attrs": {"p": 0.5}},
  {"name": "sum", "op": "add", "inputs": ["drop", "right"]},
  {"name": "beside", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 256, "out_features": 512}},
  {"name": "tanh", "op": "tanh", "inputs": ["beside"]},
  {"name": "all", "op": "add", "inputs": ["sum", "tanh"]},
  {"name": "flat", "op": "flatten", "inputs": ["all"]}
 ]}
)";

double sketch_mib(std::string_view graph, std::int64_t batch_size) {
  const TrainingJob job(*parse_summary(graph), batch_size);
  const auto wired = connect::connect(job, ops::catalogue());
  return sketched_segments(*facts_of(job, *job.graph, [&](std::size_t layer) { return wired->outputs(layer); })) /
         static_cast<double>(kMiB);
}

/// Trained models have learned these figures: whoever changes one trains all that read sketch_mib again.
TEST(SketchedSegments, AreWhatTheModelsHaveLearned) {
  EXPECT_EQ(sketch_mib(testing::kSmallGraph, 1), 2.0);
  EXPECT_EQ(sketch_mib(testing::kSmallGraph, 4096), 22.0);
  EXPECT_EQ(sketch_mib(testing::kSmallGraph, 65536), 230.0);
  EXPECT_EQ(sketch_mib(kTangledGraph, 64), 84.0);
  EXPECT_EQ(sketch_mib(kTangledGraph, 4096), 204.0);
  EXPECT_EQ(sketch_mib(kTangledGraph, 65536), 2264.0);
}

}  // namespace
}  // namespace gpumem::ml
