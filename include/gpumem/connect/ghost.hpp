// GhostNet's and RepGhost's blocks: half of the channels by a convolution, half by a cheap one of the first half.
// Source: timm 1.0.9, timm.models.ghostnet, repghost.
#pragma once

#include <array>

#include "gpumem/connect/tokens.hpp"

namespace gpumem::connect {

namespace ghost_detail {

inline Tensor wire_module(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  if (wiring.called() || !calls.has("cheap_operation")) return wiring.chain(block.parts, input);
  const Tensor first = calls("primary_conv", input);
  const Tensor second = calls("cheap_operation", first);
  if (wiring.failed()) return input;
  const Tensor both = wiring.concatenate(std::array<Tensor, 2>{first, second});
  if (!calls.has("short_conv")) return both;
  // GhostModuleV2: a gate of the whole block's input, at half the size.
  Tensor gate =
      wiring.operation("avg_pool2d", {&input, 1}, {{"kernel_size", std::int64_t{2}}, {"stride", std::int64_t{2}}});
  gate = calls("gate_fn", calls("short_conv", gate));
  if (wiring.failed()) return input;
  const core::Shape& shape = wiring.shape(both);
  gate = wiring.operation(
      "upsample", {&gate, 1},
      {{"size", std::vector<std::int64_t>{tokens_detail::fixed(shape, 2), tokens_detail::fixed(shape, 3)}}});
  return wiring.multiply(both, gate);
}

/// The fusion's branches, each after its norm, are added to the cheap half.
inline Tensor wire_rep_module(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  if (wiring.called() || !calls.has("cheap_operation")) return wiring.chain(block.parts, input);
  const Tensor first = calls("primary_conv", input);
  Tensor second = calls("cheap_operation", first);
  if (calls.has("fusion_bn") && !wiring.failed()) second = wiring.add(second, calls("fusion_bn", first), false);
  return calls("relu", second);
}

inline Tensor wire_bottleneck(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  if (wiring.called() || !calls.has("ghost1")) return wiring.chain(block.parts, input);
  const Tensor depthwise = calls("bn_dw", calls("conv_dw", calls("ghost1", input)));
  const Tensor output = calls("ghost2", calls("se", depthwise));
  const Tensor shortcut = calls("shortcut", input);
  if (wiring.failed() || !(wiring.shape(output) == wiring.shape(shortcut))) return output;
  return wiring.add(output, shortcut, true);
}

inline constexpr std::array<std::string_view, 2> kModule = {"GhostModule", "GhostModuleV2"};
inline constexpr std::array<std::string_view, 1> kRepModule = {"RepGhostModule"};
inline constexpr std::array<std::string_view, 2> kBottleneck = {"GhostBottleneck", "RepGhostBottleneck"};

}  // namespace ghost_detail

inline constexpr std::array<BlockRule, 3> kGhostBlocks = {
    {{ghost_detail::kModule, ghost_detail::wire_module, nullptr},
     {ghost_detail::kRepModule, ghost_detail::wire_rep_module, nullptr},
     {ghost_detail::kBottleneck, ghost_detail::wire_bottleneck, nullptr}}};

}  // namespace gpumem::connect
