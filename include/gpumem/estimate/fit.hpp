// Enters: a training job, a GPU and an estimator. Leaves: Fit, the largest batch with which the job fits there, what
// it takes, and what one sample more would. Units: batch sizes in samples.
//
// Need grows with the batch, though not at every step: an allocator's rounding can make a larger batch fit where a
// smaller one does not. What is returned is a boundary that was checked on both sides: `batch_size` fits, and one more
// does not.
#pragma once

#include <cstdint>
#include <optional>

#include "gpumem/core/result.hpp"
#include "gpumem/estimate/estimator.hpp"

namespace gpumem::estimate {

/// Larger batches are not tried.
inline constexpr std::int64_t kLargestBatch = std::int64_t{1} << 20;

struct Fit {
  std::int64_t batch_size = 0;             ///< the largest that fits; 0: not even one sample does
  bool at_least = false;                   ///< kLargestBatch fits, and perhaps more
  std::optional<MemoryEstimate> estimate;  ///< at batch_size; nothing if that is 0
  std::optional<MemoryEstimate> next;      ///< at batch_size + 1; nothing with at_least, or beyond 64 bits
  std::int64_t estimates = 0;              ///< how many were made to find it
};

/// The batch size of the job itself is ignored. Errors: the estimator's at batch 1; missing_information if layers are
/// unknown or the estimator gives a lower bound that fits, so that no batch is known to.
[[nodiscard]] core::Result<Fit> largest_batch(model::TrainingJob job, const device::GpuProfile& gpu,
                                              const Estimator& estimator);
/// The same of a job's Analysis, which is left at the batch size that was tried last.
[[nodiscard]] core::Result<Fit> largest_batch(analysis::Analysis& analysis, const device::GpuProfile& gpu,
                                              const Estimator& estimator);

}  // namespace gpumem::estimate

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/estimate/impl/fit_inl.hpp"
#endif
