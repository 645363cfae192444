#include "gpumem/architectures/residual_nets.hpp"

#include "block_trees.hpp"

namespace gpumem::architectures {
namespace {

using testing::ops_of;

TEST(SplitAttention, SplitsOfTheChannelsAreWeighted) {
  constexpr std::string_view kTree = R"(Net(
  (0): SplitAttn(
    (conv): Conv2d(4, 8, kernel_size=(1, 1), stride=(1, 1))
    (act0): ReLU(inplace=True)
    (fc1): Conv2d(4, 2, kernel_size=(1, 1), stride=(1, 1))
    (fc2): Conv2d(2, 8, kernel_size=(1, 1), stride=(1, 1))
    (rsoftmax): RadixSoftmax()
  )
))";
  EXPECT_EQ(ops_of(kTree, {4, 4, 4}), "conv2d relu unflatten sum mean conv2d conv2d reshape softmax mul sum");
}

TEST(SplitAttention, EachConvolutionOfAHierarchyReadsWhatTheOneBeforeItLeft) {
  constexpr std::string_view kTree = R"(Net(
  (0): Bottle2neck(
    (conv1): Conv2d(6, 6, kernel_size=(1, 1), stride=(1, 1))
    (bn1): BatchNorm2d(6)
    (convs): ModuleList(
      (0): Conv2d(2, 2, kernel_size=(1, 1), stride=(1, 1))
      (1): Conv2d(2, 2, kernel_size=(1, 1), stride=(1, 1))
    )
    (bns): ModuleList(
      (0): BatchNorm2d(2)
      (1): BatchNorm2d(2)
    )
    (conv3): Conv2d(6, 6, kernel_size=(1, 1), stride=(1, 1))
    (bn3): BatchNorm2d(6)
    (relu): ReLU(inplace=True)
  )
))";
  EXPECT_EQ(
      ops_of(kTree, {6, 4, 4}),
      "conv2d batch_norm relu split item item item conv2d batch_norm relu add conv2d batch_norm relu concat conv2d "
      "batch_norm add relu");
}

}  // namespace
}  // namespace gpumem::architectures
