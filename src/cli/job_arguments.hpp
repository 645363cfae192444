// Input: a command.
// Output: the options of a job (gpumem/job/job_options.hpp), added to the command's options. Each writes into a
// JobRequest while the command line is parsed.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpumem/job/job_options.hpp"

namespace gpumem::cli {

/// Thrown through the parsing where an option does not take a value: not a wrong word, but a wrong choice.
struct OptionRefused : std::runtime_error {
  explicit OptionRefused(core::Error why) : std::runtime_error(why.message), error(std::move(why)) {}
  core::Error error;
};

/// A whole number as people write it: decimal (CLI11 reads 010 as 8), and an error beyond 64 bits (CLI11 takes the
/// largest number instead).
[[nodiscard]] const CLI::Validator& whole_number();

/// The words of a command line, where a switch and a choice behind it are one word: "--checkpointing every:2" as
/// "--checkpointing=every:2". CLI11 takes a flag's value in that form only.
[[nodiscard]] std::vector<std::string> with_switches_joined(std::span<const char* const> arguments);

/// Whether the file begins as a recording does, which has a batch size of its own. Others are not opened: opening
/// already may block. A file that is missing may be anything: that it is missing is told, and not what else is.
[[nodiscard]] bool may_be_recording(const std::string& path);

/// Writes an option of a job that `words` have by another of its names ("--batch-size=4") by the one that the command
/// has: "--batch=4".
void name_as_usual(const CLI::App& command, std::vector<std::string>& words);

/// The words of a command line, those of the user's own command apart.
struct CutWords {
  std::span<const char* const> ours;
  std::vector<std::string> theirs;
};

/// "gpumem run --memory 2GiB -- python3 train.py": what comes after the first "--" is the user's, where a command
/// takes_command(). Others keep all words.
[[nodiscard]] CutWords cut_command(std::span<const char* const> arguments);

/// All options but `without`. An on-off option that is on by default is `--no-...`. `request` outlives the parsing,
/// which throws OptionRefused besides what CLI11 throws.
void add_job_options(CLI::App& command, job::JobRequest& request, const std::vector<std::string_view>& without = {});

/// An option whose value is kept as a word.
struct WordOption {
  std::string_view name;  ///< "max_model_len": of --max-model-len
  std::string_view type;  ///< what stands for its value in help; empty: it is a flag, whose word is "true"
  std::string help;
  const char* group = "";
};
/// Adds it; its word goes to its name in `words`, which outlives the parsing.
void add_word(CLI::App& command, std::map<std::string, std::string>& words, const WordOption& option);

/// What is asked of a server or a post-training in place of its memory: --fit, --advise, --plan or --for, one at a
/// time;
/// --json besides. `advise` and `plan` are the help of these.
template <typename Options>
void add_questions(CLI::App& command, Options& options, const char* advise, const char* plan) {
  CLI::Option* const fits = command.add_flag("--fit", options.fit, "how far each option can go on this GPU");
  CLI::Option* const advises = command.add_flag("--advise", options.advise, advise)->excludes(fits);
  CLI::Option* const plans = command.add_option("--plan", options.plan, plan)
                                 ->excludes(fits)
                                 ->excludes(advises)
                                 ->check(CLI::Range(1, 1024).description(""))
                                 ->type_name("GPUS");
  CLI::Option* const target =
      command.add_option("--for", options.target, "what to ask this scheduler for, as 'gpumem request' does")
          ->excludes(fits)
          ->excludes(advises)
          ->excludes(plans)
          ->type_name("TARGET");
  command.add_option("--margin", options.margin, "with --for: upper, or bytes beyond what is expected")
      ->needs(target)
      ->capture_default_str();
  command.add_flag("--json", options.json, "print one JSON object")->excludes(target);
}

/// The estimators of memory, as words: "replay, ..., all".
[[nodiscard]] std::string estimator_names();
enum class Estimators : std::uint8_t { any, one };
/// The option --estimator that is already there takes these; `one`: not "all" of them at once.
void name_estimators(CLI::App& command, Estimators which = Estimators::any);

}  // namespace gpumem::cli
