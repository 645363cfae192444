#pragma once

#include <array>

#include "gpumem/connect/distilbert.hpp"
#include "gpumem/connect/forward.hpp"

namespace gpumem::connect {

namespace distilbert_detail {

inline constexpr std::array<std::string_view, 4> kModels = {"DistilBertForMaskedLM",
                                                            "DistilBertForSequenceClassification",
                                                            "DistilBertForTokenClassification", "DistilBertModel"};
inline constexpr std::int64_t kHeadWidth = 64;

GPUMEM_INLINE Tensor attention(ForwardWiring& wiring, const Module& module, Tensor input, Tensor mask) {
  const InModule inside(wiring, module);
  const std::int64_t width = wiring.required(module, "q_lin", "out_features");
  const auto parted = [&](std::string_view name) {
    return wiring.split_heads(wiring.layer(module, name, {input}), width / kHeadWidth, kHeadWidth);
  };
  const Tensor query = parted("q_lin");
  const Tensor key = parted("k_lin");
  const Tensor value = parted("v_lin");
  const Tensor attended = wiring.fused_attention({query, key, value}, mask, wiring.probability(module, "dropout"),
                                                 !calls_kernel_on_views(module.class_name()));
  return wiring.layer(module, "out_lin", {wiring.merge_heads(attended, width)});
}

GPUMEM_INLINE Tensor feed_forward(ForwardWiring& wiring, const Module& module, Tensor input) {
  const InModule inside(wiring, module);
  const Tensor hidden = wiring.layer(module, "activation", {wiring.layer(module, "lin1", {input})});
  return wiring.optional_layer(module, "dropout", {wiring.layer(module, "lin2", {hidden})});
}

GPUMEM_INLINE Tensor block(ForwardWiring& wiring, const Module& module, Tensor input, Tensor mask) {
  const InModule inside(wiring, module);
  const Tensor attended = attention(wiring, module.child("attention"), input, mask);
  const Tensor normed = wiring.layer(module, "sa_layer_norm", {wiring.add(attended, input)});
  const Tensor changed = feed_forward(wiring, module.child("ffn"), normed);
  return wiring.layer(module, "output_layer_norm", {wiring.add(changed, normed)});
}

GPUMEM_INLINE Tensor embeddings(ForwardWiring& wiring, const Module& module) {
  const InModule inside(wiring, module);
  const Tensor words = wiring.layer(module, "word_embeddings", {wiring.token_input("input_ids")});
  const Tensor sum = wiring.add(words, wiring.positions(module, "position_embeddings"));
  return wiring.optional_layer(module, "dropout", {wiring.layer(module, "LayerNorm", {sum})});
}

GPUMEM_INLINE Tensor body(ForwardWiring& wiring, const Module& model) {
  const InModule inside(wiring, model);
  Tensor hidden = embeddings(wiring, model.child("embeddings"));
  const Tensor mask = wiring.expanded_mask(wiring.token_input("attention_mask"), wiring.sequence_length());
  const Module blocks = model.child("transformer");
  const InModule within(wiring, blocks);
  for (const Module& layer : blocks.child("layer").children()) hidden = block(wiring, layer, hidden, mask);
  return hidden;
}

GPUMEM_INLINE void head(ForwardWiring& wiring, const Module& model, Tensor hidden) {
  if (model.has_layer("vocab_projector")) {
    Tensor changed = wiring.layer(model, "vocab_transform", {hidden});
    changed =
        model.has_layer("activation") ? wiring.layer(model, "activation", {changed}) : wiring.node("gelu", {changed});
    wiring.layer(model, "vocab_projector", {wiring.layer(model, "vocab_layer_norm", {changed})});
    return;
  }
  if (model.has_layer("pre_classifier")) {
    hidden = wiring.node("select", {hidden}, {{"dim", std::int64_t{1}}, {"index", std::int64_t{0}}});
    hidden = wiring.node("relu", {wiring.layer(model, "pre_classifier", {hidden})});
  }
  wiring.layer(model, "classifier", {wiring.optional_layer(model, "dropout", {hidden})});
}

GPUMEM_INLINE bool recognises(const model::ModelGraph& graph) { return holds_class(graph, kModels); }

GPUMEM_INLINE core::Result<model::ModelGraph> connect_model(const model::TrainingJob& job, const ops::Catalogue& ops) {
  const ModuleIndex index(*job.graph);
  const Module model = *find_model(index, kModels);
  ForwardWiring wiring(job, ops);
  if (model.class_name() == "DistilBertModel") {
    body(wiring, model);
  } else {
    const InModule inside(wiring, model);
    head(wiring, model, body(wiring, model.child("distilbert")));
  }
  return std::move(wiring).finish();
}

}  // namespace distilbert_detail

GPUMEM_INLINE const Family& distilbert() {
  static constexpr Family kFamily = {"distilbert", distilbert_detail::recognises, distilbert_detail::connect_model};
  return kFamily;
}

}  // namespace gpumem::connect
