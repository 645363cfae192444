#pragma once

#include "gpumem/estimate/zero_states.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "gpumem/estimate/state_bytes.hpp"

namespace gpumem::estimate {

namespace zero_states_detail {

/// Bytes a parameter, by what they hold.
struct BytesEach {
  std::int64_t parameters = 0;
  std::int64_t gradients = 0;
  std::int64_t optimizer = 0;  ///< master weights and states
};

/// A row of the header's table.
struct Formula {
  ZeroStates::Kind kind;
  std::string_view name;
  BytesEach whole;          ///< of every parameter, on every GPU
  BytesEach shared;         ///< of every parameter, by N
  BytesEach largest_layer;  ///< of the largest layer's
};

inline constexpr std::array<Formula, 7> kFormulas = {{
    {ZeroStates::Kind::one, ZeroStates::kOneName, {2, 2, 0}, {0, 0, 12}, {}},
    {ZeroStates::Kind::one_offload, ZeroStates::kOneOffloadName, {2, 2, 0}, {}, {}},
    {ZeroStates::Kind::two, ZeroStates::kTwoName, {2, 0, 0}, {0, 6, 12}, {}},
    {ZeroStates::Kind::two_offload, ZeroStates::kTwoOffloadName, {2, 0, 0}, {}, {}},
    {ZeroStates::Kind::three, ZeroStates::kThreeName, {}, {2, 4, 12}, {2, 2, 0}},
    {ZeroStates::Kind::three_offload, ZeroStates::kThreeOffloadName, {}, {2, 0, 0}, {2, 2, 0}},
    {ZeroStates::Kind::three_offload_all, ZeroStates::kThreeOffloadAllName, {}, {}, {2, 2, 0}},
}};

GPUMEM_INLINE const Formula& formula_of(ZeroStates::Kind kind) { return kFormulas[static_cast<std::size_t>(kind)]; }

/// Parameters that the largest module holds itself, tied ones included, as DeepSpeed's model_to_params() counts. Bare
/// parameters are rows of their own in a graph; the container that they are in is the module.
GPUMEM_INLINE core::Checked largest_layer(const model::ModelGraph& graph) {
  std::int64_t largest = 0;
  bool fits = true;
  std::unordered_map<std::uint32_t, std::int64_t> bare;
  for (const model::Layer& layer : graph.layers()) {
    std::int64_t held = layer.parameters;
    if (graph.op(layer) == model::kParameterOp) {
      std::int64_t& sum = bare[layer.scope];
      fits = fits && !__builtin_add_overflow(sum, held, &sum);
      held = sum;
    }
    largest = std::max(largest, held);
  }
  return fits ? core::Checked(largest) : core::Checked(-1);
}

/// These bytes of this many parameters.
GPUMEM_INLINE StateBytes times(const BytesEach& each, core::Checked parameters) {
  return {parameters * core::Checked(each.parameters), parameters * core::Checked(each.gradients),
          parameters * core::Checked(each.optimizer)};
}

/// The formulas round down what is shared as one sum; parts are rounded down, and the last takes what is left.
GPUMEM_INLINE StateBytes divided(const StateBytes& bytes, std::int64_t gpus) {
  const core::Checked sum = bytes.parameters + bytes.gradients + bytes.optimizer;
  if (!sum.valid()) return {sum, sum, sum};
  const std::int64_t parameters = *bytes.parameters.value() / gpus;
  const std::int64_t gradients = *bytes.gradients.value() / gpus;
  return {parameters, gradients, *sum.value() / gpus - parameters - gradients};
}

GPUMEM_INLINE std::vector<std::string> unlike(const model::TrainingJob& job) {
  std::vector<std::string> names;
  const bool single = job.precision == model::Precision::fp32 || job.precision == model::Precision::fp32_strict;
  constexpr std::int64_t kAdamsStates = 2;
  if (single) names.emplace_back("precision");
  if (model::optimizer_states(job.optimizer) != kAdamsStates) names.emplace_back("optimizer");
  if (!job.freeze.empty()) names.emplace_back("freeze");
  if (!job.train.empty()) names.emplace_back("train");
  if (job.lora) names.emplace_back("lora");
  if (job.quantize != model::Quantization::none) names.emplace_back("quantize");
  return names;
}

}  // namespace zero_states_detail

GPUMEM_INLINE std::string_view ZeroStates::name() const { return zero_states_detail::formula_of(kind_).name; }

GPUMEM_INLINE core::Result<MemoryEstimate> ZeroStates::do_estimate(analysis::Analysis& analysis,
                                                                   const device::GpuProfile& /*gpu*/) const {
  namespace detail = zero_states_detail;
  const model::TrainingJob& job = analysis.job();
  const detail::Formula& formula = detail::formula_of(kind_);
  const core::Checked all = job.graph->parameters();
  const StateBytes whole = detail::times(formula.whole, all);
  const StateBytes shared = detail::divided(detail::times(formula.shared, all), job.layout.data_parallel);
  const StateBytes gathered = detail::times(formula.largest_layer, detail::largest_layer(*job.graph));
  core::Result<MemoryEstimate> estimate = estimate_of({whole.parameters + shared.parameters + gathered.parameters,
                                                       whole.gradients + shared.gradients + gathered.gradients,
                                                       whole.optimizer + shared.optimizer + gathered.optimizer});
  if (estimate) estimate->out_of_domain = detail::unlike(job);
  return estimate;
}

}  // namespace gpumem::estimate
