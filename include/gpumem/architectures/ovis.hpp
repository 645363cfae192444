// Ovis 2: a tower whose features are words of a vocabulary of its own, by a softmax, which a table turns into
// embeddings; and a decoder, Qwen2 by default. Pictures are cut into the fewest tiles that keep 90 % of them, and come
// whole too; five more words of the table mark where a picture, its tiles and rows begin and end.
// The config that its makers publish ("ovis") names the same sizes otherwise; the calls are transformers' own.
// Source: transformers 4.56 to 5.17, models/ovis2/modeling_ovis2.py, image_processing_ovis2.py, processing_ovis2.py;
// convert_ovis2_weights_to_hf.py: tiles of 448 pixels, twelve at most.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/image_rules.hpp"
#include "gpumem/architectures/image_tokens.hpp"
#include "gpumem/architectures/image_towers.hpp"
#include "gpumem/architectures/vision_language.hpp"

namespace gpumem::architectures {

namespace ovis {

inline constexpr std::int64_t kMostTiles = 12;
inline constexpr std::int64_t kMostPublished = 9;  ///< max_partition of the model's own card

struct Model {
  bool published = false;  ///< its fields are its makers'
  DecoderSizes tower;
  std::int64_t side = 224;
  std::int64_t channels = 3;
  std::int64_t patch = 14;
  bool attention_bias = false;
  bool mlp_bias = false;
  std::int64_t words = 16384;  ///< of the tower's vocabulary
  std::int64_t marks = 5;      ///< the last of them
  std::int64_t stride = 1;     ///< patches of a side that become one token
  bool hard = false;           ///< the largest word alone counts (st_argmax, gumbel_argmax)
  std::int64_t width = 1;      ///< of the text model

  [[nodiscard]] std::int64_t across() const { return side / patch; }
  [[nodiscard]] std::int64_t tokens() const {
    const std::int64_t merged = (across() + stride - 1) / stride;
    return merged * merged;
  }
};

/// The fields of the tower's blocks, and those of its words: the same object, but where its makers publish them.
struct TowerFields {
  ConfigFields* blocks = nullptr;
  ConfigFields* words = nullptr;
};
inline TowerFields tower_fields(ConfigFields& config, bool published) {
  if (!published) {
    ConfigFields* const both = vision_fields(config);
    return {both, both};
  }
  ConfigFields* const words = config.part_or_usual("visual_tokenizer_config");
  return {words == nullptr ? nullptr : words->part_or_usual("backbone_config"), words};
}

inline Model read(ConfigFields& config) {
  Model m;
  m.published = config.text({"model_type"}, "ovis2") == "ovis";
  const auto [blocks, words] = tower_fields(config, m.published);
  if (blocks == nullptr || words == nullptr) return m;
  m.tower = encoder_sizes(*blocks, {.width = 1024, .inner = 2816, .layers = 24, .heads = 8, .activation = "silu"});
  m.side = blocks->size_or({"image_size"}, m.published ? 448 : 224);
  m.channels = blocks->size_or({"num_channels"}, 3);
  m.patch = blocks->size_or({"patch_size"}, 14);
  m.attention_bias = blocks->flag("qkv_bias", false);
  m.mlp_bias = blocks->flag(m.published ? "use_bias" : "mlp_bias", false);
  m.words = words->size_or({"vocab_size"}, m.published ? 65536 : 16384);
  m.marks = words->size_or({"num_visual_indicator_tokens"}, 5);
  m.stride = words->size_or({"hidden_stride"}, 1);
  const std::string_view kind = words->text({"tokenize_function"}, "softmax");
  m.hard = kind != "softmax";
  if (m.hard && kind != "st_argmax" && kind != "gumbel_argmax") {
    words->fail("must be softmax, st_argmax or gumbel_argmax", "tokenize_function");
  }
  blocks->ignore({"model_type", "projection_dropout", "backbone_config", "is_native"});
  words->ignore({"model_type", "tau", "depths", "drop_cls_token", "use_indicators", "backbone_kwargs"});
  if (m.marks >= m.words) words->fail("leaves no words", "num_visual_indicator_tokens");
  if (m.stride > 8) words->fail("is more than gpumem takes", "hidden_stride");
  if (m.side < m.patch || m.side > model::Images::kLargestSide) blocks->fail("is no size of an image", "image_size");
  return m;
}

/// get_min_tile_covering_grid: of all grids of at most so many tiles the fewest whose tiles, made no larger than
/// `tile`, keep more than 90 % of the picture; of as many those that keep most. Where none does, those that keep most.
inline TileGrid covering_tiles(const PictureSize& size, std::int64_t tile, std::int64_t most_tiles) {
  namespace d = image_rules_detail;
  constexpr double kEnough = 0.9;
  const auto kept = [&](const TileGrid& grid) {
    double area = 0.0;
    const std::int64_t high = size.height / grid.rows;
    const std::int64_t wide = size.width / grid.columns;
    for (std::int64_t row = 0; row < grid.rows; ++row) {
      for (std::int64_t column = 0; column < grid.columns; ++column) {
        const std::int64_t w = column + 1 == grid.columns ? size.width - column * wide : wide;
        const std::int64_t h = row + 1 == grid.rows ? size.height - row * high : high;
        const auto [less, more] = std::minmax(w, h);
        area += more > tile ? d::real(less) / d::real(more) * d::real(tile) * d::real(tile) : d::real(more * less);
      }
    }
    return area / (d::real(size.width) * d::real(size.height));
  };
  TileGrid best;
  TileGrid fullest;
  double best_share = 0.0;
  double most = -1.0;
  bool enough = false;
  for (std::int64_t tiles = 1; tiles <= most_tiles; ++tiles) {
    for (std::int64_t rows = 1; rows <= tiles && !(enough && best.tiles() < tiles); ++rows) {
      if (tiles % rows != 0) continue;
      const TileGrid grid = {rows, tiles / rows};
      const double share = kept(grid);
      if (share > most) {
        fullest = grid;
        most = share;
      }
      if (share > kEnough && (!enough || share > best_share)) {
        best = grid;
        best_share = share;
        enough = true;
      }
    }
  }
  return enough ? best : fullest;
}

/// The stream lies as the convolution left it, channels outermost, and so do norms of it: each linear layer copies what
/// it reads.
inline Tensor block(Forward& f, const Model& m, Tensor input) {
  const DecoderSizes& s = m.tower;
  const auto norm = [&](std::string_view name, Tensor x) { return f.rms_norm(name, x, s.width, "Ovis2RMSNorm"); };
  const auto linear = [&](std::string_view name, Tensor x, std::int64_t out, bool bias) {
    return f.linear(name, f.call("clone", {x}), s.width, out, {.bias = bias});
  };
  const Tensor normed = norm("rms_norm1", input);
  Tensor attended = 0;
  {
    const InModule inside(f, "attention", "Ovis2Attention");
    const Tensor query = linear("q_proj", normed, s.width, m.attention_bias);
    const Tensor key = linear("k_proj", normed, s.width, m.attention_bias);
    const Tensor value = linear("v_proj", normed, s.width, m.attention_bias);
    const std::int64_t each = s.width / s.heads;
    const Heads heads = {split_heads(f, query, each), split_heads(f, key, each), split_heads(f, value, each)};
    const Tensor mixed = attend(f, heads, {.dropout = s.attention_dropout, .causal = false});
    attended = f.linear("out_proj", mixed, s.width, s.width, {.bias = m.attention_bias});
  }
  const Tensor sum = f.add(input, attended);
  const Tensor again = norm("rms_norm2", sum);
  const InModule inside(f, "ffn", "Ovis2MLP");
  const Tensor open = f.activation("act_fn", linear("gate_proj", again, s.inner, m.mlp_bias), s.activation);
  const Tensor up = linear("up_proj", again, s.inner, m.mlp_bias);
  return f.add(sum, f.linear("down_proj", f.multiply(open, up), s.inner, s.width, {.bias = m.mlp_bias}));
}

inline Tensor embedded(Forward& f, const Model& m, std::int64_t tiles) {
  const InModule inside(f, "embeddings", "Ovis2VisionEmbeddings");
  const std::int64_t places = m.across() * m.across();
  const Tensor image = f.rows_input("pixel_values", tiles, {m.channels, m.side, m.side});
  const PatchCut cut = {.channels = m.channels, .width = m.tower.width, .patch = m.patch, .step = {}};
  const Tensor rows =
      f.rms_norm("rms_norm", cut_patches(f, "patch_embedding", image, cut), m.tower.width, "Ovis2RMSNorm");
  const Tensor table = f.parameter("position_embedding.weight", {places, m.tower.width});
  return f.add(rows, f.call("clone", {f.call("unsqueeze", {table}, {{"dim", std::int64_t{0}}})}));
}

/// The patches of each square side by side; a last row and column are filled up where they are no whole square.
inline Tensor squares(Forward& f, const Model& m, Tensor hidden) {
  if (m.stride == 1) return hidden;
  const std::int64_t missing = (m.stride - m.across() % m.stride) % m.stride;
  const std::int64_t side = (m.across() + missing) / m.stride;
  const std::int64_t more = side * side * m.stride * m.stride - m.across() * m.across();
  // F.pad copies though there is nothing to pad.
  const Tensor padded =
      more > 0 ? f.call("pad", {hidden}, {{"padding", Sizes{0, 0, 0, more}}}) : f.call("clone", {hidden});
  const Tensor image = f.unflatten(padded, 1, {side, m.stride, side, m.stride});
  const Tensor turned = f.contiguous(f.permute(image, {0, 1, 3, 2, 4, 5}));
  return f.flatten(f.flatten(f.flatten(turned, 1, 2), 2, 3), 2, 3);
}

/// Which of the tower's words each token is: [N tiles, tokens, words].
inline Tensor tower(Forward& f, const Model& m, std::int64_t tiles) {
  const InModule inside(f, "vision_tower", "Ovis2VisionModel");
  Tensor hidden = 0;
  {
    const InModule transformer(f, "transformer", "Ovis2VisionTransformer");
    hidden = embedded(f, m, tiles);
    {
      const InModule encoder(f, "encoder", "Ovis2VisionEncoder");
      hidden = stack(f, "layers", "Ovis2VisionEncoderLayer", m.tower.layers, hidden,
                     [&](Tensor x, std::int64_t) { return block(f, m, x); });
    }
    hidden = f.rms_norm("rms_norm", hidden, m.tower.width, "Ovis2RMSNorm");
  }
  const std::int64_t words = m.words - m.marks;
  const Tensor logits =
      f.linear("head_linear", squares(f, m, hidden), m.tower.width * m.stride * m.stride, words, {.bias = false});
  const Tensor soft = f.call("softmax", {f.layer_norm("head_norm", logits, words)});
  if (!m.hard) return soft;
  // y_hard - y_soft.detach() + y_soft
  return f.add(f.call("token_zeros", {soft}), soft);
}

inline Tensor features_of(Forward& f, const Model& m, std::int64_t tiles) {
  const Tensor chosen = tower(f, m, tiles);
  const Tensor padded = f.call("pad", {chosen}, {{"padding", Sizes{0, m.marks}}});
  const InModule inside(f, "visual_embeddings_table", "Ovis2VisualEmbeddingTable");
  const Tensor table = f.parameter("weight", {m.words, m.width});
  return f.call("linear_function", {padded, f.permute(table, {1, 0})});
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Pictures pictures = pictures_of(f);
  Model model = read(config);
  ConfigFields* text = text_fields(config, "qwen2", model.published ? "llm_config" : "text_config");
  config.ignore({"visual_indicator_token_ids", "hidden_size", "vocab_size", "multimodal_max_length"});
  if (text == nullptr || !config.status()) return;
  model.width = text->size({"hidden_size"});
  const std::int64_t most = model.published ? kMostPublished : kMostTiles;
  const TileGrid grid = pictures.frames > 0 ? TileGrid{} : covering_tiles(pictures.size, model.side, most);
  const std::int64_t tiles = grid.with_thumbnail();
  // Marks: before a picture, behind the whole of it, and at its end; between its columns and its rows.
  const std::int64_t marks = 3 + (grid.tiles() > 1 ? grid.rows * (grid.columns - 1) + grid.rows - 1 : 0);
  if (model.published) f.remark("the calls are those of transformers' class, not of the code beside the config");
  tell_pictures(f, pictures, pictures.seen() * (tiles * model.tokens() + marks));
  write_text(f, *text, head, inner_text("Ovis2Model", "TextModel"), pictures,
             [&](Forward& to) { return features_of(to, model, pictures.seen() * tiles); });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Ovis2", "ovis2", "model", 2048}});
/// Published towers, by width: AIMv2 of 300M, 600M and 1B.
inline constexpr auto kTowers = std::to_array<PublishedHeads>({{1024, 8}, {1536, 12}, {2048, 16}});

/// What print(model) of transformers' class shows. The table of the tower's words is a bare parameter.
inline void read_tree(TreeFields& t) {
  const std::string transformer = "vision_tower.transformer.";
  const std::string block = transformer + "encoder.layers.0.";
  const std::string cut = transformer + "embeddings.patch_embedding";
  t.open("vision_config");
  t.count("num_hidden_layers", transformer + "encoder.layers");
  t.size("hidden_size", cut, "out_channels");
  t.size("num_channels", cut, "in_channels");
  t.size("patch_size", cut, "kernel_size");
  t.size("intermediate_size", block + "ffn.gate_proj", "out_features");
  t.activation("hidden_act", block + "ffn.act_fn");
  t.flag("qkv_bias", block + "attention.q_proj");
  t.flag("mlp_bias", block + "ffn.gate_proj");
  const std::int64_t width = t.value(cut, "out_channels").value_or(0);
  t.heads_of_width({.published = kTowers, .usual_width = 128}, width);
  const std::int64_t places = t.value(transformer + "embeddings.position_embedding", "num_embeddings").value_or(0);
  t.set("image_size", TreeFields::square_side(places) * t.value(cut, "kernel_size").value_or(1));
  constexpr std::int64_t kMarks = 5;
  if (const auto words = t.value("vision_tower.head_linear", "out_features")) t.set("vocab_size", *words + kMarks);
  const std::int64_t read = t.value("vision_tower.head_linear", "in_features").value_or(0);
  if (width > 0) t.set("hidden_stride", TreeFields::square_side(read / width));
  t.close();
  tree_text(t, {.type = "qwen2"});
}

inline constexpr Architecture kArchitecture = {.name = "ovis",
                                               .model_types = names<"ovis2", "ovis">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .holds_text_model = true};

}  // namespace ovis

// Phi-3-vision and Phi-3.5-vision, their publishers' own code: CLIP's tower of 336 pixels on a picture and its crops,
// all of which are padded to as many; squares of four patches side by side, with a learned one at the end of each row
// and between the crops and the whole; two linear layers; Phi-3. Source: modeling_phi3_v.py and processing_phi3_v.py of
// microsoft/Phi-3.5-vision-instruct, whose processor makes at most four crops; that of Phi-3-vision-128k makes 16.

namespace phi3_v {

inline constexpr std::int64_t kSide = 336;
inline constexpr std::int64_t kCrops = 4;
/// CLIP_VIT_LARGE_PATCH14_336_CONFIG.
inline constexpr std::string_view kTower = R"({"model_type": "clip_vision_model", "hidden_size": 1024,
    "image_size": 336, "intermediate_size": 4096, "num_attention_heads": 16, "num_hidden_layers": 24,
    "patch_size": 14})";

struct Model {
  ImageTower tower;
  std::size_t layer = 0;   ///< whose state is read
  std::int64_t width = 1;  ///< of the text model

  [[nodiscard]] std::int64_t across() const { return tower.side / tower.patch / 2; }
  [[nodiscard]] std::int64_t wide() const { return 4 * tower.sizes.width; }
  /// Up to the layer that is read.
  [[nodiscard]] ImageTower read_tower() const {
    ImageTower part = tower;
    part.sizes.layers = static_cast<std::int64_t>(layer);
    return part;
  }
};

/// The layers behind the one that is read: what they keep goes with the names of their states, when
/// get_img_features() ends.
inline void hold_rest(Forward& f, const Model& m) {
  const DecoderSizes& s = m.tower.sizes;
  for (std::int64_t at = static_cast<std::int64_t>(m.layer); at < s.layers; ++at) {
    const std::string name = "vision_model.encoder.layers." + std::to_string(at);
    f.hold_printed(name);
    (void)f.parameter(name + ".unused", {4 * (s.width + 1) + 2 * s.inner + 5, s.width}, true);
    (void)f.parameter(name + ".unused_bias", {s.inner}, true);
  }
}

/// HD_transform: as many crops of a row, of the longer side, as the grid has room for.
inline TileGrid crops_of(const PictureSize& size, std::int64_t most) {
  const bool upright = size.width < size.height;
  const auto ratio =
      static_cast<double>(std::max(size.width, size.height)) / static_cast<double>(std::min(size.width, size.height));
  const auto rows_of = [&](std::int64_t columns) {
    return static_cast<std::int64_t>(std::ceil(static_cast<double>(columns) / ratio));
  };
  std::int64_t columns = 1;
  while ((columns + 1) * rows_of(columns + 1) <= most) ++columns;
  const auto height = static_cast<std::int64_t>(static_cast<double>(columns * kSide) / ratio);
  const std::int64_t rows = std::max<std::int64_t>((height + kSide - 1) / kSide, 1);
  return upright ? TileGrid{columns, rows} : TileGrid{rows, columns};
}

inline Model read(ConfigFields& config) {
  Model m;
  if (ConfigFields* tower = config.part("img_processor", kTower)) {
    const std::string_view name = tower->text({"name"}, "clip_vision_model");
    if (name != "clip_vision_model") tower->fail("is clip_vision_model in this model", "name");
    m.tower = read_image_tower(*tower, "clip_vision_model");
    m.layer = feature_layer(*tower, "layer_idx", -2, m.tower.sizes.layers);
    tower->ignore({"name", "model_name", "image_dim_out", "num_img_tokens", "type_feature"});
  } else {
    config.fail("is missing, and the model without a tower is Phi-3", "img_processor");
  }
  if (ConfigFields* embedding = config.part("embd_layer", "{}")) {
    if (!embedding->flag("use_hd_transform", true)) embedding->fail("is true in this model", "use_hd_transform");
    if (!embedding->flag("with_learnable_separator", true))
      embedding->fail("is true in this model", "with_learnable_separator");
    embedding->ignore({"embedding_cls", "hd_transform_order", "projection_cls", "image_dim_out"});
  }
  const std::int64_t patches = m.tower.side / m.tower.patch;
  if (m.tower.side != kSide || patches % 2 != 0) config.fail("reads images of another size", "img_processor");
  config.ignore({"original_max_position_embeddings"});
  return m;
}

/// [N, rows, columns, wide] with the learned square behind each row, as one sequence.
inline Tensor with_newlines(Forward& f, Tensor squares, Tensor newline, std::int64_t images, const TileGrid& grid) {
  const std::vector<core::Dim> every = {core::Dim::batch(images), core::Dim::fixed(grid.rows), core::Dim::fixed(-1),
                                        core::Dim::fixed(-1)};
  const Tensor parted = f.unflatten(squares, 1, {grid.rows, grid.columns});
  return f.flatten(f.concatenate({parted, f.call("expand", {newline}, {{"shape", every}})}, 2), 1, 2);
}

/// [N images, tokens, width of the text].
inline Tensor features_of(Forward& f, const Model& m, std::int64_t images, const TileGrid& grid) {
  const InModule inside(f, "vision_embed_tokens", "Phi3ImageEmbedding");
  f.hold_printed("wte");
  Tensor hidden = 0;
  {
    const InModule tower(f, "img_processor", "CLIPVisionModel");
    hidden = image_states(f, m.read_tower(), images * (kCrops + 1), false).hidden.back();
    hold_rest(f, m);
  }
  hidden = f.slice(hidden, 1, 1, Forward::kRest);
  const std::int64_t across = m.across();
  const Tensor crops = f.unflatten(hidden, 0, {-1, kCrops + 1});
  const auto merged = [&](Tensor of, std::int64_t count) {
    return f.call("clone", {f.unflatten(f.flatten(of, 1, 3), 1, {count * across * across, m.wide()})});
  };
  const Tensor newline = f.parameter("sub_GN", {1, 1, 1, m.wide()});
  const Tensor whole = with_newlines(f, merged(f.slice(crops, 1, 0, 1), 1), newline, images, {across, across});
  const TileGrid fine = {grid.rows * across, grid.columns * across};
  const Tensor parts = f.call("clone", {merged(f.slice(crops, 1, 1, grid.tiles()), grid.tiles())});
  const Tensor sub = with_newlines(f, parts, newline, images, fine);
  const std::vector<core::Dim> every = {core::Dim::batch(images), core::Dim::fixed(-1), core::Dim::fixed(-1)};
  const Tensor mark = f.call("expand", {f.parameter("glb_GN", {1, 1, m.wide()})}, {{"shape", every}});
  const Tensor all = f.concatenate({sub, mark, whole}, 1);
  const InModule projection(f, "img_projection", "Sequential");
  const Tensor open = f.activation("1", f.linear("0", all, m.wide(), m.width), "gelu");
  return f.leave_function(f.linear("2", open, m.width, m.width), {hidden, whole, sub, all});
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Pictures pictures = pictures_of(f);
  Model model = read(config);
  ConfigFields* text = text_fields(config, "phi3");
  if (text == nullptr || !config.status()) return;
  model.width = text->size({"hidden_size"});
  const TileGrid grid = crops_of(pictures.size, kCrops);
  const std::int64_t across = model.across();
  const std::int64_t tokens = (grid.tiles() + 1) * across * across + 1 + (grid.rows + 1) * across;
  tell_pictures(f, pictures, pictures.seen() * tokens);
  TextPart part;
  part.modules = {{"model", "Phi3VModel"}};
  write_text(f, *text, head, part, pictures,
             [&](Forward& to) { return features_of(to, model, pictures.seen(), grid); });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Phi3V", "phi3_v", "model"}});

/// What print(model) shows. The tower prints its table of words a second time.
inline void read_tree(TreeFields& t) {
  t.open("img_processor");
  t.set("layer_idx", -2);
  t.close();
  const Architecture* text = architecture_of("phi3");
  t.within("", "Phi3Model", [&] { text->read_tree(t); });
}

inline constexpr Architecture kArchitecture = {.name = "phi3_v",
                                               .model_types = names<"phi3_v">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .holds_text_model = true};

}  // namespace phi3_v

}  // namespace gpumem::architectures
