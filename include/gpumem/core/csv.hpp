// Input: the text of a CSV file.
// Output: CsvTable: its header and its rows with their line numbers. RFC 4180, and in addition what spreadsheets write:
// LF or CRLF, a byte order mark, empty lines. Everything else is an error: a quote inside an unquoted field, text after
// a closing quote, a row that is longer or shorter than the header, a column named twice.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/result.hpp"

namespace gpumem::core {

struct CsvRow {
  std::int64_t line = 0;           ///< 1-based line that the row begins in
  std::vector<std::string> cells;  ///< as many as the header has
};

struct CsvTable {
  std::string file;  ///< as the caller named it
  std::vector<std::string> header;
  std::vector<CsvRow> rows;

  /// The column of this name.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view column) const;
  [[nodiscard]] bool has(std::string_view column) const { return find(column).has_value(); }
};

/// Bounds that keep a wrong file from filling the memory; no table of runs comes near them.
inline constexpr std::size_t kMostCsvRows = 1'000'000;
inline constexpr std::size_t kMostCsvColumns = 1'000;
inline constexpr std::size_t kLongestCsvField = std::size_t{1} << 20;

/// Errors: malformed_input, naming the line.
[[nodiscard]] Result<CsvTable> parse_csv(std::string_view text, std::string_view file = {});

/// One row, read by column name. A column that the table lacks reads as an empty cell, and an empty cell as nothing.
/// Errors: malformed_input, naming line and column.
class CsvCells {
 public:
  CsvCells(const CsvTable& table, const CsvRow& row) : table_(table), row_(row) {}

  [[nodiscard]] std::string_view file() const { return table_.file; }
  [[nodiscard]] std::int64_t line() const { return row_.line; }
  [[nodiscard]] std::string_view text(std::string_view column) const;
  [[nodiscard]] Result<std::optional<std::int64_t>> whole(std::string_view column) const;
  /// A finite decimal number, not negative.
  [[nodiscard]] Result<std::optional<double>> number(std::string_view column) const;
  /// true, yes or 1; false, no or 0, upper and lower case alike.
  [[nodiscard]] Result<std::optional<bool>> flag(std::string_view column) const;
  /// An error in this row.
  [[nodiscard]] Error malformed(std::string message) const;

 private:
  const CsvTable& table_;
  const CsvRow& row_;
};

/// The text with A to Z in lower case.
[[nodiscard]] std::string lower_case(std::string_view text);

/// One field for a CSV file, in quotes if it needs them.
[[nodiscard]] std::string csv_field(std::string_view text);

}  // namespace gpumem::core
