// Input: a request, and what else tells the job: a trainer's file, an adapter's config, the command that starts it.
// Output: the request with what they say laid under it (options that were given stay), and notes for what every answer
// assumes. A command that starts a server or a post-training is answered by those commands.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "commands.hpp"

namespace gpumem::cli {

struct ToldJob {
  JobRequest request;
  std::vector<estimate::Assumption> notes;
  std::int64_t gpus = 1;          ///< that the command starts on
  std::int64_t global_batch = 0;  ///< samples a step, by the command alone; 0: it does not say
};

/// What the question does not ask of a job; such options of a command are left out.
using LeftOut = std::vector<std::string_view>;

/// Of `gpumem estimate`.
[[nodiscard]] Result<ToldJob> told_by_trainer_file(const EstimateOptions& options);

/// Of the command behind "--"; without one, the request as it is. Errors: those of reading the command and its files;
/// missing_information where neither says the model or the batch size.
[[nodiscard]] Result<ToldJob> told_by_command(const std::vector<std::string>& command, const JobRequest& request,
                                              const LeftOut& left_out = {});

enum class Question : std::uint8_t { estimate, fit, advise, plan, other };

/// The exit code, where the command starts an inference server or a post-training: `serve` and `posttrain` have
/// answered it. Nothing: it starts a training, or there is none.
[[nodiscard]] std::optional<int> answered_elsewhere(const std::vector<std::string>& command, const JobRequest& request,
                                                    Question question, bool json);

/// Whether the request has options that say nothing of an inference server. Errors: invalid_argument, naming one.
[[nodiscard]] core::Status asks_of_a_server(const JobRequest& request);

/// The notes are among what the estimate assumes.
void assume(const std::vector<estimate::Assumption>& notes, MemoryEstimate& estimate);
void assume(const std::vector<estimate::Assumption>& notes, EstimatedJob& estimated_job);
/// A line of each: "assumed: from the command: --batch 4".
[[nodiscard]] std::string assumed_lines(const std::vector<estimate::Assumption>& notes);

}  // namespace gpumem::cli
