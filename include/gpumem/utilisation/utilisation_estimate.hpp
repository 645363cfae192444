// UtilisationEstimate: how busy a training job keeps one GPU, on average over the run.
// Units: shares of the named GPU, 0 to 1. 80 % of an A100 may be 60 % of an H200: a figure means nothing without its
// GPU.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace gpumem::utilisation {

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

}  // namespace gpumem::utilisation
