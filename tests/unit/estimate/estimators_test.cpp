#include "gpumem/estimate/estimators.hpp"

#include <set>

#include "expect.hpp"

namespace gpumem::estimate {
namespace {

TEST(Estimators, EachIsMadeUnderItsOwnName) {
  std::set<std::string_view> names;
  for (const EstimatorEntry& entry : estimators()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_FALSE(entry.description.empty()) << entry.name;
    const auto made = make_estimator(entry.name);
    ASSERT_TRUE(testing::succeeds(made)) << entry.name;
    EXPECT_EQ((*made)->name(), entry.name);
  }
  EXPECT_TRUE(names.contains("horus"));
}

TEST(Estimators, NoneIsCalledAll) {
  for (const EstimatorEntry& entry : estimators()) EXPECT_NE(entry.name, "all") << "the command line takes it for all";
}

TEST(MakeEstimator, ListsTheNames) {
  EXPECT_TRUE(testing::fails(make_estimator("horos"), core::ErrorCode::invalid_argument, 0,
                             "no estimator 'horos'; choose one of horus"));
}

}  // namespace
}  // namespace gpumem::estimate
