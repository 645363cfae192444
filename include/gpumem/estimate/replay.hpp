// Input: a job and a GPU.
// Output: what the job will take on the GPU. The training steps are replayed through a model of PyTorch's caching
// allocator: the step plan's allocations and frees, the libraries' workspaces, and the context. Figures: allocated,
// reserved (each at its peak), device = context + reserved.
// Units: bytes.
//
// For `lower` and `upper` see allocator_estimate.hpp.
#pragma once

#include "gpumem/device/allocator_options.hpp"
#include "gpumem/estimate/estimator.hpp"

namespace gpumem::estimate {

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

}  // namespace gpumem::estimate
