// Input: HuggingFace's TrainingArguments as JSON (its to_json_string(), or the file that HfArgumentParser reads), with
// trl's SFTConfig and ModelConfig and what scripts commonly add (model_name_or_path).
// Output: a TrainerJob.
// Source: transformers 4.48 training_args.py, trl 0.13 sft_config.py and model_config.py.
#pragma once

#include "trainer_format.hpp"

namespace gpumem::trainer_files {

[[nodiscard]] const TrainerFormat& training_arguments();

/// Whether the settings name one of transformers' example scripts that says by itself how long a sample is.
[[nodiscard]] bool is_example_script(const Setting& root);

}  // namespace gpumem::trainer_files
