// Whisper: convolutions over a spectrogram, an encoder, and a decoder of tokens.
// Source: transformers 4.48, models/whisper/modeling_whisper.py.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/bart_parts.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/vision_language.hpp"

namespace gpumem::architectures {

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
  config.ignore({"encoder_layerdrop", "decoder_layerdrop", "num_hidden_layers", "classifier_proj_size",
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

// Language models that hear: Voxtral (a Llama or Mistral) and Qwen2-Audio (a Qwen2), each with Whisper's encoder as its
// tower. A processor pads each sound to 30 seconds, or cuts it into pieces of 30 seconds, which is what the tower
// takes; a job's `images` says how many a sample has. Source: transformers 5.16, models/voxtral/modeling_voxtral.py,
// qwen2_audio/modeling_qwen2_audio.py.

namespace sound_language {

/// How many frames of its tower Voxtral puts into one token.
inline constexpr std::int64_t kJoined = 4;

struct Model {
  whisper::Model tower;
  bool voxtral = false;
  std::string_view activation = "gelu";
  std::int64_t width = 1;  ///< of the text model

  [[nodiscard]] std::int64_t tokens() const { return voxtral ? tower.frames / kJoined : tower.frames / 2; }
  [[nodiscard]] std::string_view named(std::string_view of_voxtral, std::string_view of_qwen) const {
    return voxtral ? of_voxtral : of_qwen;
  }
};

inline whisper::Model read_tower(ConfigFields& audio) {
  whisper::Model tower = whisper::usual();
  tower.width = audio.size_or({"d_model", "hidden_size"}, 1280);
  tower.bands = audio.size_or({"num_mel_bins"}, 128);
  tower.frames = audio.size_or({"max_source_positions"}, 1500);
  tower.encoder.layers = audio.layers_or("encoder_layers", audio.layers_or("num_hidden_layers", 32));
  tower.encoder.heads = audio.size_or({"encoder_attention_heads", "num_attention_heads"}, 20);
  tower.encoder.inner = audio.size_or({"encoder_ffn_dim", "intermediate_size"}, 5120);
  tower.dropout = audio.number({"dropout"}, 0.0);
  tower.attention_dropout = audio.number({"attention_dropout"}, 0.0);
  tower.activation_dropout = audio.number({"activation_dropout"}, 0.0);
  tower.activation = audio.text({"activation_function"}, "gelu");
  if (tower.width % tower.encoder.heads != 0) audio.fail("does not divide d_model", "encoder_attention_heads");
  if (tower.frames > ConfigFields::kLargestSize / 2) audio.fail("is too large", "max_source_positions");
  audio.ignore({"encoder_layerdrop", "layerdrop", "scale_embedding", "vocab_size", "init_std", "head_dim",
                "num_key_value_heads", "num_hidden_layers"});
  return tower;
}

/// VoxtralConfig._default_text_config_kwargs, and the heads of a LlamaConfig.
inline constexpr std::string_view kVoxtralText =
    R"({"vocab_size": 131072, "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 30,
        "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128})";

inline Model read(ConfigFields& config) {
  Model model;
  model.voxtral = config.text({"model_type"}, "voxtral") == "voxtral";
  // The classes have parts of their own where the config has none.
  if (!config.has("audio_config")) config.replace(R"({"audio_config": {}})");
  if (!config.has("text_config")) config.replace(R"({"text_config": {}})");
  if (ConfigFields* audio = config.part("audio_config", "{}")) model.tower = read_tower(*audio);
  model.activation = config.text({"projector_hidden_act"}, "gelu");
  config.ignore({"audio_token_id", "audio_token_index", "ignore_index", "hidden_size"});
  const bool whole = !model.voxtral || (model.tower.frames * model.tower.width) % model.tower.encoder.inner == 0;
  if (!whole || (model.voxtral && model.tower.encoder.inner != kJoined * model.tower.width)) {
    config.fail("must be four times the tower's width, as the projector reads four frames at once", "audio_config");
  }
  return model;
}

inline Tensor features_of(Forward& f, const Model& m, std::int64_t sounds) {
  const Tensor heard = whisper::encoder(f, m.tower,
                                        {.name = "audio_tower",
                                         .class_name = m.named("VoxtralEncoder", "Qwen2AudioEncoder"),
                                         .sounds = sounds,
                                         .pools = !m.voxtral});
  const InModule inside(f, "multi_modal_projector",
                        m.named("VoxtralMultiModalProjector", "Qwen2AudioMultiModalProjector"));
  if (!m.voxtral) return f.call("clone", {f.linear("linear", heard, m.tower.width, m.width)});  // without padding
  const std::int64_t wide = m.tower.encoder.inner;
  const Tensor joined = f.unflatten(f.flatten(heard, 1, 2), 1, {-1, wide});
  const Tensor open = f.activation("act", f.linear("linear_1", joined, wide, m.width, {.bias = false}), m.activation);
  return f.linear("linear_2", open, m.width, m.width, {.bias = false});
}

inline void tell_sounds(Forward& f, const Model& model, std::int64_t sounds, bool said) {
  if (sounds == 0) return f.remark("samples bring no sound; the tower for it is held and not called");
  f.remark("each sample brings " + std::to_string(sounds) + (sounds == 1 ? " sound" : " sounds") + " of 30 seconds" +
           (said ? ", as `images` says" : ", as `images` does not say otherwise") + ": " +
           std::to_string(sounds * model.tokens()) + " of its tokens");
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Pictures sounds = pictures_of(f);
  Model model = read(config);
  ConfigFields* text = text_fields(config, model.voxtral ? "llama" : "qwen2", "text_config",
                                   model.voxtral ? kVoxtralText : std::string_view());
  if (text == nullptr || !config.status()) return;
  model.width = text->size({"hidden_size"});
  if (sounds.frames > 0) return f.fail("reads no videos; leave `frames` out");
  tell_sounds(f, model, sounds.count, f.images().count.has_value());
  const TextPart part = inner_text(model.named("VoxtralModel", "Qwen2AudioModel"), "TextModel");
  write_text(f, *text, head, part, sounds, [&](Forward& to) { return features_of(to, model, sounds.seen()); });
}

inline constexpr Architecture kArchitecture = {
    .name = "sound_language", .model_types = names<"voxtral", "qwen2_audio">, .write = write, .holds_text_model = true};

}  // namespace sound_language

}  // namespace gpumem::architectures
