#pragma once

#include "gpumem/job/option_columns.hpp"

#include <optional>
#include <string>

#include "gpumem/core/result.hpp"

namespace gpumem::job {

namespace option_columns_detail {

template <typename Value>
core::Status take(const core::Result<std::optional<Value>>& cell, const JobOption& option, JobRequest& request) {
  if (!cell) return cell.error();
  return *cell ? set_option(option, request, OptionValue(**cell)) : core::Status(core::Done{});
}

/// The cell of a column that may be empty.
GPUMEM_INLINE core::Status take_cell(const core::CsvCells& cells, std::string_view column, const JobOption& option,
                                     JobRequest& request) {
  const std::string_view text = cells.text(column);
  if (text.empty()) return core::Done{};
  if (option.place.type == OptionType::flag) return take(cells.flag(column), option, request);
  if (option.place.type == OptionType::whole_number) return take(cells.whole(column), option, request);
  if (option.place.type == OptionType::switch_or_choice) {
    const auto on = cells.flag(column);  // "yes" and "no" too
    if (on && *on) return set_option(option, request, OptionValue(**on));
  }
  if (option.place.type == OptionType::fraction) {
    return set_option_text(option, request, text)
               ? core::Status(core::Done{})
               : cells.malformed(std::string(column) + " is " + core::quoted(text) + "; it " + expectation(option));
  }
  if (option.place.set(request, OptionValue(std::string(text)))) return core::Done{};
  const std::string wanted = (option.place.choices != nullptr ? "" : "it ") + expectation(option);
  return cells.malformed(std::string(column) + " is " + core::quoted(text) + "; " + wanted);
}

}  // namespace option_columns_detail

GPUMEM_INLINE core::Status take_option_cells(const core::CsvCells& cells, JobRequest& request) {
  for (const JobOption& option : job_options()) {
    if (!option.place.in_training) continue;
    core::Status taken = option_columns_detail::take_cell(cells, option.name, option, request);
    for (const std::string_view alias : option.aliases) {
      if (taken && !alias.empty()) taken = option_columns_detail::take_cell(cells, alias, option, request);
    }
    if (!taken) return taken;
  }
  return core::Done{};
}

}  // namespace gpumem::job
