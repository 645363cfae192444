// Input: values, and the generator of random.hpp.
// Output: the values in random order; figures of a range.
#pragma once

#include <utility>
#include <vector>

#include "random.hpp"

namespace gpumem::train {

/// Fisher and Yates.
template <typename Value>
void shuffle(std::vector<Value>& values, Random& random) {
  for (std::size_t left = values.size(); left > 1; --left) {
    std::swap(values[left - 1], values[static_cast<std::size_t>(random.next() % left)]);
  }
}

/// From low to high, high left out.
[[nodiscard]] inline double uniform(double low, double high, Random& random) {
  return low + (high - low) * (static_cast<double>(random.next() >> 11U) * 0x1p-53);
}

}  // namespace gpumem::train
