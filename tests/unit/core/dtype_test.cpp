#include "gpumem/core/shape.hpp"

#include <gtest/gtest.h>

namespace gpumem::core {
namespace {

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

}  // namespace
}  // namespace gpumem::core
