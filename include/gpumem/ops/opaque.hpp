// A module of a class that no op describes: its output is known, its layers are not. What it keeps for backward in
// addition to its output is in the attribute "kept", in elements a sample, as connect/opaque.hpp bounds it. Backward
// reads it and makes one more tensor as large as the input. Its matrices are taken to multiply every row or pixel once.
#pragma once

#include <algorithm>
#include <array>

#include "gpumem/model/model_graph.hpp"
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

}  // namespace gpumem::ops
