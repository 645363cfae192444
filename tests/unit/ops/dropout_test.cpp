#include "gpumem/ops/pointwise.hpp"

#include "op_cases.hpp"

namespace gpumem::ops {
namespace {

TEST(Dropout, KeepsTheShapeAndHoldsNoParameters) {
  EXPECT_EQ(testing::output_text("dropout", "p=0.5, inplace=False", {testing::shape({testing::N, 7})}), "[N, 7]");
  EXPECT_EQ(testing::op("dropout").traits.parameters, nullptr);
}

TEST(StochasticDepth, IsAnOpOfItsOwn) {
  EXPECT_EQ(testing::output_text("stochastic_depth", "p=0.2, mode=row", {testing::shape({testing::N, 7, 7})}),
            "[N, 7, 7]");
  EXPECT_EQ(testing::op("stochastic_depth").traits.parameters, nullptr);
}

}  // namespace
}  // namespace gpumem::ops
