// Input: the verdicts on all sets.
// Output: a picture (SVG): for each set predicted against measured memory on logarithmic axes, one colour an estimator,
// with the diagonal and lines 10 % off it. Points beyond the frame are drawn at its edge.
#pragma once

#include <string>
#include <vector>

#include "verdicts.hpp"

namespace gpumem::accuracy {

[[nodiscard]] std::string scatter_of(const std::vector<SetVerdicts>& all);

}  // namespace gpumem::accuracy
