// GLM-4.1V, GLM-4.5V, GLM-4.6V and GLM-OCR: images of any size, cut into patches of two frames each, four of which a
// convolution makes one token; a merger with a gate; and GLM-4 or GLM-4.5 as the text model. All images of a batch are
// one sequence of patches; here each image is a row of its own, which takes as much, as attention goes image by image.
// Source: transformers 4.57, models/glm4v/modeling_glm4v.py, image_processing_glm4v.py, video_processing_glm4v.py;
// models/glm4v_moe/modular_glm4v_moe.py; 5.16, models/glm46v, models/glm_ocr/modular_glm_ocr.py.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/image_tokens.hpp"
#include "gpumem/architectures/image_towers.hpp"
#include "gpumem/architectures/vision_language.hpp"

namespace gpumem::architectures {

namespace glm4v {

struct Model {
  std::string_view prefix = "Glm4v";  ///< of its class names
  std::string_view text_type = "glm4v_text";
  DecoderSizes sizes;  ///< of the tower; `inner` is that of its blocks
  std::int64_t merger_inner = 13696;
  std::int64_t side = 336;  ///< of the table of positions, in pixels
  std::int64_t channels = 3;
  std::int64_t patch = 14;
  std::int64_t temporal = 2;
  std::int64_t merge = 2;
  std::int64_t out = 4096;
  bool bias = false;
  bool reads_text = false;  ///< GLM-OCR: no table of positions, norms of queries and keys, biases

  [[nodiscard]] std::string named(std::string_view part) const { return std::string(prefix).append(part); }
  [[nodiscard]] std::int64_t places() const { return (side / patch) * (side / patch); }
};

inline Model read(ConfigFields& whole) {
  Model m;
  const std::string_view type = whole.text({"model_type"}, "glm4v");
  m.reads_text = type == "glm_ocr";
  if (type == "glm4v_moe") {
    m.prefix = "Glm4vMoe";
    m.text_type = "glm4v_moe_text";
  } else if (m.reads_text) {
    m.prefix = "GlmOcr";
    m.text_type = "glm_ocr_text";
  }
  ConfigFields* fields = vision_fields(whole);
  if (fields == nullptr) return m;
  ConfigFields& config = *fields;
  DecoderSizes& s = m.sizes;
  s.layers = config.layers_or("depth", 24);
  s.width = config.size_or({"hidden_size"}, m.reads_text ? 1024 : 1536);
  s.heads = config.size_or({"num_heads"}, m.reads_text ? 16 : 12);
  s.activation = config.text({"hidden_act"}, "silu");
  s.attention_dropout = config.number({"attention_dropout"}, 0.0);
  m.out = config.size_or({"out_hidden_size"}, m.reads_text ? 1536 : 4096);
  const std::int64_t inner = config.size_or({"intermediate_size"}, m.reads_text ? 4096 : 13696);
  s.inner = m.reads_text ? inner : m.out;
  m.side = config.size_or({"image_size"}, 336);
  m.channels = config.size_or({"in_channels"}, 3);
  m.patch = config.size_or({"patch_size"}, 14);
  m.temporal = config.size_or({"temporal_patch_size"}, 2);
  m.merge = config.size_or({"spatial_merge_size"}, 2);
  m.bias = config.flag("attention_bias", m.reads_text);
  m.merger_inner = m.reads_text ? m.out * m.channels : inner;
  config.ignore({"model_type", "hidden_dropout_prob"});
  if (s.width % (2 * s.heads) != 0) config.fail("does not divide the tower's width", "num_heads");
  check_patches(config, m.patch, m.merge, m.temporal);
  if (m.side < m.patch || m.side > model::Images::kLargestSide) config.fail("is no size of a table", "image_size");
  return m;
}

/// Rows and columns of patches of one image, or of all pairs of frames of a video. 0: no processor reads such sides.
inline std::int64_t patches_of(const Model& m, const Pictures& pictures) {
  namespace d = image_rules_detail;
  constexpr std::int64_t kLeast = 12'544;
  constexpr std::int64_t kMostOfImage = 9'633'792;
  constexpr std::int64_t kMostOfVideo = 47'040'000;
  const bool video = pictures.frames > 0;
  const std::int64_t frames = video ? d::ceil_div(pictures.frames, m.temporal) * m.temporal : m.temporal;
  const PixelBounds bounds = {
      .factor = m.patch * m.merge, .least = kLeast, .most = video ? kMostOfVideo : kMostOfImage, .frames = frames};
  PictureSize size = pictures.size;
  const std::int64_t shorter = std::min(size.width, size.height);
  if (shorter < bounds.factor) {
    const double scale = d::real(bounds.factor) / d::real(shorter);
    size = {d::whole(d::real(size.width) * scale), d::whole(d::real(size.height) * scale)};
  }
  const auto made = smart_resize(size, bounds);
  if (!made) return 0;
  return frames / m.temporal * (made->width / m.patch) * (made->height / m.patch);
}

inline Tensor norm(Forward& f, const Model& m, std::string_view name, Tensor input) {
  return f.rms_norm(name, input, m.sizes.width, m.named("RMSNorm"));
}

inline Tensor attention(Forward& f, const Model& m, Tensor input, const Rotary& rotary) {
  const InModule inside(f, "attn", m.named("VisionAttention"));
  const std::int64_t width = m.sizes.width;
  const Tensor packed = f.linear("qkv", input, width, 3 * width, {.bias = m.bias});
  const std::vector<Tensor> parts = f.split(packed, 2, {width, width, width});
  const auto turned = [&](Tensor part, std::string_view normed) {
    Tensor heads = split_heads(f, part, rotary.width);
    if (m.reads_text) heads = f.rms_norm(normed, heads, rotary.width, m.named("RMSNorm"));
    return f.as_type_of(rotate(f, f.to(heads, "float32"), rotary, rotary.width), heads);
  };
  const Tensor query = turned(parts[0], "q_norm");
  const Tensor key = turned(parts[1], "k_norm");
  const Tensor mixed = attend(f, {query, key, split_heads(f, parts[2], rotary.width)},
                              {.dropout = m.sizes.attention_dropout, .copies = false, .causal = false});
  // torch.cat of what each image gives.
  return f.linear("proj", f.call("clone", {mixed}), width, width, {.bias = m.reads_text && m.bias});
}

inline Tensor block(Forward& f, const Model& m, Tensor input, const Rotary& rotary) {
  const Tensor attended = f.add(input, attention(f, m, norm(f, m, "norm1", input), rotary));
  const Tensor again = norm(f, m, "norm2", attended);
  return f.add(attended, gated_feed_forward(f, m.sizes, again, m.named("VisionMlp"), m.reads_text && m.bias));
}

inline Tensor patches_in(Forward& f, const Model& m, std::int64_t images, std::int64_t patches) {
  const std::int64_t area = m.channels * m.temporal * m.patch * m.patch;
  const Tensor rows = f.rows_input("pixel_values", images * patches, {area});
  const InModule inside(f, "patch_embed", m.named("VisionPatchEmbed"));
  const Sizes kernel = {m.temporal, m.patch, m.patch};
  const Tensor cut = f.layer(
      "proj", "Conv3d", "conv3d", {f.unflatten(rows, 1, {m.channels, m.temporal, m.patch, m.patch})},
      {{"in_channels", m.channels}, {"out_channels", m.sizes.width}, {"kernel_size", kernel}, {"stride", kernel}});
  return f.unflatten(f.flatten(cut, 1, 4), 0, {-1, patches});
}

/// A table of positions at each patch's place, in float32, then in the model's type.
inline Tensor placed(Forward& f, const Model& m, std::int64_t images, std::int64_t patches, Tensor hidden) {
  const InModule inside(f, "embeddings", m.named("VisionEmbeddings"));
  const Tensor places = f.rows_input("patch_places", images, {patches});
  const Tensor sampled = f.to(f.embedding("position_embedding", places, m.places(), m.sizes.width), "float32");
  return f.add(hidden, f.as_type_of(sampled, hidden));
}

/// Four patches become one token, by a convolution.
inline Tensor downsampled(Forward& f, const Model& m, Tensor hidden, std::int64_t patches) {
  const std::int64_t square = m.merge * m.merge;
  const Tensor squares = f.flatten(f.unflatten(hidden, 1, {patches / square, square}), 0, 1);
  const Tensor images = f.unflatten(f.permute(squares, {0, 2, 1}), 2, {m.merge, m.merge});
  const Tensor made = f.layer("downsample", "Conv2d", "conv2d", {images},
                              {{"in_channels", m.sizes.width},
                               {"out_channels", m.out},
                               {"kernel_size", Sizes(2, m.merge)},
                               {"stride", Sizes(2, m.merge)}});
  return f.unflatten(f.flatten(made, 1, 3), 0, {-1, patches / square});
}

inline Tensor merger(Forward& f, const Model& m, Tensor hidden) {
  const InModule inside(f, "merger", m.named("VisionPatchMerger"));
  const Linear plain = {.bias = false};
  const Tensor projected = f.linear("proj", hidden, m.out, m.out, plain);
  const Tensor open = f.activation("act1", f.layer_norm("post_projection_norm", projected, m.out), "gelu");
  const Tensor gate =
      f.activation("act_fn", f.linear("gate_proj", open, m.out, m.merger_inner, plain), m.sizes.activation);
  const Tensor up = f.linear("up_proj", open, m.out, m.merger_inner, plain);
  return f.linear("down_proj", f.multiply(gate, up), m.merger_inner, m.out, plain);
}

inline Tensor tower(Forward& f, const Model& m, std::int64_t images, std::int64_t patches) {
  const InModule inside(f, "visual", m.named("VisionModel"));
  Tensor hidden = patches_in(f, m, images, patches);
  if (!m.reads_text) hidden = norm(f, m, "post_conv_layernorm", hidden);
  const std::int64_t each = m.sizes.width / m.sizes.heads;
  const auto table = [&] {
    return f.call("rotary_table", {hidden}, {{"width", each}, {"padded", true}, {"dtype", std::string("float32")}});
  };
  const Tensor cosines = table();
  const Rotary rotary = {cosines, table(), each, false};
  if (!m.reads_text) hidden = placed(f, m, images, patches, hidden);
  hidden = stack(f, "blocks", m.named("VisionBlock"), m.sizes.layers, hidden,
                 [&](Tensor x, std::int64_t) { return block(f, m, x, rotary); });
  const Tensor merged = merger(f, m, downsampled(f, m, norm(f, m, "post_layernorm", hidden), patches));
  return f.call("clone", {merged});  // torch.cat of the images
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Pictures pictures = pictures_of(f);
  const Model model = read(config);
  ConfigFields* text = text_fields(config, model.text_type);
  config.ignore({"image_start_token_id", "image_end_token_id", "video_start_token_id", "video_end_token_id"});
  if (text == nullptr || !config.status()) return;
  const std::int64_t images = std::max<std::int64_t>(pictures.count, 1);
  const std::int64_t patches = patches_of(model, pictures);
  if (patches == 0) return f.fail("reads no image whose sides are more than 200 to 1; give another `image`");
  tell_pictures(f, pictures, images * patches / (model.merge * model.merge));
  TextPart part = inner_text(model.named("Model"), model.named("TextModel"));
  part.positions = TextPart::Positions::by_section;
  write_text(f, *text, head, part, pictures, [&](Forward& to) { return tower(to, model, images, patches); });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Glm4v", "glm4v", "model"},
                                                            {"Glm4vMoe", "glm4v_moe", "model"},
                                                            {"Glm46V", "glm46v", "model"},
                                                            {"GlmOcr", "glm_ocr", "model"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const bool reads_text = t.class_name().starts_with("GlmOcr");
  const bool mixes = t.class_name().starts_with("Glm4vMoe");
  const std::string cut = "visual.patch_embed.proj";
  const std::int64_t width = t.value(cut, "out_channels").value_or(0);
  t.open("vision_config");
  t.count("depth", "visual.blocks");
  t.size("hidden_size", cut, "out_channels");
  t.size("in_channels", cut, "in_channels");
  t.size("temporal_patch_size", cut, "kernel_size", 0);
  t.size("patch_size", cut, "kernel_size", 1);
  t.size("out_hidden_size", "visual.downsample", "out_channels");
  t.size("spatial_merge_size", "visual.downsample", "kernel_size");
  t.size("intermediate_size", reads_text ? "visual.blocks.0.mlp.gate_proj" : "visual.merger.gate_proj", "out_features");
  t.flag("attention_bias", "visual.blocks.0.attn.qkv");
  t.activation("hidden_act", "visual.merger.act_fn");
  t.heads_of_width({.usual_width = reads_text ? 64 : 128, .heads_field = "num_heads"}, width);
  const std::int64_t places = t.value("visual.embeddings.position_embedding", "num_embeddings").value_or(0);
  if (places > 0) t.set("image_size", TreeFields::square_side(places) * t.value(cut, "kernel_size", 1).value_or(1));
  t.close();
  tree_text(t, {.type = reads_text ? "glm_ocr_text" : mixes ? "glm4v_moe_text" : "glm4v_text"});
}

inline constexpr Architecture kArchitecture = {.name = "glm4v",
                                               .model_types = names<"glm4v", "glm4v_moe", "glm46v", "glm_ocr">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .holds_text_model = true};

}  // namespace glm4v

// Models that read documents: HunyuanOCR and GOT-OCR 2.
//
// HunyuanOCR: SigLIP's blocks on images of any size, all of a batch one sequence of patches; here a row of its own
// each, which takes as much, as attention goes image by image. A convolution makes one token of four patches, another
// one widens them, and a learned token ends each row; and Hunyuan's dense model. Source: transformers 5.16,
// models/hunyuan_vl/modular_hunyuan_vl.py.

namespace hunyuan_vl {

struct Model {
  DecoderSizes sizes;           ///< of the tower
  std::int64_t longest = 2048;  ///< side of the images that the table of positions is for
  std::int64_t shortest = 512;
  std::int64_t channels = 3;
  std::int64_t patch = 16;
  std::int64_t merge = 2;
  std::int64_t width = 1;  ///< of the text model
};

inline Model read(ConfigFields& whole) {
  Model m;
  ConfigFields* config = vision_fields(whole);
  if (config == nullptr) return m;
  m.sizes = encoder_sizes(*config, {.width = 1152, .inner = 4304, .layers = 27, .heads = 16, .activation = "gelu"});
  m.longest = config->size_or({"max_image_size"}, 2048);
  m.shortest = config->size_or({"min_image_size"}, 512);
  m.channels = config->size_or({"num_channels"}, 3);
  m.patch = config->size_or({"patch_size"}, 16);
  m.merge = config->size_or({"spatial_merge_size"}, 2);
  if (config->size_or({"temporal_patch_size"}, 1) != 1) config->fail("is 1 in this model", "temporal_patch_size");
  if (config->size_or({"num_key_value_heads"}, m.sizes.heads) != m.sizes.heads) {
    config->fail("is the number of heads in this model", "num_key_value_heads");
  }
  config->ignore({"model_type", "out_hidden_size", "text_hidden_size", "img_max_token_num", "max_vit_seq_len",
                  "interpolate_mode", "hidden_dropout", "cat_extra_token", "add_patchemb_bias", "video_max_image_size",
                  "video_min_image_size", "anyres_vit_max_image_size", "anyres_vit_two_views", "remove_prenorm",
                  "anyres_pooling_size", "adaptor_patch_size", "resize_resolution"});
  check_patches(*config, m.patch, m.merge);
  if (m.longest < m.patch || m.longest > model::Images::kLargestSide)
    config->fail("is no size of a table", "max_image_size");
  if (m.shortest > m.longest) config->fail("is more than max_image_size", "min_image_size");
  return m;
}

/// Rows and columns of patches of a picture; nothing: no processor reads such sides.
inline std::optional<TileGrid> grid_of(const Model& m, const PictureSize& size) {
  const PixelBounds bounds = {
      .factor = m.patch * m.merge, .least = m.shortest * m.shortest, .most = m.longest * m.longest};
  const auto made = smart_resize(size, bounds);
  if (!made) return std::nullopt;
  return TileGrid{made->height / m.patch, made->width / m.patch};
}

inline Tensor embedded(Forward& f, const Model& m, std::int64_t images, const TileGrid& grid) {
  const InModule inside(f, "embeddings", "HunYuanVLVisionPatchEmbed");
  const std::int64_t width = m.sizes.width;
  const Tensor pixels = f.rows_input("pixel_values", images * grid.tiles(), {m.channels, m.patch, m.patch});
  const Tensor cut =
      cut_patches(f, "patch_embedding", pixels, {.channels = m.channels, .width = width, .patch = m.patch, .step = {}});
  const Tensor rows = f.unflatten(f.flatten(cut, 1, 2), 0, {-1, grid.tiles()});
  // The table without its first row, in float32, interpolated to the picture's rows and columns.
  const std::int64_t side = m.longest / m.patch;
  const Tensor table =
      f.slice(f.parameter("position_embedding.weight", {side * side + 1, width}), 0, 1, Forward::kRest);
  const Tensor square = f.unflatten(f.permute(f.unflatten(table, 0, {side, side}), {2, 0, 1}), 0, {1, width});
  const Tensor resized = f.call("upsample", {f.to(square, "float32")}, {{"size", Sizes{grid.rows, grid.columns}}});
  return f.add(rows, f.as_type_of(f.permute(f.flatten(resized, 2, 3), {0, 2, 1}), rows));
}

inline Tensor block(Forward& f, const Model& m, Tensor input) {
  const std::int64_t width = m.sizes.width;
  const Tensor normed = f.layer_norm("layer_norm1", input, width);
  Tensor mixed = 0;
  {
    const InModule inside(f, "self_attn", "HunYuanVLVisionAttention");
    const auto heads = [&](std::string_view name) {
      return split_heads(f, f.linear(name, normed, width, width), width / m.sizes.heads);
    };
    const Tensor query = heads("q_proj");
    const Tensor key = heads("k_proj");
    const Tensor all = attend(f, {query, key, heads("v_proj")}, {.copies = false, .causal = false});
    mixed = f.linear("o_proj", f.call("clone", {all}), width, width);  // torch.cat of what each image gives
  }
  const Tensor attended = f.add(input, mixed);
  const Tensor again = f.layer_norm("layer_norm2", attended, width);
  return f.add(attended, feed_forward(f, m.sizes, again, {.class_name = "HunYuanVLVisionMLP"}));
}

/// One token of each square of patches, one more behind each row, and one at either end.
inline Tensor merged(Forward& f, const Model& m, std::int64_t images, const TileGrid& grid, Tensor hidden) {
  const InModule inside(f, "patch_merger", "HunYuanVLVisionPatchMerger");
  const std::int64_t width = m.sizes.width;
  const TileGrid left = {grid.rows / m.merge, grid.columns / m.merge};
  const Tensor normed = f.rms_norm("before_rms", hidden, width, "HunYuanVLRMSNorm");
  const Tensor image = f.call("clone", {f.unflatten(f.permute(normed, {0, 2, 1}), 2, {grid.rows, grid.columns})});
  const auto convolved = [&](std::string_view name, Tensor of, std::int64_t in, std::int64_t out, std::int64_t side) {
    return f.layer(
        name, "Conv2d", "conv2d", {of},
        {{"in_channels", in}, {"out_channels", out}, {"kernel_size", Sizes(2, side)}, {"stride", Sizes(2, side)}});
  };
  const Tensor open =
      f.activation("proj_act", convolved("proj_conv", image, width, 2 * width, m.merge), m.sizes.activation);
  const Tensor wide = convolved("proj_out", open, 2 * width, 4 * width, 1);
  const auto expanded = [&](std::string_view name, const Sizes& shape, std::vector<core::Dim> each) {
    each.insert(each.begin(), core::Dim::batch(images));
    return f.call("expand", {f.parameter(name, shape)}, {{"shape", each}});
  };
  using core::Dim;
  const Tensor ends =
      expanded("image_newline", {1, 4 * width, 1, 1}, {Dim::fixed(4 * width), Dim::fixed(left.rows), Dim::fixed(1)});
  const Tensor lines = f.permute(f.flatten(f.concatenate({wide, ends}, 3), 2, 3), {0, 2, 1});
  const Tensor made = f.linear("mlp", lines, 4 * width, m.width);
  const Tensor begin = expanded("image_begin", {1, 1, m.width}, {Dim::fixed(1), Dim::fixed(m.width)});
  const Tensor end = expanded("image_end", {1, 1, m.width}, {Dim::fixed(1), Dim::fixed(m.width)});
  (void)f.parameter("image_sep", {m.width}, true);
  return f.rms_norm("after_rms", f.concatenate({begin, made, end}, 1), m.width, "HunYuanVLRMSNorm");
}

inline Tensor tower(Forward& f, const Model& m, std::int64_t images, const TileGrid& grid) {
  const InModule inside(f, "visual", "HunYuanVLVisionTransformer");
  const Tensor hidden = stack(f, "layers", "HunYuanVLVisionBlock", m.sizes.layers, embedded(f, m, images, grid),
                              [&](Tensor x, std::int64_t) { return block(f, m, x); });
  return f.call("clone", {merged(f, m, images, grid, hidden)});  // torch.cat of the images
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Pictures pictures = pictures_of(f);
  Model model = read(config);
  ConfigFields* text = text_fields(config, "hunyuan_vl_text");
  config.ignore({"image_start_token_id", "image_end_token_id", "image_newline_token_id", "im_start_id", "im_end_id",
                 "im_newline_id", "image_token_id", "text_start_id", "text_end_id"});
  if (text == nullptr) return;
  // The names that Tencent's own configs have.
  if (const std::int64_t each = text->size_or({"attention_head_dim"}, 0); each > 0 && !text->has("head_dim")) {
    text->replace(R"({"head_dim": )" + std::to_string(each) + "}");
  }
  if (text->size_or({"num_experts"}, 1) != 1) text->fail("is 1 in this model", "num_experts");
  text->ignore({"org_vocab_size",
                "eod_token_id",
                "sep_token_id",
                "pad_id",
                "use_cla",
                "cla_share_factor",
                "norm_type",
                "use_qk_norm",
                "routed_scaling_factor",
                "mlp_bias",
                "dense_list",
                "q_lora_rank",
                "kv_lora_rank",
                "qk_rope_head_dim",
                "qk_nope_head_dim",
                "v_head_dim",
                "group_limited_greedy",
                "im_start_id",
                "im_end_id",
                "im_newline_id",
                "text_start_id",
                "text_end_id"});
  if (!config.status()) return;
  model.width = text->size({"hidden_size"});
  const std::optional<TileGrid> grid = grid_of(model, pictures.size);
  if (!grid) return f.fail("reads no image whose sides are more than 200 to 1; give another `image`");
  const std::int64_t tokens = grid->rows / model.merge * (grid->columns / model.merge + 1) + 2;
  tell_pictures(f, pictures, pictures.seen() * tokens);
  TextPart part = inner_text("HunYuanVLModel", "HunYuanVLTextModel");
  part.positions = TextPart::Positions::by_section;
  write_text(f, *text, head, part, pictures, [&](Forward& to) { return tower(to, model, pictures.seen(), *grid); });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"HunYuanVL", "hunyuan_vl", "model", kAlwaysTied}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  static constexpr auto kPublished = std::to_array<PublishedHeads>({{1152, 16}});
  const std::string cut = "visual.embeddings.patch_embedding";
  const std::int64_t width = t.value(cut, "out_channels").value_or(1);
  const std::int64_t patch = t.value(cut, "kernel_size").value_or(1);
  t.open("vision_config");
  t.size("hidden_size", cut, "out_channels");
  t.size("num_channels", cut, "in_channels");
  t.size("patch_size", cut, "kernel_size");
  t.count("num_hidden_layers", "visual.layers");
  t.size("intermediate_size", "visual.layers.0.mlp.fc1", "out_features");
  t.size("spatial_merge_size", "visual.patch_merger.proj_conv", "kernel_size");
  const std::int64_t places = t.value("visual.embeddings.position_embedding", "num_embeddings").value_or(1);
  t.set("max_image_size", std::max<std::int64_t>(TreeFields::square_side(places - 1) * patch, 1));
  t.heads_of_width({.published = kPublished, .usual_width = 72}, width);
  t.close();
  tree_text(t, {.type = "hunyuan_vl_text"});
}

inline constexpr Architecture kArchitecture = {.name = "hunyuan_vl",
                                               .model_types = names<"hunyuan_vl">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .holds_text_model = true};

}  // namespace hunyuan_vl

// GOT-OCR 2: SAM's encoder of one image of 1024 x 1024 pixels, whatever the picture's size, two more convolutions, a
// linear layer, and Qwen2. Source: transformers 4.57 and 5.16, models/got_ocr2/modular_got_ocr2.py.

namespace got_ocr {

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Pictures pictures = pictures_of(f);
  sam::Encoder encoder;
  if (ConfigFields* tower = vision_fields(config)) encoder = sam::read(*tower, 1024);
  ConfigFields* text = text_fields(config, "qwen2", "text_config", R"({"vocab_size": 151860, "hidden_size": 1024,
      "intermediate_size": 2816, "num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": 16,
      "tie_word_embeddings": true})");
  if (text == nullptr || !config.status()) return;
  const std::int64_t width = text->size({"hidden_size"});
  config.ignore({"image_seq_length"});
  const std::int64_t side = encoder.features(encoder.side);
  tell_pictures(f, pictures, pictures.seen() * side * side);
  write_text(f, *text, head, inner_text("GotOcr2Model", "Qwen2Model"), pictures, [&](Forward& to) {
    Tensor image = 0;
    {
      const InModule inside(to, "vision_tower", "GotOcr2VisionEncoder");
      image = sam::patch_images(to, encoder, pictures.seen(), encoder.side);
    }
    const InModule inside(to, "multi_modal_projector", "GotOcr2MultiModalProjector");
    image = sam::convolved(to, "conv_upsampler1", image, {encoder.neck, 2 * encoder.neck}, 3, 2);
    image = sam::convolved(to, "conv_upsampler2", image, {2 * encoder.neck, width}, 3, 2);
    const Tensor features = to.permute(to.flatten(image, 2, 3), {0, 2, 1});
    const Tensor made = to.linear("multimodal_projector", features, width, width);
    to.hand_out(made);  // image_hidden_states
    return made;
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"GotOcr2", "got_ocr2", "model"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.open("vision_config");
  t.size("hidden_size", "vision_tower.patch_embed.projection", "out_channels");
  t.count("num_hidden_layers", "vision_tower.layers");
  t.close();
  t.assume("images of 1024 pixels and windows as the published model has");
  tree_text(t, {.type = "qwen2"});
}

inline constexpr Architecture kArchitecture = {.name = "got_ocr",
                                               .model_types = names<"got_ocr2">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .holds_text_model = true};

}  // namespace got_ocr

}  // namespace gpumem::architectures
