#include "gpumem/connect/token_models.hpp"

#include "block_trees.hpp"

namespace gpumem::connect {
namespace {

using testing::ops_of;
using testing::parameters_of;

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

}  // namespace
}  // namespace gpumem::connect
