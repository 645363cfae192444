// Input: a job and a GPU.
// Output: what the job will take on the GPU, by replaying its steps through a model of PyTorch's caching allocator; and
// the same, corrected by a trained model.
// Units: bytes.
#pragma once

#include <memory>
#include <vector>

#include "gpumem/analysis/analysis.hpp"
#include "gpumem/device/allocator_options.hpp"
#include "gpumem/estimate/estimator.hpp"
#include "gpumem/estimate/memory_estimate.hpp"
#include "gpumem/ml/features.hpp"
#include "gpumem/ml/trained_model.hpp"

namespace gpumem::estimate {

// Input: a job's Analysis, a GPU and the allocator's options.
// Output: the MemoryEstimate that follows from the allocator's run.
// Units: bytes.

/// For a pipeline job that asks for the rank that takes most: makes the analysis that rank's. Other analyses do not
/// change.
/// Errors: invalid_argument for a layout that is not modelled, or for all ranks; those of the run.
[[nodiscard]] core::Status choose_rank(analysis::Analysis& analysis, const device::GpuProfile& gpu,
                                       const device::AllocatorOptions& options);

/// `lower` and `upper` are shares of the reserved figure (evidence.hpp), to which the range of the context is added.
/// Errors: those of the run.
[[nodiscard]] core::Result<MemoryEstimate> allocator_estimate(analysis::Analysis& analysis,
                                                              const device::GpuProfile& gpu,
                                                              const device::AllocatorOptions& options);

// Input: a job and a GPU.
// Output: what the job will take on the GPU. The training steps are replayed through a model of PyTorch's caching
// allocator: the step plan's allocations and frees, the libraries' workspaces, and the context. Figures: allocated,
// reserved (each at its peak), device = context + reserved.
// Units: bytes.
//
// For `lower` and `upper` see evidence.hpp.

class Replay final : public Estimator {
 public:
  static constexpr std::string_view kName = "replay";

  /// With these allocator options (a capacity among them is ignored: the GPU has one).
  explicit Replay(device::AllocatorOptions options = {}) : options_(options) {}

  [[nodiscard]] std::string_view name() const override { return kName; }

 private:
  [[nodiscard]] core::Result<MemoryEstimate> do_estimate(analysis::Analysis& analysis,
                                                         const device::GpuProfile& gpu) const override;
  [[nodiscard]] bool decides_fit() const override { return true; }
  [[nodiscard]] bool takes_layouts() const override { return true; }

  device::AllocatorOptions options_;
};

// Input: a job and a GPU.
// Output: the replay's figures, corrected by a model that was trained on measured runs. For a job unlike its training
// runs (another GPU, no convolutions, a feature out of range) the figures are the replay's own.
//
// What a replay cannot know is which workspaces cuDNN takes. So the job is replayed under each of a list of ways
// (device::workspace_variants()), and a small network, trained on measured runs, says how likely each of these replays
// is right. The figure is the median of that mixture, the range its quantiles. Of a job that the replay finds room for,
// figure and lower bound are those of the part of the mixture that fits, and the upper bound is at most what the GPU
// has.

class CorrectedReplay final : public Estimator {
 public:
  static constexpr std::string_view kName = "replay-corrected";

  /// Errors: invalid_argument for a model that is no mixture.
  [[nodiscard]] static core::Result<std::unique_ptr<Estimator>> create(ml::TrainedModel corrector,
                                                                       device::AllocatorOptions options = {});

  [[nodiscard]] std::string_view name() const override { return kName; }

 private:
  CorrectedReplay(ml::TrainedModel corrector, ml::FeatureReader reader, device::AllocatorOptions options)
      : corrector_(std::move(corrector)), reader_(std::move(reader)), options_(options) {}

  [[nodiscard]] core::Result<MemoryEstimate> do_estimate(analysis::Analysis& analysis,
                                                         const device::GpuProfile& gpu) const override;
  [[nodiscard]] bool decides_fit() const override { return true; }
  [[nodiscard]] bool is_for(const ml::JobFacts& facts, const device::GpuProfile& gpu) const;

  ml::TrainedModel corrector_;
  ml::FeatureReader reader_;
  device::AllocatorOptions options_;
};

}  // namespace gpumem::estimate
