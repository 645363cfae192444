// Convolutions of several kernel sizes side by side, each on its part of the channels (MixNet), and GCNet's gate, which
// weighs pixels by a softmax. Source: timm 1.0.9, timm.layers.mixed_conv2d, timm.layers.global_context.
#pragma once

#include <array>
#include <vector>

#include "gpumem/connect/tokens.hpp"

namespace gpumem::connect {

namespace mixed_convolution_detail {

inline Tensor wire_mixed(Wiring& wiring, const Container& block, Tensor input) {
  std::int64_t sum = 0;
  for (const Part& part : block.parts) sum += wiring.first_width(part, "in_channels").value_or(0);
  if (wiring.called() || sum != wiring.channels(input) || block.parts.size() < 2) {
    return wiring.chain(block.parts, input);
  }
  std::vector<Tensor> outputs;
  std::int64_t start = 0;
  for (const Part& part : block.parts) {
    const std::int64_t width = wiring.first_width(part, "in_channels").value_or(0);
    const Tensor read =
        wiring.operation("slice", {&input, 1}, {{"dim", std::int64_t{1}}, {"start", start}, {"length", width}});
    outputs.push_back(wiring.call(part, read));
    start += width;
  }
  return wiring.failed() ? input : wiring.concatenate(outputs);
}

/// GlobalContext: a mean of all pixels by learned weights, which scales or is added to each pixel.
inline Tensor wire_context(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  const core::Shape shape = wiring.shape(input);
  if (wiring.called() || shape.rank() != 4 || !calls.has("conv_attn")) return wiring.chain(block.parts, input);
  const std::int64_t channels = tokens_detail::fixed(shape, 1);
  const std::int64_t pixels = tokens_detail::fixed(shape, 2) * tokens_detail::fixed(shape, 3);
  Tensor weights = tokens_detail::reshaped(wiring, calls("conv_attn", input), {pixels, 1});
  weights = wiring.operation("softmax", {&weights, 1}, {{"dim", std::int64_t{1}}});
  const Tensor flat = tokens_detail::reshaped(wiring, input, {channels, pixels});
  Tensor context = wiring.operation("matmul", std::array<Tensor, 2>{flat, weights});
  context = tokens_detail::reshaped(wiring, context, {channels, 1, 1});
  if (wiring.failed()) return input;
  Tensor output = input;
  if (calls.has("mlp_scale")) output = wiring.multiply(output, calls("gate", calls("mlp_scale", context)));
  if (calls.has("mlp_add")) output = wiring.add(output, calls("mlp_add", context), false);
  return output;
}

inline constexpr std::array<std::string_view, 1> kMixed = {"MixedConv2d"};
inline constexpr std::array<std::string_view, 1> kContext = {"GlobalContext"};

}  // namespace mixed_convolution_detail

inline constexpr std::array<BlockRule, 2> kMixedConvolutionBlocks = {
    {{mixed_convolution_detail::kMixed, mixed_convolution_detail::wire_mixed, nullptr},
     {mixed_convolution_detail::kContext, mixed_convolution_detail::wire_context, nullptr}}};

}  // namespace gpumem::connect
