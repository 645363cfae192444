// Input: paths of tables of measured runs and of job descriptions that others publish.
// Output: training jobs, and the memory that was measured for them. All of gpumem::datasets in one header.
// This is a library of its own that uses only gpumem's public headers. Programs that study estimates link it
// (find_package(gpumem COMPONENTS datasets)); programs that schedule jobs do not.
#pragma once

#include <string>

#include "gpumem_datasets/accuracy.hpp"
#include "gpumem_datasets/measured_run.hpp"
#include "gpumem_datasets/rad_file.hpp"
#include "gpumem_datasets/runs_format.hpp"

namespace gpumem::datasets {

/// Reads a table of measured runs in any form (see runs_format.hpp), with every op and every format of summaries that
/// gpumem knows. `summaries` is the folder with the summaries, for tables that only name models; `read_settings` reads
/// the settings of training programs, for tables that hold those.
[[nodiscard]] core::Result<MeasuredRuns> read_runs(const std::string& path, const std::string& summaries = {},
                                                   decltype(RunsOptions::read_settings) read_settings = {});

}  // namespace gpumem::datasets
