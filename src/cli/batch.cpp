#include <cstdio>
#include <fstream>
#include <iostream>

#include "commands.hpp"
#include "report.hpp"

namespace gpumem::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLongestLine = std::size_t{1} << 20;

/// One line of at most kLongestLine bytes; what is longer is skipped, not kept.
struct JobLine {
  std::string text;
  bool too_long = false;
};

/// False at the end of the stream.
bool read_line(std::istream& stream, JobLine& line) {
  line.text.clear();
  line.too_long = false;
  std::streambuf& buffer = *stream.rdbuf();
  bool any = false;
  for (int byte = buffer.sbumpc(); byte != std::char_traits<char>::eof(); byte = buffer.sbumpc()) {
    any = true;
    if (byte == '\n') return true;
    if (line.text.size() < kLongestLine) line.text += static_cast<char>(byte);
    else line.too_long = true;
  }
  return any;
}

/// JSON nested deeper than a job needs is refused before it becomes a tree.
Json parse_shallow(const std::string& text) {
  int depth = 0;
  constexpr int kDeepest = 4;
  for (const char byte : text) {
    if (byte == '{' || byte == '[') ++depth;
    if (depth > kDeepest) return Json(Json::value_t::discarded);
    if (byte == '}' || byte == ']') --depth;
  }
  return Json::parse(text, nullptr, false);
}

Json error_line(const Error& error) { return {{"schema", 1}, {"error", to_json(error)}}; }

Json answer(Evaluator& evaluator, const JobLine& line, const JobRequest& defaults, Json& id) {
  const auto malformed = [](std::string message) {
    return error_line({ErrorCode::malformed_input, std::move(message), {}});
  };
  if (line.too_long) return malformed("the line is longer than 1 MiB; a job is one JSON object a line");
  const Json json = parse_shallow(line.text);
  if (json.is_discarded()) return malformed("the line is not JSON; a job is one JSON object a line");
  if (json.is_object() && json.contains("id")) id = json["id"];
  const Result<JobRequest> request = request_from(json, defaults);
  if (!request) return error_line(request.error());
  const Result<Evaluation> evaluation = evaluator.evaluate(*request);
  if (!evaluation) return error_line(evaluation.error());
  const auto& answers = evaluation->answers;
  if (answers.size() == 1 && !answers[0].estimate) return error_line(answers[0].estimate.error());
  return to_json(*evaluation);
}

void run(std::istream& jobs, const JobRequest& defaults) {
  Evaluator evaluator;
  JobLine line;
  std::int64_t number = 0;
  while (read_line(jobs, line)) {
    Json id;
    Json result = answer(evaluator, line, defaults, id);
    result["line"] = ++number;
    if (!id.is_null()) result["id"] = std::move(id);
    // What a job's own text puts into a message may be any bytes; output is always UTF-8.
    const std::string text = result.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    std::fwrite(text.data(), 1, text.size(), stdout);
    // A caller that waits for this answer before it sends the next job must get it.
    if (jobs.rdbuf()->in_avail() <= 0) std::fflush(stdout);
  }
}

}  // namespace

int run_batch(const BatchOptions& options) {
  if (options.file == "-") {
    std::ios::sync_with_stdio(false);
    run(std::cin, options.defaults);
    return 0;
  }
  std::ifstream file(options.file, std::ios::binary);
  if (!file) return report_error({ErrorCode::unreadable_file, "cannot be opened", {options.file, 0, {}}});
  run(file, options.defaults);
  return 0;
}

}  // namespace gpumem::cli
