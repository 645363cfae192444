// Gemma 3 and PaliGemma: SigLIP's tower, whose output is pooled to 256 tokens (Gemma 3) or projected as it is, and
// Gemma's text model. The tokens of an image see each other, so attention has a mask in every layer.
// Source: transformers 4.57, models/gemma3/modeling_gemma3.py, paligemma/modeling_paligemma.py.
#pragma once

#include <array>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/image_towers.hpp"
#include "gpumem/architectures/vision_language.hpp"

namespace gpumem::architectures {

namespace gemma_vision {

struct Model {
  bool pools = true;  ///< Gemma 3
  ImageTower tower;
  std::int64_t tokens = 256;  ///< an image
  std::int64_t width = 1;     ///< of the text model
  std::int64_t projected = 1;
};

inline std::int64_t square_root(std::int64_t value) {
  std::int64_t root = 1;
  while ((root + 1) * (root + 1) <= value) ++root;
  return root;
}

inline Model read(ConfigFields& config) {
  Model m;
  m.pools = config.text({"model_type"}, "gemma3") == "gemma3";
  ConfigFields* tower = vision_fields(config);
  if (tower == nullptr) return m;
  if (!m.pools) m.projected = config.size_or({"projection_dim"}, 2048);
  if (!m.pools) m.projected = tower->size_or({"projection_dim"}, m.projected);
  m.tower = read_image_tower(*tower, "siglip_vision_model");
  m.tokens = m.pools ? config.size_or({"mm_tokens_per_image"}, 256) : m.tower.patches();
  const std::int64_t side = m.tower.side / m.tower.patch;
  const std::int64_t kept = m.pools ? square_root(m.tokens) : 1;
  if (m.pools && (kept * kept != m.tokens || side % kept != 0)) {
    config.fail("does not divide the tower's patches", "mm_tokens_per_image");
  }
  config.ignore({"hidden_size", "vocab_size", "num_image_tokens", "ignore_index", "projection_dim"});
  return m;
}

/// Gemma3MultiModalProjector.
inline Tensor pooled(Forward& f, const Model& m, Tensor hidden) {
  const InModule inside(f, "multi_modal_projector", "Gemma3MultiModalProjector");
  const std::int64_t side = m.tower.side / m.tower.patch;
  const std::int64_t window = side / square_root(m.tokens);
  const Tensor image = f.unflatten(f.call("clone", {f.permute(hidden, {0, 2, 1})}), 2, {side, side});
  const Tensor less =
      f.layer("avg_pool", "AvgPool2d", "avg_pool2d", {image}, {{"kernel_size", window}, {"stride", window}});
  const Tensor rows = f.permute(f.flatten(less, 2, 3), {0, 2, 1});
  const Tensor normed = f.rms_norm("mm_soft_emb_norm", rows, m.tower.sizes.width, "Gemma3RMSNorm");
  const Tensor weight = f.parameter("mm_input_projection_weight", {m.tower.sizes.width, m.width});
  return f.call("matmul", {normed, weight});
}

inline Tensor features_of(Forward& f, const Model& m, std::int64_t images) {
  Tensor hidden = 0;
  {
    const InModule inside(f, "vision_tower", "SiglipVisionModel");
    hidden = image_states(f, m.tower, images).normed;
  }
  if (m.pools) return pooled(f, m, hidden);
  const InModule inside(f, "multi_modal_projector", "PaliGemmaMultiModalProjector");
  return f.scale(f.linear("linear", hidden, m.tower.sizes.width, m.projected));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  // A Gemma 3 that reads only text has this type in older configs, and nothing inside of it.
  if (!config.has("vision_config") && !config.has("text_config")) {
    ConfigFields* text = text_fields(config, "gemma3_text");
    if (text == nullptr || !config.status()) return;
    return architecture_of("gemma3_text")->write(*text, head, f);
  }
  const Pictures pictures = pictures_of(f);
  Model model = read(config);
  ConfigFields* text = text_fields(config, model.pools ? "gemma3_text" : "gemma");
  if (text == nullptr || !config.status()) return;
  text->ignore({"num_image_tokens"});
  model.width = text->size({"hidden_size"});
  tell_pictures(f, pictures, pictures.seen() * model.tokens);
  TextPart part = inner_text(model.pools ? "Gemma3Model" : "PaliGemmaModel", "TextModel");
  part.masks = pictures.count > 0;
  part.embed = [&](Tensor, Tensor embedded) {
    return with_features(f, pictures, embedded, [&](Forward& to) { return features_of(to, model, pictures.seen()); });
  };
  write_text(f, *text, head, part);
}

inline constexpr Architecture kArchitecture = {
    .name = "gemma_vision", .model_types = names<"gemma3", "paligemma">, .write = write, .holds_text_model = true};

}  // namespace gemma_vision

}  // namespace gpumem::architectures
