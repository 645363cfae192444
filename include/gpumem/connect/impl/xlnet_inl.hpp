#pragma once

#include <array>

#include "gpumem/connect/forward.hpp"
#include "gpumem/connect/xlnet.hpp"

namespace gpumem::connect {

namespace xlnet_detail {

inline constexpr std::array<std::string_view, 3> kModels = {"XLNetLMHeadModel", "XLNetForSequenceClassification",
                                                            "XLNetModel"};
inline constexpr std::int64_t kHeadWidth = 64;

/// What all layers share.
struct Shared {
  std::int64_t width = 0;
  std::int64_t tokens = 0;
  Tensor distances = 0;  ///< [N, 2 S, width]
  Tensor mask = 0;
};

/// (q + bias) kᵀ.
GPUMEM_INLINE Tensor scores(ForwardWiring& wiring, std::string_view bias, Tensor query, Tensor key, std::int64_t keys,
                            const Shared& shared) {
  const std::int64_t heads = shared.width / kHeadWidth;
  const Tensor biased = wiring.add(query, wiring.parameter(bias, {shared.width}));
  const Tensor rows = wiring.reshape(biased, {heads, shared.tokens, kHeadWidth});
  return wiring.node("matmul", {rows, wiring.reshape(key, {heads, kHeadWidth, keys})});
}

/// rel_shift: [N, heads, S, 2 S] seen one step aside, of which the first S columns are taken.
GPUMEM_INLINE Tensor shifted(ForwardWiring& wiring, Tensor tensor, const Shared& shared) {
  const std::int64_t heads = shared.width / kHeadWidth;
  const std::int64_t tokens = shared.tokens;
  const Tensor turned = wiring.reshape(tensor, {heads, 2 * tokens, tokens});
  const Tensor tail = wiring.node("slice", {turned}, {{"dim", std::int64_t{2}}, {"start", std::int64_t{1}}});
  const Tensor back = wiring.reshape(tail, {heads, tokens, 2 * tokens - 1});
  const Tensor taken = wiring.node("slice", {back}, {{"dim", std::int64_t{3}}, {"length", tokens}});
  return wiring.node("contiguous", {taken});
}

GPUMEM_INLINE Tensor attention(ForwardWiring& wiring, const Module& module, Tensor input, const Shared& shared) {
  const InModule inside(wiring, module);
  const std::int64_t width = shared.width;
  const std::int64_t tokens = shared.tokens;
  const std::int64_t heads = width / kHeadWidth;
  wiring.own_parameters_taken(module);
  const auto projection = [&](std::string_view name, Tensor from) {
    return wiring.projection(name, from, width, width);
  };
  const Tensor query = projection("q", input);
  const Tensor key = projection("k", input);
  const Tensor value = wiring.reshape(projection("v", input), {heads, tokens, kHeadWidth});
  const Tensor places = projection("r", shared.distances);
  wiring.parameter("r_s_bias", {width});  // read with segments only
  wiring.parameter("seg_embed", {2, width});
  const Tensor content = scores(wiring, "r_w_bias", query, key, tokens, shared);
  const Tensor position = shifted(wiring, scores(wiring, "r_r_bias", query, places, 2 * tokens, shared), shared);
  // + 0 for the segments, which are not there, then the scale
  const Tensor scaled = wiring.scale(wiring.node("add", {wiring.add(content, position)}));
  const Tensor masked = wiring.node("sub", {scaled, shared.mask});
  const Tensor weights = wiring.optional_layer(module, "dropout", {wiring.node("softmax", {masked})});
  const Tensor attended = wiring.merge_heads(wiring.node("matmul", {weights, value}), width);
  const Tensor output = wiring.optional_layer(module, "dropout", {projection("o", attended)});
  return wiring.layer(module, "layer_norm", {wiring.add(output, input)});
}

GPUMEM_INLINE Tensor feed_forward(ForwardWiring& wiring, const Module& module, Tensor input) {
  const InModule inside(wiring, module);
  Tensor hidden = wiring.layer(module, "activation_function", {wiring.layer(module, "layer_1", {input})});
  hidden = wiring.optional_layer(module, "dropout", {hidden});
  hidden = wiring.optional_layer(module, "dropout", {wiring.layer(module, "layer_2", {hidden})});
  return wiring.layer(module, "layer_norm", {wiring.add(hidden, input)});
}

GPUMEM_INLINE Tensor body(ForwardWiring& wiring, const Module& model) {
  const InModule inside(wiring, model);
  Shared shared{.width = wiring.required(model, "word_embedding", "embedding_dim"), .tokens = wiring.sequence_length()};
  wiring.own_parameters_taken(model);
  wiring.parameter("mask_emb", {1, 1, shared.width});
  const Tensor words = wiring.layer(model, "word_embedding", {wiring.token_input("input_ids")});
  shared.mask = wiring.expanded_mask(wiring.token_input("attention_mask"), shared.tokens);
  Tensor hidden = wiring.optional_layer(model, "dropout", {words});
  const Tensor table = wiring.constant("pos_emb", {1, 2 * shared.tokens, shared.width}, core::DType::float32);
  const std::vector<core::Dim> shape = {core::Dim::batch(), core::Dim::fixed(-1), core::Dim::fixed(-1)};
  const Tensor spread = wiring.node("expand", {table}, {{"shape", shape}});
  shared.distances = wiring.optional_layer(model, "dropout", {spread});
  for (const Module& layer : model.child("layer").children()) {
    const InModule within(wiring, layer);
    hidden = attention(wiring, layer.child("rel_attn"), hidden, shared);
    hidden = feed_forward(wiring, layer.child("ff"), hidden);
  }
  hidden = wiring.optional_layer(model, "dropout", {hidden});
  return wiring.node("clone", {hidden});  // [S, N, width] -> [N, S, width]
}

/// XLNetSequenceSummary: the last token through a linear layer and its activation.
GPUMEM_INLINE Tensor summarised(ForwardWiring& wiring, const Module& module, Tensor hidden) {
  const InModule inside(wiring, module);
  Tensor last = wiring.node("select", {hidden}, {{"dim", std::int64_t{1}}, {"index", std::int64_t{-1}}});
  for (const std::string_view name : {"first_dropout", "summary", "activation", "last_dropout"}) {
    last = wiring.optional_layer(module, name, {last});
  }
  return last;
}

GPUMEM_INLINE bool recognises(const model::ModelGraph& graph) { return holds_class(graph, kModels); }

GPUMEM_INLINE core::Result<model::ModelGraph> connect_model(const model::TrainingJob& job, const ops::Catalogue& ops) {
  const ModuleIndex index(*job.graph);
  const Module model = *find_model(index, kModels);
  ForwardWiring wiring(job, ops);
  if (model.class_name() == "XLNetModel") {
    body(wiring, model);
  } else if (model.class_name() == "XLNetForSequenceClassification") {
    const InModule inside(wiring, model);
    const Tensor hidden = body(wiring, model.child("transformer"));
    wiring.layer(model, "logits_proj", {summarised(wiring, model.child("sequence_summary"), hidden)});
  } else {
    const InModule inside(wiring, model);
    wiring.layer(model, "lm_loss", {body(wiring, model.child("transformer"))});
  }
  return std::move(wiring).finish();
}

}  // namespace xlnet_detail

GPUMEM_INLINE const Family& xlnet() {
  static constexpr Family kFamily = {"xlnet", xlnet_detail::recognises, xlnet_detail::connect_model};
  return kFamily;
}

}  // namespace gpumem::connect
