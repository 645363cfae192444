// Attention: torch.nn.MultiheadAttention (torch.nn.functional.multi_head_attention_forward) and
// torch.nn.functional.scaled_dot_product_attention. The output has the query's shape.
#pragma once

#include <array>

#include "gpumem/ops/matrix.hpp"

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
  if (drops) {
    const TensorSize mask = scores.as(tape.backend() == Backend::cpu ? core::DType::float32 : core::DType::boolean);
    weights = tape.record({.inputs = {&weights, 1}, .output = scores, .extras = {&mask, 1}});
  }
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
inline TensorId record_broadcast_math(Tape& tape, const OpCall& call, const TensorSize& scores, std::int64_t keys) {
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
  const std::array<TensorId, 2> weighted = {softmax(tape, masked), repeated(value)};
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
/// input is a mask, kept as well; flash takes none, and only values as wide as the keys (`alike`). Flash lays its
/// output out as the query lies (flash_api.cpp, empty_like); the other one as [N, S, heads, d], which is then seen as
/// [N, heads, S, d].
inline TensorId record_fused(Tape& tape, std::span<const TensorId> qkv, const TensorSize& output,
                             const TensorSize& rows, const TensorSize& products, bool alike = true) {
  const bool half = core::element_size(tape.computing_type({.inputs = qkv, .autocast = Autocast::lower})) == 2;
  const std::array<TensorSize, 2> extras = {rows, TensorSize{2, 0, core::DType::int64}};
  const std::array<TensorSize, 2> scratch = {rows, output.as(core::DType::float32)};
  const std::array<std::size_t, 4> heads_first = {0, 2, 1, 3};
  const bool flash = half && qkv.size() == 3 && alike;
  return tape.record(
      {.inputs = qkv,
       .output = output,
       .layout = flash ? Layout{tape.tensor(qkv[0]).layout.order, false} : Layout{}.permuted(heads_first),
       .saved_inputs = qkv.size() > 3 ? 15U : 7U,
       .saves_output = true,
       .extras = extras,
       .backward_scratch = std::span(scratch).first(half ? 2 : 1),
       .no_gradient = 8,
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
  if (drops) {
    const TensorSize mask = scores.as(core::DType::boolean);
    weights = tape.record({.inputs = {&weights, 1}, .output = scores, .extras = {&mask, 1}});
  }
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
/// masks them and takes their softmax in their own type, dropout, and the product with the values.
/// Source: Megatron-LM core r0.12, core/transformer/dot_product_attention.py, core/fusions/fused_softmax.py;
/// TransformerEngine 2.1, pytorch/attention.py: UnfusedDotProductAttention.
inline TensorId record_fused_softmax(Tape& tape, std::span<const TensorId> qkv, const TensorSize& output,
                                     const TensorSize& scores, std::int64_t keys, bool drops) {
  const TensorId raw = record_scores(tape, qkv, output, scores, keys);
  TensorId weights = elementwise(tape, raw, 0, true);
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

/// eager_attention_forward of models with attention sinks: a further column of the scores, one figure a head, which
/// takes part in the softmax and is left out of its weights. The largest score of a row is subtracted first, and the
/// softmax keeps the scores' type. The function's names for scores end when it returns. Without `sinks` the same
/// without the column. Source: transformers 4.56, models/gpt_oss/modeling_gpt_oss.py.
inline TensorId record_sinks(Tape& tape, std::span<const TensorId> inputs, const TensorSize& output,
                             const TensorSize& rows, std::int64_t keys, bool drops) {
  const bool sinks = inputs.size() > 4;
  const TensorSize scores = rows.times(keys);
  TensorSize all = scores;
  if (sinks) all.elements += rows.elements;
  const TensorId scaled = elementwise(tape, record_scores(tape, inputs.first(3), output, scores, keys));
  const std::array<TensorId, 2> masked_of = {scaled, inputs[3]};
  const TensorId masked =
      tape.record({.inputs = masked_of, .output = scores, .gradient = Gradient::passed, .no_gradient = 2});
  const std::array<TensorId, 2> joined_of = {masked, inputs.back()};
  const TensorId joined =
      sinks ? tape.record({.inputs = joined_of, .output = all, .gradient = Gradient::part}) : masked;
  // The gradient of the largest scores is as large as all scores, and is added to theirs.
  const core::DType type = tape.tensor(joined).size.dtype;
  const TensorSize largest = rows.as(type);
  const TensorSize places = rows.as(core::DType::int64);
  const std::array<TensorSize, 2> extras = {largest, places};
  const TensorSize whole = all.as(type);
  const std::array<TensorSize, 2> backward = {whole, whole};
  const std::array<TensorId, 2> shifted_of = {joined, masked};
  const TensorId shifted = tape.record({.inputs = shifted_of,
                                        .output = all,
                                        .extras = extras,
                                        .extras_first = true,
                                        .backward_scratch = backward,
                                        .gradient = Gradient::passed,
                                        .no_gradient = 2});
  const std::array<TensorId, 2> softmax_of = {shifted, masked};
  const TensorId shares = tape.record({.inputs = softmax_of,
                                       .output = all,
                                       .saves_output = true,
                                       .backward_scratch = tape.own_scratch({&whole, 1}),
                                       .no_gradient = 2});
  TensorId weights = shares;
  if (sinks) weights = tape.record({.inputs = {&shares, 1}, .output = scores, .kind = Output::view});
  if (drops) {
    const TensorSize mask = scores.as(core::DType::boolean);
    weights = tape.record({.inputs = {&weights, 1}, .output = scores, .extras = {&mask, 1}});
  }
  const std::array<TensorId, 3> weighted = {weights, contiguous(tape, inputs[2]), shifted};
  return tape.record({.inputs = weighted,
                      .output = output,
                      .saved_inputs = 3,
                      .no_gradient = 4,
                      .library = Library::gemm,
                      .multiply_adds = output.times(keys),
                      .autocast = Autocast::lower});
}

/// Q, K, V, a mask and, where the model has them, sinks. Flash attention takes the sinks itself.
inline core::Result<TensorId> record_sink_attention(const OpCall& call, Tape& tape) {
  const auto rows = rows_of(call.shapes[0]);
  const core::Shape& keys = call.shapes.size() > 1 ? call.shapes[1] : call.shapes[0];
  if (call.tensors.size() < 4 || !rows || keys.rank() != 4 || keys[2].kind != core::Dim::Kind::fixed) {
    return unfit(keys, "queries, keys, values and a mask of known sizes");
  }
  const std::span<const TensorId> qkv = call.tensors.first(3);
  const core::DType type = tape.computing_type({.inputs = qkv, .autocast = Autocast::lower});
  if (call.attention == model::AttentionBackend::flash && core::element_size(type) == 2) {
    return record_flash(tape, qkv, call.size, *rows, call.size.times(2).times(keys[2].size));
  }
  const bool drops = probability(call.attributes, "dropout_p").value_or(0.0) > 0.0;
  return record_sinks(tape, call.tensors, call.size, *rows, keys[2].size, drops);
}

/// What a lightning indexer makes of the tokens: an additive mask [N, 1, S, S] that leaves each query its best keys. It
/// runs without gradients: scores of each of its "heads" in float32, and those of their rectified copy.
/// Source: transformers 5.x, models/deepseek_v32/modeling_deepseek_v32.py: DeepseekV32Indexer.
inline core::Result<core::Shape> indexed_shape(const OpInput& input) {
  const core::Shape& tokens = input.inputs[0];
  if (tokens.rank() != 3 || tokens[1].kind != core::Dim::Kind::fixed) return unfit(tokens, "a known number of tokens");
  core::Shape shape;
  for (const core::Dim dim : {tokens[0], core::Dim::fixed(1), tokens[1], tokens[1]}) shape.push_back(dim);
  return shape;
}

inline core::Result<TensorId> record_indexed(const OpCall& call, Tape& tape) {
  const auto heads = call.attributes.integer("heads");
  const auto width = call.attributes.integer("width");
  if (!heads || !width) return missing("heads and width");
  const TensorSize scores = call.size.times(*heads).as(core::DType::float32);
  const auto rows = rows_of(call.shapes[0]);
  if (!rows) return unfit(call.shapes[0], "known sizes");
  const TensorSize queries = rows->times(*heads).times(*width).as(core::DType::float32);
  const std::array<TensorSize, 4> scratch = {queries, scores, scores, call.size.as(core::DType::float32)};
  return tape.record({.output = call.size.as(tape.tensor(call.tensors[0]).size.dtype),
                      .scratch = scratch,
                      .multiply_adds = call.size.times(*heads).times(*width),
                      .differentiable = false});
}

/// The query's shape, as wide as the values are.
inline core::Result<core::Shape> attended_shape(const OpInput& input) {
  core::Shape shape = input.inputs[0];
  const bool has_values = input.inputs.size() > 2 && input.inputs[2].rank() == shape.rank() && shape.rank() > 0;
  if (has_values) shape.set(shape.rank() - 1, input.inputs[2][shape.rank() - 1]);
  return shape;
}

/// Whether keys that are read as `shape` have fewer heads: the kernel repeats them (enable_gqa). Flash attention takes
/// such heads; without it only the written-out form does (sdp_utils.cpp, check_batch_size_and_num_heads_dense).
inline bool has_fewer_heads(const Tape& tape, TensorId keys, const core::Shape& shape) {
  const auto whole = size_of(shape, core::DType::float32);
  return whole && tape.tensor(keys).size.elements.value() < whole->elements.value();
}

/// torch.nn.functional.scaled_dot_product_attention of Q, K, V [N, heads, S, d]; a fourth input is a mask. Attribute
/// "grouped": the kernel reads keys and values of fewer heads as they are, as flash attention's own package does.
/// "backend": "math" writes it out, as a CPU and models with attention of their own do. "fused_softmax": where it is
/// written out, one kernel masks the scores and takes their softmax. "is_causal" counts where no mask is given.
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
  // sdp_utils.cpp, check_tensor_shapes: the fused kernels take four axes.
  const bool fits = call.shapes[0].rank() == 4 && keys.rank() == 4;
  const bool math = tape.backend() == Backend::cpu || !fits || (named != nullptr && *named == "math");
  const bool drops = probability(call.attributes, "dropout_p").value_or(0.0) > 0.0;
  const bool own = named != nullptr && *named == "math";  // the model's code writes it out, whatever is asked for
  const bool square = fits && call.shapes[0][2] == keys[2];
  const bool causal = square && call.tensors.size() < 4 && call.attributes.flag("is_causal", false);
  const TensorSize products = fused_products(tape.tensor(query).size, call.size, keys_count, causal);
  if (call.attention == model::AttentionBackend::flash && !own) {
    const core::DType type = tape.computing_type({.inputs = qkv, .autocast = Autocast::lower});
    if (core::element_size(type) == 2 && fits) return record_flash(tape, qkv, call.size, *rows, products);
    return core::Error{
        core::ErrorCode::invalid_argument,
        "flash attention takes float16 and bfloat16, and heads on an axis of their own; give a precision "
        "of two bytes, or `attention=sdpa`",
        {}};
  }
  if (call.attention == model::AttentionBackend::eager && call.attributes.flag("fused_softmax", false)) {
    return record_fused_softmax(tape, qkv, call.size, rows->times(keys_count), keys_count, drops);
  }
  if (call.attention == model::AttentionBackend::eager && !own) {
    return record_eager(tape, qkv, call.size, rows->times(keys_count), keys_count, drops);
  }
  if (!math && call.tensors.size() == 3 && has_fewer_heads(tape, qkv[1], keys)) {
    const core::DType type = tape.computing_type({.inputs = qkv, .autocast = Autocast::lower});
    if (core::element_size(type) == 2) return record_flash(tape, qkv, call.size, *rows, keys_count);
    return record_broadcast_math(tape, call, rows->times(keys_count), keys_count);
  }
  const bool shares = fits && call.shapes[0][1] != keys[1] && !call.attributes.flag("grouped", false);
  if (!math && shares) return record_broadcast_math(tape, call, rows->times(keys_count), keys_count);
  const bool alike = call.output == call.shapes[0];
  if (!math && call.tensors.size() == 4) return record_fused(tape, call.tensors, call.size, *rows, products);
  if (!math) return record_fused(tape, qkv, call.size, *rows, products, alike);
  return record_math(tape, qkv, call.size, rows->times(keys_count), keys_count, drops);
}

/// What MultiheadAttention is called with.
struct Multihead {
  std::int64_t width = 0;   ///< embed_dim, of all heads
  TensorSize scores;        ///< of all heads
  bool batch_first = true;  ///< [N, S, E]; else [S, N, E], the order in which PyTorch computes
  bool drops = false;
  bool projects = false;  ///< its output projection is not a layer of its own
  std::int64_t keys = 0;  ///< that each query meets

  /// Of Q Kᵀ, and as many of its product with V: every query of every head meets every key.
  [[nodiscard]] TensorSize products(const TensorSize& queries) const { return queries.times(keys); }
};

/// The output projection: rows in the order [S, N], seen as [N, S] again.
inline TensorId project_out(const OpCall& call, Tape& tape, TensorId attended, const Multihead& of) {
  if (!of.projects || tape.layer_parameters().size() != 4) return attended;
  const TensorId output = linear(tape, attended, call.size, tape.layer_parameters().subspan(2), 2, true, of.width);
  return of.batch_first ? batch_second(tape, output) : output;
}

/// torch.nn.functional.multi_head_attention_forward as PyTorch 1.13 has it: each of Q, K and V is copied out of the
/// packed projection, the scores are materialised.
inline TensorId record_multihead_written_out(const OpCall& call, Tape& tape, const Multihead& of) {
  TensorId input = call.tensors[0];
  if (of.batch_first) input = tape.record({.inputs = {&input, 1}, .output = call.size, .gradient = Gradient::passed});
  const std::size_t rank = of.batch_first ? 4 : 3;  // four: multiplied and added apart, as what is turned is
  const TensorId projected =
      linear(tape, input, call.size.times(3), tape.layer_parameters().first(2), rank, true, of.width);
  const TensorId parts = tape.record(
      {.inputs = {&projected, 1}, .output = call.size.times(3), .kind = Output::view, .gradient = Gradient::joined});
  std::array<TensorId, 3> qkv{};
  for (TensorId& part : qkv) {
    part = tape.record({.inputs = {&parts, 1},
                        .output = call.size,
                        .kind = Output::view,
                        .layout = {Layout::kInOrder, true},
                        .gradient = Gradient::passed});
  }
  for (TensorId& part : qkv) part = contiguous(tape, part);
  const TensorId query = elementwise(tape, qkv[0]);
  const std::array<TensorId, 2> product_of = {query, qkv[1]};
  const TensorId raw = tape.record({.inputs = product_of,
                                    .output = of.scores,
                                    .saved_inputs = 3,
                                    .multiply_adds = of.products(call.size),
                                    .autocast = Autocast::lower});
  TensorId weights = elementwise(tape, raw, 0, true, Autocast::full);
  if (of.drops) weights = tape.record({.inputs = {&weights, 1}, .output = of.scores, .extras = {&of.scores, 1}});
  const std::array<TensorId, 2> weighted = {weights, qkv[2]};
  const TensorId heads = tape.record({.inputs = weighted,
                                      .output = call.size,
                                      .saved_inputs = 3,
                                      .multiply_adds = of.products(call.size),
                                      .autocast = Autocast::lower});
  // The function's name for the query outlives the scaled one.
  const std::array<TensorId, 2> copied = {heads, qkv[0]};
  TensorId attended =
      tape.record({.inputs = copied, .output = call.size, .gradient = Gradient::passed, .no_gradient = 2});
  if (of.projects) return project_out(call, tape, attended, of);
  if (!of.batch_first) return attended;
  const std::array<std::size_t, 2> exchanged = {1, 0};
  return tape.record({.inputs = {&attended, 1},
                      .output = call.size,
                      .kind = Output::view,
                      .layout = Layout{}.permuted(exchanged),
                      .gradient = Gradient::passed});
}

/// torch.nn.functional.multi_head_attention_forward: the packed projection, a copy that parts it, the attention, and a
/// copy of its output. The output projection is a layer of its own, or "out_proj" says that it belongs here.
inline core::Result<TensorId> record_multihead(const OpCall& call, Tape& tape) {
  const auto width = call.attributes.integer("embed_dim");
  const auto heads = call.attributes.integer("num_heads");
  if (!width) return missing("embed_dim");
  const core::Shape& shape = call.shapes[0];
  const auto tokens = rows_of(shape);
  if (!tokens || shape.rank() < 2 || shape[shape.rank() - 2].kind != core::Dim::Kind::fixed) {
    return unfit(shape, "known sizes");
  }
  const core::Checked square = core::Checked(*width) * core::Checked(*width);
  const core::Checked three = 3;
  Multihead of;
  of.width = *width;
  of.projects = call.attributes.flag("out_proj", false);
  of.batch_first = call.attributes.flag("batch_first", false);
  of.drops = probability(call.attributes, "dropout").value_or(0.0) > 0.0;
  of.keys = shape[shape.rank() - 2].size;
  of.scores = tokens->times(heads.value_or(1)).times(shape[shape.rank() - 2].size);
  if (of.projects) {
    add_parameters(call, tape, {three * square, three * core::Checked(*width), square, core::Checked(*width)});
  } else {
    add_parameters(call, tape, {three * square, three * core::Checked(*width)});
  }
  if (tape.backend() == Backend::cpu && tape.layer_parameters().size() >= 2) {
    return record_multihead_written_out(call, tape, of);
  }
  const std::size_t held = std::min<std::size_t>(tape.layer_parameters().size(), 2);
  const std::span<const TensorId> in_projection = tape.layer_parameters().first(held);
  const TensorId input =
      tape.record({.inputs = call.tensors.first(1), .output = call.size, .gradient = Gradient::passed});
  const TensorSize packed = call.size.times(3);
  const TensorId projected = tape.record({.inputs = {&input, 1},
                                          .output = packed,
                                          .saved_for_weight = 1,
                                          .parameters = in_projection,
                                          .library = Library::gemm_bias,
                                          .multiply_adds = packed.times(*width),
                                          .autocast = Autocast::lower});
  const TensorId parted = tape.record({.inputs = {&projected, 1}, .output = packed, .gradient = Gradient::passed});
  std::array<TensorId, 3> qkv{};
  for (TensorId& part : qkv) {
    part = tape.record(
        {.inputs = {&parted, 1}, .output = call.size, .kind = Output::view, .layout = {Layout::kInOrder, true}});
  }
  const TensorSize rows = tokens->times(heads.value_or(1));
  const TensorId attended = record_fused(tape, qkv, call.size, rows, call.size.times(2).times(of.keys));
  const TensorId output = tape.record({.inputs = {&attended, 1}, .output = call.size, .gradient = Gradient::passed});
  return project_out(call, tape, output, of);
}

/// Positions without parameters: two small tables, which no row of a summary reads.
inline core::Result<TensorId> record_tables(const OpCall& call, Tape& tape) {
  add_parameters(call, tape, {core::Checked(call.parameters)});
  return kNoTensor;
}

inline constexpr std::array<std::string_view, 1> kTorch = {"MultiheadAttention"};
inline constexpr std::array<std::string_view, 1> kKeras = {"MultiHeadAttention"};
inline constexpr std::array<std::string_view, 1> kRotaryTorch = {"RotaryEmbeddingCat"};
inline constexpr std::array<std::string_view, 1> kRotaryEndings = {"RotaryEmbedding"};
inline constexpr std::array<std::string_view, 2> kKerasScaled = {"Attention", "AdditiveAttention"};

}  // namespace attention_detail

inline constexpr std::array<Op, 5> kAttentionOps = {{
    {.traits = {.name = "multihead_attention",
                .family = OpFamily::attention,
                .torch_classes = attention_detail::kTorch,
                .keras_classes = attention_detail::kKeras,
                .parameters = attention_detail::in_projection,
                .parameters_of_other_names = true,
                .keeps = Keeps::input,
                .completion = Completion::attention,
                .multiplies = true},
     .output_shape = same_shape,
     .record = attention_detail::record_multihead},
    {.traits = {.name = "sink_attention", .family = OpFamily::attention, .keeps = Keeps::input},
     .output_shape = attention_detail::attended_shape,
     .record = attention_detail::record_sink_attention},
    {.traits = {.name = "indexed_mask", .family = OpFamily::other, .computes = false},
     .output_shape = attention_detail::indexed_shape,
     .record = attention_detail::record_indexed},
    {.traits = {.name = "scaled_dot_product_attention",
                .family = OpFamily::attention,
                .keras_classes = attention_detail::kKerasScaled,
                .keeps = Keeps::input},
     .output_shape = attention_detail::attended_shape,
     .record = attention_detail::record_scaled},
    // HuggingFace's rotary positions: two small tables, which no later row of a summary reads.
    {.traits = {.name = "rotary_embedding",
                .family = OpFamily::other,
                .torch_classes = attention_detail::kRotaryTorch,
                .torch_endings = attention_detail::kRotaryEndings},
     .record = attention_detail::record_tables},
}};

}  // namespace gpumem::ops
