// Input: an axolotl file (YAML).
// Output: a TrainerJob.
// Source: axolotl 0.6: src/axolotl/utils/schemas (fields), utils/models.py (the model is loaded in bfloat16 if `bf16`
// is on, 4-bit weights are nf4 with double quantisation) and core/trainer_builder.py, which makes HuggingFace's Trainer
// from it.
#pragma once

#include "trainer_format.hpp"

namespace gpumem::trainer_files {

[[nodiscard]] const TrainerFormat& axolotl();

}  // namespace gpumem::trainer_files
