// Input: the shape that one of timm's "same" convolutions and poolings reads (Conv2dSame, AvgPool2dSame), and the
// layer's attributes.
// Output: by how many pixels its input is padded first, so that its output has ceil(size / stride).
// Source: timm 1.0.9, timm.layers.padding.pad_same.
#pragma once

#include <cstdint>
#include <vector>

#include "gpumem/core/shape.hpp"
#include "gpumem/model/op_traits.hpp"

namespace gpumem::connect {

/// Left, right, top and bottom, as the op "pad" has them; none if nothing is padded.
[[nodiscard]] inline std::vector<std::int64_t> same_padding(const core::Shape& shape, const model::Attributes& window) {
  std::vector<std::int64_t> sides;
  std::int64_t all = 0;
  for (const std::size_t axis : {std::size_t{1}, std::size_t{0}}) {
    constexpr std::int64_t kMost = std::int64_t{1} << 20;
    const std::int64_t size = shape[axis + 2].size;
    const std::int64_t kernel = window.per_axis("kernel_size", axis).value_or(1);
    const std::int64_t stride = window.per_axis("stride", axis).value_or(1);
    const std::int64_t dilation = window.per_axis("dilation", axis).value_or(1);
    const bool sane = size < kMost && kernel > 0 && kernel < kMost && stride > 0 && stride < kMost && dilation > 0 &&
                      dilation < kMost;
    if (!sane) return {};
    const std::int64_t reach = ((size + stride - 1) / stride - 1) * stride + (kernel - 1) * dilation + 1;
    const std::int64_t lacks = reach > size ? reach - size : 0;
    sides.push_back(lacks / 2);
    sides.push_back(lacks - lacks / 2);
    all += lacks;
  }
  return all > 0 ? sides : std::vector<std::int64_t>();
}

}  // namespace gpumem::connect
