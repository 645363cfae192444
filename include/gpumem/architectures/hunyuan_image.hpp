// HunyuanImage 2.1, whose blocks are HunyuanVideo's, with ByT5's features of what is to be written in the image; and
// FramePack, which is HunyuanVideo with tokens of earlier frames, the more of them to a token the older they are.
// Source: diffusers 0.40, models/transformers/transformer_hunyuanimage.py, transformer_hunyuan_video_framepack.py;
// pipelines/hunyuan_image (tokens of the prompts), pipelines/hunyuan_video/pipeline_hunyuan_video_framepack.py
// (frames). Behind them DiT, whose source is named there.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/denoiser.hpp"
#include "gpumem/architectures/dit_parts.hpp"
#include "gpumem/architectures/hunyuan_parts.hpp"

namespace gpumem::architectures {

namespace hunyuan_image {

using hunyuan_video15::Model;

inline constexpr std::array<std::string_view, 2> kBlocks = {"HunyuanImageTransformerBlock",
                                                            "HunyuanImageSingleTransformerBlock"};
inline constexpr std::int64_t kGlyphTokens = 128;

/// What it has besides.
struct Own {
  std::int64_t singles = 40;
  bool guided = false;
  bool two_times = false;  ///< MeanFlow: a second timestep
};

inline Model read(ConfigFields& config, Own& own) {
  Model model;
  model.prefix = "HunyuanImage";
  model.sizes = dit_sizes(config, {.heads = 28, .channels = 64, .text_width = 3584, .text_field = "text_embed_dim"});
  model.layers = config.layers_or("num_layers", 20);
  model.refiners = dit_layers(config, "num_refiner_layers", 2);
  model.inner = dit_inner(config, "mlp_ratio", model.sizes.width, 4.0);
  model.glyphs = std::min<std::int64_t>(config.count_or("text_embed_2_dim", 0), 1 << 20);
  model.patch = dit_list(config, "patch_size", {1, 1});
  own.singles = dit_layers(config, "num_single_layers", 40);
  own.guided = config.flag("guidance_embeds", false);
  own.two_times = config.flag("use_meanflow", false);
  const bool images = model.patch.size() == 2 && model.patch[0] == model.patch[1] && model.patch[0] <= 16;
  if (!images) config.fail("must be two sizes, alike and at most 16", "patch_size");
  if (model.sizes.head_width % 2 != 0) config.fail("must be even", "attention_head_dim");
  config.ignore({"qk_norm", "rope_theta", "rope_axes_dim"});
  return model;
}

/// HunyuanImageCombinedTimeGuidanceEmbedding.
inline Tensor conditions(Forward& f, const Model& model, const Own& own, Tensor sinusoids) {
  constexpr std::int64_t kSinusoids = 256;
  const std::int64_t width = model.sizes.width;
  const Tensor second = own.two_times ? timestep_input(f, "timestep_r", kSinusoids) : 0;
  const Tensor guidance = own.guided ? timestep_input(f, "guidance", kSinusoids) : 0;
  const InModule inside(f, "time_guidance_embed", "HunyuanImageCombinedTimeGuidanceEmbedding");
  Tensor sum = timestep_embedding(f, "timestep_embedder", sinusoids, kSinusoids, width);
  if (own.two_times) {
    const Tensor both = f.add(sum, timestep_embedding(f, "timestep_embedder_r", second, kSinusoids, width));
    sum = f.call("div", {both});
  }
  if (own.guided) sum = f.add(sum, timestep_embedding(f, "guidance_embedder", guidance, kSinusoids, width));
  return sum;
}

inline Tensor image_patches(Forward& f, const Model& model, Tensor latents) {
  const Tensor cut = f.layer("x_embedder.proj", "Conv2d", "conv2d", {latents},
                             {{"in_channels", model.sizes.channels},
                              {"out_channels", model.sizes.width},
                              {"kernel_size", model.patch},
                              {"stride", model.patch}});
  return f.permute(f.flatten(cut, 2, 3), {0, 2, 1});
}

/// The prompt's tokens, behind those of what is to be written.
inline Tensor texts_of(Forward& f, const Model& model, const DenoiserSample& sample, Tensor sinusoids) {
  const Tensor prompt = hunyuan_video15::prompt_tokens(f, model, sample, sinusoids);
  if (model.glyphs == 0) return prompt;
  const Tensor glyphs = hunyuan_video15::glyph_tokens(f, model, kGlyphTokens);
  return f.call("clone", {f.concatenate({glyphs, prompt}, 1)});  // torch.stack of the samples
}

inline void write(ConfigFields& config, Head, Forward& f) {
  constexpr std::int64_t kSinusoids = 256;
  Own own;
  Model model = read(config, own);
  if (!config.status()) return;
  const DenoiserSample sample =
      denoiser_sample(f, {.side = 32, .patch = model.patch[0], .usual_side = 2048, .usual_text = 1000});
  model.lengths = {sample.height * sample.width / (model.patch[0] * model.patch[0]),
                   sample.text + (model.glyphs > 0 ? kGlyphTokens : 0)};
  const Tensor latents = latent_input(f, sample, model.sizes.channels);
  const Tensor sinusoids = timestep_input(f, "timestep", kSinusoids);
  const Tensor time = conditions(f, model, own, sinusoids);
  TwoStreams streams;
  streams.image = image_patches(f, model, latents);
  const PairTables tables = pair_tables(f, {streams.image}, model.sizes.head_width);
  streams.text = texts_of(f, model, sample, sinusoids);
  model.mask = seen_tokens(f, f.concatenate({streams.image, streams.text}, 1));
  streams = stack(f, "transformer_blocks", kBlocks[0], model.layers, streams,
                  [&](const TwoStreams& x, std::int64_t) { return hunyuan_video15::block(f, model, x, time, tables); });
  streams =
      stack(f, "single_transformer_blocks", kBlocks[1], own.singles, streams,
            [&](const TwoStreams& x, std::int64_t) { return hunyuan_video::single_block(f, model, x, time, tables); });
  const Tensor normed = continuous_norm(f, "norm_out", streams.image, time, model.sizes.width, model.sizes.width);
  const std::int64_t out = model.patch[0] * model.patch[0] * model.sizes.out_channels;
  denoiser_loss(f, f.call("clone", {f.linear("proj_out", normed, model.sizes.width, out)}), {model.lengths.image, out});
}

inline constexpr auto kClasses =
    std::to_array<ModelClass>({{"HunyuanImageTransformer2D", "HunyuanImageTransformer2DModel"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  hunyuan_video15::read_shared_tree(t);
  const std::int64_t patch = t.value("x_embedder.proj", "kernel_size").value_or(1);
  t.list("patch_size", std::array{patch, patch});
  t.count("num_single_layers", "single_transformer_blocks");
  t.size("text_embed_2_dim", "context_embedder_2.linear_1", "in_features");
  t.there("guidance_embeds", "time_guidance_embed.guidance_embedder");
  t.there("use_meanflow", "time_guidance_embed.timestep_embedder_r");
}

inline constexpr Architecture kArchitecture = {.name = "hunyuan_image",
                                               .model_types = names<"HunyuanImageTransformer2DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .depends_on_images = true,
                                               .blocks = kBlocks};

}  // namespace hunyuan_image

namespace framepack {

using hunyuan_video15::Model;

/// Latents of earlier frames: of which kernel, and how many there are of one.
struct History {
  std::string_view name;
  Sizes kernel;
  std::int64_t frames;
};

/// The image and the last frame as they are, two frames of twice the size, sixteen of four times.
inline const std::array<History, 3> kHistory = {
    {{"proj_4x", {4, 8, 8}, 16}, {"proj_2x", {2, 4, 4}, 2}, {"proj", {1, 2, 2}, 2}}};

/// Their tokens, the oldest first, and how many they are.
inline std::vector<Tensor> history_of(Forward& f, const Model& model, const DenoiserSample& sample,
                                      std::int64_t& count) {
  std::vector<Tensor> made;
  const std::int64_t channels = model.sizes.channels;
  for (const History& part : kHistory) {
    const auto up = [&](std::int64_t side) { return (side + part.kernel[1] - 1) / part.kernel[1]; };
    const Sizes tokens = {part.frames / part.kernel[0], up(sample.height), up(sample.width)};
    const Sizes padded = {tokens[0] * part.kernel[0], tokens[1] * part.kernel[1], tokens[2] * part.kernel[2]};
    const Tensor latents =
        f.sample_input("latents_" + std::string(part.name), {channels, padded[0], padded[1], padded[2]});
    const InModule inside(f, "clean_x_embedder", "HunyuanVideoHistoryPatchEmbed");
    const Tensor cut = f.layer(part.name, "Conv3d", "conv3d", {latents},
                               {{"in_channels", channels},
                                {"out_channels", model.sizes.width},
                                {"kernel_size", part.kernel},
                                {"stride", part.kernel}});
    made.push_back(f.permute(f.flatten(cut, 2, 4), {0, 2, 1}));
    count += tokens[0] * tokens[1] * tokens[2];
  }
  return made;
}

/// FramepackClipVisionProjection.
inline Tensor image_tokens(Forward& f, const Model& model, std::int64_t from) {
  const std::int64_t width = model.sizes.width;
  const Tensor features = f.sample_input("image_embeds", {hunyuan_video15::kImageTokens, from});
  const InModule inside(f, "image_projection", "FramepackClipVisionProjection");
  return f.linear("down", f.call("silu", {f.linear("up", features, from, 3 * width)}), 3 * width, width);
}

inline void write(ConfigFields& config, Head, Forward& f) {
  constexpr std::int64_t kSinusoids = 256;
  hunyuan_video::Own own;
  Model model = hunyuan_video::read(config, own);
  const bool history = config.flag("has_clean_x_embedder", false);
  const bool images = config.flag("has_image_proj", false);
  const std::int64_t image_width = dit_width(config, "image_proj_dim", 1152);
  if (!config.status()) return;
  const DenoiserSample sample = denoiser_sample(
      f, {.side = 8, .frame = 4, .patch = model.patch[1], .usual_side = 640, .usual_frames = 33, .usual_text = 256});
  const std::int64_t own_tokens = hunyuan_video15::patch_count(model, sample);
  model.lengths = {own_tokens, sample.text + (images ? hunyuan_video15::kImageTokens : 0)};
  const Tensor latents = latent_input(f, sample, model.sizes.channels, true);
  const Tensor sinusoids = timestep_input(f, "timestep", kSinusoids);
  TwoStreams streams;
  std::vector<Tensor> tokens;
  if (history) tokens = history_of(f, model, sample, model.lengths.image);
  tokens.push_back(hunyuan_video15::patches_of(f, model, latents));
  streams.image = history ? f.concatenate(tokens, 1) : tokens.front();
  const PairTables tables = pair_tables(f, {streams.image}, model.sizes.head_width);
  const Tensor time = hunyuan_video::conditions(f, model, own, sinusoids);
  streams.text = hunyuan_video15::prompt_tokens(f, model, sample, sinusoids);
  if (images) streams.text = f.concatenate({image_tokens(f, model, image_width), streams.text}, 1);
  model.mask = seen_tokens(f, f.concatenate({streams.image, streams.text}, 1));
  streams = hunyuan_video::all_blocks(f, model, own, streams, time, tables);
  const Tensor made = history ? f.slice(streams.image, 1, model.lengths.image - own_tokens, own_tokens) : streams.image;
  model.lengths.image = own_tokens;
  hunyuan_video15::predict(f, model, made, time);
}

inline constexpr auto kTreeClasses =
    std::to_array<ModelClass>({{"HunyuanVideoFramepackTransformer3D", "HunyuanVideoFramepackTransformer3DModel"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  hunyuan_video::read_tree(t);
  t.there("has_clean_x_embedder", "clean_x_embedder");
  t.there("has_image_proj", "image_projection");
  t.size("image_proj_dim", "image_projection.up", "in_features");
}

inline constexpr Architecture kArchitecture = {.name = "framepack",
                                               .model_types = names<"HunyuanVideoFramepackTransformer3DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .classes = kTreeClasses,
                                               .read_tree = read_tree,
                                               .depends_on_images = true,
                                               .blocks = hunyuan_video::kBlocks};

}  // namespace framepack

// HunyuanVideo: blocks with a stream of video tokens and one of the prompt's, which a few blocks refine, then blocks
// over all tokens. 1.5 has the first kind alone, whose second stream is an image's tokens, a ByT5 prompt's and the
// prompt's; a mask of which tokens see each other, as large as the square of the sequence, is made anew in each block.
// Source: diffusers 0.38, models/transformers/transformer_hunyuan_video.py and transformer_hunyuan_video15.py.

namespace hunyuan_video15 {

inline void write(ConfigFields& config, Head, Forward& f) {
  constexpr std::int64_t kSinusoids = 256;
  Model model = read(config);
  if (!config.status()) return;
  const std::int64_t width = model.sizes.width;
  const DenoiserSample sample = denoiser_sample(
      f, {.side = 16, .frame = 4, .patch = model.patch[1], .usual_side = 480, .usual_frames = 121, .usual_text = 1000});
  model.lengths = {patch_count(model, sample), sample.text + kGlyphTokens + kImageTokens};
  const Tensor latents = latent_input(f, sample, model.sizes.channels, true);
  const Tensor sinusoids = timestep_input(f, "timestep", kSinusoids);
  const Tensor time = timestep_embedding(f, "time_embed.timestep_embedder", sinusoids, kSinusoids, width);
  TwoStreams streams;
  streams.image = patches_of(f, model, latents);
  const PairTables tables = pair_tables(f, {streams.image}, model.sizes.head_width);
  streams.text = conditions_of(f, model, sample, sinusoids);
  streams = stack(f, "transformer_blocks", kBlocks[0], model.layers, streams,
                  [&](const TwoStreams& x, std::int64_t) { return block(f, model, x, time, tables); });
  predict(f, model, streams.image, time);
}

inline constexpr auto kTreeClasses =
    std::to_array<ModelClass>({{"HunyuanVideo15Transformer3D", "HunyuanVideo15Transformer3DModel"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  read_shared_tree(t);
  t.size("patch_size_t", "x_embedder.proj", "kernel_size");
  t.size("patch_size", "x_embedder.proj", "kernel_size", 1);
  t.size("text_embed_2_dim", "context_embedder_2.linear_1", "in_features");
  t.size("image_embed_dim", "image_embedder.linear_1", "in_features");
  t.there("use_meanflow", "time_embed.timestep_embedder_r");
}

inline constexpr Architecture kArchitecture = {.name = "hunyuan_video15",
                                               .model_types = names<"HunyuanVideo15Transformer3DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .classes = kTreeClasses,
                                               .read_tree = read_tree,
                                               .depends_on_images = true,
                                               .blocks = kBlocks};

}  // namespace hunyuan_video15

namespace hunyuan_video {

inline void write(ConfigFields& config, Head, Forward& f) {
  constexpr std::int64_t kSinusoids = 256;
  Own own;
  Model model = read(config, own);
  if (!config.status()) return;
  const DenoiserSample sample = denoiser_sample(
      f, {.side = 8, .frame = 4, .patch = model.patch[1], .usual_side = 720, .usual_frames = 129, .usual_text = 256});
  model.lengths = {hunyuan_video15::patch_count(model, sample), sample.text};
  const Tensor latents = latent_input(f, sample, model.sizes.channels, true);
  const Tensor sinusoids = timestep_input(f, "timestep", kSinusoids);
  const Tensor time = conditions(f, model, own, sinusoids);
  TwoStreams streams;
  streams.image = hunyuan_video15::patches_of(f, model, latents);
  const PairTables tables = pair_tables(f, {streams.image}, model.sizes.head_width);
  streams.text = hunyuan_video15::prompt_tokens(f, model, sample, sinusoids);
  model.mask = seen_tokens(f, f.concatenate({streams.image, streams.text}, 1));
  streams = all_blocks(f, model, own, streams, time, tables);
  hunyuan_video15::predict(f, model, streams.image, time);
}

inline constexpr Architecture kArchitecture = {.name = "hunyuan_video",
                                               .model_types = names<"HunyuanVideoTransformer3DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .depends_on_images = true,
                                               .blocks = kBlocks};

}  // namespace hunyuan_video

// DiT: blocks that read a class in place of a prompt; each embeds the timestep and the class by itself.
// Source: diffusers 0.40, models/transformers/dit_transformer_2d.py, models/attention.py (BasicTransformerBlock),
// models/normalization.py (AdaLayerNormZero), models/embeddings.py (CombinedTimestepLabelEmbeddings).

namespace dit {

inline constexpr std::array<std::string_view, 1> kBlocks = {"BasicTransformerBlock"};
inline constexpr std::int64_t kSinusoids = 256;

struct Model {
  DitSizes sizes;
  std::int64_t layers = 28;
  std::int64_t patch = 2;
  std::int64_t side = 32;
  std::int64_t classes = 1000;
  bool bias = true;
  bool affine = false;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = dit_sizes(config, {.heads = 16, .head_width = 72, .channels = 4});
  model.layers = config.layers_or("num_layers", 28);
  model.patch = dit_patch(config);
  model.side = config.size_or({"sample_size"}, 32);
  model.classes = dit_width(config, "num_embeds_ada_norm", 1000);
  model.bias = config.flag("attention_bias", true);
  model.affine = config.flag("norm_elementwise_affine", false);
  if (model.side < model.patch || model.side > 4096) config.fail("is larger than gpumem takes", "sample_size");
  if (config.text({"norm_type"}, "ada_norm_zero") != "ada_norm_zero") config.fail("is not known", "norm_type");
  if (config.text({"activation_fn"}, "gelu-approximate") != "gelu-approximate") {
    config.fail("is not known", "activation_fn");
  }
  config.ignore({"dropout", "norm_num_groups", "upcast_attention", "norm_eps"});
  return model;
}

/// What a step brings beside the latents.
struct Told {
  Tensor sinusoids = 0;
  Tensor label = 0;
};

inline Tensor embedded(Forward& f, const Model& model, const Told& told) {
  const std::int64_t width = model.sizes.width;
  const InModule inside(f, "emb", "CombinedTimestepLabelEmbeddings");
  const Tensor time = timestep_embedding(f, "timestep_embedder", told.sinusoids, kSinusoids, width);
  const InModule table(f, "class_embedder", "LabelEmbedding");
  // One row more, for labels that are dropped.
  const Tensor label = f.embedding("embedding_table", told.label, model.classes + 1, width);
  return f.add(time, f.flatten(label, 1, 2));
}

inline Tensor block(Forward& f, const Model& model, Tensor hidden, const Told& told) {
  const std::int64_t width = model.sizes.width;
  std::vector<Tensor> rows;
  Tensor normed = 0;
  {
    const InModule inside(f, "norm1", "AdaLayerNormZero");
    rows = modulation(f, "linear", embedded(f, model, told), width, width, 6);
    normed = modulated(f, bare_norm(f, "norm", hidden, width), rows[1], rows[0]);
  }
  const PlainAttention options = {
      .width = width, .inner = width, .head_width = model.sizes.head_width, .source_width = width, .bias = model.bias};
  const Tensor mixed = f.add(f.multiply(rows[2], plain_attention(f, options, normed, normed)), hidden);
  const Tensor again = modulated(f, affine_norm(f, "norm3", mixed, width, model.affine), rows[4], rows[3]);
  const Tensor fed = dit_feed_forward(f, "ff", again, width, 4 * width, DitActivation::gelu_tanh);
  return f.add(f.multiply(rows[5], fed), mixed);
}

/// The first block's embeddings once more, of which the last norm is made.
inline Tensor first_embedded(Forward& f, const Model& model, const Told& told) {
  f.repeat_parameters(true);
  const InModule list(f, "transformer_blocks", "ModuleList");
  const InModule first(f, "0", kBlocks[0]);
  const InModule norm(f, "norm1", "AdaLayerNormZero");
  const Tensor made = embedded(f, model, told);
  f.repeat_parameters(false);
  return made;
}

inline void write(ConfigFields& config, Head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const std::int64_t width = model.sizes.width;
  const DenoiserSample sample =
      denoiser_sample(f, {.side = 8, .patch = model.patch, .usual_side = 8 * model.side, .usual_text = 0});
  const std::int64_t tokens = sample.height * sample.width / (model.patch * model.patch);
  const Tensor latents = latent_input(f, sample, model.sizes.channels);
  const Told told = {.sinusoids = timestep_input(f, "timestep", kSinusoids),
                     .label = f.fixed_token_input("class_labels", 1)};
  const std::int64_t places = (model.side / model.patch) * (model.side / model.patch);
  Tensor hidden = patch_embedding(f, "pos_embed", latents, model.sizes.channels, width, model.patch, tokens, places);
  hidden = stack(f, "transformer_blocks", kBlocks[0], model.layers, hidden,
                 [&](Tensor x, std::int64_t) { return block(f, model, x, told); });
  const std::vector<Tensor> rows = modulation(f, "proj_out_1", first_embedded(f, model, told), width, width, 2);
  const Tensor normed = modulated(f, bare_norm(f, "norm_out", hidden, width), rows[1], rows[0]);
  loss_of_patches(f, "proj_out_2", normed, model.sizes, model.patch, tokens);
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"DiTTransformer2D", "DiTTransformer2DModel"}});

/// What print(model) shows: all but the heads, which are 72 wide, and the size of the samples that it is for.
inline void read_tree(TreeFields& t) {
  constexpr std::int64_t kHead = 72;
  t.set_string("_class_name", "DiTTransformer2DModel");
  const std::int64_t patch = t.value("pos_embed.proj", "kernel_size").value_or(1);
  const std::int64_t width = t.value("pos_embed.proj", "out_channels").value_or(0);
  t.size("in_channels", "pos_embed.proj", "in_channels");
  t.set("patch_size", patch);
  t.set("attention_head_dim", kHead);
  t.set("num_attention_heads", std::max<std::int64_t>(width / kHead, 1));
  t.count("num_layers", "transformer_blocks");
  t.flag("attention_bias", "transformer_blocks.0.attn1.to_q");
  t.flag("norm_elementwise_affine", "transformer_blocks.0.norm3", "elementwise_affine");
  const auto labels = t.value("transformer_blocks.0.norm1.emb.class_embedder.embedding_table", "num_embeddings");
  t.set("num_embeds_ada_norm", std::max<std::int64_t>(labels.value_or(1001) - 1, 1));
  const std::int64_t out = t.value("proj_out_2", "out_features").value_or(0);
  t.set("out_channels", std::max<std::int64_t>(out / (patch * patch), 1));
  t.assume("heads of width 72 and samples of 256 pixels, as DiT-XL has");
}

inline constexpr Architecture kArchitecture = {.name = "dit",
                                               .model_types = names<"DiTTransformer2DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .depends_on_images = true,
                                               .blocks = kBlocks};

}  // namespace dit

}  // namespace gpumem::architectures
