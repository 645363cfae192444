#pragma once

#include "gpumem/estimate/replay.hpp"

#include "gpumem/estimate/replay_estimate.hpp"

namespace gpumem::estimate {

GPUMEM_INLINE core::Result<MemoryEstimate> Replay::do_estimate(const model::TrainingJob& job,
                                                               const device::GpuProfile& gpu) const {
  if (prepared_ == nullptr) {
    const core::Result<PlannedJob> planned = plan_job(job, gpu, ops_);
    if (!planned) return planned.error();
    return replay_of(*planned, gpu, nullptr);
  }
  core::Result<std::unique_ptr<PreparedJob>> prepared = prepared_->take(job, gpu, ops_);
  if (!prepared) return prepared.error();
  core::Result<MemoryEstimate> estimate = replay_of((*prepared)->planned, gpu, &(*prepared)->memory);
  prepared_->put_back(*std::move(prepared));
  return estimate;
}

GPUMEM_INLINE core::Result<MemoryEstimate> Replay::replay_of(const PlannedJob& planned, const device::GpuProfile& gpu,
                                                             ReplayMemory* memory) const {
  const core::Result<JobReplay> replay = replay_job(planned, gpu, options_, memory);
  if (!replay) return replay.error();
  return replay_estimate(planned, *replay, gpu);
}

}  // namespace gpumem::estimate
