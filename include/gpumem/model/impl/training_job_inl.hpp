#pragma once

#include "gpumem/model/training_job.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "gpumem/core/bytes.hpp"

namespace gpumem::model {

namespace training_job_detail {

GPUMEM_INLINE std::string no_fused_form(Optimizer optimizer) {
  std::vector<std::string_view> with;
  for (const OptimizerRow& row : kOptimizerRows) {
    if (row.has_fused) with.push_back(row.name);
  }
  return "the optimizer " + std::string(row_of(optimizer).name) + " has no fused form for a GPU; " +
         core::listed(with) + " have one";
}

/// Whether the model itself says that it trains with frozen parts, such as a ControlNet's UNet.
GPUMEM_INLINE bool holds_frozen_layers(const TrainingJob& job) {
  if (job.graph == nullptr) return false;
  for (const Layer& layer : job.graph->layers()) {
    if (layer.frozen && layer.parameters > 0) return true;
  }
  return false;
}

/// What is wrong with the options of adapters, in words; empty: nothing.
GPUMEM_INLINE std::string adapter_fault(const TrainingJob& job) {
  if (job.lora && *job.lora < 1) return "the rank of LoRA is " + std::to_string(*job.lora) + "; it must be at least 1";
  if (!(job.lora_dropout >= 0.0 && job.lora_dropout < 1.0)) {
    return "the dropout of LoRA is " + std::to_string(job.lora_dropout) + "; it must be at least 0 and less than 1";
  }
  const bool described = !job.lora_targets.empty() || job.lora_dropout > 0.0 || job.lora_dtype != AdapterType::fp32;
  if (described && !job.has_adapters()) {
    return "targets, type or dropout of LoRA are given, and no rank; say `lora=16`";
  }
  if (!job.peft_options.empty() && job.peft == PeftMethod::none) {
    return "settings of an adapter are given, and no method; say `peft=lora`";
  }
  const bool named = !job.freeze.empty() || !job.train.empty() || !job.parts.empty();  // parts are frozen
  const bool frozen = job.has_adapters() || holds_in_fewer_bits(job.quantize) || named;
  if (job.base_dtype != BaseType::precision && !frozen && !holds_frozen_layers(job)) {
    return "the type of the frozen base is given, and nothing is frozen; say `lora=16`, or `freeze`";
  }
  return {};
}

/// The first count of the layout that is not positive, in words; empty: none.
GPUMEM_INLINE std::string layout_fault(const Layout& layout) {
  const std::pair<std::string_view, std::int64_t> counts[] = {
      {"the number of GPUs in data parallel", layout.data_parallel},
      {"the number of GPUs in tensor parallel", layout.tensor_parallel},
      {"the number of pipeline stages", layout.pipeline_parallel},
      {"the number of virtual stages", layout.virtual_stages},
      {"the number of GPUs in context parallel", layout.context_parallel},
      {"the number of GPUs in expert parallel", layout.expert_parallel},
      {"ZeRO's reduce bucket", layout.zero_reduce_bucket}};
  for (const auto& [what, value] : counts) {
    if (value < 1) return std::string(what) + " is " + std::to_string(value) + "; it must be at least 1";
  }
  constexpr double kMostImbalance = 1024.0;
  const double imbalance = layout.expert_imbalance.value_or(1.0);
  if (!(imbalance >= 1.0 && imbalance <= kMostImbalance)) {
    return "the experts' imbalance is " + std::to_string(imbalance) + "; it must be from 1 (even) to 1024";
  }
  constexpr std::int64_t kMostElements = std::int64_t{1} << 50;
  const std::pair<std::string_view, std::int64_t> elements[] = {
      {"ZeRO's reduce bucket", layout.zero_reduce_bucket},
      {"ZeRO's prefetch bucket", layout.zero_prefetch_bucket},
      {"ZeRO's persistence threshold", layout.zero_persistence_threshold},
      {"ZeRO's reuse distance", layout.zero_reuse_distance}};
  for (const auto& [what, value] : elements) {
    if (value >= 0 && value <= kMostElements) continue;
    return std::string(what) + " is " + std::to_string(value) + " elements; it must be from 0 to 2^50";
  }
  return {};
}

inline constexpr std::string_view kGradientsInBf16 = "grad_reduce_in_bf16";
inline constexpr std::string_view kCudaGraphs = "cuda_graph_impl";
inline constexpr std::string_view kFurtherTokens = "mtp_num_layers";

/// Calls `each(name, value)` for "name=value,name".
template <typename Each>
void each_megatron_option(std::string_view options, Each each) {
  while (!options.empty()) {
    const std::size_t end = std::min(options.find(','), options.size());
    std::string_view one = options.substr(0, end);
    one.remove_prefix(std::min(one.find_first_not_of(' '), one.size()));
    const std::size_t equals = std::min(one.find('='), one.size());
    each(one.substr(0, equals), equals < one.size() ? one.substr(equals + 1) : std::string_view("true"));
    options.remove_prefix(std::min(end + 1, options.size()));
  }
}

/// What is wrong with Megatron's arguments, in words; empty: nothing.
GPUMEM_INLINE std::string megatron_fault(const TrainingJob& job) {
  constexpr std::int64_t kMostFurther = 64;
  std::string fault;
  const auto check = [&](std::string_view name, std::string_view value) {
    const bool flag = value == "true" || value == "false";
    const bool graphs =
        value == "none" || value == "local" || value == "transformer_engine" || value == "full_iteration";
    const auto layers = core::parse_whole(value);
    if (name == kGradientsInBf16 && flag) return;
    if (name == kCudaGraphs && graphs) return;
    if (name == kFurtherTokens && layers && *layers >= 0 && *layers <= kMostFurther) return;
    const bool known = name == kGradientsInBf16 || name == kCudaGraphs || name == kFurtherTokens;
    const std::string said = known ? " cannot be " + core::quoted(core::shortened(value, 80)) : " is not known";
    fault = core::quoted(core::shortened(name, 80)) + " of `megatron_options`" + said +
            "; known are grad_reduce_in_bf16, mtp_num_layers=N (up to 64), and cuda_graph_impl=NAME (none, local, "
            "transformer_engine, full_iteration)";
  };
  each_megatron_option(job.megatron_options, check);
  if (!fault.empty() || job.megatron_options.empty()) return fault;
  if (job.loop != Loop::megatron) return "`megatron_options` are of Megatron's loop; say `loop=megatron`";
  if (further_tokens(job) == 0) return {};
  if (!is_megatron_model(*job.graph, job)) {
    return "`megatron_options` says layers that predict further tokens of a config.json; Megatron's own arguments say "
           "them themselves (mtp_num_layers)";
  }
  if (job.layout.pipeline_parallel > 1) {
    return "layers that predict further tokens of a config.json are modelled without a pipeline; say "
           "`pipeline_parallel=1`, or give the arguments of Megatron's launcher";
  }
  return {};
}

/// What is wrong with the images of a sample, in words; empty: nothing.
GPUMEM_INLINE std::string images_fault(const TrainingJob& job) {
  const bool sound = job.image.empty() || job.image.size() == 2;
  if (!sound) return "the size of an image has two numbers, its width and its height, such as 1024x768";
  for (const std::int64_t side : job.image) {
    if (side >= 1 && side <= Images::kLargestSide) continue;
    return "a side of an image is " + std::to_string(side) + " pixels; it must be from 1 to " +
           std::to_string(Images::kLargestSide);
  }
  if (job.images && (*job.images < 0 || *job.images > Images::kMostImages)) {
    return "a sample has " + std::to_string(*job.images) + " images; it must be from 0 to " +
           std::to_string(Images::kMostImages);
  }
  if (job.frames && (*job.frames < 1 || *job.frames > Images::kMostImages)) {
    return "a video has " + std::to_string(*job.frames) + " frames; it must be from 1 to " +
           std::to_string(Images::kMostImages);
  }
  if (job.seconds && (*job.seconds < 1 || *job.seconds > Images::kMostSeconds)) {
    return "a sound has " + std::to_string(*job.seconds) + " seconds; it must be from 1 to " +
           std::to_string(Images::kMostSeconds);
  }
  return {};
}

/// Flattened parts of a parameter have no rows and columns. Source: transformers 4.51, trainer.py (setup of GaLore and
/// APOLLO): one process by DDP at the most.
GPUMEM_INLINE std::string projection_fault(const TrainingJob& job) {
  const OptimizerRow& row = row_of(job.optimizer);
  const bool projects = row.projection != OptimizerRow::Projection::none;
  if (!projects && (job.optimizer_rank != 0 || !job.optimizer_targets.empty())) {
    return "`optimizer=" + std::string(row.name) + "` projects no gradients and takes no rank";
  }
  if (projects && job.graph->recording() != nullptr) {
    return "`optimizer=" + std::string(row.name) + "` is for linear layers, which a recording does not name";
  }
  const Shardings sharding = job.layout.sharding.kind;
  if (!projects || sharding == Shardings::none || sharding == Shardings::ddp) return {};
  return "`optimizer=" + std::string(row.name) +
         "` works on whole matrices, which `sharding=" + std::string(name_of(kShardings, sharding)) +
         "` cuts; leave one of them out";
}

/// Without recomputation autograd would keep weights that have left. That streamed blocks may not be compiled is a
/// measured gap, not a rule: SimpleTuner's runs of Cosmos 3 and Mage-Flow took 1.6 to 8 times what its code accounts
/// for.
GPUMEM_INLINE std::string block_swap_fault(const TrainingJob& job) {
  if (job.block_swap.kind == BlockSwap::none) return {};
  if (job.block_swap.count < 1) return "the number of swapped blocks must be at least 1";
  const Layout& layout = job.layout;
  const bool whole = layout.sharding.kind == Shardings::none || layout.sharding.kind == Shardings::ddp;
  if (!whole || layout.tensor_parallel > 1 || layout.pipeline_parallel > 1) {
    return "blocks are swapped of a model that each GPU has whole; leave `block_swap` or the sharding out";
  }
  if (job.graph->recording() != nullptr) return "a recording has no blocks to swap; leave `block_swap` out";
  if (job.compile && job.block_swap.kind == BlockSwap::streamed) {
    return "compiled blocks that come and go are not modelled: such runs took up to eight times what the program's "
           "source accounts for; leave `compile` or `block_swap` out";
  }
  const bool whole_blocks = job.activation_checkpointing && job.checkpoints.kind == Checkpoints::full;
  if (whole_blocks || job.compile) return {};
  return "swapped blocks run again in backward, each as a whole: say `checkpointing` full, or leave `block_swap` out";
}

/// A measured gap, not a rule: SimpleTuner's runs of LongCat-Video with such weights took half as much again as its
/// code accounts for.
GPUMEM_INLINE std::string wide_float8_fault(const TrainingJob& job) {
  const bool float8 = job.quantize == Quantization::fp8_torchao || job.quantize == Quantization::fp8wo_torchao;
  if (!float8 || !bounces_weights(job.offload)) return {};
  const auto is_wide = [&](const Layer& layer) { return job.graph->attributes(layer).flag("wide_autocast", false); };
  if (std::ranges::none_of(job.graph->layers(), is_wide)) return {};
  return "float8 weights from the host are not modelled where the model runs under autocast to float32: such runs took "
         "half as much again as the program's source accounts for; say another `quantize`, or leave `offload` out";
}

/// What a strict job may not take as given of its model.
GPUMEM_INLINE core::Status check_doubts(const ModelGraph& graph) {
  for (const Doubt& doubt : graph.doubts()) {
    if (!doubt.large) continue;
    return core::Error{core::ErrorCode::missing_information, doubt.text + "; a strict job does not take this as given",
                       core::Place{graph.file(), 0, {}}};
  }
  return core::Done{};
}

}  // namespace training_job_detail

GPUMEM_INLINE std::optional<std::string_view> megatron_option(const TrainingJob& job, std::string_view name) {
  std::optional<std::string_view> found;
  training_job_detail::each_megatron_option(job.megatron_options, [&](std::string_view one, std::string_view value) {
    if (one == name) found = value;
  });
  return found;
}

GPUMEM_INLINE std::int64_t further_tokens(const TrainingJob& job) {
  return core::parse_whole(megatron_option(job, training_job_detail::kFurtherTokens).value_or("")).value_or(0);
}

GPUMEM_INLINE std::optional<Doubt> doubt_of_cuda_graphs(std::string_view kind) {
  if (kind.empty() || kind == "none") return std::nullopt;
  return Doubt{Doubt::About::kernels,
               "CUDA graphs (" + core::shortened(kind, 40) +
                   ") are taken to hold in their pool what a pass without them keeps; copies of their layers' inputs, "
                   "and what they hold while other parts run, are not counted",
               false};
}

GPUMEM_INLINE core::Status validate(const TrainingJob& job) {
  const auto refuse = [](std::string message) {
    return core::Error{core::ErrorCode::invalid_argument, std::move(message), {}};
  };
  const auto not_positive = [&](std::string_view what, std::int64_t value) {
    return refuse(std::string(what) + " is " + std::to_string(value) + "; it must be at least 1");
  };
  if (job.graph == nullptr) return refuse("the job has no model; read a summary first");
  if (job.fused && !row_of(job.optimizer).has_fused) return refuse(training_job_detail::no_fused_form(job.optimizer));
  if (std::string fault = training_job_detail::projection_fault(job); !fault.empty()) return refuse(std::move(fault));
  if (job.batch_size < 1) {
    return refuse("the batch size is " + std::to_string(job.batch_size) + "; give `batch_size`, at least 1");
  }
  if (job.gradient_accumulation < 1) return not_positive("gradient accumulation", job.gradient_accumulation);
  if (counts_blocks(job.checkpoints.kind) && job.checkpoints.count < 1)
    return not_positive("the number of blocks", job.checkpoints.count);
  if (job.loss_form.kind == LossForms::chunked && job.loss_form.count < 1) {
    return not_positive("the number of positions of a chunk", job.loss_form.count);
  }
  if (job.loss_form.kind == LossForms::checkpointed && job.loss_form.count < 1) {
    return not_positive("the number of tokens of a chunk", job.loss_form.count);
  }
  if (job.loss_form.kind == LossForms::fused_target && job.loss_form.count < 1) {
    return not_positive("the size of a chunk's logits in MiB", job.loss_form.count);
  }
  if (job.loss_form.kind != LossForms::standard && job.loss != Loss::cross_entropy) {
    return refuse("only cross entropy can be chunked, fused or compiled");
  }
  if (std::string fault = training_job_detail::layout_fault(job.layout); !fault.empty())
    return refuse(std::move(fault));
  if (std::string fault = training_job_detail::megatron_fault(job); !fault.empty()) return refuse(std::move(fault));
  if (job.sequence_length && *job.sequence_length < 1) return not_positive("the sequence length", *job.sequence_length);
  if (job.samples_per_epoch && *job.samples_per_epoch < 1) {
    return not_positive("the number of samples an epoch", *job.samples_per_epoch);
  }
  if (std::string fault = training_job_detail::adapter_fault(job); !fault.empty()) return refuse(std::move(fault));
  constexpr std::int64_t kMostResident = std::int64_t{1} << 30;
  if (job.resident < 0 || job.resident > kMostResident) {
    return refuse("other tensors on the GPU take " + std::to_string(job.resident) + " MiB; it must be from 0 to 2^30");
  }
  if (std::string fault = training_job_detail::images_fault(job); !fault.empty()) return refuse(std::move(fault));
  if (std::string fault = training_job_detail::block_swap_fault(job); !fault.empty()) return refuse(std::move(fault));
  if (std::string fault = training_job_detail::wide_float8_fault(job); !fault.empty()) return refuse(std::move(fault));
  for (const std::int64_t dim : job.input_shape) {
    if (dim < 1) return not_positive("an input dimension", dim);
  }
  if (job.input_shape.size() + 1 > core::Shape::kMaxRank) {
    return refuse("the input shape has more than " + std::to_string(core::Shape::kMaxRank - 1) + " dimensions");
  }
  return job.strict ? training_job_detail::check_doubts(*job.graph) : core::Done{};
}

}  // namespace gpumem::model
