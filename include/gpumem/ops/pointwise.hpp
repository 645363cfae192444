// Dropout: torch.nn.functional.dropout and its channel-wise and alpha forms; Keras' noise and spatial forms.
// Stochastic depth: torchvision.ops.stochastic_depth and timm's DropPath, which draw one number a sample.
//
// Element by element, without parameters: torch.pow, sqrt, rsqrt, exp, square, neg, abs, sin, cos, log and clamp;
// Tensor.to(dtype) as "cast"; torch.where and Tensor.masked_fill, whose inputs broadcast.
#pragma once

#include <array>

#include "gpumem/ops/axis.hpp"
#include "gpumem/ops/op.hpp"

namespace gpumem::ops {

namespace dropout_detail {

/// Whether the layer drops nothing: then PyTorch hands its input through.
inline bool never_drops(const OpCall& call) { return probability(call.attributes, "p") == 0.0; }

/// aten::native_dropout on CUDA: a mask of one byte an element, made before the output. Its in-place form, and dropout
/// on a CPU, multiply by a noise tensor of the input's type instead; feature dropout by one factor a channel.
inline core::Result<TensorId> record(const OpCall& call, Tape& tape) {
  if (never_drops(call)) return call.tensors[0];
  const bool in_place = call.attributes.flag("inplace", false);
  TensorSize mask = call.size.as(core::DType::boolean);
  if (in_place || tape.backend() == Backend::cpu) mask = tape.tensor(call.tensors[0]).size;
  const bool by_feature =
      call.class_name.starts_with("Dropout") && call.class_name.size() > 7 && call.output.rank() > 2;
  if (by_feature) mask = rows_of(call.output, call.output.rank() - 2)->as(core::DType::float32);
  return tape.record({.inputs = call.tensors.first(1),
                      .output = call.size,
                      .kind = in_place ? Output::in_place : Output::fresh,
                      .layout = tape.tensor(call.tensors[0]).layout,
                      .extras = {&mask, 1},
                      .extras_first = true});
}

/// Stochastic depth: one factor a sample (mode "row"), by which the input is multiplied.
inline core::Result<TensorId> record_depth(const OpCall& call, Tape& tape) {
  if (never_drops(call)) return call.tensors[0];
  const auto factors = rows_of(call.output, call.output.rank() - 1);
  if (!factors) return unfit(call.output, "a known batch axis");
  return tape.record({.inputs = call.tensors.first(1),
                      .output = call.size,
                      .layout = tape.tensor(call.tensors[0]).layout,
                      .extras = {&*factors, 1}});
}

inline constexpr std::array<std::string_view, 7> kTorch = {
    "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout", "StableDropout"};
inline constexpr std::array<std::string_view, 2> kDepth = {"StochasticDepth", "DropPath"};
inline constexpr std::array<std::string_view, 7> kKeras = {"Dropout",          "SpatialDropout1D", "SpatialDropout2D",
                                                           "SpatialDropout3D", "AlphaDropout",     "GaussianDropout",
                                                           "GaussianNoise"};

}  // namespace dropout_detail

inline constexpr std::array<Op, 2> kDropoutOps = {{
    {.traits = {.name = "dropout",
                .family = OpFamily::dropout,
                .torch_classes = dropout_detail::kTorch,
                .keras_classes = dropout_detail::kKeras,
                .computes = false},
     .output_shape = same_shape,
     .record = dropout_detail::record},
    {.traits = {.name = "stochastic_depth",
                .family = OpFamily::dropout,
                .torch_classes = dropout_detail::kDepth,
                .computes = false},
     .output_shape = same_shape,
     .record = dropout_detail::record_depth},
}};

namespace pointwise_detail {

/// What backward reads again (derivatives.yaml): the input, the output or nothing.
template <bool KeepsInput, bool KeepsOutput, Autocast Type = Autocast::as_is>
core::Result<TensorId> record(const OpCall& call, Tape& tape) {
  return elementwise(tape, call.tensors[0], KeepsInput ? 1U : 0U, KeepsOutput, Type);
}

inline core::Result<TensorId> record_power(const OpCall& call, Tape& tape) { return power(tape, call.tensors[0]); }

/// Tensor.to(dtype), where "parameters" is the type of the model's; with a second input, Tensor.type_as.
inline core::Result<TensorId> record_cast(const OpCall& call, Tape& tape) {
  if (call.tensors.size() > 1) return tape.cast(call.tensors[0], tape.tensor(call.tensors[1]).size.dtype);
  const model::AttributeValue* named = call.attributes.find("dtype");
  const auto* name = named == nullptr ? nullptr : std::get_if<std::string>(named);
  if (name != nullptr && *name == "parameters") return tape.cast(call.tensors[0], tape.dtype());
  const auto dtype = name == nullptr ? std::nullopt : core::dtype_from(*name);
  if (!dtype) return missing("dtype");
  return tape.cast(call.tensors[0], *dtype);
}

/// aten::clamp; clamp_backward: a mask for each bound, and the gradient where both hold.
inline core::Result<TensorId> record_clamp(const OpCall& call, Tape& tape) {
  const TensorSize mask = tape.tensor(call.tensors[0]).size.as(core::DType::boolean);
  const std::array<TensorSize, 2> masks = {mask, mask};
  const TensorSize whole = call.size.as(tape.computing_type({.inputs = call.tensors}));
  return tape.record({.inputs = call.tensors.first(1),
                      .output = whole,
                      .layout = tape.tensor(call.tensors[0]).layout,
                      .saved_inputs = 1,
                      .backward_scratch = masks});
}

/// aten::erf; its gradient 2 / sqrt(pi) exp(-(x^2)) grad makes a tensor in each step, all of which live until its end.
inline core::Result<TensorId> record_erf(const OpCall& call, Tape& tape) {
  const TensorSize whole = tape.tensor(call.tensors[0]).size;
  const std::array<TensorSize, 4> steps = {whole, whole, whole, whole};
  return tape.record(
      {.inputs = call.tensors.first(1), .output = call.size, .saved_inputs = 1, .backward_scratch = steps});
}

/// A choice between two tensors, or a tensor and a number, by a mask of one byte an element, which is kept.
/// "mask_stands": the mask is a buffer of the model, which needs no memory here. "mask_given": it is the second input,
/// which is kept as it is.
inline core::Result<TensorId> record_choice(const OpCall& call, Tape& tape) {
  const TensorSize mask = call.size.as(core::DType::boolean);
  if (call.tensors.size() == 2 && call.attributes.flag("mask_given", false)) {
    return tape.record({.inputs = call.tensors,
                        .output = call.size.as(tape.tensor(call.tensors[0]).size.dtype),
                        .saved_inputs = 2,
                        .no_gradient = 2});
  }
  const bool stands = call.attributes.flag("mask_stands", false);
  return tape.record({.inputs = call.tensors, .output = call.size, .extras = {&mask, stands ? 0U : 1U}});
}

}  // namespace pointwise_detail

inline constexpr std::array<Op, 15> kPointwiseOps = {{
    {.traits = {.name = "pow", .family = OpFamily::other, .keeps = Keeps::input},
     .output_shape = broadcast_shape,
     .record = pointwise_detail::record_power},
    {.traits = {.name = "sqrt", .family = OpFamily::other, .keeps = Keeps::output},
     .output_shape = same_shape,
     .record = pointwise_detail::record<false, true>},
    {.traits = {.name = "rsqrt", .family = OpFamily::other, .keeps = Keeps::output},
     .output_shape = same_shape,
     .record = pointwise_detail::record<false, true, Autocast::full>},
    {.traits = {.name = "exp", .family = OpFamily::other, .keeps = Keeps::output},
     .output_shape = same_shape,
     .record = pointwise_detail::record<false, true, Autocast::full>},
    {.traits = {.name = "erf", .family = OpFamily::other, .keeps = Keeps::input},
     .output_shape = same_shape,
     .record = pointwise_detail::record_erf},
    {.traits = {.name = "square", .family = OpFamily::other, .keeps = Keeps::input},
     .output_shape = same_shape,
     .record = pointwise_detail::record_power},
    {.traits = {.name = "neg", .family = OpFamily::other},
     .output_shape = same_shape,
     .record = pointwise_detail::record<false, false>},
    {.traits = {.name = "abs", .family = OpFamily::other, .keeps = Keeps::input},
     .output_shape = same_shape,
     .record = pointwise_detail::record<true, false>},
    {.traits = {.name = "sin", .family = OpFamily::other, .keeps = Keeps::input},
     .output_shape = same_shape,
     .record = pointwise_detail::record<true, false>},
    {.traits = {.name = "cos", .family = OpFamily::other, .keeps = Keeps::input},
     .output_shape = same_shape,
     .record = pointwise_detail::record<true, false>},
    {.traits = {.name = "log", .family = OpFamily::other, .keeps = Keeps::input},
     .output_shape = same_shape,
     .record = pointwise_detail::record<true, false, Autocast::full>},
    {.traits = {.name = "clamp", .family = OpFamily::other, .keeps = Keeps::input},
     .output_shape = same_shape,
     .record = pointwise_detail::record_clamp},
    {.traits = {.name = "cast", .family = OpFamily::other},
     .output_shape = same_shape,
     .record = pointwise_detail::record_cast},
    {.traits = {.name = "masked_fill", .family = OpFamily::other},
     .output_shape = broadcast_shape,
     .record = pointwise_detail::record_choice},
    {.traits = {.name = "where", .family = OpFamily::other},
     .output_shape = broadcast_shape,
     .record = pointwise_detail::record_choice},
}};

}  // namespace gpumem::ops
