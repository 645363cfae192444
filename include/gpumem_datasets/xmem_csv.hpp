// Input: the measured runs of xMem (Shi et al., arXiv 2510.21048) as a table: model, optimizer, batch_size, gpu,
// zero_grad_position_or_variant, real_oom, ground_truth_peak_bytes, ...
// Output: MeasuredRuns. The table only names its models. Their summaries are in RunsOptions::summaries as MODEL.json or
// MODEL.txt, with each '/' of the name as '_'.
//
// How the runs were made (xMem's repository): CNNs on batch x 3 x 86 x 86, transformers on 128 tokens a sample; fp32;
// position 0 zeroes the gradients first in the iteration, 1 before backward, 2 after the step, and where it was not
// recorded the data behave as 0. The figure is the device's growth over what was in use before the model came. Of a
// run that failed for lack of memory ("real_oom") the figure is where it failed, not its need: such a run has none.
//
// What xmem, dnnmem, schedtune and llmem said about a run (NAME_bytes, NAME_pred_oom, NAME_fail_when_capped) becomes
// MeasuredRun::published. Where one predicted that the run would not fit, its figure is where its simulation stopped,
// and is not taken; llmem's -1 is a model that it does not support: it said nothing.
#pragma once

#include "gpumem_datasets/runs_format.hpp"

namespace gpumem::datasets {

[[nodiscard]] const RunsFormat& xmem_csv();

}  // namespace gpumem::datasets
