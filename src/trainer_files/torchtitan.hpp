// Input: a torchtitan file (TOML), with the words of its command over it.
// Output: a TrainerJob.
// Source: torchtitan 0.1 to 0.2.2: torchtitan/config/job_config.py (0.1: config_manager.py; names and defaults),
// train.py (micro-batches, precision), distributed/parallel_dims.py, distributed/pipeline_parallel.py (two stages a
// rank where the schedule is a looped one), distributed/activation_checkpoint.py, models/*/__init__.py (flavors),
// run_train.sh (the allocator's settings).
#pragma once

#include "trainer_format.hpp"

namespace gpumem::trainer_files {

[[nodiscard]] const TrainerFormat& torchtitan();

}  // namespace gpumem::trainer_files
