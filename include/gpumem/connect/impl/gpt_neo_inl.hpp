#pragma once

#include <array>

#include "gpumem/connect/forward.hpp"
#include "gpumem/connect/gpt_neo.hpp"

namespace gpumem::connect {

namespace gpt_neo_detail {

inline constexpr std::array<std::string_view, 3> kModels = {"GPTNeoForCausalLM", "GPTNeoForSequenceClassification",
                                                            "GPTNeoModel"};

struct Sizes {
  std::int64_t width = 0;
  std::int64_t positions = 0;
};

GPUMEM_INLINE std::int64_t head_width(std::int64_t width) {
  constexpr std::int64_t kNarrow = 64;
  constexpr std::int64_t kWide = 128;
  return width >= 2048 && width % kWide == 0 ? kWide : kNarrow;
}

GPUMEM_INLINE Tensor attention(ForwardWiring& wiring, const Module& module, Tensor input, Tensor mask,
                               const Sizes& sizes) {
  const InModule inside(wiring, module);
  const std::int64_t each = head_width(sizes.width);
  wiring.constant("bias", {1, 1, sizes.positions, sizes.positions}, core::DType::boolean);
  const auto heads = [&](std::string_view name) {
    return wiring.split_heads(wiring.layer(module, name, {input}), sizes.width / each, each);
  };
  const Tensor query = heads("q_proj");
  const Tensor key = heads("k_proj");
  const Tensor value = heads("v_proj");
  wiring.returned(key);
  wiring.returned(value);
  const Tensor scores = wiring.node("matmul", {query, wiring.permute(key, {0, 1, 3, 2})});
  // torch.where(causal_mask, scores, smallest) keeps the buffer's rows, which are held anyway; a number is like one
  // added.
  const Tensor causal = wiring.node("add", {scores});
  const Tensor weights = wiring.node("softmax", {wiring.add(causal, mask)});
  const Tensor dropped = wiring.optional_layer(module, "attn_dropout", {weights});
  const Tensor attended = wiring.node("matmul", {dropped, value});
  const Tensor output = wiring.layer(module, "out_proj", {wiring.merge_heads(attended, sizes.width)});
  return wiring.optional_layer(module, "resid_dropout", {output});
}

GPUMEM_INLINE Tensor feed_forward(ForwardWiring& wiring, const Module& module, Tensor input) {
  const InModule inside(wiring, module);
  const Tensor hidden = wiring.layer(module, "act", {wiring.layer(module, "c_fc", {input})});
  return wiring.optional_layer(module, "dropout", {wiring.layer(module, "c_proj", {hidden})});
}

GPUMEM_INLINE Tensor block(ForwardWiring& wiring, const Module& module, Tensor input, Tensor mask, const Sizes& sizes) {
  const InModule inside(wiring, module);
  const Tensor normed = wiring.layer(module, "ln_1", {input});
  const Module outer = module.child("attn");
  const Tensor attended = wiring.add(attention(wiring, outer.child("attention"), normed, mask, sizes), input);
  const Tensor again = wiring.layer(module, "ln_2", {attended});
  return wiring.add(attended, feed_forward(wiring, module.child("mlp"), again));
}

GPUMEM_INLINE Tensor body(ForwardWiring& wiring, const Module& model) {
  const InModule inside(wiring, model);
  const Sizes sizes = {wiring.required(model, "wte", "embedding_dim"), wiring.required(model, "wpe", "num_embeddings")};
  const std::int64_t tokens = wiring.sequence_length();
  const Tensor ids = wiring.token_input("input_ids");
  const Tensor attention_mask = wiring.token_input("attention_mask");
  const Tensor words = wiring.layer(model, "wte", {ids});
  const Tensor mask = wiring.expanded_mask(attention_mask, tokens);
  const Tensor positions = wiring.positions(model, "wpe");
  Tensor hidden = wiring.optional_layer(model, "drop", {wiring.add(words, positions)});
  for (const Module& layer : model.child("h").children()) hidden = block(wiring, layer, hidden, mask, sizes);
  return wiring.layer(model, "ln_f", {hidden});
}

GPUMEM_INLINE bool recognises(const model::ModelGraph& graph) { return holds_class(graph, kModels); }

GPUMEM_INLINE core::Result<model::ModelGraph> connect_model(const model::TrainingJob& job, const ops::Catalogue& ops) {
  const ModuleIndex index(*job.graph);
  const Module model = *find_model(index, kModels);
  ForwardWiring wiring(job, ops);
  if (model.class_name() == "GPTNeoModel") {
    body(wiring, model);
  } else {
    const InModule inside(wiring, model);
    const Tensor hidden = body(wiring, model.child("transformer"));
    wiring.layer(model, model.has_layer("score") ? "score" : "lm_head", {hidden});
  }
  return std::move(wiring).finish();
}

}  // namespace gpt_neo_detail

GPUMEM_INLINE const Family& gpt_neo() {
  static constexpr Family kFamily = {"gpt_neo", gpt_neo_detail::recognises, gpt_neo_detail::connect_model};
  return kFamily;
}

}  // namespace gpumem::connect
