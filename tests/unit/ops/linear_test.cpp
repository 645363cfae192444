// Expected figures: PyTorch 1.13.1.
#include "gpumem/ops/linear.hpp"

#include "op_cases.hpp"

namespace gpumem::ops {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::N;
using testing::output;
using testing::output_text;
using testing::parameters;
using testing::shape;

TEST(Linear, ReplacesTheLastAxis) {
  EXPECT_EQ(output_text("linear", "in_features=10, out_features=7, bias=True", {shape({N, 10})}), "[N, 7]");
  EXPECT_EQ(output_text("linear", "in_features=10, out_features=7, bias=True", {shape({N, 5, 10})}), "[N, 5, 7]");
  EXPECT_EQ(output_text("bilinear", "in1_features=3, in2_features=4, out_features=5", {shape({N, 3}), shape({N, 4})}),
            "[N, 5]");
}

TEST(Linear, CountsTheParametersThatPyTorchCounts) {
  EXPECT_EQ(parameters("linear", "in_features=10, out_features=7, bias=True"), 77);
  EXPECT_EQ(parameters("linear", "in_features=10, out_features=7, bias=False"), 70);
  EXPECT_EQ(parameters("linear", "10, 7"), 77);
  EXPECT_EQ(parameters("bilinear", "in1_features=3, in2_features=4, out_features=5, bias=True"), 65);
  EXPECT_EQ(parameters("bilinear", "in1_features=3, in2_features=4, out_features=5, bias=False"), 60);
}

TEST(Linear, SaysWhatItMisses) {
  EXPECT_EQ(parameters("linear", "out_features=7"), -1);
  EXPECT_EQ(parameters("bilinear", "in1_features=3, out_features=7"), -1);
  EXPECT_TRUE(
      fails(output("linear", "in_features=7", {shape({N, 7})}), ErrorCode::missing_information, 0, "out_features"));
  EXPECT_TRUE(fails(output("linear", "7, 3", {core::Shape()}), ErrorCode::missing_information, 0, "one axis"));
}

TEST(Linear, CountsBeyondSixtyFourBitsOverflow) {
  EXPECT_EQ(parameters("linear", "in_features=9223372036854775807, out_features=2"), -2);
  EXPECT_EQ(parameters("linear", "in_features=-5, out_features=2"), -2);
}

TEST(Linear, CalledWithAWeightHasItsRows) {
  EXPECT_EQ(output_text("linear_function", "", {shape({N, 5, 10}), shape({7, 10}), shape({7})}), "[N, 5, 7]");
  EXPECT_FALSE(output("linear_function", "", {shape({N, 5, 10}), shape({10, 7})})) << "the weight is transposed";
  EXPECT_FALSE(output("linear_function", "", {shape({N, 5, 10})}));
}

}  // namespace
}  // namespace gpumem::ops
