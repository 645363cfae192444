// JobRequest: all that a user asks for, option by option (job_options.hpp), in one value. job_from() makes a
// TrainingJob from it.
// Units: those of TrainingJob.
#pragma once

#include <bitset>
#include <string>

#include "gpumem/model/training_job.hpp"

namespace gpumem::job {

inline constexpr const char* kDefaultGpu = "a100-40gb";
/// The estimator that is used where none is named.
inline constexpr const char* kDefaultEstimator = "replay";

/// Which options were given, by their place in the list: a value may be given and be the default. Requests are compared
/// only by their values.
struct GivenOptions {
  std::bitset<96> bits = {};

  friend bool operator==(const GivenOptions& /*left*/, const GivenOptions& /*right*/) { return true; }
};

struct JobRequest {
  std::string summary = {};       ///< the model summary's path
  model::TrainingJob training{};  ///< without its graph; batch size 0: not given
  std::string gpu = kDefaultGpu;
  std::string estimator = kDefaultEstimator;
  std::string model = {};            ///< of learned estimators: a built-in model, or a folder; empty: their own
  std::string alloc_conf = {};       ///< as PYTORCH_CUDA_ALLOC_CONF
  std::string lengths = {};          ///< of a data set's samples (lengths.hpp): a file, or "512x40+2048"; empty: alike
  std::string lengths_options = {};  ///< "batching=sorted,steps=500"
  bool lenient = false;
  GivenOptions given{};

  friend bool operator==(const JobRequest&, const JobRequest&) = default;
};

}  // namespace gpumem::job
