// Input: a dictionary of a job's options from Python.
// Output: the JobRequest, and from a JobRequest the dictionary; and the list of the options.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>

#include "call.hpp"
#include "gpumem/job/job_options.hpp"

namespace gpumem::python {

using job::JobOption;
using job::JobRequest;
using job::OptionType;
using job::OptionValue;

/// A value as the package gives it: of the option's type, shapes as text.
inline OptionValue value_from(const JobOption& option, const py::handle& value) {
  if (option.place.type == OptionType::flag) return value.cast<bool>();
  const bool is_switch = option.place.type == OptionType::switch_or_choice;
  if (is_switch && py::isinstance<py::bool_>(value)) return value.cast<bool>();
  if (option.place.type == OptionType::whole_number) return value.cast<std::int64_t>();
  if (option.place.type == OptionType::fraction) return value.cast<double>();
  return value.cast<std::string>();
}

inline py::object object_of(const std::optional<OptionValue>& value) {
  if (!value) return py::none();
  if (const auto* word = std::get_if<std::string>(&*value)) return text(*word);
  return std::visit([](const auto& held) { return py::cast(held); }, *value);
}

inline JobRequest request_of(const py::dict& options) {
  JobRequest request;
  for (const auto& [name, value] : options) {
    const auto word = name.cast<std::string>();
    const JobOption* option = job::find_option(word);
    if (option == nullptr) throw py::key_error(word);
    const core::Status taken = job::set_option(*option, request, value_from(*option, value));
    if (!taken) throw Failure{taken.error(), Running::within_call()};
  }
  job::forget_defaults(request);  // Python's signatures pass every option
  return request;
}

inline py::dict options_of(const JobRequest& request) {
  py::dict options;
  for (const JobOption& option : job::job_options()) options[text(option.name)] = object_of(option.place.get(request));
  return options;
}

inline const char* kind_of(OptionType type) {
  switch (type) {
    case OptionType::flag: return "flag";
    case OptionType::whole_number: return "whole_number";
    case OptionType::fraction: return "fraction";
    case OptionType::text: return "text";
    case OptionType::name_or_path: return "name_or_path";
    case OptionType::choice: return "choice";
    case OptionType::switch_or_choice: return "switch_or_choice";
    case OptionType::dimensions: return "dimensions";
  }
  return "text";
}

/// Name, kind, default and choices of each option of a job.
inline py::tuple options() {
  py::list list;
  for (const JobOption& option : job::job_options()) {
    const job::Names choices = option.place.choices == nullptr ? job::Names() : option.place.choices();
    list.append(py::make_tuple(text(option.name), kind_of(option.place.type), object_of(option.place.get(JobRequest())),
                               texts(choices)));
  }
  return list;
}

}  // namespace gpumem::python
