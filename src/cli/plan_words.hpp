// Input: what a plan is asked besides its job, as words by their names in JSON: {"gpus": "64", "global_batch": "512"}.
// Output: PlanOptions, and the question for search::find_layouts(). The command line, MCP, the web page, the C API and
// Python all ask through here.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/job/job_options.hpp"
#include "gpumem/search/find_layouts.hpp"

namespace gpumem::cli {

using job::JobRequest;

struct PlanOptions {
  JobRequest request = {};              ///< without a batch size and a layout
  std::vector<std::int64_t> gpus = {};  ///< none: the fewest on which a layout fits; several: a plan for each
  std::int64_t global_batch = 1;        ///< samples a step
  std::string framework = "any";        ///< a name of search::frameworks(), or any
  std::optional<std::int64_t> gpus_per_node = {};
  std::optional<double> network_gbps = {};  ///< of one GPU, in 10^9 bits a second
  bool no_overlap = false;                  ///< of Megatron's gradients and parameters with kernels
  search::MostRanks most = {};
  std::string explain = {};               ///< a layout to explain, as "tensor_parallel=8 sharding=fsdp2"
  std::int64_t show = 10;                 ///< layouts
  std::int64_t settings = 1;              ///< for how many layouts to print the framework's settings
  std::vector<std::string> command = {};  ///< that starts the training; empty: none
  bool json = false;
};

/// Whether `name` is one of these words: what is left is about the job.
[[nodiscard]] bool is_plan_word(std::string_view name);

/// Errors: invalid_argument, naming the word.
[[nodiscard]] core::Status take_plan_word(std::string_view name, std::string_view word, PlanOptions& options);

/// The same of JSON: {"gpus": 64}. A number is one there and a flag true or false, not a text.
[[nodiscard]] core::Status take_plan_options(const nlohmann::ordered_json& asked, PlanOptions& options);

/// Errors: invalid_argument for a number below 1, several numbers of GPUs, a name that is no framework's, and wrong
/// settings of the allocator.
[[nodiscard]] core::Result<search::Question> question_of(const PlanOptions& options);

}  // namespace gpumem::cli
