// Pooling: torch.nn.functional.max_pool1d/2d/3d, avg_pool1d/2d/3d and adaptive_max/avg_pool1d/2d/3d; Keras'
// global poolings, which drop the spatial axes, are printed with their shapes and need no rule here.
#pragma once

#include <algorithm>
#include <array>

#include "gpumem/ops/axis.hpp"
#include "gpumem/ops/op.hpp"

namespace gpumem::ops {

namespace pool_detail {

template <std::size_t Axes>
core::Result<core::Shape> output_shape(const OpInput& input) {
  if (input.attributes.find("kernel_size") == nullptr) return missing("kernel_size");
  return slid_shape<Axes>(input.inputs[0], [&](std::size_t axis, std::int64_t length) -> core::Result<std::int64_t> {
    const Window window = Window::of(input.attributes, axis, true);
    if (!window.sane()) return insane_window();
    const auto result = slid_length(window, length, input.attributes.flag("ceil_mode", false));
    if (!result || *result < 1) return unfit(input.inputs[0], "an input larger than its kernel");
    return *result;
  });
}

/// output_size is one integer for all axes or a list; None (-1 in a list) keeps the axis.
template <std::size_t Axes>
core::Result<core::Shape> adaptive_output_shape(const OpInput& input) {
  if (input.attributes.find("output_size") == nullptr) return missing("output_size");
  return slid_shape<Axes>(input.inputs[0], [&](std::size_t axis, std::int64_t length) -> core::Result<std::int64_t> {
    const std::int64_t wanted = input.attributes.per_axis("output_size", axis).value_or(length);
    if (wanted == -1) return length;
    if (wanted < 1) return core::Error{core::ErrorCode::malformed_input, "has an output_size below 1", {}};
    return wanted;
  });
}

/// aten::max_pool2d_with_indices: keeps its input and an int64 index an output.
inline core::Result<TensorId> record_max(const OpCall& call, Tape& tape) {
  const TensorSize indices = call.size.as(core::DType::int64);
  const TensorId input = call.tensors[0];
  return tape.record(
      {.inputs = {&input, 1}, .output = call.size, .saved_inputs = 1, .extras = {&indices, 1}, .own_copy = true});
}

/// aten::avg_pool2d and adaptive_avg_pool2d keep their input.
inline core::Result<TensorId> record_average(const OpCall& call, Tape& tape) {
  const TensorId input = call.tensors[0];
  return tape.record({.inputs = {&input, 1}, .output = call.size, .saved_inputs = 1, .own_copy = true});
}

/// Adaptive pooling to one element is aten::mean in PyTorch.
inline core::Result<TensorId> record_adaptive_average(const OpCall& call, Tape& tape) {
  bool single = true;  // Keras prints the output of its global pooling without spatial axes
  for (std::size_t axis = 2; axis < call.output.rank(); ++axis) single &= call.output[axis] == core::Dim::fixed(1);
  if (!single) return record_average(call, tape);
  return mean_of(call, tape);
}

inline constexpr std::array<std::string_view, 1> kKernel = {"kernel_size"};
inline constexpr std::array<std::string_view, 1> kOutput = {"output_size"};
inline constexpr std::array<std::string_view, 1> kMax1 = {"MaxPool1d"};
inline constexpr std::array<std::string_view, 2> kMax2 = {"MaxPool2d", "MaxPool2dSame"};
inline constexpr std::array<std::string_view, 1> kMax3 = {"MaxPool3d"};
inline constexpr std::array<std::string_view, 1> kAvg1 = {"AvgPool1d"};
inline constexpr std::array<std::string_view, 2> kAvg2 = {"AvgPool2d", "AvgPool2dSame"};
inline constexpr std::array<std::string_view, 1> kAvg3 = {"AvgPool3d"};
inline constexpr std::array<std::string_view, 1> kAdaptiveAvg1 = {"AdaptiveAvgPool1d"};
inline constexpr std::array<std::string_view, 2> kAdaptiveAvg2 = {"AdaptiveAvgPool2d", "FastAdaptiveAvgPool2d"};
inline constexpr std::array<std::string_view, 1> kTreeAvg2 = {"SelectAdaptivePool2d"};  // to one pixel, of timm
inline constexpr std::array<std::string_view, 1> kAdaptiveAvg3 = {"AdaptiveAvgPool3d"};
inline constexpr std::array<std::string_view, 1> kAdaptiveMax1 = {"AdaptiveMaxPool1d"};
inline constexpr std::array<std::string_view, 1> kAdaptiveMax2 = {"AdaptiveMaxPool2d"};
inline constexpr std::array<std::string_view, 1> kAdaptiveMax3 = {"AdaptiveMaxPool3d"};
inline constexpr std::array<std::string_view, 1> kKerasMax1 = {"MaxPooling1D"};
inline constexpr std::array<std::string_view, 1> kKerasMax2 = {"MaxPooling2D"};
inline constexpr std::array<std::string_view, 1> kKerasMax3 = {"MaxPooling3D"};
inline constexpr std::array<std::string_view, 1> kKerasAvg1 = {"AveragePooling1D"};
inline constexpr std::array<std::string_view, 1> kKerasAvg2 = {"AveragePooling2D"};
inline constexpr std::array<std::string_view, 1> kKerasAvg3 = {"AveragePooling3D"};
inline constexpr std::array<std::string_view, 1> kKerasGlobalAvg1 = {"GlobalAveragePooling1D"};
inline constexpr std::array<std::string_view, 1> kKerasGlobalAvg2 = {"GlobalAveragePooling2D"};
inline constexpr std::array<std::string_view, 1> kKerasGlobalAvg3 = {"GlobalAveragePooling3D"};
inline constexpr std::array<std::string_view, 1> kKerasGlobalMax1 = {"GlobalMaxPooling1D"};
inline constexpr std::array<std::string_view, 1> kKerasGlobalMax2 = {"GlobalMaxPooling2D"};
inline constexpr std::array<std::string_view, 1> kKerasGlobalMax3 = {"GlobalMaxPooling3D"};

}  // namespace pool_detail

inline constexpr std::array<Op, 12> kPoolOps = {{
    {.traits = {.name = "max_pool1d",
                .family = OpFamily::pool,
                .torch_classes = pool_detail::kMax1,
                .keras_classes = pool_detail::kKerasMax1,
                .positional = pool_detail::kKernel,
                .keeps = Keeps::input,
                .computes = false},
     .output_shape = pool_detail::output_shape<1>,
     .record = pool_detail::record_max},
    {.traits = {.name = "max_pool2d",
                .family = OpFamily::pool,
                .torch_classes = pool_detail::kMax2,
                .keras_classes = pool_detail::kKerasMax2,
                .positional = pool_detail::kKernel,
                .keeps = Keeps::input,
                .computes = false},
     .output_shape = pool_detail::output_shape<2>,
     .record = pool_detail::record_max},
    {.traits = {.name = "max_pool3d",
                .family = OpFamily::pool,
                .torch_classes = pool_detail::kMax3,
                .keras_classes = pool_detail::kKerasMax3,
                .positional = pool_detail::kKernel,
                .keeps = Keeps::input,
                .computes = false},
     .output_shape = pool_detail::output_shape<3>,
     .record = pool_detail::record_max},
    {.traits = {.name = "avg_pool1d",
                .family = OpFamily::pool,
                .torch_classes = pool_detail::kAvg1,
                .keras_classes = pool_detail::kKerasAvg1,
                .positional = pool_detail::kKernel,
                .keeps = Keeps::input,
                .computes = false},
     .output_shape = pool_detail::output_shape<1>,
     .record = pool_detail::record_average},
    {.traits = {.name = "avg_pool2d",
                .family = OpFamily::pool,
                .torch_classes = pool_detail::kAvg2,
                .keras_classes = pool_detail::kKerasAvg2,
                .positional = pool_detail::kKernel,
                .keeps = Keeps::input,
                .computes = false},
     .output_shape = pool_detail::output_shape<2>,
     .record = pool_detail::record_average},
    {.traits = {.name = "avg_pool3d",
                .family = OpFamily::pool,
                .torch_classes = pool_detail::kAvg3,
                .keras_classes = pool_detail::kKerasAvg3,
                .positional = pool_detail::kKernel,
                .keeps = Keeps::input,
                .computes = false},
     .output_shape = pool_detail::output_shape<3>,
     .record = pool_detail::record_average},
    {.traits = {.name = "adaptive_avg_pool1d",
                .family = OpFamily::pool,
                .torch_classes = pool_detail::kAdaptiveAvg1,
                .keras_classes = pool_detail::kKerasGlobalAvg1,
                .positional = pool_detail::kOutput,
                .keeps = Keeps::input},
     .output_shape = pool_detail::adaptive_output_shape<1>,
     .record = pool_detail::record_adaptive_average},
    {.traits = {.name = "adaptive_avg_pool2d",
                .family = OpFamily::pool,
                .torch_classes = pool_detail::kAdaptiveAvg2,
                .keras_classes = pool_detail::kKerasGlobalAvg2,
                .positional = pool_detail::kOutput,
                .tree_classes = pool_detail::kTreeAvg2},
     .output_shape = pool_detail::adaptive_output_shape<2>,
     .record = pool_detail::record_adaptive_average},
    {.traits = {.name = "adaptive_avg_pool3d",
                .family = OpFamily::pool,
                .torch_classes = pool_detail::kAdaptiveAvg3,
                .keras_classes = pool_detail::kKerasGlobalAvg3,
                .positional = pool_detail::kOutput,
                .keeps = Keeps::input},
     .output_shape = pool_detail::adaptive_output_shape<3>,
     .record = pool_detail::record_adaptive_average},
    {.traits = {.name = "adaptive_max_pool1d",
                .family = OpFamily::pool,
                .torch_classes = pool_detail::kAdaptiveMax1,
                .keras_classes = pool_detail::kKerasGlobalMax1,
                .positional = pool_detail::kOutput,
                .keeps = Keeps::input},
     .output_shape = pool_detail::adaptive_output_shape<1>,
     .record = pool_detail::record_max},
    {.traits = {.name = "adaptive_max_pool2d",
                .family = OpFamily::pool,
                .torch_classes = pool_detail::kAdaptiveMax2,
                .keras_classes = pool_detail::kKerasGlobalMax2,
                .positional = pool_detail::kOutput,
                .keeps = Keeps::input},
     .output_shape = pool_detail::adaptive_output_shape<2>,
     .record = pool_detail::record_max},
    {.traits = {.name = "adaptive_max_pool3d",
                .family = OpFamily::pool,
                .torch_classes = pool_detail::kAdaptiveMax3,
                .keras_classes = pool_detail::kKerasGlobalMax3,
                .positional = pool_detail::kOutput,
                .keeps = Keeps::input},
     .output_shape = pool_detail::adaptive_output_shape<3>,
     .record = pool_detail::record_max},
}};

// Regions of images: torchvision.ops.MultiScaleRoIAlign. It reads the levels of a pyramid and leaves "rois" regions a
// sample of "output_size" pixels, each cut from one of the levels. Source: torchvision 0.21, ops/poolers.py
// (_multiscale_roi_align): regions of a level are computed apart and copied to their rows, and each copy's backward
// clones the gradient; roi_align itself keeps only the boxes, and its gradient is as large as the level.

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
