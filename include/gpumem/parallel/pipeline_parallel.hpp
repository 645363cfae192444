// Input: a wired graph and a layout.
// Output: the layers of a pipeline stage: its blocks; on the first stage also what comes before the blocks, on the last
// also what comes after them; and on each stage the layers without parameters that its layers read (positions, masks).
// Units: indices.
// Source: Megatron-LM core r0.12, core/transformer/transformer_block.py (get_num_layers_to_build) and
// core/transformer/transformer_layer.py (get_transformer_layer_offset).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpumem/connect/repeated_blocks.hpp"
#include "gpumem/connect/wired_graph.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/model/layout.hpp"

namespace gpumem::parallel {

/// One rank's layers. Each of its stages (one, or as many as the layout has virtual ones) is a run of them.
struct StageLayers {
  std::vector<bool> has;               ///< by layer
  std::vector<connect::Range> stages;  ///< the runs whose layers' outputs are of no other stage
  std::vector<bool> trained;           ///< by layer: a parameter has a part in what it leaves
};

/// Errors: missing_information where nothing repeats; invalid_argument where the stages do not share the blocks evenly,
/// naming the rule.
[[nodiscard]] core::Result<StageLayers> stage_layers(const connect::WiredGraph& wired, const model::Layout& layout,
                                                     std::int64_t stage);

/// Whether all stages have as many blocks: nothing in the graph gives the first or the last one another number.
[[nodiscard]] bool stages_are_alike(const connect::WiredGraph& wired);

/// Ranks are numbered so that those of one stage follow each other. Of a job that asks for the rank that takes most:
/// the first one. The layout passed check().
[[nodiscard]] std::int64_t stage_of_rank(const model::Layout& layout);

/// "rank 8 of 16: pipeline stage 3 of 4", for people; empty for a layout that does not split the model.
[[nodiscard]] std::string rank_text(const model::Layout& layout);

/// The first rank of each stage.
[[nodiscard]] std::vector<model::Rank> ranks_of_stages(const model::Layout& layout);

/// The stages that may take most, as ranks: the first, the last, and one between, of which all hold as many layers and
/// the earliest keeps the most micro-batches.
[[nodiscard]] std::vector<model::Rank> ranks_to_compare(const model::Layout& layout);

}  // namespace gpumem::parallel
