#pragma once

#include "gpumem/estimate/state_bytes.hpp"

namespace gpumem::estimate {

GPUMEM_INLINE core::Result<MemoryEstimate> estimate_of(const StateBytes& bytes) {
  const core::Checked total = bytes.parameters + bytes.gradients + bytes.optimizer;
  if (!total.valid()) {
    return core::Error{core::ErrorCode::overflow, "the model's states do not fit 64 bits", {}};
  }
  MemoryEstimate estimate;
  estimate.breakdown.parameters = core::Bytes(*bytes.parameters.value());
  estimate.breakdown.gradients = core::Bytes(*bytes.gradients.value());
  estimate.breakdown.optimizer = core::Bytes(*bytes.optimizer.value());
  estimate.expected = core::Bytes(*total.value());
  estimate.lower = estimate.expected;
  estimate.upper = estimate.expected;
  estimate.allocated = estimate.expected;
  estimate.leaves_out = "activations, workspaces, the allocator's rounding, the CUDA context";
  return estimate;
}

}  // namespace gpumem::estimate
