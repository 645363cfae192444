#pragma once

#include <algorithm>
#include <initializer_list>

#include "gpumem/core/checked.hpp"

#include "gpumem/device/workspace.hpp"

namespace gpumem::device {

namespace workspace_detail {

/// Beyond this no GPU is; a few of them still add up within 64 bits.
inline constexpr std::int64_t kMostBytes = std::int64_t{1} << 60;

GPUMEM_INLINE std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (std::min(value, kMostBytes) + multiple - 1) / multiple * multiple;
}

GPUMEM_INLINE std::int64_t product(std::initializer_list<std::int64_t> factors) {
  core::Checked result = 1;
  for (const std::int64_t factor : factors) result *= factor;
  return std::min(result.value().value_or(kMostBytes), kMostBytes);
}

/// Into how many slices a weight gradient of w bytes is split.
GPUMEM_INLINE std::int64_t slices(const ConvolutionWorkspaceRule& rule, std::int64_t in_channels, std::int64_t w,
                                  bool wide) {
  if (wide) return w <= rule.wide_split_most_bytes ? rule.wide_slices : 1;
  if (in_channels <= rule.narrow_least_inputs) return 1;
  constexpr std::int64_t kLeast = 2;
  return std::max(kLeast, (rule.narrow_split_bytes + w / 2) / w);
}

}  // namespace workspace_detail

GPUMEM_INLINE WorkspaceChoice convolution_workspace(const GpuProfile& gpu, const ConvolutionCall& call) {
  using workspace_detail::product;
  using workspace_detail::round_up;
  const ConvolutionWorkspaceRule& rule = gpu.convolution_workspace;
  const std::int64_t in = call.in_channels;
  const std::int64_t out = call.out_channels;
  const bool depthwise = call.groups > 1 && call.groups == in;
  if (depthwise) return {};
  constexpr std::int64_t kFloatBytes = 4;
  const std::int64_t multiple = rule.channel_multiple * kFloatBytes / std::min(call.element_bytes, kFloatBytes);
  const std::int64_t x = product({round_up(in, multiple), call.input_pixels, call.batch_size, call.element_bytes});
  const std::int64_t y = product({round_up(out, multiple), call.output_pixels, call.batch_size, call.element_bytes});
  constexpr std::int64_t kImageChannels = 3;
  if (in <= kImageChannels) {
    const bool copies = call.pass == ConvolutionPass::weight_gradient && out > rule.first_layer_channels;
    return {copies ? x + y : 0, 0};
  }
  const std::int64_t w = product(
      {round_up(in / call.groups, multiple), round_up(out, multiple), call.kernel_elements, call.element_bytes});
  const bool wide = std::max(in, out) > rule.narrow_channels;
  const bool aligned = out % multiple == 0 && (in % multiple == 0 || wide);
  if (aligned && (call.kernel_elements == 1 || call.pass == ConvolutionPass::forward)) return {};
  if (call.pass != ConvolutionPass::weight_gradient) return {x + y + w, 0};
  if (w == 0) return {x + y, 0};  // more groups than channels: no sizes of a real layer
  const bool whole = wide && in % rule.whole_multiple == 0 && out % rule.whole_multiple == 0;
  return {x + y + product({whole ? 1 : workspace_detail::slices(rule, in, w, wide), w}), 0};
}

GPUMEM_INLINE std::int64_t cublas_workspace(const GpuProfile& gpu) {
  constexpr std::int64_t kBeforeHopper = 8519680;  // :4096:2:16:8, PyTorch's default
  return gpu.cublas_workspace_bytes ? gpu.cublas_workspace_bytes->value : kBeforeHopper;
}

}  // namespace gpumem::device
