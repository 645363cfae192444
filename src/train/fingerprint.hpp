// Input: a recipe and a data set.
// Output: a text that differs for every training, so that a saved state continues only the training that it came from.
#pragma once

#include <string>

#include "dataset.hpp"
#include "recipe.hpp"

namespace gpumem::train {

[[nodiscard]] std::string fingerprint_of(const Recipe& recipe, const Dataset& data);

}  // namespace gpumem::train
