#include <string>

#include "block_trees.hpp"
#include "gpumem/architectures/timm_vit.hpp"

namespace gpumem::architectures {
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
  // The class token, positions and two sums; not the kernel.
  EXPECT_TRUE(wired->edges().starts_with("chained, 4 joins inferred")) << wired->edges();
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

TEST(AttentionBlock, HeadsThatTalkMixTheirScores) {
  constexpr std::string_view kTree = R"(Net(
  (attn): TalkingHeadAttn(
    (qkv): Linear(in_features=96, out_features=288, bias=True)
    (proj): Linear(in_features=96, out_features=96, bias=True)
    (proj_l): Linear(in_features=2, out_features=2, bias=True)
    (proj_w): Linear(in_features=2, out_features=2, bias=True)
  )
))";
  const std::string ops = ops_of(kTree, {4, 96});
  EXPECT_NE(ops.find("matmul permute linear permute softmax permute linear permute matmul"), std::string::npos) << ops;
  EXPECT_EQ(ops.find("guessed"), std::string::npos);
}

TEST(AttentionBlock, KeysMayComeOfASmallerImage) {
  constexpr std::string_view kTree = R"(Net(
  (attn): Attention(
    (q): Linear(in_features=64, out_features=64, bias=True)
    (kv): Linear(in_features=64, out_features=128, bias=True)
    (proj): Linear(in_features=64, out_features=64, bias=True)
    (sr): Conv2d(64, 64, kernel_size=(2, 2), stride=(2, 2))
    (norm): LayerNorm((64,), eps=1e-05, elementwise_affine=True)
  )
))";
  const auto wired = testing::wired_tree(kTree, {16, 64});
  ASSERT_TRUE(testing::succeeds(wired));
  for (std::size_t index = 0; index < wired->graph().layers().size(); ++index) {
    if (wired->graph().op(wired->graph().layers()[index]) != "scaled_dot_product_attention") continue;
    const auto key = static_cast<std::size_t>(wired->inputs(index)[1]);
    EXPECT_EQ(core::to_string(wired->outputs(key)[0]), "[N, 1, 4, 64]");
  }
}

std::string eva(const std::string& rotary) {
  return R"(Eva(
  (patch_embed): PatchEmbed(
    (proj): Conv2d(3, 64, kernel_size=(4, 4), stride=(4, 4))
    (norm): Identity()
  )
)" + rotary +
         R"(  (blocks): ModuleList(
    (0): EvaBlock(
      (norm1): LayerNorm((64,), eps=1e-06, elementwise_affine=True)
      (attn): EvaAttention(
        (qkv): Linear(in_features=64, out_features=192, bias=False)
        (proj): Linear(in_features=64, out_features=64, bias=True)
      )
      (norm2): LayerNorm((64,), eps=1e-06, elementwise_affine=True)
      (mlp): Linear(in_features=64, out_features=64, bias=True)
    )
  )
  (head): Linear(in_features=64, out_features=10, bias=True)
)
)";
}

TEST(Eva, RotaryPositionsTurnQueriesAndKeysButTheFirstToken) {
  EXPECT_EQ(testing::outputs_of(eva(""), {3, 8, 8}, "neg"), "");
  EXPECT_EQ(testing::outputs_of(eva("  (rope): RotaryEmbeddingCat()\n"), {3, 8, 8}, "neg"),
            "[N, 1, 4, 32] [N, 1, 4, 32]");
  EXPECT_EQ(testing::outputs_of(eva("  (rope): RotaryEmbeddingCat()\n"), {3, 8, 8}, "scaled_dot_product_attention"),
            "[N, 1, 5, 64]");
}

TEST(Siglip, ALearnedQueryPoolsAllTokens) {
  constexpr std::string_view kTree = R"(Net(
  (norm): LayerNorm((64,), eps=1e-06, elementwise_affine=True)
  (attn_pool): AttentionPoolLatent(
    (q): Linear(in_features=64, out_features=64, bias=True)
    (kv): Linear(in_features=64, out_features=128, bias=True)
    (proj): Linear(in_features=64, out_features=64, bias=True)
    (norm): LayerNorm((64,), eps=1e-06, elementwise_affine=True)
    (mlp): Linear(in_features=64, out_features=64, bias=True)
  )
))";
  EXPECT_EQ(testing::outputs_of(kTree, {16, 64}, "scaled_dot_product_attention"), "[N, 1, 1, 64]");
  EXPECT_EQ(testing::outputs_of(kTree, {16, 64}, "select"), "[N, 64]");
}

TEST(Xcit, EachBranchIsScaledByAParameter) {
  constexpr std::string_view kTree = R"(Net(
  (norm): LayerNorm((8,), eps=1e-06, elementwise_affine=True)
  (0): XCABlock(
    (norm1): LayerNorm((8,), eps=1e-06, elementwise_affine=True)
    (attn): Linear(in_features=8, out_features=8, bias=True)
    (norm2): LayerNorm((8,), eps=1e-06, elementwise_affine=True)
    (mlp): Linear(in_features=8, out_features=8, bias=True)
  )
))";
  EXPECT_EQ(ops_of(kTree, {4, 8}),
            "layer_norm layer_norm linear parameter mul add layer_norm linear parameter mul add");
}

TEST(TorchvisionVit, ItsTokenAndPositionsAreCountedToo) {
  constexpr std::string_view kTree = R"(VisionTransformer(
  (conv_proj): Conv2d(3, 8, kernel_size=(4, 4), stride=(4, 4))
  (encoder): Encoder(
    (dropout): Dropout(p=0.0, inplace=False)
    (layers): Sequential(
      (encoder_layer_0): EncoderBlock(
        (ln_1): LayerNorm((8,), eps=1e-06, elementwise_affine=True)
        (self_attention): MultiheadAttention(
          (out_proj): NonDynamicallyQuantizableLinear(in_features=8, out_features=8, bias=True)
        )
        (dropout): Dropout(p=0.0, inplace=False)
        (ln_2): LayerNorm((8,), eps=1e-06, elementwise_affine=True)
        (mlp): MLPBlock(
          (0): Linear(in_features=8, out_features=16, bias=True)
          (1): GELU(approximate='none')
          (2): Dropout(p=0.0, inplace=False)
          (3): Linear(in_features=16, out_features=8, bias=True)
          (4): Dropout(p=0.0, inplace=False)
        )
      )
    )
    (ln): LayerNorm((8,), eps=1e-06, elementwise_affine=True)
  )
  (heads): Sequential(
    (head): Linear(in_features=8, out_features=4, bias=True)
  )
))";
  const auto wired = testing::wired_tree(kTree, {3, 8, 8});
  ASSERT_TRUE(testing::succeeds(wired));
  EXPECT_EQ(wired->guesses().edges, 0);
  EXPECT_EQ(testing::outputs_of(kTree, {3, 8, 8}, "parameter"), "[1, 1, 8] [1, 5, 8]");
  EXPECT_EQ(core::to_string(wired->outputs(wired->graph().layers().size() - 1)[0]), "[N, 4]");
}

constexpr std::string_view kEncoderLayer = R"(Net(
  (0): TransformerEncoderLayer(
    (self_attn): MultiheadAttention(
      (out_proj): NonDynamicallyQuantizableLinear(in_features=8, out_features=8, bias=True)
    )
    (linear1): Linear(in_features=8, out_features=16, bias=True)
    (dropout): Dropout(p=0.1, inplace=False)
    (linear2): Linear(in_features=16, out_features=8, bias=True)
    (norm1): LayerNorm((8,), eps=1e-05, elementwise_affine=True)
    (norm2): LayerNorm((8,), eps=1e-05, elementwise_affine=True)
    (dropout1): Dropout(p=0.1, inplace=False)
    (dropout2): Dropout(p=0.1, inplace=False)
  )
))";

TEST(EncoderLayer, CallsItsPartsInAnOtherOrderThanItDeclaresThem) {
  const std::string ops = testing::ops_of(kEncoderLayer, {4, 8});
  EXPECT_NE(ops.find("dropout add layer_norm linear relu dropout linear dropout add layer_norm"), std::string::npos)
      << ops;
  EXPECT_EQ(ops.find("guessed"), std::string::npos) << ops;
}

}  // namespace
}  // namespace gpumem::architectures
