// Image transformers that attend within windows: Nest, Swin.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "gpumem/connect/tokens.hpp"

namespace gpumem::connect {

// Nested transformers: images are cut into blocks of one size at every level, whose pixels attend only to each other;
// between levels the image is halved. Attention has five axes, which no fused kernel takes, so that its scores are
// materialised. Positions are parameters of a level, which no line shows. Source: timm 1.0.9, timm.models.nest.

namespace nested_detail {

using tokens_detail::fixed;

inline Tensor attend(Wiring& wiring, const Container& block, Tensor tokens) {
  constexpr attention_calls_detail::Kind kWhole = {.fused = false, .head_width = 32};
  const Calls calls(wiring, block);
  const Tensor packed = calls("qkv", tokens);
  if (wiring.failed()) return tokens;
  const std::vector<Tensor> qkv = tokens_detail::parts_of(wiring, packed, 3, 2);
  const Tensor output = attention_calls_detail::attend(wiring, block, kWhole, qkv[0], qkv[1], qkv[2]);
  return attention_calls_detail::projected(wiring, block, output);
}

inline Tensor wire_layer(Wiring& wiring, const Container& layer, Tensor input) {
  const Calls calls(wiring, layer);
  const auto attention = wiring.child(layer, "attn");
  if (!attention || !attention->container) return wiring.chain(layer.parts, input);
  const Tensor attended = attend(wiring, wiring.container(*attention), calls("norm1", input));
  const Tensor sum = wiring.add(input, calls("drop_path", attended), false);
  return wiring.add(sum, calls("drop_path", calls("mlp", calls("norm2", sum))), false);
}

/// A level on images [N, C, h, w], cut into blocks of `side` x `side` pixels.
inline Tensor wire_level(Wiring& wiring, const Container& level, std::int64_t side, Tensor input) {
  const Calls calls(wiring, level);
  const auto layers = wiring.child(level, "transformer_encoder");
  const Tensor images = tokens_detail::channels_behind(wiring, calls("pool", input));
  const core::Shape shape = wiring.shape(images);
  const bool cut = !wiring.failed() && shape.rank() == 4 && side > 0 && fixed(shape, 1) % side == 0 &&
                   fixed(shape, 2) % side == 0 && layers && layers->container;
  if (!cut) return wiring.chain(level.parts, input);
  Tensor tokens = tokens_detail::windows_of(wiring, images, side);
  const Tensor positions = tokens_detail::parameter(wiring, {1, side * side, fixed(shape, 3)});
  tokens = wiring.add(tokens, positions, false);
  for (const Part& layer : wiring.container(*layers).parts) {
    if (wiring.failed() || !layer.container) return input;
    tokens = wire_layer(wiring, wiring.container(layer), tokens);
  }
  const Tensor whole = tokens_detail::unwindowed(wiring, tokens, fixed(shape, 1), fixed(shape, 2), side);
  return tokens_detail::permuted(wiring, whole, {0, 3, 1, 2});
}

/// ConvPool: a convolution, a norm of its channels, every second pixel.
inline Tensor wire_pool(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  if (wiring.called() || !calls.has("conv")) return wiring.chain(block.parts, input);
  const Tensor normed = calls("norm", tokens_detail::channels_behind(wiring, calls("conv", input)));
  if (wiring.failed() || wiring.shape(normed).rank() != 4) return input;
  return calls("pool", tokens_detail::permuted(wiring, normed, {0, 3, 1, 2}));
}

inline Tensor wire_model(Wiring& wiring, const Container& model, Tensor input) {
  const Calls calls(wiring, model);
  const auto patches = wiring.child(model, "patch_embed");
  const auto levels = wiring.child(model, "levels");
  const bool known = patches && patches->container && levels && levels->container;
  if (wiring.called() || !known) return wiring.chain(model.parts, input);
  Tensor images = Calls(wiring, wiring.container(*patches))("proj", input);
  const std::size_t count = wiring.container(*levels).parts.size();
  if (wiring.failed() || wiring.shape(images).rank() != 4 || count == 0 || count > 8) {
    return wiring.chain(model.parts, input);
  }
  const std::int64_t side = fixed(wiring.shape(images), 2) >> (count - 1);
  for (const Part& level : wiring.container(*levels).parts) {
    if (wiring.failed() || !level.container) return images;
    images = wire_level(wiring, wiring.container(level), side, images);
  }
  images = calls("norm", tokens_detail::channels_behind(wiring, images));
  if (wiring.failed() || wiring.shape(images).rank() != 4) return images;
  const Tensor mean = wiring.operation("mean", {&images, 1}, {{"dim", std::vector<std::int64_t>{1, 2}}});
  return calls("head", calls("head_drop", mean));
}

inline constexpr std::array<std::string_view, 1> kModels = {"Nest"};
inline constexpr std::array<std::string_view, 1> kPools = {"ConvPool"};

}  // namespace nested_detail

inline constexpr std::array<BlockRule, 2> kNestedBlocks = {
    {{nested_detail::kModels, nested_detail::wire_model, nullptr},
     {nested_detail::kPools, nested_detail::wire_pool, nullptr}}};

// Swin transformers: images with the channels after the pixels, attention within windows, every second block shifted.
// A tree prints no window: it is taken as the usual one that divides the image. Swin V1 calls the fused kernel, with a
// mask where a block is shifted; V2 writes the scores of normalised queries and keys out. Source: timm 1.0.9,
// timm.models.swin_transformer, swin_transformer_v2, swin_transformer_v2_cr.

namespace swin_detail {

using tokens_detail::fixed;
using tokens_detail::Sizes;
inline constexpr std::int64_t kHeadWidth = 32;

inline std::int64_t window_in(std::int64_t size) {
  for (const std::int64_t window : {7, 12, 8, 16, 6, 4}) {
    if (size % window == 0) return window;
  }
  return size;
}

/// The additive mask of a shifted block: a whole score for every window, sample and head.
inline Tensor mask_of(Wiring& wiring, std::int64_t windows, std::int64_t heads, std::int64_t tokens) {
  const Tensor bias = tokens_detail::parameter(wiring, {1, heads, tokens, tokens});
  const std::vector<core::Dim> every = {core::Dim::batch(windows), core::Dim::fixed(-1), core::Dim::fixed(-1),
                                        core::Dim::fixed(-1)};
  const Tensor mask = wiring.operation("expand", {&bias, 1}, {{"shape", every}});
  return wiring.operation("contiguous", {&mask, 1});
}

/// Windows [N W, s s, C] through the attention.
inline Tensor attend(Wiring& wiring, const Container& block, Tensor windows, std::int64_t count, bool shifted) {
  const Calls calls(wiring, block);
  const bool fused = !calls.has("cpb_mlp") && !calls.has("meta_mlp");
  const Tensor packed = calls("qkv", windows);
  if (wiring.failed()) return windows;
  const std::vector<Tensor> parts = tokens_detail::parts_of(wiring, packed, 3, 2);
  const std::int64_t width = fixed(wiring.shape(windows), 2);
  const std::int64_t heads = width % kHeadWidth == 0 ? width / kHeadWidth : 1;
  std::vector<Tensor> qkv;
  for (std::size_t index = 0; index < parts.size(); ++index) {
    Tensor each = tokens_detail::heads_of(wiring, parts[index], heads);
    if (!fused && index < 2) each = wiring.operation("lp_normalize", {&each, 1}, {{"dim", std::int64_t{3}}});
    qkv.push_back(each);
  }
  if (fused && shifted) qkv.push_back(mask_of(wiring, count, heads, fixed(wiring.shape(windows), 1)));
  const Tensor output = tokens_detail::merged(wiring, tokens_detail::attended(wiring, qkv, fused));
  return calls("proj_drop", calls("proj", output));
}

inline Tensor windowed(Wiring& wiring, const Container& block, Tensor input, bool shifted) {
  const core::Shape shape = wiring.shape(input);
  if (shape.rank() != 4 || wiring.failed()) return wiring.chain(block.parts, input);
  const std::int64_t height = fixed(shape, 1);
  const std::int64_t width = fixed(shape, 2);
  const std::int64_t side = window_in(height);
  if (side == 0 || height % side != 0 || width % side != 0) return wiring.chain(block.parts, input);
  const bool rolls = shifted && height > side;
  if (rolls) input = wiring.operation("roll", {&input, 1});
  const Calls calls(wiring, block);
  if (calls.has("cpb_mlp") || calls.has("meta_mlp")) {  // whole scores: the window decides their size
    wiring.guess(block.parts.front(),
                 "is called on windows of a size that is not printed: taken as " + std::to_string(side));
  }
  const Tensor windows = tokens_detail::windows_of(wiring, input, side);
  const Tensor attended = attend(wiring, block, windows, (height / side) * (width / side), rolls);
  if (wiring.failed()) return input;
  const Tensor output = tokens_detail::unwindowed(wiring, attended, height, width, side);
  return rolls ? wiring.operation("roll", {&output, 1}) : output;
}

inline bool is_odd(std::string_view name) { return !name.empty() && (name.back() - '0') % 2 == 1; }

/// norm1(attn(x)) or attn(norm1(x)), and the same with the MLP, each added.
inline Tensor wire_block(Wiring& wiring, const Container& block, Tensor input) {
  if (wiring.called() || wiring.shape(input).rank() != 4) return wiring.chain(block.parts, input);
  const branch_order_detail::Branches all = branch_order_detail::branches_of(wiring, block);
  for (const std::vector<Part>& branch : all.branches) {
    Tensor output = input;
    for (const Part& part : branch) {
      const bool attention = part.container && wiring.name(part) == "attn";
      output =
          attention ? windowed(wiring, wiring.container(part), output, is_odd(block.name)) : wiring.call(part, output);
      if (wiring.failed()) return input;
    }
    input = wiring.shape(output) == wiring.shape(input) ? wiring.add(input, output, false) : output;
  }
  return wiring.chain(all.last, input);
}

/// Four pixels side by side: [N, h, w, C] -> [N, h/2, w/2, 4 C].
inline Tensor wire_merging(Wiring& wiring, const Container& block, Tensor input) {
  const core::Shape shape = wiring.shape(input);
  if (wiring.called() || shape.rank() != 4 || !wiring.channels_last(input)) return wiring.chain(block.parts, input);
  const std::int64_t height = fixed(shape, 1) / 2;
  const std::int64_t width = fixed(shape, 2) / 2;
  Tensor merged = tokens_detail::reshaped(wiring, input, {height, 2, width, 2, fixed(shape, 3)});
  merged = tokens_detail::permuted(wiring, merged, {0, 1, 3, 4, 2, 5});
  return wiring.chain(block.parts, tokens_detail::reshaped(wiring, merged, {height, width, 4 * fixed(shape, 3)}));
}

/// The model: patches with the channels last.
inline Tensor wire_model(Wiring& wiring, const Container& model, Tensor input) {
  const auto patches = wiring.child(model, "patch_embed");
  if (wiring.called() || !patches || !patches->container) return wiring.chain(model.parts, input);
  const Calls embed(wiring, wiring.container(*patches));
  const Tensor images = tokens_detail::channels_behind(wiring, embed("proj", input));
  Tensor output = embed("norm", images);
  for (const Part& part : model.parts) {
    if (wiring.name(part) != "patch_embed") output = wiring.call(part, output);
  }
  return output;
}

inline constexpr std::array<std::string_view, 3> kBlocks = {"SwinTransformerBlock", "SwinTransformerV2Block",
                                                            "SwinTransformerV2CrBlock"};
inline constexpr std::array<std::string_view, 1> kMerging = {"PatchMerging"};
inline constexpr std::array<std::string_view, 3> kModels = {"SwinTransformer", "SwinTransformerV2",
                                                            "SwinTransformerV2Cr"};

}  // namespace swin_detail

inline constexpr std::array<BlockRule, 3> kSwinBlocks = {{{swin_detail::kBlocks, swin_detail::wire_block, nullptr},
                                                          {swin_detail::kMerging, swin_detail::wire_merging, nullptr},
                                                          {swin_detail::kModels, swin_detail::wire_model, nullptr}}};

}  // namespace gpumem::connect
