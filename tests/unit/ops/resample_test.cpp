// Expected figures: PyTorch 1.13.1.
#include "gpumem/ops/resample.hpp"

#include "op_cases.hpp"

namespace gpumem::ops {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::N;
using testing::output;
using testing::output_text;
using testing::shape;

TEST(Pad, AddsToTheLastAxesFirst) {
  EXPECT_EQ(output_text("pad", "(2, 2, 2, 2)", {shape({N, 3, 4, 5})}), "[N, 3, 8, 9]");
  EXPECT_EQ(output_text("pad", "(1, 2, 3, 4)", {shape({N, 3, 4, 5})}), "[N, 3, 11, 8]");
  EXPECT_EQ(output_text("pad", "padding=(1, 2), value=0.0", {shape({N, 3, 4})}), "[N, 3, 7]");
  EXPECT_EQ(output_text("pad", "padding=2", {shape({N, 3, 4, 5})}), "[N, 3, 8, 9]");
  EXPECT_FALSE(output("pad", "", {shape({N, 3, 4})}));
  EXPECT_FALSE(output("pad", "padding=(-1, 0)", {shape({N, 3, 4})}));
  EXPECT_FALSE(output("pad", "padding=(1, 1, 1, 1)", {shape({N})}));
}

TEST(Upsample, ScalesOrSetsTheSpatialSizes) {
  EXPECT_EQ(output_text("upsample", "scale_factor=2.0, mode='nearest'", {shape({N, 3, 4, 5})}), "[N, 3, 8, 10]");
  EXPECT_EQ(output_text("upsample", "scale_factor=1.5, mode='nearest'", {shape({N, 3, 5, 5})}), "[N, 3, 7, 7]");
  EXPECT_EQ(output_text("upsample", "size=(7, 9), mode='nearest'", {shape({N, 3, 4, 5})}), "[N, 3, 7, 9]");
  EXPECT_FALSE(output("upsample", "", {shape({N, 3, 4, 5})}));
  EXPECT_FALSE(output("upsample", "scale_factor=0", {shape({N, 3, 4, 5})}));
  EXPECT_FALSE(output("upsample", "scale_factor=-2.0", {shape({N, 3, 4, 5})}));
  EXPECT_FALSE(output("upsample", "scale_factor=1e300", {shape({N, 3, 4, 5})}));
}

TEST(Upsample, RefusesASizeThatIsNotPositive) {
  EXPECT_FALSE(output("upsample", "size=(0, 4)", {shape({N, 3, 4, 5})}));
  EXPECT_FALSE(output("upsample", "size=-7", {shape({N, 3, 4, 5})}));
}

TEST(PixelShuffle, TradesChannelsForPixels) {
  EXPECT_EQ(output_text("pixel_shuffle", "upscale_factor=2", {shape({N, 12, 4, 5})}), "[N, 3, 8, 10]");
  EXPECT_FALSE(output("pixel_shuffle", "upscale_factor=2", {shape({N, 3, 4, 5})}));
  EXPECT_FALSE(output("pixel_shuffle", "upscale_factor=0", {shape({N, 12, 4, 5})}));
}

TEST(Tensor, SomeOpsNeedAPrintedShape) {
  EXPECT_TRUE(fails(output("crop", "", {shape({N, 3})}), ErrorCode::missing_information, 0, "prints its output shape"));
}

}  // namespace
}  // namespace gpumem::ops
