#include "gpumem/connect/plain_blocks.hpp"

#include "block_trees.hpp"

namespace gpumem::connect {
namespace {

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
}  // namespace gpumem::connect
