// Input: a job, what its plan is made from, and a GPU.
// Output: how far such jobs lay from the replay where they were measured, and what an estimate takes as given although
// nobody measured it.
// Units: shares of the reserved memory.
#pragma once

#include <optional>
#include <vector>

#include "gpumem/analysis/analysis.hpp"
#include "gpumem/estimate/memory_estimate.hpp"

namespace gpumem::estimate {

/// The range of the reserved memory, as shares of the replay's figure.
struct Margin {
  double lower = 1.0;
  double upper = 1.0;
  std::optional<double>
      coverage;  ///< of runs below `upper`; nothing: no such runs were measured, the margin is a guess
  /// What layers of unknown classes may keep less or more than is planned, at the job's batch size.
  core::Bytes fewer = {};
  core::Bytes more = {};
};

/// Calibrated on the odd lines of GPUMemNet's published runs (A100-40GB, PyTorch 2.x, nvidia-smi), so that 95 % of them
/// lie below `upper` and 97.5 % above `lower`; of the even lines, which had no part in it, see the README. With
/// convolutions cuDNN's choice of kernels decides; without them the rounding of the allocator is all there is, and the
/// margin is for what a summary does not tell of a program. It held on an RTX 3060 and an RTX 4060 too (xMem's
/// published runs, PyTorch 2.6): all of 78 runs with convolutions were within it. Anywhere else it is widened by
/// judgement.
[[nodiscard]] Margin margin_of(const model::TrainingJob& job, const analysis::PlanSource& source,
                               const device::GpuProfile& gpu);

/// What the replay of this job takes as given; `context` is CUDA's, communicators apart, `allocator` as it ran.
[[nodiscard]] std::vector<Assumption> assumptions_of(const model::TrainingJob& job, const analysis::PlanSource& source,
                                                     const device::GpuProfile& gpu, const device::Context& context,
                                                     const device::AllocatorOptions& allocator = {});

}  // namespace gpumem::estimate
