// HunyuanVideo: blocks with a stream of video tokens and one of the prompt's, which a few blocks refine, then blocks
// over all tokens. 1.5 has the first kind alone, whose second stream is an image's tokens, a ByT5 prompt's and the
// prompt's; a mask of which tokens see each other, as large as the square of the sequence, is made anew in each block.
// Source: diffusers 0.38, models/transformers/transformer_hunyuan_video.py and transformer_hunyuan_video15.py.
#pragma once

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/hunyuan_parts.hpp"

namespace gpumem::architectures {

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
