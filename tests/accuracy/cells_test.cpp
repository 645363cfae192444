#include "cells.hpp"

#include <gtest/gtest.h>

namespace gpumem::accuracy {
namespace {

TEST(Cells, AreRounded) {
  EXPECT_EQ(percent(0.12345), "12.35 %");
  EXPECT_EQ(percent(1.0, 1), "100.0 %");
  EXPECT_EQ(percent(-0.00001), "0.00 %");
  EXPECT_EQ(percent(-0.5, 0), "-50 %");
  EXPECT_EQ(decimal(1.0004, 3), "1.000");
  EXPECT_EQ(whole(1841.4), "1,841");
  EXPECT_EQ(whole(-1234.0), "-1,234");
  EXPECT_EQ(whole(-0.2), "0");
}

TEST(Cells, TextOfOthersIsNoMarkup) {
  EXPECT_EQ(plain("a|b_c*<d>`[e]\\\n"), "a\\|b\\_c\\*\\<d\\>\\`\\[e\\]\\\\?");
  EXPECT_EQ(plain("runs.csv, 10 %"), "runs.csv, 10 %");
}

TEST(Cells, MakeRows) {
  EXPECT_EQ(row({"a", "", "b"}), "| a | | b |\n");
  EXPECT_EQ(rule(3, 1), "|---|---:|---:|\n");
}

}  // namespace
}  // namespace gpumem::accuracy
