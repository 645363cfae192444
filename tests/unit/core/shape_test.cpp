#include <gtest/gtest.h>

#include "expect.hpp"
#include "gpumem/core/shape.hpp"

namespace gpumem::core {
namespace {

using testing::N;
using testing::shape;

TEST(DType, HasTheSizeThatPyTorchGivesIt) {
  EXPECT_EQ(element_size(DType::float64), 8);
  EXPECT_EQ(element_size(DType::float32), 4);
  EXPECT_EQ(element_size(DType::bfloat16), 2);
  EXPECT_EQ(element_size(DType::float16), 2);
  EXPECT_EQ(element_size(DType::int64), 8);
  EXPECT_EQ(element_size(DType::uint8), 1);
  EXPECT_EQ(element_size(DType::boolean), 1);
}

TEST(DType, IsFoundByItsOwnName) {
  for (const DTypeFacts& row : kDTypes) {
    EXPECT_EQ(dtype_from(row.name), row.dtype) << row.name;
    EXPECT_EQ(to_string(row.dtype), row.name);
  }
}

TEST(DType, UnknownNamesAreNoType) {
  EXPECT_EQ(dtype_from("torch.float32"), std::nullopt);
  EXPECT_EQ(dtype_from("Float32"), std::nullopt);
  EXPECT_EQ(dtype_from(""), std::nullopt);
}

TEST(Shape, CountsElementsAtABatchSize) {
  EXPECT_EQ(shape({N, 64, 7, 7}).elements(1)->value(), 3136);
  EXPECT_EQ(shape({N, 64, 7, 7}).elements(32)->value(), 100352);
  EXPECT_EQ(shape({Dim::batch(64), 49, 96}).elements(2)->value(), 602112);
}

TEST(Shape, WithoutABatchDoesNotGrow) { EXPECT_EQ(shape({5, 7}).elements(1000)->value(), 35); }

TEST(Shape, OfAScalarHasOneElement) { EXPECT_EQ(Shape().elements(32)->value(), 1); }

TEST(Shape, WithAnUnknownDimensionHasNoCount) { EXPECT_FALSE(shape({N, Dim::unknown()}).elements(1).has_value()); }

TEST(Shape, BeyondSixtyFourBitsIsInvalid) {
  EXPECT_FALSE(shape({N, INT64_MAX}).elements(2)->valid());
  EXPECT_TRUE(shape({N, INT64_MAX}).elements(1)->valid());
}

TEST(Shape, TakesAtMostEightDimensions) {
  Shape full;
  for (std::int64_t axis = 0; axis < 8; ++axis) EXPECT_TRUE(full.push_back(Dim::fixed(axis + 1)));
  EXPECT_FALSE(full.push_back(Dim::fixed(9)));
  EXPECT_EQ(full.rank(), 8U);
  EXPECT_EQ(full.elements(1)->value(), 40320);
}

TEST(Shape, ComparesSizesKindsAndRank) {
  EXPECT_EQ(shape({N, 3}), shape({N, 3}));
  EXPECT_NE(shape({N, 3}), shape({1, 3}));
  EXPECT_NE(shape({N, 3}), shape({N, 3, 1}));
  EXPECT_NE(shape({N, 3}), shape({N, 4}));
}

TEST(Shape, SetReplacesADimension) {
  Shape changed = shape({N, 3});
  changed.set(1, Dim::unknown());
  EXPECT_EQ(changed, shape({N, Dim::unknown()}));
}

TEST(Shape, PrintsTheBatchAsN) {
  EXPECT_EQ(to_string(shape({N, 64, 112})), "[N, 64, 112]");
  EXPECT_EQ(to_string(shape({Dim::batch(64), Dim::unknown()})), "[64N, ?]");
  EXPECT_EQ(to_string(Shape()), "[]");
}

}  // namespace
}  // namespace gpumem::core
