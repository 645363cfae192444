// Models with an encoder and a decoder of BART's kind: BART, mBART, Marian (opus-mt), M2M100 (NLLB), Pegasus, PLBart,
// Blenderbot. They differ in where norms stand, and in how they tell positions. The decoder gets as many tokens as the
// encoder. Source: transformers 4.48, models/bart/modeling_bart.py (BartSdpaAttention); 5.16, modeling_*.py of mbart,
// marian, m2m_100, pegasus, plbart, blenderbot and blenderbot_small.
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
                 "init_std",
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
  if (head != Head::none && head != Head::causal_lm)
    config.fail("only the class that writes text and the model without a head are known");
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

// Whisper: convolutions over a spectrogram, an encoder, and a decoder of tokens.
// Source: transformers 4.48, models/whisper/modeling_whisper.py.

namespace whisper {

/// WhisperEncoderLayer and WhisperDecoderLayer, under one name: checkpointing wraps both.
inline constexpr std::string_view kLayer = "WhisperLayer";

/// Norms in front, and a cache.
inline constexpr bart::Form kForm = {.model_type = "whisper", .prefix = "Whisper", .norms_first = true, .caches = true};

struct Model : bart::Model {
  std::int64_t bands = 80;     ///< of the spectrogram
  std::int64_t frames = 1500;  ///< after the convolutions
};

inline Model usual() {
  Model model;
  model.form = kForm;
  model.layer = kLayer;
  model.key_bias = false;
  model.copies = true;
  return model;
}

inline Model read(ConfigFields& config) {
  Model model = usual();
  model.vocabulary = config.size({"vocab_size"});
  model.width = config.size({"d_model"});
  model.bands = config.size_or({"num_mel_bins"}, 80);
  model.frames = config.size_or({"max_source_positions"}, 1500);
  model.positions = config.size_or({"max_target_positions"}, 448);
  bart::read_sides(config, model, 0.0);
  if (model.frames > ConfigFields::kLargestSize / 2) config.fail("is too large", "max_source_positions");
  if (config.flag("apply_spec_augment", false)) config.fail("masked spectrograms are not known", "apply_spec_augment");
  config.ignore({"encoder_layerdrop", "decoder_layerdrop", "num_hidden_layers", "init_std", "classifier_proj_size",
                 "use_weighted_layer_sum", "mask_time_prob", "mask_time_length", "mask_time_min_masks",
                 "mask_feature_prob", "mask_feature_length", "mask_feature_min_masks", "median_filter_width"});
  return model;
}

inline Tensor convolved(Forward& f, const Model& model, std::string_view name, Tensor input, std::int64_t in,
                        std::int64_t stride) {
  const Tensor made = f.layer(name, "Conv1d", "conv1d", {input},
                              {{"in_channels", in},
                               {"out_channels", model.width},
                               {"kernel_size", Sizes(1, 3)},
                               {"stride", Sizes(1, stride)},
                               {"padding", Sizes(1, 1)}});
  return f.activation("gelu", made, "gelu");
}

/// What the tower of a model with sound does otherwise.
struct Tower {
  std::string_view name = "encoder";
  std::string_view class_name = "WhisperEncoder";
  std::int64_t sounds = 1;  ///< of a sample
  bool pools = false;       ///< pairs of frames, before the last norm
};

inline Tensor encoder(Forward& f, const Model& model, const Tower& tower = {}) {
  const InModule inside(f, tower.name, tower.class_name);
  const Tensor sound = f.rows_input("input_features", tower.sounds, {model.bands, 2 * model.frames});
  const Tensor narrow = convolved(f, model, "conv1", sound, model.bands, 1);
  const Tensor rows = f.permute(convolved(f, model, "conv2", narrow, model.width, 2), {0, 2, 1});
  // Sines, which are not trained.
  const Tensor places = f.parameter("embed_positions.weight", {model.frames, model.width}, true);
  const Tensor embedded = f.dropout("dropout", f.add(rows, places), model.dropout);
  if (!tower.pools) return bart::blocks(f, model, model.encoder, embedded);
  bart::Model open = model;
  open.norm_behind = false;
  const Tensor hidden = f.permute(bart::blocks(f, open, model.encoder, embedded), {0, 2, 1});
  const Tensor pooled = f.layer("avg_pooler", "AvgPool1d", "avg_pool1d", {hidden},
                                {{"kernel_size", Sizes(1, 2)}, {"stride", Sizes(1, 2)}});
  return f.layer_norm("layer_norm", f.permute(pooled, {0, 2, 1}), model.width);
}

inline Tensor decoder(Forward& f, const Model& model, Tensor encoded) {
  const InModule inside(f, "decoder", "WhisperDecoder");
  const Tensor ids = f.token_input("decoder_input_ids");
  const Tensor words = f.embedding("embed_tokens", ids, model.vocabulary, model.width);
  const Tensor read = model.scales ? f.scale(words) : words;
  const Tensor places = f.embedding("embed_positions", f.positions(ids, model.positions), model.positions, model.width);
  const Tensor embedded = f.dropout("dropout", f.add(read, places), model.dropout);
  return bart::blocks(f, model, model.decoder, embedded, encoded);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const std::int64_t narrow = config.size_or({"classifier_proj_size"}, 256);
  const std::int64_t labels = labels_of(config);
  if (head != Head::none && head != Head::causal_lm && head != Head::sequence_classification) {
    config.fail("only ForConditionalGeneration, ForAudioClassification and the model without a head are known");
  }
  if (head == Head::sequence_classification && config.flag("use_weighted_layer_sum", false)) {
    config.fail("is not known", "use_weighted_layer_sum");
  }
  if (!config.status()) return;
  if (head == Head::sequence_classification) {
    const Tensor made = f.linear("projector", encoder(f, model), model.width, narrow);
    f.linear("classifier", f.call("mean", {made}, {{"dim", std::int64_t{1}}}), narrow, labels);
    return;
  }
  Tensor decoded = 0;
  {
    const InModule inside(f, "model", "WhisperModel");
    const Tensor encoded = encoder(f, model);
    f.hand_out(encoded);
    decoded = decoder(f, model, encoded);
  }
  if (head == Head::none) return;
  const Linear tied = {.bias = false, .tied = true, .returned = true};
  token_loss(f, f.linear("proj_out", decoded, model.width, model.vocabulary, tied), decoded);
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Whisper", "whisper", "model", kAlwaysTied}});
/// Published models, by width.
inline constexpr auto kPublished =
    std::to_array<PublishedHeads>({{384, 6}, {512, 8}, {768, 12}, {1024, 16}, {1280, 20}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.size("vocab_size", "decoder.embed_tokens", "num_embeddings");
  t.size("d_model", "decoder.embed_tokens", "embedding_dim");
  t.size("num_mel_bins", "encoder.conv1", "in_channels");
  const std::int64_t width = t.value("decoder.embed_tokens", "embedding_dim").value_or(0);
  // The code reads this table itself, so tables of rows count it as the encoder's own.
  const std::int64_t held = t.held("encoder");
  if (t.has("encoder.embed_positions")) t.size("max_source_positions", "encoder.embed_positions", "num_embeddings");
  else if (width > 0 && held >= width && held % width == 0) t.set("max_source_positions", held / width);
  t.size("max_target_positions", "decoder.embed_positions", "num_embeddings");
  t.size("classifier_proj_size", "/projector", "out_features");
  t.size("num_labels", "/classifier", "out_features");
  tree_sides(t, kPublished, width);
}

inline constexpr Architecture kArchitecture = {
    .name = "whisper", .model_types = names<"whisper">, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace whisper

}  // namespace gpumem::architectures
