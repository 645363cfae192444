#pragma once

#include "gpumem/estimate/replay.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "gpumem/estimate/evidence.hpp"
#include "gpumem/ml/features.hpp"
#include "gpumem/ml/network.hpp"
#include "gpumem/model/optimizers.hpp"
#include "gpumem/parallel/pipeline_parallel.hpp"
#include "gpumem/parallel/sharing.hpp"

namespace gpumem::estimate {

namespace allocator_estimate_detail {

GPUMEM_INLINE Breakdown breakdown_of(const analysis::AllocatorRun& run, core::Bytes context) {
  Breakdown parts = breakdown_of_live({run.at_peak.data(), plan::kCategories});
  parts.context = context;
  parts.workspace = core::Bytes(run.at_peak[analysis::kWorkspaceCategory]);
  parts.fragmentation = core::Bytes(run.peak_reserved - run.peak_allocated);
  return parts;
}

/// "15.0 GiB are temporaries of foreach adamw; `fused` avoids them": what an optimizer's step takes for a moment. The
/// optimizer of a recorded step, and its form, may be others than the job's.
GPUMEM_INLINE std::string step_text(const model::TrainingJob& job, core::Bytes temporaries) {
  std::string text = core::to_string(temporaries) + " are temporaries";
  if (job.graph->recording() != nullptr && !job.replaces_optimizer) return text;
  const model::OptimizerRow& row = model::row_of(job.optimizer);
  const auto sharing = parallel::sharing_of(job);
  const bool copies = sharing && sharing->gradients_copied;  // which a fused step makes, too
  const bool foreach = job.foreach && !model::updates_in_one_kernel(job) && row.foreach_temporaries > 0;
  text += std::string(" of ") + (foreach ? "foreach " : "") + std::string(row.name);
  if (row.has_fused && !model::updates_in_one_kernel(job) && !copies) text += "; `fused` avoids them";
  return text;
}

/// The largest part that the job itself takes: "40.2 GiB are activations".
GPUMEM_INLINE std::string largest_part_text(const Breakdown& breakdown) {
  const Breakdown::Part* most = nullptr;
  const std::vector<Breakdown::Part> parts = breakdown.parts();
  for (const Breakdown::Part& part : parts) {
    if (part.name == "context" || part.name == "fragmentation") continue;
    if (most == nullptr || part.bytes > most->bytes) most = &part;
  }
  return core::to_string(most->bytes) + " are " + std::string(most->words);
}

/// Whether the optimizer's step takes enough for a moment to be what a reader looks at first: a tenth of what is
/// allocated.
GPUMEM_INLINE bool steps_take_much(const Breakdown& breakdown) {
  constexpr std::int64_t kShare = 10;
  const std::int64_t allocated =
      breakdown.total().value().value_or(0) - breakdown.context.count() - breakdown.fragmentation.count();
  return breakdown.temporaries.count() > 0 && breakdown.temporaries.count() >= allocated / kShare;
}

GPUMEM_INLINE std::string peak_text(const PeakLayer& peak, plan::Phase phase, const model::TrainingJob& job,
                                    const Breakdown& breakdown) {
  std::string text = peak.phase;
  if (peak.step > 0) text += " of step " + std::to_string(peak.step);
  const bool stepping = phase == plan::Phase::optimizer && steps_take_much(breakdown);
  if (stepping) return text + "; " + step_text(job, breakdown.temporaries);
  if (!peak.path.empty()) text += ", at " + peak.path + " (" + peak.class_name + ")";
  return text + "; " + largest_part_text(breakdown);
}

GPUMEM_INLINE PeakLayer peak_layer_of(const plan::StepPlan& steps, const model::ModelGraph& graph,
                                      const model::TrainingJob& job, const Breakdown& breakdown, std::size_t event) {
  const plan::PhaseMark& mark = steps.phase_of(event);
  PeakLayer peak;
  peak.phase = model::name_of(plan::kPhaseNames, mark.phase);
  peak.step = mark.step;
  const std::uint32_t layer = steps.events[event].layer;
  if (layer != plan::kNoLayer) {
    peak.path = graph.path(graph.layers()[layer]);
    peak.class_name = graph.class_name(graph.layers()[layer]);
  }
  peak.text = peak_text(peak, mark.phase, job, breakdown);
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
GPUMEM_INLINE void limit_upper(MemoryEstimate& estimate, const device::Communicators& communicators,
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
  const std::int64_t fewer = core::bounded_sum(
      {margin.fewer.count(), evidence_detail::gathered_again(analysis.job(), estimate.breakdown).count()});
  estimate.lower = std::min(lower, core::Bytes(std::max(lower.count() - fewer, parameters)));
  estimate.upper = core::Bytes(core::bounded_sum({upper.count(), margin.more.count()}));
  // Where runs were measured the replay decides. Elsewhere nobody knows how far off it is: then what the job may need
  // decides.
  estimate.most_needed = most_needed(*of_job, margin);
  estimate.fits = of_job->fits && (margin.coverage || estimate.most_needed <= of_job->limit);
  estimate.upper_uncut = std::max(estimate.upper, estimate.expected);
  // The allocator of a job that fits releases its cache first.
  limit_upper(estimate, of_job->communicators, estimate.fits ? of_job->limit : estimate.upper);
  if (of_job->limit < gpu.capacity()) estimate.limit = of_job->limit;
  estimate.upper_coverage = margin.coverage;
  estimate.ranged = true;
  estimate.assumed = assumptions_of(analysis.job(), *source, gpu, of_job->context, of_job->options);
  estimate.allocated = core::Bytes(run.peak_allocated);
  estimate.after_step = core::Bytes(run.last_allocated);
  estimate.reserved = core::Bytes(run.peak_reserved);
  estimate.device = estimate.expected;
  estimate.retries = run.retries;
  estimate.coverage.edges = source->edges;
  estimate.peak_layer = peak_layer_of(**steps, *source->graph, analysis.job(), estimate.breakdown, run.peak_event);
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
  std::vector<model::Rank> ranks = parallel::ranks_to_compare(job);
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

GPUMEM_INLINE core::Result<MemoryEstimate> Replay::do_estimate(analysis::Analysis& analysis,
                                                               const device::GpuProfile& gpu) const {
  return allocator_estimate(analysis, gpu, options_);
}

namespace corrected_replay_detail {

/// The places of a head's components: the raw features of their names, and 0 for the rule itself.
GPUMEM_INLINE std::vector<double> centres_of(const ml::ModelConfig& config, const std::vector<double>& raw) {
  std::vector<double> centres;
  for (const std::string& name : config.head.names) {
    double centre = 0.0;
    for (std::size_t index = 0; index < raw.size(); ++index) {
      if (config.features[index].name == name) centre = raw[index];
    }
    centres.push_back(centre);
  }
  return centres;
}

/// Takes `bytes` from a part, as far as it has them; what is left to take.
GPUMEM_INLINE std::int64_t take(core::Bytes& part, std::int64_t bytes) {
  const std::int64_t taken = std::min(part.count(), bytes);
  part = core::Bytes(part.count() - taken);
  return bytes - taken;
}

/// The parts of an estimate that is now of `reserved` bytes: the difference is the workspaces', and the cache that
/// they leave.
GPUMEM_INLINE void rebalance(MemoryEstimate& estimate, std::int64_t reserved) {
  const std::int64_t more = reserved - estimate.reserved->count();
  Breakdown& parts = estimate.breakdown;
  if (more >= 0) {
    parts.fragmentation = core::Bytes(parts.fragmentation.count() + more);
  } else {
    const std::int64_t left = take(parts.workspace, take(parts.fragmentation, -more));
    take(parts.temporaries, take(parts.activations, left));
  }
  estimate.reserved = core::Bytes(reserved);
  estimate.allocated = std::min(*estimate.allocated, *estimate.reserved);
  estimate.expected = core::Bytes(*parts.total().value());
  estimate.device = estimate.expected;
}

/// In whole segments, as the allocator reserves: what lies below is the rounding of float32.
GPUMEM_INLINE core::Bytes scaled(core::Bytes context, std::int64_t reserved, double log_ratio) {
  constexpr double kSegment = 2097152.0;
  const double segments = std::round(static_cast<double>(reserved) * std::exp(log_ratio) / kSegment);
  return core::Bytes(context.count() + static_cast<std::int64_t>(segments * kSegment));
}

/// The replay's estimate as the mixture has it.
GPUMEM_INLINE void correct(MemoryEstimate& estimate, const ml::Mixture& mixture, const ml::Head& head,
                           core::Bytes capacity) {
  const core::Bytes context = estimate.breakdown.context;
  const std::int64_t reserved = estimate.reserved->count();
  const core::Bytes room(std::max(reserved, capacity.count() - context.count()));
  const double most =
      std::log(static_cast<double>(room.count()) / static_cast<double>(std::max<std::int64_t>(reserved, 1)));
  const ml::RangeShares shares = {head.lower_share, head.upper_share};
  const ml::MixtureRange range = ml::range_of(mixture, shares, estimate.fits ? std::optional(most) : std::nullopt);
  const core::Bytes expected = scaled(core::Bytes(0), reserved, range.expected);
  estimate.lower = scaled(context, reserved, range.lower);
  estimate.upper = scaled(context, reserved, range.upper);
  // Rounding to segments may lead beyond it yet.
  rebalance(estimate, estimate.fits ? std::min(expected, room).count() : expected.count());
  if (estimate.fits) estimate.upper = std::min(estimate.upper, capacity);
  estimate.lower = std::min(estimate.lower, estimate.expected);
  estimate.upper = std::max(estimate.upper, estimate.expected);
  const core::Bytes uncut = scaled(context, reserved, ml::range_of(mixture, shares, std::nullopt).upper);
  estimate.upper_uncut = std::max(estimate.upper, uncut);
}

}  // namespace corrected_replay_detail

GPUMEM_INLINE core::Result<std::unique_ptr<Estimator>> CorrectedReplay::create(ml::TrainedModel corrector,
                                                                               device::AllocatorOptions options) {
  if (corrector.config.head.spread == 0.0) {
    return core::Error{core::ErrorCode::invalid_argument,
                       "the model " + core::quoted(corrector.config.name) + " is not a corrector of the replay",
                       {}};
  }
  core::Result<ml::FeatureReader> reader = ml::FeatureReader::create(corrector.config);
  if (!reader) return reader.error();
  return std::unique_ptr<Estimator>(new CorrectedReplay(std::move(corrector), *std::move(reader), options));
}

GPUMEM_INLINE bool CorrectedReplay::is_for(const ml::JobFacts& facts, const device::GpuProfile& gpu) const {
  const ml::ModelConfig& config = corrector_.config;
  if (config.nets != ml::NetKind::any && config.nets != facts.kind) return false;
  for (const auto& [key, value] : config.provenance) {
    if (key == "profile" && value != gpu.name) return false;
  }
  return true;
}

GPUMEM_INLINE core::Result<MemoryEstimate> CorrectedReplay::do_estimate(analysis::Analysis& analysis,
                                                                        const device::GpuProfile& gpu) const {
  namespace detail = corrected_replay_detail;
  core::Result<ml::JobFacts> facts = ml::facts_of(analysis);
  if (!facts) return facts.error();
  core::Result<MemoryEstimate> replayed = allocator_estimate(analysis, gpu, options_);
  if (!replayed) return replayed.error();
  MemoryEstimate estimate = *std::move(replayed);
  if (!is_for(*facts, gpu)) return estimate;
  // Only now: the variants cost a run each.
  const auto figures = ml::replay_figures(analysis, gpu, ml::Needs::variants, options_);
  if (!figures) return figures.error();
  facts->replay = *figures;

  const ml::ModelConfig& config = corrector_.config;
  std::vector<float> features(config.features.size());
  std::vector<float> sequence;
  std::vector<std::string> outside;
  reader_.read(*facts, features, sequence, outside);
  if (!outside.empty()) return estimate;
  std::vector<float> logits(static_cast<std::size_t>(config.network.outputs));
  ml::NetworkBuffers buffers = corrector_.network.buffers();
  corrector_.network.run(features, sequence, buffers, logits);
  if (!std::all_of(logits.begin(), logits.end(), [](float logit) { return std::isfinite(logit); })) return estimate;

  const ml::Mixture mixture = {detail::centres_of(config, reader_.raw_features(*facts)), ml::softmax(logits),
                               ml::spreads_of(config.head)};
  detail::correct(estimate, mixture, config.head, estimate.room_on(gpu.capacity()));
  estimate.provenance.weights = config.name;
  return estimate;
}

}  // namespace gpumem::estimate
