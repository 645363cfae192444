// Enters: a job under fully_shard(). Leaves: Framework's row of torchtitan, and the job as its TOML file has it.
// Source: torchtitan 0.2, torchtitan/config/job_config.py (names and defaults), distributed/parallel_dims.py (what may
// stand together), distributed/pipeline_parallel.py (stages), models/llama3/infra/parallelize.py (checkpointing; tensor
// parallel with sequence parallel).
#pragma once

#include "gpumem/search/framework.hpp"

namespace gpumem::search {

[[nodiscard]] Framework torchtitan();

}  // namespace gpumem::search

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/search/impl/torchtitan_inl.hpp"
#endif
