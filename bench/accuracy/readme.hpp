// Input: the verdicts on all sets, the configs of the trained models, and a Markdown page.
// Output: the page with new tables of accuracy. A table is between two marks,
//   <!-- accuracy: begin NAME -->  and  <!-- accuracy: end -->
// and NAME says which:
//   runs       the replay on every set of runs, and what the tables cite of other estimators
//   xmem       xMem's metrics on its own runs, both estimators
//   learned    the classifiers, by the cross-validation that their configs record
//   corrected  the corrected replay, by cross-validation and on runs that it never saw
// A row without runs on this machine does not change.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "verdicts.hpp"

namespace gpumem::accuracy {

struct ReadmeRow {
  std::string key;                  ///< what its first cell holds, and that of no other row
  std::optional<std::string> line;  ///< nothing: its runs are not at hand
};

struct ReadmeTable {
  std::string name;
  std::string header;  ///< two lines
  std::vector<ReadmeRow> rows;
  bool whole = false;  ///< a row that stands there under another key is left out; else it stays, as the last
};

/// Every table that a README may hold.
[[nodiscard]] std::vector<ReadmeTable> readme_tables(const std::vector<SetVerdicts>& all,
                                                     std::span<const ml::ModelConfig> models);

/// Errors: malformed_input, naming the line: a mark of an unknown table, a begin without an end or the reverse; or if
/// there is no mark at all.
[[nodiscard]] Result<std::string> rewritten(std::string_view readme, const std::vector<ReadmeTable>& tables,
                                            std::string_view file = {});

/// Of the runs' table, the keys of the rows without runs: what could neither be written nor checked.
[[nodiscard]] std::vector<std::string> not_at_hand(const std::vector<ReadmeTable>& tables);

}  // namespace gpumem::accuracy
