// Activations: torch.nn.functional.relu and its kin, softmax and log_softmax. One op each, because what
// backward keeps differs (relu its output, gelu its input). Shapes pass through, but for glu, which halves
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
enum class Keeps : std::uint8_t {
  output,                   ///< in place or not: relu, tanh, sigmoid
  input,                    ///< its in-place form keeps a copy of the input: hardtanh, silu, hardswish
  input_output_if_in_place  ///< leaky_relu, elu
};

template <Keeps Kept, Autocast Type = Autocast::as_is>
core::Result<TensorId> record(const OpCall& call, Tape& tape) {
  const TensorId input = call.tensors[0];
  const bool in_place = call.attributes.flag("inplace", false);
  const bool saves_output = Kept == Keeps::output || (in_place && Kept == Keeps::input_output_if_in_place);
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
  return record<Keeps::input>(call, tape);
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

inline constexpr std::array<std::string_view, 1> kRelu = {"ReLU"};
inline constexpr std::array<std::string_view, 1> kRelu6 = {"ReLU6"};
inline constexpr std::array<std::string_view, 1> kLeakyRelu = {"LeakyReLU"};
inline constexpr std::array<std::string_view, 1> kPrelu = {"PReLU"};
inline constexpr std::array<std::string_view, 1> kElu = {"ELU"};
inline constexpr std::array<std::string_view, 1> kCelu = {"CELU"};
inline constexpr std::array<std::string_view, 1> kSelu = {"SELU"};
inline constexpr std::array<std::string_view, 10> kGelu = {"GELU",
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

inline constexpr std::array<Op, 24> kActivationOps = {
    {{{"relu", activation_detail::kRelu, activation_detail::kRelu},
      same_shape,
      activation_detail::record<activation_detail::Keeps::output>},
     {{"relu6", activation_detail::kRelu6}, same_shape, activation_detail::record<activation_detail::Keeps::input>},
     {{"leaky_relu", activation_detail::kLeakyRelu, activation_detail::kLeakyRelu},
      same_shape,
      activation_detail::record<activation_detail::Keeps::input_output_if_in_place>},
     {{"prelu", activation_detail::kPrelu, activation_detail::kPrelu, {}, activation_detail::prelu_parameters},
      same_shape,
      activation_detail::record_prelu},
     {{"elu", activation_detail::kElu, activation_detail::kElu},
      same_shape,
      activation_detail::record<activation_detail::Keeps::input_output_if_in_place>},
     {{"celu", activation_detail::kCelu},
      same_shape,
      activation_detail::record<activation_detail::Keeps::input_output_if_in_place>},
     {{"selu", activation_detail::kSelu},
      same_shape,
      activation_detail::record<activation_detail::Keeps::input_output_if_in_place>},
     {{"gelu", activation_detail::kGelu}, same_shape, activation_detail::record_gelu},
     {{"silu", activation_detail::kSilu}, same_shape, activation_detail::record<activation_detail::Keeps::input>},
     {{"mish", activation_detail::kMish}, same_shape, activation_detail::record<activation_detail::Keeps::input>},
     {{"softplus", activation_detail::kSoftplus},
      same_shape,
      activation_detail::record<activation_detail::Keeps::input, Autocast::full>},
     {{"softsign", activation_detail::kSoftsign}, same_shape, activation_detail::record_softsign},
     {{"tanh", activation_detail::kTanh}, same_shape, activation_detail::record<activation_detail::Keeps::output>},
     {{"sigmoid", activation_detail::kSigmoid},
      same_shape,
      activation_detail::record<activation_detail::Keeps::output>},
     {{"log_sigmoid", activation_detail::kLogSigmoid},
      same_shape,
      activation_detail::record<activation_detail::Keeps::input>},
     {{"hardswish", activation_detail::kHardswish},
      same_shape,
      activation_detail::record<activation_detail::Keeps::input>},
     {{"hardsigmoid", activation_detail::kHardsigmoid},
      same_shape,
      activation_detail::record<activation_detail::Keeps::input>},
     {{"hardtanh", activation_detail::kHardtanh},
      same_shape,
      activation_detail::record<activation_detail::Keeps::input>},
     {{"threshold", activation_detail::kThreshold},
      same_shape,
      activation_detail::record<activation_detail::Keeps::input>},
     {{"relu_squared", activation_detail::kReluSquared}, same_shape, activation_detail::record_relu_squared},
     {{"softmax", activation_detail::kSoftmax, activation_detail::kKerasSoftmax},
      same_shape,
      activation_detail::record<activation_detail::Keeps::output, Autocast::full>},
     {{"log_softmax", activation_detail::kLogSoftmax},
      same_shape,
      activation_detail::record<activation_detail::Keeps::output, Autocast::full>},
     {{"glu", activation_detail::kGlu},
      activation_detail::glu_output_shape,
      activation_detail::record<activation_detail::Keeps::input>},
     {{"activation", {}, activation_detail::kKerasActivation},
      same_shape,
      activation_detail::record<activation_detail::Keeps::output>}}};

}  // namespace gpumem::ops
