// Input: a training job and a GPU.
// Output: how busy the job keeps the GPU, by the roofline or by a trained model; the same for another GPU. To add an
// estimator: a class here or in a file of its own, and a row in the list of utilisation_estimators_inl.hpp.
// Units: shares of the named GPU, 0 to 1.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/analysis/analysis.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/device/gpu_profile.hpp"
#include "gpumem/ml/features.hpp"
#include "gpumem/ml/trained_model.hpp"
#include "gpumem/model/training_job.hpp"
#include "gpumem/utilisation/step_time.hpp"

namespace gpumem::utilisation {

// UtilisationEstimate: how busy a training job keeps one GPU, on average over the run.
// Units: shares of the named GPU, 0 to 1. 80 % of an A100 may be 60 % of an H200: a figure means nothing without its
// GPU.

/// One counter's mean over the run, and the range that is expected to hold it.
struct Share {
  double expected = 0.0;
  double lower = 0.0;
  double upper = 1.0;
};

/// A class of shares, and how probable a classifier holds it.
struct ShareBin {
  double lower = 0.0;
  double upper = 1.0;
  double probability = 0.0;
};

struct UtilisationEstimate {
  Share smact;            ///< DCGM SM activity: share of SM cycles with at least one warp resident
  Share smocc;            ///< DCGM SM occupancy: resident warps, of those that would fit
  Share gract;            ///< DCGM graphics engine activity: share of time with any kernel running
  Share gpu_utilisation;  ///< nvidia-smi's GPU-Util, of the same meaning, coarser in time
  Share fp32;             ///< DCGM FP32 pipe activity
  double coverage = 0.0;  ///< share of measured runs whose counter lay in its range, where that was measured; 0: not

  std::vector<ShareBin> smact_bins = {};  ///< of classifiers: all classes, in order

  std::string estimator;
  std::string weights;  ///< the trained model, for learned estimators
  std::string gpu;      ///< the profile's name: the shares are of this GPU
  /// In what respect the job or the GPU is unlike those that were learned from. Not empty: not to be trusted.
  std::vector<std::string> out_of_domain;

  struct Named {
    std::string_view name;
    Share share;
  };
  /// All counters with the names that tables and JSON use.
  [[nodiscard]] std::array<Named, 5> counters() const {
    return {
        {{"smact", smact}, {"smocc", smocc}, {"gract", gract}, {"gpu_utilisation", gpu_utilisation}, {"fp32", fp32}}};
  }
};

// Input: a training job's Analysis and a GPU.
// Output: a UtilisationEstimate. The counterpart of estimate::Estimator.

/// Thread safety: immutable once made; one estimator serves any number of threads.
class UtilisationEstimator {
 public:
  UtilisationEstimator() = default;
  UtilisationEstimator(const UtilisationEstimator&) = delete;
  UtilisationEstimator& operator=(const UtilisationEstimator&) = delete;
  virtual ~UtilisationEstimator() = default;

  [[nodiscard]] virtual std::string_view name() const = 0;

  /// How busy the job keeps this GPU. Errors: as of estimate::Estimator::estimate(), and missing_information where the
  /// profile lacks a figure that this method needs (SM count, bandwidth, peak).
  [[nodiscard]] core::Result<UtilisationEstimate> estimate(analysis::Analysis& analysis,
                                                           const device::GpuProfile& gpu) const;
  /// The same with an Analysis for this call only.
  [[nodiscard]] core::Result<UtilisationEstimate> estimate(const model::TrainingJob& job,
                                                           const device::GpuProfile& gpu) const;

 private:
  /// Fills the shares for a job that has been validated; estimate() adds the names.
  [[nodiscard]] virtual core::Result<UtilisationEstimate> do_estimate(analysis::Analysis& analysis,
                                                                      const device::GpuProfile& gpu) const = 0;
};

// Input: the kernels of a training step and a GPU's peaks.
// Output: UtilisationEstimate by the time that the kernels take (step_time.hpp), without the names. The estimators
// share this.
//
// `expected` is for the host that the costs describe; the range is what a host 2.5 times slower, and one 2.5 times
// faster, would make of the same kernels, widened by a factor a counter. It holds 89 % of GPUMemNet's runs or
// more, whichever the counter (gpumem evaluate RUNS.csv --utilisation --estimator roofline).

[[nodiscard]] UtilisationEstimate roofline_estimate(const plan::StepWork& work, const model::TrainingJob& job,
                                                    const GpuPeaks& gpu, const HostCosts& host = {});

// Input: a training job and a GPU's profile.
// Output: how busy the job keeps that GPU, by the time of a step's kernels (step_time.hpp), on any GPU with a known SM
// count, bandwidth and FP32 peak. Nothing is fitted to jobs like it.

class Roofline final : public UtilisationEstimator {
 public:
  static constexpr std::string_view kName = "roofline";

  explicit Roofline(const HostCosts& host = {}) : host_(host) {}

  [[nodiscard]] std::string_view name() const override { return kName; }

 private:
  [[nodiscard]] core::Result<UtilisationEstimate> do_estimate(analysis::Analysis& analysis,
                                                              const device::GpuProfile& gpu) const override;

  HostCosts host_;
};

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

struct UtilisationEstimatorEntry {
  std::string_view name;
  std::string_view description;  ///< one line for people
  /// `model`, of learned estimators: a built-in model, or a folder; empty: the built-in ones.
  core::Result<std::unique_ptr<UtilisationEstimator>> (*create)(const std::string& model);
};

/// Every estimator of utilisation that gpumem has.
[[nodiscard]] std::span<const UtilisationEstimatorEntry> utilisation_estimators();

/// The estimator of this name. Errors: invalid_argument, listing the names; those of loading its models.
[[nodiscard]] core::Result<std::unique_ptr<UtilisationEstimator>> make_utilisation_estimator(
    std::string_view name, const std::string& model = {});

// Input: how busy a job keeps one GPU, and another GPU's profile.
// Output: how busy it would keep the other GPU. For figures without the job itself (a monitor's reading, a table).
// Units: shares of the GPU named.
//
// With speed s of the new GPU's over the old one's, and n and m their SMs:
//
//   GRACT'  = (GRACT / s) / (1 - GRACT + GRACT / s)      the host's share of a step stays, the kernels' shrinks
//   SMACT'  = GRACT' min(1, SMACT / GRACT  n / m)        a grid fills as many SMs of the new GPU as it did of the old
//   one SMOCC', FP32' follow SMACT and the work's share: SMOCC SMACT' / SMACT, FP32 (GRACT' / GRACT) s p / q for peaks
//   p, q
//
// s lies between the ratios of the bandwidths and of the FP32 peaks; `expected` takes their geometric mean, the range
// both ends, and grids that fill the new GPU as they filled the old one (more of the same blocks).
// 80 % of an A100's SMs at a GRACT of 0.9 become about half of an H200's. An estimator that is given the job
// (roofline) knows more than this.

/// Errors: missing_information for a profile without SM count, bandwidth or FP32 peak.
[[nodiscard]] core::Result<UtilisationEstimate> translate(const UtilisationEstimate& estimate,
                                                          const device::GpuProfile& from, const device::GpuProfile& to);

}  // namespace gpumem::utilisation
