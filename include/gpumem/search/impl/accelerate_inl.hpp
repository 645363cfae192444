#pragma once

#include "gpumem/search/accelerate.hpp"

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
GPUMEM_INLINE std::string settings_of(const model::TrainingJob& job, std::int64_t /*blocks*/, std::int64_t node) {
  // All processes of all machines, and how many machines these are; the launcher gives each its rank and the address.
  const std::int64_t machines = (job.layout.data_parallel + node - 1) / node;
  return "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nmixed_precision: " +
         mixed_precision(job.precision) + "\nnum_machines: " + std::to_string(machines) +
         "\nnum_processes: " + std::to_string(job.layout.data_parallel) +
         "\nfsdp_config:\n  fsdp_version: 1\n  fsdp_sharding_strategy: FULL_SHARD\n"
         "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n  fsdp_backward_prefetch: BACKWARD_PRE\n"
         "  fsdp_use_orig_params: true\n"
         "# the program's own: --per_device_train_batch_size " +
         std::to_string(job.batch_size) + " --gradient_accumulation_steps " +
         std::to_string(job.gradient_accumulation) +
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

}  // namespace gpumem::search
