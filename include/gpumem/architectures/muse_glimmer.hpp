// Models of 2026 whose tower sees images of any size as one sequence of patches, with a block of separate projections
// that rotary positions turn: Muse Glimmer and MiniMax-M3. Here each image is a row of its own, which takes as much, as
// fused attention goes over the whole sequence in no more memory.
//
// Muse Glimmer: a tower with windows, four patches beside each other behind three linear layers, embeddings that are
// normed; and a decoder with four norms a block, normed heads, and attention whose result is gated.
// Source: transformers 5.17, models/muse_glimmer/modular_muse_glimmer.py.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/image_rules.hpp"
#include "gpumem/architectures/vision_language.hpp"

namespace gpumem::architectures {

/// A tower's block: two norms, projections of their own, rotary positions in the type of the hidden states, two linear
/// layers.
struct TurnedBlock {
  DecoderSizes sizes = {};
  std::string_view prefix = {};  ///< of its class names
  std::array<std::string_view, 2> norms = {"layer_norm1", "layer_norm2"};
  std::string_view attention = "self_attn";
  std::string_view output = "out_proj";
  std::string_view activation = "activation_fn";
  bool joins = false;  ///< what each image's attention leaves (torch.cat)

  [[nodiscard]] std::string named(std::string_view part) const { return std::string(prefix).append(part); }
};

inline Tensor turned_block(Forward& f, const TurnedBlock& b, Tensor input, const Rotary& rotary) {
  const DecoderSizes& s = b.sizes;
  const std::int64_t each = s.width / s.heads;
  const Tensor normed = f.layer_norm(b.norms[0], input, s.width);
  Tensor mixed = 0;
  {
    const InModule inside(f, b.attention, b.named("VisionAttention"));
    const auto heads = [&](std::string_view name) {
      return split_heads(f, f.linear(name, normed, s.width, s.width), each);
    };
    const Tensor plain_query = heads("q_proj");
    const Tensor plain_key = heads("k_proj");
    const Tensor value = heads("v_proj");
    const Tensor query = rotate(f, plain_query, rotary, each);
    const Tensor key = rotate(f, plain_key, rotary, each);
    const Attention options = {.dropout = s.attention_dropout, .copies = false, .causal = false};
    const Tensor all = attend(f, {query, key, value}, options);
    mixed = f.linear(b.output, b.joins ? f.call("clone", {all}) : all, s.width, s.width);
  }
  const Tensor attended = f.add(input, mixed);
  const Tensor again = f.layer_norm(b.norms[1], attended, s.width);
  return f.add(attended, feed_forward(f, s, again, {.class_name = b.named("VisionMLP"), .activation = b.activation}));
}

/// Tables of the rows and columns of patches, in the type of the hidden states.
inline Rotary patch_tables(Forward& f, Tensor hidden, std::int64_t width) {
  const auto table = [&] { return f.call("rotary_table", {hidden}, {{"width", width}, {"padded", true}}); };
  const Tensor cosines = table();
  return {cosines, table(), width, false};
}

namespace muse_glimmer {

// The decoder.

struct Model {
  DecoderSizes sizes;
  std::vector<bool> turns;  ///< by layer: by rotary positions
  bool bias = false;
  double softcap = 20.0;
};

inline Model read(ConfigFields& config) {
  Model m;
  m.sizes = decoder_sizes(config, {.activation = "silu"});
  m.sizes.activation = config.text({"hidden_activation", "hidden_act"}, "silu");
  m.bias = config.flag("attention_bias", false);
  m.softcap = config.number({"final_logit_softcapping"}, 20.0);
  const std::int64_t layers = m.sizes.layers;
  // Every fourth layer, counted from the last, reads all tokens and does not turn them.
  for (std::int64_t at = 0; at < layers; ++at) m.turns.push_back((layers - 1 - at) % 4 != 0);
  if (const core::JsonValue* bases = config.find("layer_rope_theta"); bases != nullptr) {
    std::vector<bool> said;
    if (bases->is(core::JsonValue::Kind::list)) {
      for (const core::JsonValue& base : bases->items()) said.push_back(!base.is(0));
    }
    const bool enough = static_cast<std::int64_t>(said.size()) >= layers;
    if (enough) m.turns = std::move(said);
    if (!enough) config.fail("must have a number a layer", "layer_rope_theta");
  }
  config.ignore({"qk_scale_factor", "output_multiplier", "post_norm_eps", "layer_types", "embed_norm_eps"});
  return m;
}

inline Tensor norm(Forward& f, std::string_view name, Tensor input, std::int64_t width) {
  return wide_norm(f, name, "MuseGlimmerTextCenteredRMSNorm", input, width);
}

inline Tensor attention(Forward& f, const Model& m, Tensor input, const Rotary& rotary, bool turns) {
  const InModule inside(f, "self_attn", "MuseGlimmerTextAttention");
  const DecoderSizes& s = m.sizes;
  const std::int64_t queries = s.heads * s.head_width;
  const auto [plain_query, plain_key, value] = project_heads(f, s, input, {.bias = m.bias});
  const auto normed = [&](Tensor of) { return plain_norm(f, "qk_norm", "MuseGlimmerRMSNorm", of, s.head_width); };
  std::array<Tensor, 2> both = {f.scale(normed(plain_query)), normed(plain_key)};
  if (turns) both = turn_heads(f, both[0], both[1], rotary, s.head_width, Turning::halves);
  const Tensor attended = attend_cached(f, s, {both[0], both[1], value});
  const Tensor gate = f.linear("gate_proj", input, s.width, queries, {.bias = false, .split = Split::columns});
  const Tensor gated = f.multiply(attended, f.call("sigmoid", {gate}));
  return f.linear("o_proj", gated, queries, s.width, {.bias = m.bias, .split = Split::rows});
}

inline Tensor block(Forward& f, const Model& m, Tensor input, const Rotary& rotary, std::int64_t index) {
  const std::int64_t width = m.sizes.width;
  const bool turns = m.turns[static_cast<std::size_t>(index)];
  const Tensor mixed = attention(f, m, norm(f, "input_layernorm", input, width), rotary, turns);
  const Tensor attended = f.add(input, norm(f, "post_attention_layernorm", mixed, width));
  const Tensor again = norm(f, "pre_feedforward_layernorm", attended, width);
  const Tensor fed = gated_feed_forward(f, m.sizes, again, "MuseGlimmerTextMLP");
  return f.add(attended, norm(f, "post_feedforward_layernorm", fed, width));
}

inline Tensor normed_embeddings(Forward& f, Tensor embedded, std::int64_t width) {
  return plain_norm(f, "embed_norm", "MuseGlimmerRMSNorm", embedded, width);
}

inline void write_text_model(ConfigFields& config, Head head, Forward& f) {
  const Model m = read(config);
  const DecoderSizes& s = m.sizes;
  if (!config.status()) return;
  const DecoderBody body = {.class_name = "MuseGlimmerTextModel", .head = {.softcap = m.softcap, .scales = true}};
  decoder_model(f, config, s, head, body, [&](Tensor ids, Tensor hidden) {
    if (f.text_part() == nullptr) hidden = normed_embeddings(f, hidden, s.width);
    const Rotary rotary = rotary_tables(f, ids, s.head_width);
    hidden = stack(f, "layers", "MuseGlimmerTextDecoderLayer", s.layers, hidden,
                   [&](Tensor x, std::int64_t index) { return block(f, m, x, rotary, index); });
    return wide_norm(f, "norm", "MuseGlimmerRMSNorm", hidden, s.width, false);
  });
}

inline constexpr Architecture kTextArchitecture = {
    .name = "muse_glimmer_text", .model_types = names<"muse_glimmer_text">, .write = write_text_model};

// The tower.

struct Vision {
  TurnedBlock block = {
      .prefix = "MuseGlimmer", .norms = {"norm0", "norm1"}, .attention = "attn", .output = "proj", .joins = true};
  std::int64_t patch = 14;
  std::int64_t frames = 2;  ///< of a patch
  std::int64_t merge = 2;
  std::int64_t rows = 32;  ///< of the table of positions
  std::int64_t columns = 32;
  std::int64_t projected = 4096;
  std::string_view activation = "gelu";
  std::int64_t width = 1;  ///< of the text model
};

inline Vision read_vision(ConfigFields& whole) {
  Vision v;
  ConfigFields* config = vision_fields(whole);
  if (config == nullptr) return v;
  DecoderSizes& s = v.block.sizes;
  s = encoder_sizes(*config, {.width = 1536, .inner = 8960, .layers = 50, .heads = 16, .activation = "gelu"});
  v.patch = config->size_or({"patch_size"}, 14);
  v.frames = config->size_or({"patch_temporal"}, 2);
  v.merge = config->size_or({"merge_size"}, 2);
  v.rows = config->size_or({"pos_emb_height"}, 32);
  v.columns = config->size_or({"pos_emb_width"}, 32);
  config->ignore({"model_type", "max_position_embeddings", "layer_types", "out_hidden_size"});
  v.projected = whole.size_or({"projector_hidden_size"}, 4096);
  v.activation = whole.text({"projector_hidden_act"}, "gelu");
  const std::int64_t merged = s.width * v.merge * v.merge;
  if (whole.size_or({"out_hidden_size"}, merged) != merged)
    whole.fail("is not what merged patches have", "out_hidden_size");
  check_patches(*config, v.patch, v.merge, v.frames);
  if (v.rows > 4096 || v.columns > 4096) config->fail("is more than gpumem takes", "pos_emb_height");
  if (s.width % (2 * s.heads) != 0) config->fail("does not divide hidden_size", "num_attention_heads");
  return v;
}

/// smart_resize(): the grid of merged patches that is most like the picture, of at most so many.
inline TileGrid merged_grid(const Vision& v, const PictureSize& size, std::int64_t most) {
  namespace d = image_rules_detail;
  const double step = d::real(v.patch * v.merge);
  double high = d::real(size.height) / step;
  double wide = d::real(size.width) / step;
  const double shape = wide / high;
  if (high * wide > d::real(most)) {
    high = std::sqrt(d::real(most) / shape);
    wide = high * shape;
  }
  TileGrid best = {std::max<std::int64_t>(d::rounded(high), 1), std::max<std::int64_t>(d::rounded(wide), 1)};
  double least = HUGE_VAL;
  for (const double rows : {std::floor(high), std::ceil(high)}) {
    for (const double columns : {std::floor(wide), std::ceil(wide)}) {
      if (rows < 1.0 || columns < 1.0 || rows * columns > d::real(most)) continue;
      const double apart = std::abs(rows / columns - d::real(size.height) / d::real(size.width));
      if (apart >= least) continue;
      least = apart;
      best = {d::whole(rows), d::whole(columns)};
    }
  }
  return best;
}

inline Tensor tower(Forward& f, const Vision& v, std::int64_t images, std::int64_t patches) {
  const InModule inside(f, "vision_tower", "MuseGlimmerVisionModel");
  const DecoderSizes& s = v.block.sizes;
  constexpr std::int64_t kColours = 3;
  constexpr std::int64_t kNeighbours = 4;
  Tensor hidden = 0;
  {
    const InModule embedder(f, "patch_embedder", "MuseGlimmerVisionPatchEmbedder");
    const std::int64_t area = v.frames * kColours * v.patch * v.patch;
    const Tensor pixels = f.rows_input("pixel_values", images, {patches, area});
    hidden = f.linear("patch_embedding", pixels, area, s.width, {.bias = false});
    const Tensor places = f.rows_input("patch_places", images, {kNeighbours * patches});
    const Tensor found = f.embedding("position_embedding_table", places, v.rows * v.columns, s.width);
    // Four rows of the table for each patch, weighted in float32 and added up.
    const Tensor weighted = f.unflatten(f.scale(f.to(found, "float32")), 1, {-1, kNeighbours});
    hidden = f.add(hidden, f.as_type_of(f.call("mean", {weighted}, {{"dim", std::int64_t{2}}}), hidden));
  }
  // In the order of its windows, and back.
  hidden = f.call("clone", {f.layer_norm("ln_pre", hidden, s.width)});
  const Rotary rotary = patch_tables(f, hidden, s.width / s.heads);
  hidden = stack(f, "layers", "MuseGlimmerVisionEncoderLayer", s.layers, hidden,
                 [&](Tensor x, std::int64_t) { return turned_block(f, v.block, x, rotary); });
  hidden = f.layer_norm("ln_post", f.call("clone", {hidden}), s.width);
  const std::int64_t squares = v.merge * v.merge;
  const Tensor ordered = f.unflatten(f.call("clone", {hidden}), 1, {-1, squares});
  return f.flatten(f.call("clone", {f.permute(ordered, {0, 1, 3, 2})}), 2, 3);
}

inline Tensor features_of(Forward& f, const Vision& v, std::int64_t images, std::int64_t patches) {
  const Tensor seen = tower(f, v, images, patches);
  const Linear plain = {.bias = false};
  Tensor made = 0;
  {
    const InModule inside(f, "vision_adapter", "MuseGlimmerVisionAdapter");
    const std::int64_t wide = v.block.sizes.width * v.merge * v.merge;
    const Tensor open = f.activation("act", f.linear("fc1", seen, wide, v.projected, plain), v.activation);
    made = f.activation("act", f.linear("fc2", open, v.projected, v.projected, plain), v.activation);
  }
  const Tensor projected = f.linear("vision_projection", made, v.projected, v.width, plain);
  const Tensor normed = plain_norm(f, "perception_emb_norm", "MuseGlimmerRMSNorm", projected, v.width);
  return f.call("clone", {normed});  // torch.cat of the images
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  constexpr std::int64_t kMostOfImage = 4096;
  constexpr std::int64_t kMostOfFrame = 144;
  const Pictures pictures = pictures_of(f);
  Vision vision = read_vision(config);
  ConfigFields* text = text_fields(config, "muse_glimmer_text");
  if (text == nullptr || !config.status()) return;
  vision.width = text->size({"hidden_size"});
  const bool film = pictures.frames > 0;
  const TileGrid grid = merged_grid(vision, pictures.size, film ? kMostOfFrame : kMostOfImage);
  const std::int64_t frames = film ? (pictures.frames + vision.frames - 1) / vision.frames : 1;
  const std::int64_t images = std::max<std::int64_t>(pictures.count, 1) * frames;
  tell_pictures(f, pictures, images * grid.tiles());
  TextPart part = inner_text("MuseGlimmerModel", "MuseGlimmerTextModel");
  part.plain_logits = false;  // the outer class scales and caps them as well
  part.embed = [&](Tensor, Tensor embedded) {
    const Tensor words = normed_embeddings(f, embedded, vision.width);
    const std::int64_t patches = grid.tiles() * vision.merge * vision.merge;
    return with_features(f, pictures, words, [&](Forward& to) { return features_of(to, vision, images, patches); });
  };
  write_text(f, *text, head, part);
}

inline constexpr Architecture kArchitecture = {
    .name = "muse_glimmer", .model_types = names<"muse_glimmer">, .write = write, .holds_text_model = true};

}  // namespace muse_glimmer

// MiniMax-M3 with its tower: CLIP's blocks, two linear layers a patch, and two more of four patches side by side.
// Source: transformers 5.17, models/minimax_m3_vl/modular_minimax_m3_vl.py; the bounds of pixels of Qwen2-VL's
// processor, which its own derives.

namespace minimax_m3_vl {

struct Vision {
  TurnedBlock block = {.prefix = "MiniMaxM3VL"};
  std::int64_t channels = 3;
  std::int64_t patch = 14;
  std::int64_t frames = 2;
  std::int64_t merge = 2;
  std::int64_t longest = 2016;
  std::int64_t projected = 6144;
  std::int64_t width = 1;  ///< of the text model
};

inline Vision read_vision(ConfigFields& whole) {
  Vision v;
  ConfigFields* config = vision_fields(whole);
  if (config == nullptr) return v;
  DecoderSizes& s = v.block.sizes;
  s = encoder_sizes(*config, {.width = 1280, .inner = 5120, .layers = 32, .heads = 16, .activation = "gelu"});
  v.channels = config->size_or({"num_channels"}, 3);
  v.patch = config->size_or({"patch_size"}, 14);
  v.frames = config->size_or({"temporal_patch_size"}, 2);
  v.merge = config->size_or({"spatial_merge_size"}, 2);
  v.longest = config->size_or({"image_size"}, 2016);
  v.projected = whole.size_or({"projector_hidden_size"}, 6144);
  config->ignore({"model_type", "rope_mode", "img_token_compression_config", "position_embedding_type",
                  "num_key_value_heads", "projection_dim", "vision_segment_max_frames"});
  whole.ignore({"image_seq_length", "img_token_compression_config", "image_grid_pinpoints", "process_image_mode",
                "vision_feature_layer", "vision_feature_select_strategy", "multimodal_projector_bias",
                "projector_hidden_act"});
  check_patches(*config, v.patch, v.merge, v.frames);
  if (v.longest < v.patch || v.longest > model::Images::kLargestSide)
    config->fail("is no size of an image", "image_size");
  if (s.width % (2 * s.heads) != 0) config->fail("does not divide hidden_size", "num_attention_heads");
  return v;
}

inline Tensor features_of(Forward& f, const Vision& v, std::int64_t images, std::int64_t patches) {
  const DecoderSizes& s = v.block.sizes;
  Tensor hidden = 0;
  {
    const InModule inside(f, "vision_tower", "MiniMaxM3VLVisionModel");
    {
      const InModule embeddings(f, "embeddings", "MiniMaxM3VLVisionEmbeddings");
      const std::int64_t area = v.channels * v.frames * v.patch * v.patch;
      const Tensor rows = f.rows_input("pixel_values", images * patches, {area});
      const Sizes kernel = {v.frames, v.patch, v.patch};
      const Tensor cut =
          f.layer("proj", "Conv3d", "conv3d", {f.unflatten(rows, 1, {v.channels, v.frames, v.patch, v.patch})},
                  {{"in_channels", v.channels},
                   {"out_channels", s.width},
                   {"kernel_size", kernel},
                   {"stride", kernel},
                   {"bias", false}});
      hidden = f.unflatten(f.flatten(cut, 1, 4), 0, {-1, patches});
    }
    // Of a head of 80 elements, 78 are turned, a third of them for each of time, rows and columns.
    const std::int64_t each = s.width / s.heads;
    const Rotary rotary = patch_tables(f, hidden, std::max<std::int64_t>(each / 6 * 6, 2));
    hidden = f.layer_norm("pre_layrnorm", hidden, s.width);
    hidden = stack(f, "layers", "MiniMaxM3VLVisionEncoderLayer", s.layers, hidden,
                   [&](Tensor x, std::int64_t) { return turned_block(f, v.block, x, rotary); });
  }
  const InModule inside(f, "multi_modal_projector", "MiniMaxM3VLMultiModalProjector");
  const Tensor open = f.activation("act", f.linear("linear_1", hidden, s.width, v.projected), "gelu");
  const Tensor made = f.linear("linear_2", open, v.projected, v.width);
  const std::int64_t wide = v.width * v.merge * v.merge;
  const Tensor merged = f.unflatten(f.flatten(made, 1, 2), 1, {-1, wide});
  const Tensor narrow = f.activation("merge_act", f.linear("merge_linear_1", merged, wide, v.projected), "gelu");
  return f.call("clone", {f.linear("merge_linear_2", narrow, v.projected, v.width)});  // torch.cat of the images
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Pictures pictures = pictures_of(f);
  Vision vision = read_vision(config);
  ConfigFields* text = text_fields(config, "minimax_m3_vl_text");
  if (text == nullptr || !config.status()) return;
  vision.width = text->size({"hidden_size"});
  const PixelBounds bounds = {
      .factor = vision.patch * vision.merge, .least = 3136, .most = vision.longest * vision.longest};
  const auto size = smart_resize(pictures.size, bounds);
  if (!size) return f.fail("reads no image whose sides are more than 200 to 1; give another `image`");
  const bool film = pictures.frames > 0;
  const std::int64_t times = film ? (pictures.frames + vision.frames - 1) / vision.frames : 1;
  const std::int64_t images = std::max<std::int64_t>(pictures.count, 1) * times;
  const std::int64_t patches = size->width / vision.patch * (size->height / vision.patch);
  tell_pictures(f, pictures, images * patches / (vision.merge * vision.merge));
  write_text(f, *text, head, inner_text("MiniMaxM3VLModel", "MiniMaxM3VLTextModel"), pictures,
             [&](Forward& to) { return features_of(to, vision, images, patches); });
}

inline constexpr auto kClasses = std::to_array<ModelClass>(
    {{.prefix = "MiniMaxM3VL", .model_type = "minimax_m3_vl", .body = "model", .ending = "ForConditionalGeneration"}});

/// What print(model) shows: all but the heads of the tower.
inline void read_tree(TreeFields& t) {
  static constexpr auto kPublished = std::to_array<PublishedHeads>({{1280, 16}});
  const std::string cut = "vision_tower.embeddings.proj";
  t.open("vision_config");
  t.size("hidden_size", cut, "out_channels");
  t.size("num_channels", cut, "in_channels");
  t.size("temporal_patch_size", cut, "kernel_size");
  t.size("patch_size", cut, "kernel_size", 1);
  t.count("num_hidden_layers", "vision_tower.layers");
  t.size("intermediate_size", "vision_tower.layers.0.mlp.fc1", "out_features");
  t.heads_of_width({.published = kPublished, .usual_width = 80}, t.value(cut, "out_channels").value_or(0));
  const std::int64_t text = t.value("multi_modal_projector.linear_2", "out_features").value_or(1);
  const std::int64_t merged = t.value("multi_modal_projector.merge_linear_1", "in_features").value_or(text) / text;
  t.set("spatial_merge_size", TreeFields::square_side(merged));
  t.close();
  t.size("projector_hidden_size", "multi_modal_projector.linear_1", "out_features");
  tree_text(t, {.type = "minimax_m3_vl_text"});
}

inline constexpr Architecture kArchitecture = {.name = "minimax_m3_vl",
                                               .model_types = names<"minimax_m3_vl">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .holds_text_model = true};

}  // namespace minimax_m3_vl

}  // namespace gpumem::architectures
