// Input: the bytes of a model's states.
// Output: the estimate of a formula that counts only these: a lower bound.
// Units: bytes on one GPU.
#pragma once

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/estimate/memory_estimate.hpp"

namespace gpumem::estimate {

struct StateBytes {
  core::Checked parameters = 0;
  core::Checked gradients = 0;
  core::Checked optimizer = 0;  ///< its state, and master weights in addition to the parameters
};

/// Errors: overflow if the sum does not fit 64 bits.
[[nodiscard]] core::Result<MemoryEstimate> estimate_of(const StateBytes& bytes);

}  // namespace gpumem::estimate
