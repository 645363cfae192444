// MPT: ALiBi, attention written out, no biases.
// Source: transformers 4.48, models/mpt/modeling_mpt.py.
#pragma once

#include <algorithm>
#include <array>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

namespace mpt_detail {

inline constexpr std::array<std::string_view, 1> kModelTypes = {"mpt"};

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
  Tensor hidden = 0;
  {
    const InModule inside(f, "transformer", "MptModel");
    const Tensor ids = token_ids(f);
    hidden = f.embedding("wte", ids, s.vocabulary, s.width);
    // [heads, 1, S], which broadcasts over the rows of the scores.
    const Tensor rows = f.call("rotary_table", {ids}, {{"width", s.heads}, {"dtype", std::string("float32")}});
    const Tensor biases = f.permute(rows, {0, 3, 1, 2});
    const Tensor mask = f.call("causal_mask", {ids}, {{"padded", true}, {"dtype", std::string("bool")}});
    hidden = stack(f, "blocks", "MptBlock", s.layers, hidden,
                   [&](Tensor x, std::int64_t) { return block(f, model, x, biases, mask); });
    hidden = f.leave_function(f.layer_norm("norm_f", hidden, s.width, false), {mask, biases});
  }
  decoder_head(f, config, s, head, hidden, {.upcasts = false});
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

}  // namespace mpt_detail

[[nodiscard]] inline const Architecture& mpt() {
  static constexpr Architecture kArchitecture = {.name = "mpt",
                                                 .model_types = mpt_detail::kModelTypes,
                                                 .write = mpt_detail::write,
                                                 .classes = mpt_detail::kClasses,
                                                 .read_tree = mpt_detail::read_tree};
  return kArchitecture;
}

}  // namespace gpumem::architectures
