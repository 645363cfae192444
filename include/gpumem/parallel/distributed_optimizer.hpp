// Input: a job under Megatron's distributed optimizer.
// Output: its Sharing: parameters are whole, in one buffer. Every gradient is added to a float32 main gradient, also in
// one buffer, which is never freed. Masters and states are split over the data and context parallel ranks.
// Units: ranks.
//
// Source: Megatron-LM core r0.12, core/parallel_state.py (intra_partial_data_parallel_group) for several instances.
// Megatron-LM core 0.9: core/distributed/param_and_grad_buffer.py (grad_reduce_in_fp32), core/optimizer/
// distrib_optimizer.py: the shard of the main gradient is a view of the buffer, so a step copies none. The weights'
// products add to main gradients themselves (gradient_accumulation_fusion), so a gradient in the lower type is not
// kept.
#pragma once

#include "gpumem/parallel/layout.hpp"
#include "gpumem/parallel/sharing.hpp"

namespace gpumem::parallel {

[[nodiscard]] inline Sharing distributed_optimizer(const model::TrainingJob& job) {
  Sharing sharing;
  sharing.reduction = Reduction::main_buffer;
  sharing.reduced_in = core::DType::float32;
  sharing.state_ranks = ranks_of_instance(job, sharing_ranks(job.layout));
  sharing.masters = model::has_masters(job.precision);
  return sharing;
}

/// Megatron's without it: the same buffer of gradients, and masters and states whole on each rank.
[[nodiscard]] inline Sharing main_gradients(const model::TrainingJob& job) {
  Sharing sharing = distributed_optimizer(job);
  sharing.state_ranks = 1;
  return sharing;
}

}  // namespace gpumem::parallel
