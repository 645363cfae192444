// Input: the config.json of a HunyuanVideo. Output: its blocks and embeddings, which HunyuanImage and FramePack have,
// too. Source: diffusers 0.38, models/transformers/transformer_hunyuan_video.py and transformer_hunyuan_video15.py.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/denoiser.hpp"
#include "gpumem/architectures/dit_parts.hpp"

namespace gpumem::architectures {

namespace hunyuan_video15 {

inline constexpr std::array<std::string_view, 1> kBlocks = {"HunyuanVideo15TransformerBlock"};
inline constexpr std::int64_t kImageTokens = 729;   ///< of SigLIP
inline constexpr std::int64_t kGlyphTokens = 256;   ///< of ByT5
inline constexpr std::int64_t kGlyphHidden = 2048;  ///< within its projection

struct Model {
  std::string_view prefix = "HunyuanVideo15";  ///< of the classes' names
  DitSizes sizes;
  std::int64_t layers = 54;
  std::int64_t refiners = 2;
  std::int64_t inner = 8192;
  std::int64_t glyphs = 1472;  ///< width of ByT5's features
  std::int64_t image = 1152;   ///< of the image encoder's
  Sizes patch = {1, 1, 1};
  StreamLengths lengths;
  std::optional<Tensor> mask = {};  ///< of the tokens that are seen; none: each block makes one of 1.5's

  [[nodiscard]] std::string named(std::string_view part) const { return std::string(prefix).append(part); }
};

inline Sizes patch_of(ConfigFields& config, std::int64_t usual) {
  const std::int64_t side = dit_width(config, "patch_size", usual);
  const std::int64_t frames = dit_width(config, "patch_size_t", 1);
  if (side > 16 || frames > 16) config.fail("is larger than gpumem takes", "patch_size");
  return {frames, side, side};
}

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = dit_sizes(config, {.heads = 16, .channels = 65, .text_width = 3584, .text_field = "text_embed_dim"});
  model.sizes.out_channels = dit_width(config, "out_channels", 32);
  model.layers = config.layers_or("num_layers", 54);
  model.refiners = dit_layers(config, "num_refiner_layers", 2);
  model.inner = dit_inner(config, "mlp_ratio", model.sizes.width, 4.0);
  model.glyphs = dit_width(config, "text_embed_2_dim", 1472);
  model.image = dit_width(config, "image_embed_dim", 1152);
  model.patch = patch_of(config, 1);
  if (config.flag("use_meanflow", false)) config.fail("is not known", "use_meanflow");
  config.ignore({"qk_norm", "rope_theta", "rope_axes_dim", "target_size", "task_type"});
  return model;
}

/// Of the streams' joined tokens: whether two see each other, as booleans twice, and as numbers that PyTorch makes.
inline Tensor mask_of(Forward& f, Tensor joined) {
  const Tensor rows = f.call("causal_mask", {joined}, {{"padded", true}, {"dtype", std::string("bool")}});
  const Tensor both = f.call("causal_mask", {joined}, {{"padded", true}, {"dtype", std::string("bool")}});
  const Tensor numbers = f.call("causal_mask", {joined}, {{"padded", true}});
  return f.leave_function(numbers, {rows, both});
}

inline TwoStreams attention(Forward& f, const Model& model, const TwoStreams& in, const PairTables& tables) {
  const InModule inside(f, "attn", "Attention");
  const std::int64_t width = model.sizes.width;
  const std::int64_t each = model.sizes.head_width;
  const auto heads = [&](std::string_view name, Tensor from) {
    return as_heads(f, f.linear(name, from, width, width), each);
  };
  const Tensor first = heads("to_q", in.image);
  const Tensor second = heads("to_k", in.image);
  const Tensor value = heads("to_v", in.image);
  const Tensor query = turn_pairs(f, own_rms_norm(f, "norm_q", first, each), tables);
  const Tensor key = turn_pairs(f, own_rms_norm(f, "norm_k", second, each), tables);
  const Tensor third = heads("add_q_proj", in.text);
  const Tensor fourth = heads("add_k_proj", in.text);
  const Tensor text_value = heads("add_v_proj", in.text);
  const Tensor text_query = own_rms_norm(f, "norm_added_q", third, each);
  const Tensor text_key = own_rms_norm(f, "norm_added_k", fourth, each);
  const Tensor all = f.concatenate({query, text_query}, 1);
  const Tensor keys = f.concatenate({key, text_key}, 1);
  const Tensor values = f.concatenate({value, text_value}, 1);
  const Tensor mixed = attend_heads(f, all, keys, values, model.mask ? *model.mask : mask_of(f, all));
  const std::vector<Tensor> parts = f.split(mixed, 1, {model.lengths.image, model.lengths.text});
  TwoStreams left;
  {
    const InModule out(f, "to_out", "ModuleList");
    left.image = f.linear("0", parts[0], width, width);
  }
  left.text = f.linear("to_add_out", parts[1], width, width);
  return left;
}

inline TwoStreams block(Forward& f, const Model& model, const TwoStreams& in, Tensor time, const PairTables& tables) {
  const std::int64_t width = model.sizes.width;
  const auto rows_of = [&](std::string_view name) {
    const InModule inside(f, name, "AdaLayerNormZero");
    return modulation(f, "linear", time, width, width, 6);
  };
  const std::vector<Tensor> image = rows_of("norm1");
  const Tensor normed = modulated(f, bare_norm(f, "norm1.norm", in.image, width), image[1], image[0]);
  const std::vector<Tensor> text = rows_of("norm1_context");
  const Tensor normed_text = modulated(f, bare_norm(f, "norm1_context.norm", in.text, width), text[1], text[0]);
  const TwoStreams mixed = attention(f, model, {normed, normed_text}, tables);
  const auto fed = [&](Tensor residual, Tensor branch, const std::vector<Tensor>& rows, std::string_view norm,
                       std::string_view layers) {
    const Tensor attended = gated_sum(f, residual, rows[2], branch);
    const Tensor again = modulated(f, bare_norm(f, norm, attended, width), rows[4], rows[3]);
    return gated_sum(f, attended, rows[5],
                     dit_feed_forward(f, layers, again, width, model.inner, DitActivation::gelu_tanh));
  };
  const Tensor image_left = fed(in.image, mixed.image, image, "norm2", "ff");
  return {image_left, fed(in.text, mixed.text, text, "norm2_context", "ff_context")};
}

/// HunyuanVideoIndividualTokenRefinerBlock.
inline Tensor refined(Forward& f, const Model& model, Tensor hidden, Tensor time) {
  const std::int64_t width = model.sizes.width;
  const Tensor normed = f.layer_norm("norm1", hidden, width);
  const PlainAttention options = {.name = "attn",
                                  .width = width,
                                  .inner = width,
                                  .head_width = model.sizes.head_width,
                                  .source_width = width,
                                  .mask = f.call("causal_mask", {normed}, {{"padded", true}})};
  const Tensor mixed = plain_attention(f, options, normed, normed);
  std::vector<Tensor> gates;
  {
    const InModule inside(f, "norm_out", model.named("AdaNorm"));
    const Tensor open = f.activation("nonlinearity", time, "silu");
    gates = row_chunks(f, f.linear("linear", open, width, 2 * width), 2, width);
  }
  const Tensor attended = gated_sum(f, hidden, gates[0], mixed);
  const Tensor again = f.layer_norm("norm2", attended, width);
  return gated_sum(f, attended, gates[1],
                   dit_feed_forward(f, "ff", again, width, 4 * width, DitActivation::linear_silu));
}

/// HunyuanVideoTokenRefiner: the prompt's tokens among themselves, under the timestep and their own mean.
inline Tensor prompt_tokens(Forward& f, const Model& model, const DenoiserSample& sample, Tensor sinusoids) {
  constexpr std::int64_t kSinusoids = 256;
  const std::int64_t width = model.sizes.width;
  const Tensor prompt = text_input(f, sample, model.sizes.text_width);
  const InModule inside(f, "context_embedder", model.named("TokenRefiner"));
  const Tensor mean = f.call("sum", {f.scale(f.to(prompt, "float32"))}, {{"dim", std::int64_t{1}}});
  const Tensor pooled = f.as_type_of(f.scale(mean), prompt);
  Tensor time = 0;
  {
    const InModule conditions(f, "time_text_embed", "CombinedTimestepTextProjEmbeddings");
    const Tensor step = timestep_embedding(f, "timestep_embedder", sinusoids, kSinusoids, width);
    time = f.add(step, text_projection(f, "text_embedder", pooled, model.sizes.text_width, width, "silu"));
  }
  const Tensor hidden = f.linear("proj_in", prompt, model.sizes.text_width, width);
  const InModule refiner(f, "token_refiner", model.named("IndividualTokenRefiner"));
  return stack(f, "refiner_blocks", model.named("IndividualTokenRefinerBlock"), model.refiners, hidden,
               [&](Tensor x, std::int64_t) { return refined(f, model, x, time); });
}

inline Tensor glyph_tokens(Forward& f, const Model& model, std::int64_t tokens) {
  const Tensor features = f.sample_input("encoder_hidden_states_2", {tokens, model.glyphs});
  const InModule inside(f, "context_embedder_2", model.named("ByT5TextProjection"));
  const Tensor normed = f.layer_norm("norm", features, model.glyphs);
  const Tensor first = f.call("gelu", {f.linear("linear_1", normed, model.glyphs, kGlyphHidden)});
  const Tensor second = f.call("gelu", {f.linear("linear_2", first, kGlyphHidden, kGlyphHidden)});
  return f.linear("linear_3", second, kGlyphHidden, model.sizes.width);
}

inline Tensor image_tokens(Forward& f, const Model& model) {
  const Tensor features = f.sample_input("image_embeds", {kImageTokens, model.image});
  const InModule inside(f, "image_embedder", "HunyuanVideo15ImageProjection");
  const Tensor normed = f.layer_norm("norm_in", features, model.image);
  const Tensor open = f.call("gelu", {f.linear("linear_1", normed, model.image, model.image)});
  return f.layer_norm("norm_out", f.linear("linear_2", open, model.image, model.sizes.width), model.sizes.width);
}

/// All conditions, each with the embedding of its kind.
inline Tensor conditions_of(Forward& f, const Model& model, const DenoiserSample& sample, Tensor sinusoids) {
  const std::int64_t width = model.sizes.width;
  const auto marked = [&](Tensor tokens, std::string_view kinds, std::int64_t count) {
    const Tensor ids = f.sample_input(kinds, {count});
    return f.add(tokens, f.embedding("cond_type_embed", ids, 3, width));
  };
  const Tensor prompt = marked(prompt_tokens(f, model, sample, sinusoids), "prompt_kinds", sample.text);
  f.repeat_parameters(true);
  const Tensor glyph_ids = f.sample_input("glyph_kinds", {kGlyphTokens});
  const Tensor glyph_mark = f.embedding("cond_type_embed", glyph_ids, 3, width);
  const Tensor image_ids = f.sample_input("image_kinds", {kImageTokens});
  const Tensor image_mark = f.embedding("cond_type_embed", image_ids, 3, width);
  f.repeat_parameters(false);
  const Tensor glyphs = f.add(glyph_tokens(f, model, kGlyphTokens), glyph_mark);
  const Tensor image = f.add(image_tokens(f, model), image_mark);
  return f.call("clone", {f.concatenate({image, glyphs, prompt}, 1)});  // torch.stack of the samples
}

/// The latents' patches as tokens.
inline Tensor patches_of(Forward& f, const Model& model, Tensor latents) {
  const Tensor cut = f.layer("x_embedder.proj", "Conv3d", "conv3d", {latents},
                             {{"in_channels", model.sizes.channels},
                              {"out_channels", model.sizes.width},
                              {"kernel_size", model.patch},
                              {"stride", model.patch}});
  return f.permute(f.flatten(cut, 2, 4), {0, 2, 1});
}

inline std::int64_t patch_count(const Model& model, const DenoiserSample& sample) {
  const std::int64_t frames = std::max<std::int64_t>(sample.frames / model.patch[0], 1);
  return frames * (sample.height / model.patch[1]) * (sample.width / model.patch[2]);
}

inline void predict(Forward& f, const Model& model, Tensor video, Tensor time) {
  const std::int64_t width = model.sizes.width;
  const Tensor normed = continuous_norm(f, "norm_out", video, time, width, width);
  const std::int64_t out = model.patch[0] * model.patch[1] * model.patch[2] * model.sizes.out_channels;
  denoiser_loss(f, f.call("clone", {f.linear("proj_out", normed, width, out)}), {model.lengths.image, out});
}

/// What print(model) shows of each HunyuanVideo and HunyuanImage: all but the heads, which are 128 wide.
inline void read_shared_tree(TreeFields& t) {
  std::int64_t area = 1;
  const bool frames = t.class_of("x_embedder.proj") == "Conv3d";
  for (std::size_t axis = 0; axis < (frames ? 3 : 2); ++axis) {
    area *= std::min<std::int64_t>(t.value("x_embedder.proj", "kernel_size", axis).value_or(1), 64);
  }
  const std::int64_t width = denoiser_tree(t, "x_embedder.proj", "proj_out", area);
  t.size("text_embed_dim", "context_embedder.proj_in", "in_features");
  t.count("num_layers", "transformer_blocks");
  t.count("num_refiner_layers", "context_embedder.token_refiner.refiner_blocks");
  t.ratio("mlp_ratio", "transformer_blocks.0.ff.net.0.proj", "out_features", width);
  denoiser_heads_tree(t, width, 128, "HunyuanVideo");
}

}  // namespace hunyuan_video15

namespace hunyuan_video {

using hunyuan_video15::Model;

inline constexpr std::array<std::string_view, 2> kBlocks = {"HunyuanVideoTransformerBlock",
                                                            "HunyuanVideoSingleTransformerBlock"};

/// What the first version has besides.
struct Own {
  std::int64_t singles = 40;
  std::int64_t pooled = 768;
  bool guided = true;
};

inline Model read(ConfigFields& config, Own& own) {
  Model model;
  model.prefix = "HunyuanVideo";
  model.sizes = dit_sizes(config, {.heads = 24, .channels = 16, .text_width = 4096, .text_field = "text_embed_dim"});
  model.sizes.out_channels = dit_width(config, "out_channels", model.sizes.channels);
  model.layers = config.layers_or("num_layers", 20);
  model.refiners = dit_layers(config, "num_refiner_layers", 2);
  model.inner = dit_inner(config, "mlp_ratio", model.sizes.width, 4.0);
  model.patch = hunyuan_video15::patch_of(config, 2);
  own.singles = dit_layers(config, "num_single_layers", 40);
  own.pooled = dit_width(config, "pooled_projection_dim", 768);
  own.guided = config.flag("guidance_embeds", true);
  if (model.sizes.head_width % 2 != 0) config.fail("must be even", "attention_head_dim");
  if (config.text({"image_condition_type"}, "") == "token_replace") {
    config.fail("is a variant that is not known", "image_condition_type");
  }
  config.ignore({"qk_norm", "rope_theta", "rope_axes_dim", "image_condition_type"});
  return model;
}

/// HunyuanVideoConditionEmbedding.
inline Tensor conditions(Forward& f, const Model& model, const Own& own, Tensor sinusoids) {
  constexpr std::int64_t kSinusoids = 256;
  const std::int64_t width = model.sizes.width;
  const Tensor pooled = f.sample_input("pooled_projections", {own.pooled});
  const Tensor guidance = own.guided ? timestep_input(f, "guidance", kSinusoids) : 0;
  const InModule inside(f, "time_text_embed", "HunyuanVideoConditionEmbedding");
  Tensor sum = timestep_embedding(f, "timestep_embedder", sinusoids, kSinusoids, width);
  const Tensor text = text_projection(f, "text_embedder", pooled, own.pooled, width, "silu");
  if (own.guided) sum = f.add(sum, timestep_embedding(f, "guidance_embedder", guidance, kSinusoids, width));
  return f.add(sum, text);
}

/// Attention over both streams, of which the video's part is turned.
inline Tensor joint_attention_of(Forward& f, const Model& model, Tensor hidden, const PairTables& tables) {
  const InModule inside(f, "attn", "Attention");
  const std::int64_t width = model.sizes.width;
  const std::int64_t each = model.sizes.head_width;
  const auto heads = [&](std::string_view name) { return as_heads(f, f.linear(name, hidden, width, width), each); };
  const auto turned = [&](Tensor tensor) {
    const std::vector<Tensor> parts = f.split(tensor, 1, {model.lengths.image, model.lengths.text});
    return f.concatenate({turn_pairs(f, parts[0], tables), parts[1]}, 1);
  };
  const Tensor first = heads("to_q");
  const Tensor second = heads("to_k");
  const Tensor value = heads("to_v");
  const Tensor normed = own_rms_norm(f, "norm_q", first, each);
  const Tensor normed_key = own_rms_norm(f, "norm_k", second, each);
  const Tensor query = turned(normed);
  return attend_heads(f, query, turned(normed_key), value, model.mask);
}

/// The streams are joined, parted for attention, which joins them again, and parted at the end.
inline TwoStreams single_block(Forward& f, const Model& model, const TwoStreams& in, Tensor time,
                               const PairTables& tables) {
  const std::int64_t width = model.sizes.width;
  const Sizes lengths = {model.lengths.image, model.lengths.text};
  const Tensor joined = f.concatenate({in.image, in.text}, 1);
  std::vector<Tensor> rows;
  {
    const InModule inside(f, "norm", "AdaLayerNormZeroSingle");
    rows = modulation(f, "linear", time, width, width, 3);
  }
  const Tensor normed = modulated(f, bare_norm(f, "norm.norm", joined, width), rows[1], rows[0]);
  const Tensor wide = f.linear("proj_mlp", normed, width, model.inner);
  const Tensor active = f.layer("act_mlp", "GELU", "gelu", {wide}, {});
  const Tensor again = f.concatenate(f.split(normed, 1, lengths), 1);
  const Tensor mixed = joint_attention_of(f, model, again, tables);
  const Tensor both = f.concatenate({f.concatenate(f.split(mixed, 1, lengths), 1), active}, 2);
  const Tensor left = gated_sum(f, joined, rows[2], f.linear("proj_out", both, width + model.inner, width));
  const std::vector<Tensor> parts = f.split(left, 1, lengths);
  return {parts[0], parts[1]};
}

inline TwoStreams all_blocks(Forward& f, const Model& model, const Own& own, TwoStreams streams, Tensor time,
                             const PairTables& tables) {
  streams = stack(f, "transformer_blocks", kBlocks[0], model.layers, streams,
                  [&](const TwoStreams& x, std::int64_t) { return hunyuan_video15::block(f, model, x, time, tables); });
  return stack(f, "single_transformer_blocks", kBlocks[1], own.singles, streams,
               [&](const TwoStreams& x, std::int64_t) { return single_block(f, model, x, time, tables); });
}

inline constexpr auto kClasses =
    std::to_array<ModelClass>({{"HunyuanVideoTransformer3D", "HunyuanVideoTransformer3DModel"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  hunyuan_video15::read_shared_tree(t);
  t.size("patch_size_t", "x_embedder.proj", "kernel_size");
  t.size("patch_size", "x_embedder.proj", "kernel_size", 1);
  t.count("num_single_layers", "single_transformer_blocks");
  t.size("pooled_projection_dim", "time_text_embed.text_embedder.linear_1", "in_features");
  t.there("guidance_embeds", "time_text_embed.guidance_embedder");
  const bool replaces = t.class_of("transformer_blocks.0") == "HunyuanVideoTokenReplaceTransformerBlock";
  if (replaces) t.set_string("image_condition_type", "token_replace");
}

}  // namespace hunyuan_video

}  // namespace gpumem::architectures
