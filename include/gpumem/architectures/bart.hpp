// Models with an encoder and a decoder of BART's kind: BART, mBART, Marian (opus-mt), M2M100 (NLLB), Pegasus, PLBart,
// Blenderbot. They differ in where norms stand, and in how they tell positions. The decoder gets as many tokens as the
// encoder. Source: transformers 4.48, models/bart/modeling_bart.py (BartSdpaAttention); 5.16, modeling_*.py of mbart,
// marian, m2m_100, pegasus, plbart, blenderbot and blenderbot_small.
#pragma once

#include <array>
#include <optional>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/bart_parts.hpp"
#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

namespace bart {

inline Model read(ConfigFields& config) {
  Model model;
  const std::string_view type = config.text({"model_type"}, "bart");
  for (const Form& form : kForms) {
    if (form.model_type == type) model.form = form;
  }
  model.vocabulary = config.size({"vocab_size"});
  model.width = config.size({"d_model"});
  model.positions = config.size({"max_position_embeddings"});
  // What the classes' own configs have otherwise.
  if (type == "m2m_100") {
    config.complete(R"({"activation_function": "relu", "scale_embedding": true, "attention_dropout": 0.1})");
  }
  if (type == "plbart") config.complete(R"({"scale_embedding": true, "attention_dropout": 0.1})");
  read_sides(config, model, 0.1);
  const std::int64_t others = config.size_or({"decoder_vocab_size"}, model.vocabulary);
  if (!config.flag("share_encoder_decoder_embeddings", true)) model.decoder_vocabulary = others;
  config.ignore({"encoder_layerdrop",
                 "decoder_layerdrop",
                 "classif_dropout",
                 "classifier_dropout",
                 "num_hidden_layers",
                 "normalize_embedding",
                 "normalize_before",
                 "add_bias_logits",
                 "add_final_layer_norm",
                 "static_position_embeddings",
                 "extra_pos_embeddings",
                 "early_stopping",
                 "prefix",
                 "force_bos_token_to_be_generated",
                 "save_step",
                 "output_past",
                 "gradient_checkpointing",
                 "extra_layer_norm",
                 "do_blenderbot_90_layernorm",
                 "unk_token_id",
                 "layernorm_variant"});
  return model;
}

/// Words with what the form makes of their places.
inline Tensor placed(Forward& f, const Model& model, Tensor ids, Tensor words) {
  const Positions kind = model.form.positions;
  if (kind == Positions::sines_apart) {
    (void)f.constant("embed_positions.weights", {model.positions + 2, model.width}, "parameters");
    return f.call("add", {words});
  }
  const Tensor numbers = f.positions(ids, model.positions);
  if (kind == Positions::learned_two_more) {
    return f.add(words, f.embedding("embed_positions", ids, model.positions + 2, model.width));
  }
  f.freeze(kind == Positions::sines);
  const Tensor places = f.embedding("embed_positions", numbers, model.positions, model.width);
  f.freeze(false);
  return f.add(words, places);
}

inline Tensor embedded(Forward& f, const Model& model, Tensor ids, Tensor words, bool decodes) {
  const WordNorm kind = model.form.words;
  const auto normed = [&](Tensor x) { return f.layer_norm("layernorm_embedding", x, model.width); };
  Tensor read = model.scales ? f.scale(words) : words;
  const bool alone = kind == WordNorm::words_in_decoder && decodes;
  if (alone) read = normed(read);
  read = placed(f, model, ids, read);
  if (kind != WordNorm::none && !alone) read = normed(read);
  return f.dropout("dropout", read, model.dropout);
}

inline Tensor decoder(Forward& f, const Model& model, Tensor ids, Tensor encoded) {
  const InModule inside(f, "decoder", model.form.prefix);
  const Tensor words = model.decoder_vocabulary > 0
                           ? f.embedding("embed_tokens", ids, model.decoder_vocabulary, model.width)
                           : f.tied_embedding("embed_tokens", ids, model.vocabulary, model.width);
  return blocks(f, model, model.decoder, embedded(f, model, ids, words, true), encoded);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  if ((head != Head::none && head != Head::causal_lm) || config.class_name().ends_with("ForCausalLM"))
    config.fail("only the class of both sides that writes text, and the model without a head, are known");
  Tensor decoded = 0;
  {
    const InModule inside(f, "model", model.form.prefix);
    const Tensor ids = token_ids(f);
    const bool shares = model.decoder_vocabulary == 0;
    Tensor words = shares ? f.embedding("shared", ids, model.vocabulary, model.width) : 0;
    Tensor encoded = 0;
    {
      const InModule side(f, "encoder", model.form.prefix);
      if (!shares) words = f.embedding("embed_tokens", ids, model.vocabulary, model.width);
      encoded = blocks(f, model, model.encoder, embedded(f, model, ids, words, false));
    }
    f.hand_out(encoded);
    decoded = decoder(f, model, f.token_input("decoder_input_ids"), encoded);
  }
  if (head == Head::none) return;
  const std::int64_t answers = model.decoder_vocabulary > 0 ? model.decoder_vocabulary : model.vocabulary;
  const bool biased = model.form.logits_bias;
  Tensor logits =
      f.linear("lm_head", decoded, model.width, answers, {.bias = false, .tied = true, .returned = !biased});
  if (biased) {
    logits = f.add(logits, f.constant("final_logits_bias", {1, answers}, "parameters"));
    f.hand_out(logits);
  }
  token_loss(f, logits, decoded);
}

inline constexpr auto kClasses =
    std::to_array<ModelClass>({{"Bart", "bart", "model", kAlwaysTied},
                               {"MBart", "mbart", "model", kAlwaysTied},
                               {"Marian", "marian", "model", kAlwaysTied},
                               {"M2M100", "m2m_100", "model", kAlwaysTied},
                               {"Pegasus", "pegasus", "model", kAlwaysTied},
                               {"PLBart", "plbart", "model", kAlwaysTied},
                               {"BlenderbotSmall", "blenderbot-small", "model", kAlwaysTied},
                               {"Blenderbot", "blenderbot", "model", kAlwaysTied}});
/// Published models, by width.
inline constexpr auto kPublished =
    std::to_array<PublishedHeads>({{512, 8}, {768, 12}, {1024, 16}, {1280, 32}, {2560, 32}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const bool shares = t.has("shared");
  t.size("vocab_size", shares ? "shared" : "encoder.embed_tokens", "num_embeddings");
  t.size("d_model", shares ? "shared" : "encoder.embed_tokens", "embedding_dim");
  if (!shares) {
    t.set("share_encoder_decoder_embeddings", 0);
    t.size("decoder_vocab_size", "decoder.embed_tokens", "num_embeddings");
  }
  const bool own =
      t.class_name().starts_with("Bart") || t.class_name().starts_with("MBart") || t.class_name().starts_with("PLBart");
  if (const auto rows = t.value("encoder.embed_positions", "num_embeddings")) {
    t.set("max_position_embeddings", own ? *rows - 2 : *rows);
  } else {
    t.set("max_position_embeddings", 1024);
    t.assume("1,024 positions, as M2M100 and NLLB have them");
  }
  tree_sides(t, kPublished, t.value(shares ? "shared" : "encoder.embed_tokens", "embedding_dim").value_or(0));
}

inline constexpr Architecture kArchitecture = {
    .name = "bart", .model_types = kModelTypes, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace bart

}  // namespace gpumem::architectures
