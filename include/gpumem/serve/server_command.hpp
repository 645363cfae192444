// Input: the words of a command that starts a server, "vllm serve NAME --tensor-parallel-size 2", or its options one by
// one.
// Output: the ServingJob that they ask for, or the whole ServingRequest.
// Source: vLLM 0.19, engine/arg_utils.py, EngineArgs.add_cli_args(); SGLang 0.5, srt/server_args.py.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "gpumem/core/result.hpp"
#include "gpumem/serve/serving_job.hpp"

namespace gpumem::serve {

/// An option of a server that changes its memory: one of the pointers says which member it is.
struct ServingOption {
  std::string_view name;             ///< vLLM's own: "max_model_len"; its flag is --max-model-len
  std::string_view help;             ///< one line, for people
  std::string_view short_flag = {};  ///< "-tp"
  std::string_view sglang = {};      ///< SGLang's own name; empty: gpumem has no rule for it there
  std::int64_t ServingJob::*count = nullptr;
  std::optional<std::int64_t> ServingJob::*limit = nullptr;
  std::optional<double> ServingJob::*share = nullptr;
  double ServingJob::*gib = nullptr;
  std::string ServingJob::*word = nullptr;
  bool ServingJob::*flag = nullptr;
};
/// How an engine calls the option of this name of vLLM's, "mem_fraction_static"; empty: it has none that has rules.
[[nodiscard]] std::string_view option_name(std::string_view engine, std::string_view option);
/// Every front end takes these.
[[nodiscard]] std::span<const ServingOption> serving_options();

/// Whether an option of vLLM, "served_model_name", is known to change no memory of the GPU.
[[nodiscard]] bool changes_no_memory(std::string_view option);

/// Writes the value of the option of this name ("max_model_len", "8192"). Of a flag it is "true" or "false".
/// Errors: invalid_argument, naming the option.
[[nodiscard]] core::Status set_serving_option(ServingJob& job, std::string_view name, std::string_view value);

/// "v0.19.1rc1": 0 and 19.
struct EngineVersion {
  std::int64_t major_part = 0, minor_part = 0;
  friend auto operator<=>(const EngineVersion&,
                          const EngineVersion&) = default;  // NOLINT(modernize-use-nullptr): its bug
};
/// Nothing: the text does not begin with a whole number, or with two and a dot between them.
[[nodiscard]] std::optional<EngineVersion> engine_version(std::string_view text);

/// The words of "vllm serve NAME --tensor-parallel-size 2 ..." or "python -m sglang.launch_server --tp 2 ..." over what
/// `job` already says. Errors: invalid_argument, naming a flag that is unknown or that has no rules.
[[nodiscard]] core::Result<ServingJob> read_server_command(std::span<const std::string> words, ServingJob job);

/// What a speculative_config asks for.
struct Speculation {
  std::string method;      ///< ngram, suffix, mtp, eagle, eagle3 or draft_model
  std::string model;       ///< of the draft; empty: it needs none
  std::int64_t ranks = 0;  ///< GPUs that share the draft; 0: as many as share the model
};
/// Nothing: no speculation. Errors: invalid_argument for what is no JSON object, and for a method without rules.
[[nodiscard]] core::Result<std::optional<Speculation>> read_speculation(std::string_view config);

/// Images of one request, of {"image": 2}, {"image": {"count": 2}} or "image=2". Nothing: no limit. Errors:
/// invalid_argument.
[[nodiscard]] core::Result<std::optional<std::int64_t>> images_per_prompt(std::string_view limits);

/// What a front end is given about a server.
struct ServingWords {
  std::string config;  ///< empty: the model that the command names
  std::string gpu;
  std::string version;                              ///< of the engine; empty: the newest whose rules are known
  std::span<const std::string> command = {};        ///< "vllm serve NAME ..."; empty: none
  std::map<std::string, std::string> options = {};  ///< by vLLM's names; they hold over the command's
};

/// The question that the words ask. Every front end makes its requests here. Errors: those of read_server_command() and
/// set_serving_option(); invalid_argument where neither config nor command names a model.
[[nodiscard]] core::Result<ServingRequest> serving_request_of(const ServingWords& words);

}  // namespace gpumem::serve
