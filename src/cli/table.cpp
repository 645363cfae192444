#include "table.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace gpumem::cli {

namespace {

constexpr std::size_t kBetween = 2;  ///< blanks between two columns
constexpr std::size_t kShortestGauge = 12;
constexpr std::size_t kLongestGauge = 40;
constexpr std::size_t kShortestTail = 24;

std::string filled_up(const std::string& text, std::size_t width, bool right) {
  const std::size_t columns = columns_of(text);
  const std::string space(columns < width ? width - columns : 0, ' ');
  return right ? space + text : text + space;
}

/// Without blanks at its end.
std::string trimmed(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

ByteUnit unit_for(core::Bytes largest) {
  struct Step {
    std::string_view name;
    double bytes;
    double from;
  };
  constexpr double kTen = 10.0;
  static constexpr std::array<Step, 5> kSteps = {
      {{"PiB", 0x1p50, kTen}, {"TiB", 0x1p40, kTen}, {"GiB", 0x1p30, 1.0}, {"MiB", 0x1p20, 1.0}, {"KiB", 0x1p10, 1.0}}};
  constexpr double kHundredths = 100.0;
  for (const Step& step : kSteps) {
    const double value = static_cast<double>(largest.count()) / step.bytes;
    if (value >= step.from) return {step.name, step.bytes, value < kHundredths ? 2 : 1};
  }
  return {};
}

std::string in_unit(core::Bytes bytes, const ByteUnit& unit, bool with_unit) {
  const double value = static_cast<double>(bytes.count()) / unit.bytes;
  const double least = unit.decimals == 2 ? 0.01 : unit.decimals == 1 ? 0.1 : 1.0;
  const bool little = bytes.count() > 0 && value < least / 2.0;
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%s%.*f", little ? "<" : "", unit.decimals, little ? least : value);
  return std::string(text.data()) + (with_unit ? " " + std::string(unit.name) : "");
}

Table::Table(std::vector<Column> columns, std::size_t indent) : columns_(std::move(columns)), indent_(indent) {}

void Table::add(std::vector<Cell> cells, const std::optional<Gauge>& gauge) {
  rows_.push_back({std::move(cells), gauge});
}

bool Table::has_bytes() const {
  return std::any_of(rows_.begin(), rows_.end(), [](const Row& row) {
    return std::any_of(row.cells.begin(), row.cells.end(), [](const Cell& cell) { return cell.bytes.has_value(); });
  });
}

ByteUnit Table::unit() const {
  core::Bytes largest;
  for (const Row& row : rows_) {
    for (const Cell& cell : row.cells) largest = std::max(largest, cell.bytes.value_or(core::Bytes()));
  }
  return unit_for(largest);
}

std::size_t Table::cell_of(std::size_t column) const {
  const auto end = columns_.begin() + static_cast<std::ptrdiff_t>(column);
  const auto gauges = std::count_if(columns_.begin(), end, [](const Column& one) { return one.gauge; });
  return column - static_cast<std::size_t>(gauges);
}

std::vector<bool> Table::enclosed() const {
  std::vector<bool> any(columns_.size(), false);
  for (const Row& row : rows_) {
    for (std::size_t at = 0; at < std::min(any.size(), row.cells.size()); ++at)
      any[at] = any[at] || row.cells[at].enclosed;
  }
  return any;
}

std::string Table::shown(const Cell& cell, std::size_t column, const Layout& layout) const {
  std::string text = cell.bytes ? in_unit(*cell.bytes, layout.unit, layout.with_units) : cell.text;
  if (cell.enclosed) return "(" + text + ")";
  return layout.enclosed[cell_of(column)] && columns_[column].right ? text + " " : text;
}

Table::Layout Table::layout(bool with_units, bool with_spare) const {
  Layout layout;
  layout.with_units = with_units;
  layout.with_spare = with_spare;
  layout.unit = unit();
  layout.enclosed = enclosed();
  for (std::size_t column = 0; column < columns_.size(); ++column) {
    const Column& told = columns_[column];
    std::size_t width = told.gauge ? 0 : std::max(told.at_least, columns_of(told.title));
    const std::size_t at = cell_of(column);
    for (const Row& row : rows_) {
      const bool remark = at + 1 == row.cells.size() && cell_of(columns_.size()) > row.cells.size();
      if (told.gauge || at >= row.cells.size() || remark) continue;
      width = std::max(width, columns_of(shown(row.cells[at], column, layout)));
    }
    layout.widths.push_back(told.spare && !with_spare ? 0 : width);
  }
  return layout;
}

std::size_t Table::width_of(const Layout& layout) const {
  std::size_t width = indent_;
  for (const std::size_t column : layout.widths) width += column > 0 ? column + kBetween : 0;
  return width - kBetween;
}

bool Table::fit(Layout& layout, const Terminal& terminal) const {
  const std::size_t width = width_of(layout);
  if (width <= terminal.width) {
    for (std::size_t column = 0; column < columns_.size(); ++column) {
      if (!columns_[column].gauge || width + kBetween + kShortestGauge > terminal.width) continue;
      layout.widths[column] =
          std::max(std::min(kLongestGauge, terminal.width - width - kBetween), columns_of(columns_[column].title));
      if (width_of(layout) > terminal.width) layout.widths[column] = 0;
    }
    return true;
  }
  const std::size_t tail = layout.widths.back();
  const bool text = !columns_.back().gauge && !columns_.back().right;
  if (!text || width - tail + kShortestTail > terminal.width) return false;
  layout.tail = terminal.width - (width - tail);
  return true;
}

std::string Table::head(const Layout& layout, const Terminal& terminal) const {
  const bool any = std::any_of(columns_.begin(), columns_.end(), [](const Column& one) { return !one.title.empty(); });
  if (!any) return {};
  std::string text;
  for (std::size_t column = 0; column < columns_.size(); ++column) {
    if (layout.widths[column] == 0) continue;
    text += filled_up(columns_[column].title, layout.widths[column], columns_[column].right);
    text += std::string(kBetween, ' ');
  }
  const std::string unit_line =
      layout.with_units ? "" : std::string(indent_, ' ') + "figures in " + std::string(layout.unit.name) + "\n";
  return unit_line + std::string(indent_, ' ') + coloured(trimmed(text), Tone::strong, terminal) + "\n";
}

std::string Table::line(const Row& row, const Layout& layout, const Terminal& terminal) const {
  std::string text(indent_, ' ');
  std::size_t used = indent_;
  for (std::size_t column = 0; column < columns_.size(); ++column) {
    const std::size_t width = layout.widths[column];
    const std::size_t at = cell_of(column);
    if (columns_[column].gauge) {
      if (width == 0) continue;
      const std::string gauge = row.gauge ? drawn(*row.gauge, std::min(width, kLongestGauge), terminal) : "";
      const std::size_t drawn_cells = row.gauge ? std::min(width, kLongestGauge) : 0;
      text += gauge + std::string(width - drawn_cells + kBetween, ' ');
    } else if (at < row.cells.size() && (layout.with_spare || !columns_[column].spare)) {
      const Cell& cell = row.cells[at];
      std::string words = shown(cell, column, layout);
      if (layout.tail > 0 && column + 1 == columns_.size()) words = wrapped(words, layout.tail, used);
      // Blanks are not coloured.
      const std::string full = filled_up(words, width, columns_[column].right);
      const std::size_t begin = words.empty() ? 0 : full.find(words);
      text += full.substr(0, begin) + coloured(words, cell.tone, terminal) + full.substr(begin + words.size());
      text += std::string(kBetween, ' ');
    }
    used += width > 0 ? width + kBetween : 0;
  }
  return trimmed(text) + "\n";
}

std::string Table::lines(const Layout& layout, const Terminal& terminal) const {
  std::string text = head(layout, terminal);
  for (const Row& row : rows_) {
    text += line(row, layout, terminal);
    for (std::size_t column = 0; terminal.shown && column < columns_.size(); ++column) {
      const bool below = columns_[column].below && layout.widths[column] == 0 && row.gauge;
      if (!below) continue;
      const std::string title = " " + columns_[column].title;
      const std::size_t room = terminal.width - std::min(terminal.width, columns_of(title) + indent_ + kBetween);
      text += std::string(indent_ + kBetween, ' ') +
              drawn(*row.gauge, std::clamp(room, kShortestGauge, kLongestGauge), terminal) + title + "\n";
    }
  }
  return text;
}

std::string Table::stacked(const Row& row, const Layout& layout, const Terminal& terminal) const {
  std::size_t titles = 0;
  for (std::size_t column = 1; column < columns_.size(); ++column) {
    if (!columns_[column].gauge) titles = std::max(titles, columns_of(columns_[column].title));
  }
  const std::string space(indent_ + kBetween, ' ');
  std::string text;
  for (std::size_t column = 0; column < columns_.size(); ++column) {
    const std::size_t at = cell_of(column);
    const Column& told = columns_[column];
    if (told.gauge && row.gauge) {
      const std::string before =
          told.below || told.title.empty() ? "" : filled_up(told.title, titles + kBetween, false);
      const std::string after = told.below ? " " + told.title : "";
      const std::size_t taken = space.size() + columns_of(before) + columns_of(after);
      const std::size_t room = terminal.width - std::min(terminal.width, taken);
      text.append(space).append(before);
      text += drawn(*row.gauge, std::clamp(room, kShortestGauge, kLongestGauge), terminal);
      text.append(after).append("\n");
    } else if (!told.gauge && at < row.cells.size()) {
      const bool remark = at > 0 && at + 1 == row.cells.size() && cell_of(columns_.size()) > row.cells.size();
      const std::string words = shown(row.cells[at], column, layout);
      if (column == 0) {
        std::string title = told.title;
        title.append(title.empty() ? 0 : 1, ' ').append(words);
        text += std::string(indent_, ' ') + coloured(title, Tone::strong, terminal) + "\n";
      }
      if (column == 0 || trimmed(words).empty()) continue;
      const std::size_t indent = space.size() + titles + kBetween;
      const std::size_t room = terminal.width > indent + kShortestGauge ? terminal.width - indent : kShortestGauge;
      text += space + filled_up(remark ? "" : told.title, titles + kBetween, false) +
              coloured(wrapped(words, room, indent), row.cells[at].tone, terminal) + "\n";
    }
  }
  return text;
}

std::string Table::text(const Terminal& terminal) const {
  Layout all = layout(true, true);
  if (!terminal.shown || fit(all, terminal)) return lines(all, terminal);
  for (const bool with_spare : {true, false}) {
    for (const bool with_units : {true, false}) {
      Layout narrower = layout(with_units, with_spare);
      if ((with_units || has_bytes()) && fit(narrower, terminal)) return lines(narrower, terminal);
    }
  }
  std::string text;
  for (const Row& row : rows_) text += stacked(row, all, terminal);
  return text;
}

}  // namespace gpumem::cli
