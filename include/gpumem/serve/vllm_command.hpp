// Input: the words of a command that starts a server, "vllm serve NAME --tensor-parallel-size 2".
// Output: the ServingJob that they ask for.
// Source: vLLM 0.19, engine/arg_utils.py, EngineArgs.add_cli_args().
#pragma once

#include <span>
#include <string>

#include "gpumem/core/result.hpp"
#include "gpumem/serve/serving_job.hpp"

namespace gpumem::serve {

/// The words of "vllm serve NAME --tensor-parallel-size 2 ..." over what `job` already says.
/// Errors: invalid_argument, naming a flag that is unknown or that has no rules.
[[nodiscard]] core::Result<ServingJob> read_vllm_command(std::span<const std::string> words, ServingJob job);

}  // namespace gpumem::serve
