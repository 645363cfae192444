// Views and copies of one tensor, without parameters: identity, flatten (torch.flatten), reshape (Tensor.view),
// unflatten, permute, squeeze, unsqueeze, expand, split and the items of it, slice, sliding_window (Tensor.unfold),
// select, index (torch.index_select, x[ids]), contiguous, clone and requires_grad_; Keras' cropping.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "gpumem/ops/axis.hpp"

namespace gpumem::ops {

namespace view_detail {

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

/// Attribute "shape" without the batch; one -1 means what is left.
inline core::Result<core::Shape> reshape_shape(const OpInput& input) {
  const auto* sizes = list_of(input.attributes, "shape");
  if (sizes == nullptr) return missing("shape");
  core::Shape shape = input.inputs[0];
  if (shape.rank() == 1) shape.push_back(core::Dim::fixed(1));
  core::Result<core::Shape> flat = flatten_shape({{}, {&shape, 1}});
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

/// A tuple of parts, of "sizes" on axis "dim": it is the whole input, and "item" takes a part of it.
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

/// "start", "length" and "step" on axis "dim"; a negative length leaves off as many of the last elements. With a second
/// input the length is that one's size on "like_dim": position tables are cut to the length of the tokens. A table of
/// distances to "both_sides" has twice as many, as far as it goes.
inline core::Result<core::Shape> slice_shape(const OpInput& input) {
  core::Shape shape = input.inputs[0];
  const auto axis = axis_of(shape, input.attributes.integer("dim").value_or(0));
  if (!axis || shape[*axis].kind != core::Dim::Kind::fixed) return unfit(shape, "a known size on axis dim");
  std::optional<std::int64_t> length = input.attributes.integer("length");
  const std::int64_t start = input.attributes.integer("start").value_or(0);
  const bool inside = start >= 0 && start < shape[*axis].size;
  if (length && *length < 0 && *length > -shape[*axis].size && inside) length = shape[*axis].size - start + *length;
  if (input.inputs.size() > 1) {
    const core::Shape& like = input.inputs[1];
    const auto other = axis_of(like, input.attributes.integer("like_dim").value_or(0));
    if (!other || like[*other].kind != core::Dim::Kind::fixed) return unfit(like, "a known size on axis like_dim");
    length = like[*other].size;
    if (input.attributes.flag("both_sides", false)) length = 2 * std::min(like[*other].size, shape[*axis].size / 2);
  }
  const auto left = narrowed(input.attributes, shape[*axis].size, length);
  if (!left) {
    return unfit(shape, "at least start + length elements on axis dim" +
                            (length ? " (the length is " + std::to_string(*length) + ")" : std::string()));
  }
  shape.set(*axis, core::Dim::fixed(*left));
  return shape;
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

/// Axis "dim" becomes axes of "sizes"; one -1 means what is left, and for the batch if the axis grows with it. With a
/// second input there is one more in front, of that one's first size.
inline core::Result<core::Shape> unflatten_shape(const OpInput& input) {
  const core::Shape& shape = input.inputs[0];
  const auto* given_sizes = list_of(input.attributes, "sizes");
  const auto axis = axis_of(shape, input.attributes.integer("dim").value_or(0));
  if (given_sizes == nullptr) return missing("sizes");
  if (!axis || shape[*axis].kind == core::Dim::Kind::unknown) return unfit(shape, "a known size on axis dim");
  std::vector<std::int64_t> sizes = *given_sizes;
  if (input.inputs.size() > 1) {
    const core::Shape& like = input.inputs[1];
    if (like.rank() == 0 || like[0].kind != core::Dim::Kind::fixed) return unfit(like, "a known first size");
    sizes.insert(sizes.begin(), like[0].size);
  }
  core::Checked product = 1;
  std::size_t open = 0;
  for (const std::int64_t size : sizes) {
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
    for (std::size_t part = 0; at == *axis && part < sizes.size(); ++part) {
      const std::int64_t size = sizes[part];
      fits = result.push_back(size == -1 ? core::Dim{whole.size / given, whole.kind} : core::Dim::fixed(size)) && fits;
    }
  }
  return fits ? core::Result<core::Shape>(result) : unfit(shape, "fewer sizes");
}

/// Axes of size 1, and new ones in front, stretch to "shape", in which -1 keeps an axis; or to that of a second input.
inline core::Result<core::Shape> expand_shape(const OpInput& input) {
  const core::Shape& shape = input.inputs[0];
  auto wanted = wanted_dims(input.attributes);
  if (input.inputs.size() > 1) wanted = dims_of(input.inputs[1]);
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

/// Another look at the same memory, or a copy where no strides give the new shape (flatten, reshape, view).
inline core::Result<TensorId> record_view(const OpCall& call, Tape& tape) {
  const auto layout = tape.tensor(call.tensors[0]).layout.viewed(call.shapes[0], call.output);
  const TensorId input = layout ? call.tensors[0] : contiguous(tape, call.tensors[0]);
  return tape.record({.inputs = {&input, 1},
                      .output = call.size,
                      .kind = Output::view,
                      .layout = layout.value_or(Layout{}),
                      .gradient = Gradient::passed});
}

/// Tensor.unflatten, squeeze and unsqueeze: always a view, whose axes lie where those of its input did.
inline TensorId regrouped(const OpCall& call, Tape& tape, const Layout& layout) {
  return tape.record({.inputs = call.tensors.first(1),
                      .output = call.size,
                      .kind = Output::view,
                      .layout = layout,
                      .gradient = Gradient::passed});
}

inline core::Result<TensorId> record_unflatten(const OpCall& call, Tape& tape) {
  const auto axis = axis_of(call.shapes[0], call.attributes.integer("dim").value_or(0)).value_or(0);
  const std::size_t count = call.output.rank() + 1 - call.shapes[0].rank();
  return regrouped(call, tape, tape.tensor(call.tensors[0]).layout.regrouped(axis, count));
}

inline core::Result<TensorId> record_squeeze(const OpCall& call, Tape& tape) {
  const auto axis = axis_of(call.shapes[0], call.attributes.integer("dim").value_or(0)).value_or(0);
  return regrouped(call, tape, tape.tensor(call.tensors[0]).layout.regrouped(axis, 0));
}

inline core::Result<TensorId> record_unsqueeze(const OpCall& call, Tape& tape) {
  const auto axis = axis_of(call.output, call.attributes.integer("dim").value_or(0)).value_or(0);
  return regrouped(call, tape, tape.tensor(call.tensors[0]).layout.with_axis(axis));
}

/// Tensor.clone.
inline core::Result<TensorId> record_clone(const OpCall& call, Tape& tape) {
  return tape.record({.inputs = call.tensors.first(1), .output = call.size, .gradient = Gradient::passed});
}

/// Tensor.detach(), or the same tensor where calls run under torch.no_grad().
inline core::Result<TensorId> record_detached(const OpCall& call, Tape& tape) {
  const TapeTensor& from = tape.tensor(call.tensors[0]);
  return tape.record({.inputs = call.tensors.first(1),
                      .output = from.size,
                      .kind = Output::view,
                      .layout = from.layout,
                      .differentiable = false});
}

/// Tensor.requires_grad_() on what a layer leaves, as transformers' enable_input_require_grads() has it: the tensor
/// itself, to which gradients now flow. It is a leaf: AccumulateGrad holds it, and with it its gradient, as long as the
/// graph lives (torch/csrc/autograd/functions/accumulate_grad.h: variable).
inline core::Result<TensorId> record_requires_grad(const OpCall& call, Tape& tape) {
  const TapeTensor& from = tape.tensor(call.tensors[0]);
  const TensorId leaf = tape.record({.inputs = call.tensors.first(1),
                                     .output = from.size,
                                     .kind = Output::unsafe_view,
                                     .layout = from.layout,
                                     .saved_inputs = 1,
                                     .gradient = Gradient::none,
                                     .keeps_until_graph_ends = true});
  tape.require_grad(leaf);
  return leaf;
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

/// Tensor.unfold(dim, size, step): windows over an axis, each an axis at the end.
inline core::Result<core::Shape> sliding_shape(const OpInput& input) {
  core::Shape shape = input.inputs[0];
  const auto axis = axis_of(shape, input.attributes.integer("dim").value_or(0));
  const std::int64_t size = input.attributes.integer("size").value_or(0);
  const std::int64_t step = input.attributes.integer("step").value_or(0);
  if (!axis || shape[*axis].kind != core::Dim::Kind::fixed) return unfit(shape, "a known size on axis dim");
  if (size < 1 || step < 1 || size > shape[*axis].size) return unfit(shape, "windows that fit on axis dim");
  shape.set(*axis, core::Dim::fixed((shape[*axis].size - size) / step + 1));
  return shape.push_back(core::Dim::fixed(size)) ? core::Result<core::Shape>(shape) : unfit(shape, "fewer axes");
}

/// Tensor.expand: backward sums.
inline core::Result<TensorId> record_expand(const OpCall& call, Tape& tape) {
  return tape.record(
      {.inputs = call.tensors.first(1), .output = call.size, .kind = Output::view, .layout = {Layout::kInOrder, true}});
}

/// What a function returns: its first input. The others are its names that end only when it returns, however early the
/// last call read them.
inline core::Result<TensorId> record_return(const OpCall& call, Tape& tape) {
  return tape.record({.inputs = call.tensors,
                      .output = tape.tensor(call.tensors[0]).size,
                      .kind = Output::unsafe_view,
                      .layout = tape.tensor(call.tensors[0]).layout,
                      .gradient = Gradient::passed,
                      .no_gradient = ~1U});
}

/// A tensor's second name, under which a cache of keys and values keeps it (with the attribute "cache").
inline core::Result<TensorId> record_cached(const OpCall& call, Tape& tape) {
  return tape.record({.inputs = call.tensors.first(1),
                      .output = tape.tensor(call.tensors[0]).size,
                      .kind = Output::unsafe_view,
                      .layout = tape.tensor(call.tensors[0]).layout,
                      .differentiable = false});
}

inline constexpr std::array<std::string_view, 1> kIdentity = {"Identity"};
/// Of timm's Hiera and torchvision's MaxViT, which change the order of tokens, of torchvision's detection nets, and of
/// wav2vec 2.0's convolution for positions: their rules know what they do. So does DeBERTa's of its norms, whose sizes
/// no tree prints.
inline constexpr std::array<std::string_view, 12> kTreeIdentity = {"Unroll",
                                                                   "Reroll",
                                                                   "LastLevelMaxPool",
                                                                   "AnchorGenerator",
                                                                   "WindowPartition",
                                                                   "WindowDepartition",
                                                                   "DebertaLayerNorm",
                                                                   "SwapAxes",
                                                                   "_WeightNorm",
                                                                   "Wav2Vec2SamePadLayer",
                                                                   "HubertSamePadLayer",
                                                                   "WavLMSamePadLayer"};
inline constexpr std::array<std::string_view, 1> kFlatten = {"Flatten"};
inline constexpr std::array<std::string_view, 2> kKerasReshape = {"Reshape", "RepeatVector"};
inline constexpr std::array<std::string_view, 1> kPermute = {"Permute"};
inline constexpr std::array<std::string_view, 1> kPermutePositional = {"dims"};
inline constexpr std::array<std::string_view, 3> kCrop = {"Cropping1D", "Cropping2D", "Cropping3D"};

}  // namespace view_detail

inline constexpr std::array<Op, 21> kViewOps = {{
    {.traits = {.name = "identity",
                .family = OpFamily::view,
                .torch_classes = view_detail::kIdentity,
                .tree_classes = view_detail::kTreeIdentity,
                .function = ActivationFunction::identity,
                .hands_through = true,
                .computes = false},
     .output_shape = same_shape,
     .record = record_nothing},
    {.traits = {.name = "flatten",
                .family = OpFamily::view,
                .torch_classes = view_detail::kFlatten,
                .keras_classes = view_detail::kFlatten,
                .computes = false},
     .output_shape = view_detail::flatten_shape,
     .record = view_detail::record_view},
    {.traits =
         {.name = "reshape", .family = OpFamily::view, .keras_classes = view_detail::kKerasReshape, .computes = false},
     .output_shape = view_detail::reshape_shape,
     .record = view_detail::record_view},
    {.traits = {.name = "permute",
                .family = OpFamily::view,
                .torch_classes = view_detail::kPermute,
                .keras_classes = view_detail::kPermute,
                .positional = view_detail::kPermutePositional,
                .computes = false},
     .output_shape = view_detail::permute_shape,
     .record = view_detail::record_permute},
    {.traits = {.name = "split", .family = OpFamily::view, .computes = false},
     .output_shape = view_detail::split_shape,
     .record = view_detail::record_split},
    {.traits = {.name = "item", .family = OpFamily::view, .computes = false},
     .output_shape = view_detail::slice_shape,
     .record = view_detail::record_item},
    {.traits = {.name = "slice", .family = OpFamily::view, .computes = false},
     .output_shape = view_detail::slice_shape,
     .record = view_detail::record_slice},
    {.traits = {.name = "select", .family = OpFamily::view, .computes = false},
     .output_shape = view_detail::select_shape,
     .record = view_detail::record_slice},
    {.traits = {.name = "index", .family = OpFamily::view},
     .output_shape = view_detail::index_shape,
     .record = view_detail::record_slice},
    {.traits = {.name = "unflatten", .family = OpFamily::view, .computes = false},
     .output_shape = view_detail::unflatten_shape,
     .record = view_detail::record_unflatten},
    {.traits = {.name = "squeeze", .family = OpFamily::view, .computes = false},
     .output_shape = view_detail::squeeze_shape,
     .record = view_detail::record_squeeze},
    {.traits = {.name = "unsqueeze", .family = OpFamily::view, .computes = false},
     .output_shape = view_detail::unsqueeze_shape,
     .record = view_detail::record_unsqueeze},
    {.traits = {.name = "expand", .family = OpFamily::view, .computes = false},
     .output_shape = view_detail::expand_shape,
     .record = view_detail::record_expand},
    {.traits = {.name = "sliding_window", .family = OpFamily::view, .computes = false},
     .output_shape = view_detail::sliding_shape,
     .record = view_detail::record_slice},
    {.traits = {.name = "contiguous", .family = OpFamily::other, .computes = false},
     .output_shape = same_shape,
     .record = view_detail::record_contiguous},
    {.traits = {.name = "clone", .family = OpFamily::other},
     .output_shape = same_shape,
     .record = view_detail::record_clone},
    {.traits = {.name = "detached", .family = OpFamily::view, .computes = false},
     .output_shape = same_shape,
     .record = view_detail::record_detached},
    {.traits = {.name = "requires_grad", .family = OpFamily::view, .computes = false},
     .output_shape = same_shape,
     .record = view_detail::record_requires_grad},
    {.traits = {.name = "cached", .family = OpFamily::view, .computes = false},
     .output_shape = same_shape,
     .record = view_detail::record_cached},
    {.traits = {.name = "return", .family = OpFamily::view, .computes = false},
     .output_shape = same_shape,
     .record = view_detail::record_return},
    {.traits = {.name = "crop", .family = OpFamily::view, .keras_classes = view_detail::kCrop},
     .output_shape = printed_shape_only,
     .record = view_detail::record_slice},
}};

}  // namespace gpumem::ops
