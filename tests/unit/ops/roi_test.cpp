#include "gpumem/ops/pool.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "expect.hpp"
#include "gpumem/ops/catalogue.hpp"

namespace gpumem::ops {
namespace {

using testing::N;
using testing::shape;

core::Result<core::Shape> regions_of(const std::vector<model::Attribute>& attributes, const core::Shape& level) {
  return kRoiOps[0].output_shape({model::Attributes(attributes), {&level, 1}});
}

TEST(RoiAlign, LeavesRegionsOfASize) {
  const std::vector<std::int64_t> size = {7, 9};
  const auto regions = regions_of({{"output_size", size}, {"rois", std::int64_t{64}}}, shape({N, 256, 50, 60}));
  ASSERT_TRUE(testing::succeeds(regions));
  EXPECT_EQ(core::to_string(*regions), "[64N, 256, 7, 9]");
}

TEST(RoiAlign, TakesTheRegionsThatTrainingSamples) {
  const auto regions = regions_of({{"output_size", std::int64_t{7}}}, shape({N, 256, 50, 60}));
  ASSERT_TRUE(testing::succeeds(regions));
  EXPECT_EQ(core::to_string(*regions), "[512N, 256, 7, 7]");
}

TEST(RoiAlign, NeedsASizeAndImages) {
  EXPECT_FALSE(regions_of({}, shape({N, 256, 50, 60})).has_value());
  EXPECT_FALSE(regions_of({{"output_size", std::int64_t{7}}}, shape({N, 256})).has_value());
  EXPECT_FALSE(
      regions_of({{"output_size", std::int64_t{7}}, {"rois", std::int64_t{1} << 40}}, shape({N, 8, 5, 6})).has_value());
}

}  // namespace
}  // namespace gpumem::ops
