#pragma once

#include "gpumem/parallel/schedule.hpp"

#include <algorithm>

namespace gpumem::parallel {

namespace schedule_detail {

/// The rank's passes in one direction, in order.
GPUMEM_INLINE std::vector<StagePass> passes_of(std::int64_t ranks, std::int64_t stages, std::int64_t micro_batches,
                                               bool backward) {
  std::vector<StagePass> passes;
  for (std::int64_t first = 0; first < micro_batches; first += ranks) {
    for (std::int64_t stage = 0; stage < stages; ++stage) {
      for (std::int64_t at = first; at < std::min(first + ranks, micro_batches); ++at) {
        const std::int64_t which = backward ? stages - 1 - stage : stage;
        passes.push_back({backward, static_cast<std::uint32_t>(which), static_cast<std::uint32_t>(at)});
      }
    }
  }
  return passes;
}

/// How many forward passes come before the first backward pass, not counting the one that belongs to it.
GPUMEM_INLINE std::int64_t ahead(const model::Layout& layout, std::int64_t rank) {
  const std::int64_t behind = layout.pipeline_parallel - 1 - rank;
  if (layout.virtual_stages == 1) return behind;
  return behind * 2 + (layout.virtual_stages - 1) * layout.pipeline_parallel;
}

/// Micro-batches that differ in memory: in the steady state gradients are held, and one more micro-batch runs.
GPUMEM_INLINE std::int64_t distinct(const model::Layout& layout, std::int64_t rank, std::int64_t micro_batches) {
  if (layout.schedule == model::Schedule::gpipe) return micro_batches;
  const std::int64_t ranks = layout.pipeline_parallel;
  return std::min(micro_batches, layout.virtual_stages == 1 ? ranks - rank + 2 : 2 * ranks);
}

}  // namespace schedule_detail

GPUMEM_INLINE std::int64_t forwards_before_backward(const model::Layout& layout, std::int64_t rank,
                                                    std::int64_t micro_batches) {
  const std::int64_t all = schedule_detail::distinct(layout, rank, micro_batches) * layout.virtual_stages;
  if (layout.schedule == model::Schedule::gpipe) return all;
  return std::min(schedule_detail::ahead(layout, rank) + 1, all);
}

GPUMEM_INLINE std::vector<StagePass> schedule_of(const model::Layout& layout, std::int64_t rank,
                                                 std::int64_t micro_batches) {
  const std::int64_t ranks = layout.pipeline_parallel;
  const std::int64_t stages = layout.virtual_stages;
  const bool all_first = layout.schedule == model::Schedule::gpipe;
  const std::int64_t count = schedule_detail::distinct(layout, rank, micro_batches);
  const std::vector<StagePass> forward = schedule_detail::passes_of(ranks, stages, count, false);
  const std::vector<StagePass> backward = schedule_detail::passes_of(ranks, stages, count, true);
  const auto all = static_cast<std::int64_t>(forward.size());
  const std::int64_t warmup = all_first ? all : std::min(schedule_detail::ahead(layout, rank), all);
  std::vector<StagePass> passes(forward.begin(), forward.begin() + warmup);
  for (std::int64_t at = 0; at < all; ++at) {
    if (warmup + at < all) passes.push_back(forward[static_cast<std::size_t>(warmup + at)]);
    passes.push_back(backward[static_cast<std::size_t>(at)]);
  }
  return passes;
}

}  // namespace gpumem::parallel
