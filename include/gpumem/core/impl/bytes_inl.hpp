#pragma once

#include "gpumem/core/bytes.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <system_error>

#include "gpumem/core/shape.hpp"

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

namespace bytes_detail {

/// How many bytes the unit has; nothing if there is no such unit.
GPUMEM_INLINE std::optional<double> unit_of(std::string_view text) {
  struct Unit {
    std::string_view name;
    double bytes;
  };
  static constexpr std::array<Unit, 5> kUnits = {
      {{"B", 1.0}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}}};
  for (const Unit& unit : kUnits) {
    if (unit.name == text) return unit.bytes;
  }
  return std::nullopt;
}

}  // namespace bytes_detail

GPUMEM_INLINE std::optional<Bytes> parse_bytes(std::string_view text) {
  constexpr double kMost = 0x1p62;
  double number = 0.0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (error != std::errc() || !(number >= 0.0)) return std::nullopt;
  std::string_view name(stop, static_cast<std::size_t>(end - stop));
  if (name.empty()) return number == 0.0 ? std::optional(Bytes()) : std::nullopt;
  name.remove_prefix(std::min(name.find_first_not_of(' '), name.size()));
  const std::optional<double> unit = bytes_detail::unit_of(name);
  if (!unit || number * *unit > kMost) return std::nullopt;
  return Bytes(static_cast<std::int64_t>(std::llround(number * *unit)));
}

namespace bytes_detail {

/// All of the text as a number.
template <typename Number>
std::optional<Number> all_of(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

}  // namespace bytes_detail

GPUMEM_INLINE std::optional<double> parse_number(std::string_view text) {
  const std::optional<double> number = bytes_detail::all_of<double>(text);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

GPUMEM_INLINE std::optional<std::int64_t> parse_whole(std::string_view text) {
  return bytes_detail::all_of<std::int64_t>(text);
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

GPUMEM_INLINE std::string to_string(const Dim& dim) {
  switch (dim.kind) {
    case Dim::Kind::fixed: return std::to_string(dim.size);
    case Dim::Kind::batch: return dim.size == 1 ? "N" : std::to_string(dim.size) + "N";
    case Dim::Kind::unknown: break;
  }
  return "?";
}

GPUMEM_INLINE std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    if (axis > 0) text += ", ";
    text += to_string(shape[axis]);
  }
  return text + "]";
}

}  // namespace gpumem::core
