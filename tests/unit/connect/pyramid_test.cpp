#include "gpumem/connect/pyramid.hpp"
#include "block_trees.hpp"

namespace gpumem::connect {
namespace {

using testing::ops_of;
using testing::parameters_of;

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

TEST(HighResolution, BranchesExchangeWhatTheyMade) {
  constexpr std::string_view kTree = R"(HighResolutionNet(
  (conv1): Conv2d(3, 4, kernel_size=(1, 1), stride=(1, 1))
  (transition1): ModuleList(
    (0): Identity()
    (1): Conv2d(4, 8, kernel_size=(1, 1), stride=(2, 2))
  )
  (stage2): Sequential(
    (0): HighResolutionModule(
      (branches): ModuleList(
        (0): Conv2d(4, 4, kernel_size=(1, 1), stride=(1, 1))
        (1): Conv2d(8, 8, kernel_size=(1, 1), stride=(1, 1))
      )
      (fuse_layers): ModuleList(
        (0): ModuleList(
          (0): Identity()
          (1): Sequential(
            (0): Conv2d(8, 4, kernel_size=(1, 1), stride=(1, 1))
            (1): Upsample(scale_factor=2.0, mode='nearest')
          )
        )
      )
      (fuse_act): ReLU()
    )
  )
))";
  EXPECT_EQ(ops_of(kTree, {3, 4, 4}), "conv2d identity conv2d conv2d conv2d identity conv2d upsample add relu");
}

TEST(Aggregation, AllThatWasMadeIsJoinedOnce) {
  constexpr std::string_view kTree = R"(Net(
  (0): OsaBlock(
    (conv_mid): SequentialAppendList(
      (0): Conv2d(3, 4, kernel_size=(1, 1), stride=(1, 1))
      (1): Conv2d(4, 4, kernel_size=(1, 1), stride=(1, 1))
    )
    (conv_concat): Conv2d(11, 6, kernel_size=(1, 1), stride=(1, 1))
  )
))";
  EXPECT_EQ(ops_of(kTree, {3, 4, 4}), "conv2d conv2d concat conv2d");
}

TEST(Aggregation, HalfOfTheChannelsGoThroughTheBlocks) {
  constexpr std::string_view kTree = R"(Net(
  (0): CrossStage3(
    (conv_down): Identity()
    (conv_exp): Conv2d(3, 8, kernel_size=(1, 1), stride=(1, 1))
    (blocks): Sequential(
      (0): Conv2d(4, 4, kernel_size=(1, 1), stride=(1, 1))
    )
    (conv_transition): Conv2d(8, 6, kernel_size=(1, 1), stride=(1, 1))
  )
))";
  EXPECT_EQ(ops_of(kTree, {3, 4, 4}), "identity conv2d split item item conv2d concat conv2d");
}

}  // namespace
}  // namespace gpumem::connect
