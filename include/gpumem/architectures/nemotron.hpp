// Nemotron and Minitron: layer norms whose weight is counted from one, a feed-forward layer with a squared ReLU and no
// gate, positions on part of each head.
// Source: transformers 4.48, models/nemotron/modeling_nemotron.py.
#pragma once

#include <array>
#include <string>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

namespace nemotron_detail {

inline constexpr std::array<std::string_view, 1> kModelTypes = {"nemotron"};

struct Model {
  DecoderSizes sizes;
  std::int64_t rotary_width = 2;
  bool attention_bias = false;
  bool mlp_bias = false;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config, {.activation = "relu2"});
  model.rotary_width =
      rotary_width(config, model.sizes, {"partial_rotary_factor", "rope_percent", "rope_percentage"}, 0.5);
  model.attention_bias = config.flag("attention_bias", false);
  model.mlp_bias = config.flag("mlp_bias", false);
  return model;
}

/// layer_norm with 1 + weight, a tensor as narrow as the model.
inline Tensor norm(Forward& f, const Model& model, std::string_view name, Tensor input) {
  return f.layer(name, "NemotronLayerNorm1P", "layer_norm", {input},
                 {{"normalized_shape", model.sizes.width}, {"bias", true}});
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const RotaryAttention options = {
      .class_name = "NemotronAttention", .input_bias = model.attention_bias, .output_bias = model.attention_bias};
  const Tensor normed = norm(f, model, "input_layernorm", input);
  const Tensor attended = f.add(input, rotary_attention(f, model.sizes, normed, rotary, options));
  const Tensor again = norm(f, model, "post_attention_layernorm", attended);
  return f.add(attended, feed_forward(f, model.sizes, again,
                                      {.class_name = "NemotronMLP",
                                       .widen = "up_proj",
                                       .narrow = "down_proj",
                                       .activation = "act_fn",
                                       .bias = model.mlp_bias,
                                       .split = true}));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  Tensor hidden = 0;
  {
    const InModule inside(f, "model", "NemotronModel");
    const Tensor ids = token_ids(f);
    hidden = f.embedding("embed_tokens", ids, s.vocabulary, s.width);
    const Rotary rotary = rotary_tables(f, ids, model.rotary_width);
    hidden = stack(f, "layers", "NemotronDecoderLayer", s.layers, hidden,
                   [&](Tensor x, std::int64_t) { return block(f, model, x, rotary); });
    hidden = norm(f, model, "norm", hidden);
  }
  decoder_head(f, config, s, head, hidden);
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Nemotron", "nemotron", "model"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  t.size("intermediate_size", "layers.0.mlp.up_proj", "out_features");
  t.flag("attention_bias", "layers.0.self_attn.q_proj");
  t.flag("mlp_bias", "layers.0.mlp.up_proj");
  t.labels();
  t.heads({.query = "layers.0.self_attn.q_proj", .key = "layers.0.self_attn.k_proj", .usual_width = 128});
}

}  // namespace nemotron_detail

[[nodiscard]] inline const Architecture& nemotron() {
  static constexpr Architecture kArchitecture = {.name = "nemotron",
                                                 .model_types = nemotron_detail::kModelTypes,
                                                 .write = nemotron_detail::write,
                                                 .classes = nemotron_detail::kClasses,
                                                 .read_tree = nemotron_detail::read_tree};
  return kArchitecture;
}

}  // namespace gpumem::architectures
