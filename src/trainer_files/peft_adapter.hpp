// Input: PEFT's adapter_config.json, which is next to a trainer's file or given with it.
// Output: the options of its adapters in the TrainerJob.
// Source: gpumem/adapt/peft_methods.hpp says what each key means.
#pragma once

#include "trainer_format.hpp"

namespace gpumem::trainer_files {

/// Not in the list of formats: an adapter's config by itself does not say how it is trained.
[[nodiscard]] const TrainerFormat& peft_adapter();

}  // namespace gpumem::trainer_files
