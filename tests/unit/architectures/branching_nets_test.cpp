#include "gpumem/architectures/branching_nets.hpp"

#include <string>

#include "block_trees.hpp"

namespace gpumem::architectures {
namespace {

using testing::ops_of;
using testing::parameters_of;

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

TEST(DualPath, TwoConvolutionsMakeThePathsOfTheSmallNets) {
  constexpr std::string_view kTree = R"(Net(
  (0): DualPathBlock(
    (c1x1_w_s1): Conv2d(8, 12, kernel_size=(1, 1), stride=(1, 1), bias=False)
    (c1x1_a): Conv2d(8, 4, kernel_size=(1, 1), stride=(1, 1), bias=False)
    (c3x3_b): Conv2d(4, 4, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), bias=False)
    (c1x1_c): CatBnAct(
      (bn): BatchNorm2d(4, eps=0.001, momentum=0.1, affine=True, track_running_stats=True)
    )
    (c1x1_c1): Conv2d(4, 8, kernel_size=(1, 1), stride=(1, 1), bias=False)
    (c1x1_c2): Conv2d(4, 2, kernel_size=(1, 1), stride=(1, 1), bias=False)
  )
  (1): BatchNorm2d(14, eps=0.001, momentum=0.1, affine=True, track_running_stats=True)
))";
  EXPECT_EQ(ops_of(kTree, {8, 5, 5}),
            "conv2d conv2d conv2d batch_norm conv2d slice add conv2d slice concat concat batch_norm");
}

TEST(Dla, ABlockOfRes2NetSplitsItsChannels) {
  constexpr std::string_view kBlock = R"(    (conv1): Conv2d(8, 8, kernel_size=(1, 1), stride=(1, 1), bias=False)
      (bn1): BatchNorm2d(8, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)
      (convs): ModuleList(
        (0): Conv2d(4, 4, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), bias=False)
      )
      (bns): ModuleList(
        (0): BatchNorm2d(4, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)
      )
      (conv3): Conv2d(8, 8, kernel_size=(1, 1), stride=(1, 1), bias=False)
      (bn3): BatchNorm2d(8, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)
      (relu): ReLU(inplace=True)
    )
)";
  const std::string block(kBlock);
  const std::string tree = "Net(\n  (0): DlaTree(\n    (tree1): DlaBottle2neck(\n  " + block +
                           "    (tree2): DlaBottle2neck(\n  " + block + R"(    (root): DlaRoot(
      (conv): Conv2d(16, 8, kernel_size=(1, 1), stride=(1, 1), bias=False)
      (bn): BatchNorm2d(8, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)
      (relu): ReLU(inplace=True)
    )
  )
))";
  const std::string each =
      "conv2d batch_norm relu split item item conv2d batch_norm relu concat conv2d batch_norm add relu ";
  EXPECT_EQ(ops_of(tree, {8, 5, 5}), each + each + "concat conv2d batch_norm relu");
}

/// A DlaTree of two convolutions of 8 channels and a root that reads `reads`.
std::string dla_tree(const std::string& name, int reads) {
  const std::string block = R"( DlaBasic(
        (conv1): Conv2d(8, 8, kernel_size=(1, 1), stride=(1, 1), bias=False)
      )
)";
  return "    (" + name + "): DlaTree(\n      (tree1):" + block + "      (tree2):" + block + R"(      (root): DlaRoot(
        (conv): Conv2d()" +
         std::to_string(reads) + R"(, 8, kernel_size=(1, 1), stride=(1, 1), bias=False)
      )
    )
)";
}

TEST(Dla, TheInputOfALevelOfTreesJoinsAtItsLastRoot) {
  const auto level = [](int reads) {
    return "Net(\n  (0): DlaTree(\n" + dla_tree("tree1", 16) + dla_tree("tree2", reads) + "  )\n)\n";
  };
  const std::string tree = "conv2d add conv2d add concat conv2d";
  EXPECT_EQ(ops_of(level(24), {8, 5, 5}), tree + " " + tree);
  EXPECT_EQ(ops_of(level(32), {8, 5, 5}), tree + " " + tree);  // and the input
  EXPECT_NE(ops_of(level(40), {8, 5, 5}), tree + " " + tree);
}

}  // namespace
}  // namespace gpumem::architectures
