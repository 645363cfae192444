// GLM-4.1V, GLM-4.5V, GLM-4.6V and GLM-OCR: images of any size, cut into patches of two frames each, four of which a
// convolution makes one token; a merger with a gate; and GLM-4 or GLM-4.5 as the text model. All images of a batch are
// one sequence of patches; here each image is a row of its own, which takes as much, as attention goes image by image.
// Source: transformers 4.57, models/glm4v/modeling_glm4v.py, image_processing_glm4v.py, video_processing_glm4v.py;
// models/glm4v_moe/modular_glm4v_moe.py; 5.16, models/glm46v, models/glm_ocr/modular_glm_ocr.py.
#pragma once

#include <array>
#include <cmath>
#include <optional>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/image_tokens.hpp"
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
  if (m.merge > 8 || m.patch > 64 || m.temporal > 8) config.fail("has patches larger than gpumem takes", "patch_size");
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

}  // namespace gpumem::architectures
