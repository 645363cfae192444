// Input: a forward pass.
// Output: its repeated blocks as runs of recorded functions: what activation checkpointing wraps, one call of
// torch.utils.checkpoint a block, as HuggingFace's gradient_checkpointing does; or what torch.compile computes again.
// Units: indices.
#pragma once

#include <cstdint>
#include <vector>

#include "gpumem/connect/repeated_blocks.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/model/layout.hpp"
#include "gpumem/plan/forward_pass.hpp"

namespace gpumem::plan {

using connect::Range;
using connect::repeated_blocks;

/// The functions of each part that runs again: of all repeated blocks, of some, or of each attention. Errors:
/// missing_information if the graph shows none.
[[nodiscard]] core::Result<std::vector<Range>> checkpointed(const ForwardPass& pass,
                                                            const model::CheckpointPolicy& policy = {});

/// The functions in this part whose results are kept and do not run again: none; under selective-op the attention and
/// every other product with a weight (aten::mm, from the first on).
/// Source: torchtitan 2024-10 to 2025-06, parallelize_llama.py: _save_list and its policy, per block.
[[nodiscard]] std::vector<std::uint32_t> kept_results(const ops::Tape& tape, const Range& part,
                                                      const model::CheckpointPolicy& policy);

/// The functions in this part whose results a compiled graph keeps for its backward: what kernels that are not fused
/// make (products, attention, convolutions), and what such kernels read again. All that lies between is elementwise or
/// a sum, and is computed again. Source: PyTorch 2.6, _functorch/partitioners.py: solve_min_cut (is_fusible,
/// is_materialized_backwards), with the settings of _functorch/config.py.
[[nodiscard]] std::vector<std::uint32_t> compiled_results(const ops::Tape& tape, const Range& part);

/// Those of the kept results that backward of this part reads, or reads something that is computed of them. A compiled
/// graph hands no others to its backward, also where a policy says MUST_SAVE: the partitioner cuts only between inputs
/// and what backward reads.
[[nodiscard]] std::vector<std::uint32_t> asked_for(const ops::Tape& tape, const Range& part,
                                                   const std::vector<std::uint32_t>& kept);

/// The parts of a job's forward pass that run again in backward: checkpointed ones, or a compiled model's blocks; none
/// for other jobs. Errors: those of checkpointed().
[[nodiscard]] core::Result<std::vector<Range>> recomputed_parts(const ForwardPass& pass, const model::TrainingJob& job);

/// What is kept of such a part.
[[nodiscard]] std::vector<std::uint32_t> kept_of_part(const ops::Tape& tape, const Range& part,
                                                      const model::TrainingJob& job);

}  // namespace gpumem::plan
