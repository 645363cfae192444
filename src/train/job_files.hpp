// Input: labelled jobs and a folder.
// Output: the folder with a graph JSON for each job, and RUNS.csv, a table of runs (see
// gpumem_datasets/runs_tables.hpp) that names them. Nothing was measured: measured_mib is empty, and the further
// columns replay_mib and replay_fits (yes, no) say what the replay estimator expects. Units: MiB (2^20 bytes).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "gpumem/core/result.hpp"
#include "labelled_jobs.hpp"

namespace gpumem::train {

inline constexpr const char* kRunsFile = "RUNS.csv";

struct JobFiles {
  std::string folder;
  std::string gpu;  ///< as the table is to name it
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

/// The first line of the table, and a job's. They end in a line feed.
[[nodiscard]] std::string runs_header();
[[nodiscard]] std::string runs_row(const LabelledJob& job, std::string_view gpu);

/// Writes these jobs, and RUNS.csv last: it names no file that is not whole. Makes the folder; files of the same names
/// are replaced, each in one step. `written` hears of each job, and how many are done. Errors: unreadable_file; those
/// of LabelledJobs::at().
[[nodiscard]] core::Status write_jobs(const LabelledJobs& jobs, const JobFiles& files,
                                      const std::function<void(const LabelledJob&, std::uint64_t)>& written);

}  // namespace gpumem::train
