// Tokens [N, S, width] that go to experts, as rows [R N, width] (mixtures of experts as transformers loops over them):
// what one expert gets, the sum that its results are added to; rows in the order of their experts, of which each takes
// a share; and one product of all rows with their experts' weights. Which tokens an expert gets depends on the data;
// here each gets as many.
#pragma once

#include <algorithm>
#include <array>

#include "gpumem/ops/matrix.hpp"
#include "gpumem/ops/op.hpp"

namespace gpumem::ops {

namespace experts_detail {

/// S per_token / experts rows a sample, rounded up; from the number of "ranks" that share experts.
inline core::Result<core::Shape> gathered_shape(const OpInput& input) {
  const core::Shape& tokens = input.inputs[0];
  const auto experts = input.attributes.integer("experts");
  const auto per_token = input.attributes.integer("per_token");
  if (!experts || !per_token) return missing("experts and per_token");
  if (tokens.rank() != 3 || tokens[1].kind != core::Dim::Kind::fixed) return unfit(tokens, "a known number of tokens");
  if (*experts < 1 || *per_token < 1 || *per_token > *experts) {
    return core::Error{core::ErrorCode::malformed_input, "sends tokens to more experts than there are", {}};
  }
  // What an expert takes, in thousandths of its even share.
  const std::int64_t taken = std::clamp<std::int64_t>(input.attributes.integer("taken").value_or(1000), 1, 1'000'000);
  const core::Checked sent = core::Checked(tokens[1].size) * core::Checked(*per_token) * core::Checked(taken);
  const core::Checked all = core::Checked(sent.value().value_or(0) / 1000) + core::Checked(*experts - 1);
  const core::Checked rows = core::Checked(std::max<std::int64_t>(all.value().value_or(0) / *experts, 1)) *
                             core::Checked(std::max<std::int64_t>(input.attributes.integer("ranks").value_or(1), 1)) *
                             tokens[0].size;
  if (!sent.valid() || !all.valid() || !rows.valid()) {
    return core::Error{core::ErrorCode::overflow, "has too many rows", {}};
  }
  core::Shape shape;
  shape.push_back({*rows.value(), tokens[0].kind});
  shape.push_back(tokens[2]);
  return shape;
}

/// rows[indices]: a copy, which keeps its indices; backward adds into zeros of all rows. With "repeats" Tensor.repeat
/// of all tokens, which needs none.
inline core::Result<TensorId> record_gather(const OpCall& call, Tape& tape) {
  const auto rows = rows_of(call.output);
  if (!rows) return unfit(call.output, "known sizes");
  if (call.attributes.flag("repeats", false)) {
    return tape.record({.inputs = call.tensors.first(1), .output = call.size});
  }
  const std::array<TensorSize, 1> indices = {rows->as(core::DType::int64)};
  return tape.record({.inputs = call.tensors.first(1), .output = call.size, .extras = indices, .extras_first = true});
}

/// Tensor.index_add_ on the first input, with "copies" Tensor.index_add: both keep what they add (derivatives.yaml,
/// index_add: expand_as(source)). "scatters": Tensor.scatter_add_, which does not. With "sums" the rows of all experts
/// are summed and added: their gradient is a view.
inline core::Result<TensorId> record_scatter(const OpCall& call, Tape& tape) {
  if (call.tensors.size() != 2) return unfit(call.output, "two inputs");
  const bool sums = call.attributes.flag("sums", false);
  const TensorSize sum = tape.tensor(call.tensors[0]).size;
  return tape.record({.inputs = call.tensors,
                      .output = call.size,
                      .kind = call.attributes.flag("copies", false) ? Output::fresh : Output::in_place,
                      .saved_inputs = sums || call.attributes.flag("scatters", false) ? 0U : 2U,
                      .scratch = {&sum, sums ? 1U : 0U},
                      .gradient = sums ? Gradient::spread : Gradient::fresh});
}

/// A share of the rows for each of the "experts".
inline core::Result<core::Shape> share_shape(const OpInput& input) {
  core::Shape shape = input.inputs[0];
  const std::int64_t experts = input.attributes.integer("experts").value_or(0);
  if (experts < 1 || shape.rank() == 0 || shape[0].kind == core::Dim::Kind::unknown || shape[0].size % experts != 0)
    return unfit(shape, "rows that the experts can share evenly");
  shape.set(0, {shape[0].size / experts, shape[0].kind});
  return shape;
}

/// Tensor.split over the rows: views, whose gradients are copied together.
inline core::Result<TensorId> record_rows(const OpCall& call, Tape& tape) {
  return tape.record({.inputs = call.tensors.first(1),
                      .output = tape.tensor(call.tensors[0]).size,
                      .kind = Output::view,
                      .layout = tape.tensor(call.tensors[0]).layout,
                      .gradient = Gradient::joined});
}

/// One of the views: rows that lie together.
inline core::Result<TensorId> record_share(const OpCall& call, Tape& tape) {
  return tape.record({.inputs = call.tensors.first(1),
                      .output = call.size.as(tape.tensor(call.tensors[0]).size.dtype),
                      .kind = Output::view,
                      .layout = tape.tensor(call.tensors[0]).layout,
                      .gradient = Gradient::passed});
}

/// Whether the call is of ranks that send each other rows, and there is but one.
inline bool sends_nothing(const model::Attributes& attributes) {
  return attributes.flag("sent", false) && attributes.integer("ranks").value_or(1) <= 1;
}

/// S per_token rows a sample: what all experts get of these tokens.
inline core::Result<core::Shape> sent_shape(const OpInput& input) {
  const core::Shape& tokens = input.inputs[0];
  if (sends_nothing(input.attributes)) return tokens;
  const auto per_token = input.attributes.integer("per_token");
  if (!per_token || *per_token < 1) return missing("per_token");
  if (tokens.rank() != 3 || tokens[1].kind != core::Dim::Kind::fixed) return unfit(tokens, "a known number of tokens");
  const std::int64_t taken = std::clamp<std::int64_t>(input.attributes.integer("taken").value_or(1000), 1, 1'000'000);
  const core::Checked sent = core::Checked(tokens[1].size) * core::Checked(*per_token) * core::Checked(taken);
  const core::Checked rows = core::Checked(std::max<std::int64_t>(sent.value().value_or(0) / 1000, 1)) * tokens[0].size;
  if (!sent.valid() || !rows.valid()) return core::Error{core::ErrorCode::overflow, "has too many rows", {}};
  core::Shape shape;
  shape.push_back({*rows.value(), tokens[0].kind});
  shape.push_back(tokens[2]);
  return shape;
}

/// A copy of all rows in another order, which no backward keeps: Megatron's token dispatcher names it while experts
/// compute. "sent": the copy that comes from other ranks, where there are others.
inline core::Result<TensorId> record_sent(const OpCall& call, Tape& tape) {
  if (sends_nothing(call.attributes)) return call.tensors[0];
  return tape.record({.output = call.size.as(tape.tensor(call.tensors[0]).size.dtype), .differentiable = false});
}

/// torch.zeros_like.
inline core::Result<TensorId> record_zeros(const OpCall& call, Tape& tape) {
  return tape.record({.output = call.size.as(tape.tensor(call.tensors[0]).size.dtype), .differentiable = false});
}

/// [R, in] x [experts, in, out], or with "transposed" [experts, out, in]: [R, out].
inline core::Result<core::Shape> grouped_shape(const OpInput& input) {
  if (input.inputs.size() != 2) return unfit(input.inputs[0], "rows and weights");
  core::Shape shape = input.inputs[0];
  const core::Shape& weights = input.inputs[1];
  const bool transposed = input.attributes.flag("transposed", false);
  const bool fits = shape.rank() == 2 && weights.rank() == 3 && weights[transposed ? 2 : 1] == shape[1];
  if (!fits) return unfit(shape, "rows that are as wide as the experts' weights");
  shape.set(1, weights[transposed ? 1 : 2]);
  return shape;
}

/// weight[expert], of one expert after the other: views. Backward copies the gradient of each into zeros of all
/// (select_backward), and adds these to what the others had.
inline core::Result<TensorId> record_taken(const OpCall& call, Tape& tape) {
  // Experts that are linear layers have their own weights.
  if (tape.tensor(call.tensors[0]).size.dtype == core::DType::uint8) return call.tensors[0];
  return tape.record({.inputs = call.tensors.first(1),
                      .output = call.size.as(tape.tensor(call.tensors[0]).size.dtype),
                      .kind = Output::view,
                      .layout = {tape.tensor(call.tensors[0]).layout.order, true},
                      .gradient = Gradient::fresh});
}

/// Experts that are linear layers with weights of four bits, called one after the other: each makes its own weight
/// whole, and keeps nothing. Source: unsloth_zoo of August to December 2025, temporary_patches/gpt_oss.py
/// (GptOssExperts); axolotl 2026-07, monkeypatch/models/llama4/modeling.py (Llama4TextExperts).
inline core::Result<TensorId> record_one_by_one(const OpCall& call, Tape& tape) {
  const core::Shape& weights = call.shapes[1];
  const bool transposed = call.attributes.flag("transposed", false);
  const std::int64_t in = weights[transposed ? 2 : 1].size;
  const std::int64_t out = weights[transposed ? 1 : 2].size;
  model::WeightStorage held;
  held.quantization = model::Quantization::nf4_double;
  return quantized_product(tape, call.tensors[0], call.size, call.tensors[1], held, in, out, false);
}

/// torch._grouped_mm: one kernel of its own for all experts, which keeps rows and weights for each other's gradient,
/// and which autocast leaves as it is. "batched": torch.bmm, where each expert has as many rows; likewise the products
/// with weights that were taken out.
inline core::Result<TensorId> record_grouped(const OpCall& call, Tape& tape) {
  if (tape.tensor(call.tensors[1]).size.dtype == core::DType::uint8) return record_one_by_one(call, tape);
  const bool taken = tape.tensor(call.tensors[1]).layout.gaps;
  const bool batched = call.attributes.flag("batched", false) || taken;
  const std::array<TensorId, 2> inputs = {contiguous(tape, call.tensors[0]), call.tensors[1]};
  const bool trains_rows = tape.tensor(inputs[0]).requires_grad;
  const bool trains_weights = tape.tensor(inputs[1]).requires_grad;
  return tape.record({.inputs = inputs,
                      .output = call.size,
                      .saved_inputs = (trains_weights ? 1U : 0U) | (trains_rows ? 2U : 0U),
                      .library = batched ? Library::gemm : Library::none,
                      .multiply_adds = call.size.times(call.shapes[0][1].size),
                      .autocast = batched ? Autocast::lower : Autocast::as_is});
}

/// rows[order]: a copy in another order, which keeps its indices.
inline core::Result<TensorId> record_ordered(const OpCall& call, Tape& tape) {
  const auto rows = rows_of(call.output);
  if (!rows) return unfit(call.output, "known sizes");
  const std::array<TensorSize, 1> indices = {rows->as(core::DType::int64)};
  return tape.record({.inputs = call.tensors.first(1),
                      .output = call.size.as(tape.tensor(call.tensors[0]).size.dtype),
                      .extras = indices,
                      .extras_first = true});
}

/// A view of rows that the call keeps, such as index_add_'s of what it adds.
inline core::Result<TensorId> record_kept(const OpCall& call, Tape& tape) {
  return tape.record({.inputs = call.tensors.first(1),
                      .output = tape.tensor(call.tensors[0]).size,
                      .kind = Output::view,
                      .layout = tape.tensor(call.tensors[0]).layout,
                      .saved_inputs = 1U});
}

/// As many as there are tokens in the second input.
inline core::Result<core::Shape> summed_shape(const OpInput& input) {
  if (input.inputs.size() != 2) return unfit(input.inputs[0], "rows and tokens");
  return input.inputs[1];
}

/// rows.view(tokens, per token, width).sum(1): a row's gradient is a view of its token's.
inline core::Result<TensorId> record_summed(const OpCall& call, Tape& tape) {
  return tape.record({.inputs = call.tensors.first(1),
                      .output = call.size.as(tape.tensor(call.tensors[0]).size.dtype),
                      .gradient = Gradient::spread,
                      .autocast = Autocast::full});
}

/// One row of [experts, out] for each of the rows.
inline core::Result<core::Shape> bias_shape(const OpInput& input) {
  if (input.inputs.size() != 2) return unfit(input.inputs[0], "biases and rows");
  core::Shape shape = input.inputs[1];
  if (shape.rank() != 2 || input.inputs[0].rank() != 2) return unfit(shape, "two axes");
  shape.set(1, input.inputs[0][1]);
  return shape;
}

/// bias[experts of the rows]: which expert a row has is kept by whoever sorted the rows.
inline core::Result<TensorId> record_biases(const OpCall& call, Tape& tape) {
  return tape.record({.inputs = call.tensors.first(1), .output = call.size});
}

/// Tokens from "start" on, "length" of them or all (0), which a mask as wide as the tokens chooses.
inline core::Result<core::Shape> masked_shape(const OpInput& input) {
  core::Shape shape = input.inputs[0];
  const std::int64_t start = input.attributes.integer("start").value_or(0);
  const std::int64_t length = input.attributes.integer("length").value_or(0);
  if (shape.rank() != 3 || shape[1].kind != core::Dim::Kind::fixed) return unfit(shape, "a known number of tokens");
  const std::int64_t left = shape[1].size - start;
  if (start < 0 || length < 0 || left < std::max<std::int64_t>(length, 1)) {
    return core::Error{core::ErrorCode::invalid_argument,
                       "the images of a sample take " + std::to_string(length > 0 ? length : start) +
                           " tokens with the marks around them, and samples have " + std::to_string(shape[1].size) +
                           "; give a `seq_length` that holds them and text",
                       {}};
  }
  shape.set(1, core::Dim::fixed(length > 0 ? length : left));
  return shape;
}

/// How many masks are tensors of their own: one that is "inverted". Else the mask is a view.
inline std::size_t own_masks(const OpCall& call) { return call.attributes.flag("inverted", false) ? 1 : 0; }

/// x[mask]: indices of three figures an element, given back; the mask is kept. Backward adds into zeros of all tokens
/// by the same indices, then by sorted ones. Source: torch 2.6, native/IndexingUtils.h: expandTensors();
/// native/cuda/Indexing.cu: makeLinearIndex(), index_put_with_sort_kernel().
inline core::Result<TensorId> record_masked(const OpCall& call, Tape& tape) {
  constexpr std::int64_t kFigures = 3;
  constexpr std::int64_t kSorted = 6;
  const std::array<TensorSize, 1> mask = {tape.tensor(call.tensors[0]).size.as(core::DType::boolean)};
  const std::array<TensorSize, 1> indices = {call.size.times(kFigures).as(core::DType::int64)};
  const std::array<TensorSize, 1> sorted = {call.size.times(kSorted).as(core::DType::int64)};
  return tape.record({.inputs = call.tensors.first(1),
                      .output = call.size.as(tape.tensor(call.tensors[0]).size.dtype),
                      .extras = std::span(mask).first(own_masks(call)),
                      .extras_first = true,
                      .scratch = indices,
                      .backward_scratch = sorted});
}

/// x[mask] = y, of all tokens x and some tokens y: the same, the other way round.
inline core::Result<TensorId> record_put(const OpCall& call, Tape& tape) {
  constexpr std::int64_t kFigures = 3;
  if (call.tensors.size() != 2) return unfit(call.output, "two inputs");
  const std::array<TensorSize, 1> mask = {tape.tensor(call.tensors[0]).size.as(core::DType::boolean)};
  const std::array<TensorSize, 1> indices = {tape.tensor(call.tensors[1]).size.times(kFigures).as(core::DType::int64)};
  return tape.record({.inputs = call.tensors,
                      .output = call.size.as(tape.tensor(call.tensors[0]).size.dtype),
                      .kind = Output::in_place,
                      .extras = std::span(mask).first(own_masks(call)),
                      .extras_first = true,
                      .scratch = indices,
                      .backward_scratch = indices});
}

}  // namespace experts_detail

inline constexpr std::array<Op, 14> kExpertsOps = {{
    {.traits = {.name = "gather_tokens", .family = OpFamily::other, .computes = false},
     .output_shape = experts_detail::gathered_shape,
     .record = experts_detail::record_gather},
    {.traits = {.name = "scatter_tokens", .family = OpFamily::other, .computes = false},
     .output_shape = same_shape,
     .record = experts_detail::record_scatter},
    {.traits = {.name = "expert_rows", .family = OpFamily::view, .computes = false},
     .output_shape = same_shape,
     .record = experts_detail::record_rows},
    {.traits = {.name = "expert_share", .family = OpFamily::view, .computes = false},
     .output_shape = experts_detail::share_shape,
     .record = experts_detail::record_share},
    {.traits = {.name = "grouped_product", .family = OpFamily::other, .keeps = Keeps::input},
     .output_shape = experts_detail::grouped_shape,
     .record = experts_detail::record_grouped},
    {.traits = {.name = "taken_experts", .family = OpFamily::view, .computes = false},
     .output_shape = same_shape,
     .record = experts_detail::record_taken},
    {.traits = {.name = "ordered_rows", .family = OpFamily::other, .computes = false},
     .output_shape = same_shape,
     .record = experts_detail::record_ordered},
    {.traits = {.name = "kept_rows", .family = OpFamily::view, .computes = false},
     .output_shape = same_shape,
     .record = experts_detail::record_kept},
    {.traits = {.name = "summed_rows", .family = OpFamily::other, .computes = false},
     .output_shape = experts_detail::summed_shape,
     .record = experts_detail::record_summed},
    {.traits = {.name = "expert_biases", .family = OpFamily::other, .computes = false},
     .output_shape = experts_detail::bias_shape,
     .record = experts_detail::record_biases},
    {.traits = {.name = "token_zeros", .family = OpFamily::other, .computes = false},
     .output_shape = same_shape,
     .record = experts_detail::record_zeros},
    {.traits = {.name = "sent_rows", .family = OpFamily::other, .computes = false},
     .output_shape = experts_detail::sent_shape,
     .record = experts_detail::record_sent},
    {.traits = {.name = "masked_tokens", .family = OpFamily::other, .computes = false},
     .output_shape = experts_detail::masked_shape,
     .record = experts_detail::record_masked},
    {.traits = {.name = "put_tokens", .family = OpFamily::other, .computes = false},
     .output_shape = same_shape,
     .record = experts_detail::record_put},
}};

}  // namespace gpumem::ops
