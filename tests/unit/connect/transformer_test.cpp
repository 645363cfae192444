#include "gpumem/connect/transformer.hpp"

#include "block_trees.hpp"

namespace gpumem::connect {
namespace {

using testing::ops_of;

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

}  // namespace
}  // namespace gpumem::connect
