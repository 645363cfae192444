// Input: bytes of a binary file.
// Output: the numbers in them, least significant byte first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gpumem::datasets {

/// The unsigned number of `width` bytes (at most 8) that begins at `at`. All of them must be there.
[[nodiscard]] constexpr std::uint64_t little_endian(std::string_view bytes, std::size_t at, std::size_t width) {
  std::uint64_t value = 0;
  for (std::size_t index = width; index > 0; --index) {
    value = (value << 8U) | static_cast<unsigned char>(bytes[at + index - 1]);
  }
  return value;
}

}  // namespace gpumem::datasets
