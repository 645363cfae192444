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
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpumem/adapt/peft_methods.hpp"
#include "gpumem/connect/graph_copy.hpp"
#include "gpumem/connect/wired_graph.hpp"
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

/// Puts the adapter of a layer of the source after it, which was copied last; what reads the layer then reads their
/// sum.
void add_adapter(connect::GraphCopy& copy, const connect::WiredGraph& source, const BaseLinear& base,
                 const model::TrainingJob& job, model::Quantization quantization, std::int64_t rank);

/// The same of an embedding: F.embedding of A's transpose, times B's. There is no dropout.
void add_adapter(connect::GraphCopy& copy, const connect::WiredGraph& source, const BaseEmbedding& base,
                 const model::TrainingJob& job, std::int64_t rank);

namespace adapters_detail {

using model::LayerIndex;
using model::Quantization;

/// Writes the calls of one adapter.
class AdapterCalls {
 public:
  /// `base`: the layer that is adapted, of this graph.
  AdapterCalls(connect::GraphCopy& copy, const model::ModelGraph& graph, const model::Layer& base,
               model::AdapterType type)
      : copy_(copy),
        name_(graph.name(base)),
        type_(model::dtype_of(type)),
        split_(base.split),
        expert_(base.expert),
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
                    bool frozen = false) {
    shape.set(shape.rank() - 1, core::Dim::fixed(out));
    std::vector<model::Attribute> attributes = {{"in_features", in}, {"out_features", out}, {"bias", false}};
    if (ranks_) attributes.push_back({"tensor_ranks", *ranks_});
    const model::TensorSplit side = part == "lora_A" ? model::TensorSplit::rows : model::TensorSplit::columns;
    return copy_.insert({.name = name_ + "." + std::string(part) + ".default",
                         .op = "linear",
                         .inputs = {input},
                         .output = shape,
                         .attributes = std::move(attributes),
                         .weights = {.dtype = type_},
                         .frozen = frozen,
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
  std::optional<std::int64_t> ranks_;  ///< that share the layer's weights, where not all do
};

inline bool is_autocast(model::Precision precision) {
  return precision == model::Precision::amp_fp16 || precision == model::Precision::amp_bf16;
}

}  // namespace adapters_detail

inline void add_adapter(connect::GraphCopy& copy, const connect::WiredGraph& source, const BaseLinear& base,
                        const model::TrainingJob& job, model::Quantization quantization, std::int64_t rank) {
  using adapters_detail::LayerIndex;
  using adapters_detail::Quantization;
  const model::LayerIndex read = source.inputs(base.layer)[0];
  const core::Shape in = read < 0 ? source.input_shapes()[static_cast<std::size_t>(model::kFirstGraphInput - read)]
                                  : source.outputs(static_cast<std::size_t>(read))[0];
  const core::Shape out = source.outputs(base.layer)[0];
  const bool quantised = model::has_own_adapters(quantization);
  const bool nf4 = model::is_nf4(quantization);
  const bool gptq = quantization == Quantization::gptq_4bit;
  const bool casts = !quantised || !adapters_detail::is_autocast(job.precision);
  const LayerIndex layer = copy.now(static_cast<LayerIndex>(base.layer));
  adapters_detail::AdapterCalls calls(copy, source.graph(), source.graph().layers()[base.layer], job.lora_dtype);

  const LayerIndex whole = nf4 ? calls.call("clone", {layer}, out) : layer;
  LayerIndex x = copy.now(read);
  if (casts) x = calls.cast_to_own(x, in);
  const LayerIndex seen = job.lora_dropout > 0.0 ? calls.call("dropout", {x}, in, {{"p", job.lora_dropout}}) : x;
  const LayerIndex a = calls.weight("lora_A", seen, base.in, in, rank, job.peft == model::PeftMethod::lora_fa);
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
  adapters_detail::AdapterCalls calls(copy, source.graph(), source.graph().layers()[base.layer], job.lora_dtype);
  const LayerIndex a = calls.table(ids, base.rows, out, rank);
  LayerIndex b = calls.weight("lora_embedding_B", a, rank, out, base.width);
  b = calls.call("mul", {b}, out);
  copy.replace(base.layer, calls.call("adapter_sum", {layer, b, ids}, out));
}

}  // namespace gpumem::adapt
