#pragma once

#include "gpumem/utilisation/utilisation_estimator.hpp"

#include <algorithm>

#include "gpumem/parallel/layout.hpp"

namespace gpumem::utilisation {

namespace utilisation_estimator_detail {

/// 0 <= lower <= expected <= upper <= 1.
GPUMEM_INLINE void order(Share& share) {
  share.expected = std::clamp(share.expected, 0.0, 1.0);
  share.lower = std::clamp(share.lower, 0.0, share.expected);
  share.upper = std::clamp(share.upper, share.expected, 1.0);
}

/// What a counter is a part of: warps need an SM, an SM at work needs a kernel.
GPUMEM_INLINE void contain(Share& part, const Share& whole) {
  part.expected = std::min(part.expected, whole.expected);
  part.lower = std::min(part.lower, part.expected);
  part.upper = std::max(part.upper, part.expected);
}

}  // namespace utilisation_estimator_detail

GPUMEM_INLINE core::Result<UtilisationEstimate> UtilisationEstimator::estimate(const model::TrainingJob& job,
                                                                               const device::GpuProfile& gpu) const {
  analysis::Analysis analysis(job);
  return estimate(analysis, gpu);
}

GPUMEM_INLINE core::Result<UtilisationEstimate> UtilisationEstimator::estimate(analysis::Analysis& analysis,
                                                                               const device::GpuProfile& gpu) const {
  const model::TrainingJob& job = analysis.job();
  namespace detail = utilisation_estimator_detail;
  const core::Status valid = model::validate(job);
  if (!valid) return valid.error();
  const core::Status alone = parallel::check_data_parallel(
      job, name(), "leave it out: utilisation is estimated for one GPU that holds the whole model");
  if (!alone) return alone.error();
  core::Result<UtilisationEstimate> estimate = do_estimate(analysis, gpu);
  if (!estimate) return std::move(estimate.error()).in_file(job.graph->file());
  for (Share* share :
       {&estimate->smact, &estimate->smocc, &estimate->gract, &estimate->gpu_utilisation, &estimate->fp32}) {
    detail::order(*share);
  }
  detail::contain(estimate->smocc, estimate->smact);
  detail::contain(estimate->fp32, estimate->smact);
  estimate->estimator = name();
  estimate->gpu = gpu.name;
  return estimate;
}

}  // namespace gpumem::utilisation
