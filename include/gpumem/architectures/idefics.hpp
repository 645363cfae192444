// Models that put what SigLIP's tower makes of a picture among the tokens of a text model: Idefics 2, Idefics 3 and
// SmolVLM, and Phi-4-multimodal.
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

// Phi-4-multimodal: Phi-4-mini with SigLIP's tower for crops of images and a conformer for sound. Sound is not taken:
// the conformer is held and not called.
// Source: transformers 4.57, models/phi4_multimodal/modeling_phi4_multimodal.py (Phi4MultimodalImageEmbedding,
// Phi4MultimodalAudioModel), image_processing_phi4_multimodal_fast.py (dynamic_preprocess: at most 36 crops of 448
// pixels, and the whole image). What the processor pads is taken as part of the crops. The adapters for images and
// sound that come with the checkpoint are not part of the model here, as transformers loads them with PEFT.

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
