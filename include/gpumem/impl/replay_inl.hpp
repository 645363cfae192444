#pragma once

#include <algorithm>
#include <string>

#include "gpumem/connect/connect.hpp"
#include "gpumem/estimate/replay.hpp"
#include "gpumem/plan/record.hpp"

namespace gpumem::estimate {

namespace replay_detail {

/// What stands for the context of a GPU whose profile has none: the A100's with lazy module loading.
inline constexpr std::int64_t kAssumedContext = std::int64_t{550} << 20;

GPUMEM_INLINE core::Result<std::int64_t> context_bytes(const model::TrainingJob& job, const plan::Recording& recording,
                                                       const device::GpuProfile& gpu) {
  std::string names;
  for (const device::ContextFigure& context : gpu.contexts) {
    names += (names.empty() ? "" : ", ") + context.name;
    if (!job.software.empty() && job.software != context.name) continue;
    return context.bytes + (recording.convolves ? context.convolution_bytes : 0) +
           (recording.convolves && recording.normalises ? context.batch_norm_bytes : 0);
  }
  if (job.software.empty()) return kAssumedContext;
  return core::Error{core::ErrorCode::invalid_argument,
                     gpu.name + " has no software stack " + core::quoted(job.software) +
                         (names.empty() ? "; its profile names none" : "; its profile names " + names),
                     {}};
}

GPUMEM_INLINE Breakdown breakdown_of(const PlanReplay& replay, std::int64_t context) {
  const auto of = [&](plan::Category category) { return replay.at_peak[static_cast<std::size_t>(category)]; };
  using plan::Category;
  Breakdown parts;
  parts.context = core::Bytes(context);
  parts.parameters = core::Bytes(of(Category::parameter) + of(Category::buffer));
  parts.gradients = core::Bytes(of(Category::gradient));
  parts.optimizer = core::Bytes(of(Category::optimizer));
  parts.activations = core::Bytes(of(Category::activation) + of(Category::activation_gradient) + of(Category::input) +
                                  of(Category::temporary));
  parts.workspace = core::Bytes(replay.at_peak[kWorkspaceCategory]);
  std::int64_t allocated = 0;
  for (const std::int64_t bytes : replay.at_peak) allocated += bytes;
  parts.fragmentation = core::Bytes(replay.peak_reserved - allocated);
  return parts;
}

/// Beyond this no GPU is, and sums of such sizes stay within 64 bits.
inline constexpr std::int64_t kLargestReserved = std::int64_t{1} << 60;

}  // namespace replay_detail

GPUMEM_INLINE core::Result<MemoryEstimate> Replay::do_estimate(const model::TrainingJob& job,
                                                               const device::GpuProfile& gpu) const {
  const auto connected = connect::connect(job, ops_);
  if (!connected) return connected.error();
  model::TrainingJob wired = job;
  wired.graph = connected->graph;
  const core::Result<plan::Recording> recording = plan::record(wired, ops_);
  if (!recording) return recording.error();
  const core::Result<std::int64_t> context = replay_detail::context_bytes(job, *recording, gpu);
  if (!context) return context.error();
  const core::Result<plan::StepPlan> steps = plan::make_step_plan(wired, *recording);
  if (!steps) return steps.error();

  device::AllocatorOptions options = options_;
  options.capacity = core::Bytes(std::max<std::int64_t>(gpu.capacity().count() - *context, 0));
  PlanReplay replay = replay_plan(*steps, recording->tape, gpu, options);
  const bool fits = !replay.out_of_memory;
  if (!fits) {  // how much it would have taken
    options.capacity = core::Bytes(replay_detail::kLargestReserved);
    replay = replay_plan(*steps, recording->tape, gpu, options);
    if (replay.out_of_memory) {
      return core::Error{core::ErrorCode::overflow,
                         "the job's memory at batch " + std::to_string(job.batch_size) + " is beyond any machine's",
                         {}};
    }
  }

  MemoryEstimate estimate;
  estimate.breakdown = replay_detail::breakdown_of(replay, *context);
  estimate.expected = core::Bytes(*context + replay.peak_reserved);
  estimate.lower = estimate.expected;
  estimate.upper = estimate.expected;
  estimate.allocated = core::Bytes(replay.peak_allocated);
  estimate.reserved = core::Bytes(replay.peak_reserved);
  estimate.device = estimate.expected;
  estimate.fits = fits;
  estimate.coverage.edges = connected->edges;
  return estimate;
}

}  // namespace gpumem::estimate
