// Input: a number of bytes, or its text.
// Output: the same as a type of its own, with KiB/MiB/GiB literals and text for people. Add only with Checked
// (checked.hpp).
// Units: bytes, 1 KiB = 1024 bytes.
#pragma once

#include <compare>
#include <cstdint>
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

/// "25,557,032": a count with thousands separators, as model summaries print it.
[[nodiscard]] std::string with_separators(std::int64_t count);

namespace literals {
consteval Bytes operator""_KiB(unsigned long long count) { return Bytes(static_cast<std::int64_t>(count) << 10); }
consteval Bytes operator""_MiB(unsigned long long count) { return Bytes(static_cast<std::int64_t>(count) << 20); }
consteval Bytes operator""_GiB(unsigned long long count) { return Bytes(static_cast<std::int64_t>(count) << 30); }
}  // namespace literals

}  // namespace gpumem::core
