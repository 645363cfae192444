// Blocks that are trained as several branches side by side, which are summed and run as one convolution later: RepVGG,
// MobileOne, FastViT, RepGhost, RepViT. Source: timm 1.0.9, timm.models.byobnet, fastvit, repghost, repvit.
#pragma once

#include <array>

#include "gpumem/connect/tokens.hpp"

namespace gpumem::connect {

namespace rep_block_detail {

/// The sum of what these parts make of one input; parts of a list are branches of their own.
inline std::optional<Tensor> summed(Wiring& wiring, const Container& block, std::span<const std::string_view> names,
                                    Tensor input) {
  std::optional<Tensor> sum;
  const auto add = [&](Part part) {
    const Tensor output = wiring.call(part, input);
    if (!wiring.failed()) sum = sum ? wiring.add(*sum, output, true) : output;
  };
  for (const std::string_view name : names) {
    const auto part = wiring.child(block, name);
    if (!part) continue;
    const bool list = part->container && wiring.class_name(*part) == "ModuleList";
    if (!list) add(*part);
    for (std::size_t at = 0; list && at < wiring.container(*part).parts.size(); ++at) {
      add(wiring.container(*part).parts[at]);
    }
  }
  return sum;
}

/// RepVggBlock, MobileOneBlock, ReparamLargeKernelConv: branches, a gate, an activation.
inline Tensor wire_rep(Wiring& wiring, const Container& block, Tensor input) {
  constexpr std::array<std::string_view, 6> kBranches = {"identity", "conv_scale", "conv_1x1",
                                                         "conv_kxk", "large_conv", "small_conv"};
  const Calls calls(wiring, block);
  if (wiring.called()) return wiring.chain(block.parts, input);
  const auto sum = summed(wiring, block, kBranches, input);
  return calls("act", calls("se", calls("attn", sum.value_or(input))));
}

/// RepVggDw of repvit: bn(conv(x) + conv1(x) + x).
inline Tensor wire_depthwise(Wiring& wiring, const Container& block, Tensor input) {
  constexpr std::array<std::string_view, 2> kBranches = {"conv", "conv1"};
  const Calls calls(wiring, block);
  const auto sum = wiring.called() ? std::nullopt : summed(wiring, block, kBranches, input);
  if (!sum || wiring.failed()) return wiring.chain(block.parts, input);
  return calls("bn", wiring.add(*sum, input, false));
}

/// RepMixer: x + layer_scale(mixer(x) - norm(x)).
inline Tensor wire_mixer(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  if (wiring.called() || !calls.has("mixer")) return wiring.chain(block.parts, input);
  const Tensor mixed = calls("mixer", input);
  const Tensor difference = wiring.add(mixed, calls("norm", input), false);
  return wiring.add(input, calls("layer_scale", difference), false);
}

/// RepMixerBlock: the mixer, and a sum with what the MLP makes of it. AttentionBlock: two such sums.
inline Tensor wire_mixer_block(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  if (wiring.called()) return wiring.chain(block.parts, input);
  const bool attention = calls.has("layer_scale_1");
  Tensor mixed = calls("token_mixer", attention ? calls("norm", input) : input);
  if (wiring.failed()) return input;
  if (attention) mixed = wiring.add(input, calls("drop_path1", calls("layer_scale_1", mixed)), false);
  const Tensor output = calls(attention ? "layer_scale_2" : "layer_scale", calls("mlp", mixed));
  return wiring.add(mixed, calls(attention ? "drop_path2" : "drop_path", output), false);
}

/// RepConditionalPosEnc: x + pos_enc(x).
inline Tensor wire_positions(Wiring& wiring, const Container& block, Tensor input) {
  const Tensor output = wiring.chain(block.parts, input);
  const bool sum = !wiring.called() && !wiring.failed() && wiring.shape(output) == wiring.shape(input);
  return sum ? wiring.add(output, input, false) : output;
}

/// RepViTBlock: token_mixer, se, x + channel_mixer(x).
inline Tensor wire_repvit(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  if (wiring.called() || !calls.has("channel_mixer")) return wiring.chain(block.parts, input);
  const Tensor mixed = calls("se", calls("token_mixer", input));
  return wiring.add(mixed, calls("channel_mixer", mixed), false);
}

/// RepVitDownsample: pre_block, two convolutions, x + ffn(x).
inline Tensor wire_repvit_downsample(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  if (wiring.called() || !calls.has("ffn")) return wiring.chain(block.parts, input);
  const Tensor small = calls("channel_downsample", calls("spatial_downsample", calls("pre_block", input)));
  return wiring.failed() ? input : wiring.add(small, calls("ffn", small), false);
}

inline constexpr std::array<std::string_view, 3> kRep = {"RepVggBlock", "MobileOneBlock", "ReparamLargeKernelConv"};
inline constexpr std::array<std::string_view, 1> kDepthwise = {"RepVggDw"};
inline constexpr std::array<std::string_view, 1> kMixer = {"RepMixer"};
inline constexpr std::array<std::string_view, 2> kMixerBlock = {"RepMixerBlock", "AttentionBlock"};
inline constexpr std::array<std::string_view, 3> kPositions = {"RepConditionalPosEnc", "ConvPosEnc", "PosConv"};
inline constexpr std::array<std::string_view, 1> kRepvit = {"RepViTBlock"};
inline constexpr std::array<std::string_view, 1> kRepvitDownsample = {"RepVitDownsample"};

}  // namespace rep_block_detail

inline constexpr std::array<BlockRule, 7> kRepBlocks = {
    {{rep_block_detail::kRep, rep_block_detail::wire_rep, nullptr},
     {rep_block_detail::kDepthwise, rep_block_detail::wire_depthwise, nullptr},
     {rep_block_detail::kMixer, rep_block_detail::wire_mixer, nullptr},
     {rep_block_detail::kMixerBlock, rep_block_detail::wire_mixer_block, nullptr},
     {rep_block_detail::kPositions, rep_block_detail::wire_positions, nullptr},
     {rep_block_detail::kRepvit, rep_block_detail::wire_repvit, nullptr},
     {rep_block_detail::kRepvitDownsample, rep_block_detail::wire_repvit_downsample, nullptr}}};

}  // namespace gpumem::connect
