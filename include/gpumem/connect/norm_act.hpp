// A normalisation and the activation after it in one module: timm's BatchNormAct2d, GroupNormAct, LayerNormAct2d. The
// module is the normalisation; what it holds (drop, act) is called after it. A tree prints the parts first. Source:
// timm 1.0.9, timm.layers.norm_act.
#pragma once

#include <array>

#include "gpumem/connect/block_rule.hpp"

namespace gpumem::connect {

namespace norm_act_detail {

inline Tensor wire(Wiring& wiring, const Container& block, Tensor input) {
  if (wiring.called()) return wiring.chain(block.parts, input);
  for (const bool norm : {true, false}) {
    for (const Part& part : block.parts) {
      if (wiring.printed_width(part).has_value() == norm) input = wiring.call(part, input);
    }
  }
  return input;
}

inline constexpr std::array<std::string_view, 6> kClasses = {
    "BatchNormAct2d", "GroupNormAct", "LayerNormAct2d", "LayerNormAct", "SyncBatchNormAct", "FrozenBatchNormAct2d"};

}  // namespace norm_act_detail

inline constexpr std::array<BlockRule, 1> kNormActBlocks = {
    {{norm_act_detail::kClasses, norm_act_detail::wire, nullptr}}};

}  // namespace gpumem::connect
