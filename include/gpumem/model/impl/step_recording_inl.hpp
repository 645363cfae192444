#pragma once

#include "gpumem/model/step_recording.hpp"

namespace gpumem::model {

GPUMEM_INLINE std::optional<std::int64_t> AxisExpression::at(std::int64_t batch, std::int64_t sequence) const {
  std::int64_t sum = c[0];
  const auto add = [&](std::int64_t coefficient, std::int64_t axis) {
    std::int64_t product = 0;
    return !__builtin_mul_overflow(coefficient, axis, &product) && !__builtin_add_overflow(sum, product, &sum);
  };
  if (c[1] != 0 && !add(c[1], batch)) return std::nullopt;
  if (c[2] != 0 && !add(c[2], sequence)) return std::nullopt;
  if (c[3] != 0) {
    std::int64_t both = 0;
    if (__builtin_mul_overflow(batch, sequence, &both) || !add(c[3], both)) return std::nullopt;
  }
  return sum < 0 ? std::nullopt : std::optional(sum);
}

}  // namespace gpumem::model
