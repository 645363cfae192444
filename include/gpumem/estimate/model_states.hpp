// Input: a job.
// Output: what its model states take on each GPU: weights, gradients and the optimizer's state. This is a lower bound:
// it leaves out activations, workspaces, buffers, the allocator's rounding and the CUDA context.
// Units: bytes.
//
//   M = P w + T w + S w
//
//   P  parameters, elements; each tied one once     T  those of them that are trained
//   S  elements that the optimizer keeps: T times the states of its row in model/optimizers.hpp (sgd 0, adam 2); of a
//      matrix adafactor keeps rows + columns, in float32
//   w  bytes an element: 2 in pure bf16, else 4. Under autocast (amp-fp16, amp-bf16) the parameters are themselves the
//      float32 master weights, and gradients and state are float32 as they are; its 16-bit copies are activations.
//
// Source: torch.optim (PyTorch 2.x) and lion-pytorch, tensor by tensor as plan/step_plan.hpp takes them; left out are
// the counters of 4 bytes that the fused optimizers keep a tensor. For Adam in float32 that is 16 bytes a parameter;
// Accelerate's "estimate-memory" says four times the weights and buffers.
//
// Copies of the model that train in parallel hold all of it each: Layout::data_parallel changes nothing.
#pragma once

#include "gpumem/estimate/estimator.hpp"

namespace gpumem::estimate {

class ModelStates final : public Estimator {
 public:
  static constexpr std::string_view kName = "model-states";

  [[nodiscard]] std::string_view name() const override { return kName; }

 private:
  [[nodiscard]] core::Result<MemoryEstimate> do_estimate(analysis::Analysis& analysis,
                                                         const device::GpuProfile& gpu) const override;
  [[nodiscard]] bool takes_data_parallel() const override { return true; }
};

}  // namespace gpumem::estimate
