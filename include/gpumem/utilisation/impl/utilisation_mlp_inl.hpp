#pragma once

#include "gpumem/utilisation/utilisation_mlp.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "gpumem/ml/features.hpp"
#include "gpumem/ml/network.hpp"
#include "gpumem/utilisation/roofline_estimate.hpp"
#include "gpumem/utilisation/step_time.hpp"

namespace gpumem::utilisation {

namespace utilisation_mlp_detail {

struct CounterField {
  std::string_view name;
  Share UtilisationEstimate::*share;
};
inline constexpr std::array<CounterField, 5> kCounters = {{{"smact", &UtilisationEstimate::smact},
                                                           {"smocc", &UtilisationEstimate::smocc},
                                                           {"gract", &UtilisationEstimate::gract},
                                                           {"gpu_utilisation", &UtilisationEstimate::gpu_utilisation},
                                                           {"fp32", &UtilisationEstimate::fp32}}};

GPUMEM_INLINE const CounterField* counter_named(std::string_view name) {
  const auto* found = std::find_if(kCounters.begin(), kCounters.end(),
                                   [&](const CounterField& counter) { return counter.name == name; });
  return found == kCounters.end() ? nullptr : found;
}

GPUMEM_INLINE core::Error unfit(const ml::ModelConfig& config, const std::string& what) {
  return {core::ErrorCode::invalid_argument, "the model " + core::quoted(config.name) + " " + what, {}};
}

/// Values of counters with smact among them, or bins of smact.
GPUMEM_INLINE core::Status check_head(const ml::ModelConfig& config, bool bins) {
  const ml::Head& head = config.head;
  if (bins) {
    if (head.of == "smact") return core::Done{};
    return unfit(config, "predicts no bins of smact");
  }
  bool smact = false;
  bool counters = head.edges_mib.empty() && head.spread == 0.0;
  for (const std::string& name : head.names) {
    counters = counters && counter_named(name) != nullptr;
    smact = smact || name == "smact";
  }
  if (counters && smact) return core::Done{};
  return unfit(config, "does not tell a GPU's counters, smact among them");
}

/// What the model was trained on, by its provenance.
GPUMEM_INLINE core::Result<device::GpuProfile> profile_of(const ml::ModelConfig& config) {
  for (const auto& [key, value] : config.provenance) {
    if (key == "profile") return device::find_profile(value);
  }
  return unfit(config, "does not say which GPU its runs were measured on (\"profile\" in its provenance)");
}

GPUMEM_INLINE void take_values(const ml::Head& head, const std::vector<float>& outputs, UtilisationEstimate& to) {
  const ml::Residuals& residuals = head.residuals;
  const bool ranged = residuals.coverage > 0.0;
  to.coverage = residuals.coverage;
  for (std::size_t output = 0; output < outputs.size(); ++output) {
    const double value = std::clamp(static_cast<double>(outputs[output]), 0.0, 1.0);
    Share& share = to.*(counter_named(head.names[output])->share);
    share = {value, ranged ? value + residuals.lower[output] : 0.0, ranged ? value + residuals.upper[output] : 1.0};
  }
}

/// Where the sum of the classes' probabilities reaches a share, within its class by a straight line.
GPUMEM_INLINE double quantile(const std::vector<ShareBin>& bins, double share) {
  double below = 0.0;
  for (const ShareBin& bin : bins) {
    if (bin.probability > 0.0 && below + bin.probability >= share) {
      return bin.lower + (bin.upper - bin.lower) * (share - below) / bin.probability;
    }
    below += bin.probability;
  }
  return bins.back().upper;
}

GPUMEM_INLINE void take_bins(const ml::Head& head, const std::vector<float>& logits, UtilisationEstimate& to) {
  constexpr double kCoverage = 0.9;
  const std::vector<double> shares = ml::softmax(logits);
  const double before = to.smact.expected;
  for (std::size_t bin = 0; bin < shares.size(); ++bin) {
    to.smact_bins.push_back({head.edges_mib[bin], head.edges_mib[bin + 1], shares[bin]});
  }
  to.smact = {quantile(to.smact_bins, 0.5), quantile(to.smact_bins, (1.0 - kCoverage) / 2.0),
              quantile(to.smact_bins, (1.0 + kCoverage) / 2.0)};
  const double moved = before > 0.0 ? to.smact.expected / before : 1.0;
  for (Share* share : {&to.smocc, &to.fp32}) {
    *share = {share->expected * moved, share->lower * moved, share->upper * moved};
  }
}

GPUMEM_INLINE double odds(double share) {
  constexpr double kLeast = 1e-4;
  const double within = std::clamp(share, kLeast, 1.0 - kLeast);
  return within / (1.0 - within);
}
GPUMEM_INLINE double carried(double learned, double there, double here) {
  const double moved = odds(learned) * odds(here) / odds(there);
  return moved / (1.0 + moved);
}

/// The estimate of the model's GPU, on this one: the odds move as the roofline's do.
GPUMEM_INLINE void carry(UtilisationEstimate& estimate, const UtilisationEstimate& there,
                         const UtilisationEstimate& here) {
  for (const CounterField& counter : kCounters) {
    Share& share = estimate.*(counter.share);
    const Share& to = here.*(counter.share);
    const double from = (there.*(counter.share)).expected;
    share = {carried(share.expected, from, to.expected), std::min(carried(share.lower, from, to.expected), to.lower),
             std::max(carried(share.upper, from, to.expected), to.upper)};
  }
  estimate.coverage = 0.0;
  estimate.smact_bins.clear();
  estimate.out_of_domain.emplace_back("gpu");
}

}  // namespace utilisation_mlp_detail

GPUMEM_INLINE core::Result<std::unique_ptr<UtilisationEstimator>> UtilisationMlp::create(
    std::string_view name, std::vector<ml::TrainedModel> models) {
  namespace detail = utilisation_mlp_detail;
  if (models.empty()) return core::Error{core::ErrorCode::invalid_argument, "there is no trained model", {}};
  const bool bins = name == kBinsName;
  std::unique_ptr<UtilisationMlp> made(new UtilisationMlp(bins ? kBinsName : kName));
  for (ml::TrainedModel& model : models) {
    const core::Status fit = detail::check_head(model.config, bins);
    if (!fit) return fit.error();
    core::Result<device::GpuProfile> gpu = detail::profile_of(model.config);
    if (!gpu) return gpu.error();
    core::Result<ml::FeatureReader> reader = ml::FeatureReader::create(model.config);
    if (!reader) return reader.error();
    made->models_.push_back({std::move(model), *std::move(reader), *std::move(gpu)});
  }
  return std::unique_ptr<UtilisationEstimator>(std::move(made));
}

GPUMEM_INLINE const UtilisationMlp::Learned* UtilisationMlp::model_for(ml::NetKind kind) const {
  const auto found = std::find_if(models_.begin(), models_.end(), [&](const Learned& learned) {
    return learned.model.config.nets == kind || learned.model.config.nets == ml::NetKind::any;
  });
  return found == models_.end() ? nullptr : &*found;
}

GPUMEM_INLINE core::Result<UtilisationEstimate> UtilisationMlp::do_estimate(analysis::Analysis& analysis,
                                                                            const device::GpuProfile& gpu) const {
  namespace detail = utilisation_mlp_detail;
  core::Result<ml::JobFacts> facts = ml::facts_of(analysis);
  if (!facts) return facts.error();
  const auto work = analysis.work();
  if (!work) return work.error();
  const core::Result<GpuPeaks> here = peaks_of(gpu);
  if (!here) return here.error();
  const Learned* learned = model_for(facts->kind);
  if (learned == nullptr) {
    UtilisationEstimate estimate = roofline_estimate(**work, analysis.job(), *here);
    estimate.out_of_domain.emplace_back("nets");
    return estimate;
  }
  const ml::FeatureReader& reader = learned->reader;
  const core::Status added = ml::add_replay(*facts, reader, analysis, learned->gpu);
  if (!added) return added.error();
  const core::Result<GpuPeaks> there = peaks_of(learned->gpu);
  if (!there) return there.error();
  facts->roofline = roofline_figures(step_time(**work, analysis.job(), *there));

  const ml::ModelConfig& config = learned->model.config;
  UtilisationEstimate estimate = roofline_estimate(**work, analysis.job(), *there);
  std::vector<float> features(config.features.size());
  std::vector<float> sequence;
  reader.read(*facts, features, sequence, estimate.out_of_domain);
  std::vector<float> outputs(static_cast<std::size_t>(config.network.outputs));
  ml::NetworkBuffers buffers = learned->model.network.buffers();
  learned->model.network.run(features, sequence, buffers, outputs);
  if (!std::all_of(outputs.begin(), outputs.end(), [](float output) { return std::isfinite(output); })) {
    return core::Error{core::ErrorCode::overflow, "the job's figures are beyond what the model can weigh", {}};
  }
  const UtilisationEstimate trained_on = estimate;
  if (config.head.of.empty()) detail::take_values(config.head, outputs, estimate);
  else detail::take_bins(config.head, outputs, estimate);
  if (learned->gpu.name != gpu.name)
    detail::carry(estimate, trained_on, roofline_estimate(**work, analysis.job(), *here));
  estimate.weights = config.name;
  return estimate;
}

}  // namespace gpumem::utilisation
