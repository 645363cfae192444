#include "gpumem/ops/parameter.hpp"

#include "op_cases.hpp"

namespace gpumem::ops {
namespace {

TEST(Parameter, NoTensorLeavesIt) { EXPECT_EQ(testing::op("parameter").output_shape, nullptr); }

TEST(Parameter, OnlyAPrintedCountTellsItsSize) { EXPECT_EQ(testing::parameters("parameter", "3, 4"), -1); }

}  // namespace
}  // namespace gpumem::ops
