#pragma once

#include "gpumem/estimate/model_states.hpp"

#include "gpumem/adapt/adapt.hpp"
#include "gpumem/estimate/state_bytes.hpp"

namespace gpumem::estimate {

namespace model_states_detail {

/// What the optimizer keeps on the GPU, parameter by parameter, where its states are not as large as these.
GPUMEM_INLINE core::Result<core::Checked> states_of_each(analysis::Analysis& analysis) {
  const auto pass = analysis.forward_pass();
  if (!pass) return pass.error();
  const ops::Tape& tape = (*pass)->tape;
  const model::OptimizerRow& row = model::row_of(analysis.job().optimizer);
  core::Checked bytes = 0;
  for (const ops::Tape::Parameter& parameter : tape.parameters()) {
    if (parameter.frozen || parameter.tied) continue;
    const ops::TensorSize& size = tape.tensor(parameter.tensor).size;
    const auto whole = size.bytes(analysis.job().batch_size).value();
    if (!whole) return core::Error{core::ErrorCode::overflow, "the optimizer's states do not fit 64 bits", {}};
    const bool masters = model::has_masters(analysis.job().precision);
    const std::int64_t elements = size.elements.value().value_or(0);
    const std::int64_t updated = masters ? elements * core::element_size(core::DType::float32) : *whole;
    if (masters) bytes += updated;
    for (int kept = 0; kept < row.states; ++kept) {
      bytes += model::state_bytes(row, kept, elements, updated, parameter.factored.value().value_or(0));
    }
  }
  return bytes;
}

/// For a job with weights of several types: what the tape holds of each.
struct HeldStates {
  core::Checked parameters = 0;  ///< with the scales of quantised ones
  core::Checked gradients = 0;
};

GPUMEM_INLINE core::Result<HeldStates> held_states(analysis::Analysis& analysis) {
  const auto pass = analysis.forward_pass();
  if (!pass) return pass.error();
  const ops::Tape& tape = (*pass)->tape;
  HeldStates held;
  for (const ops::Tape::Parameter& parameter : tape.parameters()) {
    if (parameter.tied) continue;
    const core::Checked bytes = tape.tensor(parameter.tensor).size.bytes(analysis.job().batch_size);
    held.parameters += bytes;
    if (!parameter.frozen) held.gradients += bytes;
  }
  if (!model::holds_in_fewer_bits(analysis.job().quantize)) return held;
  for (const ops::TensorId buffer : tape.buffers()) {
    held.parameters += tape.tensor(buffer).size.bytes(analysis.job().batch_size);
  }
  return held;
}

}  // namespace model_states_detail

GPUMEM_INLINE core::Result<MemoryEstimate> ModelStates::do_estimate(analysis::Analysis& analysis,
                                                                    const device::GpuProfile& /*gpu*/) const {
  const model::TrainingJob& job = analysis.job();
  const core::Checked element = core::element_size(model::parameter_dtype(job.precision));
  core::Checked parameters = core::Checked(job.graph->parameters()) * element;
  core::Checked gradients = core::Checked(job.graph->trainable_parameters()) * element;
  if (adapt::adapts(job)) {
    const core::Result<model_states_detail::HeldStates> held = model_states_detail::held_states(analysis);
    if (!held) return held.error();
    parameters = held->parameters;
    gradients = held->gradients;
  }
  core::Checked optimizer = gradients * core::Checked(model::optimizer_states(job.optimizer));
  const bool whole = model::row_of(job.optimizer).state_shape == model::OptimizerRow::StateShape::whole;
  if (job.offload == model::Offload::optimizer) {
    optimizer = 0;
  } else if (!whole || model::has_masters(job.precision)) {
    const core::Result<core::Checked> states = model_states_detail::states_of_each(analysis);
    if (!states) return states.error();
    optimizer = *states;
  }
  return estimate_of({parameters, gradients, optimizer});
}

}  // namespace gpumem::estimate
