#include "gpumem/ml/network.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace gpumem::ml {
namespace {

TEST(Mixture, OfOneComponentIsALaplaceDistribution) {
  const Mixture mixture = {{0.3}, {1.0}, {0.1}};
  EXPECT_NEAR(mixture.quantile(0.5), 0.3, 1e-9);
  EXPECT_NEAR(mixture.quantile(0.95), 0.3 + 0.1 * std::log(10.0), 1e-9);
  EXPECT_NEAR(mixture.quantile(0.025), 0.3 - 0.1 * std::log(20.0), 1e-9);
  EXPECT_NEAR(mixture.below(0.3), 0.5, 1e-12);
}

TEST(Mixture, ItsComponentsMayBeOfDifferentScale) {
  const Mixture mixture = {{0.0, 0.0, 1.0}, {0.6, 0.3, 0.1}, {0.01, 0.5, 0.02}};
  for (const double share : {0.025, 0.5, 0.9, 0.975}) {
    EXPECT_NEAR(mixture.below(mixture.quantile(share)), share, 1e-8) << share;
  }
  // Far out only the wide one is left.
  EXPECT_NEAR(mixture.below(-2.0), 0.3 * 0.5 * std::exp(-4.0), 1e-12);
}

TEST(Mixture, QuantilesUpToALimitAreThoseOfWhatLiesThere) {
  const Mixture mixture = {{0.0, 0.0, 1.0}, {0.6, 0.3, 0.1}, {0.01, 0.5, 0.02}};
  for (const double share : {0.025, 0.5, 0.975}) {
    EXPECT_NEAR(mixture.quantile_up_to(100.0, share), mixture.quantile(share), 1e-8) << share;
    const double value = mixture.quantile_up_to(0.1, share);
    EXPECT_LT(value, 0.1);
    EXPECT_NEAR(mixture.below(value) / mixture.below(0.1), share, 1e-7) << share;
  }
  EXPECT_EQ(mixture.quantile_up_to(-1e6, 0.5), -1e6);  // it has nothing there
}

TEST(Mixture, TheRangeOfWhatFitsHasTheWholeMixturesUpperBound) {
  const Mixture mixture = {{0.0, 0.0, 1.0}, {0.6, 0.3, 0.1}, {0.01, 0.5, 0.02}};
  const MixtureRange whole = range_of(mixture, {0.025, 0.95}, std::nullopt);
  EXPECT_EQ(whole.lower, mixture.quantile(0.025));
  EXPECT_EQ(whole.expected, mixture.quantile(0.5));
  EXPECT_EQ(whole.upper, mixture.quantile(0.95));
  const MixtureRange fits = range_of(mixture, {0.025, 0.95}, -0.05);
  EXPECT_EQ(fits.lower, mixture.quantile_up_to(-0.05, 0.025));
  EXPECT_EQ(fits.expected, mixture.quantile_up_to(-0.05, 0.5));
  EXPECT_LT(fits.expected, -0.05);
  EXPECT_EQ(fits.upper, whole.upper);
}

TEST(Mixture, SharesAreThoseOfTheLogits) {
  const std::vector<float> logits = {1000.0F, 1000.0F, -1000.0F};
  EXPECT_EQ(softmax(logits), (std::vector<double>{0.5, 0.5, 0.0}));
}

}  // namespace
}  // namespace gpumem::ml
