// Input: a training job and a GPU's profile.
// Output: how busy the job keeps that GPU, by the time of a step's kernels (step_time.hpp), on any GPU with a known SM
// count, bandwidth and FP32 peak. Nothing is fitted to jobs like it.
#pragma once

#include "gpumem/utilisation/roofline_estimate.hpp"
#include "gpumem/utilisation/utilisation_estimator.hpp"

namespace gpumem::utilisation {

class Roofline final : public UtilisationEstimator {
 public:
  static constexpr std::string_view kName = "roofline";

  explicit Roofline(const HostCosts& host = {}) : host_(host) {}

  [[nodiscard]] std::string_view name() const override { return kName; }

 private:
  [[nodiscard]] core::Result<UtilisationEstimate> do_estimate(analysis::Analysis& analysis,
                                                              const device::GpuProfile& gpu) const override;

  HostCosts host_;
};

}  // namespace gpumem::utilisation
