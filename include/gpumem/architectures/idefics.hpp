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

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Idefics2", "idefics2", "model"}});

/// What print(model) shows. The Perceiver's latents are a bare parameter.
inline void read_tree(TreeFields& t) {
  const std::string block = "connector.perceiver_resampler.layers.0.self_attn.";
  constexpr std::int64_t kHead = 96;
  tree_image_tower(t, "vision_model");
  t.open("perceiver_config");
  t.size("hidden_size", block + "q_proj", "in_features");
  t.count("resampler_depth", "connector.perceiver_resampler.layers");
  t.set("resampler_n_heads", t.value(block + "q_proj", "out_features").value_or(kHead) / kHead);
  t.set("num_key_value_heads", t.value(block + "k_proj", "out_features").value_or(kHead) / kHead);
  t.set("resampler_head_dim", kHead);
  t.activation("hidden_act", "connector.perceiver_resampler.layers.0.mlp.act_fn");
  t.close();
  t.assume("64 tokens an image and heads of width 96 in the Perceiver, as the published model has");
  tree_text(t, {.path = "text_model", .type = "mistral"});
}

inline constexpr Architecture kArchitecture = {.name = "idefics2",
                                               .model_types = names<"idefics2">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .holds_text_model = true};

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
  const Tensor hidden = image_states(f, m.tower, images).normed;
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

inline constexpr auto kClasses =
    std::to_array<ModelClass>({{"Idefics3", "idefics3", "model"}, {"SmolVLM", "smolvlm", "model"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const bool small = t.class_name().starts_with("SmolVLM");
  const std::string cut = "vision_model.embeddings.patch_embedding";
  tree_image_tower(t, "vision_model", small ? "smolvlm_vision" : "idefics3_vision");
  const std::int64_t width = std::max<std::int64_t>(t.value(cut, "out_channels").value_or(1), 1);
  const std::int64_t read = t.value("connector.modality_projection.proj", "in_features").value_or(width);
  t.set("scale_factor", TreeFields::square_side(read / width));
  tree_text(t, {.path = "text_model", .type = "llama"});
}

inline constexpr Architecture kArchitecture = {.name = "idefics3",
                                               .model_types = names<"idefics3", "smolvlm">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .holds_text_model = true};

}  // namespace idefics3

// Kimi-VL, Kimi K2.5 and Kimi K3: MoonViT, a tower for images of any size whose patches of a batch are one sequence,
// four patches side by side, two linear layers, and DeepSeek-V3 as the text model, or Kimi Linear. Source: the models'
// own code on HuggingFace, modeling_kimi_vl.py (MoonVitPretrainedModel, KimiVLMultiModalProjector),
// modeling_kimi_k25.py, modeling_kimi_k3.py (PatchMergerMLPV2); image_processing_kimi_vl.py: at most 4,096 patches an
// image of Kimi-VL, 16,384 of Kimi K2.5. A video's frames are pooled in fours in Kimi K2.5 and K3.

namespace moonvit {

inline constexpr std::int64_t kMerge = 2;
inline constexpr std::int64_t kPooledFrames = 4;

struct Model {
  bool large = false;            ///< Kimi K2.5 and K3
  bool rms_norms = false;        ///< K3: the projector's norm is behind it, and nothing has a bias
  DecoderSizes sizes;            ///< of the tower
  std::int64_t inner_heads = 1;  ///< the width of all heads
  std::int64_t patch = 14;
  std::int64_t rows = 64;  ///< of learned positions
  std::int64_t columns = 64;
  std::int64_t width = 1;  ///< of the text model
};

inline Model read(ConfigFields& config) {
  Model m;
  const std::string_view type = config.text({"model_type"}, "kimi_vl");
  m.large = type != "kimi_vl";
  m.rms_norms = type == "kimi_k3";
  ConfigFields* tower = vision_fields(config);
  if (tower == nullptr) return m;
  m.sizes.width = tower->size_or({"vt_hidden_size", "hidden_size"}, 1152);
  m.sizes.inner = tower->size_or({"vt_intermediate_size", "intermediate_size"}, 4304);
  m.sizes.layers = tower->has("vt_num_hidden_layers") ? tower->layers({"vt_num_hidden_layers"})
                   : tower->has("num_hidden_layers")  ? tower->layers({"num_hidden_layers"})
                                                      : 27;
  m.sizes.heads = tower->size_or({"vt_num_attention_heads", "num_attention_heads"}, 16);
  m.sizes.activation = "gelu_pytorch_tanh";
  m.inner_heads = tower->size_or({"qkv_hidden_size"}, m.sizes.width);
  m.patch = tower->size_or({"patch_size"}, 14);
  m.rows = tower->size_or({"init_pos_emb_height"}, 64);
  m.columns = tower->size_or({"init_pos_emb_width"}, 64);
  tower->ignore({"init_pos_emb_time", "merge_kernel_size", "merge_type", "mm_hidden_size", "mm_projector_type",
                 "pos_emb_type", "projector_hidden_act", "projector_ln_eps", "text_hidden_size", "video_attn_type",
                 "activation_func", "attn_bias", "linear_bias", "mlp_type", "norm_type", "patch_embed_proj_bias",
                 "pos_emb_interpolation_mode"});
  config.ignore({"use_unified_vision_chunk", "video_placeholder", "image_placeholder", "ignore_index",
                 "media_placeholder_token_id"});
  if (m.inner_heads % (2 * m.sizes.heads) != 0) tower->fail("does not divide the tower's width", "num_attention_heads");
  if (const core::JsonValue* merged = tower->find("merge_kernel_size"); merged != nullptr) {
    bool known = merged->is(core::JsonValue::Kind::list);
    if (known) {
      for (const core::JsonValue& side : merged->items()) known = known && side.is(2);
    }
    if (!known) tower->fail("must be [2, 2]", "merge_kernel_size");
  }
  if (m.patch > 64) tower->fail("is more than gpumem takes", "patch_size");
  return m;
}

/// Patches of one image: scaled down to the limit, then to a whole number of merged patches.
inline std::int64_t patches_of(const Model& m, const PictureSize& size) {
  const double limit = m.large ? 16384.0 : 4096.0;
  const auto step = static_cast<double>(m.patch);
  const double patches = static_cast<double>(size.width) / step * (static_cast<double>(size.height) / step);
  const double scale = patches > limit ? std::sqrt(limit / patches) : 1.0;
  const auto side = [&](std::int64_t length) {
    const double merged = std::ceil(std::floor(static_cast<double>(length) * scale) / (step * kMerge));
    return std::max<std::int64_t>(static_cast<std::int64_t>(merged), 1) * kMerge;
  };
  return side(size.width) * side(size.height);
}

inline Tensor norm(Forward& f, const Model& m, std::string_view name, Tensor input, std::int64_t width) {
  return m.rms_norms ? f.rms_norm(name, input, width, "RMSNorm") : f.layer_norm(name, input, width);
}

inline Tensor block(Forward& f, const Model& m, Tensor input, const Rotary& rotary) {
  const DecoderSizes& s = m.sizes;
  const std::int64_t all_heads = m.inner_heads;
  const std::int64_t each = all_heads / s.heads;
  const Linear linear = {.bias = !m.rms_norms};
  const Tensor all = f.linear("wqkv", norm(f, m, "norm0", input, s.width), s.width, 3 * all_heads, linear);
  const std::vector<Tensor> parts = f.split(all, 2, {all_heads, all_heads, all_heads});
  const auto turned = [&](Tensor part) {
    const Tensor heads = split_heads(f, part, each);
    return f.as_type_of(f.multiply(f.to(heads, "float32"), rotary.cosines), heads);  // a product of complex numbers
  };
  const Tensor query = turned(parts[0]);
  const Tensor key = turned(parts[1]);
  const Tensor mixed = attend(f, {query, key, split_heads(f, parts[2], each)}, {.copies = false, .causal = false});
  const Tensor attended = f.add(input, f.linear("wo", mixed, all_heads, s.width, linear));
  const Tensor again = norm(f, m, "norm1", attended, s.width);
  return f.add(
      attended,
      feed_forward(
          f, s, again,
          {.class_name = "MLP2", .widen = "fc0", .narrow = "fc1", .activation = "activation", .bias = !m.rms_norms}));
}

inline Tensor tower(Forward& f, const Model& m, std::int64_t images, std::int64_t patches) {
  const InModule inside(f, "vision_tower", "MoonVitPretrainedModel");
  const std::int64_t width = m.sizes.width;
  Tensor hidden = 0;
  {
    const InModule embeddings(f, "patch_embed", "MoonVisionPatchEmbed");
    constexpr std::int64_t kColours = 3;
    const Tensor rows = f.rows_input("pixel_values", images * patches, {kColours, m.patch, m.patch});
    const Tensor cut = f.layer("proj", "Conv2d", "conv2d", {rows},
                               {{"in_channels", kColours},
                                {"out_channels", width},
                                {"kernel_size", Sizes(2, m.patch)},
                                {"stride", Sizes(2, m.patch)},
                                {"bias", !m.rms_norms}});
    hidden = f.unflatten(f.flatten(cut, 1, 3), 0, {-1, patches});
    // Interpolated to each image's rows and columns.
    const Tensor places =
        f.unflatten(f.permute(f.parameter("pos_emb.weight", {m.rows, m.columns, width}), {2, 0, 1}), 0, {1, width});
    const Tensor resized = f.call("upsample", {places}, {{"size", Sizes{patches / kMerge, kMerge}}});
    hidden = f.add(hidden, f.permute(f.flatten(resized, 2, 3), {0, 2, 1}));
  }
  const std::int64_t each = m.inner_heads / m.sizes.heads;
  const Tensor table =
      f.call("rotary_table", {hidden}, {{"width", each}, {"padded", true}, {"dtype", std::string("float32")}});
  const Rotary rotary = {table, table, each, false};
  const InModule encoder(f, "encoder", "MoonVitEncoder");
  hidden = stack(f, "blocks", "MoonVitEncoderLayer", m.sizes.layers, hidden,
                 [&](Tensor x, std::int64_t) { return block(f, m, x, rotary); });
  return norm(f, m, "final_layernorm", hidden, width);
}

inline Tensor features_of(Forward& f, const Model& m, const Pictures& pictures, std::int64_t patches) {
  Tensor hidden = tower(f, m, pictures.seen(), patches);
  const std::int64_t width = m.sizes.width;
  const std::int64_t wide = width * kMerge * kMerge;
  if (m.large && pictures.frames >= kPooledFrames && pictures.frames % kPooledFrames == 0) {
    hidden = f.call("mean", {f.unflatten(hidden, 0, {-1, kPooledFrames})}, {{"dim", std::int64_t{1}}});
  }
  const InModule inside(f, m.large ? "mm_projector" : "multi_modal_projector", "PatchMergerMLP");
  const Tensor normed = m.rms_norms ? hidden : f.layer_norm("pre_norm", hidden, width);
  const Tensor merged = f.unflatten(f.flatten(f.call("clone", {normed}), 1, 2), 1, {-1, wide});
  const Linear linear = {.bias = !m.rms_norms};
  const Tensor open =
      f.activation("act", f.linear(m.large ? "proj.0" : "linear_1", merged, wide, wide, linear), "gelu");
  const Tensor made = f.linear(m.large ? "proj.2" : "linear_2", open, wide, m.width, linear);
  return f.call("clone", {m.rms_norms ? f.rms_norm("post_norm", made, m.width, "RMSNorm") : made});
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Pictures pictures = pictures_of(f);
  Model model = read(config);
  ConfigFields* text = text_fields(config, "deepseek_v3");
  if (text == nullptr || !config.status()) return;
  if (!model.large) text->list_experts();  // transformers has Kimi K2.5 since 5.6, and no Kimi-VL
  model.width = text->size({"hidden_size"});
  const std::int64_t patches = patches_of(model, pictures.size);
  const bool pools = model.large && pictures.frames >= kPooledFrames && pictures.frames % kPooledFrames == 0;
  const std::int64_t tokens = pictures.seen() * patches / (kMerge * kMerge);
  tell_pictures(f, pictures, pools ? tokens / kPooledFrames : tokens);
  TextPart part = whole_text(model.rms_norms ? "KimiLinearForCausalLM" : "DeepseekV3ForCausalLM");
  write_text(f, *text, head, part, pictures, [&](Forward& to) { return features_of(to, model, pictures, patches); });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"KimiVL", "kimi_vl"}, {"KimiK25", "kimi_k25"}});

/// What print(model) shows: all but the heads of the tower.
inline void read_tree(TreeFields& t) {
  static constexpr auto kPublished = std::to_array<PublishedHeads>({{1152, 16}});
  const std::string cut = "vision_tower.patch_embed.proj";
  const std::string block = "vision_tower.encoder.blocks.0.";
  t.open("vision_config");
  t.size("hidden_size", cut, "out_channels");
  t.size("patch_size", cut, "kernel_size");
  t.size("intermediate_size", block + "mlp.fc0", "out_features");
  t.count("num_hidden_layers", "vision_tower.encoder.blocks");
  t.part("qkv_hidden_size", block + "wqkv", "out_features", 3);
  t.heads_of_width({.published = kPublished, .usual_width = 72}, t.value(cut, "out_channels").value_or(0));
  t.close();
  tree_text(t, {.path = "language_model.model", .type = "deepseek_v3"});
}

inline constexpr Architecture kArchitecture = {.name = "moonvit",
                                               .model_types = names<"kimi_vl", "kimi_k25", "kimi_k3">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .holds_text_model = true};

}  // namespace moonvit

}  // namespace gpumem::architectures
