// Enters: a forward pass. Leaves: its repeated blocks as runs of recorded functions: what activation checkpointing
// wraps, one call of torch.utils.checkpoint a block, as HuggingFace's gradient_checkpointing does. Units: indices.
#pragma once

#include <cstdint>
#include <vector>

#include "gpumem/connect/repeated_blocks.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/model/memory_savers.hpp"
#include "gpumem/plan/forward_pass.hpp"

namespace gpumem::plan {

using connect::Range;
using connect::repeated_blocks;

/// The functions of each part that runs again: of all repeated blocks, of some, or of each attention. Errors:
/// missing_information if the graph shows none.
[[nodiscard]] core::Result<std::vector<Range>> checkpointed(const ForwardPass& pass,
                                                            const model::CheckpointPolicy& policy = {});

/// The functions in this part whose results are kept and do not run again: none, but for selective-op the attention and
/// every other product with a weight (aten::mm, from the first on).
/// Source: torchtitan 2024-10 to 2025-06, parallelize_llama.py: _save_list and its policy, per block.
[[nodiscard]] std::vector<std::uint32_t> kept_results(const ops::Tape& tape, const Range& part,
                                                      const model::CheckpointPolicy& policy);

}  // namespace gpumem::plan

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/plan/impl/checkpoints_inl.hpp"
#endif
