#include "gpumem/connect/pyramid.hpp"

#include "block_trees.hpp"

namespace gpumem::connect {
namespace {

using testing::ops_of;

TEST(Pyramid, ASeparableModuleHasAShortcut) {
  constexpr std::string_view kTree = R"(Net(
  (0): XceptionModule(
    (shortcut): Conv2d(3, 4, kernel_size=(1, 1), stride=(2, 2))
    (stack): Sequential(
      (0): ReLU()
      (1): Conv2d(3, 4, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1))
    )
  )
))";
  EXPECT_EQ(ops_of(kTree, {3, 8, 8}), "relu conv2d conv2d add");
}

}  // namespace
}  // namespace gpumem::connect
