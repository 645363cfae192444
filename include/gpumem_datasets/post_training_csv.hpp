// Input: a table of measured post-training runs (DPO, KTO, GRPO, PPO, ...), one run a row. The column `args` has the
// whole command line of each, as a JSON object of its settings; `env:` marks environment variables. Output:
// MeasuredRuns. A row whose settings do not suffice has an error that says what is missing.
//
// Columns that must be there: name, model, algorithm, gpus, figure, measured_mib, software, args. The program is told
// by the settings, or by `software`. The model is a config.json of its name ("Qwen--Qwen3-30B-A3B.json") in configs/
// next to the table or in configs_new/ of the folder above, or one of the few whose published sizes kModels in the body
// has. Rows name a GPU only loosely: "80 GB class" is taken as an A100 of 80 GB.
#pragma once

#include "gpumem_datasets/runs_format.hpp"

namespace gpumem::datasets {

[[nodiscard]] const RunsFormat& post_training_csv();

}  // namespace gpumem::datasets
