// Input: what a user says about a job that will be placed.
// Output: what both commands that place a job need: a .rad file, the kinds of GPUs of a server, the job's SM activity.
// Units: shares from 0 to 1.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "estimated_jobs.hpp"
#include "gpumem/place/server.hpp"
#include "gpumem_datasets/rad_file.hpp"

namespace gpumem::cli {

/// What the options say about a job, as far as a .rad file may say it in their place.
struct RadOptions {
  JobRequest& request;
  std::string& policy;
  std::optional<std::int64_t>& gpus;
};
/// Fills in what the options leave out; the model is always the file's, from the file's folder, or from where the user
/// is. Errors: those of reading and parsing it.
[[nodiscard]] core::Result<datasets::RadFile> take_rad(const std::string& path, RadOptions options);

/// The profiles that the server names, each once, in its order; `untold` is that of GPUs that name none.
[[nodiscard]] std::vector<std::string> kinds_of(const place::Server& server, const std::string& untold);

/// What is said of a job that has no estimate: wrong usage, where nobody has said the batch size of a summary.
[[nodiscard]] core::Error without_estimate(const core::Error& error, const JobRequest& request);

/// In place of a share after --smact.
inline constexpr const char* kEstimateSmact = "estimate";
/// The share that was told; nothing: none was, or it is to be estimated. Errors: invalid_argument.
[[nodiscard]] core::Result<std::optional<double>> told_smact(const std::string& text);
/// The SM activity that the job is expected to have with a GPU to itself. Errors: those of the estimator.
[[nodiscard]] core::Result<double> estimated_smact(Session& session, const EstimatedJob& estimated_job);

}  // namespace gpumem::cli
