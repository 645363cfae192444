#include "job_arguments.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <memory>

#include "command_table.hpp"
#include "gpumem/core/file.hpp"
#include "gpumem/estimate/estimator.hpp"
#include "gpumem/job/job_options.hpp"
#include "gpumem/summary/text.hpp"

namespace gpumem::cli {

namespace {

using job::JobOption;
using job::JobRequest;
using job::OptionType;

std::string read_whole_number(std::string& text) {
  const std::size_t sign = text.starts_with('-') ? 1 : 0;
  std::size_t at = sign;
  const auto value = summary::read_digits(text, at);
  if (at == sign || at != text.size()) return "must be a whole number, not '" + text + "'";
  if (!value) return text + " does not fit 64 bits";
  text = (sign == 1 ? "-" : "") + std::to_string(*value);
  return "";
}

std::string help_of(const JobOption& option) { return job::spelled(job::help_text(option), job::kCommandLine); }

void take(const JobOption& option, JobRequest& request, const std::string& word) {
  const core::Status taken = job::set_option_text(option, request, word);
  if (!taken) throw OptionRefused(taken.error());
}

std::string group_of(const JobOption& option) { return std::string(job::to_string(option.group)); }

void add_flag(CLI::App& command, const JobOption& option, JobRequest& request) {
  const bool usual = job::default_text(option) == "true";
  const auto given = [&option, &request, usual](std::int64_t count) {
    take(option, request, (count > 0) != usual ? "true" : "false");
  };
  const std::string begin = usual ? "--no-" : "--";
  const std::string help = (usual ? "do not use " : "") + help_of(option);
  command.add_flag_function(begin + std::string(option.flag), given, help)->group(group_of(option));
}

/// "on" if it has no value, otherwise what comes after "=".
void add_switch(CLI::App& command, const JobOption& option, JobRequest& request) {
  const auto held = std::make_shared<std::string>();
  const auto given = [&option, &request, held](const std::string& word) { take(option, request, word); };
  command.add_flag("--" + std::string(option.flag), *held, help_of(option))->each(given)->group(group_of(option));
}

/// The switch of this name on a command line that takes this word. Null: there is none.
const JobOption* switch_taking(std::string_view argument, const std::string& word) {
  if (!argument.starts_with("--")) return nullptr;
  const JobOption* option = job::find_flag(argument.substr(2));
  if (option == nullptr || option->place.type != OptionType::switch_or_choice) return nullptr;
  JobRequest scratch;
  return job::set_option_text(*option, scratch, word) ? option : nullptr;
}

void add_value(CLI::App& command, const JobOption& option, JobRequest& request) {
  const auto given = [&option, &request](const std::string& word) { take(option, request, word); };
  CLI::Option* added =
      command.add_option_function<std::string>("--" + std::string(option.flag), given, help_of(option));
  added->type_name(std::string(option.value))->group(group_of(option));
  if (const std::string usual = job::default_text(option); !usual.empty()) added->default_str(usual);
  if (option.place.type == OptionType::whole_number) added->transform(whole_number());
  if (option.repeats) added->delimiter(',')->multi_option_policy(CLI::MultiOptionPolicy::Join);
}

}  // namespace

const CLI::Validator& whole_number() {
  static const CLI::Validator kValidator(&read_whole_number, "");
  return kValidator;
}

std::vector<std::string> with_switches_joined(std::span<const char* const> arguments) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < arguments.size(); ++at) {
    words.emplace_back(arguments[at]);
    const bool more = at + 1 < arguments.size();
    if (more && switch_taking(words.back(), arguments[at + 1]) != nullptr) {
      words.back() += "=" + std::string(arguments[++at]);
    }
  }
  return words;
}

bool may_be_recording(const std::string& path) {
  std::error_code fault;
  if (path != "-" && !std::filesystem::exists(path, fault)) return true;
  if (!std::filesystem::is_regular_file(path, fault)) return false;
  std::ifstream file(path, std::ios::binary);
  std::array<char, 128> front{};
  file.read(front.data(), front.size());
  const std::string_view text(front.data(), static_cast<std::size_t>(file.gcount()));
  return core::is_gzip(text) || summary::is_recording(text);
}

void name_as_usual(const CLI::App& command, std::vector<std::string>& words) {
  for (std::string& word : words) {
    if (!word.starts_with("--")) continue;
    const std::size_t end = std::min(word.find('='), word.size());
    const JobOption* const option = job::find_flag(std::string_view(word).substr(2, end - 2));
    if (option == nullptr || command.get_option_no_throw(word.substr(0, end)) != nullptr) continue;
    const std::string usual = "--" + std::string(option->flag);
    if (command.get_option_no_throw(usual) != nullptr) word.replace(0, end, usual);
  }
}

CutWords cut_command(std::span<const char* const> arguments) {
  const auto is_word = [](std::string_view word) { return !word.starts_with('-'); };
  const auto first =
      arguments.empty() ? arguments.end() : std::find_if(arguments.begin() + 1, arguments.end(), is_word);
  const bool runs = first != arguments.end() && takes_command(*first);
  const auto is_end = [](std::string_view word) { return word == "--"; };
  const auto end = runs ? std::find_if(first, arguments.end(), is_end) : arguments.end();
  CutWords cut;
  cut.ours = arguments.first(static_cast<std::size_t>(end - arguments.begin()));
  if (end != arguments.end()) cut.theirs.assign(end + 1, arguments.end());
  return cut;
}

void add_job_options(CLI::App& command, JobRequest& request, const std::vector<std::string_view>& without) {
  for (const JobOption& option : job::job_options()) {
    if (std::find(without.begin(), without.end(), option.name) != without.end()) continue;
    if (option.place.type == OptionType::flag) {
      add_flag(command, option, request);
    } else if (option.place.type == OptionType::switch_or_choice) {
      add_switch(command, option, request);
    } else {
      add_value(command, option, request);
    }
  }
}

void add_word(CLI::App& command, std::map<std::string, std::string>& words, const WordOption& option) {
  std::string flag = "--" + std::string(option.name);
  std::replace(flag.begin(), flag.end(), '_', '-');
  if (option.type.empty()) {
    const auto turn_on = [&words, name = std::string(option.name)](std::int64_t) { words[name] = "true"; };
    command.add_flag_function(flag, turn_on, option.help)->group(option.group);
    return;
  }
  const auto set = [&words, name = std::string(option.name)](const std::string& word) { words[name] = word; };
  command.add_option_function<std::string>(flag, set, option.help)
      ->type_name(std::string(option.type))
      ->group(option.group);
}

std::string estimator_names() {
  std::string names;
  for (const auto& entry : estimate::estimators()) names += std::string(entry.name) + ", ";
  return names + "all";
}

void name_estimators(CLI::App& command, Estimators which) {
  std::string names = estimator_names();
  if (which == Estimators::one) names.resize(names.rfind(", "));  // without "all"
  command.get_option("--estimator")->description(names);
}

}  // namespace gpumem::cli
