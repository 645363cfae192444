// Qwen-Image: blocks with a stream of image tokens and one of text tokens; rotary positions as complex numbers.
// Source: diffusers 0.38, models/transformers/transformer_qwenimage.py. Prompts are taken to be without padding: then
// no mask is passed.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/denoiser.hpp"
#include "gpumem/architectures/dit_parts.hpp"

namespace gpumem::architectures {

namespace qwen_image_detail {

inline constexpr std::array<std::string_view, 1> kClasses = {"QwenImageTransformer2DModel"};
inline constexpr std::array<std::string_view, 1> kBlocks = {"QwenImageTransformerBlock"};

struct Model {
  DitSizes sizes;
  std::int64_t layers = 60;
  std::int64_t patch = 2;
  StreamLengths lengths;
};

struct Tables {
  PairTables image;
  PairTables text;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = dit_sizes(config, {.channels = 64, .text_width = 3584});
  model.layers = config.layers_or("num_layers", 60);
  model.patch = dit_patch(config);
  model.sizes.out_channels = dit_width(config, "out_channels", 16);
  // QwenImageTransformer2DModel takes no guidance, whatever the field says.
  config.ignore({"guidance_embeds", "axes_dims_rope", "pooled_projection_dim"});
  return model;
}

inline std::vector<Tensor> rows_of(Forward& f, const Model& model, std::string_view name, Tensor time) {
  const InModule inside(f, name, "Sequential");
  const Tensor open = f.activation("0", time, "silu");
  const Tensor made = f.linear("1", open, model.sizes.width, 6 * model.sizes.width);
  return row_chunks(f, made, 6, model.sizes.width);
}

inline TwoStreams block(Forward& f, const Model& model, const TwoStreams& in, Tensor time, const Tables& tables) {
  const std::int64_t width = model.sizes.width;
  const std::vector<Tensor> image = rows_of(f, model, "img_mod", time);
  const std::vector<Tensor> text = rows_of(f, model, "txt_mod", time);
  const Tensor normed = modulated(f, bare_norm(f, "img_norm1", in.image, width), image[1], image[0]);
  const Tensor normed_text = modulated(f, bare_norm(f, "txt_norm1", in.text, width), text[1], text[0]);
  const TwoStreams mixed = joint_attention(f,
                                           {.width = width,
                                            .head_width = model.sizes.head_width,
                                            .norm = DitHeadNorm::own_rms,
                                            .tables = &tables.image,
                                            .text_tables = &tables.text},
                                           {normed, normed_text}, model.lengths);
  const Tensor attended = gated_sum(f, in.image, image[2], mixed.image);
  const Tensor attended_text = gated_sum(f, in.text, text[2], mixed.text);
  const auto fed = [&](Tensor hidden, const std::vector<Tensor>& rows, std::string_view norm, std::string_view layers) {
    const Tensor again = modulated(f, bare_norm(f, norm, hidden, width), rows[4], rows[3]);
    const Tensor made = dit_feed_forward(f, layers, again, width, 4 * width, DitActivation::gelu_tanh);
    return gated_sum(f, hidden, rows[5], made);
  };
  const Tensor image_left = fed(attended, image, "img_norm2", "img_mlp");
  return {image_left, fed(attended_text, text, "txt_norm2", "txt_mlp")};
}

inline void write(ConfigFields& config, Head, Forward& f) {
  constexpr std::int64_t kSinusoids = 256;
  Model model = read(config);
  if (!config.status()) return;
  const DenoiserSample sample = denoiser_sample(f, {.side = 8, .patch = 2, .usual_text = 256});
  model.lengths = {sample.height * sample.width / 4, sample.text};
  const std::int64_t width = model.sizes.width;
  const Tensor latents = token_latents(f, model.lengths.image, model.sizes.channels);
  const Tensor prompt = text_input(f, sample, model.sizes.text_width);
  const Tensor image = f.linear("img_in", latents, model.sizes.channels, width);
  const Tensor normed_prompt = own_rms_norm(f, "txt_norm", prompt, model.sizes.text_width);
  const Tensor text = f.linear("txt_in", normed_prompt, model.sizes.text_width, width);
  Tensor time = 0;
  {
    const Tensor sinusoids = timestep_input(f, "timestep", kSinusoids);
    const InModule inside(f, "time_text_embed", "QwenTimestepProjEmbeddings");
    time = timestep_embedding(f, "timestep_embedder", sinusoids, kSinusoids, width);
  }
  const std::int64_t each = model.sizes.head_width;
  const Tables tables = {pair_tables(f, {image}, each), pair_tables(f, {text}, each)};
  TwoStreams streams = {image, text};
  streams = stack(f, "transformer_blocks", kBlocks[0], model.layers, streams,
                  [&](const TwoStreams& x, std::int64_t) { return block(f, model, x, time, tables); });
  const Tensor normed = continuous_norm(f, "norm_out", streams.image, time, width, width);
  const std::int64_t out = model.patch * model.patch * model.sizes.out_channels;
  denoiser_loss(f, f.linear("proj_out", normed, width, out), {model.lengths.image, out});
}

}  // namespace qwen_image_detail

[[nodiscard]] inline const Architecture& qwen_image() {
  static constexpr Architecture kArchitecture = {.name = "qwen_image",
                                                 .model_types = qwen_image_detail::kClasses,
                                                 .usual_head = Head::none,
                                                 .write = qwen_image_detail::write,
                                                 .blocks = qwen_image_detail::kBlocks};
  return kArchitecture;
}

}  // namespace gpumem::architectures
