// GLM-4 (glm), and the release of April 2025 (glm4), which has a norm after each half of a block too.
// Source: transformers 4.51, models/glm/modeling_glm.py, models/glm4/modeling_glm4.py.
#pragma once

#include <array>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

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
  const auto heads = [&](std::string_view name, std::int64_t count) {
    return split_heads(f, f.linear(name, input, s.width, count * s.head_width, {.bias = model.bias}), s.head_width);
  };
  const Tensor query = heads("q_proj", s.heads);
  const Tensor key = heads("k_proj", s.kv_heads);
  const Tensor value = heads("v_proj", s.kv_heads);
  const Rotary tables = paired(f, rotary);
  const Heads turned = {rotate(f, query, tables, s.head_width), rotate(f, key, tables, s.head_width), value};
  f.cache(turned.key);
  f.cache(turned.value);
  const Tensor attended = attend(f, turned, {.groups = s.heads / s.kv_heads, .dropout = s.attention_dropout});
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
