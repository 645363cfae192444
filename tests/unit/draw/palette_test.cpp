#include "draw/palette.hpp"

#include <gtest/gtest.h>

#include <set>

namespace gpumem::draw {
namespace {

TEST(LookOf, NoTwoOfTwentyEightSeriesLookAlike) {
  std::set<std::pair<std::string_view, Dot>> looks;
  for (std::size_t series = 0; series < 28; ++series) looks.emplace(look_of(series).colour, look_of(series).dot);
  EXPECT_EQ(looks.size(), 28U);
  EXPECT_EQ(look_of(0).dot, Dot::circle);
  EXPECT_EQ(look_of(28).colour, look_of(0).colour);
}

}  // namespace
}  // namespace gpumem::draw
