// Input: a wired graph.
// Output: its linear layers with what adapters and quantised weights need to know about them: names, sides, and which
// one is the model's output. Also its embeddings, which can have adapters too.
// Units: features; rows of a table.
//
// Source: transformers 4.46 integrations/bitsandbytes.py, get_keys_to_not_convert: the output embedding, what is tied,
// and the last module stay as they are. PEFT 0.14 tuners/tuners_utils.py, _maybe_include_all_linear_layers: all-linear
// leaves out the output embedding and a classifier's head.
//
// Input: a linear layer or an embedding of the frozen base, and the adapter's settings.
// Output: the adapter's layers, wired as PEFT calls them.
// Units: the rank in features.
//
// Source: PEFT 0.14, tuners/lora: layer.py (Linear.forward, Embedding.forward), bnb.py (Linear4bit, which copies the
// base's output; Linear8bitLt), gptq.py (which adds to it in place). x is cast to the adapter's type; over a quantised
// base it is not under autocast, and what B leaves is cast back in place of the sum.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpumem/adapt/peft_methods.hpp"
#include "gpumem/connect/graph_copy.hpp"
#include "gpumem/connect/wired_graph.hpp"
#include "gpumem/core/bytes.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/model/training_job.hpp"

namespace gpumem::adapt {

struct BaseLinear {
  std::uint32_t layer = 0;
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::string path = {};  ///< "model.layers.0.self_attn.q_proj"
  bool output = false;    ///< the model's head

  /// "q_proj".
  [[nodiscard]] std::string_view leaf() const {
    const std::string_view whole = path;
    return whole.substr(whole.rfind('.') + 1);  // npos + 1 is 0
  }
};

struct BaseEmbedding {
  std::uint32_t layer = 0;
  std::int64_t rows = 0;
  std::int64_t width = 0;
  std::string path = {};  ///< "model.embed_tokens"
};

/// In the order of the layers.
[[nodiscard]] std::vector<BaseEmbedding> base_embeddings(const connect::WiredGraph& wired);
/// In the order of the layers. Modules that are called again are there again.
[[nodiscard]] std::vector<BaseLinear> base_linears(const connect::WiredGraph& wired);

namespace base_linears_detail {

/// What transformers' and Megatron's heads are called.
inline constexpr std::array<std::string_view, 8> kHeads = {
    "lm_head",    "embed_out",  "vocab_projector",   "score",
    "classifier", "qa_outputs", "output_projection", "output_layer"};

/// By layer: whether another layer reads it.
inline std::vector<bool> read_layers(const connect::WiredGraph& wired) {
  std::vector<bool> read(wired.graph().layers().size(), false);
  for (std::size_t layer = 0; layer < read.size(); ++layer) {
    for (const model::LayerIndex input : wired.inputs(layer)) {
      if (input >= 0) read[static_cast<std::size_t>(input)] = true;
    }
  }
  return read;
}

}  // namespace base_linears_detail

inline std::vector<BaseLinear> base_linears(const connect::WiredGraph& wired) {
  const model::ModelGraph& graph = wired.graph();
  const std::vector<bool> read = base_linears_detail::read_layers(wired);
  std::vector<BaseLinear> all;
  for (std::uint32_t index = 0; index < graph.layers().size(); ++index) {
    const model::Layer& layer = graph.layers()[index];
    const ops::Op* op = wired.op(layer);
    if (op == nullptr || op->traits.completion != model::Completion::linear || layer.parameters == 0) continue;
    const auto in = graph.attributes(layer).integer("in_features");
    const auto out = graph.attributes(layer).integer("out_features");
    if (!in || !out || wired.outputs(index).empty() || wired.inputs(index).size() != 1) continue;
    BaseLinear linear{index, *in, *out, graph.path(layer)};
    const auto& heads = base_linears_detail::kHeads;
    const bool head = std::find(heads.begin(), heads.end(), linear.leaf()) != heads.end();
    linear.output = head || !read[index] || layer.tied_parameters > 0;
    all.push_back(std::move(linear));
  }
  return all;
}

inline std::vector<BaseEmbedding> base_embeddings(const connect::WiredGraph& wired) {
  const model::ModelGraph& graph = wired.graph();
  std::vector<BaseEmbedding> all;
  for (std::uint32_t index = 0; index < graph.layers().size(); ++index) {
    const model::Layer& layer = graph.layers()[index];
    const ops::Op* op = wired.op(layer);
    if (op == nullptr || op->traits.family != model::OpFamily::embedding) continue;
    const auto rows = graph.attributes(layer).integer("num_embeddings");
    const auto width = graph.attributes(layer).integer("embedding_dim");
    if (!rows || !width || wired.outputs(index).empty() || wired.inputs(index).size() != 1) continue;
    all.push_back({index, *rows, *width, graph.path(layer)});
  }
  return all;
}

/// How a layer's function calls the adapter.
enum class AdapterKernel : std::uint8_t {
  apart,   ///< by calls of its own
  joined,  ///< one function does both, in its input's type
  again,   ///< and makes its input again in backward
};

/// Puts the adapter of a layer of the source after it, which was copied last; what reads the layer then reads their
/// sum. A fused loss takes the head's place and reads lm_head.weight, which is the base's: the head's adapter is there,
/// and never gets a gradient. Source: PEFT 0.20, tuners/tuners_utils.py, BaseTunerLayer.weight; Liger-Kernel 0.6,
/// transformers/model/llama.py, lce_forward(); unsloth_zoo 2026-08, compiler.py (lm_head_weight = self.lm_head.weight);
/// cut-cross-entropy 25.1, transformers/llama.py.
void add_adapter(connect::GraphCopy& copy, const connect::WiredGraph& source, const BaseLinear& base,
                 const model::TrainingJob& job, model::Quantization quantization, std::int64_t rank,
                 AdapterKernel kernel);

/// The same of an embedding: F.embedding of A's transpose, times B's. There is no dropout.
void add_adapter(connect::GraphCopy& copy, const connect::WiredGraph& source, const BaseEmbedding& base,
                 const model::TrainingJob& job, std::int64_t rank);

/// LoRA of parameters that are tensors of their own: weights of all experts of a layer. Each pass makes all of their
/// update, a matrix an expert, and adds it to the weight; autograd keeps the sum where it keeps weights. The updates
/// are made when the module that has the parameters is called, the last one's first, and last until it returns, as the
/// sums do. Source: PEFT 0.20, tuners/lora/layer.py: ParamWrapper, _LoraParameterProxy; tuners_utils.py,
/// _inject_parameters. What torch's check of a new parametrization makes (one more sum, freed at once) is left out.
/// With transformers 5 one torch.baddbmm in the weight's type makes the sum of several experts' tensor, and there is no
/// update. Source: PEFT 0.21 (#3577, #3602).
class ParameterAdapters {
 public:
  /// Errors: invalid_argument for a parameter of one axis, one that is held in fewer bits, and if no name is known.
  [[nodiscard]] static core::Result<ParameterAdapters> of(const connect::WiredGraph& wired,
                                                          const std::vector<std::string>& names,
                                                          const std::vector<model::WeightStorage>& storage,
                                                          const model::TrainingJob& job, const PeftSettings& settings);

  /// The layer was copied last.
  void behind(connect::GraphCopy& copy, std::uint32_t layer);
  /// Those of the names that no parameter has.
  [[nodiscard]] const std::vector<std::string>& unknown() const { return unknown_; }

 private:
  struct Adapted {
    std::uint32_t layer = 0;
    std::int64_t rank = 0;
    core::DType type = core::DType::float32;   ///< of the weight
    bool folds = false;                        ///< one call makes the sum
    std::vector<model::LayerIndex> made = {};  ///< of the copy: the update, or its two factors; then the sum
  };
  struct Module {
    std::string path = {};  ///< "model.layers.0.mlp.experts."
    std::uint32_t first = 0;
    std::uint32_t last = 0;  ///< layers
    std::vector<Adapted> parameters = {};
  };

  ParameterAdapters(const connect::WiredGraph& wired, core::DType type) : wired_(&wired), type_(type) {}
  void find_modules(const model::ModelGraph& graph);
  [[nodiscard]] std::vector<model::LayerIndex> update_of(connect::GraphCopy& copy, const Adapted& adapted) const;
  [[nodiscard]] model::LayerIndex sum_of(connect::GraphCopy& copy, const Adapted& adapted) const;

  const connect::WiredGraph* wired_;
  core::DType type_;             ///< of the adapters
  std::vector<Module> modules_;  ///< in the order of the layers
  std::size_t at_ = 0;           ///< the module whose layers come next
  std::vector<std::string> unknown_;
};

namespace adapters_detail {

using model::LayerIndex;
using model::Quantization;

/// Writes the calls of one adapter.
class AdapterCalls {
 public:
  /// `base`: the layer that is adapted, of this graph.
  AdapterCalls(connect::GraphCopy& copy, const model::ModelGraph& graph, const model::Layer& base,
               const model::TrainingJob& job)
      : copy_(copy),
        name_(graph.name(base)),
        type_(model::dtype_of(job.lora_dtype)),
        split_(base.expert > 0 && model::is_megatron_model(graph, job) ? model::TensorSplit::whole : base.split),
        expert_(base.expert),
        no_grad_(graph.attributes(base).flag(model::kNoGrad, false)),
        ranks_(graph.attributes(base).integer("tensor_ranks")) {}

  LayerIndex call(std::string_view op, std::vector<LayerIndex> inputs, const core::Shape& shape,
                  std::vector<model::Attribute> attributes = {}) {
    return copy_.insert({.name = name_ + "." + std::string(op),
                         .op = op,
                         .inputs = std::move(inputs),
                         .output = shape,
                         .attributes = std::move(attributes),
                         .expert = expert_});
  }
  /// "lora_A" or "lora_B". Tensor parallel ranks share the side that they share of the adapted layer: A its rows, B its
  /// columns; the other is whole on each. Source: PEFT 0.17,
  /// tuners/lora/tp_layer.py: LoraParallelLinear.update_layer(), from which ms-swift's mcore_bridge derives.
  LayerIndex weight(std::string_view part, LayerIndex input, std::int64_t in, core::Shape shape, std::int64_t out,
                    bool frozen = false, bool again = false) {
    shape.set(shape.rank() - 1, core::Dim::fixed(out));
    std::vector<model::Attribute> attributes = {{"in_features", in}, {"out_features", out}, {"bias", false}};
    if (again) attributes.push_back({"recomputed", true});
    if (ranks_) attributes.push_back({"tensor_ranks", *ranks_});
    const model::TensorSplit side = part == "lora_A" ? model::TensorSplit::rows : model::TensorSplit::columns;
    return copy_.insert({.name = name_ + "." + std::string(part) + ".default",
                         .op = "linear",
                         .inputs = {input},
                         .output = shape,
                         .attributes = std::move(attributes),
                         .weights = {.dtype = type_},
                         .frozen = frozen || no_grad_,
                         .split = split_ == side ? side : model::TensorSplit::whole,
                         .expert = expert_});
  }
  /// "lora_embedding_A".
  LayerIndex table(LayerIndex ids, std::int64_t rows, core::Shape shape, std::int64_t rank) {
    shape.set(shape.rank() - 1, core::Dim::fixed(rank));
    return copy_.insert({.name = name_ + ".lora_embedding_A.default",
                         .op = "embedding",
                         .inputs = {ids},
                         .output = shape,
                         .attributes = {{"num_embeddings", rows}, {"embedding_dim", rank}},
                         .weights = {.dtype = type_}});
  }
  LayerIndex cast_to_own(LayerIndex input, const core::Shape& shape) {
    return call("cast", {input}, shape, {{"dtype", std::string(core::to_string(type_))}});
  }

 private:
  connect::GraphCopy& copy_;
  std::string name_;
  core::DType type_;
  model::TensorSplit split_;
  std::uint32_t expert_;
  bool no_grad_;                       ///< the layer runs without gradients, and its adapter with it
  std::optional<std::int64_t> ranks_;  ///< that share the layer's weights, where not all do
};

/// As PEFT matches target_parameters: the whole name, or its last parts.
inline bool is_parameter(std::string_view path, std::string_view name) {
  if (!path.ends_with(name)) return false;
  return path.size() == name.size() || path[path.size() - name.size() - 1] == '.';
}

inline core::Shape sizes(const std::vector<std::int64_t>& all) {
  core::Shape shape;
  for (const std::int64_t size : all) shape.push_back(core::Dim::fixed(size));
  return shape;
}

/// Whether the job's loss calls the layer's weight and not the layer.
inline bool is_in_loss(const BaseLinear& base, const model::TrainingJob& job) {
  if (!base.output || !model::joins_head(job.loss_form.kind)) return false;
  const std::string_view leaf = base.leaf();
  return leaf != "score" && leaf != "classifier" && leaf != "qa_outputs";
}

}  // namespace adapters_detail

/// Optimizers make no states of what has no gradient, as of what is frozen.
inline void add_unread_adapter(connect::GraphCopy& copy, const BaseLinear& base, const model::TrainingJob& job,
                               std::int64_t rank) {
  const auto matrix = [&](std::string_view part, std::int64_t rows, std::int64_t columns) {
    static_cast<void>(copy.insert({.name = std::string(base.leaf()) + "." + std::string(part) + ".default",
                                   .op = model::kParameterOp,
                                   .inputs = {},
                                   .output = adapters_detail::sizes({rows, columns}),
                                   .attributes = {{"shape", std::vector<std::int64_t>{rows, columns}}},
                                   .weights = {.dtype = model::dtype_of(job.lora_dtype)},
                                   .frozen = true}));
  };
  matrix("lora_A", rank, base.in);
  matrix("lora_B", base.out, rank);
  copy.remark("the adapter of " + std::string(base.leaf()) +
              " gets no gradient, since the fused loss reads the head's own weight; `loss=standard` calls the head");
}

inline void add_adapter(connect::GraphCopy& copy, const connect::WiredGraph& source, const BaseLinear& base,
                        const model::TrainingJob& job, model::Quantization quantization, std::int64_t rank,
                        AdapterKernel kernel) {
  using adapters_detail::LayerIndex;
  using adapters_detail::Quantization;
  if (adapters_detail::is_in_loss(base, job)) {
    add_unread_adapter(copy, base, job, rank);
    return;
  }
  const model::LayerIndex read = source.inputs(base.layer)[0];
  const core::Shape in = read < 0 ? source.input_shapes()[static_cast<std::size_t>(model::kFirstGraphInput - read)]
                                  : source.outputs(static_cast<std::size_t>(read))[0];
  const core::Shape out = source.outputs(base.layer)[0];
  const bool quantised = model::has_own_adapters(quantization);
  const bool apart = kernel == AdapterKernel::apart;
  const bool again = kernel == AdapterKernel::again;
  const bool nf4 = model::is_nf4(quantization) && apart;
  const bool gptq = quantization == Quantization::gptq_4bit;
  const bool casts = apart && (!quantised || !model::is_autocast(job.precision));
  const LayerIndex layer = copy.now(static_cast<LayerIndex>(base.layer));
  adapters_detail::AdapterCalls calls(copy, source.graph(), source.graph().layers()[base.layer], job);

  const LayerIndex whole = nf4 ? calls.call("clone", {layer}, out) : layer;
  LayerIndex x = copy.now(read);
  if (casts) x = calls.cast_to_own(x, in);
  const bool drops = job.lora_dropout > 0.0 && !again;
  const LayerIndex seen = drops ? calls.call("dropout", {x}, in, {{"p", job.lora_dropout}}) : x;
  const bool frozen = job.peft == model::PeftMethod::lora_fa;
  const LayerIndex a = calls.weight("lora_A", seen, base.in, in, rank, frozen, again);
  LayerIndex b = calls.weight("lora_B", a, rank, in, base.out, job.peft == model::PeftMethod::mica);
  if (gptq && casts) b = calls.call("cast", {b, whole}, out);
  b = calls.call("mul", {b}, out);
  if (quantised && !gptq && casts) b = calls.call("cast", {b, whole}, out);
  LayerIndex sum = 0;
  if (gptq) {
    sum = calls.call("add", {whole, b}, out, {{"inplace", true}});
  } else {
    sum = calls.call("adapter_sum", {whole, b, x}, out);
  }
  copy.replace(base.layer, sum);
}

inline void add_adapter(connect::GraphCopy& copy, const connect::WiredGraph& source, const BaseEmbedding& base,
                        const model::TrainingJob& job, std::int64_t rank) {
  using adapters_detail::LayerIndex;
  const core::Shape out = source.outputs(base.layer)[0];
  const LayerIndex layer = copy.now(static_cast<LayerIndex>(base.layer));
  const LayerIndex ids = copy.now(source.inputs(base.layer)[0]);
  adapters_detail::AdapterCalls calls(copy, source.graph(), source.graph().layers()[base.layer], job);
  const LayerIndex a = calls.table(ids, base.rows, out, rank);
  LayerIndex b = calls.weight("lora_embedding_B", a, rank, out, base.width);
  b = calls.call("mul", {b}, out);
  copy.replace(base.layer, calls.call("adapter_sum", {layer, b, ids}, out));
}

inline core::Result<ParameterAdapters> ParameterAdapters::of(const connect::WiredGraph& wired,
                                                             const std::vector<std::string>& names,
                                                             const std::vector<model::WeightStorage>& storage,
                                                             const model::TrainingJob& job,
                                                             const PeftSettings& settings) {
  ParameterAdapters made(wired, model::dtype_of(job.lora_dtype));
  const model::ModelGraph& graph = wired.graph();
  std::vector<bool> used(names.size(), false);
  for (std::uint32_t at = 0; !names.empty() && at < graph.layers().size(); ++at) {
    const model::Layer& layer = graph.layers()[at];
    if (graph.op(layer) != model::kParameterOp || wired.outputs(at).empty()) continue;
    const std::string path = graph.path(layer);
    const auto fault = [&](std::string message) {
      return core::Error{core::ErrorCode::invalid_argument, std::move(message), {graph.file(), 0, path}};
    };
    bool named = false;
    for (std::size_t name = 0; name < names.size(); ++name) {
      if (!adapters_detail::is_parameter(path, names[name])) continue;
      named = used[name] = true;
    }
    if (!named) continue;
    if (path.find('.') == std::string::npos)
      return fault("PEFT's LoRA takes no parameter of the whole model's own; leave it out");
    const std::size_t axes = wired.outputs(at)[0].rank();
    if (axes != 2 && axes != 3) return fault("PEFT's LoRA takes parameters of two or three axes; leave it out");
    const std::string module = path.substr(0, path.rfind('.') + 1);
    if (made.modules_.empty() || made.modules_.back().path != module) {
      made.modules_.push_back({.path = module, .first = at});
    }
    made.modules_.back().last = at;
    const core::DType type = storage[at].dtype.value_or(model::parameter_dtype(job.precision));
    const bool folds = axes == 3 && wired.outputs(at)[0][0].size > 1 && job.transformers >= model::Transformers::v5_0;
    made.modules_.back().parameters.push_back({at, settings.rank_of(graph.name(layer)), type, folds});
  }
  for (std::size_t name = 0; name < names.size(); ++name) {
    if (!used[name]) made.unknown_.push_back(core::quoted(names[name]));
  }
  made.find_modules(graph);
  return made;
}

/// From the first layer of each module to the last one.
inline void ParameterAdapters::find_modules(const model::ModelGraph& graph) {
  for (Module& module : modules_) {
    const auto inside = [&](std::uint32_t layer) { return graph.path(graph.layers()[layer]).starts_with(module.path); };
    while (module.first > 0 && inside(module.first - 1)) --module.first;
    while (module.last + 1 < graph.layers().size() && inside(module.last + 1)) ++module.last;
  }
}

/// B's rows for each expert times A's, of all at once, times a number, in the weight's type; or B's and A's in it.
inline std::vector<model::LayerIndex> ParameterAdapters::update_of(connect::GraphCopy& copy,
                                                                   const Adapted& adapted) const {
  const model::ModelGraph& graph = wired_->graph();
  const std::string name(graph.name(graph.layers()[adapted.layer]));
  const core::Shape whole = wired_->outputs(adapted.layer)[0];
  const bool batched = whole.rank() == 3;
  const std::int64_t experts = batched ? whole[0].size : 1;
  const std::int64_t out = whole[whole.rank() - 2].size;
  const std::int64_t in = whole[whole.rank() - 1].size;
  const std::int64_t ranks = core::bounded_product({experts, adapted.rank});
  const auto call = [&](std::string_view op, std::vector<model::LayerIndex> inputs, core::Shape shape,
                        std::vector<model::Attribute> attributes) {
    return copy.insert({.name = name + "." + std::string(op),
                        .op = op,
                        .inputs = std::move(inputs),
                        .output = shape,
                        .attributes = std::move(attributes)});
  };
  const auto matrix = [&](std::string_view part, std::int64_t rows, std::int64_t columns) {
    return copy.insert({.name = name + "." + std::string(part) + ".default",
                        .op = model::kParameterOp,
                        .inputs = {},
                        .output = adapters_detail::sizes({rows, columns}),
                        .attributes = {{"shape", std::vector<std::int64_t>{rows, columns}}},
                        .weights = {.dtype = type_}});
  };
  model::LayerIndex a = matrix("lora_A", ranks, in);
  model::LayerIndex b = matrix("lora_B", out, ranks);
  if (batched) {
    const std::vector<std::int64_t> of_a = {experts, adapted.rank, in};
    const std::vector<std::int64_t> of_b = {out, adapted.rank, experts};
    a = call("adapter_part", {a}, adapters_detail::sizes(of_a), {{"shape", of_a}});
    b = call("adapter_part", {b}, adapters_detail::sizes(of_b), {{"shape", of_b}});
    b = call("permute", {b}, adapters_detail::sizes({experts, out, adapted.rank}),
             {{"dims", std::vector<std::int64_t>{2, 0, 1}}});
  }
  const auto typed = [&](model::LayerIndex layer, const core::Shape& shape) {
    return call("cast", {layer}, shape, {{"dtype", std::string(core::to_string(adapted.type))}});
  };
  if (adapted.folds) {
    const model::LayerIndex left = typed(b, adapters_detail::sizes({experts, out, adapted.rank}));
    return {left, typed(a, adapters_detail::sizes({experts, adapted.rank, in}))};
  }
  return {typed(call("mul", {call("matmul", {b, a}, whole, {})}, whole, {}), whole)};
}

/// torch.baddbmm keeps its factors; cuBLAS takes no B whose experts lie closest, so that it is copied for each product.
inline model::LayerIndex ParameterAdapters::sum_of(connect::GraphCopy& copy, const Adapted& adapted) const {
  const model::ModelGraph& graph = wired_->graph();
  const std::string name(graph.name(graph.layers()[adapted.layer]));
  const core::Shape whole = wired_->outputs(adapted.layer)[0];
  std::vector<model::LayerIndex> inputs = {copy.now(static_cast<model::LayerIndex>(adapted.layer))};
  inputs.insert(inputs.end(), adapted.made.begin(), adapted.made.end());
  if (!adapted.folds) {
    return copy.insert({.name = name + ".adapted", .op = "add", .inputs = std::move(inputs), .output = whole});
  }
  const std::vector<std::int64_t> sizes = {whole[0].size, whole[1].size, whole[2].size};
  const std::int64_t elements = core::bounded_product({sizes[0], sizes[1], adapted.rank});
  const std::vector<std::int64_t> copied = {elements * core::element_size(adapted.type) /
                                            core::element_size(core::DType::float32)};
  return copy.insert({.name = name + ".adapted",
                      .op = "adapter_function",
                      .inputs = std::move(inputs),
                      .output = whole,
                      .attributes = {{"shape", sizes},
                                     {"saved", std::int64_t{6}},
                                     {"scratch", copied},
                                     {"backward", copied},
                                     {"typed_as_first", true}}});
}

inline void ParameterAdapters::behind(connect::GraphCopy& copy, std::uint32_t layer) {
  if (at_ == modules_.size()) return;
  Module& module = modules_[at_];
  if (module.first == layer) {
    for (std::size_t left = module.parameters.size(); left > 0; --left) {
      Adapted& adapted = module.parameters[left - 1];
      adapted.made = update_of(copy, adapted);
    }
  }
  for (Adapted& adapted : module.parameters) {
    if (adapted.layer != layer) continue;
    const model::LayerIndex sum = sum_of(copy, adapted);
    copy.replace(layer, sum);
    adapted.made.push_back(sum);
  }
  if (module.last != layer) return;
  ++at_;
  if (wired_->outputs(layer).empty()) return;
  std::vector<model::LayerIndex> held = {copy.now(static_cast<model::LayerIndex>(layer))};
  for (const Adapted& adapted : module.parameters) held.insert(held.end(), adapted.made.begin(), adapted.made.end());
  copy.replace(
      layer,
      copy.insert({.name = "return", .op = "return", .inputs = std::move(held), .output = wired_->outputs(layer)[0]}));
}

}  // namespace gpumem::adapt
