// Input: the arguments of ms-swift, of `swift sft` and of `megatron sft`: the args.json that a run writes, or a file of
// the same keys.
// Output: a TrainerJob.
// Source: ms-swift 4 (3602360): swift/trainers/arguments.py, arguments/tuner_args.py (defaults), arguments/sft_args.py
// (packing needs flash attention; DeepSpeed's presets), config/zero*.json, pipelines/train/tuner.py; swift/megatron/
// arguments/megatron_args.py (defaults; sequence parallel only with tensor parallel), megatron/utils/utils.py (the
// output layer gets no adapter).
#pragma once

#include "trainer_format.hpp"

namespace gpumem::trainer_files {

[[nodiscard]] const TrainerFormat& ms_swift();

}  // namespace gpumem::trainer_files
