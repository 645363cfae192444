// Llama 4's text model: each expert multiplies every token, weighted by a score that is zero for most; queries and keys
// turned as complex numbers in float32 and normed without weights; one layer in four has no positions.
// Source: transformers 4.57, models/llama4/modeling_llama4.py: Llama4TextModel, Llama4TextMoe, Llama4TextAttention.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/mixture.hpp"

namespace gpumem::architectures {

namespace llama4 {

struct Model {
  DecoderSizes sizes;
  Mixture mixture;
  std::int64_t dense_inner = 1;  ///< of layers without experts
  std::vector<bool> mixes;       ///< by layer
  std::vector<bool> turns;       ///< by layer
  bool bias = false;
  bool norms = true;   ///< queries and keys of layers that turn
  bool scales = true;  ///< the queries of layers that do not
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config);
  const std::int64_t layers = model.sizes.layers;
  model.mixture = {.experts = config.size({"num_local_experts"}),
                   .per_token = config.size_or({"num_experts_per_tok"}, 1),
                   .inner = model.sizes.inner};
  check_mixture(config, model.mixture, layers, "num_local_experts", "num_experts_per_tok");
  model.dense_inner = config.size_or({"intermediate_size_mlp"}, model.sizes.inner);
  const std::int64_t step = config.size_or({"interleave_moe_layer_step"}, 1);
  const std::int64_t unturned = config.size_or({"no_rope_layer_interval", "nope_layer_interval"}, 4);
  model.turns = config.layers_with("no_rope_layers", layers, 1, 0);
  const bool listed = !model.turns.empty();
  for (std::int64_t at = 0; at < layers; ++at) {
    model.mixes.push_back((at + 1) % step == 0);
    if (!listed) model.turns.push_back((at + 1) % unturned != 0);
  }
  if (std::vector<bool> own = config.layers_listed("moe_layers", layers); !own.empty()) model.mixes = std::move(own);
  model.bias = config.flag("attention_bias", false);
  model.norms = config.flag("use_qk_norm", true);
  const core::JsonValue* tuning = config.find("attn_temperature_tuning");
  model.scales =
      tuning == nullptr || !(tuning->is(0) || (tuning->is(core::JsonValue::Kind::boolean) && !tuning->boolean()));
  config.ignore({"router_aux_loss_coef", "router_jitter_noise", "output_router_logits", "attention_chunk_size",
                 "attn_scale", "floor_scale", "for_llm_compression"});
  return model;
}

/// Heads [N, S, heads, d] times complex numbers of their positions, of a float32 copy; then normed, where the model
/// does.
inline Tensor turned(Forward& f, const Model& model, Tensor heads, Tensor positions) {
  const Tensor wide = f.multiply(f.to(heads, "float32"), positions);
  const Tensor back = f.as_type_of(wide, heads);
  if (!model.norms) return back;
  return plain_norm(f, "qk_norm", "Llama4TextL2Norm", back, model.sizes.head_width);
}

/// Tables of all layers: of the turning, [1, S, 1, d], and of the queries' scales, [1, S, 1, 1].
struct Tables {
  Tensor positions = 0;
  Tensor scales = 0;
};

inline Tensor attention(Forward& f, const Model& model, Tensor input, const Tables& tables, std::int64_t index) {
  const InModule inside(f, "self_attn", "Llama4TextAttention");
  const DecoderSizes& s = model.sizes;
  const auto heads = [&](std::string_view name, std::int64_t count) {
    const Linear linear = {.bias = model.bias, .split = Split::columns};
    return f.unflatten(f.linear(name, input, s.width, count * s.head_width, linear), 2, {-1, s.head_width});
  };
  Tensor query = heads("q_proj", s.heads);
  Tensor key = heads("k_proj", s.kv_heads);
  const Tensor value = heads("v_proj", s.kv_heads);
  const bool turns = model.turns[static_cast<std::size_t>(index)];
  if (turns) {
    query = turned(f, model, query, tables.positions);
    key = turned(f, model, key, tables.positions);
  } else if (model.scales) {
    query = f.as_type_of(f.multiply(query, tables.scales), query);
  }
  const auto first = [&](Tensor of) { return f.permute(of, {0, 2, 1, 3}); };
  const Heads ready = {first(query), first(key), first(value)};
  const Tensor attended = attend_cached(f, s, ready);
  return f.linear("o_proj", attended, s.heads * s.head_width, s.width, {.bias = model.bias, .split = Split::rows});
}

/// The layers of a feed-forward layer, in the module that is open.
inline Tensor fed(Forward& f, const Model& model, Tensor input, std::int64_t inner) {
  const std::int64_t width = model.sizes.width;
  const Linear wide = {.bias = false, .split = Split::columns};
  const Tensor gate = f.linear("gate_proj", input, width, inner, wide);
  const Tensor open = f.activation("activation_fn", gate, model.sizes.activation);
  const Tensor up = f.linear("up_proj", input, width, inner, wide);
  return f.linear("down_proj", f.multiply(open, up), inner, width, {.bias = false, .split = Split::rows});
}

/// What the experts make of rows that are theirs: all tokens, once for each expert.
inline Tensor routed(Forward& f, const Model& model, Tensor rows) {
  const Mixture& m = model.mixture;
  const std::int64_t width = model.sizes.width;
  const InModule inside(f, "experts", "Llama4TextExperts");
  const auto product = [&](Tensor of, std::string_view name, std::int64_t in, std::int64_t out) {
    return f.call("grouped_product", {of, f.parameter(name, {m.experts, in, out})},
                  {{"batched", true}, {"of_all_experts", true}});
  };
  const Tensor wide = product(rows, "gate_up_proj", width, 2 * m.inner);
  const Tensor active = gated_halves(f, m.inner, model.sizes.activation, wide);
  return f.leave_function(product(active, "down_proj", m.inner, width), {wide});
}

inline Tensor mixture(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "feed_forward", "Llama4TextMoe");
  const Mixture& m = model.mixture;
  const auto repeated = [&](Tensor of) {
    return f.call("gather_tokens", {of},
                  {{"experts", m.experts}, {"per_token", m.experts}, {"ranks", m.experts}, {"repeats", true}});
  };
  const Linear router = {.bias = false, .class_name = "Llama4Router"};
  const Tensor logits = f.linear("router", input, model.sizes.width, m.experts, router);
  const Tensor scores = f.as_type_of(f.call("sigmoid", {f.to(logits, "float32")}), logits);
  const Tensor rows = f.multiply(repeated(input), repeated(f.slice(scores, 2, 0, 1)));
  const Tensor made = routed(f, model, rows);
  Tensor own = 0;
  {
    const InModule shared(f, "shared_expert", "Llama4TextMLP");
    own = fed(f, model, input, m.inner);
  }
  const Tensor sum = f.call("scatter_tokens", {own, made}, {{"sums", true}});
  return f.leave_function(sum, {rows, made, scores, logits});
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Tables& tables, std::int64_t index) {
  const auto norm = [&](std::string_view name, Tensor tensor) {
    return f.rms_norm(name, tensor, model.sizes.width, "Llama4TextRMSNorm");
  };
  const Tensor attended = f.add(input, attention(f, model, norm("input_layernorm", input), tables, index));
  const Tensor again = norm("post_attention_layernorm", attended);
  if (model.mixes[static_cast<std::size_t>(index)]) return f.add(attended, mixture(f, model, again));
  const InModule inside(f, "feed_forward", "Llama4TextMLP");
  return f.add(attended, fed(f, model, again, model.dense_inner));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  if (std::find(model.mixes.begin(), model.mixes.end(), true) != model.mixes.end()) {
    f.warn(
        "every expert multiplies every token, as transformers computes this model; other programs send each token to "
        "its own experts alone");
  }
  decoder_model(f, config, s, head, {.class_name = "Llama4TextModel"}, [&](Tensor ids, Tensor hidden) {
    const auto table = [&](std::int64_t width) {
      const Tensor rows = f.call("rotary_table", {ids}, {{"width", width}, {"dtype", std::string("float32")}});
      return f.permute(rows, {0, 2, 1, 3});
    };
    const Tables tables = {table(s.head_width), table(1)};
    hidden = stack(f, "layers", "Llama4TextDecoderLayer", s.layers, hidden,
                   [&](Tensor x, std::int64_t index) { return block(f, model, x, tables, index); });
    return f.rms_norm("norm", hidden, s.width, "Llama4TextRMSNorm");
  });
}

inline constexpr auto kClasses =
    std::to_array<ModelClass>({{"Llama4", "llama4_text", "model"}, {"Llama4Text", "llama4_text", "model"}});

/// What print(model) shows: the router's width is the number of experts, and a layer without one has none.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  std::int64_t first = 0;
  const std::int64_t layers = t.count_of("layers");
  const auto at = [&](std::string_view part) {
    return "layers." + std::to_string(first) + ".feed_forward." + std::string(part);
  };
  while (first + 1 < layers && !t.has(at("router"))) ++first;
  t.size("num_local_experts", at("router"), "out_features");
  t.size("intermediate_size", at("shared_expert.gate_proj"), "out_features");
  t.size("intermediate_size_mlp", "layers.0.feed_forward.gate_proj", "out_features");
  t.set("interleave_moe_layer_step", first + 1);
  t.there("use_qk_norm", "layers.0.self_attn.qk_norm");
  t.flag("attention_bias", "layers.0.self_attn.q_proj");
  t.labels();
  t.heads({.query = "layers.0.self_attn.q_proj", .key = "layers.0.self_attn.k_proj", .usual_width = 128});
}

inline constexpr Architecture kArchitecture = {
    .name = "llama4", .model_types = names<"llama4_text">, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace llama4

}  // namespace gpumem::architectures
