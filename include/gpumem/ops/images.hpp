// Image features [.., tokens, width] that a vision-language model puts among the tokens of its text [N, S, width]: in
// place of their embeddings (Tensor.masked_scatter), or added to them (Qwen3-VL's deepstack). Which tokens are images'
// depends on the data; their number does not.
// Source: torch 2.6, native/cuda/IndexKernel.cu: launch_masked_scatter_kernel; derivatives.yaml: masked_scatter;
// transformers 4.57, models/qwen3_vl/modeling_qwen3_vl.py: get_placeholder_mask, _deepstack_process.
#pragma once

#include <array>
#include <string_view>

#include "gpumem/ops/op.hpp"

namespace gpumem::ops {

/// The op that puts features among all tokens of the samples.
inline constexpr std::string_view kAmongTokens = "masked_scatter";

namespace images_detail {

/// Features a sample: all axes but the last, and the factor of the batch.
inline std::optional<std::int64_t> rows_a_sample(const core::Shape& features) {
  core::Checked rows = 1;
  for (std::size_t axis = 0; axis + 1 < features.rank(); ++axis) {
    if (features[axis].kind == core::Dim::Kind::unknown) return std::nullopt;
    rows *= features[axis].size;
  }
  return rows.value();
}

/// Whether all tokens of the samples hold the features is asked where they are put among them; later layers may have a
/// rank's part of the tokens.
template <bool AllTokens>
core::Result<core::Shape> text_shape(const OpInput& input) {
  const core::Shape& text = input.inputs[0];
  if (input.inputs.size() != 2 || text.rank() != 3) return unfit(text, "embeddings and image features");
  const core::Shape& features = input.inputs[1];
  const auto rows = rows_a_sample(features);
  if (!rows || features.rank() < 2 || features[features.rank() - 1] != text[2]) {
    return unfit(features, "features as wide as the embeddings");
  }
  if (AllTokens && text[1].kind == core::Dim::Kind::fixed && text[1].size < *rows) {
    return core::Error{core::ErrorCode::invalid_argument,
                       "the images of a sample take " + std::to_string(*rows) + " tokens, and samples have " +
                           std::to_string(text[1].size) + "; give a `seq_length` that holds them, or smaller images",
                       {}};
  }
  return text;
}

/// The batch's features, each by `figures` figures.
inline TensorSize features_of(const OpCall& call, std::int64_t figures) {
  const auto rows = rows_of(call.shapes[1]);
  return rows ? rows->times(figures).as(core::DType::int64) : TensorSize{};
}

/// The mask of a byte a token is seen as wide as the embeddings, and `inputs_embeds[mask].numel()` checks it: indices
/// of three figures an element, and what they choose. masked_scatter then copies the mask, and counts the elements
/// before each one. Backward chooses from the gradient by indices again.
inline core::Result<TensorId> record_scatter(const OpCall& call, Tape& tape) {
  const core::Dim width = call.output[2];
  const TensorSize copied = call.size.as(core::DType::boolean);
  const TensorSize before = call.size.as(core::DType::int64);
  const TensorSize chosen = features_of(call, width.size).times(3);
  const bool checks = call.attributes.flag("checks", true);
  if (checks) {
    const std::array<TensorSize, 1> indices = {chosen};
    (void)tape.record({.output = features_of(call, width.size).as(tape.tensor(call.tensors[0]).size.dtype),
                       .scratch = indices,
                       .differentiable = false});
  }
  const auto tokens = rows_of(call.output);
  const TensorSize mask = tokens ? tokens->as(core::DType::boolean) : TensorSize{};
  const std::array<TensorSize, 2> counted = {copied, before};
  const std::array<TensorSize, 1> again = {chosen};
  return tape.record({.inputs = call.tensors,
                      .output = call.size.as(tape.tensor(call.tensors[0]).size.dtype),
                      .extras = {&mask, 1},
                      .extras_first = true,
                      .scratch = tape.own_scratch(counted),
                      .backward_scratch = again});
}

/// x[mask, :] + features, written back into x: two tensors of the features, and the mask's indices, which are kept.
inline core::Result<TensorId> record_addition(const OpCall& call, Tape& tape) {
  const TensorSize indices = features_of(call, 2);
  const std::int64_t width = call.output[2].size;
  const TensorSize features = features_of(call, width).as(tape.tensor(call.tensors[0]).size.dtype);
  const std::array<TensorSize, 2> made = {features, features};
  const TensorSize whole = call.size.as(tape.tensor(call.tensors[0]).size.dtype);
  return tape.record({.inputs = call.tensors,
                      .output = call.size,
                      .kind = Output::in_place,
                      .extras = {&indices, 1},
                      .scratch = made,
                      .backward_scratch = {&whole, 1}});
}

}  // namespace images_detail

inline constexpr std::array<Op, 2> kImagesOps = {{
    {.traits = {.name = kAmongTokens, .family = OpFamily::other},
     .output_shape = images_detail::text_shape<true>,
     .record = images_detail::record_scatter},
    {.traits = {.name = "add_features", .family = OpFamily::other},
     .output_shape = images_detail::text_shape<false>,
     .record = images_detail::record_addition},
}};

}  // namespace gpumem::ops
