// Regions of images: torchvision.ops.MultiScaleRoIAlign. It reads the levels of a pyramid and leaves "rois" regions a
// sample of "output_size" pixels, each cut from one of the levels. Source: torchvision 0.21, ops/poolers.py
// (_multiscale_roi_align): regions of a level are computed apart and copied to their rows, and each copy's backward
// clones the gradient; roi_align itself keeps only the boxes, and its gradient is as large as the level.
#pragma once

#include <algorithm>
#include <array>

#include "gpumem/ops/op.hpp"

namespace gpumem::ops {

namespace roi_detail {

/// What RoIHeads samples of each image in training (box_batch_size_per_image).
inline constexpr std::int64_t kRegions = 512;
inline constexpr std::int64_t kMostSide = 1 << 12;

inline core::Result<core::Shape> output_shape(const OpInput& input) {
  const core::Shape& level = input.inputs[0];
  const std::int64_t regions = input.attributes.integer("rois").value_or(kRegions);
  const auto high = input.attributes.per_axis("output_size", 0);
  const auto wide = input.attributes.per_axis("output_size", 1);
  if (!high || !wide || *high < 1 || *wide < 1) return missing("output_size");
  const bool sane = *high <= kMostSide && *wide <= kMostSide && regions >= 1 && regions <= kMostSide;
  if (!sane || level.rank() != 4) return unfit(level, "4 axes, and regions of a usable size");
  core::Shape shape;
  shape.push_back(core::Dim::batch(regions));
  shape.push_back(level[1]);
  shape.push_back(core::Dim::fixed(*high));
  shape.push_back(core::Dim::fixed(*wide));
  return shape;
}

inline core::Result<TensorId> record(const OpCall& call, Tape& tape) {
  const std::array<TensorSize, 1> copies = {call.size};
  return tape.record({.inputs = call.tensors, .output = call.size, .scratch = copies, .backward_scratch = copies});
}

inline constexpr std::array<std::string_view, 1> kTorch = {"MultiScaleRoIAlign"};

}  // namespace roi_detail

inline constexpr std::array<Op, 1> kRoiOps = {{
    {.traits = {.name = "roi_align", .family = OpFamily::other, .torch_classes = roi_detail::kTorch},
     .output_shape = roi_detail::output_shape,
     .record = roi_detail::record},
}};

}  // namespace gpumem::ops
