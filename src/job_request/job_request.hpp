// Enters: command-line words, the fields of a C struct or one JSON object. Leaves: JobRequest, what the user asked for,
// in the user's terms; and the TrainingJob that it means. One place for all who ask: the command line, the C API.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/gpumem.hpp"

namespace gpumem::job_request {

inline constexpr const char* kDefaultGpu = "a100-40gb";
/// The estimator that is used where none is named.
inline constexpr const char* kDefaultEstimator = "replay";

struct JobRequest {
  std::string summary;
  std::int64_t batch_size = 0;
  std::string input = {};  ///< "3x224x224"; empty: as the summary says
  std::optional<std::int64_t> sequence_length = {};
  std::string gpu = kDefaultGpu;
  std::string optimizer = "adam";
  std::string precision = "fp32";
  std::string estimator = kDefaultEstimator;
  std::string model = {};                    ///< of learned estimators: a built-in model, or a folder; empty: their own
  std::optional<std::int64_t> samples = {};  ///< an epoch; nothing: every batch is full
  std::string zero_grad = "before-forward";
  std::string software = {};       ///< a stack that the GPU's profile names; empty: its first
  std::string alloc_conf = {};     ///< as PYTORCH_CUDA_ALLOC_CONF
  std::int64_t accumulate = 1;     ///< forward-backward passes a step
  std::int64_t data_parallel = 1;  ///< GPUs that train together, each on a batch of its own
  bool foreach = true;
  bool fused = false;
  bool validation = false;
  bool checkpointing = false;
  bool lenient = false;
};

/// One JSON object as a tree; nothing for text that is no JSON, or that nests deeper or has more fields than any job:
/// it is refused before it becomes a tree.
[[nodiscard]] std::optional<nlohmann::ordered_json> parse_json(std::string_view text);

/// The request with the fields of one JSON object laid over `defaults`. Fields: summary, batch_size (or batch),
/// input, seq_length (or seq), gpu, optimizer, precision, estimator, model, samples, zero_grad, software, alloc_conf,
/// accumulate, data_parallel, foreach, fused, validation, checkpointing, lenient; "id" is the caller's own. Errors:
/// malformed_input for an unknown field or a wrong type, naming it.
[[nodiscard]] Result<JobRequest> request_from(const nlohmann::ordered_json& json, const JobRequest& defaults);

/// The same of an object that may leave out the summary and the batch size, where the caller has them from elsewhere.
[[nodiscard]] Result<JobRequest> fields_from(const nlohmann::ordered_json& json, const JobRequest& defaults);

/// The job that the request means for this model. Errors: invalid_argument, naming the field.
[[nodiscard]] Result<TrainingJob> job_from(const JobRequest& request, std::shared_ptr<const ModelGraph> graph);

}  // namespace gpumem::job_request
