// Weights and inputs of any size from a seed, the same as those of bench/references/network.py, so that golden files
// need hold outputs only.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "gpumem/ml/network.hpp"

namespace gpumem::testing {

/// Knuth's MMIX generator; its upper 24 bits, which float32 holds exactly.
class Figures {
 public:
  explicit Figures(std::uint64_t seed) : state_(seed) {}

  /// From [0, 1).
  double next() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<double>(state_ >> 40) / 16777216.0;
  }

  std::vector<float> symmetric(std::int64_t count) {
    std::vector<float> all;
    for (std::int64_t at = 0; at < count; ++at) all.push_back(static_cast<float>(2.0 * next() - 1.0));
    return all;
  }

 private:
  std::uint64_t state_;
};

/// Factors and variances of norms are from [0.5, 1.5), all else from [-1, 1).
inline ml::Tensor random_tensor(const ml::TensorSpec& spec, Figures& figures) {
  std::int64_t elements = 1;
  for (const std::int64_t size : spec.shape) elements *= size;
  ml::Tensor tensor{spec.name, spec.shape, figures.symmetric(elements)};
  bool positive = spec.name.ends_with(".running_var");
  for (const std::string_view factor : {"norm.weight", "norm1.weight", "norm2.weight"}) {
    positive = positive || spec.name.ends_with(factor);
  }
  if (positive) {
    for (float& value : tensor.values) value = 0.5F * value + 1.0F;
  }
  return tensor;
}

inline ml::TensorFile random_weights(const ml::NetworkShape& shape, std::uint64_t seed) {
  Figures figures(seed);
  ml::TensorFile file;
  for (const ml::TensorSpec& spec : ml::tensors_of(shape)) file.tensors.push_back(random_tensor(spec, figures));
  return file;
}

/// Hidden widths of GPUMemNet's members: 8, then 4 until the depth is reached.
inline std::vector<std::vector<std::int64_t>> halving_members(const std::vector<std::size_t>& depths) {
  std::vector<std::vector<std::int64_t>> members;
  for (const std::size_t depth : depths) {
    members.emplace_back(depth, 4);
    members.back()[0] = 8;
  }
  return members;
}

/// The form of GPUMemNet's ensemble for CNNs.
inline ml::NetworkShape mlp_ensemble() {
  ml::NetworkShape shape{.features = 10, .outputs = 6};
  shape.branches.push_back({.members = halving_members({1, 2, 3, 4, 5, 6, 7, 8, 4, 5, 6, 7, 8, 4, 5, 6})});
  return shape;
}

/// The form of GPUMemNet's Transformer ensemble for CNNs: two encoders, an ensemble after each.
inline ml::NetworkShape transformer_ensemble(ml::Embedding embedding, ml::Attention attention, ml::Pooling pooling) {
  ml::NetworkShape shape{.features = 9, .outputs = 6, .sequence_length = 119, .sequence_columns = 4};
  for (const auto& [width, layers] : {std::pair{6, 3}, std::pair{4, 2}}) {
    shape.branches.push_back({.encoder = ml::EncoderShape{.width = width,
                                                          .layers = layers,
                                                          .heads = 1,
                                                          .feed_forward = 4,
                                                          .embedding = embedding,
                                                          .attention = attention,
                                                          .pooling = pooling},
                              .members = halving_members({1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4, 5, 6})});
  }
  return shape;
}

}  // namespace gpumem::testing
