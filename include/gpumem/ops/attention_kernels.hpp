// Input: queries, keys and values of one attention.
// Output: what one kernel of it, or the calls that write it out, keep for backward and take on the way.
// Units: bytes, elements.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "gpumem/ops/matrix.hpp"
#include "gpumem/ops/op.hpp"
#include "gpumem/ops/tape.hpp"

namespace gpumem::ops::attention_detail {

/// Dropout of the softmax's weights: a mask of `type`, an element for each of them.
inline TensorId drop_weights(Tape& tape, TensorId weights, const TensorSize& scores,
                             core::DType type = core::DType::boolean) {
  const TensorSize mask = scores.as(type);
  return tape.record({.inputs = {&weights, 1}, .output = scores, .extras = {&mask, 1}});
}

/// softmax(Q Kᵀ / √d) V written out (aten::_scaled_dot_product_attention_math): the scores, their softmax and the
/// dropped-out weights are materialised.
inline TensorId record_math(Tape& tape, std::span<const TensorId> qkv, const TensorSize& output,
                            const TensorSize& scores, std::int64_t keys, bool drops) {
  const TensorId query = contiguous(tape, elementwise(tape, qkv[0]));
  const TensorId key = contiguous(tape, elementwise(tape, qkv[1]));
  const std::array<TensorId, 2> product_of = {query, key};
  const TensorId raw = tape.record({.inputs = product_of,
                                    .output = scores,
                                    .saved_inputs = 3,
                                    .library = Library::gemm,
                                    .multiply_adds = output.times(keys),
                                    .autocast = Autocast::lower});
  TensorId weights = softmax(tape, raw, Autocast::full);
  const core::DType mask = tape.backend() == Backend::cpu ? core::DType::float32 : core::DType::boolean;
  if (drops) weights = drop_weights(tape, weights, scores, mask);
  const std::array<TensorId, 2> weighted = {weights, contiguous(tape, qkv[2])};
  return tape.record({.inputs = weighted,
                      .output = output,
                      .saved_inputs = 3,
                      .library = Library::gemm,
                      .multiply_adds = output.times(keys),
                      .autocast = Autocast::lower});
}

/// The same of keys and values with one head for all (multi-query), or that the fused kernels do not take: computed in
/// float32 (math_compute of attention.cpp, since 2.5), keys and values copied out for each head by aten::matmul, and a
/// mask of the future where none is given.
inline TensorId record_broadcast_math(Tape& tape, const OpCall& call, const TensorSize& scores, std::int64_t keys,
                                      bool drops) {
  const core::DType computing = tape.computing_type({.inputs = call.tensors.first(3), .autocast = Autocast::lower});
  const auto wide = [&](TensorId tensor) { return tape.cast(tape.cast(tensor, computing), core::DType::float32); };
  const TensorSize whole = call.size.as(core::DType::float32);
  const TensorSize written = scores.as(core::DType::float32);
  const auto repeated = [&](TensorId tensor) {
    const TensorSize all = {whole.elements, whole.batch_power, core::DType::float32};
    const TensorId view =
        tape.record({.inputs = {&tensor, 1}, .output = all, .kind = Output::view, .layout = {Layout::kInOrder, true}});
    return contiguous(tape, view);
  };
  const TensorId value = wide(call.tensors[2]);
  const std::array<TensorId, 2> product_of = {contiguous(tape, elementwise(tape, wide(call.tensors[0]))),
                                              repeated(elementwise(tape, wide(call.tensors[1])))};
  const TensorId raw = tape.record({.inputs = product_of,
                                    .output = written,
                                    .saved_inputs = 3,
                                    .library = Library::gemm,
                                    .multiply_adds = whole.times(keys)});
  const TensorId masked = elementwise(tape, raw);
  TensorId weights = softmax(tape, masked);
  if (drops) weights = drop_weights(tape, weights, written);
  const std::array<TensorId, 2> weighted = {weights, repeated(value)};
  const TensorId mixed = tape.record({.inputs = weighted,
                                      .output = whole,
                                      .saved_inputs = 3,
                                      .library = Library::gemm,
                                      .multiply_adds = whole.times(keys)});
  return tape.cast(mixed, computing);
}

/// What a fused kernel multiplies and adds: Q K^T, as wide as the query, and the weights with the values. A causal one
/// skips the blocks of keys behind its queries, half of all. Source: flash-attn 2.7, flash_fwd_kernel.h (n_block_max
/// where Is_causal); PyTorch 2.6, mem_eff_attention/kernel_forward.h (num_keys under CausalFromTopLeft).
inline TensorSize fused_products(const TensorSize& query, const TensorSize& output, std::int64_t keys, bool causal) {
  TensorSize all = output.times(keys);
  all.elements += query.times(keys).elements;
  if (const auto counted = all.elements.value(); causal && counted) all.elements = *counted / 2;
  return all;
}

/// Memory-efficient attention (float32) and flash attention (half precision, no mask): keep Q, K, V, the output and
/// one log-sum a row; backward holds one figure a row, and flash a float32 copy of the query's gradient. A fourth
/// input is a mask, kept as well, which gets a gradient where it is learned (native_functions.yaml,
/// _scaled_dot_product_efficient_attention_backward); flash takes none, and only values as wide as the keys (`alike`).
/// Flash lays its output out as the query lies (flash_api.cpp, empty_like), and so does cuDNN's kernel (`as_query`;
/// ATen/native/cudnn/MHA.cpp, alloc_with_matching_layout); the other one as [N, S, heads, d], which is then seen as
/// [N, heads, S, d].
inline TensorId record_fused(Tape& tape, std::span<const TensorId> qkv, const TensorSize& output,
                             const TensorSize& rows, const TensorSize& products, bool alike = true,
                             bool as_query = false) {
  const bool half = core::element_size(tape.computing_type({.inputs = qkv, .autocast = Autocast::lower})) == 2;
  const std::array<TensorSize, 2> extras = {rows, TensorSize{2, 0, core::DType::int64}};
  const std::array<TensorSize, 2> scratch = {rows, output.as(core::DType::float32)};
  const std::array<std::size_t, 4> heads_first = {0, 2, 1, 3};
  const bool flash = half && qkv.size() == 3 && alike;
  return tape.record({.inputs = qkv,
                      .output = output,
                      .layout = flash || (half && as_query) ? Layout{tape.tensor(qkv[0]).layout.order, false}
                                                            : Layout{}.permuted(heads_first),
                      .saved_inputs = qkv.size() > 3 ? 15U : 7U,
                      .saves_output = true,
                      .extras = extras,
                      .backward_scratch = std::span(scratch).first(half ? 2 : 1),
                      .multiply_adds = products,
                      .autocast = Autocast::lower});
}

/// The scores of attention that is written out: one product.
inline TensorId record_scores(Tape& tape, std::span<const TensorId> qkv, const TensorSize& output,
                              const TensorSize& scores, std::int64_t keys) {
  const std::array<TensorId, 2> product_of = {contiguous(tape, qkv[0]), contiguous(tape, qkv[1])};
  return tape.record({.inputs = product_of,
                      .output = scores,
                      .saved_inputs = 3,
                      .library = Library::gemm,
                      .multiply_adds = output.times(keys),
                      .autocast = Autocast::lower});
}

/// Its end: dropout of the softmax's weights, and their product with the values.
inline TensorId record_weighted(Tape& tape, TensorId weights, TensorId values, const TensorSize& output,
                                const TensorSize& scores, std::int64_t keys, bool drops) {
  if (drops) weights = drop_weights(tape, weights, scores);
  const std::array<TensorId, 2> weighted = {weights, contiguous(tape, values)};
  return tape.record({.inputs = weighted,
                      .output = output,
                      .saved_inputs = 3,
                      .library = Library::gemm,
                      .multiply_adds = output.times(keys),
                      .autocast = Autocast::lower});
}

/// eager_attention_forward of transformers 4.48: scores, scaled, with a mask added, their softmax in float32 and back
/// in their type, each a tensor of its own. The mask itself, one for all layers, is not counted.
inline TensorId record_eager(Tape& tape, std::span<const TensorId> qkv, const TensorSize& output,
                             const TensorSize& scores, std::int64_t keys, bool drops) {
  const TensorId raw = record_scores(tape, qkv, output, scores, keys);
  const core::DType type = tape.tensor(raw).size.dtype;
  const TensorId masked = elementwise(tape, elementwise(tape, raw));
  TensorId weights = softmax(tape, tape.cast(masked, core::DType::float32), Autocast::full);
  weights = tape.cast(weights, type);
  return record_weighted(tape, weights, qkv[2], output, scores, keys, drops);
}

/// Attention written out as Megatron and TransformerEngine have it: one product that scales the scores, one kernel that
/// masks them and takes their softmax in their own type, dropout, and the product with the values. `in_float32`: in
/// place of that kernel PyTorch's softmax, of a float32 copy that is masked in place (forward_torch_softmax()).
/// Source: Megatron-LM core r0.12, core/transformer/dot_product_attention.py, core/fusions/fused_softmax.py;
/// TransformerEngine 2.1, pytorch/attention.py: UnfusedDotProductAttention.
inline TensorId record_fused_softmax(Tape& tape, std::span<const TensorId> qkv, const TensorSize& output,
                                     const TensorSize& scores, std::int64_t keys, bool drops, bool in_float32) {
  const TensorId raw = record_scores(tape, qkv, output, scores, keys);
  const core::DType type = tape.tensor(raw).size.dtype;
  TensorId weights = raw;
  if (in_float32) weights = softmax(tape, tape.cast(raw, core::DType::float32), Autocast::full);
  weights = in_float32 ? tape.cast(weights, type) : elementwise(tape, raw, 0, true);
  return record_weighted(tape, weights, qkv[2], output, scores, keys, drops);
}

/// flash_attn_func of flash-attn 2.7 (csrc/flash_attn/flash_api.cpp): keeps Q, K and V as they are projected, the
/// output and a log-sum a row. Backward holds a figure a row and a float32 copy of the query's gradient; of heads that
/// share keys it makes gradients as large as the query's first, and sums them.
inline TensorId record_flash(Tape& tape, std::span<const TensorId> qkv, const TensorSize& output,
                             const TensorSize& rows, const TensorSize& products) {
  const std::array<TensorSize, 2> extras = {rows, TensorSize{2, 0, core::DType::int64}};
  const core::DType type = tape.computing_type({.inputs = qkv, .autocast = Autocast::lower});
  const std::array<TensorSize, 4> scratch = {rows, output.as(core::DType::float32), output.as(type), output.as(type)};
  const bool shares = tape.tensor(qkv[1]).size.elements.value() != tape.tensor(qkv[0]).size.elements.value();
  return tape.record({.inputs = qkv,
                      .output = output,
                      .layout = Layout{tape.tensor(qkv[0]).layout.order, false},
                      .saved_inputs = 7,
                      .saves_output = true,
                      .extras = extras,
                      .backward_scratch = std::span(scratch).first(shares ? 4 : 2),
                      .multiply_adds = products,
                      .autocast = Autocast::lower});
}

}  // namespace gpumem::ops::attention_detail
