// Networks whose stages shrink the image: PVT V2 and Twins (tokens within a stage, images between stages), Xception's
// separable modules. Source: timm 1.0.9, timm.models.pvt_v2, twins, xception_aligned.
#pragma once

#include <array>
#include <vector>

#include "gpumem/connect/tokens.hpp"

namespace gpumem::connect {

namespace pyramid_detail {

using tokens_detail::fixed;

/// PyramidVisionTransformerStage: downsample, tokens through the blocks and a norm, images again.
inline Tensor wire_stage(Wiring& wiring, const Container& stage, Tensor input) {
  const Calls calls(wiring, stage);
  if (wiring.called() || !calls.has("blocks")) return wiring.chain(stage.parts, input);
  const Tensor images = calls("downsample", input);
  const core::Shape shape = wiring.shape(images);
  if (wiring.failed() || shape.rank() != 4) return calls("norm", calls("blocks", images));
  const bool last = wiring.channels_last(images);
  const Tensor tokens = calls("norm", calls("blocks", tokens_detail::tokens_of(wiring, images)));
  return tokens_detail::images_of(wiring, tokens, fixed(shape, last ? 1 : 2), fixed(shape, last ? 2 : 3));
}

/// OverlapPatchEmbed: a convolution, the channels after the pixels, a norm.
inline Tensor wire_patches(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  if (wiring.called() || !calls.has("proj")) return wiring.chain(block.parts, input);
  return calls("norm", tokens_detail::channels_behind(wiring, calls("proj", input)));
}

/// PyramidVisionTransformerV2: patches whose channels lie last, then stages; the head sees the mean of all pixels.
inline Tensor wire_model(Wiring& wiring, const Container& model, Tensor input) {
  const Calls calls(wiring, model);
  if (wiring.called() || !calls.has("stages")) return wiring.chain(model.parts, input);
  const Tensor output = calls("stages", calls("patch_embed", input));
  if (wiring.failed() || wiring.shape(output).rank() != 4) return wiring.chain(model.parts, input);
  const Tensor mean = wiring.operation("mean", {&output, 1}, {{"dim", std::vector<std::int64_t>{2, 3}}});
  return calls("head", calls("head_drop", mean));
}

/// MlpWithDepthwiseConv: the convolution sees the tokens as images.
inline Tensor wire_mlp(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  if (wiring.called() || wiring.shape(input).rank() != 3) return wiring.chain(block.parts, input);
  const std::int64_t side = tokens_detail::side_of(fixed(wiring.shape(input), 1));
  const Tensor hidden = calls("fc1", input);
  if (side == 0 || wiring.failed()) return wiring.chain(block.parts, input);
  const Tensor images = calls("dwconv", calls("relu", tokens_detail::images_of(wiring, hidden, side, side)));
  return calls("drop", calls("fc2", calls("act", tokens_detail::tokens_of(wiring, images))));
}

/// Twins: each patch embedding with its stage, and positions by a convolution after the first block.
inline Tensor wire_twins(Wiring& wiring, const Container& model, Tensor input) {
  constexpr std::array<std::string_view, 4> kLists = {"patch_embeds", "pos_drops", "blocks", "pos_block"};
  std::array<std::span<const Part>, 4> lists{};
  for (std::size_t index = 0; index < kLists.size(); ++index) {
    const auto list = wiring.child(model, kLists[index]);
    if (wiring.called() || !list || !list->container) return wiring.chain(model.parts, input);
    lists[index] = wiring.container(*list).parts;
  }
  const Calls calls(wiring, model);
  Tensor output = input;
  for (std::size_t stage = 0; stage < lists[0].size() && stage < lists[2].size() && !wiring.failed(); ++stage) {
    output = tokens_detail::tokens_of(wiring, wiring.call(lists[0][stage], output));
    if (wiring.failed() || !lists[2][stage].container) return output;
    const std::int64_t side = tokens_detail::side_of(fixed(wiring.shape(output), 1));
    bool first = true;
    for (const Part& block : wiring.container(lists[2][stage]).parts) {
      output = wiring.call(block, output);
      if (first && stage < lists[3].size() && side > 0 && !wiring.failed()) {
        const Tensor images = tokens_detail::images_of(wiring, output, side, side);
        output = tokens_detail::tokens_of(wiring, wiring.call(lists[3][stage], images));
      }
      first = false;
    }
    const bool more = stage + 1 < lists[0].size();
    if (more && side > 0) output = tokens_detail::images_of(wiring, output, side, side);
  }
  output = calls("norm", output);
  if (wiring.failed() || wiring.shape(output).rank() != 3) return output;
  return calls("head", calls("head_drop", tokens_detail::mean_token(wiring, output)));
}

/// XceptionModule, PreXceptionModule: a stack, and a shortcut around it where the sizes allow it.
inline Tensor wire_xception(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  if (wiring.called() || !calls.has("stack")) return wiring.chain(block.parts, input);
  const Tensor normal = calls("norm", input);
  const Tensor output = calls("drop_path", calls("stack", normal));
  const Tensor shortcut = calls("shortcut", normal);
  const bool same = !wiring.failed() && wiring.shape(output) == wiring.shape(shortcut);
  return same ? wiring.add(output, shortcut, false) : output;
}

inline constexpr std::array<std::string_view, 1> kStages = {"PyramidVisionTransformerStage"};
inline constexpr std::array<std::string_view, 1> kPatches = {"OverlapPatchEmbed"};
inline constexpr std::array<std::string_view, 1> kModels = {"PyramidVisionTransformerV2"};
inline constexpr std::array<std::string_view, 1> kMlps = {"MlpWithDepthwiseConv"};
inline constexpr std::array<std::string_view, 1> kTwins = {"Twins"};
inline constexpr std::array<std::string_view, 2> kXception = {"XceptionModule", "PreXceptionModule"};

}  // namespace pyramid_detail

inline constexpr std::array<BlockRule, 6> kPyramidBlocks = {
    {{pyramid_detail::kStages, pyramid_detail::wire_stage, nullptr},
     {pyramid_detail::kPatches, pyramid_detail::wire_patches, nullptr},
     {pyramid_detail::kModels, pyramid_detail::wire_model, nullptr},
     {pyramid_detail::kMlps, pyramid_detail::wire_mlp, nullptr},
     {pyramid_detail::kTwins, pyramid_detail::wire_twins, nullptr},
     {pyramid_detail::kXception, pyramid_detail::wire_xception, nullptr}}};

}  // namespace gpumem::connect
