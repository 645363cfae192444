// What adapters compute that no other layer does: adapter_function is one call whose attributes say what it keeps and
// takes, in figures of float32. Most of these are functions of matrices as large as a layer's weight, whatever the
// batch: Hadamard and Kronecker products, Fourier transforms, sparse matrices. adapt/ tells which function each is.
//
//   saved            bit i: backward keeps input i
//   kept, scratch, backward            lists of sizes, in figures: made and kept; forward's own; backward's own
//   kept_row, scratch_row, backward_row   the same in figures a row of the output
//   shape            the output's, where it does not depend on the batch; otherwise "out_features" is its last axis
//   typed_as_first   the output has the first input's type, not the widest
//   in_place         it is written into the first input's memory
//   detached         the output needs no gradient
//
// adapter_part is a view of what a function reads; adapter_rows makes ids of virtual tokens, adapter_lookup looks ids
// up.
#pragma once

#include <array>
#include <vector>

#include "gpumem/ops/op.hpp"

namespace gpumem::ops {

namespace adapter_detail {

inline const std::vector<std::int64_t>* list(const model::Attributes& attributes, std::string_view name) {
  const model::AttributeValue* value = attributes.find(name);
  return value == nullptr ? nullptr : std::get_if<std::vector<std::int64_t>>(value);
}

inline core::Result<core::Shape> function_shape(const OpInput& input) {
  core::Shape shape = input.inputs[0];
  if (const auto* sizes = list(input.attributes, "shape")) {
    core::Shape fixed;
    for (const std::int64_t size : *sizes) {
      if (!fixed.push_back(core::Dim::fixed(size))) return unfit(shape, "a shape of fewer axes");
    }
    return fixed;
  }
  const auto features = input.attributes.integer("out_features");
  if (features && shape.rank() > 0) shape.set(shape.rank() - 1, core::Dim::fixed(*features));
  return shape;
}

/// The sizes of "NAME", and of "NAME_row" for as many rows as the output has.
inline std::vector<TensorSize> sizes(const OpCall& call, const std::string& name) {
  std::vector<TensorSize> all;
  if (const auto* given = list(call.attributes, name)) {
    for (const std::int64_t size : *given) all.push_back({core::Checked(size), 0, core::DType::float32});
  }
  const auto rows = rows_of(call.output);
  if (const auto* given = list(call.attributes, name + "_row"); given != nullptr && rows) {
    for (const std::int64_t width : *given) all.push_back(rows->times(width));
  }
  return all;
}

inline core::Result<TensorId> record_function(const OpCall& call, Tape& tape) {
  const std::vector<TensorSize> kept = sizes(call, "kept");
  const std::vector<TensorSize> scratch = sizes(call, "scratch");
  const std::vector<TensorSize> backward = sizes(call, "backward");
  const bool in_place = call.attributes.flag("in_place", false);
  const bool typed = in_place || call.attributes.flag("typed_as_first", false);
  return tape.record({.inputs = call.tensors,
                      .output = typed ? call.size.as(tape.tensor(call.tensors[0]).size.dtype) : call.size,
                      .kind = in_place ? Output::in_place : Output::fresh,
                      .saved_inputs = static_cast<std::uint32_t>(call.attributes.integer("saved").value_or(0)),
                      .extras = kept,
                      .scratch = scratch,
                      .backward_scratch = backward,
                      .differentiable = !call.attributes.flag("detached", false)});
}

/// The memory of a matrix, or of the beginning of one, in another shape.
inline core::Result<TensorId> record_part(const OpCall& call, Tape& tape) {
  return tape.record(
      {.inputs = call.tensors.first(1), .output = call.size, .kind = Output::view, .gradient = Gradient::passed});
}

/// "rows" ids a sample, for as many samples as the first input has.
inline core::Result<core::Shape> rows_shape(const OpInput& input) {
  const auto rows = input.attributes.integer("rows");
  if (!rows) return missing("rows");
  if (input.inputs[0].rank() == 0) return unfit(input.inputs[0], "a batch axis");
  core::Shape shape;
  shape.push_back(input.inputs[0][0]);
  shape.push_back(core::Dim::fixed(*rows));
  return shape;
}

inline core::Result<TensorId> record_rows(const OpCall& call, Tape& tape) {
  return tape.record({.inputs = call.tensors.first(1),
                      .output = call.size.as(core::DType::int64),
                      .gradient = Gradient::none,
                      .differentiable = false});
}

/// torch.nn.functional.embedding of ids in a table that the model computes. Its gradient is as large as the table.
inline core::Result<core::Shape> lookup_shape(const OpInput& input) {
  if (input.inputs.size() != 2 || input.inputs[0].rank() != 2) return unfit(input.inputs[0], "a table and ids");
  core::Shape shape = input.inputs[1];
  if (!shape.push_back(input.inputs[0][1])) return unfit(shape, "fewer axes");
  return shape;
}

inline core::Result<TensorId> record_lookup(const OpCall& call, Tape& tape) {
  constexpr std::int64_t kSortedIds = 4;
  const std::array<TensorSize, 1> sorted = {tape.tensor(call.tensors[1]).size.as(core::DType::int64).times(kSortedIds)};
  return tape.record({.inputs = call.tensors,
                      .output = call.size,
                      .saved_inputs = 2,
                      .backward_scratch = tape.own_scratch(sorted),
                      .no_gradient = 2});
}

}  // namespace adapter_detail

inline constexpr std::array<Op, 4> kAdapterOps = {{
    {.traits = {.name = "adapter_function", .family = OpFamily::other, .keeps = Keeps::input},
     .output_shape = adapter_detail::function_shape,
     .record = adapter_detail::record_function},
    {.traits = {.name = "adapter_part", .family = OpFamily::view, .computes = false},
     .output_shape = adapter_detail::function_shape,
     .record = adapter_detail::record_part},
    {.traits = {.name = "adapter_rows", .family = OpFamily::other, .computes = false},
     .output_shape = adapter_detail::rows_shape,
     .record = adapter_detail::record_rows},
    {.traits = {.name = "adapter_lookup", .family = OpFamily::embedding},
     .output_shape = adapter_detail::lookup_shape,
     .record = adapter_detail::record_lookup},
}};

}  // namespace gpumem::ops
