#pragma once

#include "gpumem/ops/tape.hpp"

namespace gpumem::ops {

namespace tape_detail {

GPUMEM_INLINE std::optional<TensorSize> product(const core::Shape& shape, std::size_t axes, core::DType dtype) {
  TensorSize size{1, 0, dtype};
  for (std::size_t axis = 0; axis < axes; ++axis) {
    const core::Dim dim = shape[axis];
    if (dim.kind == core::Dim::Kind::unknown) return std::nullopt;
    size.elements *= dim.size;
    if (dim.kind == core::Dim::Kind::batch) ++size.batch_power;
  }
  return size;
}

/// Of a tensor in float32 that takes this many MiB.
GPUMEM_INLINE std::int64_t elements_of_mib(std::int64_t mib) { return mib * ((std::int64_t{1} << 20) / 4); }

}  // namespace tape_detail

GPUMEM_INLINE std::int64_t Chunks::count(std::int64_t elements) const {
  constexpr std::int64_t kMultiple = 4;
  const std::int64_t part = tape_detail::elements_of_mib(target);
  if (part == 0 || elements <= part) return 1;
  const std::int64_t multiple = kMultiple * part;
  const std::int64_t whole = elements / multiple;
  const std::int64_t rest = elements % multiple;
  if (!nearest) return kMultiple * (whole + (rest > 0 ? 1 : 0));
  const bool up = 2 * rest > multiple || (2 * rest == multiple && whole % 2 == 1);
  return std::max<std::int64_t>(kMultiple * (whole + (up ? 1 : 0)), 1);
}

GPUMEM_INLINE std::int64_t Chunks::largest(std::int64_t elements) const {
  const std::int64_t part = tape_detail::elements_of_mib(target);
  return part == 0 ? elements : std::min(elements, nearest ? 2 * part : part);
}

GPUMEM_INLINE core::Checked TensorSize::part_of(core::Checked whole) const {
  const auto bytes = whole.value();
  if (!bytes) return whole;
  const std::int64_t size = core::element_size(dtype);
  const std::int64_t count = chunks.count(*bytes / size);
  return (*bytes / size + count - 1) / count * size;
}

GPUMEM_INLINE std::int64_t TensorSize::more_in_smaller_batches(std::int64_t batch_size) const {
  const auto whole = TensorSize{elements, batch_power, dtype}.bytes(batch_size).value();
  const auto part = bytes(batch_size).value();
  if (!whole || !part) return 0;
  const std::int64_t size = core::element_size(dtype);
  return std::max<std::int64_t>(chunks.largest(*whole / size) * size - *part, 0);
}

GPUMEM_INLINE std::optional<TensorSize> size_of(const core::Shape& shape, core::DType dtype) {
  return tape_detail::product(shape, shape.rank(), dtype);
}

GPUMEM_INLINE std::optional<TensorSize> rows_of(const core::Shape& shape, std::size_t count) {
  return tape_detail::product(shape, shape.rank() - std::min(count, shape.rank()), core::DType::float32);
}

GPUMEM_INLINE Layout Layout::permuted(std::span<const std::size_t> dims) const {
  Layout result{0, gaps};
  for (std::size_t place = 0; place < core::Shape::kMaxRank; ++place) {
    std::uint32_t axis = axis_at(place);
    for (std::size_t renamed = 0; renamed < dims.size(); ++renamed) {
      if (dims[renamed] == axis_at(place)) axis = static_cast<std::uint32_t>(renamed);
    }
    result.order |= axis << (4 * place);
  }
  return result;
}

GPUMEM_INLINE Layout Layout::regrouped(std::size_t axis, std::size_t count) const {
  Layout result{0, gaps};
  std::size_t place = 0;
  const auto put = [&](std::size_t at) {
    if (place < core::Shape::kMaxRank) result.order |= static_cast<std::uint32_t>(at) << (4 * place++);
  };
  for (std::size_t from = 0; from < core::Shape::kMaxRank; ++from) {
    const std::size_t old = axis_at(from);
    if (old == axis) {
      for (std::size_t part = 0; part < count; ++part) put(axis + part);
    } else {
      put(old < axis ? old : old + count - 1);
    }
  }
  put(core::Shape::kMaxRank - 1);  // the place that a dropped axis leaves
  return result;
}

GPUMEM_INLINE Layout Layout::with_axis(std::size_t axis) const {
  if (dense()) return *this;
  Layout result{0, gaps};
  std::size_t place = 0;
  const auto put = [&](std::size_t at) {
    if (place < core::Shape::kMaxRank) result.order |= static_cast<std::uint32_t>(at) << (4 * place++);
  };
  for (std::size_t from = 0; from < core::Shape::kMaxRank; ++from) {
    const std::size_t old = axis_at(from);
    if (old == axis) put(axis);
    put(old < axis ? old : old + 1);
  }
  return result;
}

GPUMEM_INLINE std::optional<Layout> Layout::merged(std::size_t first, std::size_t last) const {
  if (gaps) return std::nullopt;
  Layout result = *this;
  for (std::size_t axis = last; axis > first; --axis) {
    std::size_t place = 0;
    while (place < core::Shape::kMaxRank && result.axis_at(place) != axis - 1) ++place;
    if (place + 1 >= core::Shape::kMaxRank || result.axis_at(place + 1) != axis) return std::nullopt;
    result = result.regrouped(axis, 0);
  }
  return result;
}

namespace tape_detail {

/// How many axes from `at` on have as many elements as `size`, which grows with the batch as often as it says; `taken`
/// is what they have so far.
struct Run {
  core::Checked elements = 1;
  int batches = 0;
  std::size_t axes = 0;

  void take(const core::Dim& dim) {
    elements *= dim.size;
    batches += dim.kind == core::Dim::Kind::batch ? 1 : 0;
    ++axes;
  }
  [[nodiscard]] bool matches(const Run& other) const {
    return batches == other.batches && elements.value() == other.elements.value();
  }
  [[nodiscard]] bool less(const Run& other) const {
    return elements.value().value_or(INT64_MAX) < other.elements.value().value_or(INT64_MAX) || batches < other.batches;
  }
};

}  // namespace tape_detail

GPUMEM_INLINE std::optional<Layout> Layout::viewed(const core::Shape& from, const core::Shape& to) const {
  Layout result = *this;
  std::size_t read = 0;
  std::size_t made = 0;
  while (read < from.rank() || made < to.rank()) {
    tape_detail::Run old;
    tape_detail::Run fresh;
    const std::size_t first = made;
    if (read < from.rank()) old.take(from[read++]);
    if (made < to.rank()) fresh.take(to[made++]);
    while (!old.matches(fresh)) {
      const bool takes_old = old.less(fresh);
      if (takes_old ? read == from.rank() : made == to.rank()) return std::nullopt;
      if (takes_old) {
        old.take(from[read++]);
      } else {
        fresh.take(to[made++]);
      }
    }
    if (old.axes == 0 || fresh.axes == 0) return dense() ? std::optional<Layout>(Layout{}) : std::nullopt;
    if (old.axes > 1) {
      const auto joined = result.merged(first, first + old.axes - 1);
      if (!joined) return std::nullopt;
      result = *joined;
    }
    if (fresh.axes > 1) result = result.regrouped(first, fresh.axes);
  }
  return result;
}

GPUMEM_INLINE bool Layout::channels_last(std::size_t rank) const {
  if (gaps || rank < 4 || rank > core::Shape::kMaxRank || axis_at(0) != 0 || axis_at(rank - 1) != 1) return false;
  for (std::size_t place = 1; place + 1 < rank; ++place) {
    if (axis_at(place) != place + 1) return false;
  }
  return true;
}

GPUMEM_INLINE bool Layout::leading_axes_merge(std::size_t count) const {
  if (gaps) return false;
  std::size_t first = 0;
  while (first < core::Shape::kMaxRank && axis_at(first) != 0) ++first;
  for (std::size_t axis = 1; axis < count; ++axis) {
    if (first + axis >= core::Shape::kMaxRank || axis_at(first + axis) != axis) return false;
  }
  return true;
}

GPUMEM_INLINE TensorId Tape::add(const TensorSize& size) {
  const auto id = static_cast<TensorId>(tensors_.size());
  tensors_.push_back({size, id, layer_, false, {}});
  return id;
}

GPUMEM_INLINE TensorId Tape::add_input(const TensorSize& size) {
  inputs_.push_back(add(size));
  return inputs_.back();
}

GPUMEM_INLINE TensorId Tape::add_parameter(core::Checked elements, bool tied, bool frozen, core::Checked factored,
                                           std::optional<core::DType> dtype) {
  const TensorId id = add({elements, 0, dtype.value_or(this->dtype())});
  tensors_[static_cast<std::size_t>(id)].requires_grad = !frozen;
  parameters_.push_back({id, tied, frozen, factored});
  layer_parameters_.push_back(id);
  return id;
}

GPUMEM_INLINE TensorId Tape::add_buffer(const TensorSize& size) {
  buffers_.push_back(add(size));
  return buffers_.back();
}

GPUMEM_INLINE model::Slice Tape::keep(std::span<const TensorId> ids) {
  const model::Slice slice{static_cast<std::uint32_t>(lists_.size()), static_cast<std::uint32_t>(ids.size())};
  lists_.insert(lists_.end(), ids.begin(), ids.end());
  return slice;
}

GPUMEM_INLINE model::Slice Tape::add_all(std::span<const TensorSize> sizes, std::span<const TensorSize> more) {
  const auto first = static_cast<std::uint32_t>(lists_.size());
  for (const TensorSize& size : sizes) lists_.push_back(add(size));
  for (const TensorSize& size : more) lists_.push_back(add(size));
  return {first, static_cast<std::uint32_t>(sizes.size() + more.size())};
}

namespace tape_detail {

GPUMEM_INLINE bool is_floating(core::DType type) {
  return type == core::DType::float64 || type == core::DType::float32 || type == core::DType::float16 ||
         type == core::DType::bfloat16;
}

}  // namespace tape_detail

GPUMEM_INLINE core::DType Tape::computing_type(const Call& call) const {
  if (wide_ && call.autocast == Autocast::lower) return core::DType::float32;
  const bool autocast = model::is_autocast(precision_);
  if (autocast && call.autocast == Autocast::lower) {
    return precision_ == model::Precision::amp_fp16 ? core::DType::float16 : core::DType::bfloat16;
  }
  if (autocast && call.autocast == Autocast::full) return core::DType::float32;
  if (call.of_first_type && !call.inputs.empty()) return tensor(call.inputs[0]).size.dtype;
  // Floating-point inputs promote each other; ids and masks do not count. Without any it is the parameter's type.
  core::DType widest = call.parameters.empty() ? dtype() : tensor(call.parameters[0]).size.dtype;
  bool any = false;
  for (const TensorId input : call.inputs) {
    const core::DType type = tensor(input).size.dtype;
    if (!tape_detail::is_floating(type)) continue;
    if (!any || core::element_size(type) > core::element_size(widest)) widest = type;
    any = true;
  }
  return widest;
}

GPUMEM_INLINE TensorId Tape::cast(TensorId id, core::DType dtype) {
  const TapeTensor from = tensor(id);
  if (!tape_detail::is_floating(from.size.dtype) || from.size.dtype == dtype) return id;
  // aten::_to_copy: keeps nothing; its gradient is cast back.
  const TensorId to = add(from.size.as(dtype));
  tensors_.back().requires_grad = from.requires_grad;
  tensors_.back().layout = {from.layout.order, false};  // its axes keep their order (preserve_format)
  Function function;
  function.layer = layer_;
  function.output = to;
  function.inputs = keep({&id, 1});
  functions_.push_back(function);
  return to;
}

GPUMEM_INLINE TensorId Tape::record(const Call& call) {
  const bool rewrites = call.kind == Output::in_place && tensor(call.inputs[0]).view;
  if (!rewrites) return record_call(call);
  std::vector<TensorSize> scratch(call.backward_scratch.begin(), call.backward_scratch.end());
  const TensorSize part = tensor(call.inputs[0]).size;
  scratch.insert(scratch.end(), {part, part});
  Call written = call;
  written.backward_scratch = scratch;
  if (written.gradient == Gradient::passed) written.gradient = Gradient::fresh;
  const TensorId base = record_call(written);
  const TensorId view = record_call({.inputs = {&base, 1},
                                     .output = tensor(base).size.as(core::DType::float32),
                                     .kind = Output::view,
                                     .layout = call.layout});
  return view;
}

/// Whether autocast makes copies of these in the type that the call computes in.
GPUMEM_INLINE bool Tape::casts_any(std::span<const TensorId> parameters, core::DType type) const {
  return std::ranges::any_of(parameters, [&](TensorId id) {
    const core::DType held = tensor(id).size.dtype;
    return tape_detail::is_floating(held) && held != type;
  });
}

/// What backward reads again: inputs, the output, the extras.
GPUMEM_INLINE model::Slice Tape::keep_saved(const Call& call, std::span<const TensorId> inputs,
                                            const Function& function) {
  const auto first_saved = static_cast<std::uint32_t>(lists_.size());
  const bool weighs = call.parameters.empty() || tensor(call.parameters[0]).requires_grad;
  const std::uint32_t saved_inputs = call.saved_inputs | (weighs ? call.saved_for_weight : 0U);
  for (std::size_t index = 0; index < inputs.size() && index < 32; ++index) {
    if ((saved_inputs >> index & 1U) != 0) lists_.push_back(inputs[index]);
  }
  if (call.saves_output) lists_.push_back(function.output);
  for (std::uint32_t at = 0; at < function.extras.count; ++at) lists_.push_back(lists_[function.extras.first + at]);
  return {first_saved, static_cast<std::uint32_t>(lists_.size()) - first_saved};
}

/// Whether a parameter of the call does, or an input to which gradients flow.
GPUMEM_INLINE bool Tape::asks_for_gradients(const Call& call, std::span<const TensorId> inputs) const {
  for (std::size_t index = 0; index < inputs.size(); ++index) {
    const bool flows = index >= 32 || (call.no_gradient >> index & 1U) == 0;
    if (flows && tensor(inputs[index]).requires_grad) return true;
  }
  return std::ranges::any_of(call.parameters, [&](TensorId parameter) { return tensor(parameter).requires_grad; });
}

GPUMEM_INLINE TensorId Tape::record_call(const Call& call) {
  const core::DType type = computing_type(call);
  std::span<const TensorId> inputs = call.inputs;
  if (call.autocast != Autocast::as_is) {
    cast_inputs_.assign(inputs.begin(), inputs.end());
    for (TensorId& input : cast_inputs_) {
      // Autocast leaves float64 as it is. Source: PyTorch 2.6, ATen/autocast_mode.h, is_eligible().
      if (tensor(input).size.dtype != core::DType::float64) input = cast(input, type);
    }
    inputs = cast_inputs_;
  }

  Function function;
  function.layer = layer_;
  function.inputs = keep(inputs);
  function.parameters = keep(call.parameters);
  function.no_gradient = call.no_gradient;
  function.kind = call.kind;
  function.gradient = call.gradient;
  function.library = call.library;
  function.extras_first = call.extras_first;
  function.contiguous_gradient = call.contiguous_gradient;
  function.folds = call.folds;
  function.reduce_scatters = call.reduce_scatters;
  function.keeps_until_graph_ends = call.keeps_until_graph_ends;
  function.casts_parameters = call.autocast == Autocast::lower && casts_any(call.parameters, type);
  if (call.convolution != nullptr) {
    function.convolution = static_cast<std::int32_t>(convolutions_.size());
    convolutions_.push_back(*call.convolution);
    convolutions_.back().dtype = type;
    function.multiply_adds = {call.convolution->multiply_adds(), call.output.batch_power, type};
  } else {
    function.multiply_adds = call.multiply_adds.as(type);
  }

  const bool requires_grad = asks_for_gradients(call, inputs);
  const bool own_type = call.typed || call.output.dtype != core::DType::float32;  // ids and masks keep theirs
  function.output = add(own_type ? call.output : call.output.as(type));
  TapeTensor& output = tensors_.back();
  output.requires_grad = requires_grad && call.differentiable && call.gradient != Gradient::none;
  output.layout = {call.layout.order, call.layout.gaps && call.kind != Output::fresh};  // new memory has none
  output.view = call.kind == Output::view || (call.kind == Output::in_place && tensor(inputs[0]).view);
  if (call.kind != Output::fresh) output.storage = tensor(inputs[0]).storage;

  function.extras = add_all(call.extras);
  const bool copies = call.own_copy && !tensor(inputs[0]).layout.dense();
  const TensorSize copy = copies ? tensor(inputs[0]).size : TensorSize{};
  const std::span<const TensorSize> copied = own_scratch({&copy, copies ? 1U : 0U});
  function.scratch = add_all(call.scratch, copied);
  function.backward_scratch = add_all(call.backward_scratch, copied);
  if (call.host_weight.elements.value() != 0) function.host_weight = add(call.host_weight);
  function.saved = keep_saved(call, inputs, function);
  functions_.push_back(function);
  return function.output;
}

GPUMEM_INLINE TapeMark Tape::mark() const {
  const auto size = [](const auto& all) { return static_cast<std::uint32_t>(all.size()); };
  return {size(tensors_),    size(functions_), size(lists_), size(convolutions_),
          size(parameters_), size(buffers_),   requirements_};
}

namespace tape_detail {

/// As far as a rule may look: not which tensor it is, and of which layer.
GPUMEM_INLINE bool are_alike(const TapeTensor& left, const TapeTensor& right) {
  return left.size.elements.value() == right.size.elements.value() && left.size.batch_power == right.size.batch_power &&
         left.size.dtype == right.size.dtype && left.requires_grad == right.requires_grad &&
         left.layout == right.layout && left.view == right.view;
}

/// The tensor in a repeated layer that stands where this one stands in the layer before: one that the layer has made,
/// or the input in the same place.
struct Renamed {
  const LayerCalls& calls;
  const TapeMark& now;
  std::span<const TensorId> inputs;

  [[nodiscard]] bool is_made(TensorId id) const { return id >= static_cast<TensorId>(calls.first.tensors); }
  [[nodiscard]] TensorId moved(TensorId id) const {
    return id + static_cast<TensorId>(now.tensors) - static_cast<TensorId>(calls.first.tensors);
  }
  [[nodiscard]] TensorId operator()(TensorId id) const {
    if (is_made(id)) return moved(id);
    const auto read = std::ranges::find(calls.inputs, id);
    return read == calls.inputs.end() ? id : inputs[static_cast<std::size_t>(read - calls.inputs.begin())];
  }
};

}  // namespace tape_detail

GPUMEM_INLINE bool Tape::reads_alike(const LayerCalls& calls, std::span<const TensorId> inputs) const {
  if (inputs.size() != calls.inputs.size() || calls.end.requirements != requirements_) return false;
  const auto memory = [&](TensorId id) { return tensor(id).storage; };
  for (std::size_t at = 0; at < inputs.size(); ++at) {
    if (!tape_detail::are_alike(tensor(calls.inputs[at]), tensor(inputs[at]))) return false;
    for (std::size_t other = 0; other < at; ++other) {
      const bool same = inputs[other] == inputs[at];
      const bool shared = memory(inputs[other]) == memory(inputs[at]);
      if (same != (calls.inputs[other] == calls.inputs[at])) return false;
      if (shared != (memory(calls.inputs[other]) == memory(calls.inputs[at]))) return false;
    }
  }
  return true;
}

GPUMEM_INLINE void Tape::repeat_functions(const LayerCalls& calls, const TapeMark& now,
                                          std::span<const TensorId> inputs) {
  const tape_detail::Renamed renamed{calls, now, inputs};
  for (std::uint32_t at = calls.first.lists; at < calls.end.lists; ++at) lists_.push_back(renamed(lists_[at]));
  const auto move = [&](model::Slice& slice) {
    if (slice.count > 0) slice.first += now.lists - calls.first.lists;
  };
  for (std::uint32_t at = calls.first.functions; at < calls.end.functions; ++at) {
    Function function = functions_[at];
    function.layer = layer_;
    function.output = renamed(function.output);
    function.host_weight = renamed(function.host_weight);
    for (model::Slice* slice : {&function.inputs, &function.saved, &function.extras, &function.scratch,
                                &function.backward_scratch, &function.parameters}) {
      move(*slice);
    }
    if (function.convolution >= 0) {
      convolutions_.push_back(Convolution(convolutions_[static_cast<std::size_t>(function.convolution)]));
      function.convolution = static_cast<std::int32_t>(convolutions_.size() - 1);
    }
    functions_.push_back(function);
  }
}

GPUMEM_INLINE TensorId Tape::repeat(const LayerCalls& calls, std::span<const TensorId> inputs) {
  const TapeMark now = mark();
  const tape_detail::Renamed renamed{calls, now, inputs};
  const auto memory_of = [&](TensorId owner) {
    if (renamed.is_made(owner)) return renamed.moved(owner);
    const auto shares = [&](TensorId read) { return tensor(read).storage == owner; };
    const auto read = std::ranges::find_if(calls.inputs, shares);
    if (read == calls.inputs.end()) return owner;
    return tensor(inputs[static_cast<std::size_t>(read - calls.inputs.begin())]).storage;
  };
  for (std::uint32_t at = calls.first.tensors; at < calls.end.tensors; ++at) {
    TapeTensor made = tensors_[at];
    made.layer = layer_;
    made.storage = memory_of(made.storage);
    tensors_.push_back(made);
  }
  repeat_functions(calls, now, inputs);
  for (std::uint32_t at = calls.first.parameters; at < calls.end.parameters; ++at) {
    Parameter parameter = parameters_[at];
    parameter.tensor = renamed(parameter.tensor);
    parameters_.push_back(parameter);
    layer_parameters_.push_back(parameter.tensor);
  }
  for (std::uint32_t at = calls.first.buffers; at < calls.end.buffers; ++at) {
    buffers_.push_back(renamed(buffers_[at]));
  }
  return renamed(calls.output);
}

}  // namespace gpumem::ops
