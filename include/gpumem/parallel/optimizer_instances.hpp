// Input: a job under Megatron's distributed optimizer.
// Output: how many ranks share one instance of it: with several (num_distributed_optimizer_instances) each cuts masters
// and states over its part of the ranks.
// Units: ranks.
//
// Source: Megatron-LM core r0.12, core/parallel_state.py (intra_partial_data_parallel_group).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "gpumem/model/training_job.hpp"

namespace gpumem::parallel {

/// What Megatron's arguments say about it, on the layer that embeds words.
inline constexpr std::string_view kOptimizerInstances = "optimizer_instances";

[[nodiscard]] inline std::int64_t optimizer_instances(const model::ModelGraph& graph) {
  for (const model::Layer& layer : graph.layers()) {
    if (graph.op(layer) != "embedding") continue;
    return std::max<std::int64_t>(graph.attributes(layer).integer(kOptimizerInstances).value_or(1), 1);
  }
  return 1;
}

/// The number of ranks that share the states within one instance.
[[nodiscard]] inline std::int64_t ranks_of_instance(const model::TrainingJob& job, std::int64_t ranks) {
  return job.graph == nullptr ? ranks : std::max<std::int64_t>(ranks / optimizer_instances(*job.graph), 1);
}

}  // namespace gpumem::parallel
