// Input: a wired graph, how it is trained, and the ops.
// Output: ForwardPass, its autograd graph for any batch size, with the loss: what forward computes and what backward
// will read again.
// Units: elements.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/connect/repeated_blocks.hpp"
#include "gpumem/connect/wired_graph.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/model/model_graph.hpp"
#include "gpumem/model/training_job.hpp"
#include "gpumem/ops/catalogue.hpp"
#include "gpumem/ops/tape.hpp"

namespace gpumem::plan {

/// A pipeline stage's part of a pass.
struct StagePart {
  connect::Range functions;
  ops::TensorId loss = ops::kNoTensor;  ///< what its backward starts from: of all but the last stage, what it sends
};

/// It holds its graph, so that later stages need nothing but it and how the model is trained.
struct ForwardPass {
  connect::WiredGraph wired;
  ops::Tape tape = ops::Tape();
  std::vector<ops::TensorId> held = {};  ///< what the training loop's names hold until the next step: outputs, loss
  ops::TensorId loss = ops::kNoTensor;
  std::vector<StagePart> stages = {};      ///< in their order; the only one is all of the pass
  std::size_t model_inputs = 0;            ///< of the tape's inputs; the rest are labels
  std::size_t model_functions = 0;         ///< of the tape's functions; the rest are the loss
  std::size_t autocast_functions = 0;      ///< those that autocast is around, where it ends with the model; 0: all
  std::vector<ops::TensorId> splits = {};  ///< tuples: their parts' gradients wait for each other; ascending
  bool convolves = false;                  ///< calls cuDNN's convolutions
  bool normalises = false;                 ///< calls cuDNN's batch normalisation
  std::int64_t skipped_layers = 0;         ///< after unknown ones: of these, too, only the parameters are counted
};

/// What goes into a pipeline stage and comes out of it.
struct StageEnds {
  std::vector<ops::TensorId> inputs;   ///< of the batch and of the stage before
  std::vector<ops::TensorId> outputs;  ///< held by the loop's variables, in addition to the loss
};
/// `held`: all that the loop's variables hold.
[[nodiscard]] StageEnds stage_ends(const ForwardPass& pass, const StagePart& part, std::span<const ops::TensorId> held);

/// It reads the job's precision and loss. `ops` gives the loss its row; the layers' rows are in the wired graph.
///
/// Errors: missing_information for an op whose memory is not known, or a size that is not; malformed_input for a layer
/// that reads a layer without a tensor; overflow if a size does not fit 64 bits. Each names its layer.
[[nodiscard]] core::Result<ForwardPass> make_forward_pass(const connect::WiredGraph& wired,
                                                          const model::TrainingJob& job, const ops::Catalogue& ops,
                                                          ops::Backend backend = ops::Backend::cuda);

// Input: a layer, ready to be recorded.
// Output: its calls. Those of a layer that has the op, attributes and inputs of an earlier one are that one's, under
// other names: the blocks of a model are recorded once, and repeated.
//
// Exact: a rule is given an OpCall and sees of the tape only the tensors that this names (ops/op.hpp).

class RecordedLayers {
 public:
  /// The graph must outlive it.
  explicit RecordedLayers(const connect::WiredGraph& wired) : wired_(wired) {}

  /// The output of an earlier layer's calls, repeated; nothing: none is like this one, which reads these tensors.
  [[nodiscard]] std::optional<ops::TensorId> repeat(ops::Tape& tape, std::size_t layer,
                                                    std::span<const ops::TensorId> inputs);
  /// By the op's rule, for later layers. Errors: those of the rule.
  [[nodiscard]] core::Result<ops::TensorId> record(ops::Tape& tape, std::size_t layer, const ops::Op& op,
                                                   const ops::OpCall& call);

 private:
  using Shapes = std::vector<const core::Shape*>;
  struct Recorded {
    std::size_t layer = 0;
    Shapes shapes;
    ops::LayerCalls calls;
    bool known = false;
  };

  [[nodiscard]] std::size_t place_of(const ops::Tape& tape, std::size_t layer,
                                     std::span<const ops::TensorId> inputs) const;
  [[nodiscard]] Recorded& room_at(std::size_t place);
  void find_shapes(std::size_t layer);
  [[nodiscard]] bool is_alike(const Recorded& recorded, std::size_t layer) const;

  /// Two that belong to one place are next to each other.
  static constexpr std::size_t kPlacesTried = 4;
  static constexpr std::size_t kMostInputs = 64;  ///< to compare them takes the square of their number
  static constexpr int kPlaceBits = 8;

  const connect::WiredGraph& wired_;
  std::array<Recorded, std::size_t{1} << kPlaceBits> recent_;
  Shapes shapes_;  ///< what the layer at hand leaves (null: nothing) and reads
};

// Input: a wired graph.
// Output: the layers that a flash-attn kernel does not need: contiguous copies and repeated heads, which only bring
// queries, keys and values into the form that scaled_dot_product_attention takes.
// Units: indices.
// Source: transformers 4.48, integrations/flash_attention.py compared with integrations/sdpa_attention.py.

/// By layer: whether it comes before an attention and moves what that reads, and nothing else reads it.
[[nodiscard]] std::vector<bool> attention_inputs(const connect::WiredGraph& wired);

// Input: a wired graph.
// Output: the head of a language model and its cross entropy, with the layers between them, for forms of the loss that
// replace all of these.
// Units: indices of layers.

struct HeadAndLoss {
  model::LayerIndex head = -1;   ///< the linear layer that makes the logits
  model::LayerIndex loss = -1;   ///< the cross entropy
  model::LayerIndex end = -1;    ///< where the function returns that computes it, and its names end; -1: nowhere
  std::vector<bool> replaced{};  ///< by layer: the head, what is between it and the loss, and second names of these

  [[nodiscard]] bool replaces(std::size_t layer) const { return !replaced.empty() && replaced[layer]; }
};

/// Errors: missing_information for a model that computes no cross entropy itself, or whose logits do not go from a
/// linear layer to it through only views, casts and scaling.
[[nodiscard]] core::Result<HeadAndLoss> find_head_and_loss(const connect::WiredGraph& wired);

/// What the training loop's variables hold: all that the model returns, except its cache of keys and values where
/// blocks are checkpointed: most models of transformers make none then (use_cache=False), and other programs' never do.
/// Trainers of policies and preferences ask for none either.
[[nodiscard]] std::vector<ops::TensorId> held_by_loop(const model::TrainingJob& job, const ForwardPass& pass);

// Input: a forward pass.
// Output: where the lifetime of the program's variables for its tensors ends: after the last function that reads them.
// Units: indices.

class NameLifetimes {
 public:
  /// Inputs, parameters, buffers and what the training loop holds never end by themselves.
  explicit NameLifetimes(const ForwardPass& pass) : NameLifetimes(pass, pass.held) {}
  /// The same where the training loop holds these tensors and no others.
  NameLifetimes(const ForwardPass& pass, std::span<const ops::TensorId> held);

  /// The tensors whose names end after this function.
  [[nodiscard]] std::span<const ops::TensorId> ending_at(std::size_t function) const {
    const std::uint32_t first = first_of_[function];
    return std::span<const ops::TensorId>(ending_).subspan(first, first_of_[function + 1] - first);
  }

 private:
  std::vector<std::uint32_t> first_of_;  ///< by function: where its part of `ending_` begins
  std::vector<ops::TensorId> ending_;
};

// Input: a forward pass and its job.
// Output: what autograd does not hold from a function's forward to its backward, though its backward reads it: what
// hooks take to the host's memory, and what Megatron discards and computes again.
// Units: indices, elements.
// Source: SimpleTuner 2026-08, helpers/training/offloaded_gradient_checkpointer.py (activation_offload_context);
// Megatron-LM of August 2026, core/pipeline_parallel/fine_grained_activation_offload.py,
// core/tensor_parallel/random.py (CheckpointWithoutOutput), core/transformer/transformer_layer.py,
// multi_latent_attention.py, moe/experts.py.

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
