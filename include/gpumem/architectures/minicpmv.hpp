// MiniCPM-V 2.5 to 4.5 and MiniCPM-o: SigLIP's tower on a picture and its slices, all of a batch padded to as many
// patches as the largest has; a resampler whose queries read each of them; and a text model, whose fields stand among
// the model's own. Attention of the tower is written out: its class knows flash_attn, and no scaled_dot_product. Its
// tower for sound is held and not called, and what makes speech is left out, as LLaMA-Factory and ms-swift leave it
// (init_tts false).
// Source: modeling_minicpmv.py, modeling_navit_siglip.py, resampler.py, image_processing_minicpmv.py of MiniCPM-V-2_6
// and MiniCPM-V-4_5; modeling_minicpmo.py of MiniCPM-o-2_6; LLaMA-Factory 2026-08, model/patcher.py.
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
#include "gpumem/architectures/vision_language.hpp"

namespace gpumem::architectures {

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
