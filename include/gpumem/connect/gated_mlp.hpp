// MLPs in which one half of what is computed scales the other: GLU, SwiGLU, GeGLU, gMLP. Source: timm 1.0.9,
// timm.layers.mlp (GluMlp, SwiGLU, GatedMlp), timm.models.vision_transformer_hybrid, vitamin.GeGluMlp,
// mlp_mixer.SpatialGatingUnit.
#pragma once

#include <array>
#include <vector>

#include "gpumem/connect/tokens.hpp"

namespace gpumem::connect {

namespace gated_mlp_detail {

/// GluMlp: fc1, its two halves, one through the activation times the other.
inline Tensor wire_halves(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  if (wiring.called() || !calls.has("fc1") || !calls.has("fc2")) return wiring.chain(block.parts, input);
  const Tensor hidden = calls("fc1", input);
  if (wiring.failed()) return input;
  const bool images = wiring.shape(hidden).rank() == 4 && !wiring.channels_last(hidden);
  const std::size_t axis = images ? 1 : wiring.shape(hidden).rank() - 1;
  const std::vector<Tensor> halves = tokens_detail::parts_of(wiring, hidden, 2, axis);
  const Tensor gate = calls("act", halves[1]);
  if (wiring.failed()) return input;
  const Tensor scaled = calls("drop1", wiring.multiply(halves[0], gate));
  return calls("drop2", calls("fc2", calls("norm", scaled)));
}

/// Two layers that read the input, the first through the activation, and a third after their product.
inline Tensor wire_pair(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  const bool named = calls.has("fc1_g");
  if (wiring.called() || (!named && !calls.has("w0"))) return wiring.chain(block.parts, input);
  if (!named) input = calls("norm", input);
  const Tensor gate = calls("act", calls(named ? "fc1_g" : "w0", input));
  const Tensor value = calls(named ? "fc1_x" : "w1", input);
  if (wiring.failed()) return input;
  const Tensor scaled = calls("drop1", wiring.multiply(gate, value));
  return named ? calls("drop2", calls("fc2", calls("norm", scaled))) : calls("w2", scaled);
}

/// SpatialGatingUnit: one half, its tokens mixed, times the other.
inline Tensor wire_spatial(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  if (wiring.called() || !calls.has("proj") || wiring.shape(input).rank() != 3) return wiring.chain(block.parts, input);
  const std::vector<Tensor> halves = tokens_detail::parts_of(wiring, input, 2, 2);
  const Tensor normed = calls("norm", halves[1]);
  if (wiring.failed()) return input;
  const Tensor mixed = calls("proj", tokens_detail::permuted(wiring, normed, {0, 2, 1}));
  if (wiring.failed() || wiring.shape(mixed).rank() != 3) return input;
  return wiring.multiply(halves[0], tokens_detail::permuted(wiring, mixed, {0, 2, 1}));
}

/// GatedMlp: the gate halves what fc1 leaves.
inline Tensor wire_gated(Wiring& wiring, const Container& block, Tensor input) {
  constexpr std::array<std::string_view, 7> kOrder = {"fc1", "act", "drop1", "gate", "norm", "fc2", "drop2"};
  return wiring.called() ? wiring.chain(block.parts, input) : wiring.chain_named(block, kOrder, input);
}

inline constexpr std::array<std::string_view, 1> kSpatial = {"SpatialGatingUnit"};
inline constexpr std::array<std::string_view, 1> kGated = {"GatedMlp"};
inline constexpr std::array<std::string_view, 2> kHalves = {"GluMlp", "ConvGluMlp"};
inline constexpr std::array<std::string_view, 2> kPair = {"SwiGLU", "GeGluMlp"};

}  // namespace gated_mlp_detail

inline constexpr std::array<BlockRule, 4> kGatedMlpBlocks = {
    {{gated_mlp_detail::kSpatial, gated_mlp_detail::wire_spatial, nullptr},
     {gated_mlp_detail::kGated, gated_mlp_detail::wire_gated, nullptr},
     {gated_mlp_detail::kHalves, gated_mlp_detail::wire_halves, nullptr},
     {gated_mlp_detail::kPair, gated_mlp_detail::wire_pair, nullptr}}};

}  // namespace gpumem::connect
