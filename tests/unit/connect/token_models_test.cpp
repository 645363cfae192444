#include "gpumem/connect/token_models.hpp"

#include "block_trees.hpp"

namespace gpumem::connect {
namespace {

using testing::ops_of;
using testing::parameters_of;

constexpr std::string_view kVit = R"(VisionTransformer(
  (patch_embed): PatchEmbed(
    (proj): Conv2d(3, 64, kernel_size=(4, 4), stride=(4, 4))
    (norm): Identity()
  )
  (pos_drop): Dropout(p=0.0, inplace=False)
  (blocks): Sequential(
    (0): Block(
      (norm1): LayerNorm((64,), eps=1e-06, elementwise_affine=True)
      (attn): Attention(
        (qkv): Linear(in_features=64, out_features=192, bias=True)
        (q_norm): Identity()
        (k_norm): Identity()
        (attn_drop): Dropout(p=0.0, inplace=False)
        (proj): Linear(in_features=64, out_features=64, bias=True)
        (proj_drop): Dropout(p=0.0, inplace=False)
      )
      (ls1): LayerScale()
      (drop_path1): Identity()
      (norm2): LayerNorm((64,), eps=1e-06, elementwise_affine=True)
      (mlp): Mlp(
        (fc1): Linear(in_features=64, out_features=256, bias=True)
        (act): GELU(approximate='none')
        (fc2): Linear(in_features=256, out_features=64, bias=True)
      )
      (ls2): LayerScale()
      (drop_path2): Identity()
    )
  )
  (norm): LayerNorm((64,), eps=1e-06, elementwise_affine=True)
  (fc_norm): Identity()
  (head): Linear(in_features=64, out_features=10, bias=True)
))";

TEST(TokenModels, PositionsTokenAndLayerScalesAreCountedThoughNoLineShowsThem) {
  const std::int64_t patches = 3 * 64 * 16 + 64;
  const std::int64_t tokens = 64 + 5 * 64;  // a class token, and positions of it and 2 x 2 patches
  const std::int64_t attention = 64 * 192 + 192 + 64 * 64 + 64;
  const std::int64_t mlp = 64 * 256 + 256 + 256 * 64 + 64;
  const std::int64_t head = 64 * 10 + 10;
  EXPECT_EQ(parameters_of(kVit, {3, 8, 8}), patches + tokens + attention + mlp + 3 * 128 + 2 * 64 + head);
}

TEST(TokenModels, TheFusedKernelReadsPartsOfTheProjection) {
  const auto wired = testing::wired_tree(kVit, {3, 8, 8});
  ASSERT_TRUE(testing::succeeds(wired));
  EXPECT_EQ(wired->guesses().edges, 0);
  EXPECT_EQ(wired->guesses().containers, 0);
  std::int64_t kernels = 0;
  for (std::size_t index = 0; index < wired->graph().layers().size(); ++index) {
    if (wired->graph().op(wired->graph().layers()[index]) != "scaled_dot_product_attention") continue;
    ++kernels;
    ASSERT_EQ(wired->inputs(index).size(), 3U);
    EXPECT_EQ(core::to_string(wired->outputs(index)[0]), "[N, 1, 5, 64]");
  }
  EXPECT_EQ(kernels, 1);
}

TEST(TokenModels, TheClassifierReadsTheClassToken) {
  const auto wired = testing::wired_tree(kVit, {3, 8, 8});
  ASSERT_TRUE(testing::succeeds(wired));
  const std::size_t last = wired->graph().layers().size() - 1;
  EXPECT_EQ(core::to_string(wired->outputs(last)[0]), "[N, 10]");
}

}  // namespace
}  // namespace gpumem::connect
