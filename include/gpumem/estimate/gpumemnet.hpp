// Input: a training job.
// Output: the memory bin that a trained classifier predicts. The classifiers are ensembles of small perceptrons, or of
// Transformer encoders over the sequence of layers.
// Source: GPUMemNet (itu-rad/GPUMemNet). gpumem trained its own models (models/, each with its card); the published
// ones can be imported (`gpumem model import`).
//
// `lower` and `upper` are the edges of the most likely bin, `expected` is its middle; the probabilities of all bins
// are in MemoryEstimate::bins. A figure of a classifier is of the device (what nvidia-smi shows) on the GPU and with
// the software that its training runs were measured on. A job unlike these, feature by feature, is answered with
// MemoryEstimate::out_of_domain set.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gpumem/device/allocator_options.hpp"
#include "gpumem/estimate/estimator.hpp"
#include "gpumem/ml/features.hpp"
#include "gpumem/ml/trained_model.hpp"

namespace gpumem::estimate {

class Gpumemnet final : public Estimator {
 public:
  static constexpr std::string_view kMlpName = "gpumemnet-mlp";
  static constexpr std::string_view kTransformerName = "gpumemnet-transformer";

  /// `name` is kMlpName or kTransformerName. Each job is answered by the first of the models that is for its kind of
  /// net, else by the first at all. Errors: invalid_argument for no models, or one that is no classifier.
  [[nodiscard]] static core::Result<std::unique_ptr<Estimator>> create(std::string_view name,
                                                                       std::vector<ml::TrainedModel> models,
                                                                       device::AllocatorOptions options = {});

  [[nodiscard]] std::string_view name() const override { return name_; }

 private:
  struct Classifier {
    ml::TrainedModel model;
    ml::FeatureReader reader;
  };

  Gpumemnet(std::string_view name, device::AllocatorOptions options) : name_(name), options_(options) {}

  [[nodiscard]] core::Result<MemoryEstimate> do_estimate(analysis::Analysis& analysis,
                                                         const device::GpuProfile& gpu) const override;
  [[nodiscard]] const Classifier& classifier_for(ml::NetKind kind) const;

  std::string_view name_;
  device::AllocatorOptions options_;
  std::vector<Classifier> classifiers_;
};

}  // namespace gpumem::estimate
