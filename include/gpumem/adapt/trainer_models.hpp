// Input: the wired graph of a decoder as transformers' code builds it, and a job that litgpt or Megatron trains.
// Output: the layers that the trainer's own code of the model computes differently, in a copy of the graph.
// Units: features.
//
// litgpt: queries, keys and values leave one projection and are read in place; those with adapters are written into
// zeros as wide as all three. It has no dropout but the adapters', one kernel for each GELU, and a head of its own
// where transformers ties it. Source: litgpt 0.4, model.py (CausalSelfAttention, GptNeoxMLP) and lora.py (LoRALinear,
// LoRAQKVLinear).
//
// Megatron: a norm is one kernel, which keeps what it reads; SwiGLU is one kernel that keeps both halves of what it
// reads, and not the activated one. Source: Megatron-LM core r0.12: core/models/gpt/gpt_layer_specs.py
// (TELayerNormColumnParallelLinear, TENorm), core/fusions/fused_bias_swiglu.py (SwiGLUFunction; bias_activation_fusion
// is on by default); ms-swift's and NVIDIA's bridges read a config.json as such a model.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpumem/adapt/adapters.hpp"
#include "gpumem/adapt/trained_weights.hpp"
#include "gpumem/connect/graph_copy.hpp"
#include "gpumem/model/training_job.hpp"

namespace gpumem::adapt {

/// Whether the job runs litgpt's code of this model: a config.json names an architecture, of which litgpt has a model
/// of its own; other summaries show the model that runs.
[[nodiscard]] bool is_litgpt_model(const model::ModelGraph& graph, const model::TrainingJob& job);

/// The names of targets, where a model has no layers q_proj, k_proj and v_proj but one for all three: its name.
[[nodiscard]] std::string litgpt_targets(const std::vector<BaseLinear>& linears, std::string_view targets);

class LitgptModel {
 public:
  /// `adapted`: by place in `linears`. All must outlive it.
  LitgptModel(const connect::WiredGraph& wired, const std::vector<BaseLinear>& linears,
              const std::vector<model::WeightStorage>& storage, const std::vector<bool>& adapted,
              const model::TrainingJob& job);

  /// Copies this layer, the next one, as litgpt computes it; false: litgpt computes it in the same way.
  [[nodiscard]] bool take(connect::GraphCopy& copy, std::uint32_t layer);
  /// The layer whose adapter is not counted, because the loss calls it; empty: there is none.
  [[nodiscard]] const std::string& leaves_out() const { return leaves_out_; }

 private:
  /// Queries, keys and values.
  struct Projection {
    std::array<std::uint32_t, 3> layers = {};  ///< the same three times, where the model has one layer for all
    std::int64_t in = 0;
    std::array<std::int64_t, 3> widths = {};
    std::array<bool, 3> adapted = {};
    std::string name = {};
    std::array<model::LayerIndex, 3> parts = {};  ///< of the copy: the place of each layer, if there are three

    [[nodiscard]] bool in_one() const { return layers[0] == layers[1]; }
    [[nodiscard]] std::int64_t width() const { return widths[0] + widths[1] + widths[2]; }
  };

  void find_projections(const std::vector<bool>& adapted);
  [[nodiscard]] std::optional<Projection> in_one_layer(std::size_t linear, bool adapted) const;
  [[nodiscard]] bool asks_for(std::string_view name) const;
  [[nodiscard]] bool read_in_place(std::uint32_t layer) const;
  void project(connect::GraphCopy& copy, Projection& of) const;
  void part(connect::GraphCopy& copy, Projection& of, model::LayerIndex whole) const;
  [[nodiscard]] model::LayerIndex adapted_projection(connect::GraphCopy& copy, const Projection& of,
                                                     model::LayerIndex input, model::LayerIndex base) const;
  void adapt_linear(connect::GraphCopy& copy, const BaseLinear& linear) const;

  const connect::WiredGraph& wired_;
  const std::vector<BaseLinear>& linears_;
  const std::vector<model::WeightStorage>& storage_;
  const model::TrainingJob& job_;
  std::vector<Projection> projections_;
  std::vector<int> projection_at_;  ///< by layer: the projection that it is a part of; -1: of none
  std::string leaves_out_;
  std::vector<int> adapted_at_;  ///< by layer: the linear layer with an adapter of its own; -1: none
};

namespace litgpt_model_detail {

using model::LayerIndex;

inline constexpr std::array<std::string_view, 3> kParts = {"q_proj", "k_proj", "v_proj"};
/// What models call one layer for all three.
inline constexpr std::array<std::string_view, 4> kInOne = {"query_key_value", "qkv_proj", "Wqkv", "c_attn"};

inline bool has_leaf(const std::vector<BaseLinear>& linears, std::string_view name) {
  return std::ranges::any_of(linears, [&](const BaseLinear& linear) { return linear.leaf() == name; });
}

inline std::vector<std::string_view> parted(std::string_view targets) {
  std::vector<std::string_view> names;
  while (!targets.empty()) {
    const std::size_t plus = targets.find('+');
    names.push_back(targets.substr(0, plus));
    if (plus == std::string_view::npos) break;
    targets.remove_prefix(plus + 1);
  }
  return names;
}

inline core::Shape with_width(core::Shape shape, std::int64_t width) {
  shape.set(shape.rank() - 1, core::Dim::fixed(width));
  return shape;
}

/// Writes the calls of one adapter.
class Calls {
 public:
  Calls(connect::GraphCopy& copy, std::string name, const model::TrainingJob& job)
      : copy_(copy), name_(std::move(name)), job_(job) {}

  LayerIndex call(std::string_view op, std::vector<LayerIndex> inputs, const core::Shape& shape,
                  std::vector<model::Attribute> attributes = {}) const {
    return copy_.insert({.name = name_ + "." + std::string(op),
                         .op = op,
                         .inputs = std::move(inputs),
                         .output = shape,
                         .attributes = std::move(attributes)});
  }
  [[nodiscard]] LayerIndex dropped(LayerIndex input, const core::Shape& shape) const {
    return job_.lora_dropout > 0.0 ? call("dropout", {input}, shape, {{"p", job_.lora_dropout}}) : input;
  }
  [[nodiscard]] LayerIndex weight(std::string_view part, LayerIndex input, std::int64_t in, const core::Shape& shape,
                                  std::int64_t out) const {
    return copy_.insert({.name = name_ + "." + std::string(part),
                         .op = "linear",
                         .inputs = {input},
                         .output = with_width(shape, out),
                         .attributes = {{"in_features", in}, {"out_features", out}, {"bias", false}},
                         .weights = {.dtype = model::dtype_of(job_.lora_dtype)}});
  }

 private:
  connect::GraphCopy& copy_;
  std::string name_;
  const model::TrainingJob& job_;
};

}  // namespace litgpt_model_detail

inline bool is_litgpt_model(const model::ModelGraph& graph, const model::TrainingJob& job) {
  return model::row_of(job.loop).own_model && !graph.architecture().empty();
}

inline std::string litgpt_targets(const std::vector<BaseLinear>& linears, std::string_view targets) {
  namespace detail = litgpt_model_detail;
  std::string all;
  for (std::string_view name : detail::parted(targets)) {
    const bool part = std::ranges::find(detail::kParts, name) != detail::kParts.end();
    if (part && !detail::has_leaf(linears, name)) {
      for (const std::string_view in_one : detail::kInOne) {
        if (detail::has_leaf(linears, in_one)) name = in_one;
      }
    }
    all.append(all.empty() ? "" : "+").append(name);
  }
  return all;
}

inline LitgptModel::LitgptModel(const connect::WiredGraph& wired, const std::vector<BaseLinear>& linears,
                                const std::vector<model::WeightStorage>& storage, const std::vector<bool>& adapted,
                                const model::TrainingJob& job)
    : wired_(wired),
      linears_(linears),
      storage_(storage),
      job_(job),
      projection_at_(wired.graph().layers().size(), -1),
      adapted_at_(wired.graph().layers().size(), -1) {
  find_projections(adapted);
  for (std::size_t linear = 0; linear < linears.size(); ++linear) {
    const bool alone = adapted[linear] && projection_at_[linears[linear].layer] < 0;
    // The chunked loss calls the head itself. What its adapter keeps is a figure of the rank for each position.
    const bool in_loss = linears[linear].output && job.loss_form.kind == model::LossForms::chunked;
    if (alone && in_loss) leaves_out_ = linears[linear].path;
    if (alone && !in_loss) adapted_at_[linears[linear].layer] = static_cast<int>(linear);
  }
}

/// Whether the targets name this part of a layer that holds all three; without targets queries and values are meant.
inline bool LitgptModel::asks_for(std::string_view name) const {
  const std::vector<std::string_view> named = litgpt_model_detail::parted(job_.lora_targets);
  const bool any = std::ranges::any_of(named, [](std::string_view each) {
    return std::ranges::find(litgpt_model_detail::kParts, each) != litgpt_model_detail::kParts.end();
  });
  if (any) return std::ranges::find(named, name) != named.end();
  return !named.empty() || name != "k_proj";
}

inline std::optional<LitgptModel::Projection> LitgptModel::in_one_layer(std::size_t linear, bool adapted) const {
  const BaseLinear& of = linears_[linear];
  const auto& names = litgpt_model_detail::kInOne;
  if (std::ranges::find(names, of.leaf()) == names.end() || of.out <= of.in) return std::nullopt;
  const std::int64_t rest = of.out - of.in;
  Projection found;
  found.layers = {of.layer, of.layer, of.layer};
  found.in = of.in;
  found.widths = {of.in, rest / 2, rest - rest / 2};
  for (std::size_t part = 0; part < 3; ++part) {
    found.adapted[part] = adapted && asks_for(litgpt_model_detail::kParts[part]);
  }
  return found;
}

/// Three linear layers q_proj, k_proj and v_proj that read one tensor, or one layer for all.
inline void LitgptModel::find_projections(const std::vector<bool>& adapted) {
  namespace detail = litgpt_model_detail;
  for (std::size_t at = 0; at < linears_.size(); ++at) {
    std::optional<Projection> found = in_one_layer(at, adapted[at]);
    if (!found && at + 2 < linears_.size()) {
      Projection three;
      bool fits = true;
      for (std::size_t part = 0; part < 3; ++part) {
        const BaseLinear& linear = linears_[at + part];
        fits = fits && linear.leaf() == detail::kParts[part] &&
               wired_.inputs(linear.layer)[0] == wired_.inputs(linears_[at].layer)[0];
        three.layers[part] = linear.layer;
        three.widths[part] = linear.out;
        three.adapted[part] = adapted[at + part];
      }
      three.in = linears_[at].in;
      if (fits) found = three;
    }
    if (!found) continue;
    found->name = wired_.graph().name(wired_.graph().layers()[found->layers[0]]);
    for (const std::uint32_t layer : found->layers) projection_at_[layer] = static_cast<int>(projections_.size());
    projections_.push_back(*std::move(found));
  }
}

/// Whether this is a copy that only lays out what a projection made, without a computation between.
inline bool LitgptModel::read_in_place(std::uint32_t layer) const {
  model::LayerIndex at = static_cast<model::LayerIndex>(layer);
  while (at >= 0) {
    const ops::Op* op = wired_.op(wired_.graph().layers()[static_cast<std::size_t>(at)]);
    if (projection_at_[static_cast<std::size_t>(at)] >= 0) return true;
    if (op == nullptr || op->traits.computes || wired_.inputs(static_cast<std::size_t>(at)).size() != 1) return false;
    at = wired_.inputs(static_cast<std::size_t>(at))[0];
  }
  return false;
}

inline model::LayerIndex LitgptModel::adapted_projection(connect::GraphCopy& copy, const Projection& of,
                                                         model::LayerIndex input, model::LayerIndex base) const {
  namespace detail = litgpt_model_detail;
  const core::Shape shape = wired_.outputs(of.layers[0])[0];
  const detail::Calls calls(copy, of.name, job_);
  const model::LayerIndex seen = calls.dropped(input, detail::with_width(shape, of.in));
  std::vector<model::LayerIndex> updates;
  std::int64_t width = 0;
  for (std::size_t part = 0; part < 3; ++part) {
    if (!of.adapted[part]) continue;
    const model::LayerIndex a = calls.weight("lora_A", seen, of.in, shape, *job_.lora);
    updates.push_back(calls.weight("lora_B", a, *job_.lora, shape, of.widths[part]));
    width += of.widths[part];
  }
  const core::Shape whole = detail::with_width(shape, of.width());
  const auto last = static_cast<std::int64_t>(shape.rank()) - 1;
  model::LayerIndex update = updates[0];
  if (updates.size() > 1) update = calls.call("concat", updates, detail::with_width(shape, width), {{"dim", last}});
  if (width < of.width()) update = calls.call("adapter_zero_pad", {update}, whole, {{"out_features", of.width()}});
  update = calls.call("mul", {update}, whole);
  return calls.call("add", {base, update}, whole);
}

inline void LitgptModel::project(connect::GraphCopy& copy, Projection& of) const {
  namespace detail = litgpt_model_detail;
  const std::uint32_t layer = of.layers[0];
  const model::Layer& first = wired_.graph().layers()[layer];
  const model::WeightStorage& weights = storage_[layer];
  const model::LayerIndex input = copy.now(wired_.inputs(layer)[0]);
  const core::Shape whole = detail::with_width(wired_.outputs(layer)[0], of.width());
  model::LayerIndex made = 0;
  if (of.in_one()) {
    made = copy.copy(weights, wholly_frozen(wired_, first, weights));
  } else {
    const bool bias = wired_.graph().attributes(first).flag("bias", true);
    made = copy.put({.name = of.name,
                     .op = "linear",
                     .inputs = {input},
                     .output = whole,
                     .attributes = {{"in_features", of.in}, {"out_features", of.width()}, {"bias", bias}},
                     .weights = weights,
                     .frozen = wholly_frozen(wired_, first, weights)});
  }
  const bool adapts = std::ranges::find(of.adapted, true) != of.adapted.end();
  if (adapts) made = adapted_projection(copy, of, input, made);
  if (of.in_one()) {
    copy.replace(layer, made);
  } else {
    part(copy, of, made);
  }
}

/// torch.split: each of the three layers has a view of the one in its place.
inline void LitgptModel::part(connect::GraphCopy& copy, Projection& of, model::LayerIndex whole) const {
  namespace detail = litgpt_model_detail;
  const core::Shape shape = wired_.outputs(of.layers[0])[0];
  const auto last = static_cast<std::int64_t>(shape.rank()) - 1;
  const detail::Calls calls(copy, of.name, job_);
  const model::LayerIndex tuple =
      calls.call("split", {whole}, detail::with_width(shape, of.width()),
                 {{"dim", last}, {"sizes", std::vector<std::int64_t>(of.widths.begin(), of.widths.end())}});
  std::int64_t start = 0;
  for (std::size_t at = 0; at < 3; ++at) {
    of.parts[at] = calls.call("item", {tuple}, detail::with_width(shape, of.widths[at]),
                              {{"dim", last}, {"start", start}, {"length", of.widths[at]}});
    start += of.widths[at];
  }
  copy.replace(of.layers[0], of.parts[0]);
}

inline void LitgptModel::adapt_linear(connect::GraphCopy& copy, const BaseLinear& linear) const {
  const model::LayerIndex input = copy.now(wired_.inputs(linear.layer)[0]);
  const core::Shape out = wired_.outputs(linear.layer)[0];
  const model::Layer& layer = wired_.graph().layers()[linear.layer];
  const model::LayerIndex base =
      copy.copy(storage_[linear.layer], wholly_frozen(wired_, layer, storage_[linear.layer]));
  const litgpt_model_detail::Calls calls(copy, std::string(wired_.graph().name(layer)), job_);
  const model::LayerIndex seen = calls.dropped(input, litgpt_model_detail::with_width(out, linear.in));
  const model::LayerIndex a = calls.weight("lora_A", seen, linear.in, out, *job_.lora);
  const model::LayerIndex b = calls.weight("lora_B", a, *job_.lora, out, linear.out);
  copy.replace(linear.layer, calls.call("add", {base, calls.call("mul", {b}, out)}, out));
}

inline bool LitgptModel::take(connect::GraphCopy& copy, std::uint32_t layer) {
  const model::ModelGraph& graph = wired_.graph();
  const ops::Op* op = wired_.op(graph.layers()[layer]);
  if (op == nullptr) return false;
  if (const int at = projection_at_[layer]; at >= 0) {
    Projection& of = projections_[static_cast<std::size_t>(at)];
    if (layer == of.layers[0]) {
      project(copy, of);
    } else {
      copy.omit(of.parts[layer == of.layers[1] ? 1 : 2]);
    }
    return true;
  }
  if (adapted_at_[layer] >= 0) {
    adapt_linear(copy, linears_[static_cast<std::size_t>(adapted_at_[layer])]);
    return true;
  }
  if (wired_.inputs(layer).size() != 1 || graph.layers()[layer].parameters > 0) return false;
  const model::LayerIndex input = copy.now(wired_.inputs(layer)[0]);
  if (op->traits.family == model::OpFamily::dropout || (op->traits.name == "contiguous" && read_in_place(layer))) {
    copy.omit(input);
    return true;
  }
  if (op->traits.name != "gelu" || wired_.outputs(layer).empty()) return false;
  static_cast<void>(copy.put({.name = std::string(graph.name(graph.layers()[layer])),
                              .op = "gelu",
                              .inputs = {input},
                              .output = wired_.outputs(layer)[0]}));
  return true;
}

/// Copies this layer, the next one, if it is an expert's that tensor parallel ranks would share: in Megatron its
/// weights are whole on each tensor parallel rank, and the ranks of a sequence send it their tokens. Source: ms-swift
/// 4, megatron/arguments/megatron_args.py (expert_tensor_parallel_size is 1); Megatron-LM r0.16,
/// core/transformer/moe/token_dispatcher.py (MoEAlltoAllTokenDispatcher: tokens of a rank's part of the sequence).
[[nodiscard]] bool take_megatron_layer(connect::GraphCopy& copy, const connect::WiredGraph& wired, std::uint32_t layer,
                                       const model::WeightStorage& weights);

/// The fused kernels of a job, or Megatron's. Liger's and Unsloth's norms keep what they read and a figure a row; the
/// product of a gated layer keeps both of its factors as they were before the activation, in whose memory backward
/// writes their gradients. axolotl's and Unsloth's functions have a whole gated layer, where its three linear layers
/// have LoRA adapters. Source: Liger-Kernel 0.6, ops/rms_norm.py, swiglu.py and geglu.py (LigerSiLUMulFunction,
/// LigerGELUMulFunction); unsloth 2026-08, kernels/rms_layernorm.py, fast_lora.py (LoRA_MLP), models/llama.py
/// (patch_peft_model), which axolotl's kernels/lora.py and monkeypatch/lora_kernels.py follow.
class FusedLayers {
 public:
  /// `adapted`: by place in `linears`. Unsloth joins no adapters that drop. The graph must outlive it.
  FusedLayers(const connect::WiredGraph& wired, const std::vector<BaseLinear>& linears,
              const std::vector<bool>& adapted, model::Kernels kernels, bool megatron, bool drops);

  /// Copies this layer, the next one, as the kernels compute it; false: they do not.
  [[nodiscard]] bool take(connect::GraphCopy& copy, std::uint32_t layer, const model::WeightStorage& weights) const;
  /// Of the layer's adapter.
  [[nodiscard]] AdapterKernel adapter(std::uint32_t layer) const;

 private:
  enum class Part : std::uint8_t { none, norm, activation, product, reader };

  void find_gated_layer(std::uint32_t product, const std::vector<bool>& adapted);

  const connect::WiredGraph& wired_;
  bool megatron_;
  bool joins_;               ///< one function has a layer and its adapter
  std::vector<Part> parts_;  ///< by layer; empty: the kernels are the usual ones
};

namespace fused_layers_detail {

inline std::string_view op_name(const connect::WiredGraph& wired, std::uint32_t layer) {
  const ops::Op* const op = wired.op(wired.graph().layers()[layer]);
  return op == nullptr ? std::string_view() : op->traits.name;
}

/// The layer that reads what this one makes, within the next few layers; 0: none does.
inline std::uint32_t reader_of(const connect::WiredGraph& wired, std::uint32_t layer) {
  constexpr std::uint32_t kFar = 6;
  const std::size_t end = std::min<std::size_t>(wired.graph().layers().size(), std::size_t{layer} + kFar);
  for (std::uint32_t reader = layer + 1; reader < end; ++reader) {
    const auto inputs = wired.inputs(reader);
    if (std::ranges::find(inputs, static_cast<model::LayerIndex>(layer)) != inputs.end()) return reader;
  }
  return 0;
}

/// What a linear layer makes, or a part of it: gates of scans and of their norms are made of more.
inline bool is_projected(const connect::WiredGraph& wired, std::uint32_t layer) {
  const std::string_view name = op_name(wired, layer);
  return name == "linear" || name == "split" || name == "slice";
}

/// Copies the layer, the next one, with one more attribute.
inline void copy_with(connect::GraphCopy& copy, const connect::WiredGraph& wired, std::uint32_t layer,
                      const model::WeightStorage& weights, model::Attribute more) {
  const model::Layer& source = wired.graph().layers()[layer];
  const auto all = wired.graph().attributes(source).all();
  connect::ChangedLayer change{{all.begin(), all.end()}, 0};
  change.attributes.push_back(std::move(more));
  static_cast<void>(copy.copy(weights, wholly_frozen(wired, source, weights), change));
}

}  // namespace fused_layers_detail

inline bool take_megatron_layer(connect::GraphCopy& copy, const connect::WiredGraph& wired, std::uint32_t layer,
                                const model::WeightStorage& weights) {
  const model::Layer& source = wired.graph().layers()[layer];
  if (source.expert == 0 || source.split == model::TensorSplit::whole || wired.inputs(layer).size() != 1) return false;
  fused_layers_detail::copy_with(copy, wired, layer, weights, {"tensor_ranks", std::int64_t{1}});
  return true;
}

inline FusedLayers::FusedLayers(const connect::WiredGraph& wired, const std::vector<BaseLinear>& linears,
                                const std::vector<bool>& adapted, model::Kernels kernels, bool megatron, bool drops)
    : wired_(wired),
      megatron_(megatron),
      joins_(!megatron && (kernels == model::Kernels::lora_mlp || (kernels == model::Kernels::unsloth && !drops))) {
  if (kernels == model::Kernels::usual && !megatron) return;
  const auto layers = static_cast<std::uint32_t>(wired.graph().layers().size());
  parts_.assign(layers, Part::none);
  std::vector<bool> with_adapter(layers, false);
  for (std::size_t at = 0; at < linears.size(); ++at) with_adapter[linears[at].layer] = adapted[at];
  for (std::uint32_t layer = 0; layer < layers; ++layer) {
    const std::string_view name = fused_layers_detail::op_name(wired, layer);
    if (name == "rms_norm" && (megatron || kernels != model::Kernels::lora_mlp)) parts_[layer] = Part::norm;
    const bool gates = joins_ || kernels != model::Kernels::unsloth;
    if (gates && name == "mul" && wired.inputs(layer).size() == 2) find_gated_layer(layer, with_adapter);
  }
}

/// Experts that are called one by one have no functions of their own with adapters.
inline void FusedLayers::find_gated_layer(std::uint32_t product, const std::vector<bool>& adapted) {
  const auto inputs = wired_.inputs(product);
  for (std::size_t side = 0; side < inputs.size(); ++side) {
    if (inputs[side] < 0 || inputs[1 - side] < 0) continue;
    const auto activation = static_cast<std::uint32_t>(inputs[side]);
    const std::string_view name = fused_layers_detail::op_name(wired_, activation);
    const bool known = name == "silu" || (name == "gelu" && !megatron_);
    if (!known || wired_.inputs(activation).size() != 1 || wired_.inputs(activation)[0] < 0) continue;
    const auto gate = static_cast<std::uint32_t>(wired_.inputs(activation)[0]);
    if (!megatron_ && !fused_layers_detail::is_projected(wired_, gate)) continue;
    const std::uint32_t reader = fused_layers_detail::reader_of(wired_, product);
    const auto up = static_cast<std::size_t>(inputs[1 - side]);
    const bool of_expert = wired_.graph().layers()[product].expert > 0;
    if (joins_ && (of_expert || reader == 0 || !adapted[reader] || !adapted[gate] || !adapted[up])) continue;
    parts_[activation] = Part::activation;
    if (!megatron_) parts_[product] = Part::product;
    if (joins_) parts_[reader] = Part::reader;
    return;
  }
}

inline bool FusedLayers::take(connect::GraphCopy& copy, std::uint32_t layer,
                              const model::WeightStorage& weights) const {
  const Part part = parts_.empty() ? Part::none : parts_[layer];
  if (part == Part::none || part == Part::reader) return false;
  if (part == Part::activation) {
    copy.omit(copy.now(wired_.inputs(layer)[0]));
    return true;
  }
  const char* const more = part == Part::norm ? "fused" : "over_inputs";
  fused_layers_detail::copy_with(copy, wired_, layer, weights, {more, true});
  return true;
}

inline AdapterKernel FusedLayers::adapter(std::uint32_t layer) const {
  if (!joins_ || wired_.graph().layers()[layer].expert > 0) return AdapterKernel::apart;
  return parts_[layer] == Part::reader ? AdapterKernel::again : AdapterKernel::joined;
}

}  // namespace gpumem::adapt
