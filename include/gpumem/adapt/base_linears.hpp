// Input: a wired graph.
// Output: its linear layers with what adapters and quantised weights need to know about them: names, sides, and which
// one is the model's output. Also its embeddings, which can have adapters too.
// Units: features; rows of a table.
//
// Source: transformers 4.46 integrations/bitsandbytes.py, get_keys_to_not_convert: the output embedding, what is tied,
// and the last module stay as they are. PEFT 0.14 tuners/tuners_utils.py, _maybe_include_all_linear_layers: all-linear
// leaves out the output embedding and a classifier's head.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/connect/wired_graph.hpp"

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

}  // namespace gpumem::adapt
