#include <cstdio>

#include "commands.hpp"
#include "gpumem/search/frameworks.hpp"
#include "plan_report.hpp"
#include "progress.hpp"
#include "report.hpp"

namespace gpumem::cli {

namespace {

/// What large jobs are trained with, where nothing is said.
void take_usual(JobRequest& request) {
  if (!job::is_given(*job::find_option("precision"), request)) {
    request.training.precision = model::Precision::bf16_mixed;
  }
  if (!job::is_given(*job::find_option("optimizer"), request)) request.training.optimizer = Optimizer::adamw;
  request.training.batch_size = 1;
}

Result<search::Question> question_of(const PlanOptions& options) {
  auto frameworks = search::frameworks_of(options.framework);
  if (!frameworks) return frameworks.error();
  const auto allocator = device::parse_allocator_options(options.request.alloc_conf);
  if (!allocator) return allocator.error();
  if (options.show < 1) return Error{ErrorCode::invalid_argument, "--show counts layouts from 1", {}};
  search::Question question;
  question.gpus = options.gpus;
  question.global_batch = options.global_batch;
  question.frameworks = *std::move(frameworks);
  question.show = static_cast<std::size_t>(options.show);
  question.links = {options.gpus_per_node, options.network_gbps};
  question.allocator = *allocator;
  return question;
}

}  // namespace

int run_plan(const PlanOptions& options) {
  Result<search::Question> question = question_of(options);
  if (!question) return report_error(question.error());
  JobRequest request = options.request;
  take_usual(request);
  EstimatedJobs estimated_jobs;
  const Result<EstimatedJob> estimated_job = estimated_jobs.read(request);
  if (!estimated_job) return report_error(estimated_job.error());
  const SteadyProgress progress;
  question->progress = [&progress](std::size_t done, std::size_t all) { progress.show(done, all); };
  const auto plan = search::find_layouts(estimated_job->job, *estimated_job->gpu, *question);
  progress.clear();
  if (!plan) return report_error(plan.error());
  print_warnings(*estimated_job);
  if (options.json) {
    const nlohmann::ordered_json json = to_json(*estimated_job, *plan, *question);
    std::printf("%s\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
  }
  if (plan->layouts.empty()) return report_error(no_layout(*plan, *estimated_job));
  if (!options.json) {
    std::printf("%s%s", headline(*estimated_job, false).c_str(),
                to_text(*plan, *estimated_job->gpu, question->global_batch, static_cast<std::size_t>(options.settings))
                    .c_str());
  }
  return 0;
}

}  // namespace gpumem::cli
