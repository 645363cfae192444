// AutoencoderKL: what makes latents of images for Stable Diffusion, FLUX and most image models. As a model of its own
// it is trained to give its images back; in a diffusers folder it is a frozen part, of which a step calls the encoder.
// Source: diffusers 0.38, models/autoencoders/autoencoder_kl.py, autoencoder_kl_flux2.py, vae.py: Encoder, Decoder,
// DiagonalGaussianDistribution, models/unets/unet_2d_blocks.py: UNetMidBlock2D.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "gpumem/architectures/autoencoder_parts.hpp"
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
                                               .classes = autoencoder_trees::kClasses,
                                               .read_tree = autoencoder_trees::read,
                                               .depends_on_images = true,
                                               .blocks = kBlocks,
                                               .encode = encode};

}  // namespace autoencoder_kl

// Autoencoders of videos and images whose levels are residual blocks with group norms: AutoencoderKLCogVideoX and
// AutoencoderKLHunyuanVideo, which read a video part by part, and AutoencoderKLHunyuanImage (Tencent's own code calls
// it HYVAE2D). As parts of a pipeline only their parameters count. Source: diffusers 0.38,
// models/autoencoders/autoencoder_kl_cogvideox.py, autoencoder_kl_hunyuan_video.py, autoencoder_kl_hunyuanimage.py.

namespace level_autoencoders {

/// A part of a video.
struct LevelPass {
  Forward& f;
  const Levels& l;
  Encoded size;        ///< of what is read at this level
  Tensor latents = 0;  ///< that CogVideoX's decoder reads in each norm
  bool decodes = false;
};

inline Tensor level_conv(LevelPass& p, std::string_view name, Tensor input, std::int64_t in, std::int64_t out,
                         const Sizes& kernel) {
  const Tensor read = kernel[0] > 1 ? p.f.call("pad", {input}, {{"padding", Sizes{1, 1, 1, 1, 2, 0}}}) : input;
  return video::layer(p.f, name, read, in, out, kernel, {1, 1, 1});
}

inline Tensor level_norm(LevelPass& p, const std::string& name, Tensor input, std::int64_t width) {
  const Tensor normed = image_norm(p.f, name, input, width, 32);
  if (!p.l.spatial || !p.decodes) return normed;
  const Sizes size = {p.size.frames, p.size.height, p.size.width};
  const Tensor latents = p.f.call("upsample", {p.latents}, {{"size", size}});
  const Tensor scale = level_conv(p, name + ".conv_y", latents, p.l.latents, width, video::kPoint);
  return p.f.add(p.f.multiply(normed, scale),
                 level_conv(p, name + ".conv_b", latents, p.l.latents, width, video::kPoint));
}

inline Tensor level_residual(LevelPass& p, Tensor input, std::int64_t in, std::int64_t out) {
  const auto open = [&](const std::string& name, Tensor x, std::int64_t width) {
    return p.f.activation("nonlinearity", level_norm(p, name, x, width), "silu");
  };
  const Tensor hidden = level_conv(p, "conv1", open("norm1", input, in), in, out, video::kCube);
  const Tensor made = level_conv(p, "conv2", open("norm2", hidden, out), out, out, video::kCube);
  return p.f.add(in == out ? input : level_conv(p, "conv_shortcut", input, in, out, video::kPoint), made);
}

/// HunyuanVideo's middle attends to all pixels, of earlier frames and its own.
inline Tensor level_middle(LevelPass& p, Tensor hidden) {
  Forward& f = p.f;
  const InModule inside(f, "mid_block", "MidBlock3D");
  const std::int64_t width = p.l.widths.back();
  const std::int64_t seen = p.size.frames * p.size.height * p.size.width;
  for (std::int64_t index = 0; index < 2; ++index) {
    if (index == 1 && p.l.attends) {
      const InModule attention(f, "attentions.0", "Attention");
      const Tensor normed = image_norm(f, "group_norm", f.flatten(hidden, 2, 4), width, 32);
      const Tensor rows = f.permute(normed, {0, 2, 1});
      const auto heads = [&](std::string_view name) {
        return split_heads(f, f.linear(name, rows, width, width), width);
      };
      const Tensor query = heads("to_q");
      const Tensor key = heads("to_k");
      const Tensor mask = f.constant("mask", {1, 1, seen, seen}, "parameters");
      const Tensor mixed = merge_heads(f, f.call("scaled_dot_product_attention", {query, key, heads("to_v"), mask}));
      const Tensor made = f.permute(f.linear("to_out.0", mixed, width, width), {0, 2, 1});
      hidden = f.add(f.unflatten(made, 2, {p.size.frames, p.size.height, p.size.width}), hidden);
    }
    const InModule list(f, "resnets", "ModuleList");
    const InModule block(f, std::to_string(index), "ResnetBlock");
    hidden = level_residual(p, hidden, width, width);
  }
  return hidden;
}

/// Half of the sides, or twice, and of the frames where `time` says so; the first frame stays one.
inline Tensor level_resized(LevelPass& p, Tensor input, std::int64_t width, bool time) {
  Forward& f = p.f;
  Encoded to = p.size;
  to.height = p.decodes ? 2 * to.height : to.height / 2;
  to.width = p.decodes ? 2 * to.width : to.width / 2;
  if (time && p.decodes) to.frames = p.l.spatial && to.frames % 2 == 0 ? 2 * to.frames : 2 * to.frames - 1;
  if (time && !p.decodes) to.frames = (to.frames + 1) / 2;
  const InModule inside(f, "samplers.0", p.decodes ? "Upsample3D" : "Downsample3D");
  Tensor made = 0;
  if (p.decodes) {
    const Tensor larger = f.call("upsample", {input}, {{"size", Sizes{to.frames, to.height, to.width}}});
    if (p.l.spatial) {
      const Tensor padded = f.call("pad", {video::as_images(f, larger)}, {{"padding", Sizes{1, 1, 1, 1}}});
      made = video::as_video(f, video::image_layer(f, "conv", padded, width, width, video::kSquare, 1), to.frames);
    } else {
      made = level_conv(p, "conv", larger, width, width, video::kCube);
    }
  } else if (p.l.spatial) {
    const Sizes pooled = {to.frames, p.size.height, p.size.width};
    const Tensor shorter = time ? f.call("upsample", {input}, {{"size", pooled}}) : input;
    const Tensor padded = f.call("pad", {video::as_images(f, shorter)}, {{"padding", Sizes{0, 1, 0, 1}}});
    made = video::as_video(f, video::image_layer(f, "conv", padded, width, width, video::kSquare, 2), to.frames);
  } else {
    const Tensor padded = f.call("pad", {input}, {{"padding", Sizes{1, 1, 1, 1, 2, 0}}});
    made = video::layer(f, "conv", padded, width, width, video::kCube, {time ? 2 : 1, 2, 2});
  }
  p.size = to;
  return made;
}

/// The encoder or the decoder, of one part.
inline Tensor level_half(LevelPass& p, Tensor hidden) {
  Forward& f = p.f;
  const Levels& l = p.l;
  const InModule inside(f, p.decodes ? "decoder" : "encoder", p.decodes ? "Decoder3D" : "Encoder3D");
  const std::size_t count = l.widths.size();
  std::int64_t in = p.decodes ? l.widths.back() : l.widths.front();
  hidden = level_conv(p, "conv_in", hidden, p.decodes ? l.latents : l.in, in, video::kCube);
  if (p.decodes) hidden = level_middle(p, hidden);
  for (std::size_t level = 0; level < count && !f.failed(); ++level) {
    const InModule block(f, "blocks." + std::to_string(level), "Block3D");
    const std::int64_t out = l.widths[p.decodes ? count - 1 - level : level];
    video::blocks(f, p.decodes ? l.layers + 1 : l.layers, in, out,
                  [&](std::int64_t from, std::int64_t to) { hidden = level_residual(p, hidden, from, to); });
    in = out;
    const std::size_t after = count - 1 - level;
    // Frames are halved twice: CogVideoX by its first levels, HunyuanVideo by the last ones.
    if (after > 0) hidden = level_resized(p, hidden, out, l.spatial == p.decodes ? after <= 2 : level < 2);
  }
  if (!p.decodes) hidden = level_middle(p, hidden);
  hidden = f.activation("conv_act", level_norm(p, "norm_out", hidden, in), "silu");
  return level_conv(p, "conv_out", hidden, in, p.decodes ? l.out : 2 * l.latents, video::kCube);
}

/// CogVideoX reads 8 frames at a time, HunyuanVideo 17 of which 5 lie in the part before.
inline void write_levels(ConfigFields& config, Forward& f) {
  constexpr std::int64_t kMostFrames = 512;
  const bool cog = config.text({"_class_name"}, "") == "AutoencoderKLCogVideoX";
  const Levels l = read_levels(config, cog);
  if (!config.status()) return;
  const std::int64_t shrinks = std::int64_t{1} << (l.widths.size() - 1);
  const LatentRule rule = {.side = 1, .frame = 1, .patch = shrinks, .usual_side = 256, .usual_text = 0};
  const DenoiserSample size = denoiser_sample(f, rule);
  if (size.frames > kMostFrames) return f.fail("takes at most 512 frames at once; leave some of `frames` out");
  const Tensor video = f.sample_input("pixel_values", {l.in, size.frames, size.height, size.width});
  const std::int64_t step = cog ? 8 : 12, most = cog ? 9 : 17;
  std::vector<Tensor> made;
  std::int64_t frames = 0;
  for (std::int64_t begin = 0; begin == 0 || begin + most - step < size.frames; begin += step) {
    const std::int64_t length = std::min(most, size.frames - begin);
    LevelPass encoder{f, l, {size.height, size.width, length}};
    Tensor moments = level_half(encoder, f.slice(video, 2, begin, length));
    if (!cog) moments = level_conv(encoder, "quant_conv", moments, 2 * l.latents, 2 * l.latents, video::kPoint);
    Tensor latents = video::drawn(f, moments, l.latents);
    LevelPass decoder{f, l, encoder.size, latents, true};
    if (!cog) latents = level_conv(decoder, "post_quant_conv", latents, l.latents, l.latents, video::kPoint);
    made.push_back(level_half(decoder, latents));
    frames += decoder.size.frames;
    f.repeat_parameters(true);
  }
  f.repeat_parameters(false);
  f.doubt({model::Doubt::About::kernels, "no training of such an autoencoder of videos was measured", false});
  denoiser_loss(f, made.size() > 1 ? f.concatenate(made, 2) : made[0], {l.out, frames, size.height, size.width});
}

/// AutoencoderKLHunyuanImage: a side is halved where pixels become channels, with a shortcut of means.
inline Tensor unshuffled(Forward& f, Tensor x) {
  const Tensor parted = f.unflatten(f.unflatten(x, 3, {-1, 2}), 2, {-1, 2});
  return f.flatten(f.contiguous(f.permute(parted, {0, 3, 5, 1, 2, 4})), 1, 3);
}

inline Tensor pixel_residual(Forward& f, Tensor input, std::int64_t in, std::int64_t out) {
  const auto open = [&](std::string_view name, Tensor x, std::int64_t width) {
    return f.activation("nonlinearity", image_norm(f, name, x, width, 32), "silu");
  };
  const Tensor hidden = image_conv(f, "conv1", open("norm1", input, in), in, out, 3);
  const Tensor made = image_conv(f, "conv2", open("norm2", hidden, out), out, out, 3);
  return f.add(made, in == out ? input : image_conv(f, "conv_shortcut", input, in, out, 1));
}

inline Tensor pixel_middle(Forward& f, Tensor hidden, std::int64_t width, const Encoded& size) {
  const InModule inside(f, "mid_block", "MidBlock2D");
  video::blocks(f, 1, width, width, [&](auto, auto) { hidden = pixel_residual(f, hidden, width, width); });
  {
    const InModule attention(f, "attentions.0", "AttnBlock");
    const Tensor normed = image_norm(f, "norm", hidden, width, 32);
    const auto rows = [&](std::string_view name) {
      return split_heads(f, f.permute(f.flatten(image_conv(f, name, normed, width, width, 1), 2, 3), {0, 2, 1}), width);
    };
    const Tensor query = rows("to_q");
    const Tensor key = rows("to_k");
    const Tensor mixed = merge_heads(f, f.call("scaled_dot_product_attention", {query, key, rows("to_v")}));
    const Tensor pixels = f.unflatten(f.permute(mixed, {0, 2, 1}), 2, {size.height, size.width});
    hidden = f.add(image_conv(f, "proj", pixels, width, width, 1), hidden);
  }
  const InModule list(f, "resnets", "ModuleList");
  const InModule block(f, "1", "ResnetBlock");
  return pixel_residual(f, hidden, width, width);
}

/// The encoder or the decoder; `size` is of what it reads, then of what it makes.
inline Tensor pixel_half(Forward& f, const Levels& l, Tensor hidden, Encoded& size, std::int64_t shrinks, bool joins,
                         bool decodes) {
  const InModule inside(f, decodes ? "decoder" : "encoder", decodes ? "Decoder2D" : "Encoder2D");
  std::vector<std::int64_t> widths = l.widths;
  if (decodes) std::reverse(widths.begin(), widths.end());
  std::int64_t in = widths.front();
  hidden = image_conv(f, "conv_in", hidden, decodes ? l.latents : l.in, in, 3);
  if (decodes) hidden = pixel_middle(f, hidden, in, size);
  for (std::size_t level = 0; level < widths.size() && !f.failed(); ++level) {
    const InModule stage(f, "blocks." + std::to_string(level), "Blocks2D");
    video::blocks(f, decodes ? l.layers + 1 : l.layers, in, widths[level],
                  [&](std::int64_t from, std::int64_t to) { hidden = pixel_residual(f, hidden, from, to); });
    in = widths[level];
    if (level + 1 == widths.size() || std::int64_t{1} << level >= shrinks) continue;
    const std::int64_t next = joins ? widths[level + 1] : in;
    const std::string name = decodes ? "upsampler.conv" : "downsampler.conv";
    const Tensor made = image_conv(f, name, hidden, in, decodes ? 4 * next : next / 4, 3);
    if (decodes) {
      const std::int64_t times = std::max<std::int64_t>(4 * next / in, 1);
      const Tensor each = f.call("expand", {f.call("unsqueeze", {hidden}, {{"dim", std::int64_t{2}}})},
                                 {{"shape", Sizes{-1, -1, times, -1, -1}}});
      const auto repeated = f.flatten(f.contiguous(each), 1, 2);
      const auto larger = [&](Tensor x) { return f.call("pixel_shuffle", {x}, {{"upscale_factor", std::int64_t{2}}}); };
      hidden = f.add(larger(made), larger(repeated));
      size = {2 * size.height, 2 * size.width};
    } else {
      const std::int64_t group = std::max<std::int64_t>(4 * in / next, 1);
      const Tensor parted = f.unflatten(unshuffled(f, hidden), 1, {next, group});
      hidden = f.add(unshuffled(f, made), f.call("mean", {parted}, {{"dim", std::int64_t{2}}}));
      size = {size.height / 2, size.width / 2};
    }
    in = next;
  }
  if (!decodes) hidden = pixel_middle(f, hidden, in, size);
  hidden = f.activation("conv_act", image_norm(f, "norm_out", hidden, in, 32), "silu");
  return image_conv(f, "conv_out", hidden, in, decodes ? l.out : 2 * l.latents, 3);
}

inline void write_pixels(ConfigFields& config, Forward& f) {
  const Levels l = read_levels(config, false);
  const std::int64_t shrinks = config.size_or({"spatial_compression_ratio", "ffactor_spatial"}, 32);
  const bool joins = config.flag("downsample_match_channel", true) && config.flag("upsample_match_channel", true);
  if (!config.status()) return;
  const DenoiserSample sample = denoiser_sample(f, {.side = 1, .patch = shrinks, .usual_side = 512, .usual_text = 0});
  const Tensor image = f.sample_input("pixel_values", {l.in, sample.height, sample.width});
  Encoded size = {sample.height, sample.width};
  const Tensor latents = video::drawn(f, pixel_half(f, l, image, size, shrinks, joins, false), l.latents);
  const Tensor made = pixel_half(f, l, latents, size, shrinks, joins, true);
  denoiser_loss(f, made, {l.out, sample.height, sample.width});
}

inline void write(ConfigFields& config, Head, Forward& f) {
  const std::string_view type = config.text({"_class_name"}, "");
  if (type == "AutoencoderKLHunyuanImage" || type == "HYVAE2D") return write_pixels(config, f);
  write_levels(config, f);
}

inline constexpr Architecture kArchitecture = {
    .name = "level_autoencoders",
    .model_types = names<"AutoencoderKLCogVideoX", "AutoencoderKLHunyuanVideo", "AutoencoderKLCausal3D",
                         "AutoencoderKLHunyuanImage", "HYVAE2D">,
    .usual_head = Head::none,
    .write = write,
    .classes = autoencoder_trees::kLevelClasses,
    .read_tree = autoencoder_trees::read_levels,
    .depends_on_images = true};

}  // namespace level_autoencoders

}  // namespace gpumem::architectures
