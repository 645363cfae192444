#pragma once

#include "gpumem/estimate/allocator_estimate.hpp"

#include <algorithm>

namespace gpumem::estimate {

namespace allocator_estimate_detail {

GPUMEM_INLINE Breakdown breakdown_of(const analysis::AllocatorRun& run, core::Bytes context) {
  const auto of = [&](plan::Category category) { return run.at_peak[static_cast<std::size_t>(category)]; };
  using plan::Category;
  Breakdown parts;
  parts.context = context;
  parts.parameters = core::Bytes(of(Category::parameter) + of(Category::buffer));
  parts.gradients = core::Bytes(of(Category::gradient));
  parts.optimizer = core::Bytes(of(Category::optimizer));
  parts.activations = core::Bytes(of(Category::activation) + of(Category::activation_gradient) + of(Category::input) +
                                  of(Category::temporary));
  parts.workspace = core::Bytes(run.at_peak[analysis::kWorkspaceCategory]);
  parts.fragmentation = core::Bytes(run.peak_reserved - run.peak_allocated);
  return parts;
}

GPUMEM_INLINE PeakLayer peak_layer_of(const plan::StepPlan& steps, const model::ModelGraph& graph, std::size_t event) {
  const plan::PhaseMark& mark = steps.phase_of(event);
  PeakLayer peak;
  peak.phase = model::name_of(plan::kPhaseNames, mark.phase);
  peak.step = mark.step;
  const std::uint32_t layer = steps.events[event].layer;
  if (layer == plan::kNoLayer) return peak;
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

}  // namespace allocator_estimate_detail

GPUMEM_INLINE core::Result<MemoryEstimate> allocator_estimate(analysis::Analysis& analysis,
                                                              const device::GpuProfile& gpu,
                                                              const device::AllocatorOptions& options) {
  namespace detail = allocator_estimate_detail;
  const core::Result<analysis::JobRun> of_job = analysis.run(gpu, options);
  if (!of_job) return of_job.error();
  const auto source = analysis.source();
  if (!source) return source.error();
  const auto steps = analysis.steps();
  if (!steps) return steps.error();
  const analysis::AllocatorRun& run = of_job->run;
  const core::Bytes context = of_job->context;

  MemoryEstimate estimate;
  estimate.breakdown = detail::breakdown_of(run, context);
  estimate.expected = core::Bytes(context.count() + run.peak_reserved);
  const detail::Range range = source->convolves ? detail::kWithConvolutions : detail::kWithoutConvolutions;
  estimate.lower = detail::scaled(context, run.peak_reserved, range.lower);
  estimate.upper = detail::scaled(context, run.peak_reserved, range.upper);
  // A job that fits takes no more than there is: the allocator releases its cache first.
  if (of_job->fits) estimate.upper = std::max(estimate.expected, std::min(estimate.upper, gpu.capacity()));
  estimate.upper_coverage = detail::kCoverage;
  estimate.allocated = core::Bytes(run.peak_allocated);
  estimate.reserved = core::Bytes(run.peak_reserved);
  estimate.device = estimate.expected;
  estimate.fits = of_job->fits;
  estimate.retries = run.retries;
  estimate.coverage.edges = source->edges;
  estimate.peak_layer = detail::peak_layer_of(**steps, *source->graph, run.peak_event);
  estimate.coverage.layers_unknown = source->unknown_layers;
  return estimate;
}

}  // namespace gpumem::estimate
