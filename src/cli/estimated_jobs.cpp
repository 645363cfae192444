#include "estimated_jobs.hpp"

#include <chrono>

namespace gpumem::cli {

std::vector<model::Warning> guesses_of(analysis::Analysis& analysis) {
  const auto source = analysis.source();
  if (!source || (source->guesses.edges == 0 && source->guesses.bounded == 0)) return {};
  const auto warnings = source->graph->warnings();
  return {warnings.begin(), warnings.end()};
}

Result<EstimatedJob> read_job(Session& session, const JobRequest& request) {
  return read_job(session, request, nullptr);
}

Result<EstimatedJob> read_job(Session& session, const JobRequest& request, std::shared_ptr<const Model> model) {
  auto asked = session.ask(request, std::move(model));
  if (!asked) return asked.error();
  return EstimatedJob{.model = asked->model,
                      .graph = asked->model->graph(),
                      .job = std::move(asked->job),
                      .gpu = asked->gpu,
                      .alloc_conf = request.alloc_conf};
}

Result<EstimatedJob> estimate_job(Session& session, const JobRequest& request) {
  const auto estimators = session.estimators(request);
  if (!estimators) return estimators.error();
  Result<EstimatedJob> estimated_job = read_job(session, request);
  if (!estimated_job) return estimated_job.error();
  const auto analysis = estimated_job->analysis();
  for (const auto& estimator : *estimators) {
    const auto begin = std::chrono::steady_clock::now();
    auto estimate = estimator->estimate(*analysis, *estimated_job->gpu);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    const bool wired = estimate && !estimate->coverage.edges.empty();
    if (wired && estimated_job->guesses.empty()) estimated_job->guesses = guesses_of(*analysis);
    estimated_job->answers.push_back({estimator->name(), std::move(estimate), seconds.count()});
  }
  return estimated_job;
}

}  // namespace gpumem::cli
