// Expected figures: PyTorch 1.13.1, the module called on zeros.
#include "gpumem/ops/pool.hpp"

#include "op_cases.hpp"

namespace gpumem::ops {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::N;
using testing::output;
using testing::output_text;
using testing::shape;

TEST(Pool, HasTheOutputShapeThatPyTorchGives) {
  EXPECT_EQ(
      output_text("max_pool1d", "kernel_size=3, stride=3, padding=0, dilation=1, ceil_mode=False", {shape({N, 4, 10})}),
      "[N, 4, 3]");
  EXPECT_EQ(output_text("max_pool2d", "kernel_size=3, stride=2, padding=1, dilation=1, ceil_mode=False",
                        {shape({N, 64, 112, 112})}),
            "[N, 64, 56, 56]");
  EXPECT_EQ(output_text("max_pool2d", "kernel_size=3, stride=2, padding=0, dilation=2, ceil_mode=False",
                        {shape({N, 4, 20, 20})}),
            "[N, 4, 8, 8]");
  EXPECT_EQ(output_text("max_pool3d", "kernel_size=2, stride=2", {shape({N, 4, 8, 9, 10})}), "[N, 4, 4, 4, 5]");
  EXPECT_EQ(output_text("avg_pool1d", "kernel_size=(4,), stride=(3,), padding=(0,)", {shape({N, 4, 10})}), "[N, 4, 3]");
  EXPECT_EQ(output_text("avg_pool3d", "kernel_size=2, stride=1, padding=0", {shape({N, 4, 4, 4, 4})}),
            "[N, 4, 3, 3, 3]");
}

TEST(Pool, CeilModeFollowsPyTorch) {
  EXPECT_EQ(output_text("max_pool2d", "kernel_size=3, stride=2, ceil_mode=True", {shape({N, 4, 112, 110})}),
            "[N, 4, 56, 55]");
  EXPECT_EQ(output_text("max_pool2d", "kernel_size=2, stride=2, padding=1, ceil_mode=True", {shape({N, 4, 7, 7})}),
            "[N, 4, 4, 4]");
  EXPECT_EQ(output_text("max_pool2d", "kernel_size=1, stride=4, ceil_mode=True", {shape({N, 4, 6, 6})}),
            "[N, 4, 2, 2]");
  EXPECT_EQ(output_text("avg_pool2d", "kernel_size=3, stride=2, padding=1, ceil_mode=True", {shape({N, 4, 8, 8})}),
            "[N, 4, 5, 5]");
}

TEST(Pool, StridesByItsKernelWhereNoStrideIsGiven) {
  EXPECT_EQ(output_text("max_pool2d", "2", {shape({N, 4, 8, 6})}), "[N, 4, 4, 3]");
}

TEST(AdaptivePool, HasTheOutputSizeThatItNames) {
  EXPECT_EQ(output_text("adaptive_avg_pool1d", "output_size=5", {shape({N, 4, 10})}), "[N, 4, 5]");
  EXPECT_EQ(output_text("adaptive_avg_pool2d", "output_size=(1, 1)", {shape({N, 4, 10, 10})}), "[N, 4, 1, 1]");
  EXPECT_EQ(output_text("adaptive_avg_pool3d", "output_size=2", {shape({N, 4, 8, 8, 8})}), "[N, 4, 2, 2, 2]");
  EXPECT_EQ(output_text("adaptive_max_pool2d", "output_size=3", {shape({N, 4, 8, 9})}), "[N, 4, 3, 3]");
}

TEST(Pool, RefusesWhatItCannotKnow) {
  const std::vector<core::Shape> image = {shape({N, 4, 8, 8})};
  EXPECT_TRUE(fails(output("max_pool2d", "", image), ErrorCode::missing_information, 0, "kernel_size"));
  EXPECT_TRUE(fails(output("adaptive_avg_pool2d", "", image), ErrorCode::missing_information, 0, "output_size"));
  EXPECT_TRUE(fails(output("max_pool2d", "kernel_size=9", image), ErrorCode::missing_information, 0, "kernel"));
  EXPECT_TRUE(fails(output("max_pool2d", "kernel_size=0", image), ErrorCode::malformed_input, 0, "2^20"));
  EXPECT_TRUE(fails(output("adaptive_avg_pool2d", "output_size=0", image), ErrorCode::malformed_input, 0, "below 1"));
  EXPECT_TRUE(fails(output("max_pool1d", "kernel_size=2", image), ErrorCode::missing_information, 0, "3 axes"));
}

}  // namespace
}  // namespace gpumem::ops
