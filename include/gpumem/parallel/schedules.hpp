// Input: a layout and the number of micro-batches in a step.
// Output: the order in which a pipeline rank runs them forward and backward, stage by stage; and how long its ranks
// wait for each other. Units: indices.
//
// 1F1B: the ranks after this one are as many micro-batches ahead. Interleaved, each rank has several stages, and runs
// them for a group of micro-batches before it turns to the next: as many as there are ranks, or as Megatron's
// microbatch_group_size_per_virtual_pipeline_stage says; of torch's schedules all groups are alike. GPipe and breadth
// first (looped BFS) run all forward first. The zero-bubble schedules make the gradients of a stage's inputs at once,
// so that the rank before can go on, and those of its weights later. Source: PyTorch 2.6, distributed/pipelining/
// schedules.py (ScheduleLoopedBFS, ScheduleInterleaved1F1B, ScheduleInterleavedZeroBubble, ScheduleZBVZeroBubble), and
// of 2026, ScheduleDualPipeV; Megatron-LM core r0.12, core/pipeline_parallel/schedules.py,
// forward_backward_pipelining_without_interleaving and _with_interleaving.
#pragma once

#include <cstdint>
#include <vector>

#include "gpumem/model/layout.hpp"
#include "gpumem/model/training_job.hpp"

namespace gpumem::parallel {

/// Which gradients a backward pass makes.
enum class Gradients : std::uint8_t { all, inputs, weights };

/// One stage of the rank run for one micro-batch.
struct StagePass {
  bool backward = false;
  std::uint32_t stage = 0;  ///< of the rank's own
  std::uint32_t micro_batch = 0;
  Gradients gradients = Gradients::all;  ///< of a backward pass

  friend bool operator==(const StagePass&, const StagePass&) = default;
};

/// As far as memory differs: once a rank runs forward and backward passes in turn, further micro-batches are like those
/// before, and are left out. `rank`: of the pipeline, from 0; `group`: what micro_batch_group() says, 0: as many as
/// there are ranks. The layout passed check().
[[nodiscard]] std::vector<StagePass> schedule_of(const model::Layout& layout, std::int64_t rank,
                                                 std::int64_t micro_batches, std::int64_t group = 0);

/// The same with all micro-batches.
[[nodiscard]] std::vector<StagePass> whole_schedule(const model::Layout& layout, std::int64_t rank,
                                                    std::int64_t micro_batches, std::int64_t group = 0);

/// Micro-batches that a virtual stage runs before its rank turns to the next one.
[[nodiscard]] std::int64_t micro_batch_group(const model::TrainingJob& job);

/// Forward passes of a stage that the rank has run when its first backward begins: what these keep is held at once.
[[nodiscard]] std::int64_t forwards_before_backward(const model::Layout& layout, std::int64_t rank,
                                                    std::int64_t micro_batches);

/// The rank that has this stage of all: every pipeline_parallel-th from its own, or, V-shaped, its own and that as far
/// from the end.
[[nodiscard]] std::int64_t rank_of_stage(const model::Layout& layout, std::int64_t stage);

/// How long the ranks of a schedule with passes of its own for weights wait, in whole passes of a micro-batch through a
/// rank, of which forward, the gradients of inputs and those of weights take a third each. Each rank runs its passes in
/// order, as soon as what they read is there.
[[nodiscard]] double idle_passes(const model::Layout& layout, std::int64_t micro_batches, std::int64_t group);

}  // namespace gpumem::parallel
