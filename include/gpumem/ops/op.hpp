// Input: a layer's attributes and the shapes of its inputs.
// Output: Op, the rule object that answers every question about one kind of layer. The reference is PyTorch: each
// family names the function that it follows.
#pragma once

#include <array>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

#include "gpumem/core/result.hpp"
#include "gpumem/core/shape.hpp"
#include "gpumem/model/op_traits.hpp"
#include "gpumem/model/training_job.hpp"
#include "gpumem/ops/tape.hpp"

namespace gpumem::ops {

struct OpInput {
  model::Attributes attributes;
  std::span<const core::Shape> inputs;  ///< at least one, unless the op reads nothing
};

/// The output shape for these inputs. Errors carry no place: the caller knows the layer.
using ShapeRule = core::Result<core::Shape> (*)(const OpInput&);

/// The axis that an attribute of the op fixes in its input: a convolution's in_channels are axis 1, a linear layer's
/// in_features on the last one.
struct ExpectedWidth {
  enum class Axis : std::uint8_t { none, channels, last };
  Axis axis = Axis::none;
  std::string_view attribute = {};
};

/// One layer, ready to be recorded: its shapes are known, and its inputs are on the tape.
struct OpCall {
  model::Attributes attributes;
  std::string_view class_name;
  std::span<const core::Shape> shapes;  ///< of the inputs
  std::span<const TensorId> tensors;    ///< the inputs
  core::Shape output;
  TensorSize size;                   ///< of the output
  std::int64_t parameters = 0;       ///< elements that the layer holds
  std::int64_t tied_parameters = 0;  ///< those of them that an earlier layer holds already
  bool frozen = false;
  model::AttentionBackend attention = model::AttentionBackend::sdpa;  ///< the job's
  model::Transformers transformers = model::Transformers::v4_48;      ///< and its release
  bool cudnn_attention = false;                                       ///< the GPU asks that kernel first
  model::WeightStorage weights = {};  ///< how they lie in memory, and which of them are trained
};

/// Records what the layer does in one training step, and returns its output; kNoTensor if none leaves it.
using RecordRule = core::Result<TensorId> (*)(const OpCall&, Tape&);

using model::ActivationFunction;
using model::Completion;
using model::Keeps;
using model::NormKind;
using model::OpFamily;

/// All that gpumem knows about one op: one row, in the file of its family.
struct Op {
  model::OpTraits traits;
  ShapeRule output_shape = nullptr;  ///< null: no tensor leaves the op
  RecordRule record = nullptr;       ///< null: its memory is not known
  ExpectedWidth expects = {};
  bool reads_token_ids = false;  ///< its input is integer ids, so without edges it reads the graph's input
  bool reads_nothing = false;    ///< its tensor's shape is its attribute "shape"; without one no tensor leaves it
  std::optional<model::Loss> loss = {};  ///< the loss of a job that it computes
  /// Its parameters, where no summary prints them: this many figures a channel of what it reads.
  std::int64_t figures_a_channel = 0;
};

/// One of a layer's parameters: its elements, and rows + columns if it is a matrix (Adafactor keeps only those).
struct ParameterSize {
  core::Checked elements;
  core::Checked factored = 0;

  ParameterSize(core::Checked count, core::Checked rows_and_columns = 0)  // NOLINT: counts convert
      : elements(count), factored(rows_and_columns) {}
};

/// Whether the layer's tensor `index` gets no gradient.
inline bool is_frozen(const OpCall& call, std::size_t index) { return call.frozen || call.weights.freezes(index); }

/// The type that the layer's parameters are held in; nothing: the precision's. "own_type": a module that casts itself
/// back to that, whatever type it was loaded in.
inline std::optional<core::DType> held_type(const OpCall& call) {
  return call.attributes.flag("own_type", false) ? std::nullopt : call.weights.dtype;
}

/// Adds the layer's parameters to the tape, as the tensors that its op holds them in. Where these do not sum to what
/// the summary printed, the printed count is used, as one tensor.
inline void add_parameters(const OpCall& call, Tape& tape, std::initializer_list<ParameterSize> tensors) {
  core::Checked sum = 0;
  for (const ParameterSize& tensor : tensors) sum += tensor.elements;
  if (sum.value() != call.parameters) {
    if (call.parameters == 0) return;
    tape.add_parameter(call.parameters, call.tied_parameters >= call.parameters, is_frozen(call, 0), 0,
                       held_type(call));
    return;
  }
  core::Checked seen = 0;
  std::size_t index = 0;
  for (const ParameterSize& tensor : tensors) {
    const bool frozen = is_frozen(call, index++);
    if (tensor.elements.value() == 0) continue;
    seen += tensor.elements;
    tape.add_parameter(tensor.elements, seen.value() <= call.tied_parameters, frozen, tensor.factored, held_type(call));
  }
}

/// A probability among the attributes, which print() gives as 0.5 or 0; nothing if it is not given.
inline std::optional<double> probability(const model::Attributes& attributes, std::string_view name) {
  const model::AttributeValue* value = attributes.find(name);
  if (value == nullptr) return std::nullopt;
  if (const auto* real = std::get_if<double>(value)) return *real;
  if (const auto* whole = std::get_if<std::int64_t>(value)) return static_cast<double>(*whole);
  return std::nullopt;
}

/// The tensor laid out in order: itself, or a copy (Tensor.contiguous).
inline TensorId contiguous(Tape& tape, TensorId tensor) {
  if (tape.tensor(tensor).layout.dense()) return tensor;
  return tape.record({.inputs = {&tensor, 1}, .output = tape.tensor(tensor).size, .gradient = Gradient::passed});
}

/// One elementwise kernel over one tensor.
inline TensorId elementwise(Tape& tape, TensorId input, std::uint32_t saved_inputs = 0, bool saves_output = false,
                            Autocast autocast = Autocast::as_is) {
  return tape.record({.inputs = {&input, 1},
                      .output = tape.tensor(input).size.as(core::DType::float32),
                      .layout = tape.tensor(input).layout,
                      .saved_inputs = saved_inputs,
                      .saves_output = saves_output,
                      .autocast = autocast});
}

/// aten::_softmax of an input that lies in order. Backward multiplies gradient and result into a tensor of its own.
/// Source: torch 2.6, native/cuda/SoftMax.cu: softmax_backward_cuda_out.
inline TensorId softmax(Tape& tape, TensorId input, Autocast autocast = Autocast::as_is) {
  const TensorSize size = tape.tensor(input).size.as(core::DType::float32);
  const TensorSize product = size.as(tape.computing_type({.inputs = {&input, 1}, .autocast = autocast}));
  return tape.record({.inputs = {&input, 1},
                      .output = size,
                      .layout = tape.tensor(input).layout,
                      .saves_output = true,
                      .backward_scratch = tape.own_scratch({&product, 1}),
                      .autocast = autocast});
}

/// One elementwise product of two tensors of the first one's size (aten::mul keeps both).
inline TensorId product(Tape& tape, TensorId left, TensorId right) {
  const std::array<TensorId, 2> inputs = {left, right};
  const std::uint32_t saved =
      (tape.tensor(right).requires_grad ? 1U : 0U) | (tape.tensor(left).requires_grad ? 2U : 0U);
  return tape.record({.inputs = inputs,
                      .output = tape.tensor(left).size.as(core::DType::float32),
                      .layout = tape.tensor(left).layout,
                      .saved_inputs = saved});
}

/// One elementwise quotient (aten::div keeps both). The divisor's gradient is made first, with three temporaries; the
/// dividend's takes the place of one.
inline TensorId quotient(Tape& tape, TensorId dividend, TensorId divisor) {
  const std::array<TensorId, 2> inputs = {dividend, divisor};
  const TensorSize whole = tape.tensor(dividend).size.as(core::DType::float32);
  const TensorSize typed = whole.as(tape.computing_type({.inputs = inputs}));
  const std::array<TensorSize, 2> temporaries = {typed, typed};
  const bool both = tape.tensor(divisor).requires_grad;
  return tape.record({.inputs = inputs,
                      .output = whole,
                      .layout = tape.tensor(dividend).layout,
                      .saved_inputs = both ? 3U : 2U,
                      .backward_scratch = std::span(temporaries).first(both ? 2 : 0)});
}

/// A tensor to the power of a number (aten::pow keeps it; autocast computes it in float32); backward takes the lower
/// power, and that times the exponent, before it multiplies.
inline TensorId power(Tape& tape, TensorId base) {
  const TensorSize whole = tape.tensor(base).size.as(core::DType::float32);
  const TensorSize typed = whole.as(tape.computing_type({.inputs = {&base, 1}, .autocast = Autocast::full}));
  const std::array<TensorSize, 2> temporaries = {typed, typed};
  return tape.record({.inputs = {&base, 1},
                      .output = whole,
                      .layout = tape.tensor(base).layout,
                      .saved_inputs = 1,
                      .backward_scratch = temporaries,
                      .autocast = Autocast::full});
}

/// One elementwise sum of two tensors of one size.
inline TensorId sum_of(Tape& tape, TensorId left, TensorId right) {
  const std::array<TensorId, 2> inputs = {left, right};
  return tape.record({.inputs = inputs,
                      .output = tape.tensor(left).size.as(core::DType::float32),
                      .layout = tape.tensor(left).layout,
                      .gradient = Gradient::passed});
}

/// aten::mean: needs nothing in backward but how many elements there were; PyTorch 1.13 keeps the input to count them.
inline TensorId mean_of(const OpCall& call, Tape& tape) {
  return tape.record(
      {.inputs = call.tensors.first(1), .output = call.size, .saved_inputs = tape.backend() == Backend::cpu ? 1U : 0U});
}

/// A record rule for what only changes how memory is looked at (identity).
inline core::Result<TensorId> record_nothing(const OpCall& call, Tape&) { return call.tensors[0]; }

/// The input's shape, unchanged: activations, dropout, normalisation.
[[nodiscard]] inline core::Result<core::Shape> same_shape(const OpInput& input) { return input.inputs[0]; }

/// An error without a place, for use in shape rules.
[[nodiscard]] inline core::Error missing(std::string_view attribute) {
  return {core::ErrorCode::missing_information, "does not say its " + std::string(attribute), {}};
}
[[nodiscard]] inline core::Error unfit(const core::Shape& input, std::string_view needs) {
  return {core::ErrorCode::missing_information,
          "cannot take an input of shape " + core::to_string(input) + ": it needs " + std::string(needs),
          {}};
}

/// For ops whose output only a printed shape tells.
[[nodiscard]] inline core::Result<core::Shape> printed_shape_only(const OpInput&) {
  return core::Error{core::ErrorCode::missing_information, "needs a summary that prints its output shape", {}};
}

}  // namespace gpumem::ops
