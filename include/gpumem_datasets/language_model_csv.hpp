// Input: a table of measured training runs of language models, one run a row. The column `config` names a config.json
// in the folder configs/ next to the table.
// Output: MeasuredRuns.
//
// Columns that must be there: name, config, gpu, batch_size, seq_length, figure (allocated, reserved, active, device),
// measured_mib. `gpus` is the number of devices; empty: 1. `source` (OWNER/REPOSITORY:...) says who published the run,
// and kToldOptions in the body lists the clauses of `notes` and `software` that tell an option: adapters=fp32, the
// element type of LoRA's adapters, or a release of transformers. Every other column that kOptionColumns in the body
// lists goes through the table of a job's options by name. A cell that says what a job is anyway is skipped; one whose
// option is not in the table, or does not take the value, makes the row one that is "not modelled: NAME". So a row is
// answered as soon as its option exists. Columns that the list does not name (steady_mib, trainable) say nothing of a
// job that the others do not.
//
// What a source implies is in kSourceOptions in the body: its training loop, mostly. Options of that list which do
// not exist are left out.
#pragma once

#include "gpumem_datasets/runs_format.hpp"

namespace gpumem::datasets {

[[nodiscard]] const RunsFormat& language_model_csv();

}  // namespace gpumem::datasets
