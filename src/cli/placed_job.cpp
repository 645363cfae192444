#include "placed_job.hpp"

#include <algorithm>
#include <filesystem>

#include "gpumem/core/file.hpp"
#include "gpumem/utilisation/utilisation_estimators.hpp"
#include "placement_options.hpp"

namespace gpumem::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char* kSmactEstimator = "utilisation-mlp";

std::string model_path(const std::string& rad, const std::string& model) {
  const fs::path beside = (fs::path(rad).parent_path() / model).lexically_normal();
  std::error_code ignored;
  return fs::exists(beside, ignored) || !fs::exists(model, ignored) ? beside.string() : model;
}

}  // namespace

core::Result<datasets::RadFile> take_rad(const std::string& path, RadOptions options) {
  const auto text = core::read_file(path);
  if (!text) return text.error();
  auto rad = datasets::parse_rad(*text, path);
  if (!rad) return rad.error();
  options.request.summary = model_path(path, rad->model);
  std::int64_t& batch_size = options.request.training.batch_size;
  if (batch_size == 0) batch_size = rad->batch_size;
  if (options.policy.empty()) options.policy = rad->policy;
  if (!options.gpus) options.gpus = rad->gpus;
  return rad;
}

std::vector<std::string> kinds_of(const place::Server& server, const std::string& untold) {
  std::vector<std::string> kinds;
  for (const place::ServerGpu& gpu : server.gpus) {
    const std::string& kind = gpu.profile.empty() ? untold : gpu.profile;
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
  }
  return kinds;
}

core::Error without_estimate(const core::Error& error, const JobRequest& request) {
  const bool unsaid = request.training.batch_size == 0 && error.code == ErrorCode::invalid_argument;
  return unsaid ? wrong_usage("a summary has no batch size: give it with --batch") : error;
}

core::Result<std::optional<double>> told_smact(const std::string& text) {
  if (text == "none" || text == kEstimateSmact) return std::optional<double>();
  const auto share = share_from(text, "smact", "a share from 0 to 1, estimate, or none");
  if (!share) return share.error();
  return std::optional(*share);
}

core::Result<double> estimated_smact(Session& session, const EstimatedJob& estimated_job) {
  const auto estimator = session.utilisation_estimator(kSmactEstimator);
  if (!estimator) return estimator.error();
  const auto analysis = estimated_job.analysis();
  const auto estimate = (*estimator)->estimate(*analysis, *estimated_job.gpu);
  if (!estimate) return estimate.error();
  return std::clamp(estimate->smact.expected, 0.0, 1.0);
}

}  // namespace gpumem::cli
