// Input: rows of texts, figures of memory and gauges. Output: the table that every command prints: figures of one unit,
// their decimals below each other. A pipe gets plain lines; a terminal gets what fits its width, with the gauges.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/bytes.hpp"
#include "terminal.hpp"

namespace gpumem::cli {

/// One unit for figures that stand below each other.
struct ByteUnit {
  std::string_view name = "B";
  double bytes = 1.0;
  int decimals = 0;
};

/// The unit in which the largest figure is 1 or more (TiB from 10 TiB on): two decimals below 100, else one.
[[nodiscard]] ByteUnit unit_for(core::Bytes largest);
/// "2.60", "<0.01" of what is not nothing; `with_unit`: "2.60 GiB".
[[nodiscard]] std::string in_unit(core::Bytes bytes, const ByteUnit& unit, bool with_unit = true);

/// A text or a figure. Figures that are missing are "-".
struct Cell {
  // NOLINTBEGIN(google-explicit-constructor): a row is written as its words and figures
  Cell(std::string words, Tone with_tone = Tone::plain) : text(std::move(words)), tone(with_tone) {}
  Cell(const char* words) : text(words) {}
  Cell(std::string_view words) : text(words) {}
  Cell(core::Bytes figure) : bytes(figure) {}
  Cell(const std::optional<core::Bytes>& figure) : text(figure ? "" : "-"), bytes(figure) {}
  // NOLINTEND(google-explicit-constructor)
  std::string text;
  std::optional<core::Bytes> bytes = {};
  Tone tone = Tone::plain;
  bool enclosed = false;  ///< "(2.60 GiB)"
};

struct Column {
  std::string title = {};
  bool right = false;        ///< figures stand at the right end
  bool gauge = false;        ///< the rows' gauges, in a terminal that has room for them
  bool below = false;        ///< where there is none: each on a line below its row
  bool spare = false;        ///< left out where the terminal is too narrow for all columns
  std::size_t at_least = 0;  ///< columns
};

class Table {
 public:
  /// Without any title there is no head.
  explicit Table(std::vector<Column> columns, std::size_t indent = 0);

  /// A cell for each column that holds no gauge. Of fewer cells the last is a remark, which runs over the others.
  void add(std::vector<Cell> cells, const std::optional<Gauge>& gauge = std::nullopt);

  /// As plain lines; in a terminal with gauges, wrapped to its width, or where it is narrow a line a figure.
  [[nodiscard]] std::string text(const Terminal& terminal = {}) const;

 private:
  struct Row {
    std::vector<Cell> cells;
    std::optional<Gauge> gauge;
  };
  /// How the lines are laid out.
  struct Layout {
    std::vector<std::size_t> widths = {};  ///< of each column; 0 of a gauge: it is not drawn there
    std::vector<bool> enclosed = {};       ///< of each cell of a row: whether some row has it in brackets
    ByteUnit unit = {};
    bool with_units = true;
    bool with_spare = true;
    std::size_t tail = 0;  ///< the columns that the last text is wrapped to; 0: it is not
  };

  [[nodiscard]] ByteUnit unit() const;
  [[nodiscard]] std::vector<bool> enclosed() const;
  [[nodiscard]] bool has_bytes() const;
  [[nodiscard]] std::string shown(const Cell& cell, std::size_t column, const Layout& layout) const;
  [[nodiscard]] Layout layout(bool with_units, bool with_spare) const;
  [[nodiscard]] std::size_t width_of(const Layout& layout) const;
  [[nodiscard]] std::size_t cell_of(std::size_t column) const;
  [[nodiscard]] bool fit(Layout& layout, const Terminal& terminal) const;
  [[nodiscard]] std::string head(const Layout& layout, const Terminal& terminal) const;
  [[nodiscard]] std::string line(const Row& row, const Layout& layout, const Terminal& terminal) const;
  [[nodiscard]] std::string lines(const Layout& layout, const Terminal& terminal) const;
  [[nodiscard]] std::string stacked(const Row& row, const Layout& layout, const Terminal& terminal) const;

  std::vector<Column> columns_;
  std::vector<Row> rows_;
  std::size_t indent_;
};

}  // namespace gpumem::cli
