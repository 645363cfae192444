#include "gpumem/architectures/segmentation_nets.hpp"

#include <array>
#include <sstream>
#include <string>

#include "block_trees.hpp"

namespace gpumem::architectures {
namespace {

using testing::fails;
using testing::ops_of;
using testing::outputs_of;
using testing::succeeds;
using testing::wired_tree;

std::string spaces(int depth) { return std::string(static_cast<std::size_t>(2 * depth), ' '); }

std::string convolution(int depth, std::string_view name, int in, int out, int kernel = 3) {
  const std::string size = std::to_string(kernel);
  const std::string pad = std::to_string(kernel / 2);
  return spaces(depth) + "(" + std::string(name) + "): Conv2d(" + std::to_string(in) + ", " + std::to_string(out) +
         ", kernel_size=(" + size + ", " + size + "), stride=(1, 1), padding=(" + pad + ", " + pad + "))\n";
}

std::string norm(int depth, std::string_view name, int width) {
  return spaces(depth) + "(" + std::string(name) + "): BatchNorm2d(" + std::to_string(width) + ", eps=1e-05)\n";
}

std::string relu(int depth, std::string_view name) {
  return spaces(depth) + "(" + std::string(name) + "): ReLU(inplace=True)\n";
}

std::string opened(int depth, std::string_view name, std::string_view class_name) {
  return spaces(depth) + "(" + std::string(name) + "): " + std::string(class_name) + "(\n";
}

std::string closed(int depth) { return spaces(depth) + ")\n"; }

/// Twice a convolution, a batch norm and an activation, as print() shows them in a Sequential.
std::string twice(int depth, std::string_view list, int in, int out) {
  return opened(depth, list, "Sequential") + convolution(depth + 1, "0", in, out) + norm(depth + 1, "1", out) +
         relu(depth + 1, "2") + convolution(depth + 1, "3", out, out) + norm(depth + 1, "4", out) +
         relu(depth + 1, "5") + closed(depth);
}

/// The names of the classes of the U-Net that everybody copies, or others in their place.
struct Names {
  std::string_view model = "UNet";
  std::string_view twice = "DoubleConv";
  std::string_view down = "Down";
  std::string_view up = "Up";
};

/// print(UNet(3, 2)) of milesial/Pytorch-UNet, with convolutions that have a bias.
std::string unet(const Names& names = {}) {
  constexpr std::array<int, 5> kWidths = {64, 128, 256, 512, 1024};
  const auto double_conv = [&](int depth, std::string_view name, int in, int out) {
    return opened(depth, name, names.twice) + twice(depth + 1, "double_conv", in, out) + closed(depth);
  };
  std::string tree = std::string(names.model) + "(\n" + double_conv(1, "inc", 3, kWidths[0]);
  for (std::size_t level = 1; level < kWidths.size(); ++level) {
    tree += opened(1, "down" + std::to_string(level), names.down) + opened(2, "maxpool_conv", "Sequential") +
            "      (0): MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)\n" +
            double_conv(3, "1", kWidths[level - 1], kWidths[level]) + closed(2) + closed(1);
  }
  for (std::size_t level = kWidths.size() - 1; level > 0; --level) {
    const int wide = kWidths[level];
    tree += opened(1, "up" + std::to_string(kWidths.size() - level), names.up) + "    (up): ConvTranspose2d(" +
            std::to_string(wide) + ", " + std::to_string(wide / 2) + ", kernel_size=(2, 2), stride=(2, 2))\n" +
            double_conv(2, "conv", wide, wide / 2) + closed(1);
  }
  return tree + opened(1, "outc", "OutConv") + convolution(2, "conv", kWidths[0], 2, 1) + closed(1) + ")\n";
}

core::Result<MemoryEstimate> estimate_of(std::string_view tree, std::int64_t side) {
  auto graph = parse_summary(tree);
  if (!graph) return graph.error();
  TrainingJob job(*std::move(graph), 8);
  job.input_shape = {3, side, side};
  const auto replay = make_estimator("replay");
  if (!replay) return replay.error();
  return (*replay)->estimate(job, *find_profile("a100-80gb"));
}

double mebibytes(core::Bytes bytes) { return static_cast<double>(bytes.count()) / (1 << 20); }

// The graph that export_graph.py makes of the model takes 18,490 MiB on this GPU at batch 8.
TEST(Segmentation, TheUnetThatEverybodyCopiesTakesWhatItsGraphTakes) {
  const auto estimate = estimate_of(unet(), 512);
  ASSERT_TRUE(succeeds(estimate));
  EXPECT_NEAR(mebibytes(estimate->expected), 18'490.0, 0.03 * 18'490.0);
  const auto wired = wired_tree(unet(), {3, 512, 512});
  ASSERT_TRUE(succeeds(wired));
  EXPECT_EQ(wired->guesses().edges, 0);
  EXPECT_EQ(outputs_of(unet(), {3, 512, 512}, "concat"),
            "[N, 1024, 64, 64] [N, 512, 128, 128] [N, 256, 256, 256] [N, 128, 512, 512]");
}

TEST(Segmentation, OfAnOddSizeItIsPaddedToItsSkip) {
  EXPECT_EQ(outputs_of(unet(), {3, 100, 100}, "pad"),
            "[N, 512, 12, 12] [N, 256, 25, 25] [N, 128, 50, 50] [N, 64, 100, 100]");
}

TEST(Segmentation, UnderOtherNamesItsSkipsAreGuessed) {
  const std::string tree = unet({"Net", "Block", "Smaller", "Larger"});
  const auto wired = wired_tree(tree, {3, 512, 512});
  ASSERT_TRUE(succeeds(wired));
  EXPECT_EQ(wired->guesses().edges, 4);
  EXPECT_EQ(outputs_of(tree, {3, 512, 512}, "concat"),
            "[N, 1024, 64, 64] [N, 512, 128, 128] [N, 256, 256, 256] [N, 128, 512, 512]");
  EXPECT_TRUE(fails(wired_tree(tree, {3, 512, 512}, true), ErrorCode::missing_information, 76, "1024 channels"));
}

/// A U-Net whose forward() pools with one module that it calls four times, and weighs each skip with a gate.
std::string attention_unet() {
  constexpr std::array<int, 5> kWidths = {64, 128, 256, 512, 1024};
  std::string tree =
      "AttU_Net(\n  (Maxpool): MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)\n";
  int in = 3;
  for (std::size_t level = 0; level < kWidths.size(); ++level) {
    const std::string name = "Conv" + std::to_string(level + 1);
    tree += opened(1, name, "conv_block") + twice(2, "conv", in, kWidths[level]) + closed(1);
    in = kWidths[level];
  }
  for (std::size_t level = kWidths.size() - 1; level > 0; --level) {
    const int out = kWidths[level - 1];
    const std::string number = std::to_string(level + 1);
    const auto gate = [&](std::string_view name, int from, int to) {
      return opened(2, name, "Sequential") + convolution(3, "0", from, to, 1) + norm(3, "1", to);
    };
    tree += opened(1, "Up" + number, "up_conv") + opened(2, "up", "Sequential") +
            "      (0): Upsample(scale_factor=2.0, mode='nearest')\n" + convolution(3, "1", kWidths[level], out) +
            norm(3, "2", out) + relu(3, "3") + closed(2) + closed(1) + opened(1, "Att" + number, "Attention_block") +
            gate("W_g", out, out / 2) + closed(2) + gate("W_x", out, out / 2) + closed(2) + gate("psi", out / 2, 1) +
            "      (2): Sigmoid()\n" + closed(2) + relu(2, "relu") + closed(1) +
            opened(1, "Up_conv" + number, "conv_block") + twice(2, "conv", kWidths[level], out) + closed(1);
  }
  return tree + convolution(1, "Conv_1x1", 64, 1, 1) + ")\n";
}

TEST(Segmentation, ATreeWhoseJoinsContradictItIsRefusedWithOneLine) {
  for (const std::int64_t side : {256, 384, 512}) {
    const auto wired = wired_tree(attention_unet(), {3, side, side});
    ASSERT_FALSE(wired) << side;
    EXPECT_EQ(wired.error().code, ErrorCode::missing_information);
    EXPECT_NE(wired.error().message.find("estimate_module()"), std::string::npos) << wired.error().message;
    EXPECT_NE(wired.error().message.find("record a training step"), std::string::npos);
    EXPECT_EQ(wired.error().message.find('\n'), std::string::npos);
  }
}

/// An encoder of three sizes, 8 channels at the first and 16 and 32 at the next ones.
constexpr std::string_view kEncoder = R"(  (encoder): ResNetEncoder(
    (conv1): Conv2d(3, 8, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1))
    (layer1): Sequential(
      (0): Conv2d(8, 16, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1))
    )
    (layer2): Sequential(
      (0): Conv2d(16, 32, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1))
    )
  )
)";

std::string model_of(std::string_view name, std::string_view decoder, int width) {
  return std::string(name) + "(\n" + std::string(kEncoder) + std::string(decoder) +
         opened(1, "segmentation_head", "SegmentationHead") + convolution(2, "0", width, 1) + "    (1): Identity()\n" +
         closed(1) + ")\n";
}

std::string unet_block(std::string_view name, int in, int out) {
  return opened(3, name, "DecoderBlock") + convolution(4, "conv1", in, out) +
         "        (attention1): Attention(\n          (attention): Identity()\n        )\n" +
         convolution(4, "conv2", out, out) +
         "        (attention2): Attention(\n          (attention): Identity()\n        )\n" + closed(3);
}

TEST(Segmentation, AUnetDecoderJoinsTheFeatureOfItsSize) {
  const std::string decoder = opened(1, "decoder", "UnetDecoder") + "    (center): Identity()\n" +
                              opened(2, "blocks", "ModuleList") + unet_block("0", 48, 16) + unet_block("1", 24, 8) +
                              unet_block("2", 8, 4) + closed(2) + closed(1);
  const std::string tree = model_of("Unet", decoder, 4);
  EXPECT_EQ(outputs_of(tree, {3, 64, 64}, "upsample"), "[N, 32, 16, 16] [N, 16, 32, 32] [N, 8, 64, 64]");
  EXPECT_EQ(outputs_of(tree, {3, 64, 64}, "concat"), "[N, 48, 16, 16] [N, 24, 32, 32]");
  EXPECT_EQ(ops_of(tree, {3, 64, 64}).find("guessed"), std::string::npos);
}

TEST(Segmentation, ANestedDecoderJoinsAllBlocksOfALevel) {
  const std::string decoder = opened(1, "decoder", "UnetPlusPlusDecoder") + "    (center): Identity()\n" +
                              opened(2, "blocks", "ModuleDict") + unet_block("x_0_0", 48, 16) +
                              unet_block("x_0_1", 40, 8) + unet_block("x_1_1", 24, 16) + unet_block("x_0_2", 8, 4) +
                              closed(2) + closed(1);
  const std::string tree = model_of("UnetPlusPlus", decoder, 4);
  EXPECT_EQ(outputs_of(tree, {3, 64, 64}, "concat"), "[N, 48, 16, 16] [N, 24, 32, 32] [N, 40, 32, 32]");
  EXPECT_EQ(outputs_of(tree, {3, 64, 64}, "upsample"),
            "[N, 32, 16, 16] [N, 16, 32, 32] [N, 16, 32, 32] [N, 8, 64, 64]");
  EXPECT_EQ(ops_of(tree, {3, 64, 64}).find("guessed"), std::string::npos);
}

TEST(Segmentation, ALinknetDecoderAddsTheFeature) {
  const auto block = [](std::string_view name, int in, int out) {
    return opened(3, name, "DecoderBlock") + opened(4, "block", "Sequential") + "          (0): ConvTranspose2d(" +
           std::to_string(in) + ", " + std::to_string(out) + ", kernel_size=(4, 4), stride=(2, 2), padding=(1, 1))\n" +
           closed(4) + closed(3);
  };
  const std::string decoder = opened(1, "decoder", "LinknetDecoder") + opened(2, "blocks", "ModuleList") +
                              block("0", 32, 16) + block("1", 16, 8) + block("2", 8, 4) + closed(2) + closed(1);
  EXPECT_EQ(outputs_of(model_of("Linknet", decoder, 4), {3, 64, 64}, "add"), "[N, 16, 16, 16] [N, 8, 32, 32]");
}

TEST(Segmentation, EveryBranchOfAPyramidReadsItsInput) {
  const std::string pooled = opened(3, "1", "ASPPPooling") + "        (0): AdaptiveAvgPool2d(output_size=1)\n" +
                             convolution(4, "1", 32, 4, 1) + closed(3);
  const std::string decoder = opened(1, "decoder", "DeepLabV3Decoder") + opened(2, "aspp", "ASPP") +
                              opened(2, "convs", "ModuleList") + convolution(3, "0", 32, 4) + pooled + closed(2) +
                              convolution(2, "project", 8, 4, 1) + closed(2) + closed(1);
  const std::string tree = model_of("DeepLabV3", decoder, 4);
  EXPECT_EQ(outputs_of(tree, {3, 64, 64}, "concat"), "[N, 8, 8, 8]");
  EXPECT_EQ(ops_of(tree, {3, 64, 64}).find("guessed"), std::string::npos);
}

}  // namespace
}  // namespace gpumem::architectures
