#include "gpumem/ops/attention.hpp"

#include "op_cases.hpp"

namespace gpumem::ops {
namespace {

using testing::N;
using testing::output_text;
using testing::parameters;
using testing::shape;

TEST(MultiheadAttention, CountsItsPackedInputProjectionOnly) {
  // PyTorch 1.13.1, MultiheadAttention(32, 4): in_proj_weight 3,072, in_proj_bias 96, and out_proj, a layer
  // of its own.
  EXPECT_EQ(parameters("multihead_attention", "embed_dim=32"), 3168);
  EXPECT_EQ(parameters("multihead_attention", "embed_dim=32, bias=False"), 3072);
  EXPECT_EQ(parameters("multihead_attention", ""), -1);
}

TEST(MultiheadAttention, CountsItsOutputProjectionWhereItSaysSo) {
  // PyTorch 1.13.1, all parameters of MultiheadAttention(32, 4), with and without bias.
  EXPECT_EQ(parameters("multihead_attention", "embed_dim=32, out_proj=True"), 4224);
  EXPECT_EQ(parameters("multihead_attention", "embed_dim=32, out_proj=True, bias=False"), 4096);
}

TEST(Attention, HasTheQuerysShape) {
  EXPECT_EQ(output_text("multihead_attention", "", {shape({N, 5, 32}), shape({N, 9, 32})}), "[N, 5, 32]");
  EXPECT_EQ(output_text("scaled_dot_product_attention", "", {shape({N, 4, 5, 8})}), "[N, 4, 5, 8]");
}

/// Whether the output of the fused kernel lies in order, for queries that do.
bool lies_in_order(model::Precision precision) {
  Tape tape(precision);
  tape.begin_layer(0);
  const TensorId parameter = tape.add_parameter(10);
  std::array<TensorId, 3> qkv{};
  for (TensorId& each : qkv) each = tape.record({.output = {320, 1}, .parameters = {&parameter, 1}});
  const std::array<core::Shape, 3> shapes = {shape({N, 4, 5, 16}), shape({N, 4, 5, 16}), shape({N, 4, 5, 16})};
  OpCall call;
  call.tensors = qkv;
  call.shapes = shapes;
  call.output = shapes[0];
  call.size = {320, 1};
  const auto output = testing::op("scaled_dot_product_attention").record(call, tape);
  return output && tape.tensor(*output).layout.dense();
}

TEST(Attention, FlashLaysItsOutputOutAsTheQuery) {
  // PyTorch 2.6 on CUDA: strides of the output for contiguous queries.
  EXPECT_TRUE(lies_in_order(model::Precision::bf16));
  EXPECT_TRUE(lies_in_order(model::Precision::amp_bf16));
  EXPECT_FALSE(lies_in_order(model::Precision::fp32)) << "the memory-efficient kernel: [N, S, heads, d]";
}

}  // namespace
}  // namespace gpumem::ops
