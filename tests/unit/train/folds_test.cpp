#include "../../../src/train/folds.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "expect.hpp"

namespace gpumem::train {
namespace {

using testing::fails;
using testing::succeeds;

/// 200 rows in groups of one to five; a quarter of the groups are of stratum 1.
std::vector<Grouped> rows() {
  std::vector<Grouped> all;
  for (std::uint64_t group = 0; all.size() < 200; ++group) {
    for (std::uint64_t row = 0; row <= group % 5; ++row) all.push_back({group * 977, group % 4 == 0 ? 1 : 0});
  }
  return all;
}

TEST(Folds, KeepGroupsTogetherAndSpreadTheRest) {
  const std::vector<Grouped> all = rows();
  const auto folds = assign_folds(all, 5, 1);
  ASSERT_TRUE(succeeds(folds));
  std::map<std::uint64_t, std::set<std::int64_t>> of_group;
  std::vector<std::int64_t> in_fold(5);
  std::vector<std::int64_t> of_stratum(5);
  for (std::size_t row = 0; row < all.size(); ++row) {
    const auto fold = static_cast<std::size_t>((*folds)[row]);
    of_group[all[row].group].insert((*folds)[row]);
    ++in_fold[fold];
    of_stratum[fold] += all[row].stratum;
  }
  for (const auto& [group, its_folds] : of_group) EXPECT_EQ(its_folds.size(), 1U) << group;
  const auto [least, most] = std::minmax_element(in_fold.begin(), in_fold.end());
  EXPECT_LE(*most - *least, 5);
  const auto [rarest, densest] = std::minmax_element(of_stratum.begin(), of_stratum.end());
  EXPECT_LE(*densest - *rarest, 5);
}

TEST(Folds, FollowFromTheSeedAlone) {
  EXPECT_EQ(*assign_folds(rows(), 5, 1), *assign_folds(rows(), 5, 1));
  EXPECT_NE(*assign_folds(rows(), 5, 1), *assign_folds(rows(), 5, 2));
}

TEST(Folds, NeedAsManyGroups) {
  const std::vector<Grouped> two = {{1, 0}, {2, 0}, {2, 0}};
  EXPECT_TRUE(succeeds(assign_folds(two, 2, 1)));
  EXPECT_TRUE(fails(assign_folds(two, 3, 1), core::ErrorCode::invalid_argument, 0, "hold 2 nets, too few for 3 folds"));
  EXPECT_TRUE(fails(assign_folds(two, 1, 1), core::ErrorCode::invalid_argument, 0, "2 folds or more"));
  EXPECT_TRUE(fails(assign_folds({}, 2, 1), core::ErrorCode::invalid_argument, 0, "0 nets"));
}

TEST(HoldBack, TakesWholeGroupsToAboutThisShare) {
  const std::vector<Grouped> all = rows();
  const auto held = hold_back(all, 0.2, 3);
  ASSERT_TRUE(succeeds(held));
  EXPECT_NEAR(static_cast<double>(std::count(held->begin(), held->end(), true)), 0.2 * 200, 5.0);
  std::map<std::uint64_t, std::set<bool>> of_group;
  for (std::size_t row = 0; row < all.size(); ++row) of_group[all[row].group].insert((*held)[row]);
  for (const auto& [group, sides] : of_group) EXPECT_EQ(sides.size(), 1U) << group;
  EXPECT_EQ(*held, *hold_back(all, 0.2, 3));
}

TEST(HoldBack, LeavesNoSideEmpty) {
  const std::vector<Grouped> one = {{1, 0}, {1, 0}};
  EXPECT_TRUE(fails(hold_back(one, 0.1, 1), core::ErrorCode::invalid_argument, 0, "too few nets"));
}

}  // namespace
}  // namespace gpumem::train
