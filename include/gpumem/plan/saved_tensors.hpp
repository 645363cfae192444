// Input: a forward pass and its job.
// Output: what autograd does not hold from a function's forward to its backward, though its backward reads it: what
// hooks take to the host's memory, and what Megatron discards and computes again.
// Units: indices, elements.
// Source: SimpleTuner 2026-08, helpers/training/offloaded_gradient_checkpointer.py (activation_offload_context);
// Megatron-LM of August 2026, core/pipeline_parallel/fine_grained_activation_offload.py,
// core/tensor_parallel/random.py (CheckpointWithoutOutput), core/transformer/transformer_layer.py,
// multi_latent_attention.py, moe/experts.py.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/connect/repeated_blocks.hpp"
#include "gpumem/model/training_job.hpp"
#include "gpumem/plan/forward_pass.hpp"

namespace gpumem::plan {

/// What is away between a function's two passes. It is there again for each backward that reads it.
struct SavedHooks {
  std::vector<bool> functions;      ///< by function: hooks take what it saves; empty: of none
  std::vector<bool> discarded;      ///< by tensor: its memory ends with its name; empty: of none
  std::vector<bool> arguments;      ///< by tensor: what a checkpointed part reads lies on the host; empty: of none
  std::int64_t least_elements = 0;  ///< of what the hooks take
  /// Layers of the model's blocks, if what hooks take of one of them is on the GPU at any time: Megatron leaves the
  /// last group of each module there, and fetches as many ahead (post_warmup_callback, on_group_start_backward). Empty:
  /// what they take comes for each function.
  std::vector<connect::Range> ahead;
};

/// The hooks of attention that is kept on the host (CheckpointPolicy::host_attention), of Megatron's offload_modules,
/// and of its recompute_modules that discard what they make (layernorm, mla_up_proj).
[[nodiscard]] SavedHooks saved_hooks(const ForwardPass& pass, const model::TrainingJob& job);

/// Whether all that autograd keeps goes to the host. Megatron's offload_modules name what does.
[[nodiscard]] bool offloads_all(const ForwardPass& pass, const model::TrainingJob& job);

/// Each scaled-dot-product attention by itself. One that projects holds more than the attention.
[[nodiscard]] std::vector<connect::Range> attention_layers(const model::ModelGraph& graph);

/// Whether Megatron knows a module of its recompute_modules by this name; a model without it is then no fault.
[[nodiscard]] bool is_megatron_module(std::string_view name);

/// Whether what a module of this name makes is discarded, rather than the module run again as a whole.
[[nodiscard]] bool discards_output(std::string_view name);

/// The layer's path, as Megatron names modules for recomputation: "mlp" of a layer with experts is "moe", and the
/// attention itself "core_attn".
[[nodiscard]] std::string megatron_path(const model::ModelGraph& graph, std::uint32_t layer);

/// Names that '+' joins.
[[nodiscard]] std::vector<std::string_view> joined_names(std::string_view joined);

}  // namespace gpumem::plan
