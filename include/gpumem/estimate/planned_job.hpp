// Enters: a training job and a GPU. Leaves: PlannedJob, all that a replay needs: the job with its edges, what it
// records, the plan of its steps, and what the context takes; and its replay within the GPU's memory. Units: bytes.
#pragma once

#include <string>

#include "gpumem/core/result.hpp"
#include "gpumem/device/allocator_options.hpp"
#include "gpumem/device/gpu_profile.hpp"
#include "gpumem/estimate/plan_replay.hpp"
#include "gpumem/model/training_job.hpp"
#include "gpumem/ops/catalogue.hpp"
#include "gpumem/plan/record.hpp"
#include "gpumem/plan/step_plan.hpp"

namespace gpumem::estimate {

struct PlannedJob {
  model::TrainingJob job;  ///< its graph has an edge for everything that a layer reads
  plan::Recording recording;
  plan::StepPlan steps;
  core::Bytes context;
  std::string edges;  ///< how the graph came by its edges, as in Coverage
};

/// Errors: those of connecting, recording and planning; invalid_argument for a software stack that the GPU's profile
/// does not name, or a job on several GPUs; missing_information for a job whose way of training no plan describes.
[[nodiscard]] core::Result<PlannedJob> plan_job(const model::TrainingJob& job, const device::GpuProfile& gpu,
                                                const ops::Catalogue& ops);

/// Makes of a planned job what plan_job() gives for another one, without connecting and recording anew: for a job of
/// the same summary that differs in nothing which those look at (see recorded_alike). After an error it is of no use.
[[nodiscard]] core::Status replan_job(PlannedJob& planned, const model::TrainingJob& job,
                                      const device::GpuProfile& gpu);

/// Moves a planned job to another GPU, where the context is another. Errors: as of plan_job(), for the software stack.
[[nodiscard]] core::Status set_context(PlannedJob& planned, const device::GpuProfile& gpu);

/// Whether two jobs of one summary have the same edges and the same recording: all but the batch size, the optimizer,
/// and how an epoch goes.
[[nodiscard]] bool recorded_alike(const model::TrainingJob& left, const model::TrainingJob& right);

struct JobReplay {
  PlanReplay run;                    ///< of a job that does not fit: what it would take on a GPU that is large enough
  device::AllocatorOptions options;  ///< with the capacity that `run` had
  bool fits = false;
};

/// The replay beside the context (a capacity among the options is ignored: the GPU has one). Errors: overflow for a
/// job beyond any machine.
[[nodiscard]] core::Result<JobReplay> replay_job(const PlannedJob& planned, const device::GpuProfile& gpu,
                                                 device::AllocatorOptions options = {}, ReplayMemory* memory = nullptr);

}  // namespace gpumem::estimate

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/estimate/impl/planned_job_inl.hpp"
#endif
