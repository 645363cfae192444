// Llamas with experts in place of the feed-forward layer: Mixtral, Qwen2-MoE (with a shared expert), Qwen3-MoE, OLMoE,
// Phi-3.5-MoE, GLM-4.5 to 4.7, ERNIE 4.5, Hunyuan, dots.llm1; MiniMax-M2, Solar Open, Hy 3 and Mellum, whose experts
// are one tensor.
// Source: transformers 4.48 (Qwen3-MoE: 4.51; dots1: 4.53; GLM-4.5, ERNIE 4.5: 4.54; Hunyuan: 4.56; MiniMax-M2: 5.0;
// Solar Open, Hy 3, Mellum: 5.16),
// models/mixtral/modeling_mixtral.py, qwen2_moe, qwen3_moe, olmoe, phimoe, glm4_moe, ernie4_5_moe, hunyuan_v1_moe,
// dots1: a loop over the experts; 5.17, the same files, for trees that print experts of one tensor each. Which tokens
// go where depends on the data; here every expert gets as many. Layers that predict further tokens (MTP) are not part
// of these models, as transformers does not load them.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/mixture.hpp"

namespace gpumem::architectures {

namespace mixtral {

/// How scores and weights of the experts are made.
enum class Router : std::uint8_t {
  softmax,    ///< a linear layer, and the softmax in float32
  wide,       ///< the same of float32 tokens (Hunyuan)
  corrected,  ///< the same, with a bias of the scores that choose (ERNIE 4.5)
  sigmoid,    ///< DeepSeek-V3's: float32 all through, with such a bias
  apart,      ///< the same, where the block has the bias (Hy 3)
  own_type,   ///< MiniMax-M2: a product in the model's type, its sigmoid in float32, with such a bias
};

/// The experts that all tokens go to.
enum class Shared : std::uint8_t {
  none,
  gated,    ///< one, times the sigmoid of a score (Qwen2-MoE)
  as_many,  ///< one as wide as a number of experts
  one,      ///< one as wide as an expert (Hunyuan)
};

struct Variant {
  std::string_view model_type;
  std::string_view prefix;                         ///< of its class names
  std::string_view experts = "num_local_experts";  ///< fields
  std::string_view per_token = "num_experts_per_tok";
  std::string_view inner = "intermediate_size";
  std::string_view bias = "attention_bias";
  std::string_view output_bias = "attention_bias";  ///< empty: there is none
  Router router = Router::softmax;
  Shared shared = Shared::none;
  std::string_view shared_name = "shared_experts";
  std::string_view block_class = "SparseMoeBlock";
  bool normed_heads = false;
  HeadNorm norm_place = HeadNorm::each;
  Turning turning = Turning::halves;
  bool expert_mlps = true;                              ///< experts are feed-forward layers of the model's own class
  bool tied = false;                                    ///< where the config does not say
  bool fused = false;                                   ///< the experts' weights are one tensor each in every release
  std::string_view shared_number = "n_shared_experts";  ///< the field of Shared::as_many
  std::int64_t shared_usual = 0;                        ///< where the config does not say
  std::int64_t dense = 0;                               ///< the first layers have no experts, as the class has it
};
inline constexpr auto kVariants =
    std::to_array<Variant>({{.model_type = "mixtral", .prefix = "Mixtral", .expert_mlps = false},
                            {.model_type = "qwen2_moe",
                             .prefix = "Qwen2Moe",
                             .experts = "num_experts",
                             .inner = "moe_intermediate_size",
                             .bias = "qkv_bias",
                             .output_bias = "",
                             .shared = Shared::gated,
                             .shared_name = "shared_expert",
                             .expert_mlps = false},
                            {.model_type = "qwen3_moe",
                             .prefix = "Qwen3Moe",
                             .experts = "num_experts",
                             .inner = "moe_intermediate_size",
                             .normed_heads = true,
                             .expert_mlps = false},
                            {.model_type = "olmoe",
                             .prefix = "Olmoe",
                             .experts = "num_experts",
                             .normed_heads = true,
                             .norm_place = HeadNorm::all},
                            {.model_type = "phimoe", .prefix = "Phimoe", .expert_mlps = false},
                            {.model_type = "glm4_moe",
                             .prefix = "Glm4Moe",
                             .experts = "n_routed_experts",
                             .inner = "moe_intermediate_size",
                             .output_bias = "",
                             .router = Router::sigmoid,
                             .shared = Shared::as_many,
                             .block_class = "MoE",
                             .shared_usual = 1,
                             .dense = 1},
                            {.model_type = "ernie4_5_moe",
                             .prefix = "Ernie4_5_Moe",
                             .experts = "moe_num_experts",
                             .per_token = "moe_k",
                             .inner = "moe_intermediate_size",
                             .bias = "use_bias",
                             .output_bias = "use_bias",
                             .router = Router::corrected,
                             .shared = Shared::as_many,
                             .turning = Turning::wide_pairs,
                             .tied = true,
                             .shared_number = "moe_num_shared_experts"},
                            {.model_type = "hunyuan_v1_moe",
                             .prefix = "HunYuanMoEV1",
                             .experts = "num_experts",
                             .per_token = "moe_topk",
                             .router = Router::wide,
                             .shared = Shared::one,
                             .shared_name = "shared_mlp",
                             .block_class = "Moe",
                             .normed_heads = true,
                             .norm_place = HeadNorm::turned},
                            {.model_type = "dots1",
                             .prefix = "Dots1",
                             .experts = "n_routed_experts",
                             .inner = "moe_intermediate_size",
                             .router = Router::sigmoid,
                             .shared = Shared::as_many,
                             .block_class = "MoE",
                             .normed_heads = true,
                             .dense = 1},
                            {.model_type = "solar_open",
                             .prefix = "SolarOpen",
                             .experts = "n_routed_experts",
                             .inner = "moe_intermediate_size",
                             .output_bias = "",
                             .router = Router::sigmoid,
                             .shared = Shared::as_many,
                             .block_class = "MoE",
                             .fused = true,
                             .shared_usual = 1},
                            {.model_type = "hy_v3",
                             .prefix = "HYV3",
                             .experts = "num_experts",
                             .inner = "moe_intermediate_size",
                             .router = Router::apart,
                             .shared = Shared::as_many,
                             .block_class = "MoE",
                             .normed_heads = true,
                             .fused = true,
                             .shared_number = "num_shared_experts",
                             .shared_usual = 1,
                             .dense = 1},
                            {.model_type = "mellum",
                             .prefix = "Mellum",
                             .inner = "moe_intermediate_size",
                             .normed_heads = true,
                             .fused = true},
                            {.model_type = "minimax_m2",
                             .prefix = "MiniMaxM2",
                             .output_bias = "",
                             .router = Router::own_type,
                             .normed_heads = true,
                             .norm_place = HeadNorm::all,
                             .fused = true}});
inline constexpr auto kModelTypes = model_types_of(kVariants);

struct Model {
  DecoderSizes sizes;
  Variant variant = kVariants[0];
  Mixture mixture;
  std::int64_t shared_inner = 0;  ///< of the expert that all tokens go to; 0: there is none
  std::vector<bool> mixes;        ///< by layer: it has experts
  std::vector<bool> slides = {};  ///< by layer: its window does, and turns by tables of its own (Mellum)
  std::int64_t rotary_width = 1;
  bool bias = false;
  bool output_bias = false;
  bool mlp_bias = false;
  bool head_bias = false;
  bool normed_heads = false;
  bool clips = false;
  bool layer_norms = false;  ///< in place of RMS norms (Phi-3.5-MoE)
  bool fused = false;        ///< the experts' weights are one tensor each, as transformers 5 has them
  bool wide_sum = false;     ///< of the chosen and the shared experts: in float32

  [[nodiscard]] std::string named(std::string_view part) const { return std::string(variant.prefix).append(part); }
  [[nodiscard]] bool is(std::string_view type) const { return variant.model_type == type; }
};

/// Which layers have experts.
inline std::vector<bool> mixing_layers(ConfigFields& config, const Model& model) {
  const std::int64_t layers = model.sizes.layers;
  std::vector<bool> mixes(static_cast<std::size_t>(layers), true);
  std::vector<bool> listed =
      config.layers_with("mlp_layer_types", layers, std::string_view("sparse"), std::string_view("dense"));
  if (!listed.empty()) return listed;
  const bool says = model.variant.router == Router::sigmoid && model.variant.dense > 0;
  const std::int64_t dense = says ? config.count_or("first_k_dense_replace", model.variant.dense) : model.variant.dense;
  const bool ernie = model.is("ernie4_5_moe");
  const std::int64_t first = ernie ? config.count_or("moe_layer_start_index", 1) : dense;
  const core::JsonValue* end = config.find("moe_layer_end_index");
  const bool to_end = !ernie || end == nullptr || end->is(-1);
  const std::int64_t last = to_end ? layers : config.count_or("moe_layer_end_index", layers);
  const std::int64_t every = config.size_or({ernie ? "moe_layer_interval" : "decoder_sparse_step"}, 1);
  for (std::int64_t index = 0; index < layers; ++index) {
    mixes[static_cast<std::size_t>(index)] = index >= first && index <= last && (index + 1) % every == 0;
  }
  const std::vector<bool> plain = config.layers_listed("mlp_only_layers", layers);
  for (std::size_t at = 0; at < plain.size(); ++at) mixes[at] = mixes[at] && !plain[at];
  return mixes;
}

inline std::int64_t shared_inner(ConfigFields& config, const Model& model) {
  const std::int64_t inner = model.mixture.inner;
  switch (model.variant.shared) {
    case Shared::none: return 0;
    case Shared::gated: return config.size({"shared_expert_intermediate_size"});
    case Shared::one: config.ignore({"num_shared_expert"}); return inner;
    case Shared::as_many: break;
  }
  const std::string_view field = model.variant.shared_number;
  const std::int64_t many = config.count_or(field, model.variant.shared_usual);
  if (many > ConfigFields::kLargestSize / std::max<std::int64_t>(inner, 1))
    config.fail("makes the shared experts too wide", field);
  return many * inner;
}

/// Elements of a head that are turned: a share of them, or as many as rotary_dim says.
inline std::int64_t turned_width(ConfigFields& config, const Model& model) {
  const std::int64_t width = config.size_or({"rotary_dim"}, 0);
  if (width == 0 || width > model.sizes.head_width || width % 2 != 0)
    return rotary_width(config, model.sizes, {"partial_rotary_factor"}, model.is("glm4_moe") ? 0.5 : 1.0);
  config.ignore({"partial_rotary_factor"});
  return width;
}

/// Fields that change no memory here, or nothing in training: layers that predict further tokens among them.
inline void ignore_fields(ConfigFields& config, const Model& model) {
  config.ignore({"router_aux_loss_coef", "router_jitter_noise", "output_router_logits", "norm_topk_prob",
                 "num_nextn_predict_layers", "n_group", "topk_group", "routed_scaling_factor", "scoring_func",
                 "input_jitter_noise", "use_qk_norm", "moe_norm_min", "topk_method", "router_scaling_factor"});
  if (model.is("hunyuan_v1_moe")) config.ignore({"moe_intermediate_size", "moe_layer_num_skipped", "moe_drop_tokens"});
  if (model.fused)
    config.ignore({"use_mtp", "mtp_transformer_layers", "num_mtp_modules", "qk_norm_type", "use_routing_bias"});
}

inline Model read(ConfigFields& config) {
  Model model;
  const std::string_view type = config.text({"model_type"}, "mixtral");
  for (const Variant& variant : kVariants) {
    if (variant.model_type == type) model.variant = variant;
  }
  const Variant& variant = model.variant;
  // Solar Open has no layer without experts, and no size of one.
  model.sizes = decoder_sizes(config, {.tied = variant.tied, .inner_factor = type == "solar_open" ? 1 : 0});
  // transformers 5 saves Qwen3-MoE's and others' number under the name that Mixtral has for it.
  model.mixture = {.experts = config.size_of_layers(variant.experts, config.count_or("num_local_experts", 0)),
                   .per_token = config.size_of_layers(variant.per_token, 0),
                   .inner = config.size_of_layers(variant.inner, 0),
                   .expert_class = model.named(variant.expert_mlps ? "MLP" : "Expert")};
  for (const auto& [found, field] :
       {std::pair{model.mixture.experts, variant.experts}, std::pair{model.mixture.per_token, variant.per_token},
        std::pair{model.mixture.inner, variant.inner}}) {
    if (found == 0) (void)config.size({field});
  }
  model.bias = config.flag(variant.bias, variant.model_type == "qwen2_moe");
  model.output_bias = !variant.output_bias.empty() && config.flag(variant.output_bias, false);
  const bool ernie = model.is("ernie4_5_moe");
  model.mlp_bias = ernie ? model.bias : model.is("hy_v3") && config.flag("mlp_bias", false);
  model.wide_sum = model.is("hy_v3") && config.flag("enable_moe_fp32_combine", true);
  model.head_bias = (ernie && model.bias) || (model.is("phimoe") && config.flag("lm_head_bias", false));
  model.layer_norms = model.is("phimoe");
  model.normed_heads = variant.normed_heads || (model.is("glm4_moe") && config.flag("use_qk_norm", false));
  model.clips = model.is("olmoe") && config.find("clip_qkv") != nullptr;
  model.fused = variant.fused || config.fuses_experts();
  model.rotary_width = turned_width(config, model);
  model.shared_inner = shared_inner(config, model);
  model.mixes = mixing_layers(config, model);
  if (model.is("mellum")) {
    model.slides = config.layers_with("layer_types", model.sizes.layers, std::string_view("sliding_attention"),
                                      std::string_view("full_attention"));
  }
  check_mixture(config, model.mixture, model.sizes.layers, variant.experts, variant.per_token);
  ignore_fields(config, model);
  return model;
}

/// The shared expert's result; its parts have the names of a feed-forward layer.
inline Tensor shared_expert(Forward& f, const Model& model, Tensor input) {
  const std::int64_t width = model.sizes.width;
  Tensor made = 0;
  {
    const InModule inside(f, model.variant.shared_name, model.named("MLP"));
    made = gated_layer(f, width, model.shared_inner, model.sizes.activation, input, {.bias = model.mlp_bias});
  }
  if (model.variant.shared != Shared::gated) return made;
  const Tensor gate = f.linear("shared_expert_gate", input, width, 1, {.bias = false});
  return f.multiply(f.call("sigmoid", {gate}), made);
}

/// Softmax of the scores of a linear layer, as a weight an expert that is chosen.
inline Tensor softmax_weights(Forward& f, const Model& model, Tensor input) {
  const Mixture& m = model.mixture;
  const Router router = model.variant.router;
  const bool hunyuan = router == Router::wide;
  const bool phi = model.fused && model.is("phimoe");
  const Tensor tokens = router == Router::softmax ? input : f.to(input, "float32");
  Tensor scores = 0;
  if (model.fused && !hunyuan && !phi) {
    scores = held_scores(f, "gate", model.named("TopKRouter"), m, model.sizes.width, tokens, router != Router::softmax);
  } else {
    if (hunyuan) f.enter("gate", model.named("Gate"));
    const std::string_view name = hunyuan ? "wg" : phi ? "router" : "gate";
    scores = f.linear(name, tokens, model.sizes.width, m.experts, {.bias = false});
    if (hunyuan) f.leave();
  }
  const Tensor weights = f.call("softmax", {f.to(scores, "float32")});
  if (router == Router::corrected) {
    const InModule inside(f, "moe_statics", model.named("Statics"));
    f.parameter("e_score_correction_bias", {1, m.experts}, true);
  }
  const Tensor chosen = f.slice(weights, 2, 0, m.per_token);
  return model.fused && model.is("mixtral") ? chosen : f.as_type_of(chosen, input);
}

/// Weights of the experts that are chosen, in float32. The bias of the choice is a buffer.
inline Tensor sigmoid_weights(Forward& f, const Model& model, Tensor input) {
  const Mixture& m = model.mixture;
  const bool inside = model.variant.router == Router::sigmoid;
  const bool wide = inside || model.variant.router == Router::apart;
  if (!inside) f.constant("e_score_correction_bias", {m.experts}, "float32");
  const InModule gate(f, "gate", model.named(inside ? "TopkRouter" : "TopKRouter"));
  const Tensor weight = f.parameter("weight", {m.experts, model.sizes.width});
  const Tensor scores =
      f.call("linear_function", {wide ? f.to(input, "float32") : input, wide ? f.to(weight, "float32") : weight});
  if (inside) f.constant("e_score_correction_bias", {m.experts}, "float32");
  const Tensor weights = f.call("sigmoid", {wide ? scores : f.to(scores, "float32")});
  return f.scale(f.slice(weights, 2, 0, m.per_token));
}

/// The experts' sum, of weights in the type that their router leaves.
inline Tensor routed(Forward& f, const Model& model, Tensor input) {
  const Mixture& m = model.mixture;
  const std::int64_t width = model.sizes.width;
  const Router router = model.variant.router;
  const bool soft = router != Router::sigmoid && router != Router::apart && router != Router::own_type;
  const Tensor chosen = soft ? softmax_weights(f, model, input) : sigmoid_weights(f, model, input);
  if (model.fused) {
    const std::string experts = model.named("Experts");
    return add_grouped_experts(f, m, {.list_class = experts, .width = width, .activation = model.sizes.activation},
                               input, chosen);
  }
  const bool mixtral = model.is("mixtral") || model.is("phimoe");
  GatedNames names = mixtral ? GatedNames{.gate = "w1", .up = "w3", .down = "w2"} : GatedNames{};
  names.bias = model.mlp_bias;
  const auto expert = [&](Tensor rows) { return gated_layer(f, width, m.inner, model.sizes.activation, rows, names); };
  if (soft) return add_experts(f, m, input, chosen, f.call("token_zeros", {input}), expert);
  const Tensor zeros = f.call("token_zeros", {f.to(input, "float32")});  // in the weights' type
  return f.as_type_of(add_experts(f, m, input, chosen, zeros, expert), input);
}

inline Tensor mixture(Forward& f, const Model& model, Tensor input) {
  const bool mixtral = model.is("mixtral") || model.is("phimoe");
  const InModule inside(f, mixtral && !model.fused ? "block_sparse_moe" : "mlp",
                        model.named(model.variant.block_class));
  if (model.shared_inner == 0) return routed(f, model, input);
  const Tensor sum = routed(f, model, input);
  if (!model.wide_sum) return f.add(sum, shared_expert(f, model, input));
  const Tensor wide = f.to(sum, "float32");
  return f.as_type_of(f.add(wide, f.to(shared_expert(f, model, input), "float32")), input);
}

inline Tensor norm_of(Forward& f, const Model& model, std::string_view name, Tensor input) {
  if (model.layer_norms) return f.layer_norm(name, input, model.sizes.width);
  return f.rms_norm(name, input, model.sizes.width, model.named("RMSNorm"));
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary, std::int64_t index) {
  const std::string attention = model.named("Attention");
  const std::string norm = model.named("RMSNorm");
  const bool turned = model.variant.norm_place == HeadNorm::turned;
  const RotaryAttention options = {.class_name = attention,
                                   .input_bias = model.bias,
                                   .output_bias = model.output_bias,
                                   .head_norm = model.normed_heads ? std::string_view(norm) : std::string_view(),
                                   .norm_place = model.variant.norm_place,
                                   .query_norm = turned ? "query_layernorm" : "q_norm",
                                   .key_norm = turned ? "key_layernorm" : "k_norm",
                                   .turning = model.variant.turning,
                                   .clips = model.clips};
  const Tensor normed = norm_of(f, model, "input_layernorm", input);
  const Tensor attended = f.add(input, rotary_attention(f, model.sizes, normed, rotary, options));
  const Tensor again = norm_of(f, model, "post_attention_layernorm", attended);
  const bool mixes = model.mixes[static_cast<std::size_t>(index)];
  return f.add(attended, mixes ? mixture(f, model, again)
                               : gated_feed_forward(f, model.sizes, again, model.named("MLP"), model.mlp_bias));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  warn_of_routing(f);
  const DecoderBody body = {.class_name = model.named("Model"), .head = {.bias = model.head_bias}};
  decoder_model(f, config, s, head, body, [&](Tensor ids, Tensor hidden) {
    const Rotary rotary = rotary_tables(f, ids, model.rotary_width);
    const auto slides = std::count(model.slides.begin(), model.slides.end(), true);
    const bool both = slides > 0 && slides < s.layers;
    const Rotary sliding = both ? rotary_tables(f, ids, model.rotary_width) : rotary;
    hidden = stack(f, "layers", model.named("DecoderLayer"), s.layers, hidden, [&](Tensor x, std::int64_t index) {
      const bool slid = both && model.slides[static_cast<std::size_t>(index)];
      return block(f, model, x, slid ? sliding : rotary, index);
    });
    return norm_of(f, model, "norm", hidden);
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Mixtral", "mixtral", "model"},
                                                            {"Qwen2Moe", "qwen2_moe", "model"},
                                                            {"Qwen3Moe", "qwen3_moe", "model"},
                                                            {"Olmoe", "olmoe", "model"},
                                                            {"Phimoe", "phimoe", "model"},
                                                            {"Glm4Moe", "glm4_moe", "model"},
                                                            {"Ernie4_5_Moe", "ernie4_5_moe", "model", kAlwaysTied},
                                                            {"HunYuanMoEV1", "hunyuan_v1_moe", "model", kAlwaysTied},
                                                            {"Dots1", "dots1", "model"},
                                                            {"SolarOpen", "solar_open", "model"},
                                                            {"HYV3", "hy_v3", "model"},
                                                            {"Mellum", "mellum", "model"},
                                                            {"MiniMaxM2", "minimax_m2", "model"}});

/// The first layer with experts, of those whose first layers are dense; and what its experts are.
inline void read_experts(TreeFields& t, const Variant& variant) {
  const bool old = t.has("layers.0.block_sparse_moe");
  const std::string part = old ? ".block_sparse_moe." : ".mlp.";
  const std::int64_t layers = std::min(t.count_of("layers"), ConfigFields::kMostLayers);
  const std::int64_t first = layers_before_experts(t, part + "experts");
  const auto at = [&](std::string_view name) { return "layers." + std::to_string(first) + part + std::string(name); };
  t.set("first_k_dense_replace", first);
  if (variant.model_type == "hy_v3" || variant.model_type == "mellum") {
    std::string kinds;
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      const bool mixes = t.has("layers." + std::to_string(layer) + ".mlp.experts");
      kinds += (kinds.empty() ? "" : ", ") + std::string(mixes ? "\"sparse\"" : "\"dense\"");
    }
    t.set_text("mlp_layer_types", "[" + kinds + "]");
  }
  t.set("moe_layer_start_index", first);
  t.size("shared_expert_intermediate_size", at("shared_expert.gate_proj"), "out_features");
  const std::string wide = at(old ? "experts.0.w1" : "experts.0.gate_proj");
  const bool fused = first < layers && !t.has(wide);
  const std::int64_t inner = fused ? fused_experts(t, {.model_type = variant.model_type,
                                                       .router = at("gate"),
                                                       .list = at("experts"),
                                                       .number = variant.experts,
                                                       .per_token = variant.per_token,
                                                       .inner = variant.inner,
                                                       .query = "layers.0.self_attn.q_proj"})
                                   : t.value(wide, "out_features").value_or(1);
  const std::int64_t shared = t.value(at("shared_experts.gate_proj"), "out_features").value_or(0);
  t.set(variant.shared_number, shared / std::max<std::int64_t>(inner, 1));
  if (fused) return;
  t.count(variant.experts, at("experts"));
  t.size(variant.inner, wide, "out_features");
  const std::int64_t experts = t.count_of(at("experts"));
  const std::int64_t width = t.value("embed_tokens", "embedding_dim").value_or(0);
  choose_experts(t, variant.model_type, {width, experts, inner}, variant.per_token);
}

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  const auto is_its = [&](const ModelClass& row) { return t.class_name().starts_with(row.prefix); };
  const auto row = std::find_if(kClasses.begin(), kClasses.end(), is_its);
  const auto has_type = [&](const Variant& each) { return each.model_type == row->model_type; };
  const Variant& variant = *std::find_if(kVariants.begin(), kVariants.end(), has_type);
  t.size("intermediate_size", "layers.0.mlp.gate_proj", "out_features");
  const bool norms = t.has("layers.0.self_attn.q_norm");
  t.flag(variant.bias, "layers.0.self_attn.q_proj");
  const bool apart = !variant.output_bias.empty() && variant.output_bias != variant.bias;
  if (apart) t.flag(variant.output_bias, "layers.0.self_attn.o_proj");
  t.flag("lm_head_bias", "/lm_head");
  t.set_flag("use_qk_norm", norms);
  t.labels();
  read_experts(t, variant);
  if (variant.model_type == "minimax_m2") t.set("rotary_dim", 64);
  t.flag("mlp_bias", "layers.0.mlp.gate_proj");
  if (!t.has("layers.0.mlp.gate_proj") && variant.inner != "intermediate_size") t.set("intermediate_size", 1);
  const bool all = variant.norm_place == HeadNorm::all;
  t.heads({.query = "layers.0.self_attn.q_proj",
           .key = "layers.0.self_attn.k_proj",
           .norm = all                                      ? std::string_view()
                   : variant.norm_place == HeadNorm::turned ? "layers.0.self_attn.query_layernorm"
                                                            : "layers.0.self_attn.q_norm",
           .usual_width = 128});
}

inline constexpr Architecture kArchitecture = {
    .name = "mixtral", .model_types = kModelTypes, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace mixtral

}  // namespace gpumem::architectures
