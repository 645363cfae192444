#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "gpumem/serve/vllm_command.hpp"

namespace gpumem::serve {

namespace vllm_command_detail {

inline constexpr std::array kServingOptions = {
    ServingOption{.name = "tensor_parallel_size",
                  .help = "GPUs that share each layer",
                  .short_flag = "-tp",
                  .count = &ServingJob::tensor_parallel},
    ServingOption{.name = "pipeline_parallel_size",
                  .help = "GPUs that hold the layers one after another",
                  .short_flag = "-pp",
                  .count = &ServingJob::pipeline_parallel},
    ServingOption{.name = "data_parallel_size",
                  .help = "copies of the server",
                  .short_flag = "-dp",
                  .count = &ServingJob::data_parallel},
    ServingOption{.name = "max_model_len",
                  .help = "tokens of the longest request; default: the model's positions",
                  .limit = &ServingJob::max_model_len},
    ServingOption{.name = "max_num_seqs", .help = "sequences that run at once", .limit = &ServingJob::max_num_seqs},
    ServingOption{
        .name = "max_num_batched_tokens", .help = "tokens of one step", .limit = &ServingJob::max_num_batched_tokens},
    ServingOption{.name = "block_size", .help = "tokens of a block of the KV cache", .limit = &ServingJob::block_size},
    ServingOption{.name = "gpu_memory_utilization",
                  .help = "share of the GPU's memory that the server takes",
                  .share = &ServingJob::gpu_memory_utilization},
    ServingOption{.name = "dtype",
                  .help = "type of weights and activations: auto, bfloat16, float16, float32",
                  .word = &ServingJob::dtype},
    ServingOption{.name = "kv_cache_dtype",
                  .help = "auto, bfloat16, fp8, fp8_e4m3, fp8_e5m2",
                  .word = &ServingJob::kv_cache_dtype},
    ServingOption{.name = "quantization",
                  .help = "fp8: weights are quantised while they are loaded",
                  .short_flag = "-q",
                  .word = &ServingJob::quantization},
    ServingOption{.name = "enforce_eager", .help = "capture no CUDA graphs", .flag = &ServingJob::enforce_eager},
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

/// A whole number of at least 1; vLLM also takes 8k (thousands) and 8K (1,024).
inline std::optional<std::int64_t> whole_tokens(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
  if (failed != std::errc{} || value < 1 || value > INT32_MAX) return std::nullopt;
  if (rest == "k") value *= 1000;
  if (rest == "K") value *= 1024;
  if ((rest.empty() || rest == "k" || rest == "K") && value <= INT32_MAX) return value;
  return std::nullopt;
}

/// A share of the GPU's memory.
inline std::optional<double> share_of(std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  const double share = std::strtod(copy.c_str(), &end);
  if (copy.empty() || *end != '\0' || !std::isfinite(share)) return std::nullopt;
  return share;
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
    job.*option.share = share_of(value);
    if (!(job.*option.share)) return wrong_flag(shown, "give a share of the GPU's memory, such as 0.9");
    return core::Done{};
  }
  const std::optional<std::int64_t> number = whole_tokens(value);
  if (!number) return wrong_flag(shown, "give a whole number of at least 1");
  if (option.count != nullptr) job.*option.count = *number;
  if (option.limit != nullptr) job.*option.limit = *number;
  return core::Done{};
}

/// The option that a flag writes, "--max-model-len" or "-tp"; null: none.
inline const ServingOption* option_of_flag(const std::string& flag) {
  std::string name = flag.starts_with("--") ? flag.substr(2) : std::string();
  std::replace(name.begin(), name.end(), '-', '_');
  for (const ServingOption& option : kServingOptions) {
    if (name == option.name || (!option.short_flag.empty() && flag == option.short_flag)) return &option;
  }
  return nullptr;
}

/// One flag with its value.
inline core::Status take_value(const std::string& name, const std::string& value, ServingJob& job) {
  if (const ServingOption* option = option_of_flag(name)) return set_value(*option, name, value, job);
  if (std::ranges::find(kVllmValuesWithoutEffect, name) != kVllmValuesWithoutEffect.end()) return core::Done{};
  return wrong_flag(name, "gpumem has no rule for this flag of vLLM; leave it out if it changes no memory");
}

}  // namespace vllm_command_detail

GPUMEM_INLINE std::span<const ServingOption> serving_options() { return vllm_command_detail::kServingOptions; }

GPUMEM_INLINE core::Status set_serving_option(ServingJob& job, std::string_view name, std::string_view value) {
  std::string known;
  for (const ServingOption& option : vllm_command_detail::kServingOptions) {
    if (option.name == name) return vllm_command_detail::set_value(option, name, value, job);
    known.append(known.empty() ? "" : ", ").append(option.name);
  }
  return vllm_command_detail::wrong_flag(name, "is no option of a server that gpumem knows; known are " + known);
}

GPUMEM_INLINE core::Result<ServingJob> read_vllm_command(std::span<const std::string> words, ServingJob job) {
  if (words.size() < 2 || words[0] != "vllm" || words[1] != "serve") {
    return core::Error{core::ErrorCode::invalid_argument, "the command must begin with \"vllm serve\"", {}};
  }
  bool named = false;
  for (std::size_t at = 2; at < words.size(); ++at) {
    std::string name = words[at];
    if (!name.starts_with('-')) {
      if (named) return vllm_command_detail::wrong_flag(name, "a second model; vllm serve takes one");
      named = true;
      continue;
    }
    std::optional<std::string> value;
    if (const std::size_t equals = name.find('='); equals != std::string::npos) {
      value = name.substr(equals + 1);
      name.resize(equals);
    }
    if (name.starts_with("--")) std::replace(name.begin(), name.end(), '_', '-');
    const ServingOption* known = vllm_command_detail::option_of_flag(name);
    if (known != nullptr && known->flag != nullptr && !value) {
      job.*known->flag = true;
      continue;
    }
    if (std::ranges::find(vllm_command_detail::kVllmFlagsWithoutEffect, name) !=
        vllm_command_detail::kVllmFlagsWithoutEffect.end())
      continue;
    if (!value && at + 1 == words.size()) return vllm_command_detail::wrong_flag(name, "its value is missing");
    if (!value) value = words[++at];
    if (const core::Status taken = vllm_command_detail::take_value(name, *value, job); !taken) return taken.error();
  }
  return job;
}

}  // namespace gpumem::serve
