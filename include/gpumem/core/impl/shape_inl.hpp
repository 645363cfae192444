#pragma once

#include "gpumem/core/shape.hpp"

namespace gpumem::core {

GPUMEM_INLINE std::string to_string(const Dim& dim) {
  switch (dim.kind) {
    case Dim::Kind::fixed: return std::to_string(dim.size);
    case Dim::Kind::batch: return dim.size == 1 ? "N" : std::to_string(dim.size) + "N";
    case Dim::Kind::unknown: break;
  }
  return "?";
}

GPUMEM_INLINE std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    if (axis > 0) text += ", ";
    text += to_string(shape[axis]);
  }
  return text + "]";
}

}  // namespace gpumem::core
