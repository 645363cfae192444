// Molmo 2: SigLIP 2's tower on a picture and its overlapping crops, two of whose layers are read; attention that pools
// squares of patches; a projector with a gate; and a decoder of its own whose projections are packed, whose tokens of
// an image see each other. Attention of the tower is computed in float32. The table of words is joined of two, which is
// not counted: it is there when little else is. Source: modeling_molmo2.py and image_processing_molmo2.py of
// allenai/Molmo2-8B.
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
#include "gpumem/architectures/image_towers.hpp"
#include "gpumem/architectures/mixture.hpp"
#include "gpumem/architectures/vision_language.hpp"

namespace gpumem::architectures {

namespace molmo2 {

// The decoder.

struct Model {
  DecoderSizes sizes;
  std::int64_t more_words = 0;  ///< for images, which the output layer does not have
  bool bias = false;
  bool norms_heads = true;
  bool norms_each = false;    ///< of them, and not all at once
  bool norms_behind = false;  ///< behind each half of a block (Molmo2-O)
  double dropout = 0.0;
};

inline Model read(ConfigFields& config) {
  Model m;
  m.sizes = decoder_sizes(config);
  m.more_words = config.count_or("additional_vocab_size", 128);
  if (m.more_words > 1 << 20) config.fail("is more than gpumem takes", "additional_vocab_size");
  m.bias = config.flag("qkv_bias", false);
  m.norms_heads = config.flag("use_qk_norm", true);
  m.norms_each = config.text({"qk_norm_type"}, "olmo") == "qwen3";
  m.norms_behind = config.flag("norm_after", false);
  m.dropout = config.number({"residual_dropout"}, 0.0);
  config.ignore({"embedding_dropout", "rope_scaling_layers"});
  return m;
}

inline Tensor norm(Forward& f, std::string_view name, Tensor input, std::int64_t width) {
  return f.rms_norm(name, input, width, "Molmo2RMSNorm");
}

inline Tensor attention(Forward& f, const Model& m, Tensor input, const Rotary& rotary) {
  const InModule inside(f, "self_attn", "Molmo2Attention");
  const DecoderSizes& s = m.sizes;
  const std::int64_t queries = s.heads * s.head_width;
  const std::int64_t keys = s.kv_heads * s.head_width;
  const Tensor packed = f.linear("att_proj", input, s.width, queries + 2 * keys, {.bias = m.bias});
  const std::vector<Tensor> parts = f.split(packed, 2, {queries, keys, keys});
  const auto heads = [&](std::size_t part, std::string_view name, std::int64_t width) {
    const bool all = m.norms_heads && !m.norms_each;
    const Tensor made = split_heads(f, all ? norm(f, name, parts[part], width) : parts[part], s.head_width);
    return m.norms_heads && m.norms_each ? norm(f, name, made, s.head_width) : made;
  };
  const Tensor query = heads(0, "q_norm", queries);
  const Tensor key = heads(1, "k_norm", keys);
  const std::array<Tensor, 2> turned = turn_heads(f, query, key, rotary, s.head_width, Turning::halves);
  const Tensor attended = attend_cached(f, s, {turned[0], turned[1], split_heads(f, parts[2], s.head_width)});
  return f.linear("attn_out", attended, queries, s.width, {.bias = false});
}

inline Tensor fed(Forward& f, const Model& m, Tensor input) {
  const InModule inside(f, "mlp", "Molmo2MLP");
  const DecoderSizes& s = m.sizes;
  const Tensor packed = f.linear("ff_proj", input, s.width, 2 * s.inner, {.bias = false});
  const std::vector<Tensor> halves = f.split(packed, 2, {s.inner, s.inner});
  const Tensor gated = f.multiply(f.activation("act", halves[1], s.activation), halves[0]);
  return f.linear("ff_out", gated, s.inner, s.width, {.bias = false});
}

inline Tensor block(Forward& f, const Model& m, Tensor input, const Rotary& rotary) {
  const std::int64_t width = m.sizes.width;
  const auto half = [&](std::string_view name, Tensor x, auto part) {
    const Tensor made = m.norms_behind ? norm(f, name, part(x), width) : part(norm(f, name, x, width));
    return f.add(x, f.dropout("dropout", made, m.dropout));
  };
  const Tensor attended = half("attn_norm", input, [&](Tensor x) { return attention(f, m, x, rotary); });
  return half("ff_norm", attended, [&](Tensor x) { return fed(f, m, x); });
}

inline void write_text_model(ConfigFields& config, Head head, Forward& f) {
  const Model m = read(config);
  if (!config.status()) return;
  const DecoderSizes& s = m.sizes;
  DecoderSizes with_more = s;
  with_more.vocabulary += m.more_words;
  Tensor hidden = 0;
  {
    const InModule inside(f, "transformer", "Molmo2TextModel");
    const Tensor ids = token_ids(f);
    const Tensor embedded = f.embedding("wte", ids, with_more.vocabulary, s.width, "Molmo2Embedding");
    const Rotary rotary = rotary_tables(f, ids, s.head_width);
    hidden = stack(f, "blocks", "Molmo2DecoderLayer", s.layers, embedded,
                   [&](Tensor x, std::int64_t) { return block(f, m, x, rotary); });
    hidden = norm(f, "ln_f", hidden, s.width);
  }
  decoder_head(f, config, s, head, hidden);
}

inline constexpr auto kTextClasses = std::to_array<ModelClass>({{"Molmo2Text", "molmo2_text", "transformer"}});

/// What print(model) shows. Norms stand behind each half where heads are normed all at once, as in Molmo2-O.
inline void read_text_tree(TreeFields& t) {
  constexpr std::int64_t kHead = 128;
  const std::string block = "blocks.0.";
  const std::int64_t queries = t.value(block + "self_attn.attn_out", "in_features").value_or(kHead);
  const std::int64_t all = t.value(block + "self_attn.att_proj", "out_features").value_or(queries);
  t.size("vocab_size", "/lm_head", "out_features");
  t.size("hidden_size", block + "self_attn.att_proj", "in_features");
  t.count("num_hidden_layers", "blocks");
  t.size("intermediate_size", block + "mlp.ff_out", "in_features");
  t.set("num_attention_heads", std::max<std::int64_t>(queries / kHead, 1));
  t.set("num_key_value_heads", std::max<std::int64_t>((all - queries) / (2 * kHead), 1));
  t.set("head_dim", kHead);
  t.flag("qkv_bias", block + "self_attn.att_proj");
  t.there("use_qk_norm", block + "self_attn.q_norm");
  const bool each = t.value(block + "self_attn.q_norm", "normalized_shape").value_or(queries) == kHead;
  t.set_string("qk_norm_type", each ? "qwen3" : "olmo");
  t.set_flag("norm_after", t.has(block + "self_attn.q_norm") && !each);
  t.dropout("residual_dropout", block + "dropout");
  t.assume("heads of width 128 and 128 words for images, as published models have");
}

inline constexpr Architecture kTextArchitecture = {.name = "molmo2_text",
                                                   .model_types = names<"molmo2_text">,
                                                   .write = write_text_model,
                                                   .classes = kTextClasses,
                                                   .read_tree = read_text_tree};

// The tower and what stands behind it.

struct Vision {
  DecoderSizes sizes;
  std::int64_t side = 378;
  std::int64_t patch = 14;
  std::int64_t places = 729;
  bool wide = true;  ///< attention in float32
  std::vector<std::int64_t> read = {24, 18};
  DecoderSizes pool;       ///< attention that pools, and the projector
  std::int64_t width = 1;  ///< of the text model

  [[nodiscard]] std::int64_t across() const { return side / patch; }
  [[nodiscard]] std::int64_t patches() const { return across() * across(); }
};

/// The layers that are read, of which those behind the last are not built.
inline void read_layers(ConfigFields& adapter, Vision& v) {
  const core::JsonValue* list = adapter.find("vit_layers");
  std::vector<std::int64_t> said = {-3, -9};
  if (list != nullptr && list->is(core::JsonValue::Kind::list)) {
    said.clear();
    for (const core::JsonValue& item : list->items()) {
      said.push_back(item.is(core::JsonValue::Kind::integer) ? item.integer() : INT32_MIN);
    }
  }
  v.read.clear();
  std::int64_t last = 0;
  for (const std::int64_t layer : said) {
    const std::int64_t from_front = layer < 0 ? v.sizes.layers + layer : layer;
    const bool inside = from_front >= 0 && from_front < v.sizes.layers;
    if (!inside) adapter.fail("names no layer of the tower", "vit_layers");
    v.read.push_back(inside ? from_front : 0);
    last = std::max(last, v.read.back());
  }
  if (v.read.empty() || v.read.size() > 16) adapter.fail("must name 1 to 16 layers of the tower", "vit_layers");
  v.sizes.layers = std::min(v.sizes.layers, last + 1);
}

inline Vision read_vision(ConfigFields& whole) {
  Vision v;
  ConfigFields* tower = whole.part_or_usual("vit_config");
  ConfigFields* adapter = whole.part_or_usual("adapter_config");
  if (tower == nullptr || adapter == nullptr) return v;
  v.sizes = encoder_sizes(*tower,
                          {.width = 1152, .inner = 4304, .layers = 27, .heads = 16, .activation = "gelu_pytorch_tanh"});
  v.patch = tower->size_or({"image_patch_size"}, 14);
  const std::vector<std::int64_t> sides = tower->sizes_or("image_default_input_size", {378, 378});
  v.side = sides.front();
  v.places = tower->size_or({"image_num_pos"}, 729);
  v.wide = tower->flag("float32_attention", true);
  tower->ignore({"model_type", "num_key_value_heads", "head_dim", "residual_dropout"});
  read_layers(*adapter, v);
  v.pool.width = adapter->size_or({"hidden_size"}, 1152);
  v.pool.heads = adapter->size_or({"num_attention_heads"}, 16);
  v.pool.inner = adapter->size_or({"intermediate_size"}, 18944);
  v.pool.activation = adapter->text({"hidden_act"}, "silu");
  adapter->ignore({"model_type", "num_key_value_heads", "head_dim", "text_hidden_size", "pooling_attention_mask",
                   "float32_attention", "attention_dropout", "residual_dropout", "image_feature_dropout"});
  whole.ignore({"image_patch_id", "image_end_token_id", "frame_end_token_id", "frame_start_token_id", "image_col_id",
                "image_start_token_id", "low_res_image_start_token_id", "use_frame_special_tokens"});
  if (v.side < v.patch || v.side > model::Images::kLargestSide)
    tower->fail("is no size of an image", "image_default_input_size");
  if (v.patches() != v.places) tower->fail("is not as many as an image has patches", "image_num_pos");
  if (v.pool.width % v.pool.heads != 0) adapter->fail("does not divide hidden_size", "num_attention_heads");
  return v;
}

/// What the processor makes of a picture: crops, and the squares of patches that are pooled.
struct Plan {
  std::int64_t crops = 1;     ///< of all of a sample's pictures
  std::int64_t features = 1;  ///< of them
  std::int64_t tokens = 1;    ///< with the marks of rows and pictures
  std::int64_t pooled = 4;    ///< patches of a feature
};

inline Plan plan_of(const Vision& v, const Pictures& pictures) {
  constexpr std::int64_t kMostCrops = 8;
  constexpr std::int64_t kOverlap = 8;  // patches of a side, of both margins
  constexpr std::int64_t kSide = 2;
  constexpr std::int64_t kSideOfFrame = 3;
  const auto squares = [](std::int64_t patches, std::int64_t side) { return (patches + side - 1) / side; };
  const std::int64_t seen = pictures.seen();
  if (pictures.frames > 0) {
    const std::int64_t side = squares(v.across(), kSideOfFrame);
    return {seen, seen * side * side, seen * (side * side + 2), kSideOfFrame * kSideOfFrame};
  }
  const std::int64_t window = std::max<std::int64_t>(v.across() - kOverlap, 1);
  const std::int64_t margin = kOverlap * v.patch;
  const PictureSize inner = {std::max<std::int64_t>(pictures.size.width - margin, 1),
                             std::max<std::int64_t>(pictures.size.height - margin, 1)};
  const TileGrid grid = least_scaled_grid(inner, window * v.patch, kMostCrops);
  const std::int64_t rows = squares(grid.rows * window + kOverlap, kSide);
  const std::int64_t columns = squares(grid.columns * window + kOverlap, kSide);
  const std::int64_t low = squares(v.across(), kSide);
  const std::int64_t features = rows * columns + low * low;
  constexpr std::int64_t kMarks = 4;  // around the whole picture, and around its crops
  return {seen * (grid.tiles() + 1), seen * features, seen * (features + rows + low + kMarks), kSide * kSide};
}

inline Tensor tower_attention(Forward& f, const Vision& v, Tensor input) {
  const InModule inside(f, "attention", "ViTMultiHeadDotProductAttention");
  const DecoderSizes& s = v.sizes;
  const auto heads = [&](std::string_view name) {
    const Tensor made = split_heads(f, f.linear(name, input, s.width, s.width), s.width / s.heads);
    return v.wide ? f.to(made, "float32") : made;
  };
  const Tensor query = heads("wq");
  const Tensor key = heads("wk");
  const Tensor mixed = attend(f, {query, key, heads("wv")}, {.copies = false, .causal = false});
  return f.linear("wo", v.wide ? f.as_type_of(mixed, input) : mixed, s.width, s.width);
}

/// [N crops, patches, layers width]: what the layers that are read leave, side by side.
inline Tensor tower(Forward& f, const Vision& v, std::int64_t crops) {
  const InModule inside(f, "image_vit", "Molmo2VisionTransformer");
  const DecoderSizes& s = v.sizes;
  const std::int64_t area = 3 * v.patch * v.patch;
  const Tensor pixels = f.rows_input("images", crops, {v.patches(), area});
  Tensor hidden = f.linear("patch_embedding", pixels, area, s.width);
  hidden = f.add(hidden, f.parameter("positional_embedding", {1, v.places, s.width}));
  std::vector<Tensor> states;
  {
    const InModule transformer(f, "transformer", "Molmo2VisionBlockCollection");
    stack(f, "resblocks", "Molmo2VisionBlock", s.layers, hidden, [&](Tensor x, std::int64_t) {
      const Tensor attended = f.add(x, tower_attention(f, v, f.layer_norm("attention_norm", x, s.width)));
      const Tensor again = f.layer_norm("ffn_norm", attended, s.width);
      states.push_back(f.add(
          attended,
          feed_forward(
              f, s, again,
              {.class_name = "ViTMLP", .widen = "w1", .narrow = "w2", .activation = "act", .module = "feed_forward"})));
      return states.back();
    });
  }
  std::vector<Tensor> read;
  for (const std::int64_t layer : v.read) {
    const auto at = static_cast<std::size_t>(layer);
    read.push_back(at < states.size() ? states[at] : hidden);  // a tower that has failed ends early
  }
  Tensor all = f.concatenate(read, 2);
  for (const Tensor state : states) all = f.leave_function(all, {state});
  return all;
}

/// A query each square, the mean of its patches, reads them.
inline Tensor features_of(Forward& f, const Vision& v, const Pictures& pictures, const Plan& plan) {
  const InModule backbone(f, "vision_backbone", "Molmo2VisionBackbone");
  const Tensor seen = tower(f, v, plan.crops);
  const std::int64_t wide = v.sizes.width * static_cast<std::int64_t>(v.read.size());
  const std::int64_t width = v.pool.width;
  const std::int64_t pictures_seen = std::max<std::int64_t>(pictures.seen(), 1);
  const std::int64_t each = plan.features / pictures_seen;
  const std::int64_t rows = each * plan.pooled;
  const std::int64_t there = plan.crops / pictures_seen * v.patches();
  const Tensor all = f.flatten(f.unflatten(seen, 0, {-1, plan.crops / pictures_seen}), 1, 2);
  // Gathered by numbers, and what is no patch made zero.
  const Tensor chosen = rows > there ? f.call("pad", {all}, {{"padding", Sizes{0, 0, 0, rows - there}}})
                                     : f.call("clone", {f.slice(all, 1, 0, rows)});
  const Tensor shown = f.multiply(chosen, f.as_type_of(f.rows_input("valid", pictures_seen, {rows, 1}), chosen));
  const Tensor squares = f.flatten(f.unflatten(shown, 1, {each, plan.pooled}), 0, 1);
  const Tensor query = f.call("mean", {squares}, {{"dim", std::int64_t{1}}, {"keepdim", true}});
  Tensor pooled = 0;
  {
    const InModule inside(f, "image_pooling_2d", "ViTMultiHeadDotProductAttention");
    const auto heads = [&](std::string_view name, Tensor input) {
      const Tensor made = split_heads(f, f.linear(name, input, wide, width), width / v.pool.heads);
      return v.wide ? f.to(made, "float32") : made;
    };
    const Tensor asking = heads("wq", query);
    const Tensor key = heads("wk", squares);
    const Tensor mixed = attend(f, {asking, key, heads("wv", squares)}, {.copies = false, .causal = false});
    pooled = f.linear("wo", v.wide ? f.as_type_of(mixed, squares) : mixed, width, width);
  }
  const InModule inside(f, "image_projector", "ImageProjectorMLP");
  const GatedNames names = {.gate = "w1", .up = "w3", .down = "w2"};
  const Tensor lines = f.unflatten(f.flatten(pooled, 1, 2), 0, {-1, each});
  const Tensor open =
      f.activation("act", f.linear(names.gate, lines, width, v.pool.inner, {.bias = false}), v.pool.activation);
  const Tensor up = f.linear(names.up, lines, width, v.pool.inner, {.bias = false});
  const Tensor made = f.linear(names.down, f.multiply(open, up), v.pool.inner, v.width, {.bias = false});
  return f.call("clone", {made});  // those that are valid
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Pictures pictures = pictures_of(f);
  Vision vision = read_vision(config);
  ConfigFields* text = text_fields(config, "molmo2_text");
  if (text == nullptr || !config.status()) return;
  vision.width = text->size({"hidden_size"});
  const Plan plan = plan_of(vision, pictures);
  tell_pictures(f, pictures, plan.tokens);
  TextPart part = inner_text("Molmo2Model", "Molmo2TextModel");
  part.modules[1].first = "transformer";
  part.masks = true;
  write_text(f, *text, head, part, pictures, [&](Forward& to) { return features_of(to, vision, pictures, plan); });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Molmo2", "molmo2", "model"}});

/// What print(model) shows. Positions are bare parameters, and which layers are read is as published.
inline void read_tree(TreeFields& t) {
  constexpr std::int64_t kLeftOut = 2;  // layers of the tower behind the last that is read
  static constexpr auto kPublished = std::to_array<PublishedHeads>({{1152, 16}});
  const std::string tower = "vision_backbone.image_vit.";
  const std::int64_t width = t.value(tower + "patch_embedding", "out_features").value_or(0);
  const std::int64_t area = t.value(tower + "patch_embedding", "in_features").value_or(3) / 3;
  t.open("vit_config");
  t.set("hidden_size", std::max<std::int64_t>(width, 1));
  t.size("intermediate_size", tower + "transformer.resblocks.0.feed_forward.w1", "out_features");
  t.set("num_hidden_layers", t.count_of(tower + "transformer.resblocks") + kLeftOut);
  t.set("image_patch_size", TreeFields::square_side(area));
  t.heads_of_width({.published = kPublished, .usual_width = 72}, width);
  t.close();
  t.open("adapter_config");
  t.size("hidden_size", "vision_backbone.image_pooling_2d.wq", "out_features");
  t.size("intermediate_size", "vision_backbone.image_projector.w1", "out_features");
  t.close();
  t.assume("images of 378 pixels, of which the third last and the ninth last of the tower's layers are read");
  tree_text(t, {.path = "transformer", .type = "molmo2_text"});
}

inline constexpr Architecture kArchitecture = {.name = "molmo2",
                                               .model_types = names<"molmo2">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .holds_text_model = true};

}  // namespace molmo2

}  // namespace gpumem::architectures
