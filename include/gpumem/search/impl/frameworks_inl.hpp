#pragma once

#include "gpumem/search/frameworks.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "gpumem/parallel/rank_graph.hpp"

namespace gpumem::search {

namespace accelerate_detail {

using model::Checkpoints;
using model::Shardings;

GPUMEM_INLINE std::vector<model::Sharding> shardings(std::int64_t /*ranks*/, std::int64_t /*apart*/,
                                                     std::int64_t /*node*/) {
  return {{Shardings::fsdp1, 0}};
}

GPUMEM_INLINE std::vector<Checkpointing> checkpointings() { return {{false, {}}, {true, {Checkpoints::full, 0}}}; }

GPUMEM_INLINE std::string mixed_precision(model::Precision precision) {
  if (precision == model::Precision::bf16_mixed) return "bf16";
  return precision == model::Precision::fp16_mixed ? "fp16" : "no";
}

/// Batch and sequence are the program's arguments; they follow it as a comment.
GPUMEM_INLINE std::string settings_of(const model::TrainingJob& job, std::int64_t /*blocks*/, const Cluster& cluster) {
  // All processes of all machines, and how many machines these are; the launcher gives each its rank and the address.
  const std::int64_t machines = (job.layout.data_parallel + cluster.node - 1) / cluster.node;
  return "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nmixed_precision: " +
         mixed_precision(job.precision) + "\nnum_machines: " + std::to_string(machines) +
         "\nnum_processes: " + std::to_string(job.layout.data_parallel) +
         "\nfsdp_config:\n  fsdp_version: 1\n  fsdp_sharding_strategy: FULL_SHARD\n"
         "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n  fsdp_backward_prefetch: BACKWARD_PRE\n"
         "  fsdp_use_orig_params: true\n" +
         (job.offload == model::Offload::parameters ? "  fsdp_offload_params: true\n" : "") +
         "# the program's own: --per_device_train_batch_size " + std::to_string(job.batch_size) +
         " --gradient_accumulation_steps " + std::to_string(job.gradient_accumulation) +
         (job.activation_checkpointing ? " --gradient_checkpointing\n" : "\n");
}

}  // namespace accelerate_detail

GPUMEM_INLINE Framework accelerate() {
  namespace detail = accelerate_detail;
  return {.name = "fsdp1",
          .description = "accelerate and HuggingFace's Trainer: FullyShardedDataParallel",
          .settings = "accelerate YAML",
          .loop = model::Loop::hf_trainer,
          .shardings = detail::shardings,
          .checkpointings = detail::checkpointings,
          .settings_of = detail::settings_of};
}

namespace deepspeed_detail {

using model::Checkpoints;
using model::Shardings;

GPUMEM_INLINE std::vector<model::Sharding> shardings(std::int64_t /*ranks*/, std::int64_t /*apart*/,
                                                     std::int64_t /*node*/) {
  return {{Shardings::zero_1, 0}, {Shardings::zero_2, 0}, {Shardings::zero_3, 0}};
}

GPUMEM_INLINE std::vector<Checkpointing> checkpointings() { return {{false, {}}, {true, {Checkpoints::full, 0}}}; }

GPUMEM_INLINE int stage_of(Shardings sharding) {
  if (sharding == Shardings::zero_3) return 3;
  return sharding == Shardings::zero_2 ? 2 : 1;
}

/// What the estimate takes, where a default of a later release may differ or the job says another figure.
GPUMEM_INLINE std::string zero(const model::TrainingJob& job) {
  const model::Layout& layout = job.layout;
  const int stage = stage_of(layout.sharding.kind);
  const model::Layout usual;
  std::string text = "  \"zero_optimization\": {\n    \"stage\": " + std::to_string(stage);
  const auto add = [&](std::string_view name, std::int64_t model::Layout::*figure, bool always) {
    if (!always && layout.*figure == usual.*figure) return;
    text += ",\n    \"" + std::string(name) + "\": " + std::to_string(layout.*figure);
  };
  if (stage > 1) add("reduce_bucket_size", &model::Layout::zero_reduce_bucket, stage == 2);
  if (stage == 3) {
    add("stage3_prefetch_bucket_size", &model::Layout::zero_prefetch_bucket, false);
    add("stage3_param_persistence_threshold", &model::Layout::zero_persistence_threshold, false);
    add("stage3_max_reuse_distance", &model::Layout::zero_reuse_distance, false);
  }
  if (stage < 3) text += ",\n    \"overlap_comm\": false,\n    \"contiguous_gradients\": true";
  if (job.offload == model::Offload::optimizer) text += ",\n    \"offload_optimizer\": { \"device\": \"cpu\" }";
  return text + "\n  }\n";
}

GPUMEM_INLINE std::string settings_of(const model::TrainingJob& job, std::int64_t /*blocks*/,
                                      const Cluster& /*cluster*/) {
  const auto field = [](std::string_view name, std::int64_t value) {
    return "  \"" + std::string(name) + "\": " + std::to_string(value) + ",\n";
  };
  std::string text = "{\n" + field("train_batch_size", global_batch(job)) +
                     field("train_micro_batch_size_per_gpu", job.batch_size) +
                     field("gradient_accumulation_steps", job.gradient_accumulation);
  if (job.precision == model::Precision::bf16_mixed) text += "  \"bf16\": { \"enabled\": true },\n";
  if (job.precision == model::Precision::fp16_mixed) text += "  \"fp16\": { \"enabled\": true },\n";
  return text + zero(job) + "}\n";
}

}  // namespace deepspeed_detail

GPUMEM_INLINE Framework deepspeed() {
  namespace detail = deepspeed_detail;
  return {.name = "deepspeed",
          .description = "DeepSpeed: ZeRO-1, ZeRO-2 and ZeRO-3",
          .settings = "DeepSpeed JSON",
          .loop = model::Loop::hf_trainer,
          .shardings = detail::shardings,
          .checkpointings = detail::checkpointings,
          .settings_of = detail::settings_of};
}

namespace megatron_detail {

using model::Checkpoints;
using model::Shardings;

GPUMEM_INLINE std::vector<model::Sharding> shardings(std::int64_t ranks, std::int64_t /*apart*/,
                                                     std::int64_t /*node*/) {
  if (ranks == 1) return {{Shardings::ddp, 0}};
  return {{Shardings::distributed_optimizer, 0}, {Shardings::ddp, 0}};
}

GPUMEM_INLINE std::vector<Checkpointing> checkpointings() {
  return {{false, {}}, {true, {Checkpoints::selective_attention, 0}}, {true, {Checkpoints::full, 0}}};
}

GPUMEM_INLINE std::string argument(std::string_view name, std::int64_t value) {
  return "--" + std::string(name) + " " + std::to_string(value) + "\n";
}

GPUMEM_INLINE std::string layout_arguments(const model::Layout& layout, std::int64_t blocks, bool overlap) {
  std::string text = argument("tensor-model-parallel-size", layout.tensor_parallel);
  if (layout.sequence_parallel) text += "--sequence-parallel\n";
  text += argument("pipeline-model-parallel-size", layout.pipeline_parallel);
  if (layout.virtual_stages > 1) {
    text +=
        argument("num-layers-per-virtual-pipeline-stage", blocks / (layout.pipeline_parallel * layout.virtual_stages));
  }
  text += argument("context-parallel-size", layout.context_parallel);
  if (layout.expert_parallel > 1) text += argument("expert-model-parallel-size", layout.expert_parallel);
  const bool shares = layout.sharding.kind == Shardings::distributed_optimizer;
  if (shares) text += "--use-distributed-optimizer\n";
  if (shares && overlap) text += "--overlap-param-gather\n";
  return overlap ? text + "--overlap-grad-reduce\n" : text;
}

/// Megatron-LM has all tensor parallel ranks share each expert where nobody says more. Source: Megatron-LM r0.16,
/// core/parallel_state.py: initialize_model_parallel.
GPUMEM_INLINE std::string expert_arguments(const model::TrainingJob& job) {
  const auto of_expert = [](const model::Layer& layer) { return layer.expert > 0; };
  if (job.graph == nullptr || std::ranges::none_of(job.graph->layers(), of_expert)) return {};
  const std::int64_t ranks = parallel::expert_tensor_ranks(job);
  return ranks == job.layout.tensor_parallel ? std::string() : argument("expert-tensor-parallel-size", ranks);
}

GPUMEM_INLINE std::string settings_of(const model::TrainingJob& job, std::int64_t blocks, const Cluster& cluster) {
  std::string text = layout_arguments(job.layout, blocks, cluster.overlap) + expert_arguments(job);
  text += argument("micro-batch-size", job.batch_size) + argument("global-batch-size", global_batch(job));
  if (job.sequence_length) text += argument("seq-length", *job.sequence_length);
  if (job.precision == model::Precision::bf16_mixed) text += "--bf16\n";
  if (job.precision == model::Precision::fp16_mixed) text += "--fp16\n";
  if (job.offload == model::Offload::optimizer) text += "--optimizer-cpu-offload\n--use-precision-aware-optimizer\n";
  if (!job.activation_checkpointing) return text;
  const bool selective = job.checkpoints.kind == Checkpoints::selective_attention;
  return text + (selective ? "--recompute-granularity selective\n"
                           : "--recompute-granularity full\n--recompute-method uniform\n--recompute-num-layers 1\n");
}

}  // namespace megatron_detail

GPUMEM_INLINE Framework megatron() {
  namespace detail = megatron_detail;
  return {.name = "megatron",
          .description = "Megatron-LM: tensor, context, pipeline and expert parallelism, distributed optimizer",
          .settings = "Megatron-LM arguments",
          .loop = model::Loop::megatron,
          .tensor_parallel = true,
          .context_parallel = true,
          .pipeline_parallel = true,
          .expert_parallel = true,
          .shardings = detail::shardings,
          .checkpointings = detail::checkpointings,
          .tokens_alone = true,
          .settings_of = detail::settings_of};
}

namespace torchtitan_detail {

using model::Checkpoints;
using model::Shardings;

/// All ranks, or groups of whole nodes (hsdp).
GPUMEM_INLINE std::vector<model::Sharding> shardings(std::int64_t ranks, std::int64_t apart, std::int64_t node) {
  std::vector<model::Sharding> all = {{Shardings::fsdp2, 0}};
  for (std::int64_t group = node / apart; group > 1 && group < ranks; group *= 2) {
    if (ranks % group == 0) all.push_back({Shardings::hsdp, group});
  }
  return all;
}

GPUMEM_INLINE std::vector<Checkpointing> checkpointings() {
  return {{false, {}}, {true, {Checkpoints::selective_op, 0}}, {true, {Checkpoints::full, 0}}};
}

GPUMEM_INLINE std::string line(std::string_view name, std::int64_t value) {
  return std::string(name) + " = " + std::to_string(value) + "\n";
}

GPUMEM_INLINE std::string line(std::string_view name, std::string_view value) {
  return std::string(name) + " = " + std::string(value) + "\n";
}

GPUMEM_INLINE std::string text_line(std::string_view name, std::string_view value) {
  return std::string(name) + " = \"" + std::string(value) + "\"\n";
}

/// It defaults to bfloat16, and has no float16.
GPUMEM_INLINE std::string types(model::Precision precision) {
  using model::Precision;
  std::string text = precision == Precision::bf16 ? text_line("dtype", "bfloat16") : "";
  if (precision == Precision::fp16_mixed || precision == Precision::amp_fp16) {
    text += "# torchtitan has no float16; bfloat16 takes as much\n";
  }
  return text + text_line("mixed_precision_param", model::is_float32(precision) ? "float32" : "bfloat16") +
         text_line("mixed_precision_reduce", "float32");
}

/// Tensor parallel ranks share each expert's weights, as the estimate has it; then a group of experts is made of whole
/// context parallel groups, and of ranks that shard (parallel_dims.py: _validate, etp == tp).
GPUMEM_INLINE bool experts_fit(const model::Layout& layout) {
  const bool groups = layout.sharding.kind == Shardings::hsdp;
  const std::int64_t shards = groups ? layout.sharding.count : layout.data_parallel * layout.context_parallel;
  const std::int64_t experts = layout.expert_parallel;
  return experts == 1 || (experts % layout.context_parallel == 0 && shards % experts == 0);
}

/// What a micro-batch is under a pipeline is a part of the local batch.
GPUMEM_INLINE std::string training(const model::TrainingJob& job) {
  const bool pipelined = job.layout.pipeline_parallel > 1;
  std::string text = "[training]\n";
  text += line("local_batch_size", job.batch_size * (pipelined ? job.gradient_accumulation : 1));
  text += line("global_batch_size", global_batch(job));
  if (job.sequence_length) text += line("seq_len", *job.sequence_length);
  if (job.offload == model::Offload::parameters) text += line("enable_cpu_offload", "true");
  return text + types(job.precision);
}

GPUMEM_INLINE std::string parallelism(const model::TrainingJob& job, std::int64_t blocks) {
  const model::Layout& layout = job.layout;
  const bool groups = layout.sharding.kind == Shardings::hsdp;
  // Context parallel ranks are part of the mesh that parameters are sharded over.
  const std::int64_t shards = groups ? layout.sharding.count / layout.context_parallel : layout.data_parallel;
  std::string text = "\n[parallelism]\n";
  text += line("data_parallel_replicate_degree", groups ? layout.data_parallel / shards : 1);
  text += line("data_parallel_shard_degree", shards);
  const model::Reshard reshard = layout.reshard_after_forward.kind;
  if (reshard == model::Reshard::within) text += "# torchtitan has no fsdp_reshard_after_forward with a number\n";
  else if (reshard != model::Reshard::usual)
    text += text_line("fsdp_reshard_after_forward", model::name_of(model::kReshards, reshard));
  text += line("tensor_parallel_degree", layout.tensor_parallel);
  text += line("context_parallel_degree", layout.context_parallel);
  if (layout.expert_parallel > 1) {
    text += line("expert_parallel_degree", layout.expert_parallel);
    text += line("expert_tensor_parallel_degree", layout.tensor_parallel);
  }
  text += line("pipeline_parallel_degree", layout.pipeline_parallel);
  if (layout.pipeline_parallel == 1) return text;
  const bool interleaved = layout.schedule == model::Schedule::interleaved;
  text += text_line("pipeline_parallel_schedule", interleaved ? "Interleaved1F1B" : "1F1B");
  text += line("pipeline_parallel_microbatch_size", job.batch_size);
  const std::int64_t stages = layout.pipeline_parallel * layout.virtual_stages;
  if (blocks % stages != 0) return text;  // embedding and head count as a layer each then, which is the default
  text += line("pipeline_parallel_layers_per_stage", blocks / stages);
  // Both default to 1: with the embedding and the head counted as layers, stages would not come out even.
  text += line("pipeline_parallel_first_stage_less_layers", 0);
  return text + line("pipeline_parallel_last_stage_less_layers", 0);
}

GPUMEM_INLINE std::string settings_of(const model::TrainingJob& job, std::int64_t blocks, const Cluster& /*cluster*/) {
  std::string text = training(job) + parallelism(job, blocks) + "\n[activation_checkpoint]\n";
  const bool selective = job.checkpoints.kind == Checkpoints::selective_op;
  text += text_line("mode", !job.activation_checkpointing ? "none" : selective ? "selective" : "full");
  if (job.activation_checkpointing && selective) text += text_line("selective_ac_option", "op");
  return text;
}

}  // namespace torchtitan_detail

GPUMEM_INLINE Framework torchtitan() {
  namespace detail = torchtitan_detail;
  return {.name = "fsdp2",
          .description = "torchtitan: fully_shard with tensor, context, pipeline and expert parallelism",
          .settings = "torchtitan TOML",
          .loop = model::Loop::torchtitan,
          .tensor_parallel = true,
          .context_parallel = true,
          .pipeline_parallel = true,
          .expert_parallel = true,
          .shardings = detail::shardings,
          .checkpointings = detail::checkpointings,
          .experts_fit = detail::experts_fit,
          .settings_of = detail::settings_of};
}

GPUMEM_INLINE std::span<const Framework> frameworks() {
  static const std::array kAll = {torchtitan(), megatron(), deepspeed(), accelerate()};
  return kAll;
}

GPUMEM_INLINE core::Result<std::vector<const Framework*>> frameworks_of(std::string_view name) {
  std::vector<const Framework*> found;
  std::string names;
  for (const Framework& framework : frameworks()) {
    if (name == "any" || name == framework.name) found.push_back(&framework);
    names += std::string(framework.name) + ", ";
  }
  if (!found.empty()) return found;
  return core::Error{core::ErrorCode::invalid_argument,
                     "there is no framework " + core::quoted(name) + "; choose one of " + names + "any",
                     {}};
}

GPUMEM_INLINE core::Result<Question> question_about(std::string_view framework, std::string_view alloc_conf) {
  auto frameworks = frameworks_of(framework);
  if (!frameworks) return frameworks.error();
  const auto allocator = device::parse_allocator_options(alloc_conf);
  if (!allocator) return allocator.error();
  Question question;
  question.frameworks = *std::move(frameworks);
  question.allocator = *allocator;
  return question;
}

}  // namespace gpumem::search
