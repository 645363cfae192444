// SqueezeNet's Fire: a convolution, and two that both read what it leaves, side by side. Source:
// torchvision.models.squeezenet.
#pragma once

#include <array>

#include "gpumem/connect/block_rule.hpp"

namespace gpumem::connect {

namespace fire_detail {

inline constexpr std::size_t kParts = 6;  // squeeze, expand1x1, expand3x3, an activation after each

inline Tensor wire(Wiring& wiring, const Container& block, Tensor input) {
  const std::span<const Part> parts = block.parts;
  if (parts.size() != kParts) return wiring.chain(parts, input);
  const Tensor squeezed = wiring.chain(parts.first(2), input);
  const Tensor small = wiring.chain(parts.subspan(2, 2), squeezed);
  const Tensor large = wiring.chain(parts.subspan(4, 2), squeezed);
  return wiring.concatenate(std::array<Tensor, 2>{small, large});
}

inline std::optional<std::size_t> begin(const OpenRows& rows) {
  return rows.parts.size() < kParts ? std::nullopt : std::optional(rows.parts.size() - kParts);
}

inline constexpr std::array<std::string_view, 1> kFire = {"Fire"};

}  // namespace fire_detail

inline constexpr std::array<BlockRule, 1> kFireBlocks = {{{fire_detail::kFire, fire_detail::wire, fire_detail::begin}}};

}  // namespace gpumem::connect
