// InternVL 2, 2.5, 3 and 3.5 as OpenGVLab publishes them: InternViT, tiles of 448 pixels and the whole picture, a
// shuffle that makes one token of four patches, two linear layers, and any text model (half of them have
// InternLM2, in stablelm.hpp); LFM2-VL, which cuts pictures by the same rule. Source: OpenGVLab/InternVL (@2410d1d),
// internvl_chat/internvl/model/internvl_chat: modeling_intern_vit.py, modeling_internvl_chat.py, configuration_*.py;
// train/dataset.py: dynamic_preprocess. What transformers makes of these models
// ("internvl") is in internvl.hpp.
#pragma once

#include <array>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/image_towers.hpp"
#include "gpumem/architectures/vision_language.hpp"

namespace gpumem::architectures {

namespace internvl_chat {

struct Model {
  DecoderSizes sizes;  ///< of the tower
  std::int64_t side = 448;
  std::int64_t patch = 14;
  bool bias = false;
  bool normed_heads = true;
  bool squares = true;  ///< its norms are RMS norms
  double dropout = 0.0;
  std::size_t layer = 0;  ///< whose output is read; 0 is the embeddings
  std::int64_t shuffle = 2;
  bool second_copy = true;  ///< the shuffle turns rows and columns back
  bool cuts = false;        ///< pictures into tiles
  bool thumbnail = false;
  std::int64_t least_tiles = 1;
  std::int64_t most_tiles = 6;
  std::int64_t width = 1;  ///< of the text model

  [[nodiscard]] std::int64_t patches() const { return (side / patch) * (side / patch); }
  [[nodiscard]] std::int64_t tokens() const { return patches() / (shuffle * shuffle); }
};

inline void read_tower(ConfigFields& config, Model& m) {
  m.sizes = encoder_sizes(config, {.width = 3200, .inner = 12800, .layers = 48, .heads = 25, .activation = "gelu"});
  m.dropout = config.number({"dropout"}, 0.0);
  m.side = config.size_or({"image_size"}, 224);
  m.patch = config.size_or({"patch_size"}, 14);
  m.bias = config.flag("qkv_bias", false);
  m.normed_heads = config.flag("qk_normalization", true);
  m.squares = config.text({"norm_type"}, "rms_norm") == "rms_norm";
  // A factor for each sample's branch, which is a number a sample and keeps nothing.
  config.ignore({"num_channels", "use_flash_attn", "drop_path_rate", "use_bfloat16", "model_type"});
  // Published configs have the fields of a mixture that is off.
  if (config.flag("use_moe", false)) config.fail("a tower with experts is not known", "use_moe");
  config.ignore({"num_experts", "num_routed_experts", "num_shared_experts", "moe_intermediate_size",
                 "shared_expert_intermediate_size", "capacity_factor", "eval_capacity_factor", "laux_allreduce",
                 "moe_coeff_ratio", "moe_output_scale", "ep_size", "use_rts", "use_residual", "use_weighted_residual"});
  if (m.side < m.patch) config.fail("is smaller than patch_size", "image_size");
  if (m.side > model::Images::kLargestSide) config.fail("is more than gpumem takes", "image_size");
}

inline Model read(ConfigFields& config) {
  Model m;
  if (ConfigFields* tower = vision_fields(config)) read_tower(*tower, m);
  const std::int64_t forced = config.size_or({"force_image_size"}, m.side);
  if (forced != m.side) config.fail("differs from the tower's image_size", "force_image_size");
  const double ratio = config.number({"downsample_ratio"}, 0.5);
  m.shuffle = ratio > 0.0 && ratio <= 1.0 ? static_cast<std::int64_t>(std::min(1.0 / ratio, 64.0)) : 0;
  if (m.shuffle < 1 || (m.side / m.patch) % m.shuffle != 0) {
    config.fail("does not divide the tower's patches", "downsample_ratio");
    m.shuffle = 1;
  }
  m.layer = feature_layer(config, "select_layer", -1, m.sizes.layers);
  m.second_copy = config.text({"ps_version"}, "v1") != "v1";
  m.cuts = config.flag("dynamic_image_size", false);
  m.thumbnail = config.flag("use_thumbnail", false);
  m.least_tiles = config.size_or({"min_dynamic_patch"}, 1);
  m.most_tiles = config.size_or({"max_dynamic_patch"}, 6);
  constexpr std::int64_t kMostTiles = 1024;
  if (m.most_tiles > kMostTiles) config.fail("is more than gpumem takes", "max_dynamic_patch");
  if (m.least_tiles > m.most_tiles) config.fail("is more than max_dynamic_patch", "min_dynamic_patch");
  for (const std::string_view adapters : {"use_backbone_lora", "use_llm_lora"}) {
    const core::JsonValue* rank = config.find(adapters);
    if (rank != nullptr && !rank->is(0)) config.fail("puts adapters into the model; say them as `lora`", adapters);
  }
  if (config.flag("pad2square", false)) config.fail("is not known", "pad2square");
  config.ignore({"hidden_size", "image_fold", "system_message", "template", "output_attentions"});
  return m;
}

inline Tensor norm(Forward& f, const Model& m, std::string_view name, Tensor input) {
  return m.squares ? f.rms_norm(name, input, m.sizes.width, "InternRMSNorm") : f.layer_norm(name, input, m.sizes.width);
}

/// One projection; where queries and keys are normed, all three are stacked again.
inline Tensor attention(Forward& f, const Model& m, Tensor input) {
  const InModule inside(f, "attn", "InternAttention");
  const std::int64_t width = m.sizes.width;
  const Tensor packed = f.linear("qkv", input, width, 3 * width, {.bias = m.bias});
  std::vector<Tensor> parts = f.split(packed, 2, {width, width, width});
  if (m.normed_heads) {
    const Tensor query = f.rms_norm("q_norm", parts[0], width, "InternRMSNorm");
    const Tensor key = f.rms_norm("k_norm", parts[1], width, "InternRMSNorm");
    parts = f.split(f.concatenate({query, key, parts[2]}, 2), 2, {width, width, width});
  }
  const auto heads = [&](std::size_t part) { return split_heads(f, parts[part], width / m.sizes.heads); };
  const Tensor query = heads(0);
  const Tensor key = heads(1);
  const Tensor mixed =
      attend(f, {query, key, heads(2)}, {.dropout = m.sizes.attention_dropout, .copies = false, .causal = false});
  return f.dropout("proj_drop", f.linear("proj", mixed, width, width), m.dropout);
}

inline Tensor block(Forward& f, const Model& m, Tensor input) {
  const std::int64_t width = m.sizes.width;
  const Tensor mixed = attention(f, m, norm(f, m, "norm1", input));
  const Tensor attended = f.add(input, f.multiply(mixed, f.parameter("ls1", {width})));
  const Tensor fed =
      feed_forward(f, m.sizes, norm(f, m, "norm2", attended), {.class_name = "InternMLP", .activation = "act"});
  return f.add(attended, f.multiply(fed, f.parameter("ls2", {width})));
}

inline Tensor embedded(Forward& f, const Model& m, std::int64_t tiles) {
  constexpr std::int64_t kColours = 3;
  const Tensor pixels = f.rows_input("pixel_values", tiles, {kColours, m.side, m.side});
  const InModule inside(f, "embeddings", "InternVisionEmbeddings");
  const std::int64_t width = m.sizes.width;
  const Tensor first = f.parameter("class_embedding", {1, 1, width});
  const Tensor cut = f.layer("patch_embedding", "Conv2d", "conv2d", {pixels},
                             {{"in_channels", kColours},
                              {"out_channels", width},
                              {"kernel_size", Sizes(2, m.patch)},
                              {"stride", Sizes(2, m.patch)}});
  const std::vector<core::Dim> each = {core::Dim::batch(tiles), core::Dim::fixed(-1), core::Dim::fixed(-1)};
  const Tensor rows = f.permute(f.flatten(cut, 2, 3), {0, 2, 1});
  const Tensor all = f.concatenate({f.call("expand", {first}, {{"shape", each}}), rows}, 1);
  // The table is resized to its own size, in float32: of one image, whatever the batch.
  return f.add(all, f.parameter("position_embedding", {1, m.patches() + 1, width}));
}

inline Tensor features_of(Forward& f, const Model& m, std::int64_t tiles) {
  std::vector<Tensor> behind;
  {
    const InModule inside(f, "vision_model", "InternVisionModel");
    behind.push_back(embedded(f, m, tiles));
    const InModule encoder(f, "encoder", "InternVisionEncoder");
    (void)stack(f, "layers", "InternVisionEncoderLayer", m.sizes.layers, behind.front(), [&](Tensor x, std::int64_t) {
      behind.push_back(block(f, m, x));
      return behind.back();
    });
  }
  if (f.failed()) return behind.front();
  const std::int64_t wide = m.sizes.width * m.shuffle * m.shuffle;
  Tensor image = f.call("clone", {f.slice(behind[m.layer], 1, 1, Forward::kRest)});
  if (m.second_copy) image = f.call("clone", {image});
  const InModule inside(f, "mlp1", "Sequential");
  const Tensor normed = f.layer_norm("0", f.unflatten(f.flatten(image, 1, 2), 1, {-1, wide}), wide);
  const Tensor open = f.activation("2", f.linear("1", normed, wide, m.width), "gelu");
  // image_flags picks the images that are none to fill up a batch.
  return f.call("clone", {f.linear("3", open, m.width, m.width)});
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Pictures pictures = pictures_of(f);
  Model model = read(config);
  if (!config.has("llm_config")) return config.fail("is not there, and its class has no text model then", "llm_config");
  ConfigFields* text = text_fields(config, "qwen2", "llm_config");
  if (text == nullptr || !config.status()) return;
  // InternVLChatConfig sets it so, whatever llm_config says.
  text->replace(R"({"tie_word_embeddings": false})");
  model.width = text->size({"hidden_size"});
  const TileGrid grid =
      model.cuts ? closest_grid(pictures.size, model.side, model.most_tiles, model.least_tiles) : TileGrid{};
  const std::int64_t cut = model.thumbnail ? grid.with_thumbnail() : grid.tiles();
  const std::int64_t tiles = pictures.seen() * (pictures.frames > 0 ? 1 : cut);
  // InternVisionEncoder.gradient_checkpointing is true where no trainer sets it.
  if (pictures.count > 0) {
    f.remark(
        "InternVL's own code may checkpoint its tower's blocks where the job does not say so; that is not counted");
  }
  tell_pictures(f, pictures, tiles * model.tokens());
  f.doubt({model::Doubt::About::kernels,
           "flash_attn is taken to be installed; without it InternVL's own code writes attention out", false});
  // "InternVLChatModel" has the head of its language model.
  if (head == Head::none) head = Head::causal_lm;
  write_text(f, *text, head, whole_text(kAnyText), pictures,
             [&](Forward& to) { return features_of(to, model, tiles); });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"InternVLChat", "internvl_chat"}});

/// What print(model) shows. How pictures are cut is as published.
inline void read_tree(TreeFields& t) {
  static constexpr auto kPublished = std::to_array<PublishedHeads>({{1024, 16}, {3200, 25}});
  const std::string cut = "vision_model.embeddings.patch_embedding";
  const std::string block = "vision_model.encoder.layers.0.";
  t.open("vision_config");
  t.size("hidden_size", cut, "out_channels");
  t.size("patch_size", cut, "kernel_size");
  t.set("image_size", 448);
  t.count("num_hidden_layers", "vision_model.encoder.layers");
  t.size("intermediate_size", block + "mlp.fc1", "out_features");
  t.activation("hidden_act", block + "mlp.act");
  t.heads_of_width({.published = kPublished}, t.value(cut, "out_channels").value_or(0));
  t.flag("qkv_bias", block + "attn.qkv");
  t.there("qk_normalization", block + "attn.q_norm");
  t.set_string("norm_type", t.class_of(block + "norm1") == "LayerNorm" ? "layer_norm" : "rms_norm");
  t.dropout("dropout", block + "attn.proj_drop");
  t.close();
  t.set_text("dynamic_image_size", "true");
  t.set_text("use_thumbnail", "true");
  t.set_string("ps_version", "v2");
  t.set("max_dynamic_patch", 12);
  t.assume("up to 12 tiles of 448 x 448 pixels and the whole picture, as published models have");
  tree_text(t, {.path = "language_model.model", .type = "internlm2", .field = "llm_config"});
}

inline constexpr Architecture kArchitecture = {.name = "internvl_chat",
                                               .model_types = names<"internvl_chat">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .holds_text_model = true};

}  // namespace internvl_chat

// LFM2-VL and LFM2.5-VL: pictures that are too large are cut into tiles by InternVL's rule, others are resized; every
// tile is padded to as many patches as one may have. SigLIP 2's tower of patches in rows, with a mask of the padding;
// four patches side by side, two linear layers, and LFM2. Source: transformers 5.0,
// models/lfm2_vl/modeling_lfm2_vl.py, image_processing_lfm2_vl_fast.py; models/siglip2/modeling_siglip2.py.

namespace lfm2_vl {

struct Model {
  DecoderSizes sizes;  ///< of the tower
  std::int64_t patch = 16;
  std::int64_t channels = 3;
  std::int64_t places = 256;  ///< of the table of positions
  std::size_t layer = 0;
  std::int64_t merge = 2;
  std::int64_t projected = 2560;
  bool bias = true;
  bool normed = true;  ///< in front of the projector
  std::string_view activation = "gelu";
  std::int64_t least_tokens = 64;
  std::int64_t most_tokens = 256;
  std::int64_t tile = 512;
  std::int64_t least_tiles = 2;
  std::int64_t most_tiles = 10;
  double tolerance = 2.0;  ///< so many times the most pixels are still one tile
  bool cuts = true;
  bool thumbnail = true;
  std::int64_t width = 1;  ///< of the text model

  [[nodiscard]] std::int64_t step() const { return patch * merge; }  ///< pixels of a token
};

inline void read_tower(ConfigFields& config, Model& m) {
  m.sizes = encoder_sizes(config,
                          {.width = 768, .inner = 3072, .layers = 12, .heads = 12, .activation = "gelu_pytorch_tanh"});
  m.patch = config.size_or({"patch_size"}, 16);
  m.channels = config.size_or({"num_channels"}, 3);
  m.places = config.size_or({"num_patches"}, 256);
  config.ignore({"model_type", "vision_use_head", "image_size"});
  if (m.patch > 256) config.fail("is more than gpumem takes", "patch_size");
}

inline Model read(ConfigFields& config) {
  Model m;
  if (ConfigFields* tower = vision_fields(config)) read_tower(*tower, m);
  m.layer = feature_layer(config, "vision_feature_layer", -1, m.sizes.layers);
  m.merge = config.size_or({"downsample_factor"}, 2);
  m.projected = config.size_or({"projector_hidden_size"}, 2560);
  m.bias = config.flag("projector_bias", true);
  m.normed = config.flag("projector_use_layernorm", true);
  m.activation = config.text({"projector_hidden_act"}, "gelu");
  m.least_tokens = config.size_or({"min_image_tokens"}, 64);
  m.most_tokens = config.size_or({"max_image_tokens"}, 256);
  m.tile = config.size_or({"tile_size"}, 512);
  m.least_tiles = config.size_or({"min_tiles"}, 2);
  m.most_tiles = config.size_or({"max_tiles"}, 10);
  m.tolerance = config.number({"max_pixels_tolerance"}, 2.0);
  m.cuts = config.flag("do_image_splitting", true) && !(m.least_tiles == 1 && m.most_tiles == 1);
  m.thumbnail = config.flag("use_thumbnail", true);
  config.ignore({"encoder_patch_size", "use_image_special_tokens", "image_token_id", "image_token_index"});
  constexpr std::int64_t kMost = 1 << 14;
  if (m.merge > 8) config.fail("is more than gpumem takes", "downsample_factor");
  if (m.most_tiles > 1024) config.fail("is more than gpumem takes", "max_tiles");
  if (m.least_tiles > m.most_tiles) config.fail("is more than max_tiles", "min_tiles");
  if (m.tile > kMost || m.tile % (m.patch * m.merge) != 0) config.fail("is no whole number of tokens", "tile_size");
  if (m.most_tokens > kMost) config.fail("is more than gpumem takes", "max_image_tokens");
  return m;
}

/// How a picture is read.
struct Cut {
  std::int64_t crops = 1;  ///< tiles, and the picture as a whole
  std::int64_t tokens = 1;
};

/// resize_and_split(): the picture as a whole is kept to the bounds of its tokens.
inline Cut cut_of(const Model& m, const PictureSize& size) {
  namespace d = image_rules_detail;
  const std::int64_t square = m.step() * m.step();
  const auto side = [&](std::int64_t length) { return d::rounded(d::real(length) / d::real(m.step())) * m.step(); };
  PictureSize large = {std::max(side(size.width), m.step()), std::max(side(size.height), m.step())};
  const double area = d::real(size.width) * d::real(size.height);
  const double step = d::real(m.step());
  const double most_pixels = d::real(m.most_tokens * square);
  const double least_pixels = d::real(m.least_tokens * square);
  const double pixels = d::real(large.width * large.height);
  // Its operations in its order: a square would else lose a row to rounding.
  if (pixels > most_pixels) {
    const double beta = std::sqrt(area / most_pixels);
    const auto shrunk = [&](std::int64_t length) {
      return std::max<std::int64_t>(d::whole(std::floor(d::real(length) / beta / step)), 1) * m.step();
    };
    large = {shrunk(size.width), shrunk(size.height)};
  } else if (pixels < least_pixels) {
    const double beta = std::sqrt(least_pixels / area);
    const auto grown = [&](std::int64_t length) {
      return d::whole(std::ceil(d::real(length) * beta / step)) * m.step();
    };
    large = {grown(size.width), grown(size.height)};
  }
  const std::int64_t whole = large.width / m.step() * (large.height / m.step());
  const double most = most_pixels * m.tolerance;
  const std::int64_t rounded = std::max(side(size.width), m.patch) * std::max(side(size.height), m.patch);
  if (!m.cuts || !(d::real(rounded) > most)) return {1, whole};
  const std::int64_t tiles = closest_grid(size, m.tile, m.most_tiles, m.least_tiles).tiles();
  const bool thumbnail = m.thumbnail && tiles != 1;
  return {tiles + (thumbnail ? 1 : 0), tiles * (m.tile / m.step()) * (m.tile / m.step()) + (thumbnail ? whole : 0)};
}

/// Patches that each crop is padded to.
inline std::int64_t padded_patches(const Model& m) {
  const std::int64_t of_tile = m.cuts ? (m.tile / m.patch) * (m.tile / m.patch) : 0;
  return std::max(m.most_tokens * m.merge * m.merge, of_tile);
}

/// What the last norm leaves.
inline Tensor tower(Forward& f, const Model& m, std::int64_t crops) {
  const InModule outer(f, "vision_tower", "Siglip2VisionModel");
  const InModule inside(f, "vision_model", "Siglip2VisionTransformer");
  const DecoderSizes& s = m.sizes;
  const std::int64_t patches = padded_patches(m);
  const std::int64_t area = m.channels * m.patch * m.patch;
  const Tensor pixels = f.rows_input("pixel_values", crops, {patches, area});
  const Tensor shown = f.rows_input("pixel_attention_mask", crops, {patches});
  Tensor hidden = 0;
  {
    const InModule embeddings(f, "embeddings", "Siglip2VisionEmbeddings");
    const Tensor rows = f.linear("patch_embedding", pixels, area, s.width);
    // Resized to each crop's rows and columns, into one tensor for all.
    const Tensor places = f.rows_input("patch_places", crops, {patches});
    hidden = f.add(rows, f.embedding("position_embedding", places, m.places, s.width));
  }
  const Tensor mask = f.as_type_of(row_mask(f, shown), hidden);
  const EncoderClasses classes = {.encoder = "Siglip2Encoder",
                                  .layer = "Siglip2EncoderLayer",
                                  .attention = "Siglip2Attention",
                                  .mlp = "Siglip2MLP"};
  return f.layer_norm("post_layernorm", encoder_states(f, s, classes, hidden, mask).back(), s.width);
}

/// Each picture by itself: its patches without the padding, four side by side.
inline Tensor features_of(Forward& f, const Model& m, std::int64_t pictures, const Cut& cut) {
  const Tensor hidden = tower(f, m, pictures * cut.crops);
  const std::int64_t wide = m.sizes.width * m.merge * m.merge;
  const InModule inside(f, "multi_modal_projector", "Lfm2VlMultiModalProjector");
  const Tensor all = f.flatten(f.unflatten(hidden, 0, {-1, cut.crops}), 1, 2);
  const Tensor image = f.call("clone", {f.slice(all, 1, 0, cut.tokens * m.merge * m.merge)});
  Tensor merged = f.unflatten(f.flatten(f.call("clone", {image}), 1, 2), 1, {-1, wide});
  if (m.normed) merged = f.layer_norm("layer_norm", merged, wide);
  const Linear linear = {.bias = m.bias};
  const Tensor open = f.activation("act", f.linear("linear_1", merged, wide, m.projected, linear), m.activation);
  return f.call("clone", {f.linear("linear_2", open, m.projected, m.width, linear)});  // torch.cat of the pictures
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Pictures pictures = pictures_of(f);
  Model model = read(config);
  ConfigFields* text = text_fields(config, "lfm2");
  if (text == nullptr || !config.status()) return;
  if (model.layer != static_cast<std::size_t>(model.sizes.layers)) {
    return config.fail("must be the last layer; transformers reads no other", "vision_feature_layer");
  }
  model.width = text->size({"hidden_size"});
  const Cut cut = cut_of(model, pictures.size);
  tell_pictures(f, pictures, pictures.seen() * cut.tokens);
  write_text(f, *text, head, inner_text("Lfm2VlModel", "Lfm2Model"), pictures,
             [&](Forward& to) { return features_of(to, model, pictures.seen(), cut); });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Lfm2Vl", "lfm2_vl", "model", kAlwaysTied}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  static constexpr auto kPublished = std::to_array<PublishedHeads>({{768, 12}, {1152, 16}});
  const std::string tower = "vision_tower.vision_model.";
  const std::string cut = tower + "embeddings.patch_embedding";
  const std::string projector = "multi_modal_projector.";
  const std::int64_t width = std::max<std::int64_t>(t.value(cut, "out_features").value_or(1), 1);
  t.open("vision_config");
  t.size("hidden_size", cut, "out_features");
  t.set("patch_size", TreeFields::square_side(t.value(cut, "in_features").value_or(0) / 3));
  t.size("num_patches", tower + "embeddings.position_embedding", "num_embeddings");
  t.count("num_hidden_layers", tower + "encoder.layers");
  t.size("intermediate_size", tower + "encoder.layers.0.mlp.fc1", "out_features");
  t.activation("hidden_act", tower + "encoder.layers.0.mlp.activation_fn");
  t.heads_of_width({.published = kPublished}, width);
  t.close();
  t.set("downsample_factor",
        TreeFields::square_side(t.value(projector + "linear_1", "in_features").value_or(width) / width));
  t.size("projector_hidden_size", projector + "linear_1", "out_features");
  t.flag("projector_bias", projector + "linear_1");
  t.there("projector_use_layernorm", projector + "layer_norm");
  t.activation("projector_hidden_act", projector + "act");
  tree_text(t, {.type = "lfm2"});
}

inline constexpr Architecture kArchitecture = {.name = "lfm2_vl",
                                               .model_types = names<"lfm2_vl", "lfm2-vl">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .holds_text_model = true};

}  // namespace lfm2_vl

}  // namespace gpumem::architectures
