#pragma once

#include <array>

#include "gpumem/connect/forward.hpp"
#include "gpumem/connect/opt.hpp"

namespace gpumem::connect {

namespace opt_detail {

inline constexpr std::array<std::string_view, 4> kModels = {"OPTForCausalLM", "OPTForSequenceClassification",
                                                            "OPTModel", "OPTDecoder"};
inline constexpr double kDropout = 0.1;

GPUMEM_INLINE std::int64_t head_width(std::int64_t width) {
  constexpr std::int64_t kNarrow = 64;
  constexpr std::int64_t kMiddle = 80;
  constexpr std::int64_t kWide = 128;
  if (width > 2560 && width % kWide == 0) return kWide;
  return width == 2560 ? kMiddle : kNarrow;
}

GPUMEM_INLINE Tensor attention(ForwardWiring& wiring, const Module& module, Tensor input, Tensor mask) {
  const InModule inside(wiring, module);
  const std::int64_t width = wiring.required(module, "q_proj", "out_features");
  const std::int64_t each = head_width(width);
  const auto heads = [&](Tensor tensor) { return wiring.split_heads(tensor, width / each, each); };
  const Tensor query = heads(wiring.scale(wiring.layer(module, "q_proj", {input})));
  const Tensor key = heads(wiring.layer(module, "k_proj", {input}));
  const Tensor value = heads(wiring.layer(module, "v_proj", {input}));
  wiring.returned(key);
  wiring.returned(value);
  const Tensor attended =
      wiring.fused_attention({query, key, value}, mask, 0.0, !calls_kernel_on_views(module.class_name()));
  return wiring.layer(module, "out_proj", {wiring.merge_heads(attended, width)});
}

GPUMEM_INLINE Tensor feed_forward(ForwardWiring& wiring, const Module& module, Tensor input) {
  const Tensor hidden = wiring.layer(module, "activation_fn", {wiring.layer(module, "fc1", {input})});
  return wiring.dropout(wiring.layer(module, "fc2", {hidden}), kDropout);
}

GPUMEM_INLINE Tensor block(ForwardWiring& wiring, const Module& module, Tensor input, Tensor mask, bool norm_first) {
  const InModule inside(wiring, module);
  const auto norm = [&](std::string_view name, Tensor tensor, bool here) {
    return here ? wiring.layer(module, name, {tensor}) : tensor;
  };
  const Tensor normed = norm("self_attn_layer_norm", input, norm_first);
  const Tensor attended = wiring.dropout(attention(wiring, module.child("self_attn"), normed, mask), kDropout);
  const Tensor sum = norm("self_attn_layer_norm", wiring.add(input, attended), !norm_first);
  const Tensor again = norm("final_layer_norm", sum, norm_first);
  return norm("final_layer_norm", wiring.add(sum, feed_forward(wiring, module, again)), !norm_first);
}

GPUMEM_INLINE Tensor decoder(ForwardWiring& wiring, const Module& module) {
  const InModule inside(wiring, module);
  const Tensor ids = wiring.token_input("input_ids");
  const Tensor attention_mask = wiring.token_input("attention_mask");
  Tensor words = wiring.layer(module, "embed_tokens", {ids});
  if (module.has_layer("project_in")) words = wiring.layer(module, "project_in", {words});
  const Tensor mask = wiring.expanded_mask(attention_mask, wiring.sequence_length());
  // Positions are counted from the mask, sample by sample.
  Tensor hidden = wiring.add(words, wiring.layer(module, "embed_positions", {attention_mask}));
  const bool norm_first = module.has_layer("final_layer_norm");
  for (const Module& layer : module.child("layers").children()) {
    hidden = block(wiring, layer, hidden, mask, norm_first);
  }
  hidden = wiring.optional_layer(module, "final_layer_norm", {hidden});
  return wiring.optional_layer(module, "project_out", {hidden});
}

GPUMEM_INLINE Tensor body(ForwardWiring& wiring, const Module& model) {
  if (model.class_name() == "OPTDecoder") return decoder(wiring, model);
  const InModule inside(wiring, model);
  return decoder(wiring, model.child("decoder"));
}

GPUMEM_INLINE bool recognises(const model::ModelGraph& graph) { return holds_class(graph, kModels); }

GPUMEM_INLINE core::Result<model::ModelGraph> connect_model(const model::TrainingJob& job, const ops::Catalogue& ops) {
  const ModuleIndex index(*job.graph);
  const Module model = *find_model(index, kModels);
  ForwardWiring wiring(job, ops);
  if (!model.class_name().starts_with("OPTFor")) {
    body(wiring, model);
  } else {
    const InModule inside(wiring, model);
    const Tensor hidden = body(wiring, model.child("model"));
    wiring.layer(model, model.has_layer("score") ? "score" : "lm_head", {hidden});
  }
  return std::move(wiring).finish();
}

}  // namespace opt_detail

GPUMEM_INLINE const Family& opt() {
  static constexpr Family kFamily = {"opt", opt_detail::recognises, opt_detail::connect_model};
  return kFamily;
}

}  // namespace gpumem::connect
