// Input: a training job's Analysis and a GPU.
// Output: a UtilisationEstimate. The counterpart of estimate::Estimator.
#pragma once

#include <string_view>

#include "gpumem/analysis/analysis.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/device/gpu_profile.hpp"
#include "gpumem/model/training_job.hpp"
#include "gpumem/utilisation/utilisation_estimate.hpp"

namespace gpumem::utilisation {

/// Thread safety: immutable once made; one estimator serves any number of threads.
class UtilisationEstimator {
 public:
  UtilisationEstimator() = default;
  UtilisationEstimator(const UtilisationEstimator&) = delete;
  UtilisationEstimator& operator=(const UtilisationEstimator&) = delete;
  virtual ~UtilisationEstimator() = default;

  [[nodiscard]] virtual std::string_view name() const = 0;

  /// How busy the job keeps this GPU. Errors: as of estimate::Estimator::estimate(), and missing_information where the
  /// profile lacks a figure that this method needs (SM count, bandwidth, peak).
  [[nodiscard]] core::Result<UtilisationEstimate> estimate(analysis::Analysis& analysis,
                                                           const device::GpuProfile& gpu) const;
  /// The same with an Analysis for this call only.
  [[nodiscard]] core::Result<UtilisationEstimate> estimate(const model::TrainingJob& job,
                                                           const device::GpuProfile& gpu) const;

 private:
  /// Fills the shares for a job that has been validated; estimate() adds the names.
  [[nodiscard]] virtual core::Result<UtilisationEstimate> do_estimate(analysis::Analysis& analysis,
                                                                      const device::GpuProfile& gpu) const = 0;
};

}  // namespace gpumem::utilisation
