// Input: a wired graph, layer by layer, with the changes to it and the layers to insert.
// Output: the changed wired graph: the same containers, names, edges and shapes. An inserted layer can be read in place
// of another.
// Units: elements.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "gpumem/architectures/forward.hpp"
#include "gpumem/connect/repeated_blocks.hpp"
#include "gpumem/connect/wired_graph.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/model/graph_builder.hpp"
#include "gpumem/ops/catalogue.hpp"

namespace gpumem::connect {

/// A layer that the source does not have.
struct NewLayer {
  std::string name;
  std::string_view op;
  std::vector<model::LayerIndex> inputs;  ///< of the copy
  core::Shape output;
  std::vector<model::Attribute> attributes = {};
  model::WeightStorage weights = {};
  bool frozen = false;
  model::TensorSplit split = model::TensorSplit::whole;
  std::uint32_t expert = 0;  ///< as of model::Layer
  std::int64_t tied_parameters = 0;
};

/// What a copy of a layer has in place of the source's. Sizes among the attributes give its parameters.
struct ChangedLayer {
  std::vector<model::Attribute> attributes;
  std::int64_t tied_parameters = 0;
};

/// Where the shapes of a copy come from.
enum class CopiedShapes : bool {
  of_source,  ///< from the source, and from what is inserted
  inferred,   ///< from finish(job), which infers them all: none is copied
};

class GraphCopy {
 public:
  /// Source and ops must outlive it.
  GraphCopy(const WiredGraph& source, const ops::Catalogue& ops, CopiedShapes shapes = CopiedShapes::of_source);

  /// Adds an input of the graph. Returns its place in the copy.
  model::LayerIndex add_input(model::GraphInput input);

  /// Copies the next layer of the source, in their order. Returns its index in the copy. `tied`: it shares the weights
  /// that it shares in the source, or as many as the change says.
  model::LayerIndex copy(const model::WeightStorage& weights, bool frozen,
                         const std::optional<ChangedLayer>& change = {}, bool tied = true);
  /// Puts this one in the next layer's place. Returns its index.
  model::LayerIndex put(NewLayer layer);
  /// Leaves the next layer of the source out; whoever reads it reads this one of the copy.
  void omit(model::LayerIndex by) { now_.push_back(by); }
  /// Puts a layer after the one copied last, in its container. Returns its index.
  model::LayerIndex insert(NewLayer layer);
  /// Layers of the source that read `layer` and are still to be copied read this one of the copy.
  void replace(std::size_t layer, model::LayerIndex by) { now_[layer] = by; }
  /// The copy of a layer of the source, or of an input of the graph.
  [[nodiscard]] model::LayerIndex now(model::LayerIndex source) const {
    return source < 0 ? source : now_[static_cast<std::size_t>(source)];
  }

  /// A pipeline stage begins with the next layer.
  void begin_stage() { stages_.push_back(static_cast<std::uint32_t>(weights_.size())); }

  /// What the reader of an estimate should know about the copy.
  void remark(std::string text) { remarks_.push_back(std::move(text)); }

  /// Errors: those of GraphBuilder::build().
  [[nodiscard]] core::Result<WiredGraph> finish() &&;
  /// The same where layers have changed: every shape is inferred again, as this job feeds the graph. The source prints
  /// no shapes. Errors: those of infer_shapes(), too.
  [[nodiscard]] core::Result<WiredGraph> finish(const model::TrainingJob& job) &&;

 private:
  void open_next();
  void leave();
  void enter(std::uint32_t scope);
  void mark_blocks();
  void note_unknown(std::size_t layer);
  [[nodiscard]] core::Result<model::ModelGraph> build();
  void note_shape(bool leaves, const core::Shape& output);
  [[nodiscard]] std::optional<model::LayerIndex> twin_of(const model::Layer& layer, bool frozen, bool tied);
  [[nodiscard]] model::LayerIndex add_copy(const model::Layer& layer, bool frozen,
                                           const std::optional<ChangedLayer>& change, bool tied);
  [[nodiscard]] core::Result<WiredGraph> wired(model::ModelGraph graph, std::vector<const ops::Op*> rules);
  [[nodiscard]] std::vector<const ops::Op*> rules_of(const model::ModelGraph& graph) const;

  const WiredGraph& source_;
  const ops::Catalogue& ops_;
  model::GraphBuilder builder_;
  bool copies_shapes_;
  LayerShapes shapes_;
  std::vector<model::LayerIndex> inputs_;  ///< of the layer at hand
  std::vector<model::WeightStorage> weights_;
  std::vector<std::string> remarks_;
  std::vector<std::uint32_t> stages_;
  std::vector<model::LayerIndex> now_;  ///< by layer of the source
  /// Layers that were copied lately as they are, by their ops and attributes: of the source, and of the copy.
  struct Copied {
    const model::Layer* from = nullptr;
    model::LayerIndex to = 0;
  };
  std::array<Copied, 128> recent_ = {};
  std::uint32_t opened_ = 0;  ///< the last scope that was opened
  std::size_t marked_ = 0;    ///< block marks that are in the copy
};

// Input: a wired graph of a model that reads tokens, and a job.
// Output: the same graph as this job runs it, on every road:
//   padding: PyTorch's attention kernels get an additive mask [N, 1, S, S]. transformers makes one for each pair of
//     streams that attend to each other, before the first block, and leaves it out where all tokens count. Source:
//     transformers 4.48, models/llama/modeling_llama.py: _update_causal_mask; modeling_attn_mask_utils.py:
//     _prepare_4d_attention_mask_for_sdpa.
//   calls that a class makes in some releases of transformers, or in some jobs, only (architectures/forward.hpp: When).
//   transformers 4.49 and later: the loss reads the logits as they are and shifts the labels, where before it copied
//     all logits but the last. Models that computed the loss of logits in their own type (GPT-2, GPT-NeoX, BLOOM, ...)
//     cast them to float32 now. Source: loss/loss_utils.py: ForCausalLMLoss, 4.48 and 4.52.

namespace job_changes_detail {

inline constexpr std::string_view kKernel = "scaled_dot_product_attention";

/// Which of the model's token inputs something is made of.
struct Reach {
  bool tokens = false;   ///< of any
  bool decoder = false;  ///< of the decoder's
};

inline std::vector<Reach> reach_of(const WiredGraph& wired) {
  const auto graph_inputs = wired.graph().graph_inputs();
  const auto of_input = [&](model::LayerIndex index) {
    const auto at = static_cast<std::size_t>(model::kFirstGraphInput - index);
    if (at >= graph_inputs.size() || graph_inputs[at].dtype != core::DType::int64) return Reach{};
    return Reach{true, graph_inputs[at].name.starts_with("decoder")};
  };
  std::vector<Reach> all(wired.graph().layers().size());
  for (std::size_t layer = 0; layer < all.size(); ++layer) {
    for (const model::LayerIndex input : wired.inputs(layer)) {
      const Reach from = input < 0 ? of_input(input) : all[static_cast<std::size_t>(input)];
      all[layer].tokens = all[layer].tokens || from.tokens;
      all[layer].decoder = all[layer].decoder || from.decoder;
    }
  }
  return all;
}

/// A kernel without a mask whose queries and keys are made of tokens.
inline bool wants_mask(const WiredGraph& wired, const std::vector<Reach>& reach, std::size_t layer) {
  const auto inputs = wired.inputs(layer);
  if (wired.graph().op(wired.graph().layers()[layer]) != kKernel || inputs.size() != 3) return false;
  if (inputs[0] < 0 || inputs[1] < 0) return false;
  return reach[static_cast<std::size_t>(inputs[0])].tokens && reach[static_cast<std::size_t>(inputs[1])].tokens;
}

/// [N, 1, S, T] of queries [N, heads, S, d] and keys [N, heads, T, d].
inline core::Shape mask_shape(const WiredGraph& wired, std::size_t kernel) {
  const auto inputs = wired.inputs(kernel);
  core::Shape shape = wired.outputs(static_cast<std::size_t>(inputs[0]))[0];
  const core::Shape keys = wired.outputs(static_cast<std::size_t>(inputs[1]))[0];
  shape.set(1, core::Dim::fixed(1));
  shape.set(3, keys[2]);
  return shape;
}

/// The masks of a model: of the encoder, of the decoder, and of the decoder's look at the encoder.
using Masks = std::array<std::optional<model::LayerIndex>, 3>;

inline std::size_t mask_of(const WiredGraph& wired, const std::vector<Reach>& reach, std::size_t kernel) {
  const auto inputs = wired.inputs(kernel);
  const bool query = reach[static_cast<std::size_t>(inputs[0])].decoder;
  const bool key = reach[static_cast<std::size_t>(inputs[1])].decoder;
  return query ? (key ? 1 : 2) : 0;
}

/// The token ids. At least one kernel wants a mask, so the graph has an input of integers.
inline model::LayerIndex token_input(const WiredGraph& wired) {
  const auto graph_inputs = wired.graph().graph_inputs();
  model::LayerIndex ids = model::kFirstGraphInput;
  while (graph_inputs[static_cast<std::size_t>(model::kFirstGraphInput - ids)].dtype != core::DType::int64) --ids;
  return ids;
}

/// A mask for a kernel; `booleans`: of these, and else of numbers.
inline NewLayer mask_for(const WiredGraph& wired, std::size_t kernel, bool booleans) {
  NewLayer mask = {.name = "padding_mask",
                   .op = "causal_mask",
                   .inputs = {token_input(wired)},
                   .output = mask_shape(wired, kernel),
                   .attributes = {{"padded", true}}};
  if (booleans) mask.attributes.push_back({"dtype", std::string("bool")});
  return mask;
}

inline Masks make_masks(GraphCopy& copy, const WiredGraph& wired, const std::vector<Reach>& reach,
                        const std::vector<bool>& wants, bool booleans) {
  Masks masks;
  for (std::size_t layer = 0; layer < reach.size(); ++layer) {
    if (!wants[layer]) continue;
    std::optional<model::LayerIndex>& mask = masks[mask_of(wired, reach, layer)];
    if (mask) continue;
    mask = copy.insert(mask_for(wired, layer, booleans));
  }
  return masks;
}

/// Whether PyTorch's kernel repeats heads that this layer would hand on: use_gqa_in_sdpa of transformers 4.54 and later
/// (here with the views of 4.56) asks for no mask and heads of up to 256 elements.
inline bool kernel_repeats(const WiredGraph& wired, std::uint32_t index, const model::TrainingJob& job) {
  constexpr std::int64_t kWidest = 256;
  const auto outputs = wired.outputs(index);
  if (outputs.empty() || outputs[0].rank() == 0 || job.transformers < model::Transformers::v4_56) return false;
  const core::Dim width = outputs[0][outputs[0].rank() - 1];
  return job.attention == model::AttentionBackend::sdpa && !job.padding && width.size <= kWidest;
}

/// Whether the job makes this call.
inline bool is_made(const WiredGraph& wired, std::uint32_t index, const model::TrainingJob& job) {
  using architectures::When;
  const model::Layer& layer = wired.graph().layers()[index];
  const model::AttributeValue* value = wired.graph().attributes(layer).find(architectures::kWhen);
  const std::string* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
  const auto when = text == nullptr ? std::nullopt : model::value_of(architectures::kWhens, *text);
  if (!when) return true;
  const bool newer = job.transformers >= model::Transformers::v4_52;
  switch (*when) {
    case When::until_4_51: return !newer;
    case When::since_4_52: return newer;
    case When::before_4_56: return job.transformers < model::Transformers::v4_56;
    case When::in_4_52: return job.transformers == model::Transformers::v4_52;
    case When::in_4_52_masked: return job.transformers == model::Transformers::v4_52 && job.padding;
    case When::heads_are_repeated: return !kernel_repeats(wired, index, job);
    case When::masked: return job.padding;
    case When::before_5_0: return job.transformers < model::Transformers::v5_0;
    case When::before_5_5: return job.transformers < model::Transformers::v5_5;
    case When::masked_or_before_5_0: return job.padding || job.transformers < model::Transformers::v5_0;
    case When::cached:
      return job.transformers >= model::Transformers::v4_56 && model::returns_cache(job) &&
             !job.activation_checkpointing;
    case When::checkpointed: return job.activation_checkpointing;
  }
  return true;
}

/// Whether the job's transformers leaves this call of a causal loss out.
inline bool is_shift(const WiredGraph& wired, const model::Layer& layer) {
  return wired.graph().attributes(layer).flag("shifts", false);
}

/// Whether a shift copies logits that no cast has made.
inline bool shifts_own_type(const WiredGraph& wired, std::uint32_t shift) {
  const model::LayerIndex from = wired.inputs(shift)[0];
  if (from < 0) return false;
  return wired.graph().attributes(wired.graph().layers()[static_cast<std::size_t>(from)]).find("dtype") == nullptr;
}

}  // namespace job_changes_detail

/// The graph with the calls that this job's release of transformers makes. Errors: those of GraphCopy::finish().
[[nodiscard]] inline core::Result<WiredGraph> with_calls_of_job(const WiredGraph& wired, const model::TrainingJob& job,
                                                                const ops::Catalogue& ops) {
  namespace detail = job_changes_detail;
  const auto layers = wired.graph().layers();
  const bool newer = job.transformers >= model::Transformers::v4_51;
  const auto shifts = [&](const model::Layer& layer) { return newer && detail::is_shift(wired, layer); };
  // A file may give any layer such attributes: only what reads a tensor and has no weights can be left out.
  const auto changes = [&](std::uint32_t index) {
    const model::Layer& layer = layers[index];
    if (wired.inputs(index).empty() || layer.parameters > 0) return false;
    return shifts(layer) || !detail::is_made(wired, index, job);
  };
  bool any = false;
  for (std::uint32_t index = 0; index < layers.size() && !any; ++index) any = changes(index);
  if (!any) return wired;
  GraphCopy copy(wired, ops, CopiedShapes::inferred);
  for (std::uint32_t index = 0; index < layers.size(); ++index) {
    if (!changes(index)) {
      copy.copy(wired.weights(index), layers[index].frozen);
    } else if (shifts(layers[index]) && detail::shifts_own_type(wired, index)) {
      const model::LayerIndex logits = wired.inputs(index)[0];
      (void)copy.put({.name = "float",
                      .op = "cast",
                      .inputs = {copy.now(logits)},
                      .output = wired.outputs(static_cast<std::size_t>(logits))[0],
                      .attributes = {{"dtype", std::string("float32")}}});
    } else {
      copy.omit(copy.now(wired.inputs(index)[0]));
    }
  }
  return std::move(copy).finish(job);
}

/// A graph without such kernels is returned as it is. `booleans`: the masks are these until each kernel's call makes
/// numbers of them, which it keeps (transformers 4.53 and later, masking_utils.py; PyTorch's attention.cpp,
/// convert_boolean_attn_mask). Errors: those of GraphCopy::finish().
[[nodiscard]] inline core::Result<WiredGraph> with_padding(const WiredGraph& wired, const ops::Catalogue& ops,
                                                           bool booleans = false) {
  namespace detail = job_changes_detail;
  const std::vector<detail::Reach> reach = detail::reach_of(wired);
  std::vector<bool> wants;
  for (std::size_t layer = 0; layer < reach.size(); ++layer) wants.push_back(detail::wants_mask(wired, reach, layer));
  if (std::ranges::find(wants, true) == wants.end()) return wired;
  GraphCopy copy(wired, ops);
  const detail::Masks masks = detail::make_masks(copy, wired, reach, wants, booleans);
  for (std::uint32_t index = 0; index < reach.size(); ++index) {
    const model::Layer& layer = wired.graph().layers()[index];
    if (!wants[index]) {
      copy.copy(wired.weights(index), layer.frozen);
      continue;
    }
    std::vector<model::LayerIndex> inputs;
    for (const model::LayerIndex input : wired.inputs(index)) inputs.push_back(copy.now(input));
    inputs.push_back(booleans ? copy.insert(detail::mask_for(wired, index, false))
                              : *masks[detail::mask_of(wired, reach, index)]);
    const auto attributes = wired.graph().attributes(layer).all();
    (void)copy.put({.name = std::string(wired.graph().name(layer)),
                    .op = detail::kKernel,
                    .inputs = std::move(inputs),
                    .output = wired.outputs(index)[0],
                    .attributes = {attributes.begin(), attributes.end()}});
  }
  return std::move(copy).finish();
}

/// The widest linear layer behind the last block, the first of several as wide: a language model's head. None: nothing.
[[nodiscard]] std::optional<std::uint32_t> head_behind(const WiredGraph& wired, const Range& last);

}  // namespace gpumem::connect
