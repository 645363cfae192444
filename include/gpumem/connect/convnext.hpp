// ConvNeXt's block: input += stochastic_depth(layer_scale * block(input)), where the block permutes images to
// channels last and back; no summary shows layer_scale's product, and a tree not the axes. Source:
// torchvision.models.convnext.CNBlock.
#pragma once

#include <array>
#include <vector>

#include "gpumem/connect/tokens.hpp"

namespace gpumem::connect {

namespace convnext_detail {

inline Tensor permuted(Wiring& wiring, Tensor input, bool channels_last) {
  std::vector<std::int64_t> dims = {0, 3, 1, 2};
  if (channels_last) dims = {0, 2, 3, 1};
  return wiring.operation("permute", {&input, 1}, {{"dims", std::move(dims)}});
}

/// The layers of the block, then the parameter that scales what they leave.
inline Tensor wire(Wiring& wiring, const Container& block, Tensor input) {
  std::vector<Part> parts;
  for (const Part& part : block.parts) {
    if (!part.container) parts.push_back(part);
    if (part.container) {
      const std::vector<Part>& inner = wiring.container(part).parts;
      parts.insert(parts.end(), inner.begin(), inner.end());
    }
  }
  Tensor output = input;
  int permutes = 0;
  for (const Part& part : parts) {
    const std::string_view op = wiring.op(part);
    if (op == model::kParameterOp) continue;  // layer_scale, where a table counts it
    if (op != "permute") {
      output = wiring.call(part, output);
      continue;
    }
    output = permuted(wiring, output, permutes == 0);
    if (++permutes != 2 || wiring.failed()) continue;
    const std::vector<std::int64_t> channels = {wiring.shape(output)[1].size, 1, 1};
    const Tensor scale = wiring.operation(model::kParameterOp, {}, {{"shape", channels}});
    output = wiring.multiply(scale, output);
  }
  if (permutes != 2) return output;
  return wiring.add(output, input, true);
}

/// The convolution nearest before.
inline std::optional<std::size_t> begin(const OpenRows& rows) {
  for (std::size_t part = rows.parts.size(); part > 0; --part) {
    if (rows.op(part - 1) == "conv2d") return part - 1;
  }
  return std::nullopt;
}

/// timm's: x = mlp(norm(conv_dw(x))) with the channels after the pixels where the norm is a plain one; then layer
/// scale, which a tree does not show, and the shortcut. Source: timm 1.0.9, timm.models.convnext.ConvNeXtBlock,
/// maxxvit, inception_next.MetaNeXtBlock, edgenext.ConvBlock.
inline Tensor wire_timm(Wiring& wiring, const Container& block, Tensor input) {
  constexpr std::array<std::string_view, 4> kBefore = {"pre_norm", "down", "conv_dw", "token_mixer"};
  const Calls calls(wiring, block);
  if (wiring.called() || !calls.has("mlp")) return wiring.chain(block.parts, input);
  const auto norm = wiring.child(block, "norm");
  const auto mlp = wiring.child(block, "mlp");
  Tensor output = wiring.chain_named(block, kBefore, input);
  if (wiring.failed()) return input;
  const bool last = norm && wiring.class_name(*norm) == "LayerNorm";
  if (last) output = tokens_detail::channels_behind(wiring, output);
  output = calls("mlp", calls("norm", output));
  if (last) output = tokens_detail::channels_in_front(wiring, output);
  if (wiring.failed()) return input;
  const bool scales = !calls.has("ls") && wiring.class_name(*mlp) != "GlobalResponseNormMlp";
  if (scales) {
    const std::vector<std::int64_t> channels = {wiring.channels(output), 1, 1};
    output = wiring.multiply(output, wiring.operation(model::kParameterOp, {}, {{"shape", channels}}));
  }
  output = calls("drop_path", calls("ls", output));
  const Tensor shortcut = calls("shortcut", input);
  const bool same = !wiring.failed() && wiring.shape(output) == wiring.shape(shortcut);
  return same ? wiring.add(output, shortcut, false) : output;
}

inline constexpr std::array<std::string_view, 1> kBlock = {"CNBlock"};
inline constexpr std::array<std::string_view, 3> kTimm = {"ConvNeXtBlock", "MetaNeXtBlock", "ConvBlock"};

}  // namespace convnext_detail

inline constexpr std::array<BlockRule, 2> kConvnextBlocks = {
    {{convnext_detail::kBlock, convnext_detail::wire, convnext_detail::begin},
     {convnext_detail::kTimm, convnext_detail::wire_timm, nullptr}}};

}  // namespace gpumem::connect
