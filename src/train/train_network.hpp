// Input: examples, a recipe's options, and perhaps a saved state to continue from.
// Output: trained weights. One run trains one network: that of a fold, or the final one.
//
// A run that was stopped and goes on from its state gives the very weights of one that was not: the order of the
// examples and the dropout of an epoch follow only from the seed and the epoch.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "examples.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/ml/model_config.hpp"
#include "recipe.hpp"
#include "torch_network.hpp"

namespace gpumem::train {

/// The state of a run after some epochs.
struct RunState {
  TrainingState training;
  std::int64_t epoch = 0;      ///< epochs done
  double training_loss = 0.0;  ///< of the last epoch
  ml::TensorFile best;         ///< the weights with the least loss on the validation part; none without one
  double best_loss = 0.0;
  std::int64_t best_epoch = 0;
  bool done = false;
};

struct EpochDone {
  std::int64_t epoch = 0;  ///< epochs done
  double training_loss = 0.0;
  bool run_done = false;
};

/// Told after each epoch; `state` makes the state to go on from. Training stops where it answers false.
using OnEpoch = std::function<core::Result<bool>(const std::function<RunState()>& state, const EpochDone& epoch)>;

struct Run {
  ml::NetworkShape shape;
  TrainingOptions options;
  std::uint64_t seed = 0;  ///< of this run
  const Examples* training = nullptr;
  const Examples* validation = nullptr;  ///< null: trains all epochs
};

struct Trained {
  ml::TensorFile weights;
  std::int64_t epochs = 0;  ///< that these weights were trained
  bool stopped = false;     ///< by OnEpoch: these are no final weights
};

/// Errors: invalid_argument for fewer than two examples, or where the loss is no longer finite; what OnEpoch returns.
[[nodiscard]] core::Result<Trained> train(const Run& run, const RunState* from, const OnEpoch& on_epoch);

/// The batches of an epoch: all examples in random order, `size` at a time; a last one of a single example joins the
/// one before it.
[[nodiscard]] std::vector<std::vector<std::int64_t>> batches_of(std::int64_t count, std::int64_t size,
                                                                std::uint64_t seed, std::int64_t epoch);

/// The learning rate of a step, the first being 0 of `steps`.
[[nodiscard]] double learning_rate_at(const TrainingOptions& options, std::int64_t step, std::int64_t steps);

}  // namespace gpumem::train
