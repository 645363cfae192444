// DeepSeek-V2 and V3: attention over keys and values that are compressed (MLA), routed experts and shared ones after
// the first dense layers. The module that predicts further tokens (MTP) is not part of it, as transformers does not
// load it. Which groups experts are chosen from changes no memory here.
// Source: transformers 4.51, models/deepseek_v3/modeling_deepseek_v3.py; arXiv:2412.19437 for the sizes. V2 turns its
// positions as complex numbers; it is taken as V3 here.
#pragma once

#include <algorithm>
#include <array>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/latent_attention.hpp"
#include "gpumem/architectures/mixture.hpp"

namespace gpumem::architectures {

namespace deepseek_detail {

inline constexpr std::array<std::string_view, 2> kModelTypes = {"deepseek_v2", "deepseek_v3"};

struct Model {
  DecoderSizes sizes;
  std::string_view prefix = "DeepseekV3";
  LatentAttention attention;
  Mixture mixture;
  std::int64_t shared = 0;  ///< experts that all tokens go to
  std::int64_t dense = 0;   ///< the first layers, this many, have no experts
  std::int64_t every = 1;   ///< after them, every this many layers one has experts
  bool corrects = false;    ///< V3: a bias of the scores that choose the experts

  [[nodiscard]] std::string named(std::string_view part) const { return std::string(prefix).append(part); }
};

/// A count that may be 0 or null, as first_k_dense_replace is.
inline std::int64_t count_or(ConfigFields& config, std::string_view name, std::int64_t otherwise) {
  const core::JsonValue* value = config.find(name);
  if (value != nullptr && value->is(0)) return 0;
  return config.size_or({name}, otherwise);
}

inline Model read(ConfigFields& config) {
  Model model;
  const bool third = config.text({"model_type"}, "deepseek_v3") == "deepseek_v3";
  model.prefix = third ? "DeepseekV3" : "DeepseekV2";
  model.sizes = decoder_sizes(config);
  const DecoderSizes& sizes = model.sizes;
  model.attention = {.width = sizes.width,
                     .heads = sizes.heads,
                     .query_rank = config.size_or({"q_lora_rank"}, 0),
                     .kv_rank = config.size({"kv_lora_rank"}),
                     .plain_width = config.size({"qk_nope_head_dim"}),
                     .rotary_width = config.size({"qk_rope_head_dim"}),
                     .value_width = config.size({"v_head_dim"}),
                     .bias = config.flag("attention_bias", false),
                     .dropout = sizes.attention_dropout,
                     .class_name = model.named("Attention"),
                     .norm_class = model.named("RMSNorm")};
  check_latent_attention(config, model.attention, "qk_nope_head_dim");
  model.dense = model.sizes.layers;
  model.corrects = third && config.text({"topk_method"}, "noaux_tc") == "noaux_tc";
  if (config.has("n_routed_experts")) {
    model.mixture = {.experts = config.size({"n_routed_experts"}),
                     .per_token = config.size({"num_experts_per_tok"}),
                     .inner = config.size({"moe_intermediate_size"}),
                     .expert_class = model.named("MLP")};
    check_mixture(config, model.mixture, model.sizes.layers, "n_routed_experts", "num_experts_per_tok");
    model.shared = count_or(config, "n_shared_experts", 0);
    model.dense = count_or(config, "first_k_dense_replace", 0);
    model.every = config.size_or({"moe_layer_freq"}, 1);
    if (model.shared * model.mixture.inner > ConfigFields::kLargestSize)
      config.fail("makes the shared experts too wide", "n_shared_experts");
  }
  config.ignore({"aux_loss_alpha", "ep_size", "n_group", "norm_topk_prob", "num_nextn_predict_layers",
                 "routed_scaling_factor", "scoring_func", "seq_aux", "topk_group", "rope_interleave", "topk_method"});
  return model;
}

/// Scores and weights of the experts are float32, and so is the sum.
inline Tensor mixture(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "mlp", model.named("MoE"));
  const std::int64_t width = model.sizes.width;
  const Mixture& m = model.mixture;
  const Tensor wide = f.to(input, "float32");
  Tensor weights = 0;
  {
    const InModule gate(f, "gate", model.named("TopkRouter"));
    const Tensor matrix = f.to(f.parameter("weight", {m.experts, width}), "float32");
    const Tensor scores = f.call("sigmoid", {f.call("linear_function", {wide, matrix})});
    if (model.corrects) (void)f.parameter("e_score_correction_bias", {m.experts});
    weights = f.scale(f.slice(scores, 2, 0, m.per_token));
  }
  const auto expert = [&](Tensor rows) { return gated_layer(f, width, m.inner, model.sizes.activation, rows); };
  const Tensor sum = f.as_type_of(add_experts(f, m, input, weights, f.call("token_zeros", {wide}), expert), input);
  if (model.shared == 0) return sum;
  const InModule shared(f, "shared_experts", model.named("MLP"));
  return f.add(sum, gated_layer(f, width, model.shared * m.inner, model.sizes.activation, input));
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary, std::int64_t index) {
  const std::int64_t width = model.sizes.width;
  const std::string norm = model.named("RMSNorm");
  const Tensor normed = f.rms_norm("input_layernorm", input, width, norm);
  const Tensor attended = f.add(input, latent_attention(f, model.attention, normed, rotary));
  const Tensor again = f.rms_norm("post_attention_layernorm", attended, width, norm);
  const bool mixes = index >= model.dense && index % model.every == 0;
  return f.add(attended,
               mixes ? mixture(f, model, again) : gated_feed_forward(f, model.sizes, again, model.named("MLP")));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DecoderSizes& s = model.sizes;
  if (model.dense < s.layers) warn_of_routing(f);
  Tensor hidden = 0;
  {
    const InModule inside(f, "model", model.named("Model"));
    const Tensor ids = token_ids(f);
    hidden = f.embedding("embed_tokens", ids, s.vocabulary, s.width);
    const Rotary rotary = rotary_tables(f, ids, model.attention.rotary_width);
    hidden = stack(f, "layers", model.named("DecoderLayer"), s.layers, hidden,
                   [&](Tensor x, std::int64_t index) { return block(f, model, x, rotary, index); });
    hidden = f.rms_norm("norm", hidden, s.width, model.named("RMSNorm"));
  }
  decoder_head(f, config, s, head, hidden);
}

inline constexpr auto kClasses =
    std::to_array<ModelClass>({{"DeepseekV2", "deepseek_v2", "model"}, {"DeepseekV3", "deepseek_v3", "model"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  const std::string attention = "layers.0.self_attn.";
  t.size("q_lora_rank", attention + "q_a_proj", "out_features");
  t.size("kv_lora_rank", attention + "kv_a_layernorm", "normalized_shape");
  t.flag("attention_bias", attention + "o_proj");
  const auto out = [&](std::string_view name) {
    return t.value(attention + std::string(name), "out_features").value_or(0);
  };
  const std::int64_t queries = t.has(attention + "q_b_proj") ? out("q_b_proj") : out("q_proj");
  const std::int64_t rotary =
      out("kv_a_proj_with_mqa") - t.value(attention + "kv_a_layernorm", "normalized_shape").value_or(0);
  const std::int64_t values = t.value(attention + "o_proj", "in_features").value_or(0);
  // Heads make queries of plain + rotary, keys and values of plain + value, and values: three equations.
  const std::int64_t turned = queries - out("kv_b_proj") + values;
  if (rotary > 0 && turned > 0 && turned % rotary == 0) {
    const std::int64_t heads = turned / rotary;
    t.set("num_attention_heads", heads);
    t.set("num_key_value_heads", heads);
    t.set("qk_rope_head_dim", rotary);
    t.set("qk_nope_head_dim", queries / heads - rotary);
    t.set("v_head_dim", values / heads);
  }
  std::int64_t dense = 0;
  const std::int64_t layers = t.count_of("layers");
  while (dense < layers && t.has("layers." + std::to_string(dense) + ".mlp.gate_proj")) ++dense;
  t.size("intermediate_size", "layers.0.mlp.gate_proj", "out_features");
  if (dense == 0) t.size("intermediate_size", "layers.0.mlp.shared_experts.gate_proj", "out_features");
  const std::string mixture = "layers." + std::to_string(dense) + ".mlp.";
  if (dense == layers || !t.has(mixture + "experts.0.gate_proj")) return;
  t.set("first_k_dense_replace", dense);
  t.count("n_routed_experts", mixture + "experts");
  t.size("moe_intermediate_size", mixture + "experts.0.gate_proj", "out_features");
  const std::int64_t inner = t.value(mixture + "experts.0.gate_proj", "out_features").value_or(1);
  const std::int64_t shared = t.value(mixture + "shared_experts.gate_proj", "out_features").value_or(0);
  t.set("n_shared_experts", shared / std::max<std::int64_t>(inner, 1));
  const std::int64_t chosen = t.class_name().starts_with("DeepseekV3") ? 8 : 6;
  t.set("num_experts_per_tok", chosen);
  t.assume(std::to_string(chosen) + " experts a token, as published models have");
}

}  // namespace deepseek_detail

[[nodiscard]] inline const Architecture& deepseek() {
  static constexpr Architecture kArchitecture = {.name = "deepseek",
                                                 .model_types = deepseek_detail::kModelTypes,
                                                 .write = deepseek_detail::write,
                                                 .classes = deepseek_detail::kClasses,
                                                 .read_tree = deepseek_detail::read_tree};
  return kArchitecture;
}

}  // namespace gpumem::architectures
