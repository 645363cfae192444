// Input: measured starts of inference servers: a table with one start a row, or the log of one start.
// Output: ServingStart: what was asked for, with what the server's own log said about it.
// Units: GiB (2^30 bytes), as vLLM prints them; tokens.
// Source: the lines of vLLM's log, versions 0.6 to 0.19: v1/worker/gpu_worker.py, determine_available_memory() and
// compile_or_warm_up_model(); v1/worker/gpu_model_runner.py, load_model() and capture_model();
// v1/core/kv_cache_utils.py, _report_kv_cache_config(); entrypoints/utils.py, log_non_default_args().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/csv.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/serve/serving_job.hpp"

namespace gpumem::datasets {

/// How a start ended. Refused: it needs more memory than there is, or longer requests than the model takes. Unrelated:
/// it failed for another reason, such as other processes on the GPU.
enum class StartOutcome : std::uint8_t { started, refused, unrelated };

/// What the log said. Nothing: it did not say.
struct LoggedStart {
  std::optional<double> gpu_gib = {};
  std::optional<double> weights_gib = {};
  std::optional<double> activation_gib = {};
  std::optional<double> outside_pytorch_gib = {};
  std::optional<double> cuda_graphs_gib = {};
  std::optional<double> kv_cache_gib = {};
  std::optional<std::int64_t> kv_cache_tokens = {};
  StartOutcome outcome = StartOutcome::started;
  std::string why = {};  ///< it did not start
};

struct ServingStart {
  std::string name;
  std::string model;  ///< "meta-llama/Llama-3.1-8B-Instruct"
  std::string gpu;    ///< as the table names it; empty: it does not
  serve::ServingJob job;
  LoggedStart logged;
  std::vector<std::string> left_out = {};  ///< options of a log that gpumem cannot follow
  std::int64_t line = 0;                   ///< of the table, from 1
  std::optional<core::Error> error;        ///< why there is no job
};

/// Whether the header is that of a table of starts: name, model, version, weights_gib, status and others.
[[nodiscard]] bool is_serving_table(const core::CsvTable& table);
/// Its rows. What is wrong with a row is in its start.
[[nodiscard]] std::vector<ServingStart> read_serving_table(const core::CsvTable& table);

/// The log of one start of vLLM. Errors: unknown_format for a text without vLLM's line about its engine.
[[nodiscard]] core::Result<ServingStart> read_vllm_log(std::string_view text);

}  // namespace gpumem::datasets
