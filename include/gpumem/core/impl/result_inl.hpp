#pragma once

#include "gpumem/core/result.hpp"

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

}  // namespace gpumem::core
