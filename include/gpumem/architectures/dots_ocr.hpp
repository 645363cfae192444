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
    const Tensor table = f.parameter("position_embedding.weight", {side, side, width});
    const Tensor square = f.unflatten(f.permute(table, {2, 0, 1}), 0, {1, width});
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

inline constexpr Architecture kArchitecture = {
    .name = "dots_ocr", .model_types = names<"dots_ocr", "ovis2_5">, .write = write, .holds_text_model = true};

}  // namespace dots_ocr

// MiniCPM-V 2.5 to 4.5 and MiniCPM-o: SigLIP's tower on a picture and its slices, all of a batch padded to as many
// patches as the largest has; a resampler whose queries read each of them; and a text model, whose fields stand among
// the model's own. Attention of the tower is written out: its class knows flash_attn, and no scaled_dot_product. Its
// tower for sound is held and not called, and what makes speech is left out, as LLaMA-Factory and ms-swift leave it
// (init_tts false).
// Source: modeling_minicpmv.py, modeling_navit_siglip.py, resampler.py, image_processing_minicpmv.py of MiniCPM-V-2_6
// and MiniCPM-V-4_5; modeling_minicpmo.py of MiniCPM-o-2_6; LLaMA-Factory 2026-08, model/patcher.py.

namespace minicpmv {

/// The text model of a version.
struct Version {
  std::string_view name;
  std::string_view text_type;
  std::string_view text_class;
};
inline constexpr auto kVersions = std::to_array<Version>(
    {{"2.5", "llama", "Llama"}, {"2.6", "qwen2", "Qwen2"}, {"4.0", "llama", "Llama"}, {"4.5", "qwen3", "Qwen3"}});

struct Model {
  Version version = kVersions[1];
  ImageTower tower;
  std::int64_t queries = 64;
  std::int64_t most_slices = 9;
  std::int64_t sound = 0;  ///< parameters of the tower for sound
  std::int64_t width = 1;  ///< of the text model

  [[nodiscard]] std::int64_t heads() const { return std::max<std::int64_t>(width / 128, 1); }
};

/// The version of "version", a text or a number. MiniCPM-o's first has none of another text model.
inline Version read_version(ConfigFields& config) {
  const core::JsonValue* said = config.find("version");
  if (said == nullptr) return kVersions[1];
  std::string name(said->is(core::JsonValue::Kind::text) ? said->text() : std::string_view());
  if (said->is(core::JsonValue::Kind::real)) name = std::to_string(said->real()).substr(0, 3);
  if (said->is(core::JsonValue::Kind::integer)) name = std::to_string(said->integer()) + ".0";
  for (const Version& row : kVersions) {
    if (row.name == name) return row;
  }
  config.fail("is none of 2.5, 2.6, 4.0 and 4.5", "version");
  return kVersions[1];
}

/// Of Whisper's encoder and two linear layers behind it.
inline std::int64_t sound_parameters(ConfigFields& config, std::int64_t text_width) {
  ConfigFields* audio = config.part_or_usual("audio_config");
  if (audio == nullptr) return 0;
  const auto size = [&](std::string_view name, std::int64_t usual) {
    constexpr std::int64_t kMost = 1 << 16;
    const std::int64_t of = audio->size_or({name}, usual);
    if (of > kMost) audio->fail("is more than gpumem takes", name);
    return std::min(of, kMost);
  };
  const std::int64_t width = size("d_model", 1024);
  const std::int64_t inner = size("encoder_ffn_dim", 4096);
  const std::int64_t blocks = audio->layers_or("encoder_layers", 24);
  const std::int64_t bands = size("num_mel_bins", 80);
  const std::int64_t places = size("max_source_positions", 1500);
  audio->ignore({"model_type", "encoder_attention_heads", "decoder_attention_heads", "decoder_ffn_dim",
                 "decoder_layers", "num_hidden_layers", "vocab_size", "max_target_positions", "max_length"});
  const auto linear = [](std::int64_t from, std::int64_t to) { return from * to + to; };
  constexpr std::int64_t kKernel = 3;
  const std::int64_t block = 3 * linear(width, width) + width * width + linear(width, inner) + linear(inner, width) +
                             4 * width;  // keys have no bias
  const std::int64_t convolved = linear(kKernel * bands, width) + linear(kKernel * width, width);
  return convolved + places * width + blocks * block + 2 * width + linear(width, text_width) +
         linear(text_width, text_width);
}

inline Model read(ConfigFields& config) {
  Model m;
  m.version = read_version(config);
  if (ConfigFields* tower = vision_fields(config)) {
    tower->complete(R"({"hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27,
                        "num_attention_heads": 16, "image_size": 980, "patch_size": 14, "vision_use_head": false})");
    tower->replace(R"({"model_type": "siglip_vision_model"})");
    m.tower = read_image_tower(*tower, "siglip_vision_model");
  }
  if (config.flag("drop_vision_last_layer", m.version.name == "2.5")) --m.tower.sizes.layers;
  if (m.tower.sizes.layers < 1) config.fail("leaves no layer of the tower", "drop_vision_last_layer");
  m.queries = config.size_or({"query_num"}, m.version.name == "2.5" ? 96 : 64);
  if (m.queries > 4096) config.fail("is more than gpumem takes", "query_num");
  if (ConfigFields* slices = config.part_or_usual("slice_config")) {
    m.most_slices = slices->size_or({"max_slice_nums"}, 9);
    if (m.most_slices > 64) slices->fail("is more than gpumem takes", "max_slice_nums");
    slices->ignore({"patch_size", "scale_resolution", "model_type"});
  }
  config.ignore({"image_size", "patch_size", "vision_batch_size", "tts_config", "batch_3d_resampler", "audio_pool_step",
                 "audio_chunk_length", "stream_input", "listen_speak_type", "insert_layer_id", "batch_vision_input",
                 "slice_mode", "use_image_id", "init_tts", "init_vision"});
  return m;
}

/// Slices of all of a sample's images, and the patches that each is padded to.
struct Plan {
  std::int64_t slices = 1;
  std::int64_t patches = 1;
  bool pads = false;  ///< slices and the whole picture have not as many patches, so that attention has a mask
};
inline Plan plan_of(const Model& m, const Pictures& pictures) {
  // A video's frames are not cut, as the published examples have it.
  const SlicedPicture made = sliced_picture(pictures.size, m.tower.patch, pictures.frames > 0 ? 1 : m.most_slices);
  const auto patches = [&](const PictureSize& of) { return of.width / m.tower.patch * (of.height / m.tower.patch); };
  const std::int64_t whole = patches(made.whole);
  const std::int64_t slice = made.slices > 0 ? patches(made.slice) : whole;
  return {pictures.seen() * (1 + made.slices), std::max(whole, slice), whole != slice};
}

/// softmax(q k) v with scores in the model's type and the softmax in float32, of [N, heads, .., d].
inline Tensor written_out(Forward& f, const Heads& heads, std::optional<Tensor> mask, double dropout) {
  Tensor scores = f.scale(f.call("matmul", {heads.query, f.permute(heads.key, {0, 1, 3, 2})}));
  if (mask) scores = f.add(scores, *mask);
  const Tensor weights = f.as_type_of(f.call("softmax", {f.to(scores, "float32")}), heads.query);
  const Tensor kept = dropout > 0.0 ? f.call("dropout", {weights}, {{"p", dropout}}) : weights;
  return merge_heads(f, f.call("matmul", {kept, heads.value}));
}

inline Tensor attention(Forward& f, const Model& m, Tensor input, std::optional<Tensor> mask) {
  const InModule inside(f, "self_attn", "SiglipAttention");
  const std::int64_t width = m.tower.sizes.width;
  const auto heads = [&](std::string_view name) {
    return split_heads(f, f.linear(name, input, width, width), width / m.tower.sizes.heads);
  };
  const Tensor query = heads("q_proj");
  const Tensor key = heads("k_proj");
  const Tensor mixed = written_out(f, {query, key, heads("v_proj")}, mask, m.tower.sizes.attention_dropout);
  return f.linear("out_proj", mixed, width, width);
}

/// [N slices, patches, width].
inline Tensor tower(Forward& f, const Model& m, const Plan& plan) {
  const InModule inside(f, "vpm", "SiglipVisionTransformer");
  const DecoderSizes& s = m.tower.sizes;
  const Tensor pixels =
      f.rows_input("pixel_values", plan.slices, {m.tower.channels, m.tower.patch, plan.patches * m.tower.patch});
  Tensor hidden = 0;
  {
    const InModule embeddings(f, "embeddings", "SiglipVisionEmbeddings");
    hidden = cut_patches(f, "patch_embedding", pixels,
                         {.channels = m.tower.channels, .width = s.width, .patch = m.tower.patch, .step = {}});
    const Tensor places = f.rows_input("patch_places", plan.slices, {plan.patches});
    hidden = f.add(hidden, f.embedding("position_embedding", places, m.tower.patches(), s.width));
  }
  std::optional<Tensor> mask;
  if (plan.pads) {  // of all patches by all, in the type of the hidden states
    const Tensor shown = f.rows_input("patch_attention_mask", plan.slices, {1, 1, plan.patches});
    const Tensor row = f.as_type_of(shown, hidden);
    mask = f.add(row, f.permute(row, {0, 1, 3, 2}));
  }
  {
    const InModule encoder(f, "encoder", "SiglipEncoder");
    hidden = stack(f, "layers", "SiglipEncoderLayer", s.layers, hidden, [&](Tensor x, std::int64_t) {
      const Tensor attended = f.add(x, attention(f, m, f.layer_norm("layer_norm1", x, s.width), mask));
      const Tensor again = f.layer_norm("layer_norm2", attended, s.width);
      return f.add(attended, feed_forward(f, s, again, {.class_name = "SiglipMLP"}));
    });
  }
  return f.layer_norm("post_layernorm", hidden, s.width);
}

/// Each query reads the patches of a slice; keys have their places, values none.
inline Tensor resampled(Forward& f, const Model& m, const Plan& plan, Tensor hidden) {
  const InModule inside(f, "resampler", "Resampler");
  const std::int64_t width = m.width;
  const Tensor query = f.parameter("query", {1, m.queries, width});
  const Tensor read = f.linear("kv_proj", hidden, m.tower.sizes.width, width, {.bias = false});
  const Tensor context = f.layer_norm("ln_kv", read, width);
  const Tensor asking = f.layer_norm("ln_q", query, width);
  const Tensor places = f.call("clone", {f.call("detached", {context})});  // padded to the longest slice
  const std::vector<core::Dim> each = {core::Dim::batch(plan.slices), core::Dim::fixed(-1), core::Dim::fixed(-1)};
  Tensor mixed = 0;
  {
    const InModule attention(f, "attn", "MultiheadAttention");
    const Tensor repeated = f.call("clone", {f.call("expand", {asking}, {{"shape", each}})});
    const auto heads = [&](std::string_view name, Tensor input) {
      return split_heads(f, f.linear(name, input, width, width), width / m.heads());
    };
    const Tensor queries = heads("in_proj_query", repeated);
    const Tensor keys = heads("in_proj_key", f.add(context, places));
    const Tensor values = heads("in_proj_value", context);
    const Tensor scores = f.call("matmul", {f.scale(queries), f.permute(keys, {0, 1, 3, 2})});
    const Tensor read_by = merge_heads(f, f.call("matmul", {f.call("softmax", {scores}), values}));
    mixed = f.linear("out_proj", read_by, width, width);
  }
  const Tensor normed = f.layer_norm("ln_post", mixed, width);
  return f.call("linear_function", {normed, f.permute(f.parameter("proj", {width, width}), {1, 0})});
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Pictures pictures = pictures_of(f);
  const bool hears = config.text({"model_type"}, "minicpmv") == "minicpmo";
  Model model = read(config);
  ConfigFields* text = text_fields(config, model.version.text_type);
  if (text == nullptr || !config.status()) return;
  model.width = text->size({"hidden_size"});
  if (model.width % model.heads() != 0) config.fail("is no whole number of the resampler's heads", "hidden_size");
  if (hears && config.flag("init_audio", true)) model.sound = sound_parameters(config, model.width);
  if (!config.status()) return;
  const Plan plan = plan_of(model, pictures);
  if (hears) {
    f.remark("samples bring no sound; the tower for it is held and not called");
    f.remark("what makes speech is not held, as LLaMA-Factory and ms-swift leave it out");
  }
  constexpr std::int64_t kMarks = 2;  // around each slice
  tell_pictures(f, pictures, plan.slices * (model.queries + kMarks));
  TextPart part;
  const std::string name(model.version.text_class);
  part.modules = {{"llm", name + "ForCausalLM"}, {"model", name + "Model"}};
  part.head = "llm.";
  part.embed = [&](Tensor, Tensor embedded) {
    if (model.sound > 0) (void)f.parameter("apm.unused", {model.sound}, true);
    return with_features(f, pictures, embedded,
                         [&](Forward& to) { return resampled(to, model, plan, tower(to, model, plan)); });
  };
  write_text(f, *text, head == Head::none ? Head::causal_lm : head, part);
}

inline constexpr Architecture kArchitecture = {
    .name = "minicpmv",
    .model_types = names<"minicpmv", "minicpmo">,
    .write = write,
    .holds_text_model = true,
    .blocks = names<"SiglipEncoderLayer", "LlamaDecoderLayer", "Qwen2DecoderLayer", "Qwen3DecoderLayer">};

}  // namespace minicpmv

}  // namespace gpumem::architectures
