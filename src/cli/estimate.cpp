#include <unistd.h>

#include <cstdio>
#include <optional>

#include "commands.hpp"
#include "gpumem/parallel/pipeline_parallel.hpp"
#include "report.hpp"
#include "told_jobs.hpp"

namespace gpumem::cli {

int report_error(const Error& error) {
  std::fprintf(stderr, "gpumem: error: %s\n", said(error).c_str());
  return core::exit_code(error.code);
}

namespace {

void write_out(const nlohmann::ordered_json& json) {
  const std::string text = json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
}

/// The table of ranks, and a line of it.
Table rank_table(const GpuProfile& gpu) {
  return Table({{.title = "rank"},
                {.title = "expected", .right = true},
                {.title = "lower", .right = true},
                {.title = "upper", .right = true},
                {.title = "fits"},
                {.title = "of " + core::to_string(gpu.capacity()), .gauge = true, .below = true}});
}

void add_rank(Table& table, const EstimatedJob& estimated_job) {
  const MemoryEstimate& estimate = *estimated_job.answers[0].estimate;
  const std::string rank = parallel::rank_text(estimated_job.job.layout);
  table.add({rank.empty() ? "every rank" : rank, estimate.expected, estimate.lower, estimate.upper,
             fits_cell(estimate.verdict)},
            gauge_of(estimate, *estimated_job.gpu));
}

/// --rank all: a line, or an object of a list, for the first rank of each pipeline stage; those of a stage are alike.
int run_ranks(const EstimateOptions& options, ToldJob told, Session& session) {
  JobRequest& request = told.request;
  if (const core::Status possible = parallel::check(request.training); !possible) return report_error(possible.error());
  if (request.estimator == "all") {
    return report_error(
        {ErrorCode::invalid_argument, "--rank all works with one estimator; name it (--estimator replay)", {}});
  }
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  std::string heading;
  std::optional<Table> table;
  for (const model::Rank& rank : parallel::ranks_of_stages(request.training.layout)) {
    request.training.layout.rank = rank;
    Result<EstimatedJob> estimated_job = estimate_job(session, request);
    if (!estimated_job) return report_error(estimated_job.error());
    assume(told.notes, *estimated_job);
    if (!estimated_job->answers[0].estimate) return report_error(estimated_job->answers[0].estimate.error());
    if (!table) {
      print_warnings(*estimated_job);
      heading = headline(*estimated_job) + "\n";
      table = rank_table(*estimated_job->gpu);
    }
    add_rank(*table, *estimated_job);
    list.push_back(to_json(*estimated_job));
  }
  if (options.json) {
    write_out(list);
    return 0;
  }
  const std::string text = heading + table->text(terminal_of(STDOUT_FILENO));
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

/// Why there is no answer, after what a file or a command left open: a key that is not known may be the reason.
int report_failure(const Error& error, const ToldJob& told) {
  for (const auto& note : told.notes) std::fprintf(stderr, "gpumem: assumed: %s\n", note.text.c_str());
  return report_error(error);
}

}  // namespace

int run_estimate(const EstimateOptions& options) {
  if (!options.command.empty() && !(options.trainer.empty() && options.adapter.empty())) {
    return report_error(
        Error{ErrorCode::invalid_argument,
              "--trainer and --adapter name files that tell the job, and the command behind -- tells it "
              "as well; leave one of them out",
              {}});
  }
  const Result<Launched> launched = launched_by(options.command);
  if (!launched) return report_error(launched.error());
  if (const auto code = answered_elsewhere(*launched, options.request, Question::estimate, options.json)) return *code;
  Session session;
  Result<ToldJob> told =
      *launched ? told_by_command(session, *launched, options.request) : told_by_trainer_file(session, options);
  if (!told) return report_error(told.error());
  if (told->request.training.layout.rank.kind == model::Ranks::all) {
    return run_ranks(options, *std::move(told), session);
  }
  const Result<EstimatedJob> estimated_job = estimate_told_job(session, *told);
  if (!estimated_job) return report_failure(estimated_job.error(), *told);
  // If one estimator was asked for, its failure is the answer. If all were, each has its own.
  const auto& answers = estimated_job->answers;
  if (answers.size() == 1 && !answers[0].estimate) return report_failure(answers[0].estimate.error(), *told);
  print_warnings(*estimated_job);
  const std::string text =
      options.json
          ? to_json(*estimated_job).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n"
          : to_table(*estimated_job, terminal_of(STDOUT_FILENO));
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace gpumem::cli
