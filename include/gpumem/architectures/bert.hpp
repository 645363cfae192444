// BERT, RoBERTa, XLM-RoBERTa, CamemBERT and ELECTRA: encoders with norms after attention and feed-forward layer.
// Source: transformers 4.48, models/bert/modeling_bert.py, roberta, electra (eager there, the kernel here).
#pragma once

#include <array>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

namespace bert_detail {

inline constexpr std::array<std::string_view, 5> kModelTypes = {"bert", "roberta", "xlm-roberta", "camembert",
                                                                "electra"};

struct Model {
  DecoderSizes sizes;
  std::string_view prefix = "Bert";
  std::int64_t positions = 1;
  std::int64_t types = 2;
  std::int64_t embedding_width = 1;
  std::int64_t labels = 2;
  double dropout = 0.1;
  double classifier_dropout = 0.1;
  bool counts_positions = false;  ///< RoBERTa: of each sample's tokens that are no padding

  [[nodiscard]] std::string named(std::string_view part) const { return std::string(prefix).append(part); }
};

inline Model read(ConfigFields& config) {
  Model model;
  const std::string_view type = config.text({"model_type"}, "bert");
  model.counts_positions = type != "bert" && type != "electra";
  model.prefix = type == "electra" ? "Electra" : model.counts_positions ? "Roberta" : "Bert";
  model.sizes = decoder_sizes(config, {.activation = "gelu", .tied = true});
  model.sizes.attention_dropout = config.number({"attention_probs_dropout_prob"}, 0.1);
  model.positions = config.size({"max_position_embeddings"});
  model.types = config.size_or({"type_vocab_size"}, 2);
  model.embedding_width = type == "electra" ? config.size_or({"embedding_size"}, 128) : model.sizes.width;
  model.labels = labels_of(config);
  model.dropout = config.number({"hidden_dropout_prob"}, 0.1);
  model.classifier_dropout = config.number({"classifier_dropout"}, model.dropout);
  const std::string_view kind = config.text({"position_embedding_type"}, "absolute");
  if (kind != "absolute") config.fail("only absolute positions are known", "position_embedding_type");
  if (config.flag("is_decoder", false)) config.fail("a decoder of this type is not known", "is_decoder");
  config.ignore({"summary_type", "summary_use_proj", "summary_activation", "summary_last_dropout"});
  return model;
}

inline Tensor embeddings(Forward& f, const Model& model) {
  const InModule inside(f, "embeddings", model.named("Embeddings"));
  const std::int64_t width = model.embedding_width;
  const Tensor ids = f.token_input("input_ids");
  const Tensor kinds = f.token_input("token_type_ids");
  (void)f.token_input("attention_mask");
  const Tensor words = f.embedding("word_embeddings", ids, model.sizes.vocabulary, width);
  const Tensor types = f.embedding("token_type_embeddings", kinds, model.types, width);
  const Tensor sum = f.add(words, types);
  // RoBERTa's first row of positions is after the padding's: two rows of the table are never read.
  const std::int64_t most = model.counts_positions ? model.positions - 2 : model.positions;
  const Tensor numbers = f.positions(ids, std::max<std::int64_t>(most, 1));
  const Tensor places =
      f.embedding("position_embeddings", model.counts_positions ? ids : numbers, model.positions, width);
  const Tensor embedded = f.call("add", {sum, places}, {{"inplace", true}});
  return f.dropout("dropout", f.layer_norm("LayerNorm", embedded, width), model.dropout);
}

/// Projection, dropout, and the norm of the sum with what the part read.
inline Tensor joined(Forward& f, const Model& model, Tensor input, std::int64_t in, Tensor residual,
                     std::string_view class_name) {
  const InModule inside(f, "output", model.named(class_name));
  const Tensor projected = f.linear("dense", input, in, model.sizes.width);
  const Tensor sum = f.add(f.dropout("dropout", projected, model.dropout), residual);
  return f.layer_norm("LayerNorm", sum, model.sizes.width);
}

inline Tensor attention(Forward& f, const Model& model, Tensor input) {
  const InModule outer(f, "attention", model.named("Attention"));
  const DecoderSizes& s = model.sizes;
  Tensor attended = 0;
  {
    const InModule inside(f, "self", model.named("SdpaSelfAttention"));
    const auto heads = [&](std::string_view name) {
      return split_heads(f, f.linear(name, input, s.width, s.width), s.head_width);
    };
    const Tensor query = heads("query");
    const Tensor key = heads("key");
    const Tensor value = heads("value");
    attended = attend(f, {query, key, value}, {.dropout = s.attention_dropout, .copies = false});
  }
  return joined(f, model, attended, s.width, input, "SelfOutput");
}

inline Tensor block(Forward& f, const Model& model, Tensor input) {
  const DecoderSizes& s = model.sizes;
  const Tensor attended = attention(f, model, input);
  Tensor wide = 0;
  {
    const InModule inside(f, "intermediate", model.named("Intermediate"));
    wide = f.activation("intermediate_act_fn", f.linear("dense", attended, s.width, s.inner), s.activation);
  }
  return joined(f, model, wide, s.inner, attended, "Output");
}

inline Tensor pooled(Forward& f, const Model& model, Tensor hidden) {
  const InModule inside(f, "pooler", model.named("Pooler"));
  const Tensor first = f.select(hidden, 1, 0);
  return f.call("tanh", {f.linear("dense", first, model.sizes.width, model.sizes.width)});
}

inline void masked_lm(Forward& f, const Model& model, Tensor hidden) {
  const InModule inside(f, model.counts_positions ? "lm_head" : "cls", model.named("LMHead"));
  const std::int64_t narrow = model.embedding_width;
  const Tensor dense = f.linear("dense", hidden, model.sizes.width, narrow);
  const Tensor changed = f.layer_norm("LayerNorm", f.activation("act", dense, model.sizes.activation), narrow);
  const Linear tied = {.tied = model.sizes.tied, .returned = true};
  token_loss(f, f.linear("decoder", changed, narrow, model.sizes.vocabulary, tied));
}

/// RoBERTa and ELECTRA classify samples by a dense layer of their own, BERT by the pooler's output.
inline void classifier(Forward& f, const Model& model, Tensor hidden) {
  const std::int64_t width = model.sizes.width;
  if (model.prefix == "Bert") {
    const Tensor dropped = f.dropout("dropout", pooled(f, model, hidden), model.classifier_dropout);
    f.linear("classifier", dropped, width, model.labels);
    return;
  }
  const InModule inside(f, "classifier", model.named("ClassificationHead"));
  const Tensor first = f.dropout("dropout", f.select(hidden, 1, 0), model.classifier_dropout);
  const Tensor dense = f.linear("dense", first, width, width);
  const Tensor active = f.activation("activation", dense, model.counts_positions ? "tanh" : "gelu");
  f.linear("out_proj", f.dropout("dropout", active, model.classifier_dropout), width, model.labels);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const std::int64_t width = model.sizes.width;
  Tensor hidden = embeddings(f, model);
  if (model.embedding_width != width) hidden = f.linear("embeddings_project", hidden, model.embedding_width, width);
  {
    const InModule inside(f, "encoder", model.named("Encoder"));
    hidden = stack(f, "layer", model.named("Layer"), model.sizes.layers, hidden,
                   [&](Tensor x, std::int64_t) { return block(f, model, x); });
  }
  switch (head) {
    case Head::none:
    case Head::encoder:
      if (model.prefix == "Electra") return;
      f.hand_out(hidden);
      (void)pooled(f, model, hidden);
      return;
    case Head::causal_lm:
    case Head::masked_lm: return masked_lm(f, model, hidden);
    case Head::sequence_classification: return classifier(f, model, hidden);
    case Head::token_classification:
      hidden = f.dropout("dropout", hidden, model.classifier_dropout);
      f.linear("classifier", hidden, width, model.labels);
      return;
    case Head::question_answering: (void)f.linear("qa_outputs", hidden, width, 2); return;
  }
}

}  // namespace bert_detail

[[nodiscard]] inline const Architecture& bert() {
  static constexpr Architecture kArchitecture = {.name = "bert",
                                                 .model_types = bert_detail::kModelTypes,
                                                 .usual_head = Head::masked_lm,
                                                 .write = bert_detail::write};
  return kArchitecture;
}

}  // namespace gpumem::architectures
