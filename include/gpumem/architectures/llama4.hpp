// Llama 4's text model: each expert multiplies every token, weighted by a score that is zero for most; queries and keys
// turned as complex numbers in float32 and normed without weights; one layer in four has no positions.
// Source: transformers 4.57, models/llama4/modeling_llama4.py: Llama4TextModel, Llama4TextMoe, Llama4TextAttention.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/mixture.hpp"
#include "gpumem/architectures/vision_language.hpp"

namespace gpumem::architectures {

namespace llama4 {

struct Model {
  DecoderSizes sizes;
  Mixture mixture;
  std::int64_t dense_inner = 1;  ///< of layers without experts
  std::vector<bool> mixes;       ///< by layer
  std::vector<bool> turns;       ///< by layer
  bool bias = false;
  bool norms = true;   ///< queries and keys of layers that turn
  bool scales = true;  ///< the queries of layers that do not
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config);
  const std::int64_t layers = model.sizes.layers;
  model.mixture = {.experts = config.size({"num_local_experts"}),
                   .per_token = config.size_or({"num_experts_per_tok"}, 1),
                   .inner = model.sizes.inner};
  check_mixture(config, model.mixture, layers, "num_local_experts", "num_experts_per_tok");
  model.dense_inner = config.size_or({"intermediate_size_mlp"}, model.sizes.inner);
  const std::int64_t step = config.size_or({"interleave_moe_layer_step"}, 1);
  const std::int64_t unturned = config.size_or({"no_rope_layer_interval", "nope_layer_interval"}, 4);
  model.turns = config.layers_with("no_rope_layers", layers, 1, 0);
  const bool listed = !model.turns.empty();
  for (std::int64_t at = 0; at < layers; ++at) {
    model.mixes.push_back((at + 1) % step == 0);
    if (!listed) model.turns.push_back((at + 1) % unturned != 0);
  }
  if (std::vector<bool> own = config.layers_listed("moe_layers", layers); !own.empty()) model.mixes = std::move(own);
  model.bias = config.flag("attention_bias", false);
  model.norms = config.flag("use_qk_norm", true);
  const core::JsonValue* tuning = config.find("attn_temperature_tuning");
  model.scales =
      tuning == nullptr || !(tuning->is(0) || (tuning->is(core::JsonValue::Kind::boolean) && !tuning->boolean()));
  config.ignore({"router_aux_loss_coef", "router_jitter_noise", "output_router_logits", "attention_chunk_size",
                 "attn_scale", "floor_scale", "for_llm_compression"});
  return model;
}

/// Heads [N, S, heads, d] times complex numbers of their positions, of a float32 copy; then normed, where the model
/// does.
inline Tensor turned(Forward& f, const Model& model, Tensor heads, Tensor positions) {
  const Tensor wide = f.multiply(f.to(heads, "float32"), positions);
  const Tensor back = f.as_type_of(wide, heads);
  if (!model.norms) return back;
  return plain_norm(f, "qk_norm", "Llama4TextL2Norm", back, model.sizes.head_width);
}

/// Tables of all layers: of the turning, [1, S, 1, d], and of the queries' scales, [1, S, 1, 1].
struct Tables {
  Tensor positions = 0;
  Tensor scales = 0;
};

inline Tensor attention(Forward& f, const Model& model, Tensor input, const Tables& tables, std::int64_t index) {
  const InModule inside(f, "self_attn", "Llama4TextAttention");
  const DecoderSizes& s = model.sizes;
  const auto heads = [&](std::string_view name, std::int64_t count) {
    const Linear linear = {.bias = model.bias, .split = Split::columns};
    return f.unflatten(f.linear(name, input, s.width, count * s.head_width, linear), 2, {-1, s.head_width});
  };
  Tensor query = heads("q_proj", s.heads);
  Tensor key = heads("k_proj", s.kv_heads);
  const Tensor value = heads("v_proj", s.kv_heads);
  const bool turns = model.turns[static_cast<std::size_t>(index)];
  if (turns) {
    query = turned(f, model, query, tables.positions);
    key = turned(f, model, key, tables.positions);
  } else if (model.scales) {
    query = f.as_type_of(f.multiply(query, tables.scales), query);
  }
  const auto first = [&](Tensor of) { return f.permute(of, {0, 2, 1, 3}); };
  const Heads ready = {first(query), first(key), first(value)};
  const Tensor attended = attend_cached(f, s, ready);
  return f.linear("o_proj", attended, s.heads * s.head_width, s.width, {.bias = model.bias, .split = Split::rows});
}

/// The layers of a feed-forward layer, in the module that is open.
inline Tensor fed(Forward& f, const Model& model, Tensor input, std::int64_t inner) {
  const std::int64_t width = model.sizes.width;
  const Linear wide = {.bias = false, .split = Split::columns};
  const Tensor gate = f.linear("gate_proj", input, width, inner, wide);
  const Tensor open = f.activation("activation_fn", gate, model.sizes.activation);
  const Tensor up = f.linear("up_proj", input, width, inner, wide);
  return f.linear("down_proj", f.multiply(open, up), inner, width, {.bias = false, .split = Split::rows});
}

/// What the experts make of rows that are theirs: all tokens, once for each expert.
inline Tensor routed(Forward& f, const Model& model, Tensor rows) {
  const Mixture& m = model.mixture;
  const std::int64_t width = model.sizes.width;
  const InModule inside(f, "experts", "Llama4TextExperts");
  const auto product = [&](Tensor of, std::string_view name, std::int64_t in, std::int64_t out) {
    return f.call("grouped_product", {of, f.parameter(name, {m.experts, in, out})},
                  {{"batched", true}, {"of_all_experts", true}});
  };
  const Tensor wide = product(rows, "gate_up_proj", width, 2 * m.inner);
  const Tensor active = gated_halves(f, m.inner, model.sizes.activation, wide);
  return f.leave_function(product(active, "down_proj", m.inner, width), {wide});
}

inline Tensor mixture(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "feed_forward", "Llama4TextMoe");
  const Mixture& m = model.mixture;
  const auto repeated = [&](Tensor of) {
    return f.call("gather_tokens", {of},
                  {{"experts", m.experts}, {"per_token", m.experts}, {"ranks", m.experts}, {"repeats", true}});
  };
  const Linear router = {.bias = false, .class_name = "Llama4Router"};
  const Tensor logits = f.linear("router", input, model.sizes.width, m.experts, router);
  const Tensor scores = f.as_type_of(f.call("sigmoid", {f.to(logits, "float32")}), logits);
  const Tensor rows = f.multiply(repeated(input), repeated(f.slice(scores, 2, 0, 1)));
  const Tensor made = routed(f, model, rows);
  Tensor own = 0;
  {
    const InModule shared(f, "shared_expert", "Llama4TextMLP");
    own = fed(f, model, input, m.inner);
  }
  const Tensor sum = f.call("scatter_tokens", {own, made}, {{"sums", true}});
  return f.leave_function(sum, {rows, made, scores, logits});
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Tables& tables, std::int64_t index) {
  const auto norm = [&](std::string_view name, Tensor tensor) {
    return f.rms_norm(name, tensor, model.sizes.width, "Llama4TextRMSNorm");
  };
  const Tensor attended = f.add(input, attention(f, model, norm("input_layernorm", input), tables, index));
  const Tensor again = norm("post_attention_layernorm", attended);
  if (model.mixes[static_cast<std::size_t>(index)]) return f.add(attended, mixture(f, model, again));
  const InModule inside(f, "feed_forward", "Llama4TextMLP");
  return f.add(attended, fed(f, model, again, model.dense_inner));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  if (std::find(model.mixes.begin(), model.mixes.end(), true) != model.mixes.end()) {
    f.warn(
        "every expert multiplies every token, as transformers computes this model; other programs send each token to "
        "its own experts alone");
  }
  decoder_model(f, config, s, head, {.class_name = "Llama4TextModel"}, [&](Tensor ids, Tensor hidden) {
    const auto table = [&](std::int64_t width) {
      const Tensor rows = f.call("rotary_table", {ids}, {{"width", width}, {"dtype", std::string("float32")}});
      return f.permute(rows, {0, 2, 1, 3});
    };
    const Tables tables = {table(s.head_width), table(1)};
    hidden = stack(f, "layers", "Llama4TextDecoderLayer", s.layers, hidden,
                   [&](Tensor x, std::int64_t index) { return block(f, model, x, tables, index); });
    return f.rms_norm("norm", hidden, s.width, "Llama4TextRMSNorm");
  });
}

inline constexpr auto kClasses =
    std::to_array<ModelClass>({{"Llama4", "llama4_text", "model"}, {"Llama4Text", "llama4_text", "model"}});

/// What print(model) shows: the router's width is the number of experts, and a layer without one has none.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  std::int64_t first = 0;
  const std::int64_t layers = t.count_of("layers");
  const auto at = [&](std::string_view part) {
    return "layers." + std::to_string(first) + ".feed_forward." + std::string(part);
  };
  while (first + 1 < layers && !t.has(at("router"))) ++first;
  t.size("num_local_experts", at("router"), "out_features");
  t.size("intermediate_size", at("shared_expert.gate_proj"), "out_features");
  t.size("intermediate_size_mlp", "layers.0.feed_forward.gate_proj", "out_features");
  t.set("interleave_moe_layer_step", first + 1);
  t.there("use_qk_norm", "layers.0.self_attn.qk_norm");
  t.flag("attention_bias", "layers.0.self_attn.q_proj");
  t.labels();
  t.heads({.query = "layers.0.self_attn.q_proj", .key = "layers.0.self_attn.k_proj", .usual_width = 128});
}

inline constexpr Architecture kArchitecture = {
    .name = "llama4", .model_types = names<"llama4_text">, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace llama4

// Llama 3.2 Vision: a tower over four tiles of an image with a global encoder behind it, whose states and those of some
// of its layers are projected once, and a Llama some of whose layers attend to them in place of the text. Images take
// no places of the text, and the processor always pads to all tiles, so an image's size changes nothing. Source:
// transformers 4.57, models/mllama/modeling_mllama.py, image_processing_mllama.py.

namespace mllama {

inline constexpr std::string_view kNorm = "MllamaTextRMSNorm";
/// Words that the embedding has and the head does not: the image's among them.
inline constexpr std::int64_t kMoreWords = 8;

struct Tower {
  DecoderSizes sizes;
  std::int64_t global_layers = 8;
  std::int64_t side = 448;
  std::int64_t patch = 14;
  std::int64_t tiles = 4;
  std::int64_t shapes = 8;                              ///< of grids of tiles
  std::vector<std::int64_t> kept = {3, 7, 15, 23, 30};  ///< layers whose states are read too

  [[nodiscard]] std::int64_t patches() const { return (side / patch) * (side / patch); }
  [[nodiscard]] std::int64_t places() const { return patches() + 1; }
  [[nodiscard]] std::int64_t padded() const { return (places() + 7) / 8 * 8; }
  [[nodiscard]] std::int64_t out() const { return sizes.width * (1 + static_cast<std::int64_t>(kept.size())); }
};

struct Model {
  Tower tower;
  DecoderSizes sizes;
  std::vector<bool> crosses;  ///< by layer: it attends to the images
};

inline Tower read_tower(ConfigFields& vision) {
  Tower t;
  t.sizes.width = vision.size_or({"hidden_size"}, 1280);
  t.sizes.inner = vision.size_or({"intermediate_size"}, 5120);
  t.sizes.layers = vision.layers_or("num_hidden_layers", 32);
  t.sizes.heads = vision.size_or({"attention_heads", "num_attention_heads"}, 16);
  t.sizes.activation = vision.text({"hidden_act"}, "gelu");
  t.global_layers = vision.layers_or("num_global_layers", 8);
  t.side = vision.size_or({"image_size"}, 448);
  t.patch = vision.size_or({"patch_size"}, 14);
  t.tiles = vision.size_or({"max_num_tiles"}, 4);
  if (const core::JsonValue* grids = vision.find("supported_aspect_ratios");
      grids != nullptr && grids->is(core::JsonValue::Kind::list)) {
    t.shapes = static_cast<std::int64_t>(grids->size());
  }
  t.kept = vision.sizes_or("intermediate_layers_indices", t.kept);
  constexpr std::int64_t kMost = 1 << 12;
  const bool wide = t.sizes.width > kMost * 4 || t.side > kMost || t.tiles > 64 || t.patch > t.side || t.shapes > kMost;
  if (wide) vision.fail("is more than gpumem takes", "image_size");
  if (t.sizes.width % t.sizes.heads != 0) vision.fail("does not divide hidden_size", "attention_heads");
  for (const std::int64_t layer : t.kept) {
    if (layer >= t.sizes.layers) vision.fail("names a layer that is not there", "intermediate_layers_indices");
  }
  if (vision.size_or({"vision_output_dim"}, t.out()) != t.out()) {
    vision.fail("is not the width of all states that are read", "vision_output_dim");
  }
  vision.ignore({"num_channels", "norm_eps", "vision_feature_select_strategy", "num_attention_heads"});
  return t;
}

inline Model read(ConfigFields& vision, ConfigFields& text) {
  Model model;
  model.tower = read_tower(vision);
  text.complete(R"({"vocab_size": 128256, "hidden_size": 4096, "num_hidden_layers": 40, "num_attention_heads": 32,
                    "num_key_value_heads": 8, "intermediate_size": 14336})");
  model.sizes = decoder_sizes(text);
  const std::int64_t layers = model.sizes.layers;
  model.crosses.assign(static_cast<std::size_t>(layers), false);
  for (const std::int64_t layer : text.sizes_or("cross_attention_layers", {3, 8, 13, 18, 23, 28, 33, 38})) {
    if (layer < layers) model.crosses[static_cast<std::size_t>(layer)] = true;
  }
  if (model.sizes.vocabulary > ConfigFields::kLargestSize - kMoreWords) text.fail("is too large", "vocab_size");
  text.ignore({"dropout"});
  return model;
}

/// tanh of a learned gate, times a part.
inline Tensor gated(Forward& f, std::string_view name, Tensor part) {
  return f.multiply(f.call("tanh", {f.parameter(name, {1})}), part);
}

/// Adds an embedding of the grid of tiles, of each tile.
inline Tensor with_tiles(Forward& f, const Tower& t, std::string_view name, Tensor hidden, Tensor grids) {
  const InModule inside(f, name, "MllamaPrecomputedAspectRatioEmbedding");
  const Tensor looked_up = f.embedding("embedding", grids, t.shapes + 1, t.tiles * t.sizes.width);
  const Tensor each = f.select(f.unflatten(looked_up, 2, {t.tiles, 1, t.sizes.width}), 1, 0);
  return f.add(hidden, gated(f, "gate", each));
}

inline Tensor with_places(Forward& f, const Tower& t, Tensor hidden, Tensor grids) {
  const InModule inside(f, "gated_positional_embedding", "MllamaPrecomputedPositionEmbedding");
  const Tensor gate = f.call("tanh", {f.parameter("gate", {1})});
  const Tensor places = f.parameter("embedding", {t.places(), t.sizes.width});
  hidden = f.add(hidden, f.multiply(f.call("sub", {gate}), places));
  const Tensor looked_up = f.embedding("tile_embedding", grids, t.shapes + 1, t.tiles * t.places() * t.sizes.width);
  const Tensor each = f.select(f.unflatten(looked_up, 2, {t.tiles, t.places(), t.sizes.width}), 1, 0);
  return f.add(hidden, f.multiply(gate, each));
}

inline Tensor tower_block(Forward& f, const Tower& t, Tensor input, Tensor mask, bool gates) {
  const DecoderSizes& s = t.sizes;
  const Tensor normed = f.layer_norm("input_layernorm", input, s.width);
  Tensor mixed = 0;
  {
    const InModule inside(f, "self_attn", "MllamaVisionAttention");
    const Linear plain = {.bias = false};
    const auto heads = [&](std::string_view name) {
      return split_heads(f, f.linear(name, normed, s.width, s.width, plain), s.width / s.heads);
    };
    const Tensor query = heads("q_proj");
    const Tensor key = heads("k_proj");
    mixed = attend(f, {query, key, heads("v_proj")}, {.mask = mask});
    mixed = f.linear("o_proj", mixed, s.width, s.width, plain);
  }
  const Tensor attended = f.add(input, gates ? gated(f, "gate_attn", mixed) : mixed);
  const Tensor again = f.layer_norm("post_attention_layernorm", attended, s.width);
  const Tensor made = feed_forward(f, s, again, {.class_name = "MllamaVisionMLP"});
  return f.add(attended, gates ? gated(f, "gate_ffn", made) : made);
}

/// The states that the text reads [N images, tiles, places, width of all].
inline Tensor tower(Forward& f, const Tower& t, std::int64_t images) {
  const InModule inside(f, "vision_model", "MllamaVisionModel");
  const std::int64_t width = t.sizes.width;
  const Tensor pixels = f.rows_input("pixel_values", images * t.tiles, {3, t.side, t.side});
  const Tensor grids = f.rows_input("aspect_ratio_ids", images, {1});
  const Tensor cut = f.layer("patch_embedding", "Conv2d", "conv2d", {pixels},
                             {{"in_channels", std::int64_t{3}},
                              {"out_channels", width},
                              {"kernel_size", Sizes(2, t.patch)},
                              {"stride", Sizes(2, t.patch)},
                              {"bias", false}});
  const auto by_tile = [&](Tensor of) { return f.unflatten(of, 0, {-1, t.tiles}); };
  const Tensor rows = f.permute(f.flatten(cut, 2, 3), {0, 2, 1});
  const Tensor placed = f.flatten(with_tiles(f, t, "pre_tile_positional_embedding", by_tile(rows), grids), 0, 1);
  const std::vector<core::Dim> every = {core::Dim::batch(images * t.tiles), core::Dim::fixed(-1), core::Dim::fixed(-1)};
  const Tensor first = f.call("expand", {f.parameter("class_embedding", {1, 1, width})}, {{"shape", every}});
  Tensor hidden = with_places(f, t, by_tile(f.concatenate({first, placed}, 1)), grids);
  hidden = f.layer_norm("layernorm_pre", hidden, width);
  const std::int64_t more = t.padded() - t.places();
  if (more > 0) hidden = f.call("pad", {hidden}, {{"padding", Sizes{0, 0, 0, more}}});
  const Tensor mask = f.rows_input("aspect_ratio_mask", images, {1, t.tiles * t.padded(), t.tiles * t.padded()});
  hidden = f.flatten(hidden, 1, 2);
  std::vector<Tensor> states;
  {
    const InModule encoder(f, "transformer", "MllamaVisionEncoder");
    hidden = stack(f, "layers", "MllamaVisionEncoderLayer", t.sizes.layers, hidden, [&](Tensor x, std::int64_t) {
      states.push_back(tower_block(f, t, x, mask, false));
      return states.back();
    });
  }
  hidden = f.unflatten(f.layer_norm("layernorm_post", hidden, width), 1, {t.tiles, t.padded()});
  hidden = f.flatten(with_tiles(f, t, "post_tile_positional_embedding", hidden, grids), 1, 2);
  {
    const InModule encoder(f, "global_transformer", "MllamaVisionEncoder");
    hidden = stack(f, "layers", "MllamaVisionEncoderLayer", t.global_layers, hidden,
                   [&](Tensor x, std::int64_t) { return tower_block(f, t, x, mask, true); });
  }
  std::vector<Tensor> kept = {hidden};
  for (const std::int64_t layer : t.kept) {
    if (static_cast<std::size_t>(layer) < states.size()) kept.push_back(states[static_cast<std::size_t>(layer)]);
  }
  const Tensor all = f.unflatten(f.concatenate(kept, 2), 1, {t.tiles, t.padded()});
  return more > 0 ? f.slice(all, 2, 0, t.places()) : all;
}

inline Tensor norm(Forward& f, std::string_view name, Tensor input, std::int64_t width) {
  return f.rms_norm(name, input, width, kNorm);
}

/// Attention to the images' states [N, tokens, width].
inline Tensor cross_attention(Forward& f, const Model& model, Tensor input, Tensor states, Tensor mask) {
  const InModule inside(f, "cross_attn", "MllamaTextCrossAttention");
  const DecoderSizes& s = model.sizes;
  const auto heads = [&](std::string_view name, Tensor of, std::int64_t count) {
    const Linear linear = {.bias = false, .split = Split::columns};
    return split_heads(f, f.linear(name, of, s.width, count * s.head_width, linear), s.head_width);
  };
  const Tensor query = norm(f, "q_norm", heads("q_proj", input, s.heads), s.head_width);
  const Tensor key = heads("k_proj", states, s.kv_heads);
  const Tensor value = heads("v_proj", states, s.kv_heads);
  const Heads ready = {query, norm(f, "k_norm", key, s.head_width), value};
  f.cache(ready.key);
  f.cache(ready.value);
  const Tensor mixed = attend(f, ready, {.groups = s.heads / s.kv_heads, .mask = mask});
  return f.linear("o_proj", mixed, s.heads * s.head_width, s.width, {.bias = false, .split = Split::rows});
}

inline Tensor cross_block(Forward& f, const Model& model, Tensor input, Tensor states, Tensor mask) {
  const std::int64_t width = model.sizes.width;
  const Tensor normed = norm(f, "input_layernorm", input, width);
  const Tensor mixed = cross_attention(f, model, normed, states, mask);
  const Tensor attended = f.add(input, gated(f, "cross_attn_attn_gate", mixed));
  const Tensor again = norm(f, "post_attention_layernorm", attended, width);
  // Tokens in front of all images get nothing.
  const Tensor made = f.scale(gated_feed_forward(f, model.sizes, again, "MllamaTextMLP"));
  return f.add(attended, gated(f, "cross_attn_mlp_gate", made));
}

inline Tensor self_block(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const std::int64_t width = model.sizes.width;
  const RotaryAttention options = {.class_name = "MllamaTextSelfAttention"};
  const Tensor mixed = rotary_attention(f, model.sizes, norm(f, "input_layernorm", input, width), rotary, options);
  const Tensor attended = f.add(input, mixed);
  const Tensor again = norm(f, "post_attention_layernorm", attended, width);
  return f.add(attended, gated_feed_forward(f, model.sizes, again, "MllamaTextMLP"));
}

/// Layers that attend to images are left out where there are none (MllamaTextModel.forward()); they are held.
inline void hold_cross_layers(Forward& f, const Model& model) {
  const DecoderSizes& s = model.sizes;
  const std::int64_t queries = s.heads * s.head_width;
  const std::int64_t keys = s.kv_heads * s.head_width;
  const std::int64_t each = 2 * s.width * (queries + keys) + 2 * s.head_width + 3 * s.width * s.inner + 2 * s.width + 2;
  const auto count = std::count(model.crosses.begin(), model.crosses.end(), true);
  if (count > 0) (void)f.parameter("cross_attention_layers.unused", {count, each}, true);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Pictures pictures = pictures_of(f);
  ConfigFields* vision = vision_fields(config);
  ConfigFields* text = config.part("text_config", "{}");
  if (text == nullptr) config.fail("is not there", "text_config");
  if (vision == nullptr || text == nullptr || !config.status()) return;
  const Model model = read(*vision, *text);
  if (!config.status()) return;
  const DecoderSizes& s = model.sizes;
  tell_pictures(f, pictures, 0);
  Tensor hidden = 0;
  {
    const InModule inside(f, "model", "MllamaModel");
    const Tensor ids = token_ids(f);
    Tensor states = 0;
    if (pictures.count > 0) {
      const Tensor seen = tower(f, model.tower, pictures.seen());
      const Tensor projected = f.linear("multi_modal_projector", seen, model.tower.out(), s.width);
      const Tensor by_image = f.flatten(projected, 1, 2);
      states = f.flatten(f.unflatten(by_image, 0, {-1, pictures.seen()}), 1, 2);
    }
    const InModule language(f, "language_model", "MllamaTextModel");
    hidden = f.embedding("embed_tokens", ids, s.vocabulary + kMoreWords, s.width);
    const Tensor mask = pictures.count > 0 ? f.call("window_mask", {hidden, states}) : 0;
    const Rotary rotary = rotary_tables(f, ids, s.head_width);
    if (pictures.count == 0) hold_cross_layers(f, model);
    f.enter("layers", "ModuleList");
    for (std::int64_t index = 0; index < s.layers && !f.failed(); ++index) {
      const bool crosses = model.crosses[static_cast<std::size_t>(index)];
      if (crosses && pictures.count == 0) continue;
      const InModule one(f, std::to_string(index),
                         crosses ? "MllamaCrossAttentionDecoderLayer" : "MllamaSelfAttentionDecoderLayer");
      hidden = crosses ? cross_block(f, model, hidden, states, mask) : self_block(f, model, hidden, rotary);
    }
    f.leave();
    hidden = norm(f, "norm", hidden, s.width);
  }
  decoder_head(f, *text, s, head, hidden);
}

inline constexpr auto kBlocks = std::to_array<std::string_view>(
    {"MllamaSelfAttentionDecoderLayer", "MllamaCrossAttentionDecoderLayer", "MllamaVisionEncoderLayer"});

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Mllama", "mllama", "model"}});

/// What print(model) shows. Which of the tower's layers are read is as published.
inline void read_tree(TreeFields& t) {
  t.open("vision_config");
  t.size("hidden_size", "vision_model.patch_embedding", "out_channels");
  t.count("num_hidden_layers", "vision_model.transformer.layers");
  t.count("num_global_layers", "vision_model.global_transformer.layers");
  t.size("intermediate_size", "vision_model.transformer.layers.0.mlp.fc1", "out_features");
  t.set("image_size", 560);
  t.close();
  t.assume("16 heads and tiles of 560 pixels in the image tower, as published models have");
  t.open("text_config");
  t.within("language_model", t.class_name(), [&, crosses = std::vector<std::int64_t>()]() mutable {
    t.size("hidden_size", "embed_tokens", "embedding_dim");
    t.count("num_hidden_layers", "layers");
    t.size("intermediate_size", "layers.0.mlp.gate_proj", "out_features");
    t.heads({.query = "layers.0.self_attn.q_proj", .key = "layers.0.self_attn.k_proj", .usual_width = 128});
    for (std::int64_t at = 0; at < t.count_of("layers"); ++at)
      if (t.has("layers." + std::to_string(at) + ".cross_attn")) crosses.push_back(at);
    t.list("cross_attention_layers", crosses);
  });
  t.size("vocab_size", "/lm_head", "out_features");
  t.close();
}

inline constexpr Architecture kArchitecture = {.name = "mllama",
                                               .model_types = names<"mllama">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .holds_text_model = true,
                                               .blocks = kBlocks};

}  // namespace mllama

}  // namespace gpumem::architectures
