#include "gpumem/ml/mixture.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace gpumem::ml {
namespace {

TEST(Mixture, OfOneComponentIsLaplaces) {
  const Mixture one = {{2.0}, {1.0}, 0.5};
  EXPECT_NEAR(one.quantile(0.5), 2.0, 1e-9);
  EXPECT_NEAR(one.quantile(0.95), 2.0 - 0.5 * std::log(0.1), 1e-9);
  EXPECT_NEAR(one.quantile(0.05), 2.0 + 0.5 * std::log(0.1), 1e-9);
  EXPECT_NEAR(one.below(2.5), 1.0 - 0.5 * std::exp(-1.0), 1e-12);
}

TEST(Mixture, QuantilesAreWhereTheShareIs) {
  const Mixture mixture = {{-0.3, 0.0, 0.01, 0.8}, {0.2, 0.5, 0.1, 0.2}, 0.02};
  double last = -1e9;
  for (double share = 0.01; share < 1.0; share += 0.01) {
    const double at = mixture.quantile(share);
    EXPECT_NEAR(mixture.below(at), share, 1e-6) << share;
    EXPECT_GT(at, last) << share;
    last = at;
  }
}

TEST(Mixture, AComponentWithoutAShareChangesNothing) {
  const Mixture with = {{0.0, 5.0}, {1.0, 0.0}, 0.1};
  EXPECT_NEAR(with.quantile(0.9), Mixture({{0.0}, {1.0}, 0.1}).quantile(0.9), 1e-9);
}

TEST(Softmax, GivesSharesHoweverLargeTheLogits) {
  const std::vector<float> logits = {1000.0F, 1000.0F, -1000.0F};
  EXPECT_EQ(softmax(logits), (std::vector<double>{0.5, 0.5, 0.0}));
  EXPECT_TRUE(softmax({}).empty());
}

}  // namespace
}  // namespace gpumem::ml
