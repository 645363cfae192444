// Input: a training job and a GPU.
// Output: how busy the job keeps that GPU, from ensembles of small perceptrons that were trained on the counters of
// measured runs. They also read the roofline's figures (step_time.hpp), so they learn where the roofline is wrong.
// Source: GPUMemNet (itu-rad/GPUMemNet), for the idea of the ensembles and for the runs.
//
// Two heads. Values (utilisation-mlp): all counters; the ranges are quantiles of what cross-validation left over. Bins
// (utilisation-bins): SMACT in classes, whose probabilities are in UtilisationEstimate::smact_bins; the range is the
// classes that hold the middle 90 %, and the other counters are the roofline's, moved as SMACT is.
//
// A model is for the GPU that its runs were measured on. On another one, its answer there is carried over by the
// roofline: both estimates' odds, p / (1 - p), keep their ratio, and the range takes the roofline's as well. A job of a
// kind of net that no model is for is answered by the roofline only. Both are said in `out_of_domain`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gpumem/device/gpu_profile.hpp"
#include "gpumem/ml/features.hpp"
#include "gpumem/ml/trained_model.hpp"
#include "gpumem/utilisation/utilisation_estimator.hpp"

namespace gpumem::utilisation {

class UtilisationMlp final : public UtilisationEstimator {
 public:
  static constexpr std::string_view kName = "utilisation-mlp";
  static constexpr std::string_view kBinsName = "utilisation-bins";

  /// `name` is kName or kBinsName. Each job is answered by the first of the models that is for its kind of net. Errors:
  /// invalid_argument for no models, for one whose head tells something else, or whose provenance names no profile;
  /// those of finding that profile.
  [[nodiscard]] static core::Result<std::unique_ptr<UtilisationEstimator>> create(std::string_view name,
                                                                                  std::vector<ml::TrainedModel> models);

  [[nodiscard]] std::string_view name() const override { return name_; }

 private:
  struct Learned {
    ml::TrainedModel model;
    ml::FeatureReader reader;
    device::GpuProfile gpu;  ///< of its runs
  };

  explicit UtilisationMlp(std::string_view name) : name_(name) {}

  [[nodiscard]] core::Result<UtilisationEstimate> do_estimate(analysis::Analysis& analysis,
                                                              const device::GpuProfile& gpu) const override;
  [[nodiscard]] const Learned* model_for(ml::NetKind kind) const;

  std::string_view name_;
  std::vector<Learned> models_;
};

}  // namespace gpumem::utilisation
