// Input: the "vision_config" of a vision-language model, and the pictures that samples bring.
// Output: the image towers that several such models have: CLIP's and SigLIP's encoders, Pixtral's, SAM's, and the
// projectors behind them.
// Source: transformers 4.57, models/clip/modeling_clip.py, siglip/modeling_siglip.py, idefics3/modeling_idefics3.py,
// pixtral/modeling_pixtral.py, llava/modeling_llava.py: LlavaMultiModalProjector; 5.16, deepseek_ocr2 (SAM).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/image_rules.hpp"
#include "gpumem/architectures/image_tokens.hpp"

namespace gpumem::architectures {

struct ImageTower {
  enum class Kind : std::uint8_t { clip, siglip, pixtral };
  Kind kind = Kind::siglip;
  DecoderSizes sizes;
  std::int64_t side = 224;  ///< of the images that it reads; Pixtral: the longest
  std::int64_t patch = 16;
  std::int64_t channels = 3;
  bool head = false;  ///< SigLIP pools its output, which nothing reads here

  [[nodiscard]] std::int64_t patches() const { return (side / patch) * (side / patch); }
  [[nodiscard]] bool has_class() const { return kind == Kind::clip; }
};

namespace image_towers_detail {

struct Usual {
  ImageTower::Kind kind;
  std::string_view type;
  std::int64_t width;
  std::int64_t inner;
  std::int64_t layers;
  std::int64_t heads;
  std::int64_t side;
  std::int64_t patch;
  std::string_view activation;
};
/// What the classes have where a config leaves fields out.
inline constexpr auto kUsual = std::to_array<Usual>(
    {{ImageTower::Kind::clip, "clip_vision_model", 768, 3072, 12, 12, 224, 32, "quick_gelu"},
     {ImageTower::Kind::siglip, "siglip_vision_model", 768, 3072, 12, 12, 224, 16, "gelu_pytorch_tanh"},
     {ImageTower::Kind::siglip, "idefics3_vision", 1152, 3072, 12, 16, 224, 32, "gelu_pytorch_tanh"},
     {ImageTower::Kind::siglip, "smolvlm_vision", 1152, 3072, 12, 16, 224, 32, "gelu_pytorch_tanh"},
     {ImageTower::Kind::pixtral, "pixtral", 1024, 4096, 24, 16, 1024, 16, "gelu"}});

inline Tensor embedded(Forward& f, const ImageTower& t, Tensor pixels, std::int64_t images) {
  const InModule embeddings(f, "embeddings", "VisionEmbeddings");
  const std::int64_t width = t.sizes.width;
  Tensor rows =
      cut_patches(f, "patch_embedding", pixels,
                  {.channels = t.channels, .width = width, .patch = t.patch, .step = {}, .bias = !t.has_class()});
  if (t.has_class()) {
    const std::vector<core::Dim> each = {core::Dim::batch(images), core::Dim::fixed(-1), core::Dim::fixed(-1)};
    const Tensor first = f.parameter("class_embedding", {1, 1, width});
    rows = f.concatenate({f.call("expand", {first}, {{"shape", each}}), rows}, 1);
  }
  const std::int64_t places = t.patches() + (t.has_class() ? 1 : 0);
  return f.add(rows, f.parameter("position_embedding.weight", {1, places, width}));
}

/// SiglipMultiheadAttentionPoolingHead: computed, and read by nobody; only its parameters matter.
inline void pooling_head(Forward& f, const ImageTower& t) {
  f.hold_printed("head");
  const InModule inside(f, "head", "SiglipMultiheadAttentionPoolingHead");
  const std::int64_t w = t.sizes.width;
  (void)f.parameter("probe", {1, 1, w}, true);
  (void)f.parameter("attention.in_proj_weight", {3 * w, w}, true);
  (void)f.parameter("attention.in_proj_bias", {3 * w}, true);
  (void)f.parameter("attention.out_proj.weight", {w, w}, true);
  (void)f.parameter("attention.out_proj.bias", {w}, true);
  (void)f.parameter("layernorm.weight", {2, w}, true);
  (void)f.parameter("mlp.weight", {2 * t.sizes.inner + 1, w}, true);
  (void)f.parameter("mlp.bias", {t.sizes.inner}, true);
}

inline Tensor pixtral_block(Forward& f, const ImageTower& t, Tensor input, const Rotary& rotary, Tensor mask) {
  const DecoderSizes& s = t.sizes;
  const Linear plain = {.bias = false};
  const Tensor normed = f.rms_norm("attention_norm", input, s.width, "PixtralRMSNorm");
  Tensor mixed = 0;
  {
    const InModule inside(f, "attention", "PixtralAttention");
    const auto heads = [&](std::string_view name) {
      return split_heads(f, f.linear(name, normed, s.width, s.width, plain), s.width / s.heads);
    };
    const Tensor key = heads("k_proj");
    const Tensor value = heads("v_proj");
    const Tensor query = rotate(f, heads("q_proj"), rotary, rotary.width);
    const Tensor turned = rotate(f, key, rotary, rotary.width);
    const Tensor attended = f.call("scaled_dot_product_attention", {query, turned, value, mask});
    mixed = f.linear("o_proj", merge_heads(f, attended), s.width, s.width, plain);
  }
  const Tensor attended = f.add(input, mixed);
  const Tensor again = f.rms_norm("ffn_norm", attended, s.width, "PixtralRMSNorm");
  const InModule inside(f, "feed_forward", "PixtralMLP");
  const Tensor open = f.activation("act_fn", f.linear("gate_proj", again, s.width, s.inner, plain), s.activation);
  const Tensor up = f.linear("up_proj", again, s.width, s.inner, plain);
  return f.add(attended, f.linear("down_proj", f.multiply(open, up), s.inner, s.width, plain));
}

}  // namespace image_towers_detail

/// Faults are remembered. `type`: where the config does not say its own.
inline ImageTower read_image_tower(ConfigFields& config, std::string_view type) {
  const std::string_view said = config.text({"model_type"}, type);
  const image_towers_detail::Usual* usual = nullptr;
  for (const image_towers_detail::Usual& row : image_towers_detail::kUsual) {
    if (row.type == (said == "idefics3" || said == "smolvlm" ? type : said)) usual = &row;
  }
  if (usual == nullptr) {
    config.fail("is an image tower that is not known", "model_type");
    return {};
  }
  ImageTower t;
  t.kind = usual->kind;
  t.sizes.width = config.size_or({"hidden_size"}, usual->width);
  t.sizes.inner = config.size_or({"intermediate_size"}, usual->inner);
  t.sizes.layers = config.layers_or("num_hidden_layers", usual->layers);
  t.sizes.heads = config.size_or({"num_attention_heads"}, usual->heads);
  t.sizes.activation = config.text({"hidden_act", "hidden_activation"}, usual->activation);
  t.sizes.attention_dropout = config.number({"attention_dropout"}, 0.0);
  t.side = config.size_or({"image_size"}, usual->side);
  t.patch = config.size_or({"patch_size"}, usual->patch);
  t.channels = config.size_or({"num_channels"}, 3);
  t.head = t.kind == ImageTower::Kind::siglip && config.flag("vision_use_head", usual->type == "siglip_vision_model");
  if (t.sizes.width % t.sizes.heads != 0) config.fail("does not divide hidden_size", "num_attention_heads");
  if (t.side < t.patch) config.fail("is smaller than patch_size", "image_size");
  if (t.side > model::Images::kLargestSide) config.fail("is more than gpumem takes", "image_size");
  config.ignore({"projection_dim", "num_image_tokens", "vocab_size", "projector_hidden_act", "max_image_size", "size",
                 "use_base_siglip", "num_key_value_heads", "head_dim", "is_causal", "vision_use_head"});
  return t;
}

/// "vision_config" of a printed tower at this path: CLIP's and SigLIP's, whose module "vision_model" may be the tower
/// itself, or Pixtral's. No tree prints heads, nor the longest side of Pixtral's images.
inline void tree_image_tower(TreeFields& t, const std::string& path, std::string_view type = {}) {
  static constexpr auto kPublished =
      std::to_array<PublishedHeads>({{768, 12}, {1024, 16}, {1152, 16}, {1280, 16}, {1664, 16}});
  const bool pixtral = t.has(path + ".patch_conv");
  const std::string at = t.has(path + ".vision_model") ? path + ".vision_model" : path;
  const bool clip = t.has(at + ".pre_layrnorm");
  const std::string cut = pixtral ? path + ".patch_conv" : at + ".embeddings.patch_embedding";
  const std::string blocks = pixtral ? path + ".transformer.layers" : at + ".encoder.layers";
  const std::string inner = blocks + (pixtral ? ".0.feed_forward.gate_proj" : ".0.mlp.fc1");
  const std::int64_t width = t.value(cut, "out_channels").value_or(0);
  const std::int64_t patch = t.value(cut, "kernel_size").value_or(1);
  t.open("vision_config");
  t.set_string("model_type", pixtral        ? "pixtral"
                             : clip         ? "clip_vision_model"
                             : type.empty() ? "siglip_vision_model"
                                            : type);
  t.size("hidden_size", cut, "out_channels");
  t.size("num_channels", cut, "in_channels");
  t.size("patch_size", cut, "kernel_size");
  t.count("num_hidden_layers", blocks);
  t.size("intermediate_size", inner, "out_features");
  t.heads_of_width({.published = kPublished}, width);
  if (pixtral) {
    t.activation("hidden_act", blocks + ".0.feed_forward.act_fn");
    const std::int64_t side = patch == 16 ? 1024 : 110 * patch;
    t.set("image_size", side);
    t.assume("images of at most " + std::to_string(side) + " pixels a side, as published models read");
  } else {
    t.activation("hidden_act", blocks + ".0.mlp.activation_fn");
    const std::int64_t places = t.value(at + ".embeddings.position_embedding", "num_embeddings").value_or(1);
    const std::int64_t across = TreeFields::square_side(places - (clip ? 1 : 0));
    // SigLIP's of 384 pixels, which 14 does not divide.
    constexpr std::int64_t kUneven = 384;
    t.set("image_size", !clip && across == kUneven / patch ? kUneven : across * patch);
    if (!clip) t.there("vision_use_head", at + ".head");
  }
  t.close();
}

/// The classes of an encoder's modules.
struct EncoderClasses {
  std::string_view encoder = {};
  std::string_view layer = {};
  std::string_view attention = {};
  std::string_view mlp = {};
};

/// The blocks of CLIP's and SigLIP's encoders. Returns what the first one reads, and what each of them leaves.
inline std::vector<Tensor> encoder_states(Forward& f, const DecoderSizes& s, const EncoderClasses& classes,
                                          Tensor hidden, std::optional<Tensor> mask = {}) {
  const InModule encoder(f, "encoder", classes.encoder);
  const StreamAttention attention = {.name = "self_attn",
                                     .class_name = classes.attention,
                                     .width = s.width,
                                     .heads = s.heads,
                                     .dropout = s.attention_dropout,
                                     .copies = false,
                                     .mask = mask};
  std::vector<Tensor> states = {hidden};
  stack(f, "layers", classes.layer, s.layers, hidden, [&](Tensor x, std::int64_t) {
    const Tensor normed = f.layer_norm("layer_norm1", x, s.width);
    const Tensor attended = f.add(x, stream_attention(f, attention, normed, normed));
    const Tensor again = f.layer_norm("layer_norm2", attended, s.width);
    states.push_back(f.add(attended, feed_forward(f, s, again, {.class_name = classes.mlp})));
    return states.back();
  });
  return states;
}

/// What a tower leaves of a sample's images, [N images, tokens, width], behind each of its layers, the embeddings
/// first: CLIP's and SigLIP's, in a module "vision_model". `normed`: behind the last norm.
struct TowerStates {
  std::vector<Tensor> hidden = {};
  Tensor normed = 0;
};
/// `norms` false: nobody reads what that norm leaves, so that its weights get no gradient.
inline TowerStates image_states(Forward& f, const ImageTower& t, std::int64_t images, bool norms = true) {
  std::optional<InModule> inside;  // classes of transformers 5 have no module in a module
  const std::string_view tower_class = t.has_class() ? "CLIPVisionTransformer" : "SiglipVisionTransformer";
  if (!f.reads_tree() || f.prints_here("vision_model")) inside.emplace(f, "vision_model", tower_class);
  const DecoderSizes& s = t.sizes;
  const Tensor pixels = f.rows_input("pixel_values", images, {t.channels, t.side, t.side});
  TowerStates states;
  Tensor hidden = image_towers_detail::embedded(f, t, pixels, images);
  if (t.has_class()) hidden = f.layer_norm("pre_layrnorm", hidden, s.width);
  states.hidden = encoder_states(f, s,
                                 {.encoder = "VisionEncoder",
                                  .layer = t.has_class() ? "CLIPEncoderLayer" : "SiglipEncoderLayer",
                                  .attention = "VisionAttention",
                                  .mlp = "VisionMLP"},
                                 hidden);
  hidden = states.hidden.back();
  if (norms) states.normed = f.layer_norm("post_layernorm", t.has_class() ? f.select(hidden, 1, 0) : hidden, s.width);
  if (!norms) f.hold_printed("post_layernorm");
  if (!norms) (void)f.parameter("post_layernorm.unused", {2, s.width}, true);
  if (t.head) image_towers_detail::pooling_head(f, t);
  return states;
}

/// Pixtral's tower: the patches of all images of a batch are one sequence, whose attention has a mask of all patches by
/// all patches. [N images, patches, width].
inline Tensor pixtral_states(Forward& f, const ImageTower& t, std::int64_t images, const PictureSize& size) {
  const DecoderSizes& s = t.sizes;
  const std::int64_t patches = (size.width / t.patch) * (size.height / t.patch);
  const Tensor pixels = f.rows_input("pixel_values", images, {t.channels, size.height, size.width});
  const Tensor cut = cut_patches(
      f, "patch_conv", pixels, {.channels = t.channels, .width = s.width, .patch = t.patch, .step = {}, .bias = false});
  const Tensor rows = f.call("clone", {cut});  // torch.cat of the images
  Tensor hidden = f.rms_norm("ln_pre", rows, s.width, "PixtralRMSNorm");
  const Tensor numbers = f.as_type_of(f.rows_input("block_numbers", images * patches, {1}), hidden);
  const Tensor mask = f.add(numbers, f.permute(numbers, {1, 0}));
  const std::int64_t each = s.width / s.heads;
  const auto table = [&]() { return f.call("rotary_table", {hidden}, {{"width", each}, {"padded", true}}); };
  const Tensor cosines = table();
  const Rotary rotary = {cosines, table(), each, false};
  const InModule inside(f, "transformer", "PixtralTransformer");
  return stack(f, "layers", "PixtralAttentionLayer", s.layers, hidden,
               [&](Tensor x, std::int64_t) { return image_towers_detail::pixtral_block(f, t, x, rotary, mask); });
}

/// linear_2(act(linear_1(x))), in the module "multi_modal_projector".
inline Tensor two_linears(Forward& f, Tensor input, std::int64_t in, std::int64_t out, std::string_view activation,
                          bool bias) {
  const Tensor open = f.activation("act", f.linear("linear_1", input, in, out, {.bias = bias}), activation);
  return f.linear("linear_2", open, out, out, {.bias = bias});
}

/// Which of a tower's states this field of a config reads: 0 is the embeddings. One number or several, which may count
/// from the end.
inline std::vector<std::size_t> feature_layers(ConfigFields& config, std::string_view field,
                                               const std::vector<std::int64_t>& usual, std::int64_t layers) {
  using Kind = core::JsonValue::Kind;
  const core::JsonValue* value = config.find(field);
  std::vector<std::int64_t> said = usual;
  const auto take = [&](const core::JsonValue& item) {
    if (item.is(Kind::integer)) said.push_back(item.integer());
    if (!item.is(Kind::integer)) config.fail("must be a whole number, or a list of them", field);
  };
  if (value != nullptr) {
    said.clear();
    if (value->is(Kind::list)) {
      for (const core::JsonValue& item : value->items()) take(item);
    } else {
      take(*value);
    }
  }
  std::vector<std::size_t> read;
  for (const std::int64_t layer : said) {
    const bool inside = layer >= -layers - 1 && layer <= layers;
    if (!inside) config.fail("names no layer of the tower", field);
    const std::int64_t from_front = layer < 0 ? layers + 1 + layer : layer;
    read.push_back(static_cast<std::size_t>(inside ? from_front : 0));
  }
  if (read.empty() || read.size() > 16) config.fail("must name 1 to 16 layers of the tower", field);
  if (read.empty()) read.push_back(0);
  return read;
}

/// The same of a class that reads one layer alone.
inline std::size_t feature_layer(ConfigFields& config, std::string_view field, std::int64_t usual,
                                 std::int64_t layers) {
  const std::vector<std::size_t> read = feature_layers(config, field, {usual}, layers);
  if (read.size() > 1) config.fail("must be one whole number", field);
  return read.front();
}

/// int(width * mlp_ratio), where a config says that in place of a size.
inline std::int64_t inner_by_ratio(ConfigFields& config, std::int64_t width, double usual) {
  constexpr double kMost = 64.0;
  const double ratio = config.number({"mlp_ratio"}, usual);
  const double inner = static_cast<double>(width) * ratio;
  if (inner >= 1.0 && ratio <= kMost) return static_cast<std::int64_t>(inner);
  config.fail("must leave a feed-forward layer, at most 64 times as wide as the tower", "mlp_ratio");
  return width;
}

/// Pairs of sides that pictures may be fitted to, `width_first` or the height; empty: the config names none.
inline std::vector<PictureSize> read_canvases(ConfigFields& config, std::string_view field, bool width_first) {
  using Kind = core::JsonValue::Kind;
  constexpr std::size_t kMost = 1024;
  std::vector<PictureSize> canvases;
  const core::JsonValue* list = config.find(field);
  if (list == nullptr) return canvases;
  const auto is_side = [](const core::JsonValue& side) {
    return side.is(Kind::integer) && side.integer() >= 1 && side.integer() <= model::Images::kLargestSide;
  };
  if (!list->is(Kind::list) || list->size() > kMost) {
    config.fail("must be a list of at most 1024 pairs of sides", field);
    return canvases;
  }
  for (const core::JsonValue& pair : list->items()) {
    std::vector<std::int64_t> sides;
    if (pair.is(Kind::list)) {
      for (const core::JsonValue& side : pair.items()) {
        if (is_side(side)) sides.push_back(side.integer());
      }
    }
    if (sides.size() != 2) {
      config.fail("must be a list of pairs of sides, from 1 to 65536 pixels", field);
      return canvases;
    }
    canvases.push_back(width_first ? PictureSize{sides[0], sides[1]} : PictureSize{sides[1], sides[0]});
  }
  return canvases;
}

/// SAM's encoder of images, with the two convolutions that DeepSeek puts behind it.
namespace sam {

struct Encoder {
  DecoderSizes sizes = {.width = 768, .layers = 12, .heads = 12, .inner = 3072};
  std::int64_t side = 1024;  ///< of the images that its tables are for
  std::int64_t patch = 16;
  std::int64_t channels = 3;
  std::int64_t neck = 256;
  std::vector<std::int64_t> narrowed = {512, 1024};  ///< what the convolutions leave
  std::int64_t window = 14;
  std::vector<std::int64_t> global = {2, 5, 8, 11};  ///< blocks that see the whole image

  /// Patches of a side, and features.
  [[nodiscard]] std::int64_t patches(std::int64_t pixels) const { return pixels / patch; }
  [[nodiscard]] std::int64_t features(std::int64_t pixels) const {
    constexpr std::int64_t kStrides = 4;
    return (patches(pixels) + kStrides - 1) / kStrides;
  }
};

/// What the classes of both makers have where the config leaves fields out. `narrowed`: the usual last convolution.
inline Encoder read(ConfigFields& config, std::int64_t narrowed) {
  Encoder e;
  e.narrowed.back() = narrowed;
  DecoderSizes& s = e.sizes;
  s.width = config.size_or({"hidden_size", "width"}, s.width);
  s.layers = config.size_or({"num_hidden_layers", "layers"}, s.layers);
  s.heads = config.size_or({"num_attention_heads", "heads"}, s.heads);
  s.inner = config.has("mlp_dim") ? config.size({"mlp_dim"}) : inner_by_ratio(config, s.width, 4.0);
  s.activation = config.text({"hidden_act"}, "gelu");
  e.side = config.size_or({"image_size"}, e.side);
  e.patch = config.size_or({"patch_size"}, e.patch);
  e.channels = config.size_or({"num_channels"}, e.channels);
  e.neck = config.size_or({"output_channels"}, e.neck);
  e.window = config.size_or({"window_size"}, e.window);
  e.narrowed = config.sizes_or("downsample_channels", e.narrowed);
  e.global = config.sizes_or("global_attn_indexes", e.global);
  config.ignore({"model_type", "mlp_ratio", "attention_dropout"});
  for (const std::string_view name : {"qkv_bias", "use_abs_pos", "use_rel_pos"}) {
    if (!config.flag(name, true)) config.fail("is true in this model", name);
  }
  if (s.width % s.heads != 0) config.fail("does not divide the tower's width", "num_attention_heads");
  if (s.layers > 1024) config.fail("is more than gpumem takes", "num_hidden_layers");
  if (e.narrowed.size() != 2) {
    config.fail("must be two sizes", "downsample_channels");
    e.narrowed = {512, narrowed};
  }
  if (e.side < 4 * e.patch || e.side > model::Images::kLargestSide) config.fail("is no size of an image", "image_size");
  return e;
}

/// Attention of squares of this side, [N, side side, width]: scores get a row of a table for each distance of rows, and
/// another one of columns.
inline Tensor attention(Forward& f, const Encoder& e, Tensor input, std::int64_t side, std::int64_t table) {
  const InModule inside(f, "attn", "SamVisionAttention");
  const std::int64_t width = e.sizes.width;
  const std::int64_t each = width / e.sizes.heads;
  // reshape() copies, as heads stand in front of the images' tokens.
  const Tensor packed = f.call("clone", {f.linear("qkv", input, width, 3 * width)});
  const std::vector<Tensor> parts = f.split(packed, 2, {width, width, width});
  const Tensor query = split_heads(f, parts[0], each);
  const auto distances = [&](std::string_view name) {
    const Tensor rows = f.parameter(name, {2 * table - 1, each});
    return f.call("linear_function", {query, f.slice(rows, 0, 0, side)});
  };
  const auto unsqueezed = [&](Tensor scores, std::int64_t axis) {
    return f.call("unsqueeze", {scores}, {{"dim", axis}});
  };
  const Tensor rows = unsqueezed(distances("rel_pos_h"), 4);
  const Tensor bias = f.flatten(f.add(rows, unsqueezed(distances("rel_pos_w"), 3)), 3, 4);
  const Tensor key = split_heads(f, parts[1], each);
  const Tensor mixed = f.call("scaled_dot_product_attention", {query, key, split_heads(f, parts[2], each), bias});
  return f.linear("proj", f.call("clone", {merge_heads(f, mixed)}), width, width);
}

/// The same window by window; what is missing at the edges is filled up.
inline Tensor windowed(Forward& f, const Encoder& e, Tensor input, std::int64_t side) {
  const std::int64_t windows = (side + e.window - 1) / e.window;
  const std::int64_t area = e.window * e.window;
  const std::int64_t missing = windows * windows * area - side * side;
  Tensor hidden = input;
  if (missing > 0) hidden = f.call("pad", {hidden}, {{"padding", Sizes{0, 0, 0, missing}}});
  const Tensor cut = f.flatten(f.unflatten(f.call("clone", {hidden}), 1, {windows * windows, area}), 0, 1);
  const Tensor mixed = attention(f, e, cut, e.window, e.window);
  const Tensor joined = f.call("clone", {f.flatten(f.unflatten(mixed, 0, {-1, windows * windows}), 1, 2)});
  return missing > 0 ? f.call("clone", {f.slice(joined, 1, 0, side * side)}) : joined;
}

inline Tensor convolved(Forward& f, std::string_view name, Tensor image, const Sizes& widths, std::int64_t kernel,
                        std::int64_t stride) {
  return f.layer(name, "Conv2d", "conv2d", {image},
                 {{"in_channels", widths[0]},
                  {"out_channels", widths[1]},
                  {"kernel_size", Sizes(2, kernel)},
                  {"stride", Sizes(2, stride)},
                  {"padding", Sizes(2, kernel / 2)},
                  {"bias", false}});
}

/// Of `images` square images of this many pixels a side: [N images, neck, patches, patches].
inline Tensor patch_images(Forward& f, const Encoder& e, std::int64_t images, std::int64_t pixels) {
  const DecoderSizes& s = e.sizes;
  const std::int64_t side = e.patches(pixels);
  const std::int64_t places = e.patches(e.side);
  Tensor hidden = cut_patches(f, "patch_embed.proj", f.rows_input("pixel_values", images, {e.channels, pixels, pixels}),
                              {.channels = e.channels, .width = s.width, .patch = e.patch, .step = {}});
  const Tensor table = f.parameter("pos_embed", {1, places * places, s.width});
  hidden = f.add(hidden, side == places ? table : f.call("clone", {f.slice(table, 1, 0, side * side)}));
  hidden = stack(f, "layers", "SamVisionLayer", s.layers, hidden, [&](Tensor x, std::int64_t index) {
    const bool whole = std::find(e.global.begin(), e.global.end(), index) != e.global.end();
    const Tensor normed = f.layer_norm("layer_norm1", x, s.width);
    const Tensor attended = f.add(x, whole ? attention(f, e, normed, side, places) : windowed(f, e, normed, side));
    const Tensor again = f.layer_norm("layer_norm2", attended, s.width);
    return f.add(attended,
                 feed_forward(f, s, again,
                              {.class_name = "SamMLPBlock", .widen = "lin1", .narrow = "lin2", .activation = "act"}));
  });
  const auto normed = [&](std::string_view name, Tensor image) {
    return f.permute(f.layer_norm(name, f.permute(image, {0, 2, 3, 1}), e.neck), {0, 3, 1, 2});
  };
  Tensor image = f.permute(f.unflatten(hidden, 1, {side, side}), {0, 3, 1, 2});
  const InModule inside(f, "neck", "SamVisionNeck");
  image = normed("layer_norm1", convolved(f, "conv1", image, {s.width, e.neck}, 1, 1));
  return normed("layer_norm2", convolved(f, "conv2", image, {e.neck, e.neck}, 3, 1));
}

/// The same behind the two convolutions: [N images, features, narrowed].
inline Tensor encoded(Forward& f, const Encoder& e, std::int64_t images, std::int64_t pixels) {
  Tensor image = patch_images(f, e, images, pixels);
  const InModule inside(f, "proj", "SamVisionProj");
  image = convolved(f, "conv1", image, {e.neck, e.narrowed[0]}, 3, 2);
  image = convolved(f, "conv2", image, {e.narrowed[0], e.narrowed[1]}, 3, 2);
  return f.permute(f.flatten(image, 2, 3), {0, 2, 1});
}

}  // namespace sam

}  // namespace gpumem::architectures
