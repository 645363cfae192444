// Blocks that scale their input by what they compute of it: squeeze-and-excitation (pool to one pixel, two
// convolutions, a sigmoid). timm pools by Tensor.mean, which no row shows. Source: torchvision.ops.SqueezeExcitation
// (scale * input), timm 1.0.9: timm.layers.squeeze_excite, timm.layers.eca, timm.models.senet.SEModule.
#pragma once

#include <array>

#include "gpumem/connect/block_rule.hpp"

namespace gpumem::connect {

namespace gate_detail {

/// torchvision declares its modules as it calls them, except the activation between the convolutions.
inline Tensor wire_squeeze(Wiring& wiring, const Container& block, Tensor input) {
  constexpr std::array<std::string_view, 5> kOrder = {"avgpool", "fc1", "activation", "fc2", "scale_activation"};
  const bool named = !wiring.called() && wiring.child(block, "avgpool").has_value();
  const Tensor scale = named ? wiring.chain_named(block, kOrder, input) : wiring.chain(block.parts, input);
  return wiring.multiply(scale, input);
}

/// The pooling nearest before.
inline std::optional<std::size_t> begin_squeeze(const OpenRows& rows) {
  for (std::size_t part = rows.parts.size(); part > 0; --part) {
    if (rows.op(part - 1) == "adaptive_avg_pool2d") return part - 1;
  }
  return std::nullopt;
}

inline bool one_pixel(const core::Shape& shape) {
  return shape.rank() == 4 && shape[2] == core::Dim::fixed(1) && shape[3] == core::Dim::fixed(1);
}

inline Tensor pooled(Wiring& wiring, Tensor input) {
  if (wiring.failed() || one_pixel(wiring.shape(input))) return input;
  return wiring.operation("adaptive_avg_pool2d", {&input, 1}, {{"output_size", std::int64_t{1}}});
}

/// x * gate(mean of x's pixels), the mean taken without a module.
inline Tensor wire_excite(Wiring& wiring, const Container& block, Tensor input) {
  const core::Shape& shape = wiring.shape(input);
  if (shape.rank() != 4 || block.parts.empty()) return wiring.chain(block.parts, input);
  if (wiring.channels_last(input)) {
    const Tensor mean =
        wiring.operation("mean", {&input, 1}, {{"dim", std::vector<std::int64_t>{1, 2}}, {"keepdim", true}});
    return wiring.multiply(input, wiring.chain(block.parts, mean));
  }
  const bool pools = wiring.op(block.parts.front()) == "adaptive_avg_pool2d";
  return wiring.multiply(input, wiring.chain(block.parts, pools ? input : pooled(wiring, input)));
}

/// The rows of one pixel before it.
inline std::optional<std::size_t> begin_excite(const OpenRows& rows) {
  std::size_t begin = rows.parts.size();
  while (begin > 0 && one_pixel(rows.shapes[begin])) --begin;
  return begin < rows.parts.size() ? std::optional(begin) : std::nullopt;
}

/// timm.layers.EcaModule: a convolution along the channels of one pixel.
inline Tensor wire_eca(Wiring& wiring, const Container& block, Tensor input) {
  const core::Shape shape = wiring.shape(input);
  const auto conv = wiring.child(block, "conv");
  if (wiring.called() || shape.rank() != 4 || !conv) return wiring.chain(block.parts, input);
  Tensor scale = wiring.operation("mean", {&input, 1}, {{"dim", std::vector<std::int64_t>{2, 3}}});
  scale = wiring.operation("unsqueeze", {&scale, 1}, {{"dim", std::int64_t{1}}});
  scale = wiring.chain(block.parts, scale);
  const std::vector<std::int64_t> pixel = {shape[1].size, 1, 1};
  return wiring.multiply(input, wiring.operation("reshape", {&scale, 1}, {{"shape", pixel}}));
}

inline constexpr std::array<std::string_view, 1> kSqueeze = {"SqueezeExcitation"};
inline constexpr std::array<std::string_view, 5> kExcite = {"SEModule", "SqueezeExcite", "EffectiveSEModule",
                                                            "SqueezeExciteCl", "SEWithNorm"};
inline constexpr std::array<std::string_view, 2> kEca = {"EcaModule", "CecaModule"};

}  // namespace gate_detail

inline constexpr std::array<BlockRule, 3> kGateBlocks = {
    {{gate_detail::kSqueeze, gate_detail::wire_squeeze, gate_detail::begin_squeeze},
     {gate_detail::kExcite, gate_detail::wire_excite, gate_detail::begin_excite},
     {gate_detail::kEca, gate_detail::wire_eca, nullptr}}};

}  // namespace gpumem::connect
