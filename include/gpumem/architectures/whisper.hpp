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

// Language models that hear: Voxtral (a Llama or Mistral), Qwen2-Audio and Audio Flamingo 3 (a Qwen2), each with
// Whisper's encoder as its tower. A processor pads each sound to 30 seconds, or cuts it into pieces of 30 seconds,
// which is what the tower takes; a job's `images` says how many a sample has. Source: transformers 5.16,
// models/voxtral/modeling_voxtral.py, qwen2_audio/modeling_qwen2_audio.py, audioflamingo3/modular_audioflamingo3.py.

namespace sound_language {

/// How many frames of its tower Voxtral puts into one token.
inline constexpr std::int64_t kJoined = 4;

struct Model {
  whisper::Model tower;
  bool voxtral = false;
  bool flamingo = false;  ///< Qwen2-Audio's tower, and two linear layers
  bool bias = true;       ///< of them
  std::string_view activation = "gelu";
  std::int64_t width = 1;  ///< of the text model

  [[nodiscard]] std::int64_t tokens() const { return voxtral ? tower.frames / kJoined : tower.frames / 2; }
  [[nodiscard]] std::string_view named(std::string_view of_voxtral, std::string_view of_qwen) const {
    return voxtral ? of_voxtral : of_qwen;
  }
  [[nodiscard]] std::string called(std::string_view part) const {
    return std::string(flamingo ? "AudioFlamingo3" : named("Voxtral", "Qwen2Audio")).append(part);
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
  model.flamingo = config.text({"model_type"}, "voxtral") == "audioflamingo3";
  model.bias = config.flag("projector_bias", true);
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
  const Tensor heard = whisper::encoder(
      f, m.tower, {.name = "audio_tower", .class_name = m.called("Encoder"), .sounds = sounds, .pools = !m.voxtral});
  const InModule inside(f, "multi_modal_projector", m.called("MultiModalProjector"));
  if (m.flamingo) {
    const Linear linear = {.bias = m.bias};
    const Tensor open = f.activation("act", f.linear("linear_1", heard, m.tower.width, m.width, linear), m.activation);
    return f.call("clone", {f.linear("linear_2", open, m.width, m.width, linear)});  // without padding
  }
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
  const TextPart part = inner_text(model.called("Model"), "TextModel");
  write_text(f, *text, head, part, sounds, [&](Forward& to) { return features_of(to, model, sounds.seen()); });
}

inline constexpr auto kClasses =
    std::to_array<ModelClass>({{"Voxtral", "voxtral", "model"}, {"Qwen2Audio", "qwen2_audio", "model"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const bool voxtral = t.class_name().starts_with("Voxtral");
  const std::string block = "audio_tower.layers.0.";
  t.open("audio_config");
  t.size("d_model", "audio_tower.conv1", "out_channels");
  t.size("num_mel_bins", "audio_tower.conv1", "in_channels");
  t.size("max_source_positions", "audio_tower.embed_positions", "num_embeddings");
  t.count("encoder_layers", "audio_tower.layers");
  t.size("encoder_ffn_dim", block + "fc1", "out_features");
  t.activation("activation_function", block + "activation_fn");
  t.heads_of_width({.usual_width = 64, .heads_field = "encoder_attention_heads"},
                   t.value("audio_tower.conv1", "out_channels").value_or(0));
  t.close();
  t.activation("projector_hidden_act", "multi_modal_projector.act");
  tree_text(t, {.type = voxtral ? "llama" : "qwen2"});
}

inline constexpr Architecture kArchitecture = {.name = "sound_language",
                                               .model_types = names<"voxtral", "qwen2_audio", "audioflamingo3">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .holds_text_model = true};

}  // namespace sound_language

// Moonshine: convolutions over samples of sound, an encoder, and a decoder of tokens, both with rotary positions on a
// part of each head. A job's sequence length counts samples of sound, of which there are 16,000 a second. Heads are
// padded to whole eights before the kernel. Source: transformers 5.16, models/moonshine/modeling_moonshine.py.

namespace moonshine {

struct Model {
  std::int64_t vocabulary = 32768;
  std::int64_t width = 288;
  std::int64_t inner = 1152;
  std::int64_t positions = 512;  ///< tokens of a text
  std::int64_t rotary = 32;      ///< elements of a head that are turned
  std::int64_t padding = 0;      ///< of a head
  Side encoder;
  Side decoder;
  std::string_view encoder_activation = "gelu";
  std::string_view decoder_activation = "silu";
  double attention_dropout = 0.0;
  bool bias = false;  ///< of queries, keys and values
  bool tied = true;
};

/// NAME_num_hidden_layers and NAME_num_attention_heads.
inline Side read_half(ConfigFields& config, const std::string& name, const Model& model) {
  Side side;
  side.inner = model.inner;
  side.layers = config.layers_or(name + "_num_hidden_layers", 6);
  const std::string heads = name + "_num_attention_heads";
  const std::string shared = name + "_num_key_value_heads";
  side.heads = config.size_or({heads}, 8);
  if (model.width % side.heads != 0) config.fail("does not divide hidden_size", heads);
  if (config.size_or({shared}, side.heads) != side.heads) {
    config.fail("other than " + heads + " is not known", shared);  // its own class cannot run it: queries have kv heads
  }
  return side;
}

inline Model read(ConfigFields& config) {
  Model model;
  model.vocabulary = config.size_or({"vocab_size"}, 32768);
  model.width = config.size_or({"hidden_size"}, 288);
  model.inner = config.size_or({"intermediate_size"}, 1152);
  model.positions = config.size_or({"max_position_embeddings"}, 512);
  check_length(config, model.positions, "max_position_embeddings");
  model.encoder = read_half(config, "encoder", model);
  model.decoder = read_half(config, "decoder", model);
  if (model.encoder.heads != model.decoder.heads) {
    config.fail("other than encoder_num_attention_heads is not known", "decoder_num_attention_heads");
  }
  model.encoder_activation = config.text({"encoder_hidden_act"}, "gelu");
  model.decoder_activation = config.text({"decoder_hidden_act"}, "silu");
  model.attention_dropout = config.number({"attention_dropout"}, 0.0);
  model.bias = config.flag("attention_bias", false);
  model.tied = config.flag("tie_word_embeddings", true);
  const DecoderSizes sizes = {.head_width = model.width / model.decoder.heads};
  model.rotary = rotary_width(config, sizes, {"partial_rotary_factor"}, 0.9);
  const std::int64_t whole = config.size_or({"pad_head_dim_to_multiple_of"}, 1);
  if (whole > 1 << 14) config.fail("is more than gpumem takes", "pad_head_dim_to_multiple_of");
  model.padding = (whole - sizes.head_width % whole) % whole;
  config.ignore({"rope_theta", "rope_scaling", "rope_parameters", "apply_spec_augment", "num_hidden_layers"});
  return model;
}

/// How one attention of a layer is called.
struct Looking {
  std::string_view name = "self_attn";
  std::int64_t heads = 1;
  const Rotary* rotary = nullptr;  ///< null: it looks at the other side's states
  bool causal = false;
  bool caches = false;
};

inline Tensor attention(Forward& f, const Model& model, const Looking& at, Tensor input, Tensor source) {
  const InModule inside(f, at.name, "MoonshineAttention");
  const std::int64_t each = model.width / at.heads;
  const auto parted = [&](std::string_view name, Tensor from) {
    return split_heads(f, f.linear(name, from, model.width, model.width, {.bias = model.bias}), each);
  };
  Heads heads = {.query = parted("q_proj", input)};
  heads.key = parted("k_proj", source);
  heads.value = parted("v_proj", source);
  if (at.rotary != nullptr) {
    const auto turned = turn_heads(f, heads.query, heads.key, *at.rotary, each, Turning::pairs);
    heads.query = turned[0];
    heads.key = turned[1];
  }
  if (at.caches) {
    f.cache(heads.key);
    f.cache(heads.value);
  }
  if (model.padding == 0) {
    const Tensor mixed = attend(f, heads, {.dropout = model.attention_dropout, .copies = false, .causal = at.causal});
    return f.linear("o_proj", mixed, model.width, model.width, {.bias = false});
  }
  const auto padded = [&](Tensor x) { return f.call("pad", {x}, {{"padding", Sizes{0, model.padding}}}); };
  const Tensor query = padded(heads.query);
  const Tensor key = padded(heads.key);
  const Tensor mixed = f.call("scaled_dot_product_attention", {query, key, padded(heads.value)},
                              {{"dropout_p", model.attention_dropout}, {"is_causal", at.causal}});
  const Tensor rows = f.contiguous(f.permute(mixed, {0, 2, 1, 3}));
  const Tensor cut = f.contiguous(f.slice(rows, 3, 0, -model.padding));
  return f.linear("o_proj", f.flatten(cut, 2, 3), model.width, model.width, {.bias = false});
}

inline Tensor normed(Forward& f, const Model& model, std::string_view name, Tensor input) {
  return f.layer_norm(name, input, model.width, false);
}

inline Tensor convolved(Forward& f, std::string_view name, Tensor input, const std::array<std::int64_t, 4>& sizes,
                        bool bias) {
  return f.layer(name, "Conv1d", "conv1d", {input},
                 {{"in_channels", sizes[0]},
                  {"out_channels", sizes[1]},
                  {"kernel_size", Sizes(1, sizes[2])},
                  {"stride", Sizes(1, sizes[3])},
                  {"bias", bias}});
}

inline Tensor encoder(Forward& f, const Model& model) {
  const InModule inside(f, "encoder", "MoonshineEncoder");
  const std::int64_t w = model.width;
  const Tensor samples = f.token_input("input_values");
  Tensor sound = f.call("unsqueeze", {f.to(samples, "parameters")}, {{"dim", std::int64_t{1}}});
  sound = f.call("tanh", {convolved(f, "conv1", sound, {1, w, 127, 64}, false)});
  sound =
      f.layer("groupnorm", "GroupNorm", "group_norm", {sound}, {{"num_groups", std::int64_t{1}}, {"num_channels", w}});
  sound = f.activation("gelu", convolved(f, "conv2", sound, {w, 2 * w, 7, 3}, true), "gelu");
  sound = f.activation("gelu", convolved(f, "conv3", sound, {2 * w, w, 3, 2}, true), "gelu");
  const Tensor rows = f.permute(sound, {0, 2, 1});
  const Rotary rotary = rotary_tables(f, rows, model.rotary);
  const Looking self = {.heads = model.encoder.heads, .rotary = &rotary};
  const DecoderSizes sizes = {.width = w, .inner = model.inner, .activation = model.encoder_activation};
  const Tensor hidden =
      stack(f, "layers", "MoonshineEncoderLayer", model.encoder.layers, rows, [&](Tensor x, std::int64_t) {
        const Tensor read = normed(f, model, "input_layernorm", x);
        const Tensor mixed = f.add(x, attention(f, model, self, read, read));
        const Tensor again = normed(f, model, "post_attention_layernorm", mixed);
        return f.add(mixed, feed_forward(f, sizes, again, {.class_name = "MoonshineEncoderMLP"}));
      });
  return normed(f, model, "layer_norm", hidden);
}

inline Tensor decoder(Forward& f, const Model& model, Tensor ids, Tensor encoded) {
  const InModule inside(f, "decoder", "MoonshineDecoder");
  const Tensor words = f.embedding("embed_tokens", ids, model.vocabulary, model.width);
  const Rotary rotary = rotary_tables(f, ids, model.rotary);
  const Looking self = {.heads = model.decoder.heads, .rotary = &rotary, .causal = true, .caches = true};
  const Looking cross = {.name = "encoder_attn", .heads = model.decoder.heads, .caches = true};
  const auto fed = [&](Tensor input) {
    const InModule mlp(f, "mlp", "MoonshineDecoderMLP");
    const Tensor both = f.linear("fc1", input, model.width, 2 * model.inner);
    const std::vector<Tensor> halves = f.split(both, 2, {model.inner, model.inner});
    const Tensor open = f.activation("activation_fn", halves[1], model.decoder_activation);
    return f.linear("fc2", f.multiply(open, halves[0]), model.inner, model.width);
  };
  const Tensor hidden =
      stack(f, "layers", "MoonshineDecoderLayer", model.decoder.layers, words, [&](Tensor x, std::int64_t) {
        const Tensor read = normed(f, model, "input_layernorm", x);
        const Tensor mixed = f.add(x, attention(f, model, self, read, read));
        const Tensor asks = normed(f, model, "post_attention_layernorm", mixed);
        const Tensor crossed = f.add(mixed, attention(f, model, cross, asks, encoded));
        return f.add(crossed, fed(normed(f, model, "final_layernorm", crossed)));
      });
  return normed(f, model, "norm", hidden);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (head != Head::none && head != Head::causal_lm) {
    config.fail("only MoonshineForConditionalGeneration and MoonshineModel are known");
  }
  if (!config.status()) return;
  f.remark(
      "the sequence length counts samples of sound, 16,000 a second; the text has max_position_embeddings tokens, " +
      std::to_string(model.positions));
  Tensor decoded = 0;
  Tensor labels = 0;
  {
    const InModule body(f, head == Head::none ? "" : "model", "MoonshineModel");
    const Tensor encoded = encoder(f, model);
    f.hand_out(encoded);
    labels = f.fixed_token_input("labels", model.positions);
    decoded = decoder(f, model, labels, encoded);
  }
  if (head == Head::none) return;
  const Linear tied = {.bias = false, .tied = model.tied, .returned = true};
  const Tensor logits = f.linear("proj_out", decoded, model.width, model.vocabulary, tied);
  (void)f.call("cross_entropy", {f.flatten(f.to(logits, "float32"), 0, 1), labels}, {{"keeps_type", true}});
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Moonshine", "moonshine", "model", kAlwaysTied}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("decoder.embed_tokens", "decoder.layers");
  t.size("intermediate_size", "encoder.layers.0.mlp.fc1", "out_features");
  t.count("encoder_num_hidden_layers", "encoder.layers");
  t.count("decoder_num_hidden_layers", "decoder.layers");
  t.flag("attention_bias", "encoder.layers.0.self_attn.q_proj");
  t.assume("8 heads, and texts of 512 tokens, which the tree does not print");
}

inline constexpr Architecture kArchitecture = {.name = "moonshine",
                                               .model_types = names<"moonshine">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .blocks = names<"MoonshineEncoderLayer", "MoonshineDecoderLayer">};

}  // namespace moonshine

}  // namespace gpumem::architectures
