// Enters: PEFT's adapter_config.json, which stands beside a trainer's file or is given with it. Leaves: the options of
// its adapters in the TrainerJob. Source: peft 0.14 tuners/lora/config.py.
#pragma once

#include "trainer_format.hpp"

namespace gpumem::trainer_files {

/// Not in the list of formats: an adapter's config alone says nothing of how it is trained.
[[nodiscard]] const TrainerFormat& peft_adapter();

}  // namespace gpumem::trainer_files
