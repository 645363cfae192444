// Phi-4-multimodal: Phi-4-mini with SigLIP's tower for crops of images and a conformer for sound. Sound is not taken:
// the conformer is held and not called.
// Source: transformers 4.57, models/phi4_multimodal/modeling_phi4_multimodal.py (Phi4MultimodalImageEmbedding,
// Phi4MultimodalAudioModel), image_processing_phi4_multimodal_fast.py (dynamic_preprocess: at most 36 crops of 448
// pixels, and the whole image). What the processor pads is taken as part of the crops. The adapters for images and
// sound that come with the checkpoint are not part of the model here, as transformers loads them with PEFT.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/image_rules.hpp"
#include "gpumem/architectures/image_tokens.hpp"
#include "gpumem/architectures/image_towers.hpp"
#include "gpumem/architectures/vision_language.hpp"

namespace gpumem::architectures {

namespace phi4_multimodal {

inline constexpr std::int64_t kPooled = 2;  ///< patches a side of a token

struct Model {
  ImageTower tower;
  std::size_t feature = 0;  ///< which of the tower's states is read
  std::int64_t width = 1;   ///< of the text model
  std::int64_t sound = 0;   ///< parameters
  double dropout = 0.0;

  [[nodiscard]] std::int64_t side() const { return (tower.side / tower.patch + 1) / kPooled; }
};

/// Parameters of the conformer and of its projections.
inline std::int64_t sound_parameters(ConfigFields& audio, std::int64_t text_width) {
  bool within = true;
  const auto size = [&](std::string_view name, std::int64_t usual) {
    constexpr std::int64_t kMost = 1 << 15;
    const std::int64_t of = audio.size_or({name}, usual);
    if (of > kMost) audio.fail("is more than gpumem takes", name);
    within = within && of <= kMost;
    return of;
  };
  const std::int64_t width = size("hidden_size", 1024);
  const std::int64_t inner = size("intermediate_size", 1536);
  const std::int64_t blocks = audio.layers_or("num_blocks", 24);
  const std::int64_t heads = size("num_attention_heads", 16);
  const std::int64_t out = size("ext_pw_out_channel", 1024);
  const std::int64_t separable = size("depthwise_separable_out_channel", 1024);
  const std::int64_t kernel = size("kernel_size", 3);
  const std::int64_t bands = size("input_size", 80);
  const std::int64_t reduction = size("time_reduction", 8);
  const std::int64_t channels = size("nemo_conv_channels", 1024);
  const std::int64_t distance = size("bias_max_distance", 1000);
  if (!within) return 0;
  if (audio.size_or({"depthwise_multiplier"}, 1) != 1) audio.fail("must be 1", "depthwise_multiplier");
  const bool symmetric = audio.flag("bias_symmetric", false);
  audio.ignore({"activation", "chunk_size", "left_chunk", "dropout_rate", "conv_activation", "conv_glu_type",
                "nemo_activation", "downsample_rate", "audio_token_id", "feature_layer"});
  std::int64_t halvings = 0;
  while ((std::int64_t{1} << (halvings + 1)) <= reduction) ++halvings;
  std::int64_t left = bands;
  for (std::int64_t at = 0; at < halvings; ++at) left = (left + 1) / 2;
  constexpr std::int64_t kCell = 9;
  const std::int64_t front = (kCell + 1) * channels +
                             (halvings - 1) * ((kCell + 1) * channels + (channels + 1) * channels) +
                             (channels * left + 1) * width;
  const std::int64_t feed = 2 * width + (width + 1) * 2 * inner + (inner + 1) * width;
  const std::int64_t attention = 4 * (width + 1) * width;
  const std::int64_t convolution =
      2 * width + (width + 1) * 2 * out + 2 * out + (kernel + 1) * width + (width + 1) * separable + (width + 1) * out;
  const std::int64_t block = 2 * feed + attention + convolution + 4 * width;
  const std::int64_t projections = 2 * ((width + 1) * text_width + (text_width + 1) * text_width);
  return front + blocks * block + (symmetric ? 1 : 2) * distance * heads + projections;
}

inline Model read(ConfigFields& config, ConfigFields& vision, ConfigFields& text) {
  Model model;
  model.width = text.size({"hidden_size"});
  vision.complete(R"({"hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27,
                      "num_attention_heads": 16, "image_size": 448, "patch_size": 14})");
  model.tower = read_image_tower(vision, "siglip_vision_model");
  model.tower.head = true;
  const core::JsonValue* feature = vision.find("feature_layer");
  const bool said = feature != nullptr && feature->is(core::JsonValue::Kind::integer);
  const std::int64_t layer = said ? feature->integer() : -2;
  const std::int64_t states = model.tower.sizes.layers + 1;
  if (layer < -states || layer >= states) vision.fail("names no layer of the tower", "feature_layer");
  else model.feature = static_cast<std::size_t>(layer < 0 ? states + layer : layer);
  if (vision.size_or({"crop_size"}, model.tower.side) != model.tower.side)
    vision.fail("must be image_size", "crop_size");
  if ((model.tower.side / model.tower.patch) % kPooled != 0)
    vision.fail("leaves an odd number of patches", "image_size");
  vision.ignore({"image_token_id"});
  model.dropout = config.number({"embd_pdrop"}, 0.0);
  return model;
}

/// The crops that an image is cut into, nearest to its shape where it has too many.
inline TileGrid crops_of(const Model& model, const PictureSize& size) {
  constexpr std::int64_t kMost = 36;
  const std::int64_t side = model.tower.side;
  TileGrid grid = {(size.height + side - 1) / side, (size.width + side - 1) / side};
  while (grid.tiles() > kMost) (grid.rows > grid.columns ? grid.rows : grid.columns) -= 1;
  return grid;
}

/// Tokens that are no patches: one behind each row of the crops and of the whole image, and one between both.
inline std::int64_t row_ends(const Model& model, const TileGrid& grid) {
  return grid.rows * model.side() + 1 + model.side();
}

inline std::int64_t tokens_of(const Model& model, const TileGrid& grid) {
  return (grid.tiles() + 1) * model.side() * model.side() + row_ends(model, grid);
}

inline Tensor features_of(Forward& f, const Model& model, const TileGrid& grid, std::int64_t images) {
  const std::int64_t width = model.tower.sizes.width;
  const std::int64_t seen = grid.tiles() + 1;
  const std::int64_t patches = model.tower.side / model.tower.patch;
  const InModule inside(f, "image_embed", "Phi4MultimodalImageEmbedding");
  Tensor feature = 0;
  {
    const InModule tower(f, "img_processor", "Phi4MultimodalVisionModel");
    feature = image_states(f, model.tower, images * seen, false).hidden[model.feature];
  }
  const Tensor picture = f.permute(f.unflatten(feature, 1, {patches, patches}), {0, 3, 1, 2});
  const Tensor less = f.layer("image_token_compression", "AvgPool2d", "avg_pool2d", {picture},
                              {{"kernel_size", kPooled}, {"stride", kPooled}});
  const Tensor rows = f.call("clone", {f.flatten(f.permute(less, {0, 2, 3, 1}), 1, 2)});
  const Tensor whole = f.flatten(f.unflatten(rows, 0, {-1, seen}), 1, 2);
  const auto repeated = [&](std::string_view name, std::int64_t count) {
    const std::vector<core::Dim> shape = {core::Dim::batch(images), core::Dim::fixed(count), core::Dim::fixed(-1)};
    return f.call("expand", {f.parameter(name, {1, 1, width})}, {{"shape", shape}});
  };
  const Tensor ends = repeated("sub_img_feature_extensor", row_ends(model, grid) - 1);
  const Tensor between = repeated("global_img_feature_extensor", 1);
  const Tensor all = f.concatenate({whole, ends, between}, 1);
  const Tensor open = f.activation("act", f.linear("img_projection_up", all, width, model.width), "gelu");
  return f.linear("img_projection_down", open, model.width, model.width);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Pictures pictures = pictures_of(f);
  ConfigFields* vision = vision_fields(config);
  ConfigFields* audio = config.part("audio_config", "{}");
  ConfigFields* text = text_fields(config, "phi3");
  if (vision == nullptr || text == nullptr || !config.status()) return;
  Model model = read(config, *vision, *text);
  if (audio != nullptr) model.sound = sound_parameters(*audio, model.width);
  if (!config.status()) return;
  const TileGrid grid = crops_of(model, pictures.size);
  tell_pictures(f, pictures, pictures.seen() * tokens_of(model, grid));
  if (model.sound > 0) f.remark("samples bring no sound; the tower for it is held and not called");
  TextPart part = {.modules = {{"model", "Phi4MultimodalModel"}}, .around = 0};
  part.embed = [&](Tensor, Tensor embedded) {
    if (model.sound > 0) (void)f.parameter("audio_embed.unused", {model.sound}, true);
    const Tensor read = with_features(f, pictures, embedded,
                                      [&](Forward& to) { return features_of(to, model, grid, pictures.seen()); });
    return f.dropout("drop", read, model.dropout);
  };
  write_text(f, *text, head, part);
}

inline constexpr Architecture kArchitecture = {
    .name = "phi4_multimodal", .model_types = names<"phi4_multimodal">, .write = write, .holds_text_model = true};

}  // namespace phi4_multimodal

}  // namespace gpumem::architectures
