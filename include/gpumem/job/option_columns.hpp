// Input: a row of a table of jobs (CSV).
// Output: a JobRequest with what the cells say about how the job is trained. There is a column for each option that a
// TrainingJob holds, by its name or an alias (job_options.hpp).
// Units: those of the options.
#pragma once

#include "gpumem/core/csv.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/job/job_options.hpp"

namespace gpumem::job {

/// An empty cell, or no such column: the request keeps what it has. Errors: malformed_input, naming line and column.
[[nodiscard]] core::Status take_option_cells(const core::CsvCells& cells, JobRequest& request);

}  // namespace gpumem::job
