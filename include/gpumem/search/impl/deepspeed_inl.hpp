#pragma once

#include "gpumem/search/deepspeed.hpp"

namespace gpumem::search {

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
GPUMEM_INLINE std::string zero(const model::Layout& layout) {
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
  return text + "\n  }\n";
}

GPUMEM_INLINE std::string settings_of(const model::TrainingJob& job, std::int64_t /*blocks*/, std::int64_t /*node*/) {
  const auto field = [](std::string_view name, std::int64_t value) {
    return "  \"" + std::string(name) + "\": " + std::to_string(value) + ",\n";
  };
  std::string text = "{\n" + field("train_batch_size", global_batch(job)) +
                     field("train_micro_batch_size_per_gpu", job.batch_size) +
                     field("gradient_accumulation_steps", job.gradient_accumulation);
  if (job.precision == model::Precision::bf16_mixed) text += "  \"bf16\": { \"enabled\": true },\n";
  if (job.precision == model::Precision::fp16_mixed) text += "  \"fp16\": { \"enabled\": true },\n";
  return text + zero(job.layout) + "}\n";
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

}  // namespace gpumem::search
