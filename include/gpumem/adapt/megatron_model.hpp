// Input: the wired graph of a decoder as transformers' code builds it, and a job that Megatron trains.
// Output: the layers that Megatron computes differently, in a copy of the graph: a norm is one kernel, which keeps what
// it reads; SwiGLU is one kernel that keeps both halves of what it reads, and not the activated one.
//
// Source: Megatron-LM core r0.12: core/models/gpt/gpt_layer_specs.py (TELayerNormColumnParallelLinear, TENorm),
// core/fusions/fused_bias_swiglu.py (SwiGLUFunction; bias_activation_fusion is on by default); ms-swift's and NVIDIA's
// bridges read a config.json as such a model.
#pragma once

#include <cstdint>

#include "gpumem/connect/graph_copy.hpp"
#include "gpumem/model/training_job.hpp"

namespace gpumem::adapt {

/// Whether the job runs Megatron's code of this model: transformers' code named its architecture. A config of
/// Megatron's own arguments shows the model that runs.
[[nodiscard]] bool is_megatron_model(const model::ModelGraph& graph, const model::TrainingJob& job);

/// Copies this layer, the next one, as Megatron computes it; false: Megatron computes it in the same way.
[[nodiscard]] bool take_megatron_layer(connect::GraphCopy& copy, const connect::WiredGraph& wired, std::uint32_t layer,
                                       const model::WeightStorage& weights);

}  // namespace gpumem::adapt
