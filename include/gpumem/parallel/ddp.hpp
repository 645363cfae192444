// Input: a job under DistributedDataParallel.
// Output: its Sharing: every rank holds everything, and gradients are copied into buckets, in the order in which
// backward makes them.
// Units: bytes.
//
// Source: torch/nn/parallel/distributed.py and torch/csrc/distributed/c10d/reducer.cpp of PyTorch 2.6: buckets of 25
// MiB (bucket_cap_mb), a first one of 1 MiB (kDefaultFirstBucketBytes), allocated when the model is wrapped;
// gradient_as_bucket_view=False, so that gradients are held in addition to the buckets.
#pragma once

#include "gpumem/parallel/sharing.hpp"

namespace gpumem::parallel {

[[nodiscard]] inline Sharing ddp(const model::TrainingJob& job) {
  constexpr std::int64_t kMiB = std::int64_t{1} << 20;
  Sharing sharing;
  sharing.reduction = Reduction::bucketed;
  sharing.bucket_bytes = 25 * kMiB;
  sharing.first_bucket_bytes = kMiB;
  sharing.masters = model::has_masters(job.precision);
  sharing.gradients_copied = sharing.masters;
  return sharing;
}

}  // namespace gpumem::parallel
