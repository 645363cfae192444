// Input: the config.json of the denoiser of an image or video model (a part of a diffusers folder), and what the job
// says about its samples.
// Output: what all denoisers share: what a sample is once its autoencoder has made latents of it, the inputs of
// forward(), the loss of a training step, and the frozen parts that lie on the GPU besides the denoiser.
// Units: pixels, frames, pixels of latents, tokens.
// Source: diffusers 0.38, examples/text_to_image/train_text_to_image.py,
// examples/dreambooth/train_dreambooth_lora_flux.py: latents and prompt embeddings are made beforehand;
// model_pred.float() and target.float() meet in the loss.
//
// How a denoiser is written: read the fields; ask denoiser_sample() what a sample is; take latent_input(), text_input()
// and the small vectors (sample_input()); make the calls of forward(); end with denoiser_loss(). The row of the
// architecture lists its classes (`_class_name`) under `model_types`, and under `blocks` the classes that
// enable_gradient_checkpointing() wraps one by one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/model/training_job.hpp"

namespace gpumem::architectures {

/// What the autoencoder of a family makes of pixels, and what its samples usually are where the job does not say.
struct LatentRule {
  std::int64_t side = 8;   ///< pixels of a side a pixel of latents
  std::int64_t frame = 0;  ///< frames a frame of latents, after the first one; 0: the model makes images
  std::int64_t patch = 1;  ///< pixels of latents that the model joins, of each side: sizes are cut to whole ones
  std::int64_t usual_side = 1024;
  std::int64_t usual_frames = 1;
  std::int64_t usual_text = 77;  ///< tokens of a prompt; 0: the model reads none
};

/// A sample as the denoiser sees it.
struct DenoiserSample {
  std::int64_t height = 1;  ///< of latents
  std::int64_t width = 1;
  std::int64_t frames = 1;  ///< of latents
  std::int64_t text = 1;    ///< tokens of the prompt
};

/// What the job's `image`, `frames` and `seq_length` make of a sample. What was chosen is remarked on. Writes the parts
/// of the pipeline that the job's `parts` keeps on the GPU: their parameters, which are frozen, and of an autoencoder
/// that is known how it makes the latents.
[[nodiscard]] DenoiserSample denoiser_sample(Forward& forward, const LatentRule& rule);

/// The config with the field "_usual_parts": the other parts of the published pipeline of this denoiser's family, for
/// jobs that keep parts on the GPU and have no diffusers folder that tells them. A family that is not known, and a
/// config that has its parts, stay as they are.
[[nodiscard]] std::string with_usual_parts(std::string_view config);
/// Whether a config that was read so tells what lies besides its denoiser.
[[nodiscard]] bool tells_parts(std::string_view config);

/// The same of a model that makes sounds.
struct SoundRule {
  std::int64_t latents = 25;  ///< a second
  std::int64_t usual_seconds = 60;
  std::int64_t usual_text = 256;  ///< tokens that tell what to make
};
struct SoundSample {
  std::int64_t latents = 1;
  std::int64_t text = 1;
};
[[nodiscard]] SoundSample sound_sample(Forward& forward, const SoundRule& rule);

/// Of pixels [N, channels, ..., height, width] what an autoencoder reads at once: the first sample, or all of them, and
/// of each the first tile. All others take as much, one after the other.
[[nodiscard]] Tensor read_at_once(Forward& forward, Tensor pixels, const Encoded& all, const Encoded& tile);
/// What is made of all samples and tiles, if `latents` are made of those; each of them is `shrinks` pixels wide.
[[nodiscard]] Tensor joined_latents(Forward& forward, Tensor latents, const Encoded& all, const Encoded& tile,
                                    std::int64_t shrinks);

/// Noisy latents as the autoencoder gives them: [N, channels, height, width]; with `video` [N, channels, frames,
/// height, width].
[[nodiscard]] Tensor latent_input(Forward& forward, const DenoiserSample& sample, std::int64_t channels,
                                  bool video = false);
/// The same as a sequence of tokens, [N, tokens, width], for models whose pipeline cuts the patches.
[[nodiscard]] Tensor token_latents(Forward& forward, std::int64_t tokens, std::int64_t width);
/// The text encoder's embeddings of the prompt, [N, text, width].
[[nodiscard]] Tensor text_input(Forward& forward, const DenoiserSample& sample, std::int64_t width);
/// The sinusoids of a timestep (or of a guidance scale), [N, width]: float32 numbers in the model's type.
[[nodiscard]] Tensor timestep_input(Forward& forward, std::string_view name, std::int64_t width);
/// TimestepEmbedding (models/embeddings.py): linear_1, silu, linear_2, in a module of this name.
struct TimestepEmbedding {
  bool bias = true;
  std::int64_t out = 0;  ///< 0: as wide as within
};
Tensor timestep_embedding(Forward& forward, std::string_view name, Tensor sinusoids, std::int64_t in,
                          std::int64_t width, const TimestepEmbedding& options = {});

/// The mean squared error of what the model predicts and a target of the same size, [N, sizes...], both in float32.
void denoiser_loss(Forward& forward, Tensor prediction, const Sizes& sizes);

/// Attention as diffusers calls it: query, key and value are [N, tokens, width]; heads are views.
Tensor denoiser_attention(Forward& forward, Tensor query, Tensor key, Tensor value, std::int64_t head_width);

/// What autoencoders of videos share: convolutions over frames and over each frame, as diffusers' classes call them.
namespace video {

inline const Sizes kCube = {3, 3, 3};
inline const Sizes kPoint = {1, 1, 1};
inline const Sizes kSquare = {3, 3};
inline const Sizes kTime = {3, 1, 1};
inline const Sizes kPixel = {1, 1};

/// `count` modules of a list "resnets", each with `write(in, out)`: a stage's residual blocks.
template <typename Write>
void blocks(Forward& f, std::int64_t count, std::int64_t in, std::int64_t out, const Write& write) {
  const InModule list(f, "resnets", "ModuleList");
  for (std::int64_t index = 0; index < count && !f.failed(); ++index) {
    const InModule inside(f, std::to_string(index), "ResnetBlock");
    write(index == 0 ? in : out, out);
  }
}

inline Tensor layer(Forward& f, std::string_view name, Tensor input, std::int64_t in, std::int64_t out,
                    const Sizes& kernel, const Sizes& stride, std::string_view class_name = "CausalConv3d") {
  return f.layer(name, class_name, "conv3d", {input},
                 {{"in_channels", in}, {"out_channels", out}, {"kernel_size", kernel}, {"stride", stride}});
}

/// Each frame as an image of the batch.
inline Tensor as_images(Forward& f, Tensor video) { return f.flatten(f.permute(video, {0, 2, 1, 3, 4}), 0, 1); }
inline Tensor as_video(Forward& f, Tensor images, std::int64_t frames) {
  return f.permute(f.unflatten(images, 0, {-1, frames}), {0, 2, 1, 3, 4});
}

inline Tensor image_layer(Forward& f, std::string_view name, Tensor input, std::int64_t in, std::int64_t out,
                          const Sizes& kernel, std::int64_t stride) {
  return f.layer(name, "Conv2d", "conv2d", {input},
                 {{"in_channels", in}, {"out_channels", out}, {"kernel_size", kernel}, {"stride", Sizes(2, stride)}});
}

/// The mean of latents, to which noise is added in the measure of their deviation.
inline Tensor drawn(Forward& f, Tensor moments, std::int64_t latents) {
  const std::vector<Tensor> halves = f.split(moments, 1, {latents, latents});
  return f.add(halves[0], f.scale(f.call("exp", {f.scale(f.call("clamp", {halves[1]}))})));
}

}  // namespace video

}  // namespace gpumem::architectures
