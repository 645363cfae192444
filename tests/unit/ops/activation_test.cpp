#include "gpumem/ops/activation.hpp"

#include "op_cases.hpp"

namespace gpumem::ops {
namespace {

using testing::N;
using testing::output_text;
using testing::parameters;
using testing::shape;

TEST(Activation, KeepsTheShape) {
  for (const Op& activation : kActivationOps) {
    if (activation.traits.name == "glu") continue;
    EXPECT_EQ(output_text(activation.traits.name, "", {shape({N, 7})}), "[N, 7]") << activation.traits.name;
  }
}

TEST(Glu, HalvesAnAxis) {
  EXPECT_EQ(output_text("glu", "dim=-1", {shape({N, 6, 8})}), "[N, 6, 4]");
  EXPECT_EQ(output_text("glu", "dim=1", {shape({N, 6, 8})}), "[N, 3, 8]");
}

TEST(Glu, RefusesAnOddOrMissingAxis) {
  EXPECT_EQ(output_text("glu", "dim=-1", {shape({N, 7})}),
            "cannot take an input of shape [N, 7]: it needs an even axis to halve");
  EXPECT_EQ(output_text("glu", "dim=2", {shape({N, 8})}),
            "cannot take an input of shape [N, 8]: it needs an even axis to halve");
}

TEST(Prelu, LearnsOneSlopeOrOneAChannel) {
  EXPECT_EQ(parameters("prelu", ""), 1);
  EXPECT_EQ(parameters("prelu", "num_parameters=8"), 8);
}

TEST(Activation, OthersHoldNoParameters) {
  for (const Op& activation : kActivationOps) {
    if (activation.traits.name == "prelu") continue;
    EXPECT_EQ(activation.traits.parameters, nullptr) << activation.traits.name;
  }
}

}  // namespace
}  // namespace gpumem::ops
