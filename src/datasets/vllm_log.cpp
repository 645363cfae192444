#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "gpumem/serve/server_command.hpp"
#include "gpumem_datasets/serving_starts.hpp"

namespace gpumem::datasets {

namespace {
namespace vllm_log_detail {

constexpr std::size_t kLongestWord = 400;

/// What follows the first `mark` of the line; nothing: the line has none.
std::optional<std::string_view> after(std::string_view line, std::string_view mark) {
  const std::size_t at = line.find(mark);
  return at == std::string_view::npos ? std::nullopt : std::optional(line.substr(at + mark.size()));
}

/// "8192" of "8192, 'gpu_..."; quotes around it are taken off.
std::string_view value_before(std::string_view text, std::string_view ends) {
  if (!text.empty() && (text.front() == '\'' || text.front() == '"')) {
    const std::size_t end = text.find(text.front(), 1);
    return end == std::string_view::npos ? std::string_view() : text.substr(1, end - 1);
  }
  return text.substr(0, std::min(text.find_first_of(ends), text.size()));
}

/// A number with commas in groups of three, as people read it.
std::optional<std::int64_t> whole_of(std::string_view text) {
  std::string digits;
  for (const char each : text.substr(0, kLongestWord)) {
    if (each != ',') digits.push_back(each);
  }
  std::int64_t value = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return failed == std::errc{} && end != digits.data() && value >= 0 ? std::optional(value) : std::nullopt;
}

/// "2.87GiB;" and "14.99 GiB memory". Nothing below zero.
std::optional<double> gib_of(std::string_view text) {
  const std::string copy(text.substr(0, 32));
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  return end != copy.c_str() && std::isfinite(value) && value >= 0.0 ? std::optional(value) : std::nullopt;
}

/// The line that names the model and the configuration of the engine:
/// "Initializing a V1 LLM engine (v0.19.0) with config: model='NAME', ... tensor_parallel_size=2, ...".
constexpr std::string_view kEngine = "LLM engine (v";

/// How the engine's configuration calls an option.
struct ConfigWord {
  std::string_view mark, option;
};
constexpr std::array<ConfigWord, 5> kConfigWords = {{{" tensor_parallel_size=", "tensor_parallel_size"},
                                                     {" pipeline_parallel_size=", "pipeline_parallel_size"},
                                                     {" data_parallel_size=", "data_parallel_size"},
                                                     {" max_seq_len=", "max_model_len"},
                                                     {" kv_cache_dtype=", "kv_cache_dtype"}}};

void read_engine(std::string_view line, ServingStart& start) {
  const std::string_view version = *after(line, kEngine);
  start.job.version = value_before(version, ")+ ");
  if (const auto model = after(line, "model=")) start.model = value_before(*model, ", ");
  for (const ConfigWord& word : kConfigWords) {
    const auto value = after(line, word.mark);
    // A value that gpumem does not know stands as it is: the estimate refuses it by its name.
    if (value) static_cast<void>(serve::set_serving_option(start.job, word.option, value_before(*value, ", )")));
  }
  if (const auto type = after(line, " dtype=torch.")) start.job.dtype = value_before(*type, ", )");
  if (after(line, " enforce_eager=True")) start.job.enforce_eager = true;
  // Of a checkpoint that is quantised, the config says how.
  if (after(line, " quantization=fp8")) start.job.quantization = "fp8";
}

/// Where the value at the front of the text ends: at a comma or a bracket that is not within quotes or brackets of its
/// own.
std::size_t end_of_value(std::string_view text) {
  std::size_t depth = 0;
  char quote = '\0';
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char each = text[at];
    if (quote != '\0') {
      if (each == '\\') ++at;
      else if (each == quote) quote = '\0';
      continue;
    }
    const bool closes = each == '}' || each == ']' || each == ')';
    if (depth == 0 && (closes || each == ',')) return at;
    if (each == '\'' || each == '"') quote = each;
    if (each == '{' || each == '[' || each == '(') ++depth;
    if (closes) --depth;
  }
  return text.size();
}

/// A dict as Python prints it, as JSON has it.
std::string as_json(std::string_view dict) {
  constexpr std::pair<std::string_view, std::string_view> kConstants[] = {
      {"True", "true"}, {"False", "false"}, {"None", "null"}};
  std::string json;
  char quote = '\0';
  while (!dict.empty()) {
    const char each = dict.front();
    const auto* const constant = std::find_if(std::begin(kConstants), std::end(kConstants), [&](const auto& one) {
      return quote == '\0' && dict.starts_with(one.first);
    });
    if (constant != std::end(kConstants)) {
      json += constant->second;
      dict.remove_prefix(constant->first.size());
      continue;
    }
    dict.remove_prefix(1);
    const bool opens = quote == '\0' && (each == '\'' || each == '"');
    if (opens || (quote != '\0' && each == quote)) {
      quote = opens ? each : '\0';
      json += '"';
    } else {
      if (each == '"') json += '\\';
      json += each;
    }
  }
  return json;
}

/// One option as Python prints it. What gpumem cannot follow is left out, and said so.
void read_argument(std::string_view name, std::string_view value, ServingStart& start) {
  constexpr std::size_t kMostLeftOut = 50;
  if (value == "None" || name == "model_tag" || serve::changes_no_memory(name)) return;
  const std::string dict = value.starts_with('{') ? as_json(value) : std::string();
  const std::string_view spelled = !dict.empty()      ? dict
                                   : value == "True"  ? "true"
                                   : value == "False" ? "false"
                                                      : value_before(value, "");
  if (serve::set_serving_option(start.job, name, spelled)) return;
  if (start.left_out.size() < kMostLeftOut) start.left_out.emplace_back(name.substr(0, kLongestWord));
}

/// "{'max_num_seqs': 64, 'gpu_memory_utilization': 0.95}": what the command says. Of the options that the engine's own
/// line has as well, that line stands, which follows.
void read_arguments(std::string_view text, ServingStart& start) {
  for (std::size_t opens = text.find('{'); opens < text.size();) {
    text.remove_prefix(opens + 1);
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    const std::size_t colon = text.find(": ");
    if (colon == std::string_view::npos) return;
    const std::string_view name = value_before(text.substr(0, colon), ":");
    text.remove_prefix(colon + 2);
    opens = end_of_value(text);
    read_argument(name, text.substr(0, opens), start);
    if (opens < text.size() && text[opens] != ',') return;
  }
}

/// A line that gives a figure behind a mark.
struct FigureLine {
  std::string_view mark;
  std::optional<double> LoggedStart::*figure;
};
constexpr std::array<FigureLine, 9> kFigureLines = {{
    {"Model loading took ", &LoggedStart::weights_gib},
    {"Loading model weights took ", &LoggedStart::weights_gib},
    {"; weights memory: ", &LoggedStart::weights_gib},
    {"torch peak memory increase: ", &LoggedStart::activation_gib},
    {"non-torch forward increase memory: ", &LoggedStart::outside_pytorch_gib},
    {"Available KV cache memory: ", &LoggedStart::kv_cache_gib},
    {" secs, took ", &LoggedStart::cuda_graphs_gib},
    {"total_memory=", &LoggedStart::gpu_gib},
    {"total capacity of ", &LoggedStart::gpu_gib},
}};

/// What vLLM says when a start needs more memory than there is, and when it fails for another reason.
struct Complaint {
  std::string_view mark;
  StartOutcome outcome;
};
constexpr std::array<Complaint, 6> kComplaints = {{
    {"No available memory for the cache blocks", StartOutcome::refused},
    {"To serve at least one request with the model", StartOutcome::refused},
    {"is larger than the maximum number of tokens that can be stored in KV cache", StartOutcome::refused},
    {"CUDA out of memory", StartOutcome::refused},
    {"is greater than the derived max_model_len", StartOutcome::refused},
    {"on startup is less than desired GPU memory utilization", StartOutcome::unrelated},
}};

void read_line(std::string_view line, ServingStart& start) {
  if (after(line, kEngine)) return read_engine(line, start);
  if (const auto arguments = after(line, "non-default args: ")) return read_arguments(*arguments, start);
  for (const FigureLine& each : kFigureLines) {
    // Of several ranks, and of several lines about one figure, the last one stands.
    if (const auto text = after(line, each.mark)) {
      if (const auto value = gib_of(*text)) start.logged.*each.figure = value;
    }
  }
  if (const auto text = after(line, "GPU KV cache size: ")) start.logged.kv_cache_tokens = whole_of(*text);
  if (const auto text = after(line, "max_num_batched_tokens="); text && after(line, "Chunked prefill is enabled")) {
    static_cast<void>(serve::set_serving_option(start.job, "max_num_batched_tokens", value_before(*text, ". ")));
  }
  if (const auto text = after(line, "Defaulting max_num_seqs to ")) {
    static_cast<void>(serve::set_serving_option(start.job, "max_num_seqs", value_before(*text, " ")));
  }
  for (const Complaint& each : kComplaints) {
    if (!start.logged.why.empty() || !after(line, each.mark)) continue;
    start.logged.outcome = each.outcome;
    start.logged.why = line.substr(0, kLongestWord);
  }
}

}  // namespace vllm_log_detail
}  // namespace

core::Result<ServingStart> read_vllm_log(std::string_view text) {
  ServingStart start;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    vllm_log_detail::read_line(text.substr(at, end - at), start);
    at = end + 1;
  }
  if (start.job.version.empty()) {
    return core::Error{core::ErrorCode::unknown_format,
                       "no line of vLLM's log says \"Initializing a V1 LLM engine (v...)\": give the log of a start",
                       {}};
  }
  return start;
}

}  // namespace gpumem::datasets
