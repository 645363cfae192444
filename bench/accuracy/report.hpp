// Input: the verdicts on all sets.
// Output: a report in Markdown: for each set what was measured, a table of errors, one of xMem's metrics, and what a
// reader must know (what a model was trained on, which runs have no answer).
#pragma once

#include <string>
#include <vector>

#include "verdicts.hpp"

namespace gpumem::accuracy {

struct ReportFacts {
  std::string picture = {};  ///< the scatter plot's file, as the report names it; empty: none
};

[[nodiscard]] std::string report_of(const Data& data, const std::vector<SetVerdicts>& all, const ReportFacts& facts);

/// "device (nvidia-smi)"
[[nodiscard]] std::string_view text_of(std::optional<datasets::Figure> figure);

}  // namespace gpumem::accuracy
