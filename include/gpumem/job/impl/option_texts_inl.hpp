#pragma once

#include "gpumem/job/option_texts.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <variant>

#include "gpumem/core/bytes.hpp"
#include "gpumem/job/option_words.hpp"

namespace gpumem::job {

namespace option_texts_detail {

/// Of what is not a job's estimate: `gpumem plan`, `request`, `evaluate`, a trainer's file, and the recorder.
inline constexpr std::string_view kOthers[] = {"global_batch", "gpus",    "gpus_per_node", "network_gbps", "framework",
                                               "summaries",    "adapter", "batch_arg",     "sequence_arg"};

/// Without its dashes; empty: there is no option of this name.
GPUMEM_INLINE std::string flag_of(std::string_view name) {
  if (const JobOption* option = find_option(name); option != nullptr) return std::string(option->flag);
  if (std::find(std::begin(kOthers), std::end(kOthers), name) == std::end(kOthers)) return {};
  std::string flag(name);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

}  // namespace option_texts_detail

GPUMEM_INLINE std::string spelled(std::string_view message, const Spelling& spelling) {
  std::string text;
  std::size_t at = 0;
  while (at < message.size()) {
    const std::size_t open = message.find('`', at);
    const std::size_t close = open == std::string_view::npos ? open : message.find('`', open + 1);
    if (close == std::string_view::npos) break;
    const std::string_view named = message.substr(open + 1, close - open - 1);
    const std::size_t equals = std::min(named.find('='), named.size());
    const std::string flag = option_texts_detail::flag_of(named.substr(0, equals));
    text += message.substr(at, open - at);
    at = close;  // a word that names nothing may end where another begins
    if (flag.empty()) {
      text += message.substr(open, close - open);
      continue;
    }
    const JobOption* option = find_option(named.substr(0, equals));
    const bool joined = option != nullptr && option->place.type == OptionType::switch_or_choice;
    text += std::string(spelling.before) + flag;
    if (equals < named.size()) {
      text += (joined ? std::string_view("=") : spelling.between);
      text += named.substr(equals + 1);
    }
    at = close + 1;
  }
  return text + std::string(message.substr(at));
}

GPUMEM_INLINE std::string_view to_string(OptionGroup group) {
  switch (group) {
    case OptionGroup::batch: return "The batch";
    case OptionGroup::training: return "How it trains";
    case OptionGroup::saving_memory: return "Saving memory";
    case OptionGroup::fine_tuning: return "Fine-tuning";
    case OptionGroup::many_gpus: return "Many GPUs";
    case OptionGroup::gpu: return "The GPU and its software";
    case OptionGroup::answer: return "The answer";
  }
  return "";
}

GPUMEM_INLINE std::string to_text(const OptionValue& value) {
  if (const bool* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  if (const auto* fraction = std::get_if<double>(&value)) return fraction_text(*fraction);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  std::string text;
  for (const std::int64_t size : std::get<Sizes>(value)) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

GPUMEM_INLINE std::string default_text(const JobOption& option) {
  const auto value = option.place.get(JobRequest());
  return value ? to_text(*value) : std::string();
}

GPUMEM_INLINE std::string expectation(const JobOption& option) {
  switch (option.place.type) {
    case OptionType::flag: return "must be \"true\" or \"false\"";
    case OptionType::whole_number: return "must be a whole number";
    case OptionType::fraction: return "must be a number";
    case OptionType::dimensions: return "must be of the form 3x224x224";
    case OptionType::text:
    case OptionType::name_or_path: return "must be a text";
    case OptionType::choice:
    case OptionType::switch_or_choice: break;
  }
  std::string names;
  for (const std::string_view name : option.place.choices()) names += (names.empty() ? "" : ", ") + std::string(name);
  return "choose one of " + names;
}

GPUMEM_INLINE std::string help_text(const JobOption& option) {
  std::string text(option.help);
  if (option.place.choices == nullptr) return text;
  std::string separator = ": ";
  for (const std::string_view name : option.place.choices()) {
    text += separator + std::string(name);
    separator = ", ";
  }
  return text;
}

GPUMEM_INLINE std::string remark_on(const JobOption& option, const JobRequest& request) {
  if (option.remark.empty() || is_default(option, request)) return {};
  const auto value = option.place.get(request);
  std::string text(option.remark);
  const std::size_t at = text.find('%');
  if (option.place.type == OptionType::switch_or_choice && value && !std::holds_alternative<bool>(*value)) {
    text += " " + to_text(*value);
  }
  if (at == std::string::npos || !value) return text;
  const auto* number = std::get_if<std::int64_t>(&*value);
  return text.replace(at, 1, number != nullptr ? core::with_separators(*number) : to_text(*value));
}

}  // namespace gpumem::job
