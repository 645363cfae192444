#pragma once

#include "gpumem/architectures/denoiser.hpp"

#include <algorithm>
#include <string>

#include "gpumem/architectures/architectures.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/core/bytes.hpp"

namespace gpumem::architectures {

namespace denoiser_detail {

/// Of latents: whole patches of pixels, one at least.
GPUMEM_INLINE std::int64_t latent_side(std::int64_t pixels, const LatentRule& rule) {
  return std::max<std::int64_t>(pixels / (rule.side * rule.patch), 1) * rule.patch;
}

/// Of latents: the first frame is one by itself, and so is what is left at the end.
GPUMEM_INLINE std::int64_t latent_frames(std::int64_t frames, const LatentRule& rule) {
  return rule.frame == 0 ? 1 : (std::max<std::int64_t>(frames, 1) - 1) / rule.frame + 1;
}

}  // namespace denoiser_detail

GPUMEM_INLINE DenoiserSample denoiser_sample(Forward& forward, const LatentRule& rule) {
  const model::Images& said = forward.images();
  const PictureSize size = said.size.value_or(PictureSize{rule.usual_side, rule.usual_side});
  const std::int64_t frames = said.frames.value_or(rule.usual_frames);
  DenoiserSample sample;
  sample.height = denoiser_detail::latent_side(size.height, rule);
  sample.width = denoiser_detail::latent_side(size.width, rule);
  sample.frames = denoiser_detail::latent_frames(frames, rule);
  sample.text = said.text_tokens.value_or(rule.usual_text);
  if (said.count && *said.count != 1) forward.fail("makes one image or video a sample; leave `images` out");
  if (rule.frame == 0 && frames != 1) forward.fail("makes images, and no videos; leave `frames` out");
  const std::string what = rule.frame == 0 ? "an image of " : "a video of " + std::to_string(frames) + " frames of ";
  forward.remark("each sample is " + what + std::to_string(size.width) + " x " + std::to_string(size.height) +
                 " pixels" + (said.size ? "" : ", as `image` does not say otherwise") + ", with " +
                 core::with_separators(sample.text) + " tokens of text" +
                 (said.text_tokens ? "" : ", as `seq_length` does not say otherwise"));
  return sample;
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
                                        std::int64_t out) {
  const InModule inside(f, name, "TimestepEmbedding");
  const Tensor active = f.activation("act", f.linear("linear_1", sinusoids, in, out), "silu");
  return f.linear("linear_2", active, out, out);
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

GPUMEM_INLINE void write_frozen_parts(ConfigFields& config, Forward& forward) {
  (void)config;
  (void)forward;
}

}  // namespace gpumem::architectures
