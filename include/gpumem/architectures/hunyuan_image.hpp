// HunyuanImage 2.1, whose blocks are HunyuanVideo's, with ByT5's features of what is to be written in the image; and
// FramePack, which is HunyuanVideo with tokens of earlier frames, the more of them to a token the older they are.
// Source: diffusers 0.40, models/transformers/transformer_hunyuanimage.py, transformer_hunyuan_video_framepack.py;
// pipelines/hunyuan_image (tokens of the prompts), pipelines/hunyuan_video/pipeline_hunyuan_video_framepack.py
// (frames).
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
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

inline constexpr Architecture kArchitecture = {.name = "hunyuan_image",
                                               .model_types = names<"HunyuanImageTransformer2DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
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

inline constexpr Architecture kArchitecture = {.name = "framepack",
                                               .model_types = names<"HunyuanVideoFramepackTransformer3DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
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

inline constexpr Architecture kArchitecture = {.name = "hunyuan_video15",
                                               .model_types = names<"HunyuanVideo15Transformer3DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
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
                                               .blocks = kBlocks};

}  // namespace hunyuan_video

}  // namespace gpumem::architectures
