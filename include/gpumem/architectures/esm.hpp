// ESM-2 and ESM-1b: BERT for proteins, with norms before each part, positions by rotation or learned, and embeddings
// that make up for masked tokens. Source: transformers 4.57, models/esm/modeling_esm.py. The head that predicts
// contacts is held, and only called by predict_contacts().
#pragma once

#include <array>
#include <string>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

namespace esm {

struct Model {
  DecoderSizes sizes;
  bool rotary = false;
  bool drops_tokens = false;  ///< masked tokens are zeros, and the others are scaled up
  bool norm_before = false;
  std::int64_t positions = 1026;
  std::int64_t labels = 2;
  double dropout = 0.1;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config, {.activation = "gelu", .tied = true});
  model.sizes.attention_dropout = config.number({"attention_probs_dropout_prob"}, 0.1);
  const std::string_view kind = config.text({"position_embedding_type"}, "absolute");
  model.rotary = kind == "rotary";
  if (!model.rotary && kind != "absolute") config.fail("must be rotary or absolute", "position_embedding_type");
  model.drops_tokens = config.flag("token_dropout", false);
  model.norm_before = config.flag("emb_layer_norm_before", false);
  model.positions = config.size_or({"max_position_embeddings"}, 1026);
  model.labels = labels_of(config);
  model.dropout = config.number({"hidden_dropout_prob"}, 0.1);
  if (config.flag("is_folding_model", false)) config.fail("a folding model is not known", "is_folding_model");
  if (config.flag("is_decoder", false)) config.fail("a decoder of this type is not known", "is_decoder");
  if (model.rotary && model.sizes.head_width % 2 != 0)
    config.fail("leaves heads of an odd width", "num_attention_heads");
  config.ignore({"esmfold_config", "vocab_list", "classifier_dropout", "add_cross_attention"});
  return model;
}

inline Tensor embeddings(Forward& f, const Model& model, Tensor ids) {
  const InModule inside(f, "embeddings", "EsmEmbeddings");
  const std::int64_t width = model.sizes.width;
  Tensor hidden = f.embedding("word_embeddings", ids, model.sizes.vocabulary, width);
  if (model.drops_tokens) hidden = f.scale(f.scale(f.call("masked_fill", {hidden})));
  if (!model.rotary) {
    hidden = f.add(hidden, f.embedding("position_embeddings", ids, model.positions, width));
  }
  if (model.norm_before) hidden = f.layer_norm("layer_norm", hidden, width);
  return f.scale(hidden);  // by the attention mask
}

/// Half of x times (1 + erf of it over a root), one product after the other.
inline Tensor written_gelu(Forward& f, Tensor wide) {
  const Tensor half = f.scale(wide);
  const Tensor inside = f.call("erf", {f.scale(wide)});
  return f.multiply(half, f.call("add", {inside}));
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const InModule outer(f, "attention", "EsmAttention");
  const DecoderSizes& s = model.sizes;
  const Tensor normed = f.layer_norm("LayerNorm", input, s.width);
  Tensor mixed = 0;
  {
    const InModule inside(f, "self", "EsmSelfAttention");
    const auto heads = [&](std::string_view name) {
      return split_heads(f, f.linear(name, normed, s.width, s.width), s.head_width);
    };
    const auto turned = [&](Tensor of) {
      return model.rotary ? f.as_type_of(rotate(f, of, rotary, s.head_width), of) : of;
    };
    const Tensor query = f.scale(heads("query"));
    const Tensor key = heads("key");
    const Tensor value = heads("value");
    mixed = attend(f, {turned(query), turned(key), value},
                   {.dropout = s.attention_dropout, .copies = false, .causal = false});
  }
  const InModule inside(f, "output", "EsmSelfOutput");
  return f.add(f.dropout("dropout", f.linear("dense", mixed, s.width, s.width), model.dropout), input);
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const DecoderSizes& s = model.sizes;
  const Tensor attended = attention(f, model, input, rotary);
  const Tensor normed = f.layer_norm("LayerNorm", attended, s.width);
  Tensor wide = 0;
  {
    const InModule inside(f, "intermediate", "EsmIntermediate");
    wide = written_gelu(f, f.linear("dense", normed, s.width, s.inner));
  }
  const InModule inside(f, "output", "EsmOutput");
  return f.add(f.dropout("dropout", f.linear("dense", wide, s.inner, s.width), model.dropout), attended);
}

/// A logistic regression of all attention maps, which no training step calls.
inline void contact_head(Forward& f, const Model& model) {
  const InModule inside(f, "contact_head", "EsmContactPredictionHead");
  (void)f.parameter("regression.weight", {1, model.sizes.layers * model.sizes.heads});
  (void)f.parameter("regression.bias", {1});
}

inline Tensor body(Forward& f, const Model& model, Head head) {
  const std::int64_t width = model.sizes.width;
  const InModule inside(f, "esm", "EsmModel");
  const Tensor ids = token_ids(f);
  Tensor hidden = embeddings(f, model, ids);
  const Rotary rotary = model.rotary ? rotary_tables(f, ids, model.sizes.head_width) : Rotary{};
  {
    const InModule encoder(f, "encoder", "EsmEncoder");
    hidden = stack(f, "layer", "EsmLayer", model.sizes.layers, hidden,
                   [&](Tensor x, std::int64_t) { return block(f, model, x, rotary); });
    hidden = f.layer_norm("emb_layer_norm_after", hidden, width);
  }
  if (head == Head::none || head == Head::encoder) {
    f.hand_out(hidden);
    const InModule pooler(f, "pooler", "EsmPooler");
    hidden = f.activation("activation", f.linear("dense", f.select(hidden, 1, 0), width, width), "tanh");
  }
  contact_head(f, model);
  return hidden;
}

inline void masked_lm(Forward& f, const Model& model, Tensor hidden) {
  const InModule inside(f, "lm_head", "EsmLMHead");
  const DecoderSizes& s = model.sizes;
  const Tensor active = written_gelu(f, f.linear("dense", hidden, s.width, s.width));
  const Tensor normed = f.layer_norm("layer_norm", active, s.width);
  const Tensor scores = f.linear("decoder", normed, s.width, s.vocabulary, {.bias = false, .tied = s.tied});
  const Tensor logits = f.add(scores, f.parameter("bias", {s.vocabulary}));
  f.hand_out(logits);
  token_loss(f, logits);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (head == Head::question_answering) config.fail("answers to questions are not known of this type");
  if (!config.status()) return;
  const std::int64_t width = model.sizes.width;
  Tensor hidden = body(f, model, head);
  if (head == Head::masked_lm || head == Head::causal_lm) return masked_lm(f, model, hidden);
  if (head == Head::token_classification) {
    (void)f.linear("classifier", f.dropout("dropout", hidden, model.dropout), width, model.labels);
  } else if (head == Head::sequence_classification) {
    const InModule inside(f, "classifier", "EsmClassificationHead");
    hidden = f.dropout("dropout", f.select(hidden, 1, 0), model.dropout);
    hidden = f.call("tanh", {f.linear("dense", hidden, width, width)});
    (void)f.linear("out_proj", f.dropout("dropout", hidden, model.dropout), width, model.labels);
  }
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Esm", "esm", "esm", kAlwaysTied}});
/// Published models, by width.
inline constexpr auto kPublished =
    std::to_array<PublishedHeads>({{320, 20}, {480, 20}, {640, 20}, {1280, 20}, {2560, 40}, {5120, 40}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const std::string query = "encoder.layer.0.attention.self.query";
  t.size("vocab_size", "embeddings.word_embeddings", "num_embeddings");
  t.size("hidden_size", "embeddings.word_embeddings", "embedding_dim");
  t.size("max_position_embeddings", "embeddings.position_embeddings", "num_embeddings");
  t.count("num_hidden_layers", "encoder.layer");
  t.size("intermediate_size", "encoder.layer.0.intermediate.dense", "out_features");
  t.set_string("position_embedding_type", t.has("embeddings.position_embeddings") ? "absolute" : "rotary");
  t.there("emb_layer_norm_before", "embeddings.layer_norm");
  t.set_flag("token_dropout", true);
  t.set("attention_probs_dropout_prob", 0);
  t.dropout("hidden_dropout_prob", "embeddings.dropout");
  t.assume("masked tokens are zeros and attention has no dropout, as in published models");
  t.size("num_labels", t.has("/classifier.out_proj") ? "/classifier.out_proj" : "/classifier", "out_features");
  t.heads_of_width({.published = kPublished}, t.value(query, "in_features").value_or(0));
}

inline constexpr Architecture kArchitecture = {.name = "esm",
                                               .model_types = names<"esm">,
                                               .usual_head = Head::masked_lm,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree};

}  // namespace esm

// ModernBERT: no biases, rotary positions, gated feed-forward layers, and masks that let most layers see only near
// tokens. Attention is PyTorch's scaled_dot_product_attention, and nothing is compiled (reference_compile=False).
// Its decoder is the same with a causal mask and projections of their own, and its attention is written out.
// Source: transformers 4.48, models/modernbert/modeling_modernbert.py; 4.56,
// models/modernbert_decoder/modular_modernbert_decoder.py (_supports_sdpa = False).

namespace modernbert {

struct Model {
  DecoderSizes sizes;
  std::int64_t every = 3;  ///< every N-th layer sees all tokens
  std::int64_t labels = 2;
  double embedding_dropout = 0.0;
  double attention_dropout = 0.0;
  double dropout = 0.0;
  double classifier_dropout = 0.0;
  std::string_view classifier_activation = "gelu";
  bool attention_bias = false;
  bool bias = false;  ///< of the feed-forward layers
  bool norm_bias = false;
  bool classifier_bias = false;
  bool decoder_bias = true;
  bool means = false;  ///< samples are classified by the mean of their tokens
  bool decodes = false;

  [[nodiscard]] std::string named(std::string_view part) const {
    return std::string(decodes ? "ModernBertDecoder" : "ModernBert").append(part);
  }
};

inline Model read(ConfigFields& config) {
  Model model;
  model.decodes = config.text({"model_type"}, "modernbert") == "modernbert-decoder";
  model.sizes = decoder_sizes(config, {.activation = "gelu", .tied = true});
  model.sizes.activation = config.text({"hidden_activation"}, "gelu");
  model.every = config.size_or({"global_attn_every_n_layers"}, 3);
  model.labels = labels_of(config);
  model.embedding_dropout = config.number({"embedding_dropout"}, 0.0);
  model.attention_dropout = config.number({"attention_dropout"}, 0.0);
  model.dropout = config.number({"mlp_dropout"}, 0.0);
  model.classifier_dropout = config.number({"classifier_dropout"}, 0.0);
  model.classifier_activation = config.text({"classifier_activation"}, "gelu");
  model.attention_bias = config.flag("attention_bias", false);
  model.bias = config.flag("mlp_bias", false);
  model.norm_bias = config.flag("norm_bias", false);
  model.classifier_bias = config.flag("classifier_bias", false);
  model.decoder_bias = config.flag("decoder_bias", true);
  model.means = config.text({"classifier_pooling"}, "cls") == "mean";
  config.ignore({"local_attention", "local_rope_theta", "global_rope_theta", "deterministic_flash_attn",
                 "sparse_prediction", "sparse_pred_ignore_index", "repad_logits_with_grad", "reference_compile",
                 "position_embedding_type", "initializer_cutoff_factor", "gradient_checkpointing"});
  return model;
}

/// What all layers of a kind share: masks [N, 1, S, S], of which attention gets one; of the decoder tables of positions
/// too.
struct Masks {
  Tensor all = 0;
  Tensor near = 0;
  Rotary all_tables = {};
  Rotary near_tables = {};
};

/// Scores in the model's type, and their softmax in float32.
inline Tensor decoder_attention(Forward& f, const Model& model, Tensor input, const Rotary& rotary, Tensor mask) {
  const InModule inside(f, "attn", "ModernBertDecoderAttention");
  const DecoderSizes& s = model.sizes;
  const auto [plain_query, plain_key, value] = project_heads(f, s, input, {.bias = model.attention_bias});
  const std::array<Tensor, 2> turned = turn_heads(f, plain_query, plain_key, rotary, s.head_width, Turning::halves);
  f.cache(turned[1], Caches::serving);
  f.cache(value, Caches::serving);
  const Tensor scores = f.scale(f.call("matmul", {turned[0], f.permute(turned[1], {0, 1, 3, 2})}));
  const Tensor masked = f.add(scores, mask);
  const Tensor weights = f.as_type_of(f.call("softmax", {f.to(masked, "float32")}), turned[0]);
  const bool drops = model.attention_dropout > 0.0;
  const Tensor kept = drops ? f.call("dropout", {weights}, {{"p", model.attention_dropout}}) : weights;
  const Tensor mixed = merge_heads(f, f.call("matmul", {kept, value}));
  const Tensor output = f.linear("Wo", mixed, s.width, s.width, {.bias = model.attention_bias});
  return f.dropout("out_drop", output, model.attention_dropout);
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, Tensor ids, Tensor mask) {
  const InModule inside(f, "attn", "ModernBertAttention");
  const DecoderSizes& s = model.sizes;
  const Tensor packed = f.linear("Wqkv", input, s.width, 3 * s.width, {.bias = model.attention_bias});
  const Tensor parted = f.unflatten(packed, 2, {3, s.heads, s.head_width});
  const Rotary rotary = rotary_tables(f, ids, s.head_width);
  const std::vector<Tensor> parts = f.split(f.permute(parted, {0, 3, 2, 1, 4}), 2, {1, 1, 1});
  const auto heads = [&](Tensor part) { return f.call("squeeze", {part}, {{"dim", std::int64_t{2}}}); };
  const Tensor query = rotate(f, heads(parts[0]), rotary, s.head_width);
  const Tensor key = rotate(f, heads(parts[1]), rotary, s.head_width);
  const Tensor mixed = f.call("scaled_dot_product_attention", {query, key, heads(parts[2]), mask},
                              {{"dropout_p", model.attention_dropout}});
  const Tensor output = f.linear("Wo", merge_heads(f, mixed), s.width, s.width, {.bias = model.attention_bias});
  return f.dropout("out_drop", output, model.attention_dropout);
}

inline Tensor feed_forward_part(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "mlp", "ModernBertMLP");
  const DecoderSizes& s = model.sizes;
  const Tensor packed = f.linear("Wi", input, s.width, 2 * s.inner, {.bias = model.bias});
  const std::vector<Tensor> parts = f.split(packed, 2, {s.inner, s.inner});
  const Tensor gated = f.multiply(f.activation("act", parts[0], s.activation), parts[1]);
  return f.linear("Wo", f.dropout("drop", gated, model.dropout), s.inner, s.width, {.bias = model.bias});
}

inline Tensor block(Forward& f, const Model& model, Tensor input, Tensor ids, const Masks& masks, std::int64_t index) {
  const std::int64_t width = model.sizes.width;
  const Tensor normed = index == 0 ? input : f.layer_norm("attn_norm", input, width, model.norm_bias);
  const bool all = index % model.every == 0;
  const Tensor mask = all ? masks.all : masks.near;
  const Rotary& tables = all ? masks.all_tables : masks.near_tables;
  const Tensor mixed =
      model.decodes ? decoder_attention(f, model, normed, tables, mask) : attention(f, model, normed, ids, mask);
  const Tensor attended = f.add(input, mixed);
  return f.add(attended, feed_forward_part(f, model, f.layer_norm("mlp_norm", attended, width, model.norm_bias)));
}

inline Tensor changed(Forward& f, const Model& model, Tensor hidden) {
  const InModule inside(f, model.decodes ? "lm_head" : "head", model.named("PredictionHead"));
  const std::int64_t width = model.sizes.width;
  const Tensor dense = f.linear("dense", hidden, width, width, {.bias = model.classifier_bias});
  const Tensor active = f.activation("act", dense, model.classifier_activation);
  return f.layer_norm("norm", active, width, model.norm_bias);
}

inline void masked_lm(Forward& f, const Model& model, Tensor hidden) {
  const Linear decoder = {.bias = model.decoder_bias, .tied = model.sizes.tied, .returned = true};
  const Tensor logits =
      f.linear("decoder", changed(f, model, hidden), model.sizes.width, model.sizes.vocabulary, decoder);
  token_loss(f, f.to(logits, "float32"));
}

inline void add_head(Forward& f, const Model& model, Head head, Tensor hidden) {
  const std::int64_t width = model.sizes.width;
  const auto dropped = [&](Tensor x) { return f.dropout("drop", changed(f, model, x), model.classifier_dropout); };
  const auto one = [&](Tensor x) {
    return model.means ? f.call("mean", {x}, {{"dim", std::int64_t{1}}}) : f.select(x, 1, 0);
  };
  encoder_head(f, head, hidden,
               {.width = width,
                .labels = model.labels,
                .words = [&](Tensor x) { masked_lm(f, model, x); },
                .sample = [&](Tensor x) { (void)f.linear("classifier", dropped(one(x)), width, model.labels); },
                .token = dropped,
                .span = [&](Tensor x) { return changed(f, model, x); }});
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (model.decodes && head != Head::causal_lm && head != Head::none) {
    config.fail("of ModernBERT's decoder only the language model, and that without a head, are known");
  }
  if (!config.status()) return;
  const DecoderSizes& s = model.sizes;
  Tensor hidden = 0;
  {
    const InModule inside(f, "model", model.named("Model"));
    const Tensor ids = token_ids(f);
    {
      const InModule embeddings(f, "embeddings", "ModernBertEmbeddings");
      hidden =
          f.layer_norm("norm", f.embedding("tok_embeddings", ids, s.vocabulary, s.width), s.width, model.norm_bias);
      hidden = f.dropout("drop", hidden, model.embedding_dropout);
    }
    Masks masks;
    masks.all = f.call("causal_mask", {ids}, {{"padded", true}});
    masks.near = f.call("causal_mask", {ids}, {{"padded", true}});
    if (model.decodes) masks.all_tables = rotary_tables(f, ids, s.head_width);
    if (model.decodes) masks.near_tables = rotary_tables(f, ids, s.head_width);
    hidden = stack(f, "layers", model.named(model.decodes ? "Layer" : "EncoderLayer"), s.layers, hidden,
                   [&](Tensor x, std::int64_t index) { return block(f, model, x, ids, masks, index); });
    hidden = f.layer_norm("final_norm", hidden, s.width, model.norm_bias);
  }
  if (!model.decodes) return add_head(f, model, head, hidden);
  const Tensor read_by_head = head == Head::none ? hidden : changed(f, model, hidden);
  decoder_head(f, config, s, head, read_by_head, {.name = "decoder", .bias = model.decoder_bias});
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"ModernBert", "modernbert", "model", kAlwaysTied}});
inline constexpr auto kDecoderClasses =
    std::to_array<ModelClass>({{"ModernBertDecoder", "modernbert-decoder", "model", kAlwaysTied}});
/// Published models, by width.
inline constexpr auto kPublished = std::to_array<PublishedHeads>({{768, 12}, {1024, 16}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const std::int64_t width = t.body("embeddings.tok_embeddings", "layers");
  t.half("intermediate_size", "layers.0.mlp.Wi", "out_features");
  t.flag("attention_bias", t.has("layers.0.attn.Wqkv") ? "layers.0.attn.Wqkv" : "layers.0.attn.q_proj");
  t.flag("mlp_bias", "layers.0.mlp.Wi");
  t.flag("classifier_bias", t.has("/lm_head.dense") ? "/lm_head.dense" : "/head.dense");
  t.flag("decoder_bias", "/decoder");
  t.dropout("attention_dropout", "layers.0.attn.out_drop");
  t.labels("/classifier");
  t.heads_of_width({.published = kPublished}, width);
}

inline constexpr Architecture kArchitecture = {.name = "modernbert",
                                               .model_types = names<"modernbert">,
                                               .usual_head = Head::masked_lm,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree};

inline constexpr Architecture kDecoderArchitecture = {.name = "modernbert_decoder",
                                                      .model_types = names<"modernbert-decoder">,
                                                      .usual_head = Head::causal_lm,
                                                      .write = write,
                                                      .classes = kDecoderClasses,
                                                      .read_tree = read_tree};

}  // namespace modernbert

}  // namespace gpumem::architectures
