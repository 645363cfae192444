// Tokens [N, S, width] that go to experts, as rows [R N, width] (mixtures of experts as transformers loops over them):
// what one expert gets, the sum that its results are added to; and rows in the order of their experts, of which each
// takes a share. Which tokens an expert gets depends on the data; here each gets as many.
#pragma once

#include <algorithm>
#include <array>

#include "gpumem/ops/op.hpp"

namespace gpumem::ops {

namespace experts_detail {

/// S per_token / experts rows a sample, rounded up; from the number of "ranks" that share experts.
inline core::Result<core::Shape> gathered_shape(const OpInput& input) {
  const core::Shape& tokens = input.inputs[0];
  const auto experts = input.attributes.integer("experts");
  const auto per_token = input.attributes.integer("per_token");
  if (!experts || !per_token) return missing("experts and per_token");
  if (tokens.rank() != 3 || tokens[1].kind != core::Dim::Kind::fixed) return unfit(tokens, "a known number of tokens");
  if (*experts < 1 || *per_token < 1 || *per_token > *experts) {
    return core::Error{core::ErrorCode::malformed_input, "sends tokens to more experts than there are", {}};
  }
  const core::Checked all = core::Checked(tokens[1].size) * core::Checked(*per_token) + core::Checked(*experts - 1);
  const core::Checked rows = core::Checked(std::max<std::int64_t>(all.value().value_or(0) / *experts, 1)) *
                             core::Checked(std::max<std::int64_t>(input.attributes.integer("ranks").value_or(1), 1)) *
                             tokens[0].size;
  if (!all.valid() || !rows.valid()) return core::Error{core::ErrorCode::overflow, "has too many rows", {}};
  core::Shape shape;
  shape.push_back({*rows.value(), tokens[0].kind});
  shape.push_back(tokens[2]);
  return shape;
}

/// rows[indices]: a copy, which keeps its indices; backward adds into zeros of all rows.
inline core::Result<TensorId> record_gather(const OpCall& call, Tape& tape) {
  const auto rows = rows_of(call.output);
  if (!rows) return unfit(call.output, "known sizes");
  const std::array<TensorSize, 1> indices = {rows->as(core::DType::int64)};
  return tape.record({.inputs = call.tensors.first(1), .output = call.size, .extras = indices, .extras_first = true});
}

/// Tensor.index_add_ on the first input; with "copies" Tensor.index_add, which keeps what it adds.
inline core::Result<TensorId> record_scatter(const OpCall& call, Tape& tape) {
  if (call.tensors.size() != 2) return unfit(call.output, "two inputs");
  const bool copies = call.attributes.flag("copies", false);
  return tape.record({.inputs = call.tensors,
                      .output = call.size,
                      .kind = copies ? Output::fresh : Output::in_place,
                      .saved_inputs = copies ? 2U : 0U});
}

/// A share of the rows for each of the "experts".
inline core::Result<core::Shape> share_shape(const OpInput& input) {
  core::Shape shape = input.inputs[0];
  const std::int64_t experts = input.attributes.integer("experts").value_or(0);
  if (experts < 1 || shape.rank() == 0 || shape[0].kind == core::Dim::Kind::unknown || shape[0].size % experts != 0)
    return unfit(shape, "rows that the experts can share evenly");
  shape.set(0, {shape[0].size / experts, shape[0].kind});
  return shape;
}

/// Tensor.split over the rows: views, whose gradients are copied together.
inline core::Result<TensorId> record_rows(const OpCall& call, Tape& tape) {
  return tape.record({.inputs = call.tensors.first(1),
                      .output = tape.tensor(call.tensors[0]).size,
                      .kind = Output::view,
                      .layout = tape.tensor(call.tensors[0]).layout,
                      .gradient = Gradient::joined});
}

/// One of the views: rows that lie together.
inline core::Result<TensorId> record_share(const OpCall& call, Tape& tape) {
  return tape.record({.inputs = call.tensors.first(1),
                      .output = call.size.as(tape.tensor(call.tensors[0]).size.dtype),
                      .kind = Output::view,
                      .layout = tape.tensor(call.tensors[0]).layout,
                      .gradient = Gradient::passed});
}

/// torch.zeros_like.
inline core::Result<TensorId> record_zeros(const OpCall& call, Tape& tape) {
  return tape.record({.output = call.size.as(tape.tensor(call.tensors[0]).size.dtype), .differentiable = false});
}

}  // namespace experts_detail

inline constexpr std::array<Op, 5> kExpertsOps = {{
    {.traits = {.name = "gather_tokens", .family = OpFamily::other, .computes = false},
     .output_shape = experts_detail::gathered_shape,
     .record = experts_detail::record_gather},
    {.traits = {.name = "scatter_tokens", .family = OpFamily::other, .computes = false},
     .output_shape = same_shape,
     .record = experts_detail::record_scatter},
    {.traits = {.name = "expert_rows", .family = OpFamily::view, .computes = false},
     .output_shape = same_shape,
     .record = experts_detail::record_rows},
    {.traits = {.name = "expert_share", .family = OpFamily::view, .computes = false},
     .output_shape = experts_detail::share_shape,
     .record = experts_detail::record_share},
    {.traits = {.name = "token_zeros", .family = OpFamily::other, .computes = false},
     .output_shape = same_shape,
     .record = experts_detail::record_zeros},
}};

}  // namespace gpumem::ops
