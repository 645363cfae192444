// GPT-NeoX, Pythia, and StableLM's first models: attention and feed-forward layer side by side, each after its
// own norm. Source: transformers 4.48, models/gpt_neox/modeling_gpt_neox.py.
#pragma once

#include <array>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

namespace gpt_neox_detail {

inline constexpr std::array<std::string_view, 1> kModelTypes = {"gpt_neox"};

struct Model {
  DecoderSizes sizes;
  std::int64_t rotary_width = 1;
  double dropout = 0.0;
  bool parallel = true;
  bool bias = true;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config, {.activation = "gelu"});
  model.rotary_width = rotary_width(config, model.sizes, {"rotary_pct", "partial_rotary_factor"}, 0.25);
  model.dropout = config.number({"hidden_dropout"}, 0.0);
  model.parallel = config.flag("use_parallel_residual", true);
  model.bias = config.flag("attention_bias", true);
  config.ignore({"classifier_dropout"});
  return model;
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const InModule inside(f, "attention", "GPTNeoXAttention");
  const DecoderSizes& s = model.sizes;
  const Tensor packed = f.linear("query_key_value", input, s.width, 3 * s.width, {.bias = model.bias});
  const Tensor each = split_heads(f, packed, 3 * s.head_width);
  const std::vector<Tensor> parts = f.split(each, 3, Sizes(3, s.head_width));
  const Heads turned = {rotate(f, parts[0], rotary, s.head_width), rotate(f, parts[1], rotary, s.head_width), parts[2]};
  f.cache(turned.key);
  f.cache(turned.value);
  const Tensor attended = attend(f, turned, {.dropout = s.attention_dropout});
  return f.linear("dense", attended, s.width, s.width, {.bias = model.bias});
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const std::int64_t width = model.sizes.width;
  const auto fed = [&](Tensor x) {
    const Tensor normed = f.layer_norm("post_attention_layernorm", x, width);
    const Tensor made = feed_forward(
        f, model.sizes, normed,
        {.class_name = "GPTNeoXMLP", .widen = "dense_h_to_4h", .narrow = "dense_4h_to_h", .activation = "act"});
    return f.dropout("post_mlp_dropout", made, model.dropout);
  };
  const Tensor mixed = attention(f, model, f.layer_norm("input_layernorm", input, width), rotary);
  const Tensor dropped = f.dropout("post_attention_dropout", mixed, model.dropout);
  if (model.parallel) return f.add(f.add(fed(input), dropped), input);
  const Tensor attended = f.add(dropped, input);
  return f.add(fed(attended), attended);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DecoderSizes& s = model.sizes;
  Tensor hidden = 0;
  {
    const InModule inside(f, "gpt_neox", "GPTNeoXModel");
    const Tensor ids = token_ids(f);
    hidden = f.dropout("emb_dropout", f.embedding("embed_in", ids, s.vocabulary, s.width), model.dropout);
    const Rotary rotary = rotary_tables(f, ids, model.rotary_width);
    hidden = stack(f, "layers", "GPTNeoXLayer", s.layers, hidden,
                   [&](Tensor x, std::int64_t) { return block(f, model, x, rotary); });
    hidden = f.layer_norm("final_layer_norm", hidden, s.width);
  }
  decoder_head(f, config, s, head, hidden, {.name = "embed_out", .upcasts = false});
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"GPTNeoX", "gpt_neox", "gpt_neox"}});
/// Published models, by width.
inline constexpr auto kPublished = std::to_array<PublishedHeads>({{128, 4},
                                                                  {256, 8},
                                                                  {512, 8},
                                                                  {768, 12},
                                                                  {1024, 16},
                                                                  {2048, 8, 16},
                                                                  {2048, 16},
                                                                  {2560, 32},
                                                                  {4096, 32},
                                                                  {5120, 40},
                                                                  {6144, 64}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const std::int64_t width = t.body("embed_in", "layers");
  t.size("intermediate_size", "layers.0.mlp.dense_h_to_4h", "out_features");
  t.flag("attention_bias", "layers.0.attention.query_key_value");
  t.labels();
  t.heads_of_width({.published = kPublished}, width);
}

}  // namespace gpt_neox_detail

[[nodiscard]] inline const Architecture& gpt_neox() {
  static constexpr Architecture kArchitecture = {.name = "gpt_neox",
                                                 .model_types = gpt_neox_detail::kModelTypes,
                                                 .write = gpt_neox_detail::write,
                                                 .classes = gpt_neox_detail::kClasses,
                                                 .read_tree = gpt_neox_detail::read_tree};
  return kArchitecture;
}

}  // namespace gpumem::architectures
