#pragma once

#include "gpumem/estimate/model_states.hpp"

#include "gpumem/estimate/state_bytes.hpp"

namespace gpumem::estimate {

namespace model_states_detail {

/// What adafactor keeps: of a matrix its rows and columns, of any other tensor as much as it has.
GPUMEM_INLINE core::Result<core::Checked> factored_bytes(analysis::Analysis& analysis) {
  const auto pass = analysis.forward_pass();
  if (!pass) return pass.error();
  const ops::Tape& tape = (*pass)->tape;
  core::Checked bytes = 0;
  for (const ops::Tape::Parameter& parameter : tape.parameters()) {
    if (parameter.frozen || parameter.tied) continue;
    const bool matrix = parameter.factored.value() != 0;
    bytes += matrix ? parameter.factored * core::Checked(core::element_size(core::DType::float32))
                    : tape.tensor(parameter.tensor).size.bytes(analysis.job().batch_size);
  }
  return bytes;
}

}  // namespace model_states_detail

GPUMEM_INLINE core::Result<MemoryEstimate> ModelStates::do_estimate(analysis::Analysis& analysis,
                                                                    const device::GpuProfile& /*gpu*/) const {
  const model::TrainingJob& job = analysis.job();
  const core::Checked element = core::element_size(model::parameter_dtype(job.precision));
  const core::Checked parameters = core::Checked(job.graph->parameters()) * element;
  const core::Checked gradients = core::Checked(job.graph->trainable_parameters()) * element;
  core::Checked optimizer = gradients * core::Checked(model::optimizer_states(job.optimizer));
  if (model::row_of(job.optimizer).state_shape == model::OptimizerRow::StateShape::factored) {
    const core::Result<core::Checked> factored = model_states_detail::factored_bytes(analysis);
    if (!factored) return factored.error();
    optimizer = *factored;
  }
  return estimate_of({parameters, gradients, optimizer});
}

}  // namespace gpumem::estimate
