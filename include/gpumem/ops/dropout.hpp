// Dropout: torch.nn.functional.dropout and its channel-wise, alpha and stochastic-depth forms (timm's
// DropPath, torchvision's StochasticDepth); Keras' noise and spatial forms.
#pragma once

#include <array>

#include "gpumem/ops/op.hpp"

namespace gpumem::ops {

namespace dropout_detail {

/// aten::native_dropout on CUDA: a mask of one byte an element. Its in-place form, and dropout on a CPU, multiply
/// by a noise tensor of the input's type instead; feature dropout by one factor a channel.
inline core::Result<TensorId> record(const OpCall& call, Tape& tape) {
  const model::AttributeValue* p = call.attributes.find("p");
  const auto* probability = p == nullptr ? nullptr : std::get_if<double>(p);
  const auto never = call.attributes.integer("p");
  if ((probability != nullptr && *probability == 0.0) || never == 0) return call.tensors[0];
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
                      .extras = {&mask, 1}});
}

inline constexpr std::array<std::string_view, 9> kTorch = {"Dropout",   "Dropout1d",       "Dropout2d",
                                                           "Dropout3d", "AlphaDropout",    "FeatureAlphaDropout",
                                                           "DropPath",  "StochasticDepth", "StableDropout"};
inline constexpr std::array<std::string_view, 7> kKeras = {"Dropout",          "SpatialDropout1D", "SpatialDropout2D",
                                                           "SpatialDropout3D", "AlphaDropout",     "GaussianDropout",
                                                           "GaussianNoise"};

}  // namespace dropout_detail

inline constexpr std::array<Op, 1> kDropoutOps = {
    {{{"dropout", dropout_detail::kTorch, dropout_detail::kKeras}, same_shape, {}, false, dropout_detail::record}}};

}  // namespace gpumem::ops
