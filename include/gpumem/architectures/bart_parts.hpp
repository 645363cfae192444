// Output: what encoders and decoders of BART's kind have in common, from BART to Whisper: how a model type is made, the
// sizes of both sides, what stands in front of the blocks of a side, and these.
// Source: transformers 4.48, models/bart/modeling_bart.py (BartSdpaAttention); 5.16, modeling_*.py of mbart, marian,
// m2m_100, pegasus, plbart, blenderbot and blenderbot_small.
#pragma once

#include <array>
#include <optional>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

namespace bart {

/// BartEncoderLayer and BartDecoderLayer, under one name: checkpointing wraps both, and takes the blocks of one class.
inline constexpr std::string_view kLayer = "BartLayer";

enum class Positions : std::uint8_t {
  learned_two_more,  ///< the table has two rows more, and every sample its own positions
  learned,           ///< one row for all samples
  sines,             ///< a table that is never trained
  sines_apart,       ///< the same as a buffer, of any length
};
enum class WordNorm : std::uint8_t {
  none,
  sum,              ///< of words and positions
  words_in_decoder  ///< there of the words alone
};

/// How a model type is made.
struct Form {
  std::string_view model_type;
  std::string_view prefix;   ///< of its classes
  bool norms_first = false;  ///< norms stand in front of each part, and one behind each side
  WordNorm words = WordNorm::none;
  Positions positions = Positions::learned_two_more;
  bool logits_bias = true;
  bool caches = false;  ///< training returns keys and values
};
inline constexpr auto kForms = std::to_array<Form>(
    {{"bart", "Bart", false, WordNorm::sum},
     {"mbart", "MBart", true, WordNorm::sum},
     {"marian", "Marian", false, WordNorm::none, Positions::sines},
     {"m2m_100", "M2M100", true, WordNorm::none, Positions::sines_apart, false, true},
     {"pegasus", "Pegasus", true, WordNorm::none, Positions::sines},
     {"plbart", "PLBart", false, WordNorm::sum, Positions::learned_two_more, true, true},
     {"blenderbot", "Blenderbot", true, WordNorm::none, Positions::learned},
     {"blenderbot-small", "BlenderbotSmall", false, WordNorm::words_in_decoder, Positions::learned}});
inline constexpr auto kModelTypes = model_types_of(kForms);

/// What models with an encoder and a decoder have in common (Whisper, too).
struct Model {
  Form form = kForms.front();
  std::string_view layer = kLayer;
  std::int64_t vocabulary = 1;
  std::int64_t decoder_vocabulary = 0;  ///< where the sides do not share a table; else 0
  std::int64_t width = 1;
  std::int64_t positions = 1;  ///< of tokens
  Side encoder;
  Side decoder;
  double dropout = 0.0;
  double attention_dropout = 0.0;
  double activation_dropout = 0.0;
  std::string_view activation = "gelu";
  bool scales = false;
  bool key_bias = true;
  bool copies = false;      ///< heads, before the kernel
  bool norm_behind = true;  ///< of a side whose norms stand first
};

/// Both sides of the model, and how it drops and activates. `dropout`: of a config that does not say.
inline void read_sides(ConfigFields& config, Model& model, double dropout) {
  model.encoder = read_side(config, "encoder", model.width);
  model.decoder = read_side(config, "decoder", model.width);
  model.dropout = config.number({"dropout"}, dropout);
  model.attention_dropout = config.number({"attention_dropout"}, 0.0);
  model.activation_dropout = config.number({"activation_dropout"}, 0.0);
  model.activation = config.text({"activation_function"}, "gelu");
  model.scales = config.flag("scale_embedding", false);
  config.ignore({"init_std"});
  const bool tied = config.flag("tie_word_embeddings", true);
  if (!tied) config.fail("a head with a weight of its own is not known here", "tie_word_embeddings");
}

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

inline StreamAttention attention_of(const Model& model, const Side& side, std::string_view name) {
  StreamAttention attention = {.name = name,
                               .class_name = "Attention",
                               .width = model.width,
                               .heads = side.heads,
                               .dropout = model.attention_dropout,
                               .key_bias = model.key_bias,
                               .copies = model.copies};
  if (!model.copies) attention.copies_when = {When::until_4_51, When::in_4_52_masked};
  return attention;
}

/// One of a block's parts with what it read: the norm stands before it or behind the sum.
template <typename Part>
Tensor part(Forward& f, const Model& model, std::string_view norm, Tensor input, Part about) {
  const bool first = model.form.norms_first;
  const Tensor made = about(first ? f.layer_norm(norm, input, model.width) : input);
  const Tensor sum = f.add(input, f.dropout("dropout", made, model.dropout));
  return first ? sum : f.leave_function(f.layer_norm(norm, sum, model.width), {input});
}

inline Tensor feed_forward_part(Forward& f, const Model& model, const Side& side, Tensor input) {
  return part(f, model, "final_layer_norm", input, [&](Tensor x) {
    const Tensor wide = f.activation("activation_fn", f.linear("fc1", x, model.width, side.inner), model.activation);
    const Tensor dropped = f.dropout("activation_dropout", wide, model.activation_dropout);
    return f.linear("fc2", dropped, side.inner, model.width);
  });
}

/// A stack's blocks, and the norm behind them. `encoded`: what a decoder's second attention reads.
inline Tensor blocks(Forward& f, const Model& model, const Side& side, Tensor hidden,
                     std::optional<Tensor> encoded = {}) {
  StreamAttention self = attention_of(model, side, "self_attn");
  StreamAttention cross = attention_of(model, side, "encoder_attn");
  self.causal = encoded.has_value();
  self.caches = cross.caches = encoded.has_value() && model.form.caches;
  const Tensor left = stack(f, "layers", model.layer, side.layers, hidden, [&](Tensor x, std::int64_t) {
    x = part(f, model, "self_attn_layer_norm", x, [&](Tensor in) { return stream_attention(f, self, in, in); });
    if (encoded) {
      x = part(f, model, "encoder_attn_layer_norm", x,
               [&](Tensor in) { return stream_attention(f, cross, in, *encoded); });
    }
    return feed_forward_part(f, model, side, x);
  });
  return model.form.norms_first && model.norm_behind ? f.layer_norm("layer_norm", left, model.width) : left;
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

}  // namespace bart

}  // namespace gpumem::architectures
