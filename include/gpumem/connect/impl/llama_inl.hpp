#pragma once

#include <array>

#include "gpumem/connect/forward.hpp"
#include "gpumem/connect/llama.hpp"

namespace gpumem::connect {

namespace llama_detail {

inline constexpr std::array<std::string_view, 15> kModels = {"LlamaForCausalLM",
                                                             "MistralForCausalLM",
                                                             "Qwen2ForCausalLM",
                                                             "Qwen3ForCausalLM",
                                                             "GemmaForCausalLM",
                                                             "LlamaForSequenceClassification",
                                                             "MistralForSequenceClassification",
                                                             "Qwen2ForSequenceClassification",
                                                             "Qwen3ForSequenceClassification",
                                                             "GemmaForSequenceClassification",
                                                             "LlamaModel",
                                                             "MistralModel",
                                                             "Qwen2Model",
                                                             "Qwen3Model",
                                                             "GemmaModel"};

/// What all layers share.
struct Shared {
  std::int64_t tokens = 0;
  std::int64_t head_width = 0;
  Tensor mask = ForwardWiring::kNoMask;
  Tensor cosines = 0;
  Tensor sines = 0;
};

GPUMEM_INLINE std::int64_t head_width(ForwardWiring& wiring, const Module& attention) {
  if (attention.integer("q_norm", "normalized_shape")) return wiring.required(attention, "q_norm", "normalized_shape");
  const std::int64_t queries = wiring.required(attention, "q_proj", "out_features");
  const std::int64_t keys = wiring.required(attention, "k_proj", "out_features");
  constexpr std::int64_t kNarrow = 64;
  constexpr std::int64_t kWide = 128;
  constexpr std::int64_t kGemma = 256;
  if (attention.class_name().starts_with("Gemma") && queries % kGemma == 0 && keys % kGemma == 0) return kGemma;
  const bool wide = queries >= 3072 && queries % kWide == 0 && keys % kWide == 0;
  if (wide) return kWide;
  return queries % kNarrow == 0 && keys % kNarrow == 0 ? kNarrow : keys;
}

/// repeat_kv: an expanded view, then a copy.
GPUMEM_INLINE Tensor repeated(ForwardWiring& wiring, Tensor tensor, std::int64_t times, std::int64_t heads,
                              const Shared& shared) {
  if (times == 1) return tensor;
  const Tensor view = wiring.node("unsqueeze", {tensor}, {{"dim", std::int64_t{2}}});
  const Tensor expanded = wiring.node("expand", {view}, {{"shape", std::vector<std::int64_t>{-1, -1, times, -1, -1}}});
  return wiring.reshape(expanded, {heads, shared.tokens, shared.head_width});
}

GPUMEM_INLINE Tensor attention(ForwardWiring& wiring, const Module& module, Tensor input, const Shared& shared) {
  const InModule inside(wiring, module);
  const std::int64_t each = shared.head_width;
  const std::int64_t width = wiring.required(module, "q_proj", "out_features");
  const std::int64_t narrow = wiring.required(module, "k_proj", "out_features");
  if (width % each != 0 || narrow % each != 0 || width % narrow != 0) {
    wiring.fail("queries of " + std::to_string(width) + " columns and keys of " + std::to_string(narrow) +
                " do not divide into heads");
    return input;
  }
  const auto heads = [&](std::string_view projection, std::string_view norm) {
    const Tensor parted = wiring.node("unflatten", {wiring.layer(module, projection, {input})},
                                      {{"dim", std::int64_t{2}}, {"sizes", std::vector<std::int64_t>{-1, each}}});
    return wiring.permute(wiring.optional_layer(module, norm, {parted}), {0, 2, 1, 3});
  };
  const Tensor query = heads("q_proj", "q_norm");
  const Tensor key = heads("k_proj", "k_norm");
  const Tensor value = heads("v_proj", "v_norm");
  const Tensor rotated_query = wiring.rotate(query, shared.cosines, shared.sines, each);
  const Tensor rotated_key = wiring.rotate(key, shared.cosines, shared.sines, each);
  wiring.returned(rotated_key);
  wiring.returned(value);
  const std::int64_t times = width / narrow;
  const Heads all = {rotated_query, repeated(wiring, rotated_key, times, width / each, shared),
                     repeated(wiring, value, times, width / each, shared)};
  const Tensor attended = wiring.fused_attention(all, shared.mask, 0.0, !calls_kernel_on_views(module.class_name()));
  return wiring.layer(module, "o_proj", {wiring.merge_heads(attended, width)});
}

GPUMEM_INLINE Tensor feed_forward(ForwardWiring& wiring, const Module& module, Tensor input) {
  const InModule inside(wiring, module);
  const Tensor gate = wiring.layer(module, "act_fn", {wiring.layer(module, "gate_proj", {input})});
  const Tensor gated = wiring.node("mul", {gate, wiring.layer(module, "up_proj", {input})});
  return wiring.layer(module, "down_proj", {gated});
}

GPUMEM_INLINE Tensor block(ForwardWiring& wiring, const Module& module, Tensor input, const Shared& shared) {
  const InModule inside(wiring, module);
  const Tensor normed = wiring.layer(module, "input_layernorm", {input});
  const Tensor attended = wiring.add(input, attention(wiring, module.child("self_attn"), normed, shared));
  const Tensor again = wiring.layer(module, "post_attention_layernorm", {attended});
  return wiring.add(attended, feed_forward(wiring, module.child("mlp"), again));
}

GPUMEM_INLINE Tensor body(ForwardWiring& wiring, const Module& model) {
  const InModule inside(wiring, model);
  const auto layers = model.child("layers").children();
  if (layers.empty()) return wiring.missing(model, "layers"), 0;
  Shared shared{.tokens = wiring.sequence_length(),
                .head_width = head_width(wiring, layers.front().child("self_attn"))};
  Tensor hidden = wiring.layer(model, "embed_tokens", {wiring.token_input("input_ids")});
  shared.mask = wiring.expanded_mask(wiring.token_input("attention_mask"), shared.tokens);
  if (model.class_name().starts_with("Gemma")) hidden = wiring.scale(hidden);
  shared.cosines = wiring.constant("cos", {1, 1, shared.tokens, shared.head_width}, core::DType::float32);
  shared.sines = wiring.constant("sin", {1, 1, shared.tokens, shared.head_width}, core::DType::float32);
  for (const Module& layer : layers) hidden = block(wiring, layer, hidden, shared);
  return wiring.layer(model, "norm", {hidden});
}

GPUMEM_INLINE bool recognises(const model::ModelGraph& graph) { return holds_class(graph, kModels); }

GPUMEM_INLINE core::Result<model::ModelGraph> connect_model(const model::TrainingJob& job, const ops::Catalogue& ops) {
  const ModuleIndex index(*job.graph);
  const Module model = *find_model(index, kModels);
  ForwardWiring wiring(job, ops);
  if (model.class_name().ends_with("Model")) {
    body(wiring, model);
  } else {
    const InModule inside(wiring, model);
    const Tensor hidden = body(wiring, model.child("model"));
    wiring.layer(model, model.has_layer("score") ? "score" : "lm_head", {hidden});
  }
  return std::move(wiring).finish();
}

}  // namespace llama_detail

GPUMEM_INLINE const Family& llama() {
  static constexpr Family kFamily = {"llama", llama_detail::recognises, llama_detail::connect_model};
  return kFamily;
}

}  // namespace gpumem::connect
