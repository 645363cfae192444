// Input: a wired graph and a layout.
// Output: the layers of a pipeline stage: its blocks; on the first stage also what comes before the blocks, on the last
// also what comes after them; and on each stage the layers without parameters that its layers read (positions, masks).
// Units: indices.
// Source: Megatron-LM core r0.12, core/transformer/transformer_block.py (get_num_layers_to_build) and
// core/transformer/transformer_layer.py (get_transformer_layer_offset); torchtitan of October 2025,
// distributed/pipeline_parallel.py (generate_llm_fqn_per_model_part).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/connect/repeated_blocks.hpp"
#include "gpumem/connect/wired_graph.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/model/layout.hpp"
#include "gpumem/model/training_job.hpp"

namespace gpumem::parallel {

// Input: how many layers each stage has, as people write it: "15,16,15", or Megatron's layout string "Et*15|(tt|)*8L".
// Output: these numbers, stage by stage.
// Units: layers.
//
// In a layout string a stage ends with '|'; t is a layer, E the embedding, L the head and loss, m a layer that predicts
// further tokens; x*3 and (..)*3 repeat. Source: Megatron-LM of August 2026,
// core/transformer/pipeline_parallel_layer_layout.py (parse_str_to_list).

/// Nothing: the text is neither.
[[nodiscard]] std::optional<std::vector<std::int64_t>> layers_of_stages(std::string_view text);

/// One rank's layers. Each of its stages (one, or as many as the layout has virtual ones) is a run of them.
struct StageLayers {
  std::vector<bool> has;               ///< by layer
  std::vector<connect::Range> stages;  ///< the runs whose layers' outputs are of no other stage
  std::vector<bool> trained;           ///< by layer: a parameter has a part in what it leaves
};

/// What becomes of blocks that the stages cannot share evenly.
enum class Shares : std::uint8_t {
  even,           ///< they are refused, as Megatron refuses them
  uneven,         ///< torchtitan's split: embedding and head count as a block each, and the first stages have one more
  by_parameters,  ///< DeepSpeed's: stages have as many parameters each, whether or not the blocks can be shared evenly
};

/// How the job's framework goes about it. A pipeline with ZeRO-1 and without Megatron is DeepSpeed's (PipelineModule).
[[nodiscard]] Shares shares_of(const model::TrainingJob& job);

/// Errors: missing_information where nothing repeats; invalid_argument where the blocks cannot be shared so, naming the
/// rule.
[[nodiscard]] core::Result<StageLayers> stage_layers(const connect::WiredGraph& wired, const model::Layout& layout,
                                                     std::int64_t stage, Shares shares = Shares::even);

/// By layer: the first layer that calls the same module. Calls of one module mostly have one path. Zamba2's shared
/// blocks have a path in each layer that calls one, and the layers call them in turn: there, paths differ in digits
/// alone. Source: transformers 4.57, models/zamba2/modeling_zamba2.py: Zamba2Model.get_layers(), itertools.cycle.
[[nodiscard]] std::vector<std::size_t> modules_called(const model::ModelGraph& graph);

/// How many of a model's blocks each pipeline rank has: as the layout says, or else as they are shared. Nothing: the
/// stages cannot share them.
[[nodiscard]] std::vector<std::int64_t> blocks_of_ranks(std::int64_t blocks, const model::Layout& layout,
                                                        Shares shares);

/// How many blocks each of so many parts has, of at most two more than there are: what comes before the blocks counts
/// as one of the first part, and what comes after them as one of the last; the first parts have one more. Torchtitan's
/// stages, where the blocks do not come out even, and its fragments of a model.
[[nodiscard]] inline std::vector<std::int64_t> blocks_of_parts(std::int64_t blocks, std::int64_t parts) {
  std::vector<std::int64_t> shares(static_cast<std::size_t>(parts), (blocks + 2) / parts);
  for (std::int64_t part = 0; part < (blocks + 2) % parts; ++part) ++shares[static_cast<std::size_t>(part)];
  --shares.front();
  --shares.back();
  return shares;
}

/// Whether all stages have as many blocks: nothing in the graph gives the first or the last one another number.
[[nodiscard]] bool stages_are_alike(const connect::WiredGraph& wired);

/// Ranks are numbered so that those of one stage follow each other. Of a job that asks for the rank that takes most:
/// the first one. The layout passed check().
[[nodiscard]] std::int64_t stage_of_rank(const model::Layout& layout);

/// "rank 8 of 16: pipeline stage 3 of 4", for people; empty for a layout that does not split the model.
[[nodiscard]] std::string rank_text(const model::Layout& layout);

/// The first rank of each stage.
[[nodiscard]] std::vector<model::Rank> ranks_of_stages(const model::Layout& layout);

/// The stages that may take most, as ranks: the first, the last, and one between, of which none holds more layers and
/// the earliest keeps the most micro-batches. Where somebody has said how many layers stages have, and where these
/// share parameters evenly: all.
[[nodiscard]] std::vector<model::Rank> ranks_to_compare(const model::TrainingJob& job);

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
