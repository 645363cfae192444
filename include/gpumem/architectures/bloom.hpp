// BLOOM: no positions but a bias that falls with the distance (ALiBi), attention written out.
// Source: transformers 4.48, models/bloom/modeling_bloom.py.
#pragma once

#include <array>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

namespace bloom_detail {

inline constexpr std::array<std::string_view, 1> kModelTypes = {"bloom"};

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
  Tensor hidden = 0;
  {
    const InModule inside(f, "transformer", "BloomModel");
    const Tensor ids = token_ids(f);
    hidden = f.embedding("word_embeddings", ids, s.vocabulary, s.width);
    hidden = f.layer_norm("word_embeddings_layernorm", hidden, s.width);
    const Tensor mask = f.call("causal_mask", {ids}, {{"padded", true}});
    hidden =
        stack(f, "h", "BloomBlock", s.layers, hidden, [&](Tensor x, std::int64_t) { return block(f, model, x, mask); });
    hidden = f.leave_function(f.layer_norm("ln_f", hidden, s.width), {mask});
  }
  decoder_head(f, config, s, head, hidden, {.upcasts = false});
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

}  // namespace bloom_detail

[[nodiscard]] inline const Architecture& bloom() {
  static constexpr Architecture kArchitecture = {.name = "bloom",
                                                 .model_types = bloom_detail::kModelTypes,
                                                 .write = bloom_detail::write,
                                                 .classes = bloom_detail::kClasses,
                                                 .read_tree = bloom_detail::read_tree};
  return kArchitecture;
}

}  // namespace gpumem::architectures
