// Qwen2-VL, Qwen2.5-VL, Qwen3-VL, Qwen3.5 and 3.6, EXAONE 4.5: images of any size, cut into patches of two frames each;
// all images of a batch are one sequence of patches, and four patches make a token. Here each image is a row of its
// own, which takes as much: attention goes image by image. The windows of Qwen2.5-VL's attention are not cut out: fused
// kernels take as much memory with them as without. Of Qwen2.5-Omni and Qwen3-Omni it is the thinker: the same with a
// tower for sound, which is held. LLaMA-Factory takes it out of the model (2026-08, model/loader.py). ms-swift trains
// it within the whole class, which holds what makes speech too unless ENABLE_AUDIO_OUTPUT is 0 (4,
// model/models/qwen.py: get_config()). Source: transformers 4.57, models/qwen2_vl/modeling_qwen2_vl.py, qwen2_5_vl,
// qwen3_vl, qwen3_vl_moe, qwen2_5_omni, qwen3_omni_moe; 5.2, qwen3_5; 5.16, exaone4_5/modular_exaone4_5.py. The bounds
// of pixels are those of the published checkpoints' preprocessor_config.json.
#pragma once

#include <array>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/sound_parts.hpp"
#include "gpumem/architectures/vision_language.hpp"
#include "gpumem/core/bytes.hpp"

namespace gpumem::architectures {

namespace qwen_vl {

struct Variant {
  std::string_view model_type;
  std::string_view prefix;     ///< of its class names
  std::string_view text_type;  ///< where the config does not say
  bool third = false;          ///< Qwen3-VL's tower: learned positions, further mergers
  bool second = false;         ///< Qwen2-VL's tower: LayerNorm, two linear layers
  bool hears = false;          ///< a tower for sound is there; names are the thinker's
  bool groups = false;         ///< queries of the tower share keys; words have plain positions

  [[nodiscard]] std::string named(std::string_view part) const { return std::string(prefix).append(part); }
};
inline constexpr auto kVariants = std::to_array<Variant>(
    {{.model_type = "qwen2_vl", .prefix = "Qwen2VL", .text_type = "qwen2_vl_text", .second = true},
     {.model_type = "qwen2_5_vl", .prefix = "Qwen2_5_VL", .text_type = "qwen2_5_vl_text"},
     {.model_type = "exaone4_5", .prefix = "Exaone4_5_", .text_type = "exaone4", .groups = true},
     {.model_type = "qwen3_vl", .prefix = "Qwen3VL", .text_type = "qwen3_vl_text", .third = true},
     {.model_type = "qwen3_vl_moe", .prefix = "Qwen3VLMoe", .text_type = "qwen3_vl_moe_text", .third = true},
     {.model_type = "qwen3_5", .prefix = "Qwen3_5", .text_type = "qwen3_5_text", .third = true},
     {.model_type = "qwen3_5_moe", .prefix = "Qwen3_5Moe", .text_type = "qwen3_5_moe_text", .third = true},
     {.model_type = "qwen2_5_omni", .prefix = "Qwen2_5Omni", .text_type = "qwen2_5_omni_text", .hears = true},
     {.model_type = "qwen2_5_omni_thinker", .prefix = "Qwen2_5Omni", .text_type = "qwen2_5_omni_text", .hears = true},
     {.model_type = "qwen3_omni_moe",
      .prefix = "Qwen3OmniMoe",
      .text_type = "qwen3_omni_moe_text",
      .third = true,
      .hears = true},
     {.model_type = "qwen3_omni_moe_thinker",
      .prefix = "Qwen3OmniMoe",
      .text_type = "qwen3_omni_moe_text",
      .third = true,
      .hears = true}});
inline constexpr auto kModelTypes = model_types_of(kVariants);

struct Vision {
  Variant variant = kVariants[0];
  DecoderSizes sizes;
  std::int64_t channels = 3;
  std::int64_t patch = 14;
  std::int64_t temporal = 2;
  std::int64_t merge = 2;
  std::int64_t places = 0;  ///< learned positions
  std::int64_t out = 1;
  std::vector<std::int64_t> deep = {};  ///< blocks behind which a further merger reads

  [[nodiscard]] std::string named(std::string_view part) const { return variant.named(part); }
  [[nodiscard]] std::int64_t merged() const { return sizes.width * merge * merge; }
};

/// Numbers of blocks, each below `blocks`.
inline std::vector<std::int64_t> blocks_of(ConfigFields& config, std::string_view name, std::int64_t blocks,
                                           const std::vector<std::int64_t>& usual) {
  const core::JsonValue* list = config.find(name);
  if (list == nullptr) return usual;
  std::vector<std::int64_t> numbers;
  if (!list->is(core::JsonValue::Kind::list)) {
    config.fail("must be a list of blocks of the tower", name);
    return numbers;
  }
  for (const core::JsonValue& item : list->items()) {
    const bool block = item.is(core::JsonValue::Kind::integer) && item.integer() >= 0 && item.integer() < blocks;
    if (block) numbers.push_back(item.integer());
    if (!block) config.fail("must be a list of blocks of the tower", name);
  }
  return numbers;
}

/// What the classes have where the config leaves fields out.
inline void read_sizes(ConfigFields& config, Vision& v) {
  const Variant& variant = v.variant;
  DecoderSizes& s = v.sizes;
  s.layers = config.layers_or("depth", variant.third ? 27 : 32);
  s.heads = config.size_or({"num_heads"}, 16);
  v.channels = config.size_or({"in_channels", "in_chans"}, 3);
  v.patch = config.size_or({"patch_size", "spatial_patch_size"}, variant.third ? 16 : 14);
  v.merge = config.size_or({"spatial_merge_size"}, 2);
  v.temporal = config.size_or({"temporal_patch_size"}, 2);
  s.activation = config.text({"hidden_act"}, variant.second  ? "quick_gelu"
                                             : variant.third ? "gelu_pytorch_tanh"
                                                             : "silu");
  if (variant.second) {
    s.width = config.size_or({"embed_dim"}, 1280);
    v.out = config.size_or({"hidden_size"}, 3584);
    const std::int64_t ratio = config.size_or({"mlp_ratio"}, 4);
    if (ratio > 64) config.fail("is more than gpumem takes", "mlp_ratio");
    s.inner = s.width * std::min<std::int64_t>(ratio, 64);
  } else {
    s.width = config.size_or({"hidden_size"}, variant.third ? 1152 : 3584);
    v.out = config.size_or({"out_hidden_size"}, 3584);
    s.inner = config.size_or({"intermediate_size"}, variant.third ? 4304 : 3420);
  }
  s.kv_heads = variant.groups ? config.size_or({"num_key_value_heads"}, 8) : s.heads;
  if (s.heads % s.kv_heads != 0) {
    config.fail("does not divide the heads", "num_key_value_heads");
    s.kv_heads = s.heads;
  }
}

inline Vision read_vision(ConfigFields* config, const Variant& variant) {
  Vision v;
  v.variant = variant;
  const bool stacks = variant.third && !variant.model_type.starts_with("qwen3_5");
  if (config == nullptr) return v;
  read_sizes(*config, v);
  if (variant.third) {
    v.places = config->size_or({"num_position_embeddings"}, 2304);
    v.deep = blocks_of(*config, "deepstack_visual_indexes", v.sizes.layers,
                       stacks ? std::vector<std::int64_t>{8, 16, 24} : std::vector<std::int64_t>{});
    const bool within = std::ranges::all_of(v.deep, [&](std::int64_t block) { return block < v.sizes.layers; });
    if (!within || static_cast<std::int64_t>(v.deep.size()) > v.sizes.layers) {
      config->fail("must name blocks of the tower, each once", "deepstack_visual_indexes");
    }
    if (!stacks && !v.deep.empty()) config->fail("is empty in this model", "deepstack_visual_indexes");
  }
  config->ignore({"model_type", "fullatt_block_indexes", "window_size", "tokens_per_second", "spatial_patch_size"});
  if (v.sizes.width % (2 * v.sizes.heads) != 0) config->fail("does not divide the tower's width", "num_heads");
  check_patches(*config, v.patch, v.merge, v.temporal);
  return v;
}

/// Rows and columns of patches of one image, and how many frames they are for.
struct Grid {
  std::int64_t images = 1;  ///< a sample
  std::int64_t patches = 4;
};

inline Grid grid_of(Forward& f, const Vision& v, const Pictures& pictures) {
  PixelBounds bounds = {.factor = v.patch * v.merge};
  const std::int64_t square = bounds.factor * bounds.factor;
  const bool third = v.variant.third;
  if (pictures.frames == 0) {
    bounds.least = third ? std::int64_t{64} * square : 4 * square;
    bounds.most = 16384 * square;
  } else if (third) {
    bounds.frames = (pictures.frames + v.temporal - 1) / v.temporal * v.temporal;
    bounds.least = 4 * square;
    bounds.most = 24576 * square;
  } else {
    bounds.least = 128 * square;
    bounds.most = 768 * square;
  }
  const auto size = smart_resize(pictures.size, bounds);
  if (!size) {
    f.fail("reads no image whose sides are more than 200 to 1; give another `image`");
    return {};
  }
  const std::int64_t times = pictures.frames == 0 ? 1 : (pictures.frames + v.temporal - 1) / v.temporal;
  return {std::max<std::int64_t>(pictures.count, 1), times * (size->width / v.patch) * (size->height / v.patch)};
}

inline Tensor norm(Forward& f, const Vision& v, std::string_view name, Tensor input) {
  const bool squares = !v.variant.second && !v.variant.third;
  return squares ? f.rms_norm(name, input, v.sizes.width, "Qwen2RMSNorm") : f.layer_norm(name, input, v.sizes.width);
}

/// Tables of the rows and columns of patches, float32.
inline Rotary tables(Forward& f, const Vision& v, Tensor hidden) {
  const InModule inside(f, "rotary_pos_emb", v.named("VisionRotaryEmbedding"));
  const std::int64_t width = v.sizes.width / v.sizes.heads;
  const auto table = [&]() {
    return f.call("rotary_table", {hidden}, {{"width", width}, {"padded", true}, {"dtype", std::string("float32")}});
  };
  const Tensor cosines = table();
  return {cosines, table(), width, false};
}

inline Tensor attention(Forward& f, const Vision& v, Tensor input, const Rotary& rotary) {
  const InModule inside(f, "attn", v.named("VisionAttention"));
  const std::int64_t width = v.sizes.width;
  const std::int64_t each = width / v.sizes.heads;
  const std::int64_t keys = v.sizes.kv_heads * each;
  const bool apart = v.variant.hears && !v.variant.third;  // each with tables of its own
  std::vector<Tensor> parts;
  if (apart) {
    for (const std::string_view name : {"q", "k", "v"}) parts.push_back(f.linear(name, input, width, width));
  } else {
    parts = f.split(f.linear("qkv", input, width, width + 2 * keys), 2, {width, keys, keys});
  }
  const auto turned = [&](Tensor part) {
    const Tensor heads = split_heads(f, part, each);
    const Rotary own =
        apart ? Rotary{f.call("clone", {rotary.cosines}), f.call("clone", {rotary.sines}), each, false} : rotary;
    return f.as_type_of(rotate(f, f.to(heads, "float32"), own, each), heads);
  };
  const Tensor query = turned(parts[0]);
  const Tensor key = turned(parts[1]);
  const Tensor mixed = attend(f, {query, key, split_heads(f, parts[2], each)},
                              {.groups = v.sizes.heads / v.sizes.kv_heads, .copies = false, .causal = false});
  // torch.cat of what each image gives.
  return f.linear("proj", f.call("clone", {mixed}), width, width);
}

inline Tensor block(Forward& f, const Vision& v, Tensor input, const Rotary& rotary) {
  const Tensor attended = f.add(input, attention(f, v, norm(f, v, "norm1", input), rotary));
  const Tensor again = norm(f, v, "norm2", attended);
  const bool gated = !v.variant.second && !v.variant.third;
  const Tensor fed = gated ? gated_feed_forward(f, v.sizes, again, v.named("MLP"), true)
                           : feed_forward(f, v.sizes, again,
                                          {.class_name = "VisionMlp",
                                           .widen = v.variant.third ? "linear_fc1" : "fc1",
                                           .narrow = v.variant.third ? "linear_fc2" : "fc2",
                                           .activation = v.variant.third ? "act_fn" : "act"});
  return f.add(attended, fed);
}

/// Four patches side by side: [.., patches, width] -> [.., patches / 4, 4 width].
inline Tensor side_by_side(Forward& f, const Vision& v, Tensor hidden) {
  return f.unflatten(f.flatten(hidden, 1, 2), 1, {-1, v.merged()});
}

inline Tensor merger(Forward& f, const Vision& v, std::string_view name, Tensor hidden, bool normed_merged) {
  const InModule inside(f, name, v.named("PatchMerger"));
  const std::int64_t wide = v.merged();
  const bool third = v.variant.third;
  Tensor merged = 0;
  if (normed_merged) {
    merged = f.layer_norm("norm", side_by_side(f, v, hidden), wide);
  } else {
    merged = side_by_side(f, v, norm(f, v, third ? "norm" : "ln_q", hidden));
  }
  if (third) {
    const Tensor open = f.activation("act_fn", f.linear("linear_fc1", merged, wide, wide), "gelu");
    return f.linear("linear_fc2", open, wide, v.out);
  }
  const InModule list(f, "mlp", "Sequential");
  const Tensor open = f.activation("1", f.linear("0", merged, wide, wide), "gelu");
  return f.linear("2", open, wide, v.out);
}

inline Tensor patches_of(Forward& f, const Vision& v, const Grid& grid) {
  const std::int64_t area = v.channels * v.temporal * v.patch * v.patch;
  const Tensor rows = f.rows_input("pixel_values", grid.images * grid.patches, {area});
  const InModule inside(f, "patch_embed", v.named("VisionPatchEmbed"));
  const Sizes kernel = {v.temporal, v.patch, v.patch};
  const Tensor cut =
      f.layer("proj", "Conv3d", "conv3d", {f.unflatten(rows, 1, {v.channels, v.temporal, v.patch, v.patch})},
              {{"in_channels", v.channels},
               {"out_channels", v.sizes.width},
               {"kernel_size", kernel},
               {"stride", kernel},
               {"bias", v.variant.third}});
  return f.unflatten(f.flatten(cut, 1, 4), 0, {-1, grid.patches});
}

/// fast_pos_embed_interpolate: four rows of the table for each patch, weighted and added up; then in the patches'
/// order.
inline Tensor placed(Forward& f, const Vision& v, const Grid& grid, Tensor hidden) {
  constexpr std::int64_t kNeighbours = 4;
  const Tensor numbers = f.rows_input("position_rows", kNeighbours * grid.images, {grid.patches});
  const Tensor rows =
      f.unflatten(f.scale(f.embedding("pos_embed", numbers, v.places, v.sizes.width)), 0, {-1, kNeighbours});
  Tensor sum = f.select(rows, 1, 0);
  for (std::int64_t next = 1; next < kNeighbours; ++next) sum = f.add(sum, f.select(rows, 1, next));
  return f.add(hidden, f.call("clone", {f.call("clone", {sum})}));
}

/// Features of the images, and of each further merger. The tower's module is called "visual".
inline Tensor tower(Forward& f, const Vision& v, const Grid& grid, std::vector<Tensor>& deep) {
  const InModule inside(f, "visual", v.named("VisionModel"));
  Tensor hidden = patches_of(f, v, grid);
  if (v.variant.third) hidden = placed(f, v, grid, hidden);
  const Rotary rotary = tables(f, v, hidden);
  const bool windows = !v.variant.second && !v.variant.third;
  if (windows) hidden = f.call("clone", {hidden});  // in the order of its windows
  std::vector<Tensor> behind(v.deep.size());
  hidden = stack(f, "blocks", v.named("VisionBlock"), v.sizes.layers, hidden, [&](Tensor x, std::int64_t index) {
    const Tensor made = block(f, v, x, rotary);
    for (std::size_t at = 0; at < v.deep.size(); ++at) {
      if (v.deep[at] == index) behind[at] = made;
    }
    return made;
  });
  if (!behind.empty()) {
    const InModule list(f, "deepstack_merger_list", "ModuleList");
    for (std::size_t at = 0; at < behind.size(); ++at) {
      deep.push_back(merger(f, v, std::to_string(at), behind[at], true));
    }
  }
  const Tensor merged = merger(f, v, "merger", hidden, false);
  // torch.cat of the images; and, with windows, in the patches' order again.
  return f.call("clone", {windows ? f.call("clone", {merged}) : merged});
}

/// Parameters of the tower for sound: Whisper's blocks behind convolutions over time, or over time and bands.
inline std::int64_t sound_parameters(ConfigFields& audio, const Variant& variant) {
  const auto size = [&](std::string_view name, std::int64_t usual) {
    constexpr std::int64_t kMost = 1 << 16;
    const std::int64_t of = audio.size_or({name}, usual);
    if (of > kMost) audio.fail("is more than gpumem takes", name);
    return of;
  };
  const std::int64_t width = size("d_model", 1280);
  const std::int64_t inner = size("encoder_ffn_dim", 5120);
  const std::int64_t blocks = audio.layers_or("encoder_layers", 32);
  const std::int64_t bands = size("num_mel_bins", 128);
  const std::int64_t out = size("output_dim", 3584);
  const std::int64_t narrow = size("downsample_hidden_size", 480);
  if (!audio.status()) return 0;
  audio.ignore({"encoder_attention_heads", "scale_embedding", "max_source_positions", "n_window", "n_window_infer",
                "conv_chunksize", "activation_function", "dropout", "attention_dropout", "activation_dropout"});
  const auto linear = [](std::int64_t from, std::int64_t to) { return from * to + to; };
  const std::int64_t key_bias = variant.third ? width : 0;
  const std::int64_t block =
      3 * linear(width, width) + width * width + key_bias + linear(width, inner) + linear(inner, width) + 4 * width;
  const std::int64_t all = blocks * block + 2 * width;
  constexpr std::int64_t kKernel = 3;
  if (!variant.third) {
    const std::int64_t convolved = linear(kKernel * bands, width) + linear(kKernel * width, width);
    return all + convolved + 2 * out + linear(width, out);
  }
  constexpr std::int64_t kStrides = 8;
  const std::int64_t area = kKernel * kKernel;
  const std::int64_t convolved = linear(area, narrow) + 2 * linear(area * narrow, narrow);
  const std::int64_t rows = (bands + kStrides - 1) / kStrides;
  return all + convolved + narrow * rows * width + linear(width, width) + linear(width, out);
}

/// The fields of a thinker, and of the parts that speak.
inline ConfigFields* thinker_of(ConfigFields& config) {
  config.ignore({"talker_config", "token2wav_config", "code2wav_config", "enable_audio_output", "enable_talker",
                 "assistant_token_id", "im_start_token_id", "im_end_token_id", "system_token_id", "tts_bos_token_id",
                 "tts_eos_token_id", "tts_pad_token_id", "user_token_id"});
  return config.has("thinker_config") ? config.part("thinker_config") : &config;
}

/// Whether the model is of the whole class, not of the thinker's, and its config keeps what makes speech. Published
/// configs of Qwen2.5-Omni name a class that transformers does not have ("Qwen2_5OmniModel"): the thinker's is taken.
inline bool speaks(ConfigFields& config, const Variant& variant) {
  return config.class_name().starts_with(variant.named("For")) && config.flag("enable_audio_output", true);
}

/// Holds what makes speech.
inline void hold_speech(ConfigFields& config, const Variant& variant, Forward& f) {
  const omni_speech::SpeechParameters speech = omni_speech::speech_of(config, variant.third);
  if (speech.all > speech.wide) (void)f.parameter("talker.unused", {speech.all - speech.wide}, true);
  if (speech.wide > 0) {
    f.freeze(true);
    (void)f.layer("token2wav.unused", {}, model::kParameterOp, {}, {{"shape", Sizes{speech.wide}}, {"own_type", true}});
    f.freeze(false);
  }
  f.remark("what makes speech is held and not called: " + core::with_separators(speech.all) + " parameters");
}

/// Counts what hears, and says what is not there.
inline std::int64_t sound_of(ConfigFields& thinker, const Variant& variant, bool alone, Forward& f) {
  thinker.ignore({"audio_token_index", "audio_token_id", "audio_start_token_id", "audio_end_token_id",
                  "position_id_per_seconds", "seconds_per_chunk", "user_token_id", "image_token_index",
                  "video_token_index", "image_token_id", "video_token_id"});
  ConfigFields* audio = thinker.part("audio_config", "{}");
  const std::int64_t sound = audio == nullptr ? 0 : sound_parameters(*audio, variant);
  f.remark("samples bring no sound; the tower for it is held and not called");
  if (alone) f.remark("the thinker alone is held; what makes speech is not");
  return sound;
}

inline void write(ConfigFields& whole, Head head, Forward& f) {
  Variant variant = kVariants[0];
  for (const Variant& row : kVariants) {
    if (row.model_type == whole.text({"model_type"}, "")) variant = row;
  }
  ConfigFields* const thinker = thinker_of(whole);
  if (thinker == nullptr) return;
  ConfigFields& config = *thinker;
  const Pictures pictures = pictures_of(f);
  const Vision vision = read_vision(vision_fields(config), variant);
  ConfigFields* text = text_fields(config, variant.text_type);
  config.ignore({"vision_config", "vision_token_id"});
  if (text == nullptr || !config.status()) return;
  if (variant.hears) text->ignore({"use_qk_norm", "shared_expert_intermediate_size"});
  const bool speaking = variant.hears && speaks(whole, variant);
  const std::int64_t sound = variant.hears ? sound_of(config, variant, thinker != &whole && !speaking, f) : 0;
  if (!config.status()) return;
  const Grid grid = grid_of(f, vision, pictures);
  if (f.failed()) return;
  tell_pictures(f, pictures, grid.images * grid.patches / (vision.merge * vision.merge));
  std::vector<Tensor> deep;
  TextPart part = inner_text(vision.named("Model"), vision.named("TextModel"));
  if (variant.hears) part = {.modules = {{"model", vision.named("ThinkerTextModel")}}, .around = 0};
  if (!variant.groups) {
    part.positions = variant.third ? TextPart::Positions::by_sample : TextPart::Positions::by_section;
  }
  part.embed = [&](Tensor, Tensor embedded) {
    if (sound > 0) (void)f.parameter("audio_tower.unused", {sound}, true);
    if (speaking) hold_speech(whole, variant, f);
    return with_features(f, pictures, embedded, [&](Forward& to) { return tower(to, vision, grid, deep); });
  };
  part.after_block = [&](Tensor hidden, std::int64_t index) {
    const auto at = static_cast<std::size_t>(index);
    if (pictures.count == 0 || at >= deep.size()) return hidden;
    return f.call("add_features", {f.call("clone", {hidden}), deep[at]});
  };
  // A whole model is called "Qwen2_5OmniModel"; its thinker has a head.
  write_text(f, *text, variant.hears && head == Head::none ? Head::causal_lm : head, part);
}

inline constexpr auto kClasses = std::to_array<ModelClass>(
    {{"Qwen2VL", "qwen2_vl", "model", 2048},
     {"Qwen2_5_VL", "qwen2_5_vl", "model", 2048},
     {"Qwen3VL", "qwen3_vl", "model", 2560},
     {"Qwen3VLMoe", "qwen3_vl_moe", "model"},
     {.prefix = "Qwen3_5",
      .model_type = "qwen3_5",
      .body = "model",
      .tied_up_to = 2560,
      .ending = "ForConditionalGeneration"},
     {.prefix = "Qwen3_5Moe", .model_type = "qwen3_5_moe", .body = "model", .ending = "ForConditionalGeneration"}});

/// The blocks behind which the further mergers of a tower read: those of the published models of its depth.
inline std::vector<std::int64_t> deep_blocks(std::int64_t mergers, std::int64_t blocks) {
  if (mergers == 3 && blocks == 24) return {5, 11, 17};
  std::vector<std::int64_t> read;
  for (std::int64_t at = 0; at < mergers; ++at) read.push_back(std::min(8 * (at + 1), blocks - mergers + at));
  return read;
}

inline void tree_tower(TreeFields& t, const Variant& variant) {
  const std::string cut = "visual.patch_embed.proj";
  const std::string block = "visual.blocks.0.mlp.";
  const bool third = variant.third;
  const std::string first = third ? "visual.merger.linear_fc1" : "visual.merger.mlp.0";
  const std::string last = third ? "visual.merger.linear_fc2" : "visual.merger.mlp.2";
  const std::int64_t width = std::max<std::int64_t>(t.value(cut, "out_channels").value_or(1), 1);
  const std::int64_t blocks = t.count_of("visual.blocks");
  t.open("vision_config");
  t.count("depth", "visual.blocks");
  t.size("in_channels", cut, "in_channels");
  t.size("temporal_patch_size", cut, "kernel_size", 0);
  t.size("patch_size", cut, "kernel_size", 1);
  t.set("num_heads", 16);
  t.assume("16 heads in the image tower, as published models have");
  t.set("spatial_merge_size", TreeFields::square_side(t.value(first, "in_features").value_or(width) / width));
  t.activation("hidden_act", block + (variant.second ? "act" : "act_fn"));
  if (variant.second) {
    t.set("embed_dim", width);
    t.size("hidden_size", last, "out_features");
    t.set("mlp_ratio", t.value(block + "fc1", "out_features").value_or(width) / width);
  } else {
    t.set("hidden_size", width);
    t.size("out_hidden_size", last, "out_features");
    t.size("intermediate_size", block + (third ? "linear_fc1" : "gate_proj"), "out_features");
  }
  if (third) {
    t.size("num_position_embeddings", "visual.pos_embed", "num_embeddings");
    t.list("deepstack_visual_indexes", deep_blocks(t.count_of("visual.deepstack_merger_list"), blocks));
  }
  t.close();
}

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const auto is_its = [&](const Variant& row) {
    const bool own = t.class_name().starts_with(row.prefix);
    const std::string_view rest = own ? t.class_name().substr(row.prefix.size()) : std::string_view();
    return rest.starts_with("For") || rest == "Model";
  };
  const auto variant = std::ranges::find_if(kVariants, is_its);
  if (variant == kVariants.end()) return;
  tree_tower(t, *variant);
  tree_text(t, {.type = variant->text_type});
}

inline constexpr Architecture kArchitecture = {.name = "qwen_vl",
                                               .model_types = kModelTypes,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .holds_text_model = true};

}  // namespace qwen_vl

}  // namespace gpumem::architectures
