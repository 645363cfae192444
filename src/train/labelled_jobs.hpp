// Input: random jobs and a GPU.
// Output: the same jobs with what the replay estimator expects them to take there; on request the same number of jobs
// in each class of memory.
// Units: MiB (2^20 bytes) of device memory.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/device/gpu_profile.hpp"
#include "gpumem/estimate/replay.hpp"
#include "random_jobs.hpp"

namespace gpumem::train {

struct LabelledJob {
  RandomJob made;
  double replay_mib = 0.0;  ///< of a job that does not fit: what it would take on a GPU that is large enough
  bool fits = false;
};

/// Immutable once made, so that one serves any number of threads.
class LabelledJobs {
 public:
  /// The jobs as they are drawn.
  LabelledJobs(RandomJobs jobs, device::GpuProfile gpu) : jobs_(std::move(jobs)), gpu_(std::move(gpu)) {}

  /// Job i is drawn again until it lies in class i modulo the number of classes: those of bin_mib each up to the GPU's
  /// capacity (the last one reaches up to it), and one of the jobs that do not fit. A class that none of kProbes first
  /// draws lies in is left out: no MLP here takes 40 GiB. After kAttempts draws the last one is taken as it is. Errors:
  /// invalid_argument for bins of no width; those of the estimator.
  [[nodiscard]] static core::Result<LabelledJobs> balanced(RandomJobs jobs, device::GpuProfile gpu, double bin_mib);

  /// Depends only on the jobs' options, the GPU and the index. Errors: those of the estimator, such as a software stack
  /// that the GPU's profile does not name.
  [[nodiscard]] core::Result<LabelledJob> at(std::uint64_t index) const;

  [[nodiscard]] const device::GpuProfile& gpu() const { return gpu_; }
  /// How many classes there are to count jobs in: balanced()'s, with those that it leaves out.
  [[nodiscard]] std::size_t classes() const { return bins_ + 1; }
  /// The class of a job; the last one is of those that do not fit.
  [[nodiscard]] std::size_t class_of(const LabelledJob& job) const;

  static constexpr std::uint64_t kProbes = 256;
  static constexpr std::uint64_t kAttempts = 256;

 private:
  [[nodiscard]] core::Result<LabelledJob> draw(std::uint64_t index, std::uint64_t attempt) const;

  RandomJobs jobs_;
  device::GpuProfile gpu_;
  double bin_mib_ = 0.0;
  std::size_t bins_ = 1;
  std::vector<std::size_t> wanted_;  ///< classes that jobs are drawn for, in turn; none: whatever comes
};

}  // namespace gpumem::train
