// What Wiring does with layers of a tree, whose attributes are declared and whose shapes follow from what they read:
// the bodies of its members for these.
#pragma once

#include <string_view>

#include "gpumem/core/shape.hpp"
#include "gpumem/model/op_traits.hpp"

namespace gpumem::connect::wiring_detail {

/// timm's pooling of a classifier, which prints its kind, and whether its channels lie last does not show.
inline constexpr std::string_view kPoolOfTrees = "SelectAdaptivePool2d";

inline bool one_pixel(const core::Shape& shape) {
  for (std::size_t axis = 2; axis < shape.rank(); ++axis) {
    if (shape[axis] != core::Dim::fixed(1)) return false;
  }
  return shape.rank() > 2;
}

inline bool is_linear(const model::OpTraits* op) {
  return op != nullptr && op->completion == model::Completion::linear;
}

}  // namespace gpumem::connect::wiring_detail
