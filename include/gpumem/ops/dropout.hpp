// Dropout: torch.nn.functional.dropout and its channel-wise, alpha and stochastic-depth forms (timm's
// DropPath, torchvision's StochasticDepth); Keras' noise and spatial forms.
#pragma once

#include <array>

#include "gpumem/ops/op.hpp"

namespace gpumem::ops {

namespace dropout_detail {

inline constexpr std::array<std::string_view, 9> kTorch = {"Dropout",   "Dropout1d",       "Dropout2d",
                                                           "Dropout3d", "AlphaDropout",    "FeatureAlphaDropout",
                                                           "DropPath",  "StochasticDepth", "StableDropout"};
inline constexpr std::array<std::string_view, 7> kKeras = {"Dropout",          "SpatialDropout1D", "SpatialDropout2D",
                                                           "SpatialDropout3D", "AlphaDropout",     "GaussianDropout",
                                                           "GaussianNoise"};

}  // namespace dropout_detail

inline constexpr std::array<Op, 1> kDropoutOps = {
    {{{"dropout", dropout_detail::kTorch, dropout_detail::kKeras}, same_shape}}};

}  // namespace gpumem::ops
