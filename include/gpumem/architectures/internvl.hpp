// InternVL 2.5 to 3.5 as transformers has them: up to twelve tiles and the whole picture, a tower with layer scale,
// four patches side by side, two linear layers, and any text model. Source: transformers 4.57,
// models/internvl/modeling_internvl.py, got_ocr2/image_processing_got_ocr2.py.
#pragma once

#include <array>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/vision_language.hpp"

namespace gpumem::architectures {

namespace internvl_detail {

inline constexpr std::array<std::string_view, 1> kModelTypes = {"internvl"};

struct Model {
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
  DecoderSizes& s = m.sizes;
  s.width = config.size_or({"hidden_size"}, 1024);
  s.inner = config.size_or({"intermediate_size"}, 4096);
  s.layers = config.has("num_hidden_layers") ? config.layers({"num_hidden_layers"}) : 24;
  s.heads = config.size_or({"num_attention_heads"}, 16);
  s.activation = config.text({"hidden_act"}, "gelu");
  s.attention_dropout = config.number({"attention_dropout"}, 0.0);
  m.dropout = config.number({"hidden_dropout_prob"}, 0.0);
  m.side = square_of(config, "image_size", 448);
  m.patch = square_of(config, "patch_size", 14);
  m.channels = config.size_or({"num_channels"}, 3);
  m.bias = config.flag("attention_bias", false);
  m.normed_heads = config.flag("use_qk_norm", false);
  m.squares = config.text({"norm_type"}, "layer_norm") == "rms_norm";
  m.normed_behind = !config.flag("use_mean_pooling", true);
  m.places = config.flag("use_absolute_position_embeddings", true);
  m.mask_token = config.flag("use_mask_token", false);
  config.ignore({"layer_scale_init_value", "projection_dropout"});
  if (s.width % s.heads != 0) config.fail("does not divide hidden_size", "num_attention_heads");
  if (m.side < m.patch) config.fail("is smaller than patch_size", "image_size");
}

inline Model read(ConfigFields& config) {
  Model m;
  if (!config.has("vision_config")) config.complete(R"({"vision_config": {}})");
  if (ConfigFields* tower = config.part("vision_config")) read_tower(*tower, m);
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
  const Tensor mixed =
      attend(f, {query, key, heads("v_proj", "")}, {.dropout = m.sizes.attention_dropout, .copies = false});
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
    {
      const InModule encoder(f, "encoder", "InternVLVisionEncoder");
      hidden = stack(f, "layer", "InternVLVisionLayer", m.sizes.layers, hidden,
                     [&](Tensor x, std::int64_t) { return block(f, m, x); });
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

inline void write(ConfigFields& config, Head head, Forward& f) {
  constexpr std::int64_t kMostTiles = 12;
  const Pictures pictures = pictures_of(f);
  Model model = read(config);
  ConfigFields* text = text_fields(config, "qwen2");
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

}  // namespace internvl_detail

[[nodiscard]] inline const Architecture& internvl() {
  static constexpr Architecture kArchitecture = {
      .name = "internvl", .model_types = internvl_detail::kModelTypes, .write = internvl_detail::write};
  return kArchitecture;
}

}  // namespace gpumem::architectures
