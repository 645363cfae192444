#include "cells.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "gpumem/core/bytes.hpp"

namespace gpumem::accuracy {

std::string decimal(double value, int decimals) {
  std::array<char, 400> text{};
  std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  const std::string_view zero = std::string_view(text.data()).substr(1);
  const bool minus_zero = text[0] == '-' && zero.find_first_not_of("0.") == std::string_view::npos;
  return std::string(minus_zero ? zero : std::string_view(text.data()));
}

std::string percent(double share, int decimals) {
  constexpr double kHundred = 100.0;
  return decimal(kHundred * share, decimals) + " %";
}

std::string whole(double value) {
  const std::int64_t rounded = std::llround(value);
  return rounded < 0 ? "-" + core::with_separators(-rounded) : core::with_separators(rounded);
}

std::string plain(std::string_view text) {
  std::string result;
  for (const char byte : text) {
    if (static_cast<unsigned char>(byte) < 0x20) {
      result += '?';
      continue;
    }
    if (std::string_view("\\`*_[]<>|").find(byte) != std::string_view::npos) result += '\\';
    result += byte;
  }
  return result;
}

std::string row(const std::vector<std::string>& cells) {
  std::string text = "|";
  for (const std::string& cell : cells) {
    text += ' ';
    text += cell;
    text += cell.empty() ? "|" : " |";
  }
  return text + "\n";
}

std::string rule(std::size_t columns, std::size_t texts) {
  std::string text = "|";
  for (std::size_t column = 0; column < columns; ++column) text += column < texts ? "---|" : "---:|";
  return text + "\n";
}

}  // namespace gpumem::accuracy
