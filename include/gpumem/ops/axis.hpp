// Axes as PyTorch counts them, for shape rules.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "gpumem/ops/op.hpp"

namespace gpumem::ops {

/// A possibly negative axis as an index, or nothing if the shape has no such axis.
inline std::optional<std::size_t> axis_of(const core::Shape& shape, std::int64_t axis) {
  const auto rank = static_cast<std::int64_t>(shape.rank());
  if (axis < -rank || axis >= rank) return std::nullopt;
  return static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
}

/// The shape without an axis.
inline core::Shape without(const core::Shape& shape, std::size_t gone) {
  core::Shape result;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    if (axis != gone) result.push_back(shape[axis]);
  }
  return result;
}

}  // namespace gpumem::ops
