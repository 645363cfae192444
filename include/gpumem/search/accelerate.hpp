// Enters: a job under FullyShardedDataParallel, run by accelerate. Leaves: Framework's row of it, and the job as
// accelerate's YAML has it.
// Source: accelerate 1.0, utils/dataclasses.py (FullyShardedDataParallelPlugin), commands/config/cluster.py.
#pragma once

#include "gpumem/search/framework.hpp"

namespace gpumem::search {

[[nodiscard]] Framework accelerate();

}  // namespace gpumem::search

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/search/impl/accelerate_inl.hpp"
#endif
