#include "answers.hpp"

#include <chrono>

#include "gpumem/estimate/fit.hpp"
#include "gpumem/job/lengths.hpp"
#include "gpumem/search/frameworks.hpp"

namespace gpumem::cli {

namespace {

/// What large jobs are trained with, where nothing is said.
void take_usual(JobRequest& request) {
  if (!job::is_given(*job::find_option("precision"), request)) {
    request.training.precision = model::Precision::bf16_mixed;
  }
  if (!job::is_given(*job::find_option("optimizer"), request)) request.training.optimizer = Optimizer::adamw;
  job::take_any_batch(request);
}

Result<search::Question> question_of(const PlanOptions& options) {
  if (options.show < 1) return Error{ErrorCode::invalid_argument, "--show counts layouts from 1", {}};
  Result<search::Question> question = search::question_about(options.framework, options.request.alloc_conf);
  if (!question) return question;
  question->gpus = options.gpus;
  question->global_batch = options.global_batch;
  question->show = static_cast<std::size_t>(options.show);
  question->links = {options.gpus_per_node, options.network_gbps};
  return question;
}

}  // namespace

Result<FoundFit> find_fit(const FitOptions& options, Session& session) {
  JobRequest request = options.request;
  const bool of_sequence = options.batch.has_value();
  if (of_sequence && request.training.sequence_length) {
    return Error{ErrorCode::invalid_argument,
                 "fit finds the longest sequence at a batch size, or the largest batch at a sequence length: "
                 "leave out --seq or --batch",
                 {}};
  }
  if (of_sequence) request.training.batch_size = *options.batch;
  else job::take_any_batch(request);
  const auto estimators = session.estimators(request);
  if (!estimators) return estimators.error();
  if (estimators->size() > 1) {
    return Error{ErrorCode::invalid_argument, "fit takes one estimator, not all of them", {}};
  }
  const Estimator& estimator = *estimators->front();
  Result<EstimatedJob> estimated_job = read_job(session, request);
  if (!estimated_job) return estimated_job.error();

  const auto begin = std::chrono::steady_clock::now();
  const auto analysis = estimated_job->analysis();
  Result<Fit> fit = of_sequence ? estimate::longest_sequence(*analysis, *estimated_job->gpu, estimator)
                                : estimate::largest_batch(*analysis, *estimated_job->gpu, estimator);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  if (!fit) return fit.error();
  const bool wired = fit->estimate && !fit->estimate->coverage.edges.empty();
  if (wired) estimated_job->guesses = guesses_of(*analysis);
  return FoundFit{*std::move(estimated_job), estimator.name(), *std::move(fit), seconds.count()};
}

Result<FoundTimeline> find_timeline(const JobRequest& request, Session& session) {
  const Result<device::AllocatorOptions> allocator = device::parse_allocator_options(request.alloc_conf);
  if (!allocator) return allocator.error();
  Result<EstimatedJob> estimated_job = read_job(session, request);
  if (!estimated_job) return estimated_job.error();
  const auto analysis = estimated_job->analysis();
  Result<Timeline> timeline = make_timeline(*analysis, *estimated_job->gpu, {.allocator = *allocator});
  if (!timeline) return timeline.error();
  estimated_job->guesses = guesses_of(*analysis);
  return FoundTimeline{*std::move(estimated_job), *std::move(timeline)};
}

core::Status take_plan_options(const nlohmann::ordered_json& asked, PlanOptions& options) {
  const auto wrong = [](const std::string& what) { return Error{ErrorCode::invalid_argument, what, {}}; };
  for (const auto& [name, value] : asked.items()) {
    if (name == "framework" && value.is_string()) options.framework = value.get<std::string>();
    else if (name == "network_gbps" && value.is_number()) options.network_gbps = value.get<double>();
    else if (name == "framework") return wrong("framework must be a name");
    else if (name == "network_gbps") return wrong("network_gbps must be a number");
    else if (!value.is_number_integer()) return wrong(name + " must be a whole number");
    else if (name == "gpus") options.gpus = value.get<std::int64_t>();
    else if (name == "global_batch") options.global_batch = value.get<std::int64_t>();
    else if (name == "gpus_per_node") options.gpus_per_node = value.get<std::int64_t>();
    else if (name == "show") options.show = value.get<std::int64_t>();
    else return wrong("a plan has no option " + core::quoted(name));
  }
  return core::Done{};
}

Result<FoundPlan> find_plan(const PlanOptions& options, Session& session,
                            const std::function<void(std::size_t done, std::size_t all)>& progress) {
  Result<search::Question> question = question_of(options);
  if (!question) return question.error();
  JobRequest request = options.request;
  take_usual(request);
  Result<EstimatedJob> estimated_job = read_job(session, request);
  if (!estimated_job) return estimated_job.error();
  question->progress = progress;
  auto plan = search::find_layouts(estimated_job->job, *estimated_job->gpu, *question);
  if (!plan) return plan.error();
  question->progress = nullptr;
  return FoundPlan{*std::move(estimated_job), *std::move(question), *std::move(plan)};
}

}  // namespace gpumem::cli
