// Input: a forward pass and how it is trained.
// Output: StepWork, the kernels of one training step in launch order: what each multiplies, which bytes it moves, how
// many elements its grid covers. Counts are exact for the forward pass. The libraries launch more kernels (layout
// changes, splits of a sum), which are not counted exactly.
// Units: multiply-adds (two operations each), bytes, elements.
//
//   forward     one kernel for each recorded call that makes or overwrites a tensor; none for views
//   backward    for a matrix product or convolution one kernel for each operand that gets a gradient, each with
//               forward's multiply-adds (derivatives.yaml), and one for a bias; one kernel for fused attention, with
//               2.5 times forward's; for any other call one kernel; and one where gradients meet
//   optimizer   the multi-tensor form's passes over all parameters, or one kernel for each parameter and pass
#pragma once

#include <cstdint>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/model/training_job.hpp"
#include "gpumem/plan/forward_pass.hpp"
#include "gpumem/plan/step_plan.hpp"

namespace gpumem::plan {

struct Kernel {
  enum class Kind : std::uint8_t {
    product,      ///< a matrix product: cuBLAS; attention that is one kernel
    convolution,  ///< cuDNN
    elementwise,  ///< moves bytes: activations, norms, sums, copies
    optimizer,    ///< moves the parameters, gradients and states
  };

  double multiply_adds = 0.0;
  double bytes = 0.0;    ///< read and written, each tensor once
  double outputs = 0.0;  ///< elements that it makes
  double depth = 0.0;    ///< multiply-adds an output: what a grid can be split along
  core::DType dtype = core::DType::float32;
  Kind kind = Kind::elementwise;
  Phase phase = Phase::forward;
  bool attends = false;       ///< a product that is attention in one kernel
  bool backwards = false;     ///< and makes its gradients
  std::int32_t launches = 1;  ///< as many alike, which share the figures above
};

struct StepWork {
  std::vector<Kernel> kernels;
  double input_bytes = 0.0;  ///< of the batches that a step reads, labels included
  std::int64_t passes = 1;   ///< forward-backward passes, each with a batch of its own
};

/// One step on full batches. Errors: overflow, naming the layer whose tensor or product does not fit; those of finding
/// blocks to checkpoint.
[[nodiscard]] core::Result<StepWork> step_work(const model::TrainingJob& job, const ForwardPass& pass);

}  // namespace gpumem::plan
