// Input: a table of measured training runs of image and video models, one run a row: model, sizes of the samples,
// method, rank, checkpointing, optimizer, what lies on the GPU, figure.
// Output: MeasuredRuns. What a row's settings ask for and gpumem does not model is the run's error and refusal.
// Units: MiB, pixels, frames, tokens.
//
// The model is a config.json in configs/ next to the table, by the list in the body: the denoiser's. An adapter's file
// may be named in the notes ("adapter: PATH"). A row whose status is "upper bound" measures no need, and is dropped.
#pragma once

#include "gpumem_datasets/runs_format.hpp"

namespace gpumem::datasets {

[[nodiscard]] const RunsFormat& image_csv();

}  // namespace gpumem::datasets
