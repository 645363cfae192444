// Phi-4-multimodal: Phi-4-mini with SigLIP's tower for crops of images and a conformer for sound. Sound is not taken:
// the conformer is held and not called.
// Source: transformers 4.57, models/phi4_multimodal/modeling_phi4_multimodal.py (Phi4MultimodalImageEmbedding,
// Phi4MultimodalAudioModel), image_processing_phi4_multimodal_fast.py (dynamic_preprocess: at most 36 crops of 448
// pixels, and the whole image). What the processor pads is taken as part of the crops. The adapters for images and
// sound that come with the checkpoint are not part of the model here, as transformers loads them with PEFT. Behind it
// stand PaddleOCR-VL and MiniCPM-V 4.6, whose tower has SigLIP's blocks too.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/image_rules.hpp"
#include "gpumem/architectures/image_tokens.hpp"
#include "gpumem/architectures/image_towers.hpp"
#include "gpumem/architectures/vision_language.hpp"

namespace gpumem::architectures {

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
  const InModule outer(f, "embed_tokens_extend", "Phi4MultimodalFeatureEmbedding");
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
  TextPart part = {.modules = {{"model", "Phi4MultimodalModel"}}, .around = 1};
  part.embed = [&](Tensor, Tensor embedded) {
    if (model.sound > 0) (void)f.parameter("embed_tokens_extend.audio_embed.unused", {model.sound}, true);
    f.hold_printed("embed_tokens_extend.audio_embed");
    const Tensor read = with_features(f, pictures, embedded,
                                      [&](Forward& to) { return features_of(to, model, grid, pictures.seen()); });
    return f.dropout("embed_dropout", read, model.dropout);
  };
  write_text(f, *text, head, part);
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{.prefix = "Phi4Multimodal",
                                                             .model_type = "phi4_multimodal",
                                                             .body = "model",
                                                             .tied_up_to = kAlwaysTied,
                                                             .ending = "ForCausalLM"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  tree_image_tower(t, "embed_tokens_extend.image_embed.img_processor");
  if (t.has("embed_tokens_extend.audio_embed")) {
    t.open("audio_config");
    t.count("num_blocks", "embed_tokens_extend.audio_embed.encoder.encoders");
    t.close();
    t.assume("a tower for sound as wide as the published model's");
  } else {
    t.set_text("audio_config", "null");
  }
  t.dropout("embd_pdrop", "embed_dropout");
  tree_text(t, {.path = "", .type = "phi3"});
}

inline constexpr Architecture kArchitecture = {.name = "phi4_multimodal",
                                               .model_types = names<"phi4_multimodal">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .holds_text_model = true};

}  // namespace phi4_multimodal

// PaddleOCR-VL, Keye-VL and MiniCPM-V 4.6: SigLIP's blocks on images of any size, all of a batch one sequence of
// patches; here a row of its own each, which takes as much, as attention goes image by image. Source:
// transformers 5.16, models/paddleocr_vl/modeling_paddleocr_vl.py, minicpmv4_6/modeling_minicpmv4_6.py and its
// image_processing; the bounds of pixels of PaddleOCR-VL's published preprocessor_config.json; modeling_keye.py of
// Kwai-Keye/Keye-VL-8B-Preview and modeling_keye_vl_1_5.py of Keye-VL-1_5-8B, from which PaddleOCR-VL's tower comes.

namespace packed_siglip {

struct Model {
  bool paddle = true;      ///< turns by positions, too
  bool keye = false;       ///< the same with other names, and with parts that nothing calls
  bool late_norm = false;  ///< the projector's stands behind the patches that lie side by side (Keye-VL 1.5)
  DecoderSizes sizes;
  std::int64_t side = 384;  ///< of the table of positions, in pixels
  std::int64_t channels = 3;
  std::int64_t patch = 14;
  std::int64_t merge = 2;
  std::int64_t merged_behind = -1;  ///< MiniCPM-V: the block behind which four patches become one; -1: none does
  std::int64_t rounds = 1;          ///< of its merger
  std::int64_t width = 1;           ///< of the text model

  [[nodiscard]] std::string named(std::string_view part) const {
    return std::string(paddle ? "PaddleOCRVision" : "MiniCPMV4_6Vision").append(part);
  }
  /// Patches of a side that become one token.
  [[nodiscard]] std::int64_t step() const {
    std::int64_t step = merged_behind >= 0 ? merge : 1;
    for (std::int64_t round = 0; round < rounds; ++round) step *= merge;
    return step;
  }
};

inline void read_minicpm(ConfigFields& whole, ConfigFields& tower, Model& m) {
  const std::int64_t behind = whole.count_or("insert_layer_id", 6);
  if (behind >= m.sizes.layers) whole.fail("names no block of the tower", "insert_layer_id");
  m.rounds = whole.size_or({"merger_times"}, 1);
  if (m.rounds > 4) whole.fail("is more than gpumem takes", "merger_times");
  const std::string_view mode = whole.text({"downsample_mode"}, "16x");
  if (mode != "16x" && mode != "4x") whole.fail("must be 16x or 4x", "downsample_mode");
  m.merged_behind = mode == "16x" ? behind : -1;
  for (const auto& [fields, name] : {std::pair{&tower, "window_kernel_size"}, std::pair{&whole, "merge_kernel_size"}}) {
    const core::JsonValue* sides = fields->find(name);
    bool known = sides == nullptr || sides->is(core::JsonValue::Kind::list);
    if (known && sides != nullptr) {
      for (const core::JsonValue& side : sides->items()) known = known && side.is(2);
    }
    if (!known) fields->fail("must be [2, 2]", name);
  }
  whole.ignore({"drop_vision_last_layer", "image_size", "patch_size"});
  tower.ignore({"insert_layer_id"});
}

inline Model read(ConfigFields& whole) {
  Model m;
  const std::string_view type = whole.text({"model_type"}, "paddleocr_vl");
  m.late_norm = type == "KeyeVL1_5";
  m.keye = m.late_norm || type == "Keye";
  m.paddle = m.keye || type == "paddleocr_vl";
  ConfigFields* tower = vision_fields(whole);
  if (tower == nullptr) return m;
  EncoderDefaults usual = {.width = 768, .inner = 3072, .layers = 12, .heads = 12, .activation = "gelu_pytorch_tanh"};
  if (m.paddle) usual = {.width = 1152, .inner = 4304, .layers = 27, .heads = 16, .activation = "gelu_pytorch_tanh"};
  m.sizes = encoder_sizes(*tower, usual);
  m.side = tower->size_or({"image_size"}, m.paddle ? 384 : 224);
  m.channels = tower->size_or({"num_channels"}, 3);
  m.patch = tower->size_or({"patch_size"}, m.paddle ? 14 : 16);
  if (m.paddle) m.merge = tower->size_or({"spatial_merge_size"}, 2);
  tower->ignore({"model_type", "temporal_patch_size", "tokens_per_second", "pad_token_id"});
  if (!m.paddle) read_minicpm(whole, *tower, m);
  if (m.sizes.width % (2 * m.sizes.heads) != 0) tower->fail("does not divide hidden_size", "num_attention_heads");
  check_patches(*tower, m.patch, m.merge);
  if (m.side < m.patch || m.side > model::Images::kLargestSide) tower->fail("is no size of a table", "image_size");
  return m;
}

/// Patches of one picture: MiniCPM-V's as a whole and, of one that is larger than a slice, of up to nine slices. 0: no
/// processor reads such sides.
inline std::int64_t patches_of(const Model& m, PictureSize size) {
  namespace d = image_rules_detail;
  const auto patches = [&](const PictureSize& made) { return made.width / m.patch * (made.height / m.patch); };
  if (m.paddle) {
    PixelBounds bounds = {.factor = m.patch * m.merge, .least = 147'384, .most = 2'822'400};
    if (m.keye) bounds = {.factor = m.patch * m.merge, .least = 101'920, .most = 1'003'520};
    if (size.height < bounds.factor) {
      size = {d::rounded(d::real(size.width * bounds.factor) / d::real(size.height)), bounds.factor};
    }
    if (size.width < bounds.factor) {
      size = {bounds.factor, d::rounded(d::real(size.height * bounds.factor) / d::real(size.width))};
    }
    const auto made = smart_resize(size, bounds);
    return made ? patches(*made) : 0;
  }
  const SlicedPicture made = sliced_picture(size, m.patch * 4);
  return patches(made.whole) + (made.slices > 0 ? made.slices * patches(made.slice) : 0);
}

inline Tensor attention(Forward& f, const Model& m, Tensor input, const std::optional<Rotary>& rotary) {
  const InModule inside(f, "self_attn", m.named("Attention"));
  const std::int64_t width = m.sizes.width;
  const std::int64_t each = width / m.sizes.heads;
  const auto heads = [&](std::string_view name, bool turns) {
    const Tensor part = split_heads(f, f.linear(name, input, width, width), each);
    return turns && rotary ? f.as_type_of(rotate(f, f.to(part, "float32"), *rotary, each), part) : part;
  };
  const Tensor query = heads("q_proj", true);
  const Tensor key = heads("k_proj", true);
  const Tensor mixed = attend(f, {query, key, heads("v_proj", false)},
                              {.dropout = m.sizes.attention_dropout, .copies = false, .causal = false});
  // torch.cat of what each image gives.
  return f.linear("out_proj", f.call("clone", {mixed}), width, width);
}

inline Tensor block(Forward& f, const Model& m, Tensor input, const std::optional<Rotary>& rotary) {
  const std::int64_t width = m.sizes.width;
  const Tensor attended = f.add(input, attention(f, m, f.layer_norm("layer_norm1", input, width), rotary));
  const Tensor again = f.layer_norm("layer_norm2", attended, width);
  return f.add(attended, feed_forward(f, m.sizes, again, {.class_name = m.named("MLP")}));
}

/// [N, patches, width] -> [N, patches / squares, squares width], copied.
inline Tensor side_by_side(Forward& f, Tensor hidden, std::int64_t squares, std::int64_t width) {
  return f.unflatten(f.flatten(f.call("clone", {hidden}), 1, 2), 1, {-1, squares * width});
}

/// ViTWindowAttentionMerger: attention within windows of four patches, which then become one.
inline Tensor merged_windows(Forward& f, const Model& m, Tensor hidden) {
  const InModule inside(f, "vit_merger", "MiniCPMV4_6ViTWindowAttentionMerger");
  const std::int64_t width = m.sizes.width;
  const std::int64_t squares = m.merge * m.merge;
  const Tensor ordered = f.call("clone", {f.layer_norm("layer_norm1", hidden, width)});
  const Tensor mixed = f.call("clone", {attention(f, m, ordered, std::nullopt)});
  const Tensor attended = f.add(hidden, mixed);
  const Tensor flat = side_by_side(f, attended, squares, width);
  const Tensor windows = f.unflatten(f.call("clone", {attended}), 1, {-1, squares});
  const Tensor mean = f.call("mean", {windows}, {{"dim", std::int64_t{2}}});
  const Tensor normed = f.layer_norm("pre_norm", flat, squares * width);
  const Tensor open =
      f.activation("act", f.linear("linear_1", normed, squares * width, squares * m.sizes.inner), "gelu_pytorch_tanh");
  return f.add(f.linear("linear_2", open, squares * m.sizes.inner, width), mean);
}

inline Tensor embedded(Forward& f, const Model& m, std::int64_t images, std::int64_t patches) {
  constexpr std::int64_t kNeighbours = 4;
  const InModule inside(f, "embeddings", m.named("Embeddings"));
  const Tensor pixels = f.rows_input("pixel_values", images * patches, {m.channels, m.patch, m.patch});
  const Tensor cut = cut_patches(f, "patch_embedding", pixels,
                                 {.channels = m.channels, .width = m.sizes.width, .patch = m.patch, .step = {}});
  const Tensor rows = f.unflatten(f.flatten(cut, 1, 2), 0, {-1, patches});
  const std::int64_t places = (m.side / m.patch) * (m.side / m.patch);
  const std::int64_t numbers = m.paddle ? kNeighbours * patches : patches;
  const Tensor found =
      f.embedding("position_embedding", f.rows_input("patch_places", images, {numbers}), places, m.sizes.width);
  if (!m.paddle) return f.add(rows, found);
  constexpr std::int64_t kPacked = 32768;
  if (m.keye) (void)f.parameter("packing_position_embedding.weight", {kPacked, m.sizes.width}, true);
  // Four rows of the table for each patch, weighted in float32 and added up.
  const Tensor weighted = f.unflatten(f.scale(f.to(found, "float32")), 1, {-1, kNeighbours});
  return f.add(rows, f.as_type_of(f.call("mean", {weighted}, {{"dim", std::int64_t{2}}}), rows));
}

/// What stands between "vision_model", which PaddleOCR-VL has, and the projector.
inline Tensor tower(Forward& f, const Model& m, std::int64_t images, std::int64_t patches) {
  Tensor hidden = embedded(f, m, images, patches);
  std::optional<Rotary> rotary;
  if (m.paddle) {
    const std::int64_t each = m.sizes.width / m.sizes.heads;
    const auto table = [&] {
      return f.call("rotary_table", {hidden}, {{"width", each}, {"padded", true}, {"dtype", std::string("float32")}});
    };
    const Tensor cosines = table();
    rotary = Rotary{cosines, table(), each, false};
  }
  {
    const InModule encoder(f, "encoder", m.named("Encoder"));
    const InModule list(f, "layers", "ModuleList");
    for (std::int64_t at = 0; at < m.sizes.layers && !f.failed(); ++at) {
      {
        const InModule inside(f, std::to_string(at), m.named("EncoderLayer"));
        hidden = block(f, m, hidden, rotary);
      }
      if (at == m.merged_behind) hidden = merged_windows(f, m, hidden);
    }
  }
  // SigLIP's pooling, which nobody calls.
  const std::int64_t width = m.sizes.width;
  const std::int64_t pooled = 4 * width * width + 2 * width * m.sizes.inner + 8 * width + m.sizes.inner;
  if (m.keye) (void)f.parameter("head.unused", {pooled}, true);
  return f.layer_norm("post_layernorm", hidden, width);
}

inline Tensor features_of(Forward& f, const Model& m, std::int64_t images, std::int64_t patches) {
  const std::int64_t width = m.sizes.width;
  const std::int64_t squares = m.merge * m.merge;
  const std::int64_t wide = squares * width;
  Tensor hidden = 0;
  if (m.paddle) {
    const InModule visual(f, "visual", "PaddleOCRVisionModel");
    const InModule inside(f, "vision_model", "PaddleOCRVisionTransformer");
    hidden = tower(f, m, images, patches);
  } else {
    const InModule inside(f, "vision_tower", "MiniCPMV4_6VisionModel");
    hidden = tower(f, m, images, patches);
  }
  if (m.paddle) {
    const InModule inside(f, m.keye ? "mlp_AR" : "projector", m.keye ? "Projector" : "PaddleOCRProjector");
    const Tensor merged = m.late_norm ? f.layer_norm("pre_norm", side_by_side(f, hidden, squares, width), wide)
                                      : side_by_side(f, f.layer_norm("pre_norm", hidden, width), squares, width);
    const Tensor open = f.activation("act", f.linear("linear_1", merged, wide, wide), "gelu");
    return f.call("clone", {f.linear("linear_2", open, wide, m.width)});  // torch.cat of the images
  }
  const InModule inside(f, "merger", "MiniCPMV4_6Merger");
  hidden = stack(f, "mlp", "MiniCPMV4_6DownsampleMLP", m.rounds, hidden, [&](Tensor x, std::int64_t round) {
    const Tensor normed = f.layer_norm("pre_norm", side_by_side(f, x, squares, width), wide);
    const Tensor open = f.activation("act", f.linear("linear_1", normed, wide, wide), "gelu");
    return f.linear("linear_2", open, wide, round + 1 == m.rounds ? m.width : width);
  });
  return f.call("clone", {hidden});  // torch.cat of the images
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Pictures pictures = pictures_of(f);
  Model model = read(config);
  const std::string_view usual = model.keye ? "qwen3" : model.paddle ? "paddleocr_vl_text" : "qwen3_5_text";
  ConfigFields* text = text_fields(config, usual);
  if (text == nullptr || !config.status()) return;
  if (model.paddle) text->ignore({"use_bias", "vision_start_token_id", "vision_end_token_id", "video_token_id"});
  model.width = text->size({"hidden_size"});
  const std::int64_t patches = patches_of(model, pictures.size);
  if (patches == 0) return f.fail("reads no image whose sides are more than 200 to 1; give another `image`");
  tell_pictures(f, pictures, pictures.seen() * patches / (model.step() * model.step()));
  TextPart part = inner_text(model.paddle ? "PaddleOCRVLModel" : "MiniCPMV4_6Model", "TextModel");
  if (model.keye) part = {.modules = {{"model", "Qwen3Model"}}};
  if (model.paddle) part.positions = TextPart::Positions::by_section;
  write_text(f, *text, head, part, pictures,
             [&](Forward& to) { return features_of(to, model, pictures.seen(), patches); });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"PaddleOCRVL", "paddleocr_vl", "model", kAlwaysTied}});

/// What print(model) of PaddleOCR-VL shows.
inline void read_tree(TreeFields& t) {
  const std::string tower = "visual.vision_model.";
  const std::string cut = tower + "embeddings.patch_embedding";
  const std::int64_t width = std::max<std::int64_t>(t.value(cut, "out_channels").value_or(1), 1);
  t.open("vision_config");
  t.size("hidden_size", cut, "out_channels");
  t.size("num_channels", cut, "in_channels");
  t.size("patch_size", cut, "kernel_size");
  t.count("num_hidden_layers", tower + "encoder.layers");
  t.size("intermediate_size", tower + "encoder.layers.0.mlp.fc1", "out_features");
  t.activation("hidden_act", tower + "encoder.layers.0.mlp.activation_fn");
  t.heads_of_width({.usual_width = 72}, width);
  const std::int64_t places = t.value(tower + "embeddings.position_embedding", "num_embeddings").value_or(1);
  t.set("image_size", TreeFields::square_side(places) * t.value(cut, "kernel_size").value_or(1));
  const std::int64_t read = t.value("projector.linear_1", "in_features").value_or(width);
  t.set("spatial_merge_size", TreeFields::square_side(read / width));
  t.close();
  tree_text(t, {.type = "paddleocr_vl_text"});
}

inline constexpr Architecture kArchitecture = {.name = "packed_siglip",
                                               .model_types = names<"paddleocr_vl", "minicpmv4_6", "Keye", "KeyeVL1_5">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .holds_text_model = true};

}  // namespace packed_siglip

}  // namespace gpumem::architectures
