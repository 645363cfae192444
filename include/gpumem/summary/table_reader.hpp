// Input: a text in which a table has been found.
// Output: what the readers of all tables share: errors with a line number, the rule below the header, and the totals
// below the table.
#pragma once

#include <algorithm>
#include <optional>

#include "gpumem/model/graph_builder.hpp"
#include "gpumem/summary/formats.hpp"
#include "gpumem/summary/text.hpp"

namespace gpumem::summary {

/// Reads the printed total below a summary, a table or a tree, and returns it if there is one; a second summary of its
/// format is an error.
std::optional<std::int64_t> read_foot(const Format& format, std::string_view text, Lines& lines,
                                      model::GraphBuilder& builder);

class TableReader {
 public:
  TableReader(const Format& format, std::string_view text, std::size_t begin, const ReadOptions& options);

 protected:
  /// Fails the graph at this line and returns false, so that a reader can `return refuse(...)`.
  bool refuse(std::int64_t line, core::Error error);
  /// malformed_input at the current line.
  bool refuse(std::string message);
  /// The op of a layer of an unknown class that holds parameters: one whose memory is bounded. Null if it is read
  /// leniently, or if no op is for that.
  [[nodiscard]] const model::OpTraits* opaque_op() const {
    return options_.lenient ? nullptr : options_.vocabulary->find_op(model::kOpaqueOp);
  }
  /// The error for a layer of an unknown class that holds parameters.
  bool refuse_unknown(std::int64_t line, std::string_view name, std::int64_t parameters, std::string_view hint = {});
  /// The table ends before its closing line.
  bool refuse_cut_off();

  /// Steps over the rule below the header.
  bool read_rule(char of);
  std::optional<std::int64_t> read_foot() { return summary::read_foot(format_, text_, lines_, builder_); }
  /// Reads "Input size (MB): 0.57", or in another unit, below the total, of the printed batch; a megabyte is this many
  /// bytes.
  void read_input_size(std::int64_t megabyte);
  /// Reads "Forward/backward pass size (MB): 178.09" after it: twice what all layers with parameters leave, in
  /// float32.
  void read_output_size(std::int64_t megabyte);
  /// Parses the `cell` of this layer into shapes(), learning the batch size from the first one.
  bool read_shapes(std::string_view cell, std::string_view layer, std::int64_t line);

  [[nodiscard]] const std::vector<core::Shape>& shapes() const { return shapes_; }
  [[nodiscard]] std::vector<core::Shape>& shapes() { return shapes_; }
  [[nodiscard]] Lines& lines() { return lines_; }
  [[nodiscard]] model::GraphBuilder& builder() { return builder_; }
  [[nodiscard]] const ReadOptions& options() const { return options_; }

  /// The first size printed anywhere is the model's own, and its first dimension the batch.
  void learn_batch(std::string_view cell);

 private:
  /// "1.15" of "(GB)": 115 hundredths of 10^9 bytes.
  struct PrintedSize {
    std::int64_t hundredths = 0;
    std::int64_t unit = 1;
  };
  /// Steps to the line that begins so, and reads its figure; nothing if it is none.
  std::optional<PrintedSize> size_behind(std::string_view mark, std::int64_t megabyte);

  const Format& format_;
  std::string_view text_;
  Lines lines_;
  const ReadOptions& options_;
  model::GraphBuilder builder_;
  std::vector<core::Shape> shapes_;
  bool ambiguous_ = false;        ///< said once that batch 1 does not tell the batch axis
  std::int64_t batch_size_ = -1;  ///< the batch the summary was made with; 0: printed as -1 or None; -1: not seen
};

inline std::optional<std::int64_t> read_foot(const Format& format, std::string_view text, Lines& lines,
                                             model::GraphBuilder& builder) {
  const auto refuse = [&](std::int64_t line, core::Error error) {
    error.place.line = line;
    builder.fail(std::move(error));
  };
  if (const auto second = format.sniff(text, lines.offset())) {
    refuse(line_number(text, *second),
           {core::ErrorCode::unknown_format, "a second summary begins here; keep one of them in the file", {}});
    return std::nullopt;
  }
  while (lines.next()) {
    const auto total = parse_total(lines.line());
    if (!total) continue;
    if (*total) builder.printed_total(**total, lines.number());
    if (!*total) refuse(lines.number(), total->error());
    return *total ? std::optional(**total) : std::nullopt;
  }
  return std::nullopt;
}

inline TableReader::TableReader(const Format& format, std::string_view text, std::size_t begin,
                                const ReadOptions& options)
    : format_(format), text_(text), lines_(text, begin), options_(options), builder_(format.name, options.file) {
  builder_.infer_edges();
  // Shorter rows than this hold no layer, so no text can ask for more memory than a few times its size.
  constexpr std::size_t kShortestRow = 32;
  const std::string_view table = text.substr(begin);
  const auto lines = static_cast<std::size_t>(std::count(table.begin(), table.end(), '\n'));
  builder_.reserve(std::min(lines, table.size() / kShortestRow));
  lines_.next();  // the header, found by sniff
}

inline bool TableReader::refuse(std::int64_t line, core::Error error) {
  error.place.line = line;
  builder_.fail(std::move(error));
  return false;
}

inline bool TableReader::refuse(std::string message) {
  return refuse(lines_.number(), {core::ErrorCode::malformed_input, std::move(message), {}});
}

inline bool TableReader::refuse_unknown(std::int64_t line, std::string_view name, std::int64_t parameters,
                                        std::string_view hint) {
  return refuse(line, {core::ErrorCode::unknown_layer,
                       "layer " + core::quoted(name) + " holds " + core::with_separators(parameters) +
                           " parameters, and no op of that name is known; " + std::string(hint) +
                           "lenient reading (`lenient`) estimates a lower bound",
                       {}});
}

inline bool TableReader::refuse_cut_off() {
  return refuse("the table ends without its closing line; the file is cut off");
}

inline bool TableReader::read_rule(char of) {
  if (!lines_.next()) return refuse_cut_off();
  if (is_rule(lines_.line(), of)) return true;
  return refuse("the line below the table's header should be a rule of '" + std::string(1, of) + "'");
}

namespace table_reader_detail {

/// "1,234.56" or "1,234" in hundredths.
inline std::optional<std::int64_t> hundredths_of(std::string_view text) {
  const std::size_t point = std::min(text.find('.'), text.size());
  const auto whole = parse_count(text.substr(0, point));
  std::string_view decimals = text.substr(point);
  if (decimals.empty()) decimals = ".00";
  constexpr std::int64_t kLargest = std::int64_t{1} << 30;
  const bool two = decimals.size() == 3 && is_digit(decimals[1]) && is_digit(decimals[2]);
  if (!whole || *whole > kLargest / 100 || !two) return std::nullopt;
  return *whole * 100 + std::int64_t{10} * (decimals[1] - '0') + (decimals[2] - '0');
}

/// The bytes of the unit in front of the colon: " (MB)". Newer versions of torchinfo choose it by the size.
inline std::optional<std::int64_t> unit_of(std::string_view text, std::int64_t megabyte) {
  constexpr std::int64_t kStep = 1000;
  text = trim(text);
  if (text.empty()) return 1;
  if (text == "(KB)") return megabyte / kStep;
  if (text == "(MB)") return megabyte;
  if (text == "(GB)") return megabyte * kStep;
  if (text == "(TB)") return megabyte * kStep * kStep;
  return std::nullopt;
}

}  // namespace table_reader_detail

inline std::optional<TableReader::PrintedSize> TableReader::size_behind(std::string_view mark, std::int64_t megabyte) {
  while (lines_.next()) {
    const std::string_view line = trim(lines_.line());
    if (!line.starts_with(mark)) continue;
    const std::size_t colon = std::min(line.find(':', mark.size()), line.size());
    const auto unit = table_reader_detail::unit_of(line.substr(mark.size(), colon - mark.size()), megabyte);
    const auto hundredths = table_reader_detail::hundredths_of(trim(line.substr(std::min(colon + 1, line.size()))));
    if (!unit || !hundredths) return std::nullopt;
    return PrintedSize{*hundredths, *unit};
  }
  return std::nullopt;
}

inline void TableReader::read_input_size(std::int64_t megabyte) {
  const auto size = size_behind("Input size", megabyte);
  if (!size) return;
  const std::int64_t samples = std::max<std::int64_t>(batch_size_, 1);
  const auto bytes = [&](std::int64_t halves) {
    const core::Checked product = core::Checked(std::max<std::int64_t>(halves, 0)) * core::Checked(size->unit);
    return product.value().value_or(0) / (200 * samples);
  };
  builder_.printed_input({bytes(2 * size->hundredths - 1), bytes(2 * size->hundredths + 1) + 1});
}

inline void TableReader::read_output_size(std::int64_t megabyte) {
  const auto size = size_behind("Forward/backward pass size", megabyte);
  if (!size || batch_size_ <= 0) return;
  constexpr std::int64_t kBytesAnElement = 8;  // of four bytes, counted twice
  const auto bytes = (core::Checked(size->hundredths) * core::Checked(size->unit)).value();
  if (bytes) builder_.printed_outputs(*bytes / 100 / kBytesAnElement / batch_size_);
}

inline void TableReader::learn_batch(std::string_view cell) {
  if (batch_size_ >= 0) return;
  batch_size_ = printed_batch(cell).value_or(0);
  if (batch_size_ > 0) builder_.printed_batch_size(batch_size_);
}

inline bool TableReader::read_shapes(std::string_view cell, std::string_view layer, std::int64_t line) {
  learn_batch(cell);
  if (const core::Status shaped = parse_shapes(cell, batch_size_, shapes_); !shaped) {
    constexpr std::size_t kLongestName = 200;
    core::Error error = shaped.error();
    error.place.element = core::shortened(layer, kLongestName);
    return refuse(line, std::move(error));
  }
  const auto several = [](const core::Shape& shape) { return shape.rank() > 0 && shape[0].size > 1; };
  if (batch_size_ == 1 && !ambiguous_ && std::any_of(shapes_.begin(), shapes_.end(), several)) {
    ambiguous_ = true;
    builder_.warn("the summary is printed at batch 1, where every first axis looks like a multiple of the batch, as " +
                      core::quoted(cell) + " does; print with batch 2 or more",
                  line);
  }
  return true;
}

}  // namespace gpumem::summary
