// Gemma 3n (text): four streams of hidden states, of which a layer reads one and corrects all (AltUp), a low-rank
// shortcut (LAuReL), a second embedding with a part for each layer, first layers whose gates are cut to their largest
// (a Gaussian top-k), and last layers that may read the keys and values of earlier ones. Source: transformers 4.57,
// models/gemma3n/modeling_gemma3n.py. Without a cache, as in training with checkpoints, the last layers make keys and
// values of their own; that is what is written here. The towers for images and sound are held and not called: the image
// tower is timm's MobileNetV5 (timm 1.0.17, mobilenetv5.py, mobilenetv5_300m_enc). Behind it stands the Gemma 4 that
// has no towers.
#pragma once

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/vision_language.hpp"

namespace gpumem::architectures {

namespace gemma3n {

inline constexpr std::string_view kNorm = "Gemma3nRMSNorm";

struct Model {
  DecoderSizes sizes;
  std::int64_t streams = 4;
  std::int64_t rank = 64;          ///< of the shortcut
  std::int64_t layer_width = 256;  ///< of the second embedding's part for a layer
  std::int64_t layer_vocabulary = 1;
  std::vector<bool> cuts;  ///< by layer: its gates are cut
  bool bias = false;
  bool scales = true;  ///< the stream that the second embedding is added by
  double softcap = 0.0;
};

/// Which layers cut their gates: a share of each in a list, or the same share in the first ten.
inline std::vector<bool> cutting_layers(ConfigFields& config, std::int64_t layers) {
  constexpr std::int64_t kUsual = 10;
  std::vector<bool> cuts(static_cast<std::size_t>(layers), false);
  const core::JsonValue* pattern = config.find("activation_sparsity_pattern");
  const bool list = pattern != nullptr && pattern->is(core::JsonValue::Kind::list);
  std::size_t at = 0;
  for (std::int64_t layer = 0; !list && layer < std::min(kUsual, layers); ++layer) {
    cuts[static_cast<std::size_t>(layer)] = true;
  }
  if (!list) return cuts;
  for (const core::JsonValue& share : pattern->items()) {
    if (at == cuts.size()) break;
    cuts[at++] = share.is(core::JsonValue::Kind::real) && share.real() > 0.0;
  }
  return cuts;
}

inline Model read(ConfigFields& config) {
  Model model;
  DecoderSizes& s = model.sizes;
  s.vocabulary = config.size({"vocab_size"});
  s.width = config.size({"hidden_size"});
  s.layers = config.layers({"num_hidden_layers"});
  s.heads = config.size_or({"num_attention_heads"}, 8);
  s.kv_heads = config.size_or({"num_key_value_heads"}, 2);
  s.head_width = config.size_or({"head_dim"}, 256);
  s.inner = config.size_of_layers("intermediate_size", 16384);
  s.attention_dropout = config.number({"attention_dropout"}, 0.0);
  s.activation = config.text({"hidden_activation"}, "gelu_pytorch_tanh");
  s.tied = config.flag("tie_word_embeddings", true);
  model.streams = config.size_or({"altup_num_inputs"}, 4);
  model.rank = config.size_or({"laurel_rank"}, 64);
  model.layer_width = config.size_or({"hidden_size_per_layer_input"}, 256);
  model.layer_vocabulary = config.size_or({"vocab_size_per_layer_input"}, 262144);
  model.cuts = cutting_layers(config, s.layers);
  model.bias = config.flag("attention_bias", false);
  model.scales = config.flag("altup_correct_scale", true);
  model.softcap = config.number({"final_logit_softcapping"}, 30.0);
  constexpr std::int64_t kMost = ConfigFields::kLargestSize / 8;
  if (s.heads > kMost / s.head_width || s.heads % s.kv_heads != 0) config.fail("does not fit", "num_attention_heads");
  if (model.layer_width > kMost / s.layers) config.fail("is too wide", "hidden_size_per_layer_input");
  if (model.streams < 2 || model.streams > 16) config.fail("must be from 2 to 16", "altup_num_inputs");
  if (s.head_width % 2 != 0) config.fail("must be even", "head_dim");
  config.ignore(
      {"altup_active_idx", "altup_coef_clip", "num_kv_shared_layers", "sliding_window", "altup_lr_multiplier"});
  return model;
}

inline Tensor norm(Forward& f, std::string_view name, Tensor input, std::int64_t width) {
  return wide_norm(f, name, kNorm, input, width, false);
}

inline Tensor unscaled_norm(Forward& f, std::string_view name, Tensor input, std::int64_t width) {
  const InModule inside(f, name, kNorm);
  return plain_norm(f, "norm", {}, input, width);
}

inline Tensor mean_of_last(Forward& f, Tensor of) {
  return f.call("mean", {of}, {{"dim", std::int64_t{-1}}, {"keepdim", true}});
}

/// Which streams a token's stream tells to mix (compute_router_modalities).
inline Tensor modalities(Forward& f, const Model& model, Tensor stream) {
  const Tensor scaled = f.scale(norm(f, "router_norm", stream, model.sizes.width));
  const Tensor routed = f.linear("modality_router", scaled, model.sizes.width, model.streams, {.bias = false});
  return f.as_type_of(f.call("tanh", {f.to(routed, "float32")}), stream);
}

/// AltUp's prediction of all streams [streams, N, S, width].
inline Tensor predicted(Forward& f, const Model& model, Tensor streams) {
  const std::int64_t n = model.streams;
  const Tensor routed = modalities(f, model, f.select(streams, 0, 0));
  const Tensor flat = f.linear("prediction_coefs", routed, n, n * n, {.bias = false});
  const Tensor mixing = f.permute(f.unflatten(flat, 2, {n, n}), {0, 1, 3, 2});
  const Tensor made = f.permute(f.call("matmul", {f.permute(streams, {1, 2, 3, 0}), mixing}), {3, 0, 1, 2});
  return f.contiguous(f.call("add", {made, streams}, {{"inplace", true}}));
}

/// The streams corrected by what the layer made of one. The module is called again, so its router's weights are held
/// already.
inline Tensor corrected(Forward& f, const Model& model, Tensor predictions, Tensor made) {
  const std::int64_t n = model.streams;
  f.repeat_parameters(true);
  const Tensor routed = modalities(f, model, made);
  f.repeat_parameters(false);
  const Tensor innovation = f.call("sub", {made, f.select(predictions, 0, 0)});
  const Tensor one = f.call("unsqueeze", {innovation}, {{"dim", std::int64_t{0}}});
  const std::vector<Tensor> copies(static_cast<std::size_t>(n), one);
  const Tensor every = f.concatenate(copies, 0);
  const Tensor flat = f.call("add", {f.linear("correction_coefs", routed, n, n, {.bias = false})});
  const Tensor weights = f.call("unsqueeze", {f.permute(flat, {2, 0, 1})}, {{"dim", std::int64_t{3}}});
  return f.call("add", {f.multiply(every, weights), predictions}, {{"inplace", true}});
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const InModule inside(f, "self_attn", "Gemma3nTextAttention");
  const DecoderSizes& s = model.sizes;
  const auto heads = [&](std::string_view name, std::int64_t count) {
    return split_heads(f, f.linear(name, input, s.width, count * s.head_width, {.bias = model.bias}), s.head_width);
  };
  Heads ready;
  ready.query = rotate(f, norm(f, "q_norm", heads("q_proj", s.heads), s.head_width), rotary, s.head_width);
  ready.key = rotate(f, norm(f, "k_norm", heads("k_proj", s.kv_heads), s.head_width), rotary, s.head_width);
  ready.value = unscaled_norm(f, "v_norm", heads("v_proj", s.kv_heads), s.head_width);
  const Tensor mixed = attend_cached(f, s, ready);
  return f.linear("o_proj", mixed, s.heads * s.head_width, s.width, {.bias = model.bias, .split = Split::rows});
}

/// Gates below their mean and some deviations are cut (_gaussian_topk).
inline Tensor cut(Forward& f, Tensor gate) {
  const Tensor mean = mean_of_last(f, gate);
  const Tensor variance = f.call("var", {gate}, {{"dim", std::int64_t{-1}}, {"keepdim", true}});
  const Tensor bound = f.add(mean, f.scale(f.call("sqrt", {variance})));
  return f.call("relu", {f.call("sub", {gate, bound})});
}

inline Tensor fed(Forward& f, const Model& model, Tensor input, bool cuts) {
  const InModule inside(f, "mlp", "Gemma3nTextMLP");
  const DecoderSizes& s = model.sizes;
  const Tensor gate = f.linear("gate_proj", input, s.width, s.inner, {.bias = false, .split = Split::columns});
  const Tensor open = f.activation("act_fn", cuts ? cut(f, gate) : gate, s.activation);
  const Tensor up = f.linear("up_proj", input, s.width, s.inner, {.bias = false, .split = Split::columns});
  return f.linear("down_proj", f.multiply(open, up), s.inner, s.width, {.bias = false, .split = Split::rows});
}

inline Tensor shortcut(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "laurel", "Gemma3nTextLaurelBlock");
  const std::int64_t width = model.sizes.width;
  const Tensor narrow = f.linear("linear_left", input, width, model.rank, {.bias = false});
  const Tensor wide = f.linear("linear_right", narrow, model.rank, width, {.bias = false});
  return f.add(input, norm(f, "post_laurel_norm", wide, width));
}

/// What the layer makes of one stream.
inline Tensor one_stream(Forward& f, const Model& model, Tensor stream, const Rotary& rotary, std::int64_t layer) {
  const std::int64_t width = model.sizes.width;
  const Tensor normed = norm(f, "input_layernorm", stream, width);
  const Tensor short_way = shortcut(f, model, normed);
  const Tensor mixed = norm(f, "post_attention_layernorm", attention(f, model, normed, rotary), width);
  const Tensor both = f.call("div", {f.add(f.add(stream, mixed), short_way)});
  const Tensor again = norm(f, "pre_feedforward_layernorm", both, width);
  const Tensor made = fed(f, model, again, model.cuts[static_cast<std::size_t>(layer)]);
  return f.add(both, norm(f, "post_feedforward_layernorm", made, width));
}

/// `parts` [N, S, layers, width of a part]: what the second embedding has for each layer.
inline Tensor block(Forward& f, const Model& model, Tensor streams, Tensor parts, const Rotary& rotary,
                    std::int64_t layer) {
  const std::int64_t width = model.sizes.width;
  Tensor predictions = 0;
  {
    const InModule inside(f, "altup", "Gemma3nTextAltUp");
    predictions = predicted(f, model, streams);
  }
  const Tensor made = one_stream(f, model, f.select(predictions, 0, 0), rotary, layer);
  Tensor all = 0;
  Tensor first = 0;
  {
    const InModule inside(f, "altup", "Gemma3nTextAltUp");
    all = corrected(f, model, predictions, made);
    first = f.call("clone", {f.select(all, 0, 0)});
    const Tensor scale = f.parameter("correct_output_scale", {width});
    if (model.scales) first = f.multiply(first, scale);
  }
  const Tensor gate = f.linear("per_layer_input_gate", first, width, model.layer_width, {.bias = false});
  const Tensor open = f.multiply(f.activation("act_fn", gate, model.sizes.activation), f.select(parts, 2, layer));
  const Tensor more = f.linear("per_layer_projection", open, model.layer_width, width, {.bias = false});
  const Tensor added = norm(f, "post_per_layer_input_norm", more, width);
  return f.call("add", {all, added}, {{"inplace", true}});
}

/// get_per_layer_inputs(), project_per_layer_inputs().
inline Tensor layer_parts(Forward& f, const Model& model, Tensor ids, Tensor embedded) {
  const DecoderSizes& s = model.sizes;
  const std::int64_t all = s.layers * model.layer_width;
  const auto parted = [&](Tensor flat) { return f.unflatten(flat, 2, {s.layers, model.layer_width}); };
  const Tensor looked_up = parted(f.scale(f.embedding("embed_tokens_per_layer", ids, model.layer_vocabulary, all)));
  const Tensor flat = f.linear("per_layer_model_projection", embedded, s.width, all, {.bias = false});
  const Tensor projected = f.call("mul", {flat}, {{"inplace", true}});
  const Tensor normed = norm(f, "per_layer_projection_norm", parted(projected), model.layer_width);
  return f.scale(f.add(normed, looked_up));
}

/// Projections of one stream, or of each of the others, as long as `like` is.
inline std::vector<Tensor> as_long(Forward& f, const Model& model, std::string_view list, Tensor like,
                                   const std::vector<Tensor>& from) {
  const InModule inside(f, list, "ModuleList");
  const std::int64_t width = model.sizes.width;
  const Tensor length = f.call("sqrt", {mean_of_last(f, f.call("square", {like}))});
  std::vector<Tensor> made = {f.call("unsqueeze", {like}, {{"dim", std::int64_t{0}}})};
  for (std::int64_t at = 1; at < model.streams && !f.failed(); ++at) {
    const Tensor source = from.size() == 1 ? from[0] : from[static_cast<std::size_t>(at)];
    const Tensor projected = f.linear(std::to_string(at - 1), source, width, width, {.bias = false});
    const Tensor own = f.call("sqrt", {mean_of_last(f, f.call("square", {projected}))});
    const Tensor scaled = f.call("div", {f.multiply(projected, length), own});
    made.push_back(f.call("unsqueeze", {scaled}, {{"dim", std::int64_t{0}}}));
  }
  return made;
}

inline void write_text_model(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DecoderSizes& s = model.sizes;
  const DecoderBody body = {.class_name = "Gemma3nTextModel", .head = {.softcap = model.softcap}};
  decoder_model(f, config, s, head, body, [&](Tensor ids, Tensor unscaled) {
    const Tensor embedded = f.scale(unscaled);
    const Tensor parts = layer_parts(f, model, ids, embedded);
    const Rotary rotary = rotary_tables(f, ids, s.head_width);
    Tensor hidden = f.concatenate(as_long(f, model, "altup_projections", embedded, {embedded}), 0);
    hidden = stack(f, "layers", "Gemma3nTextDecoderLayer", s.layers, hidden,
                   [&](Tensor x, std::int64_t layer) { return block(f, model, x, parts, rotary, layer); });
    std::vector<Tensor> streams;
    for (std::int64_t at = 0; at < model.streams; ++at) streams.push_back(f.select(hidden, 0, at));
    const Tensor all = f.concatenate(as_long(f, model, "altup_unembed_projections", streams[0], streams), 0);
    return norm(f, "norm", f.call("mean", {all}, {{"dim", std::int64_t{0}}}), s.width);
  });
}

/// Parameters of the conformer for sound: a convolution over time and bands, then blocks of two feed-forward layers,
/// attention with relative positions, and a light convolution (Gemma3nAudioEncoder).
inline std::int64_t sound_parameters(ConfigFields& audio) {
  const std::int64_t width = audio.size_or({"hidden_size"}, 1536);
  const std::int64_t heads = audio.size_or({"conf_num_attention_heads"}, 8);
  const std::int64_t layers = audio.layers_or("conf_num_hidden_layers", 12);
  const std::int64_t kernel = audio.size_or({"conf_conv_kernel_size"}, 5);
  const std::int64_t bands = audio.size_or({"input_feat_size"}, 128);
  const std::vector<std::int64_t> channels = audio.sizes_or("sscp_conv_channel_size", {128, 32});
  audio.ignore({"conf_attention_chunk_size", "conf_attention_context_left", "conf_attention_context_right",
                "conf_attention_logit_cap", "conf_reduction_factor", "conf_residual_weight", "gradient_clipping",
                "sscp_conv_kernel_size", "sscp_conv_stride_size", "sscp_conv_group_norm_eps", "vocab_size",
                "vocab_offset"});
  constexpr std::int64_t kMost = 1 << 15;
  const bool sound = channels.size() == 2 && width <= kMost && kernel <= kMost && bands <= kMost &&
                     channels[0] <= kMost && channels[1] <= kMost && width % heads == 0;
  if (!sound) {
    audio.fail("is not as the class has it", "sscp_conv_channel_size");
    return 0;
  }
  constexpr std::int64_t kCell = 9;  // kernels of 3 x 3
  const std::int64_t front = kCell * channels[0] + channels[0] + kCell * channels[0] * channels[1] + channels[1] +
                             channels[1] * (bands / 4) * width;
  const std::int64_t feeds = 2 * (2 * width + 8 * width * width);
  const std::int64_t mixes = 2 * width + 5 * width * width + width / heads;  // q, k, v, positions, and what is behind
  const std::int64_t convolves = 2 * width + 3 * width * width + kernel * width;
  return front + layers * (feeds + mixes + convolves + width);
}

/// A tower's features in the text model's width: an embedding of its own tokens too (Gemma3nMultimodalEmbedder).
inline std::int64_t embedder_parameters(ConfigFields& tower, std::int64_t usual, std::int64_t text_width) {
  const std::int64_t width = tower.size_or({"hidden_size"}, usual);
  const std::int64_t tokens = tower.size_or({"vocab_size"}, 128);
  return tokens * width + 2 * width + width * text_width;
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  constexpr std::int64_t kImageTower = 294'126'912;  // MobileNetV5
  const Pictures pictures = pictures_of(f);
  if (pictures.said && pictures.count > 0) {
    f.fail("MobileNetV5, its image tower, is not known but by its parameters: give `images=0`, or record a step");
  }
  ConfigFields* text = text_fields(config, "gemma3n_text");
  ConfigFields* vision = vision_fields(config);
  ConfigFields* audio = config.part("audio_config", "{}");
  if (text == nullptr || vision == nullptr || !config.status()) return;
  const std::int64_t width = text->size({"hidden_size"});
  if (vision->text({"architecture"}, "mobilenetv5_300m_enc") != "mobilenetv5_300m_enc") {
    vision->fail("is not known", "architecture");
  }
  std::int64_t held = kImageTower + embedder_parameters(*vision, 2048, width);
  if (audio != nullptr) held += sound_parameters(*audio) + embedder_parameters(*audio, 1536, width);
  vision->ignore({"vocab_offset", "do_pooling", "num_classes", "model_args"});
  config.ignore({"audio_soft_tokens_per_image", "vision_soft_tokens_per_image", "boa_token_id", "boi_token_id",
                 "eoa_token_id", "eoi_token_id"});
  if (!config.status()) return;
  f.doubt({model::Doubt::About::images,
           "samples are taken to bring no images and no sound; the towers are held and not called", false});
  TextPart part = inner_text("Gemma3nModel", "Gemma3nTextModel");
  part.plain_logits = false;  // the outer class caps them as well
  part.embed = [&](Tensor, Tensor embedded) {
    for (const std::string_view tower : {"vision_tower", "audio_tower", "embed_vision", "embed_audio"}) {
      f.hold_printed(tower);
    }
    (void)f.parameter("towers.unused", {held}, true);
    return embedded;
  };
  write_text(f, *text, head, part);
}

inline constexpr auto kTextClasses = std::to_array<ModelClass>(
    {{"Gemma3n", "gemma3n_text", "model", kAlwaysTied}, {"Gemma3nText", "gemma3n_text", "model", kAlwaysTied}});

/// What print(model) shows. Which layers cut their gates is as published.
inline void read_text_tree(TreeFields& t) {
  const std::string block = "layers.0.";
  t.body("embed_tokens", "layers");
  t.size("intermediate_size", block + "mlp.gate_proj", "out_features");
  t.heads({.query = "layers.0.self_attn.q_proj",
           .key = "layers.0.self_attn.k_proj",
           .norm = "layers.0.self_attn.q_norm",
           .usual_width = 256});
  t.size("laurel_rank", block + "laurel.linear_left", "out_features");
  t.size("altup_num_inputs", block + "altup.modality_router", "out_features");
  t.size("hidden_size_per_layer_input", block + "per_layer_projection", "in_features");
  t.size("vocab_size_per_layer_input", "embed_tokens_per_layer", "num_embeddings");
  t.flag("attention_bias", "layers.0.self_attn.q_proj");
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{.prefix = "Gemma3n",
                                                             .model_type = "gemma3n",
                                                             .body = "model",
                                                             .tied_up_to = kAlwaysTied,
                                                             .ending = "ForConditionalGeneration"}});

inline void read_tree(TreeFields& t) {
  if (t.has("audio_tower")) {
    t.open("audio_config");
    t.close();
  }
  tree_text(t, {.type = "gemma3n_text"});
}

inline constexpr Architecture kTextArchitecture = {.name = "gemma3n_text",
                                                   .model_types = names<"gemma3n_text">,
                                                   .write = write_text_model,
                                                   .classes = kTextClasses,
                                                   .read_tree = read_text_tree};

inline constexpr Architecture kArchitecture = {.name = "gemma3n",
                                               .model_types = names<"gemma3n">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .holds_text_model = true};

}  // namespace gemma3n

// Gemma 4 12B, which has no towers: norms and a linear layer make the patches of an image, and frames of sound, as wide
// as the text. Source: transformers 5.10, models/gemma4_unified/modular_gemma4_unified.py:
// Gemma4UnifiedVisionEmbedder, Gemma4UnifiedModel; image_processing_gemma4_unified.py.

namespace gemma4_unified {

struct Model {
  std::int64_t width = 3840;  ///< of a patch
  std::int64_t patch = 48;    ///< pixels a side
  std::int64_t places = 1120;
  std::int64_t out = 3840;
  std::int64_t most = 280;  ///< patches of an image; the processor pads to it
  std::int64_t text_width = 1;
  std::int64_t frame = 0;  ///< of sound; 0: the model hears nothing

  [[nodiscard]] std::int64_t area() const { return 3 * patch * patch; }
};

inline Model read(ConfigFields& config, ConfigFields& vision) {
  Model m;
  const std::int64_t pooled = vision.size_or({"pooling_kernel_size"}, 3);
  const std::int64_t small = vision.size_or({"patch_size"}, 16);
  if (pooled > 16) vision.fail("is more than gpumem takes", "pooling_kernel_size");
  if (small > 256) vision.fail("is more than gpumem takes", "patch_size");
  m.patch = std::min<std::int64_t>(small, 256) * std::min<std::int64_t>(pooled, 16);
  m.width = vision.size_or({"mm_embed_dim"}, 3840);
  m.places = vision.size_or({"mm_posemb_size"}, 1120);
  m.out = vision.size_or({"output_proj_dims"}, 3840);
  m.most = vision.size_or({"num_soft_tokens"}, 280);
  if (m.most > 1 << 14) vision.fail("is more than gpumem takes", "num_soft_tokens");
  vision.ignore({"model_type", "model_patch_size"});
  if (config.has("audio_config")) {
    ConfigFields* const audio = config.part("audio_config");
    if (audio == nullptr) return m;
    m.frame = audio->size_or({"audio_embed_dim"}, 640);
    audio->ignore({"model_type", "audio_samples_per_token", "hidden_size", "output_proj_dims"});
  }
  return m;
}

/// get_aspect_ratio_preserving_size(): the largest whole patches that are no more than so many.
inline std::int64_t tokens_of(const Model& m, const PictureSize& size) {
  const double shape = static_cast<double>(size.width) / static_cast<double>(size.height);
  const auto columns = static_cast<std::int64_t>(std::sqrt(static_cast<double>(m.most) * shape));
  const auto rows = static_cast<std::int64_t>(std::sqrt(static_cast<double>(m.most) / shape));
  if (rows == 0) return std::min(std::max<std::int64_t>(size.width / size.height, 1), m.most);
  if (columns == 0) return std::min(std::max<std::int64_t>(size.height / size.width, 1), m.most);
  return rows * columns;
}

inline Tensor features_of(Forward& f, const Model& m, std::int64_t images, std::int64_t tokens) {
  const InModule inside(f, "embed_vision", "Gemma4UnifiedVisionEmbedder");
  const Tensor pixels = f.rows_input("pixel_values", images, {m.most, m.area()});
  const Tensor places = f.rows_input("image_position_ids", images, {m.most, 2});
  const Tensor each = f.scale(f.embedding("pos_embedding", places, 2 * m.places, m.width));
  const Tensor positions = f.call("sum", {each}, {{"dim", std::int64_t{2}}});
  const Tensor normed = f.layer_norm("patch_ln1", f.as_type_of(pixels, positions), m.area());
  const Tensor made = f.layer_norm("patch_ln2", f.linear("patch_dense", normed, m.area(), m.width), m.width);
  const Tensor placed = f.layer_norm("pos_norm", f.add(made, positions), m.width);
  Tensor features = 0;
  {
    const InModule embedder(f, "multimodal_embedder", "Gemma4UnifiedMultimodalEmbedder");
    f.enter("embedding_pre_projection_norm", "Gemma4RMSNorm");
    const Tensor again = plain_norm(f, "norm", {}, placed, m.out);
    f.leave();
    features = f.linear("embedding_projection", again, m.out, m.text_width, {.bias = false});
  }
  // Without the padding, then torch.cat of the images.
  return f.call("clone", {f.call("clone", {f.slice(features, 1, 0, tokens)})});
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Pictures pictures = pictures_of(f);
  ConfigFields* vision = vision_fields(config);
  ConfigFields* text = text_fields(config, "gemma4_unified_text");
  if (vision == nullptr || text == nullptr || !config.status()) return;
  Model model = read(config, *vision);
  model.text_width = text->size({"hidden_size"});
  if (model.out != model.width) vision->fail("must be mm_embed_dim", "output_proj_dims");
  config.ignore({"audio_config", "audio_token_id", "boa_token_id", "eoa_token_id", "eoa_token_index"});
  if (!config.status()) return;
  const std::int64_t tokens = tokens_of(model, pictures.size);
  tell_pictures(f, pictures, pictures.seen() * tokens);
  if (model.frame > 0) f.remark("samples bring no sound; what reads it is held and not called");
  TextPart part = inner_text("Gemma4UnifiedModel", "Gemma4UnifiedTextModel");
  part.plain_logits = false;  // the outer class caps them as well
  part.masks = pictures.count > 0;
  part.embed = [&](Tensor, Tensor embedded) {
    const Sizes unused = {model.text_width, model.frame};
    if (model.frame > 0) (void)f.parameter("embed_audio.embedding_projection.weight", unused, true);
    f.hold_printed("embed_audio");
    return with_features(f, pictures, embedded,
                         [&](Forward& to) { return features_of(to, model, pictures.seen(), tokens); });
  };
  write_text(f, *text, head, part);
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Gemma4Unified", "gemma4_unified", "model", kAlwaysTied}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const std::int64_t area = t.value("embed_vision.patch_dense", "in_features").value_or(3) / 3;
  t.open("vision_config");
  t.size("mm_embed_dim", "embed_vision.patch_dense", "out_features");
  t.size("output_proj_dims", "embed_vision.patch_dense", "out_features");
  t.set("patch_size", std::max<std::int64_t>(TreeFields::square_side(area) / 3, 1));
  t.close();
  if (t.has("embed_audio")) {
    t.open("audio_config");
    t.size("audio_embed_dim", "embed_audio.embedding_projection", "in_features");
    t.close();
  }
  t.assume("280 tokens an image, as the published model has");
  tree_text(t, {.type = "gemma4_unified_text"});
}

inline constexpr Architecture kArchitecture = {.name = "gemma4_unified",
                                               .model_types = names<"gemma4_unified">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .holds_text_model = true};

}  // namespace gemma4_unified

}  // namespace gpumem::architectures
