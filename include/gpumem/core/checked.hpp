// Input: counts of elements or bytes.
// Output: their sums and products, or the information that one of them no longer fits 64 bits.
// Units: whatever the caller counts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>

namespace gpumem::core {

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
  Checked sum = 0;
  for (const std::int64_t size : sizes) sum += size;
  return std::min(sum.value().value_or(kMostBytes), kMostBytes);
}

/// The next multiple of `multiple`; beyond kMostBytes that of kMostBytes.
[[nodiscard]] constexpr std::int64_t rounded_up(std::int64_t size, std::int64_t multiple) {
  return (std::min(size, kMostBytes) + multiple - 1) / multiple * multiple;
}

}  // namespace gpumem::core
