// Enters: command-line words or one JSON object. Leaves: JobRequest, what the user asked for, in the user's
// terms; and the TrainingJob that it means.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "gpumem/gpumem.hpp"

namespace gpumem::cli {

inline constexpr const char* kDefaultGpu = "a100-40gb";
/// The estimator that is used where none is named.
inline constexpr const char* kDefaultEstimator = "horus";

struct JobRequest {
  std::string summary;
  std::int64_t batch_size = 0;
  std::string input = {};  ///< "3x224x224"; empty: as the summary says
  std::optional<std::int64_t> sequence_length = {};
  std::string gpu = kDefaultGpu;
  std::string optimizer = "adam";
  std::string precision = "fp32";
  std::string estimator = kDefaultEstimator;
  bool lenient = false;
};

/// The request with the fields of one JSON object laid over `defaults`. Fields: summary, batch_size (or batch),
/// input, seq_length (or seq), gpu, optimizer, precision, estimator, lenient; "id" is the caller's own. Errors:
/// malformed_input for an unknown field or a wrong type, naming it.
[[nodiscard]] Result<JobRequest> request_from(const nlohmann::ordered_json& json, const JobRequest& defaults);

/// The job that the request means for this model. Errors: invalid_argument, naming the field.
[[nodiscard]] Result<TrainingJob> job_from(const JobRequest& request, std::shared_ptr<const ModelGraph> graph);

}  // namespace gpumem::cli
