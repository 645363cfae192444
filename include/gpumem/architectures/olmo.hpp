// OLMo 1 to 3 and EXAONE 4: Llama's block with layer norms that hold no parameters (OLMo 1), or with norms after
// attention and feed-forward layer and over all queries and keys (OLMo 2 and 3) or those of each head (EXAONE 4).
// FlexOlmo has experts in OLMo 2's block; EXAONE MoE (K-EXAONE) has EXAONE 4's attention in Llama's block, and experts
// after the first layer. OLMo Hybrid: three of four layers are gated delta nets, the others OLMo 3's.
// Source: transformers 4.48, models/olmo/modeling_olmo.py, olmo2; 4.54, exaone4; 4.57, olmo3, flex_olmo (a loop over
// its experts; trees of 5 print one tensor each); 5.16, exaone_moe, olmo_hybrid, with the kernels of causal-conv1d and
// flash-linear-attention (see ops/scan.hpp).
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/mamba_mixers.hpp"
#include "gpumem/architectures/mixture.hpp"

namespace gpumem::architectures {

namespace olmo {

struct Variant {
  std::string_view model_type;
  std::string_view prefix;  ///< of its class names
  bool second = true;       ///< OLMo 2, and 3, whose layers are the same
  bool behind = true;       ///< norms stand behind attention and feed-forward layer
  bool exaone = false;
  bool mixes = false;  ///< it has experts
};
inline constexpr auto kVariants = std::to_array<Variant>(
    {{.model_type = "olmo", .prefix = "Olmo", .second = false, .behind = false},
     {.model_type = "olmo2", .prefix = "Olmo2"},
     {.model_type = "olmo3", .prefix = "Olmo3"},
     {.model_type = "flex_olmo", .prefix = "FlexOlmo", .mixes = true},
     {.model_type = "exaone4", .prefix = "Exaone4", .exaone = true},
     {.model_type = "exaone_moe", .prefix = "ExaoneMoe", .behind = false, .exaone = true, .mixes = true}});
inline constexpr auto kModelTypes = model_types_of(kVariants);

struct Model {
  DecoderSizes sizes;
  std::string_view prefix = "Olmo";
  bool second = false;
  bool behind = false;
  bool exaone = false;
  std::vector<bool> sliding = {};  ///< by layer: its window slides; EXAONE turns only these, where there are any
  bool bias = false;
  bool clips = false;
  Mixture mixture = {};
  std::vector<bool> mixes = {};   ///< by layer: it has experts
  bool fused = false;             ///< the experts' weights are one tensor each
  std::int64_t shared_inner = 0;  ///< of the experts that all tokens go to (EXAONE)

  [[nodiscard]] std::string named(std::string_view part) const { return std::string(prefix).append(part); }
};

inline void read_mixture(ConfigFields& config, Model& model) {
  const std::int64_t layers = model.sizes.layers;
  model.mixture = {.experts = config.size({"num_experts"}),
                   .per_token = config.size({"num_experts_per_tok"}),
                   .inner = model.exaone ? config.size({"moe_intermediate_size"}) : model.sizes.inner,
                   .expert_class = model.named("MLP")};
  check_mixture(config, model.mixture, layers, "num_experts", "num_experts_per_tok");
  model.fused = model.exaone || config.fuses_experts();
  model.mixes.assign(static_cast<std::size_t>(layers), true);
  config.ignore({"router_aux_loss_coef", "output_router_logits", "norm_topk_prob"});
  if (!model.exaone) return;
  const std::int64_t shared = config.count_or("num_shared_experts", 1);
  if (shared > ConfigFields::kLargestSize / model.mixture.inner)
    config.fail("makes the shared experts too wide", "num_shared_experts");
  model.shared_inner = shared * model.mixture.inner;
  const std::int64_t dense = std::min(config.count_or("first_k_dense_replace", 1), layers);
  std::vector<bool> listed =
      config.layers_with("mlp_layer_types", layers, std::string_view("sparse"), std::string_view("dense"));
  if (!listed.empty()) model.mixes = std::move(listed);
  else std::fill_n(model.mixes.begin(), dense, false);
  config.ignore({"n_group", "topk_group", "routed_scaling_factor", "scoring_func", "topk_method", "is_moe_layer",
                 "num_nextn_predict_layers"});
}

/// EXAONE's layers with a window, by sliding_window_pattern: all but every n-th; or an L for each in a text that
/// repeats, with G for the others, of which the last layer is one.
inline std::vector<bool> repeated_windows(ConfigFields& config, std::int64_t layers) {
  const core::JsonValue* const named = config.find("sliding_window_pattern");
  const bool spelt = named != nullptr && named->is(core::JsonValue::Kind::text);
  const std::string text(spelt ? named->text() : std::string_view("G"));
  const bool known =
      !config.is_null("sliding_window_pattern") && !text.empty() && text.find_first_not_of("LG") == std::string::npos;
  if (!known) config.fail("is neither a whole number nor a text of L and G", "sliding_window_pattern");
  const std::int64_t every = spelt ? 1 : config.size_or({"sliding_window_pattern"}, 4);
  std::vector<bool> slides;
  for (std::int64_t at = 0; known && at < layers; ++at) {
    const bool local = text[static_cast<std::size_t>(at) % text.size()] == 'L' && at + 1 < layers;
    slides.push_back(spelt ? local : (at + 1) % every != 0);
  }
  return slides;
}

inline Model read(ConfigFields& config) {
  Model model;
  const std::string_view type = config.text({"model_type"}, "olmo");
  const auto is_its = [&](const Variant& each) { return each.model_type == type; };
  const auto* const found = std::find_if(kVariants.begin(), kVariants.end(), is_its);
  const Variant& variant = found == kVariants.end() ? kVariants.front() : *found;
  model.second = variant.second;
  model.behind = variant.behind;
  model.exaone = variant.exaone;
  model.prefix = variant.prefix;
  model.sizes = decoder_sizes(config);
  if (variant.mixes) read_mixture(config, model);
  // Both classes' windows slide over 4,096 where the config says nothing (4.54 to 5.16, configuration_exaone4.py).
  if (model.exaone && !config.is_null("sliding_window")) {
    const std::int64_t layers = model.sizes.layers;
    model.sliding = config.layers_with("layer_types", layers, std::string_view("sliding_attention"),
                                       std::string_view("full_attention"));
    const bool listed = !model.sliding.empty();
    if (!listed) model.sliding = repeated_windows(config, layers);
  }
  config.ignore({"sliding_window", "sliding_window_pattern"});
  model.bias = config.flag("attention_bias", false);
  model.clips = config.find("clip_qkv") != nullptr;
  return model;
}

/// OLMo 2's RMS norm multiplies with its weight after the cast to the input's type; in 4.52 before it.
inline Tensor second_norm(Forward& f, const Model& model, std::string_view name, Tensor input, std::int64_t width) {
  if (model.exaone) return f.rms_norm(name, input, width, model.named("RMSNorm"));
  const InModule inside(f, name, model.named("RMSNorm"));
  const Tensor normed = f.layer("norm", {}, "rms_norm", {f.to(input, "float32")},
                                {{"normalized_shape", width}, {"elementwise_affine", false}});
  const Tensor lowered = f.as_type_of(normed, input, When::until_4_51);
  return f.as_type_of(f.multiply(f.parameter("weight", {width}), lowered), input, When::since_4_52);
}

/// layer_norm without weights, of float32; OLMo 2 has RMS norms.
inline Tensor norm(Forward& f, const Model& model, std::string_view name, Tensor input, std::int64_t width) {
  if (model.second) return second_norm(f, model, name, input, width);
  const Tensor normed = f.layer(name, "OlmoLayerNorm", "layer_norm", {f.to(input, "float32")},
                                {{"normalized_shape", width}, {"elementwise_affine", false}});
  return f.as_type_of(normed, input);
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, const Rotary& rotary, std::int64_t index) {
  const InModule inside(f, "self_attn", model.named("Attention"));
  const DecoderSizes& s = model.sizes;
  const Split columns = model.exaone ? Split::columns : Split::whole;
  const auto heads = [&](std::string_view name, std::int64_t count, std::string_view norm_name) {
    Tensor flat = f.linear(name, input, s.width, count * s.head_width, {.bias = model.bias, .split = columns});
    const bool normed = model.second && !norm_name.empty();
    if (normed && !model.exaone) flat = norm(f, model, norm_name, flat, count * s.head_width);
    if (model.clips) flat = f.call("hardtanh", {flat}, {{"inplace", true}});  // clamp_
    const Tensor parted = split_heads(f, flat, s.head_width);
    return normed && model.exaone ? norm(f, model, norm_name, parted, s.head_width) : parted;
  };
  const Tensor query = heads("q_proj", s.heads, "q_norm");
  const Tensor key = heads("k_proj", s.kv_heads, "k_norm");
  const Tensor value = heads("v_proj", s.kv_heads, "");
  const bool turns = model.sliding.empty() || model.sliding[static_cast<std::size_t>(index)];
  Heads turned = {query, key, value};
  if (turns) {
    const auto [turned_query, turned_key] = turn_heads(f, query, key, rotary, s.head_width, Turning::halves);
    const When apart = When::since_4_52;  // from then on the tables are float32, and what they turn is cast back
    turned.query = model.exaone ? turned_query : f.as_type_of(turned_query, query, apart);
    turned.key = model.exaone ? turned_key : f.as_type_of(turned_key, key, apart);
  }
  const Tensor attended = attend_cached(f, s, turned);
  const Tensor output = f.linear("o_proj", attended, s.heads * s.head_width, s.width,
                                 {.bias = model.bias, .split = model.exaone ? Split::rows : Split::whole});
  return f.leave_function(output, {turned.query, turned.key, turned.value, input});
}

/// FlexOlmo's experts; EXAONE's, which DeepSeek-V3's router chooses, with those that all tokens go to.
inline Tensor mixture(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "mlp", model.named(model.exaone ? "SparseMoEBlock" : "SparseMoeBlock"));
  const DecoderSizes& s = model.sizes;
  const std::string list = model.named("Experts");
  const GroupedExperts all = {.list_class = list, .width = s.width, .activation = s.activation};
  if (!model.fused) return softmax_experts(f, model.mixture, s.width, s.activation, "gate", input);
  if (!model.exaone) return held_softmax_experts(f, model.mixture, all, model.named("TopKRouter"), input);
  const Tensor weights = held_sigmoid_weights(f, model.named("TopkRouter"), model.mixture, s.width, input);
  const Tensor sum = add_grouped_experts(f, model.mixture, all, input, weights);
  if (model.shared_inner == 0) return sum;
  const InModule shared(f, "shared_experts", model.named("MLP"));
  return f.add(sum, gated_layer(f, s.width, model.shared_inner, s.activation, input));
}

inline Tensor fed(Forward& f, const Model& model, Tensor input, std::int64_t index) {
  const bool mixes = !model.mixes.empty() && model.mixes[static_cast<std::size_t>(index)];
  return mixes ? mixture(f, model, input) : gated_feed_forward(f, model.sizes, input, model.named("MLP"));
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary, std::int64_t index) {
  const std::int64_t width = model.sizes.width;
  if (!model.behind) {
    const Tensor normed = norm(f, model, "input_layernorm", input, width);
    const Tensor attended = f.add(input, attention(f, model, normed, rotary, index));
    const Tensor again = norm(f, model, "post_attention_layernorm", attended, width);
    return f.add(attended, fed(f, model, again, index));
  }
  const Tensor mixed = norm(f, model, "post_attention_layernorm", attention(f, model, input, rotary, index), width);
  const Tensor attended = f.add(input, mixed);
  return f.add(attended, norm(f, model, "post_feedforward_layernorm", fed(f, model, attended, index), width));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DecoderSizes& s = model.sizes;
  if (!model.mixes.empty()) warn_of_routing(f);
  decoder_model(f, config, s, head, {.class_name = model.named("Model")}, [&](Tensor ids, Tensor hidden) {
    const Rotary rotary = rotary_tables(f, ids, s.head_width);
    hidden = stack(f, "layers", model.named("DecoderLayer"), s.layers, hidden,
                   [&](Tensor x, std::int64_t index) { return block(f, model, x, rotary, index); });
    return norm(f, model, "norm", hidden, s.width);
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Olmo", "olmo", "model", 2048},
                                                            {"Olmo2", "olmo2", "model"},
                                                            {"Olmo3", "olmo3", "model"},
                                                            {"FlexOlmo", "flex_olmo", "model"},
                                                            {"Exaone4", "exaone4", "model", 2048},
                                                            {"ExaoneMoe", "exaone_moe", "model"}});
/// Published models, by width.
inline constexpr auto kPublished = std::to_array<PublishedHeads>({{2048, 16}, {4096, 32}, {5120, 40}});

/// The experts of a tree: after the first dense layers, and one tensor each or modules of their own.
inline void read_experts(TreeFields& t) {
  const std::int64_t dense = layers_before_experts(t);
  const std::string mixture = "layers." + std::to_string(dense) + ".mlp.";
  if (!t.has(mixture + "experts")) return;
  const bool exaone = t.class_name().starts_with("ExaoneMoe");
  if (exaone) t.set("first_k_dense_replace", dense);
  const std::string_view type = exaone ? "exaone_moe" : "flex_olmo";
  const std::string_view field = exaone ? "moe_intermediate_size" : "intermediate_size";
  if (const auto inner = t.value(mixture + "experts.0.gate_proj", "out_features")) {
    const std::int64_t experts = t.count_of(mixture + "experts");
    t.set("num_experts", experts);
    t.set(field, *inner);
    choose_experts(t, type, {t.value("embed_tokens", "embedding_dim").value_or(0), experts, *inner},
                   "num_experts_per_tok");
    return;
  }
  const std::int64_t inner = fused_experts(t, {.model_type = type,
                                               .router = mixture + "gate",
                                               .list = mixture + "experts",
                                               .number = "num_experts",
                                               .inner = field});
  const std::int64_t shared = t.value(mixture + "shared_experts.gate_proj", "out_features").value_or(0);
  if (exaone) t.set("num_shared_experts", shared / std::max<std::int64_t>(inner, 1));
}

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  t.size("intermediate_size", "layers.0.mlp.gate_proj", "out_features");
  t.flag("attention_bias", "layers.0.self_attn.q_proj");
  t.labels();
  read_experts(t);
  const bool exaone = t.class_name().starts_with("Exaone");
  t.heads({.query = "layers.0.self_attn.q_proj",
           .key = "layers.0.self_attn.k_proj",
           .norm = exaone ? "layers.0.self_attn.q_norm" : std::string_view(),
           .published = kPublished,
           .usual_width = 128});
}

inline constexpr Architecture kArchitecture = {
    .name = "olmo", .model_types = kModelTypes, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace olmo

namespace olmo_hybrid {

struct Model {
  olmo::Model olmo;  ///< its layers with attention
  DeltaNet net;
  std::vector<LayerKind> kinds;
  bool turns = true;     ///< by rotary positions, which released models do without
  bool doubles = false;  ///< rates, so that states may turn their sign
};

/// Whether there are rotary positions: not where the base is null. Where the config has none, or no rope_parameters,
/// the class takes 10,000.
inline bool turns(ConfigFields& config) {
  const core::JsonValue* rope = config.find("rope_parameters");
  if (rope != nullptr && rope->is(core::JsonValue::Kind::object)) {
    const ConfigFields fields(*rope);
    if (fields.has("rope_theta") || fields.is_null("rope_theta")) return fields.has("rope_theta");
  }
  return !config.is_null("rope_theta");
}

/// Keys are three quarters of the width and values twice as wide as keys, where the config does not say.
inline DeltaNet read_net(ConfigFields& config, const DecoderSizes& s) {
  DeltaNet usual = {.keys = config.size_or({"linear_num_key_heads"}, s.heads), .values = s.heads};
  const std::int64_t each = std::max<std::int64_t>(3 * s.width / 4 / usual.keys, 1);
  usual.key_width = config.size_or({"linear_key_head_dim"}, each);
  usual.value_width = 2 * usual.key_width;
  return read_delta_net(config, usual);
}

/// Every fourth layer is attention where the config does not list them; of fewer layers the last.
inline std::vector<LayerKind> read_kinds(ConfigFields& config, std::int64_t layers) {
  std::vector<LayerKind> kinds = mixer_kinds(config, "layer_types", layers);
  if (!kinds.empty()) return kinds;
  constexpr std::int64_t kInterval = 4;
  for (std::int64_t at = 0; at < layers; ++at) {
    const bool last = layers < kInterval && at == layers - 1;
    kinds.push_back(last || (at + 1) % kInterval == 0 ? LayerKind::attention : LayerKind::recurrent);
  }
  return kinds;
}

inline Model read(ConfigFields& config) {
  Model model;
  model.olmo.prefix = "OlmoHybrid";
  model.olmo.second = true;
  model.olmo.behind = true;
  model.olmo.sizes = decoder_sizes(config);
  model.olmo.bias = config.flag("attention_bias", false);
  const DecoderSizes& s = model.olmo.sizes;
  model.turns = turns(config);
  model.olmo.sliding.assign(static_cast<std::size_t>(s.layers), model.turns);
  model.net = read_net(config, s);
  model.kinds = read_kinds(config, s.layers);
  model.doubles = config.flag("linear_allow_neg_eigval", true);
  config.ignore({"linear_a_log_min", "linear_a_log_max", "linear_dt_min", "linear_dt_max", "linear_dt_init_floor"});
  return model;
}

inline Tensor delta_net(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "linear_attn", "OlmoHybridGatedDeltaNet");
  const DeltaNet& n = model.net;
  const std::int64_t width = model.olmo.sizes.width;
  const auto project = [&](std::string_view name, std::int64_t size) {
    return f.linear(name, input, width, size, {.bias = false});
  };
  const Tensor query = project("q_proj", n.key_size());
  const Tensor key = project("k_proj", n.key_size());
  const Tensor mixed = f.concatenate({query, key, project("v_proj", n.value_size())}, 2);
  const auto rates = [&] {
    const Tensor rate = f.call("sigmoid", {project("b_proj", n.values)});
    return model.doubles ? f.scale(rate) : rate;
  };
  const Tensor made = gated_delta(f, n, mixed, rates, [&] { return project("a_proj", n.values); });
  const Tensor gate = f.unflatten(project("g_proj", n.value_size()), 2, {-1, n.value_width});
  const Tensor normed =
      f.layer("o_norm", "OlmoHybridRMSNormGated", "gated_norm", {made, gate}, {{"normalized_shape", n.value_width}});
  return f.linear("o_proj", f.flatten(normed, 2, 3), n.value_size(), width, {.bias = false});
}

/// Norms stand behind attention and its feed-forward layer, and in front of a delta net and its own.
inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary, std::int64_t index) {
  const olmo::Model& inner = model.olmo;
  if (model.kinds[static_cast<std::size_t>(index)] == LayerKind::attention)
    return olmo::block(f, inner, input, rotary, index);
  const Tensor normed = olmo::norm(f, inner, "input_layernorm", input, inner.sizes.width);
  const Tensor mixed = f.add(input, delta_net(f, model, normed));
  const Tensor again = olmo::norm(f, inner, "post_attention_layernorm", mixed, inner.sizes.width);
  return f.add(mixed, olmo::fed(f, inner, again, index));
}

inline constexpr std::array<std::string_view, 2> kBlocks = {"OlmoHybridLinearAttentionDecoderLayer",
                                                            "OlmoHybridAttentionDecoderLayer"};

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DecoderSizes& s = model.olmo.sizes;
  doubt_kernels(f, "causal-conv1d and flash-linear-attention");
  decoder_model(f, config, s, head, {.class_name = "OlmoHybridModel"}, [&](Tensor ids, Tensor hidden) {
    const Rotary rotary = model.turns ? rotary_tables(f, ids, s.head_width) : Rotary{};
    {
      const InModule list(f, "layers", "ModuleList");
      for (std::int64_t index = 0; index < s.layers && !f.failed(); ++index) {
        const bool attends = model.kinds[static_cast<std::size_t>(index)] == LayerKind::attention;
        const InModule inside(f, std::to_string(index), kBlocks[attends ? 1 : 0]);
        hidden = block(f, model, hidden, rotary, index);
      }
    }
    return olmo::norm(f, model.olmo, "norm", hidden, s.width);
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"OlmoHybrid", "olmo_hybrid", "model"}});

/// What print(model) shows. Released models have as many heads of values as of keys, and as many as attention has.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  t.labels();
  t.size("intermediate_size", "layers.0.mlp.gate_proj", "out_features");
  const auto [attention, net] = tree_layer_types(t);
  t.set_text("rope_parameters", t.has("rotary_emb") ? R"({"rope_theta": 500000.0})" : R"({"rope_theta": null})");
  t.flag("attention_bias", attention + ".q_proj");
  t.heads({.query = attention + ".q_proj", .key = attention + ".k_proj", .usual_width = 128});
  const std::int64_t heads = t.value(net + ".b_proj", "out_features").value_or(0);
  const std::int64_t keys = t.value(net + ".q_proj", "out_features").value_or(0);
  const std::int64_t values = t.value(net + ".v_proj", "out_features").value_or(0);
  if (heads < 1 || keys % heads != 0 || values % heads != 0 || keys < 1 || values < 1) return;
  t.set("linear_num_key_heads", heads);
  t.set("linear_num_value_heads", heads);
  t.set("linear_key_head_dim", keys / heads);
  t.set("linear_value_head_dim", values / heads);
  t.size("linear_conv_kernel_dim", net + ".conv1d", "kernel_size");
  t.assume("as many heads of keys as of values in the delta nets, as published models have");
}

inline constexpr Architecture kArchitecture = {.name = "olmo_hybrid",
                                               .model_types = names<"olmo_hybrid">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .blocks = kBlocks};

}  // namespace olmo_hybrid

}  // namespace gpumem::architectures
