// Enters: a job that has been planned and replayed. Leaves: the MemoryEstimate that says so. Units: bytes.
#pragma once

#include "gpumem/estimate/memory_estimate.hpp"
#include "gpumem/estimate/planned_job.hpp"

namespace gpumem::estimate {

/// `lower` and `upper` are shares of the reserved figure beside the context, wider for models with convolutions; the
/// body says on which runs they were calibrated.
[[nodiscard]] MemoryEstimate replay_estimate(const PlannedJob& planned, const JobReplay& replay,
                                             const device::GpuProfile& gpu);

}  // namespace gpumem::estimate

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/estimate/impl/replay_estimate_inl.hpp"
#endif
