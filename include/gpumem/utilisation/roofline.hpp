// Enters: a training job and a GPU's profile. Leaves: how busy the job keeps that GPU, by the time of a step's kernels
// (step_time.hpp), on any GPU whose SM count, bandwidth and FP32 peak are known. Nothing of the job's own is fitted.
//
// `expected` is for the host that the costs describe; the range is what a host 2.5 times slower, and one 2.5 times
// faster, would make of the same kernels. nvidia-smi's GPU-Util is GRACT read more coarsely, so its range is wider by
// what measured runs show. Coverage: shares of GPUMemNet's runs in that range (gpumem evaluate --utilisation).
#pragma once

#include "gpumem/ops/catalogue.hpp"
#include "gpumem/utilisation/step_time.hpp"
#include "gpumem/utilisation/utilisation_estimator.hpp"

namespace gpumem::utilisation {

class Roofline final : public UtilisationEstimator {
 public:
  static constexpr std::string_view kName = "roofline";

  explicit Roofline(const HostCosts& host = {}, const ops::Catalogue& ops = ops::catalogue())
      : host_(host), ops_(ops) {}

  [[nodiscard]] std::string_view name() const override { return kName; }

 private:
  [[nodiscard]] core::Result<UtilisationEstimate> do_estimate(const model::TrainingJob& job,
                                                              const device::GpuProfile& gpu) const override;

  HostCosts host_;
  const ops::Catalogue& ops_;
};

/// The estimate of a step whose kernels are known.
[[nodiscard]] UtilisationEstimate roofline_estimate(const plan::StepWork& work, const model::TrainingJob& job,
                                                    const GpuPeaks& gpu, const HostCosts& host = {});

}  // namespace gpumem::utilisation

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/impl/roofline_inl.hpp"
#endif
