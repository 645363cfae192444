#pragma once

#include "gpumem/core/result.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace gpumem::core {

GPUMEM_INLINE std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument: return "invalid_argument";
    case ErrorCode::unknown_gpu: return "unknown_gpu";
    case ErrorCode::unreadable_file: return "unreadable_file";
    case ErrorCode::unknown_format: return "unknown_format";
    case ErrorCode::malformed_input: return "malformed_input";
    case ErrorCode::unknown_layer: return "unknown_layer";
    case ErrorCode::missing_information: return "missing_information";
    case ErrorCode::overflow: return "overflow";
    case ErrorCode::deadline_exceeded: return "deadline_exceeded";
  }
  return "unknown";
}

GPUMEM_INLINE int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::unknown_gpu: return 2;
    case ErrorCode::unreadable_file:
    case ErrorCode::unknown_format:
    case ErrorCode::malformed_input:
    case ErrorCode::unknown_layer: return 3;
    case ErrorCode::missing_information:
    case ErrorCode::overflow:
    case ErrorCode::deadline_exceeded: return 4;
  }
  return 4;
}

namespace error_detail {

GPUMEM_INLINE std::string printable(std::string text) {
  // A name out of an untrusted file must not speak to the terminal.
  for (char& byte : text) {
    if (static_cast<unsigned char>(byte) < 0x20 || byte == 0x7F) byte = '?';
  }
  return text;
}

}  // namespace error_detail

GPUMEM_INLINE std::string to_string(const Error& error) {
  std::string text;
  if (!error.place.file.empty()) {
    text += error.place.file;
    if (error.place.line > 0) text += ":" + std::to_string(error.place.line);
    text += ": ";
  } else if (error.place.line > 0) {
    text += "line " + std::to_string(error.place.line) + ": ";
  }
  constexpr std::size_t kLongestElement = 250;
  if (!error.place.element.empty()) text += shortened(error.place.element, kLongestElement) + ": ";
  return error_detail::printable(text + error.message);
}

GPUMEM_INLINE std::string shortened(std::string_view text, std::size_t longest) {
  if (text.size() <= longest) return std::string(text);
  // What follows the cut must not be a continuation byte.
  while (longest > 0 && (static_cast<unsigned char>(text[longest]) & 0xC0U) == 0x80U) --longest;
  return std::string(text.substr(0, longest)) + "...";
}

GPUMEM_INLINE std::string quoted(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  return "'" + error_detail::printable(shortened(text, kLongest)) + "'";
}

namespace nearest_detail {

/// Longer words are no misspelt names.
inline constexpr std::size_t kLongest = 40;

GPUMEM_INLINE std::string plain(std::string_view word) {
  std::string text;
  for (const char byte : word) {
    if (byte == '-' || byte == '_') continue;
    text += byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte - 'A' + 'a') : byte;
  }
  return text;
}

/// How many letters have to be added, dropped, replaced or swapped with their neighbour (optimal string alignment).
GPUMEM_INLINE std::size_t distance(std::string_view one, std::string_view other) {
  using Row = std::array<std::size_t, kLongest + 1>;
  Row before{};
  Row last{};
  Row row{};
  for (std::size_t column = 0; column <= other.size(); ++column) last[column] = column;
  for (std::size_t line = 1; line <= one.size(); ++line) {
    row[0] = line;
    for (std::size_t column = 1; column <= other.size(); ++column) {
      const bool same = one[line - 1] == other[column - 1];
      row[column] = std::min({last[column] + 1, row[column - 1] + 1, last[column - 1] + (same ? 0 : 1)});
      const bool swapped =
          line > 1 && column > 1 && one[line - 1] == other[column - 2] && one[line - 2] == other[column - 1];
      if (swapped) row[column] = std::min(row[column], before[column - 2] + 1);
    }
    before = last;
    last = row;
  }
  return last[other.size()];
}

}  // namespace nearest_detail

GPUMEM_INLINE std::string_view nearest(std::string_view word, std::span<const std::string_view> names) {
  constexpr std::size_t kShare = 3;
  const std::string written = nearest_detail::plain(word);
  if (written.empty() || written.size() > nearest_detail::kLongest) return {};
  std::size_t least = written.size() / kShare + 1;
  std::string_view found;
  for (const std::string_view name : names) {
    const std::string meant = nearest_detail::plain(name);
    if (meant.size() > nearest_detail::kLongest) continue;
    const std::size_t distance = nearest_detail::distance(written, meant);
    if (distance == least) found = {};
    if (distance >= least) continue;
    least = distance;
    found = name;
  }
  return found;
}

GPUMEM_INLINE std::string did_you_mean(std::string_view word, std::span<const std::string_view> names) {
  const std::string_view near = nearest(word, names);
  return near.empty() ? std::string() : " (did you mean " + quoted(near) + "?)";
}

GPUMEM_INLINE Status check_word(std::string_view setting, std::string_view word, std::string_view words) {
  constexpr std::size_t kLongestKey = 80;
  std::vector<std::string_view> known;
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    known.push_back(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  if (std::find(known.begin(), known.end(), word) != known.end()) return Done{};
  std::string all;
  for (const std::string_view one : known) all.append(all.empty() ? "" : ", ").append(one);
  return Error{ErrorCode::invalid_argument,
               shortened(setting, kLongestKey) + ": " + quoted(word) + " is none of " + all + did_you_mean(word, known),
               {}};
}

}  // namespace gpumem::core
