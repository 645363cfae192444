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
  EXPECT_EQ(output_text("pad", "padding=(-1, 0)", {shape({N, 3, 4})}), "[N, 3, 3]") << "a negative padding cuts";
  EXPECT_EQ(output_text("pad", "padding=(-3, 5)", {shape({N, 3, 4})}), "[N, 3, 6]");
  EXPECT_FALSE(output("pad", "padding=(-3, -1)", {shape({N, 3, 4})})) << "nothing is left";
  EXPECT_FALSE(output("pad", "padding=(9223372036854775807, 1)", {shape({N, 3, 4})}));
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

TEST(Repeat, GivesEachAxisAMultiple) {
  EXPECT_EQ(output_text("repeat", "shape=(-1, 6, -1)", {shape({N, 3, 4})}), "[N, 6, 4]");
  EXPECT_EQ(output_text("repeat", "shape=(5, 3, 8)", {shape({3, 4})}), "[5, 3, 8]");
  EXPECT_FALSE(output("repeat", "shape=(-1, 7, -1)", {shape({N, 3, 4})}));
  EXPECT_FALSE(output("repeat", "shape=(-1, 3, 4)", {shape({3, 4})})) << "a new axis has nothing to keep";
  EXPECT_FALSE(output("repeat", "shape=(4,)", {shape({3, 4})}));
  EXPECT_FALSE(output("repeat", "shape=(0, 4)", {shape({3, 4})}));
  EXPECT_FALSE(output("repeat", "", {shape({3, 4})}));
}

TEST(Repeat, GivesAParameterTheBatch) {
  const std::vector<model::Attribute> attributes = {{"shape", std::vector<core::Dim>{core::Dim::batch(4), {-1}}}};
  const std::vector<core::Shape> token = {shape({2, 768})};
  const auto repeated = testing::op("repeat").output_shape({model::Attributes(attributes), token});
  ASSERT_TRUE(repeated);
  EXPECT_EQ(core::to_string(*repeated), "[4N, 768]");
}

TEST(Unfold, HasAColumnAWindow) {
  EXPECT_EQ(output_text("unfold", "kernel_size=3, padding=1, stride=2", {shape({N, 4, 8, 6})}), "[N, 36, 12]");
  EXPECT_EQ(output_text("unfold", "kernel_size=(2, 3), dilation=2", {shape({N, 4, 8, 8})}), "[N, 24, 24]");
  EXPECT_FALSE(output("unfold", "kernel_size=9", {shape({N, 4, 8, 8})}));
  EXPECT_FALSE(output("unfold", "kernel_size=0", {shape({N, 4, 8, 8})}));
  EXPECT_FALSE(output("unfold", "kernel_size=2", {shape({N, 4, 8})}));
}

TEST(Fold, SumsTheColumns) {
  EXPECT_EQ(output_text("fold", "output_size=(8, 6), kernel_size=2, stride=2", {shape({N, 16, 12})}), "[N, 4, 8, 6]");
  EXPECT_FALSE(output("fold", "output_size=(8, 6), kernel_size=3", {shape({N, 16, 12})}));
  EXPECT_FALSE(output("fold", "kernel_size=2", {shape({N, 16, 12})}));
  EXPECT_FALSE(output("fold", "output_size=(8, 6), kernel_size=2", {shape({N, 16})}));
}

}  // namespace
}  // namespace gpumem::ops
