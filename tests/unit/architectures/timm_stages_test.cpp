#include <string>

#include "block_trees.hpp"
#include "gpumem/architectures/timm_stages.hpp"

namespace gpumem::architectures {
namespace {

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

}  // namespace
}  // namespace gpumem::architectures
