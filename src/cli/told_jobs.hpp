// Input: a request, and what else tells the job: a trainer's file, an adapter's config, the command that starts it,
// which is read once; the session in which the job is asked about, for what has to be looked up in its model.
// Output: the request with what they say laid under it (options that were given stay), and notes for what every answer
// assumes. A command that starts a server or a post-training is answered by those commands.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "commands.hpp"
#include "launch_command.hpp"

namespace gpumem::cli {

struct ToldJob {
  JobRequest request;
  std::vector<estimate::Assumption> notes;
  std::int64_t gpus = 1;          ///< that the command starts on
  std::int64_t global_batch = 0;  ///< samples a step, by the command alone; 0: it does not say
  /// The job as it may be as well, where a file that the command names is not here. Nothing: all files are read.
  std::optional<JobRequest> otherwise = {};
};

/// What the question does not ask of a job; such options of a command are left out.
using LeftOut = std::vector<std::string_view>;

/// Of `gpumem estimate`.
[[nodiscard]] Result<ToldJob> told_by_trainer_file(Session& session, const EstimateOptions& options);

/// The command behind "--"; nothing: there is none.
using Launched = std::optional<trainer_files::LaunchedJob>;
/// Errors: those of reading the command and its files.
[[nodiscard]] Result<Launched> launched_by(const std::vector<std::string>& command);

/// Without a command, the request as it is. Errors: missing_information where neither says the model or the batch size;
/// invalid_argument for a command that starts no training.
[[nodiscard]] Result<ToldJob> told_by_command(Session& session, const Launched& launched, const JobRequest& request,
                                              const LeftOut& left_out = {});

/// The same for a job that is placed without an estimate: where nobody says its model or batch size, it is what the
/// command says of the number of GPUs. Errors: the others of told_by_command().
[[nodiscard]] Result<ToldJob> told_without_estimate(Session& session, const Launched& launched,
                                                    const JobRequest& request);

/// The job of which `options` look for something, which neither they nor the command need to say; they get its request.
/// Errors: also those of estimate::what_grows().
[[nodiscard]] Result<ToldJob> told_for_fit(Session& session, const Launched& launched, FitOptions& options);

/// What the command says of a plan where no option does; its layout and batch are what a plan chooses. A global batch
/// of 0 was not given. Errors: also missing_information where nobody says it.
[[nodiscard]] Result<ToldJob> told_for_plan(Session& session, const Launched& launched, PlanOptions& options);

/// The estimates of a told job, with what it assumes. Where it may be otherwise, the ranges hold both.
[[nodiscard]] Result<EstimatedJob> estimate_told_job(Session& session, const ToldJob& told);

enum class Question : std::uint8_t { estimate, fit, advise, plan, other };

/// The exit code, where the command starts an inference server or a post-training: `serve` and `posttrain` have
/// answered it. Nothing: it starts a training, or there is none.
[[nodiscard]] std::optional<int> answered_elsewhere(const Launched& launched, const JobRequest& request,
                                                    Question question, bool json);

/// Whether the request has options that say nothing of an inference server. Errors: invalid_argument, naming one.
[[nodiscard]] core::Status asks_of_a_server(const JobRequest& request);

/// The notes are among what the estimate assumes.
void assume(const std::vector<estimate::Assumption>& notes, MemoryEstimate& estimate);
void assume(const std::vector<estimate::Assumption>& notes, EstimatedJob& estimated_job);
/// An error that they may explain: the notes are behind its message.
[[nodiscard]] Error assuming(const std::vector<estimate::Assumption>& notes, Error error);
/// A line of each: "assumed: from the command: --batch 4".
[[nodiscard]] std::string assumed_lines(const std::vector<estimate::Assumption>& notes);

}  // namespace gpumem::cli
