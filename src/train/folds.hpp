// Input: the group and the stratum of each row.
// Output: the fold in which it is tested, or that it is held back. Rows of one group (jobs of one net) are never on
// both sides; strata (bins, sources) are spread evenly.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpumem/core/result.hpp"

namespace gpumem::train {

struct Grouped {
  std::uint64_t group = 0;
  std::int64_t stratum = 0;  ///< a group has that of its first row
};

/// The fold of each row, 0 to folds - 1. The same for the same rows and seed. Errors: invalid_argument for fewer than
/// two folds, or fewer groups than folds.
[[nodiscard]] core::Result<std::vector<std::int64_t>> assign_folds(std::span<const Grouped> rows, std::int64_t folds,
                                                                   std::uint64_t seed);

/// Which of the rows are held back (about this share of them, whole groups). Errors: invalid_argument if that leaves
/// one side empty.
[[nodiscard]] core::Result<std::vector<bool>> hold_back(std::span<const Grouped> rows, double share,
                                                        std::uint64_t seed);

}  // namespace gpumem::train
