// BLOOM: no positions but a bias that falls with the distance (ALiBi), attention written out.
// Source: transformers 4.48, models/bloom/modeling_bloom.py.
#pragma once

#include <algorithm>
#include <array>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

namespace bloom {

struct Model {
  DecoderSizes sizes;
  double dropout = 0.0;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config, {.activation = "bloom_gelu", .tied = true, .inner_factor = 4});
  model.dropout = config.number({"hidden_dropout"}, 0.0);
  config.ignore({"apply_residual_connection_post_layernorm", "slow_but_exact", "offset_alibi", "seq_length",
                 "skip_bias_add", "skip_bias_add_qkv", "unk_token_id", "masked_softmax_fusion", "bias_dropout_fusion",
                 "attention_softmax_in_fp32", "n_inner"});
  return model;
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, Tensor mask, Tensor residual) {
  const InModule inside(f, "self_attention", "BloomAttention");
  const DecoderSizes& s = model.sizes;
  const Tensor packed = f.linear("query_key_value", input, s.width, 3 * s.width);
  const Tensor parted = f.unflatten(packed, 2, {s.heads, 3, s.head_width});
  const auto heads = [&](std::int64_t which) { return f.permute(f.select(parted, 3, which), {0, 2, 1, 3}); };
  const Tensor query = heads(0);
  const Tensor key = heads(1);
  const Tensor value = heads(2);
  const Tensor rows = f.contiguous(query);
  const Tensor columns = f.contiguous(key);
  const Tensor values = f.contiguous(value);
  f.cache(key);  // a view of all that the projection leaves
  f.cache(value);
  const Tensor scores = f.call("matmul", {rows, f.permute(columns, {0, 1, 3, 2})});
  const Tensor masked = f.add(scores, mask);
  const Tensor weights = f.as_type_of(f.call("softmax", {f.to(masked, "float32")}), query);
  const Tensor dropped = f.dropout("attention_dropout", weights, s.attention_dropout);
  const Tensor attended = merge_heads(f, f.call("matmul", {dropped, values}));
  const Tensor output = f.dropout("dropout", f.linear("dense", attended, s.width, s.width), model.dropout);
  return f.leave_function(f.add(residual, output), {packed, rows, columns, values, scores, masked, dropped, attended});
}

inline Tensor block(Forward& f, const Model& model, Tensor input, Tensor mask) {
  const std::int64_t width = model.sizes.width;
  const Tensor attended = attention(f, model, f.layer_norm("input_layernorm", input, width), mask, input);
  const Tensor again = f.layer_norm("post_attention_layernorm", attended, width);
  return f.add(attended, feed_forward(f, model.sizes, again,
                                      {.class_name = "BloomMLP",
                                       .widen = "dense_h_to_4h",
                                       .narrow = "dense_4h_to_h",
                                       .activation = "gelu_impl",
                                       .dropout = model.dropout}));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DecoderSizes& s = model.sizes;
  const DecoderBody body = {
      .module = "transformer", .class_name = "BloomModel", .embedding = "word_embeddings", .head = {.upcasts = false}};
  decoder_model(f, config, s, head, body, [&](Tensor ids, Tensor hidden) {
    hidden = f.layer_norm("word_embeddings_layernorm", hidden, s.width);
    const Tensor mask = f.call("causal_mask", {ids}, {{"padded", true}});
    hidden =
        stack(f, "h", "BloomBlock", s.layers, hidden, [&](Tensor x, std::int64_t) { return block(f, model, x, mask); });
    return f.leave_function(f.layer_norm("ln_f", hidden, s.width), {mask});
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Bloom", "bloom", "transformer", kAlwaysTied}});
/// Published models, by width.
inline constexpr auto kPublished =
    std::to_array<PublishedHeads>({{1024, 16}, {1536, 16}, {2048, 16}, {2560, 32}, {4096, 32}, {14336, 112}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const std::int64_t width = t.body("word_embeddings", "h");
  t.dropout("attention_dropout", "h.0.self_attention.attention_dropout");
  t.labels();
  t.heads_of_width({.published = kPublished}, width);
}

inline constexpr Architecture kArchitecture = {
    .name = "bloom", .model_types = names<"bloom">, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace bloom

// MPT: ALiBi, attention written out, no biases.
// Source: transformers 4.48, models/mpt/modeling_mpt.py.

namespace mpt {

struct Model {
  DecoderSizes sizes;
  double dropout = 0.0;
  bool clips = false;
  Caches caches = Caches::serving;
};

inline Model read(ConfigFields& config) {
  Model model;
  const std::int64_t factor = std::min<std::int64_t>(config.size_or({"expansion_ratio"}, 4), 64);
  model.sizes = decoder_sizes(config, {.activation = "gelu", .tied = true, .inner_factor = factor});
  model.dropout = config.number({"resid_pdrop"}, 0.0);
  if (config.flag("use_cache", false)) model.caches = Caches::unless_checkpointed;
  const core::JsonValue* attention = config.find("attn_config");
  if (attention != nullptr && attention->is(core::JsonValue::Kind::object)) {
    ConfigFields fields(*attention);
    model.sizes.attention_dropout = fields.number({"attn_pdrop"}, 0.0);
    model.clips = fields.find("clip_qkv") != nullptr;
    if (fields.flag("qk_ln", false)) config.fail("norms of queries and keys are not known", "attn_config");
    if (const core::Status read = fields.status(); !read) config.fail(read.error().message, "attn_config");
  }
  config.ignore({"emb_pdrop", "max_seq_len", "learned_pos_emb", "no_bias", "logit_scale", "verbose", "init_config",
                 "embedding_fraction", "norm_type", "init_device"});
  return model;
}

/// Scores, weights and their float32 copies are written out. The biases of ALiBi are float32, and so are the scores
/// after them.
struct Attended {
  Tensor output = 0;
  Tensor packed = 0;   ///< of which keys and values are views; the block gets both, for a cache
  Tensor weights = 0;  ///< which the block gets, too
};
inline Attended attention(Forward& f, const Model& model, Tensor input, Tensor biases, Tensor mask) {
  const InModule inside(f, "attn", "MptAttention");
  const DecoderSizes& s = model.sizes;
  Tensor packed = f.linear("Wqkv", input, s.width, 3 * s.width, {.bias = false});
  if (model.clips) packed = f.call("clamp", {packed});
  const std::vector<Tensor> parts = f.split(packed, 2, {s.width, s.width, s.width});
  const Tensor query = split_heads(f, parts[0], s.head_width);
  const Tensor key = split_heads(f, parts[1], s.head_width);
  const Tensor value = split_heads(f, parts[2], s.head_width);
  f.cache(key, model.caches);
  f.cache(value, model.caches);
  const Tensor scores = f.scale(f.call("matmul", {query, f.permute(key, {0, 1, 3, 2})}));
  const Tensor biased = f.add(scores, biases);
  const Tensor masked = f.call("masked_fill", {biased, mask}, {{"mask_given", true}});
  const Tensor weights = f.as_type_of(f.call("softmax", {f.to(masked, "float32")}), value);
  const Tensor dropped = f.dropout("attn_dropout", weights, s.attention_dropout);
  const Tensor attended = merge_heads(f, f.call("matmul", {dropped, value}));
  const Tensor output = f.linear("out_proj", attended, s.width, s.width, {.bias = false});
  return {f.leave_function(output, {masked, input}), packed, dropped};
}

inline Tensor feed_forward_part(Forward& f, const Model& model, Tensor input, Tensor residual) {
  const InModule inside(f, "ffn", "MptMLP");
  const DecoderSizes& s = model.sizes;
  const Tensor wide = f.activation("act", f.linear("up_proj", input, s.width, s.inner, {.bias = false}), s.activation);
  const Tensor narrow = f.linear("down_proj", wide, s.inner, s.width, {.bias = false});
  return f.add(f.dropout("hidden_dropout", narrow, model.dropout), residual);
}

inline Tensor block(Forward& f, const Model& model, Tensor input, Tensor biases, Tensor mask) {
  const std::int64_t width = model.sizes.width;
  const Tensor normed = f.layer_norm("norm_1", input, width, false);
  const Attended mixed = attention(f, model, normed, biases, mask);
  const Tensor attended = f.add(f.dropout("resid_attn_dropout", mixed.output, model.sizes.attention_dropout), input);
  const Tensor again = f.leave_function(f.layer_norm("norm_2", attended, width, false), {normed});
  const Tensor fed = feed_forward_part(f, model, again, attended);
  return f.leave_function(fed, {mixed.output, mixed.packed, mixed.weights, again});
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DecoderSizes& s = model.sizes;
  const DecoderBody body = {
      .module = "transformer", .class_name = "MptModel", .embedding = "wte", .head = {.upcasts = false}};
  decoder_model(f, config, s, head, body, [&](Tensor ids, Tensor hidden) {
    // [heads, 1, S], which broadcasts over the rows of the scores.
    const Tensor rows = f.call("rotary_table", {ids}, {{"width", s.heads}, {"dtype", std::string("float32")}});
    const Tensor biases = f.permute(rows, {0, 3, 1, 2});
    const Tensor mask = f.call("causal_mask", {ids}, {{"padded", true}, {"dtype", std::string("bool")}});
    hidden = stack(f, "blocks", "MptBlock", s.layers, hidden,
                   [&](Tensor x, std::int64_t) { return block(f, model, x, biases, mask); });
    return f.leave_function(f.layer_norm("norm_f", hidden, s.width, false), {mask, biases});
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Mpt", "mpt", "transformer", kAlwaysTied}});
/// Published models, by width.
inline constexpr auto kPublished = std::to_array<PublishedHeads>({{2048, 16}, {4096, 32}, {7168, 64}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const std::int64_t width = t.body("wte", "blocks");
  const std::int64_t inner = t.value("blocks.0.ffn.up_proj", "out_features").value_or(0);
  if (width > 0 && inner > 0) t.set("expansion_ratio", inner / width);
  t.labels();
  t.heads_of_width({.published = kPublished, .usual_width = 128}, width);
}

inline constexpr Architecture kArchitecture = {
    .name = "mpt", .model_types = names<"mpt">, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace mpt

// Falcon: attention and feed-forward layer side by side; one key and value for all heads (7B), one a group (40B,
// 180B), or one a head with ALiBi (RW).
// Source: transformers 4.48, models/falcon/modeling_falcon.py.

namespace falcon {

struct Model {
  DecoderSizes sizes;
  bool grouped = false;  ///< the "new decoder architecture": each group of heads has a key and a value
  bool parallel = true;
  bool two_norms = false;  ///< in front of attention and feed-forward layer, which stand side by side
  bool alibi = false;
  bool bias = false;
  double dropout = 0.0;
};

inline Model read(ConfigFields& config) {
  Model model;
  DecoderSizes& s = model.sizes;
  s = decoder_sizes(config, {.activation = "gelu", .tied = true, .inner_factor = 4});
  s.inner = config.size_or({"ffn_hidden_size"}, s.inner);
  s.activation = config.text({"activation"}, s.activation);
  model.grouped = config.flag("new_decoder_architecture", false);
  const bool multi_query = config.flag("multi_query", true);
  const std::int64_t grouped_heads = config.size_or({"num_kv_heads", "n_head_kv"}, s.heads);
  s.kv_heads = model.grouped ? grouped_heads : multi_query ? 1 : s.heads;
  if (s.heads % s.kv_heads != 0) config.fail("does not divide num_attention_heads", "num_kv_heads");
  model.parallel = config.flag("parallel_attn", true);
  model.two_norms = model.grouped && config.size_or({"num_ln_in_parallel_attn"}, 2) == 2;
  model.alibi = config.flag("alibi", false);
  model.bias = config.flag("bias", false);
  model.dropout = config.number({"hidden_dropout"}, 0.0);
  config.ignore({"apply_residual_connection_post_layernorm"});
  return model;
}

/// Keys or values of the packed projection [N, S, groups, each + 2, d], copied out and repeated for each head.
inline Tensor repeated(Forward& f, const DecoderSizes& s, Tensor parted, std::int64_t which) {
  const std::int64_t each = s.heads / s.kv_heads;
  const Tensor one = f.contiguous(f.slice(parted, 3, each + which, 1));
  return f.flatten(f.call("expand", {one}, {{"shape", Sizes{-1, -1, -1, each, -1}}}), 2, 3);
}

/// Queries, keys and values of the one projection, [N, S, heads, d].
inline Heads split(Forward& f, const Model& model, Tensor packed) {
  const DecoderSizes& s = model.sizes;
  if (model.grouped) {
    const std::int64_t each = s.heads / s.kv_heads;
    const Tensor parted = f.unflatten(packed, 2, {s.kv_heads, each + 2, s.head_width});
    const Tensor query = f.flatten(f.slice(parted, 3, 0, each), 2, 3);
    const Tensor key = repeated(f, s, parted, 0);
    return {query, key, repeated(f, s, parted, 1)};
  }
  if (s.kv_heads == s.heads) {
    const Tensor parted = f.unflatten(packed, 2, {s.heads, 3, s.head_width});
    const Tensor query = f.select(parted, 3, 0);
    const Tensor key = f.select(parted, 3, 1);
    return {query, key, f.select(parted, 3, 2)};
  }
  const Tensor parted = f.unflatten(packed, 2, {s.heads + 2, s.head_width});
  const Tensor query = f.slice(parted, 2, 0, s.heads);
  const Tensor key = f.contiguous(f.slice(parted, 2, s.heads, 1));
  return {query, key, f.contiguous(f.slice(parted, 2, s.heads + 1, 1))};
}

/// What the blocks share: tables of rotary positions, or the mask that ALiBi is part of.
struct Positions {
  Rotary rotary = {};
  Tensor mask = 0;
};

inline Tensor attention(Forward& f, const Model& model, Tensor input, const Positions& positions) {
  const InModule inside(f, "self_attention", "FalconAttention");
  const DecoderSizes& s = model.sizes;
  const std::int64_t keys = model.grouped || s.kv_heads == 1 ? s.kv_heads : s.heads;
  const Linear linear = {.bias = model.bias, .class_name = "FalconLinear"};
  const Tensor packed = f.linear("query_key_value", input, s.width, (s.heads + 2 * keys) * s.head_width, linear);
  const Heads parts = split(f, model, packed);
  const auto in_front = [&](Tensor tensor) { return f.permute(tensor, {0, 2, 1, 3}); };
  Heads heads = {in_front(parts.query), in_front(parts.key), in_front(parts.value)};
  if (!model.alibi) {
    heads.query = rotate(f, heads.query, positions.rotary, s.head_width);
    heads.key = rotate(f, heads.key, positions.rotary, s.head_width);
  }
  f.cache(heads.key);
  f.cache(heads.value);
  const auto copied = [&](Tensor tensor) {
    return model.alibi ? f.contiguous(tensor) : f.contiguous(tensor, When::masked);
  };
  heads = {copied(heads.query), copied(heads.key), copied(heads.value)};
  Tensor attended = 0;
  if (model.alibi) {
    const Tensor mixed = f.call("scaled_dot_product_attention", {heads.query, heads.key, heads.value, positions.mask},
                                {{"dropout_p", s.attention_dropout}});
    attended = merge_heads(f, mixed);
  } else {
    attended = attend(f, heads, {.copies = false});
  }
  const Tensor output = f.linear("dense", attended, s.heads * s.head_width, s.width, linear);
  return f.leave_function(output, {packed, heads.query, heads.key, heads.value, input});
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Positions& positions) {
  const std::int64_t width = model.sizes.width;
  const auto fed = [&](Tensor normed) {
    return feed_forward(f, model.sizes, normed,
                        {.class_name = "FalconMLP",
                         .widen = "dense_h_to_4h",
                         .narrow = "dense_4h_to_h",
                         .activation = "act",
                         .bias = model.bias,
                         .linear_class = "FalconLinear"});
  };
  const auto joined = [&](Tensor part, Tensor residual, double dropout) {
    return f.add(residual, f.dropout("dropout", part, dropout));
  };
  if (!model.grouped && !model.parallel) {
    const Tensor normed = f.layer_norm("input_layernorm", input, width);
    const Tensor mixed = attention(f, model, normed, positions);
    const Tensor attended = joined(mixed, input, model.sizes.attention_dropout);
    const Tensor again = f.layer_norm("post_attention_layernorm", attended, width);
    const Tensor made = fed(again);
    return f.leave_function(joined(made, attended, model.dropout), {normed, mixed, again, made});
  }
  const Tensor normed = f.layer_norm(model.two_norms ? "ln_attn" : "input_layernorm", input, width);
  const Tensor other = model.two_norms ? f.layer_norm("ln_mlp", input, width) : normed;
  const Tensor mixed = attention(f, model, normed, positions);
  const Tensor both = f.call("add", {fed(other), mixed}, {{"inplace", true}});
  return joined(both, input, model.dropout);
}

/// Rotary tables; or the biases of ALiBi, [N, heads, S, S], with the future masked.
inline Positions make_positions(Forward& f, const Model& model, Tensor ids) {
  if (!model.alibi) return {.rotary = rotary_tables(f, ids, model.sizes.head_width)};
  const std::vector<core::Dim> all = {core::Dim::batch(), core::Dim::fixed(-1), core::Dim::fixed(-1),
                                      core::Dim::fixed(-1)};
  const Tensor biases = f.call("relative_zeros", {ids}, {{"heads", model.sizes.heads}});
  return {.mask = f.contiguous(f.call("expand", {biases}, {{"shape", all}}))};
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DecoderSizes& s = model.sizes;
  const DecoderBody body = {
      .module = "transformer", .class_name = "FalconModel", .embedding = "word_embeddings", .head = {.upcasts = false}};
  decoder_model(f, config, s, head, body, [&](Tensor ids, Tensor hidden) {
    const Positions positions = make_positions(f, model, ids);
    hidden = stack(f, "h", "FalconDecoderLayer", s.layers, hidden,
                   [&](Tensor x, std::int64_t) { return block(f, model, x, positions); });
    hidden = f.layer_norm("ln_f", hidden, s.width);
    return model.alibi ? f.leave_function(hidden, {positions.mask}) : hidden;
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Falcon", "falcon", "transformer", kAlwaysTied}});
/// Published models, by width.
inline constexpr auto kPublished =
    std::to_array<PublishedHeads>({{2048, 32}, {4096, 32}, {4544, 71}, {8192, 128}, {14848, 232}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const std::int64_t width = t.body("word_embeddings", "h");
  t.size("ffn_hidden_size", "h.0.mlp.dense_h_to_4h", "out_features");
  t.flag("bias", "h.0.mlp.dense_h_to_4h");
  t.dropout("attention_dropout", "h.0.self_attention.attention_dropout");
  const bool parallel = !t.has("h.0.post_attention_layernorm");
  t.set_flag("parallel_attn", parallel);
  t.set_flag("alibi", !parallel);  // published only together
  const std::int64_t packed = t.value("h.0.self_attention.query_key_value", "out_features").value_or(0);
  const std::int64_t each = t.heads_of_width({.published = kPublished}, width);
  const std::int64_t keys = (packed - width) / 2;
  const bool grouped = each > 0 && keys != width && keys > each;
  t.set_flag("new_decoder_architecture", grouped);
  t.set_flag("multi_query", keys == each);
  if (grouped) t.set("num_kv_heads", keys / each);
  if (grouped && !t.has("h.0.ln_attn")) t.set("num_ln_in_parallel_attn", 1);
  t.labels();
}

inline constexpr Architecture kArchitecture = {
    .name = "falcon", .model_types = names<"falcon">, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace falcon

}  // namespace gpumem::architectures
