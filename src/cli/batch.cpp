#include <unistd.h>

#include <algorithm>
#include <optional>
#include <thread>

#include "commands.hpp"
#include "json_lines.hpp"
#include "progress.hpp"
#include "report.hpp"

namespace gpumem::cli {

namespace {

using Json = nlohmann::ordered_json;

Json evaluate(Session& session, const Json& job, const JobRequest& defaults) {
  const Result<JobRequest> request = request_from(job, defaults);
  if (!request) return error_object(request.error());
  // Jobs themselves may come from standard input, so that it cannot hold a summary as well.
  if (request->summary == "-") {
    return error_object({ErrorCode::malformed_input, "\"summary\" must name a file, not standard input", {}});
  }
  const Result<EstimatedJob> estimated_job = estimate_job(session, *request);
  if (!estimated_job) return error_object(estimated_job.error());
  const auto& answers = estimated_job->answers;
  if (answers.size() == 1 && !answers[0].estimate) return error_object(answers[0].estimate.error());
  return to_json(*estimated_job);
}

}  // namespace

std::string BatchAnswers::answer(std::string_view line, std::int64_t number) {
  const std::optional<std::string> fault = fault_of(line);
  const std::optional<Json> job = fault ? std::nullopt : job_json::parse_json(line);
  Json result;
  if (!job) {
    const std::string what = fault.value_or("is not JSON, or nests deeper than a job");
    result = error_object({ErrorCode::malformed_input, "the line " + what + "; a job is one JSON object a line", {}});
  } else {
    result = evaluate(session_, *job, defaults_);
  }
  return answer_line(std::move(result), number,
                     job && job->is_object() && job->contains("id") ? &(*job)["id"] : nullptr);
}

int run_batch(const BatchOptions& options) {
  BatchAnswers answers(options.defaults);
  // Answers that come to the terminal are progress enough.
  std::optional<Progress> progress;
  if (isatty(STDOUT_FILENO) == 0) progress.emplace("answered", "jobs");
  const auto answer = [&](std::string_view line, std::int64_t number) {
    auto text = answers.answer(line, number);
    if (progress) progress->step();
    return text;
  };
  const auto done = answer_lines(options.file, answer, std::max(1U, std::thread::hardware_concurrency()));
  progress.reset();
  return done ? 0 : report_error(done.error());
}

}  // namespace gpumem::cli
