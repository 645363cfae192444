// OPT: learned positions, biased projections, plain feed-forward layers; OPT-350M with norms after and narrower
// embeddings. Source: transformers 4.48, models/opt/modeling_opt.py: OPTSdpaAttention.
#pragma once

#include <array>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

namespace opt {

struct Model {
  DecoderSizes sizes;
  std::int64_t positions = 1;
  std::int64_t embedding_width = 1;
  double dropout = 0.1;
  bool norms_before = true;
  bool final_norm = true;
  bool bias = true;
  bool affine = true;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config, {.activation = "relu", .tied = true});
  model.positions = config.size({"max_position_embeddings"});
  model.embedding_width = config.size_or({"word_embed_proj_dim"}, model.sizes.width);
  model.dropout = config.number({"dropout"}, 0.1);
  model.norms_before = config.flag("do_layer_norm_before", true);
  model.final_norm = model.norms_before && !config.flag("_remove_final_layer_norm", false);
  model.bias = config.flag("enable_bias", true);
  model.affine = config.flag("layer_norm_elementwise_affine", true);
  if (config.number({"layerdrop"}, 0.0) > 0.0)
    config.fail("layers that are left out at random are not known", "layerdrop");
  config.ignore({"prefix"});
  return model;
}

inline Tensor norm(Forward& f, const Model& model, std::string_view name, Tensor input) {
  return f.layer(name, "LayerNorm", "layer_norm", {input},
                 {{"normalized_shape", model.sizes.width}, {"elementwise_affine", model.affine}});
}

inline Tensor attention(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "self_attn", "OPTSdpaAttention");
  const DecoderSizes& s = model.sizes;
  const auto projected = [&](std::string_view name) {
    return f.linear(name, input, s.width, s.width, {.bias = model.bias});
  };
  // Up to 4.51 _shape() copies each once, and what it copies is what the cache and the kernel get. Later the cache
  // holds views, and sdpa_attention_forward copies.
  const auto heads = [&](Tensor flat) { return f.contiguous(split_heads(f, flat, s.head_width), When::until_4_51); };
  const auto copied = [&](Tensor tensor) { return f.contiguous(tensor, When::in_4_52); };
  const Tensor query = heads(f.scale(projected("q_proj")));
  const Tensor key = heads(projected("k_proj"));
  const Tensor value = heads(projected("v_proj"));
  f.cache(key);
  f.cache(value);
  const Heads read = {copied(query), copied(key), copied(value)};
  const Tensor attended = attend(f, read, {.dropout = s.attention_dropout, .copies = false});
  const Tensor output = f.linear("out_proj", attended, s.width, s.width, {.bias = model.bias});
  return f.leave_function(output, {query, key, value, input});
}

inline Tensor block(Forward& f, const Model& model, Tensor input) {
  const DecoderSizes& s = model.sizes;
  const auto before = [&](std::string_view name, Tensor x) { return model.norms_before ? norm(f, model, name, x) : x; };
  const auto behind = [&](std::string_view name, Tensor x) { return model.norms_before ? x : norm(f, model, name, x); };
  const Tensor mixed = attention(f, model, before("self_attn_layer_norm", input));
  const Tensor sum = f.add(input, f.dropout("dropout", mixed, model.dropout));
  const Tensor attended = behind("self_attn_layer_norm", sum);
  const Tensor normed = before("final_layer_norm", attended);
  const Tensor wide = f.linear("fc1", normed, s.width, s.inner, {.bias = model.bias});
  const Tensor active = f.activation("activation_fn", wide, s.activation);
  const Tensor narrow = f.linear("fc2", active, s.inner, s.width, {.bias = model.bias});
  return behind("final_layer_norm", f.add(attended, f.dropout("dropout", narrow, model.dropout)));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DecoderSizes& s = model.sizes;
  const bool projects = model.embedding_width != s.width;
  Tensor hidden = 0;
  {
    const InModule outer(f, "model", "OPTModel");
    const InModule inside(f, "decoder", "OPTDecoder");
    const Tensor ids = f.token_input("input_ids");
    const Tensor mask = f.token_input("attention_mask");
    hidden = f.embedding("embed_tokens", ids, s.vocabulary, model.embedding_width);
    // Positions are counted from the mask, so each sample has its own; two rows come before the first.
    const Tensor places =
        f.embedding("embed_positions", mask, model.positions + 2, s.width, "OPTLearnedPositionalEmbedding");
    if (projects) hidden = f.linear("project_in", hidden, model.embedding_width, s.width, {.bias = false});
    hidden = f.add(hidden, places);
    hidden = stack(f, "layers", "OPTDecoderLayer", s.layers, hidden,
                   [&](Tensor x, std::int64_t) { return block(f, model, x); });
    if (model.final_norm) hidden = norm(f, model, "final_layer_norm", hidden);
    if (projects) hidden = f.linear("project_out", hidden, s.width, model.embedding_width, {.bias = false});
  }
  DecoderSizes of_head = s;
  of_head.width = model.embedding_width;
  decoder_head(f, config, of_head, head, hidden);
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"OPT", "opt", "model", kAlwaysTied}});
/// Published models, by width.
inline constexpr auto kPublished = std::to_array<PublishedHeads>(
    {{768, 12}, {1024, 16}, {2048, 32}, {2560, 32}, {4096, 32}, {5120, 40}, {7168, 56}, {9216, 72}, {12288, 96}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.size("vocab_size", "decoder.embed_tokens", "num_embeddings");
  t.size("word_embed_proj_dim", "decoder.embed_tokens", "embedding_dim");
  if (const auto rows = t.value("decoder.embed_positions", "num_embeddings"))
    t.set("max_position_embeddings", *rows - 2);
  t.size("hidden_size", "decoder.embed_positions", "embedding_dim");
  t.count("num_hidden_layers", "decoder.layers");
  t.size("ffn_dim", "decoder.layers.0.fc1", "out_features");
  t.flag("enable_bias", "decoder.layers.0.fc1");
  t.there("do_layer_norm_before", "decoder.final_layer_norm");
  t.flag("layer_norm_elementwise_affine", "decoder.layers.0.self_attn_layer_norm", "elementwise_affine");
  t.size("num_labels", "/score", "out_features");
  t.heads_of_width({.published = kPublished}, t.value("decoder.embed_positions", "embedding_dim").value_or(0));
}

inline constexpr Architecture kArchitecture = {
    .name = "opt", .model_types = names<"opt">, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace opt

}  // namespace gpumem::architectures
