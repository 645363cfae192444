// MetaFormers (PoolFormer, ConvFormer, CAFormer): stages of images, and stages of tokens where the mixer is attention;
// their activation has a scale and a bias of its own. Source: timm 1.0.9, timm.models.metaformer.
#pragma once

#include <array>

#include "gpumem/connect/tokens.hpp"

namespace gpumem::connect {

namespace metaformer_detail {

/// StarReLU: scale * relu(x) ** 2 + bias.
inline Tensor wire_star(Wiring& wiring, const Container& block, Tensor input) {
  const Tensor active = wiring.chain(block.parts, input);
  if (wiring.called() || wiring.failed()) return active;
  const Tensor square = wiring.operation("square", {&active, 1});
  const Tensor scale = tokens_detail::parameter(wiring, {1});
  const Tensor scaled = wiring.operation("mul", std::array<Tensor, 2>{square, scale});
  return wiring.operation("add", std::array<Tensor, 2>{scaled, tokens_detail::parameter(wiring, {1})});
}

/// SquaredReLU: relu(x) ** 2.
inline Tensor wire_squared(Wiring& wiring, const Container& block, Tensor input) {
  const Tensor active = wiring.chain(block.parts, input);
  return wiring.called() || wiring.failed() ? active : wiring.operation("square", {&active, 1});
}

/// Pooling: what the pooling changes, pool(x) - x.
inline Tensor wire_pooling(Wiring& wiring, const Container& block, Tensor input) {
  const Tensor output = wiring.chain(block.parts, input);
  const bool same = !wiring.called() && !wiring.failed() && wiring.shape(output) == wiring.shape(input);
  return same ? wiring.operation("sub", std::array<Tensor, 2>{output, input}) : output;
}

inline bool holds_attention(const Wiring& wiring, const Container& container) {
  for (const Part& part : container.parts) {
    if (!part.container) continue;
    const std::string_view inner = wiring.class_name(part);
    if (inner == "Attention" || holds_attention(wiring, wiring.container(part))) return true;
  }
  return false;
}

/// MetaFormerStage: its blocks see tokens where one of them is attention.
inline Tensor wire_stage(Wiring& wiring, const Container& stage, Tensor input) {
  const Calls calls(wiring, stage);
  const auto blocks = wiring.child(stage, "blocks");
  if (wiring.called() || !blocks || !blocks->container) return wiring.chain(stage.parts, input);
  const Tensor images = calls("downsample", input);
  if (!holds_attention(wiring, wiring.container(*blocks)) || wiring.failed()) return calls("blocks", images);
  const core::Shape shape = wiring.shape(images);
  const Tensor tokens = calls("blocks", tokens_detail::tokens_of(wiring, images));
  return tokens_detail::images_of(wiring, tokens, tokens_detail::fixed(shape, 2), tokens_detail::fixed(shape, 3));
}

inline constexpr std::array<std::string_view, 1> kStar = {"StarReLU"};
inline constexpr std::array<std::string_view, 1> kSquared = {"SquaredReLU"};
inline constexpr std::array<std::string_view, 1> kPooling = {"Pooling"};
inline constexpr std::array<std::string_view, 1> kStages = {"MetaFormerStage"};

}  // namespace metaformer_detail

inline constexpr std::array<BlockRule, 4> kMetaformerBlocks = {
    {{metaformer_detail::kStar, metaformer_detail::wire_star, nullptr},
     {metaformer_detail::kSquared, metaformer_detail::wire_squared, nullptr},
     {metaformer_detail::kPooling, metaformer_detail::wire_pooling, nullptr},
     {metaformer_detail::kStages, metaformer_detail::wire_stage, nullptr}}};

}  // namespace gpumem::connect
