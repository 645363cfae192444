#pragma once

#include "gpumem/job/job_options.hpp"

#include <algorithm>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/error.hpp"
#include "gpumem/job/counted_choices.hpp"

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
    if (!std::is_same_v<Source, bool> && from == Source()) return std::nullopt;
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

GPUMEM_INLINE bool set_loss(JobRequest& request, const OptionValue& value) {
  return take_loss(request.training, std::get<std::string>(value));
}

GPUMEM_INLINE std::optional<OptionValue> get_loss(const JobRequest& request) {
  return OptionValue(loss_text(request.training));
}

/// On is "full".
GPUMEM_INLINE bool set_checkpointing(JobRequest& request, const OptionValue& value) {
  if (const bool* on = std::get_if<bool>(&value)) return take_checkpointing(request.training, *on ? "full" : "none");
  return take_checkpointing(request.training, std::get<std::string>(value));
}

GPUMEM_INLINE std::optional<OptionValue> get_checkpointing(const JobRequest& request) {
  const TrainingJob& training = request.training;
  if (!training.activation_checkpointing || training.checkpoints == model::CheckpointPolicy()) {
    return OptionValue(training.activation_checkpointing);
  }
  return OptionValue(text_of(model::kCheckpoints, training.checkpoints));
}

/// "3x224x224"; no text, no sizes.
GPUMEM_INLINE std::optional<Sizes> sizes_of(std::string_view text) {
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

inline constexpr auto kFlag = OptionType::flag;
inline constexpr auto kWhole = OptionType::whole_number;
inline constexpr auto kText = OptionType::text;
inline constexpr auto kPath = OptionType::name_or_path;

/// The list.
inline constexpr JobOption kOptions[] = {
    {.name = "batch_size",
     .flag = "batch",
     .aliases = {"batch"},
     .value = "N",
     .help = "the batch size",
     .after_recording = true,
     .place = plain<&TrainingJob::batch_size>(kWhole)},
    {.name = "input",
     .flag = "input",
     .value = "CxHxW",
     .help = "one sample's shape, such as 3x224x224",
     .place = sizes<&TrainingJob::input_shape>()},
    {.name = "seq_length",
     .flag = "seq",
     .aliases = {"seq"},
     .value = "N",
     .help = "tokens a sample, for models that read token ids",
     .after_recording = true,
     .place = plain<&TrainingJob::sequence_length>(kWhole)},
    {.name = "optimizer",
     .flag = "optimizer",
     .value = "NAME",
     .help = "the optimizer",
     .after_recording = true,
     .place = choice<&TrainingJob::optimizer, model::kOptimizers>()},
    {.name = "precision",
     .flag = "precision",
     .value = "NAME",
     .help = "the element types",
     .place = choice<&TrainingJob::precision, model::kPrecisions>()},
    {.name = "loss",
     .flag = "loss",
     .value = "NAME",
     .help = "the loss of outputs that nothing else reads, or the form of a language model's cross entropy",
     .remark = "loss %",
     .place = {OptionType::choice, true, &set_loss, &get_loss, &loss_names}},
    {.name = "samples",
     .flag = "samples",
     .aliases = {"samples_per_epoch"},
     .value = "N",
     .help = "samples an epoch: tells how large its last batch is",
     .remark = "% samples an epoch",
     .place = plain<&TrainingJob::samples_per_epoch>(kWhole)},
    {.name = "loop",
     .flag = "loop",
     .value = "NAME",
     .help = "the program that trains: what it holds between forward and the next step",
     .remark = "loop %",
     .place = choice<&TrainingJob::loop, model::kLoops>()},
    {.name = "transformers",
     .flag = "transformers",
     .value = "VERSION",
     .help = "of HuggingFace's models, the release that computes the loss: 4.45 or before, or later",
     .remark = "transformers %",
     .place = choice<&TrainingJob::transformers, model::kTransformers>()},
    {.name = "zero_grad",
     .flag = "zero-grad",
     .value = "NAME",
     .help = "where optimizer.zero_grad() is called; default: where the loop does",
     .remark = "zero_grad at %",
     .place = choice<&TrainingJob::zero_grad, model::kZeroGrads>()},
    {.name = "software",
     .flag = "software",
     .value = "NAME",
     .help = "a software stack that the GPU's profile names; default: its first",
     .remark = "%",
     .after_recording = true,
     .place = plain<&TrainingJob::software>(kText)},
    {.name = "alloc_conf",
     .flag = "alloc-conf",
     .value = "TEXT",
     .help = "as PYTORCH_CUDA_ALLOC_CONF: expandable_segments:True, ...",
     .remark = "%",
     .place = plain<&JobRequest::alloc_conf>(kText)},
    {.name = "accumulate",
     .flag = "accumulate",
     .aliases = {"gradient_accumulation"},
     .value = "N",
     .help = "forward-backward passes a step",
     .remark = "% passes a step",
     .place = plain<&TrainingJob::gradient_accumulation>(kWhole)},
    {.name = "data_parallel",
     .flag = "data-parallel",
     .value = "N",
     .help = "GPUs that train together, each on a batch of its own; of model-states and the zero- estimators",
     .remark = "one of % GPUs in data parallel",
     .place = plain<&TrainingJob::data_parallel>(kWhole)},
    {.name = "foreach",
     .flag = "foreach",
     .help = "the optimizer's multi-tensor form",
     .remark = "no foreach",
     .after_recording = true,
     .place = plain<&TrainingJob::foreach>(kFlag)},
    {.name = "fused",
     .flag = "fused",
     .help = "the optimizer's fused form",
     .remark = "fused",
     .after_recording = true,
     .place = plain<&TrainingJob::fused>(kFlag)},
    {.name = "weight_decay",
     .flag = "weight-decay",
     .help = "the optimizer decays the weights; sgd, adam, adagrad, rmsprop and nadam copy the gradients for it",
     .remark = "weight decay",
     .place = plain<&TrainingJob::weight_decay>(kFlag)},
    {.name = "prefetch",
     .flag = "prefetch",
     .help = "the next batch is copied to the GPU while a step runs (timm's PrefetchLoader)",
     .remark = "prefetch",
     .place = plain<&TrainingJob::prefetch>(kFlag)},
    {.name = "cudnn_benchmark",
     .flag = "cudnn-benchmark",
     .help = "cuDNN tries its kernels and takes the fastest; what these take is not known, so the range is wider",
     .remark = "cuDNN's benchmark mode",
     .after_recording = true,
     .place = plain<&TrainingJob::cudnn_benchmark>(kFlag)},
    {.name = "validation",
     .flag = "validation",
     .aliases = {"validation_pass"},
     .help = "a pass without gradients after each epoch",
     .remark = "validation",
     .place = plain<&TrainingJob::validation_pass>(kFlag)},
    {.name = "checkpointing",
     .flag = "checkpointing",
     .help = "activation checkpointing of every block, or as --checkpointing=KIND",
     .remark = "checkpointing",
     .place = {OptionType::switch_or_choice, true, &set_checkpointing, &get_checkpointing, &checkpointing_names}},
    {.name = "attention",
     .flag = "attention",
     .value = "NAME",
     .help = "the kernels of scaled-dot-product attention",
     .remark = "% attention",
     .place = choice<&TrainingJob::attention, model::kAttentionBackends>()},
    {.name = "offload",
     .flag = "offload",
     .value = "NAME",
     .help = "what is kept in the host's memory",
     .remark = "% offloaded",
     .place = choice<&TrainingJob::offload, model::kOffloads>()},
    {.name = "gpu",
     .flag = "gpu",
     .value = "NAME",
     .help = "the GPU: a name from 'gpumem gpus', or a path to a profile",
     .trains = false,
     .place = plain<&JobRequest::gpu>(kPath)},
    {.name = "estimator",
     .flag = "estimator",
     .value = "NAME",
     .help = "the estimator, as 'gpumem estimate --help' lists them",
     .trains = false,
     .place = plain<&JobRequest::estimator>(kText)},
    {.name = "model",
     .flag = "model",
     .value = "NAME",
     .help = "a trained model for learned estimators: a built-in one's name, or a folder",
     .trains = false,
     .place = plain<&JobRequest::model>(kPath)},
    {.name = "lenient",
     .flag = "lenient",
     .help = "count the parameters of unknown layers alone; gives a lower bound",
     .trains = false,
     .place = plain<&JobRequest::lenient>(kFlag)},
    {.name = "strict",
     .flag = "strict",
     .help = "refuse a summary that does not say what its layers read, in place of a guess",
     .trains = false,
     .place = plain<&TrainingJob::strict>(kFlag)},
};

GPUMEM_INLINE core::Error refused(const JobOption& option, std::string_view text) {
  if (option.place.choices != nullptr) {
    return {core::ErrorCode::invalid_argument,
            "there is no " + std::string(option.name) + " " + core::quoted(text) + "; " + expectation(option),
            {}};
  }
  return {core::ErrorCode::invalid_argument,
          "the " + std::string(option.name) + " " + core::quoted(text) + " is not of the form 3x224x224",
          {}};
}

/// Whether the option's accessors take a value of this kind.
/// `option` is a row of the list.
GPUMEM_INLINE std::uint64_t bit_of(const JobOption& option) {
  static_assert(std::size(kOptions) <= 64);
  return std::uint64_t{1} << (&option - std::begin(kOptions));
}

GPUMEM_INLINE bool is_of_kind(OptionType type, const OptionValue& value) {
  switch (type) {
    case OptionType::flag: return std::holds_alternative<bool>(value);
    case OptionType::whole_number: return std::holds_alternative<std::int64_t>(value);
    case OptionType::switch_or_choice:
      return std::holds_alternative<bool>(value) || std::holds_alternative<std::string>(value);
    case OptionType::dimensions:
      return std::holds_alternative<Sizes>(value) || std::holds_alternative<std::string>(value);
    case OptionType::text:
    case OptionType::name_or_path:
    case OptionType::choice: return std::holds_alternative<std::string>(value);
  }
  return false;
}

/// The word as a value of the option's type; nothing if it is none.
GPUMEM_INLINE std::optional<OptionValue> value_of_word(OptionType type, std::string_view word) {
  if (type == OptionType::flag) {
    if (word != "true" && word != "false") return std::nullopt;
    return OptionValue(word == "true");
  }
  if (type == OptionType::switch_or_choice && (word == "true" || word == "false")) return OptionValue(word == "true");
  if (type != OptionType::whole_number) return OptionValue(std::string(word));
  const bool negative = word.starts_with('-');
  std::size_t at = negative ? 1 : 0;
  const auto number = read_whole(word, at);
  if (!number || at != word.size()) return std::nullopt;
  return OptionValue(negative ? -*number : *number);
}

}  // namespace job_options_detail

GPUMEM_INLINE bool JobOption::is_named(std::string_view text) const {
  return text == name || (!text.empty() && std::find(aliases.begin(), aliases.end(), text) != aliases.end());
}

GPUMEM_INLINE std::span<const JobOption> job_options() { return job_options_detail::kOptions; }

GPUMEM_INLINE const JobOption* find_option(std::string_view name) {
  for (const JobOption& option : job_options()) {
    if (option.is_named(name)) return &option;
  }
  return nullptr;
}

GPUMEM_INLINE const JobOption* find_flag(std::string_view flag) {
  for (const JobOption& option : job_options()) {
    if (option.flag == flag || option.name == flag) return &option;
  }
  return nullptr;
}

GPUMEM_INLINE core::Status set_option(const JobOption& option, JobRequest& request, const OptionValue& value) {
  if (!job_options_detail::is_of_kind(option.place.type, value)) {
    return core::Error{
        core::ErrorCode::invalid_argument,
        "the " + std::string(option.name) + " " + expectation(option) + ", not " + core::quoted(to_text(value)),
        {}};
  }
  if (option.place.set(request, value)) {
    request.given.bits |= job_options_detail::bit_of(option);
    return core::Done{};
  }
  return job_options_detail::refused(option, to_text(value));
}

GPUMEM_INLINE core::Status set_option_text(const JobOption& option, JobRequest& request, std::string_view word) {
  const auto value = job_options_detail::value_of_word(option.place.type, word);
  if (value) return set_option(option, request, *value);
  const std::string wanted = expectation(option) + ", not ";
  return core::Error{core::ErrorCode::malformed_input, wanted + core::quoted(word), {}};
}

GPUMEM_INLINE std::string to_text(const OptionValue& value) {
  if (const bool* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  std::string text;
  for (const std::int64_t size : std::get<Sizes>(value)) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

GPUMEM_INLINE std::string default_text(const JobOption& option) {
  const auto value = option.place.get(JobRequest());
  return value ? to_text(*value) : std::string();
}

GPUMEM_INLINE bool is_given(const JobOption& option, const JobRequest& request) {
  return (request.given.bits & job_options_detail::bit_of(option)) != 0;
}

GPUMEM_INLINE void forget_defaults(JobRequest& request) {
  for (const JobOption& option : job_options()) {
    if (is_default(option, request)) request.given.bits &= ~job_options_detail::bit_of(option);
  }
}

GPUMEM_INLINE bool is_default(const JobOption& option, const JobRequest& request) {
  return option.place.get(request) == option.place.get(JobRequest());
}

GPUMEM_INLINE std::string expectation(const JobOption& option) {
  switch (option.place.type) {
    case OptionType::flag: return "must be \"true\" or \"false\"";
    case OptionType::whole_number: return "must be a whole number";
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
