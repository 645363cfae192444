// Ling and Ring (Bailing): one projection of queries, keys and values; experts that are modules, to which repeated
// tokens go. The second edition norms heads, turns a part of each and chooses experts by sigmoids. Edition 2.5 has
// DeepSeek's latent attention in one layer of a group, and in the others linear attention whose result is normed in
// groups of heads and gated. Source:
// inclusionAI/Ling-lite and Ling-mini-2.0, modeling_bailing_moe.py, modeling_bailing_moe_v2.py:
// BailingMoeV2SdpaAttention, BailingMoeV2Gate, BailingMoeV2SparseMoeBlock; inclusionAI/Ring-V2.5,
// modeling_bailing_moe_v2_5.py: BailingMoeV2_5LinearAttention (fla's chunk_simple_gla),
// BailingMoeV2_5MultiLatentAttention.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/latent_attention.hpp"
#include "gpumem/architectures/mamba_mixers.hpp"
#include "gpumem/architectures/mixture.hpp"

namespace gpumem::architectures {

namespace bailing {

struct Model {
  DecoderSizes sizes;
  Mixture mixture;
  std::int64_t shared = 0;  ///< width of the experts of all tokens
  std::int64_t dense = 0;   ///< blocks before the first with experts
  std::int64_t rotary_width = 1;
  std::string_view prefix = "BailingMoe";
  bool second = false;
  bool norms_heads = false;
  bool qkv_bias = false;
  bool bias = false;
  std::int64_t group = 0;   ///< layers of which the last has latent attention; 0: no layer has
  std::int64_t normed = 1;  ///< groups of heads that are normed apart
  LatentAttention latent = {};

  [[nodiscard]] std::string named(std::string_view part) const { return std::string(prefix).append(part); }
  /// Whether the layer has linear attention.
  [[nodiscard]] bool is_linear(std::int64_t layer) const {
    return group > 0 && (layer + 1) % group != 0 && layer < sizes.layers / group * group;
  }
};

inline void read_hybrid(ConfigFields& config, Model& model) {
  model.group = config.size_or({"layer_group_size"}, 5);
  model.normed = config.size_or({"group_norm_size"}, 4);
  model.latent = read_latent_attention(config, model.sizes);
  model.latent.name = "attention";
  model.latent.output = "dense";
  model.latent.bias = config.flag("use_qkv_bias", false);
  model.latent.class_name = model.named("MultiLatentAttention");
  model.latent.norm_class = model.named("RMSNorm");
  config.ignore({"linear_silu", "rope_interleave", "scoring_func", "seq_aux", "topk_method", "qk_head_dim",
                 "num_key_value_heads_for_linear_attn", "use_linear_silu", "linear_rope", "linear_mode",
                 "mtp_loss_scaling_factor"});
  if (model.normed > model.sizes.heads || model.sizes.heads % model.normed != 0)
    config.fail("does not divide the heads", "group_norm_size");
}

inline Model read(ConfigFields& config) {
  Model model;
  const std::string_view type = config.text({"model_type"}, "");
  const bool hybrid = type == "bailing_hybrid" || config.class_name().starts_with("BailingMoeV2_5");
  model.second = hybrid || type == "bailing_moe_v2" || config.class_name().starts_with("BailingMoeV2");
  model.prefix = hybrid ? "BailingMoeV2_5" : model.second ? "BailingMoeV2" : "BailingMoe";
  model.sizes = decoder_sizes(config);
  model.mixture = {.experts = config.size({"num_experts"}),
                   .per_token = config.size({"num_experts_per_tok"}),
                   .inner = config.size({"moe_intermediate_size"}),
                   .expert_class = model.named("MLP")};
  model.shared = config.count_or("num_shared_experts", 0) * model.mixture.inner;
  model.dense = config.count_or("first_k_dense_replace", 0);
  model.norms_heads = config.flag("use_qk_norm", model.second);
  model.rotary_width = rotary_width(config, model.sizes, {"partial_rotary_factor"}, 1.0);
  model.qkv_bias = config.flag("use_qkv_bias", false);
  model.bias = config.flag("use_bias", false);
  if (hybrid) read_hybrid(config, model);
  if (config.flag("norm_head", false)) config.fail("is not known", "norm_head");
  check_mixture(config, model.mixture, model.sizes.layers, "num_experts", "num_experts_per_tok");
  config.ignore({"n_group", "topk_group", "routed_scaling_factor", "norm_topk_prob", "score_function", "router_dtype",
                 "moe_router_enable_expert_bias", "moe_shared_expert_intermediate_size", "embedding_dropout",
                 "output_dropout", "max_window_layers", "use_sliding_window", "mtp_loss_scaling_factor", "norm_softmax",
                 "use_rmsnorm", "rotary_dim", "output_router_logits", "multi_gate"});
  return model;
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const InModule inside(f, "attention", model.named("SdpaAttention"));
  const DecoderSizes& s = model.sizes;
  const std::int64_t all = s.heads + 2 * s.kv_heads;
  const Tensor packed = f.linear("query_key_value", input, s.width, all * s.head_width, {.bias = model.qkv_bias});
  const std::vector<Tensor> parts =
      f.split(f.unflatten(packed, 2, {all, s.head_width}), 2, {s.heads, s.kv_heads, s.kv_heads});
  const auto heads = [&](std::size_t part, std::string_view norm) {
    const Tensor made = f.permute(parts[part], {0, 2, 1, 3});
    return model.norms_heads && !norm.empty() ? f.rms_norm(norm, made, s.head_width, model.named("RMSNorm")) : made;
  };
  const Tensor query = rotate(f, heads(0, "query_layernorm"), rotary, s.head_width);
  const Tensor key = rotate(f, heads(1, "key_layernorm"), rotary, s.head_width);
  const Tensor attended = attend_cached(f, s, {query, key, heads(2, "")});
  return f.linear("dense", attended, s.heads * s.head_width, s.width, {.bias = model.bias});
}

/// Linear attention with a decay a head, by flash-linear-attention's kernel, which makes its states again in backward.
inline Tensor linear_attention(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const InModule inside(f, "attention", model.named("LinearAttention"));
  const DecoderSizes& s = model.sizes;
  const std::int64_t inner = s.heads * s.head_width;
  const Tensor packed = f.linear("query_key_value", input, s.width, 3 * inner, {.bias = model.qkv_bias});
  const std::vector<Tensor> parts =
      f.split(f.unflatten(packed, 2, {3 * s.heads, s.head_width}), 2, {s.heads, s.heads, s.heads});
  const auto turned = [&](std::size_t part, std::string_view norm) {
    const Tensor made = f.permute(parts[part], {0, 2, 1, 3});
    const Tensor own = model.norms_heads ? f.rms_norm(norm, made, s.head_width, model.named("RMSNorm")) : made;
    return f.flatten(f.permute(rotate(f, own, rotary, s.head_width), {0, 2, 1, 3}), 2, 3);
  };
  const Tensor query = turned(0, "query_layernorm");
  const Tensor key = turned(1, "key_layernorm");
  const Tensor made = f.call("linear_scan", {query, key, f.flatten(parts[2], 2, 3)}, {{"kept", std::int64_t{3}}});
  Tensor normed = 0;
  {
    const InModule norm(f, "g_norm", model.named("GroupRMSNorm"));
    const Tensor grouped = f.unflatten(f.to(made, "float32"), 2, {model.normed, inner / model.normed});
    const Tensor plain = f.layer("norm", {}, "rms_norm", {grouped},
                                 {{"normalized_shape", inner / model.normed}, {"elementwise_affine", false}});
    normed = f.multiply(f.as_type_of(f.flatten(plain, 2, 3), made), f.parameter("weight", {inner}));
  }
  const Tensor gate = f.call("sigmoid", {f.linear("g_proj", input, s.width, inner, {.bias = false})});
  return f.linear("dense", f.multiply(normed, gate), inner, s.width, {.bias = model.bias});
}

/// The weights of the chosen experts, in float32 and of the second edition by sigmoids.
inline Tensor chosen(Forward& f, const Model& model, Tensor input) {
  const InModule gate(f, "gate", model.named("Gate"));
  const Tensor weight = f.parameter("weight", {model.mixture.experts, model.sizes.width});
  const bool wide = model.second;
  const Tensor scores =
      f.call("linear_function", {wide ? f.to(input, "float32") : input, wide ? f.to(weight, "float32") : weight});
  if (!wide) return f.slice(f.call("softmax", {f.to(scores, "float32")}), 2, 0, model.mixture.per_token);
  f.constant("expert_bias", {model.mixture.experts}, "float32");
  return f.scale(f.slice(f.call("sigmoid", {scores}), 2, 0, model.mixture.per_token));
}

/// Each token stands as often as it has experts (repeat_interleave), as the class does in training; what these make of
/// it is weighed in float32.
inline Tensor mixed(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "mlp", model.named("SparseMoeBlock"));
  const Mixture& m = model.mixture;
  const std::int64_t width = model.sizes.width;
  const auto layer = [&](std::int64_t inner, Tensor rows) {
    return gated_layer(f, width, inner, model.sizes.activation, rows);
  };
  const Tensor weights = chosen(f, model, input);
  const Tensor each = f.call("expand", {f.call("unsqueeze", {input}, {{"dim", std::int64_t{2}}})},
                             {{"shape", Sizes{-1, -1, m.per_token, -1}}});
  const Tensor repeated = f.flatten(f.contiguous(each), 1, 2);
  Tensor made = f.call("token_zeros", {repeated});
  {
    const InModule list(f, "experts", "ModuleList");
    for (std::int64_t index = f.calls_one_expert() ? m.experts - 1 : 0; index < m.experts && !f.failed(); ++index) {
      const InModule one(f, std::to_string(index), m.expert_class);
      f.part_of_expert(static_cast<std::uint32_t>(index + 1));
      const Tensor rows = f.call("gather_tokens", {repeated}, {{"experts", m.experts}, {"per_token", std::int64_t{1}}});
      made = f.call("scatter_tokens", {made, layer(m.inner, rows)});
      f.part_of_expert(0);
    }
  }
  const Tensor weighed =
      f.multiply(f.unflatten(made, 1, {-1, m.per_token}), f.call("unsqueeze", {weights}, {{"dim", std::int64_t{3}}}));
  const Tensor sum = f.as_type_of(f.call("sum", {weighed}, {{"dim", std::int64_t{2}}}), input);
  if (model.shared == 0) return sum;
  const InModule shared(f, "shared_experts", model.named("MLP"));
  return f.add(sum, layer(model.shared, input));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DecoderSizes& s = model.sizes;
  warn_of_routing(f);
  if (model.group > 0) doubt_kernels(f, "flash-linear-attention");
  if (config.count_or("num_nextn_predict_layers", 0) > 0) {
    f.doubt({model::Doubt::About::fields,
             "the layers that predict further tokens (num_nextn_predict_layers) are left out"});
  }
  const DecoderBody body = {
      .class_name = model.named("Model"), .embedding = "word_embeddings", .head = {.floats = true}};
  decoder_model(f, config, s, head, body, [&](Tensor ids, Tensor hidden) {
    const Rotary rotary = rotary_tables(f, ids, model.rotary_width);
    const Rotary latent = model.group > 0 ? rotary_tables(f, ids, model.latent.rotary_width) : rotary;
    const auto attended_by = [&](Tensor x, std::int64_t layer) {
      if (model.group == 0) return attention(f, model, x, rotary);
      return model.is_linear(layer) ? linear_attention(f, model, x, rotary)
                                    : latent_attention(f, model.latent, x, latent);
    };
    const auto norm = [&](std::string_view name, Tensor x) {
      return f.rms_norm(name, x, s.width, model.named("RMSNorm"));
    };
    hidden = stack(f, "layers", model.named("DecoderLayer"), s.layers, hidden, [&](Tensor x, std::int64_t index) {
      const Tensor attended = f.add(x, attended_by(norm("input_layernorm", x), index));
      const Tensor again = norm("post_attention_layernorm", attended);
      return f.add(attended,
                   index < model.dense ? gated_feed_forward(f, s, again, model.named("MLP")) : mixed(f, model, again));
    });
    return norm("norm", hidden);
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"BailingMoeV2_5", "bailing_hybrid", "model"},
                                                            {"BailingMoeV2", "bailing_moe_v2", "model"},
                                                            {"BailingMoe", "bailing_moe", "model"}});

/// Latent attention of the last layer of a group, which has the heads of the others.
inline void tree_group(TreeFields& t, std::int64_t heads) {
  std::int64_t last = 0;
  const std::int64_t layers = t.count_of("layers");
  const auto within = [&](std::string_view name) {
    return "layers." + std::to_string(last) + ".attention." + std::string(name);
  };
  while (last < layers && !t.has(within("kv_b_proj"))) ++last;
  const std::int64_t rank = t.value(within("kv_b_proj"), "in_features").value_or(0);
  const std::int64_t rotary = t.value(within("kv_a_proj_with_mqa"), "out_features").value_or(0) - rank;
  const bool compressed = t.has(within("q_b_proj"));
  const std::int64_t queries = t.value(within(compressed ? "q_b_proj" : "q_proj"), "out_features").value_or(0);
  const std::int64_t values = t.value(within("dense"), "in_features").value_or(0);
  if (last == layers || rank < 1 || rotary < 1 || queries / heads <= rotary || values < heads) return;
  t.set("layer_group_size", last + 1);
  t.set("kv_lora_rank", rank);
  if (compressed) t.size("q_lora_rank", within("q_a_proj"), "out_features");
  else t.set_text("q_lora_rank", "null");
  t.set("qk_rope_head_dim", rotary);
  t.set("qk_nope_head_dim", queries / heads - rotary);
  t.set("v_head_dim", values / heads);
}

/// What print(model) shows: norms and the layer that chooses experts print no sizes.
inline void read_tree(TreeFields& t) {
  constexpr std::int64_t kHead = 128;
  const bool hybrid = t.class_name().starts_with("BailingMoeV2_5");
  const bool second = t.class_name().starts_with("BailingMoeV2");
  const std::int64_t width = t.body("word_embeddings", "layers");
  const std::int64_t layers = t.count_of("layers");
  std::int64_t dense = 0;
  while (dense < layers && t.has("layers." + std::to_string(dense) + ".mlp.gate_proj")) ++dense;
  const std::string mixture = "layers." + std::to_string(dense) + ".mlp.";
  const std::int64_t experts = t.count_of(mixture + "experts");
  const std::int64_t inner = t.value(mixture + "experts.0.gate_proj", "out_features").value_or(0);
  const std::int64_t queries = t.value("layers.0.attention.dense", "in_features").value_or(0);
  const std::int64_t all = t.value("layers.0.attention.query_key_value", "out_features").value_or(0);
  if (inner == 0 || queries < kHead || all <= queries) return;
  t.set_text("first_k_dense_replace", std::to_string(dense));
  t.set("num_experts", experts);
  t.set("moe_intermediate_size", inner);
  const std::int64_t shared = t.value(mixture + "shared_experts.gate_proj", "out_features").value_or(0);
  t.set_text("num_shared_experts", std::to_string(shared / inner));
  t.set("intermediate_size", t.value("layers.0.mlp.gate_proj", "out_features").value_or(inner));
  choose_experts(t,
                 hybrid   ? "bailing_hybrid"
                 : second ? "bailing_moe_v2"
                          : "bailing_moe",
                 {width, experts, inner}, "num_experts_per_tok");
  t.set("num_attention_heads", queries / kHead);
  t.set("num_key_value_heads", std::max<std::int64_t>((all - queries) / (2 * kHead), 1));
  t.set("head_dim", kHead);
  t.assume("heads of width 128, as published models have");
  t.there("use_qk_norm", "layers.0.attention.query_layernorm");
  t.flag("use_qkv_bias", "layers.0.attention.query_key_value");
  t.flag("use_bias", "layers.0.attention.dense");
  if (second) t.set_text("partial_rotary_factor", "0.5");
  if (hybrid) tree_group(t, queries / kHead);
}

inline constexpr Architecture kArchitecture = {
    .name = "bailing",
    .model_types = names<"bailing_moe", "bailing_moe_v2", "bailing_hybrid">,
    .write = write,
    .classes = kClasses,
    .read_tree = read_tree,
    .blocks = names<"BailingMoeDecoderLayer", "BailingMoeV2DecoderLayer", "BailingMoeV2_5DecoderLayer">};

}  // namespace bailing

}  // namespace gpumem::architectures
