#include <string>

#include "block_trees.hpp"
#include "gpumem/architectures/timm_swin.hpp"

namespace gpumem::architectures {
namespace {

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

std::string swin_block(const std::string& index, const std::string& attention) {
  return "  (" + index + R"(): SwinTransformerBlock(
    (norm1): LayerNorm((32,), eps=1e-05, elementwise_affine=True)
    (attn): WindowAttention(
)" + attention +
         R"(      (qkv): Linear(in_features=32, out_features=96, bias=True)
      (proj): Linear(in_features=32, out_features=32, bias=True)
      (softmax): Softmax(dim=-1)
    )
    (norm2): LayerNorm((32,), eps=1e-05, elementwise_affine=True)
    (mlp): Linear(in_features=32, out_features=32, bias=True)
  )
)";
}

std::string swin(const std::string& attention) {
  return "Net(\n  (norm): LayerNorm((32,), eps=1e-05, elementwise_affine=True)\n" + swin_block("0", attention) +
         swin_block("1", attention) + ")\n";
}

TEST(Swin, ScoresWithinWindowsAreWrittenOut) {
  // Four windows of 7 x 7, in the shifted block with a mask that knows them apart.
  EXPECT_EQ(testing::outputs_of(swin(""), {14, 14, 32}, "softmax"), "[4N, 1, 49, 49] [4N, 1, 49, 49]");
  EXPECT_EQ(testing::outputs_of(swin(""), {14, 14, 32}, "roll"), "[N, 14, 14, 32] [N, 14, 14, 32]");
  EXPECT_EQ(testing::outputs_of(swin(""), {14, 14, 32}, "scaled_dot_product_attention"), "");
  const std::int64_t layers = 32 * 96 + 96 + 32 * 32 + 32 + 2 * 64 + 32 * 32 + 32;
  EXPECT_EQ(testing::parameters_of(swin(""), {14, 14, 32}), 64 + 2 * (layers + 13 * 13)) << "a bias of each distance";
}

TEST(Swin, AnImageThatWindowsDoNotDivideIsPadded) {
  EXPECT_EQ(testing::outputs_of(swin(""), {14, 10, 32}, "pad"), "[N, 14, 14, 32] [N, 14, 14, 32]");
  EXPECT_EQ(testing::outputs_of(swin(""), {14, 10, 32}, "softmax"), "[4N, 1, 49, 49] [4N, 1, 49, 49]");
  EXPECT_EQ(testing::outputs_of(swin(""), {14, 10, 32}, "add").substr(0, 14), "[4N, 1, 49, 49");
}

TEST(Swin, ANetworkMakesTheBiasOfTheSecondVersionWhoseWindowsAreGuessed) {
  const std::string network = R"(      (cpb_mlp): Mlp(
        (fc1): Linear(in_features=2, out_features=8, bias=True)
        (act): ReLU()
        (fc2): Linear(in_features=8, out_features=1, bias=False)
      )
)";
  const auto wired = testing::wired_tree(swin(network), {14, 14, 32});
  ASSERT_TRUE(testing::succeeds(wired));
  EXPECT_EQ(wired->guesses().edges, 2);
  EXPECT_EQ(testing::outputs_of(swin(network), {14, 14, 32}, "sigmoid"), "[1, 1, 49, 49] [1, 1, 49, 49]");
  EXPECT_EQ(testing::outputs_of(swin(network), {14, 14, 32}, "softmax"), "[4N, 1, 49, 49] [4N, 1, 49, 49]");
}

constexpr std::string_view kTorchvision = R"(SwinTransformer(
  (features): Sequential(
    (0): Sequential(
      (0): Conv2d(3, 32, kernel_size=(4, 4), stride=(4, 4))
      (1): Permute()
      (2): LayerNorm((32,), eps=1e-05, elementwise_affine=True)
    )
    (1): Sequential(
      (0): SwinTransformerBlock(
        (norm1): LayerNorm((32,), eps=1e-05, elementwise_affine=True)
        (attn): ShiftedWindowAttention(
          (qkv): Linear(in_features=32, out_features=96, bias=True)
          (proj): Linear(in_features=32, out_features=32, bias=True)
        )
        (stochastic_depth): StochasticDepth(p=0.1, mode=row)
        (norm2): LayerNorm((32,), eps=1e-05, elementwise_affine=True)
        (mlp): MLP(
          (0): Linear(in_features=32, out_features=32, bias=True)
        )
      )
    )
    (2): PatchMerging(
      (reduction): Linear(in_features=128, out_features=64, bias=False)
      (norm): LayerNorm((128,), eps=1e-05, elementwise_affine=True)
    )
  )
  (norm): LayerNorm((64,), eps=1e-05, elementwise_affine=True)
  (permute): Permute()
  (avgpool): AdaptiveAvgPool2d(output_size=1)
  (flatten): Flatten(start_dim=1, end_dim=-1)
  (head): Linear(in_features=64, out_features=10, bias=True)
))";

TEST(TorchvisionSwin, NothingIsGuessed) {
  const auto wired = testing::wired_tree(kTorchvision, {3, 224, 224});
  ASSERT_TRUE(testing::succeeds(wired));
  EXPECT_EQ(wired->guesses().edges, 0);
  EXPECT_EQ(testing::outputs_of(kTorchvision, {3, 224, 224}, "softmax"), "[64N, 1, 49, 49]");
  EXPECT_EQ(testing::outputs_of(kTorchvision, {3, 224, 224}, "stochastic_depth"), "[N, 56, 56, 32] [N, 56, 56, 32]")
      << "one module, called twice";
  EXPECT_EQ(testing::outputs_of(kTorchvision, {3, 224, 224}, "adaptive_avg_pool2d"), "[N, 64, 1, 1]");
}

// One layer of torchvision's MaxViT on 14 x 14 pixels of 32 channels.
const std::string kMaxvit = [] {
  const auto partitions = [](const std::string& name, const std::string& swap) {
    return "    (" + name + "): PartitionAttentionLayer(\n" + R"(      (partition_op): WindowPartition()
      (departition_op): WindowDepartition()
      (partition_swap): )" +
           swap + "()\n      (departition_swap): " + swap + R"(()
      (attn_layer): Sequential(
        (0): LayerNorm((32,), eps=1e-05, elementwise_affine=True)
        (1): RelativePositionalMultiHeadAttention(
          (to_qkv): Linear(in_features=32, out_features=96, bias=True)
          (merge): Linear(in_features=32, out_features=32, bias=True)
        )
        (2): Dropout(p=0.0, inplace=False)
      )
      (mlp_layer): Sequential(
        (0): LayerNorm((32,), eps=1e-05, elementwise_affine=True)
        (1): Linear(in_features=32, out_features=32, bias=True)
      )
      (stochastic_dropout): StochasticDepth(p=0.0, mode=row)
    )
)";
  };
  return R"(MaxVitLayer(
  (layers): Sequential(
    (MBconv): MBConv(
      (proj): Sequential(
        (0): AvgPool2d(kernel_size=3, stride=2, padding=1)
        (1): Conv2d(3, 32, kernel_size=(1, 1), stride=(1, 1))
      )
      (stochastic_depth): Identity()
      (layers): Sequential(
        (pre_norm): BatchNorm2d(3, eps=0.001, momentum=0.01, affine=True, track_running_stats=True)
        (conv_a): Conv2d(3, 32, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), bias=False)
      )
    )
)" + partitions("window_attention", "Identity") +
         partitions("grid_attention", "SwapAxes") + "  )\n)\n";
}();

TEST(MaxVit, AttendsWithinWindowsAndWithinAGrid) {
  // 14 x 14 pixels are 2 x 2 windows of 7 x 7, and as many pixels of a grid, one of each window
  EXPECT_EQ(testing::outputs_of(kMaxvit, {3, 28, 28}, "softmax"), "[N, 4, 1, 49, 49] [N, 4, 1, 49, 49]");
  const std::int64_t conv = (3 * 32 + 32) + 2 * 3 + 3 * 32 * 9;
  const std::int64_t attention = (32 * 96 + 96) + (32 * 32 + 32) + 13 * 13 + 2 * 32;
  const std::int64_t mlp = (32 * 32 + 32) + 2 * 32;
  EXPECT_EQ(testing::parameters_of(kMaxvit, {3, 28, 28}), conv + 2 * (attention + mlp));
}

TEST(MaxVit, PartitionsThatFitNoImageAreRefused) {
  const auto wired = testing::wired_tree(kMaxvit, {3, 26, 26});
  ASSERT_FALSE(wired);
  EXPECT_NE(core::to_string(wired.error()).find("partitions"), std::string::npos);
}

constexpr std::string_view kOutlook = R"(Net(
  (first): Linear(in_features=12, out_features=12, bias=True)
  (attn): OutlookAttention(
    (v): Linear(in_features=12, out_features=12, bias=False)
    (attn): Linear(in_features=12, out_features=162, bias=True)
    (attn_drop): Dropout(p=0.0, inplace=False)
    (proj): Linear(in_features=12, out_features=12, bias=True)
    (proj_drop): Dropout(p=0.0, inplace=False)
    (unfold): Unfold(kernel_size=3, dilation=1, padding=1, stride=2)
    (pool): AvgPool2d(kernel_size=2, stride=2, padding=0)
  )
))";

TEST(Volo, APixelWeighsTheWindowAroundIt) {
  // two heads, 4 x 4 windows of 9 pixels
  EXPECT_EQ(testing::outputs_of(kOutlook, {8, 8, 12}, "softmax"), "[N, 2, 16, 9, 9]");
  EXPECT_EQ(testing::outputs_of(kOutlook, {8, 8, 12}, "fold"), "[N, 12, 8, 8]");
}

}  // namespace
}  // namespace gpumem::architectures
