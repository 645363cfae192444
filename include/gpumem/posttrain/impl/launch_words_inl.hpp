#pragma once

#include "gpumem/posttrain/launch.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "gpumem/job/job_options.hpp"
#include "gpumem/posttrain/post_training_options.hpp"

namespace gpumem::posttrain {

namespace launch_words_detail {

/// A program of post-training whose settings nobody reads here, by a key that it alone has; empty: it is none of these.
inline std::string_view program_without_rules(std::span<const LaunchSetting> settings) {
  constexpr std::pair<std::string_view, std::string_view> kKeys[] = {{"loss_fn.", "NeMo-RL"},
                                                                     {"policy.", "NeMo-RL"},
                                                                     {"finetuning_type", "LLaMA-Factory"},
                                                                     {"rollout_num_gpus_per_engine", "slime"},
                                                                     {"sglang_mem_fraction_static", "slime"}};
  for (const LaunchSetting& setting : settings) {
    for (const auto& [key, program] : kKeys) {
      const bool group = key.ends_with('.');
      if (group ? setting.key.starts_with(key) : setting.key == key) return program;
    }
  }
  return {};
}

/// The program that the options name, or whose keys the settings are.
inline core::Result<Program> program_of_words(const PostTrainingWords& words, std::span<const LaunchSetting> settings) {
  if (const auto named = words.options.find("program"); named != words.options.end()) {
    PostTrainingOptions options;
    const core::Status set = set_post_training_option(options, "program", named->second);
    if (!set) return set.error();
    return options.program;
  }
  if (const std::string_view other = program_without_rules(settings); !other.empty()) {
    return core::Error{core::ErrorCode::unknown_format,
                       "these are settings of " + std::string(other) +
                           ", which are not read; say the job with options, and set `program` to the one most like it",
                       {}};
  }
  if (const auto known = program_of(settings)) return *known;
  return core::Error{core::ErrorCode::missing_information, "whose settings are these? give `program`", {}};
}

/// Options of ours count more than the program's settings.
inline core::Status lay_over(const job::JobRequest& given, job::JobRequest& request) {
  for (const job::JobOption& option : job::job_options()) {
    if (!job::is_given(option, given)) continue;
    const std::optional<job::OptionValue> value = option.place.get(given);
    if (!value) continue;
    if (core::Status set = job::set_option(option, request, *value); !set) return set;
  }
  if (!given.summary.empty()) request.summary = given.summary;
  return core::Done{};
}

/// Whether somebody gave the option to us.
inline bool gives(const PostTrainingWords& words, const job::JobRequest& given, std::string_view name) {
  if (words.options.contains(std::string(name))) return true;
  const job::JobOption* const option = job::find_option(name);
  return option != nullptr && job::is_given(*option, given);
}

inline core::Status say_missing(const PostTrainingWords& words, const Launch& launch, PostTrainingRequest& request) {
  for (const MissingSetting& missing : launch.missing) {
    const auto given = [&](std::string_view name) { return gives(words, request.training, name); };
    if (std::any_of(missing.options.begin(), missing.options.end(), given)) continue;
    const std::string text = "the settings do not say " + missing.what;
    if (missing.required) {
      const std::string remedy = "; give `" + std::string(missing.options.front()) + "`";
      return core::Error{core::ErrorCode::missing_information, text + remedy, {}};
    }
    request.assumed.push_back({"settings", text});
  }
  return core::Done{};
}

/// The job of a program's settings, and what of them nobody models or knows.
inline core::Status take_settings(const PostTrainingWords& words, PostTrainingRequest& request) {
  auto settings = words.settings;
  auto command = launch_settings(words.command);
  if (!command) return command.error();
  settings.insert(settings.end(), command->begin(), command->end());
  const core::Result<Program> program = program_of_words(words, settings);
  if (!program) return program.error();
  core::Result<Launch> launch = read_launch(*program, settings);
  if (!launch) return launch.error();
  const auto say = [&](std::string text) { request.assumed.push_back({"settings", std::move(text)}); };
  for (const std::string& text : launch->decided) say(text);
  for (const std::string& text : launch->not_modelled) say(text + " is not modelled");
  for (const std::string& key : launch->unknown) say("the key " + key + " is not known");
  if (core::Status said = say_missing(words, *launch, request); !said) return said;
  PostTrainingRequest made = std::move(launch->request);
  made.training.summary = std::move(launch->model);
  if (core::Status laid = lay_over(request.training, made.training); !laid) return laid;
  // Who says how long the sequences are has no use for a limit.
  const auto says = [&](std::string_view name) { return gives(words, request.training, name); };
  if (says("seq_length") || says("prompt_length") || says("completion_length")) made.options.length_limit.reset();
  made.assumed = std::move(request.assumed);
  request = std::move(made);
  return core::Done{};
}

/// What somebody tells us of lengths has to go together.
inline core::Status check_lengths(const PostTrainingWords& words, const PostTrainingRequest& request) {
  const PostTrainingOptions& to = request.options;
  const bool told = words.options.contains("prompt_length") && words.options.contains("completion_length");
  const auto whole = request.training.training.sequence_length;
  if (!told || to.packing || !whole || !to.prompt_length || !to.completion_length) return core::Done{};
  if (core::bounded_sum({*to.prompt_length, *to.completion_length}) == *whole) return core::Done{};
  return core::Error{core::ErrorCode::invalid_argument,
                     "`seq_length` " + std::to_string(*whole) + " is not prompt_length " +
                         std::to_string(*to.prompt_length) + " with completion_length " +
                         std::to_string(*to.completion_length) + "; leave one of them out",
                     {}};
}

}  // namespace launch_words_detail

GPUMEM_INLINE core::Status read_words(const PostTrainingWords& words, PostTrainingRequest& request) {
  namespace detail = launch_words_detail;
  for (const auto& [name, value] : words.options) {
    const job::JobOption* const option = find_post_training_option(name) == nullptr ? job::find_option(name) : nullptr;
    if (option == nullptr) continue;
    if (core::Status set = job::set_option_text(*option, request.training, value); !set) return set;
  }
  const bool whole = detail::gives(words, request.training, "seq_length");
  if (!words.settings.empty() || !words.command.empty()) {
    if (core::Status taken = detail::take_settings(words, request); !taken) return taken;
  }
  for (const auto& [name, value] : words.options) {
    if (find_post_training_option(name) == nullptr && job::find_option(name) != nullptr) continue;
    if (core::Status set = set_post_training_option(request.options, name, value); !set) return set;
  }
  if (core::Status fit = whole ? detail::check_lengths(words, request) : core::Done{}; !fit) return fit;
  if (!request.training.summary.empty()) return core::Done{};
  return core::Error{core::ErrorCode::invalid_argument, "give the policy's config.json", {}};
}

}  // namespace gpumem::posttrain
