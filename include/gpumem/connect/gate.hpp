// Blocks that scale their input by what they compute of it: squeeze-and-excitation (pool to one pixel, two
// convolutions, a sigmoid). Source: torchvision.ops.SqueezeExcitation (scale * input), timm.layers.SqueezeExcite.
#pragma once

#include <array>

#include "gpumem/connect/block_rule.hpp"

namespace gpumem::connect {

namespace gate_detail {

/// torchvision declares its modules as it calls them, but for the activation between the convolutions.
inline Tensor wire_squeeze(Wiring& wiring, const Container& block, Tensor input) {
  constexpr std::array<std::string_view, 5> kOrder = {"avgpool", "fc1", "activation", "fc2", "scale_activation"};
  const bool named = !wiring.called() && wiring.child(block, "avgpool").has_value();
  const Tensor scale = named ? wiring.chain_named(block, kOrder, input) : wiring.chain(block.parts, input);
  return wiring.multiply(scale, input);
}

/// The pooling nearest before.
inline std::optional<std::size_t> begin_squeeze(const OpenRows& rows) {
  for (std::size_t part = rows.parts.size(); part > 0; --part) {
    if (rows.op(part - 1) == "adaptive_avg_pool2d") return part - 1;
  }
  return std::nullopt;
}

inline constexpr std::array<std::string_view, 1> kSqueeze = {"SqueezeExcitation"};

}  // namespace gate_detail

inline constexpr std::array<BlockRule, 1> kGateBlocks = {
    {{gate_detail::kSqueeze, gate_detail::wire_squeeze, gate_detail::begin_squeeze}}};

}  // namespace gpumem::connect
