#include "runs_table.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "gpumem/core/csv.hpp"
#include "journal.hpp"

namespace gpumem::launcher {

namespace {

constexpr const char* kName = "runs.csv";

core::Error fault(const std::string& directory, core::ErrorCode code, const std::string& what) {
  return {code, what, {directory + "/" + kName, 0, {}}};
}

std::string header_of(const RunCells& cells) {
  std::string text;
  for (const auto& [column, cell] : cells) text += (text.empty() ? "" : ",") + core::csv_field(column);
  return text + "\n";
}

/// The first line of the file.
std::string first_line(int file) {
  std::array<char, 8192> text{};
  const ssize_t size = pread(file, text.data(), text.size(), 0);
  const std::string_view read(text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  return std::string(read.substr(0, std::min(read.find('\n'), read.size())));
}

/// Whether the last line has its end. A crash, or an editor, may leave it without.
bool ends_with_a_line(int file, off_t size) {
  char last = '\n';
  return size == 0 || (pread(file, &last, 1, size - 1) == 1 && last == '\n');
}

core::Result<std::string> row_of(const RunCells& cells, const std::string& header, const std::string& directory) {
  const core::Result<core::CsvTable> table = core::parse_csv(header, kName);
  if (!table) return table.error();
  std::string text;
  for (const std::string& column : table->header) {
    const auto found = std::find_if(cells.begin(), cells.end(), [&](const auto& cell) { return cell.first == column; });
    text += (&column == &table->header.front() ? "" : ",") +
            (found == cells.end() ? std::string() : core::csv_field(found->second));
  }
  for (const auto& [column, cell] : cells) {
    if (cell.empty() || table->has(column)) continue;
    return fault(
        directory, core::ErrorCode::malformed_input,
        "has no column " + core::quoted(column) + ", so that the run is not written; give the file another name");
  }
  return text + "\n";
}

}  // namespace

core::Status append_run(const std::string& directory, const RunCells& cells) {
  const core::Result<OpenFile> file = open_shared(directory, kName, O_RDWR | O_APPEND);
  if (!file) return file.error();
  if (!wait_for_lock(*file)) return system_error("cannot be locked", directory + "/" + kName);
  struct stat facts {};
  if (fstat(file->number(), &facts) != 0) return fault(directory, core::ErrorCode::unreadable_file, "cannot be read");
  const std::string header = facts.st_size == 0 ? header_of(cells) : first_line(file->number()) + "\n";
  const core::Result<std::string> row = row_of(cells, header, directory);
  if (!row) return row.error();
  const std::string end = ends_with_a_line(file->number(), facts.st_size) ? "" : "\n";
  const std::string text = facts.st_size == 0 ? header + *row : end + *row;
  if (write(file->number(), text.data(), text.size()) == static_cast<ssize_t>(text.size())) return core::Done{};
  core::Error error = system_error("cannot be written", directory + "/" + kName);
  (void)!ftruncate(file->number(), facts.st_size);
  return error;
}

}  // namespace gpumem::launcher
