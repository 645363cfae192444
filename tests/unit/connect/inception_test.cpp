#include <string>

#include "block_trees.hpp"
#include "gpumem/connect/inception.hpp"

namespace gpumem::connect {
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

TEST(Branches, ANormBeforeEachMixerBeginsABranch) {
  constexpr std::string_view kTree = R"(Net(
  (0): MixerBlock(
    (norm1): LayerNorm((8,), eps=1e-06, elementwise_affine=True)
    (mlp_tokens): Mlp(
      (fc1): Linear(in_features=4, out_features=6, bias=True)
      (fc2): Linear(in_features=6, out_features=4, bias=True)
    )
    (drop_path): Identity()
    (norm2): LayerNorm((8,), eps=1e-06, elementwise_affine=True)
    (mlp_channels): Mlp(
      (fc1): Linear(in_features=8, out_features=16, bias=True)
      (fc2): Linear(in_features=16, out_features=8, bias=True)
    )
  )
))";
  EXPECT_EQ(ops_of(kTree, {4, 8}),
            "layer_norm permute linear linear permute identity add layer_norm linear linear add");
}

TEST(Branches, ANormBehindTheLastMixerEndsOne) {
  constexpr std::string_view kTree = R"(Net(
  (0): ResPostBlock(
    (attn): Linear(in_features=8, out_features=8, bias=True)
    (norm1): LayerNorm((8,), eps=1e-06, elementwise_affine=True)
    (mlp): Linear(in_features=8, out_features=8, bias=True)
    (norm2): LayerNorm((8,), eps=1e-06, elementwise_affine=True)
  )
))";
  EXPECT_EQ(ops_of(kTree, {4, 8}), "linear layer_norm add linear layer_norm add");
}

TEST(Branches, BeitScalesEachOfThemByAParameter) {
  const auto tree = [](const std::string& model) {
    return model + R"((
  (patch_embed): PatchEmbed(
    (proj): Conv2d(3, 8, kernel_size=(4, 4), stride=(4, 4))
    (norm): Identity()
  )
  (blocks): ModuleList(
    (0): Block(
      (norm1): LayerNorm((8,), eps=1e-06, elementwise_affine=True)
      (attn): Linear(in_features=8, out_features=8, bias=True)
      (norm2): LayerNorm((8,), eps=1e-06, elementwise_affine=True)
      (mlp): Linear(in_features=8, out_features=8, bias=True)
    )
  )
)
)";
  };
  EXPECT_EQ(testing::outputs_of(tree("Beit"), {3, 8, 8}, "mul"), "[N, 5, 8] [N, 5, 8]");
  EXPECT_EQ(testing::outputs_of(tree("VisionTransformer"), {3, 8, 8}, "mul"), "");
  EXPECT_EQ(testing::parameters_of(tree("Beit"), {3, 8, 8}),
            testing::parameters_of(tree("VisionTransformer"), {3, 8, 8}) + 2 * 8);
}

}  // namespace
}  // namespace gpumem::connect
