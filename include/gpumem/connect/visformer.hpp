// Visformer: patches stay images through every stage, each with positions that no line shows. Source: timm 1.0.9,
// timm.models.visformer.
#pragma once

#include <array>
#include <string_view>

#include "gpumem/connect/tokens.hpp"

namespace gpumem::connect {

namespace visformer_detail {

/// The convolution of a patch embedding and its norm, without tokens; positions are added.
inline Tensor embedded(Wiring& wiring, const Container& model, std::string_view name, Tensor input) {
  const auto patches = wiring.child(model, name);
  if (!patches || !patches->container) return input;
  const Calls calls(wiring, wiring.container(*patches));
  const Tensor images = calls("norm", calls("proj", input));
  const core::Shape shape = wiring.shape(images);
  if (wiring.failed() || shape.rank() != 4) return images;
  const Tensor positions = tokens_detail::parameter(
      wiring, {1, tokens_detail::fixed(shape, 1), tokens_detail::fixed(shape, 2), tokens_detail::fixed(shape, 3)});
  return Calls(wiring, model)("pos_drop", wiring.add(images, positions, false));
}

inline Tensor wire_model(Wiring& wiring, const Container& model, Tensor input) {
  constexpr std::array<std::array<std::string_view, 2>, 3> kStages = {
      {{"patch_embed1", "stage1"}, {"patch_embed2", "stage2"}, {"patch_embed3", "stage3"}}};
  const Calls calls(wiring, model);
  if (wiring.called() || !calls.has("stage1")) return wiring.chain(model.parts, input);
  Tensor output = calls("stem", input);
  for (const auto& [patches, stage] : kStages) output = calls(stage, embedded(wiring, model, patches, output));
  constexpr std::array<std::string_view, 4> kLast = {"norm", "global_pool", "head_drop", "head"};
  return wiring.chain_named(model, kLast, output);
}

inline constexpr std::array<std::string_view, 1> kModels = {"Visformer"};

}  // namespace visformer_detail

inline constexpr std::array<BlockRule, 1> kVisformerBlocks = {
    {{visformer_detail::kModels, visformer_detail::wire_model, nullptr}}};

}  // namespace gpumem::connect
