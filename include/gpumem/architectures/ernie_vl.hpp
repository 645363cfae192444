// ERNIE 4.5 VL: images of any size; a resampler that makes one token of four patches, and one of two frames; and a
// decoder with two mixtures in each layer. Tokens of images, and the two marks around each image, go to the experts of
// images alone, all others to those of text; an expert that all tokens share stands beside both. All images of a batch
// are one sequence of patches; here each frame is a row of its own, which takes as much, as attention goes frame by
// frame. A sample's tokens of images are its first here: which they are changes nothing.
// The config that its publisher has ("ernie4_5_moe_vl") names the same model by other fields. The code beside it
// computes no loss, so that what is written is transformers' class of both.
// Source: transformers 5.0 to 5.17, models/ernie4_5_vl_moe/modeling_ernie4_5_vl_moe.py, its configuration,
// image_processing, video_processing and processing; convert_ernie4_5_vl_moe_to_hf.py for the publisher's fields.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/mixture.hpp"
#include "gpumem/architectures/vision_language.hpp"

namespace gpumem::architectures {

namespace ernie_vl {

inline std::string named(std::string_view part) { return std::string("Ernie4_5_VLMoe").append(part); }

struct Model {
  bool published = false;  ///< its fields are the publisher's
  DecoderSizes text;
  Mixture of_text;
  Mixture of_images;
  std::int64_t shared = 0;  ///< inner size of the expert that all tokens share; 0: there is none
  std::vector<bool> mixes;  ///< by layer: it has experts
  bool bias = false;
  DecoderSizes tower;
  std::int64_t channels = 3;
  std::int64_t patch = 14;
  std::int64_t merge = 2;     ///< patches of a side that become one token
  std::int64_t temporal = 2;  ///< frames of a video that do
  std::int64_t marked = 0;    ///< tokens of a sample that go to the experts of images; 0: it brings none

  [[nodiscard]] std::int64_t merged() const { return tower.width * merge * merge; }
};

/// The number at `place` of a list of one for text and one for images; a number that is no list counts for both.
inline std::int64_t of_both(ConfigFields& config, std::string_view field, std::size_t place,
                            std::vector<std::int64_t> usual) {
  const std::vector<std::int64_t> both = config.sizes_or(field, std::move(usual));
  if (both.empty() || both.size() > 2) config.fail("must be one size, or one for text and one for images", field);
  return both.empty() ? 1 : both[std::min(place, both.size() - 1)];
}

/// The publisher's fields of which layers have experts: from the least start to the greatest end.
inline std::vector<bool> published_layers(ConfigFields& config, std::int64_t layers) {
  const std::vector<std::int64_t> starts = config.sizes_or("moe_layer_start_index", {1});
  const std::vector<std::int64_t> ends = config.sizes_or("moe_layer_end_index", {layers});
  const std::int64_t every = config.size_or({"moe_layer_interval"}, 1);
  if (starts.empty() || ends.empty()) config.fail("must name a layer", "moe_layer_start_index");
  std::vector<bool> mixes(static_cast<std::size_t>(layers), false);
  if (starts.empty() || ends.empty()) return mixes;
  const std::int64_t first = *std::min_element(starts.begin(), starts.end());
  const std::int64_t last = *std::max_element(ends.begin(), ends.end());
  for (std::int64_t index = 0; index < layers; ++index) {
    mixes[static_cast<std::size_t>(index)] = index >= first && index <= last && (index + 1) % every == 0;
  }
  return mixes;
}

inline void read_text(ConfigFields& config, Model& m) {
  // Of its class, where fields are left out.
  config.complete(R"({"vocab_size": 103424, "hidden_size": 2560, "intermediate_size": 12288, "num_hidden_layers": 28,
      "num_attention_heads": 20, "num_key_value_heads": 4})");
  m.text = decoder_sizes(config, {.tied = true});
  m.bias = config.flag("use_bias", false);
  m.of_text = {.experts = of_both(config, "moe_num_experts", 0, {64}), .per_token = config.size_or({"moe_k"}, 6)};
  m.of_images = m.of_text;
  if (of_both(config, "moe_num_experts", 1, {64}) != m.of_text.experts) {
    config.fail("must be the same for text and for images", "moe_num_experts");
  }
  m.of_text.inner = of_both(config, "moe_intermediate_size", 0, {1536, 512});
  m.of_images.inner = of_both(config, "moe_intermediate_size", 1, {1536, 512});
  const std::int64_t shared = config.count_or("moe_num_shared_experts", m.published ? 0 : 2);
  if (shared > 64) config.fail("is more than gpumem takes", "moe_num_shared_experts");
  if (std::max(m.of_text.inner, m.of_images.inner) > 1 << 20) {
    config.fail("makes experts too wide", "moe_intermediate_size");
  }
  m.shared = std::min<std::int64_t>(shared, 64) * m.of_text.inner;
  m.mixes = m.published ? published_layers(config, m.text.layers)
                        : config.layers_with("mlp_layer_types", m.text.layers, std::string_view("sparse"),
                                             std::string_view("dense"));
  if (m.mixes.empty()) {
    m.mixes.assign(static_cast<std::size_t>(m.text.layers), true);
    m.mixes[0] = false;
  }
  check_mixture(config, m.of_text, m.text.layers, "moe_num_experts", "moe_k");
  config.ignore({"model_type", "moe_norm_min", "router_aux_loss_coef", "output_router_logits", "freq_allocation"});
}

inline void read_tower(ConfigFields& whole, ConfigFields& config, Model& m) {
  DecoderSizes& s = m.tower;
  s.layers = config.layers_or("depth", 32);
  s.width = config.size_or({"hidden_size", "embed_dim"}, 1280);
  s.heads = config.size_or({"num_heads"}, 16);
  s.activation = config.text({"hidden_act"}, "quick_gelu");
  const std::int64_t ratio = config.size_or({"mlp_ratio"}, 4);
  if (ratio > 64) config.fail("is more than gpumem takes", "mlp_ratio");
  s.inner = config.size_or({"intermediate_size"}, s.width * std::min<std::int64_t>(ratio, 64));
  m.channels = config.size_or({"in_channels", "in_chans"}, 3);
  m.patch = config.size_or({"patch_size"}, 14);
  m.merge = config.size_or({"spatial_merge_size"}, 2);
  m.temporal = config.size_or({"temporal_merge_size"}, 2);
  config.ignore({"model_type", "embed_dim", "in_chans", "spatial_patch_size", "vit_first_fwd_bsz", "attn_sep"});
  if (m.published) {
    m.merge = whole.size_or({"spatial_conv_size"}, m.merge);
    m.temporal = whole.size_or({"temporal_conv_size"}, m.temporal);
    if (!whole.flag("use_temporal_conv", true)) whole.fail("is true in this model", "use_temporal_conv");
    if (whole.size_or({"pixel_hidden_size"}, s.width) != s.width)
      whole.fail("is the tower's width", "pixel_hidden_size");
  }
  if (s.width % (2 * s.heads) != 0) config.fail("does not divide the tower's width", "num_heads");
  check_patches(config, m.patch, m.merge);
  // Hard-coded so in the resampler (_temporal_slicing).
  if (m.temporal != 2) config.fail("is 2 in this model", "temporal_merge_size");
}

/// Null: faults were remembered. The text model's fields are returned.
inline ConfigFields* read(ConfigFields& config, Model& m) {
  m.published = config.text({"model_type"}, "ernie4_5_vl_moe") == "ernie4_5_moe_vl";
  ConfigFields* tower = vision_fields(config);
  const bool inner = config.has("text_config");
  ConfigFields* text = inner ? config.part("text_config") : &config;
  if (tower == nullptr || text == nullptr) return nullptr;
  if (inner) {
    // Since transformers 5 the outer config alone says whether the head is tied.
    const bool tied = config.flag("tie_word_embeddings", true);
    text->replace(tied ? R"({"tie_word_embeddings": true})" : R"({"tie_word_embeddings": false})");
  }
  read_text(*text, m);
  read_tower(config, *tower, m);
  config.ignore({"image_start_token_id", "image_end_token_id", "image_token_id", "video_start_token_id",
                 "video_end_token_id", "video_token_id"});
  if (m.published) {
    config.ignore({"im_patch_id",
                   "max_text_id",
                   "rope_3d",
                   "moe_use_aux_free",
                   "moe_multimodal_dispatch_use_allgather",
                   "moe_layer_feed_fake_token",
                   "moe_dense_experts_token_type_id",
                   "moe_capacity",
                   "moe_gate",
                   "moe_gate_act",
                   "moe_group_experts",
                   "moe_use_hard_gate",
                   "moe_reverse_token_drop",
                   "moe_aux_loss_lambda",
                   "moe_z_loss_lambda",
                   "moe_orthogonal_loss_lambda",
                   "moe_dropout_prob",
                   "moe_all_to_all_dropout",
                   "moe_group",
                   "compression_ratio",
                   "mm_vocab_size",
                   "modality_detach",
                   "num_nextn_predict_layers",
                   "sinkhorn_2gate",
                   "sinkhorn_temp",
                   "token_balance_seqlen",
                   "hidden_dropout_prob",
                   "attention_probs_dropout_prob",
                   "tensor_parallel_degree",
                   "fuse_attn_ffn"});
  }
  return config.status() ? text : nullptr;
}

/// Frames that a sample brings, images being one each, and what each of them has.
struct Frames {
  std::int64_t count = 1;
  std::int64_t patches = 4;  ///< of each
  std::int64_t tokens = 1;   ///< of all together
};

/// Videos have an even number of frames, as the resampler takes two at a time.
inline Frames frames_of(Forward& f, const Model& m, const Pictures& pictures) {
  const std::int64_t factor = m.patch * m.merge;
  const std::int64_t square = factor * factor;
  const bool video = pictures.frames > 0;
  const PixelBounds bounds = {.factor = factor,
                              .least = (video ? std::int64_t{299} : std::int64_t{4}) * square,
                              .most = (video ? std::int64_t{1196} : std::int64_t{6177}) * square};
  const auto size = smart_resize(pictures.size, bounds);
  if (!size) {
    f.fail("reads no image whose sides are more than 200 to 1; give another `image`");
    return {};
  }
  const std::int64_t each = (size->width / m.patch) * (size->height / m.patch);
  const std::int64_t count = std::max<std::int64_t>(pictures.count, 1);
  const std::int64_t frames = video ? (pictures.frames + m.temporal - 1) / m.temporal * m.temporal : 1;
  const std::int64_t tokens = count * (video ? frames / m.temporal : 1) * (each / (m.merge * m.merge));
  return {count * frames, each, tokens};
}

inline Tensor tower_attention(Forward& f, const Model& m, Tensor input, const Rotary& rotary) {
  const InModule inside(f, "attn", named("VisionAttention"));
  const std::int64_t width = m.tower.width;
  const std::vector<Tensor> parts = f.split(f.linear("qkv", input, width, 3 * width), 2, {width, width, width});
  const auto turned = [&](Tensor part) {
    const Tensor heads = split_heads(f, part, rotary.width);
    return f.as_type_of(rotate(f, f.to(heads, "float32"), rotary, rotary.width), heads);
  };
  const Tensor query = turned(parts[0]);
  const Tensor key = turned(parts[1]);
  const Tensor mixed =
      attend(f, {query, key, split_heads(f, parts[2], rotary.width)}, {.copies = false, .causal = false});
  // torch.cat of what each frame gives.
  return f.linear("proj", f.call("clone", {mixed}), width, width);
}

/// Patches of all frames: [N frames, patches, width].
inline Tensor tower(Forward& f, const Model& m, const Frames& frames) {
  const InModule inside(f, "vision_tower", named("VisionTransformerPretrainedModel"));
  const DecoderSizes& s = m.tower;
  const std::int64_t area = m.channels * m.patch * m.patch;
  const Tensor rows = f.rows_input("pixel_values", frames.count * frames.patches, {area});
  Tensor hidden = 0;
  {
    const InModule embed(f, "patch_embed", named("PatchEmbed"));
    hidden = f.linear("proj", rows, area, s.width, {.bias = false});
  }
  hidden = f.unflatten(hidden, 0, {-1, frames.patches});
  const std::int64_t each = s.width / s.heads;
  const auto table = [&] {
    return f.call("rotary_table", {hidden}, {{"width", each}, {"padded", true}, {"dtype", std::string("float32")}});
  };
  const Tensor cosines = table();
  const Rotary rotary = {cosines, table(), each, false};
  hidden = stack(f, "blocks", named("VisionBlock"), s.layers, hidden, [&](Tensor x, std::int64_t) {
    const Tensor attended = f.add(x, tower_attention(f, m, f.layer_norm("norm1", x, s.width), rotary));
    const Tensor again = f.layer_norm("norm2", attended, s.width);
    return f.add(attended, feed_forward(f, s, again, {.class_name = "Ernie4_5VLVisionMLP", .activation = "act"}));
  });
  return f.layer_norm("ln", hidden, s.width);
}

inline Tensor normed_layers(Forward& f, std::string_view name, Tensor input, std::int64_t in, std::int64_t out) {
  const InModule inside(f, name, named("VisionMLP"));
  const Tensor open = f.activation("act_fn", f.linear("fc1", input, in, out), "gelu");
  return f.layer_norm("ln", f.linear("fc2", open, out, out), out);
}

/// Four patches side by side, then two frames, an image being both: [N samples' frames, tokens, width of the text].
inline Tensor resampled(Forward& f, const Model& m, const Pictures& pictures, Tensor hidden) {
  const InModule inside(f, "resampler_model", named("VariableResolutionResamplerModel"));
  const std::int64_t wide = m.merged();
  const Tensor squares = f.unflatten(f.flatten(hidden, 1, 2), 1, {-1, wide});
  const Tensor spatial = normed_layers(f, "spatial_linear", squares, wide, wide);
  const bool video = pictures.frames > 0;
  const Tensor pairs = video ? f.unflatten(spatial, 0, {-1, m.temporal}) : spatial;
  // index_select copies what it takes.
  const Tensor first = f.call("clone", {video ? f.select(pairs, 1, 0) : spatial});
  const Tensor second = f.call("clone", {video ? f.select(pairs, 1, 1) : spatial});
  const Tensor both = f.concatenate({first, second}, 2);
  const Tensor temporal = normed_layers(f, "temporal_linear", both, 2 * wide, wide);
  const Tensor made = f.linear("mlp", temporal, wide, m.text.width);
  return f.call("clone", {f.rms_norm("after_norm", made, m.text.width, named("RMSNorm"))});  // torch.cat of the images
}

/// A mixture of experts whose weights are one tensor each, of these tokens. The bias of the choice is never trained.
inline Tensor mixture(Forward& f, const Model& m, std::string_view name, const Mixture& of, Tensor input) {
  const InModule inside(f, name, named("SparseMoeBlock"));
  Tensor weights = 0;
  {
    const InModule gate(f, "gate", named("MoeTopKRouter"));
    const Tensor weight = f.parameter("weight", {of.experts, m.text.width});
    f.wide_autocast(true);
    const Tensor logits = f.call("linear_function", {f.to(input, "float32"), f.to(weight, "float32")});
    f.wide_autocast(false);
    const Tensor scores = f.call("softmax", {logits});
    {
      const InModule statics(f, "moe_statics", named("MoeStatics"));
      f.parameter("e_score_correction_bias", {1, of.experts}, true);
    }
    weights = f.as_type_of(f.scale(f.slice(scores, 2, 0, of.per_token)), input);
  }
  const GroupedExperts all = {
      .list_class = "Ernie4_5_VLMoeMoeExperts", .width = m.text.width, .activation = m.text.activation};
  return add_grouped_experts(f, of, all, input, weights);
}

/// How many parameters such a mixture has.
inline std::int64_t mixture_parameters(const Model& m, const Mixture& of) {
  return of.experts * (3 * m.text.width * of.inner + m.text.width + 1);
}

inline Tensor experts(Forward& f, const Model& m, Tensor input) {
  const InModule inside(f, "mlp", named("MoeBlock"));
  Tensor shared = 0;
  if (m.shared > 0) {
    const InModule one(f, "shared_experts", named("MLP"));
    shared = gated_layer(f, m.text.width, m.shared, m.text.activation, input, {.bias = m.bias});
  }
  Tensor sum = 0;
  if (m.marked == 0) {
    sum = mixture(f, m, "text_moe", m.of_text, input);
    (void)f.parameter("vision_moe.unused", {mixture_parameters(m, m.of_images)}, true);
  } else {
    const auto chosen = [&](std::int64_t start, std::int64_t length, bool inverted) {
      return f.call("masked_tokens", {input}, {{"start", start}, {"length", length}, {"inverted", inverted}});
    };
    const auto put = [&](Tensor into, Tensor made, bool inverted) {
      return f.call("put_tokens", {into, made}, {{"inverted", inverted}});
    };
    const Tensor zeros = f.call("token_zeros", {input});
    const Tensor of_text = mixture(f, m, "text_moe", m.of_text, chosen(m.marked, Forward::kRest, true));
    sum = put(zeros, of_text, true);
    sum = put(sum, mixture(f, m, "vision_moe", m.of_images, chosen(0, m.marked, false)), false);
  }
  return m.shared > 0 ? f.add(sum, shared) : sum;
}

inline Tensor block(Forward& f, const Model& m, Tensor input, const Rotary& rotary, std::int64_t index) {
  const auto norm = [&](std::string_view name, Tensor of) {
    return f.rms_norm(name, of, m.text.width, named("RMSNorm"));
  };
  const Tensor attended = f.add(rotary_attention(f, m.text, norm("input_layernorm", input), rotary,
                                                 {.class_name = "Ernie4_5_VLMoeTextAttention",
                                                  .input_bias = m.bias,
                                                  .output_bias = m.bias,
                                                  .turning = Turning::made_pairs}),
                                input);
  const Tensor again = norm("post_attention_layernorm", attended);
  const bool mixes = m.mixes[static_cast<std::size_t>(index)];
  return f.add(mixes ? experts(f, m, again) : gated_feed_forward(f, m.text, again, named("MLP"), m.bias), attended);
}

inline void write_decoder(Forward& f, ConfigFields& text, Head head, const Model& m) {
  decoder_model(f, text, m.text, head, {.class_name = named("TextModel")}, [&](Tensor ids, Tensor hidden) {
    const auto table = [&] {
      return f.call("rotary_table", {ids},
                    {{"width", m.text.head_width}, {"padded", true}, {"dtype", std::string("float32")}});
    };
    const Tensor cosines = table();
    const Rotary rotary = {cosines, table(), m.text.head_width, false};
    hidden = stack(f, "layers", named("DecoderLayer"), m.text.layers, hidden,
                   [&](Tensor x, std::int64_t index) { return block(f, m, x, rotary, index); });
    return f.rms_norm("norm", hidden, m.text.width, named("RMSNorm"));
  });
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Pictures pictures = pictures_of(f);
  Model model;
  ConfigFields* const text = read(config, model);
  if (text == nullptr) return;
  const Frames frames = frames_of(f, model, pictures);
  if (f.failed()) return;
  if (pictures.count > 0) model.marked = frames.tokens + 2 * pictures.count;
  warn_of_routing(f);
  if (model.published) f.remark("the calls are transformers' own: the publisher's code computes no loss");
  tell_pictures(f, pictures, frames.tokens);
  TextPart part = inner_text(named("Model"), named("TextModel"));
  part.embed = [&](Tensor, Tensor embedded) {
    return with_features(f, pictures, embedded,
                         [&](Forward& to) { return resampled(to, model, pictures, tower(to, model, frames)); });
  };
  doubt_images(f);
  f.begin_text(part);
  write_decoder(f, *text, head, model);
  f.end_text();
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Ernie4_5_VLMoe", "ernie4_5_vl_moe", "model", 2560}});

/// Of a layer with experts: how many there are, how wide, and how many of them a token gets. Their weights are bare
/// parameters, which only a tree with counts shows.
inline void tree_experts(TreeFields& t, const std::string& mixture, std::int64_t width) {
  struct Published {
    std::int64_t width, of_text, of_images, chosen;
  };
  constexpr std::int64_t kExperts = 64;
  constexpr std::array<Published, 2> kPublished = {{{2560, 1536, 512, 6}, {8192, 3584, 1536, 8}}};
  const Published& row = width == kPublished[1].width ? kPublished[1] : kPublished[0];
  const auto inner = [&](const std::string& list, std::int64_t usual) {
    const std::int64_t held = t.held(mixture + list + ".experts");
    return held > 0 && width > 0 ? std::max<std::int64_t>(held / (3 * kExperts * width), 1) : usual;
  };
  t.set("moe_num_experts", kExperts);
  t.set("moe_k", row.chosen);
  const std::int64_t of_text = inner("text_moe", row.of_text);
  t.list("moe_intermediate_size", std::array<std::int64_t, 2>{of_text, inner("vision_moe", row.of_images)});
  const std::int64_t shared = t.value(mixture + "shared_experts.gate_proj", "out_features").value_or(0);
  t.set_text("moe_num_shared_experts", std::to_string(shared / of_text));
  t.assume("64 experts for text and 64 for images, " + std::to_string(row.chosen) +
           " of them a token, as published models have");
}

inline void tree_decoder(TreeFields& t) {
  const std::int64_t width = t.body("embed_tokens", "layers");
  t.size("intermediate_size", "layers.0.mlp.gate_proj", "out_features");
  t.flag("use_bias", "layers.0.self_attn.q_proj");
  t.heads({.query = "layers.0.self_attn.q_proj", .key = "layers.0.self_attn.k_proj", .usual_width = 128});
  std::string types;
  std::string mixture;
  for (std::int64_t layer = 0; layer < t.count_of("layers"); ++layer) {
    const std::string mlp = "layers." + std::to_string(layer) + ".mlp.";
    const bool mixes = t.has(mlp + "text_moe") || t.has(mlp + "shared_experts");
    types += (types.empty() ? "" : ", ") + std::string(mixes ? "\"sparse\"" : "\"dense\"");
    if (mixes && mixture.empty()) mixture = mlp;
  }
  t.set_text("mlp_layer_types", "[" + types + "]");
  tree_experts(t, mixture, width);
}

/// What print(model) of transformers' class shows.
inline void read_tree(TreeFields& t) {
  const std::string block = "vision_tower.blocks.0.";
  t.open("vision_config");
  t.count("depth", "vision_tower.blocks");
  const std::int64_t width = t.value("vision_tower.patch_embed.proj", "out_features").value_or(0);
  t.size("hidden_size", "vision_tower.patch_embed.proj", "out_features");
  t.size("intermediate_size", block + "mlp.fc1", "out_features");
  t.activation("hidden_act", block + "mlp.act");
  t.heads_of_width({.usual_width = 80, .heads_field = "num_heads"}, width);
  const std::int64_t area = t.value("vision_tower.patch_embed.proj", "in_features").value_or(0) / 3;
  t.set("patch_size", TreeFields::square_side(area));
  const std::int64_t wide = t.value("resampler_model.spatial_linear.fc1", "in_features").value_or(0);
  if (width > 0) t.set("spatial_merge_size", TreeFields::square_side(wide / width));
  t.close();
  t.open("text_config");
  t.within("language_model", t.class_name(), [&] { tree_decoder(t); });
  t.close();
}

inline constexpr Architecture kArchitecture = {.name = "ernie_vl",
                                               .model_types = names<"ernie4_5_vl_moe", "ernie4_5_moe_vl">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .holds_text_model = true};

}  // namespace ernie_vl

}  // namespace gpumem::architectures
