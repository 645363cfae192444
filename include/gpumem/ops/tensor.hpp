// Tensor operations without parameters: identity, flatten (torch.flatten), reshape (Tensor.view), permute,
// cat, split, add, sub, mul, matmul, mean, sum, pad (torch.nn.functional.pad), up-sampling
// (torch.nn.functional.interpolate) and pixel_shuffle.
#pragma once

#include <array>

#include "gpumem/ops/op.hpp"

namespace gpumem::ops {

namespace tensor_detail {

/// A possibly negative axis as an index, or nothing if the shape has no such axis.
inline std::optional<std::size_t> axis_of(const core::Shape& shape, std::int64_t axis) {
  const auto rank = static_cast<std::int64_t>(shape.rank());
  if (axis < -rank || axis >= rank) return std::nullopt;
  return static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
}

/// Axes start_dim..end_dim become one; the batch factor of the first of them is kept.
inline core::Result<core::Shape> flatten_shape(const OpInput& input) {
  const core::Shape& shape = input.inputs[0];
  if (shape.rank() == 0) return unfit(shape, "at least one axis");
  const auto first = axis_of(shape, input.attributes.integer("start_dim").value_or(1));
  const auto last = axis_of(shape, input.attributes.integer("end_dim").value_or(-1));
  if (!first || !last || *first > *last) return unfit(shape, "the axes start_dim to end_dim");
  core::Shape result;
  for (std::size_t axis = 0; axis < *first; ++axis) result.push_back(shape[axis]);
  core::Checked size = 1;
  core::Dim::Kind kind = core::Dim::Kind::fixed;
  for (std::size_t axis = *first; axis <= *last; ++axis) {
    const bool grows = shape[axis].kind == core::Dim::Kind::batch;
    if (shape[axis].kind == core::Dim::Kind::unknown) return unfit(shape, "known sizes");
    if (grows && kind == core::Dim::Kind::batch) return unfit(shape, "one batch axis");
    if (grows) kind = core::Dim::Kind::batch;
    size *= shape[axis].size;
  }
  if (!size.valid()) return core::Error{core::ErrorCode::overflow, "its flattened size does not fit 64 bits", {}};
  result.push_back({*size.value(), kind});
  for (std::size_t axis = *last + 1; axis < shape.rank(); ++axis) result.push_back(shape[axis]);
  return result;
}

/// Attribute "shape" without the batch; one -1 stands for what is left.
inline core::Result<core::Shape> reshape_shape(const OpInput& input) {
  const model::AttributeValue* wanted = input.attributes.find("shape");
  const auto* sizes = wanted == nullptr ? nullptr : std::get_if<std::vector<std::int64_t>>(wanted);
  if (sizes == nullptr) return missing("shape");
  const core::Shape& shape = input.inputs[0];
  core::Result<core::Shape> flat = flatten_shape({{}, input.inputs});
  if (!flat || flat->rank() != 2 || (*flat)[1].kind != core::Dim::Kind::fixed) return unfit(shape, "known sizes");
  core::Shape result;
  result.push_back(shape[0]);
  core::Checked product = 1;
  std::optional<std::size_t> open;
  for (const std::int64_t size : *sizes) {
    if (size == -1 && !open) {
      open = result.rank();
    } else if (size < 1) {
      return core::Error{core::ErrorCode::malformed_input, "reshapes to a size below 1", {}};
    } else {
      product *= size;
    }
    if (!result.push_back(core::Dim::fixed(size))) return unfit(shape, "a shape of fewer axes");
  }
  const std::int64_t elements = (*flat)[1].size;
  const std::int64_t given = product.value().value_or(0);
  if (given == 0 || elements % given != 0 || (!open && elements != given)) {
    return unfit(shape, "as many elements as its shape has");
  }
  if (open) result.set(*open, core::Dim::fixed(elements / given));
  return result;
}

inline core::Result<core::Shape> permute_shape(const OpInput& input) {
  const model::AttributeValue* dims = input.attributes.find("dims");
  const auto* order = dims == nullptr ? nullptr : std::get_if<std::vector<std::int64_t>>(dims);
  if (order == nullptr) return missing("dims");
  const core::Shape& shape = input.inputs[0];
  core::Shape result;
  std::array<bool, core::Shape::kMaxRank> taken{};
  for (const std::int64_t dim : *order) {
    const auto axis = axis_of(shape, dim);
    if (!axis || taken[*axis]) return unfit(shape, "dims that name each axis once");
    taken[*axis] = true;
    result.push_back(shape[*axis]);
  }
  return result.rank() == shape.rank() ? core::Result<core::Shape>(result) : unfit(shape, "dims that name each axis");
}

/// All inputs agree but on axis "dim" (1 by default), where they add up.
inline core::Result<core::Shape> concat_shape(const OpInput& input) {
  core::Shape result = input.inputs[0];
  const auto axis = axis_of(result, input.attributes.integer("dim").value_or(1));
  if (!axis) return unfit(result, "the axis dim");
  core::Checked size = result[*axis].size;
  for (const core::Shape& next : input.inputs.subspan(1)) {
    if (next.rank() != result.rank()) return unfit(next, "inputs of one rank");
    for (std::size_t other = 0; other < next.rank(); ++other) {
      const bool joined = other == *axis;
      if (!joined && next[other] != result[other]) return unfit(next, "inputs that agree but on axis dim");
    }
    if (next[*axis].kind != result[*axis].kind) return unfit(next, "sizes on axis dim that add up");
    size += next[*axis].size;
  }
  if (!size.valid()) return unfit(result, "sizes on axis dim that add up");
  result.set(*axis, {*size.value(), result[*axis].kind});
  return result;
}

/// NumPy's rules, as PyTorch has them: axes align at the end, and a 1 stretches.
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

/// "padding" counts (left, right) from the last axis on, or one number for every side of a spatial axis.
inline core::Result<core::Shape> pad_shape(const OpInput& input) {
  core::Shape shape = input.inputs[0];
  const model::AttributeValue* padding = input.attributes.find("padding");
  const auto* sides = padding == nullptr ? nullptr : std::get_if<std::vector<std::int64_t>>(padding);
  const auto everywhere = input.attributes.integer("padding");
  if (!everywhere) return missing("padding");
  const std::size_t padded = sides == nullptr ? (shape.rank() > 2 ? shape.rank() - 2 : 0) : sides->size() / 2;
  if (padded > shape.rank()) return unfit(shape, "as many axes as it pads");
  for (std::size_t back = 0; back < padded; ++back) {
    const std::size_t axis = shape.rank() - 1 - back;
    const core::Checked added = sides == nullptr ? core::Checked(2) * core::Checked(*everywhere)
                                                 : core::Checked((*sides)[2 * back]) + (*sides)[2 * back + 1];
    const core::Checked size = core::Checked(shape[axis].size) + added;
    if (!size.valid() || shape[axis].kind != core::Dim::Kind::fixed)
      return unfit(shape, "a padding that is not negative");
    shape.set(axis, core::Dim::fixed(*size.value()));
  }
  return shape;
}

/// "size" gives the spatial sizes, or "scale_factor" multiplies them (rounded down, as PyTorch has it).
inline core::Result<core::Shape> upsample_shape(const OpInput& input) {
  core::Shape shape = input.inputs[0];
  const model::AttributeValue* factor = input.attributes.find("scale_factor");
  for (std::size_t axis = 2; axis < shape.rank(); ++axis) {
    double scale = 0.0;
    if (const auto size = input.attributes.per_axis("size", axis - 2)) {
      if (*size < 1) return core::Error{core::ErrorCode::malformed_input, "has a size below 1", {}};
      shape.set(axis, core::Dim::fixed(*size));
      continue;
    }
    if (factor == nullptr) return missing("size or scale_factor");
    if (const auto* real = std::get_if<double>(factor)) scale = *real;
    if (const auto whole = input.attributes.per_axis("scale_factor", axis - 2)) scale = static_cast<double>(*whole);
    const double scaled = static_cast<double>(shape[axis].size) * scale;
    constexpr double kMost = 1e15;
    if (!(scaled >= 1.0 && scaled < kMost)) return unfit(shape, "a usable scale_factor");
    shape.set(axis, core::Dim::fixed(static_cast<std::int64_t>(scaled)));
  }
  return shape;
}

/// [N, C r^2, H, W] -> [N, C, H r, W r].
inline core::Result<core::Shape> pixel_shuffle_shape(const OpInput& input) {
  core::Shape shape = input.inputs[0];
  const std::int64_t factor = input.attributes.integer("upscale_factor").value_or(0);
  constexpr std::int64_t kMostFactor = 1024;
  if (factor < 1 || factor > kMostFactor) return missing("upscale_factor");
  if (shape.rank() != 4 || shape[1].size % (factor * factor) != 0) return unfit(shape, "C r^2 channels and 4 axes");
  shape.set(1, core::Dim::fixed(shape[1].size / (factor * factor)));
  for (const std::size_t axis : {std::size_t{2}, std::size_t{3}}) {
    const core::Checked size = core::Checked(shape[axis].size) * core::Checked(factor);
    if (!size.valid()) return core::Error{core::ErrorCode::overflow, "its size does not fit 64 bits", {}};
    shape.set(axis, core::Dim::fixed(*size.value()));
  }
  return shape;
}

/// mean and sum over "dim" (a number or a list; all axes if absent), keeping them as 1 with "keepdim".
inline core::Result<core::Shape> reduce_shape(const OpInput& input) {
  const core::Shape& shape = input.inputs[0];
  std::array<bool, core::Shape::kMaxRank> gone{};
  const model::AttributeValue* dims = input.attributes.find("dim");
  if (dims == nullptr) gone.fill(true);
  for (std::size_t at = 0; dims != nullptr; ++at) {
    const auto* list = std::get_if<std::vector<std::int64_t>>(dims);
    if (at >= (list == nullptr ? 1 : list->size())) break;
    const auto dim = input.attributes.per_axis("dim", at);
    const auto axis = dim ? axis_of(shape, *dim) : std::nullopt;
    if (!axis) return unfit(shape, "the axes dim");
    gone[*axis] = true;
  }
  core::Shape result;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    if (!gone[axis]) result.push_back(shape[axis]);
    if (gone[axis] && input.attributes.flag("keepdim", false)) result.push_back(core::Dim::fixed(1));
  }
  return result;
}

/// One part of "split_size" on axis "dim" (1 by default).
inline core::Result<core::Shape> split_shape(const OpInput& input) {
  core::Shape shape = input.inputs[0];
  const auto axis = axis_of(shape, input.attributes.integer("dim").value_or(1));
  const auto size = input.attributes.integer("split_size");
  if (!axis || !size) return missing("split_size");
  if (*size < 1 || *size > shape[*axis].size) return unfit(shape, "at least split_size on axis dim");
  shape.set(*axis, core::Dim::fixed(*size));
  return shape;
}

/// [.., M, K] x [.., K, P] -> [.., M, P].
inline core::Result<core::Shape> matmul_shape(const OpInput& input) {
  core::Shape shape = input.inputs[0];
  if (input.inputs.size() != 2) return unfit(shape, "two inputs");
  const core::Shape& right = input.inputs[1];
  if (shape.rank() < 2 || right.rank() < 2 || shape[shape.rank() - 1] != right[right.rank() - 2]) {
    return unfit(right, "a matrix whose rows match the left one's columns");
  }
  shape.set(shape.rank() - 1, right[right.rank() - 1]);
  return shape;
}

/// Another look at the same memory, or a copy where the axes do not lie in order (flatten, reshape, view).
inline core::Result<TensorId> record_view(const OpCall& call, Tape& tape) {
  const TensorId input = contiguous(tape, call.tensors[0]);
  return tape.record({.inputs = {&input, 1}, .output = call.size, .kind = Output::view, .gradient = Gradient::passed});
}

/// Tensor.permute: the same memory with its axes renamed.
inline core::Result<TensorId> record_permute(const OpCall& call, Tape& tape) {
  std::array<std::size_t, core::Shape::kMaxRank> dims{};
  for (std::size_t axis = 0; axis < call.output.rank(); ++axis) {
    const auto dim = call.attributes.per_axis("dims", axis);
    dims[axis] = dim ? axis_of(call.shapes[0], *dim).value_or(axis) : axis;
  }
  return tape.record({.inputs = call.tensors.first(1),
                      .output = call.size,
                      .kind = Output::view,
                      .layout = tape.tensor(call.tensors[0]).layout.permuted(std::span(dims).first(call.output.rank())),
                      .gradient = Gradient::passed});
}

/// Tensor.contiguous: a copy, unless the axes lie in order already.
inline core::Result<TensorId> record_contiguous(const OpCall& call, Tape& tape) {
  return contiguous(tape, call.tensors[0]);
}

/// torch.cat: its backward hands out views of the gradient.
inline core::Result<TensorId> record_concat(const OpCall& call, Tape& tape) {
  return tape.record({.inputs = call.tensors, .output = call.size, .gradient = Gradient::part});
}

/// torch.split: views, whose gradients are copied together.
inline core::Result<TensorId> record_split(const OpCall& call, Tape& tape) {
  return tape.record({.inputs = call.tensors.first(1),
                      .output = tape.tensor(call.tensors[0]).size,
                      .kind = Output::view,
                      .layout = tape.tensor(call.tensors[0]).layout,
                      .gradient = Gradient::joined});
}

/// A part of a tensor, with gaps: a view.
inline TensorId part_of(const OpCall& call, Tape& tape, Gradient gradient) {
  const Layout whole = tape.tensor(call.tensors[0]).layout;
  return tape.record({.inputs = call.tensors.first(1),
                      .output = call.size,
                      .kind = Output::view,
                      .layout = {whole.order, true},
                      .gradient = gradient});
}

/// One part of a split: its gradient waits for the others'.
inline core::Result<TensorId> record_item(const OpCall& call, Tape& tape) {
  return part_of(call, tape, Gradient::passed);
}

/// Tensor.narrow and select: backward copies the gradient into zeros of the whole's size.
inline core::Result<TensorId> record_slice(const OpCall& call, Tape& tape) {
  return part_of(call, tape, Gradient::fresh);
}

/// Tensor.expand: backward sums.
inline core::Result<TensorId> record_expand(const OpCall& call, Tape& tape) {
  return tape.record(
      {.inputs = call.tensors.first(1), .output = call.size, .kind = Output::view, .layout = {Layout::kInOrder, true}});
}

/// aten::add and sub: the gradient goes to both unchanged.
inline core::Result<TensorId> record_add(const OpCall& call, Tape& tape) {
  const bool in_place = call.attributes.flag("inplace", false);
  return tape.record({.inputs = call.tensors,
                      .output = call.size,
                      .kind = in_place ? Output::in_place : Output::fresh,
                      .layout = tape.tensor(call.tensors[0]).layout,
                      .gradient = Gradient::passed});
}

/// aten::mul, div, maximum: each input is kept for the other's gradient; by a number, nothing is.
inline core::Result<TensorId> record_product(const OpCall& call, Tape& tape) {
  const bool in_place = call.attributes.flag("inplace", false);
  std::uint32_t saved = 0;
  bool spreads = false;
  if (call.tensors.size() == 2) {
    saved =
        (tape.tensor(call.tensors[1]).requires_grad ? 1U : 0U) | (tape.tensor(call.tensors[0]).requires_grad ? 2U : 0U);
    spreads = !(call.shapes[0] == call.shapes[1]);
  }
  return tape.record({.inputs = call.tensors,
                      .output = call.size,
                      .kind = in_place ? Output::in_place : Output::fresh,
                      .layout = tape.tensor(call.tensors[0]).layout,
                      .saved_inputs = saved,
                      .backward_scratch = {&call.size, spreads ? 1U : 0U}});
}

/// One axis in front of the rows and columns is a batch of matrices; more are folded, with a copy if they cannot be.
inline TensorId folded(Tape& tape, TensorId tensor, std::size_t rank) {
  return rank < 4 || tape.tensor(tensor).layout.leading_axes_merge(rank - 2) ? tensor : contiguous(tape, tensor);
}

/// aten::matmul: keeps both inputs.
inline core::Result<TensorId> record_matmul(const OpCall& call, Tape& tape) {
  if (call.tensors.size() != 2) return unfit(call.output, "two inputs");
  const std::array<TensorId, 2> inputs = {folded(tape, call.tensors[0], call.shapes[0].rank()),
                                          folded(tape, call.tensors[1], call.shapes[1].rank())};
  return tape.record({.inputs = inputs,
                      .output = call.size,
                      .saved_inputs = 3,
                      .library = Library::gemm,
                      .autocast = Autocast::lower});
}

/// A kernel that reads its input once and keeps nothing (mean, pad, upsample, pixel_shuffle).
inline core::Result<TensorId> record_plain(const OpCall& call, Tape& tape) {
  return tape.record({.inputs = call.tensors.first(1), .output = call.size});
}

/// aten::sum: its gradient is a view that repeats one figure.
inline core::Result<TensorId> record_sum(const OpCall& call, Tape& tape) {
  return tape.record({.inputs = call.tensors.first(1), .output = call.size, .gradient = Gradient::spread});
}

/// What a printed count holds, beside an elementwise kernel.
inline core::Result<TensorId> record_normalize(const OpCall& call, Tape& tape) {
  add_parameters(call, tape, {core::Checked(call.parameters)});
  return record_plain(call, tape);
}

inline constexpr std::array<std::string_view, 1> kIdentity = {"Identity"};
inline constexpr std::array<std::string_view, 1> kFlatten = {"Flatten"};
inline constexpr std::array<std::string_view, 2> kKerasReshape = {"Reshape", "RepeatVector"};
inline constexpr std::array<std::string_view, 1> kPermute = {"Permute"};
inline constexpr std::array<std::string_view, 1> kPermutePositional = {"dims"};
inline constexpr std::array<std::string_view, 1> kConcat = {"Concatenate"};
inline constexpr std::array<std::string_view, 1> kAdd = {"Add"};
inline constexpr std::array<std::string_view, 1> kSub = {"Subtract"};
inline constexpr std::array<std::string_view, 1> kMul = {"Multiply"};
inline constexpr std::array<std::string_view, 1> kMatmul = {"Dot"};
inline constexpr std::array<std::string_view, 1> kMean = {"Average"};
inline constexpr std::array<std::string_view, 3> kKerasMax = {"Maximum", "Minimum", "Masking"};
inline constexpr std::array<std::string_view, 12> kPad = {"ZeroPad1d",        "ZeroPad2d",        "ZeroPad3d",
                                                          "ConstantPad1d",    "ConstantPad2d",    "ConstantPad3d",
                                                          "ReflectionPad1d",  "ReflectionPad2d",  "ReflectionPad3d",
                                                          "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d"};
inline constexpr std::array<std::string_view, 3> kKerasPad = {"ZeroPadding1D", "ZeroPadding2D", "ZeroPadding3D"};
inline constexpr std::array<std::string_view, 3> kCrop = {"Cropping1D", "Cropping2D", "Cropping3D"};
inline constexpr std::array<std::string_view, 1> kPadPositional = {"padding"};
inline constexpr std::array<std::string_view, 3> kUpsample = {"Upsample", "UpsamplingNearest2d",
                                                              "UpsamplingBilinear2d"};
inline constexpr std::array<std::string_view, 4> kKerasUpsample = {"UpSampling1D", "UpSampling2D", "UpSampling3D",
                                                                   "Resizing"};
inline constexpr std::array<std::string_view, 1> kShuffle = {"PixelShuffle"};
inline constexpr std::array<std::string_view, 1> kShufflePositional = {"upscale_factor"};
/// Keras' preprocessing layers that keep the image's size.
inline constexpr std::array<std::string_view, 6> kRescaling = {"Rescaling",  "RandomFlip",        "RandomRotation",
                                                               "RandomZoom", "RandomTranslation", "RandomContrast"};
inline constexpr std::array<std::string_view, 1> kNormalization = {"Normalization"};
inline constexpr std::array<std::string_view, 1> kTimeDistributed = {"TimeDistributed"};

/// Keras' Normalization holds the mean, variance and count it adapted to; its summary prints how many.
inline std::optional<core::Checked> printed_only(const model::Attributes&) { return std::nullopt; }

}  // namespace tensor_detail

inline constexpr std::array<Op, 23> kTensorOps = {
    {{{"identity", tensor_detail::kIdentity}, same_shape, {}, false, record_nothing},
     {{"flatten", tensor_detail::kFlatten, tensor_detail::kFlatten},
      tensor_detail::flatten_shape,
      {},
      false,
      tensor_detail::record_view},
     {{"reshape", {}, tensor_detail::kKerasReshape},
      tensor_detail::reshape_shape,
      {},
      false,
      tensor_detail::record_view},
     {{"permute", tensor_detail::kPermute, tensor_detail::kPermute, tensor_detail::kPermutePositional},
      tensor_detail::permute_shape,
      {},
      false,
      tensor_detail::record_permute},
     {{"concat", {}, tensor_detail::kConcat}, tensor_detail::concat_shape, {}, false, tensor_detail::record_concat},
     {{"split"}, tensor_detail::split_shape, {}, false, tensor_detail::record_split},
     {{"add", {}, tensor_detail::kAdd}, tensor_detail::broadcast_shape, {}, false, tensor_detail::record_add},
     {{"sub", {}, tensor_detail::kSub}, tensor_detail::broadcast_shape, {}, false, tensor_detail::record_add},
     {{"mul", {}, tensor_detail::kMul}, tensor_detail::broadcast_shape, {}, false, tensor_detail::record_product},
     {{"div"}, tensor_detail::broadcast_shape, {}, false, tensor_detail::record_product},
     {{"maximum", {}, tensor_detail::kKerasMax},
      tensor_detail::broadcast_shape,
      {},
      false,
      tensor_detail::record_product},
     {{"average", {}, tensor_detail::kMean}, tensor_detail::broadcast_shape, {}, false, tensor_detail::record_add},
     {{"matmul", {}, tensor_detail::kMatmul}, tensor_detail::matmul_shape, {}, false, tensor_detail::record_matmul},
     {{"mean"}, tensor_detail::reduce_shape, {}, false, tensor_detail::record_plain},
     {{"sum"}, tensor_detail::reduce_shape, {}, false, tensor_detail::record_sum},
     {{"pad", tensor_detail::kPad, tensor_detail::kKerasPad, tensor_detail::kPadPositional},
      tensor_detail::pad_shape,
      {},
      false,
      tensor_detail::record_plain},
     {{"crop", {}, tensor_detail::kCrop}, printed_shape_only, {}, false, tensor_detail::record_slice},
     {{"upsample", tensor_detail::kUpsample, tensor_detail::kKerasUpsample},
      tensor_detail::upsample_shape,
      {},
      false,
      tensor_detail::record_plain},
     {{"pixel_shuffle", tensor_detail::kShuffle, {}, tensor_detail::kShufflePositional},
      tensor_detail::pixel_shuffle_shape,
      {},
      false,
      tensor_detail::record_plain},
     {{"rescale", {}, tensor_detail::kRescaling}, same_shape, {}, false, tensor_detail::record_plain},
     {{"normalize", {}, tensor_detail::kNormalization, {}, tensor_detail::printed_only},
      same_shape,
      {},
      false,
      tensor_detail::record_normalize},
     {{"time_distributed", {}, tensor_detail::kTimeDistributed, {}, tensor_detail::printed_only}, printed_shape_only},
     {{"contiguous"}, same_shape, {}, false, tensor_detail::record_contiguous}}};

}  // namespace gpumem::ops
