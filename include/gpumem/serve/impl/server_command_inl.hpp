#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/csv.hpp"
#include "gpumem/core/json.hpp"
#include "gpumem/serve/server_command.hpp"

namespace gpumem::serve {

namespace server_command_detail {

inline constexpr std::array kServingOptions = {
    ServingOption{.name = "tensor_parallel_size",
                  .help = "GPUs that share each layer",
                  .short_flag = "-tp",
                  .sglang = "tp_size",
                  .count = &ServingJob::tensor_parallel},
    ServingOption{.name = "pipeline_parallel_size",
                  .help = "GPUs that hold the layers one after another",
                  .short_flag = "-pp",
                  .sglang = "pp_size",
                  .count = &ServingJob::pipeline_parallel},
    ServingOption{.name = "data_parallel_size",
                  .help = "copies of the server",
                  .short_flag = "-dp",
                  .sglang = "dp_size",
                  .count = &ServingJob::data_parallel},
    ServingOption{.name = "max_model_len",
                  .help = "tokens of the longest request; default: the model's positions",
                  .sglang = "context_length",
                  .limit = &ServingJob::max_model_len},
    ServingOption{.name = "max_num_seqs",
                  .help = "sequences that run at once",
                  .sglang = "max_running_requests",
                  .limit = &ServingJob::max_num_seqs},
    ServingOption{.name = "max_num_batched_tokens",
                  .help = "tokens of one step",
                  .sglang = "chunked_prefill_size",
                  .limit = &ServingJob::max_num_batched_tokens},
    ServingOption{.name = "block_size",
                  .help = "tokens of a block of the KV cache",
                  .sglang = "page_size",
                  .limit = &ServingJob::block_size},
    ServingOption{.name = "gpu_memory_utilization",
                  .help = "share of the GPU's memory that the server takes",
                  .sglang = "mem_fraction_static",
                  .share = &ServingJob::gpu_memory_utilization},
    ServingOption{.name = "dtype",
                  .help = "type of weights and activations: auto, bfloat16, float16, float32",
                  .sglang = "dtype",
                  .word = &ServingJob::dtype},
    ServingOption{.name = "kv_cache_dtype",
                  .help = "auto, bfloat16, fp8, fp8_e4m3, fp8_e5m2",
                  .sglang = "kv_cache_dtype",
                  .word = &ServingJob::kv_cache_dtype},
    ServingOption{.name = "quantization",
                  .help = "fp8: weights are quantised while they are loaded",
                  .short_flag = "-q",
                  .sglang = "quantization",
                  .word = &ServingJob::quantization},
    ServingOption{.name = "enforce_eager",
                  .help = "capture no CUDA graphs",
                  .sglang = "disable_cuda_graph",
                  .flag = &ServingJob::enforce_eager},
    ServingOption{.name = "enable_expert_parallel",
                  .help = "each GPU has whole experts",
                  .flag = &ServingJob::enable_expert_parallel},
    ServingOption{.name = "enable_lora", .help = "make room for LoRA adapters", .flag = &ServingJob::enable_lora},
    ServingOption{.name = "max_loras", .help = "adapters on the GPU at once", .count = &ServingJob::max_loras},
    ServingOption{
        .name = "max_lora_rank", .help = "the largest rank of an adapter", .count = &ServingJob::max_lora_rank},
    ServingOption{.name = "cpu_offload_gb",
                  .help = "GiB of each GPU's weights that stay in the host's memory",
                  .gib = &ServingJob::cpu_offload_gb},
    ServingOption{.name = "kv_cache_memory_bytes",
                  .help = "bytes of the KV cache, whatever gpu_memory_utilization leaves",
                  .limit = &ServingJob::kv_cache_memory_bytes},
    ServingOption{
        .name = "language_model_only", .help = "load no image tower", .flag = &ServingJob::language_model_only},
    ServingOption{.name = "runner",
                  .help = "auto, generate, or pooling: embeddings and classes instead of tokens",
                  .word = &ServingJob::runner},
    ServingOption{.name = "limit_mm_per_prompt",
                  .help = "images of one request at most, such as image=2 or {\"image\": 2}",
                  .word = &ServingJob::limit_mm_per_prompt},
    ServingOption{.name = "speculative_config",
                  .help = "tokens are drafted: {\"method\": \"eagle3\", \"model\": NAME}; also mtp, ngram, draft_model",
                  .short_flag = "-sc",
                  .word = &ServingJob::speculative_config},
};

/// Flags that change no memory of the GPU, with a value.
inline constexpr auto kVllmValuesWithoutEffect = std::to_array<std::string_view>({"--allowed-headers",
                                                                                  "--allowed-methods",
                                                                                  "--allowed-origins",
                                                                                  "--api-key",
                                                                                  "--chat-template",
                                                                                  "--chat-template-content-format",
                                                                                  "--code-revision",
                                                                                  "--config-format",
                                                                                  "--distributed-executor-backend",
                                                                                  "--download-dir",
                                                                                  "--generation-config",
                                                                                  "--hf-token",
                                                                                  "--host",
                                                                                  "--load-format",
                                                                                  "--max-log-len",
                                                                                  "--model",
                                                                                  "--override-generation-config",
                                                                                  "--port",
                                                                                  "--reasoning-parser",
                                                                                  "--response-role",
                                                                                  "--revision",
                                                                                  "--root-path",
                                                                                  "--scheduling-policy",
                                                                                  "--seed",
                                                                                  "--served-model-name",
                                                                                  "--ssl-certfile",
                                                                                  "--ssl-keyfile",
                                                                                  "--tokenizer",
                                                                                  "--tokenizer-mode",
                                                                                  "--tokenizer-revision",
                                                                                  "--tool-call-parser",
                                                                                  "--uvicorn-log-level"});
/// And without one.
inline constexpr auto kVllmFlagsWithoutEffect = std::to_array<std::string_view>(
    {"--async-scheduling", "--disable-log-requests", "--disable-log-stats", "--disable-uvicorn-access-log",
     "--enable-auto-tool-choice", "--enable-chunked-prefill", "--enable-log-requests", "--enable-prefix-caching",
     "--enable-prompt-tokens-details", "--enable-reasoning", "--enable-server-load-tracking", "--no-async-scheduling",
     "--no-enable-log-requests", "--no-enable-prefix-caching", "--trust-remote-code"});

inline core::Error wrong_flag(std::string_view flag, std::string_view message) {
  return {core::ErrorCode::invalid_argument, core::shortened(flag, 60) + ": " + std::string(message), {}};
}

inline constexpr double kMostGib = 1e6;
inline constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;

/// A whole number from 1 to `most`; vLLM also takes 8k (thousands) and 8K (1,024), and so on with m and g.
inline std::optional<std::int64_t> whole_number(std::string_view text, std::int64_t most) {
  std::int64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
  if (failed != std::errc{} || value < 1) return std::nullopt;
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 7> kUnits = {
      {{"", 1}, {"k", 1000}, {"K", 1024}, {"m", 1'000'000}, {"M", 1 << 20}, {"g", 1'000'000'000}, {"G", 1 << 30}}};
  for (const auto& [unit, times] : kUnits) {
    if (rest == unit && value <= most / times) return value * times;
  }
  return std::nullopt;
}

/// Writes a value as it is spelled. `shown` is how the caller spells the option.
inline core::Status set_value(const ServingOption& option, std::string_view shown, std::string_view value,
                              ServingJob& job) {
  if (option.word != nullptr) {
    job.*option.word = value;
    return core::Done{};
  }
  if (option.flag != nullptr) {
    if (value != "true" && value != "false") return wrong_flag(shown, "give true or false");
    job.*option.flag = value == "true";
    return core::Done{};
  }
  if (option.share != nullptr) {
    job.*option.share = core::parse_number(value);
    if (!(job.*option.share)) return wrong_flag(shown, "give a share of the GPU's memory, such as 0.9");
    return core::Done{};
  }
  if (option.gib != nullptr) {
    const std::optional<double> gib = core::parse_number(value);
    if (!gib || *gib < 0.0 || *gib > kMostGib) return wrong_flag(shown, "give a number of GiB from 0 on");
    job.*option.gib = *gib;
    return core::Done{};
  }
  const bool bytes = option.limit == &ServingJob::kv_cache_memory_bytes;
  const std::optional<std::int64_t> number = whole_number(value, bytes ? kMostBytes : INT32_MAX);
  if (!number) return wrong_flag(shown, "give a whole number of at least 1");
  if (option.count != nullptr) job.*option.count = *number;
  if (option.limit != nullptr) job.*option.limit = *number;
  return core::Done{};
}

/// The option that a flag of vLLM writes, "--max-model-len" or "-tp"; null: none.
inline const ServingOption* option_of_flag(std::string_view flag) {
  std::string name(flag.starts_with("--") ? flag.substr(2) : std::string_view());
  std::replace(name.begin(), name.end(), '-', '_');
  for (const ServingOption& option : kServingOptions) {
    if (name == option.name || (!option.short_flag.empty() && flag == option.short_flag)) return &option;
  }
  return nullptr;
}

/// Other spellings of SGLang's flags. Source: SGLang 0.5, srt/server_args.py, ServerArgs.add_cli_args().
inline constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kSglangAliases = {
    {{"tp", "tp_size"},
     {"tensor_parallel_size", "tp_size"},
     {"pipeline_parallel_size", "pp_size"},
     {"dp", "dp_size"},
     {"data_parallel_size", "dp_size"}}};
inline const ServingOption* option_of_sglang_flag(std::string_view flag) {
  std::string name(flag.starts_with("--") ? flag.substr(2) : std::string_view());
  std::replace(name.begin(), name.end(), '-', '_');
  if (name.empty()) return nullptr;
  for (const auto& [alias, meant] : kSglangAliases) {
    if (name == alias) name = meant;
  }
  const auto* const found = std::ranges::find(kServingOptions, std::string_view(name), &ServingOption::sglang);
  return found == kServingOptions.end() ? nullptr : found;
}
inline constexpr auto kSglangValuesWithoutEffect = std::to_array<std::string_view>(
    {"--api-key", "--chat-template", "--download-dir", "--host", "--load-format", "--log-level", "--model",
     "--model-path", "--port", "--random-seed", "--reasoning-parser", "--revision", "--schedule-policy",
     "--served-model-name", "--tokenizer-mode", "--tokenizer-path", "--tool-call-parser", "--watchdog-timeout"});
inline constexpr auto kSglangFlagsWithoutEffect = std::to_array<std::string_view>(
    {"--disable-radix-cache", "--enable-metrics", "--log-requests", "--skip-server-warmup", "--trust-remote-code"});

/// The flags of one engine.
struct Dialect {
  std::string_view engine, title;
  const ServingOption* (*option)(std::string_view flag);
  std::span<const std::string_view> values_without_effect, flags_without_effect;
};
inline constexpr Dialect kVllm{"vllm", "vLLM", &option_of_flag, kVllmValuesWithoutEffect, kVllmFlagsWithoutEffect};
inline constexpr Dialect kSglang{"sglang", "SGLang", &option_of_sglang_flag, kSglangValuesWithoutEffect,
                                 kSglangFlagsWithoutEffect};

/// How a command begins, and whose it is.
struct CommandForm {
  const Dialect* dialect;
  std::array<std::string_view, 3> begins;  ///< "python" stands for every name of it; empty: no such word
  [[nodiscard]] std::size_t words() const { return begins[2].empty() ? 2 : 3; }
};
inline constexpr std::array<CommandForm, 4> kForms = {{{&kVllm, {"vllm", "serve", ""}},
                                                       {&kVllm, {"python", "-m", "vllm.entrypoints.openai.api_server"}},
                                                       {&kSglang, {"sglang", "serve", ""}},
                                                       {&kSglang, {"python", "-m", "sglang.launch_server"}}}};

/// Null: the words begin like no command that is known.
inline const CommandForm* form_of(std::span<const std::string> words) {
  const auto same = [](std::string_view word, std::string_view wanted) {
    const std::string_view name = word.substr(word.rfind('/') + 1);
    return wanted == "python" ? name.starts_with("python") : name == wanted;
  };
  for (const CommandForm& form : kForms) {
    if (words.size() < form.words()) continue;
    bool all = true;
    for (std::size_t at = 0; at < form.words(); ++at) all = all && same(words[at], form.begins[at]);
    if (all) return &form;
  }
  return nullptr;
}

inline bool is_one_of(std::span<const std::string_view> flags, std::string_view flag) {
  return std::ranges::find(flags, flag) != flags.end();
}

/// Up to 0.12 one flag said what the model does. Source: vLLM 0.10, config/__init__.py, _RUNNER_TASKS.
inline core::Status set_task(std::string_view task, ServingJob& job) {
  constexpr auto kPooling = std::to_array<std::string_view>({"embed", "embedding", "classify", "score", "reward"});
  if (task == "auto" || task == "generate") job.runner = task;
  else if (is_one_of(kPooling, task)) job.runner = "pooling";
  else return wrong_flag("--task", "give auto, generate, embed, classify, score or reward");
  return core::Done{};
}

/// One flag with its value.
inline core::Status take_value(const Dialect& dialect, const std::string& name, const std::string& value,
                               ServingJob& job) {
  if (name == "--task" && dialect.engine == "vllm") return set_task(value, job);
  if (const ServingOption* option = dialect.option(name)) return set_value(*option, name, value, job);
  if (is_one_of(dialect.values_without_effect, name)) return core::Done{};
  return wrong_flag(name, "gpumem has no rule for this flag of " + std::string(dialect.title) +
                              "; leave it out if it changes no memory");
}

inline constexpr core::JsonLimits kOptionLimits{.depth = 8, .values = 4096};

/// The text of this field; empty: it has none.
inline std::string text_in(const core::JsonValue& object, std::string_view name) {
  for (const core::JsonValue& field : object.items()) {
    if (field.key() == name && field.is(core::JsonValue::Kind::text)) return std::string(field.text());
  }
  return {};
}

/// How vLLM finds the method where none is given. Source: config/speculative.py, SpeculativeConfig.__post_init__().
inline std::string usual_method(std::string_view model) {
  const std::string name = core::lower_case(model);
  if (name.find("eagle3") != std::string::npos) return "eagle3";
  if (name.find("eagle-") != std::string::npos) return "eagle";
  return "draft_model";
}

/// The model that a command names: its first word of no flag, or what --model or --model-path says; empty: none.
inline std::string model_of(std::span<const std::string> words) {
  const CommandForm* form = form_of(words);
  if (form == nullptr) return {};
  const std::size_t first = form->words();
  if (words.size() > first && !words[first].starts_with('-')) return words[first];
  for (std::size_t at = first; at < words.size(); ++at) {
    for (const std::string_view flag : {"--model", "--model-path"}) {
      if (words[at] == flag && at + 1 < words.size()) return words[at + 1];
      if (words[at].starts_with(flag) && words[at].substr(flag.size(), 1) == "=")
        return words[at].substr(flag.size() + 1);
    }
  }
  return {};
}

}  // namespace server_command_detail

GPUMEM_INLINE std::span<const ServingOption> serving_options() { return server_command_detail::kServingOptions; }

GPUMEM_INLINE std::string_view option_name(std::string_view engine, std::string_view option) {
  if (engine != "sglang") return option;
  const auto& options = server_command_detail::kServingOptions;
  const auto* const found = std::ranges::find(options, option, &ServingOption::name);
  return found == options.end() ? std::string_view() : found->sglang;
}

GPUMEM_INLINE bool changes_no_memory(std::string_view option) {
  namespace detail = server_command_detail;
  std::string flag = "--" + std::string(option);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return detail::is_one_of(detail::kVllmFlagsWithoutEffect, flag) ||
         detail::is_one_of(detail::kVllmValuesWithoutEffect, flag);
}

GPUMEM_INLINE std::optional<EngineVersion> engine_version(std::string_view text) {
  if (text.starts_with('v')) text.remove_prefix(1);
  EngineVersion version;
  const char* const end = text.data() + text.size();
  const auto [dot, wrong] = std::from_chars(text.data(), end, version.major_part);
  if (wrong != std::errc{} || version.major_part < 0) return std::nullopt;
  if (dot == end) return version;
  const bool read = *dot == '.' && std::from_chars(dot + 1, end, version.minor_part).ec == std::errc{};
  return read && version.minor_part >= 0 ? std::optional(version) : std::nullopt;
}

GPUMEM_INLINE core::Status set_serving_option(ServingJob& job, std::string_view name, std::string_view value) {
  std::string known;
  for (const ServingOption& option : server_command_detail::kServingOptions) {
    if (option.name == name) return server_command_detail::set_value(option, name, value, job);
    known.append(known.empty() ? "" : ", ").append(option.name);
  }
  return server_command_detail::wrong_flag(name, "is no option of a server that gpumem knows; known are " + known);
}

GPUMEM_INLINE core::Result<ServingJob> read_server_command(std::span<const std::string> words, ServingJob job) {
  namespace detail = server_command_detail;
  const detail::CommandForm* form = detail::form_of(words);
  if (form == nullptr) {
    return core::Error{
        core::ErrorCode::invalid_argument,
        "the command must begin with \"vllm serve\", \"sglang serve\", \"python -m sglang.launch_server\" "
        "or \"python -m vllm.entrypoints.openai.api_server\"",
        {}};
  }
  const detail::Dialect& dialect = *form->dialect;
  job.engine = dialect.engine;
  bool named = false;
  for (std::size_t at = form->words(); at < words.size(); ++at) {
    std::string name = words[at];
    if (!name.starts_with('-')) {
      if (named) return detail::wrong_flag(name, "a second model; a server takes one");
      named = true;
      continue;
    }
    std::optional<std::string> value;
    if (const std::size_t equals = name.find('='); equals != std::string::npos) {
      value = name.substr(equals + 1);
      name.resize(equals);
    }
    if (name.starts_with("--")) std::replace(name.begin(), name.end(), '_', '-');
    const ServingOption* known = dialect.option(name);
    if (known != nullptr && known->flag != nullptr && !value) {
      job.*known->flag = true;
      continue;
    }
    if (detail::is_one_of(dialect.flags_without_effect, name)) continue;
    if (!value && at + 1 == words.size()) return detail::wrong_flag(name, "its value is missing");
    if (!value) value = words[++at];
    if (const core::Status taken = detail::take_value(dialect, name, *value, job); !taken) return taken.error();
  }
  return job;
}

GPUMEM_INLINE core::Result<std::optional<Speculation>> read_speculation(std::string_view config) {
  namespace detail = server_command_detail;
  constexpr std::string_view kOption = "speculative_config";
  if (config.empty()) return std::optional<Speculation>();
  const auto document = core::JsonDocument::parse(config, detail::kOptionLimits);
  if (!document || !document->root().is(core::JsonValue::Kind::object)) {
    return detail::wrong_flag(kOption,
                              R"(give a JSON object, such as {"method": "ngram", "num_speculative_tokens": 3})");
  }
  const core::JsonValue& root = document->root();
  Speculation asked{detail::text_in(root, "method"), detail::text_in(root, "model")};
  for (const core::JsonValue& field : root.items()) {
    const bool ranks = field.key() == "draft_tensor_parallel_size";
    if ((!ranks && field.key() != "num_speculative_tokens") || field.is(core::JsonValue::Kind::null)) continue;
    const bool counts = field.is(core::JsonValue::Kind::integer) && field.integer() > 0 && field.integer() <= INT32_MAX;
    if (!counts) return detail::wrong_flag(kOption, std::string(field.key()) + ": give a whole number of at least 1");
    if (ranks) asked.ranks = field.integer();
  }
  if (asked.method.empty() && asked.model == "ngram") asked.method = "ngram";
  if (asked.method.empty() && !asked.model.empty()) asked.method = detail::usual_method(asked.model);
  if (asked.method.ends_with("_mtp")) asked.method = "mtp";
  constexpr auto kAlone = std::to_array<std::string_view>({"ngram", "suffix", "mtp"});
  constexpr auto kDrafted = std::to_array<std::string_view>({"eagle", "eagle3", "draft_model"});
  if (detail::is_one_of(kAlone, asked.method)) {
    asked.model.clear();
    return std::optional(asked);
  }
  if (detail::is_one_of(kDrafted, asked.method) && !asked.model.empty()) return std::optional(asked);
  return detail::wrong_flag(kOption, asked.model.empty() && detail::is_one_of(kDrafted, asked.method)
                                         ? "name the draft's \"model\""
                                         : "no rules for the method " + core::quoted(asked.method) +
                                               "; known: ngram, suffix, mtp, eagle, eagle3, draft_model");
}

GPUMEM_INLINE core::Result<std::optional<std::int64_t>> images_per_prompt(std::string_view limits) {
  namespace detail = server_command_detail;
  using Kind = core::JsonValue::Kind;
  if (limits.empty()) return std::optional<std::int64_t>();
  const auto wrong = detail::wrong_flag("limit_mm_per_prompt", R"(give image=2 or {"image": 2})");
  const auto limited = [&](std::int64_t images) -> core::Result<std::optional<std::int64_t>> {
    if (images < 0 || images > INT32_MAX) return wrong;
    return std::optional(images);
  };
  if (!limits.starts_with('{')) {
    for (std::string_view rest = limits; !rest.empty();) {
      const std::string_view part = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), part.size() + 1));
      if (part.find('=') == std::string_view::npos) return wrong;
      if (!part.starts_with("image=")) continue;
      const std::optional<std::int64_t> images = core::parse_whole(part.substr(part.find('=') + 1));
      if (!images) return wrong;
      return limited(*images);
    }
    return std::optional<std::int64_t>();
  }
  const auto document = core::JsonDocument::parse(limits, detail::kOptionLimits);
  if (!document || !document->root().is(Kind::object)) return wrong;
  for (const core::JsonValue& field : document->root().items()) {
    if (field.key() != "image") continue;
    if (field.is(Kind::integer)) return limited(field.integer());
    if (!field.is(Kind::object)) return wrong;
    for (const core::JsonValue& inner : field.items()) {
      if (inner.key() == "count" && inner.is(Kind::integer)) return limited(inner.integer());
    }
  }
  return std::optional<std::int64_t>();
}

GPUMEM_INLINE core::Result<ServingRequest> serving_request_of(const ServingWords& words) {
  ServingRequest request;
  request.config = words.config;
  request.gpu = words.gpu;
  request.job.version = words.version;
  if (!words.command.empty()) {
    core::Result<ServingJob> asked = read_server_command(words.command, request.job);
    if (!asked) return asked.error();
    request.job = *std::move(asked);
    if (request.config.empty()) request.config = server_command_detail::model_of(words.command);
  }
  for (const auto& [name, value] : words.options) {
    if (const core::Status set = set_serving_option(request.job, name, value); !set) return set.error();
  }
  if (!request.config.empty()) return request;
  return core::Error{core::ErrorCode::invalid_argument,
                     "give a config.json, a folder that has one, or a name in the local HuggingFace cache",
                     {}};
}

}  // namespace gpumem::serve
