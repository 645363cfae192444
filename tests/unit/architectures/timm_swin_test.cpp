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
}  // namespace gpumem::architectures
