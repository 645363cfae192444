// The C entry points as a hostile caller reaches them: the first byte chooses the options, the first line is a job as
// JSON or a word of a question, the rest a summary.
#include "gpumem/gpumem.h"

#include <cstring>

#include "fuzz.hpp"

namespace {

using gpumem::fuzz::require;

/// With a buffer that ends where the message may, so that a byte more is found.
class Message {
 public:
  explicit Message(std::size_t size) : text_(size, '#') {}
  char* data() { return text_.data(); }
  [[nodiscard]] std::size_t size() const { return text_.size(); }

  /// Of a call that came to this.
  void require_sound(gpumem_status status) const {
    require(status >= GPUMEM_OK && status <= GPUMEM_DEADLINE_EXCEEDED, "a call comes to a status that input can bring");
    if (text_.empty()) return;
    const std::size_t length = text_.find('\0');
    require(length != std::string::npos, "a message ends");
    require((status == GPUMEM_OK) == (length == 0) || text_.size() == 1, "a failure has a message, a success none");
    const auto control = [](char byte) { return static_cast<unsigned char>(byte) < 0x20 || byte == 0x7F; };
    const auto end = text_.begin() + static_cast<std::ptrdiff_t>(length);
    require(std::none_of(text_.begin(), end, control), "a message holds no control bytes");
  }

 private:
  std::string text_;
};

bool is_path(const char* text) {
  return text != nullptr && (std::strchr(text, '/') != nullptr || std::strstr(text, ".json") != nullptr);
}

void estimate_and_fit(const gpumem_summary* summary, gpumem_job job, Message& message) {
  constexpr std::int64_t kDeadline = 50;
  gpumem_summary_info info = GPUMEM_SUMMARY_INFO_INIT;
  require(gpumem_summary_describe(summary, &info, nullptr, 0) == GPUMEM_OK, "a summary is described");
  // No file of this machine.
  if (is_path(job.gpu)) job.gpu = nullptr;
  job.model = nullptr;
  if (job.deadline_ms == 0 || job.deadline_ms > kDeadline) job.deadline_ms = kDeadline;
  gpumem_estimate_result need = GPUMEM_ESTIMATE_RESULT_INIT;
  gpumem_status status = gpumem_estimate(summary, &job, &need, message.data(), message.size());
  message.require_sound(status);
  if (status == GPUMEM_OK) {
    require(need.lower_bytes <= need.expected_bytes && need.expected_bytes <= need.upper_bytes, "a range is one");
    require(need.layers == info.layers, "an estimate is of all layers");
    require(need.expected_bytes >= 0, "no need is negative");
  }
  gpumem_fit_result fit = GPUMEM_FIT_RESULT_INIT;
  gpumem_estimate_result at_batch = GPUMEM_ESTIMATE_RESULT_INIT;
  status = gpumem_fit(summary, &job, &fit, &at_batch, nullptr, message.data(), message.size());
  message.require_sound(status);
  require(
      status != GPUMEM_OK || fit.batch_size == 0 || at_batch.verdict == GPUMEM_FITS || at_batch.verdict == GPUMEM_TIGHT,
      "the largest batch fits");
}

/// The line as a word of a question, NAME=VALUE. "job" opens no file.
void ask(std::string_view line, Message& message) {
  const std::size_t equals = std::min(line.find('='), line.size());
  const std::string name(line.substr(0, equals));
  const std::string value(line.substr(std::min(equals + 1, line.size())));
  const char* const names[] = {name.c_str()};
  const char* const values[] = {value.c_str()};
  gpumem_answer* answer = nullptr;
  const gpumem_status status = gpumem_ask("job", nullptr, names, values, 1, &answer, message.data(), message.size());
  message.require_sound(status);
  require((status == GPUMEM_OK) == (answer != nullptr), "a question is answered or refused");
  if (answer != nullptr) require(gpumem_answer_text(answer, "json")[0] == '{', "an answer is an object");
  if (answer == nullptr) require(std::strlen(gpumem_last_failure()) < 8000, "a failure is short");
  gpumem_answer_free(answer);
}

}  // namespace

GPUMEM_FUZZ_TARGET(capi) {
  if (input.empty()) return false;
  const auto options_byte = static_cast<unsigned char>(input.front());
  input.remove_prefix(1);
  const std::size_t line = std::min(input.find('\n'), input.size());
  const std::string_view json = input.substr(0, line);
  const std::string_view text = input.substr(std::min(line + 1, input.size()));

  Message message(1U + (options_byte >> 1U));
  gpumem_job* parsed = nullptr;
  const gpumem_status job_status =
      gpumem_job_from_json(json.data(), json.size(), &parsed, message.data(), message.size());
  message.require_sound(job_status);
  require((job_status == GPUMEM_OK) == (parsed != nullptr), "a job is made or refused");

  gpumem_read_options options = GPUMEM_READ_OPTIONS_INIT;
  options.lenient = options_byte & 1;
  options.deadline_ms = 1000;
  gpumem_summary* summary = nullptr;
  const gpumem_status read =
      gpumem_summary_from_memory(text.data(), text.size(), &options, &summary, message.data(), message.size());
  message.require_sound(read);
  require((read == GPUMEM_OK) == (summary != nullptr), "a summary is read or refused");

  const bool both = summary != nullptr && parsed != nullptr;
  if (both) estimate_and_fit(summary, *parsed, message);
  ask(json, message);
  gpumem_summary_free(summary);
  gpumem_job_free(parsed);
  return both;
}
