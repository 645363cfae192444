// Input: a job.
// Output: the most that its tensors take at once, as PyTorch's FakeTensorMode counts it on a machine without a GPU:
// live storages to the byte, without libraries' workspaces, the allocator's rounding or a context.
// Units: bytes.
// Source: PyTorch 1.13.1, step for step as bench/references/fake_tensor.py measures it.
//
// It says what the tensors need and not what a GPU gives for them: CPU kernels keep more for dropout, less for
// attention. Its worth is that it can be checked anywhere to the byte, against the peaks in tests/golden/fake_tensor.
//
// For a recording it is the peak under the PyTorch that recorded the step, with a GPU's kernels: fused attention, masks
// of bytes. That is how to have the figure of PyTorch 2.x's attention.
#pragma once

#include "gpumem/estimate/estimator.hpp"

namespace gpumem::estimate {

class FakeTensor final : public Estimator {
 public:
  static constexpr std::string_view kName = "fake-tensor";
  static constexpr std::string_view kOptimizerName = "fake-tensor-optimizer";

  /// Which step's peak is the estimate.
  enum class Step : std::uint8_t {
    forward_backward,  ///< the first step, of a job without an optimizer
    with_optimizer,    ///< the second step: the optimizer's state exists
  };

  explicit FakeTensor(Step step = Step::forward_backward) : step_(step) {}

  [[nodiscard]] std::string_view name() const override {
    return step_ == Step::with_optimizer ? kOptimizerName : kName;
  }

 private:
  [[nodiscard]] core::Result<MemoryEstimate> do_estimate(analysis::Analysis& analysis,
                                                         const device::GpuProfile& gpu) const override;

  Step step_;
};

}  // namespace gpumem::estimate
