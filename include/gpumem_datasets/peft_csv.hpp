// Input: the table of PEFT's own comparison of its methods (method_comparison/ in huggingface/peft), one run a row. The
// column `adapter_file` names a file next to the table, which holds the run's adapter_config.json.
// Output: MeasuredRuns. The figure is the 99th percentile of torch.cuda.memory_reserved() over the steps of training.
// Units: bytes in the table, MiB in the runs.
//
// The model is a config.json of its name (SummaryShelf::take_model()), or one of the few whose sizes kModels in the
// body has. The data set of the comparison is not in the table: the batch behind the figure is taken to be 4 x 545
// tokens (kTokens in the body says why).
#pragma once

#include "gpumem_datasets/runs_format.hpp"

namespace gpumem::datasets {

[[nodiscard]] const RunsFormat& peft_csv();

}  // namespace gpumem::datasets
