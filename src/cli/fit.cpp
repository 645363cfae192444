#include <chrono>
#include <cstdio>

#include "commands.hpp"
#include "gpumem/estimate/fit.hpp"
#include "gpumem/parallel/layout.hpp"
#include "report.hpp"

namespace gpumem::cli {

int run_fit(const FitOptions& options) {
  JobRequest request = options.request;
  const bool of_sequence = options.batch.has_value();
  if (of_sequence && request.training.sequence_length) {
    return report_error({ErrorCode::invalid_argument,
                         "fit finds the longest sequence at a batch size, or the largest batch at a sequence length: "
                         "leave out --seq or --batch",
                         {}});
  }
  request.training.batch_size = options.batch.value_or(1);
  EstimatedJobs estimated_jobs;
  const auto estimators = estimated_jobs.estimators_of(request.estimator, request.alloc_conf, request.model);
  if (!estimators) return report_error(estimators.error());
  if (estimators->size() > 1) {
    return report_error({ErrorCode::invalid_argument, "fit takes one estimator, not all of them", {}});
  }
  const Estimator& estimator = *estimators->front();
  Result<EstimatedJob> estimated_job = estimated_jobs.read(request);
  if (!estimated_job) return report_error(estimated_job.error());

  const auto begin = std::chrono::steady_clock::now();
  const Result<Fit> fit = of_sequence ? estimate::longest_sequence(estimated_job->job, *estimated_job->gpu, estimator)
                                      : estimate::largest_batch(estimated_job->job, *estimated_job->gpu, estimator);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  if (!fit) return report_error(fit.error());
  const bool wired = fit->estimate && !fit->estimate->coverage.edges.empty();
  if (wired) {
    analysis::Analysis analysis(estimated_job->job);
    estimated_job->guesses = guesses_of(analysis);
  }
  print_warnings(*estimated_job);
  if (options.json) {
    const nlohmann::ordered_json json = to_json(*estimated_job, estimator.name(), *fit, seconds.count());
    std::printf("%s\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
  }
  if (!fit->estimate) return report_error(does_not_fit(*fit, *estimated_job));
  if (!options.json) {
    const std::int64_t step = of_sequence ? parallel::tokens_multiple(estimated_job->job.layout) : 1;
    std::printf("%s%s", headline(*estimated_job, of_sequence).c_str(),
                to_text(*fit, *estimated_job->gpu, step).c_str());
  }
  return 0;
}

}  // namespace gpumem::cli
