#pragma once

#include "gpumem/estimate/corrected_replay.hpp"

#include <algorithm>
#include <cmath>

#include "gpumem/estimate/allocator_estimate.hpp"
#include "gpumem/ml/features.hpp"
#include "gpumem/ml/network.hpp"

namespace gpumem::estimate {

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
    take(parts.activations, left);
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
  const ml::MixtureRange range =
      ml::range_of(mixture, {head.lower_share, head.upper_share}, estimate.fits ? std::optional(most) : std::nullopt);
  const core::Bytes expected = scaled(core::Bytes(0), reserved, range.expected);
  estimate.lower = scaled(context, reserved, range.lower);
  estimate.upper = scaled(context, reserved, range.upper);
  // Rounding to segments may lead beyond it yet.
  rebalance(estimate, estimate.fits ? std::min(expected, room).count() : expected.count());
  if (estimate.fits) estimate.upper = std::min(estimate.upper, capacity);
  estimate.lower = std::min(estimate.lower, estimate.expected);
  estimate.upper = std::max(estimate.upper, estimate.expected);
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
  detail::correct(estimate, mixture, config.head, gpu.capacity());
  estimate.provenance.weights = config.name;
  return estimate;
}

}  // namespace gpumem::estimate
