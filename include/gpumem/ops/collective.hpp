// What ranks that share a model send each other, as calls of the model's forward: the tokens of a sequence shared out
// (Megatron's scatter_to_sequence_parallel_region) and gathered (torch.distributed.tensor), and what a pipeline stage
// gets from the stage before and hands to the next. Collectives inside of a linear layer are that layer's
// (ops/matrix.hpp). Communication buffers are those of PyTorch's allocator; what NCCL takes in addition is not counted
// here.
// Source: Megatron-LM core r0.12, core/tensor_parallel/mappings.py, core/pipeline_parallel/p2p_communication.py,
// core/pipeline_parallel/schedules.py (deallocate_output_tensor); PyTorch 2.6, distributed/_functional_collectives.py:
// all_gather_tensor, whose parts of another axis than the first are copied into order.
#pragma once

#include <array>

#include "gpumem/ops/op.hpp"

namespace gpumem::ops {

/// The names of the ops that who splits a model puts in.
inline constexpr std::string_view kScatterTokens = "scatter_sequence";
inline constexpr std::string_view kGatherTokens = "gather_sequence";
inline constexpr std::string_view kGatherFeatures = "gather_features";
inline constexpr std::string_view kReceived = "received_activation";
inline constexpr std::string_view kSent = "sent_activation";

namespace collective_detail {

/// [N, S, ...] -> [N, S / ranks, ...]
inline core::Result<core::Shape> scattered_shape(const OpInput& input) {
  const auto ranks = input.attributes.integer("ranks");
  if (!ranks || *ranks < 1) return missing("ranks");
  core::Shape shape = input.inputs[0];
  const bool known = shape.rank() >= 2 && shape[1].kind == core::Dim::Kind::fixed;
  if (!known || shape[1].size % *ranks != 0) {
    return core::Error{
        core::ErrorCode::invalid_argument,
        "sequence parallel ranks share tokens; their number must be a multiple of " + std::to_string(*ranks) + " here",
        {}};
  }
  shape.set(1, core::Dim::fixed(shape[1].size / *ranks));
  return shape;
}

/// A part, copied; backward gathers all parts.
inline core::Result<TensorId> record_scatter(const OpCall& call, Tape& tape) {
  return tape.record({.inputs = call.tensors.first(1), .output = call.size});
}

/// [N, S, ...] -> [N, S * ranks, ...]
inline core::Result<core::Shape> gathered_shape(const OpInput& input) {
  const auto ranks = input.attributes.integer("ranks");
  if (!ranks || *ranks < 1) return missing("ranks");
  core::Shape shape = input.inputs[0];
  const bool known = shape.rank() >= 2 && shape[1].kind == core::Dim::Kind::fixed;
  const core::Checked tokens = known ? core::Checked(shape[1].size) * core::Checked(*ranks) : core::Checked(0);
  if (!known || !tokens.valid()) return unfit(shape, "a known number of tokens");
  shape.set(1, core::Dim::fixed(*tokens.value()));
  return shape;
}

/// All parts, one after the other, and in order; backward sums the ranks' gradients, and keeps its part.
inline core::Result<TensorId> record_gather(const OpCall& call, Tape& tape) {
  const core::DType type = tape.tensor(call.tensors[0]).size.dtype;
  const std::array<TensorSize, 1> parts = {call.size.as(type)};
  return tape.record({.inputs = call.tensors.first(1),
                      .output = call.size,
                      .scratch = tape.own_scratch(parts),
                      .backward_scratch = tape.own_scratch(parts)});
}

/// [..., C] -> [..., C * ranks]; without ranks the features are all there.
inline core::Result<core::Shape> joined_shape(const OpInput& input) {
  const std::int64_t ranks = input.attributes.integer("ranks").value_or(1);
  if (ranks < 1) return missing("ranks");
  core::Shape shape = input.inputs[0];
  const std::size_t last = shape.rank() - 1;
  const bool known = shape.rank() > 0 && shape[last].kind == core::Dim::Kind::fixed;
  const core::Checked features = known ? core::Checked(shape[last].size) * core::Checked(ranks) : core::Checked(0);
  if (!known || !features.valid()) return unfit(shape, "a known number of features");
  shape.set(last, core::Dim::fixed(*features.value()));
  return shape;
}

/// All parts, and then side by side; backward copies the rank's own part (_GatherFromModelParallelRegion).
inline core::Result<TensorId> record_join(const OpCall& call, Tape& tape) {
  if (call.attributes.integer("ranks").value_or(1) == 1) return call.tensors[0];
  return record_gather(call, tape);
}

/// What the stage before has sent: a tensor that gradients flow back to, and end at.
inline core::Result<TensorId> record_received(const OpCall& call, Tape& tape) {
  tape.require_grad(call.tensors[0]);
  return call.tensors[0];
}

inline core::Result<core::Shape> scalar(const OpInput&) { return core::Shape{}; }

/// Stands for the loss of a stage that computes none: its gradient is what the next stage sends back.
inline core::Result<TensorId> record_sent(const OpCall& call, Tape& tape) {
  return tape.record({.inputs = call.tensors.first(1), .output = {1, 0, core::DType::float32}});
}

}  // namespace collective_detail

inline constexpr std::array<Op, 5> kCollectiveOps = {{
    {.traits = {.name = kScatterTokens, .family = OpFamily::other, .computes = false},
     .output_shape = collective_detail::scattered_shape,
     .record = collective_detail::record_scatter},
    {.traits = {.name = kGatherTokens, .family = OpFamily::other, .computes = false},
     .output_shape = collective_detail::gathered_shape,
     .record = collective_detail::record_gather},
    {.traits = {.name = kGatherFeatures, .family = OpFamily::other, .computes = false},
     .output_shape = collective_detail::joined_shape,
     .record = collective_detail::record_join},
    {.traits = {.name = kReceived, .family = OpFamily::other, .computes = false},
     .output_shape = same_shape,
     .record = collective_detail::record_received},
    {.traits = {.name = kSent, .family = OpFamily::other, .computes = false},
     .output_shape = collective_detail::scalar,
     .record = collective_detail::record_sent},
}};

}  // namespace gpumem::ops
