// Input: a job under FullyShardedDataParallel (FSDP1, FULL_SHARD).
// Output: its Sharing: a unit's parameters are one flat parameter, split over the ranks. It is gathered in place, in
// backward one unit ahead (BACKWARD_PRE), and freed after forward, except the root's. The gradients of its views become
// one tensor, which is reduce-scattered.
// Units: ranks.
//
// Source: torch/distributed/fsdp/_flat_param.py and _runtime_utils.py of PyTorch 2.6. The share of the gradient stays
// until the next forward (_reset_flat_param_grad_info_if_needed). accelerate 1.0, accelerator.py: with mixed precision
// it makes the trained flat parameters float32, and computes and reduces in the lower type (MixedPrecision of
// param_dtype and reduce_dtype).
//
// A frozen flat parameter is given back in backward by a hook on the unit's inputs, which is held until backward has
// ended (_register_post_backward_reshard_only_hook in _runtime_utils.py). HuggingFace's Trainer checkpoints by calling
// the wrapped block in reentrant torch.utils.checkpoint, whose second run makes leaves of these inputs: each keeps its
// memory and its gradient as long. Where the checkpoint is within the wrapped block (apply_activation_checkpointing),
// none does. PEFT's policy (fsdp_auto_wrap_policy) wraps adapters by themselves, which leaves the block frozen. Nor is
// a unit gathered ahead under reentrant checkpointing: only a forward with gradients says that a unit will be needed
// (_needs_pre_backward_unshard), and the first run has none.
//
// On one rank it shards nothing (NO_SHARD).
#pragma once

#include "gpumem/parallel/layout.hpp"
#include "gpumem/parallel/sharing.hpp"

namespace gpumem::parallel {

[[nodiscard]] inline Sharing fsdp1(const model::TrainingJob& job) {
  Sharing sharing;
  if (sharing_ranks(job.layout) == 1) {
    sharing.masters = model::has_masters(job.precision);
    sharing.gradients_copied = sharing.masters;
    return sharing;
  }
  sharing.gather = Gather::in_place;
  sharing.parameter_ranks = sharing_ranks(job.layout);
  sharing.float32_shards = model::has_masters(job.precision);
  sharing.reduction = Reduction::scattered;
  sharing.gradient_ranks = sharing.parameter_ranks;
  sharing.cat_gradients = true;
  sharing.gradients_until_forward = true;
  const bool reentrant = job.activation_checkpointing && job.loop == model::Loop::hf_trainer;
  sharing.keeps_frozen_inputs = reentrant;
  sharing.adapters_apart = job.lora.has_value();
  sharing.prefetches = !reentrant;
  sharing.state_ranks = sharing.parameter_ranks;
  sharing.on_host = job.offload == model::Offload::parameters;
  return sharing;
}

}  // namespace gpumem::parallel
