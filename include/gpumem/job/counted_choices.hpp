// Input: the words of a loss, a kind of checkpointing or a rank: "mse", "chunked:128", "every:2", "last".
// Output: the fields of a TrainingJob that they mean; and the words for these fields.
// Units: whole numbers of 1 or more.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/model/training_job.hpp"

namespace gpumem::job {

/// Only digits, from `at` on; `at` moves past them.
[[nodiscard]] inline std::optional<std::int64_t> read_whole(std::string_view text, std::size_t& at) {
  if (at == text.size() || text[at] < '0' || text[at] > '9') return std::nullopt;
  std::int64_t value = 0;
  const auto [stop, fault] = std::from_chars(text.data() + at, text.data() + text.size(), value);
  if (fault != std::errc()) return std::nullopt;
  at = static_cast<std::size_t>(stop - text.data());
  return value;
}

/// A name with this ending is written with a number in place of the N.
inline constexpr std::string_view kNumberEnding = ":N";

/// Nothing: the list has no such text.
template <typename Enum, std::size_t Count>
[[nodiscard]] std::optional<model::Counted<Enum>> counted_of(const std::array<model::Named<Enum>, Count>& list,
                                                             std::string_view text) {
  for (const model::Named<Enum>& row : list) {
    if (!row.name.ends_with(kNumberEnding)) {
      if (row.name == text) return model::Counted<Enum>{row.value, 0};
      continue;
    }
    const std::string_view begin = row.name.substr(0, row.name.size() - 1);
    std::size_t at = begin.size();
    const auto number = text.starts_with(begin) ? read_whole(text, at) : std::nullopt;
    if (number && at == text.size() && *number > 0) return model::Counted<Enum>{row.value, *number};
  }
  return std::nullopt;
}

template <typename Enum, std::size_t Count>
[[nodiscard]] std::string text_of(const std::array<model::Named<Enum>, Count>& list,
                                  const model::Counted<Enum>& counted) {
  std::string text(model::name_of(list, counted.kind));
  if (text.ends_with(kNumberEnding)) text.replace(text.size() - 1, 1, std::to_string(counted.count));
  return text;
}

/// What is lost, or in which form: "mse", "fused". A form is cross entropy's; "standard" is its usual one. False: it is
/// neither.
[[nodiscard]] inline bool take_loss(model::TrainingJob& training, std::string_view word) {
  const auto loss = model::value_of(model::kLosses, word);
  const auto form = loss ? model::LossForm() : counted_of(model::kLossForms, word);
  if (!form) return false;
  training.loss = loss.value_or(model::Loss::cross_entropy);
  training.loss_form = *form;
  return true;
}

[[nodiscard]] inline std::string loss_text(const model::TrainingJob& training) {
  const bool standard = training.loss_form == model::LossForm();
  return standard ? std::string(model::name_of(model::kLosses, training.loss))
                  : text_of(model::kLossForms, training.loss_form);
}

[[nodiscard]] inline std::vector<std::string_view> loss_names() {
  std::vector<std::string_view> names;
  names.reserve(model::kLosses.size() + model::kLossForms.size());
  for (const auto& row : model::kLosses) names.push_back(row.name);
  for (const auto& row : model::kLossForms) {
    if (row.value != model::LossForms::standard) names.push_back(row.name);
  }
  return names;
}

inline constexpr std::string_view kModulesBegin = "selective:";

/// "mlp", "mlp+self_attn": names, none of them empty.
[[nodiscard]] inline bool joined_names(std::string_view text) {
  return !text.empty() && !text.starts_with('+') && !text.ends_with('+') && text.find("++") == text.npos;
}

/// A kind of checkpointing. Nothing: there is no such kind.
[[nodiscard]] inline std::optional<model::CheckpointPolicy> checkpoint_policy_of(std::string_view text) {
  if (text.starts_with(kModulesBegin)) {
    const std::string_view modules = text.substr(kModulesBegin.size());
    if (!joined_names(modules)) return std::nullopt;
    return model::CheckpointPolicy{model::Checkpoints::selective_modules, 0, std::string(modules)};
  }
  const auto counted = counted_of(model::kCheckpoints, text);
  if (!counted || counted->kind == model::Checkpoints::selective_modules) return std::nullopt;
  return model::CheckpointPolicy{counted->kind, counted->count, {}};
}

/// "none" or a kind. False: it is neither.
[[nodiscard]] inline bool take_checkpointing(model::TrainingJob& training, std::string_view word) {
  const bool none = word == "none";
  const auto policy = none ? model::CheckpointPolicy() : checkpoint_policy_of(word);
  if (!policy) return false;
  training.activation_checkpointing = !none;
  training.checkpoints = *policy;
  return true;
}

[[nodiscard]] inline std::string checkpointing_text(const model::CheckpointPolicy& policy) {
  if (policy.kind == model::Checkpoints::selective_modules) return std::string(kModulesBegin) + policy.modules;
  return text_of(model::kCheckpoints, model::Counted<model::Checkpoints>{policy.kind, policy.count});
}

[[nodiscard]] inline std::vector<std::string_view> checkpointing_names() {
  std::vector<std::string_view> names = {"none"};
  names.reserve(1 + model::kCheckpoints.size());
  for (const auto& row : model::kCheckpoints) names.push_back(row.name);
  return names;
}

/// "max", "last", "all", or a rank's number. False: it is none of these.
[[nodiscard]] inline bool take_rank(model::Layout& layout, std::string_view word) {
  std::size_t at = 0;
  const auto number = read_whole(word, at);
  if (number && at == word.size()) {
    layout.rank = {model::Ranks::one, *number};
    return true;
  }
  const auto kind = model::value_of(model::kRanks, word);
  if (kind) layout.rank = {*kind, 0};
  return kind.has_value();
}

[[nodiscard]] inline std::string rank_text(const model::Layout& layout) {
  if (layout.rank.kind == model::Ranks::one) return std::to_string(layout.rank.count);
  return std::string(model::name_of(model::kRanks, layout.rank.kind));
}

}  // namespace gpumem::job
