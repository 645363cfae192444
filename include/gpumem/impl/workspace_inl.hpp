#pragma once

#include <algorithm>
#include <cmath>

#include "gpumem/device/workspace.hpp"

namespace gpumem::device {

namespace workspace_detail {

GPUMEM_INLINE std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace workspace_detail

GPUMEM_INLINE WorkspaceChoice convolution_workspace(const GpuProfile&, const ConvolutionCall& call) {
  using workspace_detail::round_up;
  constexpr std::int64_t kMiB = std::int64_t{1} << 20;
  const std::int64_t cin = call.in_channels;
  const std::int64_t cout = call.out_channels;
  const bool depthwise = call.groups > 1 && call.groups == cin;
  if (depthwise) return {};  // PyTorch's own kernels
  const std::int64_t alignment = call.element_bytes == 2 ? 8 : 4;
  const std::int64_t x = round_up(cin, alignment) * call.input_pixels * call.batch_size * call.element_bytes;
  const std::int64_t y = round_up(cout, alignment) * call.output_pixels * call.batch_size * call.element_bytes;
  if (cin <= 3) return cout > 112 ? WorkspaceChoice{x + y, 0} : WorkspaceChoice{};
  const std::int64_t w =
      round_up(cin / call.groups, alignment) * round_up(cout, alignment) * call.kernel_elements * call.element_bytes;
  const std::int64_t widest = std::max(cin, cout);
  const std::int64_t copies = x + y + w;
  const bool aligned = cout % alignment == 0 && (cin % alignment == 0 || widest > 200);
  if (aligned && call.kernel_elements == 1) return {};
  switch (call.pass) {
    case ConvolutionPass::forward: return aligned ? WorkspaceChoice{} : WorkspaceChoice{copies, 0};
    case ConvolutionPass::data_gradient: return {copies + (widest > 200 && widest <= 1000 ? 2 * kMiB : 0), 0};
    case ConvolutionPass::weight_gradient: break;
  }
  if (widest > 200 || cin <= 40) return {copies, 0};
  const auto splits = static_cast<std::int64_t>(std::llround(5.0 * static_cast<double>(kMiB) / static_cast<double>(w)));
  return {copies - w + std::max<std::int64_t>(2, splits) * w, 0};
}

GPUMEM_INLINE std::int64_t cublas_workspace(const GpuProfile& gpu) {
  constexpr std::int64_t kBeforeHopper = 8519680;  // :4096:2:16:8, PyTorch's default
  return gpu.cublas_workspace_bytes ? gpu.cublas_workspace_bytes->value : kBeforeHopper;
}

}  // namespace gpumem::device
