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

/// How far the reserved memory of measured runs lay from the replay's, as shares of it.
struct Range {
  double lower = 1.0;
  double upper = 1.0;
};

/// Calibrated on the odd lines of GPUMemNet's published runs (A100-40GB, PyTorch 2.x, nvidia-smi), so that 95 % of them
/// lie below `upper` and 97.5 % above `lower`; of the even lines, which had no part in it, see the README. With
/// convolutions cuDNN's choice of kernels decides; without them the rounding of the allocator is all there is, and the
/// margin is for what a summary does not tell of a program.
inline constexpr double kCoverage = 0.95;
inline constexpr Range kWithConvolutions = {0.83, 1.235};
inline constexpr Range kWithoutConvolutions = {0.97, 1.05};

GPUMEM_INLINE core::Bytes scaled(std::int64_t context, std::int64_t reserved, double share) {
  return core::Bytes(context + static_cast<std::int64_t>(static_cast<double>(reserved) * share));
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
  const replay_detail::Range range =
      recording->convolves ? replay_detail::kWithConvolutions : replay_detail::kWithoutConvolutions;
  estimate.lower = replay_detail::scaled(*context, replay.peak_reserved, range.lower);
  estimate.upper = replay_detail::scaled(*context, replay.peak_reserved, range.upper);
  // A job that fits takes no more than there is: the allocator releases its cache first.
  if (fits) estimate.upper = std::max(estimate.expected, std::min(estimate.upper, gpu.capacity()));
  estimate.upper_coverage = replay_detail::kCoverage;
  estimate.allocated = core::Bytes(replay.peak_allocated);
  estimate.reserved = core::Bytes(replay.peak_reserved);
  estimate.device = estimate.expected;
  estimate.fits = fits;
  estimate.coverage.edges = connected->edges;
  estimate.coverage.layers_unknown = job.graph->unknown_layers() + recording->skipped_layers;
  return estimate;
}

}  // namespace gpumem::estimate
