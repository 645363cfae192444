// Input: the name of an option of a post-training job and its value as a word.
// Output: the value in PostTrainingOptions. One row an option: every front end takes these, beside the options of how
// the policy is trained (gpumem/job/job_options.hpp).
// Units: those that each row's help names.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/posttrain/post_training_job.hpp"

namespace gpumem::posttrain {

struct PostTrainingOption {
  std::string_view name;   ///< in JSON: "gpu_memory_utilization"; its flag is --gpu-memory-utilization
  std::string_view value;  ///< the placeholder of its value: "N"; empty: it is on or off
  std::string_view help;   ///< one line, for people; the choices follow
  /// False: the word is no value of it.
  bool (*set)(PostTrainingOptions& options, std::string_view word);
  std::vector<std::string_view> (*choices)() = nullptr;  ///< of a choice
};

[[nodiscard]] std::span<const PostTrainingOption> post_training_options();
/// Null: there is no such option.
[[nodiscard]] const PostTrainingOption* find_post_training_option(std::string_view name);

/// The help with the choices: "the program that trains: trl, verl".
[[nodiscard]] std::string help_of(const PostTrainingOption& option);

/// Of an option that is on or off, the word is "true", "false", "1" or "0". Names are taken in any case. Errors:
/// invalid_argument, naming option and word.
[[nodiscard]] core::Status set_post_training_option(PostTrainingOptions& options, std::string_view name,
                                                    std::string_view word);

}  // namespace gpumem::posttrain
