// For tests that take the list of a job's options through a front end.
#pragma once

#include <string>

#include "gpumem/job/job_options.hpp"

namespace gpumem::testing {

/// A choice as people give it: with a number in the place of the N at its end.
inline std::string given(std::string_view choice) {
  const bool counted = choice.ends_with(":N");
  return std::string(choice.substr(0, choice.size() - (counted ? 1 : 0))) + (counted ? "3" : "");
}

/// A value other than the option's default, as text.
inline std::string other_value(const job::JobOption& option) {
  const std::string usual = job::default_text(option);
  switch (option.place.type) {
    case job::OptionType::flag:
    case job::OptionType::switch_or_choice: return usual == "true" ? "false" : "true";
    case job::OptionType::whole_number: return "3";
    case job::OptionType::fraction: return "0.25";
    case job::OptionType::dimensions: return "3x5x7";
    case job::OptionType::text:
    case job::OptionType::name_or_path: return "gpumemnet-mlp-cnn";  // a built-in model: the webhook takes no other
    case job::OptionType::choice: break;
  }
  const job::Names names = option.place.choices();
  return given(names.back() == usual ? names.front() : names.back());
}

/// What the option is in this request, as text; empty: not given.
inline std::string value_in(const job::JobRequest& request, const job::JobOption& option) {
  const auto value = option.place.get(request);
  return value ? job::to_text(*value) : std::string();
}

/// The request with nothing but this option set to other_value().
inline job::JobRequest with_other_value(const job::JobOption& option) {
  job::JobRequest request;
  if (!job::set_option_text(option, request, other_value(option))) request.summary = "not set";
  return request;
}

}  // namespace gpumem::testing
