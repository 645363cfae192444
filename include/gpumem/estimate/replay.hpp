// Enters: a job and a GPU. Leaves: what the job will take on it, by replaying its training steps through a model of
// PyTorch's caching allocator: the step plan's allocations and frees, the libraries' workspaces, and the context.
// Figures: allocated, reserved (each at its peak), device = context + reserved. Units: bytes.
//
// For `lower` and `upper` see replay_estimate.hpp.
#pragma once

#include "gpumem/device/allocator_options.hpp"
#include "gpumem/estimate/estimator.hpp"
#include "gpumem/estimate/plan_replay.hpp"
#include "gpumem/estimate/prepared_jobs.hpp"
#include "gpumem/ops/catalogue.hpp"

namespace gpumem::estimate {

class Replay final : public Estimator {
 public:
  static constexpr std::string_view kName = "replay";

  /// With these ops, which must outlive the estimator, and these allocator options (a capacity among them is
  /// ignored: the GPU has one). `prepared` makes many jobs of one summary cheaper; it must outlive the estimator.
  explicit Replay(const ops::Catalogue& ops = ops::catalogue(), device::AllocatorOptions options = {},
                  PreparedJobs* prepared = nullptr)
      : ops_(ops), options_(options), prepared_(prepared) {}

  [[nodiscard]] std::string_view name() const override { return kName; }

 private:
  [[nodiscard]] core::Result<MemoryEstimate> do_estimate(const model::TrainingJob& job,
                                                         const device::GpuProfile& gpu) const override;
  [[nodiscard]] bool decides_fit() const override { return true; }
  [[nodiscard]] core::Result<MemoryEstimate> replay_of(const PlannedJob& planned, const device::GpuProfile& gpu,
                                                       ReplayMemory* memory) const;

  const ops::Catalogue& ops_;
  device::AllocatorOptions options_;
  PreparedJobs* prepared_;
};

}  // namespace gpumem::estimate

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/estimate/impl/replay_inl.hpp"
#endif
