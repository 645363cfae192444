// Input: the text of a summary.
// Output: its lines with their numbers, its counts and its shapes. All text formats share this; each format knows its
// own columns and rows.
#pragma once

#include <cstdint>
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

}  // namespace gpumem::summary
