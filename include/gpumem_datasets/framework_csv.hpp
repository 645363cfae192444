// Input: a table of training runs that programs' examples publish, one run a row. The column `args` holds what the
// program was told, as JSON: the arguments or the file of ms-swift, axolotl, HuggingFace's Trainer; a command of
// Megatron-Bridge; what a notebook of Unsloth or TRL sets.
// Output: MeasuredRuns. A row whose settings do not suffice has the error `missing_information`, with what is missing.
// Units: MiB; `digits` says to what a figure is rounded.
//
// A program's own settings are read by RunsOptions::read_settings. `model` is a name on the hub; its config.json is
// found by SummaryShelf::take_model(). Samples that are neither packed nor padded are shorter than the length that the
// settings name: such a run is marked, for its figure is at most the estimate. Rows whose figure may be the card's
// size, or that measure something else, are dropped (`status`).
#pragma once

#include "gpumem_datasets/runs_format.hpp"

namespace gpumem::datasets {

[[nodiscard]] const RunsFormat& framework_csv();

}  // namespace gpumem::datasets
