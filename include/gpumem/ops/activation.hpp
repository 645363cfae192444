// Activations: torch.nn.functional.relu and its kin, softmax and log_softmax. One op each, because what
// backward keeps differs (relu its output, gelu its input). Shapes pass through, except glu, which halves
// an axis. Keras prints Activation('relu') without saying which one: the op "activation".
#pragma once

#include <array>

#include "gpumem/ops/op.hpp"

namespace gpumem::ops {

namespace activation_detail {

/// PReLU learns one slope, or one a channel.
inline std::optional<core::Checked> prelu_parameters(const model::Attributes& attributes) {
  return core::Checked(attributes.integer("num_parameters").value_or(1));
}

inline core::Result<core::Shape> glu_output_shape(const OpInput& input) {
  core::Shape shape = input.inputs[0];
  const auto rank = static_cast<std::int64_t>(shape.rank());
  const std::int64_t dim = input.attributes.integer("dim").value_or(-1);
  const std::int64_t axis = dim < 0 ? dim + rank : dim;
  if (axis < 0 || axis >= rank || shape[static_cast<std::size_t>(axis)].size % 2 != 0) {
    return unfit(shape, "an even axis to halve");
  }
  const core::Dim whole = shape[static_cast<std::size_t>(axis)];
  shape.set(static_cast<std::size_t>(axis), {whole.size / 2, whole.kind});
  return shape;
}

/// What backward reads again (derivatives.yaml).
enum class Saved : std::uint8_t {
  output,                   ///< in place or not: relu, tanh, sigmoid
  input,                    ///< its in-place form keeps a copy of the input: hardtanh, silu, hardswish
  input_output_if_in_place  ///< leaky_relu, elu
};

template <Saved Kept, Autocast Type = Autocast::as_is>
core::Result<TensorId> record(const OpCall& call, Tape& tape) {
  const TensorId input = call.tensors[0];
  const bool in_place = call.attributes.flag("inplace", false);
  const bool saves_output = Kept == Saved::output || (in_place && Kept == Saved::input_output_if_in_place);
  const bool copies = in_place && !saves_output;
  const TensorSize copy = tape.tensor(input).size;
  return tape.record({.inputs = {&input, 1},
                      .output = call.size,
                      .kind = in_place ? Output::in_place : Output::fresh,
                      .layout = tape.tensor(input).layout,
                      .saved_inputs = saves_output || copies ? 0U : 1U,
                      .saves_output = saves_output,
                      .extras = {&copy, copies ? 1U : 0U},
                      .autocast = Type});
}

/// torch.nn.functional.gelu, and HuggingFace's forms, which are written out in tensor operations.
inline core::Result<TensorId> record_gelu(const OpCall& call, Tape& tape) {
  const TensorId x = call.tensors[0];
  if (call.class_name == "NewGELUActivation") {  // 0.5 x (1 + tanh(c (x + 0.044715 x^3)))
    const TensorId half = elementwise(tape, x);
    const TensorId cube = power(tape, x);
    const TensorId inner = sum_of(tape, x, elementwise(tape, cube));
    const TensorId tanh = elementwise(tape, elementwise(tape, inner), 0, true);
    return product(tape, half, elementwise(tape, tanh));
  }
  if (call.class_name == "QuickGELUActivation" || call.class_name == "QuickGELU") {  // x sigmoid(1.702 x)
    return product(tape, x, elementwise(tape, elementwise(tape, x), 0, true));
  }
  if (call.class_name == "FastGELUActivation") {  // 0.5 x (1 + tanh(x c (1 + 0.044715 x x)))
    const TensorId half = elementwise(tape, x);
    const TensorId inner = product(tape, elementwise(tape, x), x);
    const TensorId tanh = elementwise(tape, product(tape, elementwise(tape, x), elementwise(tape, inner)), 0, true);
    return product(tape, half, elementwise(tape, tanh));
  }
  if (call.class_name == "BloomGelu") {  // GeLUFunction: FastGELU's form in one function, written out both ways
    const TensorSize one = tape.tensor(x).size;
    const std::array<TensorSize, 4> terms = {one, one, one, one};
    return tape.record({.inputs = {&x, 1},
                        .output = call.size,
                        .layout = tape.tensor(x).layout,
                        .saved_inputs = 1,
                        .scratch = std::span(terms).first(3),
                        .backward_scratch = terms});
  }
  return record<Saved::input>(call, tape);
}

/// aten::prelu: its backward makes the slope's gradient an element each before it sums them.
inline core::Result<TensorId> record_prelu(const OpCall& call, Tape& tape) {
  add_parameters(call, tape, {core::Checked(call.parameters)});
  const TensorId input = call.tensors[0];
  const Call computes = {.inputs = {&input, 1}, .autocast = Autocast::lower};
  const TensorSize slopes = tape.tensor(input).size.as(tape.computing_type(computes));
  return tape.record({.inputs = {&input, 1},
                      .output = call.size,
                      .layout = tape.tensor(input).layout,
                      .saved_inputs = 1,
                      .backward_scratch = tape.own_scratch({&slopes, 1}),
                      .parameters = tape.layer_parameters(),
                      .autocast = Autocast::lower});
}

/// torch.nn.functional.softsign: x / (|x| + 1).
inline core::Result<TensorId> record_softsign(const OpCall& call, Tape& tape) {
  const TensorId x = call.tensors[0];
  return quotient(tape, x, elementwise(tape, elementwise(tape, x, 1)));
}

/// relu(x)^2.
inline core::Result<TensorId> record_relu_squared(const OpCall& call, Tape& tape) {
  return power(tape, elementwise(tape, call.tensors[0], 0, true));
}

/// aten::_softmax and _log_softmax: what they return lies in order, whatever they read; they copy what does not.
inline TensorId in_order_softmax(const OpCall& call, Tape& tape, std::span<const TensorSize> backward_scratch) {
  const TensorId input = call.tensors[0];
  const TensorSize copy = tape.tensor(input).size;
  const bool copies = !tape.tensor(input).layout.dense();
  return tape.record({.inputs = {&input, 1},
                      .output = call.size,
                      .saves_output = true,
                      .scratch = tape.own_scratch({&copy, copies ? 1U : 0U}),
                      .backward_scratch = tape.own_scratch(backward_scratch),
                      .autocast = Autocast::full,
                      .contiguous_gradient = true});
}

/// As ops::softmax().
inline core::Result<TensorId> record_softmax(const OpCall& call, Tape& tape) {
  const core::DType type = tape.computing_type({.inputs = call.tensors.first(1), .autocast = Autocast::full});
  const TensorSize product = call.size.as(type);
  return in_order_softmax(call, tape, {&product, 1});
}

inline core::Result<TensorId> record_log_softmax(const OpCall& call, Tape& tape) {
  return in_order_softmax(call, tape, {});
}

inline constexpr std::array<std::string_view, 1> kRelu = {"ReLU"};
inline constexpr std::array<std::string_view, 1> kRelu6 = {"ReLU6"};
inline constexpr std::array<std::string_view, 1> kLeakyRelu = {"LeakyReLU"};
inline constexpr std::array<std::string_view, 1> kPrelu = {"PReLU"};
inline constexpr std::array<std::string_view, 1> kElu = {"ELU"};
inline constexpr std::array<std::string_view, 1> kCelu = {"CELU"};
inline constexpr std::array<std::string_view, 1> kSelu = {"SELU"};
inline constexpr std::array<std::string_view, 11> kGelu = {"GELU",
                                                           "BloomGelu",
                                                           "GELUActivation",
                                                           "NewGELUActivation",
                                                           "FastGELUActivation",
                                                           "QuickGELUActivation",
                                                           "PytorchGELUTanh",
                                                           "GELUTanh",
                                                           "ClippedGELUActivation",
                                                           "AccurateGELUActivation",
                                                           "QuickGELU"};
inline constexpr std::array<std::string_view, 5> kSilu = {"SiLU", "SiLUActivation", "Swish", "SwishMe",
                                                          "MemoryEfficientSwish"};
inline constexpr std::array<std::string_view, 2> kMish = {"Mish", "MishActivation"};
inline constexpr std::array<std::string_view, 1> kSoftplus = {"Softplus"};
inline constexpr std::array<std::string_view, 1> kSoftsign = {"Softsign"};
inline constexpr std::array<std::string_view, 1> kTanh = {"Tanh"};
inline constexpr std::array<std::string_view, 1> kSigmoid = {"Sigmoid"};
inline constexpr std::array<std::string_view, 1> kLogSigmoid = {"LogSigmoid"};
inline constexpr std::array<std::string_view, 3> kHardswish = {"Hardswish", "HardSwish", "HardSwishMe"};
inline constexpr std::array<std::string_view, 3> kHardsigmoid = {"Hardsigmoid", "HardSigmoid", "HardSigmoidMe"};
inline constexpr std::array<std::string_view, 1> kHardtanh = {"Hardtanh"};
inline constexpr std::array<std::string_view, 1> kThreshold = {"Threshold"};
inline constexpr std::array<std::string_view, 1> kReluSquared = {"ReLUSquaredActivation"};
inline constexpr std::array<std::string_view, 2> kSoftmax = {"Softmax", "Softmax2d"};
inline constexpr std::array<std::string_view, 1> kKerasSoftmax = {"Softmax"};
inline constexpr std::array<std::string_view, 1> kLogSoftmax = {"LogSoftmax"};
inline constexpr std::array<std::string_view, 1> kGlu = {"GLU"};
inline constexpr std::array<std::string_view, 1> kKerasActivation = {"Activation"};

}  // namespace activation_detail

inline constexpr std::array<Op, 24> kActivationOps = {{
    {.traits = {.name = "relu",
                .family = OpFamily::activation,
                .torch_classes = activation_detail::kRelu,
                .keras_classes = activation_detail::kRelu,
                .keeps = Keeps::output,
                .function = ActivationFunction::relu,
                .overwrites = true},
     .output_shape = same_shape,
     .record = activation_detail::record<activation_detail::Saved::output>},
    {.traits = {.name = "relu6",
                .family = OpFamily::activation,
                .torch_classes = activation_detail::kRelu6,
                .keeps = Keeps::input,
                .overwrites = true},
     .output_shape = same_shape,
     .record = activation_detail::record<activation_detail::Saved::input>},
    {.traits = {.name = "leaky_relu",
                .family = OpFamily::activation,
                .torch_classes = activation_detail::kLeakyRelu,
                .keras_classes = activation_detail::kLeakyRelu,
                .keeps = Keeps::input,
                .function = ActivationFunction::leaky_relu,
                .overwrites = true},
     .output_shape = same_shape,
     .record = activation_detail::record<activation_detail::Saved::input_output_if_in_place>},
    {.traits = {.name = "prelu",
                .family = OpFamily::activation,
                .torch_classes = activation_detail::kPrelu,
                .keras_classes = activation_detail::kPrelu,
                .parameters = activation_detail::prelu_parameters,
                .keeps = Keeps::input,
                .function = ActivationFunction::prelu},
     .output_shape = same_shape,
     .record = activation_detail::record_prelu},
    {.traits = {.name = "elu",
                .family = OpFamily::activation,
                .torch_classes = activation_detail::kElu,
                .keras_classes = activation_detail::kElu,
                .keeps = Keeps::input,
                .function = ActivationFunction::elu},
     .output_shape = same_shape,
     .record = activation_detail::record<activation_detail::Saved::input_output_if_in_place>},
    {.traits = {.name = "celu",
                .family = OpFamily::activation,
                .torch_classes = activation_detail::kCelu,
                .keeps = Keeps::input},
     .output_shape = same_shape,
     .record = activation_detail::record<activation_detail::Saved::input_output_if_in_place>},
    {.traits = {.name = "selu",
                .family = OpFamily::activation,
                .torch_classes = activation_detail::kSelu,
                .keeps = Keeps::input,
                .function = ActivationFunction::selu},
     .output_shape = same_shape,
     .record = activation_detail::record<activation_detail::Saved::input_output_if_in_place>},
    {.traits = {.name = "gelu",
                .family = OpFamily::activation,
                .torch_classes = activation_detail::kGelu,
                .keeps = Keeps::input,
                .function = ActivationFunction::gelu},
     .output_shape = same_shape,
     .record = activation_detail::record_gelu},
    {.traits = {.name = "silu",
                .family = OpFamily::activation,
                .torch_classes = activation_detail::kSilu,
                .keeps = Keeps::input,
                .function = ActivationFunction::silu,
                .overwrites = true},
     .output_shape = same_shape,
     .record = activation_detail::record<activation_detail::Saved::input>},
    {.traits = {.name = "mish",
                .family = OpFamily::activation,
                .torch_classes = activation_detail::kMish,
                .keeps = Keeps::input,
                .function = ActivationFunction::mish},
     .output_shape = same_shape,
     .record = activation_detail::record<activation_detail::Saved::input>},
    {.traits = {.name = "softplus",
                .family = OpFamily::activation,
                .torch_classes = activation_detail::kSoftplus,
                .keeps = Keeps::input,
                .function = ActivationFunction::softplus},
     .output_shape = same_shape,
     .record = activation_detail::record<activation_detail::Saved::input, Autocast::full>},
    {.traits = {.name = "softsign",
                .family = OpFamily::activation,
                .torch_classes = activation_detail::kSoftsign,
                .keeps = Keeps::input},
     .output_shape = same_shape,
     .record = activation_detail::record_softsign},
    {.traits = {.name = "tanh",
                .family = OpFamily::activation,
                .torch_classes = activation_detail::kTanh,
                .keeps = Keeps::output,
                .function = ActivationFunction::tanh},
     .output_shape = same_shape,
     .record = activation_detail::record<activation_detail::Saved::output>},
    {.traits = {.name = "sigmoid",
                .family = OpFamily::activation,
                .torch_classes = activation_detail::kSigmoid,
                .keeps = Keeps::output},
     .output_shape = same_shape,
     .record = activation_detail::record<activation_detail::Saved::output>},
    {.traits = {.name = "log_sigmoid",
                .family = OpFamily::activation,
                .torch_classes = activation_detail::kLogSigmoid,
                .keeps = Keeps::input},
     .output_shape = same_shape,
     .record = activation_detail::record<activation_detail::Saved::input>},
    {.traits = {.name = "hardswish",
                .family = OpFamily::activation,
                .torch_classes = activation_detail::kHardswish,
                .keeps = Keeps::input,
                .overwrites = true,
                .hides_in_place = true},
     .output_shape = same_shape,
     .record = activation_detail::record<activation_detail::Saved::input>},
    {.traits = {.name = "hardsigmoid",
                .family = OpFamily::activation,
                .torch_classes = activation_detail::kHardsigmoid,
                .keeps = Keeps::input},
     .output_shape = same_shape,
     .record = activation_detail::record<activation_detail::Saved::input>},
    {.traits = {.name = "hardtanh",
                .family = OpFamily::activation,
                .torch_classes = activation_detail::kHardtanh,
                .keeps = Keeps::input,
                .overwrites = true},
     .output_shape = same_shape,
     .record = activation_detail::record<activation_detail::Saved::input>},
    {.traits = {.name = "threshold",
                .family = OpFamily::activation,
                .torch_classes = activation_detail::kThreshold,
                .keeps = Keeps::input},
     .output_shape = same_shape,
     .record = activation_detail::record<activation_detail::Saved::input>},
    {.traits = {.name = "relu_squared",
                .family = OpFamily::activation,
                .torch_classes = activation_detail::kReluSquared,
                .keeps = Keeps::input},
     .output_shape = same_shape,
     .record = activation_detail::record_relu_squared},
    {.traits = {.name = "softmax",
                .family = OpFamily::softmax,
                .torch_classes = activation_detail::kSoftmax,
                .keras_classes = activation_detail::kKerasSoftmax,
                .keeps = Keeps::output},
     .output_shape = same_shape,
     .record = activation_detail::record_softmax},
    {.traits = {.name = "log_softmax",
                .family = OpFamily::softmax,
                .torch_classes = activation_detail::kLogSoftmax,
                .keeps = Keeps::output},
     .output_shape = same_shape,
     .record = activation_detail::record_log_softmax},
    {.traits = {.name = "glu",
                .family = OpFamily::activation,
                .torch_classes = activation_detail::kGlu,
                .keeps = Keeps::input},
     .output_shape = activation_detail::glu_output_shape,
     .record = activation_detail::record<activation_detail::Saved::input>},
    {.traits = {.name = "activation",
                .family = OpFamily::activation,
                .keras_classes = activation_detail::kKerasActivation,
                .keeps = Keeps::output},
     .output_shape = same_shape,
     .record = activation_detail::record<activation_detail::Saved::output>},
}};

}  // namespace gpumem::ops
