// SpeechT5: one encoder and decoder of which each side reads or makes text or sound. Text to speech reads tokens and
// makes frames of a spectrogram, speech to text reads samples of sound and makes tokens. Attention is written out; the
// encoder's has a product of its queries with a table of distances. Layers are never dropped here (layerdrop).
// Source: transformers 5.17, models/speecht5/modeling_speecht5.py.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/sound_parts.hpp"

namespace gpumem::architectures {

namespace speecht5 {

using sound_parts_detail::token_rows;

struct Model : sound_parts_detail::Front {
  std::int64_t vocabulary = 81;
  Side encoder;
  Side decoder;
  bool hears = false;     ///< the encoder reads sound, and the decoder writes text
  bool converts = false;  ///< it reads sound and makes speech
  bool masks = true;      ///< a vector stands in masked frames
  std::int64_t distances = 160;
  std::int64_t text_positions = 450;
  std::int64_t speech_positions = 4000;
  std::int64_t bands = 80;     ///< of a spectrogram
  std::int64_t reduction = 2;  ///< frames that a step of the decoder makes
  std::int64_t speaker = 512;  ///< width of what says who speaks
  std::int64_t before = 2;     ///< layers that narrow the frames which the decoder reads
  std::int64_t before_width = 256;
  double before_dropout = 0.5;
  std::int64_t behind = 5;  ///< convolutions over the frames that it makes
  std::int64_t behind_width = 256;
  std::int64_t behind_kernel = 5;
  double behind_dropout = 0.5;
  std::int64_t guided_heads = 2;  ///< heads of each layer that a loss keeps near the diagonal; 0: there is no such loss
  bool tied = true;
  std::string_view activation = "gelu";
  double dropout = 0.1;
  double position_dropout = 0.1;
  double attention_dropout = 0.1;
  double activation_dropout = 0.1;
};

/// What a decoder that makes speech has.
inline void read_speech(ConfigFields& config, Model& model) {
  model.bands = config.size_or({"num_mel_bins"}, 80);
  model.reduction = config.size_or({"reduction_factor"}, 2);
  model.speaker = config.size_or({"speaker_embedding_dim"}, 512);
  model.before = config.layers_or("speech_decoder_prenet_layers", 2);
  model.before_width = config.size_or({"speech_decoder_prenet_units"}, 256);
  model.before_dropout = config.number({"speech_decoder_prenet_dropout"}, 0.5);
  model.behind = config.layers_or("speech_decoder_postnet_layers", 5);
  model.behind_width = config.size_or({"speech_decoder_postnet_units"}, 256);
  model.behind_kernel = config.size_or({"speech_decoder_postnet_kernel"}, 5);
  model.behind_dropout = config.number({"speech_decoder_postnet_dropout"}, 0.5);
  const std::int64_t guided = config.size_or({"guided_attention_loss_num_heads"}, 2);
  model.guided_heads = config.flag("use_guided_attention_loss", true) ? guided : 0;
  if (model.guided_heads > model.decoder.heads) {
    config.fail("is more than decoder_attention_heads", "guided_attention_loss_num_heads");
  }
  constexpr std::int64_t kMost = 1 << 14;
  if (model.bands > kMost || model.reduction > kMost) config.fail("is more than gpumem takes", "reduction_factor");
  if (model.behind_kernel % 2 == 0) config.fail("must be odd", "speech_decoder_postnet_kernel");
}

inline void ignore_others(ConfigFields& config) {
  config.ignore({"apply_spec_augment", "mask_time_length", "mask_time_min_masks", "mask_feature_length",
                 "mask_feature_min_masks", "encoder_layerdrop", "decoder_layerdrop", "scale_embedding",
                 "num_feat_extract_layers", "guided_attention_loss_sigma", "guided_attention_loss_scale",
                 "num_hidden_layers", "max_length", "tokenizer_class"});
}

inline Model read(ConfigFields& config) {
  Model model;
  model.prefix = "SpeechT5";
  config.complete(R"({"encoder_layers": 12, "encoder_attention_heads": 12, "encoder_ffn_dim": 3072,
                      "decoder_layers": 6, "decoder_attention_heads": 12, "decoder_ffn_dim": 3072})");
  const std::string_view class_name = config.class_name();
  model.hears = class_name == "SpeechT5ForSpeechToText";
  model.converts = class_name == "SpeechT5ForSpeechToSpeech";
  const bool known = model.hears || model.converts || class_name.empty() || class_name == "SpeechT5ForTextToSpeech";
  if (!known) {
    config.fail("only SpeechT5ForTextToSpeech, SpeechT5ForSpeechToText and SpeechT5ForSpeechToSpeech are known",
                "architectures");
  }
  model.vocabulary = config.size_or({"vocab_size"}, 81);
  const std::int64_t width = config.size_or({"hidden_size"}, 768);
  model.encoder = read_side(config, "encoder", width);
  model.decoder = read_side(config, "decoder", width);
  sound_parts_detail::read_front(config, width, model);
  model.masks = config.number({"mask_time_prob"}, 0.05) > 0.0 || config.number({"mask_feature_prob"}, 0.0) > 0.0;
  model.distances = config.size_or({"encoder_max_relative_position"}, 160);
  model.text_positions = config.size_or({"max_text_positions"}, 450);
  model.speech_positions = config.size_or({"max_speech_positions"}, 4000);
  model.tied = config.flag("tie_word_embeddings", true);
  model.activation = config.text({"hidden_act"}, "gelu");
  model.dropout = config.number({"hidden_dropout"}, 0.1);
  model.position_dropout = config.number({"positional_dropout"}, 0.1);
  model.attention_dropout = config.number({"attention_dropout"}, 0.1);
  model.activation_dropout = config.number({"activation_dropout"}, 0.1);
  read_speech(config, model);
  ignore_others(config);
  return model;
}

/// How one attention of a layer is called.
struct Looking {
  std::string_view name;
  std::int64_t heads = 1;
  std::optional<Tensor> mask = {};
  std::optional<Tensor> distances = {};  ///< [S, S, width of a head]
  bool caches = false;
  std::vector<Tensor>* weights = nullptr;  ///< the guided loss reads them
};

inline Tensor attention(Forward& f, const Model& model, const Looking& at, Tensor input, Tensor source) {
  const InModule inside(f, at.name, "SpeechT5Attention");
  const std::int64_t width = model.width;
  const auto parted = [&](Tensor tensor) { return f.contiguous(split_heads(f, tensor, width / at.heads)); };
  const Tensor scaled = f.scale(f.linear("q_proj", input, width, width));
  const Tensor key = parted(f.linear("k_proj", source, width, width));
  const Tensor value = parted(f.linear("v_proj", source, width, width));
  if (at.caches) {
    f.cache(key);
    f.cache(value);
  }
  const Tensor query = parted(scaled);
  Tensor scores = f.call("matmul", {query, f.permute(key, {0, 1, 3, 2})});
  std::optional<Tensor> near;
  if (at.distances) {
    near = sound_parts_detail::distance_scores(f, at.heads, query, *at.distances);
    scores = f.call("add", {scores, *near}, {{"inplace", true}});
  }
  scores = at.mask ? f.add(scores, *at.mask) : f.add(scores, When::masked);
  const Tensor weights = f.call("softmax", {scores});
  if (at.weights != nullptr) {
    f.hand_out(weights);
    at.weights->push_back(weights);
  }
  const Tensor dropped =
      model.attention_dropout > 0.0 ? f.call("dropout", {weights}, {{"p", model.attention_dropout}}) : weights;
  const Tensor merged = merge_heads(f, f.call("matmul", {dropped, value}));
  const Tensor made = f.linear("out_proj", merged, width, width);
  const Tensor left = f.leave_function(made, {query, key, value, weights, dropped, input});
  return near ? f.leave_function(left, {*near}) : left;
}

inline Tensor fed(Forward& f, const Model& model, const Side& side, Tensor input) {
  const Tensor made = sound_parts_detail::fed(f,
                                              {.class_name = "SpeechT5FeedForward",
                                               .width = model.width,
                                               .inner = side.inner,
                                               .activation = model.activation,
                                               .activation_dropout = model.activation_dropout,
                                               .dropout = model.dropout},
                                              input);
  return f.layer_norm("final_layer_norm", f.add(input, made), model.width);
}

inline Tensor joined(Forward& f, const Model& model, Tensor residual, Tensor part, std::string_view norm) {
  return f.layer_norm(norm, f.add(residual, f.dropout("dropout", part, model.dropout)), model.width);
}

/// The mask [N, 1, S, T] of queries [N, S, ..] and keys [N, T, ..].
inline Tensor mask_of(Forward& f, Tensor queries, Tensor keys) { return f.call("window_mask", {queries, keys}); }

inline Tensor encoder(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "wrapped_encoder", "SpeechT5Encoder");
  const Side& side = model.encoder;
  const Tensor hidden = f.dropout("dropout", f.layer_norm("layer_norm", input, model.width), model.dropout);
  Tensor distances = f.call("relative_positions", {hidden});
  {
    const InModule table(f, "embed_positions", "SpeechT5RelativePositionalEncoding");
    distances = f.embedding("pe_k", distances, 2 * model.distances, model.width / side.heads);
  }
  const Looking at = {.name = "attention", .heads = side.heads, .distances = distances};
  return stack(f, "layers", "SpeechT5EncoderLayer", side.layers, hidden, [&](Tensor x, std::int64_t) {
    return fed(f, model, side, joined(f, model, x, attention(f, model, at, x, x), "layer_norm"));
  });
}

inline Tensor decoder(Forward& f, const Model& model, Tensor input, Tensor encoded, std::vector<Tensor>* crossed) {
  const InModule inside(f, "wrapped_decoder", "SpeechT5Decoder");
  const Side& side = model.decoder;
  const Looking self = {.name = "self_attn", .heads = side.heads, .mask = mask_of(f, input, input), .caches = true};
  const Looking cross = {.name = "encoder_attn", .heads = side.heads, .caches = true, .weights = crossed};
  return stack(f, "layers", "SpeechT5DecoderLayer", side.layers, input, [&](Tensor x, std::int64_t) {
    const Tensor mixed = joined(f, model, x, attention(f, model, self, x, x), "self_attn_layer_norm");
    const Tensor seen = attention(f, model, cross, mixed, encoded);
    return fed(f, model, side, joined(f, model, mixed, seen, "encoder_attn_layer_norm"));
  });
}

/// x + alpha times sines.
inline Tensor placed(Forward& f, const Model& model, Tensor input, std::int64_t positions) {
  const InModule inside(f, "encode_positions", "SpeechT5ScaledPositionalEncoding");
  (void)f.constant("pe", {1, positions, model.width}, "parameters");
  return f.dropout("dropout", f.add(input, f.parameter("alpha", {1})), model.position_dropout);
}

inline Tensor text_encoded(Forward& f, const Model& model) {
  const InModule inside(f, "encoder", "SpeechT5EncoderWithTextPrenet");
  Tensor embedded = 0;
  {
    const InModule before(f, "prenet", "SpeechT5TextEncoderPrenet");
    const Tensor words = f.embedding("embed_tokens", token_ids(f), model.vocabulary, model.width);
    embedded = placed(f, model, words, model.text_positions);
  }
  return encoder(f, model, embedded);
}

inline Tensor sound_encoded(Forward& f, const Model& model) {
  namespace parts = sound_parts_detail;
  const InModule inside(f, "encoder", "SpeechT5EncoderWithSpeechPrenet");
  Tensor heard = 0;
  {
    const InModule before(f, "prenet", "SpeechT5SpeechEncoderPrenet");
    const Tensor projection = parts::projected(f, model, parts::frames(f, model, "feature_encoder"));
    if (model.masks) (void)f.parameter("masked_spec_embed", {model.width});
    (void)f.constant("pos_sinusoidal_embed", {model.speech_positions + 4, model.width}, "parameters");
    const Tensor placed = f.add(projection, parts::positions(f, model, projection));
    heard = f.call("add", {placed});  // sines
  }
  return encoder(f, model, heard);
}

/// The frames that the decoder reads, and who speaks.
inline Tensor speech_embedded(Forward& f, const Model& model, Tensor steps) {
  const InModule inside(f, "prenet", "SpeechT5SpeechDecoderPrenet");
  Tensor hidden = f.contiguous(token_rows(f, steps, model.bands));
  std::int64_t in = model.bands;
  {
    const InModule list(f, "layers", "ModuleList");
    for (std::int64_t at = 0; at < model.before && !f.failed(); ++at) {
      const Tensor open = f.call("relu", {f.linear(std::to_string(at), hidden, in, model.before_width)});
      // One mask for all samples, which dropout's is as large as; then two products with numbers.
      const Tensor dropped = f.call("dropout", {open}, {{"p", model.before_dropout}});
      hidden = f.scale(f.scale(dropped));
      in = model.before_width;
    }
  }
  hidden = placed(f, model, f.linear("final_layer", hidden, in, model.width), model.speech_positions);
  (void)f.sample_input("speaker_embeddings", {model.speaker});
  const Tensor both = f.concatenate({hidden, token_rows(f, steps, model.speaker)}, 2);
  return f.call("relu", {f.linear("speaker_embeds_layer", both, model.speaker + model.width, model.width)});
}

/// The convolutions over the frames [N, frames, bands] that are made.
inline Tensor smoothed(Forward& f, const Model& model, Tensor frames) {
  const InModule list(f, "layers", "ModuleList");
  Tensor x = f.permute(frames, {0, 2, 1});
  for (std::int64_t at = 0; at < model.behind && !f.failed(); ++at) {
    const InModule one(f, std::to_string(at), "SpeechT5BatchNormConvLayer");
    const bool last = at == model.behind - 1;
    const std::int64_t out = last ? model.bands : model.behind_width;
    x = f.layer("conv", "Conv1d", "conv1d", {x},
                {{"in_channels", at == 0 ? model.bands : model.behind_width},
                 {"out_channels", out},
                 {"kernel_size", Sizes(1, model.behind_kernel)},
                 {"padding", Sizes(1, (model.behind_kernel - 1) / 2)},
                 {"bias", false}});
    x = f.layer("batch_norm", "BatchNorm1d", "batch_norm", {x}, {{"num_features", out}});
    if (!last) x = f.activation("activation", x, "tanh");
    x = f.dropout("dropout", x, model.behind_dropout);
  }
  return f.add(frames, f.permute(x, {0, 2, 1}));
}

inline Tensor distance(Forward& f, Tensor made, Tensor truth) {
  return f.call("mean", {f.call("abs", {f.call("sub", {f.call("clone", {made}), truth})})});
}

/// The weights of attention from steps to text, kept near the diagonal.
inline Tensor guided_loss(Forward& f, const Model& model, const std::vector<Tensor>& crossed, Tensor mask) {
  std::vector<Tensor> guided;
  guided.reserve(crossed.size());
  for (const Tensor weights : crossed) guided.push_back(f.slice(weights, 1, 0, model.guided_heads));
  const Tensor kept = f.multiply(f.concatenate(guided, 1), mask);
  return f.call("mean", {f.call("clone", {kept})});
}

inline void write_speech(ConfigFields& config, const Model& model, Forward& f, Head head) {
  if (!config.status()) return;
  if (model.converts) {
    f.remark(
        "the sequence length counts samples of sound, 16,000 a second; the speech that is made has " +
        std::to_string(model.speech_positions) +
        " steps (max_speech_positions), and the loss, which forward() does not compute, is the distance of spectra");
  } else {
    f.remark("the sequence length counts the decoder's steps, each of reduction_factor frames; the text is as long");
  }
  Tensor decoded = 0;
  Tensor steps = 0;
  Tensor encoded = 0;
  std::vector<Tensor> crossed;
  const bool guides = model.guided_heads > 0 && head != Head::none && !model.converts;
  {
    const InModule body(f, "speecht5", "SpeechT5Model");
    encoded = model.converts ? sound_encoded(f, model) : text_encoded(f, model);
    f.hand_out(encoded);
    steps = model.converts ? f.fixed_token_input("labels", model.speech_positions) : f.token_input("labels");
    const InModule inside(f, "decoder", "SpeechT5DecoderWithSpeechPrenet");
    decoded = decoder(f, model, speech_embedded(f, model, steps), encoded, guides ? &crossed : nullptr);
  }
  const InModule inside(f, "speech_decoder_postnet", "SpeechT5SpeechDecoderPostnet");
  const std::int64_t made = model.bands * model.reduction;
  const Tensor flat = f.linear("feat_out", decoded, model.width, made);
  const Tensor frames = f.flatten(f.unflatten(flat, 2, {model.reduction, model.bands}), 1, 2);
  const Tensor after = smoothed(f, model, frames);
  f.hand_out(after);
  const Tensor stops = f.linear("prob_out", decoded, model.width, model.reduction);
  const Tensor truth = f.contiguous(token_rows(f, steps, made));
  const Tensor target = f.flatten(f.unflatten(truth, 2, {model.reduction, model.bands}), 1, 2);
  if (model.converts) return (void)distance(f, after, target);
  const Tensor spectrum = f.add(distance(f, after, target), distance(f, frames, target));
  const Tensor loss = f.add(spectrum, f.call("bce_with_logits", {f.call("clone", {stops})}));
  if (guides) f.add(loss, guided_loss(f, model, crossed, mask_of(f, decoded, encoded)));
}

inline void write_text(ConfigFields& config, const Model& model, Forward& f) {
  if (!config.status()) return;
  f.remark("the sequence length counts samples of sound, 16,000 a second; the text has max_text_positions tokens, " +
           std::to_string(model.text_positions));
  Tensor decoded = 0;
  Tensor labels = 0;
  {
    const InModule body(f, "speecht5", "SpeechT5Model");
    const Tensor encoded = sound_encoded(f, model);
    f.hand_out(encoded);
    labels = f.fixed_token_input("labels", model.text_positions);
    const InModule inside(f, "decoder", "SpeechT5DecoderWithTextPrenet");
    Tensor embedded = 0;
    {
      const InModule before(f, "prenet", "SpeechT5TextDecoderPrenet");
      (void)f.constant("embed_positions", {model.text_positions + 4, model.width}, "parameters");
      const Tensor words = f.scale(f.embedding("embed_tokens", labels, model.vocabulary, model.width));
      embedded = f.dropout("dropout", words, model.position_dropout);
    }
    decoded = decoder(f, model, embedded, encoded, nullptr);
  }
  const InModule inside(f, "text_decoder_postnet", "SpeechT5TextDecoderPostnet");
  const Linear tied = {.bias = false, .tied = model.tied, .returned = true};
  const Tensor logits = f.linear("lm_head", decoded, model.width, model.vocabulary, tied);
  (void)f.call("cross_entropy", {f.flatten(logits, 0, 1), labels}, {{"keeps_type", true}});
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (model.hears) write_text(config, model, f);
  else write_speech(config, model, f, head);
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"SpeechT5", "speecht5", "speecht5", kAlwaysTied}});
/// Published models, by width.
inline constexpr auto kPublished = std::to_array<PublishedHeads>({{768, 12}});
/// Convolutions over samples are checkpointed too.
inline constexpr auto kBlocks =
    std::to_array<std::string_view>({"SpeechT5EncoderLayer", "SpeechT5DecoderLayer", "SpeechT5NoLayerNormConvLayer",
                                     "SpeechT5LayerNormConvLayer", "SpeechT5GroupNormConvLayer"});

/// The sizes of a decoder that makes speech.
inline void speech_of_tree(TreeFields& t) {
  const std::string before = "decoder.prenet.";
  t.count("speech_decoder_prenet_layers", before + "layers");
  t.size("speech_decoder_prenet_units", before + "layers.0", "out_features");
  const auto both = t.value(before + "speaker_embeds_layer", "in_features");
  const auto width = t.value(before + "speaker_embeds_layer", "out_features");
  if (both && width && *both > *width) t.set("speaker_embedding_dim", *both - *width);
  const std::string behind = "/speech_decoder_postnet.";
  t.count("speech_decoder_postnet_layers", behind + "layers");
  t.size("speech_decoder_postnet_units", behind + "layers.0.conv", "out_channels");
  t.size("speech_decoder_postnet_kernel", behind + "layers.0.conv", "kernel_size");
  t.dropout("speech_decoder_postnet_dropout", behind + "layers.0.dropout");
  t.size("num_mel_bins", behind + "layers.0.conv", "in_channels");
  t.size("reduction_factor", behind + "prob_out", "out_features");
}

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const std::string wrapped = "encoder.wrapped_encoder.";
  const auto width = t.value(wrapped + "layers.0.attention.q_proj", "out_features");
  if (width) t.set("hidden_size", *width);
  t.size("vocab_size", "encoder.prenet.embed_tokens", "num_embeddings");
  t.size("vocab_size", "decoder.prenet.embed_tokens", "num_embeddings");
  t.half("encoder_max_relative_position", wrapped + "embed_positions.pe_k", "num_embeddings");
  const auto head = t.value(wrapped + "embed_positions.pe_k", "embedding_dim");
  if (width && head && *width % *head == 0) t.set("encoder_attention_heads", *width / *head);
  t.heads_of_width({.published = kPublished, .heads_field = "decoder_attention_heads"}, width.value_or(0));
  for (const std::string side : {"encoder", "decoder"}) {
    std::string layers = side;
    layers.append(".wrapped_").append(side).append(".layers");
    t.count(side + "_layers", layers);
    t.size(side + "_ffn_dim", layers + ".0.feed_forward.intermediate_dense", "out_features");
  }
  t.dropout("hidden_dropout", wrapped + "dropout");
  t.dropout("activation_dropout", wrapped + "layers.0.feed_forward.intermediate_dropout");
  t.assume("attention's dropout of 0.1, as the class has it");
  if (t.has("decoder.prenet.speaker_embeds_layer")) return speech_of_tree(t);
  const std::string heard = "encoder.prenet.";
  sound_parts_detail::front_of_tree(
      t, {heard + "feature_encoder", heard + "feature_projection", heard + "pos_conv_embed"});
}

inline constexpr Architecture kArchitecture = {.name = "speecht5",
                                               .model_types = names<"speecht5">,
                                               .usual_head = Head::own,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .blocks = kBlocks};

}  // namespace speecht5

}  // namespace gpumem::architectures
