// Bare parameters: torch.nn.Parameter held by a container in addition to its children (relative-attention biases, class
// tokens), torch.nn.ParameterList and ParameterDict. Graph JSON gives the "shape" of one that other layers read, and
// that tensor leaves it; what summaries print of parameters names no tensor. Constants: buffers and tensors that the
// model makes of nothing.
#pragma once

#include <array>

#include "gpumem/model/model_graph.hpp"
#include "gpumem/ops/op.hpp"

namespace gpumem::ops {

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
