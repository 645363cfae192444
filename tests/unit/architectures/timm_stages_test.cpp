#include <string>

#include "block_trees.hpp"
#include "gpumem/architectures/timm_stages.hpp"

namespace gpumem::architectures {
namespace {

using testing::ops_of;

/// A hiera_block from one width to another, and what it holds.
std::string hiera_block(std::int64_t from, std::int64_t to) {
  const std::string in = std::to_string(from);
  const std::string out = std::to_string(to);
  const auto linear = [](const std::string& name, const std::string& reads, const std::string& leaves) {
    return "      (" + name + "): Linear(in_features=" + reads + ", out_features=" + leaves + ", bias=True)\n";
  };
  const auto norm = [](const std::string& name, const std::string& width) {
    return "      (" + name + "): LayerNorm((" + width + ",), eps=1e-06, elementwise_affine=True)\n";
  };
  return "    (0): HieraBlock(\n" + norm("norm1", in) + (from == to ? "" : linear("proj", in, out)) +
         "      (attn): MaskUnitAttention(\n" + linear("qkv", in, std::to_string(3 * to)) + linear("proj", out, out) +
         "      )\n" + norm("norm2", out) + "      (mlp): Mlp(\n" + linear("fc1", out, out) + linear("fc2", out, out) +
         "      )\n    )\n";
}

std::int64_t held_by(std::int64_t from, std::int64_t to) {
  const std::int64_t shortcut = from == to ? 0 : (from + 1) * to;
  return 2 * from + shortcut + (from + 1) * 3 * to + 3 * (to + 1) * to + 2 * to;
}

std::string model() {
  return "Hiera(\n  (patch_embed): PatchEmbed(\n"
         "    (proj): Conv2d(3, 96, kernel_size=(7, 7), stride=(4, 4), padding=(3, 3))\n  )\n"
         "  (unroll): Unroll()\n  (blocks): ModuleList(\n" +
         hiera_block(96, 96) + hiera_block(96, 192) + hiera_block(192, 192) + hiera_block(192, 384) +
         hiera_block(384, 384) + "  )\n  (norm): Identity()\n)\n";
}

TEST(Hiera, TheFirstTwoStagesAttendWithinMaskUnits) {
  // 16 x 16 tokens are four units; a stage's first hiera_block still attends as the stage before it.
  EXPECT_EQ(testing::outputs_of(model(), {3, 64, 64}, "scaled_dot_product_attention"),
            "[4N, 1, 64, 96] [4N, 2, 16, 96] [4N, 2, 16, 96] [4N, 4, 4, 96] [N, 4, 16, 96]");
}

TEST(Hiera, EveryFourthTokenIsLeftWhereAStageBegins) {
  EXPECT_EQ(testing::outputs_of(model(), {3, 64, 64}, "amax"),
            "[N, 64, 192] [4N, 2, 16, 96] [N, 16, 384] [4N, 4, 4, 96]");
}

TEST(Hiera, ItsPositionsAreCounted) {
  const std::int64_t blocks =
      held_by(96, 96) + held_by(96, 192) + held_by(192, 192) + held_by(192, 384) + held_by(384, 384);
  EXPECT_EQ(testing::parameters_of(model(), {3, 64, 64}), 3 * 49 * 96 + 96 + 256 * 96 + blocks);
}

TEST(Levit, TheBatchNormOfALinearLayerSeesEveryTokenAsASample) {
  constexpr std::string_view kTree = R"(Net(
  (0): LinearNorm(
    (linear): Linear(in_features=8, out_features=16, bias=False)
    (bn): BatchNorm1d(16, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)
  )
))";
  EXPECT_EQ(ops_of(kTree, {4, 8}), "linear flatten batch_norm unflatten");
}

TEST(Levit, QueriesOfEverySecondPixelReadImagesToo) {
  constexpr std::string_view kTree = R"(Net(
  (0): AttentionDownsample(
    (kv): Conv2d(16, 48, kernel_size=(1, 1), stride=(1, 1))
    (q): Sequential(
      (down): AvgPool2d(kernel_size=1, stride=2, padding=0)
      (ln): Conv2d(16, 16, kernel_size=(1, 1), stride=(1, 1))
    )
    (proj): Conv2d(32, 8, kernel_size=(1, 1), stride=(1, 1))
  )
))";
  EXPECT_EQ(testing::outputs_of(kTree, {16, 7, 7}, "scaled_dot_product_attention"), "[N, 1, 16, 32]");
  EXPECT_EQ(testing::outputs_of(kTree, {16, 7, 7}, "conv2d"), "[N, 48, 7, 7] [N, 16, 4, 4] [N, 8, 4, 4]");
}

std::string gcvit_block(const std::string& index, const std::string& packed) {
  return "      (" + index + R"(): GlobalContextVitBlock(
        (norm1): LayerNorm((32,), eps=1e-05, elementwise_affine=True)
        (attn): WindowAttentionGlobal(
          (rel_pos): RelPosBias()
          (qkv): Linear(in_features=32, out_features=)" +
         packed + R"(, bias=True)
          (proj): Linear(in_features=32, out_features=32, bias=True)
        )
        (norm2): LayerNorm((32,), eps=1e-05, elementwise_affine=True)
        (mlp): Mlp(
          (fc1): Linear(in_features=32, out_features=32, bias=True)
        )
      )
)";
}

const std::string kGcvitTree = R"(Net(
  (conv): Conv2d(3, 32, kernel_size=(1, 1), stride=(1, 1))
  (stage): GlobalContextVitStage(
    (downsample): Identity()
    (global_block): FeatureBlock(
      (blocks): Sequential(
        (pool1): MaxPool2d(kernel_size=3, stride=2, padding=1, dilation=1, ceil_mode=False)
      )
    )
    (global_norm): Identity()
    (blocks): ModuleList(
)" + gcvit_block("0", "96") + gcvit_block("1", "64") +
                               R"(    )
    (norm): Identity()
  )
)
)";

TEST(Gcvit, TheStagesImageGivesTheWindowsTheirSizeAndEverySecondBlockItsQueries) {
  EXPECT_EQ(testing::outputs_of(kGcvitTree, {3, 14, 14}, "softmax"), "[4N, 1, 49, 49] [4N, 1, 49, 49]");
  EXPECT_EQ(testing::outputs_of(kGcvitTree, {3, 14, 14}, "repeat"), "[4N, 49, 32]");
}

TEST(Gcvit, AStageLeavesImages) {
  const auto wired = testing::wired_tree(kGcvitTree, {3, 14, 14});
  ASSERT_TRUE(testing::succeeds(wired));
  EXPECT_EQ(wired->guesses().edges, 0);
  EXPECT_EQ(core::to_string(wired->outputs(wired->graph().layers().size() - 1)[0]), "[N, 32, 14, 14]");
}

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

TEST(Metaformer, AStarReluHasAScaleAndABias) {
  constexpr std::string_view kTree = R"(Net(
  (0): StarReLU(
    (relu): ReLU()
  )
))";
  EXPECT_EQ(ops_of(kTree, {3, 4, 4}), "relu square parameter mul parameter add");
  EXPECT_EQ(testing::parameters_of(kTree, {3, 4, 4}), 2);
}

constexpr std::string_view kVisformerTree = R"(Visformer(
  (stem): Sequential(
    (0): Conv2d(3, 8, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), bias=False)
  )
  (patch_embed1): PatchEmbed(
    (proj): Conv2d(8, 16, kernel_size=(4, 4), stride=(4, 4))
    (norm): BatchNorm2d(16, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)
  )
  (pos_drop): Dropout(p=0.0, inplace=False)
  (stage1): Sequential(
    (0): Block(
      (norm2): BatchNorm2d(16, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)
      (mlp): SpatialMlp(
        (conv1): Conv2d(16, 32, kernel_size=(1, 1), stride=(1, 1), bias=False)
        (conv3): Conv2d(32, 16, kernel_size=(1, 1), stride=(1, 1), bias=False)
      )
    )
  )
  (norm): BatchNorm2d(16, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)
  (head): Linear(in_features=16, out_features=4, bias=True)
)
)";

TEST(Visformer, PatchesStayImagesWithPositions) {
  EXPECT_EQ(testing::outputs_of(kVisformerTree, {3, 64, 64}, "add"), "[N, 16, 8, 8] [N, 16, 8, 8]");
  EXPECT_EQ(testing::outputs_of(kVisformerTree, {3, 64, 64}, "parameter"), "[1, 16, 8, 8]");
  // stem 216, patches 2,064 and 32, positions 1,024, block 32 + 1,024, norm 32, head 68
  EXPECT_EQ(testing::parameters_of(kVisformerTree, {3, 64, 64}), 216 + 2'064 + 32 + 1'024 + 1'056 + 32 + 68);
}

}  // namespace
}  // namespace gpumem::architectures
