// gpt-oss, MiMo-V2-Flash and Granite SWA.
//
// gpt-oss: attention with a learned sink for each head, which PyTorch's kernel does not have, so that it is written
// out; experts that are one tensor each, with biases and a gate that is clamped. A checkpoint in MXFP4 is dequantised
// to be trained.
// Source: transformers 4.56, models/gpt_oss/modeling_gpt_oss.py (eager_attention_forward, GptOssExperts); 5.0,
// integrations/moe.py.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/mixture.hpp"

namespace gpumem::architectures {

namespace gpt_oss {

struct Model {
  DecoderSizes sizes;
  Mixture mixture;
  bool bias = true;
  bool listed = false;  ///< experts are modules of their own, as Megatron has them
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config);
  model.listed = config.lists_experts();
  model.mixture = {.experts = config.size({"num_local_experts", "num_experts"}),
                   .per_token = config.size({"num_experts_per_tok", "experts_per_token"}),
                   .inner = model.sizes.inner};
  model.bias = config.flag("attention_bias", true);
  check_mixture(config, model.mixture, model.sizes.layers, "num_local_experts", "num_experts_per_tok");
  if (model.mixture.inner > ConfigFields::kLargestSize / 2) config.fail("is too wide", "intermediate_size");
  config.ignore({"router_aux_loss_coef", "output_router_logits", "swiglu_limit", "initial_context_length"});
  return model;
}

/// first cos - second sin, second cos + first sin: tables as wide as half a head.
inline Tensor turned(Forward& f, Tensor heads, const Rotary& rotary) {
  const Tensor first = f.slice(heads, 3, 0, rotary.width);
  const Tensor second = f.slice(heads, 3, rotary.width, Forward::kRest);
  const Tensor one = f.call("sub", {f.multiply(first, rotary.cosines), f.multiply(second, rotary.sines)});
  const Tensor other = f.add(f.multiply(second, rotary.cosines), f.multiply(first, rotary.sines));
  return f.concatenate({one, other}, 3);
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, const Rotary& rotary, Tensor mask) {
  const InModule inside(f, "self_attn", "GptOssAttention");
  const DecoderSizes& s = model.sizes;
  const auto [query, key, value] = project_heads(f, s, input, {.bias = model.bias, .split = Split::columns});
  Heads ready = {turned(f, query, rotary), turned(f, key, rotary), value};
  ready.value = f.cache(ready.key, ready.value);
  const Tensor sinks = f.parameter("sinks", {s.heads});
  const Tensor attended =
      sink_attention(f, ready, sinks, mask, {.groups = s.heads / s.kv_heads, .dropout = s.attention_dropout});
  return f.linear("o_proj", attended, s.heads * s.head_width, s.width, {.bias = model.bias, .split = Split::rows});
}

/// (up + 1) gate sigmoid(1.702 gate), of clamped elements that take turns in what the product made.
inline Tensor gated(Forward& f, Tensor wide) {
  const auto every_second = [&](std::int64_t start) {
    return f.call("slice", {wide}, {{"dim", std::int64_t{1}}, {"start", start}, {"step", std::int64_t{2}}});
  };
  const Tensor gate = every_second(0);
  return clamped_gate(f, gate, every_second(1));
}

inline Tensor mixture(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "mlp", "GptOssMLP");
  const Mixture& m = model.mixture;
  const std::int64_t width = model.sizes.width;
  Tensor weights = 0;
  {
    const InModule router(f, "router", "GptOssTopKRouter");
    const Tensor matrix = f.parameter("weight", {m.experts, width});
    const Tensor bias = f.parameter("bias", {m.experts});
    const Tensor scores = f.call("linear_function", {input, matrix, bias});
    weights = f.call("softmax", {f.slice(scores, 2, 0, m.per_token)});
  }
  if (model.listed) {
    const auto expert = [&](Tensor rows) { return gated_layer(f, width, m.inner, "silu", rows, {.bias = true}); };
    return add_experts(f, m, input, weights, f.call("token_zeros", {input}), expert);
  }
  const GroupedExperts all = {
      .list_class = "GptOssExperts", .width = width, .transposed = false, .bias = true, .loops = When::before_5_0};
  return add_grouped_experts(f, m, all, input, weights, [&](Tensor wide) { return gated(f, wide); });
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary, Tensor mask) {
  const auto norm = [&](std::string_view name, Tensor tensor) {
    return f.rms_norm(name, tensor, model.sizes.width, "GptOssRMSNorm");
  };
  const Tensor mixed = attention(f, model, norm("input_layernorm", input), rotary, mask);
  const Tensor attended = f.add(input, mixed);
  return f.add(attended, mixture(f, model, norm("post_attention_layernorm", attended)));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  if (s.head_width % 2 != 0) f.fail("heads of an odd width cannot be turned");
  warn_of_routing(f);
  decoder_model(f, config, s, head, {.class_name = "GptOssModel"}, [&](Tensor ids, Tensor hidden) {
    const Rotary rotary = rotary_tables(f, ids, s.head_width / 2);
    // One mask of all tokens and one of the near ones, for every second layer.
    const Tensor all = f.call("causal_mask", {ids}, {{"padded", true}});
    const Tensor near = f.call("causal_mask", {ids}, {{"padded", true}});
    hidden = stack(f, "layers", "GptOssDecoderLayer", s.layers, hidden, [&](Tensor x, std::int64_t index) {
      return block(f, model, x, rotary, index % 2 == 0 ? near : all);
    });
    return f.rms_norm("norm", hidden, s.width, "GptOssRMSNorm");
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"GptOss", "gpt_oss", "model"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  t.flag("attention_bias", "layers.0.self_attn.q_proj");
  t.heads({.query = "layers.0.self_attn.q_proj", .key = "layers.0.self_attn.k_proj", .usual_width = 64});
  fused_experts(
      t, {.model_type = "gpt_oss", .router = "layers.0.mlp.router", .list = "layers.0.mlp.experts", .biases = true});
}

inline constexpr Architecture kArchitecture = {.name = "gpt_oss",
                                               .model_types = names<"gpt_oss">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .lists_experts = true};

}  // namespace gpt_oss

// MiMo-V2-Flash: attention written out, with more keys and a frozen sink a head in the layers whose window slides;
// values narrower than keys; DeepSeek-V3's router, and experts that are one tensor each. Source: transformers 5,
// models/mimo_v2_flash/modular_mimo_v2_flash.py: MiMoV2FlashAttention, eager_attention_forward_with_optional_sink.

namespace mimo_v2 {

struct Model {
  DecoderSizes sizes;
  Mixture mixture;
  std::int64_t value_width = 1;
  std::int64_t near_kv_heads = 1;  ///< of layers whose window slides
  std::int64_t rotary_width = 2;
  std::vector<bool> near;   ///< by layer: its window slides
  std::vector<bool> mixes;  ///< by layer: it has experts
  bool bias = false;
  bool scales = true;      ///< values, by a number
  bool near_sinks = true;  ///< layers of each kind have sinks
  bool far_sinks = false;
};

/// By layer, of two fields that either version of the config has; else what the model has.
inline std::vector<bool> layers_of(ConfigFields& config, std::int64_t layers, std::string_view numbers,
                                   std::string_view words, std::string_view word, std::string_view other) {
  std::vector<bool> found = config.layers_with(numbers, layers, 1, 0);
  std::vector<bool> named = config.layers_with(words, layers, word, other);
  return found.empty() ? named : found;
}

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config);
  const std::int64_t layers = model.sizes.layers;
  model.value_width = config.size_or({"v_head_dim"}, model.sizes.head_width);
  model.near_kv_heads = config.size_or({"swa_num_key_value_heads"}, 2 * model.sizes.kv_heads);
  model.rotary_width = rotary_width(config, model.sizes, {"partial_rotary_factor"}, 0.334);
  model.near = layers_of(config, layers, "hybrid_layer_pattern", "layer_types", "sliding_attention", "full_attention");
  model.mixes = layers_of(config, layers, "moe_layer_freq", "mlp_layer_types", "sparse", "dense");
  constexpr std::int64_t kPattern = 6;  // of MiMoV2FlashConfig: the first and every sixth layer read all tokens
  const bool near_listed = !model.near.empty();
  const bool mixes_listed = !model.mixes.empty();
  for (std::int64_t at = 0; at < layers; ++at) {
    if (!near_listed) model.near.push_back(at != 0 && (at + 1) % kPattern != 0);
    if (!mixes_listed) model.mixes.push_back(at != 0);
  }
  model.mixture = {.experts = config.size({"n_routed_experts"}),
                   .per_token = config.size({"num_experts_per_tok"}),
                   .inner = config.size({"moe_intermediate_size"})};
  check_mixture(config, model.mixture, layers, "n_routed_experts", "num_experts_per_tok");
  model.bias = config.flag("attention_bias", false);
  model.near_sinks = config.flag("add_swa_attention_sink_bias", true);
  model.far_sinks = config.flag("add_full_attention_sink_bias", false);
  if (model.sizes.heads % model.near_kv_heads != 0) config.fail("does not divide the heads", "swa_num_key_value_heads");
  for (const auto& [field, size] :
       {std::pair{"swa_head_dim", model.sizes.head_width}, std::pair{"swa_v_head_dim", model.value_width},
        std::pair{"swa_num_attention_heads", model.sizes.heads}}) {
    if (config.size_or({field}, size) != size) config.fail("differs from that of the other layers", field);
  }
  if (model.value_width > ConfigFields::kLargestSize / model.sizes.heads)
    config.fail("makes heads too wide", "v_head_dim");
  config.ignore({"n_group", "topk_group", "norm_topk_prob", "routed_scaling_factor", "scoring_func", "topk_method",
                 "swa_rope_theta", "sliding_window_size", "attention_chunk_size", "attention_value_scale",
                 "use_qk_norm", "layernorm_epsilon", "num_nextn_predict_layers", "hidden_dropout"});
  return model;
}

struct Masks {
  Tensor all = 0;
  Tensor near = 0;
};

inline Tensor attention(Forward& f, const Model& model, Tensor input, const Rotary& rotary, const Masks& masks,
                        bool near) {
  const InModule inside(f, "self_attn", "MiMoV2FlashAttention");
  const DecoderSizes& s = model.sizes;
  const std::int64_t keys = near ? model.near_kv_heads : s.kv_heads;
  const auto heads = [&](std::string_view name, std::int64_t count, std::int64_t each) {
    const Linear linear = {.bias = model.bias, .split = Split::columns};
    return split_heads(f, f.linear(name, input, s.width, count * each, linear), each);
  };
  const Tensor query = heads("q_proj", s.heads, s.head_width);
  const Tensor key = heads("k_proj", keys, s.head_width);
  const Tensor value = f.scale(heads("v_proj", keys, model.value_width));
  Heads ready = {rotate(f, query, rotary, s.head_width), rotate(f, key, rotary, s.head_width), value};
  ready.value = f.cache(ready.key, ready.value);
  const bool sinks = near ? model.near_sinks : model.far_sinks;
  const std::optional<Tensor> held = sinks ? std::optional(f.parameter("sinks", {s.heads}, true)) : std::nullopt;
  const Tensor attended = sink_attention(f, ready, held, near ? masks.near : masks.all,
                                         {.groups = s.heads / keys, .dropout = s.attention_dropout});
  return f.linear("o_proj", attended, s.heads * model.value_width, s.width, {.bias = false, .split = Split::rows});
}

inline Tensor mixture(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "mlp", "MiMoV2FlashSparseMoeBlock");
  const Mixture& m = model.mixture;
  Tensor weights = 0;
  {
    const InModule gate(f, "gate", "MiMoV2FlashTopkRouter");
    const Tensor matrix = f.to(f.parameter("weight", {m.experts, model.sizes.width}), "float32");
    const Tensor scores = f.call("sigmoid", {f.call("linear_function", {f.to(input, "float32"), matrix})});
    f.constant("e_score_correction_bias", {m.experts}, "float32");
    weights = f.scale(f.slice(scores, 2, 0, m.per_token));
  }
  const GroupedExperts all = {
      .list_class = "MiMoV2FlashNaiveMoe", .width = model.sizes.width, .activation = model.sizes.activation};
  return add_grouped_experts(f, m, all, input, weights);
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary, const Masks& masks,
                    std::int64_t index) {
  const auto at = static_cast<std::size_t>(index);
  const auto norm = [&](std::string_view name, Tensor tensor) {
    return f.rms_norm(name, tensor, model.sizes.width, "MiMoV2FlashRMSNorm");
  };
  const Tensor normed = norm("input_layernorm", input);
  const Tensor attended = f.add(input, attention(f, model, normed, rotary, masks, model.near[at]));
  const Tensor again = norm("post_attention_layernorm", attended);
  return f.add(attended, model.mixes[at] ? mixture(f, model, again)
                                         : gated_feed_forward(f, model.sizes, again, "MiMoV2FlashMLP"));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  warn_of_routing(f);
  decoder_model(f, config, s, head, {.class_name = "MiMoV2FlashModel"}, [&](Tensor ids, Tensor embedded) {
    const Rotary rotary = rotary_tables(f, ids, model.rotary_width);
    const Tensor all = f.call("causal_mask", {ids}, {{"padded", true}});
    const Masks masks = {all, f.call("causal_mask", {ids}, {{"padded", true}})};
    const Tensor hidden = stack(f, "layers", "MiMoV2FlashDecoderLayer", s.layers, embedded,
                                [&](Tensor x, std::int64_t index) { return block(f, model, x, rotary, masks, index); });
    return f.rms_norm("norm", hidden, s.width, "MiMoV2FlashRMSNorm");
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"MiMoV2Flash", "mimo_v2_flash", "model"}});

/// What print(model) shows. Keys of the layers whose window slides tell which they are; experts are not printed.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  constexpr std::int64_t kHead = 192;
  constexpr std::int64_t kValue = 128;
  const auto out = [&](std::int64_t layer, std::string_view name) {
    return t.value("layers." + std::to_string(layer) + "." + std::string(name), "out_features").value_or(0);
  };
  const std::int64_t keys = out(0, "self_attn.k_proj");
  std::int64_t most = keys;
  std::string near;
  std::string mixes;
  for (std::int64_t layer = 0; layer < t.count_of("layers"); ++layer) {
    const std::string comma = layer == 0 ? "" : ", ";
    most = std::max(most, out(layer, "self_attn.k_proj"));
    near += comma + (out(layer, "self_attn.k_proj") == keys ? "0" : "1");
    mixes += comma + (out(layer, "mlp.gate_proj") > 0 ? "0" : "1");
  }
  t.set_text("hybrid_layer_pattern", "[" + near + "]");
  t.set_text("moe_layer_freq", "[" + mixes + "]");
  t.set("num_attention_heads", std::max<std::int64_t>(out(0, "self_attn.q_proj") / kHead, 1));
  t.set("num_key_value_heads", std::max<std::int64_t>(keys / kHead, 1));
  t.set("swa_num_key_value_heads", std::max<std::int64_t>(most / kHead, 1));
  t.set("head_dim", kHead);
  t.set("v_head_dim", kValue);
  t.size("intermediate_size", "layers.0.mlp.gate_proj", "out_features");
  t.flag("attention_bias", "layers.0.self_attn.q_proj");
  t.set("n_routed_experts", 256);
  t.set("moe_intermediate_size", 2048);
  t.set("num_experts_per_tok", 8);
  t.assume("heads 192 wide, 256 experts 2048 wide and 8 of them a token, as the published model has");
}

inline constexpr Architecture kArchitecture = {.name = "mimo_v2",
                                               .model_types = names<"mimo_v2_flash">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree};

}  // namespace mimo_v2

// Granite SWA: Granite with a learned sink for each head, which scales what attention makes by the sigmoid of its
// distance from the scores' logsumexp. No kernel of PyTorch has it, so attention is written out, also where windows
// slide. GraniteMoeSWA has experts, of one tensor each, in place of the feed-forward layer. Source: transformers 5.16,
// models/granite_swa/modeling_granite_swa.py (eager_attention_forward), granitemoe_swa/modular_granitemoe_swa.py.

namespace granite_swa {

struct Model {
  DecoderSizes sizes;
  bool bias = false;
  bool mlp_bias = false;
  std::vector<bool> slides = {};
  std::vector<bool> unturned = {};  ///< by layer: it has no rotary positions
  Mixture mixture = {};
  bool mixes = false;
  std::int64_t shared_inner = 0;  ///< of an expert that all tokens go to

  [[nodiscard]] std::string named(std::string_view part) const {
    return std::string(mixes ? "GraniteMoeSWA" : "GraniteSWA").append(part);
  }
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config, {.tied = true});
  const std::int64_t layers = model.sizes.layers;
  model.bias = config.flag("attention_bias", false);
  model.mlp_bias = config.flag("mlp_bias", false);
  model.slides = config.layers_with("layer_types", layers, std::string_view("sliding_attention"),
                                    std::string_view("full_attention"));
  const bool listed = !model.slides.empty();
  for (std::int64_t at = 0; !listed && at < layers; ++at) model.slides.push_back(at % 4 != 0);
  model.unturned.resize(static_cast<std::size_t>(layers), false);
  const core::JsonValue* bases = config.find("layer_rope_theta");
  if (bases != nullptr && bases->is(core::JsonValue::Kind::list)) {
    std::size_t at = 0;
    for (const core::JsonValue& base : bases->items()) {
      if (at < model.unturned.size()) model.unturned[at++] = base.is(0);
    }
  }
  config.ignore({"embedding_multiplier", "residual_multiplier", "attention_multiplier", "logits_scaling"});
  model.mixes = config.text({"model_type"}, "granite_swa") == "granitemoe_swa";
  if (!model.mixes) return model;
  model.mixture = {.experts = config.size({"num_local_experts"}),
                   .per_token = config.size({"num_experts_per_tok"}),
                   .inner = model.sizes.inner};
  model.shared_inner = config.count_or("shared_intermediate_size", 0);
  check_mixture(config, model.mixture, layers, "num_local_experts", "num_experts_per_tok");
  config.ignore({"router_aux_loss_coef", "output_router_logits"});
  return model;
}

/// The chosen experts and, where there is one, that of all tokens.
inline Tensor mixture(Forward& f, const Model& model, Tensor input) {
  const DecoderSizes& s = model.sizes;
  Tensor routed = 0;
  {
    const InModule inside(f, "block_sparse_moe", model.named("MoE"));
    const Mixture& m = model.mixture;
    const std::string experts = model.named("Experts");
    const Tensor scores = f.to(held_scores(f, "router", model.named("TopKRouter"), m, s.width, input), "float32");
    const Tensor gates = f.as_type_of(f.call("softmax", {f.slice(scores, 2, 0, m.per_token)}), input);
    routed =
        add_grouped_experts(f, m, {.list_class = experts, .width = s.width, .activation = s.activation}, input, gates);
  }
  if (model.shared_inner == 0) return routed;
  const InModule inside(f, "shared_mlp", model.named("MLP"));
  const std::int64_t inner = model.shared_inner;
  const Tensor wide = f.linear("input_linear", input, s.width, 2 * inner, {.bias = false});
  const std::vector<Tensor> halves = f.split(wide, 2, {inner, inner});
  const Tensor active = f.multiply(f.activation("activation", halves[0], s.activation), halves[1]);
  return f.add(routed, f.linear("output_linear", active, inner, s.width, {.bias = false}));
}

inline Tensor sunk_attention(Forward& f, const Model& model, const Heads& heads, Tensor mask) {
  const DecoderSizes& s = model.sizes;
  const std::int64_t groups = s.heads / s.kv_heads;
  const Tensor key = repeat_heads(f, heads.key, groups);
  const Tensor value = repeat_heads(f, heads.value, groups);
  const Tensor scores = f.scale(f.call("matmul", {heads.query, f.permute(key, {0, 1, 3, 2})}));
  const Tensor masked = f.add(scores, mask);
  const Tensor spread = f.call("logsumexp", {masked}, {{"dim", std::int64_t{-1}}, {"keepdim", true}});
  const Tensor sinks = f.unflatten(f.parameter("sinks", {s.heads}), 0, {s.heads, 1, 1});
  const Tensor open = f.call("sigmoid", {f.to(f.call("sub", {spread, sinks}), "float32")});
  const Tensor weights = f.as_type_of(f.call("softmax", {f.to(masked, "float32")}), heads.query);
  const Tensor dropped = f.call("dropout", {weights}, {{"p", s.attention_dropout}});
  const Tensor mixed = f.call("matmul", {dropped, value});
  const Tensor made = merge_heads(f, f.multiply(mixed, f.as_type_of(open, mixed)));
  return f.leave_function(made, {key, value, dropped});
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, const Rotary& rotary, Tensor mask, bool turns) {
  const InModule inside(f, "self_attn", model.named("Attention"));
  const DecoderSizes& s = model.sizes;
  Heads heads = project_heads(f, s, input, {.bias = model.bias, .split = Split::columns});
  if (turns) {
    const auto [query, key] = turn_heads(f, heads.query, heads.key, rotary, s.head_width, Turning::halves);
    heads = {query, key, heads.value};
  }
  heads.value = f.cache(heads.key, heads.value);
  const Tensor mixed = sunk_attention(f, model, heads, mask);
  const Tensor output =
      f.linear("o_proj", mixed, s.heads * s.head_width, s.width, {.bias = model.bias, .split = Split::rows});
  return f.leave_function(output, {heads.query, heads.key, heads.value, input});
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  const auto norm = [&](std::string_view name, Tensor of) {
    return f.rms_norm(name, of, s.width, model.named("RMSNorm"));
  };
  if (model.mixes) warn_of_routing(f);
  const DecoderBody body = {.class_name = model.named("Model"), .head = {.scales = true}};
  decoder_model(f, config, s, head, body, [&](Tensor ids, Tensor hidden) {
    hidden = f.scale(hidden);
    const Tensor all = f.call("causal_mask", {ids}, {{"padded", true}});
    const Tensor near = f.call("causal_mask", {ids}, {{"padded", true}});
    const Rotary rotary = rotary_tables(f, ids, s.head_width);
    hidden = stack(f, "layers", model.named("DecoderLayer"), s.layers, hidden, [&](Tensor x, std::int64_t index) {
      const auto at = static_cast<std::size_t>(index);
      const Tensor normed = norm("input_layernorm", x);
      const Tensor mixed = attention(f, model, normed, rotary, model.slides[at] ? near : all, !model.unturned[at]);
      const Tensor attended = f.add(x, f.scale(mixed));
      const Tensor again = norm("post_attention_layernorm", attended);
      const Tensor fed =
          model.mixes ? mixture(f, model, again) : gated_feed_forward(f, s, again, "GraniteSWAMLP", model.mlp_bias);
      return f.add(attended, f.scale(fed));
    });
    return f.leave_function(norm("norm", hidden), {all, near});
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>(
    {{"GraniteSWA", "granite_swa", "model", kAlwaysTied}, {"GraniteMoeSWA", "granitemoe_swa", "model", kAlwaysTied}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  t.labels();
  if (t.class_name().starts_with("GraniteMoe")) {
    (void)fused_experts(t, {.model_type = "granitemoe_swa",
                            .router = "layers.0.block_sparse_moe.router",
                            .list = "layers.0.block_sparse_moe.experts"});
    const std::int64_t both = t.value("layers.0.shared_mlp.input_linear", "out_features").value_or(0);
    t.set("shared_intermediate_size", both / 2);
  } else {
    t.size("intermediate_size", "layers.0.mlp.gate_proj", "out_features");
  }
  t.flag("attention_bias", "layers.0.self_attn.q_proj");
  t.flag("mlp_bias", "layers.0.mlp.gate_proj");
  t.assume("every layer has rotary positions, as the class has it");
  t.heads({.query = "layers.0.self_attn.q_proj", .key = "layers.0.self_attn.k_proj", .usual_width = 128});
}

inline constexpr Architecture kArchitecture = {.name = "granite_swa",
                                               .model_types = names<"granite_swa", "granitemoe_swa">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree};

}  // namespace granite_swa

}  // namespace gpumem::architectures
