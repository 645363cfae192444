#pragma once

#include <algorithm>
#include <array>

#include "gpumem/connect/bert.hpp"
#include "gpumem/connect/forward.hpp"

namespace gpumem::connect {

namespace bert_detail {

inline constexpr std::array<std::string_view, 10> kModels = {"BertForMaskedLM",
                                                             "RobertaForMaskedLM",
                                                             "BertLMHeadModel",
                                                             "BertForSequenceClassification",
                                                             "BertForQuestionAnswering",
                                                             "RobertaForSequenceClassification",
                                                             "BertForTokenClassification",
                                                             "RobertaForTokenClassification",
                                                             "BertModel",
                                                             "RobertaModel"};
inline constexpr std::int64_t kHeadWidth = 64;

GPUMEM_INLINE Tensor attention(ForwardWiring& wiring, const Module& module, Tensor input, Tensor mask) {
  const InModule inside(wiring, module);
  const std::int64_t width = wiring.required(module, "query", "out_features");
  const std::int64_t heads = std::max<std::int64_t>(width / kHeadWidth, 1);
  const auto parted = [&](std::string_view name) {
    return wiring.split_heads(wiring.layer(module, name, {input}), heads, width / heads);
  };
  const Tensor query = parted("query");
  const Tensor key = parted("key");
  const Tensor value = parted("value");
  const Tensor attended = wiring.fused_attention({query, key, value}, mask, wiring.probability(module, "dropout"),
                                                 !calls_kernel_on_views(module.class_name()));
  return wiring.merge_heads(attended, width);
}

/// Projection, dropout, and the norm of the sum with what the block read.
GPUMEM_INLINE Tensor sublayer_output(ForwardWiring& wiring, const Module& module, Tensor hidden, Tensor residual) {
  const InModule inside(wiring, module);
  const Tensor projected = wiring.optional_layer(module, "dropout", {wiring.layer(module, "dense", {hidden})});
  return wiring.layer(module, "LayerNorm", {wiring.add(projected, residual)});
}

GPUMEM_INLINE Tensor block(ForwardWiring& wiring, const Module& module, Tensor input, Tensor mask) {
  const InModule inside(wiring, module);
  Tensor attended = 0;
  {
    const Module outer = module.child("attention");
    const InModule within(wiring, outer);
    attended =
        sublayer_output(wiring, outer.child("output"), attention(wiring, outer.child("self"), input, mask), input);
  }
  Tensor hidden = 0;
  {
    const Module dense = module.child("intermediate");
    const InModule within(wiring, dense);
    hidden = wiring.layer(dense, "intermediate_act_fn", {wiring.layer(dense, "dense", {attended})});
  }
  return sublayer_output(wiring, module.child("output"), hidden, attended);
}

/// BERT numbers positions once for all samples; RoBERTa counts the tokens of each sample that are no padding.
GPUMEM_INLINE Tensor embeddings(ForwardWiring& wiring, const Module& module, bool counts_positions) {
  const InModule inside(wiring, module);
  const Tensor ids = wiring.token_input("input_ids");
  const Tensor words = wiring.layer(module, "word_embeddings", {ids});
  const Tensor types = wiring.layer(module, "token_type_embeddings", {wiring.token_input("token_type_ids")});
  const Tensor sum = wiring.add(words, types);
  const Tensor positions = counts_positions ? wiring.layer(module, "position_embeddings", {ids})
                                            : wiring.positions(module, "position_embeddings");
  const Tensor embedded = wiring.node("add", {sum, positions}, {{"inplace", true}});
  return wiring.optional_layer(module, "dropout", {wiring.layer(module, "LayerNorm", {embedded})});
}

GPUMEM_INLINE Tensor first_token(ForwardWiring& wiring, Tensor hidden) {
  return wiring.node("select", {hidden}, {{"dim", std::int64_t{1}}, {"index", std::int64_t{0}}});
}

/// The last hidden state, or what the pooler made of its first token.
GPUMEM_INLINE Tensor body(ForwardWiring& wiring, const Module& model) {
  const InModule inside(wiring, model);
  Tensor hidden = embeddings(wiring, model.child("embeddings"), model.class_name().starts_with("Roberta"));
  const Tensor mask = wiring.expanded_mask(wiring.token_input("attention_mask"), wiring.sequence_length());
  const Module encoder = model.child("encoder");
  {
    const InModule within(wiring, encoder);
    for (const Module& layer : encoder.child("layer").children()) hidden = block(wiring, layer, hidden, mask);
  }
  if (!model.has_child("pooler")) return hidden;
  const Module pooler = model.child("pooler");
  const InModule within(wiring, pooler);
  wiring.returned(hidden);
  return wiring.layer(pooler, "activation", {wiring.layer(pooler, "dense", {first_token(wiring, hidden)})});
}

GPUMEM_INLINE void masked_lm_head(ForwardWiring& wiring, const Module& head, Tensor hidden) {
  const InModule inside(wiring, head);
  const Module module = head.child("predictions");
  const InModule within(wiring, module);
  const Module transform = module.child("transform");
  Tensor changed = 0;
  {
    const InModule deeper(wiring, transform);
    changed = wiring.layer(transform, "transform_act_fn", {wiring.layer(transform, "dense", {hidden})});
    changed = wiring.layer(transform, "LayerNorm", {changed});
  }
  wiring.layer(module, "decoder", {changed});
}

GPUMEM_INLINE void roberta_lm_head(ForwardWiring& wiring, const Module& head, Tensor hidden) {
  const InModule inside(wiring, head);
  const Tensor changed = wiring.node("gelu", {wiring.layer(head, "dense", {hidden})});
  wiring.layer(head, "decoder", {wiring.layer(head, "layer_norm", {changed})});
}

GPUMEM_INLINE void roberta_classifier(ForwardWiring& wiring, const Module& head, Tensor hidden) {
  const InModule inside(wiring, head);
  const Tensor first = wiring.optional_layer(head, "dropout", {first_token(wiring, hidden)});
  const Tensor changed = wiring.node("tanh", {wiring.layer(head, "dense", {first})});
  wiring.layer(head, "out_proj", {wiring.optional_layer(head, "dropout", {changed})});
}

GPUMEM_INLINE void head(ForwardWiring& wiring, const Module& model, Tensor hidden) {
  if (model.has_child("cls")) return masked_lm_head(wiring, model.child("cls"), hidden);
  if (model.has_child("lm_head")) return roberta_lm_head(wiring, model.child("lm_head"), hidden);
  if (model.has_child("classifier")) return roberta_classifier(wiring, model.child("classifier"), hidden);
  const Tensor dropped = wiring.optional_layer(model, "dropout", {hidden});
  wiring.layer(model, model.has_layer("qa_outputs") ? "qa_outputs" : "classifier", {dropped});
}

GPUMEM_INLINE bool recognises(const model::ModelGraph& graph) { return holds_class(graph, kModels); }

GPUMEM_INLINE core::Result<model::ModelGraph> connect_model(const model::TrainingJob& job, const ops::Catalogue& ops) {
  const ModuleIndex index(*job.graph);
  const Module model = *find_model(index, kModels);
  ForwardWiring wiring(job, ops);
  if (model.class_name().ends_with("Model") && !model.class_name().ends_with("HeadModel")) {
    body(wiring, model);
  } else {
    const InModule inside(wiring, model);
    head(wiring, model, body(wiring, model.child(model.has_child("bert") ? "bert" : "roberta")));
  }
  return std::move(wiring).finish();
}

}  // namespace bert_detail

GPUMEM_INLINE const Family& bert() {
  static constexpr Family kFamily = {"bert", bert_detail::recognises, bert_detail::connect_model};
  return kFamily;
}

}  // namespace gpumem::connect
