#include "gpumem/connect/branches.hpp"

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

}  // namespace
}  // namespace gpumem::connect
