// NFNet's block: the activation first, scaled; the shortcut reads it; a gain, a product and a sum at the end. Source:
// timm 1.0.9, timm.models.nfnet.NormFreeBlock.
#pragma once

#include <array>

#include "gpumem/connect/tokens.hpp"

namespace gpumem::connect {

namespace normalizer_free_detail {

inline Tensor scaled(Wiring& wiring, Tensor tensor) { return wiring.operation("mul", {&tensor, 1}); }

inline Tensor wire(Wiring& wiring, const Container& block, Tensor input) {
  constexpr std::array<std::string_view, 9> kMain = {"conv1", "act2", "conv2", "act2b",    "conv2b",
                                                     "attn",  "act3", "conv3", "attn_last"};
  const Calls calls(wiring, block);
  if (wiring.called() || !calls.has("act1")) return wiring.chain(block.parts, input);
  const Tensor active = scaled(wiring, calls("act1", input));
  const Tensor shortcut = calls.has("downsample") ? calls("downsample", active) : input;
  Tensor output = active;
  for (const std::string_view name : kMain) {
    output = calls(name, output);
    const bool gate = name.starts_with("attn") && calls.has(name);
    if (gate && !wiring.failed()) output = scaled(wiring, output);
  }
  output = calls("drop_path", output);
  if (wiring.failed()) return input;
  output = scaled(wiring, output);
  return wiring.shape(output) == wiring.shape(shortcut) ? wiring.add(output, shortcut, false) : output;
}

inline constexpr std::array<std::string_view, 1> kBlocks = {"NormFreeBlock"};

}  // namespace normalizer_free_detail

inline constexpr std::array<BlockRule, 1> kNormalizerFreeBlocks = {
    {{normalizer_free_detail::kBlocks, normalizer_free_detail::wire, nullptr}}};

}  // namespace gpumem::connect
