// Input: one JSON object that describes a job.
// Output: JobRequest, what the user asked for; and for reports the JSON of how a job is trained, and of answers about a
// server. The command line, the C API and Python share this.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "gpumem/core/result.hpp"
#include "gpumem/device/gpu_profile.hpp"
#include "gpumem/job/job_options.hpp"
#include "gpumem/posttrain/estimate_post_training.hpp"
#include "gpumem/serve/serving_questions.hpp"

namespace gpumem::job_json {

/// One JSON object as a tree; nothing for text that is not JSON, or that nests deeper or has more fields than any job:
/// it is refused before it becomes a tree.
[[nodiscard]] std::optional<nlohmann::ordered_json> parse_json(std::string_view text);

/// The request with the fields of one JSON object laid over `defaults`. Fields: "summary", every option of a job by its
/// name or an alias (job/job_options.hpp), and "id", which is the caller's own. Errors: malformed_input for an unknown
/// field or a wrong type, naming it; invalid_argument for a value that the option does not take; malformed_input if
/// there is no summary or no batch size.
[[nodiscard]] core::Result<job::JobRequest> request_from(const nlohmann::ordered_json& json,
                                                         const job::JobRequest& defaults);

/// The same of an object that may leave out the summary and the batch size, where the caller has them from elsewhere.
[[nodiscard]] core::Result<job::JobRequest> fields_from(const nlohmann::ordered_json& json,
                                                        const job::JobRequest& defaults);

/// A value as JSON; null for none.
[[nodiscard]] nlohmann::ordered_json to_json(const std::optional<job::OptionValue>& value);

/// A server as `gpumem serve --json` prints it.
[[nodiscard]] nlohmann::ordered_json to_json(const serve::ServingEstimate& estimate, const device::GpuProfile& gpu);
[[nodiscard]] nlohmann::ordered_json to_json(const serve::ServingLimits& limits);
[[nodiscard]] nlohmann::ordered_json to_json(const std::vector<serve::ServingChange>& advice);
[[nodiscard]] nlohmann::ordered_json to_json(const std::vector<serve::ServingLayout>& layouts);

/// A post-training job as `gpumem posttrain --json` prints it.
[[nodiscard]] nlohmann::ordered_json to_json(const posttrain::PostTrainingEstimate& estimate,
                                             const device::GpuProfile& gpu);
[[nodiscard]] nlohmann::ordered_json to_json(const posttrain::PostTrainingLimits& limits);
[[nodiscard]] nlohmann::ordered_json to_json(const std::vector<posttrain::PostTrainingChange>& advice);
[[nodiscard]] nlohmann::ordered_json to_json(const std::vector<posttrain::PostTrainingLayout>& layouts);

}  // namespace gpumem::job_json
