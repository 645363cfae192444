#pragma once

#include "gpumem/job/job_options.hpp"

#include <algorithm>
#include <array>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/error.hpp"
#include "gpumem/job/counted_choices.hpp"
#include "gpumem/job/option_places.hpp"
#include "gpumem/job/option_words.hpp"

namespace gpumem::job {

namespace job_options_detail {

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
  return OptionValue(checkpointing_text(training.checkpoints));
}

GPUMEM_INLINE bool set_rank(JobRequest& request, const OptionValue& value) {
  return take_rank(request.training.layout, std::get<std::string>(value));
}

GPUMEM_INLINE std::optional<OptionValue> get_rank(const JobRequest& request) {
  return OptionValue(rank_text(request.training.layout));
}

using model::Layout;

inline constexpr auto kFlag = OptionType::flag;
inline constexpr auto kWhole = OptionType::whole_number;
inline constexpr auto kFraction = OptionType::fraction;
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
    {.name = "batch_lengths",
     .flag = "batch-lengths",
     .value = "NAME",
     .help =
         "whether batches are as long as each other, or shorter than the first: then less is left of each for the next",
     .remark = "batches %",
     .place = choice<&TrainingJob::batch_lengths, model::kBatchLengths>()},
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
     .help = "GPUs that train together, each on a batch of its own",
     .remark = "one of % GPUs in data parallel",
     .place = plain<&Layout::data_parallel>(kWhole)},
    {.name = "sharding",
     .flag = "sharding",
     .value = "NAME",
     .help = "what of parameters, gradients and states each GPU in data parallel holds",
     .remark = "%",
     .place = counted<&Layout::sharding, model::kShardings>()},
    {.name = "tensor_parallel",
     .flag = "tensor-parallel",
     .value = "N",
     .help = "GPUs that share each layer",
     .remark = "tensor parallel %",
     .place = plain<&Layout::tensor_parallel>(kWhole)},
    {.name = "sequence_parallel",
     .flag = "sequence-parallel",
     .help = "tensor parallel GPUs share the positions of norms, dropout and residuals as well",
     .remark = "sequence parallel",
     .place = plain<&Layout::sequence_parallel>(kFlag)},
    {.name = "pipeline_parallel",
     .flag = "pipeline-parallel",
     .value = "N",
     .help = "GPUs that hold the model's layers one after another",
     .remark = "pipeline parallel %",
     .place = plain<&Layout::pipeline_parallel>(kWhole)},
    {.name = "virtual_stages",
     .flag = "virtual-stages",
     .value = "N",
     .help = "stages of the model on each GPU of the pipeline",
     .remark = "% stages a GPU",
     .place = plain<&Layout::virtual_stages>(kWhole)},
    {.name = "schedule",
     .flag = "schedule",
     .value = "NAME",
     .help = "the order of a pipeline's micro-batches",
     .remark = "schedule %",
     .place = choice<&Layout::schedule, model::kSchedules>()},
    {.name = "context_parallel",
     .flag = "context-parallel",
     .value = "N",
     .help = "GPUs that share each sample's positions",
     .remark = "context parallel %",
     .place = plain<&Layout::context_parallel>(kWhole)},
    {.name = "expert_parallel",
     .flag = "expert-parallel",
     .value = "N",
     .help = "GPUs that share the experts of a mixture",
     .remark = "expert parallel %",
     .place = plain<&Layout::expert_parallel>(kWhole)},
    {.name = "rank",
     .flag = "rank",
     .value = "NAME",
     .help = "whose memory: a rank's number, or one of",
     .remark = "rank %",
     .place = {OptionType::choice, true, &set_rank, &get_rank, &names_of<model::kRanks>}},
    {.name = "zero_reduce_bucket",
     .flag = "zero-reduce-bucket",
     .value = "N",
     .help = "DeepSpeed's reduce_bucket_size: elements of gradients that are reduced together",
     .remark = "reduce bucket %",
     .place = plain<&Layout::zero_reduce_bucket>(kWhole)},
    {.name = "zero_prefetch_bucket",
     .flag = "zero-prefetch-bucket",
     .value = "N",
     .help = "DeepSpeed's stage3_prefetch_bucket_size: elements of parameters that are gathered ahead",
     .remark = "prefetch bucket %",
     .place = plain<&Layout::zero_prefetch_bucket>(kWhole)},
    {.name = "zero_persistence_threshold",
     .flag = "zero-persistence-threshold",
     .value = "N",
     .help = "DeepSpeed's stage3_param_persistence_threshold: parameters of no more elements stay whole",
     .remark = "persistence threshold %",
     .place = plain<&Layout::zero_persistence_threshold>(kWhole)},
    {.name = "zero_reuse_distance",
     .flag = "zero-reuse-distance",
     .value = "N",
     .help = "DeepSpeed's stage3_max_reuse_distance: what is called again before so many elements stays gathered",
     .remark = "reuse distance %",
     .place = plain<&Layout::zero_reuse_distance>(kWhole)},
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
    {.name = "compile",
     .flag = "compile",
     .help = "torch.compile of the blocks: backward computes again what is elementwise; the range reaches further down",
     .remark = "compiled",
     .after_recording = true,
     .place = plain<&TrainingJob::compile>(kFlag)},
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
    {.name = "freeze",
     .flag = "freeze",
     .value = "NAMES",
     .help = "layers or parameters that are not trained: patterns such as model.layers.0 or *.bias, parted by commas",
     .remark = "frozen: %",
     .repeats = true,
     .place = plain<&TrainingJob::freeze>(kText)},
    {.name = "train",
     .flag = "train",
     .value = "NAMES",
     .help = "layers or parameters that are trained, likewise; without --freeze nothing else is",
     .remark = "trained: %",
     .repeats = true,
     .place = plain<&TrainingJob::train>(kText)},
    {.name = "lora",
     .flag = "lora",
     .aliases = {"lora_rank"},
     .value = "R",
     .help = "adapters of rank R on a frozen base (LoRA, as PEFT runs it)",
     .remark = "LoRA of rank %",
     .place = plain<&TrainingJob::lora>(kWhole)},
    {.name = "lora_targets",
     .flag = "lora-targets",
     .value = "NAMES",
     .help = "what gets adapters: q_proj+v_proj, or all-linear; default: PEFT's for the model",
     .remark = "on %",
     .place = plain<&TrainingJob::lora_targets>(kText)},
    {.name = "lora_dtype",
     .flag = "lora-dtype",
     .value = "NAME",
     .help = "the adapters' type",
     .remark = "adapters in %",
     .place = choice<&TrainingJob::lora_dtype, model::kAdapterTypes>()},
    {.name = "lora_dropout",
     .flag = "lora-dropout",
     .value = "P",
     .help = "dropout before each adapter, from 0 to less than 1",
     .remark = "dropout % before adapters",
     .place = plain<&TrainingJob::lora_dropout>(kFraction)},
    {.name = "quantize",
     .flag = "quantize",
     .aliases = {"quantization"},
     .value = "NAME",
     .help = "how the frozen linear layers are held",
     .remark = "quantised to %",
     .place = choice<&TrainingJob::quantize, model::kQuantizations>()},
    {.name = "base_dtype",
     .flag = "base-dtype",
     .value = "NAME",
     .help = "the type of frozen weights that are not quantised: as the precision has it, or as they were loaded",
     .remark = "frozen weights in %",
     .place = choice<&TrainingJob::base_dtype, model::kBaseTypes>()},
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

/// `option` is a row of the list.
GPUMEM_INLINE std::uint64_t bit_of(const JobOption& option) {
  static_assert(std::size(kOptions) <= 64);
  return std::uint64_t{1} << (&option - std::begin(kOptions));
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
  if (!is_of_kind(option.place.type, value)) {
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
  const auto value = value_of_word(option.place.type, word);
  if (value) return set_option(option, request, *value);
  const std::string wanted = expectation(option) + ", not ";
  return core::Error{core::ErrorCode::malformed_input, wanted + core::quoted(word), {}};
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
