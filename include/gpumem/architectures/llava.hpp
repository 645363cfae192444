// LLaVA 1.5, LLaVA-NeXT (1.6), LLaVA-OneVision, Pixtral (as LLaVA holds it), Mistral 3: CLIP's, SigLIP's or Pixtral's
// tower, two linear layers, and any text model. The tower hands out what every layer leaves, which lives until one of
// them has been projected. Source: transformers 4.57, models/llava/modeling_llava.py, llava_next, llava_onevision,
// mistral3; the processors' figures are those of the published checkpoints.
#pragma once

#include <array>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/image_towers.hpp"
#include "gpumem/architectures/vision_language.hpp"

namespace gpumem::architectures {

namespace llava {

struct Model {
  std::string_view type;
  ImageTower tower;
  std::size_t layer = 0;
  bool drops_class = false;
  std::string_view activation = "gelu";
  bool bias = true;
  std::int64_t width = 1;  ///< of the text model
  std::int64_t merge = 1;  ///< patches of a side that Mistral 3 makes one
  std::vector<PictureSize> canvases = {};
  std::int64_t most_tiles = 0;  ///< whose features LLaVA-OneVision keeps

  [[nodiscard]] bool tiles() const { return type == "llava_next" || type == "llava_onevision"; }
  [[nodiscard]] std::int64_t features() const { return tower.patches() + (tower.has_class() && !drops_class ? 1 : 0); }
};

/// Pairs of height and width.
inline std::vector<PictureSize> read_canvases(ConfigFields& config) {
  using Kind = core::JsonValue::Kind;
  std::vector<PictureSize> canvases;
  const core::JsonValue* list = config.find("image_grid_pinpoints");
  if (list == nullptr) return canvases;
  if (!list->is(Kind::list)) {
    config.fail("must be a list of heights and widths", "image_grid_pinpoints");
    return canvases;
  }
  for (const core::JsonValue& pair : list->items()) {
    std::vector<std::int64_t> sides;
    if (pair.is(Kind::list)) {
      for (const core::JsonValue& side : pair.items()) {
        const bool sound =
            side.is(Kind::integer) && side.integer() >= 1 && side.integer() <= model::Images::kLargestSide;
        if (sound) sides.push_back(side.integer());
      }
    }
    if (sides.size() == 2) canvases.push_back({sides[1], sides[0]});
    if (sides.size() != 2) config.fail("must be a list of heights and widths", "image_grid_pinpoints");
  }
  return canvases;
}

/// LLaVA-NeXT's five shapes of at most four tiles, LLaVA-OneVision's grids of up to six by six.
inline std::vector<PictureSize> usual_canvases(const Model& m) {
  std::vector<PictureSize> canvases;
  const std::int64_t most = m.type == "llava_next" ? 3 : 6;
  const std::int64_t side = m.tower.side;
  for (std::int64_t rows = 1; rows <= most; ++rows) {
    for (std::int64_t columns = 1; columns <= most; ++columns) {
      const bool of_next = rows * columns > 1 && rows * columns <= 4;
      if (m.type != "llava_next" || of_next) canvases.push_back({columns * side, rows * side});
    }
  }
  return canvases;
}

inline Model read(ConfigFields& config) {
  Model m;
  m.type = config.text({"model_type"}, "llava");
  const bool third = m.type == "mistral3";
  const bool vision = m.type == "llava_onevision";
  // The classes of the wrappers have towers of their own where the config has none.
  const bool given = config.has("vision_config");
  if (ConfigFields* tower = vision_fields(config)) {
    if (!given) {
      tower->complete(third    ? R"({"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24,
                                 "num_attention_heads": 16, "image_size": 1540, "patch_size": 14})"
                      : vision ? R"({"hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 26,
                                    "num_attention_heads": 14, "image_size": 384, "patch_size": 14, "vision_use_head": false})"
                               : R"({"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24,
                                    "num_attention_heads": 16, "image_size": 336, "patch_size": 14})");
    }
    m.tower = read_image_tower(*tower, third ? "pixtral" : vision ? "siglip_vision_model" : "clip_vision_model");
  }
  m.layer = feature_layer(config, "vision_feature_layer", third || vision ? -1 : -2, m.tower.sizes.layers);
  const std::string_view kept = config.text({"vision_feature_select_strategy"}, vision ? "full" : "default");
  m.drops_class = kept == "default" && m.tower.has_class();
  m.activation = config.text({"projector_hidden_act"}, "gelu");
  m.bias = config.flag("multimodal_projector_bias", !third);
  if (third) m.merge = config.size_or({"spatial_merge_size"}, 2);
  if (m.tiles()) {
    m.canvases = read_canvases(config);
    if (m.canvases.empty()) m.canvases = usual_canvases(m);
    if (vision) m.most_tiles = 9;
  }
  config.ignore(
      {"image_seq_length", "vision_aspect_ratio", "use_image_newline_parameter", "ignore_index", "projection_dim"});
  if (m.merge > 8) config.fail("is more than gpumem takes", "spatial_merge_size");
  return m;
}

/// What the processor makes of the pictures of a sample.
struct Plan {
  std::int64_t images = 1;  ///< that are packed, each of `tiles`
  std::int64_t tiles = 1;
  TileGrid kept = {};       ///< features behind the first tile's, with one more a row
  PictureSize size = {};    ///< Pixtral's
  std::int64_t tokens = 1;  ///< a sample
};

inline Plan plan_of(Forward& f, const Model& m, const Pictures& pictures) {
  Plan plan;
  plan.images = pictures.seen();
  if (m.tower.kind == ImageTower::Kind::pixtral) {
    plan.size = patched_size(pictures.size, m.tower.side, m.tower.patch * m.merge);
    const std::int64_t step = m.tower.patch * m.merge;
    plan.tokens = plan.images * (plan.size.width / step) * (plan.size.height / step);
    return plan;
  }
  plan.tokens = plan.images * m.features();
  if (!m.tiles()) return plan;
  const std::int64_t side = m.tower.side / m.tower.patch;
  if (pictures.frames > 0) {
    if (m.type != "llava_onevision") f.fail("reads no videos; leave `frames` out");
    const std::int64_t pooled = (side + 1) / 2;
    plan.tokens = std::max<std::int64_t>(pictures.count, 1) * (pictures.frames * pooled * pooled + 1);
    return plan;
  }
  const PictureSize canvas = best_resolution(pictures.size, m.canvases);
  const TileGrid grid = {std::max<std::int64_t>(canvas.height / m.tower.side, 1),
                         std::max<std::int64_t>(canvas.width / m.tower.side, 1)};
  plan.tiles = grid.tiles() + 1;
  plan.kept = unpadded_features(pictures.size, grid, side, m.most_tiles);
  plan.tokens = plan.images * (m.features() + plan.kept.tiles() + plan.kept.rows);
  return plan;
}

/// A learned row for the end of each line of features, [N images, lines, width].
inline Tensor newlines(Forward& f, const Model& m, std::int64_t images, std::int64_t lines) {
  const std::vector<core::Dim> each = {core::Dim::batch(images), core::Dim::fixed(lines), core::Dim::fixed(-1)};
  return f.call("expand", {f.parameter("image_newline", {1, 1, m.width})}, {{"shape", each}});
}

/// pack_image_features: the first tile's features, then those of the others in the picture's order without padding.
inline Tensor packed(Forward& f, const Model& m, const Plan& plan, Tensor features) {
  const Tensor tiles = f.unflatten(features, 0, {-1, plan.tiles});
  const Tensor first = f.select(tiles, 1, 0);
  const Tensor rest = f.call("clone", {f.flatten(f.slice(tiles, 1, 1, Forward::kRest), 1, 2)});
  Tensor kept = f.slice(rest, 1, 0, plan.kept.tiles());
  if (m.most_tiles > 0) kept = f.call("clone", {kept});  // interpolated
  const Tensor lines = f.concatenate({kept, newlines(f, m, plan.images, plan.kept.rows)}, 1);
  return f.call("clone", {f.concatenate({first, lines}, 1)});
}

/// apply_pooling: half of each side's features of every frame; then one row behind each video.
inline Tensor pooled(Forward& f, const Model& m, const Pictures& pictures, Tensor features) {
  const std::int64_t half = (m.tower.side / m.tower.patch + 1) / 2;
  const Tensor less = f.call("clone", {f.slice(f.call("clone", {features}), 1, 0, half * half)});
  const Tensor frames = f.flatten(f.unflatten(less, 0, {-1, pictures.frames}), 1, 2);
  return f.concatenate({frames, newlines(f, m, std::max<std::int64_t>(pictures.count, 1), 1)}, 1);
}

inline Tensor mistral_projector(Forward& f, const Model& m, Tensor hidden) {
  const std::int64_t width = m.tower.sizes.width;
  const std::int64_t wide = width * m.merge * m.merge;
  const InModule inside(f, "multi_modal_projector", "Mistral3MultiModalProjector");
  Tensor features = f.rms_norm("norm", hidden, width, "Mistral3RMSNorm");
  {
    // The patches of an image as columns (torch.nn.functional.unfold), and torch.cat of the images.
    const InModule merger(f, "patch_merger", "Mistral3PatchMerger");
    const Tensor unfolded = f.call("clone", {f.call("clone", {f.unflatten(f.flatten(features, 1, 2), 1, {-1, wide})})});
    features = f.linear("merging_layer", unfolded, wide, width, {.bias = false});
  }
  return two_linears(f, features, width, m.width, m.activation, m.bias);
}

inline Tensor features_of(Forward& f, const Model& m, const Pictures& pictures, const Plan& plan) {
  Tensor hidden = 0;
  std::vector<Tensor> kept;
  {
    const InModule inside(f, "vision_tower", "VisionModel");
    if (m.tower.kind == ImageTower::Kind::pixtral) {
      hidden = pixtral_states(f, m.tower, plan.images, plan.size);
    } else {
      kept = image_states(f, m.tower, plan.images * plan.tiles).hidden;
      hidden = m.layer < kept.size() ? kept[m.layer] : kept.back();  // a tower that has failed ends early
    }
  }
  if (m.type == "mistral3") return mistral_projector(f, m, hidden);
  if (m.drops_class) hidden = f.slice(hidden, 1, 1, Forward::kRest);
  Tensor features = 0;
  {
    const InModule inside(f, "multi_modal_projector", "LlavaMultiModalProjector");
    features = two_linears(f, hidden, m.tower.sizes.width, m.width, m.activation, m.bias);
  }
  for (const Tensor state : kept) features = f.leave_function(features, {state});
  if (m.tiles()) return pictures.frames > 0 ? pooled(f, m, pictures, features) : packed(f, m, plan, features);
  return f.call("clone", {features});  // torch.cat of the images
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Pictures pictures = pictures_of(f);
  Model model = read(config);
  ConfigFields* text = text_fields(config, model.type == "llava_onevision" ? "qwen2"
                                           : model.type == "mistral3"      ? "mistral"
                                                                           : "llama");
  if (text == nullptr || !config.status()) return;
  model.width = text->size({"hidden_size"});
  const Plan plan = plan_of(f, model, pictures);
  if (f.failed()) return;
  tell_pictures(f, pictures, plan.tokens);
  TextPart part = inner_text("LlavaModel", "TextModel");
  write_text(f, *text, head, part, pictures, [&](Forward& to) { return features_of(to, model, pictures, plan); });
}

inline constexpr Architecture kArchitecture = {
    .name = "llava",
    .model_types = names<"llava", "llava_next", "llava_onevision", "mistral3">,
    .write = write,
    .holds_text_model = true};

}  // namespace llava

// Idefics3 and SmolVLM: tiles of one size and the whole picture, SigLIP's tower, one linear layer on several patches
// side by side, and a Llama.
// Source: transformers 4.57, models/idefics3/modeling_idefics3.py, smolvlm/modeling_smolvlm.py; their processors make
// the longer side of an image four tiles long, as the published checkpoints have it.

namespace idefics3 {

struct Model {
  bool small = false;
  ImageTower tower;
  std::int64_t shuffle = 2;  ///< patches of a side that become one token
  std::int64_t width = 1;    ///< of the text model
};

inline Model read(ConfigFields& config) {
  Model m;
  m.small = config.text({"model_type"}, "idefics3") == "smolvlm";
  if (ConfigFields* tower = vision_fields(config)) {
    m.tower = read_image_tower(*tower, m.small ? "smolvlm_vision" : "idefics3_vision");
  }
  m.shuffle = config.size_or({"scale_factor"}, 2);
  if (m.shuffle > 64 || (m.tower.side / m.tower.patch) % m.shuffle != 0) {
    config.fail("does not divide the tower's patches", "scale_factor");
  }
  config.ignore({"vocab_size", "pixel_shuffle_factor", "use_resampler", "hidden_size"});
  return m;
}

inline Tensor features_of(Forward& f, const Model& m, std::int64_t images) {
  Tensor hidden = 0;
  {
    const InModule inside(f, "vision_model", m.small ? "SmolVLMVisionTransformer" : "Idefics3VisionTransformer");
    hidden = image_states(f, m.tower, images).normed;
  }
  const InModule inside(f, "connector", m.small ? "SmolVLMConnector" : "Idefics3Connector");
  const std::int64_t wide = m.tower.sizes.width * m.shuffle * m.shuffle;
  // pixel_shuffle: two copies in other orders.
  const Tensor shuffled = f.call("clone", {f.call("clone", {f.unflatten(f.flatten(hidden, 1, 2), 1, {-1, wide})})});
  const InModule projection(f, "modality_projection", "Idefics3SimpleMLP");
  return f.linear("proj", shuffled, wide, m.width, {.bias = false});
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Pictures pictures = pictures_of(f);
  Model model = read(config);
  ConfigFields* text = text_fields(config, "llama");
  if (text == nullptr || !config.status()) return;
  text->ignore({"perceiver_config", "qk_layer_norms", "use_resampler", "is_llama_config", "pixel_shuffle_factor"});
  model.width = text->size({"hidden_size"});
  const TileGrid grid = covering_grid(pictures.size, 4 * model.tower.side, model.tower.side);
  const std::int64_t images = pictures.seen() * (pictures.frames > 0 ? 1 : grid.with_thumbnail());
  tell_pictures(f, pictures, images * (model.tower.patches() / (model.shuffle * model.shuffle)));
  TextPart part = inner_text(model.small ? "SmolVLMModel" : "Idefics3Model", "LlamaModel");
  part.modules[1].first = "text_model";
  write_text(f, *text, head, part, pictures, [&](Forward& to) { return features_of(to, model, images); });
}

inline constexpr Architecture kArchitecture = {
    .name = "idefics3", .model_types = names<"idefics3", "smolvlm">, .write = write, .holds_text_model = true};

}  // namespace idefics3

}  // namespace gpumem::architectures
