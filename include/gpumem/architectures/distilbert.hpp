// DistilBERT: BERT's encoder without token types and pooler. Source: transformers 4.48,
// models/distilbert/modeling_distilbert.py (DistilBertSdpaAttention).
#pragma once

#include <array>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

namespace distilbert_detail {

inline constexpr std::array<std::string_view, 1> kModelTypes = {"distilbert"};

struct Model {
  std::int64_t vocabulary = 1;
  std::int64_t positions = 1;
  std::int64_t width = 1;
  std::int64_t layers = 1;
  std::int64_t heads = 1;
  std::int64_t inner = 1;
  std::int64_t labels = 2;
  double dropout = 0.1;
  double attention_dropout = 0.1;
  double classifier_dropout = 0.2;
  std::string_view activation = "gelu";
};

inline Model read(ConfigFields& config) {
  Model model;
  model.vocabulary = config.size({"vocab_size"});
  model.positions = config.size({"max_position_embeddings"});
  model.width = config.size({"dim", "hidden_size"});
  model.layers = config.layers({"n_layers", "num_hidden_layers"});
  model.heads = config.size({"n_heads", "num_attention_heads"});
  model.inner = config.size({"hidden_dim", "intermediate_size"});
  model.labels = labels_of(config);
  model.dropout = config.number({"dropout"}, 0.1);
  model.attention_dropout = config.number({"attention_dropout"}, 0.1);
  model.classifier_dropout = config.number({"seq_classif_dropout"}, 0.2);
  model.activation = config.text({"activation"}, "gelu");
  if (model.width % model.heads != 0) config.fail("does not divide dim", "n_heads");
  config.ignore({"sinusoidal_pos_embds", "qa_dropout", "tie_weights_", "output_past", "tie_word_embeddings"});
  return model;
}

inline Tensor block(Forward& f, const Model& model, Tensor input) {
  const std::int64_t width = model.width;
  Tensor attended = 0;
  {
    const InModule inside(f, "attention", "DistilBertSdpaAttention");
    const auto heads = [&](std::string_view name) {
      return split_heads(f, f.linear(name, input, width, width), width / model.heads);
    };
    const Tensor query = heads("q_lin");
    const Tensor key = heads("k_lin");
    const Tensor value = heads("v_lin");
    attended = attend(f, {query, key, value}, {.dropout = model.attention_dropout, .copies = false, .causal = false});
    attended = f.leave_function(f.linear("out_lin", attended, width, width), {query, key, value});
  }
  const Tensor normed = f.leave_function(f.layer_norm("sa_layer_norm", f.add(attended, input), width), {attended});
  Tensor fed = 0;
  {
    const InModule inside(f, "ffn", "FFN");
    fed = f.activation("activation", f.linear("lin1", normed, width, model.inner), model.activation);
    fed = f.dropout("dropout", f.linear("lin2", fed, model.inner, width), model.dropout);
  }
  return f.leave_function(f.layer_norm("output_layer_norm", f.add(fed, normed), width), {input, normed, fed});
}

inline Tensor embeddings(Forward& f, const Model& model) {
  const InModule inside(f, "embeddings", "Embeddings");
  const Tensor ids = token_ids(f);
  const Tensor words = f.embedding("word_embeddings", ids, model.vocabulary, model.width);
  const Tensor numbers = f.positions(ids, model.positions);
  const Tensor places = f.embedding("position_embeddings", numbers, model.positions, model.width);
  return f.dropout("dropout", f.layer_norm("LayerNorm", f.add(words, places), model.width), model.dropout);
}

inline void add_head(Forward& f, const Model& model, Head head, Tensor hidden) {
  const std::int64_t width = model.width;
  switch (head) {
    case Head::none:
    case Head::encoder: return;
    case Head::causal_lm:
    case Head::masked_lm: {
      const Tensor changed =
          f.activation("activation", f.linear("vocab_transform", hidden, width, width), model.activation);
      const Tensor normed = f.layer_norm("vocab_layer_norm", changed, width);
      token_loss(f, f.linear("vocab_projector", normed, width, model.vocabulary, {.tied = true, .returned = true}));
      return;
    }
    case Head::sequence_classification: {
      const Tensor dense = f.linear("pre_classifier", f.select(hidden, 1, 0), width, width);
      const Tensor active = f.activation("relu", dense, "relu");
      f.linear("classifier", f.dropout("dropout", active, model.classifier_dropout), width, model.labels);
      return;
    }
    case Head::token_classification:
      f.linear("classifier", f.dropout("dropout", hidden, model.dropout), width, model.labels);
      return;
    case Head::question_answering: f.linear("qa_outputs", f.dropout("dropout", hidden, 0.1), width, 2); return;
  }
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  Tensor hidden = 0;
  {
    const InModule inside(f, "distilbert", "DistilBertModel");
    const Tensor embedded = embeddings(f, model);
    const InModule transformer(f, "transformer", "Transformer");
    hidden = stack(f, "layer", "TransformerBlock", model.layers, embedded,
                   [&](Tensor x, std::int64_t) { return block(f, model, x); });
    hidden = f.leave_function(hidden, {embedded});
  }
  add_head(f, model, head, hidden);
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"DistilBert", "distilbert", "distilbert", kAlwaysTied}});
/// Published models, by width.
inline constexpr auto kPublished = std::to_array<PublishedHeads>({{768, 12}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const std::int64_t width = t.body("embeddings.word_embeddings", "transformer.layer");
  t.size("max_position_embeddings", "embeddings.position_embeddings", "num_embeddings");
  t.size("hidden_dim", "transformer.layer.0.ffn.lin1", "out_features");
  t.dropout("dropout", "embeddings.dropout");
  t.dropout("attention_dropout", "transformer.layer.0.attention.dropout");
  t.dropout("seq_classif_dropout", "/dropout");
  t.labels("/classifier");
  t.heads_of_width({.published = kPublished}, width);
}

}  // namespace distilbert_detail

[[nodiscard]] inline const Architecture& distilbert() {
  static constexpr Architecture kArchitecture = {.name = "distilbert",
                                                 .model_types = distilbert_detail::kModelTypes,
                                                 .usual_head = Head::masked_lm,
                                                 .write = distilbert_detail::write,
                                                 .classes = distilbert_detail::kClasses,
                                                 .read_tree = distilbert_detail::read_tree};
  return kArchitecture;
}

}  // namespace gpumem::architectures
