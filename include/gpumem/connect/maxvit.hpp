// CoAtNet's and MaxViT's blocks: a convolution, then attention with the channels after the pixels; a
// TransformerBlock2d has two shortcuts, of which the first may pool. Source: timm 1.0.9, timm.models.maxxvit.
#pragma once

#include <array>

#include "gpumem/connect/tokens.hpp"

namespace gpumem::connect {

namespace maxvit_detail {

/// MaxxVitBlock, ParallelMaxxVitBlock.
inline Tensor wire_block(Wiring& wiring, const Container& block, Tensor input) {
  constexpr std::array<std::string_view, 3> kAttention = {"attn_block", "attn_grid", "attn"};
  const Calls calls(wiring, block);
  if (wiring.called() || !calls.has_any(kAttention)) return wiring.chain(block.parts, input);
  const Tensor images = calls("conv", input);
  const Tensor last = tokens_detail::channels_behind(wiring, images);
  if (wiring.failed()) return input;
  return tokens_detail::channels_in_front(wiring, wiring.chain_named(block, kAttention, last));
}

/// x = shortcut(x) + ls1(attn(norm1(x))), x + ls2(mlp(norm2(x))).
inline Tensor wire_transformer(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  if (wiring.called() || !calls.has("attn")) return wiring.chain(block.parts, input);
  const Tensor shortcut = calls("shortcut", input);
  Tensor output = calls("drop_path1", calls("ls1", calls("attn", calls("norm1", input))));
  if (wiring.failed()) return input;
  if (wiring.shape(output) == wiring.shape(shortcut)) output = wiring.add(shortcut, output, false);
  const Tensor more = calls("drop_path2", calls("ls2", calls("mlp", calls("norm2", output))));
  const bool same = !wiring.failed() && wiring.shape(output) == wiring.shape(more);
  return same ? wiring.add(output, more, false) : more;
}

inline constexpr std::array<std::string_view, 2> kBlocks = {"MaxxVitBlock", "ParallelMaxxVitBlock"};
inline constexpr std::array<std::string_view, 1> kTransformers = {"TransformerBlock2d"};

}  // namespace maxvit_detail

inline constexpr std::array<BlockRule, 2> kMaxvitBlocks = {
    {{maxvit_detail::kBlocks, maxvit_detail::wire_block, nullptr},
     {maxvit_detail::kTransformers, maxvit_detail::wire_transformer, nullptr}}};

}  // namespace gpumem::connect
