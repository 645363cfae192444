#pragma once

#include "gpumem/estimate/replay.hpp"

#include "gpumem/estimate/allocator_estimate.hpp"

namespace gpumem::estimate {

GPUMEM_INLINE core::Result<MemoryEstimate> Replay::do_estimate(analysis::Analysis& analysis,
                                                               const device::GpuProfile& gpu) const {
  return allocator_estimate(analysis, gpu, options_);
}

}  // namespace gpumem::estimate
