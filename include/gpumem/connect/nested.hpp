// Nested transformers: images are cut into blocks of one size at every level, whose pixels attend only to each other;
// between levels the image is halved. Attention has five axes, which no fused kernel takes, so that its scores are
// materialised. Positions are parameters of a level, which no line shows. Source: timm 1.0.9, timm.models.nest.
#pragma once

#include <array>
#include <vector>

#include "gpumem/connect/attention_calls.hpp"
#include "gpumem/connect/tokens.hpp"

namespace gpumem::connect {

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

}  // namespace gpumem::connect
