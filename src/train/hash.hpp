// Input: texts and numbers, one after the other.
// Output: their hash. FNV-1a, 64 bits.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

namespace gpumem::train {

class Hash {
 public:
  void add(std::string_view text) {
    add(static_cast<std::int64_t>(text.size()));
    for (const char byte : text) add_byte(static_cast<unsigned char>(byte));
  }
  void add(std::int64_t number) {
    constexpr int kByte = 8;
    for (int shift = 0; shift < 64; shift += kByte) {
      add_byte(static_cast<unsigned char>(static_cast<std::uint64_t>(number) >> shift));
    }
  }
  void add(double number) { add(std::bit_cast<std::int64_t>(number)); }

  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  void add_byte(unsigned char byte) {
    constexpr std::uint64_t kPrime = 0x100000001b3;
    value_ = (value_ ^ byte) * kPrime;
  }

  std::uint64_t value_ = 0xcbf29ce484222325;
};

}  // namespace gpumem::train
