// Input: the sizes of a model's trained parameters, in the model's order, and a layout.
// Output: the parameters for which a rank holds masters and states, if these are shared out parameter by parameter:
// Megatron's distributed Muon, whose step reads whole matrices.
// Units: elements.
//
// Source: Megatron-LM core 0.16, core/optimizer/layer_wise_optimizer.py: LayerWiseDistributedOptimizer.shard_params():
// parameters in the order of their sizes go to rank 0, 1, ..., n - 1, n - 1, ..., 0, and so on; experts' apart, over
// the ranks that hold the same experts.
#pragma once

#include <cstdint>
#include <vector>

#include "gpumem/model/training_job.hpp"

namespace gpumem::parallel {

struct SharedParameter {
  std::int64_t elements = 0;
  bool of_expert = false;
};

/// Whether the job shares states so.
[[nodiscard]] bool shares_layer_by_layer(const model::TrainingJob& job);

/// For each parameter whether the job's rank holds its states; of Ranks::max the rank that holds most elements.
/// `expert_ranks`: that hold the same experts.
[[nodiscard]] std::vector<bool> held_layer_by_layer(const std::vector<SharedParameter>& parameters,
                                                    const model::Layout& layout, std::int64_t expert_ranks);

}  // namespace gpumem::parallel
