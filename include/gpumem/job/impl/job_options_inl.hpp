#pragma once

#include "gpumem/job/job_options.hpp"

#include <algorithm>
#include <array>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/job/option_places.hpp"

namespace gpumem::job {

namespace job_options_detail {

using model::Layout;

inline constexpr auto kFlag = OptionType::flag;
inline constexpr auto kWhole = OptionType::whole_number;
inline constexpr auto kFraction = OptionType::fraction;
inline constexpr auto kText = OptionType::text;
inline constexpr auto kPath = OptionType::name_or_path;

/// The list.
inline constexpr JobOption kOptions[] = {
    {.name = "batch_size",
     .group = OptionGroup::batch,
     .flag = "batch",
     .aliases = {"batch"},
     .value = "N",
     .help = "the batch size",
     .after_recording = true,
     .place = plain<&TrainingJob::batch_size>(kWhole)},
    {.name = "input",
     .group = OptionGroup::batch,
     .flag = "input",
     .value = "CxHxW",
     .help = "one sample's shape, such as 3x224x224",
     .place = sizes<&TrainingJob::input_shape>()},
    {.name = "seq_length",
     .group = OptionGroup::batch,
     .flag = "seq",
     .aliases = {"seq"},
     .value = "N",
     .help = "tokens per sample, for models that read token ids",
     .after_recording = true,
     .place = plain<&TrainingJob::sequence_length>(kWhole)},
    {.name = "optimizer",
     .group = OptionGroup::training,
     .flag = "optimizer",
     .value = "NAME",
     .help = "the optimizer",
     .after_recording = true,
     .place = choice<&TrainingJob::optimizer, model::kOptimizers>()},
    {.name = "precision",
     .group = OptionGroup::training,
     .flag = "precision",
     .value = "NAME",
     .help = "the element types",
     .place = choice<&TrainingJob::precision, model::kPrecisions>()},
    {.name = "loss",
     .group = OptionGroup::training,
     .flag = "loss",
     .value = "NAME",
     .help = "the loss function; for a language model, the form of its cross entropy",
     .remark = "loss %",
     .place = {OptionType::choice, true, &set_loss, &get_loss, &loss_names}},
    {.name = "samples",
     .group = OptionGroup::batch,
     .flag = "samples",
     .aliases = {"samples_per_epoch"},
     .value = "N",
     .help = "samples per epoch; decides how large the last batch is",
     .remark = "% samples an epoch",
     .place = plain<&TrainingJob::samples_per_epoch>(kWhole)},
    {.name = "loop",
     .group = OptionGroup::training,
     .flag = "loop",
     .value = "NAME",
     .help = "the program that trains; decides which tensors are held between forward and the next step",
     .remark = "loop %",
     .place = choice<&TrainingJob::loop, model::kLoops>()},
    {.name = "transformers",
     .group = OptionGroup::training,
     .flag = "transformers",
     .value = "VERSION",
     .help = "HuggingFace models: the release that computes the loss, 4.45 and before, or later",
     .remark = "transformers %",
     .place = choice<&TrainingJob::transformers, model::kTransformers>()},
    {.name = "batch_lengths",
     .group = OptionGroup::batch,
     .flag = "batch-lengths",
     .value = "NAME",
     .help = "whether all batches have the same length, or all are shorter than the first one",
     .remark = "batches %",
     .place = choice<&TrainingJob::batch_lengths, model::kBatchLengths>()},
    {.name = "zero_grad",
     .group = OptionGroup::training,
     .flag = "zero-grad",
     .value = "NAME",
     .help = "where optimizer.zero_grad() is called; default: where the loop does",
     .remark = "zero_grad at %",
     .place = choice<&TrainingJob::zero_grad, model::kZeroGrads>()},
    {.name = "software",
     .group = OptionGroup::gpu,
     .flag = "software",
     .value = "NAME",
     .help = "a software stack that the GPU's profile names; default: its first",
     .remark = "%",
     .after_recording = true,
     .place = plain<&TrainingJob::software>(kText)},
    {.name = "alloc_conf",
     .group = OptionGroup::gpu,
     .flag = "alloc-conf",
     .value = "TEXT",
     .help = "the value of PYTORCH_CUDA_ALLOC_CONF: expandable_segments:True, ...",
     .remark = "%",
     .place = plain<&JobRequest::alloc_conf>(kText)},
    {.name = "accumulate",
     .group = OptionGroup::training,
     .flag = "accumulate",
     .aliases = {"gradient_accumulation"},
     .value = "N",
     .help = "forward-backward passes per step",
     .remark = "% passes a step",
     .place = plain<&TrainingJob::gradient_accumulation>(kWhole)},
    {.name = "data_parallel",
     .group = OptionGroup::many_gpus,
     .flag = "data-parallel",
     .value = "N",
     .help = "GPUs that train together, each on a batch of its own",
     .remark = "one of % GPUs in data parallel",
     .place = plain<&Layout::data_parallel>(kWhole)},
    {.name = "sharding",
     .group = OptionGroup::many_gpus,
     .flag = "sharding",
     .value = "NAME",
     .help = "which parameters, gradients and states each data parallel GPU holds",
     .remark = "%",
     .place = counted<&Layout::sharding, model::kShardings>()},
    {.name = "tensor_parallel",
     .group = OptionGroup::many_gpus,
     .flag = "tensor-parallel",
     .value = "N",
     .help = "GPUs that share each layer",
     .remark = "tensor parallel %",
     .place = plain<&Layout::tensor_parallel>(kWhole)},
    {.name = "sequence_parallel",
     .group = OptionGroup::many_gpus,
     .flag = "sequence-parallel",
     .help = "tensor parallel GPUs share the positions of norms, dropout and residuals as well",
     .remark = "sequence parallel",
     .place = plain<&Layout::sequence_parallel>(kFlag)},
    {.name = "pipeline_parallel",
     .group = OptionGroup::many_gpus,
     .flag = "pipeline-parallel",
     .value = "N",
     .help = "GPUs that hold the model's layers one after another",
     .remark = "pipeline parallel %",
     .place = plain<&Layout::pipeline_parallel>(kWhole)},
    {.name = "virtual_stages",
     .group = OptionGroup::many_gpus,
     .flag = "virtual-stages",
     .value = "N",
     .help = "model stages on each GPU of the pipeline",
     .remark = "% stages a GPU",
     .place = plain<&Layout::virtual_stages>(kWhole)},
    {.name = "schedule",
     .group = OptionGroup::many_gpus,
     .flag = "schedule",
     .value = "NAME",
     .help = "the order of a pipeline's micro-batches",
     .remark = "schedule %",
     .place = choice<&Layout::schedule, model::kSchedules>()},
    {.name = "context_parallel",
     .group = OptionGroup::many_gpus,
     .flag = "context-parallel",
     .value = "N",
     .help = "GPUs that share each sample's positions",
     .remark = "context parallel %",
     .place = plain<&Layout::context_parallel>(kWhole)},
    {.name = "expert_parallel",
     .group = OptionGroup::many_gpus,
     .flag = "expert-parallel",
     .value = "N",
     .help = "GPUs that share the experts of a mixture",
     .remark = "expert parallel %",
     .place = plain<&Layout::expert_parallel>(kWhole)},
    {.name = "rank",
     .group = OptionGroup::many_gpus,
     .flag = "rank",
     .value = "NAME",
     .help = "the rank to estimate: its number, or one of",
     .remark = "rank %",
     .place = {OptionType::choice, true, &set_rank, &get_rank, &names_of<model::kRanks>}},
    {.name = "zero_reduce_bucket",
     .group = OptionGroup::many_gpus,
     .flag = "zero-reduce-bucket",
     .value = "N",
     .help = "DeepSpeed's reduce_bucket_size: gradient elements that are reduced together",
     .remark = "reduce bucket %",
     .place = plain<&Layout::zero_reduce_bucket>(kWhole)},
    {.name = "zero_prefetch_bucket",
     .group = OptionGroup::many_gpus,
     .flag = "zero-prefetch-bucket",
     .value = "N",
     .help = "DeepSpeed's stage3_prefetch_bucket_size: parameter elements that are gathered ahead",
     .remark = "prefetch bucket %",
     .place = plain<&Layout::zero_prefetch_bucket>(kWhole)},
    {.name = "zero_persistence_threshold",
     .group = OptionGroup::many_gpus,
     .flag = "zero-persistence-threshold",
     .value = "N",
     .help = "DeepSpeed's stage3_param_persistence_threshold: parameters of at most this many elements stay whole",
     .remark = "persistence threshold %",
     .place = plain<&Layout::zero_persistence_threshold>(kWhole)},
    {.name = "zero_reuse_distance",
     .group = OptionGroup::many_gpus,
     .flag = "zero-reuse-distance",
     .value = "N",
     .help = "DeepSpeed's stage3_max_reuse_distance: a module used again within this many elements stays gathered",
     .remark = "reuse distance %",
     .place = plain<&Layout::zero_reuse_distance>(kWhole)},
    {.name = "padding",
     .group = OptionGroup::training,
     .flag = "padding",
     .help = "batches of tokens hold padding, so attention has a mask; default: as the loop's usual collator does",
     .remark = "padded batches",
     .place = plain<&TrainingJob::padding>(kFlag)},
    {.name = "foreach",
     .group = OptionGroup::training,
     .flag = "foreach",
     .help = "the optimizer's multi-tensor form",
     .remark = "no foreach",
     .after_recording = true,
     .place = plain<&TrainingJob::foreach>(kFlag)},
    {.name = "fused",
     .group = OptionGroup::training,
     .flag = "fused",
     .help = "the optimizer's fused form",
     .remark = "fused",
     .after_recording = true,
     .place = plain<&TrainingJob::fused>(kFlag)},
    {.name = "weight_decay",
     .group = OptionGroup::training,
     .flag = "weight-decay",
     .help = "the optimizer decays the weights; sgd, adam, adagrad, rmsprop and nadam copy the gradients for it",
     .remark = "weight decay",
     .place = plain<&TrainingJob::weight_decay>(kFlag)},
    {.name = "prefetch",
     .group = OptionGroup::training,
     .flag = "prefetch",
     .help = "copy the next batch to the GPU while a step runs (timm's PrefetchLoader)",
     .remark = "prefetch",
     .place = plain<&TrainingJob::prefetch>(kFlag)},
    {.name = "cudnn_benchmark",
     .group = OptionGroup::training,
     .flag = "cudnn-benchmark",
     .help = "cuDNN chooses its fastest kernels; what they take is not known, so the range is wider",
     .remark = "cuDNN's benchmark mode",
     .after_recording = true,
     .place = plain<&TrainingJob::cudnn_benchmark>(kFlag)},
    {.name = "compile",
     .group = OptionGroup::saving_memory,
     .flag = "compile",
     .help = "torch.compile of the blocks: backward recomputes elementwise results; the range reaches further down",
     .remark = "compiled",
     .after_recording = true,
     .place = plain<&TrainingJob::compile>(kFlag)},
    {.name = "validation",
     .group = OptionGroup::training,
     .flag = "validation",
     .aliases = {"validation_pass"},
     .help = "a validation pass without gradients after each epoch",
     .remark = "validation",
     .place = plain<&TrainingJob::validation_pass>(kFlag)},
    {.name = "checkpointing",
     .group = OptionGroup::saving_memory,
     .flag = "checkpointing",
     .help = "activation checkpointing of every block, or as `checkpointing=KIND`",
     .remark = "checkpointing",
     .place = {OptionType::switch_or_choice, true, &set_checkpointing, &get_checkpointing, &checkpointing_names}},
    {.name = "attention",
     .group = OptionGroup::saving_memory,
     .flag = "attention",
     .value = "NAME",
     .help = "the kernels of scaled-dot-product attention",
     .remark = "% attention",
     .place = choice<&TrainingJob::attention, model::kAttentionBackends>()},
    {.name = "offload",
     .group = OptionGroup::saving_memory,
     .flag = "offload",
     .value = "NAME",
     .help = "what is kept in the host's memory",
     .remark = "% offloaded",
     .place = choice<&TrainingJob::offload, model::kOffloads>()},
    {.name = "freeze",
     .group = OptionGroup::fine_tuning,
     .flag = "freeze",
     .value = "NAMES",
     .help =
         "layers or parameters that are not trained: patterns such as model.layers.0 or *.bias, separated by commas",
     .remark = "frozen: %",
     .repeats = true,
     .place = plain<&TrainingJob::freeze>(kText)},
    {.name = "train",
     .group = OptionGroup::fine_tuning,
     .flag = "train",
     .value = "NAMES",
     .help = "layers or parameters that are trained, as patterns; without `freeze`, only these are",
     .remark = "trained: %",
     .repeats = true,
     .place = plain<&TrainingJob::train>(kText)},
    {.name = "lora",
     .group = OptionGroup::fine_tuning,
     .flag = "lora",
     .aliases = {"lora_rank"},
     .value = "R",
     .help = "adapters of rank R on a frozen base (LoRA, as PEFT runs it)",
     .remark = "LoRA of rank %",
     .place = plain<&TrainingJob::lora>(kWhole)},
    {.name = "lora_targets",
     .group = OptionGroup::fine_tuning,
     .flag = "lora-targets",
     .value = "NAMES",
     .help = "layers that get adapters: q_proj+v_proj, or all-linear; default: PEFT's for the model",
     .remark = "on %",
     .place = plain<&TrainingJob::lora_targets>(kText)},
    {.name = "lora_dtype",
     .group = OptionGroup::fine_tuning,
     .flag = "lora-dtype",
     .value = "NAME",
     .help = "the adapters' type",
     .remark = "adapters in %",
     .place = choice<&TrainingJob::lora_dtype, model::kAdapterTypes>()},
    {.name = "lora_dropout",
     .group = OptionGroup::fine_tuning,
     .flag = "lora-dropout",
     .value = "P",
     .help = "dropout before each adapter, from 0 to less than 1",
     .remark = "dropout % before adapters",
     .place = plain<&TrainingJob::lora_dropout>(kFraction)},
    {.name = "peft",
     .group = OptionGroup::fine_tuning,
     .flag = "peft",
     .value = "METHOD",
     .help = "the kind of adapters, as PEFT has it; `lora` is their rank, `lora_targets` the layers",
     .remark = "adapters by %",
     .place = choice<&TrainingJob::peft, model::kPeftMethods>()},
    {.name = "peft_options",
     .group = OptionGroup::fine_tuning,
     .flag = "peft-options",
     .value = "NAME=VALUE,..",
     .help = "settings of the method, by PEFT's names: n_frequency=1000",
     .remark = "with %",
     .place = plain<&TrainingJob::peft_options>(kText)},
    {.name = "quantize",
     .group = OptionGroup::fine_tuning,
     .flag = "quantize",
     .aliases = {"quantization"},
     .value = "NAME",
     .help = "how the frozen linear layers are held",
     .remark = "quantised to %",
     .place = choice<&TrainingJob::quantize, model::kQuantizations>()},
    {.name = "base_dtype",
     .group = OptionGroup::fine_tuning,
     .flag = "base-dtype",
     .value = "NAME",
     .help = "the type of frozen weights that are not quantised: the precision's, or the type they were loaded in",
     .remark = "frozen weights in %",
     .place = choice<&TrainingJob::base_dtype, model::kBaseTypes>()},
    {.name = "gpu",
     .group = OptionGroup::gpu,
     .flag = "gpu",
     .value = "NAME",
     .help = "the GPU: a name from 'gpumem gpus', or a path to a profile",
     .trains = false,
     .place = plain<&JobRequest::gpu>(kPath)},
    {.name = "estimator",
     .group = OptionGroup::answer,
     .flag = "estimator",
     .value = "NAME",
     .help = "the estimator, by its name",
     .trains = false,
     .place = plain<&JobRequest::estimator>(kText)},
    {.name = "model",
     .group = OptionGroup::answer,
     .flag = "model",
     .value = "NAME",
     .help = "a trained model for learned estimators: a built-in one's name, or a folder",
     .trains = false,
     .place = plain<&JobRequest::model>(kPath)},
    {.name = "lenient",
     .group = OptionGroup::answer,
     .flag = "lenient",
     .help = "count only the parameters of unknown layers; gives a lower bound",
     .trains = false,
     .place = plain<&JobRequest::lenient>(kFlag)},
    {.name = "strict",
     .group = OptionGroup::answer,
     .flag = "strict",
     .help = "refuse a model where gpumem has to guess: what a layer reads, an unknown type or field",
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

}  // namespace gpumem::job
