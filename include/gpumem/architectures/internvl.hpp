// InternVL 2.5 to 3.5 as transformers has them, Intern-S1 and Qianfan-OCR: up to twelve tiles and the whole picture, a
// tower with layer scale, four patches side by side, two linear layers, and any text model. Source: transformers 4.57,
// models/internvl/modeling_internvl.py, got_ocr2/image_processing_got_ocr2.py; 5.16,
// qianfan_ocr/modular_qianfan_ocr.py; modeling_interns1.py of Intern-S1-mini.
#pragma once

#include <array>
#include <cmath>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/vision_language.hpp"

namespace gpumem::architectures {

namespace internvl {

struct Model {
  std::string_view type;
  DecoderSizes sizes;  ///< of the tower
  std::int64_t side = 448;
  std::int64_t patch = 14;
  std::int64_t channels = 3;
  bool bias = false;
  bool normed_heads = false;
  bool squares = false;  ///< its norms are RMS norms
  bool normed_behind = false;
  bool places = true;
  bool mask_token = false;
  double dropout = 0.0;
  std::int64_t shuffle = 2;
  std::string_view activation = "gelu";
  std::int64_t width = 1;  ///< of the text model

  [[nodiscard]] std::int64_t patches() const { return (side / patch) * (side / patch); }
};

/// One number, or as many for height and width, which must be alike.
inline std::int64_t square_of(ConfigFields& config, std::string_view name, std::int64_t usual) {
  const core::JsonValue* value = config.find(name);
  if (value == nullptr) return usual;
  std::int64_t side = 0;
  const auto take = [&](const core::JsonValue& item) {
    const bool whole = item.is(core::JsonValue::Kind::integer) && item.integer() >= 1 && item.integer() <= 1 << 16;
    const bool alike = whole && (side == 0 || side == item.integer());
    side = alike ? item.integer() : -1;
  };
  if (value->is(core::JsonValue::Kind::list)) {
    for (const core::JsonValue& item : value->items()) take(item);
  } else {
    take(*value);
  }
  if (side > 0) return side;
  config.fail("must be a size, or the same one for height and width", name);
  return usual;
}

inline void read_tower(ConfigFields& config, Model& m) {
  m.sizes = encoder_sizes(config, {.width = 1024, .inner = 4096, .layers = 24, .heads = 16, .activation = "gelu"});
  m.dropout = config.number({"hidden_dropout_prob"}, 0.0);
  m.side = square_of(config, "image_size", 448);
  m.patch = square_of(config, "patch_size", 14);
  m.channels = config.size_or({"num_channels"}, 3);
  m.bias = config.flag("attention_bias", m.type != "internvl");
  m.normed_heads = config.flag("use_qk_norm", false);
  m.squares = config.text({"norm_type"}, "layer_norm") == "rms_norm";
  m.normed_behind = !config.flag("use_mean_pooling", true);
  m.places = config.flag("use_absolute_position_embeddings", true);
  m.mask_token = config.flag("use_mask_token", false);
  config.ignore({"layer_scale_init_value", "projection_dropout", "drop_path_rate"});
  if (m.side < m.patch) config.fail("is smaller than patch_size", "image_size");
}

inline Model read(ConfigFields& config) {
  Model m;
  m.type = config.text({"model_type"}, "internvl");
  if (ConfigFields* tower = vision_fields(config)) read_tower(*tower, m);
  const double ratio = config.number({"downsample_ratio"}, 0.5);
  m.shuffle = ratio > 0.0 && ratio <= 1.0 ? static_cast<std::int64_t>(std::min(1.0 / ratio, 64.0)) : 0;
  if (m.shuffle < 1 || (m.side / m.patch) % m.shuffle != 0) {
    config.fail("does not divide the tower's patches", "downsample_ratio");
    m.shuffle = 1;
  }
  m.activation = config.text({"projector_hidden_act"}, "gelu");
  config.ignore({"vision_feature_layer", "vision_feature_select_strategy", "image_seq_length"});
  return m;
}

inline Tensor norm(Forward& f, const Model& m, std::string_view name, Tensor input) {
  return m.squares ? f.rms_norm(name, input, m.sizes.width, "InternVLVisionRMSNorm")
                   : f.layer_norm(name, input, m.sizes.width);
}

inline Tensor attention(Forward& f, const Model& m, Tensor input) {
  const InModule inside(f, "attention", "InternVLVisionAttention");
  const std::int64_t width = m.sizes.width;
  const auto heads = [&](std::string_view name, std::string_view normed) {
    Tensor flat = f.linear(name, input, width, width, {.bias = m.bias});
    if (m.normed_heads && !normed.empty()) flat = f.rms_norm(normed, flat, width, "InternVLVisionRMSNorm");
    return split_heads(f, flat, width / m.sizes.heads);
  };
  const Tensor query = heads("q_proj", "q_norm");
  const Tensor key = heads("k_proj", "k_norm");
  const Tensor mixed = attend(f, {query, key, heads("v_proj", "")},
                              {.dropout = m.sizes.attention_dropout, .copies = false, .causal = false});
  return f.linear("projection_layer", mixed, width, width);
}

inline Tensor block(Forward& f, const Model& m, Tensor input) {
  const std::int64_t width = m.sizes.width;
  const Tensor mixed = attention(f, m, norm(f, m, "layernorm_before", input));
  const Tensor attended = f.add(f.multiply(f.parameter("lambda_1", {width}), mixed), input);
  const Tensor fed =
      feed_forward(f, m.sizes, norm(f, m, "layernorm_after", attended), {.class_name = "InternVLVisionMLP"});
  const Tensor dropped = f.dropout("dropout", fed, m.dropout);
  return f.add(f.multiply(f.parameter("lambda_2", {width}), dropped), attended);
}

inline Tensor embedded(Forward& f, const Model& m, std::int64_t tiles) {
  const Tensor pixels = f.rows_input("pixel_values", tiles, {m.channels, m.side, m.side});
  const InModule inside(f, "embeddings", "InternVLVisionEmbeddings");
  const std::int64_t width = m.sizes.width;
  const Tensor first = f.parameter("cls_token", {1, 1, width});
  if (m.mask_token) (void)f.parameter("mask_token", {1, 1, width}, true);
  Tensor cut = 0;
  {
    const InModule patches(f, "patch_embeddings", "InternVLVisionPatchEmbeddings");
    cut = f.layer("projection", "Conv2d", "conv2d", {pixels},
                  {{"in_channels", m.channels},
                   {"out_channels", width},
                   {"kernel_size", Sizes(2, m.patch)},
                   {"stride", Sizes(2, m.patch)}});
  }
  const std::vector<core::Dim> each = {core::Dim::batch(tiles), core::Dim::fixed(-1), core::Dim::fixed(-1)};
  const Tensor rows = f.permute(f.flatten(cut, 2, 3), {0, 2, 1});
  const Tensor all = f.concatenate({f.call("expand", {first}, {{"shape", each}}), rows}, 1);
  if (!m.places) return all;
  return f.dropout("dropout", f.add(all, f.parameter("position_embeddings", {1, m.patches() + 1, width})), m.dropout);
}

inline Tensor features_of(Forward& f, const Model& m, std::int64_t tiles) {
  const std::int64_t wide = m.sizes.width * m.shuffle * m.shuffle;
  Tensor hidden = 0;
  {
    const InModule inside(f, "vision_tower", "InternVLVisionModel");
    hidden = embedded(f, m, tiles);
    const auto blocks = [&](std::string_view name) {
      return stack(f, name, "InternVLVisionLayer", m.sizes.layers, hidden,
                   [&](Tensor x, std::int64_t) { return block(f, m, x); });
    };
    if (m.type == "qianfan_ocr") {
      hidden = blocks("layers");
    } else {
      const InModule encoder(f, "encoder", "InternVLVisionEncoder");
      hidden = blocks("layer");
    }
    if (m.normed_behind) hidden = f.layer_norm("layernorm", hidden, m.sizes.width);
  }
  // The class token is left out; pixel_shuffle makes two copies in other orders.
  const Tensor image = f.call("clone", {f.call("clone", {f.slice(hidden, 1, 1, Forward::kRest)})});
  const InModule inside(f, "multi_modal_projector", "InternVLMultiModalProjector");
  const Tensor normed = f.layer_norm("layer_norm", f.unflatten(f.flatten(image, 1, 2), 1, {-1, wide}), wide);
  const Tensor open = f.activation("act", f.linear("linear_1", normed, wide, m.width), m.activation);
  return f.linear("linear_2", open, m.width, m.width);
}

/// Llama 4's tower.
struct Llama4 {
  DecoderSizes sizes;
  std::int64_t side = 336;
  std::int64_t patch = 14;
  std::int64_t channels = 3;
  std::int64_t projected_in = 4096;
  std::int64_t projected = 4096;
  std::int64_t out = 4096;
  std::int64_t width = 1;  ///< of the text model
  static constexpr std::int64_t kShuffle = 2;

  [[nodiscard]] std::int64_t patches() const { return (side / patch) * (side / patch); }
};

/// The published models' tower where a config has none.
inline Llama4 read_llama4(ConfigFields& config, Forward& f) {
  Llama4 m;
  if (!config.has("vision_config")) {
    f.remark("the config has no vision_config: the image tower of Llama 4's published models is taken");
    config.replace(R"({"vision_config": {"hidden_size": 1408, "image_size": 336, "vision_output_dim": 4096}})");
  }
  ConfigFields* tower = vision_fields(config);
  if (tower == nullptr) return m;
  DecoderSizes& s = m.sizes;
  s.width = tower->size_or({"hidden_size"}, 768);
  s.inner = tower->size_or({"intermediate_size"}, 5632);
  s.layers = tower->has("num_hidden_layers") ? tower->layers({"num_hidden_layers"}) : 34;
  s.heads = tower->size_or({"num_attention_heads"}, 16);
  s.activation = "gelu";
  m.side = tower->size_or({"image_size"}, 448);
  m.patch = tower->size_or({"patch_size"}, 14);
  m.channels = tower->size_or({"num_channels"}, 3);
  m.projected_in = tower->size_or({"projector_input_dim"}, 4096);
  m.projected = tower->size_or({"projector_output_dim"}, 4096);
  m.out = tower->size_or({"vision_output_dim"}, 7680);
  tower->ignore({"pixel_shuffle_ratio", "vision_feature_layer", "vision_feature_select_strategy",
                 "multi_modal_projector_bias", "projector_dropout", "attention_dropout", "hidden_act"});
  if (s.width % (2 * s.heads) != 0) tower->fail("does not divide hidden_size", "num_attention_heads");
  if (m.side > model::Images::kLargestSide) tower->fail("is more than gpumem takes", "image_size");
  if (m.side < m.patch || (m.side / m.patch) % Llama4::kShuffle != 0)
    tower->fail("does not divide image_size", "patch_size");
  return m;
}

inline Tensor llama4_block(Forward& f, const Llama4& m, Tensor input, Tensor table) {
  const DecoderSizes& s = m.sizes;
  const std::int64_t each = s.width / s.heads;
  const Tensor normed = f.layer_norm("input_layernorm", input, s.width);
  Tensor mixed = 0;
  {
    const InModule inside(f, "self_attn", "Llama4VisionAttention");
    const auto heads = [&](std::string_view name) {
      return split_heads(f, f.linear(name, normed, s.width, s.width), each);
    };
    const auto turned = [&](Tensor part) {
      return f.as_type_of(f.multiply(f.to(part, "float32"), table), part);  // a product of complex numbers
    };
    const Tensor query = heads("q_proj");
    const Tensor key = heads("k_proj");
    const Tensor value = heads("v_proj");
    const Tensor turned_query = turned(query);
    mixed = f.linear("o_proj", attend(f, {turned_query, turned(key), value}, {.copies = false, .causal = false}),
                     s.width, s.width);
  }
  const Tensor attended = f.add(input, mixed);
  const Tensor again = f.layer_norm("post_attention_layernorm", attended, s.width);
  return f.add(attended, feed_forward(f, s, again, {.class_name = "Llama4VisionMLP"}));
}

inline Tensor llama4_tower(Forward& f, const Llama4& m, std::int64_t tiles) {
  const InModule inside(f, "vision_model", "Llama4VisionModel");
  const std::int64_t width = m.sizes.width;
  const std::int64_t area = m.channels * m.patch * m.patch;
  const Tensor pixels = f.rows_input("pixel_values", tiles, {m.channels, m.side, m.side});
  Tensor hidden = 0;
  {
    const InModule unfold(f, "patch_embedding", "Llama4UnfoldConvolution");
    const Tensor columns = f.unflatten(f.flatten(f.call("clone", {pixels}), 1, 3), 1, {-1, area});
    hidden = f.linear("linear", columns, area, width, {.bias = false});
  }
  const std::vector<core::Dim> each = {core::Dim::batch(tiles), core::Dim::fixed(-1), core::Dim::fixed(-1)};
  const Tensor last = f.call("expand", {f.parameter("class_embedding", {1, 1, width})}, {{"shape", each}});
  hidden = f.concatenate({hidden, last}, 1);
  hidden = f.add(hidden, f.parameter("positional_embedding_vlm", {m.patches() + 1, width}));
  hidden = f.layer_norm("layernorm_pre", hidden, width);
  const Tensor table =
      f.call("rotary_table", {hidden}, {{"width", width / m.sizes.heads}, {"dtype", std::string("float32")}});
  {
    const InModule encoder(f, "model", "Llama4VisionEncoder");
    hidden = stack(f, "layers", "Llama4VisionEncoderLayer", m.sizes.layers, hidden,
                   [&](Tensor x, std::int64_t) { return llama4_block(f, m, x, table); });
  }
  hidden = f.slice(f.layer_norm("layernorm_post", hidden, width), 1, 0, -1);
  const InModule adapter(f, "vision_adapter", "Llama4VisionPixelShuffleMLP");
  const std::int64_t wide = width * Llama4::kShuffle * Llama4::kShuffle;
  const Tensor shuffled = f.unflatten(f.flatten(f.call("clone", {f.call("clone", {hidden})}), 1, 2), 1, {-1, wide});
  const InModule mlp(f, "mlp", "Llama4VisionMLP2");
  const Tensor open =
      f.activation("activation_fn", f.linear("fc1", shuffled, wide, m.projected_in, {.bias = false}), "gelu");
  return f.activation("activation_fn", f.linear("fc2", open, m.projected_in, m.projected, {.bias = false}), "gelu");
}

inline void write_llama4(ConfigFields& config, Head head, Forward& f) {
  constexpr std::int64_t kMostTiles = 16;
  const Pictures pictures = pictures_of(f);
  Llama4 model = read_llama4(config, f);
  ConfigFields* text = text_fields(config, "llama4_text");
  config.ignore({"boi_token_index", "eoi_token_index", "image_token_index"});
  if (text == nullptr || !config.status()) return;
  model.width = text->size({"hidden_size"});
  const TileGrid grid = least_scaled_grid(pictures.size, model.side, kMostTiles);
  const std::int64_t tiles = pictures.seen() * grid.with_thumbnail();
  tell_pictures(f, pictures, tiles * (model.patches() / (Llama4::kShuffle * Llama4::kShuffle)));
  TextPart part = whole_text("Llama4ForCausalLM");
  part.embed = [&](Tensor, Tensor words) {
    return with_features(f, pictures, words, [&](Forward& to) {
      const Tensor features = llama4_tower(to, model, tiles);
      const InModule inside(to, "multi_modal_projector", "Llama4MultiModalProjector");
      return to.linear("linear_1", features, model.out, model.width, {.bias = false});
    });
  };
  write_text(f, *text, head, part);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  constexpr std::int64_t kMostTiles = 12;
  if (config.text({"model_type"}, "") == "llama4") return write_llama4(config, head, f);
  const Pictures pictures = pictures_of(f);
  Model model = read(config);
  ConfigFields* text = text_fields(config, model.type == "internvl" ? "qwen2" : "qwen3");
  if (text == nullptr || !config.status()) return;
  model.width = text->size({"hidden_size"});
  const TileGrid grid = closest_grid(pictures.size, model.side, kMostTiles);
  const std::int64_t tiles = pictures.seen() * (pictures.frames > 0 ? 1 : grid.with_thumbnail());
  tell_pictures(f, pictures, tiles * (model.patches() / (model.shuffle * model.shuffle)));
  TextPart part = inner_text("InternVLModel", "TextModel");
  part.embed = [&](Tensor, Tensor embedded_text) {
    return with_features(f, pictures, embedded_text, [&](Forward& to) { return features_of(to, model, tiles); });
  };
  write_text(f, *text, head, part);
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"InternVL", "internvl", "model"},
                                                            {.prefix = "Llama4",
                                                             .model_type = "llama4",
                                                             .body = "language_model.model",
                                                             .ending = "ForConditionalGeneration"}});

/// Llama 4's published tower, which has 16 heads.
inline void tree_llama4(TreeFields& t) {
  const std::string tower = "/vision_model.";
  const std::int64_t area = t.value(tower + "patch_embedding.linear", "in_features").value_or(0) / 3;
  t.open("vision_config");
  t.size("hidden_size", tower + "patch_embedding.linear", "out_features");
  t.set("patch_size", TreeFields::square_side(area));
  t.set("image_size", 24 * TreeFields::square_side(area));
  t.count("num_hidden_layers", tower + "model.layers");
  t.size("intermediate_size", tower + "model.layers.0.mlp.fc1", "out_features");
  t.set("num_attention_heads", 16);
  t.size("projector_input_dim", tower + "vision_adapter.mlp.fc1", "out_features");
  t.size("projector_output_dim", tower + "vision_adapter.mlp.fc2", "out_features");
  t.size("vision_output_dim", "/multi_modal_projector.linear_1", "in_features");
  t.close();
  t.assume("tiles of 24 x 24 patches and 16 heads in the image tower, as published models have");
  tree_text(t, {.path = "", .type = "llama4_text"});
}

/// What print(model) shows. Positions are bare parameters: tiles are as published.
inline void read_tree(TreeFields& t) {
  if (t.class_name().starts_with("Llama4")) return tree_llama4(t);
  constexpr std::int64_t kTile = 448;
  static constexpr auto kPublished = std::to_array<PublishedHeads>({{1024, 16}, {3200, 25}});
  const std::string cut = "vision_tower.embeddings.patch_embeddings.projection";
  const std::string block = "vision_tower.encoder.layer.0.";
  const std::int64_t width = t.value(cut, "out_channels").value_or(0);
  t.open("vision_config");
  t.size("hidden_size", cut, "out_channels");
  t.size("num_channels", cut, "in_channels");
  t.size("patch_size", cut, "kernel_size");
  t.set("image_size", kTile);
  t.count("num_hidden_layers", "vision_tower.encoder.layer");
  t.size("intermediate_size", block + "mlp.fc1", "out_features");
  t.activation("hidden_act", block + "mlp.activation_fn");
  t.heads_of_width({.published = kPublished}, width);
  t.flag("attention_bias", block + "attention.q_proj");
  t.set_flag("use_qk_norm", t.value(block + "attention.q_norm", "normalized_shape").has_value());
  t.set_string("norm_type", t.class_of(block + "layernorm_before") == "LayerNorm" ? "layer_norm" : "rms_norm");
  t.set_flag("use_mean_pooling", !t.value("vision_tower.layernorm", "normalized_shape").has_value());
  t.close();
  t.assume("tiles of 448 x 448 pixels, as published models have");
  t.activation("projector_hidden_act", "multi_modal_projector.act");
  tree_text(t, {.type = "qwen2"});
}

inline constexpr Architecture kArchitecture = {.name = "internvl",
                                               .model_types = names<"internvl", "llama4", "interns1", "qianfan_ocr">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .holds_text_model = true};

}  // namespace internvl

}  // namespace gpumem::architectures
