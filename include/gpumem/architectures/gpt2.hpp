// GPT-2: learned positions, one projection for queries, keys and values, plain feed-forward layers, dropout.
// Source: transformers 4.48, models/gpt2/modeling_gpt2.py.
#pragma once

#include <array>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

namespace gpt2 {

struct Model {
  DecoderSizes sizes;
  std::int64_t positions = 1;
  double embedding_dropout = 0.1;
  double attention_dropout = 0.1;
  double dropout = 0.1;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config, {.activation = "gelu_new", .tied = true, .inner_factor = 4});
  model.positions = config.size({"n_positions", "n_ctx", "max_position_embeddings"});
  model.embedding_dropout = config.number({"embd_pdrop"}, 0.1);
  model.attention_dropout = config.number({"attn_pdrop"}, 0.1);
  model.dropout = config.number({"resid_pdrop"}, 0.1);
  if (config.flag("add_cross_attention", false))
    config.fail("cross attention is not known here", "add_cross_attention");
  config.ignore({"scale_attn_weights", "scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn", "summary_type",
                 "summary_use_proj", "summary_activation", "summary_proj_to_labels", "summary_first_dropout"});
  return model;
}

inline Tensor attention(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "attn", "GPT2Attention");
  const DecoderSizes& s = model.sizes;
  // The causal mask of torch.tril, which eager attention reads.
  f.constant("bias", {1, 1, model.positions, model.positions}, "bool");
  const Tensor packed = f.linear("c_attn", input, s.width, 3 * s.width, {.class_name = "Conv1D"});
  const std::vector<Tensor> parts = f.split(packed, 2, Sizes(3, s.width));
  const Heads heads = {split_heads(f, parts[0], s.head_width), split_heads(f, parts[1], s.head_width),
                       split_heads(f, parts[2], s.head_width)};
  f.cache(heads.key);
  f.cache(heads.value);
  const Tensor attended = attend(f, heads, {.dropout = model.attention_dropout});
  const Tensor output = f.linear("c_proj", attended, s.width, s.width, {.class_name = "Conv1D"});
  return f.dropout("resid_dropout", output, model.dropout);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DecoderSizes& s = model.sizes;
  Tensor hidden = 0;
  {
    const InModule inside(f, "transformer", "GPT2Model");
    hidden = gpt2_body(f, s,
                       {.block_class = "GPT2Block",
                        .feed_forward_class = "GPT2MLP",
                        .positions = model.positions,
                        .embedding_dropout = model.embedding_dropout,
                        .dropout = model.dropout,
                        .linear_class = "Conv1D"},
                       [&](Tensor input) { return attention(f, model, input); });
  }
  decoder_head(f, config, s, head, hidden, {.upcasts = false});
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"GPT2", "gpt2", "transformer", kAlwaysTied}});
/// Published models, by width.
inline constexpr auto kPublished = std::to_array<PublishedHeads>({{768, 12}, {1024, 16}, {1280, 20}, {1600, 25}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const std::int64_t width = t.body("wte", "h");
  t.size("n_positions", "wpe", "num_embeddings");
  t.size("n_inner", "h.0.mlp.c_fc", "out_features");
  t.dropout("attn_pdrop", "h.0.attn.attn_dropout");
  t.labels();
  t.heads_of_width({.published = kPublished}, width);
}

inline constexpr Architecture kArchitecture = {
    .name = "gpt2", .model_types = names<"gpt2">, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace gpt2

// GPT-BigCode (SantaCoder, StarCoder): GPT-2's block with plain linear layers, and one head of keys and values for all.
// Source: transformers 4.48, models/gpt_bigcode/modeling_gpt_bigcode.py (GPTBigCodeSdpaAttention).

namespace gpt_bigcode {

struct Model {
  DecoderSizes sizes;
  std::int64_t positions = 1;
  double embedding_dropout = 0.1;
  double dropout = 0.1;
  bool shared_keys = true;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config, {.activation = "gelu_pytorch_tanh", .tied = true, .inner_factor = 4});
  model.sizes.attention_dropout = config.number({"attn_pdrop"}, 0.1);
  model.positions = config.size({"n_positions", "max_position_embeddings"});
  model.embedding_dropout = config.number({"embd_pdrop"}, 0.1);
  model.dropout = config.number({"resid_pdrop"}, 0.1);
  model.shared_keys = config.flag("multi_query", true);
  if (config.flag("add_cross_attention", false))
    config.fail("cross attention is not known here", "add_cross_attention");
  config.ignore({"attention_softmax_in_fp32", "scale_attention_softmax_in_fp32", "scale_attn_weights", "summary_type",
                 "summary_use_proj", "summary_activation", "summary_proj_to_labels", "summary_first_dropout",
                 "inference_runner", "pre_allocate_kv_cache", "validate_runner_input", "num_key_value_heads",
                 "pad_key_length"});
  return model;
}

inline Tensor attention(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "attn", "GPTBigCodeSdpaAttention");
  const DecoderSizes& s = model.sizes;
  const std::int64_t both = 2 * s.head_width;
  Heads heads;
  if (model.shared_keys) {
    const Tensor packed = f.linear("c_attn", input, s.width, s.width + both);
    const std::vector<Tensor> parts = f.split(packed, 2, {s.width, both});
    f.cache(parts[1], Caches::always);
    const std::vector<Tensor> pair = f.split(parts[1], 2, {s.head_width, s.head_width});
    // One head, seen as many: the kernel reads it through a stride of 0.
    const auto shared = [&](Tensor one) {
      const Tensor head = f.call("unsqueeze", {one}, {{"dim", std::int64_t{1}}});
      return f.call("expand", {head}, {{"shape", Sizes{-1, s.heads, -1, -1}}});
    };
    heads.query = split_heads(f, parts[0], s.head_width);
    heads.key = shared(pair[0]);
    heads.value = shared(pair[1]);
  } else {
    const Tensor packed = split_heads(f, f.linear("c_attn", input, s.width, 3 * s.width), 3 * s.head_width);
    const std::vector<Tensor> parts = f.split(packed, 3, {s.head_width, both});
    f.cache(parts[1], Caches::always);
    const std::vector<Tensor> pair = f.split(parts[1], 3, {s.head_width, s.head_width});
    heads = {parts[0], pair[0], pair[1]};
  }
  const Tensor attended = attend(f, heads, {.dropout = s.attention_dropout, .copies = false});
  return f.dropout("resid_dropout", f.linear("c_proj", attended, s.width, s.width), model.dropout);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DecoderSizes& s = model.sizes;
  Tensor hidden = 0;
  {
    const InModule inside(f, "transformer", "GPTBigCodeModel");
    f.constant("bias", {model.positions, model.positions}, "bool");
    hidden = gpt2_body(f, s,
                       {.block_class = "GPTBigCodeBlock",
                        .feed_forward_class = "GPTBigCodeMLP",
                        .positions = model.positions,
                        .embedding_dropout = model.embedding_dropout,
                        .dropout = model.dropout},
                       [&](Tensor input) { return attention(f, model, input); });
  }
  // The logits are held while backward runs. What holds them is not found in the model's code; published runs of a
  // whole and of an adapted santacoder, with two forms of the loss, hold just these and, under autocast, their float32
  // copy.
  decoder_head(f, config, s, head, hidden, {.upcasts = false, .outlives_loss = true});
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"GPTBigCode", "gpt_bigcode", "transformer", kAlwaysTied}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const std::int64_t width = t.body("wte", "h");
  t.size("n_positions", "wpe", "num_embeddings");
  t.size("n_inner", "h.0.mlp.c_fc", "out_features");
  t.dropout("attn_pdrop", "h.0.attn.attn_dropout");
  t.labels();
  const std::int64_t both = t.value("h.0.attn.c_attn", "out_features").value_or(0) - width;
  // All queries share a key and a value, which are a head wide each.
  const bool shared = both > 1 && both < 2 * width;
  t.set_flag("multi_query", shared);
  if (shared && width % (both / 2) == 0) t.set("num_attention_heads", width / (both / 2));
  if (!shared) t.heads_of_width({}, width);
}

inline constexpr Architecture kArchitecture = {.name = "gpt_bigcode",
                                               .model_types = names<"gpt_bigcode">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree};

}  // namespace gpt_bigcode

// GPT-Neo: GPT-2's block with unbiased queries, keys and values, and attention written out in float32.
// Source: transformers 4.48, models/gpt_neo/modeling_gpt_neo.py.

namespace gpt_neo {

struct Model {
  DecoderSizes sizes;
  std::int64_t positions = 1;
  double embedding_dropout = 0.0;
  double dropout = 0.0;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config, {.activation = "gelu_new", .tied = true, .inner_factor = 4});
  model.positions = config.size({"max_position_embeddings"});
  model.embedding_dropout = config.number({"embed_dropout"}, 0.0);
  model.dropout = config.number({"resid_dropout"}, 0.0);
  config.ignore({"attention_layers", "attention_types", "window_size", "classifier_dropout", "summary_type",
                 "summary_use_proj", "summary_activation", "summary_proj_to_labels", "summary_first_dropout"});
  return model;
}

inline Tensor attention(Forward& f, const Model& model, Tensor input) {
  const InModule outer(f, "attn", "GPTNeoAttention");
  const InModule inside(f, "attention", "GPTNeoSelfAttention");
  const DecoderSizes& s = model.sizes;
  f.constant("bias", {1, 1, model.positions, model.positions}, "bool");
  const auto heads = [&](std::string_view name) {
    return split_heads(f, f.linear(name, input, s.width, s.width, {.bias = false}), s.head_width);
  };
  const Tensor query = heads("q_proj");
  const Tensor key = heads("k_proj");
  const Tensor value = heads("v_proj");
  f.cache(key);
  f.cache(value);
  const Tensor turned = f.permute(f.to(key, "float32"), {0, 1, 3, 2});
  const Tensor scores = f.call("where", {f.call("matmul", {f.to(query, "float32"), turned})}, {{"mask_stands", true}});
  const Tensor weights = f.as_type_of(f.call("softmax", {scores}), value);
  const Tensor dropped = f.dropout("attn_dropout", weights, s.attention_dropout);
  const Tensor attended = merge_heads(f, f.call("matmul", {dropped, value}));
  return f.dropout("resid_dropout", f.linear("out_proj", attended, s.width, s.width), model.dropout);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DecoderSizes& s = model.sizes;
  Tensor hidden = 0;
  {
    const InModule inside(f, "transformer", "GPTNeoModel");
    hidden = gpt2_body(f, s,
                       {.block_class = "GPTNeoBlock",
                        .feed_forward_class = "GPTNeoMLP",
                        .positions = model.positions,
                        .embedding_dropout = model.embedding_dropout,
                        .dropout = model.dropout},
                       [&](Tensor input) { return attention(f, model, input); });
  }
  decoder_head(f, config, s, head, hidden, {.retyped = true});
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"GPTNeo", "gpt_neo", "transformer", kAlwaysTied}});
/// Published models, by width.
inline constexpr auto kPublished = std::to_array<PublishedHeads>({{768, 12}, {2048, 16}, {2560, 20}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const std::int64_t width = t.body("wte", "h");
  t.size("max_position_embeddings", "wpe", "num_embeddings");
  t.size("intermediate_size", "h.0.mlp.c_fc", "out_features");
  t.dropout("attention_dropout", "h.0.attn.attention.attn_dropout");
  t.labels();
  t.heads_of_width({.published = kPublished}, width);
}

inline constexpr Architecture kArchitecture = {
    .name = "gpt_neo", .model_types = names<"gpt_neo">, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace gpt_neo

// OPT: learned positions, biased projections, plain feed-forward layers; OPT-350M with norms after and narrower
// embeddings. Source: transformers 4.48, models/opt/modeling_opt.py: OPTSdpaAttention.

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
  config.ignore({"prefix", "init_std"});
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
