// Input: a trained model, its cross-validation, and where its data came from.
// Output: its card, the README.md of a model folder. The same training gives the same card: its only date is the
// recipe's.
#pragma once

#include <string>
#include <vector>

#include "recipe.hpp"
#include "score.hpp"
#include "sources.hpp"

namespace gpumem::train {

struct CardFacts {
  const Recipe* recipe = nullptr;
  const ml::ModelConfig* model = nullptr;  ///< as trained
  std::vector<Score> scores;
  std::vector<std::vector<std::int64_t>> confusion;
  std::vector<const Source*> sources;
  std::vector<std::int64_t> epochs;  ///< of each run; the last one: the final model's
  std::string command;
  std::string software;
};

[[nodiscard]] std::string card_of(const CardFacts& facts);

}  // namespace gpumem::train
