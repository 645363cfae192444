// StarCoder2: Llama's attention with biases, layer norms, a plain feed-forward layer.
// Source: transformers 4.48, models/starcoder2/modeling_starcoder2.py.
#pragma once

#include <array>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

namespace starcoder2_detail {

inline constexpr std::array<std::string_view, 1> kModelTypes = {"starcoder2"};

struct Model {
  DecoderSizes sizes;
  double dropout = 0.0;
  double embedding_dropout = 0.0;
  bool bias = true;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config, {.activation = "gelu_pytorch_tanh", .tied = true});
  model.dropout = config.number({"residual_dropout"}, 0.0);
  model.embedding_dropout = config.number({"embedding_dropout"}, 0.0);
  model.bias = config.flag("use_bias", true);
  return model;
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const InModule inside(f, "self_attn", "Starcoder2Attention");
  const DecoderSizes& s = model.sizes;
  const auto heads = [&](std::string_view name, std::int64_t count) {
    return split_heads(f, f.linear(name, input, s.width, count * s.head_width, {.bias = model.bias}), s.head_width);
  };
  const Tensor query = heads("q_proj", s.heads);
  const Tensor key = heads("k_proj", s.kv_heads);
  const Tensor value = heads("v_proj", s.kv_heads);
  const Heads turned = {rotate(f, query, rotary, s.head_width), rotate(f, key, rotary, s.head_width), value};
  f.cache(turned.key);
  f.cache(turned.value);
  const Tensor attended = attend(f, turned, {.groups = s.heads / s.kv_heads, .dropout = s.attention_dropout});
  const Tensor output = f.linear("o_proj", attended, s.heads * s.head_width, s.width, {.bias = model.bias});
  return f.dropout("residual_dropout", output, model.dropout);
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const std::int64_t width = model.sizes.width;
  const Tensor attended = f.add(input, attention(f, model, f.layer_norm("input_layernorm", input, width), rotary));
  const Tensor again = f.layer_norm("post_attention_layernorm", attended, width);
  return f.add(attended, feed_forward(f, model.sizes, again,
                                      {.class_name = "Starcoder2MLP",
                                       .widen = "c_fc",
                                       .narrow = "c_proj",
                                       .bias = model.bias,
                                       .dropout = model.dropout}));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DecoderSizes& s = model.sizes;
  Tensor hidden = 0;
  {
    const InModule inside(f, "model", "Starcoder2Model");
    const Tensor ids = token_ids(f);
    hidden = f.embedding("embed_tokens", ids, s.vocabulary, s.width);
    hidden = f.dropout("embedding_dropout", hidden, model.embedding_dropout);
    const Rotary rotary = rotary_tables(f, ids, s.head_width);
    hidden = stack(f, "layers", "Starcoder2DecoderLayer", s.layers, hidden,
                   [&](Tensor x, std::int64_t) { return block(f, model, x, rotary); });
    hidden = f.layer_norm("norm", hidden, s.width);
  }
  decoder_head(f, config, s, head, hidden);
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Starcoder2", "starcoder2", "model", kAlwaysTied}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  t.size("intermediate_size", "layers.0.mlp.c_fc", "out_features");
  t.flag("use_bias", "layers.0.self_attn.q_proj");
  t.labels();
  t.heads({.query = "layers.0.self_attn.q_proj", .key = "layers.0.self_attn.k_proj", .usual_width = 128});
}

}  // namespace starcoder2_detail

[[nodiscard]] inline const Architecture& starcoder2() {
  static constexpr Architecture kArchitecture = {.name = "starcoder2",
                                                 .model_types = starcoder2_detail::kModelTypes,
                                                 .write = starcoder2_detail::write,
                                                 .classes = starcoder2_detail::kClasses,
                                                 .read_tree = starcoder2_detail::read_tree};
  return kArchitecture;
}

}  // namespace gpumem::architectures
