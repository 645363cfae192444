// Step-3.5 and Step-3.7 (text): layers with a window of near tokens have more heads than the others, heads are normed
// and may have a gate each, experts and one that all tokens go to after the first layers.
// Source: the model's own code for transformers 5 (Step3p7TextConfig, Step3p7Attention, Step3p7MoEMLP in
// modular_step3p7.py); its experts multiply all at once (integrations/moe.py). The image tower and the layers that
// predict further tokens are not part of it.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/mixture.hpp"

namespace gpumem::architectures {

namespace step3 {

inline constexpr std::string_view kNorm = "Step3p7RMSNorm";

struct Model {
  DecoderSizes sizes;
  std::int64_t near_heads = 1;  ///< of layers with a window
  std::int64_t near_kv_heads = 1;
  std::vector<bool> near;   ///< by layer
  std::vector<bool> mixes;  ///< by layer: it has experts
  Mixture mixture;
  std::int64_t shared_inner = 1;
  bool gates = false;      ///< a gate a head
  bool biased = false;     ///< the choice of experts
  bool buffered = false;   ///< that bias is no parameter, as in transformers
  bool wide_gate = false;  ///< their scores are computed in float32
};

/// Layers that a list of numbers names, or a text of numbers with commas; the config's first dense layers else.
inline std::vector<bool> mixing_layers(ConfigFields& config, std::int64_t layers) {
  std::vector<bool> mixes =
      config.layers_with("mlp_layer_types", layers, std::string_view("sparse"), std::string_view("dense"));
  if (!mixes.empty()) return mixes;
  const std::int64_t dense = config.count_or("first_k_dense_replace", 3);
  mixes.assign(static_cast<std::size_t>(layers), false);
  const core::JsonValue* named = config.find("moe_layers_enum");
  if (named == nullptr) {
    for (std::int64_t at = dense; at < layers; ++at) mixes[static_cast<std::size_t>(at)] = true;
    return mixes;
  }
  const auto mark = [&](std::int64_t layer) {
    if (layer >= 0 && layer < layers) mixes[static_cast<std::size_t>(layer)] = true;
  };
  if (named->is(core::JsonValue::Kind::list)) {
    for (const core::JsonValue& layer : named->items()) {
      if (layer.is(core::JsonValue::Kind::integer)) mark(layer.integer());
    }
  } else if (named->is(core::JsonValue::Kind::text)) {
    std::int64_t layer = -1;
    for (const char byte : std::string(named->text()) + ",") {
      const bool digit = byte >= '0' && byte <= '9' && layer < ConfigFields::kMostLayers;
      if (digit) layer = std::max<std::int64_t>(layer, 0) * 10 + (byte - '0');
      else if (byte == ',') mark(layer);
      if (byte == ',') layer = -1;
    }
  }
  return mixes;
}

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config);
  DecoderSizes& s = model.sizes;
  s.kv_heads = config.size_or({"num_attention_groups"}, s.kv_heads);
  model.near = config.layers_with("layer_types", s.layers, std::string_view("sliding_attention"),
                                  std::string_view("full_attention"));
  model.near.resize(static_cast<std::size_t>(s.layers), false);
  model.near_heads = s.heads;
  model.near_kv_heads = s.kv_heads;
  if (ConfigFields* other = config.part("attention_other_setting"); other != nullptr) {
    model.near_heads = other->size({"num_attention_heads"});
    model.near_kv_heads = other->size_or({"num_attention_groups"}, s.kv_heads);
    other->ignore({"attention_type", "head_dim", "true_head_dim"});
  }
  // As transformers 5.16 saves it.
  model.near_heads = config.size_or({"num_sliding_attention_heads"}, model.near_heads);
  model.near_heads = own_sizes(config, model.near, {{"num_attention_heads", model.near_heads}})[0];
  model.mixture = {.experts = config.size({"moe_num_experts", "num_experts", "n_routed_experts"}),
                   .per_token = config.size({"moe_top_k", "num_experts_per_tok"}),
                   .inner = config.size({"moe_intermediate_size"})};
  check_mixture(config, model.mixture, s.layers, "moe_num_experts", "moe_top_k");
  model.shared_inner = config.size_or({"share_expert_dim"}, model.mixture.inner);
  model.mixes = mixing_layers(config, s.layers);
  // Under transformers' own names there is no choice of these.
  model.buffered = config.has("n_routed_experts") && !config.has("moe_num_experts");
  model.gates = config.flag("use_head_wise_attn_gate", model.buffered);
  model.biased = config.flag("use_moe_router_bias", model.buffered);
  model.wide_gate = config.flag("need_fp32_gate", false);
  constexpr std::int64_t kMost = ConfigFields::kLargestSize / 4;
  if (model.near_heads > kMost / s.head_width || model.near_kv_heads > model.near_heads ||
      model.near_heads % model.near_kv_heads != 0) {
    config.fail("does not make whole groups of heads", "attention_other_setting");
  }
  if (s.heads % s.kv_heads != 0) config.fail("does not divide the heads", "num_attention_groups");
  config.ignore({"n_shared_experts", "scoring_func", "num_nextn_predict_layers", "moe_router_scaling_factor"});
  config.ignore({"moe_every_n_layer", "norm_expert_weight", "moe_router_activation", "swiglu_limits"});
  config.ignore({"swiglu_limits_shared", "partial_rotary_factors", "yarn_only_types", "use_rope_layers"});
  config.ignore({"use_moe", "zero_centered", "sink", "att_impl_type", "use_qk_norm", "query_pre_attn_scalar"});
  config.ignore({"mlp_bias", "mtp_layer_types", "mtp_mlp_layer_types", "gating", "num_experts"});
  config.ignore({"num_experts_per_tok", "first_k_dense_replace", "moe_layers_enum"});
  return model;
}

inline Tensor norm(Forward& f, std::string_view name, Tensor input, std::int64_t width) {
  return wide_norm(f, name, kNorm, input, width);
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, const Rotary& rotary, bool near) {
  const InModule inside(f, "self_attn", "Step3p7Attention");
  const DecoderSizes& s = model.sizes;
  const std::int64_t count = near ? model.near_heads : s.heads;
  const std::int64_t keys = near ? model.near_kv_heads : s.kv_heads;
  const auto heads = [&](std::string_view name, std::int64_t of) {
    const Linear linear = {.bias = false, .split = Split::columns};
    return split_heads(f, f.linear(name, input, s.width, of * s.head_width, linear), s.head_width);
  };
  const Tensor query = norm(f, "q_norm", heads("q_proj", count), s.head_width);
  const Tensor key = norm(f, "k_norm", heads("k_proj", keys), s.head_width);
  const Tensor value = heads("v_proj", keys);
  const Tensor gates = model.gates ? f.linear("g_proj", input, s.width, count, {.bias = false}) : 0;
  Heads ready = {rotate(f, query, rotary, s.head_width), rotate(f, key, rotary, s.head_width), value};
  ready.value = f.cache(ready.key, ready.value);
  Tensor mixed = attend(f, ready, {.groups = count / keys, .dropout = s.attention_dropout});
  if (model.gates) {
    const Tensor open = f.call("sigmoid", {f.call("unsqueeze", {gates}, {{"dim", std::int64_t{3}}})});
    mixed = f.flatten(f.multiply(f.unflatten(mixed, 2, {-1, s.head_width}), open), 2, 3);
  }
  return f.linear("o_proj", mixed, count * s.head_width, s.width, {.bias = false, .split = Split::rows});
}

inline Tensor fed(Forward& f, const Model& model, std::string_view name, Tensor input, std::int64_t inner) {
  const InModule inside(f, name, "Step3p7MLP");
  return gated_layer(f, model.sizes.width, inner, "silu", input);
}

inline Tensor routed(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "moe", "Step3p7MoEMLP");
  const Mixture& m = model.mixture;
  const std::int64_t width = model.sizes.width;
  if (model.buffered) f.constant("e_score_correction_bias", {m.experts}, "float32");
  else if (model.biased) f.parameter("router_bias", {m.experts}, true);
  const Tensor tokens = model.wide_gate ? f.to(input, "float32") : input;
  const Tensor scores = f.to(f.linear("gate", tokens, width, m.experts, {.bias = false}), "float32");
  const Tensor weights = f.call(model.biased ? "sigmoid" : "softmax", {scores});
  const Tensor chosen = f.scale(f.slice(weights, 2, 0, m.per_token));
  const GroupedExperts all = {.list_class = "Step3p7MoEExperts", .width = width};
  return add_grouped_experts(f, m, all, input, chosen);
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary, std::int64_t index) {
  const auto at = static_cast<std::size_t>(index);
  const DecoderSizes& s = model.sizes;
  const Tensor normed = norm(f, "input_layernorm", input, s.width);
  const Tensor attended = f.add(input, attention(f, model, normed, rotary, model.near[at]));
  const Tensor again = norm(f, "post_attention_layernorm", attended, s.width);
  if (!model.mixes[at]) return f.add(attended, fed(f, model, "mlp", again, s.inner));
  const Tensor shared = fed(f, model, "share_expert", again, model.shared_inner);
  return f.add(attended, f.add(routed(f, model, again), shared));
}

/// What a config may leave out, and published models of these sizes have otherwise than the class.
inline void doubt_heads(Forward& f, ConfigFields& config, const Model& model) {
  const bool near = std::find(model.near.begin(), model.near.end(), true) != model.near.end();
  if (!near || config.has("attention_other_setting") || model.buffered) return;
  f.doubt({model::Doubt::About::fields,
           "attention_other_setting is not in the config: layers with a window are taken with as many heads as the "
           "others, and attention without a gate a head unless use_head_wise_attn_gate says so"});
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  warn_of_routing(f);
  doubt_heads(f, config, model);
  decoder_model(f, config, s, head, {.class_name = "Step3p7TextModel"}, [&](Tensor ids, Tensor embedded) {
    const Rotary rotary = rotary_tables(f, ids, s.head_width);
    const Tensor hidden = stack(f, "layers", "Step3p7DecoderLayer", s.layers, embedded,
                                [&](Tensor x, std::int64_t index) { return block(f, model, x, rotary, index); });
    return norm(f, "norm", hidden, s.width);
  });
}

inline constexpr Architecture kArchitecture = {
    .name = "step3", .model_types = names<"step3p5", "step3p7">, .write = write};

}  // namespace step3

// AFMoE (Arcee's Trinity) and Laguna: layers with a window of near tokens, normed heads, attention whose result is
// gated by a projection of its input, experts that a sigmoid chooses beside some that all tokens go to. AFMoE turns
// near layers alone and has norms in front of and behind each half of a block; Laguna's layers differ in their number
// of heads, and each kind turns its own share of them. Source: transformers 5.16, models/afmoe/modeling_afmoe.py,
// models/laguna/modeling_laguna.py.

namespace afmoe {

struct Model {
  DecoderSizes sizes;
  bool laguna = false;
  std::vector<std::int64_t> heads;  ///< by layer
  std::vector<bool> near;           ///< by layer: its window slides
  std::vector<bool> mixes;          ///< by layer: it has experts
  std::int64_t near_turned = 2;     ///< elements of a head with rotary positions
  std::int64_t far_turned = 2;
  Mixture mixture;
  std::int64_t shared_inner = 0;
  bool bias = false;
  bool by_head = false;  ///< one gate a head, and not one an element
  bool scales = false;   ///< embeddings, by a number
  bool caps = false;     ///< the router's scores, by a tanh

  [[nodiscard]] std::string named(std::string_view part) const {
    return std::string(laguna ? "Laguna" : "Afmoe").append(part);
  }
};

/// The share of a head that layers of this kind turn: partial_rotary_factor of their own rope_parameters.
inline std::int64_t turned_width(ConfigFields& config, const DecoderSizes& s, std::string_view kind, double usual) {
  const core::JsonValue* rope = config.find("rope_parameters");
  if (rope != nullptr && rope->is(core::JsonValue::Kind::object)) {
    ConfigFields kinds(*rope);
    const core::JsonValue* own = kinds.find(kind);
    if (own != nullptr && own->is(core::JsonValue::Kind::object)) {
      ConfigFields fields(*own);
      const std::int64_t width = rotary_width(fields, s, {"partial_rotary_factor"}, 1.0);
      if (!fields.status()) config.fail("leaves an odd number of elements of a head to turn", "rope_parameters");
      return width;
    }
  }
  return rotary_width(config, s, {"partial_rotary_factor"}, usual);
}

inline void read_laguna(ConfigFields& config, Model& model) {
  const DecoderSizes& s = model.sizes;
  const auto layers = static_cast<std::size_t>(s.layers);
  model.near.resize(layers, false);
  model.near_turned = turned_width(config, s, "sliding_attention", 1.0);
  model.far_turned = turned_width(config, s, "full_attention", 0.5);
  std::vector<std::int64_t> heads = config.sizes_or("num_attention_heads_per_layer", model.heads);
  const bool enough = heads.size() >= layers;
  if (enough) model.heads = std::move(heads);
  if (!enough) config.fail("has fewer entries than the model has layers", "num_attention_heads_per_layer");
  for (const std::int64_t count : model.heads) {
    if (count % s.kv_heads != 0 || count > ConfigFields::kLargestSize / s.head_width)
      config.fail("does not make whole groups of heads", "num_attention_heads_per_layer");
  }
  const core::JsonValue* gating = config.find("gating");
  const bool text = gating != nullptr && gating->is(core::JsonValue::Kind::text);
  model.by_head = text ? gating->text() == "per-head" : config.flag("gating", true);
  model.shared_inner = config.size_or({"shared_expert_intermediate_size"}, 512);
  model.caps = config.number({"moe_router_logit_softcapping"}, 0.0) > 0.0;
  if (model.mixes.empty()) {
    model.mixes.assign(layers, true);
    model.mixes[0] = false;
  }
  config.ignore({"moe_routed_scaling_factor", "moe_apply_router_weight_on_input", "router_aux_loss_coef",
                 "output_router_logits", "qkv_bias"});
}

inline void read_afmoe(ConfigFields& config, Model& model) {
  const DecoderSizes& s = model.sizes;
  const std::int64_t every = config.size_or({"global_attn_every_n_layers"}, 4);
  for (auto at = static_cast<std::int64_t>(model.near.size()); at < s.layers; ++at) {
    model.near.push_back((at + 1) % every != 0);
  }
  model.near_turned = s.head_width;
  model.far_turned = s.head_width;
  const std::int64_t shared = config.count_or("num_shared_experts", 2);
  if (shared > ConfigFields::kLargestSize / model.mixture.inner)
    config.fail("makes the shared experts too wide", "num_shared_experts");
  model.shared_inner = shared * model.mixture.inner;
  model.scales = config.flag("mup_enabled", false);
  const std::int64_t dense = config.count_or("num_dense_layers", 1);
  model.mixes.clear();
  for (std::int64_t at = 0; at < s.layers; ++at) model.mixes.push_back(at >= dense);
  config.ignore({"route_norm", "route_scale", "score_func", "n_group", "topk_group", "num_expert_groups",
                 "num_limited_groups", "use_grouped_mm", "load_balance_coeff", "output_router_logits"});
}

inline Model read(ConfigFields& config) {
  Model model;
  model.laguna = config.text({"model_type"}, "afmoe") == "laguna";
  config.complete(R"({"head_dim": 128})");
  model.sizes = decoder_sizes(config);
  const DecoderSizes& s = model.sizes;
  model.bias = config.flag("attention_bias", false);
  model.heads.assign(static_cast<std::size_t>(s.layers), s.heads);
  model.near = config.layers_with("layer_types", s.layers, std::string_view("sliding_attention"),
                                  std::string_view("full_attention"));
  model.mixes = config.layers_with("mlp_layer_types", s.layers, std::string_view("sparse"), std::string_view("dense"));
  model.mixture = {.experts = config.size({"num_experts"}),
                   .per_token = config.size({"num_experts_per_tok"}),
                   .inner = config.size({"moe_intermediate_size"})};
  check_mixture(config, model.mixture, s.layers, "num_experts", "num_experts_per_tok");
  if (model.laguna) read_laguna(config, model);
  else read_afmoe(config, model);
  return model;
}

/// AFMoE's norms multiply in float32, as gpt-oss's do.
inline Tensor norm(Forward& f, const Model& model, std::string_view name, Tensor input, std::int64_t width) {
  if (model.laguna) return f.rms_norm(name, input, width, "LagunaRMSNorm");
  const InModule inside(f, name, "AfmoeRMSNorm");
  const Tensor normed = f.layer("norm", {}, "rms_norm", {f.to(input, "float32")},
                                {{"normalized_shape", width}, {"elementwise_affine", false}});
  return f.as_type_of(f.multiply(f.parameter("weight", {width}), normed), input);
}

/// What attention leaves, times its gates: sigmoids an element (AFMoE); softplus of float32, an element or a head.
inline Tensor gated(Forward& f, const Model& model, Tensor attended, Tensor gate) {
  if (!model.laguna) return f.multiply(attended, f.call("sigmoid", {gate}));
  const Tensor open = f.as_type_of(f.call("softplus", {f.to(gate, "float32")}), attended);
  if (!model.by_head) return f.multiply(attended, open);
  const Tensor each = f.call("unsqueeze", {open}, {{"dim", std::int64_t{3}}});
  return f.flatten(f.multiply(f.unflatten(attended, 2, {-1, model.sizes.head_width}), each), 2, 3);
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, const Rotary& rotary, std::size_t at) {
  const InModule inside(f, "self_attn", model.named("Attention"));
  const DecoderSizes& s = model.sizes;
  const std::int64_t count = model.heads[at];
  const Linear linear = {.bias = model.bias, .split = Split::columns};
  const auto heads = [&](std::string_view name, std::int64_t of) {
    return f.unflatten(f.linear(name, input, s.width, of * s.head_width, linear), 2, {-1, s.head_width});
  };
  const auto project_gate = [&](std::string_view name, std::int64_t size) {
    return f.linear(name, input, s.width, size, {.bias = false, .split = Split::columns});
  };
  const auto first = [&](Tensor of) { return f.permute(of, {0, 2, 1, 3}); };
  const Tensor plain_query = heads("q_proj", count);
  const Tensor plain_key = heads("k_proj", s.kv_heads);
  Tensor value = heads("v_proj", s.kv_heads);
  Tensor gate = model.laguna ? 0 : project_gate("gate_proj", count * s.head_width);
  Tensor query = first(norm(f, model, "q_norm", plain_query, s.head_width));
  Tensor key = first(norm(f, model, "k_norm", plain_key, s.head_width));
  value = first(value);
  if (model.laguna || model.near[at]) {
    const std::array<Tensor, 2> turned = {rotate(f, query, rotary, s.head_width), rotate(f, key, rotary, s.head_width)};
    // Laguna joins what it turned with what it did not, also where that is nothing.
    const bool joins = model.laguna && rotary.width == s.head_width;
    query = joins ? f.call("clone", {turned[0]}) : turned[0];
    key = joins ? f.leave_function(f.call("clone", {turned[1]}), {turned[0], turned[1]}) : turned[1];
  }
  value = f.cache(key, value);
  const Tensor attended =
      attend(f, {query, key, value}, {.groups = count / s.kv_heads, .dropout = s.attention_dropout});
  if (model.laguna) gate = project_gate("g_proj", model.by_head ? count : count * s.head_width);
  const Tensor output = f.linear("o_proj", gated(f, model, attended, gate), count * s.head_width, s.width,
                                 {.bias = model.bias, .split = Split::rows});
  return f.leave_function(output, {query, key, value, gate, input});
}

/// The chosen experts' weights; the bias of the choice is a parameter that nothing trains.
inline Tensor expert_weights(Forward& f, const Model& model, Tensor input) {
  const Mixture& m = model.mixture;
  const std::int64_t width = model.sizes.width;
  if (!model.laguna) {
    f.parameter("expert_bias", {m.experts}, true);
    const InModule inside(f, "router", "AfmoeTokenChoiceRouter");
    const Tensor scores = f.to(f.linear("gate", input, width, m.experts, {.bias = false}), "float32");
    return f.scale(f.slice(f.call("sigmoid", {scores}), 2, 0, m.per_token));
  }
  const InModule inside(f, "gate", "LagunaTopKRouter");
  const Tensor weight = f.parameter("weight", {m.experts, width});
  Tensor scores = f.to(f.call("linear_function", {input, weight}), "float32");
  f.parameter("e_score_correction_bias", {m.experts}, true);
  if (model.caps) scores = f.scale(f.call("tanh", {f.scale(scores)}));
  return f.as_type_of(f.scale(f.slice(f.call("sigmoid", {scores}), 2, 0, m.per_token)), input);
}

inline Tensor mixture(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "mlp", model.named("SparseMoeBlock"));
  const DecoderSizes& s = model.sizes;
  const auto shared = [&] {
    const InModule one(f, "shared_experts", model.named("MLP"));
    return gated_layer(f, s.width, model.shared_inner, s.activation, input);
  };
  const std::string list = model.named("Experts");
  const GroupedExperts all = {.list_class = list, .width = s.width, .activation = s.activation};
  if (model.laguna) {
    const Tensor every = shared();
    const Tensor sum = add_grouped_experts(f, model.mixture, all, input, expert_weights(f, model, input));
    return f.add(f.scale(sum), every);
  }
  const Tensor weights = expert_weights(f, model, input);
  if (model.shared_inner == 0) return add_grouped_experts(f, model.mixture, all, input, weights);
  const Tensor every = shared();
  return f.add(every, add_grouped_experts(f, model.mixture, all, input, weights));
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary, std::int64_t index) {
  const auto at = static_cast<std::size_t>(index);
  const std::int64_t width = model.sizes.width;
  const auto behind = [&](std::string_view name, Tensor part) {
    return model.laguna ? part : norm(f, model, name, part, width);
  };
  const Tensor mixed = attention(f, model, norm(f, model, "input_layernorm", input, width), rotary, at);
  const Tensor attended = f.add(input, behind("post_attention_layernorm", mixed));
  const Tensor again = norm(f, model, model.laguna ? "post_attention_layernorm" : "pre_mlp_layernorm", attended, width);
  const Tensor fed =
      model.mixes[at] ? mixture(f, model, again) : gated_feed_forward(f, model.sizes, again, model.named("MLP"));
  return f.add(attended, behind("post_mlp_layernorm", fed));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  warn_of_routing(f);
  decoder_model(f, config, s, head, {.class_name = model.named("Model")}, [&](Tensor ids, Tensor hidden) {
    if (model.scales) hidden = f.scale(hidden);
    const Rotary far = rotary_tables(f, ids, model.far_turned);
    const auto count = std::count(model.near.begin(), model.near.end(), true);
    const bool both = model.laguna && count > 0;
    const Rotary near = both ? rotary_tables(f, ids, model.near_turned) : far;
    hidden = stack(f, "layers", model.named("DecoderLayer"), s.layers, hidden, [&](Tensor x, std::int64_t index) {
      return block(f, model, x, model.near[static_cast<std::size_t>(index)] ? near : far, index);
    });
    return norm(f, model, "norm", hidden, s.width);
  });
}

inline constexpr auto kClasses =
    std::to_array<ModelClass>({{"Afmoe", "afmoe", "model"}, {"Laguna", "laguna", "model"}});

/// Laguna's heads by layer. Which layers slide is not printed; it turns a share of the heads, as published.
inline void read_heads(TreeFields& t, std::int64_t layers) {
  std::string counts;
  std::string mixes;
  for (std::int64_t at = 0; at < layers; ++at) {
    const std::string layer = "layers." + std::to_string(at);
    const std::int64_t each = t.value(layer + ".self_attn.q_norm", "normalized_shape").value_or(128);
    const std::int64_t all = t.value(layer + ".self_attn.q_proj", "out_features").value_or(each);
    counts += (counts.empty() ? "" : ", ") + std::to_string(std::max<std::int64_t>(all / each, 1));
    const bool mixed = t.has(layer + ".mlp.experts");
    mixes += std::string(mixes.empty() ? "" : ", ") + (mixed ? R"("sparse")" : R"("dense")");
  }
  t.set_text("num_attention_heads_per_layer", "[" + counts + "]");
  t.set_text("mlp_layer_types", "[" + mixes + "]");
  const auto gates = t.value("layers.0.self_attn.g_proj", "out_features");
  const auto queries = t.value("layers.0.self_attn.q_proj", "out_features");
  t.set_string("gating", gates && queries && *gates == *queries ? "per-element" : "per-head");
}

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  t.labels();
  const bool laguna = t.class_name().starts_with("Laguna");
  const std::int64_t layers = std::min(t.count_of("layers"), ConfigFields::kMostLayers);
  const std::int64_t dense = layers_before_experts(t);
  const std::string mixture = "layers." + std::to_string(dense) + ".mlp.";
  t.size("intermediate_size", "layers.0.mlp.gate_proj", "out_features");
  if (dense == 0) t.set("intermediate_size", 1);
  t.flag("attention_bias", "layers.0.self_attn.q_proj");
  t.heads({.query = "layers.0.self_attn.q_proj",
           .key = "layers.0.self_attn.k_proj",
           .norm = "layers.0.self_attn.q_norm",
           .usual_width = 128});
  if (laguna) read_heads(t, layers);
  else t.set("num_dense_layers", dense);
  const std::int64_t inner = fused_experts(t, {.model_type = laguna ? "laguna" : "afmoe",
                                               .router = mixture + (laguna ? "gate" : "router.gate"),
                                               .list = mixture + "experts",
                                               .number = "num_experts",
                                               .inner = "moe_intermediate_size"});
  const std::int64_t shared = t.value(mixture + "shared_experts.gate_proj", "out_features").value_or(0);
  if (laguna) return t.set("shared_expert_intermediate_size", shared);
  t.set("num_shared_experts", shared / std::max<std::int64_t>(inner, 1));
  t.set_flag("mup_enabled", true);
  t.assume("embeddings times a number and every fourth layer reading all tokens, as published models have");
}

inline constexpr Architecture kArchitecture = {.name = "afmoe",
                                               .model_types = names<"afmoe", "laguna">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree};

}  // namespace afmoe

}  // namespace gpumem::architectures
