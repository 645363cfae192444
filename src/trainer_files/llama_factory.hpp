// Input: a LLaMA-Factory file (YAML or JSON, as `llamafactory-cli train` takes it).
// Output: a TrainerJob.
// Source: LLaMA-Factory 0.9: src/llamafactory/hparams (fields and defaults), model/adapter.py (which parameters are
// float32), model/model_utils/checkpointing.py (checkpointing unless it is disabled) and quantization.py.
#pragma once

#include "trainer_format.hpp"

namespace gpumem::trainer_files {

[[nodiscard]] const TrainerFormat& llama_factory();

}  // namespace gpumem::trainer_files
