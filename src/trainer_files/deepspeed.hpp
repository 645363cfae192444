// Input: DeepSpeed's ds_config.json, by itself or named in another trainer's file ("auto" means what that file says).
// Output: a TrainerJob.
// Source: DeepSpeed 0.16: runtime/config.py, runtime/zero/config.py (fields and defaults), runtime/engine.py (fp16 and
// bf16 keep float32 masters; Adam is the fused kernel unless torch_adam).
#pragma once

#include "trainer_format.hpp"

namespace gpumem::trainer_files {

[[nodiscard]] const TrainerFormat& deepspeed();

}  // namespace gpumem::trainer_files
