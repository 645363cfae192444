#include "deepspeed.hpp"

#include <cstdint>
#include <string>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/csv.hpp"
#include "shared_settings.hpp"

namespace gpumem::trainer_files {

namespace {
namespace deepspeed_detail {

constexpr std::string_view kWithoutEffect[] = {"comms_logger",
                                               "csv_monitor",
                                               "dataloader_drop_last",
                                               "dump_state",
                                               "flops_profiler",
                                               "gradient_clipping",
                                               "memory_breakdown",
                                               "prescale_gradients",
                                               "scheduler",
                                               "steps_per_print",
                                               "tensorboard",
                                               "train_batch_size",
                                               "wandb",
                                               "wall_clock_breakdown",
                                               "zero_allow_untested_optimizer",
                                               "zero_force_ds_cpu_optimizer"};

/// Source: DeepSpeed (2026), runtime/zero/config.py and offload_config.py; runtime/precision_config.py.
constexpr std::string_view kZeroWithoutEffect[] = {"contiguous_gradients",
                                                   "reduce_scatter",
                                                   "use_multi_rank_bucket_allreduce",
                                                   "allgather_partitions",
                                                   "overlap_comm",
                                                   "load_from_fp32_weights",
                                                   "elastic_checkpoint",
                                                   "zenflow",
                                                   "cpu_offload*",
                                                   "model_persistence_threshold",
                                                   "stage3_model_persistence_threshold",
                                                   "gather_16bit_weights_on_model_save",
                                                   "stage3_gather_*",
                                                   "module_granularity_threshold",
                                                   "use_all_reduce_for_fetch_params",
                                                   "stage3_use_all_reduce_for_fetch_params",
                                                   "allgather_sequential",
                                                   "stage3_allgather_sequential",
                                                   "stage3_module_granularity_threshold",
                                                   "ignore_unused_parameters",
                                                   "legacy_stage1",
                                                   "round_robin_gradients",
                                                   "zero_quantized_nontrainable_weights",
                                                   "zeropp_loco_param",
                                                   "mics_*",
                                                   "memory_efficient_linear",
                                                   "pipeline_loading_checkpoint",
                                                   "override_module_apply",
                                                   "log_trace_cache_warnings",
                                                   "enable_sanity_checks",
                                                   "save_muon_momentum_buffer_in_memory",
                                                   "leaf_module"};
constexpr std::string_view kOffloadWithoutEffect[] = {"nvme_path",  "buffer_count",  "buffer_size",       "max_in_cpu",
                                                      "pin_memory", "pipeline_read", "pipeline_write",    "fast_init",
                                                      "ratio",      "super_offload", "cpuadam_cores_perc"};
constexpr std::string_view kTypeWithoutEffect[] = {"auto_cast",
                                                   "loss_scale",
                                                   "initial_scale_power",
                                                   "loss_scale_window",
                                                   "hysteresis",
                                                   "consecutive_hysteresis",
                                                   "min_loss_scale",
                                                   "fp16_master_weights_and_grads",
                                                   "immediate_grad_update",
                                                   "check_grad_overflow",
                                                   "bf16_master_weights_and_grads",
                                                   "bf16_optimizer_states",
                                                   "dtype",
                                                   "lower_precision_safe_modules"};
constexpr std::string_view kCheckpointsWithoutEffect[] = {"contiguous_memory_optimization", "number_checkpoints",
                                                          "synchronize_checkpoint_boundary", "profile"};

/// A count that may be written as 2e8.
void take_elements(TrainerReading& from, std::string_view path, std::string_view option) {
  constexpr double kMost = 0x1p50;
  const auto word = from.word(path);
  if (!word) return;
  const std::optional<double> value = core::parse_number(*word);
  const bool count = value && *value >= 0.0 && *value <= kMost;
  from.want(option, count ? std::to_string(static_cast<std::int64_t>(*value)) : *word, path);
}

void read_zero(TrainerReading& from) {
  const std::string stage = from.choice("zero_optimization.stage", "0 1 2 3", "0");
  if (stage == "0") return from.know("zero_optimization");
  from.want("sharding", "zero-" + stage, "zero_optimization.stage");
  const auto is_away = [&](std::string_view path) {
    const std::string device = from.choice(path, "none cpu nvme", "none");
    return device == "cpu" || device == "nvme";
  };
  const bool states = is_away("zero_optimization.offload_optimizer.device");
  const bool weights = is_away("zero_optimization.offload_param.device");
  if (weights) from.want("offload", "parameters", "zero_optimization.offload_param.device");
  else if (states) from.want("offload", "optimizer", "zero_optimization.offload_optimizer.device");
  if (weights && !states) from.not_modelled("zero_optimization.offload_param.device");
  take_elements(from, "zero_optimization.reduce_bucket_size", "zero_reduce_bucket");
  take_elements(from, "zero_optimization.stage3_prefetch_bucket_size", "zero_prefetch_bucket");
  take_elements(from, "zero_optimization.stage3_param_persistence_threshold", "zero_persistence_threshold");
  take_elements(from, "zero_optimization.stage3_max_reuse_distance", "zero_reuse_distance");
  for (const std::string_view path : {"allgather_bucket_size", "stage3_max_live_parameters", "zero_hpz_partition_size",
                                      "zero_quantized_weights", "zero_quantized_gradients", "sub_group_size"}) {
    from.not_modelled("zero_optimization." + std::string(path));
  }
}

void read_optimizer(TrainerReading& from) {
  const auto type = from.word("optimizer.type");
  if (!type) return;
  want_optimizer(from, *type, "optimizer.type");
  const std::string name = core::lower_case(*type);
  if ((name == "adam" || name == "adamw") && !from.on("optimizer.params.torch_adam")) {
    from.want("fused", "true", "optimizer.type");
  }
}

bool sniff(const Setting& root) {
  return root.field("train_micro_batch_size_per_gpu") != nullptr || root.field("zero_optimization") != nullptr ||
         root.field("train_batch_size") != nullptr;
}

void read(TrainerReading& from) {
  from.take("train_micro_batch_size_per_gpu", "batch_size");
  from.take("gradient_accumulation_steps", "accumulate");
  read_optimizer(from);
  if (from.on("fp16.enabled")) from.want("precision", "fp16-mixed", "fp16.enabled");
  if (from.on("bf16.enabled")) from.want("precision", "bf16-mixed", "bf16.enabled");
  read_zero(from);
  for (const std::string_view path :
       {"amp.enabled", "activation_checkpointing.partition_activations", "activation_checkpointing.cpu_checkpointing",
        "pipeline", "compression_training", "sparse_attention", "data_types.grad_accum_dtype",
        "communication_data_type", "torch_autocast.enabled", "tensor_parallel", "sequence_parallel_size"}) {
    from.not_modelled(path);
  }
  from.without_effect(kWithoutEffect);
  from.without_effect_in("zero_optimization", kZeroWithoutEffect);
  for (const std::string_view section : {"zero_optimization.offload_optimizer", "zero_optimization.offload_param"}) {
    from.without_effect_in(section, kOffloadWithoutEffect);
  }
  for (const std::string_view section : {"fp16", "bf16", "torch_autocast"}) {
    from.without_effect_in(section, kTypeWithoutEffect);
  }
  from.without_effect_in("activation_checkpointing", kCheckpointsWithoutEffect);
  for (const std::string_view section : {"optimizer.params", "amp", "data_types"}) from.know(section);
}

}  // namespace deepspeed_detail
}  // namespace

const TrainerFormat& deepspeed() {
  static constexpr TrainerFormat kFormat = {"deepspeed", "DeepSpeed's ds_config.json", &deepspeed_detail::sniff,
                                            &deepspeed_detail::read};
  return kFormat;
}

}  // namespace gpumem::trainer_files
