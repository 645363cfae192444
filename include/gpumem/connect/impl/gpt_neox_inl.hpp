#pragma once

#include <array>

#include "gpumem/connect/forward.hpp"
#include "gpumem/connect/gpt_neox.hpp"

namespace gpumem::connect {

namespace gpt_neox_detail {

inline constexpr std::array<std::string_view, 2> kModels = {"GPTNeoXForCausalLM", "GPTNeoXModel"};

/// What all layers share.
struct Shared {
  std::int64_t width = 0;
  std::int64_t head_width = 0;
  std::int64_t rotary_width = 0;
  Tensor mask = ForwardWiring::kNoMask;
  Tensor cosines = 0;
  Tensor sines = 0;
};

GPUMEM_INLINE std::int64_t head_width(std::int64_t width) {
  constexpr std::int64_t kNarrow = 64;
  constexpr std::int64_t kWide = 128;
  if (width < 2048) return kNarrow;
  if (width % kWide == 0 && width != 2560 && width != 6144) return kWide;
  return width == 6144 ? 96 : 80;
}

/// Rotates the first part of each head, and joins the rest to it: a fresh tensor.
GPUMEM_INLINE Tensor rotated(ForwardWiring& wiring, Tensor tensor, const Shared& shared) {
  const Tensor turned =
      wiring.rotate(wiring.part(tensor, 0, shared.rotary_width), shared.cosines, shared.sines, shared.rotary_width);
  const Tensor rest = wiring.part(tensor, shared.rotary_width, shared.head_width - shared.rotary_width);
  return wiring.node("concat", {turned, rest}, {{"dim", std::int64_t{3}}});
}

GPUMEM_INLINE Tensor attention(ForwardWiring& wiring, const Module& module, Tensor input, const Shared& shared) {
  const InModule inside(wiring, module);
  const std::int64_t each = shared.head_width;
  const Tensor packed =
      wiring.split_heads(wiring.layer(module, "query_key_value", {input}), shared.width / each, 3 * each);
  const Tensor parted =
      wiring.node("split", {packed}, {{"dim", std::int64_t{3}}, {"sizes", std::vector<std::int64_t>(3, each)}});
  const auto item = [&](std::int64_t start) {
    return wiring.node("item", {parted}, {{"dim", std::int64_t{3}}, {"start", start}, {"length", each}});
  };
  const Tensor value = item(2 * each);
  const Tensor query = rotated(wiring, item(0), shared);
  const Tensor key = rotated(wiring, item(each), shared);
  wiring.returned(key);
  wiring.returned(value);
  const Tensor attended =
      wiring.fused_attention({query, key, value}, shared.mask, 0.0, !calls_kernel_on_views(module.class_name()));
  return wiring.layer(module, "dense", {wiring.merge_heads(attended, shared.width)});
}

GPUMEM_INLINE Tensor feed_forward(ForwardWiring& wiring, const Module& module, Tensor input) {
  const InModule inside(wiring, module);
  const Tensor hidden = wiring.layer(module, "act", {wiring.layer(module, "dense_h_to_4h", {input})});
  return wiring.layer(module, "dense_4h_to_h", {hidden});
}

GPUMEM_INLINE Tensor block(ForwardWiring& wiring, const Module& module, Tensor input, const Shared& shared) {
  const InModule inside(wiring, module);
  const Tensor normed = wiring.layer(module, "input_layernorm", {input});
  const Tensor attended = wiring.optional_layer(module, "post_attention_dropout",
                                                {attention(wiring, module.child("attention"), normed, shared)});
  const Tensor again = wiring.layer(module, "post_attention_layernorm", {input});
  const Tensor changed =
      wiring.optional_layer(module, "post_mlp_dropout", {feed_forward(wiring, module.child("mlp"), again)});
  return wiring.add(wiring.add(changed, attended), input);
}

GPUMEM_INLINE Tensor body(ForwardWiring& wiring, const Module& model) {
  const InModule inside(wiring, model);
  const std::int64_t tokens = wiring.sequence_length();
  Shared shared{.width = wiring.required(model, "embed_in", "embedding_dim")};
  shared.head_width = head_width(shared.width);
  shared.rotary_width = shared.head_width / 4;
  const Tensor words = wiring.layer(model, "embed_in", {wiring.token_input("input_ids")});
  shared.mask = wiring.expanded_mask(wiring.token_input("attention_mask"), tokens);
  Tensor hidden = wiring.optional_layer(model, "emb_dropout", {words});
  shared.cosines = wiring.constant("cos", {1, 1, tokens, shared.rotary_width}, core::DType::float32);
  shared.sines = wiring.constant("sin", {1, 1, tokens, shared.rotary_width}, core::DType::float32);
  for (const Module& layer : model.child("layers").children()) hidden = block(wiring, layer, hidden, shared);
  return wiring.layer(model, "final_layer_norm", {hidden});
}

GPUMEM_INLINE bool recognises(const model::ModelGraph& graph) { return holds_class(graph, kModels); }

GPUMEM_INLINE core::Result<model::ModelGraph> connect_model(const model::TrainingJob& job, const ops::Catalogue& ops) {
  const ModuleIndex index(*job.graph);
  const Module model = *find_model(index, kModels);
  ForwardWiring wiring(job, ops);
  if (model.class_name() == "GPTNeoXModel") {
    body(wiring, model);
  } else {
    const InModule inside(wiring, model);
    wiring.layer(model, "embed_out", {body(wiring, model.child("gpt_neox"))});
  }
  return std::move(wiring).finish();
}

}  // namespace gpt_neox_detail

GPUMEM_INLINE const Family& gpt_neox() {
  static constexpr Family kFamily = {"gpt_neox", gpt_neox_detail::recognises, gpt_neox_detail::connect_model};
  return kFamily;
}

}  // namespace gpumem::connect
