// Linear layers: torch.nn.functional.linear (y = x A^T + b) on the last axis, HuggingFace's Conv1D, which is
// the same with a transposed weight, and torch.nn.functional.bilinear. linear_function reads its weight and bias as
// tensors that the model computes.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "gpumem/ops/matrix.hpp"

namespace gpumem::ops {

namespace linear_detail {

/// "gathered" and "scattered": how many sequence parallel ranks share the tokens. "scatters_apart": by a call of its
/// own.
inline TokenSharing sharing_of(const model::Attributes& attributes) {
  const auto ranks = [&](std::string_view name) {
    return std::max<std::int64_t>(attributes.integer(name).value_or(1), 1);
  };
  return {ranks("gathered"), ranks("scattered"), attributes.flag("scatters_apart", false)};
}

inline core::Result<core::Shape> output_shape(const OpInput& input) {
  const auto features = input.attributes.integer("out_features");
  if (!features) return missing("out_features");
  core::Shape shape = input.inputs[0];
  if (shape.rank() == 0) return unfit(shape, "at least one axis");
  shape.set(shape.rank() - 1, core::Dim::fixed(*features));
  const TokenSharing sharing = sharing_of(input.attributes);
  if (sharing.gathered == 1 && sharing.scattered == 1) return shape;
  const bool known = shape.rank() == 3 && shape[1].kind == core::Dim::Kind::fixed;
  const core::Checked gathered = core::Checked(known ? shape[1].size : 0) * core::Checked(sharing.gathered);
  const std::int64_t tokens = gathered.value().value_or(0);
  if (tokens == 0 || tokens % sharing.scattered != 0) {
    return unfit(shape, "a number of tokens that the ranks share evenly");
  }
  shape.set(1, core::Dim::fixed(tokens / sharing.scattered));
  return shape;
}

inline std::optional<core::Checked> parameters(const model::Attributes& attributes) {
  const auto in = attributes.integer("in_features");
  const auto out = attributes.integer("out_features");
  if (!in || !out) return std::nullopt;
  const core::Checked weight = core::Checked(*in) * core::Checked(*out);
  return attributes.flag("bias", true) ? weight + core::Checked(*out) : weight;
}

inline std::optional<core::Checked> bilinear_parameters(const model::Attributes& attributes) {
  const auto first = attributes.integer("in1_features");
  const auto second = attributes.integer("in2_features");
  const auto out = attributes.integer("out_features");
  if (!first || !second || !out) return std::nullopt;
  const core::Checked weight = core::Checked(*first) * core::Checked(*second) * core::Checked(*out);
  return attributes.flag("bias", true) ? weight + core::Checked(*out) : weight;
}

/// The class of an attention's output projection, which PyTorch calls on rows in the order [S, N].
inline constexpr std::string_view kOutProjection = "NonDynamicallyQuantizableLinear";
inline constexpr std::string_view kBiasApart = "FalconLinear";

/// The last part of a function that makes this input again in backward, and keeps only what it reads itself.
inline TensorId recomputed_linear(const OpCall& call, Tape& tape, bool bias, std::int64_t width) {
  const TensorId input = contiguous(tape, call.tensors[0]);
  const core::DType type = tape.computing_type({.inputs = {&input, 1}, .autocast = Autocast::lower});
  const TensorSize again = tape.tensor(input).size.as(type);
  return tape.record({.inputs = {&input, 1},
                      .output = call.size,
                      .backward_scratch = {&again, 1},
                      .parameters = tape.layer_parameters(),
                      .library = bias ? Library::gemm_bias : Library::gemm,
                      .multiply_adds = call.size.times(width),
                      .autocast = Autocast::lower});
}

/// A copy in fewer bits with its scales, in bytes: one of a tensor; of 32 elements a byte (MXFP8); of 16 elements a
/// byte beside half a byte each (NVFP4).
inline TensorSize copied(TensorSize size, model::Quantization copies) {
  const std::int64_t elements = size.elements.value().value_or(0);
  size.dtype = core::DType::uint8;
  if (copies == model::Quantization::mxfp8) size.elements = core::Checked(elements) + elements / 32;
  if (copies == model::Quantization::nvfp4) size.elements = core::Checked(elements / 2) + elements / 16;
  return size;
}

/// TransformerEngine's product of copies. Kept is the input's copy, in the one direction that the weight's gradient
/// reads. The output's gradient is copied for both directions. Tokens are gathered as copies. Source:
/// TransformerEngine of August 2026, pytorch/module/linear.py, layernorm_linear.py and grouped_linear.py.
inline TensorId linear_of_copies(const OpCall& call, Tape& tape, const TokenSharing& sharing, bool bias,
                                 std::int64_t width) {
  const model::Quantization copies = call.weights.copies;
  const TensorId input = contiguous(tape, call.tensors[0]);
  const core::DType type = tape.computing_type({.inputs = {&input, 1}, .autocast = Autocast::lower});
  const auto parameters = tape.layer_parameters();
  const TensorSize kept = copied(tape.tensor(input).size, copies);
  const TensorSize all = kept.times(sharing.gathered);
  const TensorSize summed = call.size.times(sharing.scattered);
  const TensorSize gradient = copied(summed, copies);
  const bool gathers = sharing.gathered > 1;
  const bool again = call.weights.keeps_input;  // the copy is made once more in backward
  if (call.weights.keeps_weight_copies && call.tied_parameters == 0 && !parameters.empty()) {
    const TensorSize weight = copied(tape.tensor(parameters[0]).size, copies);
    tape.add_buffer(weight);
    tape.add_buffer(weight);
  }
  const bool trains = !parameters.empty() && tape.tensor(parameters[0]).requires_grad;
  std::vector<TensorSize> forward;
  if (gathers || again) forward.push_back(all);
  if (sharing.scattered > 1) forward.push_back(summed.as(type));
  std::vector<TensorSize> backward = {gradient, gradient};
  if (gathers || again) backward.push_back(all);
  if (gathers) backward.push_back(tape.tensor(input).size.times(sharing.gathered).as(type));
  return tape.record({.inputs = {&input, 1},
                      .output = call.size,
                      .saved_for_weight = again ? 1U : 0U,
                      .extras = {&kept, trains && !again ? 1U : 0U},
                      .extras_first = true,
                      .scratch = forward,
                      .backward_scratch = backward,
                      .parameters = parameters,
                      .library = call.attributes.flag("grouped", false) ? Library::grouped_gemm
                                 : bias                                 ? Library::gemm_bias
                                                                        : Library::gemm,
                      .multiply_adds = summed.times(width),
                      .autocast = Autocast::lower});
}

/// transformers.models.falcon.modeling_falcon.FalconLinear: x @ weight.T, and the bias added by a call of its own.
/// Under autocast only the product is lowered, so the sum has the bias' type.
inline TensorId sum_with_bias(const OpCall& call, Tape& tape, std::int64_t width) {
  const auto parameters = tape.layer_parameters();
  const TensorId product =
      linear(tape, call.tensors[0], call.size, parameters.first(1), call.output.rank(), false, width);
  // The caller's name for what is read lasts until the sum is there.
  const std::array<TensorId, 3> inputs = {product, parameters[1], call.tensors[0]};
  return tape.record({.inputs = inputs, .output = call.size, .gradient = Gradient::passed, .no_gradient = 4U});
}

inline core::Result<TensorId> record(const OpCall& call, Tape& tape) {
  const auto in = call.attributes.integer("in_features");
  const auto out = call.attributes.integer("out_features");
  const core::Checked weight = in && out ? core::Checked(*in) * core::Checked(*out) : core::Checked(call.parameters);
  const bool bias = call.parameters > 0 && weight.value() != call.parameters;
  if (call.weights.on_host && in && out) return bounced_linear(call, tape, *in, *out, bias);
  if (call.weights.quantization != model::Quantization::none && in && out) {
    return quantized_linear(call, tape, *in, *out, bias);
  }
  const core::Checked sides = core::Checked(in.value_or(0)) + core::Checked(out.value_or(0));
  add_parameters(call, tape, {{weight, sides}, bias ? core::Checked(out.value_or(0)) : core::Checked(0)});
  const TensorId input = call.tensors[0];
  const TokenSharing sharing = sharing_of(call.attributes);
  if (call.weights.copies != model::Quantization::none && !call.attributes.flag("recomputed", false)) {
    return linear_of_copies(call, tape, sharing, bias, in.value_or(0));
  }
  if (sharing.gathered > 1 || sharing.scattered > 1) {
    return shared_linear(tape, input, call.size, tape.layer_parameters(), sharing, bias, in.value_or(0));
  }
  if (call.attributes.flag("recomputed", false)) return recomputed_linear(call, tape, bias, in.value_or(0));
  if (bias && call.class_name == kBiasApart) return sum_with_bias(call, tape, in.value_or(0));
  const bool turned = call.class_name == kOutProjection && !tape.tensor(input).layout.dense();
  const std::size_t rank = turned ? 2 : call.output.rank();
  const Products products = call.attributes.flag("grouped", false) ? Products::grouped
                            : call.weights.float8                  ? Products::in_float8
                                                                   : Products::single;
  const TensorId output = linear(tape, input, call.size, tape.layer_parameters(), rank, bias, in.value_or(0), products);
  return turned ? batch_second(tape, output) : output;
}

/// torch.nn.functional.linear whose weight and bias are tensors of their own: [.., in] x [out, in].
inline core::Result<core::Shape> function_shape(const OpInput& input) {
  core::Shape shape = input.inputs[0];
  if (input.inputs.size() < 2) return unfit(shape, "a weight");
  const core::Shape& weight = input.inputs[1];
  if (shape.rank() == 0 || weight.rank() != 2 || weight[1] != shape[shape.rank() - 1]) {
    return unfit(weight, "two axes, the last as long as the input's last one");
  }
  shape.set(shape.rank() - 1, weight[0]);
  return shape;
}

/// Keeps the input for the weight's gradient, and the weight for the input's.
inline core::Result<TensorId> record_function(const OpCall& call, Tape& tape) {
  std::array<TensorId, 3> inputs = {contiguous(tape, call.tensors[0]), call.tensors[1]};
  const bool bias = call.tensors.size() > 2;
  if (bias) inputs[2] = call.tensors[2];
  const bool input = tape.tensor(inputs[0]).requires_grad;
  const bool weight = tape.tensor(inputs[1]).requires_grad;
  return tape.record({.inputs = std::span(inputs).first(bias ? 3 : 2),
                      .output = call.size,
                      .saved_inputs = (weight ? 1U : 0U) | (input ? 2U : 0U),
                      .library = bias ? Library::gemm_bias : Library::gemm,
                      .multiply_adds = call.size.times(call.shapes[1][1].size),
                      .autocast = Autocast::lower});
}

/// Each output is a sum over all pairs of the two inputs' features.
inline TensorSize bilinear_products(const OpCall& call) {
  const auto first = call.attributes.integer("in1_features");
  const auto second = call.attributes.integer("in2_features");
  return first && second ? call.size.times(*first).times(*second) : TensorSize{};
}

/// aten::_trilinear: keeps both inputs; its kernels hold the outer product for a short time. Autocast promotes its
/// inputs to the widest of them, which the weight is.
inline core::Result<TensorId> record_bilinear(const OpCall& call, Tape& tape) {
  add_parameters(call, tape, {core::Checked(call.parameters)});
  const auto in = call.attributes.integer("in1_features");
  if (!in) return missing("in1_features");
  const core::DType type = tape.computing_type({.inputs = call.tensors, .autocast = Autocast::full});
  const std::array<TensorSize, 1> outer = {call.size.times(*in).as(type)};
  return tape.record({.inputs = call.tensors,
                      .output = call.size,
                      .saved_inputs = call.tensors.size() > 1 ? 3U : 1U,
                      .scratch = tape.own_scratch(outer),
                      .backward_scratch = tape.own_scratch(outer),
                      .parameters = tape.layer_parameters(),
                      .library = Library::gemm,
                      .multiply_adds = bilinear_products(call),
                      .autocast = Autocast::full});
}

inline constexpr std::array<std::string_view, 7> kTorch = {
    "Linear", "NonDynamicallyQuantizableLinear", "LazyLinear", "Conv1D", "FusedDense", "ScaledLinear", "FalconLinear"};
inline constexpr std::array<std::string_view, 1> kKeras = {"Dense"};
inline constexpr std::array<std::string_view, 2> kPositional = {"in_features", "out_features"};
inline constexpr std::array<std::string_view, 1> kBilinearTorch = {"Bilinear"};

}  // namespace linear_detail

inline constexpr std::array<Op, 3> kLinearOps = {{
    {.traits = {.name = "linear",
                .family = OpFamily::linear,
                .torch_classes = linear_detail::kTorch,
                .keras_classes = linear_detail::kKeras,
                .positional = linear_detail::kPositional,
                .parameters = linear_detail::parameters,
                .keeps = Keeps::input,
                .completion = Completion::linear,
                .multiplies = true},
     .output_shape = linear_detail::output_shape,
     .record = linear_detail::record,
     .expects = {.axis = ExpectedWidth::Axis::last, .attribute = "in_features"}},
    {.traits = {.name = "linear_function", .family = OpFamily::linear, .keeps = Keeps::input, .multiplies = true},
     .output_shape = linear_detail::function_shape,
     .record = linear_detail::record_function},
    {.traits = {.name = "bilinear",
                .family = OpFamily::linear,
                .torch_classes = linear_detail::kBilinearTorch,
                .parameters = linear_detail::bilinear_parameters,
                .keeps = Keeps::input,
                .multiplies = true},
     .output_shape = linear_detail::output_shape,
     .record = linear_detail::record_bilinear,
     .expects = {.axis = ExpectedWidth::Axis::last, .attribute = "in1_features"}},
}};

}  // namespace gpumem::ops
