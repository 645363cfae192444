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

/// A flag whose value is a number of the job, or a word of it.
struct VllmFlag {
  std::string_view name;
  std::string_view short_name = {};
  std::int64_t ServingJob::*count = nullptr;
  std::optional<std::int64_t> ServingJob::*limit = nullptr;
  std::string ServingJob::*word = nullptr;
};

inline constexpr std::array kVllmFlags = {
    VllmFlag{.name = "--tensor-parallel-size", .short_name = "-tp", .count = &ServingJob::tensor_parallel},
    VllmFlag{.name = "--pipeline-parallel-size", .short_name = "-pp", .count = &ServingJob::pipeline_parallel},
    VllmFlag{.name = "--data-parallel-size", .short_name = "-dp", .count = &ServingJob::data_parallel},
    VllmFlag{.name = "--max-model-len", .limit = &ServingJob::max_model_len},
    VllmFlag{.name = "--max-num-seqs", .limit = &ServingJob::max_num_seqs},
    VllmFlag{.name = "--max-num-batched-tokens", .limit = &ServingJob::max_num_batched_tokens},
    VllmFlag{.name = "--block-size", .limit = &ServingJob::block_size},
    VllmFlag{.name = "--dtype", .word = &ServingJob::dtype},
    VllmFlag{.name = "--kv-cache-dtype", .word = &ServingJob::kv_cache_dtype},
    VllmFlag{.name = "--quantization", .short_name = "-q", .word = &ServingJob::quantization},
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

/// Writes the value of a flag of kVllmFlags.
inline core::Status set_flag(const VllmFlag& flag, std::string_view value, ServingJob& job) {
  if (flag.word != nullptr) {
    job.*flag.word = value;
    return core::Done{};
  }
  const std::optional<std::int64_t> number = whole_tokens(value);
  if (!number) return wrong_flag(flag.name, "give a whole number of at least 1");
  if (flag.count != nullptr) job.*flag.count = *number;
  if (flag.limit != nullptr) job.*flag.limit = *number;
  return core::Done{};
}

inline core::Status set_utilization(const std::string& value, ServingJob& job) {
  char* end = nullptr;
  const double share = std::strtod(value.c_str(), &end);
  if (value.empty() || *end != '\0' || !std::isfinite(share)) {
    return wrong_flag("--gpu-memory-utilization", "give a share of the GPU's memory, such as 0.9");
  }
  job.gpu_memory_utilization = share;
  return core::Done{};
}

/// One flag with its value.
inline core::Status take_value(const std::string& name, const std::string& value, ServingJob& job) {
  if (name == "--gpu-memory-utilization") return set_utilization(value, job);
  for (const VllmFlag& flag : kVllmFlags) {
    if (name == flag.name || name == flag.short_name) return set_flag(flag, value, job);
  }
  if (std::ranges::find(kVllmValuesWithoutEffect, name) != kVllmValuesWithoutEffect.end()) return core::Done{};
  return wrong_flag(name, "gpumem has no rule for this flag of vLLM; leave it out if it changes no memory");
}

}  // namespace vllm_command_detail

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
    if (name == "--enforce-eager") {
      job.enforce_eager = true;
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
