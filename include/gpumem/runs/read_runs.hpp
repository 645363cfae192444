// Enters: a file of measured runs in any form that gpumem knows. Leaves: MeasuredRuns. The list of forms stands in
// read_runs_inl.hpp: adding one is one file beside this one and one row there.
#pragma once

#include <span>

#include "gpumem/runs/runs_format.hpp"

namespace gpumem::runs {

/// Every form of a table of runs that gpumem reads.
[[nodiscard]] std::span<const RunsFormat* const> runs_formats();

/// Finds the form by the header and reads the table; `file` is for messages, and what its paths are relative to.
/// Errors: malformed_input; unknown_format if the header is of no known form.
[[nodiscard]] core::Result<MeasuredRuns> parse_runs(std::string_view text, const RunsOptions& options,
                                                    std::string_view file = {});

/// parse_runs() of a file. Errors: also unreadable_file.
[[nodiscard]] core::Result<MeasuredRuns> read_runs(const std::string& path, const RunsOptions& options);

}  // namespace gpumem::runs

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/runs/impl/read_runs_inl.hpp"
#endif
