// Input: a member of TrainingJob or of JobRequest.
// Output: OptionPlace: how a row of the list of options reads and writes its value there, by the member's type. Only
// impl/job_options_inl.hpp uses this.
// Units: those of the option.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "gpumem/job/counted_choices.hpp"
#include "gpumem/job/job_options.hpp"

namespace gpumem::job {

namespace job_options_detail {

using model::TrainingJob;

template <typename Value>
Value& member(JobRequest& request, Value TrainingJob::*of) {
  return request.training.*of;
}
template <typename Value>
Value& member(JobRequest& request, Value JobRequest::*of) {
  return request.*of;
}
template <typename Value>
const Value& member(const JobRequest& request, Value TrainingJob::*of) {
  return request.training.*of;
}
template <typename Value>
const Value& member(const JobRequest& request, Value JobRequest::*of) {
  return request.*of;
}

template <typename Value>
Value& member(JobRequest& request, Value model::Layout::*of) {
  return request.training.layout.*of;
}
template <typename Value>
const Value& member(const JobRequest& request, Value model::Layout::*of) {
  return request.training.layout.*of;
}

template <typename Value>
constexpr bool is_of_training(Value model::Layout::* /*of*/) {
  return true;
}
template <typename Value>
constexpr bool is_of_training(Value TrainingJob::* /*of*/) {
  return true;
}
template <typename Value>
constexpr bool is_of_training(Value JobRequest::* /*of*/) {
  return false;
}

/// A bool, a text, a whole number, or one that may be missing.
template <auto kMember>
bool set_plain(JobRequest& request, const OptionValue& value) {
  auto& to = member(request, kMember);
  using Target = std::remove_reference_t<decltype(to)>;
  if constexpr (std::is_same_v<Target, std::optional<std::int64_t>>) {
    to = std::get<std::int64_t>(value);
  } else {
    to = std::get<Target>(value);
  }
  return true;
}

template <auto kMember>
std::optional<OptionValue> get_plain(const JobRequest& request) {
  const auto& from = member(request, kMember);
  using Source = std::remove_cvref_t<decltype(from)>;
  if constexpr (std::is_same_v<Source, std::optional<std::int64_t>>) {
    if (!from) return std::nullopt;
    return OptionValue(*from);
  } else {
    constexpr bool kHasDefault = std::is_same_v<Source, bool> || std::is_same_v<Source, double>;
    if (!kHasDefault && from == Source()) return std::nullopt;
    return OptionValue(from);
  }
}

template <auto kMember>
constexpr OptionPlace plain(OptionType type) {
  return {type, is_of_training(kMember), &set_plain<kMember>, &get_plain<kMember>};
}

template <auto kMember, const auto& kList>
bool set_choice(JobRequest& request, const OptionValue& value) {
  const auto known = model::value_of(kList, std::get<std::string>(value));
  if (known) member(request, kMember) = *known;
  return known.has_value();
}

template <auto kMember, const auto& kList>
std::optional<OptionValue> get_choice(const JobRequest& request) {
  return OptionValue(std::string(model::name_of(kList, member(request, kMember))));
}

template <const auto& kList>
Names names_of() {
  Names names;
  for (const auto& row : kList) names.push_back(row.name);
  return names;
}

template <auto kMember, const auto& kList>
constexpr OptionPlace choice() {
  return {OptionType::choice, is_of_training(kMember), &set_choice<kMember, kList>, &get_choice<kMember, kList>,
          &names_of<kList>};
}

/// A choice with a number.
template <auto kMember, const auto& kList>
bool set_counted(JobRequest& request, const OptionValue& value) {
  const auto known = counted_of(kList, std::get<std::string>(value));
  if (known) member(request, kMember) = *known;
  return known.has_value();
}

template <auto kMember, const auto& kList>
std::optional<OptionValue> get_counted(const JobRequest& request) {
  return OptionValue(text_of(kList, member(request, kMember)));
}

template <auto kMember, const auto& kList>
constexpr OptionPlace counted() {
  return {OptionType::choice, is_of_training(kMember), &set_counted<kMember, kList>, &get_counted<kMember, kList>,
          &names_of<kList>};
}

/// "3x224x224"; no text, no sizes.
inline std::optional<Sizes> sizes_of(std::string_view text) {
  Sizes sizes;
  std::size_t at = 0;
  while (at < text.size()) {
    const auto size = read_whole(text, at);
    const bool more = at + 1 < text.size() && text[at] == 'x';
    if (!size || (at < text.size() && !more)) return std::nullopt;
    sizes.push_back(*size);
    if (more) ++at;
  }
  return sizes;
}

template <auto kMember>
bool set_sizes(JobRequest& request, const OptionValue& value) {
  if (const auto* sizes = std::get_if<Sizes>(&value)) {
    member(request, kMember) = *sizes;
    return true;
  }
  auto sizes = sizes_of(std::get<std::string>(value));
  if (!sizes) return false;
  member(request, kMember) = *std::move(sizes);
  return true;
}

template <auto kMember>
std::optional<OptionValue> get_sizes(const JobRequest& request) {
  const Sizes& sizes = member(request, kMember);
  return sizes.empty() ? std::nullopt : std::optional(OptionValue(sizes));
}

template <auto kMember>
constexpr OptionPlace sizes() {
  return {OptionType::dimensions, is_of_training(kMember), &set_sizes<kMember>, &get_sizes<kMember>};
}

}  // namespace job_options_detail

}  // namespace gpumem::job
