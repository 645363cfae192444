// What makes one tensor of two or three, and of many elements one, without parameters: cat, add, sub, mul, div,
// maximum, addcmul, matmul, mean, sum, var, amax and the 2-norm; an adapter's sum. One-input forms of add, sub, mul and
// div are those with a Python number. Source: derivatives.yaml and FunctionsManual.cpp of torch 2.6.
#pragma once

#include <algorithm>
#include <array>

#include "gpumem/ops/axis.hpp"

namespace gpumem::ops {

namespace arithmetic_detail {

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

/// mean, sum, var, amax and the norm over "dim" (a number or a list; all axes if absent), keeping them as 1 with
/// "keepdim".
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

/// torch.cat: images that all have their channels innermost are joined as they lie, others in order (torch 2.6,
/// native/TensorShape.cpp: cat_compute_output_memory_format). Its backward returns views of the gradient.
inline core::Result<TensorId> record_concat(const OpCall& call, Tape& tape) {
  const bool last =
      tape.backend() == Backend::cuda && std::all_of(call.tensors.begin(), call.tensors.end(), [&](TensorId each) {
        return tape.tensor(each).layout.channels_last(call.output.rank());
      });
  const Layout layout = last ? tape.tensor(call.tensors[0]).layout : Layout{};
  return tape.record({.inputs = call.tensors, .output = call.size, .layout = layout, .gradient = Gradient::part});
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

/// What an adapter adds to a layer's output, in the layer's type: base + update, and Tensor.to of the sum. The name of
/// the third input, what the adapter read, lasts until then.
inline core::Result<TensorId> record_adapter_sum(const OpCall& call, Tape& tape) {
  if (call.tensors.size() != 3) return unfit(call.output, "three inputs");
  const core::DType type = tape.computing_type({.inputs = call.tensors.first(2)});
  const TensorId sum = tape.record({.inputs = call.tensors,
                                    .output = call.size.as(type),
                                    .layout = tape.tensor(call.tensors[0]).layout,
                                    .gradient = Gradient::passed,
                                    .no_gradient = 4U});
  return tape.cast(sum, tape.tensor(call.tensors[0]).size.dtype);
}

inline core::Result<core::Shape> zero_padded_shape(const OpInput& input) {
  const auto features = input.attributes.integer("out_features");
  if (!features) return missing("out_features");
  core::Shape shape = input.inputs[0];
  if (shape.rank() == 0) return unfit(shape, "at least one axis");
  shape.set(shape.rank() - 1, core::Dim::fixed(*features));
  return shape;
}

/// LoRAQKVLinear.zero_pad of litgpt: zeros as wide as queries, keys and values together, into which aten::index_copy
/// writes those that have an adapter. It keeps what it writes.
inline core::Result<TensorId> record_zero_padded(const OpCall& call, Tape& tape) {
  const core::DType type = tape.computing_type({.inputs = call.tensors.first(1)});
  const TensorSize zeros = call.size.as(type);
  return tape.record(
      {.inputs = call.tensors.first(1), .output = zeros, .saved_inputs = 1, .scratch = tape.own_scratch({&zeros, 1})});
}

/// aten::mul, div, maximum: each input is kept for the other's gradient; by a number, nothing is. "over_inputs": a
/// kernel that writes both gradients where it kept the inputs.
inline core::Result<TensorId> record_product(const OpCall& call, Tape& tape) {
  const bool in_place = call.attributes.flag("inplace", false);
  const bool over = call.attributes.flag("over_inputs", false);
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
                      .backward_scratch = {&whole, spreads ? 1U : 0U},
                      .gradient = over && saved == 3U ? Gradient::over_input : Gradient::fresh});
}

/// One axis in front of the rows and columns is a batch of matrices; more are folded, with a copy if they cannot be.
inline TensorId folded(Tape& tape, TensorId tensor, std::size_t rank) {
  return rank < 4 || tape.tensor(tensor).layout.leading_axes_merge(rank - 2) ? tensor : contiguous(tape, tensor);
}

/// One side of a product of batches of matrices, as aten::matmul folds it: axes that are broadcast are copied out,
/// unless there is but one of them, or all are.
inline TensorId side_of(const OpCall& call, Tape& tape, std::size_t side) {
  const core::Shape& shape = call.shapes[side];
  const TensorId tensor = call.tensors[side];
  const std::size_t rank = call.output.rank();
  const bool batches = rank > 3 && call.shapes[0].rank() > 2 && call.shapes[1].rank() > 2;
  bool spreads = false;
  bool stands = false;
  core::Shape whole = call.output;
  for (std::size_t axis = 0; batches && axis + 2 < rank; ++axis) {
    const bool there = axis + shape.rank() >= rank && shape[axis + shape.rank() - rank] == call.output[axis];
    spreads = spreads || !there;
    stands = stands || (there && call.output[axis] != core::Dim::fixed(1));
  }
  if (!spreads || !stands) return folded(tape, tensor, shape.rank());
  for (std::size_t back = 1; back <= 2; ++back) whole.set(rank - back, shape[shape.rank() - back]);
  const auto size = size_of(whole);
  if (!size) return folded(tape, tensor, shape.rank());
  const TensorId view =
      tape.record({.inputs = {&tensor, 1}, .output = *size, .kind = Output::view, .layout = {Layout::kInOrder, true}});
  return contiguous(tape, view);
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

/// aten::matmul: keeps each input for the other's gradient.
inline core::Result<TensorId> record_matmul(const OpCall& call, Tape& tape) {
  if (call.tensors.size() != 2) return unfit(call.output, "two inputs");
  const std::array<TensorId, 2> inputs = {side_of(call, tape, 0), side_of(call, tape, 1)};
  const bool left = tape.tensor(inputs[0]).requires_grad;
  const bool right = tape.tensor(inputs[1]).requires_grad;
  return tape.record({.inputs = inputs,
                      .output = call.size,
                      .saved_inputs = (right ? 1U : 0U) | (left ? 2U : 0U),
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

/// aten::sum: its gradient is a view that repeats one figure.
inline core::Result<TensorId> record_sum(const OpCall& call, Tape& tape) {
  return tape.record(
      {.inputs = call.tensors.first(1), .output = call.size, .gradient = Gradient::spread, .autocast = Autocast::full});
}

/// The larger half of a reduction's backward, which each of those below has its own: what it makes of the whole input.
inline core::Result<TensorId> record_reduction(const OpCall& call, Tape& tape, bool saves_output,
                                               std::initializer_list<TensorSize> scratch,
                                               Autocast autocast = Autocast::as_is) {
  return tape.record({.inputs = call.tensors.first(1),
                      .output = call.size,
                      .saved_inputs = 1,
                      .saves_output = saves_output,
                      .backward_scratch = scratch,
                      .autocast = autocast});
}

/// aten::logsumexp; logsumexp_backward: the gradient times exp(self - result), of which each is a tensor.
inline core::Result<TensorId> record_logsumexp(const OpCall& call, Tape& tape) {
  const TensorSize whole = tape.tensor(call.tensors[0]).size;
  return record_reduction(call, tape, true, {whole, whole});
}

/// aten::var.correction; var_backward: 2 / n grad, the mean again, and what it leaves of the input.
inline core::Result<TensorId> record_variance(const OpCall& call, Tape& tape) {
  const TensorSize whole = tape.tensor(call.tensors[0]).size;
  const TensorSize rows = call.size.as(whole.dtype);
  return record_reduction(call, tape, false, {rows, rows, whole});
}

/// aten::amax; scale_grad_by_count: the mask of the largest, how many they are, and the gradient over that.
inline core::Result<TensorId> record_largest(const OpCall& call, Tape& tape) {
  const TensorSize whole = tape.tensor(call.tensors[0]).size;
  const TensorSize rows = call.size.as(whole.dtype);
  return record_reduction(call, tape, true, {whole.as(core::DType::boolean), rows.as(core::DType::int64), rows});
}

/// aten::max.dim: its values; it keeps the indices, which its gradient is scattered by.
inline core::Result<TensorId> record_max_values(const OpCall& call, Tape& tape) {
  const TensorSize indices = call.size.as(core::DType::int64);
  return tape.record({.inputs = call.tensors.first(1), .output = call.size, .extras = {&indices, 1}});
}

/// aten::linalg_vector_norm; norm_backward: the input over its norm, and where that is zero. Under autocast the norm is
/// float32, and what is kept is the input as it is (autocast_mode.h: fp32_set_opt_dtype).
inline core::Result<TensorId> record_norm(const OpCall& call, Tape& tape) {
  const TensorSize whole = tape.tensor(call.tensors[0]).size.as(core::DType::float32);
  auto norm = record_reduction(call, tape, true, {whole, call.size.as(core::DType::boolean)});
  if (!norm || tape.product_dtype() == tape.dtype()) return norm;
  const TensorId made = *norm;
  return tape.record({.inputs = {&made, 1}, .output = call.size, .autocast = Autocast::full});
}

/// aten::addcmul: x + value · a · b keeps a and b. The gradient of a factor that is broadcast is whole before it is
/// summed.
inline core::Result<TensorId> record_addcmul(const OpCall& call, Tape& tape) {
  if (call.tensors.size() != 3) return unfit(call.output, "three inputs");
  const bool left = tape.tensor(call.tensors[1]).requires_grad;
  const bool right = tape.tensor(call.tensors[2]).requires_grad;
  const bool spreads = (left && !(call.shapes[1] == call.output)) || (right && !(call.shapes[2] == call.output));
  const TensorSize whole = call.size.as(tape.computing_type({.inputs = call.tensors}));
  return tape.record({.inputs = call.tensors,
                      .output = call.size,
                      .saved_inputs = (right ? 2U : 0U) | (left ? 4U : 0U),
                      .backward_scratch = {&whole, spreads ? 1U : 0U}});
}

inline constexpr std::array<std::string_view, 1> kConcat = {"Concatenate"};
inline constexpr std::array<std::string_view, 1> kAdd = {"Add"};
inline constexpr std::array<std::string_view, 1> kSub = {"Subtract"};
inline constexpr std::array<std::string_view, 1> kMul = {"Multiply"};
inline constexpr std::array<std::string_view, 1> kMatmul = {"Dot"};
inline constexpr std::array<std::string_view, 1> kMean = {"Average"};
inline constexpr std::array<std::string_view, 3> kKerasMax = {"Maximum", "Minimum", "Masking"};

}  // namespace arithmetic_detail

inline constexpr std::array<Op, 18> kArithmeticOps = {{
    {.traits = {.name = "concat", .family = OpFamily::other, .keras_classes = arithmetic_detail::kConcat},
     .output_shape = arithmetic_detail::concat_shape,
     .record = arithmetic_detail::record_concat},
    {.traits =
         {.name = "add", .family = OpFamily::other, .keras_classes = arithmetic_detail::kAdd, .overwritten = true},
     .output_shape = broadcast_shape,
     .record = arithmetic_detail::record_add},
    {.traits = {.name = "adapter_sum", .family = OpFamily::other},
     .output_shape = same_shape,
     .record = arithmetic_detail::record_adapter_sum},
    {.traits = {.name = "adapter_zero_pad", .family = OpFamily::other, .keeps = Keeps::input},
     .output_shape = arithmetic_detail::zero_padded_shape,
     .record = arithmetic_detail::record_zero_padded},
    {.traits = {.name = "sub", .family = OpFamily::other, .keras_classes = arithmetic_detail::kSub},
     .output_shape = broadcast_shape,
     .record = arithmetic_detail::record_add},
    {.traits =
         {.name = "mul", .family = OpFamily::other, .keras_classes = arithmetic_detail::kMul, .keeps = Keeps::input},
     .output_shape = broadcast_shape,
     .record = arithmetic_detail::record_product},
    {.traits = {.name = "div", .family = OpFamily::other, .keeps = Keeps::input},
     .output_shape = broadcast_shape,
     .record = arithmetic_detail::record_quotient},
    {.traits = {.name = "maximum",
                .family = OpFamily::other,
                .keras_classes = arithmetic_detail::kKerasMax,
                .keeps = Keeps::input},
     .output_shape = broadcast_shape,
     .record = arithmetic_detail::record_product},
    {.traits = {.name = "average", .family = OpFamily::other, .keras_classes = arithmetic_detail::kMean},
     .output_shape = broadcast_shape,
     .record = arithmetic_detail::record_add},
    {.traits = {.name = "matmul",
                .family = OpFamily::other,
                .keras_classes = arithmetic_detail::kMatmul,
                .keeps = Keeps::input},
     .output_shape = arithmetic_detail::matmul_shape,
     .record = arithmetic_detail::record_matmul},
    {.traits = {.name = "mean", .family = OpFamily::other},
     .output_shape = arithmetic_detail::reduce_shape,
     .record = arithmetic_detail::record_mean},
    {.traits = {.name = "sum", .family = OpFamily::other},
     .output_shape = arithmetic_detail::reduce_shape,
     .record = arithmetic_detail::record_sum},
    {.traits = {.name = "var", .family = OpFamily::other, .keeps = Keeps::input},
     .output_shape = arithmetic_detail::reduce_shape,
     .record = arithmetic_detail::record_variance},
    {.traits = {.name = "amax", .family = OpFamily::other, .keeps = Keeps::input},
     .output_shape = arithmetic_detail::reduce_shape,
     .record = arithmetic_detail::record_largest},
    {.traits = {.name = "logsumexp", .family = OpFamily::other, .keeps = Keeps::output},
     .output_shape = arithmetic_detail::reduce_shape,
     .record = arithmetic_detail::record_logsumexp},
    {.traits = {.name = "max_values", .family = OpFamily::other},
     .output_shape = arithmetic_detail::reduce_shape,
     .record = arithmetic_detail::record_max_values},
    {.traits = {.name = "vector_norm", .family = OpFamily::other, .keeps = Keeps::input},
     .output_shape = arithmetic_detail::reduce_shape,
     .record = arithmetic_detail::record_norm},
    {.traits = {.name = "addcmul", .family = OpFamily::other, .keeps = Keeps::input},
     .output_shape = broadcast_shape,
     .record = arithmetic_detail::record_addcmul},
}};

}  // namespace gpumem::ops
