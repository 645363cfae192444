#include "gpumem/core/result.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace gpumem::core {
namespace {

Result<std::string> value() { return std::string("value"); }
Result<std::string> error() { return Error{ErrorCode::overflow, "too much", {}}; }

TEST(Result, HoldsAValue) {
  const Result<std::string> result = value();
  ASSERT_TRUE(result);
  EXPECT_TRUE(result.has_value());
  EXPECT_EQ(*result, "value");
  EXPECT_EQ(result->size(), 5U);
}

TEST(Result, HoldsAnError) {
  const Result<std::string> result = error();
  ASSERT_FALSE(result);
  EXPECT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ErrorCode::overflow);
  EXPECT_EQ(result.error().message, "too much");
}

TEST(Result, GivesUpAValueThatCannotBeCopied) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(3);
  const std::unique_ptr<int> taken = *std::move(result);
  EXPECT_EQ(*taken, 3);
}

TEST(Result, IsTrueForAnyValueEvenZero) {
  const Result<int> number = 0;
  EXPECT_TRUE(number) << "zero is a value";
}

TEST(Status, IsDoneOrAnError) {
  EXPECT_TRUE(Status(Done{}));
  EXPECT_FALSE(Status(Error{ErrorCode::overflow, "m", {}}));
}

}  // namespace
}  // namespace gpumem::core
