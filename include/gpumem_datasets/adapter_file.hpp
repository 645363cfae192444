// Input: a file that describes an adapter, next to a table of measured runs.
// Output: the options of a job that it means.
#pragma once

#include <string>

#include "gpumem/core/csv.hpp"
#include "gpumem/job/job_options.hpp"
#include "gpumem_datasets/measured_run.hpp"

namespace gpumem::datasets {

/// The options of the adapter that an adapter_config.json describes, or a file that holds one as "resolved" or
/// "experiment_file". What is not modelled is the run's refusal. Errors: malformed_input; those of reading the file.
[[nodiscard]] core::Status take_adapter_file(const std::string& file, const core::CsvCells& cells,
                                             job::JobRequest& request, MeasuredRun& run);

/// The same of PEFT's comparison of images, whose script moves the adapted model to the host and back
/// (method_comparison/image-gen/utils.py), so that a view of all singular vectors becomes a tensor of its own.
[[nodiscard]] core::Status take_moved_adapter_file(const std::string& file, const core::CsvCells& cells,
                                                   job::JobRequest& request, MeasuredRun& run);

/// The same of LyCORIS' LoKr, from a file that lists SimpleTuner's examples by name, each with its "_lycoris_config".
/// The run's name begins with its example's.
[[nodiscard]] core::Status take_lycoris_example(const std::string& file, const core::CsvCells& cells,
                                                job::JobRequest& request, MeasuredRun& run);

}  // namespace gpumem::datasets
