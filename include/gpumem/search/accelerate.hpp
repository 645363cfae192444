// Input: a job under FullyShardedDataParallel, run by accelerate.
// Output: accelerate's row of Framework, and the job as accelerate's YAML.
// Source: accelerate 1.0, utils/dataclasses.py (FullyShardedDataParallelPlugin), commands/config/cluster.py.
#pragma once

#include "gpumem/search/framework.hpp"

namespace gpumem::search {

[[nodiscard]] Framework accelerate();

}  // namespace gpumem::search
