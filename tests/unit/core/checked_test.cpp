#include "gpumem/core/bytes.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace gpumem::core {
namespace {

constexpr std::int64_t kMost = INT64_MAX;

TEST(Checked, StartsAtZero) { EXPECT_EQ(Checked().value(), 0); }

TEST(Checked, AddsAndMultiplies) {
  EXPECT_EQ((Checked(6) + Checked(7)).value(), 13);
  EXPECT_EQ((Checked(6) * Checked(7)).value(), 42);
}

TEST(Checked, HoldsTheLargestCount) {
  EXPECT_EQ((Checked(kMost - 1) + Checked(1)).value(), kMost);
  EXPECT_EQ((Checked(kMost) * Checked(1)).value(), kMost);
}

TEST(Checked, IsInvalidBeyondTheLargestCount) {
  EXPECT_EQ((Checked(kMost) + Checked(1)).value(), std::nullopt);
  EXPECT_EQ((Checked(kMost / 2 + 1) * Checked(2)).value(), std::nullopt);
  EXPECT_EQ((Checked(std::int64_t{1} << 32) * Checked(std::int64_t{1} << 31)).value(), std::nullopt);
}

TEST(Checked, StaysInvalidOnceItWas) {
  Checked count = Checked(kMost) + Checked(1);
  count *= 0;
  EXPECT_FALSE(count.valid());
  EXPECT_FALSE((Checked(1) + count).valid());
}

TEST(Checked, RefusesNegativeCounts) {
  EXPECT_FALSE(Checked(-1).valid());
  EXPECT_FALSE((Checked(5) + Checked(-1)).valid());
  EXPECT_FALSE(Checked(INT64_MIN).valid());
}

static_assert((Checked(2) * Checked(3) + Checked(4)).value() == 10, "it computes at compile time");

}  // namespace
}  // namespace gpumem::core
