#include "gpumem/connect/conv_blocks.hpp"

#include "block_trees.hpp"

namespace gpumem::connect {
namespace {

using testing::ops_of;

TEST(MixedConvolution, EachKernelReadsItsPartOfTheChannels) {
  constexpr std::string_view kTree = R"(Net(
  (0): MixedConv2d(
    (0): Conv2d(2, 2, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))
    (1): Conv2d(2, 2, kernel_size=(5, 5), stride=(1, 1), padding=(2, 2))
  )
))";
  EXPECT_EQ(ops_of(kTree, {4, 8, 8}), "slice conv2d slice conv2d concat");
}

}  // namespace
}  // namespace gpumem::connect
