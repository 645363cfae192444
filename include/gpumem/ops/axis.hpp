// Axes as PyTorch counts them, and dimensions as attributes give them, for shape rules.
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

/// The dimensions of attribute "shape": a list of integers, or one with "N" in it.
inline std::optional<std::vector<core::Dim>> wanted_dims(const model::Attributes& attributes) {
  const model::AttributeValue* shape = attributes.find("shape");
  if (shape == nullptr) return std::nullopt;
  if (const auto* dims = std::get_if<std::vector<core::Dim>>(shape)) return *dims;
  const auto* sizes = std::get_if<std::vector<std::int64_t>>(shape);
  if (sizes == nullptr) return std::nullopt;
  std::vector<core::Dim> dims;
  for (const std::int64_t size : *sizes) dims.push_back(core::Dim::fixed(size));
  return dims;
}

/// The dimensions of a shape.
inline std::vector<core::Dim> dims_of(const core::Shape& shape) {
  std::vector<core::Dim> dims;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) dims.push_back(shape[axis]);
  return dims;
}

}  // namespace gpumem::ops
