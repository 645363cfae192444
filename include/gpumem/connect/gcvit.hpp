// Global context transformers: a stage makes one small image of its input, whose side is that of its windows; every
// second block's queries are this image, repeated for each window, the others' their own. Scores are written out, with
// a learned bias. Source: timm 1.0.9, timm.models.gcvit.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "gpumem/connect/tokens.hpp"

namespace gpumem::connect {

namespace gcvit_detail {

using tokens_detail::fixed;

inline constexpr std::int64_t kHeadWidth = 32;

/// What the blocks of a stage share.
struct Stage {
  Tensor global = 0;         ///< [N, s s, C]
  std::int64_t side = 1;     ///< of a window
  std::int64_t windows = 1;  ///< of an image
};

/// The stage's image for each window: [N W, s s, C].
inline Tensor repeated(Wiring& wiring, const Stage& stage) {
  const std::vector<core::Dim> every = {core::Dim::batch(stage.windows), core::Dim::fixed(-1), core::Dim::fixed(-1)};
  return wiring.operation("repeat", {&stage.global, 1}, {{"shape", every}});
}

inline Tensor attend(Wiring& wiring, const Container& block, const Stage& stage, Tensor windows) {
  const Calls calls(wiring, block);
  const Tensor packed = calls("qkv", windows);
  if (wiring.failed()) return windows;
  const std::int64_t width = fixed(wiring.shape(windows), 2);
  const bool global = fixed(wiring.shape(packed), 2) == 2 * width;
  std::vector<Tensor> qkv = tokens_detail::parts_of(wiring, packed, global ? 2 : 3, 2);
  if (global) qkv.insert(qkv.begin(), repeated(wiring, stage));
  const std::int64_t heads = width % kHeadWidth == 0 ? width / kHeadWidth : 1;
  for (Tensor& each : qkv) each = tokens_detail::heads_of(wiring, each, heads);
  const Tensor scaled = wiring.operation("mul", {&qkv[0], 1});
  const Tensor turned = tokens_detail::permuted(wiring, qkv[1], {0, 1, 3, 2});
  const Tensor keys = wiring.operation("contiguous", {&turned, 1});
  const Tensor scores = wiring.operation("matmul", std::array<Tensor, 2>{scaled, keys});
  const std::int64_t tokens = stage.side * stage.side;
  const Tensor biased = wiring.add(scores, tokens_detail::parameter(wiring, {1, heads, tokens, tokens}), false);
  const Tensor weights = wiring.operation("softmax", {&biased, 1}, {{"dim", std::int64_t{3}}});
  const Tensor output = wiring.operation("matmul", std::array<Tensor, 2>{calls("attn_drop", weights), qkv[2]});
  return calls("proj_drop", calls("proj", tokens_detail::merged(wiring, output)));
}

/// A block on images [N, h, w, C].
inline Tensor wire_block(Wiring& wiring, const Container& block, const Stage& stage, Tensor input) {
  const Calls calls(wiring, block);
  const auto attention = wiring.child(block, "attn");
  const core::Shape shape = wiring.shape(input);
  if (!attention || !attention->container) return wiring.chain(block.parts, input);
  const Tensor windows = tokens_detail::windows_of(wiring, calls("norm1", input), stage.side);
  Tensor output = attend(wiring, wiring.container(*attention), stage, windows);
  if (wiring.failed()) return input;
  output = tokens_detail::unwindowed(wiring, output, fixed(shape, 1), fixed(shape, 2), stage.side);
  const Tensor sum = wiring.add(input, calls("drop_path1", calls("ls1", output)), false);
  return wiring.add(sum, calls("drop_path2", calls("ls2", calls("mlp", calls("norm2", sum)))), false);
}

inline Tensor wire_stage(Wiring& wiring, const Container& container, Tensor input) {
  const Calls calls(wiring, container);
  const auto blocks = wiring.child(container, "blocks");
  const bool known = calls.has("global_block") && blocks && blocks->container;
  if (wiring.called() || !known) return wiring.chain(container.parts, input);
  const Tensor images = calls("downsample", input);
  const Tensor small = calls("global_block", images);
  if (wiring.failed() || wiring.shape(images).rank() != 4 || wiring.shape(small).rank() != 4) return small;
  Stage stage;
  stage.side = std::max<std::int64_t>(fixed(wiring.shape(small), 2), 1);
  stage.global = calls("global_norm", tokens_detail::tokens_of(wiring, small));
  Tensor output = tokens_detail::channels_behind(wiring, images);
  const core::Shape shape = wiring.shape(output);
  const std::int64_t height = fixed(shape, 1);
  const std::int64_t width = fixed(shape, 2);
  if (height % stage.side != 0 || width % stage.side != 0) return wiring.chain(container.parts, input);
  stage.windows = (height / stage.side) * (width / stage.side);
  for (const Part& part : wiring.container(*blocks).parts) {
    if (wiring.failed() || !part.container) return output;
    output = wire_block(wiring, wiring.container(part), stage, output);
  }
  output = calls("norm", output);
  return wiring.failed() ? output : tokens_detail::permuted(wiring, output, {0, 3, 1, 2});
}

inline constexpr std::array<std::string_view, 1> kStages = {"GlobalContextVitStage"};

}  // namespace gcvit_detail

inline constexpr std::array<BlockRule, 1> kGcvitBlocks = {{{gcvit_detail::kStages, gcvit_detail::wire_stage, nullptr}}};

}  // namespace gpumem::connect
