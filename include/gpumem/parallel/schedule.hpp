// Input: a layout and the number of micro-batches in a step.
// Output: the order in which a pipeline rank runs them forward and backward, stage by stage.
// Units: indices.
//
// 1F1B: the ranks after this one are as many micro-batches ahead. Interleaved, each rank has several stages, and runs
// them for as many micro-batches as there are ranks before it turns to the next. GPipe runs all forward first.
// Source: Megatron-LM core r0.12, core/pipeline_parallel/schedules.py,
// forward_backward_pipelining_without_interleaving and _with_interleaving.
#pragma once

#include <cstdint>
#include <vector>

#include "gpumem/model/layout.hpp"

namespace gpumem::parallel {

/// One stage of the rank run for one micro-batch.
struct StagePass {
  bool backward = false;
  std::uint32_t stage = 0;
  std::uint32_t micro_batch = 0;

  friend bool operator==(const StagePass&, const StagePass&) = default;
};

/// As far as memory differs: once a rank runs one forward and one backward in turn, further micro-batches are like
/// those before, and are left out. `rank`: of the pipeline, from 0. The layout passed check().
[[nodiscard]] std::vector<StagePass> schedule_of(const model::Layout& layout, std::int64_t rank,
                                                 std::int64_t micro_batches);

/// Forward passes of a stage that the rank has run when its first backward begins: what these keep is held at once.
[[nodiscard]] std::int64_t forwards_before_backward(const model::Layout& layout, std::int64_t rank,
                                                    std::int64_t micro_batches);

}  // namespace gpumem::parallel
