// Input: what Keras' model.summary() prints, in the form of Keras 2 (rules of '_' and '=') or Keras 3 (box drawing).
// Output: its layers in printed order. The channels of images come before their pixels, as in PyTorch.
//
//   Model: "vgg16"
//   _________________________________________________________________
//    Layer (type)                Output Shape              Param #
//   =================================================================
//    conv2d (Conv2D)             (None, 224, 224, 64)      1792
//
// Cells that are too long go on in the lines below, or are cut. A row with nested rows ("|") is a container.
#pragma once

#include <algorithm>

#include "gpumem/summary/formats.hpp"
#include "gpumem/summary/table_reader.hpp"

namespace gpumem::summary {

[[nodiscard]] const Format& keras();

namespace keras_detail {

inline constexpr std::string_view kHeavyBar = "┃";
inline constexpr std::string_view kBar = "│";
inline constexpr std::string_view kBranch = "└";

/// One layer's cells, gathered from all lines that it takes, without the spaces between the pieces.
struct Row {
  std::string name;   ///< "conv2d(Conv2D)"
  std::string shape;  ///< "(None,224,224,64)"
  std::string count;  ///< "1,792"
  std::size_t nesting = 0;
  std::int64_t line = 0;
};

/// The three cells of one line.
struct Cells {
  std::string_view name;
  std::string_view shape;
  std::string_view count;
};

inline void append_dense(std::string& to, std::string_view piece) {
  for (const char byte : piece) {
    if (!is_space(byte)) to += byte;
  }
}

/// Cuts lines at the places where the header's titles begin (Keras 2) or at the bars (Keras 3).
class Cutter {
 public:
  explicit Cutter(std::string_view header) : boxed_(header.find(kHeavyBar) != std::string_view::npos) {
    shape_at_ = header.find("Output Shape");
    count_at_ = header.find("Param #");
    const std::size_t next = count_at_ == std::string_view::npos ? count_at_ : header.find("  ", count_at_ + 7);
    const std::size_t title = next == std::string_view::npos ? next : header.find_first_not_of(' ', next);
    after_at_ = title == std::string_view::npos ? std::string_view::npos : title;
  }

  [[nodiscard]] bool boxed() const { return boxed_; }
  [[nodiscard]] bool complete() const {
    return shape_at_ != std::string_view::npos && count_at_ != std::string_view::npos && shape_at_ < count_at_;
  }

  [[nodiscard]] Cells cut(std::string_view line) const { return boxed_ ? cut_boxed(line) : cut_plain(line); }

 private:
  [[nodiscard]] Cells cut_plain(std::string_view line) const {
    const auto piece = [&](std::size_t from, std::size_t to) {
      std::string_view cell = from >= line.size() ? std::string_view() : trim(line.substr(from, to - from));
      if (cell.ends_with('|')) cell = trim(cell.substr(0, cell.size() - 1));  // a nested row's right bar
      return cell;
    };
    return {piece(0, shape_at_), piece(shape_at_, count_at_), piece(count_at_, after_at_)};
  }

  [[nodiscard]] static Cells cut_boxed(std::string_view line) {
    Cells cells;
    std::size_t at = line.find(kBar);
    for (std::string_view* cell : {&cells.name, &cells.shape, &cells.count}) {
      if (at == std::string_view::npos) break;
      const std::size_t begin = at + kBar.size();
      at = line.find(kBar, begin);
      *cell = trim(line.substr(begin, at - begin));
    }
    return cells;
  }

  bool boxed_;
  std::size_t shape_at_;
  std::size_t count_at_;
  std::size_t after_at_;
};

/// A shape with the channels last, as Keras prints it, with the channels in front of the pixels.
inline core::Shape channels_first(core::Shape shape) {
  if (shape.rank() < 4) return shape;
  const core::Dim channels = shape[shape.rank() - 1];
  for (std::size_t axis = shape.rank() - 1; axis > 1; --axis) shape.set(axis, shape[axis - 1]);
  shape.set(1, channels);
  return shape;
}

/// "Conv2D" out of "conv2d(Conv2D)"; `whole` tells whether its closing bracket was printed.
inline std::string_view class_of(std::string_view name, bool& whole) {
  const std::size_t open = name.rfind('(');
  if (open == std::string_view::npos) return {};
  std::string_view result = name.substr(open + 1);
  whole = result.ends_with(')');
  if (whole) result.remove_suffix(1);
  constexpr std::string_view kEllipsis = "…";
  if (result.ends_with(kEllipsis)) {
    result.remove_suffix(kEllipsis.size());
    whole = false;
  }
  return result;
}

class Reader : private TableReader {
 public:
  Reader(const Format& format, std::string_view text, std::size_t begin, const ReadOptions& options)
      : TableReader(format, text, begin, options), cutter_(lines().line()) {}

  core::Result<model::ModelGraph> read() {
    if (read_head() && read_lines()) read_foot();
    return std::move(builder()).build();
  }

 private:
  bool read_head() {
    if (!cutter_.complete()) return refuse("the table needs the columns 'Output Shape' and 'Param #'");
    if (!cutter_.boxed()) return read_rule('=');
    if (!lines().next()) return refuse_cut_off();
    return true;
  }

  [[nodiscard]] bool closes(std::string_view line) const {
    return cutter_.boxed() ? trim_left(line).starts_with(kBranch) : is_rule(line, '=');
  }

  [[nodiscard]] bool separates(std::string_view line) const {
    if (cutter_.boxed()) return trim_left(line).starts_with("├");
    // Nested models are between bars, with lines of bars and rules of their own.
    return line.find_first_not_of("|_ ") == std::string_view::npos || line.find("¯¯") != std::string_view::npos;
  }

  /// A line with a parameter count begins a row; lines without one go on with the row above.
  bool read_lines() {
    Row row;
    while (lines().next()) {
      std::string_view line = lines().line();
      if (closes(line)) return row.line == 0 || read_row(row, false);
      if (separates(line) || trim(line).empty()) continue;
      if (cutter_.boxed() && line.find(kBar) == std::string_view::npos) {
        return refuse(core::quoted(line) + " is not a row of the table; the file is cut off or edited");
      }
      const std::size_t nesting = nesting_of(line);
      const Cells cells = cutter_.cut(line);
      if (!cells.count.empty()) {
        if (row.line != 0 && !read_row(row, nesting > row.nesting)) return false;
        row = Row{{}, {}, std::string(cells.count), nesting, lines().number()};
      } else if (row.line == 0) {
        return refuse(core::quoted(trim(line)) + " is not a row of the table; the file is cut off or edited");
      }
      append_dense(row.name, name_in(cells.name));
      append_dense(row.shape, cells.shape);
    }
    return refuse_cut_off();
  }

  /// The name without what is drawn before it.
  static std::string_view name_in(std::string_view cell) {
    if (cell.starts_with(kBranch)) cell.remove_prefix(kBranch.size());
    return cell.substr(std::min(cell.find_first_not_of("| "), cell.size()));
  }

  /// How deep a row is in nested models: the bars before its name (Keras 2), or the column of its branch
  /// (Keras 3: "│    └ conv2d (Conv2D)").
  static std::size_t nesting_of(std::string_view line) {
    const std::size_t branch = line.find(kBranch);
    if (branch != std::string_view::npos) return branch;
    std::size_t bars = 0;
    for (const char byte : line) {
      if (byte == '|') ++bars;
      if (byte != '|' && byte != ' ') break;
    }
    return bars;
  }

  const model::OpTraits* op_of(std::string_view class_name, bool whole) const {
    const model::OpTraits* op = options().vocabulary->find_keras(class_name);
    return op != nullptr || whole ? op : options().vocabulary->find_keras_prefix(class_name);
  }

  bool read_row(const Row& row, bool has_nested) {
    bool whole = false;
    const std::string_view class_name = class_of(row.name, whole);
    // "0 (unused)" and "0 (unbuilt)" say more than the count.
    const core::Result<std::int64_t> count = parse_count(std::string_view(row.count).substr(0, row.count.find(' ')));
    if (!count) return refuse(row.line, count.error());
    if (class_name == "InputLayer" || class_name == "Input") {
      add_input(row);
      return true;
    }
    if (!read_output(row)) return false;
    if (has_nested) return true;
    const model::OpTraits* op = op_of(class_name, whole);
    if (op == nullptr && *count > 0) op = opaque_op();
    if (op == nullptr && *count > 0 && !options().lenient) {
      return refuse_unknown(row.line, row.name, *count, "if it is a nested model, print with expand_nested=True; ");
    }
    builder().add({.name = std::string_view(row.name).substr(0, row.name.rfind('(')),
                   .class_name = class_name,
                   .op = op,
                   .outputs = shapes(),
                   .parameters = *count,
                   .line = row.line});
    return !builder().failed();
  }

  /// TF 2.0 to 2.4 cut this one cell in most models, "[(None, 224, 224, 3)", so what it says is a help only.
  void add_input(const Row& row) {
    std::vector<core::Shape> printed;
    std::string text = row.shape;
    const auto count = [&](char bracket) { return std::count(text.begin(), text.end(), bracket); };
    if (count('(') == count(')') && count('[') == count(']') + 1) text += ']';
    if (!parse_shapes(text, 0, printed)) return;
    learn_batch(text);
    for (const core::Shape& shape : printed) {
      builder().add_input({row.name.substr(0, row.name.rfind('(')), channels_first(shape)});
    }
  }

  /// "?" and "multiple" mean a shape that Keras does not know: unknown, which is not none.
  bool read_output(const Row& row) {
    const bool cut =
        std::count(row.shape.begin(), row.shape.end(), '(') != std::count(row.shape.begin(), row.shape.end(), ')');
    if (cut) {
      return refuse(row.line, {core::ErrorCode::malformed_input,
                               "the output shape " + core::quoted(row.shape) +
                                   " is cut; print with model.summary(line_length=140)",
                               {}});
    }
    if (row.shape != "?" && row.shape != "multiple") {
      if (!read_shapes(row.shape, row.name, row.line)) return false;
      std::transform(shapes().begin(), shapes().end(), shapes().begin(), channels_first);
      return true;
    }
    core::Shape unknown;
    unknown.push_back(core::Dim::unknown());
    shapes().assign(1, unknown);
    return true;
  }

  Cutter cutter_;
};

inline std::optional<std::size_t> sniff(std::string_view text, std::size_t from) {
  return find_header(text, from, [](std::string_view above, std::string_view line) {
    if (trim_left(line).starts_with(kHeavyBar)) return true;
    const bool other_rule = is_rule(above, '=') || is_rule(above, '-');
    return trim_left(line).starts_with("Layer (type) ") && !other_rule && !line.starts_with("    ");
  });
}

inline core::Result<model::ModelGraph> parse(std::string_view text, std::size_t begin, const ReadOptions& options) {
  return Reader(keras(), text, begin, options).read();
}

}  // namespace keras_detail

inline const Format& keras() {
  static constexpr Format kFormat = {"keras", "Keras model.summary()", keras_detail::sniff, keras_detail::parse};
  return kFormat;
}

}  // namespace gpumem::summary
