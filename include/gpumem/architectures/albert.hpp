// ALBERT: one block, which the hidden states go through as often as there are layers; narrow embeddings.
// Source: transformers 4.48, models/albert/modeling_albert.py.
#pragma once

#include <array>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

namespace albert {

struct Model {
  DecoderSizes sizes;
  std::int64_t positions = 1;
  std::int64_t types = 2;
  std::int64_t embedding_width = 128;
  std::int64_t groups = 1;  ///< of layers that share their parameters
  std::int64_t labels = 2;
  double dropout = 0.0;
  double classifier_dropout = 0.1;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config, {.activation = "gelu_new", .tied = true});
  model.sizes.attention_dropout = config.number({"attention_probs_dropout_prob"}, 0.0);
  model.positions = config.size({"max_position_embeddings"});
  model.types = config.size_or({"type_vocab_size"}, 2);
  model.embedding_width = config.size_or({"embedding_size"}, 128);
  model.groups = config.size_or({"num_hidden_groups"}, 1);
  model.labels = labels_of(config);
  model.dropout = config.number({"hidden_dropout_prob"}, 0.0);
  model.classifier_dropout = config.number({"classifier_dropout_prob"}, 0.1);
  if (model.groups > model.sizes.layers) config.fail("is more than there are layers", "num_hidden_groups");
  if (config.size_or({"inner_group_num"}, 1) != 1) config.fail("only one layer a group is known", "inner_group_num");
  config.ignore({"down_scale_factor", "gap_size", "net_structure_type", "num_memory_blocks", "layers_to_keep"});
  return model;
}

inline Tensor embeddings(Forward& f, const Model& model) {
  const InModule inside(f, "embeddings", "AlbertEmbeddings");
  const std::int64_t width = model.embedding_width;
  const Tensor ids = f.token_input("input_ids");
  const Tensor kinds = f.token_input("token_type_ids");
  (void)f.token_input("attention_mask");
  const Tensor words = f.embedding("word_embeddings", ids, model.sizes.vocabulary, width);
  const Tensor types = f.embedding("token_type_embeddings", kinds, model.types, width);
  const Tensor sum = f.add(words, types);
  const Tensor numbers = f.positions(ids, model.positions);
  const Tensor places = f.embedding("position_embeddings", numbers, model.positions, width);
  const Tensor embedded = f.call("add", {sum, places}, {{"inplace", true}});
  return f.dropout("dropout", f.layer_norm("LayerNorm", embedded, width), model.dropout);
}

inline Tensor block(Forward& f, const Model& model, Tensor input) {
  const DecoderSizes& s = model.sizes;
  Tensor attended = 0;
  {
    const InModule inside(f, "attention", "AlbertSdpaAttention");
    const auto heads = [&](std::string_view name) {
      return split_heads(f, f.linear(name, input, s.width, s.width), s.head_width);
    };
    const Tensor query = heads("query");
    const Tensor key = heads("key");
    const Tensor value = heads("value");
    attended = attend(f, {query, key, value}, {.dropout = s.attention_dropout, .copies = false, .causal = false});
    attended = f.dropout("output_dropout", f.linear("dense", attended, s.width, s.width), model.dropout);
    attended = f.layer_norm("LayerNorm", f.add(input, attended), s.width);
  }
  const Tensor wide = f.activation("activation", f.linear("ffn", attended, s.width, s.inner), s.activation);
  const Tensor narrow = f.linear("ffn_output", wide, s.inner, s.width);
  return f.layer_norm("full_layer_layer_norm", f.add(narrow, attended), s.width);
}

/// Layers of a group are one: after the first of each, what they hold is tied.
inline Tensor encoder(Forward& f, const Model& model, Tensor embedded) {
  const InModule inside(f, "encoder", "AlbertTransformer");
  const DecoderSizes& s = model.sizes;
  Tensor hidden = f.linear("embedding_hidden_mapping_in", embedded, model.embedding_width, s.width);
  const InModule list(f, "albert_layer_groups", "ModuleList");
  for (std::int64_t index = 0; index < s.layers && !f.failed(); ++index) {
    const std::int64_t group = index * model.groups / s.layers;
    const bool first = index == 0 || (index - 1) * model.groups / s.layers != group;
    const InModule one(f, std::to_string(group), "AlbertLayerGroup");
    const InModule layers(f, "albert_layers", "ModuleList");
    const InModule layer(f, "0", "AlbertLayer");
    f.repeat_parameters(!first);
    hidden = block(f, model, hidden);
    f.repeat_parameters(false);
  }
  return hidden;
}

inline Tensor pooled(Forward& f, const Model& model, Tensor hidden) {
  const Tensor first = f.select(hidden, 1, 0);
  return f.call("tanh", {f.linear("pooler", first, model.sizes.width, model.sizes.width)});
}

inline void masked_lm(Forward& f, const Model& model, Tensor hidden) {
  const InModule inside(f, "predictions", "AlbertMLMHead");
  const std::int64_t narrow = model.embedding_width;
  const Tensor dense = f.linear("dense", hidden, model.sizes.width, narrow);
  const Tensor changed = f.layer_norm("LayerNorm", f.activation("activation", dense, model.sizes.activation), narrow);
  const Linear tied = {.tied = model.sizes.tied, .returned = true};
  token_loss(f, f.linear("decoder", changed, narrow, model.sizes.vocabulary, tied));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const std::int64_t width = model.sizes.width;
  Tensor hidden = 0;
  {
    const InModule inside(f, "albert", "AlbertModel");
    hidden = encoder(f, model, embeddings(f, model));
    const bool pools = head == Head::none || head == Head::encoder || head == Head::sequence_classification;
    if (head == Head::none || head == Head::encoder) f.hand_out(hidden);
    if (pools) hidden = pooled(f, model, hidden);
  }
  const auto dropped = [&](Tensor x) { return f.dropout("dropout", x, model.classifier_dropout); };
  encoder_head(f, head, hidden,
               {.width = width,
                .labels = model.labels,
                .words = [&](Tensor x) { masked_lm(f, model, x); },
                .sample = [&](Tensor x) { (void)f.linear("classifier", dropped(x), width, model.labels); },
                .token = dropped});
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Albert", "albert", "albert", kAlwaysTied}});
/// Published models, by width.
inline constexpr auto kPublished = std::to_array<PublishedHeads>({{768, 12}, {1024, 16}, {2048, 16}, {4096, 64}});
/// Heads whose own bias is their decoder's bias.
inline constexpr auto kTiedBias = std::to_array<std::string_view>({"AlbertMLMHead"});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.size("vocab_size", "embeddings.word_embeddings", "num_embeddings");
  t.size("embedding_size", "embeddings.word_embeddings", "embedding_dim");
  t.size("max_position_embeddings", "embeddings.position_embeddings", "num_embeddings");
  t.size("type_vocab_size", "embeddings.token_type_embeddings", "num_embeddings");
  t.size("hidden_size", "encoder.embedding_hidden_mapping_in", "out_features");
  t.count("num_hidden_groups", "encoder.albert_layer_groups");
  const std::string layer = "encoder.albert_layer_groups.0.albert_layers.0.";
  t.size("intermediate_size", layer + "ffn", "out_features");
  t.dropout("attention_probs_dropout_prob", layer + "attention.attention_dropout");
  t.dropout("hidden_dropout_prob", "embeddings.dropout");
  t.dropout("classifier_dropout_prob", "/dropout");
  t.size("num_labels", "/classifier", "out_features");
  const std::int64_t width = t.value("encoder.embedding_hidden_mapping_in", "out_features").value_or(0);
  t.heads_of_width({.published = kPublished}, width);
  // All layers are one module, which is printed once.
  constexpr std::array<std::int64_t, 2> kDeep = {1024, 2048};
  const bool deep = std::ranges::find(kDeep, width) != kDeep.end();
  t.set("num_hidden_layers", deep ? 24 : 12);
  t.assume(deep ? "24 layers, as published models of this width have"
                : "12 layers, as published models of this width have");
}

inline constexpr Architecture kArchitecture = {.name = "albert",
                                               .model_types = names<"albert">,
                                               .usual_head = Head::masked_lm,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .tied_bias = kTiedBias};

}  // namespace albert

}  // namespace gpumem::architectures
