// Input: a job under fully_shard() (FSDP2), over all ranks or in groups (HSDP).
// Output: its Sharing: each parameter is split in its first dimension. A unit's parameters are gathered into a buffer
// in the compute type and copied out of it; in backward the next unit's while the last one's runs. Units except the
// root are freed after forward. A unit's gradients are reduce-scattered, and each rank keeps its share in the shards'
// type.
// Units: ranks.
//
// Source: torch/distributed/fsdp/_fully_shard of PyTorch 2.6: _fsdp_param_group.py, _fsdp_collectives.py
// (foreach_all_gather, foreach_reduce), _fsdp_state.py. Mixed precision is MixedPrecisionPolicy(param_dtype=bfloat16,
// reduce_dtype=float32), as torchtitan has it: then the shards are float32, and the optimizer needs no other masters.
#pragma once

#include "gpumem/parallel/layout.hpp"
#include "gpumem/parallel/sharing.hpp"

namespace gpumem::parallel {

/// Parameters are cut over `ranks`.
[[nodiscard]] inline Sharing fsdp2(const model::TrainingJob& job, std::int64_t ranks) {
  Sharing sharing;
  sharing.gather = Gather::copied_out;
  sharing.parameter_ranks = ranks;
  sharing.float32_shards = model::has_masters(job.precision);
  sharing.reduction = Reduction::scattered;
  sharing.gradient_ranks = ranks;
  if (sharing.float32_shards) sharing.reduced_in = core::DType::float32;
  sharing.state_ranks = ranks;
  sharing.on_host = job.offload == model::Offload::parameters;
  return sharing;
}

[[nodiscard]] inline Sharing fsdp2(const model::TrainingJob& job) { return fsdp2(job, sharing_ranks(job.layout)); }

/// The same in groups of N ranks, which hold the same and sum their gradients in place.
[[nodiscard]] inline Sharing hsdp(const model::TrainingJob& job) { return fsdp2(job, job.layout.sharding.count); }

}  // namespace gpumem::parallel
