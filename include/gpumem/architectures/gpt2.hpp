// GPT-2: learned positions, one projection for queries, keys and values, plain feed-forward layers, dropout.
// Source: transformers 4.48, models/gpt2/modeling_gpt2.py.
#pragma once

#include <array>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

namespace gpt2_detail {

inline constexpr std::array<std::string_view, 1> kModelTypes = {"gpt2"};

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

}  // namespace gpt2_detail

[[nodiscard]] inline const Architecture& gpt2() {
  static constexpr Architecture kArchitecture = {.name = "gpt2",
                                                 .model_types = gpt2_detail::kModelTypes,
                                                 .write = gpt2_detail::write,
                                                 .classes = gpt2_detail::kClasses,
                                                 .read_tree = gpt2_detail::read_tree};
  return kArchitecture;
}

}  // namespace gpumem::architectures
