// InternVL 2.5 to 3.5 as transformers has them: up to twelve tiles and the whole picture, a tower with layer scale,
// four patches side by side, two linear layers, and any text model. Source: transformers 4.57,
// models/internvl/modeling_internvl.py, got_ocr2/image_processing_got_ocr2.py.
#pragma once

#include <array>
#include <cmath>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/vision_language.hpp"

namespace gpumem::architectures {

namespace internvl {

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
  m.sizes = encoder_sizes(config, {.width = 1024, .inner = 4096, .layers = 24, .heads = 16, .activation = "gelu"});
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
  if (m.side < m.patch) config.fail("is smaller than patch_size", "image_size");
}

inline Model read(ConfigFields& config) {
  Model m;
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

inline constexpr Architecture kArchitecture = {
    .name = "internvl", .model_types = names<"internvl", "llama4">, .write = write, .holds_text_model = true};

}  // namespace internvl

// Kimi-VL, Kimi K2.5 and Kimi K3: MoonViT, a tower for images of any size whose patches of a batch are one sequence,
// four patches side by side, two linear layers, and DeepSeek-V3 as the text model, or Kimi Linear. Source: the models'
// own code on HuggingFace, modeling_kimi_vl.py (MoonVitPretrainedModel, KimiVLMultiModalProjector),
// modeling_kimi_k25.py, modeling_kimi_k3.py (PatchMergerMLPV2); image_processing_kimi_vl.py: at most 4,096 patches an
// image of Kimi-VL, 16,384 of Kimi K2.5. A video's frames are pooled in fours in Kimi K2.5 and K3.

namespace moonvit {

inline constexpr std::int64_t kMerge = 2;
inline constexpr std::int64_t kPooledFrames = 4;

struct Model {
  bool large = false;            ///< Kimi K2.5 and K3
  bool rms_norms = false;        ///< K3: the projector's norm is behind it, and nothing has a bias
  DecoderSizes sizes;            ///< of the tower
  std::int64_t inner_heads = 1;  ///< the width of all heads
  std::int64_t patch = 14;
  std::int64_t rows = 64;  ///< of learned positions
  std::int64_t columns = 64;
  std::int64_t width = 1;  ///< of the text model
};

inline Model read(ConfigFields& config) {
  Model m;
  const std::string_view type = config.text({"model_type"}, "kimi_vl");
  m.large = type != "kimi_vl";
  m.rms_norms = type == "kimi_k3";
  ConfigFields* tower = vision_fields(config);
  if (tower == nullptr) return m;
  m.sizes.width = tower->size_or({"vt_hidden_size", "hidden_size"}, 1152);
  m.sizes.inner = tower->size_or({"vt_intermediate_size", "intermediate_size"}, 4304);
  m.sizes.layers = tower->has("vt_num_hidden_layers") ? tower->layers({"vt_num_hidden_layers"})
                   : tower->has("num_hidden_layers")  ? tower->layers({"num_hidden_layers"})
                                                      : 27;
  m.sizes.heads = tower->size_or({"vt_num_attention_heads", "num_attention_heads"}, 16);
  m.sizes.activation = "gelu_pytorch_tanh";
  m.inner_heads = tower->size_or({"qkv_hidden_size"}, m.sizes.width);
  m.patch = tower->size_or({"patch_size"}, 14);
  m.rows = tower->size_or({"init_pos_emb_height"}, 64);
  m.columns = tower->size_or({"init_pos_emb_width"}, 64);
  tower->ignore({"init_pos_emb_time", "merge_kernel_size", "merge_type", "mm_hidden_size", "mm_projector_type",
                 "pos_emb_type", "projector_hidden_act", "projector_ln_eps", "text_hidden_size", "video_attn_type",
                 "activation_func", "attn_bias", "linear_bias", "mlp_type", "norm_type", "patch_embed_proj_bias",
                 "pos_emb_interpolation_mode"});
  config.ignore({"use_unified_vision_chunk", "video_placeholder", "image_placeholder", "ignore_index",
                 "media_placeholder_token_id"});
  if (m.inner_heads % (2 * m.sizes.heads) != 0) tower->fail("does not divide the tower's width", "num_attention_heads");
  if (const core::JsonValue* merged = tower->find("merge_kernel_size"); merged != nullptr) {
    bool known = merged->is(core::JsonValue::Kind::list);
    if (known) {
      for (const core::JsonValue& side : merged->items()) known = known && side.is(2);
    }
    if (!known) tower->fail("must be [2, 2]", "merge_kernel_size");
  }
  if (m.patch > 64) tower->fail("is more than gpumem takes", "patch_size");
  return m;
}

/// Patches of one image: scaled down to the limit, then to a whole number of merged patches.
inline std::int64_t patches_of(const Model& m, const PictureSize& size) {
  const double limit = m.large ? 16384.0 : 4096.0;
  const auto step = static_cast<double>(m.patch);
  const double patches = static_cast<double>(size.width) / step * (static_cast<double>(size.height) / step);
  const double scale = patches > limit ? std::sqrt(limit / patches) : 1.0;
  const auto side = [&](std::int64_t length) {
    const double merged = std::ceil(std::floor(static_cast<double>(length) * scale) / (step * kMerge));
    return std::max<std::int64_t>(static_cast<std::int64_t>(merged), 1) * kMerge;
  };
  return side(size.width) * side(size.height);
}

inline Tensor norm(Forward& f, const Model& m, std::string_view name, Tensor input, std::int64_t width) {
  return m.rms_norms ? f.rms_norm(name, input, width, "RMSNorm") : f.layer_norm(name, input, width);
}

inline Tensor block(Forward& f, const Model& m, Tensor input, const Rotary& rotary) {
  const DecoderSizes& s = m.sizes;
  const std::int64_t all_heads = m.inner_heads;
  const std::int64_t each = all_heads / s.heads;
  const Linear linear = {.bias = !m.rms_norms};
  const Tensor all = f.linear("wqkv", norm(f, m, "norm0", input, s.width), s.width, 3 * all_heads, linear);
  const std::vector<Tensor> parts = f.split(all, 2, {all_heads, all_heads, all_heads});
  const auto turned = [&](Tensor part) {
    const Tensor heads = split_heads(f, part, each);
    return f.as_type_of(f.multiply(f.to(heads, "float32"), rotary.cosines), heads);  // a product of complex numbers
  };
  const Tensor query = turned(parts[0]);
  const Tensor key = turned(parts[1]);
  const Tensor mixed = attend(f, {query, key, split_heads(f, parts[2], each)}, {.copies = false, .causal = false});
  const Tensor attended = f.add(input, f.linear("wo", mixed, all_heads, s.width, linear));
  const Tensor again = norm(f, m, "norm1", attended, s.width);
  return f.add(
      attended,
      feed_forward(
          f, s, again,
          {.class_name = "MLP2", .widen = "fc0", .narrow = "fc1", .activation = "activation", .bias = !m.rms_norms}));
}

inline Tensor tower(Forward& f, const Model& m, std::int64_t images, std::int64_t patches) {
  const InModule inside(f, "vision_tower", "MoonVitPretrainedModel");
  const std::int64_t width = m.sizes.width;
  Tensor hidden = 0;
  {
    const InModule embeddings(f, "patch_embed", "MoonVisionPatchEmbed");
    constexpr std::int64_t kColours = 3;
    const Tensor rows = f.rows_input("pixel_values", images * patches, {kColours, m.patch, m.patch});
    const Tensor cut = f.layer("proj", "Conv2d", "conv2d", {rows},
                               {{"in_channels", kColours},
                                {"out_channels", width},
                                {"kernel_size", Sizes(2, m.patch)},
                                {"stride", Sizes(2, m.patch)},
                                {"bias", !m.rms_norms}});
    hidden = f.unflatten(f.flatten(cut, 1, 3), 0, {-1, patches});
    // Interpolated to each image's rows and columns.
    const Tensor places =
        f.unflatten(f.permute(f.parameter("pos_emb.weight", {m.rows, m.columns, width}), {2, 0, 1}), 0, {1, width});
    const Tensor resized = f.call("upsample", {places}, {{"size", Sizes{patches / kMerge, kMerge}}});
    hidden = f.add(hidden, f.permute(f.flatten(resized, 2, 3), {0, 2, 1}));
  }
  const std::int64_t each = m.inner_heads / m.sizes.heads;
  const Tensor table =
      f.call("rotary_table", {hidden}, {{"width", each}, {"padded", true}, {"dtype", std::string("float32")}});
  const Rotary rotary = {table, table, each, false};
  const InModule encoder(f, "encoder", "MoonVitEncoder");
  hidden = stack(f, "blocks", "MoonVitEncoderLayer", m.sizes.layers, hidden,
                 [&](Tensor x, std::int64_t) { return block(f, m, x, rotary); });
  return norm(f, m, "final_layernorm", hidden, width);
}

inline Tensor features_of(Forward& f, const Model& m, const Pictures& pictures, std::int64_t patches) {
  Tensor hidden = tower(f, m, pictures.seen(), patches);
  const std::int64_t width = m.sizes.width;
  const std::int64_t wide = width * kMerge * kMerge;
  if (m.large && pictures.frames >= kPooledFrames && pictures.frames % kPooledFrames == 0) {
    hidden = f.call("mean", {f.unflatten(hidden, 0, {-1, kPooledFrames})}, {{"dim", std::int64_t{1}}});
  }
  const InModule inside(f, m.large ? "mm_projector" : "multi_modal_projector", "PatchMergerMLP");
  const Tensor normed = m.rms_norms ? hidden : f.layer_norm("pre_norm", hidden, width);
  const Tensor merged = f.unflatten(f.flatten(f.call("clone", {normed}), 1, 2), 1, {-1, wide});
  const Linear linear = {.bias = !m.rms_norms};
  const Tensor open =
      f.activation("act", f.linear(m.large ? "proj.0" : "linear_1", merged, wide, wide, linear), "gelu");
  const Tensor made = f.linear(m.large ? "proj.2" : "linear_2", open, wide, m.width, linear);
  return f.call("clone", {m.rms_norms ? f.rms_norm("post_norm", made, m.width, "RMSNorm") : made});
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Pictures pictures = pictures_of(f);
  Model model = read(config);
  ConfigFields* text = text_fields(config, "deepseek_v3");
  if (text == nullptr || !config.status()) return;
  if (!model.large) text->list_experts();  // transformers has Kimi K2.5 since 5.6, and no Kimi-VL
  model.width = text->size({"hidden_size"});
  const std::int64_t patches = patches_of(model, pictures.size);
  const bool pools = model.large && pictures.frames >= kPooledFrames && pictures.frames % kPooledFrames == 0;
  const std::int64_t tokens = pictures.seen() * patches / (kMerge * kMerge);
  tell_pictures(f, pictures, pools ? tokens / kPooledFrames : tokens);
  TextPart part = whole_text(model.rms_norms ? "KimiLinearForCausalLM" : "DeepseekV3ForCausalLM");
  write_text(f, *text, head, part, pictures, [&](Forward& to) { return features_of(to, model, pictures, patches); });
}

inline constexpr Architecture kArchitecture = {.name = "moonvit",
                                               .model_types = names<"kimi_vl", "kimi_k25", "kimi_k3">,
                                               .write = write,
                                               .holds_text_model = true};

}  // namespace moonvit

}  // namespace gpumem::architectures
