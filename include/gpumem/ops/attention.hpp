// Attention: torch.nn.MultiheadAttention (torch.nn.functional.multi_head_attention_forward) and
// torch.nn.functional.scaled_dot_product_attention. The output has the query's shape.
#pragma once

#include <array>

#include "gpumem/ops/op.hpp"

namespace gpumem::ops {

namespace attention_detail {

/// The packed input projection: weight [3 E, E], bias [3 E]. The output projection is a layer of its own, unless
/// graph JSON says "out_proj": true: then it counts here, weight [E, E], bias [E].
inline std::optional<core::Checked> in_projection(const model::Attributes& attributes) {
  const auto width = attributes.integer("embed_dim");
  if (!width) return std::nullopt;
  const core::Checked projections = attributes.flag("out_proj", false) ? 4 : 3;
  const core::Checked weight = projections * core::Checked(*width) * core::Checked(*width);
  return attributes.flag("bias", true) ? weight + projections * core::Checked(*width) : weight;
}

/// softmax(Q Kᵀ / √d) V written out (aten::_scaled_dot_product_attention_math): the scores, their softmax and the
/// dropped-out weights stand whole.
inline TensorId record_math(Tape& tape, std::span<const TensorId> qkv, const TensorSize& output,
                            const TensorSize& scores, bool drops) {
  const TensorId query = contiguous(tape, elementwise(tape, qkv[0]));
  const TensorId key = contiguous(tape, elementwise(tape, qkv[1]));
  const std::array<TensorId, 2> product_of = {query, key};
  const TensorId raw = tape.record({.inputs = product_of,
                                    .output = scores,
                                    .saved_inputs = 3,
                                    .library = Library::gemm,
                                    .autocast = Autocast::lower});
  TensorId weights = elementwise(tape, raw, 0, true, Autocast::full);
  if (drops) {
    const TensorSize mask = scores.as(tape.backend() == Backend::cpu ? core::DType::float32 : core::DType::boolean);
    weights = tape.record({.inputs = {&weights, 1}, .output = scores, .extras = {&mask, 1}});
  }
  const std::array<TensorId, 2> weighted = {weights, contiguous(tape, qkv[2])};
  return tape.record(
      {.inputs = weighted, .output = output, .saved_inputs = 3, .library = Library::gemm, .autocast = Autocast::lower});
}

/// Memory-efficient attention (float32) and flash attention (half precision, no mask): keep Q, K, V, the output and
/// one log-sum a row; backward holds one figure a row, and flash a float32 copy of the query's gradient. A fourth
/// input is a mask, kept as well.
inline TensorId record_fused(Tape& tape, std::span<const TensorId> qkv, const TensorSize& output,
                             const TensorSize& rows) {
  const bool half = core::element_size(tape.tensor(qkv[0]).size.dtype) == 2;
  const std::array<TensorSize, 2> extras = {rows, TensorSize{2, 0, core::DType::int64}};
  const std::array<TensorSize, 2> scratch = {rows, output.as(core::DType::float32)};
  // [N, S, heads, d] in memory, seen as [N, heads, S, d].
  const std::array<std::size_t, 4> heads_first = {0, 2, 1, 3};
  return tape.record({.inputs = qkv,
                      .output = output,
                      .layout = Layout{}.permuted(heads_first),
                      .saved_inputs = qkv.size() > 3 ? 15U : 7U,
                      .saves_output = true,
                      .extras = extras,
                      .backward_scratch = std::span(scratch).first(half ? 2 : 1),
                      .no_gradient = 8,
                      .autocast = Autocast::lower});
}

/// torch.nn.functional.scaled_dot_product_attention of Q, K, V [N, heads, S, d]; a fourth input is a mask. Attribute
/// "backend": "math" writes it out, as a CPU and models with attention of their own do.
inline core::Result<TensorId> record_scaled(const OpCall& call, Tape& tape) {
  const TensorId query = call.tensors[0];
  const std::array<TensorId, 3> qkv = {query, call.tensors.size() > 1 ? call.tensors[1] : query,
                                       call.tensors.size() > 2 ? call.tensors[2] : query};
  const core::Shape& keys = call.shapes.size() > 1 ? call.shapes[1] : call.shapes[0];
  const auto rows = rows_of(call.shapes[0]);
  if (!rows || keys.rank() < 2 || keys[keys.rank() - 2].kind != core::Dim::Kind::fixed) {
    return unfit(keys, "known sizes");
  }
  const std::int64_t keys_count = keys[keys.rank() - 2].size;
  const model::AttributeValue* backend = call.attributes.find("backend");
  const auto* named = backend == nullptr ? nullptr : std::get_if<std::string>(backend);
  const bool math = tape.backend() == Backend::cpu || (named != nullptr && *named == "math");
  if (!math && call.tensors.size() == 4) return record_fused(tape, call.tensors, call.size, *rows);
  if (!math) return record_fused(tape, qkv, call.size, *rows);
  const model::AttributeValue* dropout = call.attributes.find("dropout_p");
  const auto* probability = dropout == nullptr ? nullptr : std::get_if<double>(dropout);
  return record_math(tape, qkv, call.size, rows->times(keys_count), probability != nullptr && *probability > 0.0);
}

/// torch.nn.functional.multi_head_attention_forward up to its output projection, a layer of its own: the packed
/// projection, a copy that parts it, the attention, and a copy of its output.
inline core::Result<TensorId> record_multihead(const OpCall& call, Tape& tape) {
  const auto width = call.attributes.integer("embed_dim");
  const auto heads = call.attributes.integer("num_heads");
  if (!width) return missing("embed_dim");
  const core::Shape& shape = call.shapes[0];
  const auto tokens = rows_of(shape);
  if (!tokens || shape.rank() < 2 || shape[shape.rank() - 2].kind != core::Dim::Kind::fixed) {
    return unfit(shape, "known sizes");
  }
  const core::Checked weight = core::Checked(3) * core::Checked(*width) * core::Checked(*width);
  add_parameters(call, tape, {weight, core::Checked(3) * core::Checked(*width)});
  const TensorId input =
      tape.record({.inputs = call.tensors.first(1), .output = call.size, .gradient = Gradient::passed});
  const TensorSize packed = call.size.times(3);
  const TensorId projected = tape.record({.inputs = {&input, 1},
                                          .output = packed,
                                          .saved_inputs = 1,
                                          .parameters = tape.layer_parameters(),
                                          .library = Library::gemm_bias,
                                          .autocast = Autocast::lower});
  const TensorId parted = tape.record({.inputs = {&projected, 1}, .output = packed, .gradient = Gradient::passed});
  std::array<TensorId, 3> qkv{};
  for (TensorId& part : qkv) {
    part = tape.record(
        {.inputs = {&parted, 1}, .output = call.size, .kind = Output::view, .layout = {Layout::kInOrder, true}});
  }
  const TensorSize rows = tokens->times(heads.value_or(1));
  const bool math = tape.backend() == Backend::cpu;
  const TensorId attended = math ? record_math(tape, qkv, call.size, rows.times(shape[shape.rank() - 2].size), false)
                                 : record_fused(tape, qkv, call.size, rows);
  return tape.record({.inputs = {&attended, 1}, .output = call.size, .gradient = Gradient::passed});
}

/// Positions without parameters: two small tables, which no row of a summary reads.
inline core::Result<TensorId> record_tables(const OpCall& call, Tape& tape) {
  add_parameters(call, tape, {core::Checked(call.parameters)});
  return kNoTensor;
}

inline constexpr std::array<std::string_view, 1> kTorch = {"MultiheadAttention"};
inline constexpr std::array<std::string_view, 1> kKeras = {"MultiHeadAttention"};
inline constexpr std::array<std::string_view, 1> kRotaryEndings = {"RotaryEmbedding"};
inline constexpr std::array<std::string_view, 2> kKerasScaled = {"Attention", "AdditiveAttention"};

}  // namespace attention_detail

inline constexpr std::array<Op, 3> kAttentionOps = {
    {{{"multihead_attention",
       attention_detail::kTorch,
       attention_detail::kKeras,
       {},
       attention_detail::in_projection,
       true},
      same_shape,
      attention_detail::record_multihead},
     {{"scaled_dot_product_attention", {}, attention_detail::kKerasScaled},
      same_shape,
      attention_detail::record_scaled},
     // HuggingFace's rotary positions: two small tables, which no later row of a summary reads.
     {{"rotary_embedding", {}, {}, {}, nullptr, false, attention_detail::kRotaryEndings},
      nullptr,
      attention_detail::record_tables}}};

}  // namespace gpumem::ops
