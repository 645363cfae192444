// Input: a seed and the number of a stream.
// Output: random figures that are the same on every platform with IEEE 754 doubles. The distributions of <random>
// differ from one standard library to the next.
// Source: the generator is SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA
// 2014).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace gpumem::train {

class Random {
 public:
  /// Streams of one seed have nothing to do with each other.
  Random(std::uint64_t seed, std::uint64_t stream) : state_(mixed(mixed(seed) + kGamma * stream)) {}

  [[nodiscard]] std::uint64_t next() { return mixed(state_ += kGamma); }

  [[nodiscard]] bool coin() { return next() >> 63 != 0; }

  /// A whole number from low to high, each as likely; they are less than 2^32 apart.
  [[nodiscard]] std::int64_t whole(std::int64_t low, std::int64_t high) {
    const auto count = static_cast<std::uint64_t>(high - low) + 1;
    return low + static_cast<std::int64_t>(((next() >> 32) * count) >> 32);
  }

  /// A whole number from low (at least 1) to high whose logarithm is spread evenly: it is as likely to lie between 10
  /// and 20 as between 100 and 200.
  [[nodiscard]] std::int64_t log_whole(std::int64_t low, std::int64_t high) {
    auto from = static_cast<double>(low);
    auto to = static_cast<double>(high) + 1.0;
    // The geometric mean is where the logarithm's middle lies: one coin a halving. Square roots are exactly rounded
    // everywhere; logarithms are not.
    std::uint64_t coins = next();
    for (int halving = 0; halving < 32; ++halving, coins >>= 1) {
      ((coins & 1U) != 0 ? from : to) = std::sqrt(from * to);
    }
    return std::clamp(static_cast<std::int64_t>(from), low, high);
  }

  /// Half of the time the one, half of the time the other: a range over orders of magnitude is then met at both of its
  /// ends.
  [[nodiscard]] std::int64_t spread(std::int64_t low, std::int64_t high) {
    return coin() ? whole(low, high) : log_whole(low, high);
  }

  template <typename T>
  [[nodiscard]] const T& pick(std::span<const T> from) {
    return from[static_cast<std::size_t>(whole(0, static_cast<std::int64_t>(from.size()) - 1))];
  }

 private:
  static constexpr std::uint64_t kGamma = 0x9e3779b97f4a7c15U;

  [[nodiscard]] static constexpr std::uint64_t mixed(std::uint64_t bits) {
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9U;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebU;
    return bits ^ (bits >> 31);
  }

  std::uint64_t state_;
};

}  // namespace gpumem::train
