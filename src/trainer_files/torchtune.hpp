// Input: a torchtune file (YAML), which names its parts by their Python paths (`_component_`).
// Output: a TrainerJob.
// Source: torchtune 0.5: recipes/lora_finetune_single_device.py and full_finetune_single_device.py (the model, its
// adapters and its states have the type `dtype`; the logits are freed before backward), modules/loss (chunks of the
// sequence), models/*/_component_builders.py (quantize_base: torchao's NF4, with quantised scales).
#pragma once

#include "trainer_format.hpp"

namespace gpumem::trainer_files {

[[nodiscard]] const TrainerFormat& torchtune();

}  // namespace gpumem::trainer_files
