// Input: figures.
// Output: their text for the cells of tables.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gpumem::accuracy {

/// "93.4 %", of a share.
[[nodiscard]] std::string percent(double share, int decimals = 2);
/// "1.125"
[[nodiscard]] std::string decimal(double value, int decimals);
/// "1,841", rounded.
[[nodiscard]] std::string whole(double value);

/// A row of a Markdown table; text of others must have gone through plain().
[[nodiscard]] std::string row(const std::vector<std::string>& cells);
/// The line below the header; all columns but the first `texts` are numbers.
[[nodiscard]] std::string rule(std::size_t columns, std::size_t texts);
/// Text of a table or of a file, fit for Markdown: what could be markup is escaped.
[[nodiscard]] std::string plain(std::string_view text);

}  // namespace gpumem::accuracy
