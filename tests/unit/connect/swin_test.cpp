#include "gpumem/connect/token_models.hpp"

#include "block_trees.hpp"

namespace gpumem::connect {
namespace {

using testing::ops_of;

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
