#include "gpumem/architectures/timm_branches.hpp"

#include <string>

#include "block_trees.hpp"

namespace gpumem::architectures {
namespace {

using testing::outputs_of;
using testing::parameters_of;

std::string linear(const std::string& name, int in, int out) {
  return "(" + name + "): Linear(in_features=" + std::to_string(in) + ", out_features=" + std::to_string(out) +
         ", bias=True)\n";
}

std::string norm(const std::string& name, int width) {
  return "(" + name + "): LayerNorm((" + std::to_string(width) + ",), eps=1e-06, elementwise_affine=True)\n";
}

std::string conv(const std::string& name, int in, int out, int kernel, const std::string& more) {
  const std::string size = std::to_string(kernel);
  return "(" + name + "): Conv2d(" + std::to_string(in) + ", " + std::to_string(out) + ", kernel_size=(" + size + ", " +
         size + ")" + more + ")\n";
}

std::string module(const std::string& name, const std::string& class_name, const std::string& parts) {
  return "(" + name + "): " + class_name + "(\n" + parts + ")\n";
}

/// Lines with the depth of their brackets, as print() has them.
std::string printed(const std::string& text) {
  std::string result;
  std::size_t depth = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    const std::string line = text.substr(begin, end - begin);
    if (line == ")") --depth;
    result += std::string(2 * depth, ' ') + line + '\n';
    if (line.ends_with('(')) ++depth;
    begin = end + 1;
  }
  return result;
}

std::string model(const std::string& class_name, const std::string& parts) {
  return printed(class_name + "(\n" + parts + ")\n");
}

// Two branches, 32 and 64 wide, with two heads each.
std::string crossvit() {
  const auto block = [](int width) {
    return module(
        "0", "Sequential",
        module("0", "Block",
               norm("norm1", width) +
                   module("attn", "Attention", linear("qkv", width, 3 * width) + linear("proj", width, width)) +
                   norm("norm2", width) + module("mlp", "Mlp", linear("fc1", width, width))));
  };
  const auto proj = [](const std::string& name, int in, int out) {
    return module(name, "Sequential", norm("0", in) + "(1): GELU(approximate='none')\n" + linear("2", in, out));
  };
  const auto cross = [](const std::string& name, int width) {
    return module(name, "CrossAttentionBlock",
                  norm("norm1", width) +
                      module("attn", "CrossAttention",
                             linear("wq", width, width) + linear("wk", width, width) + linear("wv", width, width) +
                                 "(attn_drop): Dropout(p=0.0, inplace=False)\n" + linear("proj", width, width)));
  };
  std::string wide = block(128);
  wide.replace(0, 3, "(1)");
  const std::string fusion = module("0", "MultiScaleBlock",
                                    module("blocks", "ModuleList", block(64) + wide) +
                                        module("projs", "ModuleList", proj("0", 64, 128) + proj("1", 128, 64)) +
                                        module("fusion", "ModuleList", cross("0", 128) + cross("1", 64)) +
                                        module("revert_projs", "ModuleList", proj("0", 128, 64) + proj("1", 64, 128)));
  return model("CrossVit", module("patch_embed", "ModuleList",
                                  module("0", "PatchEmbed", conv("proj", 3, 64, 12, ", stride=(12, 12)")) +
                                      module("1", "PatchEmbed", conv("proj", 3, 128, 16, ", stride=(16, 16)"))) +
                               module("blocks", "ModuleList", fusion) +
                               module("norm", "ModuleList", norm("0", 64) + norm("1", 128)) +
                               module("head", "ModuleList", linear("0", 64, 10) + linear("1", 128, 10)));
}

TEST(CrossVit, EachBranchHasItsPatchesAndItsClassTokenAttendsToTheOther) {
  // 20 x 20 patches of the image, 14 x 14 of the one that is scaled to 224 pixels
  EXPECT_EQ(outputs_of(crossvit(), {3, 240, 240}, "scaled_dot_product_attention"), "[N, 2, 401, 32] [N, 2, 197, 64]");
  EXPECT_EQ(outputs_of(crossvit(), {3, 240, 240}, "upsample"), "[N, 3, 224, 224]");
  EXPECT_EQ(outputs_of(crossvit(), {3, 240, 240}, "softmax"), "[N, 2, 1, 197] [N, 2, 1, 401]");
  EXPECT_EQ(outputs_of(crossvit(), {3, 240, 240}, "mean"), "[N, 10]");
}

TEST(CrossVit, NothingIsGuessedAndLearnedTokensAreCounted) {
  const auto wired = testing::wired_tree(crossvit(), {3, 240, 240}, true);
  ASSERT_TRUE(testing::succeeds(wired));
  EXPECT_EQ(wired->guesses().edges, 0);
  const auto tree = parse_summary(crossvit());
  ASSERT_TRUE(testing::succeeds(tree));
  const std::int64_t tokens = 64 * (1 + 401) + 128 * (1 + 197);
  EXPECT_EQ(wired->graph().parameters(), tree->parameters() + tokens);
}

// Four scales of 16 channels: two heads, of which the first is convolved with 3 x 3 pixels.
std::string coat(bool parallel) {
  constexpr int kWidth = 16;
  const std::string image = ", stride=(1, 1), padding=(1, 1), groups=";
  const auto windows = [&](const std::string& name) {
    return module(
        name, "ConvRelPosEnc",
        module("conv_list", "ModuleList",
               conv("0", 8, 8, 3, image + "8") + conv("1", 8, 8, 5, ", stride=(1, 1), padding=(2, 2), groups=8")));
  };
  const auto positions = [&](const std::string& name) {
    return module(name, "ConvPosEnc", conv("proj", kWidth, kWidth, 3, image + "16"));
  };
  const auto attention = [&](const std::string& name) {
    return module(name, "FactorAttnConvRelPosEnc",
                  linear("qkv", kWidth, 3 * kWidth) + linear("proj", kWidth, kWidth) + windows("crpe"));
  };
  const auto mlp = [&](const std::string& name) { return module(name, "Mlp", linear("fc1", kWidth, kWidth)); };
  std::string text;
  for (int scale = 1; scale <= 4; ++scale) {
    const std::string number = std::to_string(scale);
    const std::string side = scale == 1 ? "4" : "2";
    text +=
        module("patch_embed" + number, "PatchEmbed",
               conv("proj", scale == 1 ? 3 : kWidth, kWidth, std::stoi(side), ", stride=(" + side + ", " + side + ")") +
                   norm("norm", kWidth));
  }
  for (const std::string number : {"1", "2", "3", "4"}) text += positions("cpe" + number) + windows("crpe" + number);
  for (const std::string number : {"1", "2", "3", "4"}) {
    text += module("serial_blocks" + number, "ModuleList",
                   module("0", "SerialBlock",
                          positions("cpe") + norm("norm1", kWidth) + attention("factoratt_crpe") +
                              "(drop_path): Identity()\n" + norm("norm2", kWidth) + mlp("mlp")));
  }
  if (parallel) {
    std::string parts;
    for (const std::string number : {"2", "3", "4"}) parts += norm("norm1" + number, kWidth);
    for (const std::string number : {"2", "3", "4"}) parts += attention("factoratt_crpe" + number);
    parts += "(drop_path): Identity()\n";
    for (const std::string number : {"2", "3", "4"}) parts += norm("norm2" + number, kWidth);
    for (const std::string number : {"2", "3", "4"}) parts += mlp("mlp" + number);
    text += module("parallel_blocks", "ModuleList", module("0", "ParallelBlock", parts)) + norm("norm2", kWidth) +
            norm("norm3", kWidth);
  }
  text += norm("norm4", kWidth);
  if (parallel) text += "(aggregate): Conv1d(3, 1, kernel_size=(1,), stride=(1,))\n";
  return model("CoaT", text + linear("head", kWidth, 10));
}

/// Of a CoaT with one block a scale, each shared module once.
std::int64_t coat_parameters(bool parallel) {
  constexpr std::int64_t kBlock = (16 * 48 + 48) + (16 * 16 + 16) + (16 * 16 + 16) + 2 * 32;
  constexpr std::int64_t kPositions = (9 * 16 + 16) + (9 * 8 + 8) + (25 * 8 + 8);
  constexpr std::int64_t kPatches = (3 * 16 * 16 + 16 + 32) + 3 * (16 * 4 * 16 + 16 + 32);
  constexpr std::int64_t kTokens = 4 * 16;
  constexpr std::int64_t kHead = 32 + 16 * 10 + 10;
  // three attentions and pairs of norms, one MLP, two norms, the convolution of three tokens
  constexpr std::int64_t kParallel = 3 * ((16 * 48 + 48) + (16 * 16 + 16) + 2 * 32) + (16 * 16 + 16) + 2 * 32 + 4;
  return kPatches + 4 * (kBlock + kPositions) + kTokens + kHead + (parallel ? kParallel : 0);
}

TEST(CoaT, BlocksOfAStageShareTheirConvolutions) {
  EXPECT_EQ(parameters_of(coat(false), {3, 32, 32}), coat_parameters(false));
  EXPECT_EQ(outputs_of(coat(false), {3, 32, 32}, "softmax"), "[N, 2, 65, 8] [N, 2, 17, 8] [N, 2, 5, 8] [N, 2, 2, 8]");
}

TEST(CoaT, ParallelBlocksExchangeThreeSizes) {
  EXPECT_EQ(parameters_of(coat(true), {3, 32, 32}), coat_parameters(true));
  EXPECT_EQ(outputs_of(coat(true), {3, 32, 32}, "upsample"),
            "[N, 16, 4, 4] [N, 16, 2, 2] [N, 16, 4, 4] [N, 16, 2, 2] [N, 16, 1, 1] [N, 16, 1, 1]");
  EXPECT_EQ(outputs_of(coat(true), {3, 32, 32}, "conv1d"), "[N, 1, 16]");
}

// A block at 8 x 8 tokens, 16 wide, and one that makes 4 x 4 of them, 32 wide; heads of 16.
std::string mvit() {
  const auto block = [](int in, int out, int stride) {
    const auto pool = [&](const std::string& name, int of) {
      const std::string size = std::to_string(of);
      return conv("pool_" + name, 16, 16, 3,
                  ", stride=(" + size + ", " + size + "), padding=(1, 1), groups=16, bias=False") +
             norm("norm_" + name, 16);
    };
    std::string text = norm("norm1", in);
    if (in != out) text += linear("shortcut_proj_attn", in, out);
    if (stride > 1) {
      text +=
          "(shortcut_pool_attn): MaxPool2d(kernel_size=[3, 3], stride=(2, 2), padding=[1, 1], dilation=1, "
          "ceil_mode=False)\n";
    }
    return text +
           module("attn", "MultiScaleAttention",
                  linear("qkv", in, 3 * out) + linear("proj", out, out) + pool("q", stride) + pool("k", 2) +
                      pool("v", 2)) +
           norm("norm2", out) + module("mlp", "Mlp", linear("fc1", out, out));
  };
  const auto stage = [&](const std::string& name, int in, int out, int stride) {
    return module(name, "MultiScaleVitStage",
                  module("blocks", "ModuleList", module("0", "MultiScaleBlock", block(in, out, stride))));
  };
  return model("MultiScaleVit",
               module("patch_embed", "PatchEmbed", conv("proj", 3, 16, 7, ", stride=(4, 4), padding=(3, 3)")) +
                   module("stages", "ModuleList", stage("0", 16, 16, 1) + stage("1", 16, 32, 2)) + norm("norm", 32) +
                   module("head", "Sequential", "(drop): Dropout(p=0.0, inplace=False)\n" + linear("fc", 32, 10)));
}

TEST(MultiScaleVit, QueriesKeysAndValuesArePooled) {
  EXPECT_EQ(outputs_of(mvit(), {3, 32, 32}, "softmax"), "[N, 1, 64, 16] [N, 2, 16, 16]");
  EXPECT_EQ(outputs_of(mvit(), {3, 32, 32}, "max_pool2d"), "[N, 32, 4, 4]");
  EXPECT_EQ(outputs_of(mvit(), {3, 32, 32}, "mean"), "[N, 32]");
}

TEST(MultiScaleVit, PositionsOfRowsAndColumnsAreCounted) {
  const auto wired = testing::wired_tree(mvit(), {3, 32, 32}, true);
  ASSERT_TRUE(testing::succeeds(wired));
  const auto tree = parse_summary(mvit());
  ASSERT_TRUE(testing::succeeds(tree));
  const std::int64_t positions = 2 * (2 * 8 - 1) * 16 + 2 * (2 * 4 - 1) * 16;
  EXPECT_EQ(wired->graph().parameters(), tree->parameters() + positions);
}

}  // namespace
}  // namespace gpumem::architectures
