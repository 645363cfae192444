#pragma once

#include "gpumem/estimate/allocator_estimate.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "gpumem/estimate/evidence.hpp"
#include "gpumem/parallel/layout.hpp"
#include "gpumem/parallel/pipeline_parallel.hpp"

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
  parts.gathered = core::Bytes(of(Category::gathered));
  parts.communication = core::Bytes(of(Category::communication));
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

GPUMEM_INLINE core::Bytes scaled(core::Bytes context, std::int64_t reserved, double share) {
  return core::Bytes(context.count() + static_cast<std::int64_t>(static_cast<double>(reserved) * share));
}

/// What the job needs at most: what it has in live tensors, without what the allocator has cached, which it gives back
/// in need.
GPUMEM_INLINE core::Bytes most_needed(const analysis::JobRun& of_job, const Margin& margin) {
  const core::Bytes live = scaled(of_job.beside().upper, of_job.run.peak_allocated, margin.upper);
  return core::Bytes(core::bounded_sum({live.count(), margin.more.count()}));
}

/// A job that fits takes no more than there is. Says what of the range that is left is the communicators'.
GPUMEM_INLINE void limit_upper(MemoryEstimate& estimate, const parallel::Communicators& communicators,
                               core::Bytes limit) {
  const auto limited = [&](core::Bytes upper) { return std::max(estimate.expected, std::min(upper, limit)); };
  const std::int64_t above = communicators.upper.count() - communicators.expected.count();
  const core::Bytes without = limited(core::Bytes(estimate.upper.count() - above));
  estimate.upper = limited(estimate.upper);
  estimate.communicators.below = core::Bytes(communicators.expected.count() - communicators.lower.count());
  estimate.communicators.above = core::Bytes(estimate.upper.count() - without.count());
}

GPUMEM_INLINE core::Result<MemoryEstimate> of_one_rank(analysis::Analysis& analysis, const device::GpuProfile& gpu,
                                                       const device::AllocatorOptions& options) {
  const core::Result<analysis::JobRun> of_job = analysis.run(gpu, options);
  if (!of_job) return of_job.error();
  const auto source = analysis.source();
  if (!source) return source.error();
  const auto steps = analysis.steps();
  if (!steps) return steps.error();
  const analysis::AllocatorRun& run = of_job->run;
  const device::Context beside = of_job->beside();

  MemoryEstimate estimate;
  estimate.breakdown = breakdown_of(run, beside.expected);
  estimate.expected = core::Bytes(beside.expected.count() + run.peak_reserved);
  const Margin margin = margin_of(analysis.job(), *source, gpu);
  const core::Bytes lower = scaled(beside.lower, run.peak_reserved, margin.lower);
  const core::Bytes upper = scaled(beside.upper, run.peak_reserved, margin.upper);
  const std::int64_t parameters = beside.lower.count() + estimate.breakdown.parameters.count();
  estimate.lower = std::min(lower, core::Bytes(std::max(lower.count() - margin.fewer.count(), parameters)));
  estimate.upper = core::Bytes(core::bounded_sum({upper.count(), margin.more.count()}));
  // Where runs were measured the replay decides. Elsewhere nobody knows how far off it is: then what the job may need
  // decides.
  estimate.most_needed = most_needed(*of_job, margin);
  estimate.fits = of_job->fits && (margin.coverage || estimate.most_needed <= gpu.capacity());
  // The allocator of a job that fits releases its cache first.
  limit_upper(estimate, of_job->communicators, estimate.fits ? gpu.capacity() : estimate.upper);
  estimate.upper_coverage = margin.coverage;
  estimate.ranged = true;
  estimate.assumed = assumptions_of(analysis.job(), *source, gpu, of_job->context);
  estimate.allocated = core::Bytes(run.peak_allocated);
  estimate.reserved = core::Bytes(run.peak_reserved);
  estimate.device = estimate.expected;
  estimate.retries = run.retries;
  estimate.coverage.edges = source->edges;
  estimate.peak_layer = peak_layer_of(**steps, *source->graph, run.peak_event);
  estimate.coverage.layers_unknown = source->unknown_layers;
  return estimate;
}

}  // namespace allocator_estimate_detail

GPUMEM_INLINE core::Status choose_rank(analysis::Analysis& analysis, const device::GpuProfile& gpu,
                                       const device::AllocatorOptions& options) {
  model::TrainingJob job = analysis.job();
  if (job.layout.rank.kind == model::Ranks::all) {
    return core::Error{core::ErrorCode::invalid_argument,
                       "this answers for one rank; only an estimate takes `rank=all`, and shows every pipeline stage",
                       {}};
  }
  if (const core::Status& modelled = analysis.modelled(); !modelled) return modelled;
  if (job.layout.rank.kind != model::Ranks::max || job.layout.pipeline_parallel == 1) return core::Done{};
  std::optional<model::Rank> most;
  std::int64_t most_bytes = 0;
  // The first stage often takes most: looked at last, it need not be made again. Of equals the first counts.
  std::vector<model::Rank> ranks = parallel::ranks_to_compare(job.layout);
  std::reverse(ranks.begin(), ranks.end());
  for (const model::Rank& rank : ranks) {
    job.layout.rank = rank;
    analysis.set_job(job);
    const core::Result<analysis::JobRun> run = analysis.run(gpu, options);
    if (!run) return run.error();
    const std::int64_t bytes = run->context.expected.count() + run->run.peak_reserved;
    if (most && bytes < most_bytes) continue;
    most = rank;
    most_bytes = bytes;
  }
  if (analysis.job().layout.rank != *most) {
    job.layout.rank = *most;
    analysis.set_job(std::move(job));
  }
  return core::Done{};
}

/// For a pipeline the rank that takes most, unless the job names one.
GPUMEM_INLINE core::Result<MemoryEstimate> allocator_estimate(analysis::Analysis& analysis,
                                                              const device::GpuProfile& gpu,
                                                              const device::AllocatorOptions& options) {
  const model::Rank asked = analysis.job().layout.rank;
  core::Result<MemoryEstimate> estimate = [&]() -> core::Result<MemoryEstimate> {
    if (const core::Status chosen = choose_rank(analysis, gpu, options); !chosen) return chosen.error();
    return allocator_estimate_detail::of_one_rank(analysis, gpu, options);
  }();
  if (analysis.job().layout.rank != asked) {
    model::TrainingJob job = analysis.job();
    job.layout.rank = asked;
    analysis.set_job(std::move(job));
  }
  return estimate;
}

}  // namespace gpumem::estimate
