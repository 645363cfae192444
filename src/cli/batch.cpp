#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "commands.hpp"
#include "report.hpp"

namespace gpumem::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLongestLine = std::size_t{1} << 20;

/// Reads one line; of a longer one only the first kLongestLine bytes are kept. False at the end of the stream.
bool read_line(std::istream& stream, std::string& line) {
  line.clear();
  std::streambuf& buffer = *stream.rdbuf();
  bool any = false;
  for (int byte = buffer.sbumpc(); byte != std::char_traits<char>::eof(); byte = buffer.sbumpc()) {
    any = true;
    if (byte == '\n') return true;
    if (line.size() < kLongestLine) line += static_cast<char>(byte);
  }
  return any;
}

/// JSON that nests deeper than a job, or has more fields, is refused before it becomes a tree: an ordered object
/// finds its keys one by one, so many of them take their square.
Json parse_job(std::string_view text) {
  constexpr int kDeepest = 4;
  constexpr int kMostFields = 64;
  int fields = 0;
  bool fits = true;
  const auto keep = [&](int depth, Json::parse_event_t event, Json&) {
    if (event == Json::parse_event_t::key) ++fields;
    fits = fits && depth <= kDeepest && fields <= kMostFields;
    return fits;
  };
  Json json = Json::parse(text, keep, false);
  return fits ? json : Json(Json::value_t::discarded);
}

Json error_object(const Error& error) { return {{"schema", 1}, {"error", to_json(error)}}; }

Json evaluate(Evaluator& evaluator, const Json& job, const JobRequest& defaults) {
  const Result<JobRequest> request = request_from(job, defaults);
  if (!request) return error_object(request.error());
  // Jobs themselves may come from standard input, so that it cannot hold a summary as well.
  if (request->summary == "-") {
    return error_object({ErrorCode::malformed_input, "\"summary\" must name a file, not standard input", {}});
  }
  const Result<Evaluation> evaluation = evaluator.evaluate(*request);
  if (!evaluation) return error_object(evaluation.error());
  const auto& answers = evaluation->answers;
  if (answers.size() == 1 && !answers[0].estimate) return error_object(answers[0].estimate.error());
  return to_json(*evaluation);
}

/// What keeps a line from being JSON at all.
std::optional<std::string> fault_of(std::string_view line) {
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) return "is empty";
  if (line.size() >= kLongestLine) return "is longer than 1 MiB";
  return std::nullopt;
}

void run(std::istream& jobs, const JobRequest& defaults) {
  BatchAnswers answers(defaults);
  std::string line;
  while (read_line(jobs, line)) {
    const std::string text = answers.answer(line) + "\n";
    std::fwrite(text.data(), 1, text.size(), stdout);
    // A caller that waits for this answer before it sends the next job must get it.
    if (jobs.rdbuf()->in_avail() <= 0) std::fflush(stdout);
  }
}

}  // namespace

std::string BatchAnswers::answer(std::string_view line) {
  const std::optional<std::string> fault = fault_of(line);
  const Json job = fault ? Json(Json::value_t::discarded) : parse_job(line);
  Json result;
  if (fault || job.is_discarded()) {
    const std::string what = fault.value_or("is not JSON, or nests deeper than a job");
    result = error_object({ErrorCode::malformed_input, "the line " + what + "; a job is one JSON object a line", {}});
  } else {
    result = evaluate(evaluator_, job, defaults_);
  }
  result["line"] = ++number_;
  if (job.is_object() && job.contains("id")) result["id"] = job["id"];
  // What a job's own text puts into a message may be any bytes; output is always UTF-8.
  return result.dump(-1, ' ', false, Json::error_handler_t::replace);
}

int run_batch(const BatchOptions& options) {
  if (options.file == "-") {
    std::ios::sync_with_stdio(false);
    run(std::cin, options.defaults);
    return 0;
  }
  std::ifstream file(options.file, std::ios::binary);
  if (std::filesystem::is_directory(options.file)) {
    return report_error({ErrorCode::unreadable_file, "is a directory; name a file", {options.file, 0, {}}});
  }
  if (!file) return report_error({ErrorCode::unreadable_file, "cannot be opened", {options.file, 0, {}}});
  run(file, options.defaults);
  return 0;
}

}  // namespace gpumem::cli
