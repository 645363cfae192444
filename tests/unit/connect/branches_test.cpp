#include "gpumem/connect/inception.hpp"

#include <string>

#include "block_trees.hpp"

namespace gpumem::connect {
namespace {

using testing::ops_of;
using testing::parameters_of;

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
