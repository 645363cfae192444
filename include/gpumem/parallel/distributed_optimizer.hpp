// Enters: a job under Megatron's distributed optimizer. Leaves: its Sharing: parameters are whole, in one buffer; every
// gradient is added to a float32 main gradient, in one buffer as well, which stands all the time; masters and states
// are cut over the data and context parallel ranks. Units: ranks.
//
// Source: Megatron-LM core 0.9: core/distributed/param_and_grad_buffer.py (grad_reduce_in_fp32), core/optimizer/
// distrib_optimizer.py: the shard of the main gradient is a view of the buffer, so a step copies none. The weights'
// products add to main gradients themselves (gradient_accumulation_fusion), so a gradient in the lower type is not
// kept.
// With several instances of it (num_distributed_optimizer_instances) each cuts them over its part of these ranks:
// core r0.12, core/parallel_state.py (intra_partial_data_parallel_group).
#pragma once

#include <algorithm>
#include <string_view>

#include "gpumem/parallel/layout.hpp"
#include "gpumem/parallel/sharing.hpp"

namespace gpumem::parallel {

/// What Megatron's arguments say of it, on the layer that embeds words.
inline constexpr std::string_view kOptimizerInstances = "optimizer_instances";

[[nodiscard]] inline std::int64_t optimizer_instances(const model::ModelGraph& graph) {
  for (const model::Layer& layer : graph.layers()) {
    if (graph.op(layer) != "embedding") continue;
    return std::max<std::int64_t>(graph.attributes(layer).integer(kOptimizerInstances).value_or(1), 1);
  }
  return 1;
}

/// Of so many ranks, those that share the states within one instance.
[[nodiscard]] inline std::int64_t ranks_of_instance(const model::TrainingJob& job, std::int64_t ranks) {
  return job.graph == nullptr ? ranks : std::max<std::int64_t>(ranks / optimizer_instances(*job.graph), 1);
}

[[nodiscard]] inline Sharing distributed_optimizer(const model::TrainingJob& job) {
  Sharing sharing;
  sharing.reduction = Reduction::main_buffer;
  sharing.reduced_in = core::DType::float32;
  sharing.state_ranks = ranks_of_instance(job, sharing_ranks(job.layout));
  sharing.masters = model::has_masters(job.precision);
  return sharing;
}

/// Megatron's without it: the same buffer of gradients, and masters and states whole on each rank.
[[nodiscard]] inline Sharing main_gradients(const model::TrainingJob& job) {
  Sharing sharing = distributed_optimizer(job);
  sharing.state_ranks = 1;
  return sharing;
}

}  // namespace gpumem::parallel
