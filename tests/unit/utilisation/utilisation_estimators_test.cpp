#include "gpumem/utilisation/utilisation_estimators.hpp"

#include <gtest/gtest.h>

#include "graphs.hpp"

namespace gpumem::utilisation {
namespace {

using testing::fails;
using testing::succeeds;

TEST(UtilisationEstimators, EachIsMadeByItsName) {
  for (const UtilisationEstimatorEntry& entry : utilisation_estimators()) {
    const auto estimator = make_utilisation_estimator(entry.name);
    ASSERT_TRUE(succeeds(estimator)) << entry.name;
    EXPECT_EQ((*estimator)->name(), entry.name);
    EXPECT_FALSE(entry.description.empty());
  }
}

TEST(UtilisationEstimators, AnUnknownNameListsThem) {
  EXPECT_TRUE(fails(make_utilisation_estimator("guess"), core::ErrorCode::invalid_argument, 0,
                    "choose one of utilisation-mlp, utilisation-bins, roofline"));
}

TEST(UtilisationEstimators, LearnedOnesTakeAModelOfTheirKind) {
  EXPECT_TRUE(succeeds(make_utilisation_estimator("utilisation-mlp", "utilisation-mlp-cnn")));
  EXPECT_TRUE(fails(make_utilisation_estimator("utilisation-mlp", "gpumemnet-mlp-mlp"),
                    core::ErrorCode::invalid_argument, 0, "does not tell a GPU's counters"));
  EXPECT_TRUE(fails(make_utilisation_estimator("utilisation-bins", "utilisation-mlp-cnn"),
                    core::ErrorCode::invalid_argument, 0, "no bins of smact"));
}

}  // namespace
}  // namespace gpumem::utilisation
