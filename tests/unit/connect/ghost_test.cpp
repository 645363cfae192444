#include "gpumem/connect/conv_blocks.hpp"

#include "block_trees.hpp"

namespace gpumem::connect {
namespace {

using testing::ops_of;

TEST(Ghost, TheCheapHalfReadsTheFirst) {
  constexpr std::string_view kTree = R"(Net(
  (0): GhostModule(
    (primary_conv): Conv2d(3, 4, kernel_size=(1, 1), stride=(1, 1))
    (cheap_operation): Conv2d(4, 4, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), groups=4)
  )
))";
  EXPECT_EQ(ops_of(kTree, {3, 4, 4}), "conv2d conv2d concat");
}

}  // namespace
}  // namespace gpumem::connect
