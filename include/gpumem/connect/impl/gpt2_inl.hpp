#pragma once

#include <array>

#include "gpumem/connect/forward.hpp"
#include "gpumem/connect/gpt2.hpp"

namespace gpumem::connect {

namespace gpt2_detail {

inline constexpr std::array<std::string_view, 3> kModels = {"GPT2LMHeadModel", "GPT2ForSequenceClassification",
                                                            "GPT2Model"};
inline constexpr std::int64_t kHeadWidth = 64;

struct Sizes {
  std::int64_t width = 0;
  std::int64_t positions = 0;
};

GPUMEM_INLINE Tensor attention(ForwardWiring& wiring, const Module& module, Tensor input, Tensor mask,
                               const Sizes& sizes) {
  const InModule inside(wiring, module);
  const std::int64_t width = sizes.width;
  wiring.constant("bias", {1, 1, sizes.positions, sizes.positions}, core::DType::boolean);
  const Tensor packed = wiring.node("split", {wiring.layer(module, "c_attn", {input})},
                                    {{"dim", std::int64_t{2}}, {"sizes", std::vector<std::int64_t>(3, width)}});
  std::array<Tensor, 3> parts{};
  for (std::size_t part = 0; part < parts.size(); ++part) {
    const Tensor item =
        wiring.node("item", {packed},
                    {{"dim", std::int64_t{2}}, {"start", static_cast<std::int64_t>(part) * width}, {"length", width}});
    parts[part] = wiring.split_heads(item, width / kHeadWidth, kHeadWidth);
  }
  wiring.returned(parts[1]);
  wiring.returned(parts[2]);
  const Tensor attended =
      wiring.fused_attention({parts[0], parts[1], parts[2]}, mask, wiring.probability(module, "attn_dropout"),
                             !calls_kernel_on_views(module.class_name()));
  const Tensor output = wiring.layer(module, "c_proj", {wiring.merge_heads(attended, width)});
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
  const Tensor attended = wiring.add(attention(wiring, module.child("attn"), normed, mask, sizes), input);
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
  const Tensor positions = wiring.positions(model, "wpe");
  const Tensor embedded = wiring.add(words, positions);
  const Tensor mask = wiring.expanded_mask(attention_mask, tokens);
  Tensor hidden = wiring.optional_layer(model, "drop", {embedded});
  for (const Module& layer : model.child("h").children()) hidden = block(wiring, layer, hidden, mask, sizes);
  return wiring.layer(model, "ln_f", {hidden});
}

GPUMEM_INLINE bool recognises(const model::ModelGraph& graph) { return holds_class(graph, kModels); }

GPUMEM_INLINE core::Result<model::ModelGraph> connect_model(const model::TrainingJob& job, const ops::Catalogue& ops) {
  const ModuleIndex index(*job.graph);
  const Module model = *find_model(index, kModels);
  ForwardWiring wiring(job, ops);
  if (model.class_name() == "GPT2Model") {
    body(wiring, model);
  } else {
    const InModule inside(wiring, model);
    const Tensor hidden = body(wiring, model.child("transformer"));
    wiring.layer(model, model.has_layer("score") ? "score" : "lm_head", {hidden});
  }
  return std::move(wiring).finish();
}

}  // namespace gpt2_detail

GPUMEM_INLINE const Family& gpt2() {
  static constexpr Family kFamily = {"gpt2", gpt2_detail::recognises, gpt2_detail::connect_model};
  return kFamily;
}

}  // namespace gpumem::connect
