#include <string>

#include "block_trees.hpp"
#include "gpumem/connect/token_models.hpp"

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

TEST(GatedMlp, OneHalfScalesTheOther) {
  constexpr std::string_view kTree = R"(Net(
  (0): GluMlp(
    (fc1): Linear(in_features=8, out_features=32, bias=True)
    (act): SiLU()
    (fc2): Linear(in_features=16, out_features=8, bias=True)
  )
))";
  EXPECT_EQ(ops_of(kTree, {4, 8}), "linear split item item silu mul linear");
}

TEST(GatedMlp, AGateMixesTheTokensOfOneHalf) {
  constexpr std::string_view kTree = R"(Net(
  (first): Linear(in_features=8, out_features=8, bias=True)
  (0): SpatialGatingBlock(
    (norm): LayerNorm((8,), eps=1e-06, elementwise_affine=True)
    (mlp_channels): GatedMlp(
      (fc1): Linear(in_features=8, out_features=24, bias=True)
      (act): GELU(approximate='none')
      (gate): SpatialGatingUnit(
        (norm): LayerNorm((12,), eps=1e-05, elementwise_affine=True)
        (proj): Linear(in_features=16, out_features=16, bias=True)
      )
      (norm): Identity()
      (fc2): Linear(in_features=12, out_features=8, bias=True)
    )
  )
))";
  EXPECT_EQ(ops_of(kTree, {16, 8}),
            "linear layer_norm linear gelu split item item layer_norm permute linear permute mul identity linear add");
}

TEST(GatedMlp, TwoLayersReadTheInput) {
  constexpr std::string_view kTree = R"(Net(
  (0): SwiGLU(
    (fc1_g): Linear(in_features=8, out_features=16, bias=True)
    (fc1_x): Linear(in_features=8, out_features=16, bias=True)
    (act): SiLU()
    (fc2): Linear(in_features=16, out_features=8, bias=True)
  )
))";
  EXPECT_EQ(ops_of(kTree, {4, 8}), "linear silu linear mul linear");
}

std::string layer(const std::string& width, const std::string& packed) {
  return R"(        (0): TransformerLayer(
          (norm1): LayerNorm(()" +
         width + R"(,), eps=1e-06, elementwise_affine=True)
          (attn): Attention(
            (qkv): Linear(in_features=)" +
         width + ", out_features=" + packed + R"(, bias=True)
            (proj): Linear(in_features=)" +
         width + ", out_features=" + width + R"(, bias=True)
          )
          (norm2): LayerNorm(()" +
         width + R"(,), eps=1e-06, elementwise_affine=True)
          (mlp): Mlp(
            (fc1): Linear(in_features=)" +
         width + ", out_features=" + width + R"(, bias=True)
          )
        )
)";
}

const std::string kNest = R"(Nest(
  (patch_embed): PatchEmbed(
    (proj): Conv2d(3, 32, kernel_size=(4, 4), stride=(4, 4))
  )
  (levels): Sequential(
    (0): NestLevel(
      (pool): Identity()
      (transformer_encoder): Sequential(
)" + layer("32", "96") +
                          R"(      )
    )
    (1): NestLevel(
      (pool): ConvPool(
        (conv): Conv2d(32, 64, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))
        (norm): LayerNorm((64,), eps=1e-06, elementwise_affine=True)
        (pool): MaxPool2d(kernel_size=3, stride=2, padding=1, dilation=1, ceil_mode=False)
      )
      (transformer_encoder): Sequential(
)" + layer("64", "192") +
                          R"(      )
    )
  )
  (norm): LayerNorm((64,), eps=1e-06, elementwise_affine=True)
  (head): Linear(in_features=64, out_features=10, bias=True)
)
)";

TEST(Nested, BlocksOfOneSizeAttendAtEveryLevel) {
  EXPECT_EQ(testing::outputs_of(kNest, {3, 32, 32}, "scaled_dot_product_attention"), "[4N, 1, 16, 32] [N, 2, 16, 32]");
  EXPECT_EQ(testing::outputs_of(kNest, {3, 32, 32}, "max_pool2d"), "[N, 64, 4, 4]");
}

TEST(Nested, NothingIsGuessed) {
  const auto wired = testing::wired_tree(kNest, {3, 32, 32});
  ASSERT_TRUE(testing::succeeds(wired));
  EXPECT_EQ(wired->guesses().edges, 0);
  EXPECT_EQ(core::to_string(wired->outputs(wired->graph().layers().size() - 1)[0]), "[N, 10]");
}

TEST(Swin, WindowsAreAttendedToByTheFusedKernel) {
  constexpr std::string_view kTree = R"(Net(
  (norm): LayerNorm((32,), eps=1e-05, elementwise_affine=True)
  (0): SwinTransformerBlock(
    (norm1): LayerNorm((32,), eps=1e-05, elementwise_affine=True)
    (attn): WindowAttention(
      (qkv): Linear(in_features=32, out_features=96, bias=True)
      (proj): Linear(in_features=32, out_features=32, bias=True)
    )
    (norm2): LayerNorm((32,), eps=1e-05, elementwise_affine=True)
    (mlp): Linear(in_features=32, out_features=32, bias=True)
  )
))";
  const auto wired = testing::wired_tree(kTree, {14, 14, 32});
  ASSERT_TRUE(testing::succeeds(wired));
  bool attended = false;
  for (std::size_t index = 0; index < wired->graph().layers().size(); ++index) {
    if (wired->graph().op(wired->graph().layers()[index]) != "scaled_dot_product_attention") continue;
    EXPECT_EQ(core::to_string(wired->outputs(index)[0]), "[4N, 1, 49, 32]") << "four windows of 7 x 7";
    attended = true;
  }
  EXPECT_TRUE(attended);
}

}  // namespace
}  // namespace gpumem::connect
