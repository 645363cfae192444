#pragma once

#include "gpumem/architectures/denoiser.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/architectures/decoder.hpp"
#include "gpumem/core/bytes.hpp"
#include "gpumem/core/json.hpp"

namespace gpumem::architectures {

namespace denoiser_detail {

/// Fields of a config that tell a part of a published pipeline in place of its sizes.
inline constexpr std::string_view kCounted = "_parameters";
inline constexpr std::string_view kCalled = "_name";
inline constexpr std::string_view kUsualParts = "_usual_parts";

/// A part of published pipelines: of an autoencoder its config, of the others how many parameters they have.
struct UsualPart {
  std::string_view called;  ///< as the rows below name it
  std::string_view config;
};
inline constexpr UsualPart kUsual[] = {
    {"sd-vae", R"("_class_name": "AutoencoderKL", "block_out_channels": [128, 256, 512, 512], "layers_per_block": 2)"},
    {"vae16", R"("_class_name": "AutoencoderKL", "block_out_channels": [128, 256, 512, 512], "layers_per_block": 2, )"
              R"("latent_channels": 16, "use_quant_conv": false, "use_post_quant_conv": false)"},
    {"flux2-vae", R"("_class_name": "AutoencoderKLFlux2", "block_out_channels": [128, 256, 512, 512], )"
                  R"("layers_per_block": 2, "latent_channels": 32, "sample_size": 1024)"},
    {"wan-vae", R"("_class_name": "AutoencoderKLWan")"},
    {"wan22-vae", R"("_class_name": "AutoencoderKLWan", "base_dim": 160, "decoder_base_dim": 256, "z_dim": 48, )"
                  R"("is_residual": true, "in_channels": 12, "out_channels": 12)"},
    {"qwen-vae", R"("_class_name": "AutoencoderKLQwenImage")"},
    {"cogvideox-vae", R"("_class_name": "AutoencoderKLCogVideoX")"},
    {"hunyuan-vae", R"("_class_name": "AutoencoderKLHunyuanVideo")"},
    {"hunyuan15-vae", R"("_class_name": "AutoencoderKLHunyuanVideo15")"},
    {"hunyuan-image-vae", R"("_name": "AutoencoderKLHunyuanImage", "_parameters": 405575491)"},
    {"ltx-vae", R"("_class_name": "AutoencoderKLLTXVideo")"},
    {"ltx097-vae", R"("_name": "AutoencoderKLLTXVideo 0.9.7", "_parameters": 1246913522)"},
    {"ltx2-vae", R"("_class_name": "AutoencoderKLLTX2Video")"},
    {"ltx2-audio-vae", R"("_name": "AutoencoderKLLTX2Audio", "_parameters": 53248146)"},
    {"ltx2-connectors", R"("_name": "LTX2TextConnectors", "_parameters": 1431475200)"},
    {"mochi-vae", R"("_class_name": "AutoencoderKLMochi")"},
    {"oobleck", R"("_class_name": "AutoencoderOobleck", "downsampling_ratios": [2, 4, 4, 6, 10])"},
    {"ace-conditions", R"("_class_name": "AceStepConditionEncoder")"},
    {"dc-ae", R"("_name": "DC-AE f32c32", "_parameters": 312250275)"},
    {"clip-l", R"("_name": "CLIP ViT-L", "_parameters": 123060480)"},
    {"clip-l-p", R"("_name": "CLIP ViT-L", "_parameters": 123650304)"},
    {"clip-h", R"("_name": "OpenCLIP ViT-H", "_parameters": 340387840)"},
    {"clip-g", R"("_name": "OpenCLIP ViT-bigG", "_parameters": 694659840)"},
    {"clip-h-image", R"("_name": "CLIP ViT-H of images", "_parameters": 632076800)"},
    {"t5", R"("_name": "T5-XXL", "_parameters": 4762310656)"},
    {"t5-11b", R"("_name": "T5-11B", "_parameters": 4864791552)"},
    {"umt5", R"("_name": "UMT5-XXL", "_parameters": 5680910336)"},
    {"pile-t5", R"("_name": "Pile-T5-XL", "_parameters": 1223550976)"},
    {"gemma", R"("_name": "Gemma-2-2B", "_parameters": 2614341888)"},
    {"qwen-vl", R"("_name": "Qwen2.5-VL-7B", "_parameters": 8292166656)"},
    {"qwen3-4b", R"("_name": "Qwen3-4B", "_parameters": 4022468096)"},
    {"qwen3-8b", R"("_name": "Qwen3-8B", "_parameters": 8190735360)"},
    {"llama", R"("_name": "Llama-3.1-8B", "_parameters": 8030261248)"},
    {"llama-body", R"("_name": "Llama-3-8B without its head", "_parameters": 7504924672)"},
    {"mistral", R"("_name": "Mistral-Small-3.1-24B", "_parameters": 24011361280)"},
    {"chatglm", R"("_name": "ChatGLM3-6B", "_parameters": 6243584000)"},
    {"glm4", R"("_name": "GLM-4-9B without its head", "_parameters": 8779194368)"},
    {"gemma3", R"("_name": "Gemma-3-12B", "_parameters": 12187325040)"},
    {"ministral", R"("_name": "Ministral-3-3B", "_parameters": 3849090048)"},
    {"qwen-vl-text", R"("_name": "the text model of Qwen2.5-VL-7B", "_parameters": 7070619136)"},
    {"qwen3-vl-4b", R"("_name": "Qwen3-VL-4B", "_parameters": 4437815808)"},
    {"qwen3-vl-8b", R"("_name": "Qwen3-VL-8B", "_parameters": 8767123696)"},
    {"qwen3-embedding", R"("_name": "Qwen3-Embedding-0.6B", "_parameters": 595776512)"},
    {"byt5", R"("_name": "ByT5-small", "_parameters": 219314944)"},
    {"siglip", R"("_name": "SigLIP so400m of images", "_parameters": 428225600)"},
};

/// A family: the denoiser's class, and a field with a size where that tells more; then its parts, "vae text_encoder
/// text_encoder_2 ..." with "name=part" for what is called otherwise. The first row that fits counts.
/// Source: diffusers 0.40, src/diffusers/pipelines and scripts/convert_*.py; parameters as gpumem counts them from the
/// published sizes, of DC-AE as its weights are published.
struct UsualPipeline {
  std::string_view classes;
  std::string_view field;
  std::int64_t size;
  std::string_view parts;
};
inline constexpr UsualPipeline kUsualPipelines[] = {
    {"UNet2DConditionModel ControlNetModel", "encoder_hid_dim", 4096, "sd-vae chatglm"},
    {"UNet2DConditionModel ControlNetModel", "cross_attention_dim", 768, "sd-vae clip-l"},
    {"UNet2DConditionModel ControlNetModel", "cross_attention_dim", 1024, "sd-vae clip-h"},
    {"UNet2DConditionModel ControlNetModel", "cross_attention_dim", 2048, "sd-vae clip-l clip-g"},
    {"SD3Transformer2DModel", "", 0, "vae16 clip-l-p clip-g t5"},
    {"FluxTransformer2DModel", "", 0, "vae16 clip-l t5"},
    {"ChromaTransformer2DModel", "", 0, "vae16 t5"},
    {"Flux2Transformer2DModel", "joint_attention_dim", 7680, "flux2-vae qwen3-4b"},
    {"Flux2Transformer2DModel", "joint_attention_dim", 12288, "flux2-vae qwen3-8b"},
    {"Flux2Transformer2DModel", "", 0, "flux2-vae mistral"},
    {"QwenImageTransformer2DModel", "", 0, "qwen-vae qwen-vl"},
    {"ZImageTransformer2DModel", "", 0, "vae16 qwen3-4b"},
    {"HiDreamImageTransformer2DModel", "", 0, "vae16 clip-l-p clip-g t5 llama"},
    {"Lumina2Transformer2DModel", "", 0, "vae16 gemma"},
    {"PixArtTransformer2DModel", "", 0, "sd-vae t5"},
    {"AuraFlowTransformer2DModel", "", 0, "sd-vae pile-t5"},
    {"SanaTransformer2DModel", "", 0, "dc-ae gemma"},
    {"SanaVideoTransformer3DModel", "", 0, "wan-vae gemma"},
    {"LongCatImageTransformer2DModel", "", 0, "vae16 qwen-vl"},
    {"OmniGenTransformer2DModel", "", 0, "sd-vae"},
    {"WanTransformer3DModel", "in_channels", 48, "wan22-vae umt5"},
    {"WanTransformer3DModel", "image_dim", 1280, "wan-vae umt5 image_encoder=clip-h-image"},
    {"WanTransformer3DModel", "", 0, "wan-vae umt5"},
    {"CogVideoXTransformer3DModel", "", 0, "cogvideox-vae t5"},
    {"HunyuanVideoTransformer3DModel", "", 0, "hunyuan-vae llama-body clip-l"},
    {"CosmosTransformer3DModel", "crossattn_proj_in_channels", 100352, "wan-vae qwen-vl"},
    {"CosmosTransformer3DModel", "", 0, "wan-vae t5-11b"},
    {"LongCatVideoTransformer3DModel WanVACETransformer3DModel", "", 0, "wan-vae umt5"},
    {"SkyReelsV2Transformer3DModel", "image_dim", 1280, "wan-vae umt5 image_encoder=clip-h-image"},
    {"SkyReelsV2Transformer3DModel", "", 0, "wan-vae umt5"},
    {"ChronoEditTransformer3DModel", "", 0, "wan-vae umt5 image_encoder=clip-h-image"},
    {"HunyuanVideoFramepackTransformer3DModel", "", 0, "hunyuan-vae llama-body clip-l image_encoder=siglip"},
    {"HunyuanVideo15Transformer3DModel", "", 0, "hunyuan15-vae qwen-vl-text byt5"},
    {"HunyuanImageTransformer2DModel", "", 0, "hunyuan-image-vae qwen-vl byt5"},
    {"LTXVideoTransformer3DModel", "attention_head_dim", 128, "ltx097-vae t5"},
    {"LTXVideoTransformer3DModel", "", 0, "ltx-vae t5"},
    {"LTX2VideoTransformer3DModel", "", 0, "ltx2-vae gemma3 audio_vae=ltx2-audio-vae connectors=ltx2-connectors"},
    {"MochiTransformer3DModel", "", 0, "mochi-vae t5"},
    {"Kandinsky5Transformer3DModel", "model_dim", 2560, "vae16 qwen-vl clip-l"},
    {"Kandinsky5Transformer3DModel", "", 0, "hunyuan-vae qwen-vl clip-l"},
    {"ErnieImageTransformer2DModel", "", 0, "flux2-vae ministral"},
    {"Ideogram4Transformer2DModel", "", 0, "flux2-vae qwen3-vl-8b"},
    {"Krea2Transformer2DModel", "", 0, "qwen-vae qwen3-vl-4b"},
    {"CogView4Transformer2DModel", "", 0, "vae16 glm4"},
    {"AceStepTransformer1DModel", "", 0, "oobleck qwen3-embedding condition_encoder=ace-conditions"},
};

/// The next of the words; they are then without it.
GPUMEM_INLINE std::string_view next_of(std::string_view& words) {
  const std::size_t end = std::min(words.find(' '), words.size());
  const std::string_view word = words.substr(0, end);
  words.remove_prefix(std::min(end + 1, words.size()));
  return word;
}

GPUMEM_INLINE bool is_of(const UsualPipeline& row, ConfigFields& config) {
  bool named = false;
  const std::string_view type = config.text({"_class_name"}, "");
  for (std::string_view classes = row.classes; !classes.empty();) named = next_of(classes) == type || named;
  if (!named || row.field.empty()) return named;
  const core::JsonValue* value = config.find(row.field);
  return value != nullptr && value->is(core::JsonValue::Kind::integer) && value->integer() == row.size;
}

/// The parts as fields of JSON: the autoencoder, then the text encoders.
GPUMEM_INLINE std::string fields_of(const UsualPipeline& row) {
  std::string fields;
  std::size_t texts = 0;
  for (std::string_view parts = row.parts; !parts.empty();) {
    std::string_view word = next_of(parts);
    std::string name = fields.empty() ? "vae" : "text_encoder";
    if (const std::size_t equal = word.find('='); equal != std::string_view::npos) {
      name = word.substr(0, equal);
      word.remove_prefix(equal + 1);
    } else if (!fields.empty() && ++texts > 1) {
      name += "_" + std::to_string(texts);
    }
    const auto* const part = std::ranges::find_if(kUsual, [&](const UsualPart& one) { return one.called == word; });
    if (!fields.empty()) fields += ", ";
    fields.append("\"").append(name).append("\": {").append(part->config).append("}");
  }
  return fields;
}

/// Of latents: whole patches of pixels, one at least.
GPUMEM_INLINE std::int64_t latent_side(std::int64_t pixels, const LatentRule& rule) {
  return std::max<std::int64_t>(pixels / (rule.side * rule.patch), 1) * rule.patch;
}

/// Of latents: the first frame is one by itself, and so is what is left at the end.
GPUMEM_INLINE std::int64_t latent_frames(std::int64_t frames, const LatentRule& rule) {
  return rule.frame == 0 ? 1 : (std::max<std::int64_t>(frames, 1) - 1) / rule.frame + 1;
}

/// A word of `parts`: a name, how the part makes latents ("vae:sliced", "all:sliced:tiled"), and how its weights are
/// held ("text_encoder*:int8").
struct PartWord {
  std::string_view name;
  bool by_sample = false;
  bool by_tile = false;
  bool eight_bits = false;
  bool known = true;  ///< what follows the name
};

GPUMEM_INLINE PartWord part_word(std::string_view word) {
  PartWord made{.name = word.substr(0, word.find(':'))};
  for (std::size_t at = made.name.size(); at < word.size();) {
    const std::size_t end = std::min(word.find(':', at + 1), word.size());
    const std::string_view how = word.substr(at + 1, end - at - 1);
    if (how == "sliced") made.by_sample = true;
    else if (how == "tiled") made.by_tile = true;
    else if (how == "int8") made.eight_bits = true;
    else made.known = false;
    at = end;
  }
  return made;
}

/// Whether a word of `parts` means the part of this name. A star at its end is any ending. No training loop loads the
/// filter of finished images, so "all" leaves it out.
GPUMEM_INLINE bool means_part(std::string_view word, std::string_view name) {
  if (word == "all") return name != "safety_checker";
  return word.ends_with('*') ? name.starts_with(word.substr(0, word.size() - 1)) : name == word;
}

/// Whether a word may mean no part.
GPUMEM_INLINE bool is_open(std::string_view word) { return word == "all" || word.ends_with('*'); }

GPUMEM_INLINE bool has_part(const core::JsonValue& parts, std::string_view name) {
  for (const core::JsonValue& part : parts.items()) {
    if (part.key() == name) return true;
  }
  return false;
}

/// The words of "vae+text_encoder*".
GPUMEM_INLINE std::vector<PartWord> words_of_parts(std::string_view said) {
  std::vector<PartWord> words;
  for (std::size_t begin = 0; begin <= said.size();) {
    const std::size_t end = std::min(said.find('+', begin), said.size());
    words.push_back(part_word(said.substr(begin, end - begin)));
    begin = end + 1;
  }
  return words;
}

/// A part that is held and not called: none of its parameters gets a gradient.
GPUMEM_INLINE void hold_part(Forward& forward, std::string_view name, const core::JsonValue& part, bool eight_bits) {
  core::Result<std::int64_t> count = std::int64_t{0};
  const core::JsonValue* counted = ConfigFields(part).find(kCounted);
  if (counted == nullptr) count = parameters_of(part, forward.vocabulary());
  else if (counted->is(core::JsonValue::Kind::integer)) count = std::max<std::int64_t>(counted->integer(), 0);
  if (!count) return forward.fail("has the part " + core::quoted(name) + ", which " + count.error().message);
  // A weight of eight bits takes half of one that is held as the rest of the frozen model is.
  const std::int64_t held = eight_bits ? *count / 2 : *count;
  if (held > 0) (void)forward.parameter(std::string(name) + ".weight", {held}, true);
}

GPUMEM_INLINE void write_part(Forward& forward, const core::JsonValue& part, const Encoded& size, bool eight_bits) {
  ConfigFields config(part);
  const Architecture* known = architecture_of(config.text({"_class_name"}, ""));
  if (known == nullptr || known->encode == nullptr) return hold_part(forward, part.key(), part, eight_bits);
  const InModule inside(forward, part.key(), known->name);
  forward.freeze(true);
  forward.outside_autocast(true);
  known->encode(config, size, forward);
  forward.outside_autocast(false);
  forward.freeze(false);
  if (const core::Status read = config.status(); !read) forward.fail(read.error().message);
}

GPUMEM_INLINE std::string names_of(const core::JsonValue& parts) {
  std::string names;
  for (const core::JsonValue& part : parts.items()) names += (names.empty() ? "" : ", ") + std::string(part.key());
  return names;
}

/// A usual part, as people call it: "text_encoder (T5-XXL)".
GPUMEM_INLINE std::string called(const core::JsonValue& part) {
  ConfigFields config(part);
  return std::string(part.key()).append(" (").append(config.text({kCalled, "_class_name"}, "")).append(")");
}

GPUMEM_INLINE void write_parts(Forward& forward, const std::string& said, const Encoded& size) {
  const core::JsonValue* parts = forward.pipeline_parts();
  const bool usual = parts == nullptr && forward.usual_parts() != nullptr;
  if (said.empty() || said == "none") {
    const bool others = parts != nullptr && parts->is(core::JsonValue::Kind::object) && parts->size() > 0;
    const std::string names = others ? names_of(*parts) : std::string();
    if (others) forward.remark("not on the GPU, as `parts` does not say otherwise: " + names);
    return;
  }
  if (usual) parts = forward.usual_parts();
  if (parts == nullptr) return;
  constexpr std::size_t kMostParts = 16;
  if (!parts->is(core::JsonValue::Kind::object) || parts->size() > kMostParts) {
    return forward.fail("must have its other parts, the field _parts, as an object of 16 at most");
  }
  const std::vector<PartWord> words = words_of_parts(said);
  if (!std::all_of(words.begin(), words.end(), [](const PartWord& word) { return word.known; })) {
    return forward.fail(
        "takes a part as `vae:sliced`, `vae:tiled`, `vae:sliced:tiled` or `text_encoder:int8`; `parts` is " +
        core::quoted(said));
  }
  std::string counted;
  for (const core::JsonValue& part : parts->items()) {
    Encoded how = size;
    bool meant = false;
    bool eight_bits = false;
    for (const PartWord& word : words) {
      if (!means_part(word.name, part.key())) continue;
      meant = true;
      how.by_sample = how.by_sample || word.by_sample;
      how.by_tile = how.by_tile || word.by_tile;
      eight_bits = eight_bits || word.eight_bits;
    }
    if (!meant) continue;
    write_part(forward, part, how, eight_bits);
    counted += (counted.empty() ? "" : ", ") + called(part);
  }
  if (usual) {
    forward.remark("its other parts are taken to be those that are published with such a model: " + counted +
                   "; a diffusers folder tells its own");
  }
  const auto is_there = [&](const PartWord& word) { return is_open(word.name) || has_part(*parts, word.name); };
  if (std::all_of(words.begin(), words.end(), is_there)) return;
  forward.fail("has the parts " + names_of(*parts) + "; `parts` names others: " + core::quoted(said));
}

/// Tokens of the prompt, or of what else a text encoder reads.
GPUMEM_INLINE std::int64_t text_tokens(Forward& forward, const model::Images& said, std::int64_t usual) {
  constexpr std::int64_t kMostText = 1 << 20;
  const std::int64_t tokens = said.text_tokens.value_or(usual);
  if (tokens <= kMostText) return tokens;
  forward.fail("takes no prompt of so many tokens: `seq_length`");
  return 1;
}

GPUMEM_INLINE std::string with_text(const model::Images& said, std::int64_t tokens) {
  return ", with " + core::with_separators(tokens) + " tokens of text" +
         (said.text_tokens ? "" : ", as `seq_length` does not say otherwise");
}

}  // namespace denoiser_detail

GPUMEM_INLINE std::string with_usual_parts(std::string_view config) {
  namespace detail = denoiser_detail;
  const bool denoises = config.find("\"_class_name\"") != std::string_view::npos;
  if (!denoises || tells_parts(config)) return std::string(config);
  const core::Result<core::JsonDocument> document = core::JsonDocument::parse(config, kConfigLimits);
  if (!document || !document->root().is(core::JsonValue::Kind::object)) return std::string(config);
  ConfigFields fields(document->root());
  const auto* const row = std::ranges::find_if(
      detail::kUsualPipelines, [&](const detail::UsualPipeline& one) { return detail::is_of(one, fields); });
  if (row == std::end(detail::kUsualPipelines)) return std::string(config);
  std::string text(config.substr(0, config.rfind('}')));
  return text.append(", \"").append(detail::kUsualParts).append("\": {").append(detail::fields_of(*row)).append("}}");
}

GPUMEM_INLINE bool tells_parts(std::string_view config) {
  return config.find("\"_parts\"") != std::string_view::npos ||
         config.find(denoiser_detail::kUsualParts) != std::string_view::npos;
}

GPUMEM_INLINE DenoiserSample denoiser_sample(Forward& forward, const LatentRule& rule) {
  const model::Images& said = forward.images();
  const PictureSize size = said.size.value_or(PictureSize{rule.usual_side, rule.usual_side});
  const std::int64_t frames = said.frames.value_or(rule.usual_frames);
  DenoiserSample sample;
  sample.height = denoiser_detail::latent_side(size.height, rule);
  sample.width = denoiser_detail::latent_side(size.width, rule);
  sample.frames = denoiser_detail::latent_frames(frames, rule);
  sample.text = denoiser_detail::text_tokens(forward, said, rule.usual_text);
  if (said.count && *said.count != 1) forward.fail("makes one image or video a sample; leave `images` out");
  if (rule.frame == 0 && frames != 1) forward.fail("makes images, and no videos; leave `frames` out");
  const std::string count = std::to_string(frames) + (frames == 1 ? " frame of " : " frames of ");
  const std::string what = rule.frame == 0 ? "an image of " : "a video of " + count;
  const std::string prompt = rule.usual_text == 0 ? "" : denoiser_detail::with_text(said, sample.text);
  forward.usual_image({size.width, size.height});
  forward.remark("each sample is " + what + std::to_string(size.width) + " x " + std::to_string(size.height) +
                 " pixels" + (said.size ? "" : ", as `image` does not say otherwise") + prompt);
  const std::int64_t seen = (sample.frames - 1) * rule.frame + 1;
  denoiser_detail::write_parts(forward, said.parts, {sample.height * rule.side, sample.width * rule.side, seen});
  return sample;
}

GPUMEM_INLINE SoundSample sound_sample(Forward& forward, const SoundRule& rule) {
  const model::Images& said = forward.sounds();
  const std::int64_t seconds = said.seconds.value_or(rule.usual_seconds);
  const SoundSample sample = {seconds * rule.latents, denoiser_detail::text_tokens(forward, said, rule.usual_text)};
  forward.remark(
      "each sample is a sound of " + core::with_separators(seconds) + (seconds == 1 ? " second" : " seconds") +
      (said.seconds ? "" : ", as `seconds` does not say otherwise") + denoiser_detail::with_text(said, sample.text));
  denoiser_detail::write_parts(forward, said.parts, {});
  return sample;
}

GPUMEM_INLINE Tensor read_at_once(Forward& forward, Tensor pixels, const Encoded& all, const Encoded& tile) {
  if (all.by_sample) {
    pixels = forward.call("unsqueeze", {forward.select(pixels, 0, 0)}, {{"dim", std::int64_t{0}}});
  }
  if (tile.height < all.height) pixels = forward.slice(pixels, -2, 0, tile.height);
  if (tile.width < all.width) pixels = forward.slice(pixels, -1, 0, tile.width);
  const bool tiles = tile.height < all.height || tile.width < all.width;
  if (all.by_sample || tiles) {
    forward.remark(std::string("the autoencoder makes latents of one ") + (tiles ? "tile" : "sample") +
                   " at a time, of which one is counted: enough for the peak, and a step takes longer than is said");
  }
  return pixels;
}

GPUMEM_INLINE Tensor joined_latents(Forward& forward, Tensor latents, const Encoded& all, const Encoded& tile,
                                    std::int64_t shrinks) {
  const std::int64_t right = (all.width - tile.width) / shrinks;
  const std::int64_t below = (all.height - tile.height) / shrinks;
  if (right > 0 || below > 0) latents = forward.call("pad", {latents}, {{"padding", Sizes{0, right, 0, below}}});
  if (!all.by_sample) return latents;
  std::vector<core::Dim> samples = {core::Dim::batch()};
  const std::size_t others = all.frames > 1 ? 4 : 3;
  samples.insert(samples.end(), others, core::Dim::fixed(-1));
  return forward.contiguous(forward.call("expand", {latents}, {{"shape", samples}}));
}

GPUMEM_INLINE Tensor latent_input(Forward& forward, const DenoiserSample& sample, std::int64_t channels, bool video) {
  if (video) return forward.sample_input("latents", {channels, sample.frames, sample.height, sample.width});
  return forward.sample_input("latents", {channels, sample.height, sample.width});
}

GPUMEM_INLINE Tensor token_latents(Forward& forward, std::int64_t tokens, std::int64_t width) {
  return forward.sample_input("latents", {tokens, width});
}

GPUMEM_INLINE Tensor text_input(Forward& forward, const DenoiserSample& sample, std::int64_t width) {
  return forward.sample_input("encoder_hidden_states", {sample.text, width});
}

GPUMEM_INLINE Tensor timestep_input(Forward& forward, std::string_view name, std::int64_t width) {
  return forward.sample_input(name, {width});
}

GPUMEM_INLINE Tensor timestep_embedding(Forward& f, std::string_view name, Tensor sinusoids, std::int64_t in,
                                        std::int64_t width, const TimestepEmbedding& options) {
  const InModule inside(f, name, "TimestepEmbedding");
  const Linear linear = {.bias = options.bias};
  const Tensor active = f.activation("act", f.linear("linear_1", sinusoids, in, width, linear), "silu");
  return f.linear("linear_2", active, width, options.out == 0 ? width : options.out, linear);
}

GPUMEM_INLINE void denoiser_loss(Forward& forward, Tensor prediction, const Sizes& sizes) {
  const Tensor target = forward.to(forward.sample_input("target", sizes), "float32");
  (void)forward.call("mse_loss", {forward.to(prediction, "float32"), target});
}

GPUMEM_INLINE Tensor denoiser_attention(Forward& f, Tensor query, Tensor key, Tensor value, std::int64_t head_width) {
  const auto heads = [&](Tensor tensor) { return split_heads(f, tensor, head_width); };
  const Tensor q = heads(query);
  const Tensor k = heads(key);
  const Tensor v = heads(value);
  return merge_heads(f, f.call("scaled_dot_product_attention", {q, k, v}));
}

}  // namespace gpumem::architectures
