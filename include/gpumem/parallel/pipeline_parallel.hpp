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
#include "gpumem/parallel/schedules.hpp"

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
enum class Shares : bool {
  even,    ///< they are refused, as Megatron refuses them
  uneven,  ///< torchtitan's split: embedding and head count as a block each, and the first stages have one more
};

/// How the job's framework goes about it.
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
/// the earliest keeps the most micro-batches. Where somebody has said how many layers stages have: all.
[[nodiscard]] std::vector<model::Rank> ranks_to_compare(const model::TrainingJob& job);

}  // namespace gpumem::parallel
