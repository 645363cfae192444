// DeepSeek-OCR, DeepSeek-OCR 2 and DeepSeek-VL2: a picture is seen whole and in tiles, and DeepSeek-V2 reads what a
// projector makes of both. The OCR models have SAM's encoder, most of whose blocks see windows, and behind it two
// convolutions and CLIP (OCR 2: blocks of Qwen2, which read one query a feature). DeepSeek-VL2 has SigLIP. DeepSeek-VL:
// SigLIP on the whole picture, and a Llama.
// Source: transformers 5.16, models/deepseek_ocr2/modeling_deepseek_ocr2.py, image_processing_deepseek_ocr2.py,
// models/deepseek_vl/modeling_deepseek_vl.py. Of those that transformers does not have, the code that its makers
// publish with them: deepseek-ai/DeepSeek-OCR (236bdc2), deepencoder/sam_vary_sdpa.py, clip_sdpa.py;
// deepseek-ai/DeepSeek-VL2 (53211ff), models/siglip_vit.py; the rules of tiles as ms-swift 4 has them for training,
// template/templates/deepseek.py. Norms over channels are taken as PyTorch's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/image_rules.hpp"
#include "gpumem/architectures/image_tokens.hpp"
#include "gpumem/architectures/image_towers.hpp"
#include "gpumem/architectures/vision_language.hpp"

namespace gpumem::architectures {

namespace deepseek_vl {

enum class Kind : std::uint8_t { ocr, ocr2, vl2, vl };

struct Model {
  Kind kind = Kind::ocr;
  bool published = true;  ///< its makers' code; else transformers'
  sam::Encoder sam;
  DecoderSizes reader;  ///< the blocks behind SAM: CLIP's, or Qwen2's
  ImageTower tower;     ///< SigLIP
  std::int64_t width = 1;
  std::vector<PictureSize> canvases = {};

  [[nodiscard]] bool reads_text() const { return kind == Kind::ocr || kind == Kind::ocr2; }
};

/// What the processor makes of a picture.
struct Plan {
  std::int64_t images = 1;
  std::int64_t whole = 1024;  ///< pixels a side of the whole picture
  std::int64_t tile = 640;    ///< and of a tile
  TileGrid grid = {};         ///< of tiles; empty: there are none
  std::int64_t tokens = 1;    ///< a picture
};

inline void read_clip(ConfigFields& config, DecoderSizes& s) {
  s.width = config.size_or({"width"}, 1024);
  s.layers = config.layers_or("layers", 24);
  s.heads = config.size_or({"heads"}, 16);
  s.inner = 4 * s.width;
  s.activation = "quick_gelu";
  config.ignore({"image_size", "patch_size"});
  if (s.width % s.heads != 0) config.fail("does not divide the tower's width", "heads");
}

/// DeepSeek-OCR 2's, whose sizes its makers write into their code: those of Qwen2 0.5B.
inline void read_reader(ConfigFields& config, DecoderSizes& s, bool published) {
  s.width = config.size_or({"hidden_size", "dim"}, published ? 896 : 4096);
  s.layers = config.layers_or("num_hidden_layers", published ? 24 : 32);
  s.heads = config.size_or({"num_attention_heads"}, published ? 14 : 32);
  s.inner = config.size_or({"intermediate_size"}, published ? 4864 : 22016);
  s.kv_heads = config.size_or({"num_key_value_heads"}, published ? 2 : 32);
  s.activation = config.text({"hidden_act"}, "silu");
  s.head_width = s.width / s.heads;
  config.ignore({"model_type", "vocab_size", "max_position_embeddings", "rms_norm_eps", "use_cache", "sliding_window",
                 "use_sliding_window", "max_window_layers", "layer_types", "attention_dropout", "initializer_range"});
  if (s.heads > s.width || s.width % s.heads != 0 || s.heads % s.kv_heads != 0)
    config.fail("does not divide its width", "hidden_size");
}

/// What pictures may be fitted to, in whole tiles: all grids of up to nine of them where the config names none.
inline std::vector<PictureSize> canvases_of(ConfigFields& config, std::int64_t side) {
  constexpr std::int64_t kMost = 9;
  std::vector<PictureSize> canvases = read_canvases(config, "candidate_resolutions", true);
  for (const PictureSize& canvas : canvases) {
    if (canvas.width % side != 0 || canvas.height % side != 0)
      config.fail("must be whole tiles of the tower's image_size", "candidate_resolutions");
  }
  if (!canvases.empty()) return canvases;
  for (std::int64_t rows = 1; rows <= kMost; ++rows) {
    for (std::int64_t columns = 1; rows * columns <= kMost; ++columns) {
      canvases.push_back({columns * side, rows * side});
    }
  }
  return canvases;
}

/// SigLIP's tower under timm's names.
inline void read_siglip(ConfigFields& config, ImageTower& t) {
  t.kind = ImageTower::Kind::siglip;
  t.sizes.width = config.size_or({"width"}, 1152);
  t.sizes.layers = config.layers_or("layers", 27);
  t.sizes.heads = config.size_or({"heads"}, 16);
  t.sizes.inner = inner_by_ratio(config, t.sizes.width, 3.7362);
  t.sizes.activation = "gelu_pytorch_tanh";
  t.side = config.size_or({"image_size"}, 384);
  t.patch = config.size_or({"patch_size"}, 14);
  t.head = config.text({"global_pool"}, "map") == "map";
  config.ignore({"model_name", "model_type", "deterministic", "num_recomputing_layers", "class_token", "ignore_head",
                 "weight_init", "use_checkpoint"});
  if (t.sizes.width % t.sizes.heads != 0) config.fail("does not divide the tower's width", "heads");
  if (t.side < 2 * t.patch || t.side > model::Images::kLargestSide) config.fail("is no size of an image", "image_size");
}

/// The published configs of all three have one model type: what the tower is made of tells them apart.
inline void read_published(ConfigFields& tower, Model& m) {
  const core::JsonValue* width = tower.find("width");
  ConfigFields* parts = width != nullptr && width->is(core::JsonValue::Kind::object) ? tower.part("width") : nullptr;
  if (parts == nullptr) {
    m.kind = Kind::vl2;
    return read_siglip(tower, m.tower);
  }
  m.kind = parts->has("qwen2-0-5b") ? Kind::ocr2 : Kind::ocr;
  ConfigFields* encoder = parts->part_or_usual("sam_vit_b");
  ConfigFields* reader = parts->part_or_usual(m.kind == Kind::ocr ? "clip-l-14-224" : "qwen2-0-5b");
  if (encoder == nullptr || reader == nullptr) return;
  // OCR 2's config names those of the first one, and its code has its own.
  if (m.kind == Kind::ocr2) encoder->replace(R"({"downsample_channels": [512, 896]})");
  m.sam = sam::read(*encoder, 1024);
  if (m.kind == Kind::ocr) read_clip(*reader, m.reader);
  else read_reader(*reader, m.reader, true);
  tower.ignore({"image_size", "mlp_ratio", "model_name", "model_type"});
}

inline Model read(ConfigFields& config) {
  Model m;
  const std::string_view type = config.text({"model_type"}, "deepseek_vl_v2");
  m.published = type == "deepseek_vl_v2";
  ConfigFields* tower = vision_fields(config);
  if (tower == nullptr) return m;
  if (m.published) {
    read_published(*tower, m);
    if (m.kind == Kind::vl2) m.canvases = canvases_of(config, m.tower.side);
    config.ignore({"candidate_resolutions", "global_view_pos", "projector_config"});
    if (config.text({"tile_tag"}, "2D") != "2D") config.fail("is 2D in this model", "tile_tag");
  } else if (type == "deepseek_vl") {
    m.kind = Kind::vl;
    m.tower = read_image_tower(*tower, "siglip_vision_model");
  } else {
    m.kind = Kind::ocr2;
    ConfigFields* encoder = tower->part_or_usual("sam_config");
    ConfigFields* reader = tower->part_or_usual("encoder_config");
    if (encoder == nullptr || reader == nullptr) return m;
    m.sam = sam::read(*encoder, 896);
    read_reader(*reader, m.reader, false);
    tower->ignore({"model_type"});
  }
  if (m.reads_text() && m.sam.narrowed.back() != m.reader.width) {
    config.fail("must leave features as wide as the blocks behind it", "vision_config");
  }
  return m;
}

inline Plan plan_of(const Model& m, const Pictures& pictures) {
  Plan plan;
  plan.images = pictures.seen();
  if (m.kind == Kind::vl) {
    plan.tokens = m.tower.patches();
    return plan;
  }
  if (m.kind == Kind::vl2) {
    // Only up to two pictures of a sample are cut.
    const PictureSize canvas =
        plan.images > 2 ? PictureSize{m.tower.side, m.tower.side} : best_resolution(pictures.size, m.canvases);
    plan.grid = {std::max<std::int64_t>(canvas.height / m.tower.side, 1),
                 std::max<std::int64_t>(canvas.width / m.tower.side, 1)};
    const std::int64_t side = (m.tower.side / m.tower.patch + 1) / 2;
    plan.tokens = side * (side + 1) + 1 + plan.grid.rows * side * (plan.grid.columns * side + 1);
    return plan;
  }
  const bool second = m.kind == Kind::ocr2;
  plan.tile = second ? 768 : 640;
  plan.whole = m.sam.side;
  const std::int64_t lines = second ? 0 : 1;
  const std::int64_t side = m.sam.features(plan.whole);
  plan.grid = {0, 0};
  plan.tokens = side * (side + lines) + 1;
  if (std::max(pictures.size.width, pictures.size.height) <= plan.tile) return plan;
  plan.grid = closest_grid(pictures.size, plan.tile, second ? 6 : 9, 2);
  const std::int64_t part = m.sam.features(plan.tile);
  plan.tokens += plan.grid.rows * part * (plan.grid.columns * part + lines);
  return plan;
}

/// CLIP's blocks on SAM's features, and these beside what they leave.
inline Tensor clip_behind(Forward& f, const Model& m, Tensor features, std::int64_t images, std::int64_t count) {
  constexpr std::int64_t kPlaces = 257;  // of an image of 224 pixels
  constexpr std::int64_t kPatch = std::int64_t{3} * 14 * 14;
  const InModule inside(f, "vision_model", "VitModel");
  const DecoderSizes& s = m.reader;
  const std::vector<core::Dim> each = {core::Dim::batch(images), core::Dim::fixed(-1), core::Dim::fixed(-1)};
  Tensor hidden = 0;
  {
    const InModule embeddings(f, "embeddings", "CLIPVisionEmbeddings");
    (void)f.parameter("patch_embedding.unused", {s.width, kPatch}, true);
    const Tensor first = f.call("expand", {f.parameter("class_embedding", {1, 1, s.width})}, {{"shape", each}});
    const Tensor places = f.parameter("position_embedding.weight", {1, kPlaces, s.width});
    const std::int64_t all = std::min(count + 1, kPlaces);
    hidden = f.add(f.concatenate({first, features}, 1),
                   all == kPlaces ? places : f.call("clone", {f.slice(places, 1, 0, all)}));
  }
  hidden = f.layer_norm("pre_layrnorm", hidden, s.width);
  const InModule transformer(f, "transformer", "NoTPTransformer");
  const std::int64_t width = s.width / s.heads;
  hidden = stack(f, "layers", "NoTPTransformerBlock", s.layers, hidden, [&](Tensor x, std::int64_t) {
    const Tensor normed = f.layer_norm("layer_norm1", x, s.width);
    Tensor mixed = 0;
    {
      const InModule attention(f, "self_attn", "NoTPAttention");
      const Tensor packed = f.linear("qkv_proj", normed, s.width, 3 * s.width);
      const std::vector<Tensor> parts = f.split(packed, 2, {s.width, s.width, s.width});
      const auto heads = [&](std::size_t at) { return split_heads(f, parts[at], width); };
      const Tensor attended = f.call("scaled_dot_product_attention", {heads(0), heads(1), heads(2)});
      mixed = f.linear("out_proj", f.call("clone", {merge_heads(f, attended)}), s.width, s.width);
    }
    const Tensor attended = f.add(x, mixed);
    const Tensor again = f.layer_norm("layer_norm2", attended, s.width);
    return f.add(attended, feed_forward(f, s, again, {.class_name = "NoTPFeedForward"}));
  });
  return f.concatenate({f.slice(hidden, 1, 1, Forward::kRest), features}, 2);
}

/// Blocks of Qwen2 on SAM's features and as many queries, which see those features and the queries before them.
inline Tensor queries_behind(Forward& f, const Model& m, Tensor features, std::int64_t images, std::int64_t count) {
  constexpr std::int64_t kFew = 144;
  constexpr std::int64_t kMany = 256;
  const DecoderSizes& s = m.reader;
  const Tensor few = f.parameter("query_768_resolution.weight", {1, kFew, s.width});
  const Tensor many = f.parameter("query_1024_resolution.weight", {1, kMany, s.width});
  const std::vector<core::Dim> each = {core::Dim::batch(images), core::Dim::fixed(-1), core::Dim::fixed(-1)};
  const std::int64_t asked = count <= kFew ? kFew : kMany;
  const Tensor queries = f.call("expand", {count <= kFew ? few : many}, {{"shape", each}});
  const InModule inside(f, m.published ? "qwen2_model" : "vision_encoder", "DeepseekOcr2VisionEncoder");
  const std::int64_t all = count + asked;
  const Tensor mask = f.constant("mask", {all, all}, "bool");
  Tensor hidden = f.concatenate({features, queries}, 1);
  const auto table = [&] { return f.call("rotary_table", {hidden}, {{"width", s.head_width}, {"padded", true}}); };
  const Tensor cosines = table();
  const Rotary rotary = {cosines, table(), s.head_width, false};
  const auto norm = [&](std::string_view name, Tensor x) {
    return f.rms_norm(name, x, s.width, "DeepseekOcr2VisionRMSNorm");
  };
  hidden = stack(f, "layers", "DeepseekOcr2VisionEncoderLayer", s.layers, hidden, [&](Tensor x, std::int64_t) {
    const Tensor normed = norm("input_layernorm", x);
    Tensor mixed = 0;
    {
      const InModule attention(f, "self_attn", "DeepseekOcr2VisionAttention");
      Heads heads = project_heads(f, s, normed, {.bias = true});
      heads.query = rotate(f, heads.query, rotary, s.head_width);
      heads.key = rotate(f, heads.key, rotary, s.head_width);
      const Tensor attended =
          attend(f, heads, {.groups = s.heads / s.kv_heads, .copies = false, .mask = mask, .causal = false});
      mixed = f.linear("o_proj", attended, s.width, s.width, {.bias = false});
    }
    const Tensor attended = f.add(x, mixed);
    const Tensor again = norm("post_attention_layernorm", attended);
    return f.add(attended, gated_feed_forward(f, s, again, "DeepseekOcr2VisionMLP"));
  });
  return f.slice(norm("norm", hidden), 1, count, Forward::kRest);
}

/// What the text model reads of square images: [N images, features, width].
inline Tensor seen(Forward& f, const Model& m, std::int64_t images, std::int64_t pixels) {
  const std::int64_t side = m.sam.features(pixels);
  const bool own = !m.published;
  Tensor features = 0;
  {
    std::optional<InModule> tower;
    if (own) tower.emplace(f, "vision_tower", "DeepseekOcr2VisionModel");
    {
      const InModule inside(f, own ? "sam_encoder" : "sam_model", "SamVisionEncoder");
      features = sam::encoded(f, m.sam, images, pixels);
    }
    features = m.kind == Kind::ocr ? clip_behind(f, m, features, images, side * side)
                                   : queries_behind(f, m, features, images, side * side);
  }
  const std::int64_t wide = m.kind == Kind::ocr ? m.reader.width + m.sam.narrowed.back() : m.reader.width;
  return f.linear(own ? "multi_modal_projector" : "projector.layers", features, wide, m.width);
}

/// A learned row behind each line of features: [N, rows columns, width] -> [N, rows (columns + 1), width].
inline Tensor in_lines(Forward& f, const Model& m, std::int64_t images, const TileGrid& grid, Tensor features,
                       Tensor newline) {
  const std::vector<core::Dim> each = {core::Dim::batch(images), core::Dim::fixed(grid.rows), core::Dim::fixed(1),
                                       core::Dim::fixed(m.width)};
  const Tensor rows = f.unflatten(features, 1, {grid.rows, grid.columns});
  return f.flatten(f.concatenate({rows, f.call("expand", {newline}, {{"shape", each}})}, 2), 1, 2);
}

/// Tiles [N tiles, side side, width] as lines of the whole picture.
inline Tensor joined_tiles(Forward& f, const TileGrid& grid, std::int64_t side, Tensor tiles) {
  const Tensor all = f.unflatten(f.unflatten(tiles, 1, {side, side}), 0, {-1, grid.rows, grid.columns});
  return f.flatten(f.call("clone", {f.permute(all, {0, 1, 3, 2, 4, 5})}), 1, 4);
}

inline Tensor separator(Forward& f, const Model& m, std::int64_t images, std::string_view name) {
  const std::vector<core::Dim> each = {core::Dim::batch(images), core::Dim::fixed(-1), core::Dim::fixed(-1)};
  return f.call("expand", {f.parameter(name, {1, 1, m.width})}, {{"shape", each}});
}

/// Tiles first, then the whole picture and a row that separates pictures.
inline Tensor text_features(Forward& f, const Model& m, const Plan& plan) {
  const bool lines = m.kind == Kind::ocr;
  const Tensor newline = lines ? f.parameter("image_newline", {1, 1, 1, m.width}) : Tensor(0);
  const Tensor last = separator(f, m, plan.images, m.published ? "view_seperator" : "view_separator");
  const std::int64_t side = m.sam.features(plan.whole);
  Tensor whole = seen(f, m, plan.images, plan.whole);
  if (lines) whole = in_lines(f, m, plan.images, {side, side}, whole, newline);
  const std::int64_t count = plan.grid.tiles();
  if (count == 0) return f.call("clone", {f.concatenate({whole, last}, 1)});
  const std::int64_t part = m.sam.features(plan.tile);
  f.repeat_parameters(true);
  Tensor tiles = seen(f, m, plan.images * count, plan.tile);
  f.repeat_parameters(false);
  if (lines) {
    const TileGrid all = {plan.grid.rows * part, plan.grid.columns * part};
    tiles = in_lines(f, m, plan.images, all, joined_tiles(f, plan.grid, part, tiles), newline);
  } else {
    tiles = f.flatten(f.unflatten(tiles, 0, {-1, count}), 1, 2);
  }
  return f.call("clone", {f.concatenate({tiles, whole, last}, 1)});  // torch.cat of the pictures
}

/// SigLIP's features of tiles and of the whole picture, four of which are projected as one.
inline Tensor siglip_features(Forward& f, const Model& m, const Plan& plan) {
  const std::int64_t wide = m.tower.sizes.width;
  const std::int64_t images = plan.images * (plan.grid.tiles() + 1);
  const std::int64_t side = m.tower.side / m.tower.patch;
  const std::int64_t half = (side + 1) / 2;
  Tensor hidden = 0;
  {
    const InModule inside(f, "vision", "VisionTransformer");
    hidden = image_states(f, m.tower, images).normed;
  }
  {
    const InModule inside(f, "projector", "MlpProjector");
    const std::int64_t missing = 4 * half * half - side * side;
    if (missing > 0) hidden = f.call("pad", {hidden}, {{"padding", Sizes{0, 0, 0, missing}}});
    const Tensor squares = f.call("clone", {f.unflatten(f.flatten(hidden, 1, 2), 1, {-1, 4 * wide})});  // unfold
    const Tensor open = f.activation("layers.1", f.linear("layers.0", squares, 4 * wide, m.width), "gelu");
    hidden = f.linear("layers.2", open, m.width, m.width);
  }
  const Tensor newline = f.parameter("image_newline", {1, 1, 1, m.width});
  const Tensor between = separator(f, m, plan.images, "view_seperator");
  const Tensor all = f.unflatten(hidden, 0, {-1, plan.grid.tiles() + 1});
  const Tensor whole = in_lines(f, m, plan.images, {half, half}, f.select(all, 1, 0), newline);
  const Tensor rest = f.flatten(f.slice(all, 1, 1, Forward::kRest), 0, 1);
  const TileGrid grid = {plan.grid.rows * half, plan.grid.columns * half};
  const Tensor tiles = in_lines(f, m, plan.images, grid, joined_tiles(f, plan.grid, half, rest), newline);
  return f.call("clone", {f.concatenate({whole, between, tiles}, 1)});
}

inline Tensor features_of(Forward& f, const Model& m, const Plan& plan) {
  if (m.reads_text()) return text_features(f, m, plan);
  if (m.kind == Kind::vl2) return siglip_features(f, m, plan);
  Tensor hidden = 0;
  {
    const InModule inside(f, "vision_model", "SiglipVisionModel");
    hidden = image_states(f, m.tower, plan.images).normed;
  }
  const InModule inside(f, "aligner", "DeepseekVLAligner");
  const Tensor open = f.activation("activation", f.linear("linear1", hidden, m.tower.sizes.width, m.width), "gelu");
  return f.linear("linear2", open, m.width, m.width);
}

inline TextPart text_part(const Model& m) {
  if (!m.published) return inner_text("DeepseekModel", "TextModel");
  TextPart part;
  if (m.kind == Kind::vl2) {
    part.modules = {{"language", "DeepseekV2ForCausalLM"}, {"model", "DeepseekV2Model"}};
    part.head = "language.";
  } else {
    part.modules = {{"model", "DeepseekOCRModel"}};
    part.around = 1;
  }
  return part;
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Pictures pictures = pictures_of(f);
  Model model = read(config);
  std::string_view usual = model.published ? "deepseek_v2" : "deepseek_ocr2_text";
  if (model.kind == Kind::vl) usual = "llama";
  ConfigFields* text = text_fields(config, usual, model.published ? "language_config" : "text_config");
  if (text == nullptr || !config.status()) return;
  if (pictures.frames > 0) return f.fail("reads no videos; leave `frames` out");
  text->ignore({"lm_head", "rm_head"});
  if (model.published) text->list_experts();
  // Since transformers 5 the outer config alone says whether the head is tied, and DeepseekVLConfig has it so.
  if (model.kind == Kind::vl) {
    const bool tied = config.flag("tie_word_embeddings", true);
    text->replace(tied ? R"({"tie_word_embeddings": true})" : R"({"tie_word_embeddings": false})");
  }
  model.width = text->size({"hidden_size"});
  const Plan plan = plan_of(model, pictures);
  tell_pictures(f, pictures, plan.images * plan.tokens);
  write_text(f, *text, head, text_part(model), pictures, [&](Forward& to) { return features_of(to, model, plan); });
}

inline constexpr auto kClasses = std::to_array<ModelClass>(
    {{.prefix = "DeepseekVL", .model_type = "deepseek_vl", .body = "model", .ending = "ForConditionalGeneration"}});

/// What print(model) of transformers' DeepSeek-VL shows; those that read text have sizes that no tree prints.
inline void read_tree(TreeFields& t) {
  tree_image_tower(t, "vision_model");
  t.open("text_config");
  t.set_string("model_type", "llama");
  t.within("language_model", "LlamaModel", [&] {
    t.body("embed_tokens", "layers");
    t.size("intermediate_size", "layers.0.mlp.gate_proj", "out_features");
    t.heads({.query = "layers.0.self_attn.q_proj", .key = "layers.0.self_attn.k_proj", .usual_width = 128});
  });
  t.close();
}

inline constexpr Architecture kArchitecture = {.name = "deepseek_vl",
                                               .model_types = names<"deepseek_vl_v2", "deepseek_ocr2", "deepseek_vl">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .holds_text_model = true};

}  // namespace deepseek_vl

}  // namespace gpumem::architectures
