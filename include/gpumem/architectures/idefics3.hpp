// Idefics3 and SmolVLM: tiles of one size and the whole picture, SigLIP's tower, one linear layer on several patches
// side by side, and a Llama.
// Source: transformers 4.57, models/idefics3/modeling_idefics3.py, smolvlm/modeling_smolvlm.py; their processors make
// the longer side of an image four tiles long, as the published checkpoints have it.
#pragma once

#include <array>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/image_towers.hpp"
#include "gpumem/architectures/vision_language.hpp"

namespace gpumem::architectures {

namespace idefics3_detail {

inline constexpr std::array<std::string_view, 2> kModelTypes = {"idefics3", "smolvlm"};

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
  part.embed = [&](Tensor, Tensor embedded) {
    return with_features(f, pictures, embedded, [&](Forward& to) { return features_of(to, model, images); });
  };
  write_text(f, *text, head, part);
}

}  // namespace idefics3_detail

[[nodiscard]] inline const Architecture& idefics3() {
  static constexpr Architecture kArchitecture = {.name = "idefics3",
                                                 .model_types = idefics3_detail::kModelTypes,
                                                 .write = idefics3_detail::write,
                                                 .holds_text_model = true};
  return kArchitecture;
}

}  // namespace gpumem::architectures
