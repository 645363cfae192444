#pragma once

#include "gpumem/core/csv.hpp"

#include <algorithm>
#include <unordered_set>

#include "gpumem/core/bytes.hpp"

namespace gpumem::core {

namespace csv_detail {

/// Reads a text field by field, row by row.
class Scanner {
 public:
  Scanner(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  /// Skips empty lines; false at the end.
  bool more() {
    while (at_ < text_.size() && line_end() > 0) pass_line_end();
    return at_ < text_.size();
  }

  Result<CsvRow> row() {
    CsvRow row;
    row.line = line_;
    while (true) {
      Result<std::string> field = at_ < text_.size() && text_[at_] == '"' ? quoted_field() : plain_field();
      if (!field) return field.error();
      if (field->size() > kLongestCsvField) return malformed(row.line, "holds a field of more than 1 MiB");
      row.cells.push_back(*std::move(field));
      if (row.cells.size() > kMostCsvColumns) return malformed(row.line, "has more than 1,000 columns");
      if (at_ == text_.size()) return row;
      if (text_[at_] == ',') {
        ++at_;
        continue;
      }
      if (line_end() == 0) return malformed(line_, "has text after a closing quote; write \"\" for a quote");
      pass_line_end();
      return row;
    }
  }

  [[nodiscard]] Error malformed(std::int64_t line, std::string message) const {
    return {ErrorCode::malformed_input, std::move(message), Place{std::string(file_), line, {}}};
  }

 private:
  /// Length of the line end at this place; 0 if there is none.
  [[nodiscard]] std::size_t line_end() const {
    if (text_[at_] == '\n') return 1;
    return text_.substr(at_).starts_with("\r\n") ? 2 : 0;
  }
  void pass_line_end() {
    at_ += line_end();
    ++line_;
  }

  Result<std::string> plain_field() {
    const std::size_t end = std::min(text_.find_first_of(",\n\r\"", at_), text_.size());
    std::string field(text_.substr(at_, end - at_));
    at_ = end;
    if (at_ < text_.size() && text_[at_] == '"') {
      return malformed(line_, "has a quote inside a field; put the whole field in quotes");
    }
    if (at_ < text_.size() && text_[at_] == '\r' && line_end() == 0) {
      return malformed(line_, "has a carriage return that ends no line; save the file with LF or CRLF");
    }
    return field;
  }

  Result<std::string> quoted_field() {
    const std::int64_t first = line_;
    std::string field;
    ++at_;
    while (true) {
      const std::size_t end = text_.find('"', at_);
      if (end == std::string_view::npos) return malformed(first, "opens a quote that is never closed");
      const std::string_view piece = text_.substr(at_, end - at_);
      line_ += std::count(piece.begin(), piece.end(), '\n');
      field += piece;
      at_ = end + 1;
      if (at_ == text_.size() || text_[at_] != '"') return field;
      field += '"';
      ++at_;
    }
  }

  std::string_view text_;
  std::string_view file_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
};

/// What is wrong with the header, or nothing.
GPUMEM_INLINE std::optional<std::string> fault_of(const std::vector<std::string>& header) {
  std::unordered_set<std::string_view> known;
  for (const std::string& column : header) {
    if (!known.insert(column).second) return "names the column " + core::quoted(column) + " twice";
  }
  return std::nullopt;
}

}  // namespace csv_detail

GPUMEM_INLINE std::optional<std::size_t> CsvTable::find(std::string_view column) const {
  const auto found = std::find(header.begin(), header.end(), column);
  if (found == header.end()) return std::nullopt;
  return static_cast<std::size_t>(found - header.begin());
}

GPUMEM_INLINE Result<CsvTable> parse_csv(std::string_view text, std::string_view file) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  csv_detail::Scanner scanner(text, file);
  if (text.find('\0') != std::string_view::npos) return scanner.malformed(1, "is binary; it should be a CSV file");
  if (!scanner.more()) return scanner.malformed(1, "is empty; its first row should name the columns");
  CsvTable table;
  table.file = file;
  Result<CsvRow> header = scanner.row();
  if (!header) return header.error();
  if (auto fault = csv_detail::fault_of(header->cells)) return scanner.malformed(header->line, std::move(*fault));
  table.header = std::move(header->cells);
  while (scanner.more()) {
    Result<CsvRow> row = scanner.row();
    if (!row) return row.error();
    if (row->cells.size() != table.header.size()) {
      return scanner.malformed(row->line, "has " + std::to_string(row->cells.size()) + " fields; the header has " +
                                              std::to_string(table.header.size()));
    }
    if (table.rows.size() == kMostCsvRows) return scanner.malformed(row->line, "has more than 1,000,000 rows");
    table.rows.push_back(*std::move(row));
  }
  return table;
}

GPUMEM_INLINE std::string_view CsvCells::text(std::string_view column) const {
  const auto index = table_.find(column);
  return index ? std::string_view(row_.cells[*index]) : std::string_view();
}

GPUMEM_INLINE Error CsvCells::malformed(std::string message) const {
  return {ErrorCode::malformed_input, std::move(message), Place{table_.file, row_.line, {}}};
}

GPUMEM_INLINE Result<std::optional<std::int64_t>> CsvCells::whole(std::string_view column) const {
  const std::string_view cell = text(column);
  if (cell.empty()) return std::optional<std::int64_t>();
  const std::optional<std::int64_t> value = parse_whole(cell);
  if (value) return value;
  return malformed(std::string(column) + " is " + core::quoted(cell) + "; it must be a whole number of 64 bits");
}

GPUMEM_INLINE Result<std::optional<double>> CsvCells::number(std::string_view column) const {
  const std::string_view cell = text(column);
  if (cell.empty()) return std::optional<double>();
  const std::optional<double> value = parse_number(cell);
  if (value && *value >= 0.0) return value;
  return malformed(std::string(column) + " is " + core::quoted(cell) + "; it must be a number that is not negative");
}

GPUMEM_INLINE Result<std::optional<bool>> CsvCells::flag(std::string_view column) const {
  const std::string cell = lower_case(text(column));
  if (cell.empty()) return std::optional<bool>();
  if (cell == "true" || cell == "yes" || cell == "1") return std::optional(true);
  if (cell == "false" || cell == "no" || cell == "0") return std::optional(false);
  return malformed(std::string(column) + " is " + core::quoted(cell) + "; it must be true or false");
}

GPUMEM_INLINE std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& byte : lower) {
    if (byte >= 'A' && byte <= 'Z') byte = static_cast<char>(byte - 'A' + 'a');
  }
  return lower;
}

GPUMEM_INLINE std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string field = "\"";
  for (const char byte : text) {
    if (byte == '"') field += '"';
    field += byte;
  }
  return field + "\"";
}

}  // namespace gpumem::core
