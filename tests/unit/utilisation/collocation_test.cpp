#include "gpumem/utilisation/collocation.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

namespace gpumem::utilisation {
namespace {

TEST(Collocation, ActivitySaturates) {
  EXPECT_DOUBLE_EQ(combined_smact({}), 0.0);
  EXPECT_DOUBLE_EQ(combined_smact(std::array{0.4}), 0.4);
  EXPECT_DOUBLE_EQ(combined_smact(std::array{0.5, 0.5}), 0.75);
  EXPECT_DOUBLE_EQ(combined_smact(std::array{0.8, 0.5, 0.5}), 0.95);
  EXPECT_DOUBLE_EQ(combined_smact(std::array{1.0, 0.5}), 1.0);
}

TEST(Collocation, SharesOutsideOfTheirRangeAreTakenAsItsEnds) {
  EXPECT_DOUBLE_EQ(combined_smact(std::array{-0.5, 0.5}), 0.5);
  EXPECT_DOUBLE_EQ(combined_smact(std::array{1.5}), 1.0);
  EXPECT_DOUBLE_EQ(slowdown(std::array{1.5, 2.0}, Sharing::mps), 2.0);
}

TEST(Collocation, AJobAloneRunsAtFullSpeed) {
  for (const double share : {0.0, 1e-12, 0.001, 0.3, 0.99, 1.0}) {
    EXPECT_DOUBLE_EQ(slowdown(std::array{share}, Sharing::mps), 1.0) << share;
    EXPECT_DOUBLE_EQ(slowdown(std::array{share}, Sharing::streams), 1.0) << share;
  }
  EXPECT_DOUBLE_EQ(slowdown({}, Sharing::mps), 1.0);
}

TEST(Collocation, JobsThatFillTheGpuTakeTurns) {
  for (const Sharing sharing : {Sharing::mps, Sharing::streams}) {
    for (std::size_t jobs = 1; jobs <= 6; ++jobs) {
      EXPECT_DOUBLE_EQ(slowdown(std::vector(jobs, 1.0), sharing), static_cast<double>(jobs));
    }
  }
}

TEST(Collocation, TwoHalves) {
  EXPECT_NEAR(slowdown(std::array{0.5, 0.5}, Sharing::mps), 1.0 / 0.75, 1e-12);
  // Each has a kernel running for (0.5 + 0.7071) / 2 of the time.
  const double busy = 0.5 * (0.5 + std::sqrt(0.5));
  EXPECT_NEAR(slowdown(std::array{0.5, 0.5}, Sharing::streams), 2 * busy / (1 - (1 - busy) * (1 - busy)), 1e-12);
}

TEST(Collocation, SideBySideIsNeverSlowerThanInTurns) {
  for (double one = 0.0; one <= 1.0; one += 0.05) {
    for (double other = 0.0; other <= 1.0; other += 0.05) {
      const std::array shares = {one, other, 0.3};
      const double mps = slowdown(shares, Sharing::mps);
      EXPECT_LE(mps, slowdown(shares, Sharing::streams) + 1e-12);
      EXPECT_GE(mps, 1.0);
      EXPECT_LE(mps, 3.0);
    }
  }
}

TEST(Collocation, AFurtherJobMakesTheGpuBusierAndNobodyFaster) {
  std::vector<double> shares;
  double busy = 0.0;
  double slow = 1.0;
  for (const double share : {0.2, 0.6, 0.05, 0.9, 0.4}) {
    shares.push_back(share);
    EXPECT_GE(shared_smact(shares, Sharing::mps), busy);
    EXPECT_GE(slowdown(shares, Sharing::mps), slow);
    busy = shared_smact(shares, Sharing::mps);
    slow = slowdown(shares, Sharing::mps);
    EXPECT_LE(busy, 1.0);
    EXPECT_NEAR(busy, combined_smact(shares), 1e-12);  // work is conserved
    EXPECT_LE(shared_smact(shares, Sharing::streams), busy + 1e-12);
  }
}

}  // namespace
}  // namespace gpumem::utilisation
