#pragma once

#include "gpumem/estimate/gpumemnet.hpp"

#include <algorithm>
#include <cmath>

#include "gpumem/ml/features.hpp"
#include "gpumem/ml/network.hpp"

namespace gpumem::estimate {

namespace gpumemnet_detail {

GPUMEM_INLINE core::Bytes from_mib(double mib) { return core::Bytes(static_cast<std::int64_t>(mib * 1048576.0)); }

GPUMEM_INLINE std::vector<Bin> bins_of(const std::vector<double>& edges_mib, const std::vector<float>& logits) {
  const std::vector<double> shares = ml::softmax(logits);
  std::vector<Bin> bins;
  for (std::size_t bin = 0; bin < shares.size(); ++bin) {
    bins.push_back({from_mib(edges_mib[bin]), from_mib(edges_mib[bin + 1]), shares[bin]});
  }
  return bins;
}

/// The entry of a config's list; null if there is none.
template <typename Value>
const Value* entry_of(const std::vector<std::pair<std::string, Value>>& entries, std::string_view name) {
  for (const auto& [key, value] : entries) {
    if (key == name) return &value;
  }
  return nullptr;
}

/// Settings that no feature tells and no set of runs to train on varies. They show in the figures of a replay.
GPUMEM_INLINE void add_unseen_settings(const model::TrainingJob& job, std::vector<std::string>& unseen) {
  if (job.gradient_accumulation > 1) unseen.emplace_back("accumulate");
  if (job.activation_checkpointing) unseen.emplace_back("checkpointing");
}

}  // namespace gpumemnet_detail

GPUMEM_INLINE core::Result<std::unique_ptr<Estimator>> Gpumemnet::create(std::string_view name,
                                                                         std::vector<ml::TrainedModel> models,
                                                                         device::AllocatorOptions options) {
  if (models.empty()) return core::Error{core::ErrorCode::invalid_argument, "there is no trained model", {}};
  std::unique_ptr<Gpumemnet> made(new Gpumemnet(name == kTransformerName ? kTransformerName : kMlpName, options));
  for (ml::TrainedModel& model : models) {
    if (model.config.head.edges_mib.empty() || !model.config.head.of.empty()) {
      return core::Error{core::ErrorCode::invalid_argument,
                         "the model " + core::quoted(model.config.name) + " predicts something else, not memory bins",
                         {}};
    }
    core::Result<ml::FeatureReader> reader = ml::FeatureReader::create(model.config);
    if (!reader) return reader.error();
    made->classifiers_.push_back({std::move(model), *std::move(reader)});
  }
  return std::unique_ptr<Estimator>(std::move(made));
}

GPUMEM_INLINE const Gpumemnet::Classifier& Gpumemnet::classifier_for(ml::NetKind kind) const {
  const auto found = std::find_if(classifiers_.begin(), classifiers_.end(), [&](const Classifier& classifier) {
    return classifier.model.config.nets == kind || classifier.model.config.nets == ml::NetKind::any;
  });
  return found == classifiers_.end() ? classifiers_.front() : *found;
}

GPUMEM_INLINE core::Result<MemoryEstimate> Gpumemnet::do_estimate(analysis::Analysis& analysis,
                                                                  const device::GpuProfile& gpu) const {
  namespace detail = gpumemnet_detail;
  core::Result<ml::JobFacts> facts = ml::facts_of(analysis);
  if (!facts) return facts.error();
  const Classifier& classifier = classifier_for(facts->kind);
  // Only now: a run costs many times the rest.
  const core::Status added = ml::add_replay(*facts, classifier.reader, analysis, gpu, options_);
  if (!added) return added.error();
  const ml::ModelConfig& config = classifier.model.config;

  MemoryEstimate estimate;
  std::vector<float> features(config.features.size());
  std::vector<float> sequence;
  classifier.reader.read(*facts, features, sequence, estimate.out_of_domain);
  std::vector<float> logits(static_cast<std::size_t>(config.network.outputs));
  ml::NetworkBuffers buffers = classifier.model.network.buffers();
  classifier.model.network.run(features, sequence, buffers, logits);
  if (!std::all_of(logits.begin(), logits.end(), [](float logit) { return std::isfinite(logit); })) {
    return core::Error{core::ErrorCode::overflow, "the job's figures are beyond what the model can weigh", {}};
  }

  if (config.nets != ml::NetKind::any && config.nets != facts->kind) estimate.out_of_domain.push_back("nets");
  const bool replays = classifier.reader.needs(ml::Needs::replay);
  if (!replays) detail::add_unseen_settings(analysis.job(), estimate.out_of_domain);
  const std::string* trained_on = detail::entry_of(config.provenance, "profile");
  if (trained_on != nullptr && *trained_on != gpu.name) estimate.out_of_domain.push_back("gpu");

  estimate.bins = detail::bins_of(config.head.edges_mib, logits);
  const auto likeliest = static_cast<std::size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  estimate.lower = estimate.bins[likeliest].lower;
  estimate.upper = estimate.bins[likeliest].upper;
  estimate.expected = core::Bytes((estimate.lower.count() + estimate.upper.count()) / 2);
  estimate.device = estimate.expected;
  estimate.ranged = true;
  const double* covered = detail::entry_of(config.accuracy, "covered");
  if (covered != nullptr && estimate.out_of_domain.empty()) estimate.upper_coverage = *covered;
  estimate.provenance.weights = config.name;
  // The printed rows of a table need no edges.
  if (replays || !analysis.job().graph->shapes_printed()) {
    const auto wired = analysis.adapted();
    if (!wired) return wired.error();
    estimate.coverage.edges = (*wired)->edges();
  }
  return estimate;
}

}  // namespace gpumem::estimate
