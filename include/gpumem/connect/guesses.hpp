// Guesses: how much of a graph connect() had to guess. It tells how certain an answer is.
// Units: elements a sample, where elements are counted.
#pragma once

#include <cstdint>

namespace gpumem::connect {

struct Guesses {
  std::int64_t edges = 0;       ///< layers whose input is a guess; each has a warning with its line
  std::int64_t first_line = 0;  ///< of the summary, of the first of these; 0: none
  std::int64_t stand_ins = 0;   ///< those of them that read a tensor that nothing in the summary makes
  std::int64_t containers = 0;  ///< of a class that is not known: their parts are called in the order of the tree
  std::int64_t layers = 0;      ///< layers of the summary that compute, for comparison

  /// Layers of which bounds are known and no more: of a class that is not known (connect/opaque.hpp), or run on regions
  /// whose number the images decide (connect/detection.hpp).
  std::int64_t bounded = 0;
  std::int64_t fewer_elements = 0;  ///< they may keep this much less than is planned,
  std::int64_t more_elements = 0;   ///< or this much more

  friend bool operator==(const Guesses&, const Guesses&) = default;
};

}  // namespace gpumem::connect
