// Input: a recipe and a data set.
// Output: Outcome, the trained model with the results of its cross-validation.
//
// One run a fold: trained on the other folds, it predicts its own. Then one on everything, the final model. Statistics
// are fitted only to the training part of each; where a recipe stops early, a share of the training part judges when.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "dataset.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/ml/model_config.hpp"
#include "gpumem/ml/network.hpp"
#include "recipe.hpp"
#include "score.hpp"

namespace gpumem::train {

/// The progress of the training.
struct Progress {
  std::int64_t run = 0;  ///< 0-based; the last one is the final model
  std::int64_t runs = 0;
  std::int64_t epoch = 0;  ///< done
  std::int64_t epochs = 0;
  double training_loss = 0.0;
  bool run_done = false;
};

struct Session {
  /// A folder for the states of the runs, made if it is not there; empty: none are kept.
  std::string states;
  bool resume = false;           ///< go on from the states that are there
  std::int64_t save_every = 50;  ///< epochs
  /// Told after each epoch; false stops the training, with its state saved. May be empty.
  std::function<bool(const Progress&)> on_epoch = {};
};

struct Outcome {
  bool stopped = false;  ///< on request; there is no model then
  ml::ModelConfig model;
  ml::TensorFile weights;
  std::vector<Prediction> predictions;  ///< out of fold, in the order of the rows
  std::vector<Score> scores;
  std::vector<std::int64_t> epochs;  ///< that each run's weights were trained; the last one: the final model's
};

/// Errors: those of validate(), of the folds and of the runs.
[[nodiscard]] core::Result<Outcome> train(const Recipe& recipe, const Dataset& data, const Session& session);

/// Removes the states in this folder, and the folder if that leaves it empty.
void remove_states(const std::string& states);

}  // namespace gpumem::train
