#include "gpumem/connect/conv_blocks.hpp"

#include "block_trees.hpp"

namespace gpumem::connect {
namespace {

using testing::ops_of;
using testing::parameters_of;

TEST(RepBlock, BranchesAreSummed) {
  constexpr std::string_view kTree = R"(Net(
  (0): RepVggBlock(
    (identity): BatchNorm2d(3, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)
    (conv_kxk): Conv2d(3, 3, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))
    (conv_1x1): Conv2d(3, 3, kernel_size=(1, 1), stride=(1, 1))
    (act): ReLU(inplace=True)
  )
))";
  EXPECT_EQ(ops_of(kTree, {3, 4, 4}), "batch_norm conv2d add conv2d add relu");
}

}  // namespace
}  // namespace gpumem::connect
