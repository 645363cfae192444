#include <unistd.h>

#include <cstdio>

#include "answers.hpp"
#include "report.hpp"
#include "told_jobs.hpp"

namespace gpumem::cli {

namespace {

/// A server has no batch: its sizes are looked for one by one.
core::Status sizes_of_a_server(const Launched& launched, const FitOptions& asked) {
  if (!asked.batch || !launched || launched->program != trainer_files::LaunchedProgram::server) return core::Done{};
  return Error{ErrorCode::invalid_argument,
               "--batch is for a training, but the command starts an inference server: leave it out; gpumem finds the "
               "longest max_model_len and the most max_num_seqs",
               {}};
}

}  // namespace

int run_fit(const FitOptions& asked) {
  const Result<Launched> launched = launched_by(asked.command);
  if (!launched) return report_error(launched.error());
  if (const core::Status sizes = sizes_of_a_server(*launched, asked); !sizes) return report_error(sizes.error());
  if (const auto code = answered_elsewhere(*launched, asked.request, Question::fit, asked.json)) return *code;
  Session session;
  FitOptions options = asked;
  Result<ToldJob> told = told_for_fit(session, *launched, options);
  if (!told) return report_error(told.error());
  Result<FoundFit> found = find_fit(options, session);
  if (!found) return report_error(found.error());
  if (found->fit.estimate) assume(told->notes, *found->fit.estimate);
  const auto& [estimated_job, estimator, fit, seconds] = *found;
  print_warnings(estimated_job);
  if (options.json) {
    const nlohmann::ordered_json json = to_json(estimated_job, estimator, fit, seconds);
    std::printf("%s\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
  }
  if (!fit.estimate) return report_error(assuming(told->notes, does_not_fit(fit, estimated_job)));
  if (!options.json) {
    const GpuProfile& gpu = *estimated_job.gpu;
    std::printf("%s%s%s", headline(estimated_job, fit.grows).c_str(),
                drawn_estimate(*fit.estimate, gpu, terminal_of(STDOUT_FILENO)).c_str(), to_text(fit, gpu).c_str());
  }
  return 0;
}

}  // namespace gpumem::cli
