#pragma once

#include "gpumem/estimate/replay.hpp"

#include "gpumem/estimate/planned_job.hpp"

namespace gpumem::estimate {

namespace replay_detail {

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

}  // namespace replay_detail

GPUMEM_INLINE core::Result<MemoryEstimate> Replay::do_estimate(const model::TrainingJob& job,
                                                               const device::GpuProfile& gpu) const {
  const core::Result<PlannedJob> planned = plan_job(job, gpu, ops_);
  if (!planned) return planned.error();
  const core::Result<JobReplay> replay = replay_job(*planned, gpu, options_);
  if (!replay) return replay.error();
  const PlanReplay& run = replay->run;

  MemoryEstimate estimate;
  estimate.breakdown = replay_detail::breakdown_of(run, planned->context);
  estimate.expected = core::Bytes(planned->context.count() + run.peak_reserved);
  estimate.lower = estimate.expected;
  estimate.upper = estimate.expected;
  estimate.allocated = core::Bytes(run.peak_allocated);
  estimate.reserved = core::Bytes(run.peak_reserved);
  estimate.device = estimate.expected;
  estimate.fits = replay->fits;
  estimate.peak_layer = replay_detail::peak_layer_of(*planned, run.peak_event);
  return estimate;
}

}  // namespace gpumem::estimate
