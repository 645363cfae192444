// Enters: a job under DeepSpeed's ZeRO-1 or ZeRO-2. Leaves: its Sharing: parameters are whole; masters and states,
// always float32, are cut over the ranks. Gradients stay whole until the step (1), or are reduced a bucket at a time,
// after which each rank keeps its share (2). Updated parameters are gathered. Units: ranks, elements.
//
// Source: DeepSpeed 0.15, runtime/zero/stage_1_and_2.py and the defaults of runtime/zero/config.py: reduce_bucket_size
// and allgather_bucket_size of 5e8 elements, contiguous_gradients, no overlap_comm (whose buffer would be double). The
// shares of the gradients become float32 in the step (get_flat_partition, .to(fp32)).
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
  constexpr std::int64_t kBucket = 500'000'000;
  Sharing sharing = zero_1(job);
  sharing.reduction = Reduction::partitioned;
  sharing.gradient_ranks = sharing.state_ranks;
  sharing.bucket_elements = kBucket;
  return sharing;
}

}  // namespace gpumem::parallel
