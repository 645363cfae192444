// BERT, ERNIE, RoBERTa, XLM-RoBERTa, CamemBERT, data2vec, ELECTRA and MPNet: encoders with norms after attention and
// feed-forward layer. Source: transformers 4.48, models/bert/modeling_bert.py, roberta; electra, ernie and data2vec
// (modeling_data2vec_text.py), which have no kernel there; MPNet (without a
// kernel, with biases of distances that all layers share): 4.57 and 5.16, models/mpnet/modeling_mpnet.py.
#pragma once

#include <array>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

namespace bert {

struct Model {
  DecoderSizes sizes;
  std::string_view prefix = "Bert";
  std::int64_t positions = 1;
  std::int64_t types = 2;
  std::int64_t embedding_width = 1;
  std::int64_t labels = 2;
  double dropout = 0.1;
  double classifier_dropout = 0.1;
  bool counts_positions = false;  ///< RoBERTa, MPNet: of each sample's tokens that are no padding
  bool pools = false;             ///< BERT, ERNIE: samples are classified by what the pooler makes
  std::int64_t tasks = 0;         ///< that ERNIE has embeddings of
  std::int64_t buckets = 32;      ///< of distances, of MPNet

  [[nodiscard]] std::string named(std::string_view part) const { return std::string(prefix).append(part); }
  [[nodiscard]] bool is_mpnet() const { return prefix == "MPNet"; }
  [[nodiscard]] std::string_view module() const {
    if (is_mpnet()) return "mpnet";
    if (prefix == "Ernie") return "ernie";
    if (prefix == "Data2VecText") return "data2vec_text";
    return prefix == "Electra" ? "electra" : counts_positions ? "roberta" : "bert";
  }
};

inline Model read(ConfigFields& config) {
  Model model;
  const std::string_view type = config.text({"model_type"}, "bert");
  model.pools = type == "bert" || type == "ernie";
  model.counts_positions = !model.pools && type != "electra";
  model.prefix = type == "electra" ? "Electra" : model.counts_positions ? "Roberta" : "Bert";
  if (type == "mpnet") model.prefix = "MPNet";
  if (type == "data2vec-text") model.prefix = "Data2VecText";
  if (type == "ernie") {
    model.prefix = "Ernie";
    model.tasks = config.flag("use_task_id", false) ? config.size_or({"task_type_vocab_size"}, 3) : 0;
    config.ignore({"task_type_vocab_size"});
  }
  model.sizes = decoder_sizes(config, {.activation = "gelu", .tied = true});
  model.sizes.attention_dropout = config.number({"attention_probs_dropout_prob"}, 0.1);
  model.positions = config.size({"max_position_embeddings"});
  model.types = config.size_or({"type_vocab_size"}, 2);
  if (type == "mpnet") model.buckets = config.size_or({"relative_attention_num_buckets"}, 32);
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
  const Tensor kinds = model.is_mpnet() ? ids : f.token_input("token_type_ids");
  (void)f.token_input("attention_mask");
  const Tensor words = f.embedding("word_embeddings", ids, model.sizes.vocabulary, width);
  Tensor sum = words;
  if (!model.is_mpnet()) sum = f.add(words, f.embedding("token_type_embeddings", kinds, model.types, width));
  // RoBERTa's first row of positions is after the padding's: two rows of the table are never read.
  const std::int64_t most = model.counts_positions ? model.positions - 2 : model.positions;
  const Tensor numbers = f.positions(ids, std::max<std::int64_t>(most, 1));
  const Tensor places =
      f.embedding("position_embeddings", model.counts_positions ? ids : numbers, model.positions, width);
  Tensor embedded = model.is_mpnet() ? f.add(sum, places) : f.call("add", {sum, places}, {{"inplace", true}});
  if (model.tasks > 0) {
    const Tensor tasks = f.embedding("task_type_embeddings", kinds, model.tasks, width);
    embedded = f.call("add", {embedded, tasks}, {{"inplace", true}});
  }
  return f.dropout("dropout", f.layer_norm("LayerNorm", embedded, width), model.dropout);
}

/// Projection, dropout, and the norm of the sum with what the part read.
inline Tensor joined(Forward& f, const Model& model, Tensor input, std::int64_t in, Tensor residual,
                     std::string_view class_name) {
  const InModule inside(f, "output", model.named(class_name));
  const Tensor projected = f.linear("dense", input, in, model.sizes.width);
  const Tensor dropped = f.dropout("dropout", projected, model.dropout);
  const Tensor normed = f.layer_norm("LayerNorm", f.add(dropped, residual), model.sizes.width);
  return f.leave_function(normed, {dropped});
}

/// ELECTRA's attention is written out, and ERNIE's and data2vec's. Its mask, of the parameters' type, is added whether
/// batches hold padding or not.
inline Tensor written_out(Forward& f, const Model& model, const Heads& heads) {
  const Tensor scores = f.call("matmul", {heads.query, f.permute(heads.key, {0, 1, 3, 2})});
  const Tensor masked = f.to(f.call("add", {f.scale(scores)}), "parameters");
  const Tensor weights = f.dropout("dropout", f.call("softmax", {masked}), model.sizes.attention_dropout);
  const Tensor merged = merge_heads(f, f.call("matmul", {weights, heads.value}));
  return f.leave_function(merged, {masked, weights, heads.query, heads.key, heads.value});
}

inline Tensor attention(Forward& f, const Model& model, Tensor input) {
  const InModule outer(f, "attention", model.named("Attention"));
  const DecoderSizes& s = model.sizes;
  Tensor attended = 0;
  {
    const bool kernel = model.prefix == "Bert" || model.prefix == "Roberta";
    const InModule inside(f, "self", model.named(kernel ? "SdpaSelfAttention" : "SelfAttention"));
    const auto heads = [&](std::string_view name) {
      return split_heads(f, f.linear(name, input, s.width, s.width), s.head_width);
    };
    const Tensor query = heads("query");
    const Tensor key = heads("key");
    const Tensor value = heads("value");
    const Heads heads_of = {query, key, value};
    attended = kernel ? f.leave_function(
                            attend(f, heads_of, {.dropout = s.attention_dropout, .copies = false, .causal = false}),
                            {query, key, value})
                      : written_out(f, model, heads_of);
  }
  return f.leave_function(joined(f, model, attended, s.width, input, "SelfOutput"), {attended});
}

/// [N, heads, S, S] of the table of distances, which the scores of all layers add.
inline Tensor distance_bias(Forward& f, const Model& model, Tensor ids) {
  const Tensor distances = f.call("relative_positions", {ids});
  const Tensor values = f.embedding("relative_attention_bias", distances, model.buckets, model.sizes.heads);
  const Tensor one = f.call("unsqueeze", {f.permute(values, {2, 0, 1})}, {{"dim", std::int64_t{0}}});
  const core::Dim kept = core::Dim::fixed(-1);
  return f.contiguous(
      f.call("expand", {one}, {{"shape", std::vector<core::Dim>{core::Dim::batch(), kept, kept, kept}}}));
}

inline Tensor biased_attention(Forward& f, const Model& model, Tensor input, Tensor bias) {
  const InModule outer(f, "attention", "MPNetAttention");
  const DecoderSizes& s = model.sizes;
  Tensor attended = 0;
  {
    const InModule inside(f, "attn", "MPNetSelfAttention");
    const auto heads = [&](std::string_view name) {
      return split_heads(f, f.linear(name, input, s.width, s.width), s.head_width);
    };
    const Tensor query = heads("q");
    const Tensor key = heads("k");
    const Tensor value = heads("v");
    const Tensor scores = f.scale(f.call("matmul", {query, f.permute(key, {0, 1, 3, 2})}));
    const Tensor biased = f.call("add", {scores, bias}, {{"inplace", true}});
    const Tensor masked = f.add(biased, When::masked_or_before_5_0);
    const Tensor weights = f.dropout("dropout", f.call("softmax", {masked}), s.attention_dropout);
    const Tensor merged = merge_heads(f, f.call("matmul", {weights, value}));
    attended = f.leave_function(f.linear("o", merged, s.width, s.width), {masked, weights, query, key, value, merged});
  }
  const Tensor dropped = f.dropout("dropout", attended, model.dropout);
  return f.leave_function(f.layer_norm("LayerNorm", f.add(dropped, input), s.width), {attended});
}

inline Tensor block(Forward& f, const Model& model, Tensor input, std::optional<Tensor> bias) {
  const DecoderSizes& s = model.sizes;
  const Tensor attended = bias ? biased_attention(f, model, input, *bias) : attention(f, model, input);
  Tensor wide = 0;
  {
    const InModule inside(f, "intermediate", model.named("Intermediate"));
    wide = f.activation("intermediate_act_fn", f.linear("dense", attended, s.width, s.inner), s.activation);
  }
  return f.leave_function(joined(f, model, wide, s.inner, attended, "Output"), {input, attended, wide});
}

inline Tensor pooled(Forward& f, const Model& model, Tensor hidden) {
  const InModule inside(f, "pooler", model.named("Pooler"));
  const Tensor first = f.select(hidden, 1, 0);
  return f.call("tanh", {f.linear("dense", first, model.sizes.width, model.sizes.width)});
}

/// BERT's cls.predictions, RoBERTa's lm_head, ELECTRA's generator_predictions and generator_lm_head.
inline void masked_lm(Forward& f, const Model& model, Tensor hidden) {
  const std::int64_t narrow = model.embedding_width;
  const bool bert = model.pools;
  const bool roberta = model.counts_positions;  // and MPNet, whose activation is a function
  const std::string_view transform = bert ? "cls.predictions.transform" : roberta ? "lm_head" : "generator_predictions";
  Tensor changed = 0;
  {
    const InModule inside(f, transform, model.named("LMHead"));
    const Tensor dense = f.linear("dense", hidden, model.sizes.width, narrow);
    const std::string_view activation = bert ? "transform_act_fn" : roberta ? "gelu" : "activation";
    const Tensor active = f.activation(activation, dense, model.sizes.activation);
    changed = f.layer_norm(roberta ? "layer_norm" : "LayerNorm", active, narrow);
  }
  const std::string_view decoder = bert ? "cls.predictions.decoder" : roberta ? "lm_head.decoder" : "generator_lm_head";
  const Linear tied = {.tied = model.sizes.tied, .returned = true};
  token_loss(f, f.linear(decoder, changed, narrow, model.sizes.vocabulary, tied));
}

/// RoBERTa, ELECTRA and MPNet classify samples by a dense layer of their own, BERT by the pooler's output.
inline void classifier(Forward& f, const Model& model, Tensor hidden) {
  const std::int64_t width = model.sizes.width;
  if (model.pools) {
    const Tensor dropped = f.dropout("dropout", hidden, model.classifier_dropout);
    f.linear("classifier", dropped, width, model.labels);
    return;
  }
  const InModule inside(f, "classifier", model.named("ClassificationHead"));
  const Tensor first = f.dropout("dropout", f.select(hidden, 1, 0), model.classifier_dropout);
  const Tensor dense = f.linear("dense", first, width, width);
  const Tensor active = f.activation("activation", dense, model.counts_positions ? "tanh" : "gelu");
  f.linear("out_proj", f.dropout("dropout", active, model.classifier_dropout), width, model.labels);
}

/// The hidden states, or what the pooler made of the first of them.
inline Tensor body(Forward& f, const Model& model, Head head) {
  const std::int64_t width = model.sizes.width;
  const InModule inside(f, model.module(), model.named("Model"));
  Tensor embedded = embeddings(f, model);
  if (model.embedding_width != width) embedded = f.linear("embeddings_project", embedded, model.embedding_width, width);
  Tensor hidden = 0;
  {
    const InModule encoder(f, "encoder", model.named("Encoder"));
    const auto bias = model.is_mpnet() ? std::optional(distance_bias(f, model, embedded)) : std::nullopt;
    hidden = stack(f, "layer", model.named("Layer"), model.sizes.layers, embedded,
                   [&](Tensor x, std::int64_t) { return block(f, model, x, bias); });
    if (bias) hidden = f.leave_function(hidden, {*bias});
  }
  const bool alone = head == Head::none || head == Head::encoder;
  const bool pools = alone ? model.prefix != "Electra" : head == Head::sequence_classification && model.pools;
  if (!pools) return f.leave_function(hidden, {embedded});
  if (alone) f.hand_out(hidden);
  return f.leave_function(pooled(f, model, hidden), {embedded, hidden});
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  encoder_head(f, head, body(f, model, head),
               {.width = model.sizes.width,
                .labels = model.labels,
                .words = [&](Tensor x) { masked_lm(f, model, x); },
                .sample = [&](Tensor x) { classifier(f, model, x); },
                .token = [&](Tensor x) { return f.dropout("dropout", x, model.classifier_dropout); }});
}

inline constexpr auto kClasses =
    std::to_array<ModelClass>({{"Bert", "bert", "bert", kAlwaysTied},
                               {"Roberta", "roberta", "roberta", kAlwaysTied},
                               {"XLMRoberta", "xlm-roberta", "roberta", kAlwaysTied},
                               {"Camembert", "camembert", "roberta", kAlwaysTied},
                               {"Electra", "electra", "electra", kAlwaysTied},
                               {"Ernie", "ernie", "ernie", kAlwaysTied},
                               {"Data2VecText", "data2vec-text", "data2vec_text", kAlwaysTied},
                               {"MPNet", "mpnet", "mpnet", kAlwaysTied}});
/// Published models, by width.
inline constexpr auto kPublished = std::to_array<PublishedHeads>({{128, 2}, {256, 4}, {512, 8}, {768, 12}, {1024, 16}});
/// Heads whose own bias is their decoder's bias.
inline constexpr auto kTiedBias = std::to_array<std::string_view>(
    {"BertLMPredictionHead", "RobertaLMHead", "XLMRobertaLMHead", "CamembertLMHead", "ElectraGeneratorPredictions",
     "MPNetLMHead", "ErnieLMPredictionHead", "Data2VecTextLMHead"});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.size("vocab_size", "embeddings.word_embeddings", "num_embeddings");
  t.size("embedding_size", "embeddings.word_embeddings", "embedding_dim");
  t.size("max_position_embeddings", "embeddings.position_embeddings", "num_embeddings");
  t.size("task_type_vocab_size", "embeddings.task_type_embeddings", "num_embeddings");
  t.there("use_task_id", "embeddings.task_type_embeddings");
  t.size("type_vocab_size", "embeddings.token_type_embeddings", "num_embeddings");
  t.count("num_hidden_layers", "encoder.layer");
  const bool mpnet = t.has("encoder.layer.0.attention.attn");
  const std::string self = mpnet ? "encoder.layer.0.attention.attn." : "encoder.layer.0.attention.self.";
  const std::string query = self + (mpnet ? "q" : "query");
  t.size("relative_attention_num_buckets", "encoder.relative_attention_bias", "num_embeddings");
  t.size("hidden_size", query, "in_features");
  t.size("intermediate_size", "encoder.layer.0.intermediate.dense", "out_features");
  t.dropout("attention_probs_dropout_prob", self + "dropout");
  t.dropout("hidden_dropout_prob", "embeddings.dropout");
  t.dropout("classifier_dropout", t.has("/classifier.dropout") ? "/classifier.dropout" : "/dropout");
  t.size("num_labels", t.has("/classifier.out_proj") ? "/classifier.out_proj" : "/classifier", "out_features");
  t.heads_of_width({.published = kPublished}, t.value(query, "in_features").value_or(0));
}

inline constexpr Architecture kArchitecture = {
    .name = "bert",
    .model_types = names<"bert", "roberta", "xlm-roberta", "camembert", "electra", "ernie", "data2vec-text", "mpnet">,
    .usual_head = Head::masked_lm,
    .write = write,
    .classes = kClasses,
    .read_tree = read_tree,
    .tied_bias = kTiedBias};

}  // namespace bert

// DistilBERT: BERT's encoder without token types and pooler. Source: transformers 4.48,
// models/distilbert/modeling_distilbert.py (DistilBertSdpaAttention).

namespace distilbert {

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

inline void masked_lm(Forward& f, const Model& model, Tensor hidden) {
  const std::int64_t width = model.width;
  const Tensor changed =
      f.activation("activation", f.linear("vocab_transform", hidden, width, width), model.activation);
  const Tensor normed = f.layer_norm("vocab_layer_norm", changed, width);
  token_loss(f, f.linear("vocab_projector", normed, width, model.vocabulary, {.tied = true, .returned = true}));
}

inline void classifier(Forward& f, const Model& model, Tensor hidden) {
  const Tensor dense = f.linear("pre_classifier", f.select(hidden, 1, 0), model.width, model.width);
  const Tensor active = f.activation("relu", dense, "relu");
  f.linear("classifier", f.dropout("dropout", active, model.classifier_dropout), model.width, model.labels);
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
  encoder_head(f, head, hidden,
               {.width = model.width,
                .labels = model.labels,
                .words = [&](Tensor x) { masked_lm(f, model, x); },
                .sample = [&](Tensor x) { classifier(f, model, x); },
                .token = [&](Tensor x) { return f.dropout("dropout", x, model.dropout); },
                .span = [&](Tensor x) { return f.dropout("dropout", x, 0.1); }});
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

inline constexpr Architecture kArchitecture = {.name = "distilbert",
                                               .model_types = names<"distilbert">,
                                               .usual_head = Head::masked_lm,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree};

}  // namespace distilbert

}  // namespace gpumem::architectures
