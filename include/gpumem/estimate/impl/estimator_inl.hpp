#pragma once

#include "gpumem/estimate/estimator.hpp"

#include <algorithm>
#include <cassert>

#include "gpumem/core/deadline.hpp"
#include "gpumem/model/step_recording.hpp"
#include "gpumem/parallel/layout.hpp"

namespace gpumem::estimate {

namespace estimator_detail {

/// How many GPUs an estimate of this job is of.
GPUMEM_INLINE core::Result<std::int64_t> gpus_like_it(const model::TrainingJob& job) {
  if (const model::StepRecording* recording = job.graph->recording()) return recording->world_size;
  if (job.layout.rank.kind != model::Ranks::max) return std::int64_t{1};
  return parallel::world_size(job.layout);
}

/// `edges`: see WiredGraph::edges().
GPUMEM_INLINE std::string edges_text(std::string_view edges) {
  constexpr std::string_view kKnown = "architecture: ";
  if (!edges.starts_with(kKnown)) return "what each layer reads was inferred (" + std::string(edges) + ")";
  return "each layer reads what the code of its model's class reads (" + std::string(edges.substr(kKnown.size())) + ")";
}

GPUMEM_INLINE std::string_view name_of(model::Doubt::About about) {
  switch (about) {
    case model::Doubt::About::model_type: return "model_type";
    case model::Doubt::About::fields: return "fields";
    case model::Doubt::About::parameters: return "parameters";
    case model::Doubt::About::quantization: return "quantize";
    case model::Doubt::About::kernels: return "kernels";
    case model::Doubt::About::images: return "images";
  }
  return {};
}

/// What the model's source does not settle comes first: it may change an estimate most. Runs of such a model were not
/// measured.
GPUMEM_INLINE void add_doubts(const model::ModelGraph& graph, MemoryEstimate& estimate) {
  if (graph.doubts().empty()) return;
  estimate.upper_coverage.reset();
  std::vector<Assumption> doubts;
  for (const model::Doubt& doubt : graph.doubts()) doubts.push_back({std::string(name_of(doubt.about)), doubt.text});
  estimate.assumed.insert(estimate.assumed.begin(), doubts.begin(), doubts.end());
}

}  // namespace estimator_detail

GPUMEM_INLINE void judge(MemoryEstimate& estimate, const model::ModelGraph& graph, core::Bytes capacity) {
  estimate.coverage.layers_total = static_cast<std::int64_t>(graph.layers().size());
  estimate.coverage.layers_unknown = std::max(estimate.coverage.layers_unknown, graph.unknown_layers());
  estimate.coverage.edges_inferred = graph.edges_inferred();
  estimate.lower_bound = estimate.coverage.layers_unknown > 0 || !estimate.leaves_out.empty();
  estimate.fits = estimate.fits && !estimate.lower_bound;
  estimate.upper_uncut = std::max(estimate.upper_uncut, estimate.upper);
  estimate.verdict = verdict_of(estimate, capacity);
}

GPUMEM_INLINE Breakdown breakdown_of_live(std::span<const std::int64_t> by_category) {
  Breakdown parts;
  for (std::size_t category = 0; category < by_category.size(); ++category) {
    core::Bytes& part = parts.part(plan::part_of(static_cast<plan::Category>(category)));
    part = core::Bytes(part.count() + by_category[category]);
  }
  return parts;
}

GPUMEM_INLINE core::Result<MemoryEstimate> Estimator::estimate(const model::TrainingJob& job,
                                                               const device::GpuProfile& gpu) const {
  analysis::Analysis analysis(job);
  return estimate(analysis, gpu);
}

GPUMEM_INLINE core::Result<MemoryEstimate> Estimator::estimate(analysis::Analysis& analysis,
                                                               const device::GpuProfile& gpu) const {
  const model::TrainingJob& job = analysis.job();
  const core::Status valid = model::validate(job);
  if (!valid) return valid.error();
  const core::Status taken = takes_layouts()         ? analysis.modelled()
                             : takes_data_parallel() ? parallel::check_data_parallel(job, name())
                                                     : parallel::check_one_gpu(job, name());
  if (!taken) return taken.error();
  core::Result<MemoryEstimate> estimate = do_estimate(analysis, gpu);
  // Replays of variants and the like end early: what they gave is not whole.
  if (core::deadline_passed()) return core::deadline_error().in_file(job.graph->file());
  if (!estimate) return std::move(estimate.error()).in_file(job.graph->file());
  assert(estimate->breakdown.total().value() == 0 || estimate->breakdown.total().value() == estimate->expected.count());
  const core::Result<std::int64_t> gpus = estimator_detail::gpus_like_it(job);
  if (!gpus) return gpus.error();
  estimate->gpus = *gpus;
  if (job.graph->edges_inferred() && !estimate->coverage.edges.empty()) {
    estimate->assumed.push_back({"edges", estimator_detail::edges_text(estimate->coverage.edges)});
  }
  estimator_detail::add_doubts(*job.graph, *estimate);
  estimate->provenance.estimator = name();
  estimate->provenance.gpu = gpu.name;
  if (!decides_fit()) {
    estimate->fits = estimate->upper <= gpu.capacity();
    estimate->most_needed = estimate->upper;
  }
  judge(*estimate, *job.graph, gpu.capacity());
  return estimate;
}

}  // namespace gpumem::estimate
