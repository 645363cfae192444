// Input: a job's Analysis, a GPU and the allocator's options.
// Output: the MemoryEstimate that follows from the allocator's run.
// Units: bytes.
#pragma once

#include "gpumem/analysis/analysis.hpp"
#include "gpumem/estimate/memory_estimate.hpp"

namespace gpumem::estimate {

/// For a pipeline job that asks for the rank that takes most: makes the analysis that rank's. Other analyses do not
/// change.
/// Errors: invalid_argument for a layout that is not modelled, or for all ranks; those of the run.
[[nodiscard]] core::Status choose_rank(analysis::Analysis& analysis, const device::GpuProfile& gpu,
                                       const device::AllocatorOptions& options);

/// `lower` and `upper` are shares of the reserved figure (evidence.hpp), to which the range of the context is added.
/// Errors: those of the run.
[[nodiscard]] core::Result<MemoryEstimate> allocator_estimate(analysis::Analysis& analysis,
                                                              const device::GpuProfile& gpu,
                                                              const device::AllocatorOptions& options);

}  // namespace gpumem::estimate
