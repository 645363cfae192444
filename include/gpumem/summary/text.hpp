// Input: the text of a summary.
// Output: its lines with their numbers, its counts and its shapes. All text formats share this; each format knows its
// own columns and rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "gpumem/core/deadline.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/core/shape.hpp"

namespace gpumem::summary {

/// Walks over the lines of a text, without their ends (LF or CRLF). Line numbers are 1-based in the whole text.
class Lines {
 public:
  explicit Lines(std::string_view text, std::size_t begin = 0);

  /// Moves to the next line; false at the end, also where the time of this thread is over (core/deadline.hpp).
  bool next();
  [[nodiscard]] std::string_view line() const { return line_; }
  [[nodiscard]] std::int64_t number() const { return number_; }
  /// Offset of the first byte after the current line.
  [[nodiscard]] std::size_t offset() const { return offset_; }

 private:
  std::string_view text_;
  std::string_view line_;
  std::size_t offset_;
  std::int64_t number_;
  core::Pace pace_;
};

/// 1-based number of the line that holds this offset.
[[nodiscard]] std::int64_t line_number(std::string_view text, std::size_t offset);

[[nodiscard]] constexpr bool is_space(char byte) { return byte == ' ' || byte == '\t'; }
[[nodiscard]] constexpr bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }
/// A Python name, or several joined by dots.
[[nodiscard]] bool is_identifier(std::string_view text);
/// Reads the digits at `at`, moving it behind them; nothing if they exceed 64 bits.
[[nodiscard]] std::optional<std::int64_t> read_digits(std::string_view text, std::size_t& at);

[[nodiscard]] std::string_view trim(std::string_view text);
[[nodiscard]] std::string_view trim_left(std::string_view text);

/// PyTorch's classes that only hold other modules; empty, they are no layers.
[[nodiscard]] constexpr bool is_bare_container(std::string_view class_name) {
  return class_name == "Sequential" || class_name == "ModuleList" || class_name == "ModuleDict";
}

/// A line of ten or more of one character, such as a table's "=====".
[[nodiscard]] bool is_rule(std::string_view line, char of);

/// A whole number, with or without thousands separators: "9,408". Errors (without a place): malformed_input;
/// overflow beyond 2^63 - 1.
[[nodiscard]] core::Result<std::int64_t> parse_count(std::string_view text);

/// "[-1, 64, 112, 112]", "(None, 224, 224, 3)" or nested lists of these: every innermost list is a shape. A
/// dimension of -1 or None is the batch in front and unknown elsewhere. A first dimension that is a multiple
/// of `batch_size` grows with the batch, if the batch size that the summary was made with is known (> 0).
/// Replaces `shapes`. Errors (without a place): malformed_input, overflow.
[[nodiscard]] core::Status parse_shapes(std::string_view text, std::int64_t batch_size,
                                        std::vector<core::Shape>& shapes);

/// The printed size of the first dimension of the first list: the batch size that a summary was made with.
/// Nothing if it is -1, None or not there.
[[nodiscard]] std::optional<std::int64_t> printed_batch(std::string_view text);

/// Finds the header line of a table, "Layer (type...", for which `fits(line above, header line)` holds;
/// returns the offset of the header line.
template <typename Fits>
[[nodiscard]] std::optional<std::size_t> find_header(std::string_view text, std::size_t from, Fits fits) {
  constexpr std::string_view kMark = "Layer (type";
  for (std::size_t at = text.find(kMark, from); at != std::string_view::npos; at = text.find(kMark, at + 1)) {
    const std::size_t before = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1);
    const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
    std::string_view above;
    if (begin > 1) {
      const std::size_t start = text.rfind('\n', begin - 2);
      const std::size_t first = start == std::string_view::npos ? 0 : start + 1;
      above = text.substr(first, begin - 1 - first);
    }
    const std::string_view line = text.substr(begin, text.find('\n', at) - begin);
    if (begin >= from && fits(above, line)) return begin;
    // One long line may hold the mark often: look at each line once.
    at = begin + line.size();
    if (at >= text.size()) break;
  }
  return std::nullopt;
}

/// The total after "Total params:" if the line is one. Errors (without a place): malformed_input, overflow.
[[nodiscard]] std::optional<core::Result<std::int64_t>> parse_total(std::string_view line);

/// Whether this JSON says at its front that it is a recording: no other format may take it for its own.
[[nodiscard]] bool is_recording(std::string_view json);
/// Whether this is JSON that names a model's type, as a HuggingFace config.json does, or a model's sizes, as Megatron's
/// arguments do, and is not a graph.
[[nodiscard]] bool is_config(std::string_view json);

namespace text_detail {

using core::malformed;

/// One dimension as printed; -1 means "-1" and "None".
struct PrintedDim {
  std::int64_t size = 0;
};

/// Reads the dimension at `at`, moving it behind it.
inline core::Result<PrintedDim> read_dim(std::string_view text, std::size_t& at) {
  constexpr std::string_view kNone = "None";
  if (text.substr(at).starts_with(kNone)) {
    at += kNone.size();
    return PrintedDim{-1};
  }
  const bool negative = text[at] == '-';
  if (negative) ++at;
  const std::size_t first = at;
  const auto value = read_digits(text, at);
  if (at == first) return malformed("has a dimension that is not a number in " + core::quoted(text));
  if (!value) return core::Error{core::ErrorCode::overflow, "has a dimension beyond 64 bits", {}};
  if (negative && *value != 1) return malformed("has a negative dimension in " + core::quoted(text));
  if (!negative && *value == 0) return malformed("has a dimension of zero in " + core::quoted(text));
  return PrintedDim{negative ? -1 : *value};
}

inline core::Dim dim_of(PrintedDim printed, std::size_t axis, std::int64_t batch_size) {
  if (printed.size < 0) return axis == 0 ? core::Dim::batch() : core::Dim::unknown();
  if (axis == 0 && batch_size > 0 && printed.size % batch_size == 0) {
    return core::Dim::batch(printed.size / batch_size);
  }
  return core::Dim::fixed(printed.size);
}

}  // namespace text_detail

inline std::optional<std::int64_t> read_digits(std::string_view text, std::size_t& at) {
  core::Checked value = 0;
  for (; at < text.size() && is_digit(text[at]); ++at) {
    value *= 10;
    value += text[at] - '0';
  }
  return value.value();
}

inline bool is_identifier(std::string_view text) {
  const auto word = [](char byte) {
    return byte == '_' || byte == '.' || is_digit(byte) || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
  };
  return !text.empty() && !is_digit(text.front()) && std::all_of(text.begin(), text.end(), word);
}

inline Lines::Lines(std::string_view text, std::size_t begin)
    : text_(text), offset_(begin), number_(line_number(text, begin) - 1) {}

inline bool Lines::next() {
  if (offset_ >= text_.size() || pace_.late()) return false;
  const std::size_t end = std::min(text_.find('\n', offset_), text_.size());
  line_ = text_.substr(offset_, end - offset_);
  if (!line_.empty() && line_.back() == '\r') line_.remove_suffix(1);
  offset_ = std::min(end + 1, text_.size());
  ++number_;
  return true;
}

inline std::int64_t line_number(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  std::int64_t line = 1;
  for (std::size_t at = before.find('\n'); at != std::string_view::npos; at = before.find('\n', at + 1)) ++line;
  return line;
}

inline std::string_view trim_left(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  return text;
}

inline std::string_view trim(std::string_view text) {
  text = trim_left(text);
  while (!text.empty() && (is_space(text.back()) || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

inline bool is_rule(std::string_view line, char of) {
  line = trim(line);
  return line.size() >= 10 && line.find_first_not_of(of) == std::string_view::npos;
}

inline core::Result<std::int64_t> parse_count(std::string_view text) {
  const auto malformed = [&] { return text_detail::malformed(core::quoted(text) + " is not a count"); };
  core::Checked value = 0;
  std::size_t at = 0;
  std::size_t group = 0;
  bool separated = false;
  for (; at < text.size(); ++at) {
    if (text[at] == ',') {
      // A group is three digits, except the first, which may be shorter.
      if (group == 0 || group > 3 || (separated && group != 3)) return malformed();
      separated = true;
      group = 0;
      continue;
    }
    if (!is_digit(text[at])) return malformed();
    value *= 10;
    value += text[at] - '0';
    ++group;
  }
  if (group == 0 || (separated && group != 3)) return malformed();
  if (!value.valid()) {
    return core::Error{core::ErrorCode::overflow, core::quoted(text) + " does not fit 64 bits", {}};
  }
  return *value.value();
}

inline core::Status parse_shapes(std::string_view text, std::int64_t batch_size, std::vector<core::Shape>& shapes) {
  shapes.clear();
  std::int64_t depth = 0;
  constexpr std::size_t kMostShapes = 1024;  // a layer that returns more tensors is a broken line
  core::Shape shape;
  bool open = false;  // the innermost list has begun and holds no list of its own
  for (std::size_t at = 0; at < text.size();) {
    const char byte = text[at];
    if (byte == '[' || byte == '(') {
      if (shape.rank() > 0) return text_detail::malformed("mixes lists and numbers in " + core::quoted(text));
      ++depth;
      open = true;
      ++at;
    } else if (byte == ']' || byte == ')') {
      if (--depth < 0) return text_detail::malformed("closes more brackets than it opens in " + core::quoted(text));
      if (open && shape.rank() > 0) shapes.push_back(shape);
      if (shapes.size() > kMostShapes) return text_detail::malformed("has more than 1,024 shapes in one cell");
      shape = {};
      open = false;
      ++at;
    } else if (byte == ',' || is_space(byte)) {
      ++at;
    } else {
      if (!open) return text_detail::malformed(core::quoted(text) + " is not a shape");
      const core::Result<text_detail::PrintedDim> dim = text_detail::read_dim(text, at);
      if (!dim) return dim.error();
      if (!shape.push_back(text_detail::dim_of(*dim, shape.rank(), batch_size))) {
        return text_detail::malformed("has more than " + std::to_string(core::Shape::kMaxRank) + " dimensions in " +
                                      core::quoted(text));
      }
    }
  }
  if (depth != 0) return text_detail::malformed("leaves a bracket open in " + core::quoted(text));
  return core::Done{};
}

inline std::optional<std::int64_t> printed_batch(std::string_view text) {
  std::size_t at = text.find_first_not_of("[( ");
  if (at == std::string_view::npos || !is_digit(text[at])) return std::nullopt;
  return read_digits(text, at);
}

inline std::optional<core::Result<std::int64_t>> parse_total(std::string_view line) {
  constexpr std::string_view kMark = "Total params:";
  line = trim(line);
  if (!line.starts_with(kMark)) return std::nullopt;
  line = trim(line.substr(kMark.size()));
  // Keras 3 adds the size: "25,636,712 (97.80 MB)".
  return parse_count(line.substr(0, line.find(' ')));
}

inline bool is_recording(std::string_view json) {
  std::size_t at = 0;
  const auto take = [&](std::string_view word) {
    at = json.find_first_not_of(" \t\r\n", at);
    if (at == std::string_view::npos || !json.substr(at).starts_with(word)) return false;
    at += word.size();
    return true;
  };
  return take("{") && take("\"format\"") && take(":") && take("\"gpumem-recording\"");
}

inline bool is_config(std::string_view json) {
  constexpr std::size_t kLargest = std::size_t{1}
                                   << 20;  // of a config: a graph's nodes take more, and are not searched
  constexpr std::size_t kFront = 4096;
  const std::size_t at = json.find_first_not_of(" \t\r\n");
  if (at == std::string_view::npos || json[at] != '{' || json.size() > kLargest) return false;
  if (json.substr(0, kFront).find("\"gpumem-") != std::string_view::npos) return false;
  const auto names = [&](std::string_view field) { return json.find(field) != std::string_view::npos; };
  const bool layers = names("\"num_layers\"") || names("\"encoder_num_layers\"");
  const bool megatron = layers && names("\"hidden_size\"") && names("\"num_attention_heads\"");
  const bool classed = names("\"architectures\"") && names("\"hidden_size\"");  // a class may tell the model type
  return megatron || classed || names("\"model_type\"") || names("\"_class_name\"");
}

}  // namespace gpumem::summary
