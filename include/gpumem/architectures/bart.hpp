// BART and mBART's kind: encoder and decoder with learned positions, norms after each part. The decoder gets as many
// tokens as the encoder. Source: transformers 4.48, models/bart/modeling_bart.py (BartSdpaAttention).
#pragma once

#include <array>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

namespace bart_detail {

inline constexpr std::array<std::string_view, 1> kModelTypes = {"bart"};

/// BartEncoderLayer and BartDecoderLayer, under one name: checkpointing wraps both, and takes the blocks of one class.
inline constexpr std::string_view kLayer = "BartLayer";

struct Model {
  std::int64_t vocabulary = 1;
  std::int64_t width = 1;
  std::int64_t positions = 1;
  Side encoder;
  Side decoder;
  double dropout = 0.1;
  double attention_dropout = 0.0;
  double activation_dropout = 0.0;
  std::string_view activation = "gelu";
  bool scales = false;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.vocabulary = config.size({"vocab_size"});
  model.width = config.size({"d_model"});
  model.positions = config.size({"max_position_embeddings"});
  model.encoder = read_side(config, "encoder", model.width);
  model.decoder = read_side(config, "decoder", model.width);
  model.dropout = config.number({"dropout"}, 0.1);
  model.attention_dropout = config.number({"attention_dropout"}, 0.0);
  model.activation_dropout = config.number({"activation_dropout"}, 0.0);
  model.activation = config.text({"activation_function"}, "gelu");
  model.scales = config.flag("scale_embedding", false);
  config.ignore({"encoder_layerdrop", "decoder_layerdrop", "classif_dropout", "classifier_dropout", "num_hidden_layers",
                 "normalize_embedding", "normalize_before", "add_bias_logits", "add_final_layer_norm",
                 "static_position_embeddings", "extra_pos_embeddings", "early_stopping", "prefix", "init_std",
                 "force_bos_token_to_be_generated", "save_step", "output_past", "gradient_checkpointing"});
  return model;
}

inline Tensor attention(Forward& f, const Model& model, const Side& side, std::string_view name, Tensor input,
                        Tensor source) {
  const StreamAttention options = {.name = name,
                                   .class_name = "BartSdpaAttention",
                                   .width = model.width,
                                   .heads = side.heads,
                                   .dropout = model.attention_dropout,
                                   .copies = false,
                                   .copies_when = {When::until_4_51, When::in_4_52_masked}};
  return stream_attention(f, options, input, source);
}

inline Tensor joined(Forward& f, const Model& model, Tensor residual, Tensor part, std::string_view norm) {
  const Tensor sum = f.add(residual, f.dropout("dropout", part, model.dropout));
  return f.leave_function(f.layer_norm(norm, sum, model.width), {residual});
}

inline Tensor feed_forward_part(Forward& f, const Model& model, const Side& side, Tensor input) {
  const Tensor wide = f.activation("activation_fn", f.linear("fc1", input, model.width, side.inner), model.activation);
  const Tensor dropped = f.dropout("activation_dropout", wide, model.activation_dropout);
  return joined(f, model, input, f.linear("fc2", dropped, side.inner, model.width), "final_layer_norm");
}

/// The table has two rows more, and every sample its own positions.
inline Tensor embedded(Forward& f, const Model& model, Tensor ids, Tensor words) {
  const Tensor read = model.scales ? f.scale(words) : words;
  (void)f.positions(ids, model.positions);
  const Tensor places =
      f.embedding("embed_positions", ids, model.positions + 2, model.width, "BartLearnedPositionalEmbedding");
  return f.dropout("dropout", f.layer_norm("layernorm_embedding", f.add(read, places), model.width), model.dropout);
}

inline Tensor encoder(Forward& f, const Model& model, Tensor ids, Tensor words) {
  const InModule inside(f, "encoder", "BartEncoder");
  return stack(f, "layers", kLayer, model.encoder.layers, embedded(f, model, ids, words), [&](Tensor x, std::int64_t) {
    const Tensor mixed = attention(f, model, model.encoder, "self_attn", x, x);
    return feed_forward_part(f, model, model.encoder, joined(f, model, x, mixed, "self_attn_layer_norm"));
  });
}

inline Tensor decoder(Forward& f, const Model& model, Tensor ids, Tensor encoded) {
  const InModule inside(f, "decoder", "BartDecoder");
  const Tensor words = f.tied_embedding("embed_tokens", ids, model.vocabulary, model.width);
  const Side& side = model.decoder;
  return stack(f, "layers", kLayer, side.layers, embedded(f, model, ids, words), [&](Tensor x, std::int64_t) {
    const Tensor mixed = joined(f, model, x, attention(f, model, side, "self_attn", x, x), "self_attn_layer_norm");
    const Tensor crossed = attention(f, model, side, "encoder_attn", mixed, encoded);
    return feed_forward_part(f, model, side, joined(f, model, mixed, crossed, "encoder_attn_layer_norm"));
  });
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  if (head != Head::none && head != Head::causal_lm)
    config.fail("only BartForConditionalGeneration and BartModel are known");
  Tensor decoded = 0;
  {
    const InModule inside(f, "model", "BartModel");
    const Tensor ids = token_ids(f);
    const Tensor words = f.embedding("shared", ids, model.vocabulary, model.width);
    const Tensor encoded = encoder(f, model, ids, words);
    f.hand_out(encoded);
    decoded = decoder(f, model, f.token_input("decoder_input_ids"), encoded);
  }
  if (head == Head::none) return;
  const Tensor scores = f.linear("lm_head", decoded, model.width, model.vocabulary, {.bias = false, .tied = true});
  const Tensor logits = f.add(scores, f.constant("final_logits_bias", {1, model.vocabulary}, "parameters"));
  f.hand_out(logits);
  token_loss(f, logits, decoded);
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Bart", "bart", "model", kAlwaysTied}});
/// Published models, by width.
inline constexpr auto kPublished = std::to_array<PublishedHeads>({{768, 12}, {1024, 16}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.size("vocab_size", "shared", "num_embeddings");
  t.size("d_model", "shared", "embedding_dim");
  if (const auto rows = t.value("encoder.embed_positions", "num_embeddings"))
    t.set("max_position_embeddings", *rows - 2);
  tree_sides(t, kPublished, t.value("shared", "embedding_dim").value_or(0));
}

}  // namespace bart_detail

[[nodiscard]] inline const Architecture& bart() {
  static constexpr Architecture kArchitecture = {.name = "bart",
                                                 .model_types = bart_detail::kModelTypes,
                                                 .write = bart_detail::write,
                                                 .classes = bart_detail::kClasses,
                                                 .read_tree = bart_detail::read_tree};
  return kArchitecture;
}

}  // namespace gpumem::architectures
