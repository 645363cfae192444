// Input: a file of measured runs in any form that gpumem knows.
// Output: MeasuredRuns. The list of forms is in src/datasets/read_runs.cpp. To add one: a file and a row there.
#pragma once

#include <span>

#include "gpumem_datasets/runs_format.hpp"

namespace gpumem::datasets {

/// Every form of a table of runs that gpumem reads.
[[nodiscard]] std::span<const RunsFormat* const> runs_formats();

/// Finds the form by the header and reads the table; `file` is for messages, and what its paths are relative to.
/// Errors: malformed_input; unknown_format if the header is of no known form.
[[nodiscard]] core::Result<MeasuredRuns> parse_runs(std::string_view text, const RunsOptions& options,
                                                    std::string_view file = {});

/// parse_runs() of a file. Errors: also unreadable_file.
[[nodiscard]] core::Result<MeasuredRuns> read_runs(const std::string& path, const RunsOptions& options);

}  // namespace gpumem::datasets
