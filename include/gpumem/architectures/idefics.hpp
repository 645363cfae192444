// Models that put what SigLIP's tower makes of a picture among the tokens of a text model: Idefics 2, Idefics 3 and
// SmolVLM.
//
// Idefics 2: SigLIP's tower on images of any size, an MLP, and a Perceiver whose latents are the tokens of an image,
// whatever its size; and a Mistral. A picture comes in four parts and as a whole, as the published checkpoint has it
// (do_image_splitting); all of a batch are padded to the largest one's size, with a mask of the padding.
// Source: transformers 5.16, models/idefics2/modeling_idefics2.py, image_processing_idefics2.py.
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

namespace idefics2 {

inline constexpr std::int64_t kParts = 5;  ///< of a picture

struct Model {
  ImageTower tower;
  DecoderSizes latents;  ///< the Perceiver's blocks
  std::int64_t count = 64;
  std::int64_t width = 1;  ///< of the text model
  std::int64_t inner = 1;
  std::string_view activation = "silu";
};

inline Model read(ConfigFields& config) {
  Model m;
  if (ConfigFields* tower = vision_fields(config)) {
    // A model type of its own, or that of the whole model.
    tower->complete(R"({"hidden_size": 768, "num_attention_heads": 12, "patch_size": 32, "vision_use_head": false})");
    tower->replace(R"({"model_type": "siglip_vision_model"})");
    m.tower = read_image_tower(*tower, "siglip_vision_model");
  }
  ConfigFields* latents = config.part_or_usual("perceiver_config");
  if (latents == nullptr) return m;
  DecoderSizes& s = m.latents;
  s.width = latents->size_or({"hidden_size"}, 4096);  // the text model's where that has another one
  s.layers = latents->layers_or("resampler_depth", 3);
  s.heads = latents->size_or({"resampler_n_heads"}, 16);
  s.head_width = latents->size_or({"resampler_head_dim"}, 96);
  s.kv_heads = latents->size_or({"num_key_value_heads"}, 4);
  s.activation = latents->text({"hidden_act"}, "silu");
  m.count = latents->size_or({"resampler_n_latents"}, 64);
  latents->ignore({"model_type", "qk_layer_norms_perceiver", "attention_dropout", "rms_norm_eps"});
  if (s.kv_heads > s.heads || s.heads % s.kv_heads != 0)
    latents->fail("does not divide the heads", "num_key_value_heads");
  return m;
}

/// No side longer than 980 pixels, none shorter than 378.
inline PictureSize resized(const PictureSize& size) {
  namespace d = image_rules_detail;
  constexpr std::int64_t kLeast = 378;
  constexpr std::int64_t kMost = 980;
  PictureSize made = size;
  const double shape = d::real(size.width) / d::real(size.height);
  if (size.width >= size.height && size.width > kMost) {
    made = {kMost, d::whole(d::real(kMost) / shape)};
  } else if (size.height > size.width && size.height > kMost) {
    made = {d::whole(d::real(kMost) * shape), kMost};
  }
  return {std::max(made.width, kLeast), std::max(made.height, kLeast)};
}

/// Patches of the size that a picture and its four parts are padded to.
inline std::int64_t patches_of(const Model& m, const Pictures& pictures) {
  PictureSize size = resized(pictures.size);
  if (pictures.frames == 0) {
    const PictureSize part = resized({(pictures.size.width + 1) / 2, (pictures.size.height + 1) / 2});
    size = {std::max(size.width, part.width), std::max(size.height, part.height)};
  }
  return (size.width / m.tower.patch) * (size.height / m.tower.patch);
}

inline Tensor tower(Forward& f, const Model& m, std::int64_t images, std::int64_t patches, Tensor mask) {
  const InModule inside(f, "vision_model", "Idefics2VisionTransformer");
  const DecoderSizes& s = m.tower.sizes;
  // The images and their patches are as large.
  const Tensor pixels =
      f.rows_input("pixel_values", images, {m.tower.channels, m.tower.patch, patches * m.tower.patch});
  Tensor hidden = 0;
  {
    const InModule embeddings(f, "embeddings", "Idefics2VisionEmbeddings");
    hidden = cut_patches(f, "patch_embedding", pixels,
                         {.channels = m.tower.channels, .width = s.width, .patch = m.tower.patch, .step = {}});
    const Tensor places = f.rows_input("patch_places", images, {patches});
    hidden = f.add(hidden, f.embedding("position_embedding", places, m.tower.patches(), s.width));
  }
  const EncoderClasses classes = {.encoder = "Idefics2Encoder",
                                  .layer = "Idefics2EncoderLayer",
                                  .attention = "Idefics2VisionAttention",
                                  .mlp = "Idefics2VisionMLP"};
  return f.layer_norm("post_layernorm", encoder_states(f, s, classes, hidden, mask).back(), s.width);
}

/// A block of the Perceiver: latents read the image's features and each other.
inline Tensor resampled(Forward& f, const Model& m, Tensor latents, Tensor context) {
  const DecoderSizes& s = m.latents;
  const auto norm = [&](std::string_view name, Tensor x) { return f.rms_norm(name, x, s.width, "Idefics2RMSNorm"); };
  const Tensor asking = norm("input_latents_norm", latents);
  const Tensor read = norm("input_context_norm", context);
  Tensor mixed = 0;
  {
    const InModule inside(f, "self_attn", "Idefics2PerceiverAttention");
    const Tensor all = f.concatenate({read, asking}, 1);
    const Linear plain = {.bias = false};
    const auto heads = [&](std::string_view name, Tensor input, std::int64_t count) {
      return split_heads(f, f.linear(name, input, s.width, count * s.head_width, plain), s.head_width);
    };
    const Tensor query = heads("q_proj", asking, s.heads);
    const Tensor key = heads("k_proj", all, s.kv_heads);
    const Heads of = {query, key, heads("v_proj", all, s.kv_heads)};
    const Tensor attended = attend(f, of, {.groups = s.heads / s.kv_heads, .copies = false, .causal = false});
    mixed = f.linear("o_proj", attended, s.heads * s.head_width, s.width, plain);
  }
  const Tensor attended = f.add(latents, mixed);
  return f.add(attended, gated_feed_forward(f, s, norm("post_attention_layernorm", attended), "Idefics2MLP"));
}

inline Tensor features_of(Forward& f, const Model& m, std::int64_t images, std::int64_t patches) {
  const Tensor shown = f.rows_input("patch_attention_mask", images, {patches});
  Tensor hidden = tower(f, m, images, patches, row_mask(f, shown));
  const InModule inside(f, "connector", "Idefics2Connector");
  {
    const InModule projection(f, "modality_projection", "Idefics2MLP");
    const Linear plain = {.bias = false};
    const std::int64_t width = m.tower.sizes.width;
    const Tensor gate = f.activation("act_fn", f.linear("gate_proj", hidden, width, m.inner, plain), m.activation);
    const Tensor up = f.linear("up_proj", hidden, width, m.inner, plain);
    hidden = f.linear("down_proj", f.multiply(gate, up), m.inner, m.width, plain);
  }
  const InModule resampler(f, "perceiver_resampler", "Idefics2PerceiverResampler");
  const std::vector<core::Dim> each = {core::Dim::batch(images), core::Dim::fixed(-1), core::Dim::fixed(-1)};
  const Tensor first = f.call("expand", {f.parameter("latents", {1, m.count, m.latents.width})}, {{"shape", each}});
  const Tensor made = stack(f, "layers", "Idefics2PerceiverLayer", m.latents.layers, first,
                            [&](Tensor x, std::int64_t) { return resampled(f, m, x, hidden); });
  return f.rms_norm("norm", made, m.latents.width, "Idefics2RMSNorm");
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Pictures pictures = pictures_of(f);
  Model model = read(config);
  ConfigFields* text = text_fields(config, "mistral");
  if (text == nullptr || !config.status()) return;
  model.width = text->size({"hidden_size"});
  model.inner = text->size({"intermediate_size"});
  model.activation = text->text({"hidden_act"}, "silu");
  if (!config.status()) return;
  // As Idefics2Config does, with a warning.
  if (model.latents.width != model.width)
    f.remark("the Perceiver has the text model's hidden_size, " + std::to_string(model.width));
  model.latents.width = model.width;
  model.latents.inner = 4 * model.width;
  const std::int64_t images = pictures.seen() * (pictures.frames > 0 ? 1 : kParts);
  const std::int64_t patches = patches_of(model, pictures);
  tell_pictures(f, pictures, images * model.count);
  TextPart part = inner_text("Idefics2Model", "MistralModel");
  part.modules[1].first = "text_model";
  write_text(f, *text, head, part, pictures, [&](Forward& to) { return features_of(to, model, images, patches); });
}

inline constexpr Architecture kArchitecture = {
    .name = "idefics2", .model_types = names<"idefics2">, .write = write, .holds_text_model = true};

}  // namespace idefics2

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
