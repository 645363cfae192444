#pragma once

#include "gpumem/search/megatron.hpp"

namespace gpumem::search {

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

GPUMEM_INLINE std::string layout_arguments(const model::Layout& layout, std::int64_t blocks) {
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
  if (shares) text += "--use-distributed-optimizer\n--overlap-param-gather\n";
  return text + "--overlap-grad-reduce\n";
}

GPUMEM_INLINE std::string settings_of(const model::TrainingJob& job, std::int64_t blocks, std::int64_t /*node*/) {
  std::string text = layout_arguments(job.layout, blocks);
  text += argument("micro-batch-size", job.batch_size) + argument("global-batch-size", global_batch(job));
  if (job.sequence_length) text += argument("seq-length", *job.sequence_length);
  if (job.precision == model::Precision::bf16_mixed) text += "--bf16\n";
  if (job.precision == model::Precision::fp16_mixed) text += "--fp16\n";
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

}  // namespace gpumem::search
