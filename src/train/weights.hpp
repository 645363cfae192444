// Input: a network's shape and a seed.
// Output: the weights at the start of training; and what is folded into the final weights, so that inference does not
// see it.
#pragma once

#include <cstdint>
#include <span>

#include "gpumem/ml/model_config.hpp"
#include "gpumem/ml/network.hpp"
#include "standardise.hpp"

namespace gpumem::train {

/// As PyTorch initialises nn.Linear (uniform within 1 / sqrt(in)), nn.MultiheadAttention (Glorot & Bengio 2010, biases
/// 0) and its norms (1 and 0). The same seed gives the same weights.
[[nodiscard]] ml::TensorFile initial_weights(const ml::NetworkShape& shape, std::uint64_t seed);

/// Output k is raised by k times this, of each member alike.
void fold_class_bias(ml::TensorFile& weights, double bias);

/// Outputs in units of the targets.
void fold_target_scale(ml::TensorFile& weights, std::span<const TargetScale> targets);

}  // namespace gpumem::train
