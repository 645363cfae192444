// Input: the table that torchinfo's summary(model, ...) prints, with any choice of columns and row settings.
// Output: its layers in execution order.
//
//   ==========================================================================================
//   Layer (type:depth-idx)                   Output Shape              Param #
//   ==========================================================================================
//   ResNet                                   [32, 1000]                --
//   ├─Conv2d: 1-1                            [32, 64, 112, 112]        9,408
//
// A row with deeper rows below it is a container; what it prints as Param # are parameters of its own in addition to
// theirs. "(recursive)" is a layer seen before, its parameters counted there; "(9,408)" is frozen.
#pragma once

#include <algorithm>
#include <array>

#include "gpumem/summary/formats.hpp"
#include "gpumem/summary/table_reader.hpp"

namespace gpumem::summary {

[[nodiscard]] const Format& torchinfo();

namespace torchinfo_detail {

inline constexpr std::size_t kMostColumns = 16;

/// Which cell after the layer's name holds what; -1: not printed.
struct Columns {
  std::size_t count = 0;
  int output_shape = -1;
  int input_shape = -1;
  int parameters = -1;
  int kernel_shape = -1;
};

inline Columns columns_of(std::string_view header) {
  Columns columns;
  header = trim(header);
  // Titles hold single spaces, columns are two apart.
  for (std::size_t at = header.find("  "); at != std::string_view::npos; at = header.find("  ", at)) {
    at = header.find_first_not_of(' ', at);
    if (at == std::string_view::npos) break;
    const std::string_view title = header.substr(at, header.find("  ", at) - at);
    const int index = static_cast<int>(columns.count++);
    if (title == "Output Shape") columns.output_shape = index;
    if (title == "Input Shape") columns.input_shape = index;
    if (title == "Param #") columns.parameters = index;
    if (title == "Kernel Shape") columns.kernel_shape = index;
  }
  return columns;
}

struct Row {
  std::string_view name;        ///< "Conv2d (conv1): 1-1"
  std::string_view class_name;  ///< "Conv2d"
  std::size_t depth = 0;        ///< 0: the model itself
  std::int64_t line = 0;
  std::array<std::string_view, kMostColumns> cells;
  std::size_t cell_count = 0;
};

/// Bytes of the tree drawn before the name: "│    └─", "|    + ".
inline std::size_t tree_bytes(std::string_view line) {
  std::size_t at = 0;
  const auto drawn = [](char byte) {
    return byte == ' ' || byte == '|' || byte == '+' || (static_cast<unsigned char>(byte) & 0x80U) != 0;
  };
  while (at < line.size() && drawn(line[at])) ++at;
  return at;
}

/// Five columns a level: "├─" is 2 wide at depth 1, "│    └─" is 7 wide at depth 2.
inline std::size_t depth_of(std::string_view tree) {
  std::size_t width = 0;
  for (const char byte : tree) width += (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U ? 1 : 0;
  return (width + 3) / 5;
}

/// Cuts the cell that begins at `at`, moving it behind it: a bracketed list whole, else up to a space.
inline std::string_view next_cell(std::string_view line, std::size_t& at) {
  at = std::min(line.find_first_not_of(' ', at), line.size());
  const std::size_t begin = at;
  std::int64_t open = 0;
  for (; at < line.size() && (open > 0 || line[at] != ' '); ++at) {
    if (line[at] == '[') ++open;
    if (line[at] == ']') --open;
  }
  return line.substr(begin, at - begin);
}

inline std::optional<Row> cut(std::string_view line, std::int64_t number) {
  Row row;
  row.line = number;
  const std::size_t tree = tree_bytes(line);
  row.depth = depth_of(line.substr(0, tree));
  std::size_t at = tree;
  const auto name_byte = [](char byte) {
    return is_digit(byte) || byte == '_' || byte == '.' || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
  };
  while (at < line.size() && name_byte(line[at])) ++at;
  if (at == tree) return std::nullopt;
  row.class_name = line.substr(tree, at - tree);
  if (line.substr(at).starts_with(" (")) {
    const std::size_t closing = line.find(')', at);
    if (closing != std::string_view::npos) at = closing + 1;
  }
  if (line.substr(at).starts_with(": ")) {
    at += 2;
    while (at < line.size() && (is_digit(line[at]) || line[at] == '-')) ++at;
  }
  row.name = line.substr(tree, at - tree);
  if (at < line.size() && line[at] != ' ') return std::nullopt;
  while (row.cell_count < kMostColumns) {
    const std::string_view cell = next_cell(line, at);
    if (cell.empty()) break;
    row.cells[row.cell_count++] = cell;
  }
  return row;
}

class Reader : private TableReader {
 public:
  using TableReader::TableReader;

  core::Result<model::ModelGraph> read() {
    columns_ = columns_of(lines().line());
    constexpr std::int64_t kMegabyte = 1'000'000;
    if (read_head() && read_rows()) {
      settle(read_foot());
      read_input_size(kMegabyte);
      read_output_size(kMegabyte);
    }
    return std::move(builder()).build();
  }

 private:
  bool read_head() {
    if (columns_.parameters < 0) {
      return refuse("the table has no column 'Param #'; add \"num_params\" to col_names");
    }
    if (columns_.output_shape < 0) {
      return refuse(
          "the table has no column 'Output Shape'; give summary() an input_size and keep \"output_size\" "
          "in col_names");
    }
    if (columns_.count > kMostColumns) return refuse("the table has more columns than torchinfo prints");
    return read_rule('=');
  }

  bool read_rows() {
    std::optional<Row> held;  // a row is a container if the next one is deeper, so one row waits
    while (lines().next()) {
      const std::string_view line = lines().line();
      if (is_rule(line, '=')) return !held || read_row(*held, false);
      if (trim(line).empty()) continue;
      const std::optional<Row> row = cut(line, lines().number());
      if (!row || row->cell_count > columns_.count) {
        return refuse(core::quoted(trim(line)) +
                      " is not a row of the table ('Conv2d: 1-1  [32, 64, 112, 112]  9,408'); the file is cut off "
                      "or edited");
      }
      // verbose=2 lists a layer's own tensors (weight, bias) below it, with cells left blank.
      const bool tensor = row->cell_count < columns_.count && held && row->depth > 0 && row->cell_count > 0;
      if (tensor) continue;
      if (row->cell_count < columns_.count) return refuse("the row has too few cells; the file is cut off");
      if (held && held->depth == 0) learn_smaller(*held, *row);
      if (held && !read_row(*held, row->depth > held->depth)) return false;
      held = row;
    }
    return refuse_cut_off();
  }

  /// A model may return something else than one row a sample, as a detection net its boxes ([100, 4]): then the first
  /// row below it has the smaller first axis, and that is the batch.
  void learn_smaller(const Row& model, const Row& first) {
    const auto whole = printed_batch(cell(model, columns_.output_shape));
    const auto part = printed_batch(cell(first, columns_.output_shape));
    const bool deeper = whole && part && *part > 0 && *part < *whole;
    if (deeper && cell(model, columns_.input_shape) == "--") learn_batch(cell(first, columns_.output_shape));
  }

  /// Holds the rows' sum against the foot. A foot alone is no model.
  void settle(std::optional<std::int64_t> total) {
    if (builder().graph().layers().empty()) return;
    core::Checked shown = 0;
    for (const model::Layer& layer : builder().graph().layers()) shown += core::Checked(layer.parameters);
    const auto sum = shown.value();
    if (builder().failed() || !total || !sum) return;
    if (*total > *sum && !options().lenient) hold_unseen(*total - *sum);
    if (*total < *sum) tie_head(*sum - *total);
  }

  /// What the foot counts and no row shows. A cut table says "(recursive)" at every call of a module that is called
  /// more than once and in parts, such as the lists of a FeaturePyramidNetwork, and its count nowhere.
  void hold_unseen(std::int64_t parameters) {
    builder().warn("the rows hold " + core::with_separators(parameters) +
                       " parameters fewer than the total: they are counted, and what computes with them is not printed",
                   lines().number());
    builder().add({.name = "parameters of no row",
                   .op = options().vocabulary->find_op(model::kParameterOp),
                   .parameters = parameters,
                   .line = lines().number()});
  }

  /// An output layer that shares the embedding's weight and has a bias of its own shows both (ModernBERT): the foot has
  /// the weight once.
  void tie_head(std::int64_t twice) {
    const model::ModelGraph& graph = builder().graph();
    const auto embeds = [&](const model::Layer& layer) {
      return graph.op(layer) == "embedding" && layer.parameters == twice;
    };
    const auto biased = [&](const model::Layer& layer) {
      const auto outputs = graph.outputs(layer);
      const bool wide = outputs.size() == 1 && outputs[0].rank() > 0;
      return wide && graph.op(layer) == "linear" && layer.parameters - twice == outputs[0][outputs[0].rank() - 1].size;
    };
    const auto layers = graph.layers();
    const auto head = std::find_if(layers.rbegin(), layers.rend(), biased);
    if (head == layers.rend() || std::none_of(layers.begin(), layers.end(), embeds)) return;
    builder().tie(static_cast<model::LayerIndex>(std::distance(head, layers.rend()) - 1), twice);
  }

  /// What "Param #" says: "--", "9,408", "(9,408)" or "(recursive)".
  struct Count {
    std::int64_t parameters = 0;
    bool frozen = false;
    bool recursive = false;
  };

  static core::Result<Count> count_of(std::string_view cell) {
    Count count;
    if (cell == "--") return count;
    if (cell == "(recursive)") return Count{0, false, true};
    if (cell.size() > 2 && cell.front() == '(' && cell.back() == ')') {
      count.frozen = true;
      cell = cell.substr(1, cell.size() - 2);
    }
    const core::Result<std::int64_t> parsed = parse_count(cell);
    if (!parsed) return parsed.error();
    count.parameters = *parsed;
    return count;
  }

  [[nodiscard]] static std::string_view cell(const Row& row, int column) {
    return column < 0 ? std::string_view("--") : row.cells[static_cast<std::size_t>(column)];
  }

  /// "layer1" of "Sequential (layer1): 1-5"; nothing where the table shows no variables.
  static std::string_view variable_of(const Row& row) {
    const std::size_t open = row.name.find(" (");
    const std::size_t close = row.name.find(')', std::min(open, row.name.size()));
    if (open == std::string_view::npos || close == std::string_view::npos) return {};
    return row.name.substr(open + 2, close - open - 2);
  }

  /// Closes the containers that this row follows, and opens its own if it is one. The model itself is none.
  void place(const Row& row, bool has_children) {
    for (; !open_.empty() && open_.back() >= row.depth; open_.pop_back()) builder().close_scope();
    if (!has_children || row.depth == 0) return;
    builder().open_scope(variable_of(row), row.class_name);
    open_.push_back(row.depth);
  }

  bool read_row(const Row& row, bool has_children) {
    const core::Result<Count> count = count_of(cell(row, columns_.parameters));
    if (!count) return refuse(row.line, count.error());
    if (cell(row, columns_.input_shape) != "--") learn_batch(cell(row, columns_.input_shape));
    const std::string_view shape = cell(row, columns_.output_shape);
    shapes().clear();
    if (shape != "--" && !read_shapes(shape, row.name, row.line)) return false;
    const model::OpTraits* op = options().vocabulary->find_torch(row.class_name);
    place(row, has_children && op == nullptr);
    if (row.depth == 0) builder().table_class(row.class_name);
    if (op != nullptr) return add(row, op, *count);
    if (has_children) return add_own_parameters(row, *count);
    return add_unknown(row, *count);
  }

  bool add(const Row& row, const model::OpTraits* op, const Count& count) {
    builder().add({.name = row.name,
                   .class_name = row.class_name,
                   .op = op,
                   .outputs = shapes(),
                   .attributes = kernel_of(row),
                   .parameters = count.parameters,
                   .frozen = count.frozen,
                   .line = row.line});
    return !builder().failed();
  }

  /// The kernel column, as the attribute kernel_size where it is a list of numbers.
  std::span<const model::Attribute> kernel_of(const Row& row) {
    const std::string_view kernel = cell(row, columns_.kernel_shape);
    if (kernel == "--" || !parse_shapes(kernel, 0, kernel_) || kernel_.size() != 1) return {};
    std::vector<std::int64_t> sizes;
    for (std::size_t axis = 0; axis < kernel_[0].rank(); ++axis) sizes.push_back(kernel_[0][axis].size);
    attributes_.assign(1, {"kernel_size", std::move(sizes)});
    return attributes_;
  }

  /// A container is not a layer, but it may hold parameters of its own.
  bool add_own_parameters(const Row& row, const Count& count) {
    if (count.parameters == 0) return true;
    builder().warn("container " + core::quoted(row.name) + " holds " + core::with_separators(count.parameters) +
                       " parameters of its own; what it computes with them is not printed",
                   row.line);
    builder().add({.name = row.name,
                   .class_name = row.class_name,
                   .op = options().vocabulary->find_op(model::kParameterOp),
                   .parameters = count.parameters,
                   .frozen = count.frozen,
                   .line = row.line});
    return !builder().failed();
  }

  /// Whether the open container is a block that gpumem knows: what a cut table shows of its shortcut is known, too.
  bool in_block() {
    const model::ModelGraph& graph = builder().graph();
    const std::string_view open = graph.class_name(graph.scope(builder().current_scope()));
    return !is_bare_container(open) && options().vocabulary->find_cut(open) != nullptr;
  }

  bool add_unknown(const Row& row, const Count& count) {
    const bool structural = row.depth == 0 || is_bare_container(row.class_name);
    const bool holds = count.parameters > 0;
    if (!holds && (structural || shapes().empty())) return true;
    const model::OpTraits* block = options().vocabulary->find_cut(row.class_name);
    const bool known = block != nullptr && (!is_bare_container(row.class_name) || in_block());
    if (known && holds && row.depth > 0 && shapes().size() == 1) return add(row, block, count);
    const model::OpTraits* opaque = holds ? opaque_op() : nullptr;
    if (holds && opaque == nullptr && !options().lenient) {
      return refuse_unknown(row.line, row.name, count.parameters,
                            row.depth == 0 ? "" : "if it is a container, print the summary with a greater depth; ");
    }
    return add(row, opaque, count);
  }

  Columns columns_;
  std::vector<std::size_t> open_;  ///< the depths of the containers that are open
  std::vector<core::Shape> kernel_;
  std::vector<model::Attribute> attributes_;
};

inline std::optional<std::size_t> sniff(std::string_view text, std::size_t from) {
  return find_header(text, from, [](std::string_view above, std::string_view line) {
    return line.starts_with("Layer (type:") || line.starts_with("Layer (type (") ||
           (line.starts_with("Layer (type) ") && is_rule(above, '='));
  });
}

inline core::Result<model::ModelGraph> parse(std::string_view text, std::size_t begin, const ReadOptions& options) {
  return Reader(torchinfo(), text, begin, options).read();
}

}  // namespace torchinfo_detail

inline const Format& torchinfo() {
  static constexpr Format kFormat = {"torchinfo", "torchinfo.summary(model, input_size, depth=10)",
                                     torchinfo_detail::sniff, torchinfo_detail::parse};
  return kFormat;
}

}  // namespace gpumem::summary
