// Dropout: torch.nn.functional.dropout and its channel-wise and alpha forms; Keras' noise and spatial forms.
// Stochastic depth: torchvision.ops.stochastic_depth and timm's DropPath, which draw one number a sample.
#pragma once

#include <array>

#include "gpumem/ops/op.hpp"

namespace gpumem::ops {

namespace dropout_detail {

inline constexpr std::array<std::string_view, 7> kTorch = {
    "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout", "StableDropout"};
inline constexpr std::array<std::string_view, 2> kDepth = {"StochasticDepth", "DropPath"};
inline constexpr std::array<std::string_view, 7> kKeras = {"Dropout",          "SpatialDropout1D", "SpatialDropout2D",
                                                           "SpatialDropout3D", "AlphaDropout",     "GaussianDropout",
                                                           "GaussianNoise"};

}  // namespace dropout_detail

inline constexpr std::array<Op, 2> kDropoutOps = {
    {{{"dropout", dropout_detail::kTorch, dropout_detail::kKeras}, same_shape},
     {{"stochastic_depth", dropout_detail::kDepth}, same_shape}}};

}  // namespace gpumem::ops
