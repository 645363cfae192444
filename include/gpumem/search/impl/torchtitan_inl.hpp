#pragma once

#include "gpumem/search/torchtitan.hpp"

namespace gpumem::search {

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
  const bool single = precision == Precision::fp32 || precision == Precision::fp32_strict;
  return text + text_line("mixed_precision_param", single ? "float32" : "bfloat16") +
         text_line("mixed_precision_reduce", "float32");
}

/// What a micro-batch is under a pipeline is a part of the local batch.
GPUMEM_INLINE std::string training(const model::TrainingJob& job) {
  const bool pipelined = job.layout.pipeline_parallel > 1;
  std::string text = "[training]\n";
  text += line("local_batch_size", job.batch_size * (pipelined ? job.gradient_accumulation : 1));
  text += line("global_batch_size", global_batch(job));
  if (job.sequence_length) text += line("seq_len", *job.sequence_length);
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
  text += line("tensor_parallel_degree", layout.tensor_parallel);
  text += line("context_parallel_degree", layout.context_parallel);
  text += line("pipeline_parallel_degree", layout.pipeline_parallel);
  if (layout.pipeline_parallel == 1) return text;
  const bool interleaved = layout.schedule == model::Schedule::interleaved;
  text += text_line("pipeline_parallel_schedule", interleaved ? "Interleaved1F1B" : "1F1B");
  text += line("pipeline_parallel_microbatch_size", job.batch_size);
  text += line("pipeline_parallel_layers_per_stage", blocks / (layout.pipeline_parallel * layout.virtual_stages));
  // Both default to 1: with the embedding and the head counted as layers, stages would not come out even.
  text += line("pipeline_parallel_first_stage_less_layers", 0);
  return text + line("pipeline_parallel_last_stage_less_layers", 0);
}

GPUMEM_INLINE std::string settings_of(const model::TrainingJob& job, std::int64_t blocks, std::int64_t /*node*/) {
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
          .description = "torchtitan: fully_shard with tensor, context and pipeline parallelism",
          .settings = "torchtitan TOML",
          .loop = model::Loop::torchtune,
          .tensor_parallel = true,
          .context_parallel = true,
          .pipeline_parallel = true,
          .shardings = detail::shardings,
          .checkpointings = detail::checkpointings,
          .settings_of = detail::settings_of};
}

}  // namespace gpumem::search
