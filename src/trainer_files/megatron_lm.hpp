// Input: the words of a command of Megatron-LM: "pretrain_gpt.py --num-layers 32 --tensor-model-parallel-size 8 ...".
// Output: a TrainerJob, whose model is the JSON of its sizes, as architectures/megatron.hpp reads it.
// Source: Megatron-LM core r0.12 and of August 2026: megatron/training/arguments.py (names, defaults, and what
// validate_args() makes of them), core/tokenizers/utils/build_tokenizer.py (the padded vocabulary).
#pragma once

#include "trainer_format.hpp"

namespace gpumem::trainer_files {

[[nodiscard]] const TrainerFormat& megatron_lm();

}  // namespace gpumem::trainer_files
