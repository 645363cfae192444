// Layers that carry a state along the tokens, as the fused kernels compute them that people train with:
//   causal_conv1d: a depthwise convolution of [N, S, C] over the last few tokens (Dao-AILab/causal-conv1d 1.5,
//     causal_conv1d_interface.py: CausalConv1dFn).
//   ssd_scan: Mamba-2's scan in chunks (state-spaces/mamba 2.2, ops/triton/ssd_combined.py:
//     MambaSplitConv1dScanCombinedFn, MambaChunkScanCombinedFn).
//   selective_scan: Mamba's scan of [N, D, S] (state-spaces/mamba 2.2, ops/selective_scan_interface.py: MambaInnerFn,
//     SelectiveScanFn).
//   gated_delta_rule: the gated delta rule and Kimi's, with a decay a channel (fla-org/flash-linear-attention 0.4,
//     ops/gated_delta_rule/chunk.py, ops/kda/chunk.py).
//   linear_scan: scans whose kernel keeps what it reads and what it leaves (RWKV-4's wkv_cuda.cu).
//   lightning_attention: MiniMax's linear attention of heads [N, heads, S, d], in plain PyTorch, block by block
//     (transformers 4.57, models/minimax/modeling_minimax.py: MiniMaxLightningAttention).
//   gated_recurrence: h = a h + x, token by token in plain PyTorch (transformers 4.57,
//     models/recurrent_gemma/modeling_recurrent_gemma.py: RecurrentGemmaRglru._rnn_scan).
//   gated_norm: RMS norm and gate in one kernel (mamba 2.2, ops/triton/layernorm_gated.py; flash-linear-attention 0.4,
//     modules/fused_norm_gate.py).
// "recomputed": the call is one part of a function that computes this part again in backward, and keeps nothing of it.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "gpumem/ops/op.hpp"

namespace gpumem::ops {

namespace scan_detail {

/// A positive attribute; `otherwise` where it is missing, or larger than any of a kernel is.
inline std::int64_t size_attribute(const OpCall& call, std::string_view name, std::int64_t otherwise = 1) {
  const std::int64_t found = call.attributes.integer(name).value_or(otherwise);
  return found < 1 || found > INT32_MAX ? otherwise : found;
}

/// A sequence of [N, S, C], or of [N, C, S] with "channels first", cut into chunks.
struct Sequence {
  TensorSize samples;  ///< N
  TensorSize tokens;   ///< N S
  std::int64_t length = 1;

  [[nodiscard]] std::int64_t chunks(std::int64_t size) const { return (length - 1) / size + 1; }
};

inline core::Result<Sequence> sequence_of(const OpCall& call, std::size_t axis = 1) {
  const core::Shape& shape = call.shapes[0];
  if (shape.rank() < 3 || shape[axis].kind != core::Dim::Kind::fixed || shape[axis].size < 1) {
    return unfit(shape, "a known number of tokens");
  }
  const auto samples = rows_of(shape, shape.rank() - 1);
  if (!samples) return unfit(shape, "a known batch axis");
  return Sequence{*samples, samples->times(shape[axis].size), shape[axis].size};
}

/// A weight of [C, 1, kernel] and a bias of [C].
inline std::optional<core::Checked> convolution_parameters(const model::Attributes& attributes) {
  const auto channels = attributes.integer("channels");
  const auto kernel = attributes.integer("kernel_size");
  if (!channels || !kernel) return std::nullopt;
  const core::Checked weight = core::Checked(*channels) * core::Checked(*kernel);
  return attributes.flag("bias", true) ? weight + core::Checked(*channels) : weight;
}

/// Keeps its input, which it reads in either order of the axes.
inline core::Result<TensorId> record_convolution(const OpCall& call, Tape& tape) {
  const core::Checked channels = size_attribute(call, "channels");
  const core::Checked weight = channels * core::Checked(size_attribute(call, "kernel_size"));
  add_parameters(call, tape, {weight, call.attributes.flag("bias", true) ? channels : core::Checked(0)});
  const TapeTensor& input = tape.tensor(call.tensors[0]);
  return tape.record({.inputs = call.tensors.first(1),
                      .output = call.size.as(input.size.dtype),
                      .layout = {input.layout.order, false},
                      .saved_inputs = 1,
                      .parameters = tape.layer_parameters(),
                      .multiply_adds = call.size.times(size_attribute(call, "kernel_size"))});
}

/// What Mamba-2's kernels hold.
struct StateSizes {
  TensorSize input;    ///< x, B and C of all tokens
  TensorSize output;   ///< y, in the input's type
  TensorSize steps;    ///< float32, a token and head
  TensorSize states;   ///< float32, of each chunk
  TensorSize scores;   ///< float32: C B^T within each chunk
  TensorSize grouped;  ///< float32: of B, or of C
  core::DType type = core::DType::float32;
};

inline StateSizes state_sizes(const OpCall& call, const Tape& tape, const Sequence& sequence) {
  const std::int64_t heads = size_attribute(call, "heads");
  const std::int64_t groups = size_attribute(call, "groups");
  const std::int64_t state = size_attribute(call, "state");
  const std::int64_t chunk = size_attribute(call, "chunk", 256);
  StateSizes sizes;
  sizes.input = tape.tensor(call.tensors[0]).size;
  sizes.type = sizes.input.dtype;
  sizes.output = call.size.as(sizes.type);
  sizes.steps = sequence.tokens.times(heads);
  const TensorSize chunks = sequence.samples.times(sequence.chunks(chunk));
  sizes.states = chunks.times(heads).times(size_attribute(call, "head_dim")).times(state);
  sizes.scores = chunks.times(groups).times(chunk).times(chunk);
  sizes.grouped = sequence.tokens.times(groups).times(state);
  return sizes;
}

inline bool is_larger(const TensorSize& left, const TensorSize& right) {
  return left.elements.value().value_or(INT64_MAX) > right.elements.value().value_or(INT64_MAX);
}

/// _mamba_chunk_scan_combined_fwd: the running decay and the steps, each chunk's state before and after it is passed
/// on, the scores.
inline std::array<TensorSize, 4> forward_scratch(const StateSizes& sizes) {
  const TensorSize& larger = is_larger(sizes.scores, sizes.states) ? sizes.scores : sizes.states;
  return {sizes.steps, sizes.steps, sizes.states.as(sizes.type), larger};
}

/// _mamba_chunk_scan_combined_bwd: the same again, the states and their gradients in both types, and the gradients of
/// steps and decays. The function that also convolves, norms and projects computes its input again and holds its
/// gradient twice, the output's gradient, and what it projected.
inline std::vector<TensorSize> backward_scratch(const StateSizes& sizes, bool recomputed) {
  const TensorSize typed = sizes.states.as(sizes.type);
  std::vector<TensorSize> all(4, sizes.steps);
  all.insert(all.end(), {sizes.scores, typed, typed});
  if (is_larger(sizes.scores, sizes.states.times(2))) {
    all.insert(all.end(), {sizes.scores, sizes.grouped, sizes.grouped});
  } else {
    all.insert(all.end(), {sizes.states, sizes.states});
  }
  if (recomputed) all.insert(all.end(), {sizes.input, sizes.input, sizes.output, sizes.output});
  return all;
}

inline core::Result<core::Shape> scanned_shape(const OpInput& input) {
  const auto heads = input.attributes.integer("heads");
  const auto width = input.attributes.integer("head_dim");
  if (!heads || !width) return missing("heads and head_dim");
  const core::Checked all = core::Checked(*heads) * core::Checked(*width);
  if (!all.valid()) return core::Error{core::ErrorCode::overflow, "its heads do not fit 64 bits", {}};
  core::Shape shape = input.inputs[0];
  if (shape.rank() != 3) return unfit(shape, "three axes");
  shape.set(2, core::Dim::fixed(*all.value()));
  return shape;
}

/// x, B and C in one; the steps; then the parameters that the kernel reads: decays, skips, biases. Keeps its output;
/// not "recomputed" also what it reads, and the running decay.
inline core::Result<TensorId> record_ssd(const OpCall& call, Tape& tape) {
  if (call.tensors.size() < 2) return unfit(call.shapes[0], "steps");
  const core::Result<Sequence> sequence = sequence_of(call);
  if (!sequence) return sequence.error();
  const StateSizes sizes = state_sizes(call, tape, *sequence);
  const bool recomputed = call.attributes.flag("recomputed", false);
  const std::array<TensorSize, 4> scratch = forward_scratch(sizes);
  const std::vector<TensorSize> backward = backward_scratch(sizes, recomputed);
  const std::int64_t meets = 2 * size_attribute(call, "state") + size_attribute(call, "chunk", 256);
  return tape.record({.inputs = call.tensors,
                      .output = sizes.output,
                      .saved_inputs = recomputed ? 0U : 3U,
                      .saves_output = true,
                      .extras = {&sizes.steps, recomputed ? 0U : 1U},
                      .scratch = tape.own_scratch(scratch),
                      .backward_scratch = tape.own_scratch(backward),
                      .multiply_adds = call.size.times(meets)});
}

/// The gated delta rule of queries, keys, values [N, S, heads, d], decays and rates. Keeps queries and keys after their
/// norms, the norms' figures, the values as a dense tensor, running decays in float32 and each chunk's triangular
/// inverse; "per_channel" (Kimi's) the raw decays and the scores of each chunk, too. States are computed again.
inline core::Result<TensorId> record_delta(const OpCall& call, Tape& tape) {
  if (call.tensors.size() < 5 || call.shapes[2].rank() != 4) return unfit(call.shapes[0], "five inputs of heads");
  const core::Result<Sequence> sequence = sequence_of(call);
  if (!sequence) return sequence.error();
  constexpr std::int64_t kChunk = 64;
  const bool per_channel = call.attributes.flag("per_channel", false);
  const TensorSize queries = tape.tensor(call.tensors[0]).size;
  const core::DType type = queries.dtype;
  const TensorSize values = call.size.as(type);
  const TensorSize decays = tape.tensor(call.tensors[3]).size.as(core::DType::float32);
  const std::int64_t heads = std::max<std::int64_t>(call.shapes[2][2].size, 1);
  const TensorSize rows = sequence->tokens.times(heads);
  const TensorSize inverse = rows.times(kChunk).as(type);
  const TensorSize states = sequence->samples.times(sequence->chunks(kChunk))
                                .times(heads)
                                .times(std::max<std::int64_t>(call.shapes[0][3].size, 1))
                                .times(std::max<std::int64_t>(call.shapes[2][3].size, 1))
                                .as(type);
  const bool copies = !tape.tensor(call.tensors[2]).layout.dense();
  std::vector<TensorSize> extras = {queries, rows, queries, rows};
  if (!per_channel) extras.push_back(decays);
  extras.push_back(inverse);
  if (per_channel) extras.push_back(inverse);
  if (copies) extras.push_back(values);
  std::vector<TensorSize> scratch = {rows.times(kChunk), queries, values, values, states};
  std::vector<TensorSize> backward = {queries, values, values, states, states, values, queries, queries, queries};
  if (per_channel) {
    scratch.insert(scratch.end(), {decays, queries, queries});
    backward.insert(backward.end(), {decays, decays, queries.as(core::DType::float32)});
  }
  return tape.record({.inputs = call.tensors,
                      .output = values,
                      .saved_inputs = 16U | (copies ? 0U : 4U) | (per_channel ? 8U : 0U),
                      .extras = extras,
                      .scratch = tape.own_scratch(scratch),
                      .backward_scratch = tape.own_scratch(backward),
                      .multiply_adds = call.size.times(
                          3 * kChunk + 2 * std::clamp<std::int64_t>(call.shapes[0][3].size, 1, INT32_MAX))});
}

inline core::Result<core::Shape> values_shape(const OpInput& input) {
  if (input.inputs.size() < 3) return unfit(input.inputs[0], "queries, keys and values");
  return input.inputs[2];
}

/// Mamba's scan of inputs and steps [N, D, S], B and C [N, state, S], the gate [N, D, S]; then its parameters. Keeps
/// all that it reads, dense, its output before the gate, and two states of each 2048 tokens; "recomputed" neither
/// inputs nor steps.
inline core::Result<TensorId> record_selective(const OpCall& call, Tape& tape) {
  if (call.tensors.size() < 5) return unfit(call.shapes[0], "inputs, steps, B, C and a gate");
  const core::Result<Sequence> sequence = sequence_of(call, 2);
  if (!sequence) return sequence.error();
  constexpr std::int64_t kTokens = 2048;  // selective_scan.cpp: n_chunks
  const std::int64_t state = size_attribute(call, "state");
  const bool recomputed = call.attributes.flag("recomputed", false);
  const core::DType type = tape.tensor(call.tensors[0]).size.dtype;
  const TensorSize typed = call.size.as(type);
  const TensorSize states =
      sequence->samples.times(call.shapes[0][1].size).times(sequence->chunks(kTokens)).times(2 * state);
  const TensorSize narrow = sequence->tokens.times(state);
  std::array<TensorId, 5> read{};
  for (std::size_t at = 0; at < read.size(); ++at) {
    const bool gate_within = recomputed && at == 4;  // the function keeps input and gate as one tensor
    read[at] = gate_within ? call.tensors[at] : contiguous(tape, call.tensors[at]);
  }
  std::vector<TensorId> inputs(read.begin(), read.end());
  inputs.insert(inputs.end(), call.tensors.begin() + 5, call.tensors.end());
  const std::array<TensorSize, 2> extras = {states, typed};
  std::vector<TensorSize> backward = {narrow, narrow};
  if (recomputed) backward.insert(backward.end(), {typed, typed, typed});
  return tape.record({.inputs = inputs,
                      .output = typed,
                      .saved_inputs = recomputed ? 28U : 31U,
                      .extras = extras,
                      .backward_scratch = tape.own_scratch(backward),
                      .multiply_adds = call.size.times(3 * state)});
}

/// A kernel that keeps its first "kept" inputs and its output.
inline core::Result<TensorId> record_linear_scan(const OpCall& call, Tape& tape) {
  const std::int64_t kept = std::min<std::int64_t>(size_attribute(call, "kept"), 8);
  std::vector<TensorId> inputs(call.tensors.begin(), call.tensors.end());
  for (std::size_t at = 0; at < std::min(inputs.size(), static_cast<std::size_t>(kept)); ++at) {
    inputs[at] = contiguous(tape, inputs[at]);
  }
  return tape.record({.inputs = inputs,
                      .output = call.size.as(tape.tensor(inputs[0]).size.dtype),
                      .saved_inputs = (1U << static_cast<unsigned>(kept)) - 1U,
                      .saves_output = true});
}

/// Each block of tokens keeps copies of its queries, keys and values for each product that reads them, its scores times
/// their decay, and the state before it. Blocks are views, each of whose gradients is as large as all of them.
inline core::Result<TensorId> record_lightning(const OpCall& call, Tape& tape) {
  if (call.tensors.size() != 3 || call.shapes[0].rank() != 4) return unfit(call.shapes[0], "queries, keys and values");
  const core::Result<Sequence> sequence = sequence_of(call, 2);
  if (!sequence) return sequence.error();
  const std::int64_t block = std::min(size_attribute(call, "block", 256), sequence->length);
  const std::int64_t heads = std::clamp<std::int64_t>(call.shapes[0][1].size, 1, INT32_MAX);
  const std::int64_t width = std::clamp<std::int64_t>(call.shapes[0][3].size, 1, INT32_MAX);
  const core::DType type = tape.tensor(call.tensors[0]).size.dtype;
  const TensorSize typed = call.size.as(type);
  const std::int64_t rest = sequence->length % block;
  const TensorSize each = sequence->samples.times(heads).as(type);
  const TensorSize one = each.times(block).times(block);
  const std::int64_t whole = sequence->length / block;
  const TensorSize states = each.times(sequence->chunks(block)).times(width).times(width);
  // Queries, keys and values of the scores. Decayed queries meet the state, which the first block has no gradient of;
  // decayed keys and values make the next one, which nothing reads after the last block.
  const std::int64_t last = rest > 0 ? rest : block;
  const TensorSize after_first = each.times(sequence->length - block).times(width);
  const TensorSize before_last = each.times(sequence->length - last).times(width);
  std::vector<TensorSize> extras = {typed, typed, typed, one.times(whole), states};
  if (sequence->length > block) extras.insert(extras.end(), {after_first, before_last, before_last});
  if (rest > 0) extras.push_back(each.times(rest).times(rest));
  const std::array<TensorSize, 3> scratch = {typed, one, one};
  const std::array<TensorSize, 5> backward = {typed, typed, typed, one, one};
  return tape.record({.inputs = call.tensors,
                      .output = typed,
                      .extras = extras,
                      .scratch = tape.own_scratch(scratch),
                      .backward_scratch = tape.own_scratch(backward),
                      .multiply_adds = call.size.times(2 * (block + width))});
}

/// Of inputs and gates [N, S, C]: each token keeps its state and, in a type of 16 bits, a copy of its gate, in float32.
/// Each token is written in place, so its gradient is a copy of all.
inline core::Result<TensorId> record_recurrence(const OpCall& call, Tape& tape) {
  if (call.tensors.size() != 2) return unfit(call.output, "an input and its gate");
  const core::DType type = tape.tensor(call.tensors[0]).size.dtype;
  const TensorSize typed = call.size.as(type);
  const TensorSize states = call.size.as(core::DType::float32);
  const bool copies = tape.tensor(call.tensors[1]).size.dtype != core::DType::float32;
  const std::array<TensorSize, 2> extras = {states, states};
  const std::array<TensorSize, 4> backward = {typed, typed, typed, typed};
  return tape.record({.inputs = call.tensors,
                      .output = typed,
                      .saved_inputs = copies ? 0U : 2U,
                      .extras = std::span(extras).first(copies ? 2 : 1),
                      .backward_scratch = tape.own_scratch(backward)});
}

/// What the norm has, if it is one: without "normalizes" the gate alone.
inline std::optional<core::Checked> gated_parameters(const model::Attributes& attributes) {
  if (!attributes.flag("normalizes", true)) return core::Checked(0);
  const auto width = attributes.integer("normalized_shape");
  return width ? std::optional(core::Checked(*width)) : std::nullopt;
}

/// Keeps both inputs and a figure a row and group.
inline core::Result<TensorId> record_gated(const OpCall& call, Tape& tape) {
  if (call.tensors.size() != 2) return unfit(call.output, "an input and its gate");
  const auto rows = rows_of(call.output);
  if (!rows) return unfit(call.output, "known sizes");
  add_parameters(call, tape, {core::Checked(call.parameters)});
  const bool normalizes = call.attributes.flag("normalizes", true);
  const TensorSize figures = rows->times(size_attribute(call, "groups"));
  const std::array<TensorId, 2> inputs = {call.tensors[0], call.tensors[1]};
  return tape.record({.inputs = inputs,
                      .output = call.size.as(tape.tensor(inputs[0]).size.dtype),
                      .saved_inputs = 3,
                      .extras = {&figures, normalizes ? 1U : 0U},
                      .parameters = tape.layer_parameters()});
}

}  // namespace scan_detail

inline constexpr std::array<Op, 8> kScanOps = {{
    // Not cuDNN's: no workspace of its kind.
    {.traits = {.name = "causal_conv1d",
                .family = OpFamily::recurrent,
                .parameters = scan_detail::convolution_parameters,
                .keeps = Keeps::input,
                .multiplies = true},
     .output_shape = same_shape,
     .record = scan_detail::record_convolution,
     .expects = {.axis = ExpectedWidth::Axis::last, .attribute = "channels"}},
    {.traits = {.name = "ssd_scan", .family = OpFamily::recurrent, .keeps = Keeps::output},
     .output_shape = scan_detail::scanned_shape,
     .record = scan_detail::record_ssd},
    {.traits = {.name = "selective_scan", .family = OpFamily::recurrent, .keeps = Keeps::input},
     .output_shape = same_shape,
     .record = scan_detail::record_selective},
    {.traits = {.name = "gated_delta_rule", .family = OpFamily::recurrent, .keeps = Keeps::input},
     .output_shape = scan_detail::values_shape,
     .record = scan_detail::record_delta},
    {.traits = {.name = "linear_scan", .family = OpFamily::recurrent, .keeps = Keeps::input},
     .output_shape = same_shape,
     .record = scan_detail::record_linear_scan},
    {.traits = {.name = "lightning_attention", .family = OpFamily::recurrent, .keeps = Keeps::input},
     .output_shape = same_shape,
     .record = scan_detail::record_lightning},
    {.traits = {.name = "gated_recurrence", .family = OpFamily::recurrent, .keeps = Keeps::input},
     .output_shape = same_shape,
     .record = scan_detail::record_recurrence},
    {.traits = {.name = "gated_norm",
                .family = OpFamily::norm,
                .parameters = scan_detail::gated_parameters,
                .keeps = Keeps::input,
                .norm = NormKind::rms},
     .output_shape = same_shape,
     .record = scan_detail::record_gated},
}};

}  // namespace gpumem::ops
