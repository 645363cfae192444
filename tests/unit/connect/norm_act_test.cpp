#include "gpumem/connect/conv_blocks.hpp"

#include "block_trees.hpp"

namespace gpumem::connect {
namespace {

using testing::ops_of;
using testing::parameters_of;

TEST(NormAct, TheNormComesBeforeWhatItHolds) {
  constexpr std::string_view kTree = R"(Net(
  (conv): Conv2d(3, 8, kernel_size=(1, 1), stride=(1, 1), bias=False)
  (bn): BatchNormAct2d(
    8, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True
    (drop): Identity()
    (act): ReLU(inplace=True)
  )
))";
  EXPECT_EQ(ops_of(kTree, {3, 4, 4}), "conv2d batch_norm identity relu");
}

TEST(NormAct, ArgumentsMayBeginWithABracket) {
  constexpr std::string_view kTree = R"(Net(
  (conv): Conv2d(3, 8, kernel_size=(1, 1), stride=(1, 1))
  (norm): LayerNormAct2d(
    (8,), eps=1e-06, elementwise_affine=True
    (drop): Identity()
    (act): GELU(approximate='none')
  )
))";
  EXPECT_EQ(ops_of(kTree, {3, 4, 4}), "conv2d permute layer_norm permute identity gelu");
  EXPECT_EQ(parameters_of(kTree, {3, 4, 4}), 3 * 8 + 8 + 16);
}

}  // namespace
}  // namespace gpumem::connect
