// Input: a job and a GPU.
// Output: the replay's figures, corrected by a model that was trained on measured runs. For a job unlike its training
// runs (another GPU, no convolutions, a feature out of range) the figures are the replay's own.
//
// What a replay cannot know is which workspaces cuDNN takes. So the job is replayed under each of a list of ways
// (device::workspace_variants()), and a small network, trained on measured runs, says how likely each of these replays
// is right. The figure is the median of that mixture, the range its quantiles. Of a job that the replay finds room for,
// figure and lower bound are those of the part of the mixture that fits, and the upper bound is at most what the GPU
// has.
#pragma once

#include <memory>
#include <vector>

#include "gpumem/device/allocator_options.hpp"
#include "gpumem/estimate/estimator.hpp"
#include "gpumem/ml/features.hpp"
#include "gpumem/ml/trained_model.hpp"

namespace gpumem::estimate {

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
