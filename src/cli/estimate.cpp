#include <unistd.h>

#include <cstdio>
#include <optional>

#include "commands.hpp"
#include "gpumem/parallel/pipeline_parallel.hpp"
#include "report.hpp"
#include "trainer_files.hpp"

namespace gpumem::cli {

int report_error(const Error& error) {
  std::fprintf(stderr, "gpumem: error: %s\n", said(error).c_str());
  return core::exit_code(error.code);
}

namespace {

/// The request with what the trainer's file says laid under it. What the file says and nothing models is added to
/// `notes`.
Result<JobRequest> with_trainer(const EstimateOptions& options, std::vector<std::string>& notes) {
  JobRequest request = options.request;
  if (options.trainer.empty()) {
    if (options.adapter.empty()) return request;
    const auto adapter = trainer_files::read_adapter_job(options.adapter);
    if (!adapter) return adapter.error();
    auto missing = trainer_files::apply(*adapter, request);
    if (!missing) return std::move(missing).error().in_file(options.adapter);
    notes = *std::move(missing);
    return request;
  }
  const auto job = trainer_files::read_trainer_job(options.trainer, options.adapter);
  if (!job) return job.error();
  auto missing = trainer_files::apply(*job, request);
  if (!missing) return std::move(missing).error().in_file(options.trainer);
  notes = *std::move(missing);
  if (request.training.batch_size == 0) {
    return Error{
        ErrorCode::missing_information, "it has no batch size; give it with --batch", {options.trainer, 0, {}}};
  }
  if (!request.summary.empty()) return request;
  auto model = trainer_files::find_model(*job, options.trainer);
  if (!model) return model.error();
  request.summary = *std::move(model);
  return request;
}

/// What nothing models of the trainer's file belongs to what every estimate assumes.
void assume(const std::vector<std::string>& notes, EstimatedJob& estimated_job) {
  for (Answer& answer : estimated_job.answers) {
    if (!answer.estimate) continue;
    for (const std::string& note : notes) {
      answer.estimate->assumed.push_back({"trainer", "trainer's file: " + note});
    }
  }
}

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
int run_ranks(const EstimateOptions& options, JobRequest request, const std::vector<std::string>& notes,
              Session& session) {
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
    assume(notes, *estimated_job);
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

}  // namespace

int run_estimate(const EstimateOptions& options) {
  std::vector<std::string> notes;
  const Result<JobRequest> request = with_trainer(options, notes);
  if (!request) return report_error(request.error());
  Session session;
  if (request->training.layout.rank.kind == model::Ranks::all) return run_ranks(options, *request, notes, session);
  Result<EstimatedJob> estimated_job = estimate_job(session, *request);
  if (!estimated_job) return report_error(estimated_job.error());
  assume(notes, *estimated_job);
  // If one estimator was asked for, its failure is the answer. If all were, each has its own.
  const auto& answers = estimated_job->answers;
  if (answers.size() == 1 && !answers[0].estimate) return report_error(answers[0].estimate.error());
  print_warnings(*estimated_job);
  const std::string text =
      options.json
          ? to_json(*estimated_job).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n"
          : to_table(*estimated_job, terminal_of(STDOUT_FILENO));
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace gpumem::cli
