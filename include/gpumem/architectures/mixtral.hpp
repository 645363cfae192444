// Llamas with experts in place of the feed-forward layer: Mixtral, Qwen2-MoE (with a shared expert), Qwen3-MoE.
// Source: transformers 4.48 (Qwen3-MoE: 4.51), models/mixtral/modeling_mixtral.py, qwen2_moe, qwen3_moe: a loop over
// the experts. Which tokens go where depends on the data; here every expert gets as many.
#pragma once

#include <array>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/mixture.hpp"

namespace gpumem::architectures {

namespace mixtral_detail {

inline constexpr std::array<std::string_view, 3> kModelTypes = {"mixtral", "qwen2_moe", "qwen3_moe"};

struct Model {
  DecoderSizes sizes;
  std::string_view prefix = "Mixtral";
  Mixture mixture;
  std::int64_t shared_inner = 0;  ///< of the expert that all tokens go to; 0: there is none
  std::int64_t every = 1;         ///< every N-th layer has experts
  bool biased_queries = false;
  bool normed_heads = false;
  bool bias = false;

  [[nodiscard]] std::string named(std::string_view part) const { return std::string(prefix).append(part); }
};

inline Model read(ConfigFields& config) {
  Model model;
  const std::string_view type = config.text({"model_type"}, "mixtral");
  model.prefix = type == "mixtral" ? "Mixtral" : type == "qwen2_moe" ? "Qwen2Moe" : "Qwen3Moe";
  model.sizes = decoder_sizes(config);
  model.mixture = {.experts = config.size({"num_local_experts", "num_experts"}),
                   .per_token = config.size({"num_experts_per_tok"}),
                   .inner = type == "mixtral" ? model.sizes.inner : config.size({"moe_intermediate_size"}),
                   .expert_class = model.named("Expert")};
  model.biased_queries = type == "qwen2_moe" && config.flag("qkv_bias", true);
  model.normed_heads = type == "qwen3_moe";
  if (type == "qwen2_moe") model.shared_inner = config.size({"shared_expert_intermediate_size"});
  model.every = config.size_or({"decoder_sparse_step"}, 1);
  model.bias = config.flag("attention_bias", false);
  check_mixture(config, model.mixture, model.sizes.layers, "num_experts", "num_experts_per_tok");
  const core::JsonValue* plain = config.find("mlp_only_layers");
  if (plain != nullptr && plain->size() > 0) config.fail("layers without experts are not known", "mlp_only_layers");
  config.ignore({"router_aux_loss_coef", "router_jitter_noise", "output_router_logits", "norm_topk_prob"});
  return model;
}

inline Tensor shared_expert(Forward& f, const Model& model, Tensor input) {
  const std::int64_t width = model.sizes.width;
  Tensor made = 0;
  {
    const InModule inside(f, "shared_expert", model.named("MLP"));
    made = gated_layer(f, width, model.shared_inner, model.sizes.activation, input);
  }
  const Tensor gate = f.linear("shared_expert_gate", input, width, 1, {.bias = false});
  return f.multiply(f.call("sigmoid", {gate}), made);
}

inline Tensor mixture(Forward& f, const Model& model, Tensor input) {
  const bool mixtral = model.prefix == "Mixtral";
  const InModule inside(f, mixtral ? "block_sparse_moe" : "mlp", model.named("SparseMoeBlock"));
  const std::int64_t width = model.sizes.width;
  const Mixture& m = model.mixture;
  const Tensor scores = f.linear("gate", input, width, m.experts, {.bias = false});
  const Tensor weights = f.call("softmax", {f.to(scores, "float32")});
  const Tensor chosen = f.as_type_of(f.slice(weights, 2, 0, m.per_token), input);
  const GatedNames names = mixtral ? GatedNames{.gate = "w1", .up = "w3", .down = "w2"} : GatedNames{};
  const auto expert = [&](Tensor rows) { return gated_layer(f, width, m.inner, model.sizes.activation, rows, names); };
  const Tensor sum = add_experts(f, m, input, chosen, f.call("token_zeros", {input}), expert);
  return model.shared_inner > 0 ? f.add(sum, shared_expert(f, model, input)) : sum;
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary, std::int64_t index) {
  const std::int64_t width = model.sizes.width;
  const std::string attention = model.named("Attention");
  const std::string norm = model.named("RMSNorm");
  const RotaryAttention options = {.class_name = attention,
                                   .input_bias = model.bias || model.biased_queries,
                                   .output_bias = model.bias,
                                   .head_norm = model.normed_heads ? std::string_view(norm) : std::string_view()};
  const Tensor normed = f.rms_norm("input_layernorm", input, width, norm);
  const Tensor attended = f.add(input, rotary_attention(f, model.sizes, normed, rotary, options));
  const Tensor again = f.rms_norm("post_attention_layernorm", attended, width, norm);
  const bool mixes = (index + 1) % model.every == 0;
  return f.add(attended,
               mixes ? mixture(f, model, again) : gated_feed_forward(f, model.sizes, again, model.named("MLP")));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  warn_of_routing(f);
  Tensor hidden = 0;
  {
    const InModule inside(f, "model", model.named("Model"));
    const Tensor ids = token_ids(f);
    hidden = f.embedding("embed_tokens", ids, s.vocabulary, s.width);
    const Rotary rotary = rotary_tables(f, ids, s.head_width);
    hidden = stack(f, "layers", model.named("DecoderLayer"), s.layers, hidden,
                   [&](Tensor x, std::int64_t index) { return block(f, model, x, rotary, index); });
    hidden = f.rms_norm("norm", hidden, s.width, model.named("RMSNorm"));
  }
  decoder_head(f, config, s, head, hidden);
}

inline constexpr auto kClasses = std::to_array<ModelClass>(
    {{"Mixtral", "mixtral", "model"}, {"Qwen2Moe", "qwen2_moe", "model"}, {"Qwen3Moe", "qwen3_moe", "model"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  const bool mixtral = t.class_name().starts_with("Mixtral");
  const std::string mixture = mixtral ? "layers.0.block_sparse_moe." : "layers.0.mlp.";
  const std::string wide = mixture + (mixtral ? "experts.0.w1" : "experts.0.gate_proj");
  t.size("num_experts", mixture + "gate", "out_features");
  t.size("moe_intermediate_size", wide, "out_features");
  t.size("intermediate_size", wide, "out_features");
  t.size("shared_expert_intermediate_size", mixture + "shared_expert.gate_proj", "out_features");
  t.flag("qkv_bias", "layers.0.self_attn.q_proj");
  t.flag("attention_bias", "layers.0.self_attn.o_proj");
  const std::int64_t experts = t.value(mixture + "gate", "out_features").value_or(0);
  const std::int64_t chosen = mixtral ? 2 : experts == 60 ? 4 : 8;
  t.set("num_experts_per_tok", std::min(chosen, std::max<std::int64_t>(experts, 1)));
  t.assume(std::to_string(chosen) + " experts a token, as published models have");
  t.labels();
  t.heads({.query = "layers.0.self_attn.q_proj",
           .key = "layers.0.self_attn.k_proj",
           .norm = "layers.0.self_attn.q_norm",
           .usual_width = 128});
}

}  // namespace mixtral_detail

[[nodiscard]] inline const Architecture& mixtral() {
  static constexpr Architecture kArchitecture = {.name = "mixtral",
                                                 .model_types = mixtral_detail::kModelTypes,
                                                 .write = mixtral_detail::write,
                                                 .classes = mixtral_detail::kClasses,
                                                 .read_tree = mixtral_detail::read_tree};
  return kArchitecture;
}

}  // namespace gpumem::architectures
