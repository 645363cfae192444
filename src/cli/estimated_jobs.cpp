#include "estimated_jobs.hpp"

#include <chrono>

namespace gpumem::cli {

std::vector<model::Warning> guesses_of(analysis::Analysis& analysis) {
  const auto source = analysis.source();
  if (!source || (source->guesses.edges == 0 && source->guesses.bounded == 0)) return {};
  const auto warnings = source->graph->warnings();
  return {warnings.begin(), warnings.end()};
}

Result<std::shared_ptr<const ModelGraph>> EstimatedJobs::graph_of(const JobRequest& request) {
  const std::string key = (request.lenient ? "lenient:" : "strict:") + request.summary;
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = graphs_.find(key); known != graphs_.end()) return known->second;
  }
  // Others need not wait while it is read. A broken summary is remembered as well, for many jobs may name it; a file
  // that is not there yet is not.
  Result<ModelGraph> graph = read_summary(request.summary, request.lenient);
  if (!graph && graph.error().code == ErrorCode::unreadable_file) return graph.error();
  Graph shared = graph ? Graph(std::make_shared<const ModelGraph>(*std::move(graph))) : Graph(graph.error());
  const std::lock_guard lock(mutex_);
  return graphs_.emplace(key, std::move(shared)).first->second;
}

Result<const GpuProfile*> EstimatedJobs::gpu_of(const std::string& name) {
  const std::lock_guard lock(mutex_);
  auto known = gpus_.find(name);
  if (known == gpus_.end()) {
    Result<GpuProfile> profile = find_profile(name);
    if (!profile && profile.error().code == ErrorCode::unreadable_file) return profile.error();
    known = gpus_.emplace(name, std::move(profile)).first;
  }
  if (!known->second) return known->second.error();
  return &*known->second;
}

Result<std::vector<const Estimator*>> EstimatedJobs::estimators_of(const std::string& name,
                                                                   const std::string& alloc_conf,
                                                                   const std::string& model) {
  const Result<device::AllocatorOptions> allocator = device::parse_allocator_options(alloc_conf);
  if (!allocator) return allocator.error();
  std::vector<const Estimator*> chosen;
  const std::lock_guard lock(mutex_);
  for (const estimate::EstimatorEntry& entry : estimate::estimators()) {
    if (name != "all" && name != entry.name) continue;
    std::string key(entry.name);
    key.append(" ").append(alloc_conf).append(" ").append(model);
    auto& slot = estimators_[key];
    if (slot == nullptr) {
      auto made = entry.create({*allocator, model});
      if (!made) return made.error();
      slot = *std::move(made);
    }
    chosen.push_back(slot.get());
  }
  if (chosen.empty()) return make_estimator(name).error();
  return chosen;
}

Result<EstimatedJob> EstimatedJobs::read(const JobRequest& request) {
  const auto gpu = gpu_of(request.gpu);
  if (!gpu) return gpu.error();
  const auto graph = graph_of(request);
  if (!graph) return graph.error();
  auto job = job_from(request, *graph);
  if (!job) return job.error();
  return EstimatedJob{*graph, *std::move(job), *gpu, request.alloc_conf, {}, {}};
}

Result<EstimatedJob> EstimatedJobs::estimate(const JobRequest& request) {
  const auto estimators = estimators_of(request.estimator, request.alloc_conf, request.model);
  if (!estimators) return estimators.error();
  Result<EstimatedJob> estimated_job = read(request);
  if (!estimated_job) return estimated_job.error();
  const auto analysis = analyses_.take(estimated_job->job);
  for (const Estimator* estimator : *estimators) {
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
