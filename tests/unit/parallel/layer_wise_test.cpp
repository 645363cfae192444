#include "gpumem/parallel/rank_graph.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace gpumem::parallel {
namespace {

using model::Layout;
using model::Ranks;

/// p0 to p9 by size, as in the source's own example, in another order.
std::vector<SharedParameter> ten_parameters() {
  std::vector<SharedParameter> parameters;
  for (const std::int64_t size : {9, 0, 8, 1, 7, 2, 6, 3, 5, 4}) parameters.push_back({size + 1, false});
  return parameters;
}

Layout layout_of(std::int64_t ranks, model::Rank rank) {
  Layout layout;
  layout.data_parallel = ranks;
  layout.rank = rank;
  return layout;
}

/// The sizes that a rank holds, less 1.
std::vector<std::int64_t> held_by(const Layout& layout) {
  const auto parameters = ten_parameters();
  const auto held = held_layer_by_layer(parameters, layout, 1);
  std::vector<std::int64_t> sizes;
  for (std::size_t at = 0; at < parameters.size(); ++at) {
    if (held[at]) sizes.push_back(parameters[at].elements - 1);
  }
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

TEST(LayerWise, ParametersGoToTheRanksForthAndBack) {
  using Sizes = std::vector<std::int64_t>;
  EXPECT_EQ(held_by(layout_of(4, {Ranks::one, 0})), (Sizes{0, 7, 8}));
  EXPECT_EQ(held_by(layout_of(4, {Ranks::one, 1})), (Sizes{1, 6, 9}));
  EXPECT_EQ(held_by(layout_of(4, {Ranks::one, 2})), (Sizes{2, 5}));
  EXPECT_EQ(held_by(layout_of(4, {Ranks::last, 0})), (Sizes{3, 4}));
  EXPECT_EQ(held_by(layout_of(4, {Ranks::max, 0})), (Sizes{1, 6, 9})) << "16 elements and 3, as many as none other";
  EXPECT_EQ(held_by(layout_of(1, {})).size(), 10U);
}

TEST(LayerWise, TensorParallelRanksHoldTheSameParameters) {
  Layout layout = layout_of(2, {Ranks::one, 0});
  layout.tensor_parallel = 2;
  const auto first = held_by(layout);
  layout.rank = {Ranks::one, 1};
  EXPECT_EQ(held_by(layout), first);
  layout.rank = {Ranks::one, 2};
  EXPECT_NE(held_by(layout), first);
}

TEST(LayerWise, ExpertsAreSharedApart) {
  const std::vector<SharedParameter> parameters = {{5, true}, {1, false}, {2, true}, {3, false}};
  const Layout layout = layout_of(2, {Ranks::one, 0});
  EXPECT_EQ(held_layer_by_layer(parameters, layout, 1), (std::vector<bool>{true, true, true, false}));
  EXPECT_EQ(held_layer_by_layer(parameters, layout, 2), (std::vector<bool>{false, true, true, false}));
}

}  // namespace
}  // namespace gpumem::parallel
