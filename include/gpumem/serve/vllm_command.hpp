// Input: the words of a command that starts a server, "vllm serve NAME --tensor-parallel-size 2", or its options one by
// one.
// Output: the ServingJob that they ask for.
// Source: vLLM 0.19, engine/arg_utils.py, EngineArgs.add_cli_args().
#pragma once

#include <cstdint>
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
  std::int64_t ServingJob::*count = nullptr;
  std::optional<std::int64_t> ServingJob::*limit = nullptr;
  std::optional<double> ServingJob::*share = nullptr;
  std::string ServingJob::*word = nullptr;
  bool ServingJob::*flag = nullptr;
};
/// Every front end takes these.
[[nodiscard]] std::span<const ServingOption> serving_options();

/// Writes the value of the option of this name ("max_model_len", "8192"). Of a flag it is "true" or "false".
/// Errors: invalid_argument, naming the option.
[[nodiscard]] core::Status set_serving_option(ServingJob& job, std::string_view name, std::string_view value);

/// The words of "vllm serve NAME --tensor-parallel-size 2 ..." over what `job` already says.
/// Errors: invalid_argument, naming a flag that is unknown or that has no rules.
[[nodiscard]] core::Result<ServingJob> read_vllm_command(std::span<const std::string> words, ServingJob job);

}  // namespace gpumem::serve
