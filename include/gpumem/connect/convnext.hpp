// ConvNeXt's block: input += stochastic_depth(layer_scale * block(input)), where the block permutes images to
// channels last and back; no summary shows layer_scale's product, and a tree not the axes. Source:
// torchvision.models.convnext.CNBlock.
#pragma once

#include <array>
#include <vector>

#include "gpumem/connect/block_rule.hpp"

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

inline constexpr std::array<std::string_view, 1> kBlock = {"CNBlock"};

}  // namespace convnext_detail

inline constexpr std::array<BlockRule, 1> kConvnextBlocks = {
    {{convnext_detail::kBlock, convnext_detail::wire, convnext_detail::begin}}};

}  // namespace gpumem::connect
