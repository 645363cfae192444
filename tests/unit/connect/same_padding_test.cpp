#include "gpumem/connect/infer_shapes.hpp"

#include "block_trees.hpp"

namespace gpumem::connect {
namespace {

using testing::ops_of;
using testing::parameters_of;

TEST(SamePadding, AStridedConvolutionLeavesHalfOfItsInputRoundedUp) {
  constexpr std::string_view kTree = R"(Net(
  (conv): Conv2dSame(3, 8, kernel_size=(3, 3), stride=(2, 2), bias=False)
))";
  EXPECT_EQ(ops_of(kTree, {3, 8, 8}), "pad conv2d");
  const auto even = testing::wired_tree(kTree, {3, 8, 8});
  ASSERT_TRUE(testing::succeeds(even));
  EXPECT_EQ(core::to_string(even->outputs(1)[0]), "[N, 8, 4, 4]");
  const auto odd = testing::wired_tree(kTree, {3, 7, 7});
  ASSERT_TRUE(testing::succeeds(odd));
  EXPECT_EQ(core::to_string(odd->outputs(1)[0]), "[N, 8, 4, 4]");
}

TEST(SamePadding, NothingIsPaddedWhereTheWindowFits) {
  constexpr std::string_view kTree = R"(Net(
  (conv): Conv2dSame(3, 8, kernel_size=(1, 1), stride=(1, 1), bias=False)
))";
  EXPECT_EQ(ops_of(kTree, {3, 8, 8}), "conv2d");
}

}  // namespace
}  // namespace gpumem::connect
