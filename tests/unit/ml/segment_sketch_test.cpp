#include "gpumem/ml/segment_sketch.hpp"

#include <gtest/gtest.h>

#include "gpumem/gpumem.hpp"
#include "gpumem/plan/output_shapes.hpp"
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

TEST(SketchedSegments, GrowsWithTheBatch) {
  const auto sketch_at = [](std::int64_t batch_size) {
    const TrainingJob job(*parse_summary(testing::kSmallGraph), batch_size);
    const auto shapes = plan::infer_output_shapes(job, ops::catalogue());
    return sketched_segments(*facts_of(job, [&](std::size_t layer) { return shapes->of(layer); }));
  };
  EXPECT_GT(sketch_at(1), 0.0);
  EXPECT_GT(sketch_at(1 << 16), 100.0 * static_cast<double>(kMiB));
}

}  // namespace
}  // namespace gpumem::ml
