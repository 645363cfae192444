// ALBERT, EuroBERT and Nomic BERT.
//
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

// EuroBERT and Nomic BERT: encoders of rotary positions and gated feed-forward layers. EuroBERT is Llama that sees all
// tokens; Nomic BERT has BERT's embeddings, and its norms behind each half of a block.
// Source: transformers 5.16, models/eurobert/modeling_eurobert.py, models/nomic_bert/modeling_nomic_bert.py.

namespace rotary_bert {

struct Model {
  DecoderSizes sizes;
  bool nomic = false;
  std::int64_t types = 2;
  std::int64_t labels = 2;
  double dropout = 0.0;
  double classifier_dropout = 0.0;
  bool bias = false;      ///< of the projections
  bool mlp_bias = false;  ///< of the feed-forward layers and the head
  bool late = true;       ///< samples are classified by the mean of what tokens score
  bool means = false;     ///< by the mean of their tokens; else by the first of them

  [[nodiscard]] std::string named(std::string_view part) const {
    return std::string(nomic ? "NomicBert" : "EuroBert").append(part);
  }
};

/// Nomic's own code before transformers 5 has GPT-2's names for its fields, and more that its models do not use.
inline void read_nomic(ConfigFields& config, Model& model) {
  model.types = config.size_or({"type_vocab_size"}, 2);
  model.dropout = config.number({"hidden_dropout_prob", "resid_pdrop"}, 0.0);
  model.classifier_dropout = config.number({"classifier_dropout"}, model.dropout);
  model.sizes.attention_dropout = config.number({"attention_probs_dropout_prob", "attn_pdrop"}, 0.0);
  if (model.sizes.activation == "swiglu") model.sizes.activation = "silu";
  for (const std::string_view field :
       {"qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias", "prenorm", "parallel_block", "use_rms_norm", "causal"}) {
    if (config.flag(field, false)) config.fail("is not known of Nomic BERT", field);
  }
  if (config.count_or("num_experts", 0) > 0) config.fail("experts are not known of Nomic BERT", "num_experts");
  config.ignore({"rotary_emb_base", "rotary_emb_fraction", "max_trained_positions", "n_positions", "moe_top_k",
                 "pad_vocab_size_multiple"});
}

inline Model read(ConfigFields& config) {
  Model model;
  model.nomic = config.text({"model_type"}, "eurobert") == "nomic_bert";
  model.sizes = decoder_sizes(config, {.tied = model.nomic});
  model.labels = labels_of(config);
  if (model.nomic) {
    read_nomic(config, model);
    return model;
  }
  model.bias = config.flag("attention_bias", false);
  model.mlp_bias = config.flag("mlp_bias", false);
  const std::string_view pooling = config.text({"classifier_pooling", "clf_pooling"}, "late");
  model.late = pooling == "late";
  model.means = pooling == "mean";
  config.ignore({"pretraining_tp"});
  return model;
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const InModule inside(f, "self_attn", model.named("Attention"));
  const DecoderSizes& s = model.sizes;
  const auto [query, key, value] = project_heads(f, s, input, {.bias = model.bias, .split = Split::columns});
  const auto [turned, turned_key] = turn_heads(f, query, key, rotary, s.head_width, Turning::halves);
  const Tensor mixed = attend(f, {turned, turned_key, value},
                              {.groups = s.heads / s.kv_heads, .dropout = s.attention_dropout, .causal = false});
  const Linear rows = {.bias = model.bias, .split = Split::rows};
  const Tensor output = f.linear("o_proj", mixed, s.heads * s.head_width, s.width, rows);
  return f.leave_function(output, {turned, turned_key, value, mixed, input});
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const DecoderSizes& s = model.sizes;
  const auto fed = [&](Tensor x) { return gated_feed_forward(f, s, x, model.named("MLP"), model.mlp_bias); };
  if (!model.nomic) {
    const Tensor normed = f.rms_norm("input_layernorm", input, s.width, "EuroBertRMSNorm");
    const Tensor attended = f.add(input, attention(f, model, normed, rotary));
    return f.add(attended, fed(f.rms_norm("post_attention_layernorm", attended, s.width, "EuroBertRMSNorm")));
  }
  const Tensor mixed = attention(f, model, input, rotary);
  const Tensor attended = f.add(input, f.dropout("post_attention_dropout", mixed, model.dropout));
  const Tensor normed = f.leave_function(f.layer_norm("post_attention_layernorm", attended, s.width), {mixed});
  const Tensor sum = f.add(normed, f.dropout("post_mlp_dropout", fed(normed), model.dropout));
  return f.leave_function(f.layer_norm("post_mlp_layernorm", sum, s.width), {normed});
}

inline Tensor embedded(Forward& f, const Model& model, Tensor ids) {
  const DecoderSizes& s = model.sizes;
  if (!model.nomic) return f.embedding("embed_tokens", ids, s.vocabulary, s.width);
  const InModule inside(f, "embeddings", "NomicBertEmbeddings");
  const Tensor kinds = f.token_input("token_type_ids");
  const Tensor words = f.embedding("word_embeddings", ids, s.vocabulary, s.width);
  const Tensor sum = f.add(words, f.embedding("token_type_embeddings", kinds, model.types, s.width));
  return f.dropout("dropout", f.layer_norm("LayerNorm", sum, s.width), model.dropout);
}

/// The hidden states, or what the pooler made of the first of them.
inline Tensor body(Forward& f, const Model& model, Head head) {
  const DecoderSizes& s = model.sizes;
  const InModule inside(f, model.nomic ? "nomic_bert" : "model", model.named("Model"));
  const Tensor ids = token_ids(f);
  const Tensor first = embedded(f, model, ids);
  const Rotary rotary = rotary_tables(f, ids, s.head_width);
  Tensor hidden = stack(f, "layers", model.named(model.nomic ? "Layer" : "DecoderLayer"), s.layers, first,
                        [&](Tensor x, std::int64_t) { return block(f, model, x, rotary); });
  if (!model.nomic) return f.leave_function(f.rms_norm("norm", hidden, s.width, "EuroBertRMSNorm"), {first});
  hidden = f.leave_function(hidden, {first});
  if (head != Head::sequence_classification) return hidden;
  const InModule pooler(f, "pooler", "NomicBertPooler");
  return f.activation("activation", f.linear("dense", f.select(hidden, 1, 0), s.width, s.width), "tanh");
}

/// EuroBERT's loss is that of float32 logits (loss/loss_utils.py, ForMaskedLMLoss).
inline void masked_lm(Forward& f, const Model& model, Tensor hidden) {
  const DecoderSizes& s = model.sizes;
  const Linear tied = {.bias = model.nomic || model.mlp_bias, .tied = s.tied, .returned = true};
  if (!model.nomic) {
    const Tensor logits = f.linear("lm_head", hidden, s.width, s.vocabulary, tied);
    return token_loss(f, f.to(logits, "float32"), hidden);
  }
  Tensor changed = 0;
  {
    const InModule inside(f, "cls.predictions.transform", "NomicBertPredictionHeadTransform");
    changed = f.activation("transform_act_fn", f.linear("dense", hidden, s.width, s.width), s.activation);
    changed = f.layer_norm("layer_norm", changed, s.width);
  }
  token_loss(f, f.linear("cls.predictions.decoder", changed, s.width, s.vocabulary, tied));
}

inline void classifier(Forward& f, const Model& model, Tensor hidden) {
  const std::int64_t width = model.sizes.width;
  if (model.nomic) {
    (void)f.linear("classifier", f.dropout("dropout", hidden, model.classifier_dropout), width, model.labels);
    return;
  }
  const auto mean = [&](Tensor x) { return f.call("mean", {x}, {{"dim", std::int64_t{1}}}); };
  const auto of_sample = [&] { return model.means ? mean(hidden) : f.select(hidden, 1, 0); };
  const Tensor read = model.late ? hidden : of_sample();
  const Tensor active = f.activation("activation", f.linear("dense", read, width, width), "gelu");
  const Tensor scores = f.linear("classifier", active, width, model.labels);
  if (model.late) (void)mean(scores);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (head == Head::question_answering) config.fail("answers to questions are not known of this type");
  if (!config.status()) return;
  encoder_head(
      f, head, body(f, model, head),
      {.width = model.sizes.width,
       .labels = model.labels,
       .words = [&](Tensor x) { masked_lm(f, model, x); },
       .sample = [&](Tensor x) { classifier(f, model, x); },
       .token = [&](Tensor x) { return model.nomic ? f.dropout("dropout", x, model.classifier_dropout) : x; }});
}

inline constexpr auto kClasses = std::to_array<ModelClass>(
    {{"EuroBert", "eurobert", "model"}, {"NomicBert", "nomic_bert", "nomic_bert", kAlwaysTied}});
/// Published models, by width.
inline constexpr auto kPublished = std::to_array<PublishedHeads>({{768, 12}, {1152, 18}, {2304, 18}});
/// Heads whose own bias is their decoder's bias.
inline constexpr auto kTiedBias = std::to_array<std::string_view>({"NomicBertLMPredictionHead"});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const bool nomic = t.has("embeddings.word_embeddings");
  (void)t.body(nomic ? "embeddings.word_embeddings" : "embed_tokens", "layers");
  t.size("type_vocab_size", "embeddings.token_type_embeddings", "num_embeddings");
  t.size("intermediate_size", "layers.0.mlp.gate_proj", "out_features");
  t.flag("attention_bias", "layers.0.self_attn.q_proj");
  t.flag("mlp_bias", "layers.0.mlp.gate_proj");
  t.dropout("hidden_dropout_prob", "embeddings.dropout");
  t.dropout("classifier_dropout", "/dropout");
  t.labels("/classifier");
  if (t.has("/activation")) t.assume("a sample's label is the mean of what its tokens score (classifier_pooling late)");
  t.heads({.query = "layers.0.self_attn.q_proj", .key = "layers.0.self_attn.k_proj", .published = kPublished});
}

inline constexpr Architecture kArchitecture = {.name = "rotary_bert",
                                               .model_types = names<"eurobert", "nomic_bert">,
                                               .usual_head = Head::masked_lm,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .tied_bias = kTiedBias};

}  // namespace rotary_bert

}  // namespace gpumem::architectures
