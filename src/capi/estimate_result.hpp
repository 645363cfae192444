// Input: an estimate.
// Output: the C API's struct of it, in the room that its owner has.
// Units: bytes.
#pragma once

#include "gpumem/device/gpu_profile.hpp"
#include "gpumem/estimate/memory_estimate.hpp"
#include "gpumem/gpumem.h"

namespace gpumem::capi {

/// Where the API gives or takes a number that is not told.
inline constexpr std::int64_t kNotTold = -1;

[[nodiscard]] gpumem_verdict verdict_of(estimate::Verdict verdict);

/// The estimate's figures, and in words what it assumes where the owner has room for them.
void give_estimate(const estimate::MemoryEstimate& estimate, const device::GpuProfile& gpu, gpumem_estimate_result* to);

}  // namespace gpumem::capi
