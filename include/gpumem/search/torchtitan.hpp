// Input: a job under fully_shard().
// Output: torchtitan's row of Framework, and the job as its TOML file.
// Source: torchtitan 0.2, torchtitan/config/job_config.py (names and defaults), distributed/parallel_dims.py (what can
// be combined), distributed/pipeline_parallel.py (stages), models/llama3/infra/parallelize.py (checkpointing; tensor
// parallel with sequence parallel).
#pragma once

#include "gpumem/search/framework.hpp"

namespace gpumem::search {

[[nodiscard]] Framework torchtitan();

}  // namespace gpumem::search
