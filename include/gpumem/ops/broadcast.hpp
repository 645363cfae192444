// Input: the shapes of an op's inputs.
// Output: the shape that they broadcast to. NumPy's rules, as PyTorch has them (torch.broadcast_shapes): axes align at
// the end, and a 1 stretches.
#pragma once

#include "gpumem/ops/op.hpp"

namespace gpumem::ops {

inline core::Result<core::Shape> broadcast_shape(const OpInput& input) {
  core::Shape result = input.inputs[0];
  for (const core::Shape& next : input.inputs.subspan(1)) {
    const core::Shape& longer = next.rank() > result.rank() ? next : result;
    const core::Shape& shorter = next.rank() > result.rank() ? result : next;
    core::Shape joined = longer;
    const std::size_t offset = longer.rank() - shorter.rank();
    for (std::size_t axis = 0; axis < shorter.rank(); ++axis) {
      const core::Dim left = longer[axis + offset];
      const core::Dim right = shorter[axis];
      if (left == right || right == core::Dim::fixed(1)) continue;
      if (left != core::Dim::fixed(1)) return unfit(next, "a shape that broadcasts with " + core::to_string(result));
      joined.set(axis + offset, right);
    }
    result = joined;
  }
  return result;
}

}  // namespace gpumem::ops
