// Expected figures: PyTorch 1.13.1.
#include "gpumem/ops/arithmetic.hpp"

#include "op_cases.hpp"

namespace gpumem::ops {
namespace {

using testing::N;
using testing::output;
using testing::output_text;
using testing::shape;

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

TEST(Reduce, DropsOrKeepsAxes) {
  EXPECT_EQ(output_text("mean", "dim=(2, 3)", {shape({N, 3, 4, 5})}), "[N, 3]");
  EXPECT_EQ(output_text("mean", "dim=(-1, -2), keepdim=True", {shape({N, 3, 4, 5})}), "[N, 3, 1, 1]");
  EXPECT_EQ(output_text("sum", "dim=1", {shape({N, 3, 4})}), "[N, 4]");
  EXPECT_EQ(output_text("sum", "", {shape({N, 3, 4})}), "[]");
  EXPECT_FALSE(output("sum", "dim=3", {shape({N, 3, 4})}));
}

TEST(Matmul, ContractsTheInnerAxes) {
  EXPECT_EQ(output_text("matmul", "", {shape({N, 8, 5, 64}), shape({N, 8, 64, 7})}), "[N, 8, 5, 7]");
  EXPECT_EQ(output_text("matmul", "", {shape({N, 8, 5, 64}), shape({64, 7})}), "[N, 8, 5, 7]");
  EXPECT_EQ(output_text("matmul", "", {shape({5, 64}), shape({N, 64, 7})}), "[N, 5, 7]");
  EXPECT_FALSE(output("matmul", "", {shape({N, 3, 5, 64}), shape({N, 8, 64, 7})}));
  EXPECT_FALSE(output("matmul", "", {shape({N, 5, 64}), shape({N, 63, 7})}));
  EXPECT_FALSE(output("matmul", "", {shape({N, 5, 64})}));
}

TEST(Reduce, OthersThanMeanAndSumDropTheSameAxes) {
  for (const char* name : {"var", "amax", "max_values", "vector_norm"}) {
    EXPECT_EQ(output_text(name, "dim=(2, 3), keepdim=True", {shape({N, 3, 4, 5})}), "[N, 3, 1, 1]") << name;
    EXPECT_EQ(output_text(name, "dim=1", {shape({N, 3, 4})}), "[N, 4]") << name;
    EXPECT_FALSE(output(name, "dim=3", {shape({N, 3, 4})})) << name;
  }
}

TEST(Broadcast, StretchesThreeTensors) {
  EXPECT_EQ(output_text("addcmul", "", {shape({3, 1}), shape({3, 1}), shape({N, 3, 7})}), "[N, 3, 7]");
  EXPECT_FALSE(output("addcmul", "", {shape({4}), shape({3, 1}), shape({N, 3, 7})}));
}

}  // namespace
}  // namespace gpumem::ops
