// Input: one spatial axis and the attributes of the window that slides over it.
// Output: the output length. Convolutions and poolings share this arithmetic.
//     L_out = floor((L + 2 padding - dilation (kernel - 1) - 1) / stride) + 1
#pragma once

#include "gpumem/ops/op.hpp"

namespace gpumem::ops {

/// What one axis of a sliding window needs to know; absent values are PyTorch's defaults.
struct Window {
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t dilation = 1;

  /// The window of this axis; a pooling's stride is its kernel where none is given.
  static Window of(const model::Attributes& attributes, std::size_t axis, bool stride_is_kernel = false) {
    const std::int64_t kernel = attributes.per_axis("kernel_size", axis).value_or(1);
    return {kernel, attributes.per_axis("stride", axis).value_or(stride_is_kernel ? kernel : 1),
            attributes.per_axis("padding", axis).value_or(0), attributes.per_axis("dilation", axis).value_or(1)};
  }

  /// Every figure within what a real layer has, so that the arithmetic stays far from overflow.
  [[nodiscard]] bool sane() const {
    constexpr std::int64_t kMost = std::int64_t{1} << 20;
    const auto within = [](std::int64_t value, std::int64_t least) { return value >= least && value <= kMost; };
    return within(kernel, 1) && within(stride, 1) && within(padding, 0) && within(dilation, 1);
  }

  /// The stretch of input that one output element sees, less one.
  [[nodiscard]] std::int64_t reach() const { return dilation * (kernel - 1); }
};

[[nodiscard]] inline core::Error insane_window() {
  return {core::ErrorCode::malformed_input,
          "has a kernel, stride, padding or dilation that is negative, zero or beyond 2^20",
          {}};
}

/// padding='same' keeps the length (stride 1); padding='valid' pads nothing.
[[nodiscard]] inline bool pads_to_same(const model::Attributes& attributes) {
  const model::AttributeValue* padding = attributes.find("padding");
  const auto* text = padding == nullptr ? nullptr : std::get_if<std::string>(padding);
  return text != nullptr && *text == "same";
}

/// The length after the window; with ceil_mode a last partial window counts if it starts inside the input
/// or its left padding, as torch.nn.functional.max_pool2d has it.
[[nodiscard]] inline std::optional<std::int64_t> slid_length(const Window& window, std::int64_t length,
                                                             bool ceil_mode = false) {
  constexpr std::int64_t kLongest = std::int64_t{1} << 40;  // far from overflow, and from any real input
  if (length > kLongest) return std::nullopt;
  const std::int64_t room = length + 2 * window.padding - window.reach() - 1;
  if (room < 0) return std::nullopt;
  std::int64_t result = (room + (ceil_mode ? window.stride - 1 : 0)) / window.stride + 1;
  if (ceil_mode && (result - 1) * window.stride >= length + window.padding) --result;
  return result;
}

/// The shape after `slide` has replaced each of `Axes` spatial axes behind batch and channels.
template <std::size_t Axes, typename Slide>
core::Result<core::Shape> slid_shape(core::Shape shape, Slide slide) {
  if (shape.rank() != Axes + 2) return unfit(shape, std::to_string(Axes + 2) + " axes");
  for (std::size_t axis = 0; axis < Axes; ++axis) {
    const core::Dim dim = shape[axis + 2];
    if (dim.kind != core::Dim::Kind::fixed) return unfit(shape, "known spatial sizes");
    const core::Result<std::int64_t> length = slide(axis, dim.size);
    if (!length) return length.error();
    shape.set(axis + 2, core::Dim::fixed(*length));
  }
  return shape;
}

}  // namespace gpumem::ops
