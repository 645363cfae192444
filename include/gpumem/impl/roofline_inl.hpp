#pragma once

#include "gpumem/utilisation/roofline.hpp"

#include <algorithm>

namespace gpumem::utilisation {

namespace roofline_detail {

inline constexpr double kOtherHost = 2.5;  ///< times slower or faster

/// The range spans three hosts; nothing of it is a probability.
GPUMEM_INLINE Share share_of(double expected, double one, double other) {
  return {expected, std::min({expected, one, other}), std::max({expected, one, other})};
}

}  // namespace roofline_detail

GPUMEM_INLINE UtilisationEstimate roofline_estimate(const plan::StepWork& work, const model::TrainingJob& job,
                                                    const GpuPeaks& gpu, const HostCosts& host) {
  using roofline_detail::share_of;
  const StepTime expected = step_time(work, job, gpu, host);
  const StepTime slow = step_time(work, job, gpu, host.times(roofline_detail::kOtherHost));
  const StepTime fast = step_time(work, job, gpu, host.times(1.0 / roofline_detail::kOtherHost));
  UtilisationEstimate estimate;
  estimate.smact = share_of(expected.smact, slow.smact, fast.smact);
  estimate.smocc = share_of(expected.smocc, slow.smocc, fast.smocc);
  estimate.gract = share_of(expected.gract, slow.gract, fast.gract);
  estimate.gpu_utilisation = estimate.gract;
  estimate.fp32 = share_of(expected.fp32, slow.fp32, fast.fp32);
  return estimate;
}

GPUMEM_INLINE core::Result<UtilisationEstimate> Roofline::do_estimate(const model::TrainingJob& job,
                                                                      const device::GpuProfile& gpu) const {
  const core::Result<GpuPeaks> peaks = peaks_of(gpu);
  if (!peaks) return peaks.error();
  const core::Result<plan::StepWork> work = work_of(job, ops_);
  if (!work) return work.error();
  return roofline_estimate(*work, job, *peaks, host_);
}

}  // namespace gpumem::utilisation
