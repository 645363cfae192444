// LLaVA 1.5, ViP-LLaVA, LLaVA-NeXT (1.6, Granite Vision), LLaVA-NeXT-Video, Video-LLaVA, LLaVA-OneVision, Pixtral (as
// LLaVA holds it), Mistral 3, LightOnOCR, Aya Vision, Command A Vision: CLIP's, SigLIP's or Pixtral's tower, a
// projector of two linear layers, and any text model. The tower hands out what every layer leaves, which lives until
// those that are read have been projected. Source: transformers 4.57 and 5.16, models/llava/modeling_llava.py,
// vipllava, llava_next, llava_next_video, video_llava, llava_onevision, mistral3, lighton_ocr (5.16 alone), aya_vision,
// cohere2_vision; the processors' figures are those of the published checkpoints.
#pragma once

#include <array>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/image_towers.hpp"
#include "gpumem/architectures/vision_language.hpp"

namespace gpumem::architectures {

namespace llava {

/// What a class has where the config leaves it out, and how it differs from LLaVA's.
struct Variant {
  std::string_view model_type;
  std::string_view text_type = "llama";
  std::string_view tower_type = "clip_vision_model";
  std::string_view tower = R"({"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24,
                               "num_attention_heads": 16, "image_size": 336, "patch_size": 14})";
  std::int64_t layer = -2;  ///< that is read
  std::string_view kept = "default";
  std::int64_t merge = 1;         ///< patches of a side that become one token
  bool shuffles = false;          ///< they lie side by side, in front of a linear layer with a gate
  std::string_view modules = {};  ///< other names of the tower and its projector
  bool tiles = false;             ///< packs features of tiles without padding
};
inline constexpr std::string_view kPixtral = R"({"hidden_size": 1024, "intermediate_size": 4096,
    "num_hidden_layers": 24, "num_attention_heads": 16, "image_size": 1540, "patch_size": 14})";
inline constexpr std::string_view kSiglip = R"({"hidden_size": 1152, "intermediate_size": 4304,
    "num_hidden_layers": 26, "num_attention_heads": 14, "image_size": 384, "patch_size": 14, "vision_use_head": false})";
inline constexpr std::string_view kLargeSiglip = R"({"hidden_size": 1152, "intermediate_size": 4304,
    "num_hidden_layers": 27, "num_attention_heads": 16, "image_size": 364, "patch_size": 14, "vision_use_head": false})";
inline constexpr auto kVariants = std::to_array<Variant>(
    {{.model_type = "llava"},
     {.model_type = "vipllava"},
     {.model_type = "llava_next", .tiles = true},
     {.model_type = "llava_next_video", .tiles = true},
     {.model_type = "video_llava", .tower = R"({"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24,
                   "num_attention_heads": 16, "image_size": 224, "patch_size": 14})"},
     {.model_type = "llava_onevision",
      .text_type = "qwen2",
      .tower_type = "siglip_vision_model",
      .tower = kSiglip,
      .layer = -1,
      .kept = "full",
      .tiles = true},
     {.model_type = "mistral3",
      .text_type = "mistral",
      .tower_type = "pixtral",
      .tower = kPixtral,
      .layer = -1,
      .merge = 2},
     {.model_type = "lighton_ocr",
      .text_type = "qwen3",
      .tower_type = "pixtral",
      .tower = kPixtral,
      .layer = -1,
      .merge = 2,
      .modules = "vision_encoder"},
     {.model_type = "aya_vision",
      .text_type = "cohere2",
      .tower_type = "siglip_vision_model",
      .tower = kLargeSiglip,
      .layer = -1,
      .kept = "full",
      .merge = 2,
      .shuffles = true},
     {.model_type = "cohere2_vision",
      .text_type = "cohere2",
      .tower_type = "siglip_vision_model",
      .tower = "{}",
      .layer = -1,
      .kept = "full",
      .merge = 2,
      .shuffles = true}});
inline constexpr auto kModelTypes = model_types_of(kVariants);

struct Model {
  Variant of = kVariants[0];
  std::string_view type;
  ImageTower tower;
  std::vector<std::size_t> layers = {0};
  std::int64_t pool = 2;  ///< of a side of a video's frame, of LLaVA-NeXT-Video
  std::int64_t aligned = 1;
  bool drops_class = false;
  std::string_view activation = "gelu";
  bool bias = true;
  std::int64_t width = 1;  ///< of the text model
  std::int64_t merge = 1;  ///< patches of a side that become one token
  std::vector<PictureSize> canvases = {};
  std::int64_t most_tiles = 0;  ///< whose features LLaVA-OneVision keeps

  [[nodiscard]] bool tiles() const { return of.tiles; }
  [[nodiscard]] std::int64_t features() const {
    return tower.patches() / (of.shuffles ? merge * merge : 1) + (tower.has_class() && !drops_class ? 1 : 0);
  }
  [[nodiscard]] std::int64_t read_width() const {
    return tower.sizes.width * static_cast<std::int64_t>(layers.size()) * (of.shuffles ? merge * merge : 1);
  }
};

/// LLaVA-NeXT's five shapes of at most four tiles, LLaVA-OneVision's grids of up to six by six.
inline std::vector<PictureSize> usual_canvases(const Model& m) {
  std::vector<PictureSize> canvases;
  const bool vision = m.type == "llava_onevision";
  const std::int64_t most = vision ? 6 : 3;
  const std::int64_t side = m.tower.side;
  for (std::int64_t rows = 1; rows <= most; ++rows) {
    for (std::int64_t columns = 1; columns <= most; ++columns) {
      const bool of_next = rows * columns > 1 && rows * columns <= 4;
      if (vision || of_next) canvases.push_back({columns * side, rows * side});
    }
  }
  return canvases;
}

/// The layers whose states are read, and which of their tokens.
inline void read_features(ConfigFields& config, Model& m) {
  const bool many = m.type == "vipllava";
  const std::int64_t layers = m.tower.sizes.layers;
  std::vector<std::int64_t> usual = {m.of.layer};
  if (many) usual = {-2, -5, -8, -11, 6};
  m.layers = feature_layers(config, many ? "vision_feature_layers" : "vision_feature_layer", usual, layers);
  const std::string_view kept = config.text({"vision_feature_select_strategy"}, m.of.kept);
  m.drops_class = (kept == "default" || many) && m.tower.has_class();
}

inline Model read(ConfigFields& config) {
  Model m;
  m.type = config.text({"model_type"}, "llava");
  for (const Variant& row : kVariants) {
    if (row.model_type == m.type) m.of = row;
  }
  // The classes of the wrappers have towers of their own where the config has none.
  const bool given = config.has("vision_config");
  if (ConfigFields* tower = vision_fields(config)) {
    if (!given) tower->complete(m.of.tower);
    m.tower = read_image_tower(*tower, m.of.tower_type);
  }
  read_features(config, m);
  m.activation = config.text({"projector_hidden_act"}, m.of.shuffles ? "silu" : "gelu");
  m.bias = config.flag("multimodal_projector_bias", m.of.tower_type != "pixtral");
  if (m.of.merge > 1) m.merge = config.size_or({m.of.shuffles ? "downsample_factor" : "spatial_merge_size"}, 2);
  if (m.tiles()) {
    m.canvases = read_canvases(config, "image_grid_pinpoints", false);
    if (m.canvases.empty()) m.canvases = usual_canvases(m);
    if (m.type == "llava_onevision") m.most_tiles = 9;
  }
  if (m.type == "llava_next_video") {
    m.pool = config.size_or({"spatial_pool_stride"}, 2);
    const std::string_view mode = config.text({"spatial_pool_mode"}, "average");
    if (mode != "average" && mode != "max") config.fail("must be average or max", "spatial_pool_mode");
    if (m.tower.side / m.tower.patch < m.pool) config.fail("is more than a frame has patches", "spatial_pool_stride");
  }
  if (m.of.shuffles)
    m.aligned = config.size_or({"alignment_intermediate_size"}, m.type == "aya_vision" ? 28672 : 36864);
  config.ignore({"image_seq_length", "vision_aspect_ratio", "use_image_newline_parameter", "ignore_index",
                 "projection_dim", "video_seq_length", "projector_layernorm_eps", "adapter_layer_norm_eps",
                 "spatial_pool_out_channels", "video_token_index", "max_splits_per_img"});
  const std::int64_t side = m.tower.side / m.tower.patch;
  if (m.merge > 8) config.fail("is more than gpumem takes", m.of.shuffles ? "downsample_factor" : "spatial_merge_size");
  if (m.of.shuffles && side % m.merge != 0) config.fail("does not divide the tower's patches", "downsample_factor");
  if (m.of.shuffles && m.aligned % 2 != 0)
    config.fail("is odd, so that its layer has no halves", "alignment_intermediate_size");
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
  if (m.of.shuffles) {  // crop_to_patches of the published checkpoints: up to twelve tiles and the whole picture
    plan.tiles = pictures.frames > 0 ? 1 : closest_grid(pictures.size, m.tower.side, 12).with_thumbnail();
  }
  plan.tokens = plan.images * plan.tiles * m.features();
  const std::int64_t side = m.tower.side / m.tower.patch;
  const std::int64_t videos = std::max<std::int64_t>(pictures.count, 1);
  if (m.type == "video_llava" && pictures.frames > 0) {
    plan.tokens = plan.images * (m.tower.patches() + (m.tower.has_class() ? 1 : 0));
  }
  if (!m.tiles()) return plan;
  if (pictures.frames > 0 && m.type == "llava_next_video") {
    plan.tokens = videos * pictures.frames * (side / m.pool) * (side / m.pool);
    return plan;
  }
  if (pictures.frames > 0) {
    if (m.type != "llava_onevision") f.fail("reads no videos; leave `frames` out");
    const std::int64_t pooled = (side + 1) / 2;
    plan.tokens = videos * (pictures.frames * pooled * pooled + 1);
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
  const bool own = m.of.modules.empty();
  const InModule inside(f, own ? "multi_modal_projector" : "vision_projection",
                        own ? "Mistral3MultiModalProjector" : "LightOnOcrMultiModalProjector");
  Tensor features = f.rms_norm("norm", hidden, width, "Mistral3RMSNorm");
  {
    // The patches of an image as columns (torch.nn.functional.unfold), and torch.cat of the images.
    const InModule merger(f, "patch_merger", "Mistral3PatchMerger");
    const Tensor unfolded = f.call("clone", {f.call("clone", {f.unflatten(f.flatten(features, 1, 2), 1, {-1, wide})})});
    features = f.linear("merging_layer", unfolded, wide, width, {.bias = false});
  }
  return two_linears(f, features, width, m.width, m.activation, m.bias);
}

/// pixel_shuffle, which copies once, a norm of Aya Vision's, and a linear layer whose second half gates its first.
inline Tensor gated_projector(Forward& f, const Model& m, Tensor hidden) {
  const InModule inside(f, "multi_modal_projector", "AyaVisionMultiModalProjector");
  const std::int64_t wide = m.read_width();
  Tensor features = f.call("clone", {f.unflatten(f.flatten(hidden, 1, 2), 1, {-1, wide})});
  features = m.type == "aya_vision" ? f.layer_norm("layernorm", features, wide) : f.call("clone", {features});
  const Tensor open = f.linear("linear_1", features, wide, m.aligned);
  const std::vector<Tensor> halves = f.split(open, 2, {m.aligned / 2, m.aligned / 2});
  const Tensor gated = f.multiply(f.activation("act", halves[1], m.activation), halves[0]);
  return f.linear("linear_2", gated, m.aligned / 2, m.width);
}

/// The states that are read, side by side.
inline Tensor chosen(Forward& f, const Model& m, const std::vector<Tensor>& states, bool drops) {
  std::vector<Tensor> read;
  for (const std::size_t layer : m.layers) {
    const Tensor state = layer < states.size() ? states[layer] : states.back();  // a tower that has failed ends early
    const bool before = drops && (!m.tiles() || m.layers.size() == 1);
    read.push_back(before ? f.slice(state, 1, 1, Forward::kRest) : state);
  }
  if (read.size() == 1) return read.front();
  const Tensor all = f.concatenate(read, 2);
  return drops && m.tiles() ? f.slice(all, 1, 1, Forward::kRest) : all;
}

inline Tensor projected_states(Forward& f, const Model& m, Tensor hidden) {
  if (m.of.shuffles) return gated_projector(f, m, hidden);
  const InModule inside(f, "multi_modal_projector", "LlavaMultiModalProjector");
  const std::int64_t wide = m.read_width();
  if (m.type == "vipllava") hidden = f.layer_norm("projector_layernorm", hidden, wide);
  return two_linears(f, hidden, wide, m.width, m.activation, m.bias);
}

inline Tensor features_of(Forward& f, const Model& m, const Pictures& pictures, const Plan& plan) {
  const bool film = pictures.frames > 0;
  const bool two_towers = m.type == "video_llava";
  Tensor hidden = 0;
  std::vector<Tensor> kept;
  {
    const std::string_view name = two_towers ? (film ? "video_tower" : "image_tower") : "vision_tower";
    const InModule inside(f, m.of.modules.empty() ? name : m.of.modules, "VisionModel");
    if (m.tower.kind == ImageTower::Kind::pixtral) {
      hidden = pixtral_states(f, m.tower, plan.images, plan.size);
    } else {
      const bool whole = m.type == "cohere2_vision";
      const TowerStates states = image_states(f, m.tower, plan.images * plan.tiles, whole);
      kept = states.hidden;
      if (whole) {  // the tower's output, and nothing else is handed out
        hidden = states.normed;
        kept.clear();
      }
    }
  }
  if (two_towers) {
    f.hold_printed(film ? "image_tower" : "video_tower");
    hold(f, [&](Forward& to) { return image_states(to, m.tower, 1).normed; });
  }
  if (m.merge > 1 && !m.of.shuffles) return mistral_projector(f, m, hidden);
  if (!kept.empty()) hidden = chosen(f, m, kept, m.drops_class && !(two_towers && film));
  if (m.type == "llava_next_video" && film) {
    const std::int64_t side = m.tower.side / m.tower.patch / m.pool;
    const Tensor less = f.slice(hidden, 1, 0, side * side);
    hidden = f.leave_function(f.call("clone", {f.call("clone", {less})}), {hidden});  // pooled, then in its order again
  }
  Tensor features = projected_states(f, m, hidden);
  for (const Tensor state : kept) features = f.leave_function(features, {state});
  const bool joined = !m.tiles() || (film && m.type == "llava_next_video");
  if (!joined) return film ? pooled(f, m, pictures, features) : packed(f, m, plan, features);
  return f.call("clone", {features});  // torch.cat of the images
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Pictures pictures = pictures_of(f);
  Model model = read(config);
  ConfigFields* text = text_fields(config, model.of.text_type);
  if (text == nullptr || !config.status()) return;
  model.width = text->size({"hidden_size"});
  const Plan plan = plan_of(f, model, pictures);
  if (f.failed()) return;
  tell_pictures(f, pictures, plan.tokens);
  TextPart part = inner_text("LlavaModel", "TextModel");
  write_text(f, *text, head, part, pictures, [&](Forward& to) {
    const Tensor features = features_of(to, model, pictures, plan);
    to.hand_out(features);  // image_hidden_states
    return features;
  });
}

/// Of LLaVA-NeXT's class Granite Vision ties, whose Granite has so many words.
inline constexpr auto kClasses = std::to_array<ModelClass>({{"Llava", "llava", "model"},
                                                            {"LlavaNext", "llava_next", "model", 2048, 49156},
                                                            {"LlavaNextVideo", "llava_next_video", "model"},
                                                            {"VipLlava", "vipllava", "model"},
                                                            {"VideoLlava", "video_llava", "model"},
                                                            {"LlavaOnevision", "llava_onevision", "model", 1536},
                                                            {"Mistral3", "mistral3", "model"},
                                                            {"LightOnOcr", "lighton_ocr", "model", kAlwaysTied},
                                                            {"AyaVision", "aya_vision", "model", kAlwaysTied},
                                                            {"Cohere2Vision", "cohere2_vision", "model", kAlwaysTied}});

/// What print(model) shows. Which of the tower's layers are read is as the class has it.
inline void read_tree(TreeFields& t) {
  const auto row = std::find_if(kClasses.rbegin(), kClasses.rend(),
                                [&](const ModelClass& each) { return t.class_name().starts_with(each.prefix); });
  const Variant& variant = *std::ranges::find(kVariants, row->model_type, &Variant::model_type);
  const std::string tower = !variant.modules.empty()              ? std::string(variant.modules)
                            : variant.model_type == "video_llava" ? "image_tower"
                                                                  : "vision_tower";
  const std::string projector = variant.modules.empty() ? "multi_modal_projector." : "vision_projection.";
  tree_image_tower(t, tower);
  t.activation("projector_hidden_act", projector + "act");
  const std::string cut =
      tower + (variant.tower_type == "pixtral" ? ".patch_conv" : ".vision_model.embeddings.patch_embedding");
  const std::int64_t width = std::max<std::int64_t>(t.value(cut, "out_channels").value_or(1), 1);
  if (variant.shuffles) {
    const std::int64_t read = t.value(projector + "linear_1", "in_features").value_or(width);
    t.set("downsample_factor", TreeFields::square_side(read / width));
    t.size("alignment_intermediate_size", projector + "linear_1", "out_features");
  } else {
    t.flag("multimodal_projector_bias", projector + "linear_1");
    const std::int64_t read = t.value(projector + "linear_1", "in_features").value_or(width) / width;
    if (read == 4 && variant.tower_type != "pixtral") {
      t.set_text("vision_feature_layer", "[-24, -20, -12, -1]");
      t.assume("four layers of the image tower are read, those of Granite Vision");
    }
  }
  if (variant.tower_type == "pixtral") {
    const std::int64_t read = t.value(projector + "patch_merger.merging_layer", "in_features").value_or(width);
    t.set("spatial_merge_size", TreeFields::square_side(read / width));
  }
  tree_text(t, {.type = variant.text_type});
}

inline constexpr Architecture kArchitecture = {.name = "llava",
                                               .model_types = kModelTypes,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .holds_text_model = true};

}  // namespace llava

}  // namespace gpumem::architectures
