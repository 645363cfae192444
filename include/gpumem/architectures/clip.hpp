// CLIP: a tower for texts and one for images, projected to one width, and the contrastive loss of their products. Texts
// are taken to be without padding. The text tower alone is what image models read prompts with (CLIPTextModel).
// Source: transformers 4.48, models/clip/modeling_clip.py.
#pragma once

#include <array>
#include <optional>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

namespace clip {

struct Tower {
  DecoderSizes sizes;
  std::int64_t positions = 77;  ///< of a text
  std::int64_t side = 224;      ///< of an image
  std::int64_t patch = 32;
  std::int64_t channels = 3;

  [[nodiscard]] std::int64_t patches() const { return (side / patch) * (side / patch); }
};

/// What a tower's fields leave out, as CLIPTextConfig and CLIPVisionConfig have it.
struct Usual {
  std::int64_t width;
  std::int64_t inner;
  std::int64_t heads;
};

inline Tower read_tower(ConfigFields& config, const Usual& usual) {
  constexpr std::int64_t kUsualLayers = 12;
  Tower tower;
  tower.sizes = encoder_sizes(config, {.width = usual.width,
                                       .inner = usual.inner,
                                       .layers = kUsualLayers,
                                       .heads = usual.heads,
                                       .activation = "quick_gelu"});
  tower.sizes.vocabulary = config.size_or({"vocab_size"}, 49408);
  tower.positions = config.size_or({"max_position_embeddings"}, 77);
  tower.side = config.size_or({"image_size"}, 224);
  tower.patch = config.size_or({"patch_size"}, 32);
  tower.channels = config.size_or({"num_channels"}, 3);
  if (tower.side < tower.patch) config.fail("is smaller than patch_size", "image_size");
  return tower;
}

/// The tower of the fields in an object of this name, or a usual one.
inline Tower read_part(ConfigFields& config, std::string_view name, const Usual& usual) {
  const core::JsonValue* object = config.find(name);
  if (object == nullptr) return read_tower(config, usual);
  if (!object->is(core::JsonValue::Kind::object)) {
    config.fail("must be an object", name);
    return {};
  }
  ConfigFields fields(*object);
  Tower tower = read_tower(fields, usual);
  if (const core::Status read = fields.status(); !read) config.fail(read.error().message, name);
  return tower;
}

inline Tensor encoder(Forward& f, const Tower& tower, Tensor hidden, std::optional<Tensor> mask) {
  const DecoderSizes& s = tower.sizes;
  const InModule inside(f, "encoder", "CLIPEncoder");
  const StreamAttention attention = {.name = "self_attn",
                                     .class_name = "CLIPSdpaAttention",
                                     .width = s.width,
                                     .heads = s.heads,
                                     .dropout = s.attention_dropout,
                                     .copies = false,
                                     .copies_when = {When::in_4_52},
                                     .mask = mask,
                                     .adds_masks = true};
  return stack(f, "layers", "CLIPEncoderLayer", s.layers, hidden, [&](Tensor x, std::int64_t) {
    const Tensor normed = f.layer_norm("layer_norm1", x, s.width);
    const Tensor attended = f.add(x, stream_attention(f, attention, normed, normed));
    const Tensor again = f.layer_norm("layer_norm2", attended, s.width);
    return f.add(attended, feed_forward(f, s, again, {.class_name = "CLIPMLP"}));
  });
}

/// The hidden state of each text's last token.
inline Tensor text_tower(Forward& f, const Tower& tower, Tensor ids) {
  const InModule inside(f, "text_model", "CLIPTextTransformer");
  const std::int64_t width = tower.sizes.width;
  Tensor hidden = 0;
  {
    const InModule embeddings(f, "embeddings", "CLIPTextEmbeddings");
    const Tensor words = f.embedding("token_embedding", ids, tower.sizes.vocabulary, width);
    const Tensor numbers = f.positions(ids, tower.positions);
    hidden = f.add(words, f.embedding("position_embedding", numbers, tower.positions, width));
  }
  // One mask for all samples, expanded: autocast's copy of it has them all.
  const std::vector<core::Dim> all = {core::Dim::batch(), core::Dim::fixed(-1), core::Dim::fixed(-1),
                                      core::Dim::fixed(-1)};
  const Tensor mask = f.call("expand", {f.call("causal_mask", {ids})}, {{"shape", all}});
  hidden = encoder(f, tower, hidden, mask);
  hidden = f.layer_norm("final_layer_norm", hidden, width);
  f.hand_out(hidden);
  return f.select(hidden, 1, -1);
}

inline Tensor image_tower(Forward& f, const Tower& tower) {
  const InModule inside(f, "vision_model", "CLIPVisionTransformer");
  const std::int64_t width = tower.sizes.width;
  const Tensor image = f.sample_input("pixel_values", {tower.channels, tower.side, tower.side});
  Tensor hidden = 0;
  {
    const InModule embeddings(f, "embeddings", "CLIPVisionEmbeddings");
    const Tensor first = f.parameter("class_embedding", {1, 1, width});
    const Tensor cut = f.layer("patch_embedding", "Conv2d", "conv2d", {image},
                               {{"in_channels", tower.channels},
                                {"out_channels", width},
                                {"kernel_size", Sizes(2, tower.patch)},
                                {"stride", Sizes(2, tower.patch)},
                                {"bias", false}});
    const Tensor rows = f.permute(f.flatten(cut, 2, 3), {0, 2, 1});
    const std::vector<core::Dim> each = {core::Dim::batch(), core::Dim::fixed(-1), core::Dim::fixed(-1)};
    const Tensor all = f.concatenate({f.call("expand", {first}, {{"shape", each}}), rows}, 1);
    hidden = f.add(all, f.parameter("position_embedding.weight", {1, tower.patches() + 1, width}));
  }
  hidden = encoder(f, tower, f.layer_norm("pre_layrnorm", hidden, width), {});
  f.hand_out(hidden);
  return f.layer_norm("post_layernorm", f.select(hidden, 1, 0), width);
}

/// Projected, and of length 1.
inline Tensor embedded(Forward& f, std::string_view name, Tensor pooled, std::int64_t in, std::int64_t out) {
  const Tensor made = f.linear(name, pooled, in, out, {.bias = false});
  const Tensor squares = f.call("sum", {f.call("pow", {made})}, {{"dim", std::int64_t{-1}}, {"keepdim", true}});
  const Tensor unit = f.call("div", {made, f.call("pow", {squares})});
  f.hand_out(unit);
  return unit;
}

/// Each text with each image, and each image with each text.
inline void contrastive_loss(Forward& f, Tensor texts, Tensor images, Tensor numbers) {
  const Tensor scale = f.call("exp", {f.parameter("logit_scale", {1, 1})});
  const Tensor by_text = f.multiply(f.call("matmul", {texts, f.permute(images, {1, 0})}), scale);
  f.hand_out(by_text);
  const Tensor one = f.call("cross_entropy", {by_text, numbers}, {{"keeps_type", true}});
  const Tensor other = f.call("cross_entropy", {f.permute(by_text, {1, 0}), numbers}, {{"keeps_type", true}});
  (void)f.scale(f.add(one, other));
}

/// CLIPTextModel, and CLIPTextModelWithProjection.
inline void write_text_model(ConfigFields& config, Forward& f) {
  const Tower text = read_tower(config, {.width = 512, .inner = 2048, .heads = 8});
  const std::int64_t width = config.size_or({"projection_dim"}, 512);
  const bool projects = config.class_name() == "CLIPTextModelWithProjection";
  if (!config.status()) return;
  const Tensor pooled = text_tower(f, text, token_ids(f));
  if (projects) f.linear("text_projection", pooled, text.sizes.width, width, {.bias = false});
}

inline void write(ConfigFields& config, Head, Forward& f) {
  if (config.text({"model_type"}, "") == "clip_text_model") return write_text_model(config, f);
  const Tower text = read_part(config, "text_config", {.width = 512, .inner = 2048, .heads = 8});
  const Tower image = read_part(config, "vision_config", {.width = 768, .inner = 3072, .heads = 12});
  const std::int64_t width = config.size_or({"projection_dim"}, 512);
  config.ignore({"text_config_dict", "vision_config_dict"});
  if (!config.status()) return;
  const Tensor ids = token_ids(f);
  const Tensor pixels = image_tower(f, image);
  const Tensor words = text_tower(f, text, ids);
  const Tensor images = embedded(f, "visual_projection", pixels, image.sizes.width, width);
  const Tensor texts = embedded(f, "text_projection", words, text.sizes.width, width);
  contrastive_loss(f, texts, images, f.select(ids, 1, 0));
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"CLIP", "clip"}});
/// Published models, by width.
inline constexpr auto kPublished = std::to_array<PublishedHeads>({{512, 8}, {768, 12}, {1024, 16}, {1280, 20}});
/// The same of image towers.
inline constexpr auto kVision = std::to_array<PublishedHeads>({{768, 12}, {1024, 16}, {1280, 16}, {1664, 16}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const auto tower = [&](std::string_view field, const std::string& name, const TreeHeads& heads) {
    const auto width = t.value(name + ".encoder.layers.0.self_attn.q_proj", "in_features");
    t.open(field);
    t.size("hidden_size", name + ".encoder.layers.0.self_attn.q_proj", "in_features");
    t.size("intermediate_size", name + ".encoder.layers.0.mlp.fc1", "out_features");
    t.count("num_hidden_layers", name + ".encoder.layers");
    t.heads_of_width(heads, width.value_or(0));
    t.size("vocab_size", name + ".embeddings.token_embedding", "num_embeddings");
    t.size("max_position_embeddings", name + ".embeddings.position_embedding", "num_embeddings");
    t.size("num_channels", name + ".embeddings.patch_embedding", "in_channels");
    t.size("patch_size", name + ".embeddings.patch_embedding", "kernel_size");
    const auto patch = t.value(name + ".embeddings.patch_embedding", "kernel_size");
    const auto places = t.value(name + ".embeddings.position_embedding", "num_embeddings");
    if (patch && places) t.set("image_size", t.square_side(*places - 1) * *patch);
    t.close();
  };
  tower("text_config", "text_model", {.published = kPublished});
  tower("vision_config", "vision_model", {.published = kVision});
  t.size("projection_dim", "visual_projection", "out_features");
}

inline constexpr Architecture kArchitecture = {.name = "clip",
                                               .model_types = names<"clip", "clip_text_model">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree};

}  // namespace clip

}  // namespace gpumem::architectures
