// Enters: an axolotl file (YAML). Leaves: a TrainerJob. Source: axolotl 0.6: src/axolotl/utils/schemas (fields),
// utils/models.py (the model is loaded in bfloat16 where `bf16` is on, 4-bit weights are nf4 with double quantisation)
// and core/trainer_builder.py, which makes HuggingFace's Trainer of it.
#pragma once

#include "trainer_format.hpp"

namespace gpumem::trainer_files {

[[nodiscard]] const TrainerFormat& axolotl();

}  // namespace gpumem::trainer_files
