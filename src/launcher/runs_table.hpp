// Input: a run that was measured.
// Output: a row of runs.csv in the queue's directory, in the columns that `gpumem evaluate` and `gpumem calibrate` read
// (gpumem_datasets/runs_tables.hpp). The first row decides the columns: one for every option that says how a job is
// trained. Only two kinds of runs are written: those that ended well, and those that ran out of memory with a GPU to
// themselves.
// Units: MiB of the GPU that took most.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "gpumem/core/result.hpp"

namespace gpumem::launcher {

/// Column and cell. Columns that are not named are empty.
using RunCells = std::vector<std::pair<std::string, std::string>>;

/// The row, appended; the file is made with these columns where it is not there. The table has a lock of its own, so
/// that nobody whose turn has come waits for it. Errors: unreadable_file; malformed_input where the file lacks a column
/// of a cell that is not empty.
[[nodiscard]] core::Status append_run(const std::string& directory, const RunCells& cells);

}  // namespace gpumem::launcher
