// Dropout: torch.nn.functional.dropout and its channel-wise and alpha forms; Keras' noise and spatial forms.
// Stochastic depth: torchvision.ops.stochastic_depth and timm's DropPath, which draw one number a sample.
#pragma once

#include <array>

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

}  // namespace gpumem::ops
