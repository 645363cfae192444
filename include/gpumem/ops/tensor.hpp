// Tensor operations without parameters: identity, flatten (torch.flatten), reshape (Tensor.view), unflatten,
// permute, squeeze, unsqueeze, expand, cat, split and the items of it, slice, select, index (torch.index_select,
// x[ids]), roll, clone, add, sub, mul, matmul, mean, sum, pad (torch.nn.functional.pad), up-sampling
// (torch.nn.functional.interpolate) and pixel_shuffle. One-input forms of add, sub, mul and div are those with a
// Python number.
#pragma once

#include <algorithm>
#include <array>

#include "gpumem/ops/broadcast.hpp"

namespace gpumem::ops {

namespace tensor_detail {

/// A possibly negative axis as an index, or nothing if the shape has no such axis.
inline std::optional<std::size_t> axis_of(const core::Shape& shape, std::int64_t axis) {
  const auto rank = static_cast<std::int64_t>(shape.rank());
  if (axis < -rank || axis >= rank) return std::nullopt;
  return static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
}

/// The attribute if it is a list of integers; null if not.
inline const std::vector<std::int64_t>* list_of(const model::Attributes& attributes, std::string_view name) {
  const model::AttributeValue* value = attributes.find(name);
  return value == nullptr ? nullptr : std::get_if<std::vector<std::int64_t>>(value);
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
  const auto* sizes = list_of(input.attributes, "shape");
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
  const auto* order = list_of(input.attributes, "dims");
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

/// A tuple of parts, of "sizes" on axis "dim": it stands for the whole input, and "item" takes a part of it.
inline core::Result<core::Shape> split_shape(const OpInput& input) {
  const core::Shape& shape = input.inputs[0];
  const auto* sizes = list_of(input.attributes, "sizes");
  if (sizes == nullptr) return missing("sizes");
  const auto axis = axis_of(shape, input.attributes.integer("dim").value_or(0));
  core::Checked total = 0;
  for (const std::int64_t size : *sizes) total += size;
  const auto negative = [](std::int64_t size) { return size < 0; };
  const bool sound = axis && total.valid() && std::none_of(sizes->begin(), sizes->end(), negative);
  if (!sound || shape[*axis] != core::Dim::fixed(*total.value())) return unfit(shape, "sizes that add up on axis dim");
  return shape;
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

/// "start", "length" and "step" on axis "dim". With a second input the length is that one's size on "like_dim":
/// position tables are cut to the length of the tokens.
inline core::Result<core::Shape> slice_shape(const OpInput& input) {
  core::Shape shape = input.inputs[0];
  const auto axis = axis_of(shape, input.attributes.integer("dim").value_or(0));
  if (!axis || shape[*axis].kind != core::Dim::Kind::fixed) return unfit(shape, "a known size on axis dim");
  std::optional<std::int64_t> length = input.attributes.integer("length");
  if (input.inputs.size() > 1) {
    const core::Shape& like = input.inputs[1];
    const auto other = axis_of(like, input.attributes.integer("like_dim").value_or(0));
    if (!other || like[*other].kind != core::Dim::Kind::fixed) return unfit(like, "a known size on axis like_dim");
    length = like[*other].size;
  }
  const auto left = narrowed(input.attributes, shape[*axis].size, length);
  if (!left) {
    return unfit(shape, "at least start + length elements on axis dim" +
                            (length ? " (the length is " + std::to_string(*length) + ")" : std::string()));
  }
  shape.set(*axis, core::Dim::fixed(*left));
  return shape;
}

/// The shape without an axis.
inline core::Shape without(const core::Shape& shape, std::size_t gone) {
  core::Shape result;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    if (axis != gone) result.push_back(shape[axis]);
  }
  return result;
}

/// Element "index" of axis "dim", which is dropped.
inline core::Result<core::Shape> select_shape(const OpInput& input) {
  const core::Shape& shape = input.inputs[0];
  const auto axis = axis_of(shape, input.attributes.integer("dim").value_or(0));
  const auto index = input.attributes.integer("index");
  if (!index) return missing("index");
  const bool beyond = axis && shape[*axis].kind == core::Dim::Kind::fixed &&
                      (*index >= shape[*axis].size || *index < -shape[*axis].size);
  if (!axis || beyond) return unfit(shape, "the element index on axis dim");
  return without(shape, *axis);
}

/// The rows that the second input names on axis "dim": its axes take the place of that one.
inline core::Result<core::Shape> index_shape(const OpInput& input) {
  const core::Shape& shape = input.inputs[0];
  const auto axis = axis_of(shape, input.attributes.integer("dim").value_or(0));
  if (!axis || input.inputs.size() != 2) return unfit(shape, "the axis dim and a second input of indices");
  core::Shape result;
  bool fits = true;
  for (std::size_t at = 0; at < shape.rank(); ++at) {
    if (at != *axis) fits = result.push_back(shape[at]) && fits;
    for (std::size_t other = 0; at == *axis && other < input.inputs[1].rank(); ++other) {
      fits = result.push_back(input.inputs[1][other]) && fits;
    }
  }
  return fits ? core::Result<core::Shape>(result) : unfit(shape, "fewer axes");
}

inline core::Result<core::Shape> squeeze_shape(const OpInput& input) {
  const core::Shape& shape = input.inputs[0];
  const auto dim = input.attributes.integer("dim");
  if (!dim) return missing("dim");
  const auto axis = axis_of(shape, *dim);
  if (!axis || shape[*axis] != core::Dim::fixed(1)) return unfit(shape, "an axis dim of size 1");
  return without(shape, *axis);
}

inline core::Result<core::Shape> unsqueeze_shape(const OpInput& input) {
  const core::Shape& shape = input.inputs[0];
  const auto dim = input.attributes.integer("dim");
  if (!dim) return missing("dim");
  const auto rank = static_cast<std::int64_t>(shape.rank());
  const std::int64_t place = *dim < 0 ? *dim + rank + 1 : *dim;
  if (place < 0 || place > rank || shape.rank() == core::Shape::kMaxRank) return unfit(shape, "a place for axis dim");
  core::Shape result;
  for (std::int64_t axis = 0; axis <= rank; ++axis) {
    if (axis == place) result.push_back(core::Dim::fixed(1));
    if (axis < rank) result.push_back(shape[static_cast<std::size_t>(axis)]);
  }
  return result;
}

/// Axis "dim" becomes axes of "sizes"; one -1 stands for what is left, and for the batch if the axis grows with it.
inline core::Result<core::Shape> unflatten_shape(const OpInput& input) {
  const core::Shape& shape = input.inputs[0];
  const auto* sizes = list_of(input.attributes, "sizes");
  const auto axis = axis_of(shape, input.attributes.integer("dim").value_or(0));
  if (sizes == nullptr) return missing("sizes");
  if (!axis || shape[*axis].kind == core::Dim::Kind::unknown) return unfit(shape, "a known size on axis dim");
  core::Checked product = 1;
  std::size_t open = 0;
  for (const std::int64_t size : *sizes) {
    if (size != -1) product *= size;
    if (size == -1) ++open;
    if (size == 0 || size < -1) return core::Error{core::ErrorCode::malformed_input, "has sizes below 1", {}};
  }
  const core::Dim whole = shape[*axis];
  const std::int64_t given = product.value().value_or(0);
  const bool divides = given > 0 && whole.size % given == 0;
  const bool exact = open == 1 || (open == 0 && whole == core::Dim::fixed(given));
  if (!divides || !exact) return unfit(shape, "sizes that multiply to that of axis dim");
  core::Shape result;
  bool fits = true;
  for (std::size_t at = 0; at < shape.rank(); ++at) {
    if (at != *axis) fits = result.push_back(shape[at]) && fits;
    for (std::size_t part = 0; at == *axis && part < sizes->size(); ++part) {
      const std::int64_t size = (*sizes)[part];
      fits = result.push_back(size == -1 ? core::Dim{whole.size / given, whole.kind} : core::Dim::fixed(size)) && fits;
    }
  }
  return fits ? core::Result<core::Shape>(result) : unfit(shape, "fewer sizes");
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

/// Axes of size 1, and new ones in front, stretch to "shape"; -1 keeps an axis.
inline core::Result<core::Shape> expand_shape(const OpInput& input) {
  const core::Shape& shape = input.inputs[0];
  const auto wanted = wanted_dims(input.attributes);
  if (!wanted) return missing("shape");
  if (wanted->size() < shape.rank()) return unfit(shape, "a shape of as many axes");
  const std::size_t added = wanted->size() - shape.rank();
  core::Shape result;
  for (std::size_t axis = 0; axis < wanted->size(); ++axis) {
    const core::Dim to = (*wanted)[axis];
    const bool keeps = to == core::Dim::fixed(-1);
    const bool stretches = axis < added || shape[axis - added] == core::Dim::fixed(1) || shape[axis - added] == to;
    if (keeps ? axis < added : !stretches) return unfit(shape, "axes of size 1 where its shape says another size");
    if (!result.push_back(keeps ? shape[axis - added] : to)) return unfit(shape, "a shape of fewer axes");
  }
  return result;
}

/// [.., M, K] x [.., K, P] -> [.., M, P]; the axes before them broadcast.
inline core::Result<core::Shape> matmul_shape(const OpInput& input) {
  const core::Shape& left = input.inputs[0];
  if (input.inputs.size() != 2) return unfit(left, "two inputs");
  const core::Shape& right = input.inputs[1];
  if (left.rank() < 2 || right.rank() < 2 || left[left.rank() - 1] != right[right.rank() - 2]) {
    return unfit(right, "a matrix whose rows match the left one's columns");
  }
  const std::array<core::Shape, 2> before = {without(without(left, left.rank() - 1), left.rank() - 2),
                                             without(without(right, right.rank() - 1), right.rank() - 2)};
  core::Result<core::Shape> shape = broadcast_shape({{}, before});
  if (!shape) return unfit(right, "a shape that broadcasts with " + core::to_string(left));
  shape->push_back(left[left.rank() - 2]);
  shape->push_back(right[right.rank() - 1]);
  return shape;
}

/// Another look at the same memory, or a copy where the axes do not lie in order (flatten, reshape, view).
inline core::Result<TensorId> record_view(const OpCall& call, Tape& tape) {
  const TensorId input = contiguous(tape, call.tensors[0]);
  return tape.record({.inputs = {&input, 1}, .output = call.size, .kind = Output::view, .gradient = Gradient::passed});
}

/// Tensor.unflatten, squeeze and unsqueeze: always a view, of a memory order that we take as in order.
inline core::Result<TensorId> record_regrouped(const OpCall& call, Tape& tape) {
  return tape.record({.inputs = call.tensors.first(1),
                      .output = call.size,
                      .kind = Output::view,
                      .layout = {Layout::kInOrder, tape.tensor(call.tensors[0]).layout.gaps},
                      .gradient = Gradient::passed});
}

/// Tensor.clone.
inline core::Result<TensorId> record_clone(const OpCall& call, Tape& tape) {
  return tape.record({.inputs = call.tensors.first(1), .output = call.size, .gradient = Gradient::passed});
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
  const TensorSize whole = call.size.as(tape.computing_type({.inputs = call.tensors}));
  return tape.record({.inputs = call.tensors,
                      .output = call.size,
                      .kind = in_place ? Output::in_place : Output::fresh,
                      .layout = tape.tensor(call.tensors[0]).layout,
                      .saved_inputs = saved,
                      .backward_scratch = {&whole, spreads ? 1U : 0U}});
}

/// One axis in front of the rows and columns is a batch of matrices; more are folded, with a copy if they cannot be.
inline TensorId folded(Tape& tape, TensorId tensor, std::size_t rank) {
  return rank < 4 || tape.tensor(tensor).layout.leading_axes_merge(rank - 2) ? tensor : contiguous(tape, tensor);
}

/// Each element of a matrix product is a sum over the axis that both inputs share, the first one's last.
inline TensorSize matmul_products(const OpCall& call) {
  const core::Shape& rows = call.shapes[0];
  if (rows.rank() == 0) return {};
  const core::Dim shared = rows[rows.rank() - 1];
  TensorSize products = call.size.times(shared.size);
  if (shared.kind == core::Dim::Kind::batch) ++products.batch_power;
  return products;
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
                      .multiply_adds = matmul_products(call),
                      .autocast = Autocast::lower});
}

inline core::Result<TensorId> record_mean(const OpCall& call, Tape& tape) { return mean_of(call, tape); }

/// aten::div; by a number it keeps nothing.
inline core::Result<TensorId> record_quotient(const OpCall& call, Tape& tape) {
  const bool plain =
      call.tensors.size() == 2 && call.shapes[0] == call.output && !call.attributes.flag("inplace", false);
  return plain ? quotient(tape, call.tensors[0], call.tensors[1]) : record_product(call, tape);
}

/// A kernel that reads its input once and keeps nothing (pad, upsample, pixel_shuffle).
inline core::Result<TensorId> record_plain(const OpCall& call, Tape& tape) {
  return tape.record({.inputs = call.tensors.first(1), .output = call.size});
}

/// aten::sum: its gradient is a view that repeats one figure.
inline core::Result<TensorId> record_sum(const OpCall& call, Tape& tape) {
  return tape.record(
      {.inputs = call.tensors.first(1), .output = call.size, .gradient = Gradient::spread, .autocast = Autocast::full});
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

inline constexpr std::array<Op, 33> kTensorOps = {
    {{{"identity", tensor_detail::kIdentity}, same_shape, record_nothing},
     {{"flatten", tensor_detail::kFlatten, tensor_detail::kFlatten},
      tensor_detail::flatten_shape,
      tensor_detail::record_view},
     {{"reshape", {}, tensor_detail::kKerasReshape}, tensor_detail::reshape_shape, tensor_detail::record_view},
     {{"permute", tensor_detail::kPermute, tensor_detail::kPermute, tensor_detail::kPermutePositional},
      tensor_detail::permute_shape,
      tensor_detail::record_permute},
     {{"concat", {}, tensor_detail::kConcat}, tensor_detail::concat_shape, tensor_detail::record_concat},
     {{"split"}, tensor_detail::split_shape, tensor_detail::record_split},
     {{"item"}, tensor_detail::slice_shape, tensor_detail::record_item},
     {{"slice"}, tensor_detail::slice_shape, tensor_detail::record_slice},
     {{"select"}, tensor_detail::select_shape, tensor_detail::record_slice},
     {{"index"}, tensor_detail::index_shape, tensor_detail::record_slice},
     {{"unflatten"}, tensor_detail::unflatten_shape, tensor_detail::record_regrouped},
     {{"squeeze"}, tensor_detail::squeeze_shape, tensor_detail::record_regrouped},
     {{"unsqueeze"}, tensor_detail::unsqueeze_shape, tensor_detail::record_regrouped},
     {{"expand"}, tensor_detail::expand_shape, tensor_detail::record_expand},
     {{"roll"}, same_shape, tensor_detail::record_plain},
     {{"clone"}, same_shape, tensor_detail::record_clone},
     {{"add", {}, tensor_detail::kAdd}, broadcast_shape, tensor_detail::record_add},
     {{"sub", {}, tensor_detail::kSub}, broadcast_shape, tensor_detail::record_add},
     {{"mul", {}, tensor_detail::kMul}, broadcast_shape, tensor_detail::record_product},
     {{"div"}, broadcast_shape, tensor_detail::record_quotient},
     {{"maximum", {}, tensor_detail::kKerasMax}, broadcast_shape, tensor_detail::record_product},
     {{"average", {}, tensor_detail::kMean}, broadcast_shape, tensor_detail::record_add},
     {{"matmul", {}, tensor_detail::kMatmul}, tensor_detail::matmul_shape, tensor_detail::record_matmul},
     {{"mean"}, tensor_detail::reduce_shape, tensor_detail::record_mean},
     {{"sum"}, tensor_detail::reduce_shape, tensor_detail::record_sum},
     {{"pad", tensor_detail::kPad, tensor_detail::kKerasPad, tensor_detail::kPadPositional},
      tensor_detail::pad_shape,
      tensor_detail::record_plain},
     {{"crop", {}, tensor_detail::kCrop}, printed_shape_only, tensor_detail::record_slice},
     {{"upsample", tensor_detail::kUpsample, tensor_detail::kKerasUpsample},
      tensor_detail::upsample_shape,
      tensor_detail::record_plain},
     {{"pixel_shuffle", tensor_detail::kShuffle, {}, tensor_detail::kShufflePositional},
      tensor_detail::pixel_shuffle_shape,
      tensor_detail::record_plain},
     {{"rescale", {}, tensor_detail::kRescaling}, same_shape, tensor_detail::record_plain},
     {{"normalize", {}, tensor_detail::kNormalization, {}, tensor_detail::printed_only},
      same_shape,
      tensor_detail::record_normalize},
     {{"time_distributed", {}, tensor_detail::kTimeDistributed, {}, tensor_detail::printed_only}, printed_shape_only},
     {{"contiguous"}, same_shape, tensor_detail::record_contiguous}}};

}  // namespace gpumem::ops
