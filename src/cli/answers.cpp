#include "answers.hpp"

#include <algorithm>
#include <chrono>
#include <sstream>
#include <utility>

#include "gpumem/estimate/fit.hpp"
#include "gpumem/job/lengths.hpp"
#include "gpumem/search/frameworks.hpp"
#include "gpumem/serve/serving_questions.hpp"
#include "job_json.hpp"

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

/// The words of a layout to explain. Errors: invalid_argument for an option that a plan does not choose.
Result<JobRequest> layout_words(const std::string& text) {
  JobRequest request;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::size_t equals = std::min(word.find('='), word.size());
    const job::JobOption* option = job::find_flag(std::string_view(word).substr(0, equals));
    const bool laid_out = option != nullptr && option->name != "rank" && option->name != "estimator" &&
                          std::ranges::find(kChosenByPlan, option->name) != std::end(kChosenByPlan);
    const bool chosen = laid_out || (option != nullptr && option->name == "loop");
    if (!chosen) {
      return Error{ErrorCode::invalid_argument,
                   "a layout to explain has no option " + core::quoted(core::shortened(word, 60)) +
                       "; say it as tensor-parallel=8 data-parallel=8 sharding=fsdp2 batch=1 checkpointing=full",
                   {}};
    }
    const bool alone = equals == word.size();
    const core::Status set = job::set_option_text(*option, request, alone ? "true" : word.substr(equals + 1));
    if (!set) return set.error();
  }
  return request;
}

/// Ranks and passes that the words leave open, from the GPUs and the samples of the question.
void fill_up(const JobRequest& said, const FoundPlan& found, model::TrainingJob& asked) {
  const auto given = [&](std::string_view name) { return job::is_given(*job::find_option(name), said); };
  const auto shared = [](std::int64_t all, const core::Checked& parts) {
    const std::int64_t count = parts.value().value_or(0);
    return count < 1 ? 1 : std::max<std::int64_t>(all / count, 1);
  };
  model::Layout& layout = asked.layout;
  if (!given("sequence_parallel")) layout.sequence_parallel = layout.tensor_parallel > 1;
  if (!given("schedule") && layout.virtual_stages > 1) layout.schedule = model::Schedule::interleaved;
  const core::Checked inner = core::Checked(layout.tensor_parallel) * core::Checked(layout.context_parallel) *
                              core::Checked(layout.pipeline_parallel);
  if (!given("data_parallel")) layout.data_parallel = shared(found.plan.gpus, inner);
  const core::Checked pass = core::Checked(layout.data_parallel) * core::Checked(asked.batch_size);
  if (!given("accumulate")) asked.gradient_accumulation = shared(found.question.global_batch, pass);
}

/// The layout that the words say, of the first framework of the question that runs such a loop and shards so.
Result<search::Candidate> layout_asked(const std::string& text, const FoundPlan& found) {
  Result<JobRequest> said = layout_words(text);
  if (!said) return said.error();
  model::TrainingJob& job = said->training;
  if (!job::is_given(*job::find_option("batch_size"), *said)) job.batch_size = 1;
  fill_up(*said, found, job);
  const std::vector<const search::Framework*>& frameworks = found.question.frameworks;
  const std::int64_t node = found.plan.gpus_per_node;
  const auto shards = [&](const search::Framework* framework) {
    const auto all = framework->shardings(node, 1, node);
    return std::ranges::any_of(all, [&](const auto& one) { return one.kind == job.layout.sharding.kind; });
  };
  const bool loops = job::is_given(*job::find_option("loop"), *said);
  const auto runs = [&](const search::Framework* framework) { return !loops || framework->loop == job.loop; };
  auto framework = std::ranges::find_if(frameworks, [&](const auto* one) { return runs(one) && shards(one); });
  if (framework == frameworks.end() && loops) framework = std::ranges::find_if(frameworks, runs);
  if (framework == frameworks.end() && loops) {
    return Error{ErrorCode::invalid_argument,
                 "no framework of the question has `loop=" + std::string(model::row_of(job.loop).name) +
                     "`; leave it out, or say another framework",
                 {}};
  }
  search::Candidate asked;
  asked.framework = framework == frameworks.end() ? frameworks.front() : *framework;
  if (!job::is_given(*job::find_option("sharding"), *said)) {
    job.layout.sharding = asked.framework->shardings(node, 1, node).front();
  }
  asked.layout = job.layout;
  asked.micro_batch = {job.batch_size, {job.activation_checkpointing, job.checkpoints}};
  asked.micro_batches = job.gradient_accumulation;
  return asked;
}

}  // namespace

Result<FoundFit> find_fit(const FitOptions& options, Session& session) {
  JobRequest request = options.request;
  const Result<Grows> grows = estimate::what_grows(options.find, options.batch.has_value());
  if (!grows) return grows.error();
  if (options.batch) request.training.batch_size = *options.batch;
  const core::Status left = session::leave_to_find(*grows, options.batch.has_value(), request);
  if (!left) return left.error();
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
  Result<Fit> fit = estimate::find_largest(*analysis, *grows, *estimated_job->gpu, estimator);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  if (!fit) return fit.error();
  const bool wired = fit->estimate && !fit->estimate->coverage.edges.empty();
  if (wired) estimated_job->guesses = guesses_of(*analysis);
  return FoundFit{*std::move(estimated_job), estimator.name(), *std::move(fit), seconds.count()};
}

Result<nlohmann::ordered_json> find_server(const serve::ServingRequest& request, Session& session) {
  const auto estimate = session.serve(request);
  if (!estimate) return estimate.error();
  const auto gpu = session.gpu(request.gpu);
  if (!gpu) return gpu.error();
  return job_json::to_json(*estimate, **gpu);
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

Result<FoundAdvice> find_advice(const AdviseOptions& options, Session& session) {
  const auto estimators = session.estimators(options.request);
  if (!estimators) return estimators.error();
  if (estimators->size() > 1) {
    return Error{ErrorCode::invalid_argument, "advise takes one estimator, not all of them", {}};
  }
  Result<EstimatedJob> estimated_job = read_job(session, options.request);
  if (!estimated_job) return estimated_job.error();
  return advice_of(*std::move(estimated_job), *estimators->front());
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
  FoundPlan found{*std::move(estimated_job), *std::move(question), *std::move(plan), {}};
  if (options.explain.empty()) return found;
  const Result<search::Candidate> asked = layout_asked(options.explain, found);
  if (!asked) return asked.error();
  auto told = search::explain_layout(found.estimated_job.job, *found.estimated_job.gpu, found.question, *asked);
  if (!told) return told.error();
  found.told = *std::move(told);
  return found;
}

}  // namespace gpumem::cli
