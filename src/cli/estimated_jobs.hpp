// Input: a JobRequest and a Session.
// Output: every estimate that the request asks for, or why there is none, with what reports need: the model, the job,
// the GPU, what was guessed.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/all.hpp"
#include "job_json.hpp"

namespace gpumem::cli {

using job::job_from;
using job::JobRequest;
using job::kDefaultEstimator;
using job::kDefaultGpu;
using job_json::request_from;

/// One estimator's answer.
struct Answer {
  std::string_view estimator;
  Result<MemoryEstimate> estimate;
  double seconds = 0.0;
};

struct EstimatedJob {
  std::shared_ptr<const Model> model;
  std::shared_ptr<const ModelGraph> graph;  ///< the model's
  TrainingJob job;
  std::shared_ptr<const GpuProfile> gpu;
  std::string alloc_conf = {};  ///< as PYTORCH_CUDA_ALLOC_CONF
  std::vector<Answer> answers = {};
  std::vector<model::Warning> guesses = {};  ///< what the answers guess of the model, each with its line

  /// An analysis of the job, as of session::Asked.
  [[nodiscard]] analysis::Analyses::Lent analysis() const { return model->analyses().take(job); }
};

/// What connecting the model guessed, where an answer was made with it; none where nothing had to be guessed.
[[nodiscard]] std::vector<model::Warning> guesses_of(analysis::Analysis& analysis);

/// The summary, the job and the GPU of a request, without any answers. Errors: those of Session::ask().
[[nodiscard]] Result<EstimatedJob> read_job(Session& session, const JobRequest& request);

/// The same of a model that was read.
[[nodiscard]] Result<EstimatedJob> read_job(Session& session, const JobRequest& request,
                                            std::shared_ptr<const Model> model);

/// The same with the answers of the estimators that it names; an estimator's own error stands in its answer. Errors:
/// also those of Session::estimators().
[[nodiscard]] Result<EstimatedJob> estimate_job(Session& session, const JobRequest& request);

}  // namespace gpumem::cli
