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

/// A call of attention whose output is as large as its query, which is the first of `shapes`.
OpCall call_of(std::span<const TensorId> tensors, std::span<const core::Shape> shapes, const TensorSize& size,
               std::span<const model::Attribute> attributes = {}) {
  OpCall call;
  call.attributes = attributes;
  call.tensors = tensors;
  call.shapes = shapes;
  call.output = shapes[0];
  call.size = size;
  return call;
}

/// Whether the output of the fused kernel lies in order, for queries that do.
bool lies_in_order(model::Precision precision) {
  Tape tape(precision);
  tape.begin_layer(0);
  const TensorId parameter = tape.add_parameter(10);
  std::array<TensorId, 3> qkv{};
  for (TensorId& each : qkv) each = tape.record({.output = {320, 1}, .parameters = {&parameter, 1}});
  const std::array<core::Shape, 3> shapes = {shape({N, 4, 5, 16}), shape({N, 4, 5, 16}), shape({N, 4, 5, 16})};
  const OpCall call = call_of(qkv, shapes, {320, 1});
  const auto output = testing::op("scaled_dot_product_attention").record(call, tape);
  return output && tape.tensor(*output).layout.dense();
}

TEST(Attention, FlashLaysItsOutputOutAsTheQuery) {
  // PyTorch 2.6 on CUDA: strides of the output for contiguous queries.
  EXPECT_TRUE(lies_in_order(model::Precision::bf16));
  EXPECT_TRUE(lies_in_order(model::Precision::amp_bf16));
  EXPECT_FALSE(lies_in_order(model::Precision::fp32)) << "the memory-efficient kernel: [N, S, heads, d]";
}

/// The elements of masks of dropout that backward holds: 2 samples, 4 heads with one key and value, 8 tokens, heads 16
/// wide.
std::int64_t dropped_out(model::Precision precision, double dropout) {
  Tape tape(precision);
  tape.begin_layer(0);
  const TensorId parameter = tape.add_parameter(10);
  const std::array<core::Shape, 3> shapes = {shape({2, 4, 8, 16}), shape({2, 1, 8, 16}), shape({2, 1, 8, 16})};
  std::array<TensorId, 3> qkv{};
  for (std::size_t at = 0; at < qkv.size(); ++at) {
    qkv[at] = tape.record({.output = {at == 0 ? 2 * 4 * 8 * 16 : 2 * 8 * 16, 0}, .parameters = {&parameter, 1}});
  }
  const std::array<model::Attribute, 1> attributes = {{{"dropout_p", dropout}}};
  const OpCall call = call_of(qkv, shapes, {2 * 4 * 8 * 16, 0}, attributes);
  EXPECT_TRUE(testing::op("scaled_dot_product_attention").record(call, tape));
  std::int64_t elements = 0;
  for (const Function& function : tape.functions()) {
    for (const TensorId saved : tape.list(function.saved)) {
      const TensorSize& size = tape.tensor(saved).size;
      if (size.dtype == core::DType::boolean) elements += size.elements.value().value_or(0);
    }
  }
  return elements;
}

TEST(Attention, OfOneKeyForAllHeadsKeepsTheMaskOfDropout) {
  // aten::_scaled_dot_product_attention_math drops the softmax's weights: native_dropout keeps a mask of them.
  for (const model::Precision precision : {model::Precision::fp32, model::Precision::bf16}) {
    EXPECT_EQ(dropped_out(precision, 0.1), 2 * 4 * 8 * 8);
    EXPECT_EQ(dropped_out(precision, 0.0), 0);
  }
}

/// The bytes that backward holds of scores of Megatron's attention in bfloat16, and of what is computed of them: 2
/// samples, 4 heads, 8 tokens, heads 16 wide.
std::int64_t scores_of_megatron(bool in_float32) {
  Tape tape(model::Precision::bf16);
  tape.begin_layer(0);
  const TensorId parameter = tape.add_parameter(10);
  std::array<TensorId, 3> qkv{};
  for (TensorId& each : qkv) each = tape.record({.output = {2 * 4 * 8 * 16, 0}, .parameters = {&parameter, 1}});
  const std::array<core::Shape, 3> shapes = {shape({2, 4, 8, 16}), shape({2, 4, 8, 16}), shape({2, 4, 8, 16})};
  const std::array<model::Attribute, 3> attributes = {
      {{"dropout_p", 0.1}, {"fused_softmax", true}, {"float32_softmax", in_float32}}};
  OpCall call = call_of(qkv, shapes, {2 * 4 * 8 * 16, 0}, attributes);
  call.attention = model::AttentionBackend::eager;
  EXPECT_TRUE(testing::op("scaled_dot_product_attention").record(call, tape));
  std::int64_t bytes = 0;
  for (const Function& function : tape.functions()) {
    for (const TensorId saved : tape.list(function.saved)) {
      const TensorSize& size = tape.tensor(saved).size;
      const std::int64_t elements = size.elements.value().value_or(0);
      if (elements == 2 * 4 * 8 * 8) bytes += elements * core::element_size(size.dtype);
    }
  }
  return bytes;
}

TEST(Attention, MegatronsOwnKeepsTheSoftmaxInTheTypeThatItIsTakenIn) {
  // core/fusions/fused_softmax.py: backward of a softmax reads its result; the product reads what dropout leaves.
  EXPECT_EQ(scores_of_megatron(false), 2 * 4 * 8 * 8 * (2 + 1 + 2));
  EXPECT_EQ(scores_of_megatron(true), 2 * 4 * 8 * 8 * (4 + 1 + 2));
}

/// The bytes that backward holds of attention with sinks: 2 samples, 4 heads, 8 tokens, heads 16 wide.
std::int64_t kept_with_sinks(model::AttentionBackend backend, bool sinks) {
  Tape tape(model::Precision::bf16);
  tape.begin_layer(0);
  const TensorId parameter = tape.add_parameter(10);
  std::array<TensorId, 5> inputs{};
  for (TensorId& each : inputs) each = tape.record({.output = {2 * 4 * 8 * 16, 0}, .parameters = {&parameter, 1}});
  inputs[3] = tape.record({.output = {2 * 8 * 8, 0}, .differentiable = false});
  const core::Shape heads = shape({2, 4, 8, 16});
  const std::array<core::Shape, 5> shapes = {heads, heads, heads, shape({2, 1, 8, 8}), shape({4})};
  const std::size_t first = tape.functions().size();
  OpCall call;
  call.tensors = std::span(inputs).first(sinks ? 5 : 4);
  call.shapes = std::span(shapes).first(sinks ? 5 : 4);
  call.output = heads;
  call.size = {2 * 4 * 8 * 16, 0};
  call.attention = backend;
  EXPECT_TRUE(testing::op("sink_attention").record(call, tape));
  std::int64_t scores = 0;
  for (const Function& function : tape.functions().subspan(first)) {
    for (const TensorId saved : tape.list(function.saved)) {
      const std::int64_t elements = tape.tensor(saved).size.elements.value().value_or(0);
      scores += elements == 2 * 4 * 8 * 8 || elements == 2 * 4 * 8 * 9 ? elements : 0;
    }
  }
  return scores;
}

TEST(SinkAttention, KeepsOneRowOfScoresAndItsSink) {
  constexpr std::int64_t kScores = std::int64_t{2} * 4 * 8;
  EXPECT_EQ(kept_with_sinks(model::AttentionBackend::sdpa, false), 2 * kScores * 8) << "softmax, and as a factor";
  // The softmax with its further column, and a view of the others.
  EXPECT_EQ(kept_with_sinks(model::AttentionBackend::sdpa, true), kScores * 9 + kScores * 8);
  EXPECT_EQ(kept_with_sinks(model::AttentionBackend::flash, true), 0) << "no scores are written out";
}

constexpr std::int64_t kQueryRows = std::int64_t{2} * 4 * 8;  // samples, heads, tokens

/// What flash attention with sinks multiplies: keys are 16 wide, values may have another width.
std::int64_t multiplied_with_sinks(std::int64_t keys, std::int64_t value_width, bool causal) {
  Tape tape(model::Precision::bf16);
  tape.begin_layer(0);
  const TensorId parameter = tape.add_parameter(10);
  const std::array<std::int64_t, 5> elements = {kQueryRows * 16, kQueryRows / 8 * keys * 16,
                                                kQueryRows / 8 * keys * value_width, kQueryRows / 4 * keys, 4};
  std::array<TensorId, 5> inputs{};
  for (std::size_t at = 0; at < inputs.size(); ++at) {
    inputs[at] = tape.record({.output = {elements[at], 0}, .parameters = {&parameter, 1}});
  }
  const std::array<core::Shape, 5> shapes = {shape({2, 4, 8, 16}), shape({2, 4, keys, 16}),
                                             shape({2, 4, keys, value_width}), shape({2, 1, 8, keys}), shape({4})};
  const std::array<model::Attribute, 1> attributes = {{{"is_causal", causal}}};
  OpCall call;
  call.attributes = std::span<const model::Attribute>(attributes);
  call.tensors = inputs;
  call.shapes = shapes;
  call.output = shape({2, 4, 8, value_width});
  call.size = {kQueryRows * value_width, 0};
  call.attention = model::AttentionBackend::flash;
  EXPECT_TRUE(testing::op("sink_attention").record(call, tape));
  return tape.functions().back().multiply_adds.elements.value().value_or(0);
}

TEST(SinkAttention, OfOneKernelSkipsWhatACausalMaskHides) {
  EXPECT_EQ(multiplied_with_sinks(8, 16, false), kQueryRows * 8 * (16 + 16));
  EXPECT_EQ(multiplied_with_sinks(8, 16, true), kQueryRows * 8 * (16 + 16) / 2);
  EXPECT_EQ(multiplied_with_sinks(8, 32, true), kQueryRows * 8 * (16 + 32) / 2) << "values of another width";
  EXPECT_EQ(multiplied_with_sinks(12, 16, true), kQueryRows * 12 * (16 + 16)) << "more keys than queries";
}

TEST(IndexedMask, IsOneOfAllTokens) {
  EXPECT_EQ(output_text("indexed_mask", "heads=4, width=16", {shape({N, 8, 64})}), "[N, 1, 8, 8]");
  EXPECT_FALSE(testing::output("indexed_mask", "heads=4, width=16", {shape({N, 64})}));
}

}  // namespace
}  // namespace gpumem::ops
