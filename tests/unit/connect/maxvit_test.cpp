#include "gpumem/connect/vision_transformers.hpp"

#include "block_trees.hpp"

namespace gpumem::connect {
namespace {

using testing::ops_of;

TEST(Maxvit, AttentionSeesTheChannelsBehindThePixels) {
  constexpr std::string_view kTree = R"(Net(
  (0): MaxxVitBlock(
    (conv): Conv2d(3, 4, kernel_size=(1, 1), stride=(1, 1))
    (attn_block): LayerNorm((4,), eps=1e-05, elementwise_affine=True)
    (attn_grid): LayerNorm((4,), eps=1e-05, elementwise_affine=True)
  )
))";
  EXPECT_EQ(ops_of(kTree, {3, 4, 4}), "conv2d permute layer_norm layer_norm permute");
}

}  // namespace
}  // namespace gpumem::connect
