// Step-3.5 and Step-3.7 (text): layers with a window of near tokens have more heads than the others, heads are normed
// and may have a gate each, experts and one that all tokens go to after the first layers.
// Source: the model's own code for transformers 5 (Step3p7TextConfig, Step3p7Attention, Step3p7MoEMLP in
// modular_step3p7.py); its experts multiply all at once (integrations/moe.py). The image tower and the layers that
// predict further tokens are not part of it.
#pragma once

#include <array>
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
  model.mixture = {.experts = config.size({"moe_num_experts", "num_experts"}),
                   .per_token = config.size({"moe_top_k", "num_experts_per_tok"}),
                   .inner = config.size({"moe_intermediate_size"})};
  check_mixture(config, model.mixture, s.layers, "moe_num_experts", "moe_top_k");
  model.shared_inner = config.size_or({"share_expert_dim"}, model.mixture.inner);
  model.mixes = mixing_layers(config, s.layers);
  model.gates = config.flag("use_head_wise_attn_gate", false);
  model.biased = config.flag("use_moe_router_bias", false);
  model.wide_gate = config.flag("need_fp32_gate", false);
  constexpr std::int64_t kMost = ConfigFields::kLargestSize / 4;
  if (model.near_heads > kMost / s.head_width || model.near_kv_heads > model.near_heads ||
      model.near_heads % model.near_kv_heads != 0) {
    config.fail("does not make whole groups of heads", "attention_other_setting");
  }
  if (s.heads % s.kv_heads != 0) config.fail("does not divide the heads", "num_attention_groups");
  config.ignore({"n_shared_experts",
                 "scoring_func",
                 "num_nextn_predict_layers",
                 "moe_router_scaling_factor",
                 "moe_every_n_layer",
                 "norm_expert_weight",
                 "moe_router_activation",
                 "swiglu_limits",
                 "swiglu_limits_shared",
                 "partial_rotary_factors",
                 "yarn_only_types",
                 "use_rope_layers",
                 "use_moe",
                 "num_experts",
                 "num_experts_per_tok",
                 "zero_centered",
                 "sink",
                 "att_impl_type",
                 "use_qk_norm",
                 "first_k_dense_replace",
                 "moe_layers_enum"});
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
  if (model.biased) f.parameter("router_bias", {m.experts}, true);
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
  if (!near || config.has("attention_other_setting")) return;
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

}  // namespace gpumem::architectures
