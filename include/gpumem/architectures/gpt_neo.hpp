// GPT-Neo: GPT-2's block with unbiased queries, keys and values, and attention written out in float32.
// Source: transformers 4.48, models/gpt_neo/modeling_gpt_neo.py.
#pragma once

#include <array>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

namespace gpt_neo_detail {

inline constexpr std::array<std::string_view, 1> kModelTypes = {"gpt_neo"};

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

}  // namespace gpt_neo_detail

[[nodiscard]] inline const Architecture& gpt_neo() {
  static constexpr Architecture kArchitecture = {.name = "gpt_neo",
                                                 .model_types = gpt_neo_detail::kModelTypes,
                                                 .write = gpt_neo_detail::write,
                                                 .classes = gpt_neo_detail::kClasses,
                                                 .read_tree = gpt_neo_detail::read_tree};
  return kArchitecture;
}

}  // namespace gpumem::architectures
