// CLIP: a tower for texts and one for images, projected to one width, and the contrastive loss of their products. Texts
// are taken to be without padding. The text tower alone is what image models read prompts with (CLIPTextModel), and the
// image tower alone what models of videos see with. SigLIP: the same without a class token, a mask or a projection; its
// images are pooled by attention. The image tower of both classifies, too (ForImageClassification). SigLIP 2 of a fixed
// size is a SigLIP. Source: transformers 4.48, models/clip/modeling_clip.py; 5.16, models/siglip/modeling_siglip.py.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/image_tokens.hpp"

namespace gpumem::architectures {

namespace clip {

struct Tower {
  DecoderSizes sizes;
  std::int64_t positions = 77;  ///< of a text
  std::int64_t side = 224;      ///< of an image
  std::int64_t patch = 32;
  std::int64_t channels = 3;
  bool siglip = false;
  bool pools = false;            ///< by attention
  std::int64_t projected = 512;  ///< what SigLIP's text tower leaves

  [[nodiscard]] std::string named(std::string_view part) const {
    return std::string(siglip ? "Siglip" : "CLIP") + std::string(part);
  }
  [[nodiscard]] std::int64_t patches() const { return (side / patch) * (side / patch); }
};

/// What a tower's fields leave out, as CLIPTextConfig and CLIPVisionConfig have it.
struct Usual {
  std::int64_t width;
  std::int64_t inner;
  std::int64_t heads;
  std::string_view activation = "quick_gelu";
  std::int64_t vocabulary = 49408;
  std::int64_t positions = 77;
  std::int64_t patch = 32;
  bool siglip = false;
};
inline constexpr Usual kText = {512, 2048, 8};
inline constexpr Usual kImages = {768, 3072, 12};
/// SiglipTextConfig and SiglipVisionConfig.
inline constexpr Usual kSiglip = {768, 3072, 12, "gelu_pytorch_tanh", 32000, 64, 16, true};

inline Tower read_tower(ConfigFields& config, const Usual& usual) {
  constexpr std::int64_t kUsualLayers = 12;
  Tower tower;
  tower.sizes = encoder_sizes(config, {.width = usual.width,
                                       .inner = usual.inner,
                                       .layers = kUsualLayers,
                                       .heads = usual.heads,
                                       .activation = usual.activation});
  tower.sizes.vocabulary = config.size_or({"vocab_size"}, usual.vocabulary);
  tower.positions = config.size_or({"max_position_embeddings"}, usual.positions);
  tower.side = config.size_or({"image_size"}, 224);
  tower.patch = config.size_or({"patch_size"}, usual.patch);
  tower.channels = config.size_or({"num_channels"}, 3);
  tower.siglip = usual.siglip;
  tower.pools = tower.siglip && config.flag("vision_use_head", true);
  tower.projected = tower.siglip ? config.size_or({"projection_size"}, tower.sizes.width) : 0;
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
  const InModule inside(f, "encoder", tower.named("Encoder"));
  const StreamAttention attention = {.name = "self_attn",
                                     .class_name = "CLIPSdpaAttention",
                                     .width = s.width,
                                     .heads = s.heads,
                                     .dropout = s.attention_dropout,
                                     .copies = false,
                                     .copies_when = {When::in_4_52},
                                     .mask = mask,
                                     .adds_masks = true};
  return stack(f, "layers", tower.named("EncoderLayer"), s.layers, hidden, [&](Tensor x, std::int64_t) {
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
  std::optional<Tensor> mask;
  if (!tower.siglip) {
    // One mask for all samples, expanded: autocast's copy of it has them all.
    const std::vector<core::Dim> all = {core::Dim::batch(), core::Dim::fixed(-1), core::Dim::fixed(-1),
                                        core::Dim::fixed(-1)};
    mask = f.call("expand", {f.call("causal_mask", {ids})}, {{"shape", all}});
  }
  hidden = encoder(f, tower, hidden, mask);
  hidden = f.layer_norm("final_layer_norm", hidden, width);
  f.hand_out(hidden);
  const Tensor last = f.select(hidden, 1, -1);
  return tower.siglip ? f.linear("head", last, width, tower.projected) : last;
}

/// SiglipMultiheadAttentionPoolingHead: torch.nn.MultiheadAttention of one learned query, which writes its weights out.
inline Tensor pooled(Forward& f, const Tower& tower, Tensor hidden) {
  const InModule inside(f, "head", "SiglipMultiheadAttentionPoolingHead");
  const std::int64_t width = tower.sizes.width;
  const std::int64_t each = width / tower.sizes.heads;
  const std::vector<core::Dim> all = {core::Dim::batch(), core::Dim::fixed(-1), core::Dim::fixed(-1)};
  const Tensor probe = f.call("clone", {f.call("expand", {f.parameter("probe", {1, 1, width})}, {{"shape", all}})});
  Tensor mixed = 0;
  {
    const InModule attention(f, "attention", "MultiheadAttention");
    const Tensor query = split_heads(f, f.linear("in_proj.query", probe, width, width), each);
    // Its batch is the second axis, so that what it reads is copied; keys and values are, too.
    const Tensor copied = f.call("clone", {hidden});
    const Tensor both = f.call("clone", {f.linear("in_proj.key_value", copied, width, 2 * width)});
    const std::vector<Tensor> parts = f.split(both, 2, {width, width});
    const Tensor keys = f.permute(split_heads(f, parts[0], each), {0, 1, 3, 2});
    const Tensor weights = f.call("softmax", {f.call("matmul", {f.scale(query), keys})});
    const Tensor read = f.call("matmul", {weights, split_heads(f, parts[1], each)});
    mixed = f.linear("out_proj", merge_heads(f, read), width, width);
  }
  const Tensor normed = f.layer_norm("layernorm", mixed, width);
  return f.select(f.add(mixed, feed_forward(f, tower.sizes, normed, {.class_name = "SiglipMLP"})), 1, 0);
}

/// What the blocks read of an image: CLIP's has a token of its own first.
inline Tensor patches(Forward& f, const Tower& tower) {
  const std::int64_t width = tower.sizes.width;
  const Tensor image = f.sample_input("pixel_values", {tower.channels, tower.side, tower.side});
  const InModule embeddings(f, "embeddings", tower.named("VisionEmbeddings"));
  const Tensor first = tower.siglip ? 0 : f.parameter("class_embedding", {1, 1, width});
  const Tensor rows = cut_patches(f, "patch_embedding", image, {tower.channels, width, tower.patch, {}, tower.siglip});
  if (tower.siglip) return f.add(rows, f.parameter("position_embedding.weight", {1, tower.patches(), width}));
  const std::vector<core::Dim> each = {core::Dim::batch(), core::Dim::fixed(-1), core::Dim::fixed(-1)};
  const Tensor all = f.concatenate({f.call("expand", {first}, {{"shape", each}}), rows}, 1);
  return f.add(all, f.parameter("position_embedding.weight", {1, tower.patches() + 1, width}));
}

/// What an image tower leaves: all tokens, and one vector for an image.
struct Seen {
  Tensor hidden = 0;
  Tensor pooled = 0;
};

/// `classifies`: of all tokens; the vector of an image is made as well, and read by nobody.
inline Seen image_tower(Forward& f, const Tower& tower, bool classifies) {
  const InModule inside(f, "vision_model", tower.named("VisionTransformer"));
  const std::int64_t width = tower.sizes.width;
  const Tensor cut = patches(f, tower);
  const Tensor read = tower.siglip ? cut : f.layer_norm("pre_layrnorm", cut, width);
  Tensor hidden = encoder(f, tower, read, {});
  if (tower.siglip) hidden = f.layer_norm("post_layernorm", hidden, width);
  if (!classifies) f.hand_out(hidden);
  f.freeze(classifies);
  Tensor one = hidden;
  if (!tower.siglip) one = f.layer_norm("post_layernorm", f.select(hidden, 1, 0), width);
  else if (tower.pools) one = pooled(f, tower, hidden);
  f.freeze(false);
  return {hidden, one};
}

inline Tensor of_length_one(Forward& f, Tensor made) {
  const Tensor squares = f.call("sum", {f.call("pow", {made})}, {{"dim", std::int64_t{-1}}, {"keepdim", true}});
  const Tensor unit = f.call("div", {made, f.call("pow", {squares})});
  f.hand_out(unit);
  return unit;
}

/// Projected, and of length 1.
inline Tensor embedded(Forward& f, std::string_view name, Tensor pooled, std::int64_t in, std::int64_t out) {
  return of_length_one(f, f.linear(name, pooled, in, out, {.bias = false}));
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
  const Tower text = read_tower(config, kText);
  const std::int64_t width = config.size_or({"projection_dim"}, 512);
  const bool projects = config.class_name() == "CLIPTextModelWithProjection";
  if (!config.status()) return;
  const Tensor pooled = text_tower(f, text, token_ids(f));
  if (projects) f.linear("text_projection", pooled, text.sizes.width, width, {.bias = false});
}

/// CLIPVisionModel, CLIPVisionModelWithProjection and SiglipVisionModel: what models of videos see their first frame
/// with.
inline void write_vision_model(ConfigFields& config, bool siglip, Forward& f) {
  const Tower image = read_tower(config, siglip ? kSiglip : kImages);
  const std::int64_t width = config.size_or({"projection_dim"}, 512);
  const bool projects = config.class_name() == "CLIPVisionModelWithProjection";
  config.ignore({"initializer_factor"});
  if (!config.status()) return;
  const Tensor pooled = image_tower(f, image, false).pooled;
  if (projects) f.linear("visual_projection", pooled, image.sizes.width, width, {.bias = false});
}

/// The mean of an image's patches, and a linear layer.
inline void write_classifier(Forward& f, const Tower& image, std::int64_t labels) {
  const Seen seen = image_tower(f, image, true);
  const Tensor rows = image.siglip ? seen.hidden : f.slice(seen.hidden, 1, 1, Forward::kRest);
  f.linear("classifier", f.call("mean", {rows}, {{"dim", std::int64_t{1}}}), image.sizes.width, labels);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const std::string_view type = config.text({"model_type"}, "");
  const bool siglip = type.starts_with("siglip");
  if (type == "clip_text_model") return write_text_model(config, f);
  if (type.ends_with("_vision_model")) return write_vision_model(config, siglip, f);
  const Tower text = read_part(config, "text_config", siglip ? kSiglip : kText);
  const Tower image = read_part(config, "vision_config", siglip ? kSiglip : kImages);
  const std::int64_t width = config.size_or({"projection_dim"}, 512);
  const std::int64_t labels = labels_of(config);
  config.ignore({"text_config_dict", "vision_config_dict", "initializer_factor"});
  if (head != Head::none && head != Head::sequence_classification) {
    config.fail("only the model of both towers and the one that classifies images are known");
  }
  if (siglip && (!image.pools || text.projected != image.sizes.width) && head == Head::none) {
    config.fail("towers of different widths are not known", "projection_size");
  }
  if (!config.status()) return;
  if (head == Head::sequence_classification) return write_classifier(f, image, labels);
  if (siglip) f.tokens(text.positions);
  const Tensor ids = token_ids(f);
  const Tensor pixels = image_tower(f, image, false).pooled;
  const Tensor words = text_tower(f, text, ids);
  if (siglip) {
    const Tensor images = of_length_one(f, pixels);
    const Tensor products = f.call("matmul", {of_length_one(f, words), f.permute(images, {1, 0})});
    const Tensor scaled = f.multiply(products, f.call("exp", {f.parameter("logit_scale", {1, 1})}));
    (void)f.add(scaled, f.parameter("logit_bias", {1, 1}));
    return;
  }
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
  t.size("num_labels", "/classifier", "out_features");
}

inline constexpr Architecture kArchitecture = {
    .name = "clip",
    .model_types = names<"clip", "clip_text_model", "clip_vision_model", "siglip", "siglip_vision_model">,
    .usual_head = Head::none,
    .write = write,
    .classes = kClasses,
    .read_tree = read_tree};

}  // namespace clip

}  // namespace gpumem::architectures
