// torchvision's vision transformer: x = input + attention(ln_1(input)), x + mlp(ln_2(x)). Source:
// torchvision.models.vision_transformer.EncoderBlock.
#pragma once

#include <array>

#include "gpumem/connect/block_rule.hpp"

namespace gpumem::connect {

namespace transformer_detail {

inline Tensor wire_encoder_block(Wiring& wiring, const Container& block, Tensor input) {
  constexpr std::size_t kParts = 5;  // ln_1, self_attention, dropout, ln_2, mlp
  const std::span<const Part> parts = block.parts;
  if (parts.size() != kParts) return wiring.chain(parts, input);
  const core::Shape images = wiring.shape(input);  // a tree shows nothing between the projection and the first block
  if (images.rank() == 4) input = wiring.as_sequence(input, images[2].size * images[3].size + 1, images[1].size);
  const Tensor attended = wiring.chain(parts.first(3), input);
  const Tensor sum = wiring.add(attended, input, false);
  return wiring.add(sum, wiring.chain(parts.subspan(3), sum), false);
}

inline constexpr std::array<std::string_view, 1> kEncoderBlock = {"EncoderBlock"};

}  // namespace transformer_detail

inline constexpr std::array<BlockRule, 1> kTransformerBlocks = {
    {{transformer_detail::kEncoderBlock, transformer_detail::wire_encoder_block, nullptr}}};

}  // namespace gpumem::connect
