// Input: a job whose graph is a module tree, and a family rule that walks the tree as the model's forward() does.
// Output: the graph with edges: copies of the tree's layers, and the operations between them.
//
// Attention follows transformers 4.48 to 4.52, with PyTorch 2.2 or newer: a class name with "Sdpa" in it (older
// versions, and BERT's and DistilBERT's own) calls the fused kernel on views; any other one of these families calls
// it through sdpa_attention_forward, which first copies queries, keys and values. Attention masks are taken to hold
// padding, so the additive mask [N, 1, S, S] exists (where all tokens count, those versions leave it out).
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "gpumem/connect/module_view.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/model/graph_builder.hpp"
#include "gpumem/model/training_job.hpp"
#include "gpumem/ops/catalogue.hpp"

namespace gpumem::connect {

/// What a layer or operation leaves: its index in the new graph.
using Tensor = model::LayerIndex;

/// Queries, keys and values.
struct Heads {
  Tensor query = 0;
  Tensor key = 0;
  Tensor value = 0;
};

/// Remembers the first fault, as GraphBuilder does, so that a rule reads like the forward() that it follows.
class ForwardWiring {
 public:
  ForwardWiring(const model::TrainingJob& job, const ops::Catalogue& ops);

  /// Nodes added from now on are in this module, until leave().
  void enter(const Module& module);
  void leave();

  /// Tokens a sample; a fault if the job does not say.
  [[nodiscard]] std::int64_t sequence_length();
  /// The token ids of the batch [N, S], or another integer input of that size.
  Tensor token_input(std::string_view name);
  /// The images of the batch.
  Tensor image_input(std::string_view name);

  /// A layer of the tree that reads these tensors; its parameters are taken the first time, and tied after that.
  Tensor layer(const Module& module, std::string_view name, std::initializer_list<Tensor> inputs);
  /// The same if the tree has it, otherwise the first input.
  Tensor optional_layer(const Module& module, std::string_view name, std::initializer_list<Tensor> inputs);
  /// An operation that no module shows.
  Tensor node(std::string_view op, std::initializer_list<Tensor> inputs,
              std::initializer_list<model::Attribute> attributes = {}, bool returned = false);
  /// A buffer, or a tensor that the model makes of nothing.
  Tensor constant(std::string_view name, std::vector<std::int64_t> shape, core::DType dtype);
  /// A parameter that the module holds in addition to its children.
  Tensor parameter(std::string_view name, std::vector<std::int64_t> shape);
  /// A linear layer of parameters that the module holds itself.
  Tensor projection(std::string_view name, Tensor input, std::int64_t in, std::int64_t out);
  /// The module's own parameters were emitted by parameter(), or are counted in a layer of it: where the tree counts
  /// them, they are not to be taken again.
  void own_parameters_taken(const Module& module);

  // Shorthands. Shapes are without the batch.
  Tensor add(Tensor left, Tensor right) { return node("add", {left, right}); }
  Tensor scale(Tensor tensor) { return node("mul", {tensor}); }
  Tensor dropout(Tensor tensor, double probability);
  Tensor reshape(Tensor tensor, std::vector<std::int64_t> shape);
  Tensor permute(Tensor tensor, std::vector<std::int64_t> dims);
  /// The tensor is among what the model returns.
  Tensor returned(Tensor tensor);

  /// [N, S, heads d] -> [N, heads, S, d]: a view.
  Tensor split_heads(Tensor tensor, std::int64_t heads, std::int64_t width);
  /// [N, heads, S, d] -> [N, S, heads d]: a view if the kernel left it so, otherwise a copy.
  Tensor merge_heads(Tensor tensor, std::int64_t width);
  /// x cos + rotate_half(x) sin: rotary positions, of tables [1, 1, S, d].
  Tensor rotate(Tensor tensor, Tensor cosines, Tensor sines, std::int64_t width);
  /// Elements [start, start + length) of the last axis of a tensor [N, heads, S, d]: a view.
  Tensor part(Tensor tensor, std::int64_t start, std::int64_t length);
  /// The layer's embeddings of the positions 0 .. S - 1: [1, S, width]. A fault if it has fewer.
  Tensor positions(const Module& module, std::string_view name);
  /// The additive mask [N, 1, 1, S] of an attention mask [N, S].
  Tensor row_mask(Tensor attention_mask);
  /// The additive mask [N, 1, S, S] of an attention mask [N, S].
  Tensor expanded_mask(Tensor attention_mask, std::int64_t rows);
  /// The fused kernel on [N, heads, S, d]; `mask` kNoMask: none.
  Tensor fused_attention(const Heads& heads, Tensor mask, double dropout, bool copies);

  static constexpr Tensor kNoMask = INT32_MIN;

  /// The dropout probability that a layer prints; 0 if it is not there.
  [[nodiscard]] double probability(const Module& module, std::string_view name) const;
  /// An integer that a layer prints; a fault if it does not.
  [[nodiscard]] std::int64_t required(const Module& module, std::string_view layer, std::string_view attribute);

  void fail(std::string message);
  void missing(const Module& module, std::string_view name);

  /// The graph. Errors: the first fault; missing_information if a layer that holds parameters was left out.
  [[nodiscard]] core::Result<model::ModelGraph> finish() &&;

 private:
  Tensor mask_view(Tensor attention_mask);
  void check_all_taken();
  std::string unique(std::string_view name);

  const model::TrainingJob& job_;
  const model::ModelGraph& source_;
  model::Vocabulary vocabulary_;
  model::GraphBuilder builder_;
  std::vector<bool> taken_;                        ///< by layer of the source
  std::vector<std::map<std::string, int>> names_;  ///< how often a name was given, a map an open module
  Tensor next_input_ = model::kFirstGraphInput;
};

/// Whether the class calls the fused kernel on views (see above).
[[nodiscard]] inline bool calls_kernel_on_views(std::string_view class_name) {
  return class_name.find("Sdpa") != std::string_view::npos;
}

/// Nodes are in the module while this lives.
class InModule {
 public:
  InModule(ForwardWiring& wiring, const Module& module) : wiring_(wiring) { wiring_.enter(module); }
  ~InModule() { wiring_.leave(); }
  InModule(const InModule&) = delete;
  InModule& operator=(const InModule&) = delete;

 private:
  ForwardWiring& wiring_;
};

}  // namespace gpumem::connect

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/connect/impl/forward_inl.hpp"
#endif
