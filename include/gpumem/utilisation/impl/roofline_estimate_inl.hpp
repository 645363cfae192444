#pragma once

#include "gpumem/utilisation/roofline_estimate.hpp"

#include <algorithm>

namespace gpumem::utilisation {

namespace roofline_estimate_detail {

inline constexpr double kOtherHost = 2.5;  ///< times slower or faster

/// The range spans three hosts, and by a factor what the roofline does not know about the kernels. Factors, and the
/// share of runs that the ranges hold: from GPUMemNet's runs.
GPUMEM_INLINE Share share_of(double expected, double one, double other, double below, double above) {
  return {expected, std::min({expected, one, other}) * below, std::max({expected, one, other}) * above};
}
inline constexpr double kCoverage = 0.89;

}  // namespace roofline_estimate_detail

GPUMEM_INLINE UtilisationEstimate roofline_estimate(const plan::StepWork& work, const model::TrainingJob& job,
                                                    const GpuPeaks& gpu, const HostCosts& host) {
  using roofline_estimate_detail::share_of;
  const StepTime expected = step_time(work, job, gpu, host);
  const StepTime slow = step_time(work, job, gpu, host.times(roofline_estimate_detail::kOtherHost));
  const StepTime fast = step_time(work, job, gpu, host.times(1.0 / roofline_estimate_detail::kOtherHost));
  UtilisationEstimate estimate;
  estimate.smact = share_of(expected.smact, slow.smact, fast.smact, 0.85, 1.15);
  estimate.smocc = share_of(expected.smocc, slow.smocc, fast.smocc, 0.6, 1.6);
  estimate.gract = share_of(expected.gract, slow.gract, fast.gract, 0.9, 1.1);
  estimate.gpu_utilisation = estimate.gract;
  estimate.fp32 = share_of(expected.fp32, slow.fp32, fast.fp32, 0.4, 2.5);
  estimate.coverage = roofline_estimate_detail::kCoverage;
  return estimate;
}

}  // namespace gpumem::utilisation
