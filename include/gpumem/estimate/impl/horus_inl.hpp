#pragma once

#include "gpumem/estimate/horus.hpp"

#include "gpumem/adapt/adapt.hpp"

namespace gpumem::estimate {

namespace horus_detail {

/// d e, from CARMA's published estimates (see horus.hpp).
inline constexpr std::int64_t kOverheadBytes = std::int64_t{800} << 20;

GPUMEM_INLINE core::Error unknown_dimension(const model::ModelGraph& graph, const model::Layer& layer,
                                            const core::Shape& shape) {
  return {core::ErrorCode::missing_information,
          "has the output shape " + core::to_string(shape) +
              " with an unknown dimension; print the summary of a model with a fixed input size",
          core::Place{graph.file(), layer.line, graph.path(layer)}};
}

/// B A: elements of all counted outputs at this batch size.
GPUMEM_INLINE core::Result<core::Checked> activations(const connect::WiredGraph& wired, std::int64_t batch_size) {
  const model::ModelGraph& graph = wired.graph();
  core::Checked elements = 0;
  for (std::size_t index = 0; index < graph.layers().size(); ++index) {
    const model::Layer& layer = graph.layers()[index];
    const model::OpTraits* op = graph.op_traits(layer);
    if (layer.inferred || op == nullptr || !op->computes) continue;
    for (const core::Shape& shape : wired.outputs(index)) {
      const auto outputs = shape.elements(batch_size);
      if (!outputs) return unknown_dimension(graph, layer, shape);
      elements += *outputs;
    }
  }
  return elements;
}

}  // namespace horus_detail

GPUMEM_INLINE core::Result<MemoryEstimate> Horus::do_estimate(analysis::Analysis& analysis,
                                                              const device::GpuProfile&) const {
  const model::TrainingJob& job = analysis.job();
  const auto wired = analysis.adapted();
  if (!wired) return wired.error();
  const core::Result<core::Checked> activations = horus_detail::activations(**wired, job.batch_size);
  if (!activations) return activations.error();

  const core::Checked element = core::element_size(model::parameter_dtype(job.precision));
  const model::ModelGraph& counted = adapt::adapts(job) ? (*wired)->graph() : *job.graph;
  const core::Checked parameters = core::Checked(counted.parameters()) * element;
  const core::Checked gradients = parameters * core::Checked(job.batch_size);
  const core::Checked activation_bytes = *activations * element;
  const core::Checked total = activation_bytes + parameters + gradients + horus_detail::kOverheadBytes;
  if (!total.valid()) {
    return core::Error{core::ErrorCode::overflow,
                       "the job's memory at batch " + std::to_string(job.batch_size) + " does not fit 64 bits",
                       {}};
  }

  MemoryEstimate estimate;
  estimate.expected = core::Bytes(*total.value());
  estimate.lower = estimate.expected;
  estimate.upper = estimate.expected;
  estimate.device = estimate.expected;
  estimate.breakdown.context = core::Bytes(horus_detail::kOverheadBytes);
  estimate.breakdown.parameters = core::Bytes(*parameters.value());
  estimate.breakdown.gradients = core::Bytes(*gradients.value());
  estimate.breakdown.activations = core::Bytes(*activation_bytes.value());
  return estimate;
}

}  // namespace gpumem::estimate
