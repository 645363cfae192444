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

inline constexpr Architecture kArchitecture = {.name = "glm4v",
                                               .model_types = names<"glm4v", "glm4v_moe", "glm46v", "glm_ocr">,
                                               .write = write,
                                               .holds_text_model = true};

}  // namespace glm4v

// PaddleOCR-VL and MiniCPM-V 4.6: SigLIP's blocks on images of any size, all of a batch one sequence of patches; here a
// row of its own each, which takes as much, as attention goes image by image. Source: transformers 5.16,
// models/paddleocr_vl/modeling_paddleocr_vl.py, minicpmv4_6/modeling_minicpmv4_6.py and its image_processing; the
// bounds of pixels of PaddleOCR-VL's published preprocessor_config.json.

namespace packed_siglip {

struct Model {
  bool paddle = true;  ///< turns by positions, too
  DecoderSizes sizes;
  std::int64_t side = 384;  ///< of the table of positions, in pixels
  std::int64_t channels = 3;
  std::int64_t patch = 14;
  std::int64_t merge = 2;
  std::int64_t merged_behind = -1;  ///< MiniCPM-V: the block behind which four patches become one; -1: none does
  std::int64_t rounds = 1;          ///< of its merger
  std::int64_t width = 1;           ///< of the text model

  [[nodiscard]] std::string named(std::string_view part) const {
    return std::string(paddle ? "PaddleOCRVision" : "MiniCPMV4_6Vision").append(part);
  }
  /// Patches of a side that become one token.
  [[nodiscard]] std::int64_t step() const {
    std::int64_t step = merged_behind >= 0 ? merge : 1;
    for (std::int64_t round = 0; round < rounds; ++round) step *= merge;
    return step;
  }
};

inline void read_minicpm(ConfigFields& whole, ConfigFields& tower, Model& m) {
  const std::int64_t behind = whole.count_or("insert_layer_id", 6);
  if (behind >= m.sizes.layers) whole.fail("names no block of the tower", "insert_layer_id");
  m.rounds = whole.size_or({"merger_times"}, 1);
  if (m.rounds > 4) whole.fail("is more than gpumem takes", "merger_times");
  const std::string_view mode = whole.text({"downsample_mode"}, "16x");
  if (mode != "16x" && mode != "4x") whole.fail("must be 16x or 4x", "downsample_mode");
  m.merged_behind = mode == "16x" ? behind : -1;
  for (const auto& [fields, name] : {std::pair{&tower, "window_kernel_size"}, std::pair{&whole, "merge_kernel_size"}}) {
    const core::JsonValue* sides = fields->find(name);
    bool known = sides == nullptr || sides->is(core::JsonValue::Kind::list);
    if (known && sides != nullptr) {
      for (const core::JsonValue& side : sides->items()) known = known && side.is(2);
    }
    if (!known) fields->fail("must be [2, 2]", name);
  }
  whole.ignore({"drop_vision_last_layer", "image_size", "patch_size"});
  tower.ignore({"insert_layer_id"});
}

inline Model read(ConfigFields& whole) {
  Model m;
  m.paddle = whole.text({"model_type"}, "paddleocr_vl") == "paddleocr_vl";
  ConfigFields* tower = vision_fields(whole);
  if (tower == nullptr) return m;
  EncoderDefaults usual = {.width = 768, .inner = 3072, .layers = 12, .heads = 12, .activation = "gelu_pytorch_tanh"};
  if (m.paddle) usual = {.width = 1152, .inner = 4304, .layers = 27, .heads = 16, .activation = "gelu_pytorch_tanh"};
  m.sizes = encoder_sizes(*tower, usual);
  m.side = tower->size_or({"image_size"}, m.paddle ? 384 : 224);
  m.channels = tower->size_or({"num_channels"}, 3);
  m.patch = tower->size_or({"patch_size"}, m.paddle ? 14 : 16);
  if (m.paddle) m.merge = tower->size_or({"spatial_merge_size"}, 2);
  tower->ignore({"model_type", "temporal_patch_size", "tokens_per_second", "pad_token_id"});
  if (!m.paddle) read_minicpm(whole, *tower, m);
  if (m.sizes.width % (2 * m.sizes.heads) != 0) tower->fail("does not divide hidden_size", "num_attention_heads");
  if (m.merge > 8 || m.patch > 64) tower->fail("has patches larger than gpumem takes", "patch_size");
  if (m.side < m.patch || m.side > model::Images::kLargestSide) tower->fail("is no size of a table", "image_size");
  return m;
}

/// find_best_resize(): about as many pixels as a square of this side has, each side a multiple of `step`.
inline PictureSize resized(double width, double height, std::int64_t side, std::int64_t step, bool grows) {
  namespace d = image_rules_detail;
  if (grows || width * height > d::real(side * side)) {
    const double shape = width / height;
    height = d::real(d::whole(d::real(side) / std::sqrt(shape)));
    width = d::real(d::whole(height * shape));
  }
  const auto whole = [&](double length) { return std::max(d::rounded(length / d::real(step)) * step, step); };
  return {whole(width), whole(height)};
}

/// Patches of one picture: MiniCPM-V's as a whole and, of one that is larger than a slice, of up to nine slices. 0: no
/// processor reads such sides.
inline std::int64_t patches_of(const Model& m, PictureSize size) {
  namespace d = image_rules_detail;
  const auto patches = [&](const PictureSize& made) { return made.width / m.patch * (made.height / m.patch); };
  if (m.paddle) {
    const PixelBounds bounds = {.factor = m.patch * m.merge, .least = 147'384, .most = 2'822'400};
    if (size.height < bounds.factor) {
      size = {d::rounded(d::real(size.width * bounds.factor) / d::real(size.height)), bounds.factor};
    }
    if (size.width < bounds.factor) {
      size = {bounds.factor, d::rounded(d::real(size.height * bounds.factor) / d::real(size.width))};
    }
    const auto made = smart_resize(size, bounds);
    return made ? patches(*made) : 0;
  }
  constexpr std::int64_t kSide = 448;
  constexpr std::int64_t kMostSlices = 9;
  const double width = d::real(size.width);
  const double height = d::real(size.height);
  const std::int64_t step = m.patch * 4;
  const auto filled = d::whole(std::ceil(width * height / d::real(kSide * kSide)));
  const std::int64_t many = std::min(filled, kMostSlices);
  if (many <= 1) return patches(resized(width, height, kSide, step, true));
  // get_sliced_grid(): the grid whose shape is most like the picture's, the first of those alike.
  TileGrid grid;
  double least = HUGE_VAL;
  for (const std::int64_t slices : {many - 1, many, many + 1}) {
    if (slices == 1 || slices > kMostSlices) continue;
    for (std::int64_t columns = 1; columns <= slices; ++columns) {
      if (slices % columns != 0) continue;
      const double apart = std::abs(std::log(width / height) - std::log(d::real(columns) / d::real(slices / columns)));
      if (apart >= least) continue;
      least = apart;
      grid = {slices / columns, columns};
    }
  }
  const auto part = [](std::int64_t length, std::int64_t by) {
    return d::real(std::max(d::rounded(d::real(length) / d::real(by)) * by, by)) / d::real(by);
  };
  const PictureSize slice = resized(part(size.width, grid.columns), part(size.height, grid.rows), kSide, step, true);
  return patches(resized(width, height, kSide, step, false)) + grid.tiles() * patches(slice);
}

inline Tensor attention(Forward& f, const Model& m, Tensor input, const std::optional<Rotary>& rotary) {
  const InModule inside(f, "self_attn", m.named("Attention"));
  const std::int64_t width = m.sizes.width;
  const std::int64_t each = width / m.sizes.heads;
  const auto heads = [&](std::string_view name, bool turns) {
    const Tensor part = split_heads(f, f.linear(name, input, width, width), each);
    return turns && rotary ? f.as_type_of(rotate(f, f.to(part, "float32"), *rotary, each), part) : part;
  };
  const Tensor query = heads("q_proj", true);
  const Tensor key = heads("k_proj", true);
  const Tensor mixed = attend(f, {query, key, heads("v_proj", false)},
                              {.dropout = m.sizes.attention_dropout, .copies = false, .causal = false});
  // torch.cat of what each image gives.
  return f.linear("out_proj", f.call("clone", {mixed}), width, width);
}

inline Tensor block(Forward& f, const Model& m, Tensor input, const std::optional<Rotary>& rotary) {
  const std::int64_t width = m.sizes.width;
  const Tensor attended = f.add(input, attention(f, m, f.layer_norm("layer_norm1", input, width), rotary));
  const Tensor again = f.layer_norm("layer_norm2", attended, width);
  return f.add(attended, feed_forward(f, m.sizes, again, {.class_name = m.named("MLP")}));
}

/// [N, patches, width] -> [N, patches / squares, squares width], copied.
inline Tensor side_by_side(Forward& f, Tensor hidden, std::int64_t squares, std::int64_t width) {
  return f.unflatten(f.flatten(f.call("clone", {hidden}), 1, 2), 1, {-1, squares * width});
}

/// ViTWindowAttentionMerger: attention within windows of four patches, which then become one.
inline Tensor merged_windows(Forward& f, const Model& m, Tensor hidden) {
  const InModule inside(f, "vit_merger", "MiniCPMV4_6ViTWindowAttentionMerger");
  const std::int64_t width = m.sizes.width;
  const std::int64_t squares = m.merge * m.merge;
  const Tensor ordered = f.call("clone", {f.layer_norm("layer_norm1", hidden, width)});
  const Tensor mixed = f.call("clone", {attention(f, m, ordered, std::nullopt)});
  const Tensor attended = f.add(hidden, mixed);
  const Tensor flat = side_by_side(f, attended, squares, width);
  const Tensor windows = f.unflatten(f.call("clone", {attended}), 1, {-1, squares});
  const Tensor mean = f.call("mean", {windows}, {{"dim", std::int64_t{2}}});
  const Tensor normed = f.layer_norm("pre_norm", flat, squares * width);
  const Tensor open =
      f.activation("act", f.linear("linear_1", normed, squares * width, squares * m.sizes.inner), "gelu_pytorch_tanh");
  return f.add(f.linear("linear_2", open, squares * m.sizes.inner, width), mean);
}

inline Tensor embedded(Forward& f, const Model& m, std::int64_t images, std::int64_t patches) {
  constexpr std::int64_t kNeighbours = 4;
  const InModule inside(f, "embeddings", m.named("Embeddings"));
  const Tensor pixels = f.rows_input("pixel_values", images * patches, {m.channels, m.patch, m.patch});
  const Tensor cut = cut_patches(f, "patch_embedding", pixels,
                                 {.channels = m.channels, .width = m.sizes.width, .patch = m.patch, .step = {}});
  const Tensor rows = f.unflatten(f.flatten(cut, 1, 2), 0, {-1, patches});
  const std::int64_t places = (m.side / m.patch) * (m.side / m.patch);
  const std::int64_t numbers = m.paddle ? kNeighbours * patches : patches;
  const Tensor found =
      f.embedding("position_embedding", f.rows_input("patch_places", images, {numbers}), places, m.sizes.width);
  if (!m.paddle) return f.add(rows, found);
  // Four rows of the table for each patch, weighted in float32 and added up.
  const Tensor weighted = f.unflatten(f.scale(f.to(found, "float32")), 1, {-1, kNeighbours});
  return f.add(rows, f.as_type_of(f.call("mean", {weighted}, {{"dim", std::int64_t{2}}}), rows));
}

/// What stands between "vision_model", which PaddleOCR-VL has, and the projector.
inline Tensor tower(Forward& f, const Model& m, std::int64_t images, std::int64_t patches) {
  Tensor hidden = embedded(f, m, images, patches);
  std::optional<Rotary> rotary;
  if (m.paddle) {
    const std::int64_t each = m.sizes.width / m.sizes.heads;
    const auto table = [&] {
      return f.call("rotary_table", {hidden}, {{"width", each}, {"padded", true}, {"dtype", std::string("float32")}});
    };
    const Tensor cosines = table();
    rotary = Rotary{cosines, table(), each, false};
  }
  {
    const InModule encoder(f, "encoder", m.named("Encoder"));
    const InModule list(f, "layers", "ModuleList");
    for (std::int64_t at = 0; at < m.sizes.layers && !f.failed(); ++at) {
      {
        const InModule inside(f, std::to_string(at), m.named("EncoderLayer"));
        hidden = block(f, m, hidden, rotary);
      }
      if (at == m.merged_behind) hidden = merged_windows(f, m, hidden);
    }
  }
  return f.layer_norm("post_layernorm", hidden, m.sizes.width);
}

inline Tensor features_of(Forward& f, const Model& m, std::int64_t images, std::int64_t patches) {
  const std::int64_t width = m.sizes.width;
  const std::int64_t squares = m.merge * m.merge;
  const std::int64_t wide = squares * width;
  Tensor hidden = 0;
  if (m.paddle) {
    const InModule visual(f, "visual", "PaddleOCRVisionModel");
    const InModule inside(f, "vision_model", "PaddleOCRVisionTransformer");
    hidden = tower(f, m, images, patches);
  } else {
    const InModule inside(f, "vision_tower", "MiniCPMV4_6VisionModel");
    hidden = tower(f, m, images, patches);
  }
  if (m.paddle) {
    const InModule inside(f, "projector", "PaddleOCRProjector");
    const Tensor merged = side_by_side(f, f.layer_norm("pre_norm", hidden, width), squares, width);
    const Tensor open = f.activation("act", f.linear("linear_1", merged, wide, wide), "gelu");
    return f.call("clone", {f.linear("linear_2", open, wide, m.width)});  // torch.cat of the images
  }
  const InModule inside(f, "merger", "MiniCPMV4_6Merger");
  hidden = stack(f, "mlp", "MiniCPMV4_6DownsampleMLP", m.rounds, hidden, [&](Tensor x, std::int64_t round) {
    const Tensor normed = f.layer_norm("pre_norm", side_by_side(f, x, squares, width), wide);
    const Tensor open = f.activation("act", f.linear("linear_1", normed, wide, wide), "gelu");
    return f.linear("linear_2", open, wide, round + 1 == m.rounds ? m.width : width);
  });
  return f.call("clone", {hidden});  // torch.cat of the images
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Pictures pictures = pictures_of(f);
  Model model = read(config);
  ConfigFields* text = text_fields(config, model.paddle ? "paddleocr_vl_text" : "qwen3_5_text");
  if (text == nullptr || !config.status()) return;
  if (model.paddle) text->ignore({"use_bias", "vision_start_token_id", "vision_end_token_id", "video_token_id"});
  model.width = text->size({"hidden_size"});
  const std::int64_t patches = patches_of(model, pictures.size);
  if (patches == 0) return f.fail("reads no image whose sides are more than 200 to 1; give another `image`");
  tell_pictures(f, pictures, pictures.seen() * patches / (model.step() * model.step()));
  TextPart part = inner_text(model.paddle ? "PaddleOCRVLModel" : "MiniCPMV4_6Model", "TextModel");
  if (model.paddle) part.positions = TextPart::Positions::by_section;
  write_text(f, *text, head, part, pictures,
             [&](Forward& to) { return features_of(to, model, pictures.seen(), patches); });
}

inline constexpr Architecture kArchitecture = {.name = "packed_siglip",
                                               .model_types = names<"paddleocr_vl", "minicpmv4_6">,
                                               .write = write,
                                               .holds_text_model = true};

}  // namespace packed_siglip

}  // namespace gpumem::architectures
