// DenseNet's blocks: each layer reads all that the block has made so far, concatenated. Source: torchvision.models
// .densenet: _DenseBlock, _DenseLayer (batch norm, activation, convolution, twice).
#pragma once

#include <array>
#include <vector>

#include "gpumem/connect/block_rule.hpp"

namespace gpumem::connect {

namespace dense_detail {

inline Tensor wire_block(Wiring& wiring, const Container& block, Tensor input) {
  constexpr std::size_t kMost = 1000;  // the concatenations grow with the square of the layers
  if (block.parts.size() > kMost) {
    wiring.fail({core::ErrorCode::malformed_input, "holds a dense block of more than 1,000 layers", {}});
    return input;
  }
  std::vector<Tensor> features = {input};
  for (const Part& layer : block.parts) {
    const Tensor all = wiring.concatenate(features);
    features.push_back(wiring.call(layer, all));
  }
  return wiring.concatenate(features);
}

inline Tensor wire_layer(Wiring& wiring, const Container& layer, Tensor input) {
  return wiring.chain(layer.parts, input);
}

/// The second batch norm before the row.
inline std::optional<std::size_t> begin_layer(const OpenRows& rows) {
  bool second = false;
  for (std::size_t part = rows.parts.size(); part > 0; --part) {
    if (rows.op(part - 1) != "batch_norm") continue;
    if (second) return part - 1;
    second = true;
  }
  return std::nullopt;
}

/// All layers in a row before it.
inline std::optional<std::size_t> begin_block(const OpenRows& rows) {
  std::size_t begin = rows.parts.size();
  while (begin > 0 && rows.class_name(begin - 1) == "_DenseLayer") --begin;
  return begin < rows.parts.size() ? std::optional(begin) : std::nullopt;
}

inline constexpr std::array<std::string_view, 2> kBlock = {"_DenseBlock", "DenseBlock"};
inline constexpr std::array<std::string_view, 1> kLayer = {"_DenseLayer"};

}  // namespace dense_detail

inline constexpr std::array<BlockRule, 2> kDenseBlocks = {
    {{dense_detail::kBlock, dense_detail::wire_block, dense_detail::begin_block},
     {dense_detail::kLayer, dense_detail::wire_layer, dense_detail::begin_layer}}};

}  // namespace gpumem::connect
