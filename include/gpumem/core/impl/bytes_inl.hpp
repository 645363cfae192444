#pragma once

#include "gpumem/core/bytes.hpp"

#include <array>
#include <cstdio>

namespace gpumem::core {

GPUMEM_INLINE std::string to_string(Bytes bytes) {
  static constexpr std::array<const char*, 6> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes.count() < 1024) return std::to_string(bytes.count()) + " B";
  double value = static_cast<double>(bytes.count()) / 1024.0;
  std::size_t unit = 0;
  while (value >= 1024.0 && unit + 1 < kUnits.size()) {
    value /= 1024.0;
    ++unit;
  }
  std::array<char, 32> text{};
  const int decimals = value < 10.0 ? 2 : 1;
  std::snprintf(text.data(), text.size(), "%.*f %s", decimals, value, kUnits[unit]);
  return text.data();
}

GPUMEM_INLINE std::string with_separators(std::int64_t count) {
  std::string digits = std::to_string(count);
  const std::size_t first = digits[0] == '-' ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

}  // namespace gpumem::core
