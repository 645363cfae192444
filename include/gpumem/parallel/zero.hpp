// Input: a job under DeepSpeed's ZeRO-1, ZeRO-2 or ZeRO-3.
// Output: its Sharing: parameters are whole; masters and states, always float32, are split over the ranks. Gradients
// stay whole until the step (1), or are reduced a bucket at a time, and each rank then keeps its share (2). Updated
// parameters are gathered.
// Units: ranks, elements.
//
// Source: DeepSpeed 0.15, runtime/zero/stage_1_and_2.py and runtime/zero/config.py: reduce_bucket_size,
// contiguous_gradients, no overlap_comm (whose buffer would be double). The shares of the gradients become float32 in
// the step (get_flat_partition, .to(fp32)).
#pragma once

#include "gpumem/parallel/layout.hpp"
#include "gpumem/parallel/sharing.hpp"

namespace gpumem::parallel {

[[nodiscard]] inline Sharing zero_1(const model::TrainingJob& job) {
  Sharing sharing;
  sharing.state_ranks = sharing_ranks(job.layout);
  sharing.masters = true;
  sharing.gradients_copied = true;
  return sharing;
}

[[nodiscard]] inline Sharing zero_2(const model::TrainingJob& job) {
  Sharing sharing = zero_1(job);
  sharing.reduction = Reduction::partitioned;
  sharing.gradient_ranks = sharing.state_ranks;
  sharing.bucket_elements = job.layout.zero_reduce_bucket;
  return sharing;
}

/// Parameters are cut as well, and gathered layer by layer; small ones stay whole. The bucket and the shares of
/// gradients are made with the optimizer and stay.
///
/// Source: DeepSpeed 0.15, runtime/zero/stage3.py (__ipg_bucket_flat_buffer, grad_partitions_flat_buffer),
/// partitioned_param_coordinator.py (release_sub_module, __params_to_release: max_reuse_distance) and config.py:
/// stage3_param_persistence_threshold, stage3_prefetch_bucket_size, stage3_max_reuse_distance.
[[nodiscard]] inline Sharing zero_3(const model::TrainingJob& job) {
  Sharing sharing = zero_2(job);
  sharing.gather = Gather::in_place;
  sharing.parameter_ranks = sharing.state_ranks;
  sharing.layer_by_layer = true;
  sharing.persistent_elements = job.layout.zero_persistence_threshold;
  sharing.reuse_elements = job.layout.zero_reuse_distance;
  sharing.prefetch_elements = job.layout.zero_prefetch_bucket;
  sharing.buffers_stand = true;
  return sharing;
}

}  // namespace gpumem::parallel
