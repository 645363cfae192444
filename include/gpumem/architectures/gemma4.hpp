// Gemma 4: text and images. Full layers have wider heads than sliding ones, and may take their keys for values; a model
// may have experts beside each feed-forward layer, a second embedding with a part for each layer, and last layers that
// read the keys and values of earlier ones. The image tower takes patches of one size of image, padded, and pools nine
// of them to a token. A tower for sound is held and not called.
// Source: transformers 5.5 (c308a30), models/gemma4/modeling_gemma4.py; integrations/moe.py (all experts at once).
#pragma once

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/mixture.hpp"
#include "gpumem/architectures/vision_language.hpp"

namespace gpumem::architectures {

namespace gemma4 {

struct Model {
  DecoderSizes sizes;
  std::int64_t full_width = 1;  ///< of a head in full layers
  std::int64_t full_kv_heads = 1;
  std::vector<bool> full;        ///< by layer
  bool keys_are_values = false;  ///< in full layers
  std::int64_t own_keys = 0;     ///< layers that make keys and values; the others read theirs
  bool doubles = false;          ///< the feed-forward layers of those others are twice as wide
  std::int64_t layer_width = 0;  ///< of the second embedding's part for a layer; 0: there is none
  std::int64_t layer_vocabulary = 1;
  bool mixes = false;
  Mixture mixture;
  bool bias = false;
  double softcap = 0.0;

  [[nodiscard]] bool is_full(std::int64_t layer) const { return full[static_cast<std::size_t>(layer)]; }
  [[nodiscard]] std::int64_t head_width(std::int64_t layer) const {
    return is_full(layer) ? full_width : sizes.head_width;
  }
  [[nodiscard]] std::int64_t kv_heads(std::int64_t layer) const {
    return is_full(layer) && keys_are_values ? full_kv_heads : sizes.kv_heads;
  }
  [[nodiscard]] bool shares(std::int64_t layer) const { return layer >= own_keys && own_keys > 0; }
};

inline void read_mixture(ConfigFields& config, Model& model) {
  model.mixes = config.flag("enable_moe_block", false);
  if (model.mixes) {
    model.mixture = {.experts = config.size({"num_experts"}),
                     .per_token = config.size({"top_k_experts"}),
                     .inner = config.size({"moe_intermediate_size"})};
    check_mixture(config, model.mixture, model.sizes.layers, "num_experts", "top_k_experts");
  }
  config.ignore({"num_experts", "top_k_experts", "moe_intermediate_size"});
}

/// What Gemma4TextConfig has where a config leaves fields out; it makes the last layer a full one.
inline constexpr std::string_view kUsual =
    R"({"head_dim": 256, "global_head_dim": 512, "hidden_size_per_layer_input": 256,
        "vocab_size_per_layer_input": 262144})";

inline Model read(ConfigFields& config) {
  Model model;
  config.complete(kUsual);
  model.sizes = decoder_sizes(config, {.activation = "gelu_pytorch_tanh", .tied = true});
  model.sizes.activation = config.text({"hidden_activation"}, "gelu_pytorch_tanh");
  const DecoderSizes& s = model.sizes;
  model.full = config.layers_with("layer_types", s.layers, "full_attention", "sliding_attention");
  // Five sliding layers to one full.
  for (std::int64_t at = static_cast<std::int64_t>(model.full.size()); at < s.layers; ++at) {
    model.full.push_back((at + 1) % 6 == 0);
  }
  if (!model.full.empty()) model.full.back() = true;
  const std::int64_t kv_heads = config.size_or({"num_global_key_value_heads"}, s.kv_heads);
  const OwnSize width = {"head_dim", config.size({"global_head_dim"})};
  const auto own = own_sizes(config, model.full, {width, {"num_key_value_heads", kv_heads}});
  model.full_width = own[0];
  model.full_kv_heads = own[1];
  model.keys_are_values = config.flag("attention_k_eq_v", false);
  const std::int64_t shared = config.count_or("num_kv_shared_layers", 0);
  if (shared >= s.layers) config.fail("leaves no layer that makes keys", "num_kv_shared_layers");
  model.own_keys = s.layers - shared;
  if (shared > 0 && model.own_keys > 0) {
    const auto own_end = model.full.begin() + model.own_keys;
    const auto made = [&](bool full) { return std::find(model.full.begin(), own_end, full) != own_end; };
    const bool all = std::all_of(own_end, model.full.end(), made);
    if (!all) config.fail("leaves a kind of layer without keys", "num_kv_shared_layers");
  }
  model.doubles = config.flag("use_double_wide_mlp", false);
  model.layer_width = config.count_or("hidden_size_per_layer_input", 0);
  model.layer_vocabulary = config.size({"vocab_size_per_layer_input"});
  if (s.heads % own[1] != 0) config.fail("does not divide the heads", "num_global_key_value_heads");
  model.bias = config.flag("attention_bias", false);
  model.softcap = config.number({"final_logit_softcapping"}, 0.0);
  read_mixture(config, model);
  config.ignore({"use_bidirectional_attention", "sliding_window"});
  return model;
}

/// Gemma4RMSNorm: in float32, times the weight in float32 where there is one.
inline Tensor norm(Forward& f, std::string_view name, Tensor input, std::int64_t width, bool scales = true) {
  const InModule inside(f, name, "Gemma4RMSNorm");
  const Tensor normed = f.layer("norm", {}, "rms_norm", {f.to(input, "float32")},
                                {{"normalized_shape", width}, {"elementwise_affine", false}});
  if (!scales) return f.as_type_of(normed, input);
  return f.as_type_of(f.multiply(normed, f.to(f.parameter("weight", {width}), "float32")), input);
}

/// Keys and values that later layers read, and tables of positions, each of sliding and of full layers.
struct Shared {
  std::array<Heads, 2> heads = {};
  std::array<Rotary, 2> tables = {};
};

/// Keys and values of a layer: its own, or those of the last layer of its kind that made some.
inline Heads keys_of(Forward& f, const Model& model, Tensor input, std::int64_t layer, Shared& shared) {
  const auto kind = static_cast<std::size_t>(model.is_full(layer));
  if (model.shares(layer)) return shared.heads[kind];
  const std::int64_t width = model.head_width(layer);
  const std::int64_t out = model.kv_heads(layer) * width;
  const Tensor flat = split_heads(f, f.linear("k_proj", input, model.sizes.width, out, {.bias = model.bias}), width);
  const bool alone = model.is_full(layer) && model.keys_are_values;
  const Tensor value =
      alone ? flat : split_heads(f, f.linear("v_proj", input, model.sizes.width, out, {.bias = model.bias}), width);
  Heads made;
  made.key = rotate(f, norm(f, "k_norm", flat, width), shared.tables[kind], width);
  made.value = norm(f, "v_norm", value, width, false);
  made.value = f.cache(made.key, made.value);
  shared.heads[kind] = made;
  return made;
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, std::int64_t layer, Shared& shared) {
  const InModule inside(f, "self_attn", "Gemma4TextAttention");
  const DecoderSizes& s = model.sizes;
  const std::int64_t width = model.head_width(layer);
  const Tensor flat = f.linear("q_proj", input, s.width, s.heads * width, {.bias = model.bias});
  const Tensor query = norm(f, "q_norm", split_heads(f, flat, width), width);
  const Tensor turned = rotate(f, query, shared.tables[static_cast<std::size_t>(model.is_full(layer))], width);
  Heads heads = keys_of(f, model, input, layer, shared);
  heads.query = turned;
  const Tensor mixed = attend(f, heads, {.groups = s.heads / model.kv_heads(layer), .dropout = s.attention_dropout});
  return f.linear("o_proj", mixed, s.heads * width, s.width, {.bias = model.bias, .split = Split::rows});
}

/// Weights of the chosen experts [N, S, per token]. Gemma4TextRouter.
inline Tensor routed(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "router", "Gemma4TextRouter");
  const std::int64_t width = model.sizes.width;
  const Mixture& m = model.mixture;
  const Tensor scaled = f.multiply(norm(f, "norm", input, width, false), f.parameter("scale", {width}));
  const Tensor scores = f.linear("proj", f.scale(scaled), width, m.experts, {.bias = false});
  const Tensor best = f.slice(f.call("softmax", {scores}), 2, 0, m.per_token);
  (void)f.parameter("per_expert_scale", {m.experts});
  return f.scale(best);
}

inline Tensor mixture(Forward& f, const Model& model, Tensor residual) {
  const std::int64_t width = model.sizes.width;
  const Tensor weights = routed(f, model, residual);
  const Tensor input = norm(f, "pre_feedforward_layernorm_2", residual, width);
  const GroupedExperts all = {.list_class = "Gemma4TextExperts", .width = width, .activation = model.sizes.activation};
  const Tensor made = add_grouped_experts(f, model.mixture, all, input, weights);
  return norm(f, "post_feedforward_layernorm_2", made, width);
}

inline Tensor fed(Forward& f, const Model& model, Tensor residual, std::int64_t layer) {
  const std::int64_t width = model.sizes.width;
  DecoderSizes sizes = model.sizes;
  if (model.doubles && model.shares(layer)) sizes.inner *= 2;
  const Tensor normed = norm(f, "pre_feedforward_layernorm", residual, width);
  Tensor made = gated_feed_forward(f, sizes, normed, "Gemma4TextMLP");
  if (model.mixes) {
    const Tensor dense = norm(f, "post_feedforward_layernorm_1", made, width);
    made = f.add(dense, mixture(f, model, residual));
  }
  return f.add(residual, norm(f, "post_feedforward_layernorm", made, width));
}

/// `parts` [N, S, layers, width of a part]: what the second embedding has for each layer.
inline Tensor block(Forward& f, const Model& model, Tensor input, std::int64_t layer, Tensor parts, Shared& shared) {
  const std::int64_t width = model.sizes.width;
  const Tensor normed = norm(f, "input_layernorm", input, width);
  const Tensor mixed = norm(f, "post_attention_layernorm", attention(f, model, normed, layer, shared), width);
  const Tensor hidden = fed(f, model, f.add(input, mixed), layer);
  if (model.layer_width == 0) return hidden;
  const Tensor gate = f.linear("per_layer_input_gate", hidden, width, model.layer_width, {.bias = false});
  const Tensor open = f.multiply(f.activation("act_fn", gate, model.sizes.activation), f.select(parts, 2, layer));
  const Tensor more = f.linear("per_layer_projection", open, model.layer_width, width, {.bias = false});
  return f.add(hidden, norm(f, "post_per_layer_input_norm", more, width));
}

/// get_per_layer_inputs(), project_per_layer_inputs().
inline Tensor layer_parts(Forward& f, const Model& model, Tensor ids, Tensor embedded) {
  const DecoderSizes& s = model.sizes;
  const std::int64_t all = s.layers * model.layer_width;
  const auto parted = [&](Tensor flat) { return f.unflatten(flat, 2, {s.layers, model.layer_width}); };
  const Tensor looked_up = parted(f.scale(f.embedding("embed_tokens_per_layer", ids, model.layer_vocabulary, all)));
  const Tensor projected = f.scale(f.linear("per_layer_model_projection", embedded, s.width, all, {.bias = false}));
  const Tensor normed = norm(f, "per_layer_projection_norm", parted(projected), model.layer_width);
  return f.scale(f.add(normed, looked_up));
}

inline void write_text_model(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DecoderSizes& s = model.sizes;
  const DecoderBody body = {.class_name = "Gemma4TextModel", .head = {.softcap = model.softcap}};
  decoder_model(f, config, s, head, body, [&](Tensor ids, Tensor hidden) {
    hidden = f.scale(hidden);
    const Tensor parts = model.layer_width > 0 ? layer_parts(f, model, ids, hidden) : 0;
    Shared shared;
    shared.tables = {rotary_tables(f, ids, s.head_width), rotary_tables(f, ids, model.full_width)};
    hidden = stack(f, "layers", "Gemma4TextDecoderLayer", s.layers, hidden,
                   [&](Tensor x, std::int64_t layer) { return block(f, model, x, layer, parts, shared); });
    hidden = norm(f, "norm", hidden, s.width);
    if (model.mixes) warn_of_routing(f);
    return hidden;
  });
}

// The image tower.

struct Tower {
  DecoderSizes sizes;
  std::int64_t patch = 16;
  std::int64_t places = 10240;  ///< rows of each of two tables of positions
  std::int64_t pooled = 3;      ///< patches a side of a token
  std::int64_t tokens = 280;    ///< of an image; the processor pads to it
  std::int64_t text_width = 1;
  bool clips = false;  ///< what linear layers read and make, between bounds that are buffers

  [[nodiscard]] std::int64_t patches() const { return tokens * pooled * pooled; }
};

inline Tower read_tower(ConfigFields& config, ConfigFields& vision) {
  Tower t;
  t.sizes.width = vision.size_or({"hidden_size"}, 768);
  t.sizes.inner = vision.size_or({"intermediate_size"}, 3072);
  t.sizes.layers = vision.layers({"num_hidden_layers"});
  t.sizes.heads = vision.size_or({"num_attention_heads"}, 12);
  t.sizes.head_width = vision.size_or({"head_dim"}, 64);
  t.sizes.activation = vision.text({"hidden_activation"}, "gelu_pytorch_tanh");
  t.patch = vision.size_or({"patch_size"}, 16);
  t.places = vision.size_or({"position_embedding_size"}, 10240);
  t.pooled = vision.size_or({"pooling_kernel_size"}, 3);
  const std::int64_t usual = vision.size_or({"default_output_length"}, 280);
  t.tokens = config.size_or({"vision_soft_tokens_per_image"}, usual);
  constexpr std::int64_t kMostTokens = 1 << 14;
  if (t.tokens > kMostTokens) config.fail("is more than gpumem takes", "vision_soft_tokens_per_image");
  if (t.pooled > 16) vision.fail("is more than gpumem takes", "pooling_kernel_size");
  if (t.patch > 256) vision.fail("is more than gpumem takes", "patch_size");
  t.clips = vision.flag("use_clipped_linears", false);
  if (t.sizes.head_width % 2 != 0) vision.fail("must be even", "head_dim");
  if (vision.size_or({"num_key_value_heads"}, t.sizes.heads) != t.sizes.heads) {
    vision.fail("must be the number of heads", "num_key_value_heads");
  }
  vision.ignore({"global_head_dim", "standardize", "attention_bias", "attention_dropout", "model_type"});
  return t;
}

/// Gemma4ClippableLinear.
inline Tensor clipped(Forward& f, const Tower& t, std::string_view name, Tensor input, std::int64_t in,
                      std::int64_t out) {
  const InModule inside(f, name, "Gemma4ClippableLinear");
  const auto bounded = [&](Tensor of) { return t.clips ? f.call("clamp", {of}) : of; };
  return bounded(f.linear("linear", bounded(input), in, out, {.bias = false}));
}

/// Positions are looked up by products with rows of zeros and one, in 8 bytes first.
inline Tensor embedded_patches(Forward& f, const Tower& t, std::int64_t images) {
  const InModule inside(f, "patch_embedder", "Gemma4VisionPatchEmbedder");
  const std::int64_t width = t.sizes.width;
  const Tensor pixels = f.rows_input("pixel_values", images, {t.patches(), 3 * t.patch * t.patch});
  const Tensor made = f.linear("input_proj", f.scale(f.scale(pixels)), 3 * t.patch * t.patch, width, {.bias = false});
  const Tensor rows = f.rows_input("image_position_one_hot", images, {2, t.patches(), t.places});
  const Tensor tables = f.parameter("position_embedding_table", {2, t.places, width});
  const Tensor looked_up = f.call("matmul", {f.as_type_of(rows, tables), tables});
  const Tensor positions = f.call("sum", {looked_up}, {{"dim", std::int64_t{1}}});
  return f.add(made, f.call("clone", {positions}));
}

inline Tensor tower_attention(Forward& f, const Tower& t, Tensor input, const Rotary& rotary) {
  const InModule inside(f, "self_attn", "Gemma4VisionAttention");
  const DecoderSizes& s = t.sizes;
  const std::int64_t half = s.head_width / 2;
  const auto heads = [&](std::string_view name) {
    return split_heads(f, clipped(f, t, name, input, s.width, s.heads * s.head_width), s.head_width);
  };
  const auto turned = [&](Tensor of) {
    const std::vector<Tensor> halves = f.split(of, 3, {half, half});
    const Tensor first = rotate(f, halves[0], rotary, half);
    return f.concatenate({first, rotate(f, halves[1], rotary, half)}, 3);
  };
  const Tensor query = turned(norm(f, "q_norm", heads("q_proj"), s.head_width));
  const Tensor key = turned(norm(f, "k_norm", heads("k_proj"), s.head_width));
  const Tensor value = norm(f, "v_norm", heads("v_proj"), s.head_width, false);
  const Tensor mixed = merge_heads(f, f.call("scaled_dot_product_attention", {query, key, value}));
  return clipped(f, t, "o_proj", mixed, s.heads * s.head_width, s.width);
}

inline Tensor tower_block(Forward& f, const Tower& t, Tensor input, const Rotary& rotary) {
  const DecoderSizes& s = t.sizes;
  const Tensor normed = norm(f, "input_layernorm", input, s.width);
  const Tensor mixed = tower_attention(f, t, normed, rotary);
  const Tensor attended = f.add(input, norm(f, "post_attention_layernorm", mixed, s.width));
  const Tensor again = norm(f, "pre_feedforward_layernorm", attended, s.width);
  Tensor made = 0;
  {
    const InModule inside(f, "mlp", "Gemma4VisionMLP");
    const Tensor open = f.activation("act_fn", clipped(f, t, "gate_proj", again, s.width, s.inner), s.activation);
    const Tensor up = clipped(f, t, "up_proj", again, s.width, s.inner);
    made = clipped(f, t, "down_proj", f.multiply(open, up), s.inner, s.width);
  }
  return f.add(attended, norm(f, "post_feedforward_layernorm", made, s.width));
}

/// [N images, tokens, width of the text].
inline Tensor features_of(Forward& f, const Tower& t, std::int64_t images) {
  Tensor hidden = 0;
  {
    const InModule inside(f, "vision_tower", "Gemma4VisionModel");
    hidden = embedded_patches(f, t, images);
    const InModule encoder(f, "encoder", "Gemma4VisionEncoder");
    const Tensor places = f.fixed_token_input("image_position_ids", t.patches());
    const Rotary rotary = rotary_tables(f, places, t.sizes.head_width / 2);
    hidden = stack(f, "layers", "Gemma4VisionEncoderLayer", t.sizes.layers, hidden,
                   [&](Tensor x, std::int64_t) { return tower_block(f, t, x, rotary); });
  }
  // Gemma4VisionPooler: a product with shares of a token, in float32.
  const Tensor shares = f.rows_input("pooling_shares", images, {t.tokens, t.patches()});
  const Tensor pooled = f.call("matmul", {f.to(shares, "float32"), f.to(hidden, "float32")});
  const Tensor tokens = f.as_type_of(pooled, hidden);
  const InModule inside(f, "embed_vision", "Gemma4MultimodalEmbedder");
  const Tensor normed = norm(f, "embedding_pre_projection_norm", tokens, t.sizes.width, false);
  return f.linear("embedding_projection", normed, t.sizes.width, t.text_width, {.bias = false});
}

/// Parameters of Gemma4AudioModel, and of the layer that makes its features as wide as the text.
inline std::int64_t sound_parameters(ConfigFields& audio, std::int64_t text_width) {
  constexpr std::int64_t kMost = 1 << 15;
  const auto size = [&](std::string_view name, std::int64_t usual) {
    const std::int64_t of = audio.size_or({name}, usual);
    if (of > kMost) audio.fail("is more than gpumem takes", name);
    return of;
  };
  const std::int64_t width = size("hidden_size", 1024);
  const std::int64_t heads = size("num_attention_heads", 8);
  const std::int64_t kernel = size("conv_kernel_size", 5);
  const std::int64_t out = size("output_proj_dims", 1536);
  const std::int64_t blocks = audio.layers_or("num_hidden_layers", 12);
  const std::vector<std::int64_t> channels = audio.sizes_or("subsampling_conv_channels", {128, 32});
  const bool two = channels.size() == 2 && channels[0] <= kMost && channels[1] <= kMost;
  if (!two) audio.fail("must be two sizes", "subsampling_conv_channels");
  audio.ignore({"hidden_act", "residual_weight", "attention_chunk_size", "attention_context_left",
                "attention_context_right", "attention_logit_cap", "attention_invalid_logits_value",
                "use_clipped_linears", "gradient_clipping", "model_type", "rms_norm_eps", "initializer_range"});
  if (!audio.status()) return 0;
  // Two feed-forward layers, attention with its relative keys, a convolution with two linear layers, and norms.
  const std::int64_t block = (16 + 5 + 3) * width * width + width / heads + width * kernel + (2 * 2 + 2 + 3) * width;
  constexpr std::int64_t kArea = 9;
  const std::int64_t convolved = kArea * channels[0] + channels[0] + kArea * channels[0] * channels[1] + channels[1] +
                                 channels[0] / 4 * channels[1] * width;
  return blocks * block + convolved + width * out + out + out * text_width;
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Pictures pictures = pictures_of(f);
  ConfigFields* vision = vision_fields(config);
  ConfigFields* text = text_fields(config, "gemma4_text");
  if (vision == nullptr || text == nullptr || !config.status()) return;
  Tower tower = read_tower(config, *vision);
  tower.text_width = text->size({"hidden_size"});
  std::int64_t sound = 0;
  if (config.has("audio_config")) {
    ConfigFields* const audio = config.part("audio_config");
    if (audio != nullptr) sound = sound_parameters(*audio, tower.text_width);
  }
  config.ignore({"audio_config", "audio_token_id", "boa_token_id", "eoa_token_id", "eoa_token_index"});
  if (!config.status()) return;
  tell_pictures(f, pictures, pictures.seen() * tower.tokens);
  if (sound > 0) f.remark("samples bring no sound; the tower for it is held and not called");
  TextPart part = inner_text("Gemma4Model", "Gemma4TextModel");
  part.plain_logits = false;  // the outer class caps them as well
  part.masks = pictures.count > 0;
  part.embed = [&](Tensor, Tensor embedded) {
    for (const std::string_view held : {"audio_tower", "embed_audio"}) f.hold_printed(held);
    if (sound > 0) (void)f.parameter("audio_tower.unused", {sound}, true);
    return with_features(f, pictures, embedded, [&](Forward& to) { return features_of(to, tower, pictures.seen()); });
  };
  write_text(f, *text, head, part);
}

inline constexpr auto kTextClasses = std::to_array<ModelClass>(
    {{"Gemma4", "gemma4_text", "model", kAlwaysTied}, {"Gemma4Text", "gemma4_text", "model", kAlwaysTied}});

/// Heads, and which layers have wider ones: by the norm of a head, or else where queries are wider than the first's.
inline void tree_layers(TreeFields& t) {
  constexpr std::int64_t kHead = 256;
  const std::int64_t layers = t.count_of("layers");
  const auto out = [&](std::int64_t layer, std::string_view name) {
    return t.value("layers." + std::to_string(layer) + ".self_attn." + std::string(name), "out_features").value_or(0);
  };
  const std::int64_t queries = out(0, "q_proj");
  const std::int64_t normed = t.value("layers.0.self_attn.q_norm", "normalized_shape").value_or(kHead);
  const std::int64_t each = normed > 0 && normed < queries && queries % normed == 0 ? normed : kHead;
  const std::int64_t heads = std::max<std::int64_t>(queries / each, 1);
  std::string kinds;
  std::int64_t shared = 0;
  std::int64_t wide = 0;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const bool full = out(layer, "q_proj") > queries;
    kinds += (kinds.empty() ? "\"" : ", \"") + std::string(full ? "full" : "sliding") + "_attention\"";
    shared = out(layer, "k_proj") == 0 ? shared + 1 : 0;
    if (!full || wide > 0) continue;
    wide = out(layer, "q_proj") / heads;
    t.set("global_head_dim", std::max<std::int64_t>(wide, 1));
    t.set_flag("attention_k_eq_v", out(layer, "v_proj") == 0 && out(layer, "k_proj") > 0);
    t.set("num_global_key_value_heads",
          std::max<std::int64_t>(out(layer, "k_proj") / std::max<std::int64_t>(wide, 1), 1));
  }
  t.set("num_attention_heads", heads);
  t.set("head_dim", each);
  t.set("num_key_value_heads", std::max<std::int64_t>(out(0, "k_proj") / each, 1));
  t.set_text("layer_types", "[" + kinds + "]");
  t.set_text("num_kv_shared_layers", std::to_string(shared));
  const auto inner = [&](std::int64_t layer) {
    return t.value("layers." + std::to_string(layer) + ".mlp.gate_proj", "out_features").value_or(0);
  };
  t.set_flag("use_double_wide_mlp", shared > 0 && inner(layers - 1) == 2 * inner(0));
}

/// What print(model) shows. Experts are bare parameters: as the published model has them.
inline void read_text_tree(TreeFields& t) {
  const std::int64_t width = t.body("embed_tokens", "layers");
  t.size("intermediate_size", "layers.0.mlp.gate_proj", "out_features");
  t.activation("hidden_activation", "layers.0.mlp.act_fn");
  tree_layers(t);
  t.set_text("hidden_size_per_layer_input",
             std::to_string(t.value("layers.0.per_layer_projection", "in_features").value_or(0)));
  t.size("vocab_size_per_layer_input", "embed_tokens_per_layer", "num_embeddings");
  t.set_text("final_logit_softcapping", "30.0");  // of all published models
  const std::int64_t experts = t.value("layers.0.router.proj", "out_features").value_or(0);
  if (experts == 0 || width == 0) return;
  const std::int64_t held = t.held("layers.0.experts");
  t.set_text("enable_moe_block", "true");
  t.set("num_experts", experts);
  t.set("moe_intermediate_size", held > 0 ? std::max<std::int64_t>(held / (3 * experts * width), 1) : 704);
  t.set("top_k_experts", std::min<std::int64_t>(experts, 8));
  t.assume("8 experts a token and their width, as the published model has");
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{.prefix = "Gemma4",
                                                             .model_type = "gemma4",
                                                             .body = "model",
                                                             .tied_up_to = kAlwaysTied,
                                                             .ending = "ForConditionalGeneration"}});

/// The tower too, of 280 tokens an image. Its table of positions is a bare parameter, as published.
inline void read_tree(TreeFields& t) {
  const std::string embedder = "vision_tower.patch_embedder.input_proj";
  const std::string block = "vision_tower.encoder.layers.0.";
  const std::int64_t width = t.value(embedder, "out_features").value_or(0);
  const std::int64_t queries = t.value(block + "self_attn.q_proj.linear", "out_features").value_or(0);
  const std::int64_t normed = t.value(block + "self_attn.q_norm", "normalized_shape").value_or(0);
  const std::int64_t each = normed > 0 && normed < queries && queries % normed == 0 ? normed : width > 768 ? 72 : 64;
  t.open("vision_config");
  t.size("hidden_size", embedder, "out_features");
  t.set("patch_size", TreeFields::square_side(t.value(embedder, "in_features").value_or(0) / 3));
  t.count("num_hidden_layers", "vision_tower.encoder.layers");
  t.size("intermediate_size", block + "mlp.gate_proj.linear", "out_features");
  t.activation("hidden_activation", block + "mlp.act_fn");
  t.set("head_dim", each);
  t.set("num_attention_heads", std::max<std::int64_t>(queries / each, 1));
  t.close();
  if (t.has("audio_tower")) {
    t.open("audio_config");
    t.close();
  }
  t.assume("images of 280 tokens, as published models have");
  tree_text(t, {.type = "gemma4_text"});
}

inline constexpr Architecture kTextArchitecture = {.name = "gemma4_text",
                                                   .model_types = names<"gemma4_text">,
                                                   .write = write_text_model,
                                                   .classes = kTextClasses,
                                                   .read_tree = read_text_tree};

inline constexpr Architecture kArchitecture = {.name = "gemma4",
                                               .model_types = names<"gemma4">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .holds_text_model = true};

}  // namespace gemma4

}  // namespace gpumem::architectures
