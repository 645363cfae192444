// Phi-1, 1.5 and 2: attention and feed-forward layer side by side after one norm, rotary positions on part of
// each head, biases everywhere. Source: transformers 4.48, models/phi/modeling_phi.py.
#pragma once

#include <array>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

namespace phi {

struct Model {
  DecoderSizes sizes;
  double dropout = 0.0;
  double embedding_dropout = 0.0;
  std::int64_t rotary_width = 1;
  bool normed_heads = false;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config, {.activation = "gelu_new", .inner_factor = 4});
  model.dropout = config.number({"resid_pdrop"}, 0.0);
  model.embedding_dropout = config.number({"embd_pdrop"}, 0.0);
  model.rotary_width = rotary_width(config, model.sizes, {"partial_rotary_factor"}, 0.5);
  model.normed_heads = config.flag("qk_layernorm", false);
  return model;
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const InModule inside(f, "self_attn", "PhiAttention");
  const DecoderSizes& s = model.sizes;
  const auto heads = [&](std::string_view name, std::int64_t count, std::string_view norm) {
    const Tensor parted = split_heads(f, f.linear(name, input, s.width, count * s.head_width), s.head_width);
    return model.normed_heads && !norm.empty() ? f.layer_norm(norm, parted, s.head_width) : parted;
  };
  const Tensor query = heads("q_proj", s.heads, "q_layernorm");
  const Tensor key = heads("k_proj", s.kv_heads, "k_layernorm");
  const Tensor value = heads("v_proj", s.kv_heads, "");
  const Heads turned = {rotate(f, query, rotary, s.head_width), rotate(f, key, rotary, s.head_width), value};
  f.cache(turned.key);
  f.cache(turned.value);
  const Tensor attended = attend(f, turned, {.groups = s.heads / s.kv_heads, .dropout = s.attention_dropout});
  return f.linear("dense", attended, s.heads * s.head_width, s.width);
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const Tensor normed = f.layer_norm("input_layernorm", input, model.sizes.width);
  const Tensor mixed = f.dropout("resid_dropout", attention(f, model, normed, rotary), model.dropout);
  const Tensor fed =
      f.dropout("resid_dropout", feed_forward(f, model.sizes, normed, {.class_name = "PhiMLP"}), model.dropout);
  return f.add(f.add(mixed, fed), input);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DecoderSizes& s = model.sizes;
  decoder_model(f, config, s, head, {.class_name = "PhiModel", .head = {.bias = true}}, [&](Tensor ids, Tensor hidden) {
    hidden = f.dropout("embed_dropout", hidden, model.embedding_dropout);
    const Rotary rotary = rotary_tables(f, ids, model.rotary_width);
    hidden = stack(f, "layers", "PhiDecoderLayer", s.layers, hidden,
                   [&](Tensor x, std::int64_t) { return block(f, model, x, rotary); });
    return f.layer_norm("final_layernorm", hidden, s.width);
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Phi", "phi", "model"}});
/// Published models, by width.
inline constexpr auto kPublished = std::to_array<PublishedHeads>({{2048, 32}, {2560, 32}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const std::int64_t width = t.body("embed_tokens", "layers");
  t.size("intermediate_size", "layers.0.mlp.fc1", "out_features");
  t.there("qk_layernorm", "layers.0.self_attn.q_layernorm");
  t.dropout("resid_pdrop", "layers.0.resid_dropout");
  if (width == 2560) t.set_text("partial_rotary_factor", "0.4");
  t.labels();
  t.heads({.query = "layers.0.self_attn.q_proj", .key = "layers.0.self_attn.k_proj", .published = kPublished});
}

inline constexpr Architecture kArchitecture = {
    .name = "phi", .model_types = names<"phi">, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace phi

// Phi-3, Phi-3.5 and Phi-4: queries, keys and values from one projection, gate and values of the feed-forward layer
// from another. Source: transformers 4.48, models/phi3/modeling_phi3.py.

namespace phi3 {

struct Model {
  DecoderSizes sizes;
  double dropout = 0.0;  ///< of what joins the residual
  std::int64_t rotary_width = 1;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config);
  model.dropout = config.number({"resid_pdrop"}, 0.0);
  model.rotary_width = rotary_width(config, model.sizes, {"partial_rotary_factor"}, 1.0);
  config.ignore({"embd_pdrop"});
  return model;
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const InModule inside(f, "self_attn", "Phi3Attention");
  const DecoderSizes& s = model.sizes;
  const std::int64_t queries = s.heads * s.head_width;
  const std::int64_t keys = s.kv_heads * s.head_width;
  const Tensor packed = f.linear("qkv_proj", input, s.width, queries + 2 * keys, {.bias = false});
  const Tensor query = split_heads(f, f.slice(packed, 2, 0, queries), s.head_width);
  const Tensor key = split_heads(f, f.slice(packed, 2, queries, keys), s.head_width);
  const Tensor value = split_heads(f, f.slice(packed, 2, queries + keys, keys), s.head_width);
  // What is turned is joined to the rest of the head, even where nothing is left of it: heads lie in order from then
  // on.
  const auto turn = [&](Tensor heads) { return f.contiguous(rotate(f, heads, rotary, s.head_width)); };
  const Heads turned = {turn(query), turn(key), value};
  f.cache(turned.key);
  f.cache(turned.value);
  const Tensor attended = attend(f, turned, {.groups = s.heads / s.kv_heads, .dropout = s.attention_dropout});
  return f.linear("o_proj", attended, queries, s.width, {.bias = false});
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const std::int64_t width = model.sizes.width;
  const Tensor mixed = attention(f, model, f.rms_norm("input_layernorm", input, width, "Phi3RMSNorm"), rotary);
  const Tensor attended = f.add(input, f.dropout("resid_attn_dropout", mixed, model.dropout));
  const Tensor again = f.rms_norm("post_attention_layernorm", attended, width, "Phi3RMSNorm");
  return f.add(attended,
               f.dropout("resid_mlp_dropout", packed_feed_forward(f, model.sizes, again, "Phi3MLP"), model.dropout));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DecoderSizes& s = model.sizes;
  decoder_model(f, config, s, head, {.class_name = "Phi3Model"}, [&](Tensor ids, Tensor hidden) {
    const Rotary rotary = rotary_tables(f, ids, model.rotary_width);
    hidden = stack(f, "layers", "Phi3DecoderLayer", s.layers, hidden,
                   [&](Tensor x, std::int64_t) { return block(f, model, x, rotary); });
    return f.rms_norm("norm", hidden, s.width, "Phi3RMSNorm");
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Phi3", "phi3", "model", 3072, 200064}});
/// Published models, by width.
inline constexpr auto kPublished = std::to_array<PublishedHeads>({{5120, 40}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  t.half("intermediate_size", "layers.0.mlp.gate_up_proj", "out_features");
  t.dropout("resid_pdrop", "layers.0.resid_attn_dropout");
  t.labels();
  const std::int64_t queries = t.value("layers.0.self_attn.o_proj", "in_features").value_or(0);
  const std::int64_t packed = t.value("layers.0.self_attn.qkv_proj", "out_features").value_or(0);
  // Phi-3 mini has as many keys as queries, 96 wide; all others have heads of 128.
  const bool mini = packed == 3 * queries && queries == 3072;
  const std::int64_t each = t.heads_of_width({.published = kPublished, .usual_width = mini ? 96 : 128}, queries);
  if (each > 0 && packed > queries) t.set("num_key_value_heads", (packed - queries) / 2 / each);
  if (!mini && queries == 3072) t.set_text("partial_rotary_factor", "0.75");
}

inline constexpr Architecture kArchitecture = {
    .name = "phi3", .model_types = names<"phi3">, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace phi3

}  // namespace gpumem::architectures
