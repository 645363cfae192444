// Enters: paths of tables of measured runs and of job descriptions that others publish. Leaves: training jobs, and what
// they were measured to take. All of gpumem::datasets in one header.
// A library of its own beside the product, on gpumem's public headers alone: who studies estimates links it
// (find_package(gpumem COMPONENTS datasets)), who schedules jobs does not.
#pragma once

#include <string>

#include "gpumem_datasets/accuracy.hpp"
#include "gpumem_datasets/measured_run.hpp"
#include "gpumem_datasets/rad_file.hpp"
#include "gpumem_datasets/read_runs.hpp"

namespace gpumem::datasets {

/// Reads a table of measured runs in any form (see read_runs.hpp), with every op and every format of summaries that
/// gpumem knows. `summaries` is the folder with the summaries of models that the table only names.
[[nodiscard]] core::Result<MeasuredRuns> read_runs(const std::string& path, const std::string& summaries = {});

}  // namespace gpumem::datasets
