#include <string>

#include "block_trees.hpp"
#include "gpumem/connect/inception.hpp"

namespace gpumem::connect {
namespace {

using testing::ops_of;

TEST(InceptionV4, BranchesAreReadSideBySide) {
  constexpr std::string_view kTree = R"(Net(
  (0): InceptionC(
    (branch0): Conv2d(8, 3, kernel_size=(1, 1), stride=(1, 1))
    (branch1_0): Conv2d(8, 4, kernel_size=(1, 1), stride=(1, 1))
    (branch1_1a): Conv2d(4, 2, kernel_size=(1, 3), stride=(1, 1), padding=(0, 1))
    (branch1_1b): Conv2d(4, 2, kernel_size=(3, 1), stride=(1, 1), padding=(1, 0))
    (branch2): Sequential(
      (0): AvgPool2d(kernel_size=3, stride=1, padding=1)
      (1): Conv2d(8, 1, kernel_size=(1, 1), stride=(1, 1))
    )
  )
  (1): BatchNorm2d(8, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)
))";
  EXPECT_EQ(ops_of(kTree, {8, 6, 6}), "conv2d conv2d conv2d conv2d avg_pool2d conv2d concat batch_norm");
}

TEST(InceptionV4, AConvolutionBesideAPooling) {
  constexpr std::string_view kTree = R"(Net(
  (0): Mixed3a(
    (maxpool): MaxPool2d(kernel_size=3, stride=2, padding=0, dilation=1, ceil_mode=False)
    (conv): Conv2d(4, 6, kernel_size=(3, 3), stride=(2, 2), bias=False)
  )
  (1): BatchNorm2d(10, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)
))";
  EXPECT_EQ(ops_of(kTree, {4, 9, 9}), "max_pool2d conv2d concat batch_norm");
}

TEST(InceptionV4, ResidualBlocksProjectTheirBranches) {
  constexpr std::string_view kTree = R"(Net(
  (0): Block8(
    (branch0): Conv2d(8, 3, kernel_size=(1, 1), stride=(1, 1))
    (branch1): Conv2d(8, 3, kernel_size=(1, 1), stride=(1, 1))
    (conv2d): Conv2d(6, 8, kernel_size=(1, 1), stride=(1, 1))
    (relu): ReLU()
  )
))";
  EXPECT_EQ(ops_of(kTree, {8, 5, 5}), "conv2d conv2d concat conv2d mul add relu");
}

}  // namespace
}  // namespace gpumem::connect
