#pragma once

#include "gpumem/estimate/replay_estimate.hpp"

#include <algorithm>

namespace gpumem::estimate {

namespace replay_estimate_detail {

GPUMEM_INLINE Breakdown breakdown_of(const PlanReplay& replay, core::Bytes context) {
  const auto of = [&](plan::Category category) { return replay.at_peak[static_cast<std::size_t>(category)]; };
  using plan::Category;
  Breakdown parts;
  parts.context = context;
  parts.parameters = core::Bytes(of(Category::parameter) + of(Category::buffer));
  parts.gradients = core::Bytes(of(Category::gradient));
  parts.optimizer = core::Bytes(of(Category::optimizer));
  parts.activations = core::Bytes(of(Category::activation) + of(Category::activation_gradient) + of(Category::input) +
                                  of(Category::temporary));
  parts.workspace = core::Bytes(replay.at_peak[kWorkspaceCategory]);
  parts.fragmentation = core::Bytes(replay.peak_reserved - replay.peak_allocated);
  return parts;
}

GPUMEM_INLINE PeakLayer peak_layer_of(const PlannedJob& planned, std::size_t event) {
  const plan::PhaseMark& mark = planned.steps.phase_of(event);
  PeakLayer peak;
  peak.phase = model::name_of(plan::kPhaseNames, mark.phase);
  peak.step = mark.step;
  const std::uint32_t layer = planned.steps.events[event].layer;
  if (layer == plan::kNoLayer) return peak;
  const model::ModelGraph& graph = *planned.job.graph;
  peak.path = graph.path(graph.layers()[layer]);
  peak.class_name = graph.class_name(graph.layers()[layer]);
  return peak;
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

GPUMEM_INLINE core::Bytes scaled(core::Bytes context, std::int64_t reserved, double share) {
  return core::Bytes(context.count() + static_cast<std::int64_t>(static_cast<double>(reserved) * share));
}

}  // namespace replay_estimate_detail

GPUMEM_INLINE MemoryEstimate replay_estimate(const PlannedJob& planned, const JobReplay& replay,
                                             const device::GpuProfile& gpu) {
  const PlanReplay& run = replay.run;

  MemoryEstimate estimate;
  estimate.breakdown = replay_estimate_detail::breakdown_of(run, planned.context);
  estimate.expected = core::Bytes(planned.context.count() + run.peak_reserved);
  const replay_estimate_detail::Range range = planned.recording.convolves
                                                  ? replay_estimate_detail::kWithConvolutions
                                                  : replay_estimate_detail::kWithoutConvolutions;
  estimate.lower = replay_estimate_detail::scaled(planned.context, run.peak_reserved, range.lower);
  estimate.upper = replay_estimate_detail::scaled(planned.context, run.peak_reserved, range.upper);
  // A job that fits takes no more than there is: the allocator releases its cache first.
  if (replay.fits) estimate.upper = std::max(estimate.expected, std::min(estimate.upper, gpu.capacity()));
  estimate.upper_coverage = replay_estimate_detail::kCoverage;
  estimate.allocated = core::Bytes(run.peak_allocated);
  estimate.reserved = core::Bytes(run.peak_reserved);
  estimate.device = estimate.expected;
  estimate.fits = replay.fits;
  estimate.retries = run.retries;
  estimate.coverage.edges = planned.edges;
  estimate.peak_layer = replay_estimate_detail::peak_layer_of(planned, run.peak_event);
  estimate.coverage.layers_unknown = planned.job.graph->unknown_layers() + planned.recording.skipped_layers;
  return estimate;
}

}  // namespace gpumem::estimate
