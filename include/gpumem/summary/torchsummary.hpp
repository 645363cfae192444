// Input: the table that torchsummary's summary(model, input_size) prints.
// Output: its layers in call order.
//
//   ----------------------------------------------------------------
//           Layer (type)               Output Shape         Param #
//   ================================================================
//               Conv2d-1         [-1, 64, 112, 112]           9,408
//
// One row a call, containers after their children. A row whose class no op describes and which holds no
// parameters is a container, kept as a mark. torchsummary counts .weight and .bias only.
#pragma once

#include "gpumem/summary/formats.hpp"
#include "gpumem/summary/table_reader.hpp"

namespace gpumem::summary {

[[nodiscard]] const Format& torchsummary();

namespace torchsummary_detail {

/// The three cells of a row, cut but not yet understood.
struct Row {
  std::string_view name;        ///< "Conv2d-1"
  std::string_view class_name;  ///< "Conv2d"
  std::string_view shape;       ///< "[-1, 64, 112, 112]"
  std::string_view count;       ///< "9,408"
};

inline std::optional<Row> cut(std::string_view line) {
  line = trim(line);
  const std::size_t name_end = line.find(' ');
  const std::size_t count_begin = line.rfind(' ');
  if (name_end == std::string_view::npos || count_begin <= name_end) return std::nullopt;
  Row row;
  row.name = line.substr(0, name_end);
  row.count = line.substr(count_begin + 1);
  row.shape = trim(line.substr(name_end, count_begin - name_end));
  const std::size_t dash = row.name.rfind('-');
  if (dash == std::string_view::npos || dash == 0 || dash + 1 == row.name.size()) return std::nullopt;
  if (row.name.find_first_not_of("0123456789", dash + 1) != std::string_view::npos) return std::nullopt;
  if (row.shape.empty() || row.shape.front() != '[' || row.shape.back() != ']') return std::nullopt;
  row.class_name = row.name.substr(0, dash);
  return row;
}

class Reader : private TableReader {
 public:
  using TableReader::TableReader;

  core::Result<model::ModelGraph> read() {
    constexpr std::int64_t kMegabyte = std::int64_t{1} << 20;
    if (read_rule('=') && read_rows()) {
      read_foot();
      read_input_size(kMegabyte);
    }
    return std::move(builder()).build();
  }

 private:
  bool read_rows() {
    while (lines().next()) {
      const std::string_view line = lines().line();
      if (is_rule(line, '=')) return true;
      if (!trim(line).empty() && !read_row(line)) return false;
    }
    return refuse_cut_off();
  }

  bool read_row(std::string_view line) {
    const std::optional<Row> row = cut(line);
    if (!row) {
      return refuse(
          core::quoted(trim(line)) +
          " is not a row of the table ('Conv2d-1  [-1, 64, 112, 112]  9,408'); the file is cut off or edited");
    }
    const core::Result<std::int64_t> count = parse_count(row->count);
    if (!count) return refuse(lines().number(), count.error());
    if (!read_shapes(row->shape, row->name, lines().number())) return false;
    const model::OpTraits* op = options().vocabulary->find_torch(row->class_name);
    const bool container = op == nullptr && *count == 0;
    if (container) {
      if (!shapes().empty()) builder().mark_block(row->class_name, shapes()[0]);
      return true;
    }
    if (op == nullptr) op = opaque_op();
    if (op == nullptr && !options().lenient) return refuse_unknown(lines().number(), row->name, *count);
    if (op != nullptr && op->parameters_of_other_names && *count == 0) {
      return refuse(lines().number(), {core::ErrorCode::missing_information,
                                       "torchsummary does not count the parameters of " + core::quoted(row->name) +
                                           "; use torchinfo or print(model)",
                                       {}});
    }
    builder().add({.name = row->name,
                   .class_name = row->class_name,
                   .op = op,
                   .outputs = shapes(),
                   .parameters = *count,
                   .line = lines().number()});
    return !builder().failed();
  }
};

inline std::optional<std::size_t> sniff(std::string_view text, std::size_t from) {
  return find_header(text, from, [](std::string_view above, std::string_view line) {
    // Right-aligned cells, under a rule of '-'. Without the rule the alignment must tell.
    const bool ruled = is_rule(above, '-');
    const bool other_rule = is_rule(above, '=') || is_rule(above, '_');
    return trim_left(line).starts_with("Layer (type) ") && !other_rule && (ruled || line.starts_with("    "));
  });
}

inline core::Result<model::ModelGraph> parse(std::string_view text, std::size_t begin, const ReadOptions& options) {
  return Reader(torchsummary(), text, begin, options).read();
}

}  // namespace torchsummary_detail

inline const Format& torchsummary() {
  static constexpr Format kFormat = {"torchsummary", "torchsummary.summary(model, input_size)",
                                     torchsummary_detail::sniff, torchsummary_detail::parse};
  return kFormat;
}

}  // namespace gpumem::summary
