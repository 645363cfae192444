// Axes as PyTorch counts them, and dimensions as attributes give them, for shape rules.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "gpumem/ops/op.hpp"

namespace gpumem::ops {

/// A possibly negative axis as an index, or nothing if the shape has no such axis.
inline std::optional<std::size_t> axis_of(const core::Shape& shape, std::int64_t axis) {
  const auto rank = static_cast<std::int64_t>(shape.rank());
  if (axis < -rank || axis >= rank) return std::nullopt;
  return static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
}

/// The shape without an axis.
inline core::Shape without(const core::Shape& shape, std::size_t gone) {
  core::Shape result;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    if (axis != gone) result.push_back(shape[axis]);
  }
  return result;
}

/// The attribute if it is a list of integers; null if not.
inline const std::vector<std::int64_t>* list_of(const model::Attributes& attributes, std::string_view name) {
  const model::AttributeValue* value = attributes.find(name);
  return value == nullptr ? nullptr : std::get_if<std::vector<std::int64_t>>(value);
}

/// How many elements "start", "length" and "step" leave of an axis of this size; without a length all that follow
/// the start. Nothing if the axis is shorter.
inline std::optional<std::int64_t> narrowed(const model::Attributes& attributes, std::int64_t size,
                                            std::optional<std::int64_t> length) {
  const std::int64_t start = attributes.integer("start").value_or(0);
  const std::int64_t step = attributes.integer("step").value_or(1);
  if (start < 0 || start >= size || step < 1) return std::nullopt;
  const std::int64_t most = (size - start - 1) / step + 1;
  if (length.value_or(most) < 1 || length.value_or(most) > most) return std::nullopt;
  return length.value_or(most);
}

/// The dimensions of attribute "shape": a list of integers, or one with "N" in it.
inline std::optional<std::vector<core::Dim>> wanted_dims(const model::Attributes& attributes) {
  const model::AttributeValue* shape = attributes.find("shape");
  if (shape == nullptr) return std::nullopt;
  if (const auto* dims = std::get_if<std::vector<core::Dim>>(shape)) return *dims;
  const auto* sizes = std::get_if<std::vector<std::int64_t>>(shape);
  if (sizes == nullptr) return std::nullopt;
  std::vector<core::Dim> dims;
  for (const std::int64_t size : *sizes) dims.push_back(core::Dim::fixed(size));
  return dims;
}

/// The dimensions of a shape.
inline std::vector<core::Dim> dims_of(const core::Shape& shape) {
  std::vector<core::Dim> dims;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) dims.push_back(shape[axis]);
  return dims;
}

// Input: the shapes of an op's inputs.
// Output: the shape that they broadcast to. NumPy's rules, as PyTorch has them (torch.broadcast_shapes): axes align at
// the end, and a 1 stretches.

inline core::Result<core::Shape> broadcast_shape(const OpInput& input) {
  core::Shape result = input.inputs[0];
  for (const core::Shape& next : input.inputs.subspan(1)) {
    const core::Shape& longer = next.rank() > result.rank() ? next : result;
    const core::Shape& shorter = next.rank() > result.rank() ? result : next;
    core::Shape joined = longer;
    const std::size_t offset = longer.rank() - shorter.rank();
    for (std::size_t axis = 0; axis < shorter.rank(); ++axis) {
      const core::Dim left = longer[axis + offset];
      const core::Dim right = shorter[axis];
      if (left == right || right == core::Dim::fixed(1)) continue;
      if (left != core::Dim::fixed(1)) return unfit(next, "a shape that broadcasts with " + core::to_string(result));
      joined.set(axis + offset, right);
    }
    result = joined;
  }
  return result;
}

// Input: one spatial axis and the attributes of the window that slides over it.
// Output: the output length. Convolutions and poolings share this arithmetic.
//     L_out = floor((L + 2 padding - dilation (kernel - 1) - 1) / stride) + 1

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
