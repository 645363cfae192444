// Enters: a recipe and a data set. Leaves: a text that tells this training from any other, so that a state goes on only
// where it came from.
#pragma once

#include <string>

#include "dataset.hpp"
#include "recipe.hpp"

namespace gpumem::train {

[[nodiscard]] std::string fingerprint_of(const Recipe& recipe, const Dataset& data);

}  // namespace gpumem::train
