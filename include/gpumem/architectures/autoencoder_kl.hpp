// AutoencoderKL: what makes latents of images for Stable Diffusion, FLUX and most image models. As a model of its own
// it is trained to give its images back; in a diffusers folder it is a frozen part, of which a step calls the encoder.
// Source: diffusers 0.38, models/autoencoders/autoencoder_kl.py, autoencoder_kl_flux2.py, vae.py: Encoder, Decoder,
// DiagonalGaussianDistribution, models/unets/unet_2d_blocks.py: UNetMidBlock2D.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/denoiser.hpp"
#include "gpumem/architectures/unet_parts.hpp"

namespace gpumem::architectures {

namespace autoencoder_kl {

inline constexpr std::array<std::string_view, 3> kBlocks = {"DownEncoderBlock2D", "UpDecoderBlock2D", "UNetMidBlock2D"};

struct Model {
  std::vector<std::int64_t> widths;
  std::int64_t layers = 2;
  std::int64_t channels = 3;
  std::int64_t out_channels = 3;
  std::int64_t latents = 4;
  std::int64_t side = 512;
  std::int64_t tile = 32;  ///< pixels, if it makes latents of tiles
  ResnetOptions blocks = {};
  bool attends = true;
  bool quant = true;
  bool post_quant = true;

  [[nodiscard]] std::int64_t shrinks() const { return std::int64_t{1} << (widths.size() - 1); }
};

inline Model read(ConfigFields& config) {
  constexpr std::size_t kMostLevels = 8;
  Model model;
  model.widths = config.sizes_or("block_out_channels", {64});
  if (model.widths.empty() || model.widths.size() > kMostLevels) {
    config.fail("must have from 1 to 8 entries", "block_out_channels");
    model.widths = {64};
  }
  const auto only = [&](std::string_view field, std::string_view block) {
    for (const std::string& type : config.texts_or(field, {std::string(block)})) {
      if (type != block) config.fail("names the block " + core::quoted(type) + ", which is not known", field);
    }
  };
  only("down_block_types", kBlocks[0]);
  only("up_block_types", kBlocks[1]);
  if (config.find("decoder_block_out_channels") != nullptr) {
    config.fail("is a variant that is not known", "decoder_block_out_channels");
  }
  model.layers = config.layers({"layers_per_block"});
  constexpr std::int64_t kMostBlocks = 256;
  if (model.layers * static_cast<std::int64_t>(model.widths.size()) > kMostBlocks) {
    config.fail("is more than gpumem takes", "layers_per_block");
  }
  model.channels = config.size_or({"in_channels"}, 3);
  model.out_channels = config.size_or({"out_channels"}, 3);
  model.latents = config.size_or({"latent_channels"}, 4);
  model.side = config.size_or({"sample_size"}, 512);
  // What the classes have; nothing else of them depends on it.
  model.tile = config.size_or({"sample_size"}, config.text({"_class_name"}, "") == "AutoencoderKLFlux2" ? 1024 : 32);
  model.blocks.groups = config.size_or({"norm_num_groups"}, 32);
  model.blocks.activation = config.text({"act_fn"}, "silu");
  model.attends = config.flag("mid_block_add_attention", true);
  model.quant = config.flag("use_quant_conv", true);
  model.post_quant = config.flag("use_post_quant_conv", true);
  // The batch norm of FLUX.2's latents has no parameters.
  config.ignore({"scaling_factor", "shift_factor", "latents_mean", "latents_std", "force_upcast", "batch_norm_eps",
                 "batch_norm_momentum", "patch_size"});
  return model;
}

inline Tensor middle(Forward& f, const Model& model, Tensor hidden, std::int64_t height, std::int64_t width) {
  const InModule inside(f, "mid_block", kBlocks[2]);
  const std::int64_t channels = model.widths.back();
  const auto residual = [&](std::int64_t index) {
    const InModule list(f, "resnets", "ModuleList");
    hidden = resnet_block(f, model.blocks, index, hidden, channels, channels);
  };
  residual(0);
  if (model.attends) {
    hidden = pixel_attention(f, 0, {channels, channels, model.blocks.groups, height, width}, hidden);
  }
  residual(1);
  return hidden;
}

inline Tensor last(Forward& f, const Model& model, Tensor hidden, std::int64_t in, std::int64_t out) {
  const Tensor normed = image_norm(f, "conv_norm_out", hidden, in, model.blocks.groups);
  return image_conv(f, "conv_out", f.activation("conv_act", normed, "silu"), in, out, 3);
}

inline Tensor encoder(Forward& f, const Model& model, Tensor image, std::int64_t height, std::int64_t width) {
  const InModule inside(f, "encoder", "Encoder");
  std::int64_t in = model.widths.front();
  Tensor hidden = image_conv(f, "conv_in", image, model.channels, in, 3);
  {
    const InModule blocks(f, "down_blocks", "ModuleList");
    for (std::size_t level = 0; level < model.widths.size() && !f.failed(); ++level) {
      const InModule block(f, std::to_string(level), kBlocks[0]);
      const std::int64_t out = model.widths[level];
      {
        const InModule list(f, "resnets", "ModuleList");
        for (std::int64_t layer = 0; layer < model.layers; ++layer) {
          hidden = resnet_block(f, model.blocks, layer, hidden, std::exchange(in, out), out);
        }
      }
      if (level + 1 == model.widths.size()) break;
      const InModule list(f, "downsamplers", "ModuleList");
      const InModule sampler(f, "0", "Downsample2D");
      const Tensor padded = f.call("pad", {hidden}, {{"padding", Sizes{0, 1, 0, 1}}});
      hidden = f.layer("conv", "Conv2d", "conv2d", {padded},
                       {{"in_channels", out},
                        {"out_channels", out},
                        {"kernel_size", Sizes(2, 3)},
                        {"stride", Sizes(2, 2)},
                        {"padding", Sizes(2, 0)}});
    }
  }
  hidden = middle(f, model, hidden, height / model.shrinks(), width / model.shrinks());
  return last(f, model, hidden, model.widths.back(), 2 * model.latents);
}

inline Tensor decoder(Forward& f, const Model& model, Tensor latents, std::int64_t height, std::int64_t width) {
  const InModule inside(f, "decoder", "Decoder");
  std::int64_t in = model.widths.back();
  height /= model.shrinks();
  width /= model.shrinks();
  Tensor hidden = middle(f, model, image_conv(f, "conv_in", latents, model.latents, in, 3), height, width);
  {
    const InModule blocks(f, "up_blocks", "ModuleList");
    for (std::size_t level = 0; level < model.widths.size() && !f.failed(); ++level) {
      const InModule block(f, std::to_string(level), kBlocks[1]);
      const std::int64_t out = model.widths[model.widths.size() - 1 - level];
      {
        const InModule list(f, "resnets", "ModuleList");
        for (std::int64_t layer = 0; layer <= model.layers; ++layer) {
          hidden = resnet_block(f, model.blocks, layer, hidden, std::exchange(in, out), out);
        }
      }
      if (level + 1 == model.widths.size()) break;
      height *= 2;
      width *= 2;
      hidden = upsample_block(f, hidden, out, height, width);
    }
  }
  return last(f, model, hidden, model.widths.front(), model.out_channels);
}

/// The mean of a sample's latents, to which noise is added in the measure of their deviation.
inline Tensor sampled(Forward& f, Tensor moments, std::int64_t latents) {
  const std::vector<Tensor> halves = f.split(moments, 1, {latents, latents});
  const Tensor deviation = f.call("exp", {f.scale(f.call("clamp", {halves[1]}))});
  return f.add(halves[0], f.scale(deviation));
}

/// The size of an image that the model reads whole.
inline DenoiserSample sample_of(Forward& f, const Model& model) {
  return denoiser_sample(f, {.side = 1, .patch = model.shrinks(), .usual_side = model.side, .usual_text = 0});
}

inline void write(ConfigFields& config, Head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DenoiserSample size = sample_of(f, model);
  const Tensor image = f.sample_input("pixel_values", {model.channels, size.height, size.width});
  Tensor moments = encoder(f, model, image, size.height, size.width);
  if (model.quant) moments = image_conv(f, "quant_conv", moments, 2 * model.latents, 2 * model.latents, 1);
  Tensor latents = sampled(f, moments, model.latents);
  if (model.post_quant) latents = image_conv(f, "post_quant_conv", latents, model.latents, model.latents, 1);
  denoiser_loss(f, decoder(f, model, latents, size.height, size.width), {model.out_channels, size.height, size.width});
}

inline void encode(ConfigFields& config, const Encoded& size, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const Tensor image = f.sample_input("pixel_values", {model.channels, size.height, size.width});
  const Encoded tile = size.tile(model.tile);  // tile_sample_min_size
  Tensor moments = encoder(f, model, read_at_once(f, image, size, tile), tile.height, tile.width);
  if (model.quant) moments = image_conv(f, "quant_conv", moments, 2 * model.latents, 2 * model.latents, 1);
  (void)sampled(f, joined_latents(f, moments, size, tile, model.shrinks()), model.latents);
  model::GraphBuilder apart("config_json");
  Forward dry(apart, f.vocabulary());
  const Tensor latents =
      dry.sample_input("latents", {model.latents, size.height / model.shrinks(), size.width / model.shrinks()});
  const std::int64_t own = model.latents;
  const Tensor read = model.post_quant ? image_conv(dry, "post_quant_conv", latents, own, own, 1) : latents;
  (void)decoder(dry, model, read, size.height, size.width);
  const core::Result<model::ModelGraph> graph = std::move(apart).build();
  if (!graph) return f.fail("has a decoder that cannot be counted: " + graph.error().message);
  (void)f.parameter("decoder.weight", {graph->parameters()}, true);
}

inline constexpr Architecture kArchitecture = {.name = "autoencoder_kl",
                                               .model_types = names<"AutoencoderKL", "AutoencoderKLFlux2">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .blocks = kBlocks,
                                               .encode = encode};

}  // namespace autoencoder_kl

}  // namespace gpumem::architectures
