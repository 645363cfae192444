// Input: a layer's input, and the sizes of attention whose keys and values are computed from a narrow vector
// (multi-head latent attention).
// Output: its calls: queries, compressed or not; one key with positions for all heads; keys and values of each head.
// Source: transformers 4.51, models/deepseek_v3/modeling_deepseek_v3.py; arXiv:2405.04434.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

struct LatentAttention {
  std::string_view name = "self_attn";
  std::string_view output = "o_proj";
  std::int64_t width = 1;  ///< of the hidden states
  std::int64_t heads = 1;
  std::int64_t query_rank = 0;    ///< of the queries' compression; 0: they are not compressed
  std::int64_t kv_rank = 1;       ///< of keys and values
  std::int64_t plain_width = 1;   ///< of a head's queries and keys without positions
  std::int64_t rotary_width = 2;  ///< and with
  std::int64_t value_width = 1;
  bool bias = false;
  double dropout = 0.0;
  bool caches = true;            ///< keys and values are returned
  bool fused_softmax = false;    ///< where attention is written out, in the type of the scores; fused norms (Megatron)
  bool gates = false;            ///< what it makes, by a projection of its input
  bool halves = false;           ///< positions turn the halves of a head's elements, and not their pairs
  bool scales_queries = false;   ///< by a figure of their position
  bool scales_parts = false;     ///< of queries, and the narrow vector, each by a number (LongCat-Flash)
  std::int64_t index_heads = 0;  ///< of an indexer that chooses keys; 0: there is none
  std::int64_t index_width = 1;  ///< of each of them
  std::string class_name = {};
  std::string norm_class = {};

  [[nodiscard]] std::int64_t key_width() const { return plain_width + rotary_width; }
};

/// What attention leaves, and the mask of its indexer, which further layers may share.
struct Attended {
  Tensor output = 0;
  std::optional<Tensor> mask = {};
};
/// `shared`: the mask of an earlier layer's indexer, in place of its own.
Attended latent_attention(Forward& forward, const LatentAttention& attention, Tensor input, const Rotary& rotary,
                          std::optional<Tensor> shared);
Tensor latent_attention(Forward& forward, const LatentAttention& attention, Tensor input, const Rotary& rotary);

/// Its fields, under DeepSeek's names; the classes are left out. `value_width`: where the config does not say; 0: it
/// must.
[[nodiscard]] LatentAttention read_latent_attention(ConfigFields& config, const DecoderSizes& sizes,
                                                    std::int64_t value_width = 0);
/// Heads that are too wide, or leave rotary positions an odd number of elements, are a fault of this field.
void check_latent_attention(ConfigFields& config, const LatentAttention& attention, std::string_view field);
/// The fields, of the module of this path.
void tree_latent_attention(TreeFields& tree, const std::string& attention);

namespace latent_attention_detail {

/// The elements of each head in the order of their pairs, copied, and turned.
inline Tensor turned(Forward& f, Tensor heads, const Rotary& rotary) {
  const Tensor pairs = f.permute(f.unflatten(heads, 3, {-1, 2}), {0, 1, 2, 4, 3});
  return rotate(f, f.flatten(pairs, 3, 4), rotary, rotary.width);
}

/// Megatron's norm of a narrow vector is TransformerEngine's, in the product behind it
/// (core/models/gpt/gpt_layer_specs.py).
inline Tensor normed(Forward& f, const LatentAttention& a, std::string_view name, Tensor narrow, std::int64_t width) {
  if (!a.fused_softmax) return f.rms_norm(name, narrow, width, a.norm_class);
  return f.layer(name, a.norm_class, "rms_norm", {narrow}, {{"normalized_shape", width}, {"fused", true}});
}

/// `narrow`: what the queries are made of.
inline Tensor queries(Forward& f, const LatentAttention& a, Tensor input, Tensor& narrow) {
  const std::int64_t width = a.heads * a.key_width();
  narrow = input;
  if (a.query_rank == 0) {
    return split_heads(f, f.linear("q_proj", input, a.width, width, {.bias = false, .split = Split::columns}),
                       a.key_width());
  }
  const Tensor compressed = f.linear("q_a_proj", input, a.width, a.query_rank, {.bias = a.bias});
  narrow = normed(f, a, "q_a_layernorm", compressed, a.query_rank);
  return split_heads(f, f.linear("q_b_proj", narrow, a.query_rank, width, {.bias = false, .split = Split::columns}),
                     a.key_width());
}

/// The indexer runs without gradients, on copies that are cut off. A mask that is shared is made again of the keys that
/// were chosen.
inline std::optional<Tensor> index(Forward& f, const LatentAttention& a, Tensor input, Tensor narrow,
                                   std::optional<Tensor> shared) {
  if (a.index_heads == 0) return std::nullopt;
  if (shared) return f.call("clone", {*shared});
  const InModule inside(f, "indexer", a.class_name.substr(0, a.class_name.find("Attention")) + "Indexer");
  const std::int64_t source = a.query_rank > 0 ? a.query_rank : a.width;
  f.without_gradients(true);
  const Tensor tokens = f.detached(input);
  const Tensor query = f.linear("wq_b", f.detached(narrow), source, a.index_heads * a.index_width, {.bias = false});
  const Tensor key = f.linear("wk", tokens, a.width, a.index_width, {.bias = false});
  const Tensor normed = f.layer_norm("k_norm", key, a.index_width);
  const Tensor weights = f.linear("weights_proj", tokens, a.width, a.index_heads, {.bias = false});
  f.without_gradients(false);
  return f.call(
      "indexed_mask", {query, normed, weights},
      {{"heads", a.index_heads}, {"width", a.index_width}, {"turned", a.rotary_width}, {"expands", "queries"}});
}

}  // namespace latent_attention_detail

inline LatentAttention read_latent_attention(ConfigFields& config, const DecoderSizes& sizes,
                                             std::int64_t value_width) {
  LatentAttention attention = {
      .width = sizes.width,
      .heads = sizes.heads,
      .query_rank = config.size_or({"q_lora_rank"}, 0),
      .kv_rank = config.size({"kv_lora_rank"}),
      .plain_width = config.size({"qk_nope_head_dim"}),
      .rotary_width = config.size({"qk_rope_head_dim"}),
      .value_width = value_width > 0 ? config.size_or({"v_head_dim"}, value_width) : config.size({"v_head_dim"}),
      .bias = config.flag("attention_bias", false),
      .dropout = sizes.attention_dropout};
  check_latent_attention(config, attention, "qk_nope_head_dim");
  return attention;
}

/// Heads make queries of plain + rotary, keys and values of plain + value, and values: three equations.
inline void tree_latent_attention(TreeFields& t, const std::string& attention) {
  const auto size = [&](std::string_view name, std::string_view attribute) {
    return t.value(attention + "." + std::string(name), attribute).value_or(0);
  };
  const std::int64_t rank = size("kv_a_layernorm", "normalized_shape");
  t.size("kv_lora_rank", attention + ".kv_a_layernorm", "normalized_shape");
  t.size("q_lora_rank", attention + ".q_a_proj", "out_features");
  t.flag("attention_bias", attention + ".o_proj");
  const bool compressed = t.has(attention + ".q_b_proj");
  const std::int64_t queries = size(compressed ? "q_b_proj" : "q_proj", "out_features");
  const std::int64_t values = size("o_proj", "in_features");
  const std::int64_t rotary = size("kv_a_proj_with_mqa", "out_features") - rank;
  const std::int64_t turned = queries - size("kv_b_proj", "out_features") + values;
  if (rotary < 1 || turned < rotary || turned % rotary != 0) return;
  const std::int64_t heads = turned / rotary;
  t.set("num_attention_heads", heads);
  t.set("num_key_value_heads", heads);
  t.set("qk_rope_head_dim", rotary);
  t.set("qk_nope_head_dim", queries / heads - rotary);
  t.set("v_head_dim", values / heads);
}

inline void check_latent_attention(ConfigFields& config, const LatentAttention& attention, std::string_view field) {
  const std::int64_t most = ConfigFields::kLargestSize / std::max<std::int64_t>(attention.heads, 1);
  const std::int64_t made = attention.plain_width + attention.value_width;
  if (attention.key_width() > most || made > most) config.fail("makes heads too wide", field);
  if (attention.rotary_width % 2 != 0) {
    config.fail("leaves an odd number of elements of a head for rotary positions", field);
  }
}

inline Attended latent_attention(Forward& f, const LatentAttention& a, Tensor input, const Rotary& rotary,
                                 std::optional<Tensor> shared) {
  using latent_attention_detail::turned;
  const InModule inside(f, a.name, a.class_name);
  Tensor source = input;
  std::vector<Tensor> query =
      f.split(latent_attention_detail::queries(f, a, input, source), 3, {a.plain_width, a.rotary_width});
  const Tensor narrow = f.linear("kv_a_proj_with_mqa", input, a.width, a.kv_rank + a.rotary_width, {.bias = a.bias});
  const std::vector<Tensor> compressed = f.split(narrow, 2, {a.kv_rank, a.rotary_width});
  Tensor normed = latent_attention_detail::normed(f, a, "kv_a_layernorm", compressed[0], a.kv_rank);
  if (a.scales_parts) {
    for (Tensor& part : query) part = f.scale(part);
    normed = f.scale(normed);
  }
  const std::int64_t each = a.plain_width + a.value_width;
  const Tensor wide =
      f.linear("kv_b_proj", normed, a.kv_rank, a.heads * each, {.bias = false, .split = Split::columns});
  const std::vector<Tensor> made = f.split(split_heads(f, wide, each), 3, {a.plain_width, a.value_width});
  // One key with positions serves all heads. Where ranks have some of the tokens each, it is gathered.
  const Tensor one = f.unsqueeze_all_tokens(compressed[1], 1);
  const auto turn = [&](Tensor of) { return a.halves ? rotate(f, of, rotary, a.rotary_width) : turned(f, of, rotary); };
  const Tensor turned_query = turn(query[1]);
  const Tensor turned_key = turn(one);
  const Tensor every = f.expand_heads(turned_key, {-1, a.heads, -1, -1});
  Heads heads = {f.concatenate({query[0], turned_query}, 3), f.concatenate({made[0], every}, 3), made[1]};
  if (a.scales_queries) heads.query = f.scale(heads.query);
  if (a.caches) {
    f.cache(heads.key);
    f.cache(heads.value);
  }
  Attended result;
  result.mask = latent_attention_detail::index(f, a, input, source, shared);
  Tensor attended = 0;
  if (a.fused_softmax && !result.mask) {
    attended = merge_heads(f, f.call("scaled_dot_product_attention", {heads.query, heads.key, heads.value},
                                     {{"dropout_p", a.dropout}, {"fused_softmax", true}, {"is_causal", true}}));
  } else {
    attended = attend(f, heads, {.dropout = a.dropout, .mask = result.mask});
  }
  if (a.gates) {
    const Tensor gate =
        f.linear("g_proj", input, a.width, a.heads * a.value_width, {.bias = false, .split = Split::columns});
    attended = f.multiply(attended, f.call("sigmoid", {gate}));
  }
  result.output =
      f.linear(a.output, attended, a.heads * a.value_width, a.width, {.bias = a.bias, .split = Split::rows});
  if (a.index_heads > 0) result.output = f.leave_function(result.output, {query[0], turned_query});
  return result;
}

inline Tensor latent_attention(Forward& f, const LatentAttention& a, Tensor input, const Rotary& rotary) {
  return latent_attention(f, a, input, rotary, std::nullopt).output;
}

}  // namespace gpumem::architectures
