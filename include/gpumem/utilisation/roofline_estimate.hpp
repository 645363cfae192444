// Input: the kernels of a training step and a GPU's peaks.
// Output: UtilisationEstimate by the time that the kernels take (step_time.hpp), without the names. The estimators
// share this.
//
// `expected` is for the host that the costs describe; the range is what a host 2.5 times slower, and one 2.5 times
// faster, would make of the same kernels, widened by a factor a counter. It holds 89 % of GPUMemNet's runs or
// more, whichever the counter (gpumem evaluate RUNS.csv --utilisation --estimator roofline).
#pragma once

#include "gpumem/utilisation/step_time.hpp"
#include "gpumem/utilisation/utilisation_estimate.hpp"

namespace gpumem::utilisation {

[[nodiscard]] UtilisationEstimate roofline_estimate(const plan::StepWork& work, const model::TrainingJob& job,
                                                    const GpuPeaks& gpu, const HostCosts& host = {});

}  // namespace gpumem::utilisation
