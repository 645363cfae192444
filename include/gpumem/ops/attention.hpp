// Attention: torch.nn.MultiheadAttention (torch.nn.functional.multi_head_attention_forward) and
// torch.nn.functional.scaled_dot_product_attention. The output has the query's shape.
#pragma once

#include <array>

#include "gpumem/ops/attention_kernels.hpp"
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
  if (drops) weights = drop_weights(tape, weights, scores);
  const std::array<TensorId, 3> weighted = {weights, contiguous(tape, inputs[2]), shifted};
  return tape.record({.inputs = weighted,
                      .output = output,
                      .saved_inputs = 3,
                      .no_gradient = 4,
                      .library = Library::gemm,
                      .multiply_adds = output.times(keys),
                      .autocast = Autocast::lower});
}

/// Q, K, V, a mask and, where the model has them, sinks. Flash attention takes the sinks itself, and in place of the
/// mask "is_causal".
inline core::Result<TensorId> record_sink_attention(const OpCall& call, Tape& tape) {
  const auto rows = rows_of(call.shapes[0]);
  const core::Shape& keys = call.shapes.size() > 1 ? call.shapes[1] : call.shapes[0];
  if (call.tensors.size() < 4 || !rows || keys.rank() != 4 || keys[2].kind != core::Dim::Kind::fixed) {
    return unfit(keys, "queries, keys, values and a mask of known sizes");
  }
  const std::span<const TensorId> qkv = call.tensors.first(3);
  const core::DType type = tape.computing_type({.inputs = qkv, .autocast = Autocast::lower});
  if (call.attention == model::AttentionBackend::flash && core::element_size(type) == 2) {
    const bool square = call.shapes[0].rank() == 4 && call.shapes[0][2] == keys[2];
    const bool causal = square && call.attributes.flag("is_causal", false);
    const TensorSize products = fused_products(tape.tensor(qkv[0]).size, call.size, keys[2].size, causal);
    return record_flash(tape, qkv, call.size, *rows, products);
  }
  const bool drops = probability(call.attributes, "dropout_p").value_or(0.0) > 0.0;
  return record_sinks(tape, call.tensors, call.size, *rows, keys[2].size, drops);
}

/// What a lightning indexer makes of the tokens: an additive mask [N, 1, S, S] that leaves each query its best keys. It
/// runs without gradients: scores of each of its "heads" in float32, and those of their rectified copy. "expands": one
/// key for all "queries", or for all "heads", is expanded to them, which torch.matmul copies where the batch holds more
/// than one sample (ATen/native/LinearAlgebra.cpp, _matmul_impl: expand and reshape). For queries it has been
/// torch.matmul since 5.11 (#41251); before, torch.einsum, which copies none.
/// Source: transformers 5.17, models/deepseek_v32/modeling_deepseek_v32.py: DeepseekV32Indexer.
inline core::Result<core::Shape> indexed_shape(const OpInput& input) {
  const core::Shape& tokens = input.inputs[0];
  if (tokens.rank() != 3 || tokens[1].kind != core::Dim::Kind::fixed) return unfit(tokens, "a known number of tokens");
  core::Shape shape;
  for (const core::Dim dim : {tokens[0], core::Dim::fixed(1), tokens[1], tokens[1]}) shape.push_back(dim);
  return shape;
}

/// How many copies of its one key the indexer makes for each sample of a batch of several; 0: none.
inline std::int64_t copies_of_keys(const OpCall& call, std::int64_t heads) {
  const model::AttributeValue* value = call.attributes.find("expands");
  const auto* to = value == nullptr ? nullptr : std::get_if<std::string>(value);
  if (to == nullptr) return 0;
  if (*to == "heads") return heads;
  return call.transformers >= model::Transformers::v5_11 ? call.shapes[0][1].size : 0;
}

inline core::Result<TensorId> record_indexed(const OpCall& call, Tape& tape) {
  const auto heads = call.attributes.integer("heads");
  const auto width = call.attributes.integer("width");
  if (!heads || !width) return missing("heads and width");
  const auto rows = rows_of(call.shapes[0]);
  if (!rows) return unfit(call.shapes[0], "known sizes");
  const auto made = [&](std::initializer_list<TensorId> of, const TensorSize& size) {
    return tape.record({.inputs = {of.begin(), of.size()}, .output = size, .differentiable = false});
  };
  // Queries, the part of them that is turned, and both together have names until the indexer returns.
  const std::int64_t part = call.attributes.integer("turned").value_or(0);
  const TensorId part_turned = made({call.tensors[0]}, rows->times(*heads).times(part));
  const TensorId turned = made({call.tensors[0], part_turned}, rows->times(*heads).times(*width));
  const TensorId wide = tape.cast(turned, core::DType::float32);
  const core::DType type = tape.computing_type({.inputs = {&wide, 1}, .autocast = Autocast::lower});
  const TensorId query = tape.cast(wide, type);
  TensorId key = tape.cast(tape.cast(call.tensors[1], core::DType::float32), type);
  if (const std::int64_t copies = copies_of_keys(call, *heads); copies > 0) {
    TensorSize keys = rows->times(*width).times(copies);
    keys.of_several = true;
    key = made({key}, keys);
  }
  const TensorSize scores = call.size.times(*heads);
  const std::array<TensorId, 2> multiplied = {query, key};
  const TensorId products = tape.record({.inputs = multiplied,
                                         .output = scores,
                                         .multiply_adds = call.size.times(*heads).times(*width),
                                         .differentiable = false});
  const TensorId rectified = made({made({products}, scores)}, scores);
  const TensorId sums = made({rectified}, call.size);
  return tape.cast(made({sums, turned, part_turned, call.tensors[0]}, call.size),
                   tape.tensor(call.tensors[0]).size.dtype);
}

/// The query's shape, as wide as the values are.
inline core::Result<core::Shape> attended_shape(const OpInput& input) {
  core::Shape shape = input.inputs[0];
  const bool has_values = input.inputs.size() > 2 && input.inputs[2].rank() == shape.rank() && shape.rank() > 0;
  if (has_values) shape.set(shape.rank() - 1, input.inputs[2][shape.rank() - 1]);
  return shape;
}

/// sdp_utils.cpp, check_cudnn_tensor_shapes: heads of up to 256 in multiples of 8. `alike`: values are as wide as keys.
inline bool cudnn_takes(const core::Shape& query, bool alike) {
  constexpr std::int64_t kWidest = 256;
  const std::int64_t width = query[query.rank() - 1].size;
  return alike && width <= kWidest && width % 8 == 0;
}

/// torch.nn.functional.scaled_dot_product_attention of Q, K, V [N, heads, S, d]; a fourth input is a mask. Attribute
/// "grouped": the kernel reads keys and values of fewer heads as they are, as flash attention's own package does.
/// "backend": "math" writes it out, as a CPU and models with attention of their own do. "fused_softmax": where it is
/// written out, one kernel masks the scores and takes their softmax; "float32_softmax" besides: no such kernel, and in
/// float32. "enable_gqa": the kernel repeats keys and values of fewer heads. Flash attention does; without it only the
/// written-out form (sdp_utils.cpp, check_batch_size_and_num_heads_dense). "is_causal" counts where no mask is given.
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
    return record_fused_softmax(tape, qkv, call.size, rows->times(keys_count), keys_count, drops,
                                call.attributes.flag("float32_softmax", false));
  }
  if (call.attention == model::AttentionBackend::eager && !own) {
    return record_eager(tape, qkv, call.size, rows->times(keys_count), keys_count, drops);
  }
  if (!math && call.tensors.size() == 3 && call.shapes[0][1] != keys[1] && call.attributes.flag("enable_gqa", false)) {
    const core::DType type = tape.computing_type({.inputs = qkv, .autocast = Autocast::lower});
    if (core::element_size(type) == 2) return record_flash(tape, qkv, call.size, *rows, products);
    return record_broadcast_math(tape, call, rows->times(keys_count), keys_count, drops);
  }
  const bool shares = fits && call.shapes[0][1] != keys[1] && !call.attributes.flag("grouped", false);
  if (!math && shares) return record_broadcast_math(tape, call, rows->times(keys_count), keys_count, drops);
  const bool alike = call.output == call.shapes[0];
  if (!math && call.tensors.size() == 4) {
    tape.choose_kernel();
    const bool as_query = call.cudnn_attention && cudnn_takes(call.shapes[0], alike);
    return record_fused(tape, call.tensors, call.size, *rows, products, alike, as_query);
  }
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
