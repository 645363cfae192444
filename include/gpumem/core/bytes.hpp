// Input: numbers of bytes and counts of elements, or their texts.
// Output: the same as types of their own: Bytes, with text for people, and Checked, whose sums and products tell when
// they no longer fit 64 bits. Add bytes only with Checked.
// Units: bytes, 1 KiB = 1024 bytes; of Checked, whatever the caller counts.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace gpumem::core {

/// A number of bytes, 0 to 2^63 - 1. It has no arithmetic on purpose: byte sums go through Checked.
class Bytes {
 public:
  constexpr Bytes() = default;
  constexpr explicit Bytes(std::int64_t count) : count_(count) {}

  [[nodiscard]] constexpr std::int64_t count() const { return count_; }
  [[nodiscard]] constexpr double mib() const { return static_cast<double>(count_) / (1024.0 * 1024.0); }
  [[nodiscard]] constexpr double gib() const { return mib() / 1024.0; }

  friend constexpr auto operator<=>(const Bytes&, const Bytes&) = default;  // NOLINT(modernize-use-nullptr): its bug

 private:
  std::int64_t count_ = 0;
};

/// "512 B", "97.5 MiB", "7.72 GiB": three significant digits or more, the largest unit that is at least 1.
[[nodiscard]] std::string to_string(Bytes bytes);

/// The bytes that people write: "2GiB", "512 MiB", "1.5GiB", "100 B", "0". Nothing for any other text, also for a
/// number without a unit ("2" is rarely meant as two bytes), and beyond 2^62 bytes.
[[nodiscard]] std::optional<Bytes> parse_bytes(std::string_view text);

/// "0.05", "1e-3": a finite number, whatever the locale is. Nothing for any other text, also for one with blanks or a
/// plus sign, and for hexadecimals.
[[nodiscard]] std::optional<double> parse_number(std::string_view text);

/// "12", "-1": a whole number of 64 bits in decimal digits. Nothing for any other text, as for parse_number().
[[nodiscard]] std::optional<std::int64_t> parse_whole(std::string_view text);

/// "25,557,032": a count with thousands separators, as model summaries print it.
[[nodiscard]] std::string with_separators(std::int64_t count);

namespace literals {
consteval Bytes operator""_KiB(unsigned long long count) { return Bytes(static_cast<std::int64_t>(count) << 10); }
consteval Bytes operator""_MiB(unsigned long long count) { return Bytes(static_cast<std::int64_t>(count) << 20); }
consteval Bytes operator""_GiB(unsigned long long count) { return Bytes(static_cast<std::int64_t>(count) << 30); }
}  // namespace literals

/// A non-negative 64-bit count that remembers overflow: once a step has left the range, every further
/// step stays invalid, so a formula is written plainly and asked once at its end.
class Checked {
 public:
  constexpr Checked() = default;
  /// A negative start is already invalid: no count is below zero.
  constexpr Checked(std::int64_t value) : value_(value), valid_(value >= 0) {}  // NOLINT: counts convert

  constexpr Checked& operator+=(const Checked& other) {
    valid_ = valid_ && other.valid_ && !__builtin_add_overflow(value_, other.value_, &value_);
    return *this;
  }
  constexpr Checked& operator*=(const Checked& other) {
    valid_ = valid_ && other.valid_ && !__builtin_mul_overflow(value_, other.value_, &value_);
    return *this;
  }
  friend constexpr Checked operator+(Checked left, const Checked& right) { return left += right; }
  friend constexpr Checked operator*(Checked left, const Checked& right) { return left *= right; }

  [[nodiscard]] constexpr bool valid() const { return valid_; }

  /// The count, or nothing if any step overflowed.
  [[nodiscard]] constexpr std::optional<std::int64_t> value() const {
    return valid_ ? std::optional<std::int64_t>(value_) : std::nullopt;
  }

 private:
  std::int64_t value_ = 0;
  bool valid_ = true;
};

/// No GPU has as much memory; a few such sizes still add up within 64 bits.
inline constexpr std::int64_t kMostBytes = std::int64_t{1} << 60;

/// The product of sizes, none of which is negative; kMostBytes where it is larger.
[[nodiscard]] constexpr std::int64_t bounded_product(std::initializer_list<std::int64_t> sizes) {
  Checked product = 1;
  for (const std::int64_t size : sizes) product *= size;
  return std::min(product.value().value_or(kMostBytes), kMostBytes);
}

/// The sum of sizes, none of which is negative; kMostBytes where it is larger.
[[nodiscard]] constexpr std::int64_t bounded_sum(std::initializer_list<std::int64_t> sizes) {
  std::int64_t sum = 0;
  for (const std::int64_t size : sizes) {
    if (size < 0 || size > kMostBytes - sum) return kMostBytes;
    sum += size;
  }
  return sum;
}

/// The next multiple of `multiple`; beyond kMostBytes that of kMostBytes.
[[nodiscard]] constexpr std::int64_t rounded_up(std::int64_t size, std::int64_t multiple) {
  return (std::min(size, kMostBytes) + multiple - 1) / multiple * multiple;
}

}  // namespace gpumem::core
