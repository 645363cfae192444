// Blocks of timm's Inception v4 and Inception-ResNet v2: branches side by side, whose outputs are concatenated; those
// of Inception-ResNet v2 project them and add the block's input. InceptionA to InceptionC are known by inception.hpp.
// Source: timm 1.0.9, timm.models.inception_v4, inception_resnet_v2.
#pragma once

#include <array>
#include <vector>

#include "gpumem/connect/named_branches.hpp"
#include "gpumem/connect/tokens.hpp"

namespace gpumem::connect {

namespace inception_v4_detail {

inline Tensor wire_branches(Wiring& wiring, const Container& block, Tensor input) {
  const auto output = wire_named_branches(wiring, block, input);
  return output ? *output : wiring.chain(block.parts, input);
}

/// Mixed3a and Mixed5a: a convolution and a pooling side by side.
inline Tensor wire_pair(Wiring& wiring, const Container& block, Tensor input) {
  if (wiring.called()) return wiring.chain(block.parts, input);
  std::vector<Tensor> outputs;
  for (const Part& part : block.parts) outputs.push_back(wiring.call(part, input));
  return wiring.concatenate(outputs);
}

/// Block35, Block17, Block8: act(conv2d(cat(branches)) * scale + x), the last one without an activation.
inline Tensor wire_residual(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  const auto branches = wire_named_branches(wiring, block, input);
  if (!branches) return wiring.chain(block.parts, input);
  const Tensor projected = calls("conv2d", *branches);
  const Tensor scaled = wiring.operation("mul", {&projected, 1});
  return calls("relu", calls("act", wiring.add(scaled, input, false)));
}

inline Tensor wire_model(Wiring& wiring, const Container& model, Tensor input) {
  return wiring.chain(model.parts, input);
}

inline constexpr std::array<std::string_view, 6> kBranching = {"Mixed4a",  "ReductionA", "ReductionB",
                                                               "Mixed_5b", "Mixed_6a",   "Mixed_7a"};
inline constexpr std::array<std::string_view, 2> kPairs = {"Mixed3a", "Mixed5a"};
inline constexpr std::array<std::string_view, 3> kResidual = {"Block35", "Block17", "Block8"};
inline constexpr std::array<std::string_view, 2> kModels = {"InceptionV4", "InceptionResnetV2"};

}  // namespace inception_v4_detail

inline constexpr std::array<BlockRule, 4> kInceptionV4Blocks = {
    {{inception_v4_detail::kBranching, inception_v4_detail::wire_branches, nullptr},
     {inception_v4_detail::kPairs, inception_v4_detail::wire_pair, nullptr},
     {inception_v4_detail::kResidual, inception_v4_detail::wire_residual, nullptr},
     {inception_v4_detail::kModels, inception_v4_detail::wire_model, nullptr}}};

}  // namespace gpumem::connect
