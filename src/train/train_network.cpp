#include "train_network.hpp"

#include <cmath>

#include "random.hpp"
#include "weights.hpp"

namespace gpumem::train {

namespace {

/// Streams of a run's seed.
enum : std::uint64_t { kWeightStream = 1, kOrderStream = 2, kDropoutStream = 3 };

std::uint64_t seed_of(const Run& run, std::uint64_t stream) { return Random(run.seed, stream).next(); }

double train_epoch(const Run& run, TorchNetwork& network, std::int64_t epoch) {
  const TrainingOptions& options = run.options;
  const auto batches = batches_of(run.training->count, options.batch_size, seed_of(run, kOrderStream), epoch);
  const auto steps = static_cast<std::int64_t>(batches.size());
  Random dropout(seed_of(run, kDropoutStream), static_cast<std::uint64_t>(epoch));
  double sum = 0.0;
  for (std::int64_t at = 0; at < steps; ++at) {
    const auto& batch = batches[static_cast<std::size_t>(at)];
    const StepOptions step = {.learning_rate = learning_rate_at(options, epoch * steps + at, options.epochs * steps),
                              .weight_decay = options.weight_decay,
                              .dropout = options.dropout,
                              .encoder_dropout = options.encoder_dropout,
                              .gradient_clip = options.gradient_clip,
                              .seed = dropout.next()};
    sum += network.step(*run.training, batch, options.objective, step) * static_cast<double>(batch.size());
  }
  return sum / static_cast<double>(run.training->count);
}

core::Error not_finite(std::int64_t epoch) {
  return {core::ErrorCode::invalid_argument,
          "the loss is not a finite number in epoch " + std::to_string(epoch + 1) +
              "; lower the recipe's learning_rate, or set its gradient_clip",
          {}};
}

/// Keeps the weights that do best on the validation part. Whether to go on.
bool judge(const Run& run, const TorchNetwork& network, RunState& state) {
  if (run.validation == nullptr) return true;
  const double loss = network.loss(*run.validation, run.options.objective);
  if (state.best_epoch == 0 || loss < state.best_loss) {
    state.best = network.weights();
    state.best_loss = loss;
    state.best_epoch = state.epoch;
  }
  return state.epoch - state.best_epoch < run.options.early_stopping_patience;
}

Trained trained_of(const Run& run, const TorchNetwork& network, const RunState& state, bool stopped) {
  if (run.validation != nullptr && state.best_epoch > 0) return {state.best, state.best_epoch, stopped};
  return {network.weights(), state.epoch, stopped};
}

}  // namespace

core::Result<Trained> train(const Run& run, const RunState* from, const OnEpoch& on_epoch) {
  if (run.training->count < 2) {
    return core::Error{core::ErrorCode::invalid_argument, "a training part needs two rows or more", {}};
  }
  TorchNetwork network(run.shape, initial_weights(run.shape, seed_of(run, kWeightStream)));
  RunState state;
  if (from != nullptr) {
    state = *from;
    network.restore(state.training);
  }
  const auto snapshot = [&] {
    state.training = network.state();
    return state;
  };
  while (!state.done) {
    state.training_loss = train_epoch(run, network, state.epoch);
    if (!std::isfinite(state.training_loss)) return not_finite(state.epoch);
    ++state.epoch;
    const bool goes_on = judge(run, network, state);
    state.done = !goes_on || state.epoch >= run.options.epochs;
    const auto wanted = on_epoch(snapshot, {state.epoch, state.training_loss, state.done});
    if (!wanted) return wanted.error();
    if (!*wanted && !state.done) return trained_of(run, network, state, true);
  }
  return trained_of(run, network, state, false);
}

}  // namespace gpumem::train
