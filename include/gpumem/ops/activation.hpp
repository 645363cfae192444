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
    {{{"relu", activation_detail::kRelu, activation_detail::kRelu}, same_shape},
     {{"relu6", activation_detail::kRelu6}, same_shape},
     {{"leaky_relu", activation_detail::kLeakyRelu, activation_detail::kLeakyRelu}, same_shape},
     {{"prelu", activation_detail::kPrelu, activation_detail::kPrelu, {}, activation_detail::prelu_parameters},
      same_shape},
     {{"elu", activation_detail::kElu, activation_detail::kElu}, same_shape},
     {{"celu", activation_detail::kCelu}, same_shape},
     {{"selu", activation_detail::kSelu}, same_shape},
     {{"gelu", activation_detail::kGelu}, same_shape},
     {{"silu", activation_detail::kSilu}, same_shape},
     {{"mish", activation_detail::kMish}, same_shape},
     {{"softplus", activation_detail::kSoftplus}, same_shape},
     {{"softsign", activation_detail::kSoftsign}, same_shape},
     {{"tanh", activation_detail::kTanh}, same_shape},
     {{"sigmoid", activation_detail::kSigmoid}, same_shape},
     {{"log_sigmoid", activation_detail::kLogSigmoid}, same_shape},
     {{"hardswish", activation_detail::kHardswish}, same_shape},
     {{"hardsigmoid", activation_detail::kHardsigmoid}, same_shape},
     {{"hardtanh", activation_detail::kHardtanh}, same_shape},
     {{"threshold", activation_detail::kThreshold}, same_shape},
     {{"relu_squared", activation_detail::kReluSquared}, same_shape},
     {{"softmax", activation_detail::kSoftmax, activation_detail::kKerasSoftmax}, same_shape},
     {{"log_softmax", activation_detail::kLogSoftmax}, same_shape},
     {{"glu", activation_detail::kGlu}, activation_detail::glu_output_shape},
     {{"activation", {}, activation_detail::kKerasActivation}, same_shape}}};

}  // namespace gpumem::ops
