#pragma once

#include "gpumem/utilisation/roofline.hpp"

namespace gpumem::utilisation {

GPUMEM_INLINE core::Result<UtilisationEstimate> Roofline::do_estimate(const model::TrainingJob& job,
                                                                      const device::GpuProfile& gpu) const {
  const core::Result<GpuPeaks> peaks = peaks_of(gpu);
  if (!peaks) return peaks.error();
  const core::Result<plan::StepWork> work = work_of(job, ops_);
  if (!work) return work.error();
  return roofline_estimate(*work, job, *peaks, host_);
}

}  // namespace gpumem::utilisation
