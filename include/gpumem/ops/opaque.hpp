// A module of a class that no op describes: its output is known, its layers are not. What it keeps for backward in
// addition to its output is in the attribute "kept", in elements a sample, as connect/wiring.hpp bounds it. Backward
// reads it and makes one more tensor as large as the input. Its matrices are taken to multiply every row or pixel once.
#pragma once

#include <algorithm>
#include <array>

#include "gpumem/model/model_graph.hpp"
#include "gpumem/ops/matrix.hpp"
#include "gpumem/ops/op.hpp"

namespace gpumem::ops {

namespace opaque_detail {

/// What it keeps are many tensors of unknown sizes; here they are taken to have one size.
inline constexpr std::int64_t kPieces = 8;

/// As large as what it reads, where no summary prints its output.
inline core::Result<core::Shape> opaque_shape(const OpInput& input) { return input.inputs[0]; }

/// The axis of the channels: the second one of images, else the last.
inline std::int64_t width_of(const core::Shape& shape) {
  if (shape.rank() < 2) return 1;
  const core::Dim dim = shape[shape.rank() == 4 ? 1 : shape.rank() - 1];
  return dim.kind == core::Dim::Kind::fixed ? std::max<std::int64_t>(dim.size, 1) : 1;
}

inline core::Result<TensorId> record(const OpCall& call, Tape& tape) {
  add_parameters(call, tape, {core::Checked(call.parameters)});
  const TensorSize input = tape.tensor(call.tensors[0]).size;
  const std::int64_t kept = call.attributes.integer("kept").value_or(0);
  std::array<TensorSize, kPieces> pieces;
  pieces.fill({core::Checked((kept + kPieces - 1) / kPieces), call.size.batch_power,
               tape.computing_type({.inputs = call.tensors})});
  const std::array<TensorSize, 1> inner_gradient = {input};
  const core::Checked rows = call.size.elements.value().value_or(0) / width_of(call.output);
  return tape.record({.inputs = call.tensors.first(1),
                      .output = call.size,
                      .saved_inputs = 1,
                      .extras = std::span(pieces).first(kept > 0 ? kPieces : 0),
                      .backward_scratch = inner_gradient,
                      .parameters = tape.layer_parameters(),
                      .multiply_adds = {rows * call.parameters, call.size.batch_power, core::DType::float32}});
}

}  // namespace opaque_detail

inline constexpr std::array<Op, 1> kOpaqueOps = {{
    {.traits = {.name = model::kOpaqueOp, .family = OpFamily::other, .keeps = Keeps::input},
     .output_shape = opaque_detail::opaque_shape,
     .record = opaque_detail::record},
}};

// Bare parameters: torch.nn.Parameter held by a container in addition to its children (relative-attention biases, class
// tokens), torch.nn.ParameterList and ParameterDict. Graph JSON gives the "shape" of one that other layers read, and
// that tensor leaves it; what summaries print of parameters names no tensor. Constants: buffers and tensors that the
// model makes of nothing.

namespace parameter_detail {

/// Attribute "shape" if it is a list of sizes; null if not.
inline const std::vector<std::int64_t>* shape_attribute(const model::Attributes& attributes) {
  const model::AttributeValue* shape = attributes.find("shape");
  return shape == nullptr ? nullptr : std::get_if<std::vector<std::int64_t>>(shape);
}

/// Without a shape only a printed count tells.
inline std::optional<core::Checked> parameters(const model::Attributes& attributes) {
  const auto* sizes = shape_attribute(attributes);
  if (sizes == nullptr) return std::nullopt;
  core::Checked elements = 1;
  for (const std::int64_t size : *sizes) elements *= size;
  return elements;
}

inline core::Result<core::Shape> own_shape(const OpInput& input) {
  const auto* sizes = shape_attribute(input.attributes);
  if (sizes == nullptr) return missing("shape");
  core::Shape shape;
  for (const std::int64_t size : *sizes) {
    if (!shape.push_back(core::Dim::fixed(size))) {
      return core::Error{core::ErrorCode::malformed_input, "has a shape of too many axes", {}};
    }
  }
  return shape;
}

/// With a shape the parameter is itself the tensor that leaves; without one nobody knows who reads it.
inline core::Result<TensorId> record(const OpCall& call, Tape& tape) {
  if (call.weights.quantization != model::Quantization::none) return whole_parameter(call, tape);
  add_parameters(call, tape, {core::Checked(call.parameters)});
  const bool leaves = shape_attribute(call.attributes) != nullptr && tape.layer_parameters().size() == 1;
  return leaves ? tape.layer_parameters()[0] : kNoTensor;
}

/// A buffer of the model, which no gradient reaches. Its "dtype" is one of PyTorch's, or "parameters": that of the
/// model's parameters, which model.to(dtype) gives floating-point buffers too.
inline core::Result<TensorId> record_constant(const OpCall& call, Tape& tape) {
  const model::AttributeValue* named = call.attributes.find("dtype");
  const auto* name = named == nullptr ? nullptr : std::get_if<std::string>(named);
  if (name != nullptr && *name == "parameters") return tape.add_buffer(call.size.as(tape.dtype()));
  const auto dtype = name == nullptr ? std::optional(core::DType::float32) : core::dtype_from(*name);
  return tape.add_buffer(call.size.as(dtype.value_or(core::DType::float32)));
}

inline constexpr std::array<std::string_view, 2> kTorch = {"ParameterList", "ParameterDict"};

}  // namespace parameter_detail

inline constexpr std::array<Op, 2> kParameterOps = {{
    {.traits = {.name = model::kParameterOp,
                .family = OpFamily::view,
                .torch_classes = parameter_detail::kTorch,
                .parameters = parameter_detail::parameters,
                .parameters_of_other_names = true,
                .computes = false},
     .output_shape = parameter_detail::own_shape,
     .record = parameter_detail::record,
     .reads_nothing = true},
    {.traits = {.name = model::kConstantOp, .family = OpFamily::view, .computes = false},
     .output_shape = parameter_detail::own_shape,
     .record = parameter_detail::record_constant,
     .reads_nothing = true},
}};

}  // namespace gpumem::ops
