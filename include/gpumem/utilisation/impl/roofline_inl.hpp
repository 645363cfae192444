#pragma once

#include "gpumem/utilisation/roofline.hpp"

namespace gpumem::utilisation {

GPUMEM_INLINE core::Result<UtilisationEstimate> Roofline::do_estimate(analysis::Analysis& analysis,
                                                                      const device::GpuProfile& gpu) const {
  const core::Result<GpuPeaks> peaks = peaks_of(gpu);
  if (!peaks) return peaks.error();
  const auto work = analysis.work();
  if (!work) return work.error();
  return roofline_estimate(**work, analysis.job(), *peaks, host_);
}

}  // namespace gpumem::utilisation
