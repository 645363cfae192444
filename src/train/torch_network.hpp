// Input: a network's shape and weights, and examples.
// Output: the same network with trained weights. libtorch computes them. This header does not show libtorch's, which
// takes half a minute to compile, so that only one file includes it.
//
// The same seed gives the same weights: one thread, deterministic algorithms, and every random figure is drawn from the
// seeds that the caller hands in.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "examples.hpp"
#include "gpumem/ml/model_config.hpp"
#include "gpumem/ml/network.hpp"

namespace gpumem::train {

enum class Loss : std::uint8_t {
  cross_entropy,  ///< of the logits, against Examples::classes
  squared,        ///< the others against Examples::targets
  huber,          ///< squared within 1, linear beyond
  pinball,        ///< of a quantile an output: Koenker & Bassett 1978
  mixture,        ///< -ln of the density at the value, whose distances from the components are the targets
};

struct Objective {
  Loss loss = Loss::cross_entropy;
  double label_smoothing = 0.0;   ///< cross entropy: the share of a label spread over all classes
  std::vector<double> quantiles;  ///< pinball: one an output
  std::vector<double> spreads;    ///< mixture: of each component
  /// Each member learns by its own loss instead of the loss of their mean: an ensemble that agrees less by training.
  bool members_alone = false;
};

/// One step of AdamW (Loshchilov & Hutter 2019; betas 0.9 and 0.999, eps 1e-8). Only matrices decay.
struct StepOptions {
  double learning_rate = 1e-3;
  double weight_decay = 0.0;
  double dropout = 0.0;          ///< share of the members' hidden figures that a step sets to 0
  double encoder_dropout = 0.0;  ///< the same of the encoders' figures, what they hand to the members included
  double gradient_clip = 0.0;    ///< the longest gradient; 0: any
  std::uint64_t seed = 0;        ///< of the dropout
};

/// All that training goes on from.
struct TrainingState {
  ml::TensorFile weights;        ///< those of tensors_of(shape)
  ml::TensorFile first_moment;   ///< of the trained ones among them
  ml::TensorFile second_moment;  ///< likewise
  std::int64_t steps = 0;
};

class TorchNetwork {
 public:
  /// `weights` are those of tensors_of(shape), as initial_weights() makes them.
  TorchNetwork(const ml::NetworkShape& shape, const ml::TensorFile& weights);
  ~TorchNetwork();
  TorchNetwork(const TorchNetwork&) = delete;
  TorchNetwork& operator=(const TorchNetwork&) = delete;

  /// Trains on the examples of these indices, at least two of them (a norm over one is none). Returns the loss.
  double step(const Examples& examples, std::span<const std::int64_t> batch, const Objective& objective,
              const StepOptions& options);

  /// The outputs in evaluation, [count, outputs].
  [[nodiscard]] std::vector<float> run(const Examples& examples) const;
  /// The loss in evaluation.
  [[nodiscard]] double loss(const Examples& examples, const Objective& objective) const;

  [[nodiscard]] ml::TensorFile weights() const;
  [[nodiscard]] TrainingState state() const;
  void restore(const TrainingState& state);

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

/// libtorch's version.
[[nodiscard]] const char* torch_version();

}  // namespace gpumem::train
