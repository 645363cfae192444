#pragma once

#include "gpumem/estimate/replay.hpp"

#include "gpumem/estimate/replay_estimate.hpp"

namespace gpumem::estimate {

GPUMEM_INLINE core::Result<MemoryEstimate> Replay::do_estimate(const model::TrainingJob& job,
                                                               const device::GpuProfile& gpu) const {
  const core::Result<PlannedJob> planned = plan_job(job, gpu, ops_);
  if (!planned) return planned.error();
  const core::Result<JobReplay> replay = replay_job(*planned, gpu, options_);
  if (!replay) return replay.error();
  return replay_estimate(*planned, *replay, gpu);
}

}  // namespace gpumem::estimate
