#pragma once

#include "gpumem/parallel/layer_wise.hpp"

#include <algorithm>
#include <numeric>

#include "gpumem/parallel/layout.hpp"

namespace gpumem::parallel {

namespace layer_wise_detail {

/// The rank of each parameter of one kind; -1: of the other kind.
GPUMEM_INLINE std::vector<std::int64_t> owners(const std::vector<SharedParameter>& parameters, bool of_expert,
                                               std::int64_t ranks) {
  std::vector<std::size_t> by_size(parameters.size());
  std::iota(by_size.begin(), by_size.end(), std::size_t{0});
  std::stable_sort(by_size.begin(), by_size.end(), [&](std::size_t left, std::size_t right) {
    return parameters[left].elements < parameters[right].elements;
  });
  std::vector<std::int64_t> owner(parameters.size(), -1);
  std::int64_t turn = 0;
  for (const std::size_t at : by_size) {
    if (parameters[at].of_expert != of_expert) continue;
    owner[at] = turn < ranks ? turn : 2 * ranks - 1 - turn;
    turn = (turn + 1) % (2 * ranks);
  }
  return owner;
}

/// The rank that holds most elements.
GPUMEM_INLINE std::int64_t fullest(const std::vector<SharedParameter>& parameters,
                                   const std::vector<std::int64_t>& owner, std::int64_t ranks) {
  std::vector<double> held(static_cast<std::size_t>(ranks), 0.0);
  for (std::size_t at = 0; at < parameters.size(); ++at) {
    if (owner[at] >= 0) held[static_cast<std::size_t>(owner[at])] += static_cast<double>(parameters[at].elements);
  }
  return std::max_element(held.begin(), held.end()) - held.begin();
}

/// The rank's place among those that share what is of this kind. A pipeline stage's ranks are tensor, then context,
/// then data parallel ones; those that share experts are the ones whose places in the stage differ by the experts' own
/// ranks, which are nearest.
GPUMEM_INLINE std::int64_t place_of(const model::Layout& layout, std::int64_t ranks) {
  const std::int64_t stage = layout.tensor_parallel * layout.context_parallel * layout.data_parallel;
  const std::int64_t place = layout.rank.kind == model::Ranks::one ? layout.rank.count % stage : stage - 1;
  return std::min(place / std::max<std::int64_t>(stage / ranks, 1), ranks - 1);
}

}  // namespace layer_wise_detail

GPUMEM_INLINE bool shares_layer_by_layer(const model::TrainingJob& job) {
  return job.optimizer == model::Optimizer::muon && job.layout.sharding.kind == model::Shardings::distributed_optimizer;
}

GPUMEM_INLINE std::vector<bool> held_layer_by_layer(const std::vector<SharedParameter>& parameters,
                                                    const model::Layout& layout, std::int64_t expert_ranks) {
  namespace detail = layer_wise_detail;
  std::vector<bool> held(parameters.size(), false);
  for (const bool of_expert : {false, true}) {
    const std::int64_t ranks = of_expert ? expert_ranks : sharing_ranks(layout);
    const std::vector<std::int64_t> owner = detail::owners(parameters, of_expert, ranks);
    const bool any = layout.rank.kind == model::Ranks::max || layout.rank.kind == model::Ranks::all;
    const std::int64_t rank = any ? detail::fullest(parameters, owner, ranks) : detail::place_of(layout, ranks);
    for (std::size_t at = 0; at < owner.size(); ++at) held[at] = held[at] || owner[at] == rank;
  }
  return held;
}

}  // namespace gpumem::parallel
