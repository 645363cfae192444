// Input: how busy a job keeps one GPU, and another GPU's profile.
// Output: how busy it would keep the other GPU. For figures without the job itself (a monitor's reading, a table).
// Units: shares of the GPU named.
//
// With speed s of the new GPU's over the old one's, and n and m their SMs:
//
//   GRACT'  = (GRACT / s) / (1 - GRACT + GRACT / s)      the host's share of a step stays, the kernels' shrinks
//   SMACT'  = GRACT' min(1, SMACT / GRACT  n / m)        a grid fills as many SMs of the new GPU as it did of the old
//   one SMOCC', FP32' follow SMACT and the work's share: SMOCC SMACT' / SMACT, FP32 (GRACT' / GRACT) s p / q for peaks
//   p, q
//
// s lies between the ratios of the bandwidths and of the FP32 peaks; `expected` takes their geometric mean, the range
// both ends, and grids that fill the new GPU as they filled the old one (more of the same blocks).
// 80 % of an A100's SMs at a GRACT of 0.9 become about half of an H200's. An estimator that is given the job
// (roofline) knows more than this.
#pragma once

#include "gpumem/core/result.hpp"
#include "gpumem/device/gpu_profile.hpp"
#include "gpumem/utilisation/utilisation_estimate.hpp"

namespace gpumem::utilisation {

/// Errors: missing_information for a profile without SM count, bandwidth or FP32 peak.
[[nodiscard]] core::Result<UtilisationEstimate> translate(const UtilisationEstimate& estimate,
                                                          const device::GpuProfile& from, const device::GpuProfile& to);

}  // namespace gpumem::utilisation
