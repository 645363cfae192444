// OLMo 1 to 3 and EXAONE 4: Llama's block with layer norms that hold no parameters (OLMo 1), or with norms after
// attention and feed-forward layer and over all queries and keys (OLMo 2 and 3) or those of each head (EXAONE 4).
// Source: transformers 4.48, models/olmo/modeling_olmo.py, olmo2; 4.54, exaone4; 4.57, olmo3.
#pragma once

#include <array>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

namespace olmo {

struct Model {
  DecoderSizes sizes;
  std::string_view prefix = "Olmo";
  bool second = false;  ///< OLMo 2, and 3, whose layers are the same
  bool exaone = false;
  std::vector<bool> sliding = {};  ///< by layer: its window slides; EXAONE turns only these, where there are any
  bool bias = false;
  bool clips = false;

  [[nodiscard]] std::string named(std::string_view part) const { return std::string(prefix).append(part); }
};

inline Model read(ConfigFields& config) {
  Model model;
  const std::string_view type = config.text({"model_type"}, "olmo");
  model.second = type != "olmo";
  model.exaone = type == "exaone4";
  model.prefix = model.exaone ? "Exaone4" : type == "olmo3" ? "Olmo3" : model.second ? "Olmo2" : "Olmo";
  model.sizes = decoder_sizes(config);
  if (model.exaone && config.has("sliding_window")) {
    const std::int64_t layers = model.sizes.layers;
    model.sliding = config.layers_with("layer_types", layers, std::string_view("sliding_attention"),
                                       std::string_view("full_attention"));
    const bool listed = !model.sliding.empty();
    constexpr std::int64_t kPattern = 4;  // of Exaone4Config: every fourth layer reads all tokens
    for (std::int64_t at = 0; !listed && at < layers; ++at) model.sliding.push_back((at + 1) % kPattern != 0);
  }
  config.ignore({"sliding_window_pattern"});
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

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary, std::int64_t index) {
  const std::int64_t width = model.sizes.width;
  const std::string feed_forward_class = model.named("MLP");
  if (!model.second) {
    const Tensor normed = norm(f, model, "input_layernorm", input, width);
    const Tensor attended = f.add(input, attention(f, model, normed, rotary, index));
    const Tensor again = norm(f, model, "post_attention_layernorm", attended, width);
    return f.add(attended, gated_feed_forward(f, model.sizes, again, feed_forward_class));
  }
  const Tensor mixed = norm(f, model, "post_attention_layernorm", attention(f, model, input, rotary, index), width);
  const Tensor attended = f.add(input, mixed);
  const Tensor fed = gated_feed_forward(f, model.sizes, attended, feed_forward_class);
  return f.add(attended, norm(f, model, "post_feedforward_layernorm", fed, width));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DecoderSizes& s = model.sizes;
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
                                                            {"Exaone4", "exaone4", "model", 2048}});
/// Published models, by width.
inline constexpr auto kPublished = std::to_array<PublishedHeads>({{2048, 16}, {4096, 32}, {5120, 40}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  t.size("intermediate_size", "layers.0.mlp.gate_proj", "out_features");
  t.flag("attention_bias", "layers.0.self_attn.q_proj");
  t.labels();
  const bool exaone = t.class_name().starts_with("Exaone4");
  t.heads({.query = "layers.0.self_attn.q_proj",
           .key = "layers.0.self_attn.k_proj",
           .norm = exaone ? "layers.0.self_attn.q_norm" : std::string_view(),
           .published = kPublished,
           .usual_width = 128});
}

inline constexpr Architecture kArchitecture = {.name = "olmo",
                                               .model_types = names<"olmo", "olmo2", "olmo3", "exaone4">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree};

}  // namespace olmo

// GLM-4 (glm), and the release of April 2025 (glm4), which has a norm after each half of a block too.
// Source: transformers 4.51, models/glm/modeling_glm.py, models/glm4/modeling_glm4.py.

namespace glm {

struct Model {
  DecoderSizes sizes;
  std::string_view prefix = "Glm";
  std::int64_t rotary_width = 2;
  bool bias = false;
  bool normed_behind = false;

  [[nodiscard]] std::string named(std::string_view part) const { return std::string(prefix).append(part); }
};

inline Model read(ConfigFields& config) {
  Model model;
  model.normed_behind = config.text({"model_type"}, "glm") == "glm4";
  model.prefix = model.normed_behind ? "Glm4" : "Glm";
  model.sizes = decoder_sizes(config);
  model.rotary_width = rotary_width(config, model.sizes, {"partial_rotary_factor"}, 0.5);
  model.bias = config.flag("attention_bias", false);
  return model;
}

/// Each block makes tables in which the elements of a pair are side by side, once for queries and keys.
inline Rotary paired(Forward& f, const Rotary& rotary) {
  const auto doubled = [&](Tensor table) {
    const Tensor half = f.slice(table, 3, 0, rotary.width / 2);
    return f.concatenate({half, half}, 3);
  };
  const Tensor cosines = doubled(rotary.cosines);
  return {cosines, doubled(rotary.sines), rotary.width};
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const InModule inside(f, "self_attn", model.named("Attention"));
  const DecoderSizes& s = model.sizes;
  const auto [query, key, value] = project_heads(f, s, input, {.bias = model.bias});
  const Rotary tables = paired(f, layer_tables(f, rotary));
  const Heads turned = {rotate(f, query, tables, s.head_width), rotate(f, key, tables, s.head_width), value};
  const Tensor attended = attend_cached(f, s, turned);
  return f.linear("o_proj", attended, s.heads * s.head_width, s.width, {.bias = false});
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const auto norm = [&](std::string_view name, Tensor tensor) {
    return f.rms_norm(name, tensor, model.sizes.width, model.named("RMSNorm"));
  };
  const auto behind = [&](std::string_view name, Tensor part) { return model.normed_behind ? norm(name, part) : part; };
  const Tensor mixed = attention(f, model, norm("input_layernorm", input), rotary);
  const Tensor attended = f.add(input, behind("post_self_attn_layernorm", mixed));
  const Tensor again = norm("post_attention_layernorm", attended);
  const Tensor fed = packed_feed_forward(f, model.sizes, again, model.named("MLP"));
  return f.add(attended, behind("post_mlp_layernorm", fed));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DecoderSizes& s = model.sizes;
  decoder_model(f, config, s, head, {.class_name = model.named("Model")}, [&](Tensor ids, Tensor hidden) {
    const Rotary rotary = rotary_tables(f, ids, model.rotary_width);
    hidden = stack(f, "layers", model.named("DecoderLayer"), s.layers, hidden,
                   [&](Tensor x, std::int64_t) { return block(f, model, x, rotary); });
    return f.rms_norm("norm", hidden, s.width, model.named("RMSNorm"));
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Glm", "glm", "model"}, {"Glm4", "glm4", "model"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  t.half("intermediate_size", "layers.0.mlp.gate_up_proj", "out_features");
  t.flag("attention_bias", "layers.0.self_attn.q_proj");
  t.labels();
  t.heads({.query = "layers.0.self_attn.q_proj", .key = "layers.0.self_attn.k_proj", .usual_width = 128});
}

inline constexpr Architecture kArchitecture = {
    .name = "glm", .model_types = names<"glm", "glm4">, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace glm

}  // namespace gpumem::architectures
