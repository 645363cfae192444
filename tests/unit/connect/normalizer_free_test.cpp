#include "gpumem/connect/conv_blocks.hpp"

#include "block_trees.hpp"

namespace gpumem::connect {
namespace {

using testing::ops_of;

TEST(NormalizerFree, TheShortcutReadsTheActivation) {
  constexpr std::string_view kTree = R"(Net(
  (0): NormFreeBlock(
    (downsample): Conv2d(3, 6, kernel_size=(1, 1), stride=(1, 1))
    (act1): ReLU(inplace=True)
    (conv1): Conv2d(3, 4, kernel_size=(1, 1), stride=(1, 1))
    (act2): ReLU(inplace=True)
    (conv2): Conv2d(4, 6, kernel_size=(1, 1), stride=(1, 1))
    (drop_path): Identity()
  )
))";
  EXPECT_EQ(ops_of(kTree, {3, 4, 4}), "relu mul conv2d conv2d relu conv2d identity mul add");
}

}  // namespace
}  // namespace gpumem::connect
