#include "gpumem/ops/loss.hpp"

#include "op_cases.hpp"

namespace gpumem::ops {
namespace {

TEST(Loss, IsAScalar) {
  for (const Op& loss : kLossOps) {
    EXPECT_EQ(testing::output_text(loss.traits.name, "", {testing::shape({testing::N, 7})}), "[]") << loss.traits.name;
  }
}

}  // namespace
}  // namespace gpumem::ops
