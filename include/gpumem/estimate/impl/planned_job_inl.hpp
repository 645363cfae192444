#pragma once

#include "gpumem/estimate/planned_job.hpp"

#include <algorithm>
#include <string>

#include "gpumem/connect/connect.hpp"
#include "gpumem/core/deadline.hpp"
#include "gpumem/estimate/estimator.hpp"

namespace gpumem::estimate {

namespace planned_job_detail {

/// What stands for the context of a GPU whose profile has none: the A100's with lazy module loading.
inline constexpr std::int64_t kAssumedContext = std::int64_t{550} << 20;

/// Beyond this no GPU is, and sums of such sizes stay within 64 bits.
inline constexpr std::int64_t kLargestReserved = std::int64_t{1} << 60;

GPUMEM_INLINE core::Result<core::Bytes> context_of(const model::TrainingJob& job, const plan::Recording& recording,
                                                   const device::GpuProfile& gpu) {
  std::string names;
  for (const device::ContextFigure& context : gpu.contexts) {
    names += (names.empty() ? "" : ", ") + context.name;
    if (!job.software.empty() && job.software != context.name) continue;
    return core::Bytes(context.bytes + (recording.convolves ? context.convolution_bytes : 0) +
                       (recording.convolves && recording.normalises ? context.batch_norm_bytes : 0));
  }
  if (job.software.empty()) return core::Bytes(kAssumedContext);
  return core::Error{core::ErrorCode::invalid_argument,
                     gpu.name + " has no software stack " + core::quoted(job.software) +
                         (names.empty() ? "; its profile names none" : "; its profile names " + names),
                     {}};
}

}  // namespace planned_job_detail

GPUMEM_INLINE core::Result<PlannedJob> plan_job(const model::TrainingJob& job, const device::GpuProfile& gpu,
                                                const ops::Catalogue& ops) {
  const core::Status one = on_one_gpu(job, "the replay");
  if (!one) return one.error();
  const auto connected = connect::connect(job, ops);
  if (!connected) return connected.error();
  PlannedJob planned;
  planned.job = job;
  planned.job.graph = connected->shared_graph();
  planned.edges = connected->edges();
  core::Result<plan::Recording> recording = plan::record(*connected, planned.job, ops);
  if (!recording) return recording.error();
  planned.recording = *std::move(recording);
  if (core::Status done = replan_job(planned, job, gpu); !done) return done.error();
  return planned;
}

GPUMEM_INLINE core::Status replan_job(PlannedJob& planned, const model::TrainingJob& job,
                                      const device::GpuProfile& gpu) {
  std::shared_ptr<const model::ModelGraph> connected = std::move(planned.job.graph);
  planned.job = job;
  planned.job.graph = std::move(connected);
  if (core::Status done = set_context(planned, gpu); !done) return done;
  core::Result<plan::StepPlan> steps = plan::make_step_plan(planned.job, planned.recording, std::move(planned.steps));
  if (!steps) return steps.error();
  planned.steps = *std::move(steps);
  return core::Done{};
}

GPUMEM_INLINE core::Status set_context(PlannedJob& planned, const device::GpuProfile& gpu) {
  const core::Result<core::Bytes> context = planned_job_detail::context_of(planned.job, planned.recording, gpu);
  if (!context) return context.error();
  planned.context = *context;
  return core::Done{};
}

GPUMEM_INLINE bool recorded_alike(const model::TrainingJob& left, const model::TrainingJob& right) {
  // What connect() and record() do not look at; a field that is new to jobs counts until somebody knows better.
  model::TrainingJob same = left;
  same.batch_size = right.batch_size;
  same.optimizer = right.optimizer;
  same.foreach = right.foreach;
  same.fused = right.fused;
  same.gradient_accumulation = right.gradient_accumulation;
  same.activation_checkpointing = right.activation_checkpointing;
  same.zero_grad_to_none = right.zero_grad_to_none;
  same.zero_grad = right.zero_grad;
  same.software = right.software;
  same.samples_per_epoch = right.samples_per_epoch;
  same.summary_pass = right.summary_pass;
  same.validation_pass = right.validation_pass;
  return same == right;
}

GPUMEM_INLINE core::Result<JobReplay> replay_job(const PlannedJob& planned, const device::GpuProfile& gpu,
                                                 device::AllocatorOptions options, ReplayMemory* memory) {
  const ops::Tape& tape = planned.recording.tape;
  options.capacity = core::Bytes(std::max<std::int64_t>(gpu.capacity().count() - planned.context.count(), 0));
  PlanReplay run = replay_plan(planned.steps, tape, gpu, options, nullptr, memory);
  if (core::deadline_passed()) return core::deadline_error();
  if (!run.out_of_memory) return JobReplay{run, options, true};
  options.capacity = core::Bytes(planned_job_detail::kLargestReserved);
  run = replay_plan(planned.steps, tape, gpu, options, nullptr, memory);  // how much it would have taken
  if (core::deadline_passed()) return core::deadline_error();
  if (!run.out_of_memory) return JobReplay{run, options, false};
  return core::Error{core::ErrorCode::overflow,
                     "the job's memory at batch " + std::to_string(planned.job.batch_size) + " is beyond any machine's",
                     {}};
}

}  // namespace gpumem::estimate
