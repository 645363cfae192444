#include "random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

namespace gpumem::train {
namespace {

constexpr int kDraws = 20000;

TEST(Random, GivesTheSameOnEveryPlatform) {
  Random random(1, 2);
  EXPECT_EQ(random.next(), 9366171507420456997U);
  std::vector<std::int64_t> drawn;
  for (int count = 0; count < 6; ++count) drawn.push_back(random.log_whole(1, 1000000));
  EXPECT_EQ(drawn, (std::vector<std::int64_t>{23, 81544, 647810, 144, 16561, 119}));
}

TEST(Random, StreamsAndSeedsDiffer) {
  EXPECT_EQ(Random(7, 3).next(), Random(7, 3).next());
  EXPECT_NE(Random(7, 3).next(), Random(7, 4).next());
  EXPECT_NE(Random(7, 3).next(), Random(8, 3).next());
  EXPECT_NE(Random(7, 3).next(), Random(3, 7).next());
}

TEST(Random, WholeNumbersAreEvenlySpreadToBothEnds) {
  Random random(1, 1);
  std::array<int, 5> met{};
  for (int count = 0; count < kDraws; ++count) ++met.at(static_cast<std::size_t>(random.whole(3, 7) - 3));
  for (const int times : met) EXPECT_NEAR(times, kDraws / 5, kDraws / 50);
  EXPECT_EQ(random.whole(9, 9), 9);
}

TEST(Random, LogarithmsAreEvenlySpreadToBothEnds) {
  Random random(1, 1);
  int below = 0;
  std::int64_t least = 1 << 20;
  std::int64_t most = 0;
  for (int count = 0; count < kDraws; ++count) {
    const std::int64_t drawn = random.log_whole(10, 999);
    least = std::min(least, drawn);
    most = std::max(most, drawn);
    below += drawn < 100 ? 1 : 0;
  }
  EXPECT_EQ(least, 10);
  EXPECT_EQ(most, 999);
  EXPECT_NEAR(below, kDraws / 2, kDraws / 50);  // a decade of two
  EXPECT_EQ(random.log_whole(5, 5), 5);
}

TEST(Random, CoinsAreFair) {
  Random random(1, 1);
  int heads = 0;
  for (int count = 0; count < kDraws; ++count) heads += random.coin() ? 1 : 0;
  EXPECT_NEAR(heads, kDraws / 2, kDraws / 50);
}

}  // namespace
}  // namespace gpumem::train
