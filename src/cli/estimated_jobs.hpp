// Input: a JobRequest.
// Output: every estimate that it asks for, or why there is none. Jobs share what they have in common: a summary, its
// analysis, a profile or an estimator is made once. Any number of threads may ask.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "gpumem/analysis/analyses.hpp"
#include "gpumem/gpumem.hpp"
#include "gpumem/job/job_from.hpp"
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
  std::shared_ptr<const ModelGraph> graph;
  TrainingJob job;
  const GpuProfile* gpu = nullptr;  ///< views the EstimatedJobs that made it
  std::string alloc_conf;           ///< as PYTORCH_CUDA_ALLOC_CONF
  std::vector<Answer> answers;
  std::vector<model::Warning> guesses;  ///< what the answers guess of the model, each with its line
};

/// What connecting the model guessed, where an answer was made with it; none where nothing had to be guessed.
[[nodiscard]] std::vector<model::Warning> guesses_of(analysis::Analysis& analysis);

class EstimatedJobs {
 public:
  /// Errors: those of reading the summary, of the profile, and of the request; an estimator's own error stands
  /// in its answer.
  [[nodiscard]] Result<EstimatedJob> estimate(const JobRequest& request);

  /// The profile of this name or path, which views this object.
  [[nodiscard]] Result<const GpuProfile*> gpu_of(const std::string& name);
  /// The estimator of this name, or with "all" every one; at least one. `alloc_conf` is the job's
  /// PYTORCH_CUDA_ALLOC_CONF, `model` what learned estimators use instead of their own. They view this object.
  [[nodiscard]] Result<std::vector<const Estimator*>> estimators_of(const std::string& name,
                                                                    const std::string& alloc_conf = {},
                                                                    const std::string& model = {});
  /// The summary, the job and the GPU of a request, without any answers.
  [[nodiscard]] Result<EstimatedJob> read(const JobRequest& request);

 private:
  [[nodiscard]] Result<std::shared_ptr<const ModelGraph>> graph_of(const JobRequest& request);

  using Graph = Result<std::shared_ptr<const ModelGraph>>;

  analysis::Analyses analyses_;
  std::mutex mutex_;  ///< of what follows
  std::unordered_map<std::string, Graph> graphs_;
  std::unordered_map<std::string, Result<GpuProfile>> gpus_;
  std::unordered_map<std::string, std::unique_ptr<Estimator>> estimators_;  ///< by name and allocator options
};

}  // namespace gpumem::cli
