// dots.ocr and Ovis 2.5, whose towers are their publishers' own code: images of any size, all of a batch one sequence
// of patches, turned by their rows and columns; here each image is a row of its own, which takes as much, as attention
// goes image by image. flash_attn is taken to be installed: both ask for it.
//
// dots.ocr: RMS norms and a gate, four patches side by side behind two linear layers; Qwen2.
// Ovis 2.5: SigLIP 2's blocks, whose features are words of a vocabulary of the tower's own, which a table turns into
// embeddings; Qwen3. Its encoder hands out what every block leaves, in the patches' order again.
// Source: modeling_dots_vision.py and modeling_dots_ocr.py of rednote-hilab/dots.ocr; modeling_ovis2_5.py of
// AIDC-AI/Ovis2.5-9B; the bounds of pixels of their preprocessors.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/image_tokens.hpp"
#include "gpumem/architectures/image_towers.hpp"
#include "gpumem/architectures/mixture.hpp"
#include "gpumem/architectures/vision_language.hpp"

namespace gpumem::architectures {

namespace dots_ocr {

struct Model {
  bool ovis = false;
  DecoderSizes sizes;  ///< of the tower
  std::int64_t channels = 3;
  std::int64_t patch = 14;
  std::int64_t merge = 2;
  std::int64_t frames = 1;  ///< of a patch
  std::int64_t places = 0;  ///< of a table of positions
  bool bias = false;
  bool norms_behind = true;    ///< of the tower, behind its blocks
  std::int64_t words = 65536;  ///< of Ovis' tower
  std::int64_t width = 1;      ///< of the text model

  [[nodiscard]] std::string named(std::string_view part) const {
    return std::string(ovis ? "Siglip2" : "Dots").append(part);
  }
};

inline constexpr std::int64_t kMarks = 4;  ///< the last of Ovis' words

inline Model read(ConfigFields& whole) {
  Model m;
  m.ovis = whole.text({"model_type"}, "dots_ocr") == "ovis2_5";
  ConfigFields* config = whole.part_or_usual(m.ovis ? "vit_config" : "vision_config");
  if (config == nullptr) return m;
  DecoderSizes& s = m.sizes;
  s.width = config->size_or({m.ovis ? "hidden_size" : "embed_dim"}, m.ovis ? 1152 : 1536);
  s.inner = config->size_or({"intermediate_size"}, m.ovis ? 4304 : 4224);
  s.layers = config->layers_or("num_hidden_layers", m.ovis ? 27 : 42);
  s.heads = config->size_or({"num_attention_heads"}, m.ovis ? 16 : 12);
  s.activation = config->text({"hidden_act"}, m.ovis ? "gelu_pytorch_tanh" : "silu");
  m.channels = config->size_or({"num_channels"}, 3);
  m.patch = config->size_or({"patch_size"}, m.ovis ? 16 : 14);
  m.merge = config->size_or({m.ovis ? "hidden_stride" : "spatial_merge_size"}, 2);
  m.frames = config->size_or({"temporal_patch_size"}, 1);
  m.bias = config->flag("use_bias", m.ovis);
  if (m.ovis) {
    if (config->flag("preserve_original_pe", true)) {
      const core::JsonValue* said = config->find("num_patches");  // -1: as many as an image has
      const std::int64_t side = config->size_or({"image_size"}, 512);
      m.places = said == nullptr || said->is(-1) ? (side / m.patch) * (side / m.patch) : config->size({"num_patches"});
    }
    m.words = whole.size_or({"visual_vocab_size"}, 65536);
    if (m.words <= kMarks) whole.fail("leaves no words", "visual_vocab_size");
    config->ignore({"use_rope"});
    if (!config->flag("use_rope", true)) config->fail("is true in this model", "use_rope");
  } else {
    m.norms_behind = config->flag("post_norm", true);
  }
  config->ignore({"model_type", "fullatt_block_indexes", "window_size", "tokens_per_second", "hidden_size", "is_causal",
                  "gradient_checkpointing", "initializer_range", "init_merger_std", "image_size", "num_patches",
                  "attention_dropout"});
  whole.ignore({"visual_vocab_size", "hidden_size", "vision_config", "video_token_id"});
  if (s.width % (2 * s.heads) != 0) config->fail("does not divide the tower's width", "num_attention_heads");
  check_patches(*config, m.patch, m.merge, m.frames);
  return m;
}

/// Rows and columns of patches of a picture; nothing: no processor reads such sides.
inline std::optional<TileGrid> grid_of(const Model& m, const PictureSize& size) {
  PixelBounds bounds = {.factor = m.patch * m.merge, .least = 3136, .most = 11'289'600};
  if (m.ovis) bounds = {.factor = m.patch * m.merge, .least = 200'704, .most = 2'408'448};
  const auto made = smart_resize(size, bounds);
  if (!made) return std::nullopt;
  return TileGrid{made->height / m.patch, made->width / m.patch};
}

inline Tensor norm(Forward& f, const Model& m, std::string_view name, Tensor input) {
  return m.ovis ? f.layer_norm(name, input, m.sizes.width) : f.rms_norm(name, input, m.sizes.width, "RMSNorm");
}

inline Tensor attention(Forward& f, const Model& m, Tensor input, const Rotary& rotary) {
  const std::int64_t width = m.sizes.width;
  const std::int64_t each = width / m.sizes.heads;
  const InModule inside(f, m.ovis ? "self_attn" : "attn", m.ovis ? "Siglip2Attention" : "VisionFlashAttention2");
  std::vector<Tensor> parts;
  if (m.ovis) {
    for (const std::string_view name : {"q_proj", "k_proj", "v_proj"})
      parts.push_back(f.linear(name, input, width, width));
  } else {
    parts = f.split(f.linear("qkv", input, width, 3 * width, {.bias = m.bias}), 2, {width, width, width});
  }
  const auto turned = [&](Tensor part) {
    const Tensor heads = split_heads(f, part, each);
    // dots.ocr makes tables in float32 for each of them.
    const auto table = [&](Tensor of) { return f.to(f.call("clone", {of}), "float32"); };
    const Rotary own = m.ovis ? rotary : Rotary{table(rotary.cosines), table(rotary.sines), each, false};
    return f.as_type_of(rotate(f, f.to(heads, "float32"), own, each), heads);
  };
  const Tensor query = turned(parts[0]);
  const Tensor key = turned(parts[1]);
  const Tensor mixed = attend(f, {query, key, split_heads(f, parts[2], each)}, {.copies = false, .causal = false});
  return f.linear(m.ovis ? "out_proj" : "proj", mixed, width, width, {.bias = m.ovis || m.bias});
}

inline Tensor block(Forward& f, const Model& m, Tensor input, const Rotary& rotary) {
  const DecoderSizes& s = m.sizes;
  const Tensor attended = f.add(input, attention(f, m, norm(f, m, m.ovis ? "layer_norm1" : "norm1", input), rotary));
  const Tensor again = norm(f, m, m.ovis ? "layer_norm2" : "norm2", attended);
  if (m.ovis) return f.add(attended, feed_forward(f, s, again, {.class_name = "Siglip2MLP"}));
  const InModule inside(f, "mlp", "DotsSwiGLUFFN");
  const GatedNames names = {.gate = "fc1", .up = "fc3", .down = "fc2", .bias = m.bias};
  return f.add(attended, gated_layer(f, s.width, s.inner, "silu", again, names));
}

inline Tensor patches_in(Forward& f, const Model& m, std::int64_t images, std::int64_t patches) {
  const std::int64_t channels = m.channels * (m.ovis ? m.frames : 1);
  const Tensor pixels = f.rows_input("pixel_values", images * patches, {channels, m.patch, m.patch});
  const PatchCut cut = {.channels = channels, .width = m.sizes.width, .patch = m.patch, .step = {}};
  const auto rows = [&](Tensor made) { return f.unflatten(f.flatten(made, 1, 2), 0, {-1, patches}); };
  if (m.ovis) {
    const InModule inside(f, "embeddings", "Siglip2VisionEmbeddings");
    const Tensor embedded = rows(cut_patches(f, "patch_embedding", pixels, cut));
    if (m.places == 0) return embedded;
    const std::int64_t side = side_of(m.places);
    const std::int64_t width = m.sizes.width;
    if (side == 0) f.fail("has a table of positions that is no square");
    // Interpolated in float32 to the picture's rows and columns, then in the order of its windows.
    const Tensor table = f.parameter("position_embedding.weight", {side * side, width});
    const Tensor square = f.unflatten(f.permute(f.unflatten(table, 0, {side, side}), {2, 0, 1}), 0, {1, width});
    const Tensor resized = f.call("upsample", {f.to(square, "float32")}, {{"size", Sizes{patches / m.merge, m.merge}}});
    const Tensor placed = f.as_type_of(f.permute(f.flatten(resized, 2, 3), {0, 2, 1}), embedded);
    return f.add(embedded, f.call("clone", {placed}));
  }
  const InModule outer(f, "patch_embed", "DotsViTPreprocessor");
  const InModule inside(f, "patchifier", "DotsPatchEmbed");
  // Under autocast a weight in float32 makes float32 of what the convolution leaves.
  const Tensor embedded = rows(cut_patches(f, "proj", pixels, cut));
  const InModule norm(f, "norm", "RMSNorm");
  const Tensor normed = f.layer("normed", {}, "rms_norm", {f.to(embedded, "float32")},
                                {{"normalized_shape", m.sizes.width}, {"elementwise_affine", false}});
  return f.multiply(f.as_type_of(normed, embedded), f.parameter("weight", {m.sizes.width}));
}

/// [N images, patches / 4, 4 width]: four patches side by side.
inline Tensor side_by_side(Forward& f, const Model& m, Tensor hidden) {
  return f.unflatten(f.flatten(hidden, 1, 2), 1, {-1, m.merge * m.merge * m.sizes.width});
}

inline Tensor blocks(Forward& f, const Model& m, Tensor hidden, std::vector<Tensor>& states) {
  const std::int64_t each = m.sizes.width / m.sizes.heads;
  const auto table = [&] {
    return f.call("rotary_table", {hidden}, {{"width", each}, {"padded", true}, {"dtype", std::string("float32")}});
  };
  const Tensor cosines = table();
  const Rotary rotary = {cosines, table(), each, false};
  return stack(f, m.ovis ? "layers" : "blocks", m.named(m.ovis ? "EncoderLayer" : "VisionBlock"), m.sizes.layers,
               hidden, [&](Tensor x, std::int64_t) {
                 const Tensor made = block(f, m, x, rotary);
                 if (m.ovis) states.push_back(f.call("clone", {made}));
                 return made;
               });
}

inline Tensor dots_tower(Forward& f, const Model& m, std::int64_t images, std::int64_t patches) {
  const InModule inside(f, "vision_tower", "DotsVisionTransformer");
  std::vector<Tensor> none;
  Tensor hidden = blocks(f, m, patches_in(f, m, images, patches), none);
  if (m.norms_behind) hidden = norm(f, m, "post_trunk_norm", hidden);
  const InModule merger(f, "merger", "PatchMerger");
  const std::int64_t wide = m.merge * m.merge * m.sizes.width;
  const Tensor merged = side_by_side(f, m, f.layer_norm("ln_q", hidden, m.sizes.width));
  const InModule list(f, "mlp", "Sequential");
  const Tensor open = f.activation("1", f.linear("0", merged, wide, wide), "gelu");
  return f.linear("2", open, wide, m.width);
}

inline Tensor ovis_tower(Forward& f, const Model& m, std::int64_t images, std::int64_t patches) {
  const std::int64_t wide = m.merge * m.merge * m.sizes.width;
  const std::int64_t words = m.words - kMarks;
  Tensor chosen = 0;
  {
    const InModule tokenizer(f, "visual_tokenizer", "VisualTokenizer");
    std::vector<Tensor> states;
    {
      const InModule vit(f, "vit", "Siglip2NavitModel");
      const InModule inside(f, "vision_model", "Siglip2VisionTransformer");
      const Tensor embedded = patches_in(f, m, images, patches);
      {
        const InModule encoder(f, "encoder", "Siglip2Encoder");
        const Tensor last = blocks(f, m, embedded, states);
        if (states.empty()) states.push_back(last);  // a tower that has failed ends early
      }
      // Computed, and read by nobody.
      f.hold_printed("post_layernorm");
      (void)f.parameter("post_layernorm.unused", {2, m.sizes.width}, true);
    }
    const InModule head(f, "head", "Sequential");
    const Tensor logits = f.linear("0", side_by_side(f, m, states.back()), wide, words, {.bias = false});
    const Tensor normed = f.layer_norm("1", logits, words);
    chosen = f.as_type_of(f.call("softmax", {f.to(normed, "float32")}), normed);
    for (const Tensor state : states) chosen = f.leave_function(chosen, {state});
  }
  const Tensor padded = f.call("pad", {chosen}, {{"padding", Sizes{0, kMarks}}});
  const InModule inside(f, "vte", "VisualEmbedding");
  const Tensor table = f.parameter("weight", {m.words, m.width});
  return f.call("linear_function", {padded, f.permute(table, {1, 0})});
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Pictures pictures = pictures_of(f);
  Model model = read(config);
  ConfigFields* text = text_fields(config, model.ovis ? "qwen3" : "qwen2", model.ovis ? "llm_config" : "text_config");
  if (text == nullptr || !config.status()) return;
  model.width = text->size({"hidden_size"});
  const std::optional<TileGrid> grid = grid_of(model, pictures.size);
  if (!grid) return f.fail("reads no image whose sides are more than 200 to 1; give another `image`");
  const std::int64_t merged = grid->tiles() / (model.merge * model.merge);
  tell_pictures(f, pictures, pictures.seen() * (merged + 2));  // and a mark at either end
  TextPart part;
  if (model.ovis) {
    part.modules = {{"llm", "Qwen3ForCausalLM"}, {"model", "Qwen3Model"}};
    part.head = "llm.";
  } else {
    part.modules = {{"model", "Qwen2Model"}};
  }
  write_text(f, *text, head == Head::none ? Head::causal_lm : head, part, pictures, [&](Forward& to) {
    return model.ovis ? ovis_tower(to, model, pictures.seen(), grid->tiles())
                      : dots_tower(to, model, pictures.seen(), grid->tiles());
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>(
    {{"DotsOCR", "dots_ocr", "model"}, {.prefix = "Ovis2", .model_type = "ovis2_5", .ending = "_5"}});

/// What print(model) of Ovis 2.5 shows: all but the heads of the tower.
inline void read_ovis_tree(TreeFields& t) {
  static constexpr auto kPublished = std::to_array<PublishedHeads>({{1152, 16}});
  const std::string tower = "visual_tokenizer.vit.vision_model.";
  const std::string cut = tower + "embeddings.patch_embedding";
  const std::int64_t width = t.value(cut, "out_channels").value_or(1);
  t.open("vit_config");
  t.size("hidden_size", cut, "out_channels");
  t.size("num_channels", cut, "in_channels");
  t.size("patch_size", cut, "kernel_size");
  t.size("intermediate_size", tower + "encoder.layers.0.mlp.fc1", "out_features");
  t.count("num_hidden_layers", tower + "encoder.layers");
  t.size("num_patches", tower + "embeddings.position_embedding", "num_embeddings");
  const std::int64_t merged = t.value("visual_tokenizer.head.0", "in_features").value_or(width) / width;
  t.set("hidden_stride", TreeFields::square_side(merged));
  t.heads_of_width({.published = kPublished, .usual_width = 72}, width);
  t.close();
  t.set("visual_vocab_size", t.value("visual_tokenizer.head.0", "out_features").value_or(1) + kMarks);
  tree_text(t, {.path = "llm.model", .type = "qwen3", .field = "llm_config"});
}

/// What print(model) shows: all but the heads of the tower.
inline void read_tree(TreeFields& t) {
  if (t.has("visual_tokenizer")) return read_ovis_tree(t);
  static constexpr auto kPublished = std::to_array<PublishedHeads>({{1536, 12}});
  const std::string cut = "/vision_tower.patch_embed.patchifier.proj";
  const std::string block = "/vision_tower.blocks.0.";
  const std::int64_t width = t.value(cut, "out_channels").value_or(1);
  t.open("vision_config");
  t.size("embed_dim", cut, "out_channels");
  t.size("num_channels", cut, "in_channels");
  t.size("patch_size", cut, "kernel_size");
  t.size("intermediate_size", block + "mlp.fc1", "out_features");
  t.count("num_hidden_layers", "/vision_tower.blocks");
  t.flag("use_bias", block + "attn.qkv");
  t.there("post_norm", "/vision_tower.post_trunk_norm");
  const std::int64_t merged = t.value("/vision_tower.merger.mlp.0", "in_features").value_or(width) / width;
  t.set("spatial_merge_size", TreeFields::square_side(merged));
  t.heads_of_width({.published = kPublished, .usual_width = 128}, width);
  t.close();
  tree_text(t, {.path = "", .type = "qwen2"});
}

inline constexpr Architecture kArchitecture = {.name = "dots_ocr",
                                               .model_types = names<"dots_ocr", "ovis2_5">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .holds_text_model = true};

}  // namespace dots_ocr

}  // namespace gpumem::architectures
