#include <unistd.h>

#include <cstdio>

#include "commands.hpp"
#include "report.hpp"
#include "trainer_files.hpp"

namespace gpumem::cli {

int report_error(const Error& error) {
  std::fprintf(stderr, "gpumem: error: %s\n", core::to_string(error).c_str());
  return core::exit_code(error.code);
}

namespace {

/// The request with what the trainer's file says laid under it. What the file says and nothing models is added to
/// `notes`.
Result<JobRequest> with_trainer(const EstimateOptions& options, std::vector<std::string>& notes) {
  JobRequest request = options.request;
  if (options.trainer.empty()) {
    if (options.adapter.empty()) return request;
    return Error{ErrorCode::invalid_argument, "--adapter goes with the file of --trainer", {}};
  }
  const auto job = trainer_files::read_trainer_job(options.trainer, options.adapter);
  if (!job) return job.error();
  auto missing = trainer_files::apply(*job, request);
  if (!missing) return std::move(missing).error().in_file(options.trainer);
  notes = *std::move(missing);
  if (request.training.batch_size == 0) {
    return Error{
        ErrorCode::missing_information, "it names no batch size; name it with --batch", {options.trainer, 0, {}}};
  }
  if (!request.summary.empty()) return request;
  auto model = trainer_files::find_model(*job, options.trainer);
  if (!model) return model.error();
  request.summary = *std::move(model);
  return request;
}

/// What nothing models of the trainer's file belongs to what every estimate assumes.
void assume(const std::vector<std::string>& notes, Evaluation& evaluation) {
  for (Answer& answer : evaluation.answers) {
    if (!answer.estimate) continue;
    for (const std::string& note : notes) {
      answer.estimate->assumed.push_back({"trainer", "trainer's file: " + note});
    }
  }
}

}  // namespace

int run_estimate(const EstimateOptions& options) {
  std::vector<std::string> notes;
  const Result<JobRequest> request = with_trainer(options, notes);
  if (!request) return report_error(request.error());
  Evaluator evaluator;
  Result<Evaluation> evaluation = evaluator.evaluate(*request);
  if (!evaluation) return report_error(evaluation.error());
  assume(notes, *evaluation);
  // Asked for one estimator, its failure is the answer; asked for all, each stands for itself.
  const auto& answers = evaluation->answers;
  if (answers.size() == 1 && !answers[0].estimate) return report_error(answers[0].estimate.error());
  print_warnings(*evaluation);
  const std::string text =
      options.json ? to_json(*evaluation).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n"
                   : to_table(*evaluation, isatty(STDOUT_FILENO) != 0);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace gpumem::cli
