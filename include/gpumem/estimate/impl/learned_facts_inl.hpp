#pragma once

#include "gpumem/estimate/learned_facts.hpp"

#include <algorithm>
#include <cmath>

#include "gpumem/connect/connect.hpp"
#include "gpumem/device/workspace.hpp"
#include "gpumem/estimate/planned_job.hpp"
#include "gpumem/ml/replay_figures.hpp"

namespace gpumem::estimate {

namespace learned_facts_detail {

GPUMEM_INLINE double mib(std::int64_t bytes) { return static_cast<double>(bytes) / 1048576.0; }

using Figures = std::array<double, ml::kReplayFigures>;

GPUMEM_INLINE Figures figures_of(const PlannedJob& planned, const JobReplay& replay) {
  using ml::ReplayFigure;
  Figures figures{};
  const auto set = [&](ReplayFigure figure, double value) { figures[static_cast<std::size_t>(figure)] = value; };
  const PlanReplay& run = replay.run;
  set(ReplayFigure::device, mib(planned.context.count() + run.peak_reserved));
  set(ReplayFigure::reserved, mib(run.peak_reserved));
  set(ReplayFigure::allocated, mib(run.peak_allocated));
  set(ReplayFigure::workspace, mib(run.at_peak[kWorkspaceCategory]));
  set(ReplayFigure::fragmentation, mib(run.peak_reserved - run.peak_allocated));
  set(ReplayFigure::context, mib(planned.context.count()));
  set(ReplayFigure::fits, replay.fits ? 1.0 : 0.0);
  set(ReplayFigure::retries, static_cast<double>(run.retries));
  return figures;
}

/// The facts of a table are those of its printed shapes, which need no edges; other graphs are wired.
GPUMEM_INLINE core::Result<LearnedFacts> facts_of(const model::TrainingJob& job, const ops::Catalogue& ops) {
  LearnedFacts made;
  const bool table = job.graph->edges_inferred() && job.graph->shapes_printed();
  std::optional<connect::WiredGraph> wired;
  made.job = std::shared_ptr<const model::TrainingJob>(std::shared_ptr<void>(), &job);  // the caller's
  if (!table) {
    core::Result<connect::WiredGraph> connected = connect::connect(job, ops);
    if (!connected) return connected.error();
    wired = *std::move(connected);
    if (!job.graph->shapes_printed()) {
      made.edges = wired->edges();
      model::TrainingJob copy = job;
      copy.graph = wired->shared_graph();
      made.job = std::make_shared<const model::TrainingJob>(std::move(copy));
    }
  }
  const model::ModelGraph& graph = *made.job->graph;
  core::Result<ml::JobFacts> facts = ml::facts_of(*made.job, [&](std::size_t layer) {
    return wired ? wired->outputs(layer) : graph.outputs(graph.layers()[layer]);
  });
  if (!facts) return facts.error();
  made.facts = *std::move(facts);
  return made;
}

}  // namespace learned_facts_detail

GPUMEM_INLINE ReplayDepth replay_depth_of(const ml::FeatureReader& reader) {
  if (reader.needs_variants()) return ReplayDepth::variants;
  return reader.needs_replay() ? ReplayDepth::rule : ReplayDepth::none;
}

GPUMEM_INLINE core::Result<std::array<double, ml::kReplayFigures>> replay_figures(
    const PlannedJob& planned, const JobReplay& by_rule, const device::GpuProfile& gpu, ReplayDepth depth,
    const device::AllocatorOptions& options) {
  learned_facts_detail::Figures figures = learned_facts_detail::figures_of(planned, by_rule);
  if (depth != ReplayDepth::variants || !planned.recording.convolves) return figures;
  device::GpuProfile varied = gpu;
  std::size_t figure = ml::kFirstVariantFigure;
  for (const device::WorkspaceVariant& variant : device::workspace_variants()) {
    varied.convolution_workspace.variant = variant;
    const core::Result<JobReplay> replay = replay_job(planned, varied, options);
    if (!replay) return replay.error();
    figures[figure++] = std::log(static_cast<double>(replay->run.peak_reserved) /
                                 static_cast<double>(std::max<std::int64_t>(by_rule.run.peak_reserved, 1)));
  }
  return figures;
}

GPUMEM_INLINE core::Result<LearnedFacts> learned_facts(const model::TrainingJob& job, const device::GpuProfile& gpu,
                                                       const ops::Catalogue& ops, ReplayDepth depth,
                                                       const device::AllocatorOptions& options) {
  namespace detail = learned_facts_detail;
  core::Result<LearnedFacts> made = detail::facts_of(job, ops);
  if (!made) return made;
  if (const core::Status added = add_replay(*made, gpu, ops, depth, options); !added) return added.error();
  return made;
}

GPUMEM_INLINE core::Status add_replay(LearnedFacts& learned, const device::GpuProfile& gpu, const ops::Catalogue& ops,
                                      ReplayDepth depth, const device::AllocatorOptions& options) {
  if (depth == ReplayDepth::none) return core::Done{};
  core::Result<PlannedJob> planned = plan_job(*learned.job, gpu, ops);
  if (!planned) return planned.error();
  const core::Result<JobReplay> replay = replay_job(*planned, gpu, options);
  if (!replay) return replay.error();
  const auto figures = replay_figures(*planned, *replay, gpu, depth, options);
  if (!figures) return figures.error();
  learned.facts.replay = *figures;
  learned.edges = planned->edges;
  learned.planned = *std::move(planned);
  learned.replay = *replay;
  return core::Done{};
}

}  // namespace gpumem::estimate
