#include "gpumem_datasets/runs_format.hpp"

#include <algorithm>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/file.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem_datasets/runs_tables.hpp"

namespace gpumem::datasets {

std::span<const RunsFormat* const> runs_formats() {
  // A table of post-training has the columns of the frameworks' too, and is asked first.
  static const std::array<const RunsFormat*, 8> kAll = {
      &runs_csv(),      &language_model_csv(), &peft_csv(),      &post_training_csv(),
      &framework_csv(), &image_csv(),          &gpumemnet_csv(), &xmem_csv(),
  };
  return kAll;
}

core::Status take_capacity(const core::CsvCells& cells, MeasuredRun& run) {
  const auto capacity = cells.number("capacity_mib");
  if (!capacity) return capacity.error();
  constexpr double kLeastMib = 1.0;
  if (*capacity && **capacity < kLeastMib) {
    return cells.malformed("capacity_mib is " + core::quoted(cells.text("capacity_mib")) + "; it must be at least 1");
  }
  run.capacity_mib = *capacity;
  return core::Done{};
}

core::Status needs_columns(const core::CsvTable& table, std::span<const std::string_view> columns) {
  for (const std::string_view column : columns) {
    if (table.has(column)) continue;
    return core::Error{core::ErrorCode::malformed_input, "has no column " + core::quoted(column),
                       core::Place{table.file, 1, {}}};
  }
  return core::Done{};
}

Release release_of(std::string_view software, std::string_view name) {
  Release release = {};
  const std::size_t at = software.find(name);
  if (at == std::string_view::npos) return release;
  software.remove_prefix(at + name.size());
  if (software.starts_with(' ')) software.remove_prefix(1);
  for (std::int64_t& part : release) {
    const std::size_t end = std::min(software.find_first_not_of("0123456789"), software.size());
    const auto number = core::parse_whole(software.substr(0, end));
    if (!number) break;
    part = *number;
    software.remove_prefix(end);
    if (!software.starts_with('.')) break;
    software.remove_prefix(1);
  }
  return release;
}

std::optional<model::Transformers> transformers_of(std::string_view software) {
  constexpr std::string_view kName = "transformers ";
  const std::size_t at = software.find(kName);
  if (at == std::string_view::npos) return std::nullopt;
  return model::transformers_of_version(software.substr(at + kName.size()));
}

core::Result<MeasuredRuns> parse_runs(std::string_view text, const RunsOptions& options, std::string_view file) {
  const core::Result<core::CsvTable> table = core::parse_csv(text, file);
  if (!table) return table.error();
  std::string names;
  for (const RunsFormat* format : runs_formats()) {
    if (format->sniff(*table)) return format->read(*table, options);
    names += (names.empty() ? "" : "; ") + std::string(format->name) + ", " + std::string(format->description);
  }
  return core::Error{core::ErrorCode::unknown_format,
                     "its first row is not that of a table of runs; these are read: " + names,
                     core::Place{std::string(file), 1, {}}};
}

core::Result<MeasuredRuns> read_runs(const std::string& path, const RunsOptions& options) {
  const core::Result<std::string> text = core::read_file(path);
  if (!text) return text.error();
  return parse_runs(*text, options, path);
}

}  // namespace gpumem::datasets
