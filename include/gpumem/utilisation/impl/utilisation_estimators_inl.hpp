#pragma once

#include "gpumem/utilisation/utilisation_estimators.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "gpumem/ml/features.hpp"
#include "gpumem/ml/network.hpp"
#include "gpumem/ml/trained_model.hpp"
#include "gpumem/parallel/sharing.hpp"
#include "gpumem/utilisation/step_time.hpp"

namespace gpumem::utilisation {

namespace utilisation_estimator_detail {

/// 0 <= lower <= expected <= upper <= 1.
GPUMEM_INLINE void order(Share& share) {
  share.expected = std::clamp(share.expected, 0.0, 1.0);
  share.lower = std::clamp(share.lower, 0.0, share.expected);
  share.upper = std::clamp(share.upper, share.expected, 1.0);
}

/// What a counter is a part of: warps need an SM, an SM at work needs a kernel.
GPUMEM_INLINE void contain(Share& part, const Share& whole) {
  part.expected = std::min(part.expected, whole.expected);
  part.lower = std::min(part.lower, part.expected);
  part.upper = std::max(part.upper, part.expected);
}

}  // namespace utilisation_estimator_detail

GPUMEM_INLINE core::Result<UtilisationEstimate> UtilisationEstimator::estimate(const model::TrainingJob& job,
                                                                               const device::GpuProfile& gpu) const {
  analysis::Analysis analysis(job);
  return estimate(analysis, gpu);
}

GPUMEM_INLINE core::Result<UtilisationEstimate> UtilisationEstimator::estimate(analysis::Analysis& analysis,
                                                                               const device::GpuProfile& gpu) const {
  const model::TrainingJob& job = analysis.job();
  namespace detail = utilisation_estimator_detail;
  const core::Status valid = model::validate(job);
  if (!valid) return valid.error();
  const core::Status alone = parallel::check_data_parallel(
      job, name(), "leave it out: utilisation is estimated for one GPU that holds the whole model");
  if (!alone) return alone.error();
  core::Result<UtilisationEstimate> estimate = do_estimate(analysis, gpu);
  if (!estimate) return std::move(estimate.error()).in_file(job.graph->file());
  for (Share* share :
       {&estimate->smact, &estimate->smocc, &estimate->gract, &estimate->gpu_utilisation, &estimate->fp32}) {
    detail::order(*share);
  }
  detail::contain(estimate->smocc, estimate->smact);
  detail::contain(estimate->fp32, estimate->smact);
  estimate->estimator = name();
  estimate->gpu = gpu.name;
  return estimate;
}

namespace roofline_estimate_detail {

inline constexpr double kOtherHost = 2.5;  ///< times slower or faster

/// The range spans three hosts, and by a factor what the roofline does not know about the kernels. Factors, and the
/// share of runs that the ranges hold: from GPUMemNet's runs.
GPUMEM_INLINE Share share_of(double expected, double one, double other, double below, double above) {
  return {expected, std::min({expected, one, other}) * below, std::max({expected, one, other}) * above};
}
inline constexpr double kCoverage = 0.89;

}  // namespace roofline_estimate_detail

GPUMEM_INLINE UtilisationEstimate roofline_estimate(const plan::StepWork& work, const model::TrainingJob& job,
                                                    const GpuPeaks& gpu, const HostCosts& host) {
  using roofline_estimate_detail::share_of;
  const StepTime expected = step_time(work, job, gpu, host);
  const StepTime slow = step_time(work, job, gpu, host.times(roofline_estimate_detail::kOtherHost));
  const StepTime fast = step_time(work, job, gpu, host.times(1.0 / roofline_estimate_detail::kOtherHost));
  UtilisationEstimate estimate;
  estimate.smact = share_of(expected.smact, slow.smact, fast.smact, 0.85, 1.15);
  estimate.smocc = share_of(expected.smocc, slow.smocc, fast.smocc, 0.6, 1.6);
  estimate.gract = share_of(expected.gract, slow.gract, fast.gract, 0.9, 1.1);
  estimate.gpu_utilisation = estimate.gract;
  estimate.fp32 = share_of(expected.fp32, slow.fp32, fast.fp32, 0.4, 2.5);
  estimate.coverage = roofline_estimate_detail::kCoverage;
  return estimate;
}

GPUMEM_INLINE core::Result<UtilisationEstimate> Roofline::do_estimate(analysis::Analysis& analysis,
                                                                      const device::GpuProfile& gpu) const {
  const core::Result<GpuPeaks> peaks = peaks_of(gpu);
  if (!peaks) return peaks.error();
  const auto work = analysis.work();
  if (!work) return work.error();
  return roofline_estimate(**work, analysis.job(), *peaks, host_);
}

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

namespace utilisation_estimators_detail {

using Made = core::Result<std::unique_ptr<UtilisationEstimator>>;

GPUMEM_INLINE Made create_roofline(const std::string& /*model*/) {
  return std::unique_ptr<UtilisationEstimator>(std::make_unique<Roofline>());
}

template <const std::string_view& Name>
Made create_learned(const std::string& model) {
  if (!model.empty()) {
    core::Result<ml::TrainedModel> named = ml::find_model(model);
    if (!named) return named.error();
    std::vector<ml::TrainedModel> models;
    models.push_back(*std::move(named));
    return UtilisationMlp::create(Name, std::move(models));
  }
  core::Result<std::vector<ml::TrainedModel>> builtin = ml::find_models(std::string(Name) + "-");
  if (!builtin) return builtin.error();
  return UtilisationMlp::create(Name, *std::move(builtin));
}

inline constexpr std::array<UtilisationEstimatorEntry, 3> kAll = {{
    {UtilisationMlp::kName, "ensembles of small perceptrons on the roofline's figures, trained on measured runs",
     create_learned<UtilisationMlp::kName>},
    {UtilisationMlp::kBinsName, "the same as a classifier: SMACT in classes, with their probabilities",
     create_learned<UtilisationMlp::kBinsName>},
    {Roofline::kName, "each kernel's time by the GPU's peak and bandwidth, and the host's launches", create_roofline},
}};

}  // namespace utilisation_estimators_detail

GPUMEM_INLINE std::span<const UtilisationEstimatorEntry> utilisation_estimators() {
  return utilisation_estimators_detail::kAll;
}

GPUMEM_INLINE core::Result<std::unique_ptr<UtilisationEstimator>> make_utilisation_estimator(std::string_view name,
                                                                                             const std::string& model) {
  std::string names;
  for (const UtilisationEstimatorEntry& entry : utilisation_estimators()) {
    if (entry.name == name) return entry.create(model);
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  }
  return core::Error{core::ErrorCode::invalid_argument,
                     "there is no estimator of utilisation " + core::quoted(name) + "; choose one of " + names,
                     {}};
}

namespace translate_detail {

/// The share of its time that the GPU computes, if its kernels take 1 / speed of theirs.
GPUMEM_INLINE double sped_up(double share, double speed) {
  const double kernels = share / speed;
  const double step = 1.0 - share + kernels;
  return step > 0.0 ? kernels / step : 0.0;
}

/// Speeds of the new GPU over the old one's.
struct Speeds {
  double lower = 1.0;
  double expected = 1.0;
  double upper = 1.0;
};

GPUMEM_INLINE Share sped_up(const Share& share, const Speeds& speeds) {
  return {sped_up(share.expected, speeds.expected), sped_up(share.lower, speeds.upper),
          sped_up(share.upper, speeds.lower)};
}

GPUMEM_INLINE double ratio(double part, double whole) { return whole > 0.0 ? std::min(1.0, part / whole) : 0.0; }

GPUMEM_INLINE Share times(const Share& share, double expected, double lower, double upper) {
  return {std::min(1.0, share.expected * expected), std::min(1.0, share.lower * lower),
          std::min(1.0, share.upper * upper)};
}

}  // namespace translate_detail

GPUMEM_INLINE core::Result<UtilisationEstimate> translate(const UtilisationEstimate& estimate,
                                                          const device::GpuProfile& from,
                                                          const device::GpuProfile& to) {
  namespace detail = translate_detail;
  const core::Result<GpuPeaks> before = peaks_of(from);
  if (!before) return before.error();
  const core::Result<GpuPeaks> after = peaks_of(to);
  if (!after) return after.error();
  const double moving = after->bandwidth / before->bandwidth;
  const double computing = after->fp32 / before->fp32;
  const detail::Speeds speeds = {std::min(moving, computing), std::sqrt(moving * computing),
                                 std::max(moving, computing)};
  const double sms = before->sms / after->sms;

  UtilisationEstimate made = estimate;
  made.gpu = to.name;
  made.coverage = 0.0;
  made.smact_bins.clear();
  made.gract = detail::sped_up(estimate.gract, speeds);
  made.gpu_utilisation = detail::sped_up(estimate.gpu_utilisation, speeds);
  const double filled = detail::ratio(estimate.smact.expected, estimate.gract.expected);
  const double few = std::min(1.0, filled * std::min(1.0, sms));
  const double many = std::min(1.0, filled * std::max(1.0, sms));
  made.smact = detail::times(made.gract, std::min(1.0, filled * sms), few, many);
  const double rest = estimate.smact.expected > 0.0 ? made.smact.expected / estimate.smact.expected : 0.0;
  const double least = estimate.smact.lower > 0.0 ? made.smact.lower / estimate.smact.lower : rest;
  const double most = estimate.smact.upper > 0.0 ? made.smact.upper / estimate.smact.upper : rest;
  made.smocc = detail::times(estimate.smocc, rest, least, most);
  // The same instructions, in a step of another length, against another peak.
  const double length = (1.0 - estimate.gract.expected) + estimate.gract.expected / speeds.expected;
  const double work = 1.0 / (std::max(length, 1e-9) * computing);
  made.fp32 = detail::times(estimate.fp32, work, work, work);
  for (Share* share : {&made.smact, &made.smocc, &made.gract, &made.gpu_utilisation, &made.fp32}) {
    share->lower = std::min(share->lower, share->expected);
    share->upper = std::max(share->upper, share->expected);
  }
  return made;
}

}  // namespace gpumem::utilisation
