// Expected figures: PyTorch 1.13.1.
#include "gpumem/ops/tensor.hpp"

#include "op_cases.hpp"

namespace gpumem::ops {
namespace {

using core::Dim;
using core::ErrorCode;
using testing::fails;
using testing::N;
using testing::output;
using testing::output_text;
using testing::shape;

TEST(Flatten, JoinsAxes) {
  const std::vector<core::Shape> image = {shape({N, 3, 4, 5})};
  EXPECT_EQ(output_text("flatten", "start_dim=1, end_dim=-1", image), "[N, 60]");
  EXPECT_EQ(output_text("flatten", "start_dim=2, end_dim=-1", image), "[N, 3, 20]");
  EXPECT_EQ(output_text("flatten", "start_dim=1, end_dim=2", image), "[N, 12, 5]");
  EXPECT_EQ(output_text("flatten", "start_dim=0, end_dim=-1", image), "[60N]");
}

TEST(Flatten, RefusesAxesItCannotJoin) {
  EXPECT_TRUE(fails(output("flatten", "start_dim=3", {shape({N, 4})}), ErrorCode::missing_information, 0, "axes"));
  EXPECT_TRUE(fails(output("flatten", "", {shape({N, Dim::unknown()})}), ErrorCode::missing_information, 0, "known"));
  EXPECT_TRUE(
      fails(output("flatten", "start_dim=0", {shape({N, N})}), ErrorCode::missing_information, 0, "one batch axis"));
  EXPECT_TRUE(fails(output("flatten", "", {shape({N, INT64_MAX, 2})}), ErrorCode::overflow, 0, "64 bits"));
}

TEST(Reshape, TakesTheShapeBehindTheBatch) {
  const std::vector<core::Shape> image = {shape({N, 3, 4, 5})};
  EXPECT_EQ(output_text("reshape", "shape=(60,)", image), "[N, 60]");
  EXPECT_EQ(output_text("reshape", "shape=(5, -1)", image), "[N, 5, 12]");
  EXPECT_TRUE(fails(output("reshape", "shape=(7, -1)", image), ErrorCode::missing_information, 0, "as many elements"));
  EXPECT_TRUE(fails(output("reshape", "shape=(59,)", image), ErrorCode::missing_information, 0, "as many elements"));
  EXPECT_TRUE(fails(output("reshape", "shape=(-1, -1)", image), ErrorCode::malformed_input, 0, "below 1"));
  EXPECT_TRUE(fails(output("reshape", "shape=(0,)", image), ErrorCode::malformed_input, 0, "below 1"));
  EXPECT_TRUE(fails(output("reshape", "", image), ErrorCode::missing_information, 0, "shape"));
}

TEST(Permute, ReordersEveryAxisOnce) {
  const std::vector<core::Shape> image = {shape({N, 3, 4, 5})};
  EXPECT_EQ(output_text("permute", "dims=(0, 2, 3, 1)", image), "[N, 4, 5, 3]");
  EXPECT_EQ(output_text("permute", "dims=(0, -1, 1, 2)", image), "[N, 5, 3, 4]");
  EXPECT_FALSE(output("permute", "dims=(0, 1, 1, 2)", image));
  EXPECT_FALSE(output("permute", "dims=(0, 1)", image));
  EXPECT_FALSE(output("permute", "dims=(0, 1, 2, 4)", image));
}

TEST(Concat, AddsUpOnOneAxis) {
  EXPECT_EQ(output_text("concat", "dim=1", {shape({N, 3, 7}), shape({N, 5, 7}), shape({N, 1, 7})}), "[N, 9, 7]");
  EXPECT_EQ(output_text("concat", "dim=-1", {shape({N, 3, 7}), shape({N, 3, 2})}), "[N, 3, 9]");
  EXPECT_FALSE(output("concat", "dim=1", {shape({N, 3, 7}), shape({N, 3, 8})}));
  EXPECT_FALSE(output("concat", "dim=1", {shape({N, 3, 7}), shape({N, 3})}));
  EXPECT_FALSE(output("concat", "dim=1", {shape({N, INT64_MAX}), shape({N, 1})}));
}

TEST(Broadcast, StretchesOnes) {
  for (const char* name : {"add", "sub", "mul", "div", "maximum", "average"}) {
    EXPECT_EQ(output_text(name, "", {shape({N, 3, 7}), shape({N, 3, 7})}), "[N, 3, 7]") << name;
    EXPECT_EQ(output_text(name, "", {shape({N, 3, 1}), shape({N, 1, 7})}), "[N, 3, 7]") << name;
    EXPECT_EQ(output_text(name, "", {shape({7}), shape({N, 3, 7})}), "[N, 3, 7]") << name;
    EXPECT_EQ(output_text(name, "", {shape({N, 3})}), "[N, 3]") << name << " of one input";
    EXPECT_FALSE(output(name, "", {shape({N, 3}), shape({N, 4})})) << name;
  }
}

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

TEST(Reduce, DropsOrKeepsAxes) {
  EXPECT_EQ(output_text("mean", "dim=(2, 3)", {shape({N, 3, 4, 5})}), "[N, 3]");
  EXPECT_EQ(output_text("mean", "dim=(-1, -2), keepdim=True", {shape({N, 3, 4, 5})}), "[N, 3, 1, 1]");
  EXPECT_EQ(output_text("sum", "dim=1", {shape({N, 3, 4})}), "[N, 4]");
  EXPECT_EQ(output_text("sum", "", {shape({N, 3, 4})}), "[]");
  EXPECT_FALSE(output("sum", "dim=3", {shape({N, 3, 4})}));
}

TEST(Split, GivesOnePart) {
  EXPECT_EQ(output_text("split", "split_size=3, dim=1", {shape({N, 9, 4})}), "[N, 3, 4]");
  EXPECT_FALSE(output("split", "dim=1", {shape({N, 9, 4})}));
  EXPECT_FALSE(output("split", "split_size=10", {shape({N, 9, 4})}));
}

TEST(Matmul, ContractsTheInnerAxes) {
  EXPECT_EQ(output_text("matmul", "", {shape({N, 8, 5, 64}), shape({N, 8, 64, 7})}), "[N, 8, 5, 7]");
  EXPECT_FALSE(output("matmul", "", {shape({N, 5, 64}), shape({N, 63, 7})}));
  EXPECT_FALSE(output("matmul", "", {shape({N, 5, 64})}));
}

TEST(Tensor, SomeOpsNeedAPrintedShape) {
  EXPECT_TRUE(fails(output("crop", "", {shape({N, 3})}), ErrorCode::missing_information, 0, "prints its output shape"));
}

}  // namespace
}  // namespace gpumem::ops
