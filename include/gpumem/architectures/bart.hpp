// BART and mBART's kind: encoder and decoder with learned positions, norms after each part. The decoder gets as many
// tokens as the encoder. Source: transformers 4.48, models/bart/modeling_bart.py (BartSdpaAttention).
#pragma once

#include <array>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

namespace bart {

/// BartEncoderLayer and BartDecoderLayer, under one name: checkpointing wraps both, and takes the blocks of one class.
inline constexpr std::string_view kLayer = "BartLayer";

/// What models with an encoder and a decoder have in common (Whisper, too).
struct Model {
  std::int64_t vocabulary = 1;
  std::int64_t width = 1;
  std::int64_t positions = 1;  ///< of tokens
  Side encoder;
  Side decoder;
  double dropout = 0.0;
  double attention_dropout = 0.0;
  double activation_dropout = 0.0;
  std::string_view activation = "gelu";
  bool scales = false;
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
  model.vocabulary = config.size({"vocab_size"});
  model.width = config.size({"d_model"});
  model.positions = config.size({"max_position_embeddings"});
  read_sides(config, model, 0.1);
  config.ignore({"encoder_layerdrop", "decoder_layerdrop", "classif_dropout", "classifier_dropout", "num_hidden_layers",
                 "normalize_embedding", "normalize_before", "add_bias_logits", "add_final_layer_norm",
                 "static_position_embeddings", "extra_pos_embeddings", "early_stopping", "prefix", "init_std",
                 "force_bos_token_to_be_generated", "save_step", "output_past", "gradient_checkpointing"});
  return model;
}

inline StreamAttention attention_of(const Model& model, const Side& side, std::string_view name) {
  return {.name = name,
          .class_name = "BartSdpaAttention",
          .width = model.width,
          .heads = side.heads,
          .dropout = model.attention_dropout,
          .copies = false,
          .copies_when = {When::until_4_51, When::in_4_52_masked}};
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
  const StreamAttention attention = attention_of(model, model.encoder, "self_attn");
  return stack(f, "layers", kLayer, model.encoder.layers, embedded(f, model, ids, words), [&](Tensor x, std::int64_t) {
    const Tensor mixed = stream_attention(f, attention, x, x);
    return feed_forward_part(f, model, model.encoder, joined(f, model, x, mixed, "self_attn_layer_norm"));
  });
}

inline Tensor decoder(Forward& f, const Model& model, Tensor ids, Tensor encoded) {
  const InModule inside(f, "decoder", "BartDecoder");
  const Tensor words = f.tied_embedding("embed_tokens", ids, model.vocabulary, model.width);
  const Side& side = model.decoder;
  StreamAttention self = attention_of(model, side, "self_attn");
  self.causal = true;
  const StreamAttention cross = attention_of(model, side, "encoder_attn");
  return stack(f, "layers", kLayer, side.layers, embedded(f, model, ids, words), [&](Tensor x, std::int64_t) {
    const Tensor mixed = joined(f, model, x, stream_attention(f, self, x, x), "self_attn_layer_norm");
    const Tensor crossed = stream_attention(f, cross, mixed, encoded);
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

inline constexpr Architecture kArchitecture = {
    .name = "bart", .model_types = names<"bart">, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace bart

// Whisper: convolutions over a spectrogram, an encoder, and a decoder of tokens.
// Source: transformers 4.48, models/whisper/modeling_whisper.py.

namespace whisper {

/// WhisperEncoderLayer and WhisperDecoderLayer, under one name: checkpointing wraps both.
inline constexpr std::string_view kLayer = "WhisperLayer";

struct Model : bart::Model {
  std::int64_t bands = 80;     ///< of the spectrogram
  std::int64_t frames = 1500;  ///< after the convolutions
};

inline Model read(ConfigFields& config) {
  Model model;
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

inline StreamAttention attention_of(const Model& model, const Side& side, std::string_view name) {
  return {.name = name,
          .class_name = "WhisperSdpaAttention",
          .width = model.width,
          .heads = side.heads,
          .dropout = model.attention_dropout,
          .key_bias = false};
}

inline Tensor fed(Forward& f, const Model& model, const Side& side, Tensor input) {
  const Tensor normed = f.layer_norm("final_layer_norm", input, model.width);
  const Tensor wide = f.activation("activation_fn", f.linear("fc1", normed, model.width, side.inner), model.activation);
  const Tensor dropped = f.dropout("activation_dropout", wide, model.activation_dropout);
  return f.add(input, f.dropout("dropout", f.linear("fc2", dropped, side.inner, model.width), model.dropout));
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

inline Tensor encoder(Forward& f, const Model& model) {
  const InModule inside(f, "encoder", "WhisperEncoder");
  const Tensor sound = f.sample_input("input_features", {model.bands, 2 * model.frames});
  const Tensor narrow = convolved(f, model, "conv1", sound, model.bands, 1);
  const Tensor rows = f.permute(convolved(f, model, "conv2", narrow, model.width, 2), {0, 2, 1});
  // Sines, which are not trained.
  const Tensor places = f.parameter("embed_positions.weight", {model.frames, model.width}, true);
  const Tensor embedded = f.dropout("dropout", f.add(rows, places), model.dropout);
  const StreamAttention attention = attention_of(model, model.encoder, "self_attn");
  const Tensor hidden = stack(f, "layers", kLayer, model.encoder.layers, embedded, [&](Tensor x, std::int64_t) {
    const Tensor normed = f.layer_norm("self_attn_layer_norm", x, model.width);
    const Tensor mixed = f.dropout("dropout", stream_attention(f, attention, normed, normed), model.dropout);
    return fed(f, model, model.encoder, f.add(x, mixed));
  });
  return f.layer_norm("layer_norm", hidden, model.width);
}

inline Tensor decoder(Forward& f, const Model& model, Tensor encoded) {
  const InModule inside(f, "decoder", "WhisperDecoder");
  const Tensor ids = f.token_input("decoder_input_ids");
  const Tensor words = f.embedding("embed_tokens", ids, model.vocabulary, model.width);
  const Tensor read = model.scales ? f.scale(words) : words;
  const Tensor places = f.embedding("embed_positions", f.positions(ids, model.positions), model.positions, model.width);
  const Tensor embedded = f.dropout("dropout", f.add(read, places), model.dropout);
  StreamAttention self = attention_of(model, model.decoder, "self_attn");
  StreamAttention cross = attention_of(model, model.decoder, "encoder_attn");
  self.caches = cross.caches = true;
  self.causal = true;
  const Tensor hidden = stack(f, "layers", kLayer, model.decoder.layers, embedded, [&](Tensor x, std::int64_t) {
    const Tensor normed = f.layer_norm("self_attn_layer_norm", x, model.width);
    const Tensor mixed = f.add(x, f.dropout("dropout", stream_attention(f, self, normed, normed), model.dropout));
    const Tensor again = f.layer_norm("encoder_attn_layer_norm", mixed, model.width);
    const Tensor crossed = f.dropout("dropout", stream_attention(f, cross, again, encoded), model.dropout);
    return fed(f, model, model.decoder, f.add(mixed, crossed));
  });
  return f.layer_norm("layer_norm", hidden, model.width);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (head != Head::none && head != Head::causal_lm) {
    config.fail("only WhisperForConditionalGeneration and WhisperModel are known");
  }
  if (!config.status()) return;
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
  tree_sides(t, kPublished, width);
}

inline constexpr Architecture kArchitecture = {
    .name = "whisper", .model_types = names<"whisper">, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace whisper

}  // namespace gpumem::architectures
