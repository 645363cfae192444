// Input: a member of TrainingJob or of JobRequest; a choice with a number, such as "every:2".
// Output: OptionPlace: how a row of the list of options reads and writes its value there, by the member's type. Only
// the bodies of job_options.hpp use this.
// Units: those of the option.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "gpumem/job/job_options.hpp"
#include "gpumem/model/training_job.hpp"

namespace gpumem::job {

// Input: the words of a loss, a kind of checkpointing or a rank: "mse", "chunked:128", "every:2", "last".
// Output: the fields of a TrainingJob that they mean; and the words for these fields.
// Units: whole numbers of 1 or more.

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

/// What a kind of checkpointing may end in.
inline constexpr std::array<model::Named<model::HostAttention>, 2> kHostAttentions = {
    {{model::HostAttention::module, "+host-attention"}, {model::HostAttention::kernel, "+host-attention-kernel"}}};

inline constexpr std::array<model::Named<model::Reentrance>, 2> kReentrances = {
    {{model::Reentrance::on, "+reentrant"}, {model::Reentrance::off, "+non-reentrant"}}};

/// The ending of these that the text has, which leaves it.
template <typename Value, std::size_t Size>
[[nodiscard]] Value take_ending(const std::array<model::Named<Value>, Size>& endings, std::string_view& text) {
  for (const auto& ending : endings) {
    if (!text.ends_with(ending.name)) continue;
    text.remove_suffix(ending.name.size());
    return ending.value;
  }
  return {};
}

/// A kind of checkpointing. Nothing: there is no such kind. A call that keeps some results cannot be reentrant.
[[nodiscard]] inline std::optional<model::CheckpointPolicy> checkpoint_policy_of(std::string_view text) {
  const model::Reentrance reentrance = take_ending(kReentrances, text);
  const model::HostAttention hosted = take_ending(kHostAttentions, text);
  const bool selects = text.starts_with("selective-");
  if (selects && reentrance == model::Reentrance::on) return std::nullopt;
  if (text.starts_with(kModulesBegin)) {
    const std::string_view modules = text.substr(kModulesBegin.size());
    if (!joined_names(modules)) return std::nullopt;
    return model::CheckpointPolicy{model::Checkpoints::selective_modules, 0, std::string(modules), hosted, reentrance};
  }
  const auto counted = counted_of(model::kCheckpoints, text);
  if (!counted || counted->kind == model::Checkpoints::selective_modules) return std::nullopt;
  return model::CheckpointPolicy{counted->kind, counted->count, {}, hosted, reentrance};
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
  std::string more;
  if (policy.host_attention != model::HostAttention::none) {
    more += model::name_of(kHostAttentions, policy.host_attention);
  }
  if (policy.reentrance != model::Reentrance::usual) more += model::name_of(kReentrances, policy.reentrance);
  if (policy.kind == model::Checkpoints::selective_modules) return std::string(kModulesBegin) + policy.modules + more;
  return text_of(model::kCheckpoints, model::Counted<model::Checkpoints>{policy.kind, policy.count}) + more;
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

/// "default", "always", "never", or a number of ranks; PyTorch's own words are true and false. False: it is none of
/// these.
[[nodiscard]] inline bool take_reshard(model::Layout& layout, std::string_view word) {
  std::size_t at = 0;
  const auto number = read_whole(word, at);
  if (number && at == word.size() && *number > 0) {
    layout.reshard_after_forward = {model::Reshard::within, *number};
    return true;
  }
  const std::string_view name = word == "true" ? "always" : word == "false" ? "never" : word;
  const auto kind = model::value_of(model::kReshards, name);
  if (kind) layout.reshard_after_forward = {*kind, 0};
  return kind.has_value();
}

[[nodiscard]] inline std::string reshard_text(const model::Layout& layout) {
  const model::Counted<model::Reshard>& reshard = layout.reshard_after_forward;
  if (reshard.kind == model::Reshard::within) return std::to_string(reshard.count);
  return std::string(model::name_of(model::kReshards, reshard.kind));
}

[[nodiscard]] inline std::string rank_text(const model::Layout& layout) {
  if (layout.rank.kind == model::Ranks::one) return std::to_string(layout.rank.count);
  return std::string(model::name_of(model::kRanks, layout.rank.kind));
}

// Input: a member of TrainingJob or of JobRequest.
// Output: OptionPlace: how a row of the list of options reads and writes its value there, by the member's type. Only
// impl/job_options_inl.hpp uses this.
// Units: those of the option.

namespace job_options_detail {

using model::TrainingJob;

inline constexpr auto kFlag = OptionType::flag;
inline constexpr auto kWhole = OptionType::whole_number;
inline constexpr auto kFraction = OptionType::fraction;
inline constexpr auto kText = OptionType::text;
inline constexpr auto kPath = OptionType::name_or_path;

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

/// The types of `Value` that may be missing.
template <typename Value>
inline constexpr bool kMayBeMissing =
    std::is_same_v<Value, std::optional<std::int64_t>> || std::is_same_v<Value, std::optional<double>>;

/// A bool, a text, a whole number or a fraction, or a number that may be missing.
template <auto kMember>
bool set_plain(JobRequest& request, const OptionValue& value) {
  auto& to = member(request, kMember);
  using Target = std::remove_reference_t<decltype(to)>;
  if constexpr (kMayBeMissing<Target>) {
    to = std::get<typename Target::value_type>(value);
  } else {
    to = std::get<Target>(value);
  }
  return true;
}

template <auto kMember>
std::optional<OptionValue> get_plain(const JobRequest& request) {
  const auto& from = member(request, kMember);
  using Source = std::remove_cvref_t<decltype(from)>;
  if constexpr (kMayBeMissing<Source>) {
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

/// "AdamW" as "adamw", "amp_bf16" as "amp-bf16", and PyTorch's names of types as the lists have them.
inline std::string spelled_as_listed(std::string_view word) {
  // Bone is what PEFT called MiSS before 0.17.
  constexpr std::array<std::array<std::string_view, 2>, 3> kOthers = {
      {{"bfloat16", "bf16"}, {"float32", "fp32"}, {"bone", "miss"}}};
  std::string text;
  for (const char byte : word) {
    const bool upper = byte >= 'A' && byte <= 'Z';
    text += byte == '_' ? '-' : upper ? static_cast<char>(byte - 'A' + 'a') : byte;
  }
  for (const auto& [theirs, ours] : kOthers) {
    if (text == theirs) return std::string(ours);
  }
  return text;
}

template <auto kMember, const auto& kList>
bool set_choice(JobRequest& request, const OptionValue& value) {
  const auto known = model::value_of(kList, spelled_as_listed(std::get<std::string>(value)));
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
  const auto known = counted_of(kList, spelled_as_listed(std::get<std::string>(value)));
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

/// Options whose words mean several fields: a loss and its form, a kind of checkpointing, a rank.
inline bool set_loss(JobRequest& request, const OptionValue& value) {
  return take_loss(request.training, std::get<std::string>(value));
}

inline std::optional<OptionValue> get_loss(const JobRequest& request) {
  return OptionValue(loss_text(request.training));
}

/// On is "full".
inline bool set_checkpointing(JobRequest& request, const OptionValue& value) {
  if (const bool* on = std::get_if<bool>(&value)) return take_checkpointing(request.training, *on ? "full" : "none");
  return take_checkpointing(request.training, std::get<std::string>(value));
}

inline std::optional<OptionValue> get_checkpointing(const JobRequest& request) {
  const model::TrainingJob& training = request.training;
  if (!training.activation_checkpointing || training.checkpoints == model::CheckpointPolicy()) {
    return OptionValue(training.activation_checkpointing);
  }
  return OptionValue(checkpointing_text(training.checkpoints));
}

/// Of an optimizer that projects gradients, "galore-adamw:64+q_proj+mlp": the rank and whose gradients.
inline bool set_optimizer(JobRequest& request, const OptionValue& value) {
  const auto& text = std::get<std::string>(value);
  const std::size_t end = std::min(text.find_first_of(":+"), text.size());
  const auto known = model::value_of(model::kOptimizers, spelled_as_listed(std::string_view(text).substr(0, end)));
  if (!known) return false;
  std::size_t at = end;
  std::int64_t rank = 0;
  if (at < text.size() && text[at] == ':') {
    constexpr std::int64_t kMostRank = 1 << 20;
    const auto number = read_whole(text, ++at);
    if (!number || *number < 1 || *number > kMostRank) return false;
    rank = *number;
  }
  const std::string targets = at < text.size() ? text.substr(at + 1) : std::string();
  if (at < text.size() && (text[at] != '+' || !joined_names(targets))) return false;
  const bool projects = model::row_of(*known).projection != model::OptimizerRow::Projection::none;
  if (!projects && end < text.size()) return false;
  request.training.optimizer = *known;
  request.training.optimizer_rank = rank;
  request.training.optimizer_targets = targets;
  return true;
}

inline std::optional<OptionValue> get_optimizer(const JobRequest& request) {
  const TrainingJob& training = request.training;
  std::string text(model::name_of(model::kOptimizers, training.optimizer));
  if (training.optimizer_rank > 0) text += ":" + std::to_string(training.optimizer_rank);
  if (!training.optimizer_targets.empty()) text += "+" + training.optimizer_targets;
  return OptionValue(std::move(text));
}

inline bool set_rank(JobRequest& request, const OptionValue& value) {
  return take_rank(request.training.layout, std::get<std::string>(value));
}

inline std::optional<OptionValue> get_rank(const JobRequest& request) {
  return OptionValue(rank_text(request.training.layout));
}

inline bool set_reshard(JobRequest& request, const OptionValue& value) {
  return take_reshard(request.training.layout, std::get<std::string>(value));
}

inline std::optional<OptionValue> get_reshard(const JobRequest& request) {
  return OptionValue(reshard_text(request.training.layout));
}

/// The text where the number at this place is one: "% passes a step" -> "% pass a step".
inline std::string of_one(std::string text, std::size_t at) {
  const std::size_t end = std::min(text.find(' ', at + 2), text.size());
  const std::string_view word = std::string_view(text).substr(at, end - at);
  const std::size_t ending = word.ends_with("sses") ? 2 : word.ends_with('s') ? 1 : 0;
  return text.erase(end - ending, ending);
}

}  // namespace job_options_detail

}  // namespace gpumem::job
