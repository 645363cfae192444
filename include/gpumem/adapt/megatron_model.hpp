// Input: the wired graph of a decoder as transformers' code builds it, and a job that Megatron trains.
// Output: the layers that Megatron computes differently, in a copy of the graph: a norm is one kernel, which keeps what
// it reads; SwiGLU is one kernel that keeps both halves of what it reads, and not the activated one.
//
// Source: Megatron-LM core r0.12: core/models/gpt/gpt_layer_specs.py (TELayerNormColumnParallelLinear, TENorm),
// core/fusions/fused_bias_swiglu.py (SwiGLUFunction; bias_activation_fusion is on by default); ms-swift's and NVIDIA's
// bridges read a config.json as such a model.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gpumem/adapt/trained_weights.hpp"
#include "gpumem/connect/graph_copy.hpp"
#include "gpumem/model/training_job.hpp"

namespace gpumem::adapt {

/// Whether the job runs Megatron's code of this model: transformers' code named its architecture. A config of
/// Megatron's own arguments shows the model that runs.
[[nodiscard]] bool is_megatron_model(const model::ModelGraph& graph, const model::TrainingJob& job);

/// Copies this layer, the next one, as Megatron computes it; false: Megatron computes it in the same way.
[[nodiscard]] bool take_megatron_layer(connect::GraphCopy& copy, const connect::WiredGraph& wired, std::uint32_t layer,
                                       const model::WeightStorage& weights);

namespace megatron_model_detail {

/// Whether a product reads what this layer makes: of a gate's activation, within the next few layers.
inline bool is_factor(const connect::WiredGraph& wired, std::uint32_t layer) {
  constexpr std::uint32_t kFar = 6;
  const auto layers = wired.graph().layers();
  const auto end = std::min<std::size_t>(layers.size(), std::size_t{layer} + kFar);
  for (std::size_t reader = std::size_t{layer} + 1; reader < end; ++reader) {
    const auto inputs = wired.inputs(reader);
    if (std::ranges::find(inputs, static_cast<model::LayerIndex>(layer)) == inputs.end()) continue;
    const ops::Op* const op = wired.op(layers[reader]);
    return op != nullptr && op->traits.name == "mul";
  }
  return false;
}

}  // namespace megatron_model_detail

inline bool is_megatron_model(const model::ModelGraph& graph, const model::TrainingJob& job) {
  return job.loop == model::Loop::megatron && !graph.architecture().empty() &&
         !graph.architecture().starts_with("megatron");
}

inline bool take_megatron_layer(connect::GraphCopy& copy, const connect::WiredGraph& wired, std::uint32_t layer,
                                const model::WeightStorage& weights) {
  const model::Layer& source = wired.graph().layers()[layer];
  const ops::Op* const op = wired.op(source);
  if (op == nullptr || wired.inputs(layer).size() != 1) return false;
  if (op->traits.name == "rms_norm") {
    const auto all = wired.graph().attributes(source).all();
    connect::ChangedLayer change{{all.begin(), all.end()}, 0};
    change.attributes.push_back({"fused", true});
    static_cast<void>(copy.copy(weights, wholly_frozen(wired, source, weights), change));
    return true;
  }
  if (op->traits.name != "silu" || !megatron_model_detail::is_factor(wired, layer)) return false;
  copy.omit(copy.now(wired.inputs(layer)[0]));
  return true;
}

}  // namespace gpumem::adapt
