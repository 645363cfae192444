// AutoencoderKLHunyuanVideo15 and AutoencoderKLHunyuanImageRefiner: autoencoders of videos with shortcuts around each
// change of size, whose middle attends to all earlier pixels. As parts of a pipeline only their parameters count.
// Source: diffusers 0.40, models/autoencoders/autoencoder_kl_hunyuanvideo15.py, autoencoder_kl_hunyuanimage_refiner.py.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "gpumem/architectures/autoencoder_parts.hpp"
#include "gpumem/architectures/denoiser.hpp"
#include "gpumem/architectures/unet_parts.hpp"

namespace gpumem::architectures {

namespace hunyuan15_autoencoder {

struct Model {
  Sizes widths;
  std::int64_t layers = 2;
  std::int64_t latents = 32;
  std::int64_t in = 3;
  std::int64_t out = 3;
  std::int64_t side = 16;  ///< pixels of a side that are one of latents
  std::int64_t frame = 4;
  bool joins_down = true;
  bool joins_up = true;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.widths = autoencoder_fields::widths(config, "block_out_channels", {128, 256, 512, 1024, 1024});
  model.layers = config.layers_or("layers_per_block", 2);
  model.latents = config.size_or({"latent_channels"}, 32);
  model.in = config.size_or({"in_channels"}, 3);
  model.out = config.size_or({"out_channels"}, 3);
  model.side = config.size_or({"spatial_compression_ratio"}, 16);
  model.frame = config.size_or({"temporal_compression_ratio"}, 4);
  model.joins_down = config.flag("downsample_match_channel", true);
  model.joins_up = config.flag("upsample_match_channel", true);
  const std::size_t levels = model.widths.size();
  const bool sound = model.side >= 1 && model.side <= std::int64_t{1} << (levels - 1) && model.frame <= model.side;
  if (!sound) config.fail("must be a power of two that the levels reach", "spatial_compression_ratio");
  if (model.latents > 1 << 14 || model.layers > 64) config.fail("is larger than gpumem takes", "latent_channels");
  config.ignore({"scaling_factor"});
  return model;
}

inline Tensor conv(Forward& f, std::string_view name, Tensor input, std::int64_t in, std::int64_t out) {
  const Tensor padded =
      f.call("pad", {input}, {{"padding", Sizes{1, 1, 1, 1, 2, 0}}, {"mode", std::string("replicate")}});
  return video::layer(f, name, padded, in, out, video::kCube, {1, 1, 1}, "HunyuanVideo15CausalConv3d");
}

inline Tensor norm(Forward& f, std::string_view name, Tensor input, std::int64_t width) {
  const InModule inside(f, name, "HunyuanVideo15RMS_norm");
  const Tensor normed = f.call("lp_normalize", {f.to(input, "float32")}, {{"dim", std::int64_t{1}}});
  const Tensor scaled = f.multiply(f.scale(f.as_type_of(normed, input)), f.parameter("gamma", {width, 1, 1, 1}));
  return f.call("add", {scaled});
}

inline Tensor residual(Forward& f, Tensor input, std::int64_t in, std::int64_t out) {
  Tensor hidden = f.activation("nonlinearity", norm(f, "norm1", input, in), "silu");
  hidden = conv(f, "conv1", hidden, in, out);
  hidden = conv(f, "conv2", f.activation("nonlinearity", norm(f, "norm2", hidden, out), "silu"), out, out);
  const Tensor shortcut =
      in == out ? input : video::layer(f, "conv_shortcut", input, in, out, video::kPoint, {1, 1, 1});
  return f.add(hidden, shortcut);
}

inline Tensor middle(Forward& f, Tensor hidden, std::int64_t width, const Encoded& area) {
  const InModule inside(f, "mid_block", "HunyuanVideo15MidBlock");
  {
    const InModule block(f, "resnets.0", "HunyuanVideo15ResnetBlock");
    hidden = residual(f, hidden, width, width);
  }
  {
    const InModule attention(f, "attentions.0", "HunyuanVideo15AttnBlock");
    const std::int64_t seen = area.frames * area.height * area.width;
    const Tensor normed = norm(f, "norm", hidden, width);
    const auto rows = [&](std::string_view name) {
      const Tensor made = video::layer(f, name, normed, width, width, video::kPoint, {1, 1, 1});
      const Tensor columns = f.permute(f.flatten(made, 2, 4), {0, 2, 1});
      return f.contiguous(f.call("unsqueeze", {columns}, {{"dim", std::int64_t{1}}}));
    };
    const Tensor query = rows("to_q");
    const Tensor key = rows("to_k");
    const Tensor mask = f.constant("mask", {1, 1, seen, seen}, "parameters");
    const Tensor mixed = f.call("scaled_dot_product_attention", {query, key, rows("to_v"), mask});
    const Tensor columns = f.permute(f.flatten(mixed, 1, 2), {0, 2, 1});
    const Tensor pixels = f.unflatten(columns, 2, {area.frames, area.height, area.width});
    hidden = f.add(video::layer(f, "proj_out", pixels, width, width, video::kPoint, {1, 1, 1}), hidden);
  }
  const InModule block(f, "resnets.1", "HunyuanVideo15ResnetBlock");
  return residual(f, hidden, width, width);
}

/// Pixels of `frames` x 2 x 2 that become channels, or channels that become pixels.
inline Tensor packed(Forward& f, Tensor x, std::int64_t frames) {
  const Tensor parted = f.unflatten(f.unflatten(f.unflatten(x, 4, {-1, 2}), 3, {-1, 2}), 2, {-1, frames});
  return f.flatten(f.contiguous(f.permute(parted, {0, 3, 5, 7, 1, 2, 4, 6})), 1, 4);
}
inline Tensor unpacked(Forward& f, Tensor x, std::int64_t frames, std::int64_t channels) {
  const Tensor parted = f.permute(f.unflatten(x, 1, {frames, 2, 2, channels}), {0, 4, 5, 1, 6, 2, 7, 3});
  return f.flatten(f.flatten(f.flatten(f.contiguous(parted), 6, 7), 4, 5), 2, 3);
}

/// Means of as many channels as there are for each of `to`.
inline Tensor averaged(Forward& f, Tensor x, std::int64_t from, std::int64_t to) {
  const Tensor parted = f.unflatten(x, 1, {to, std::max<std::int64_t>(from / to, 1)});
  return f.call("mean", {parted}, {{"dim", std::int64_t{2}}});
}
inline Tensor repeated(Forward& f, Tensor x, std::int64_t times) {
  const Tensor each = f.call("unsqueeze", {x}, {{"dim", std::int64_t{2}}});
  const Sizes shape = {-1, -1, std::max<std::int64_t>(times, 1), -1, -1, -1};
  return f.flatten(f.contiguous(f.call("expand", {each}, {{"shape", shape}})), 1, 2);
}

/// The first frame, which stays one, and the frames behind it; there may be none.
struct Parted {
  Tensor first = 0;
  Tensor rest = 0;
  bool more = false;
};
inline Parted parted(Forward& f, Tensor x, const Encoded& area) {
  if (area.frames < 2) return {x, 0, false};
  return {f.slice(x, 2, 0, 1), f.slice(x, 2, 1, area.frames - 1), true};
}
inline Tensor joined(Forward& f, const Parted& parts) {
  return parts.more ? f.concatenate({parts.first, parts.rest}, 2) : parts.first;
}

/// Half the sides, and with `time` half the frames behind the first.
inline Tensor halved(Forward& f, Tensor input, std::int64_t in, std::int64_t out, Encoded& area, bool time) {
  const InModule inside(f, "downsamplers.0", "HunyuanVideo15Downsample");
  const std::int64_t factor = time ? 8 : 4;
  const Tensor made = conv(f, "conv", input, in, out / factor);
  Tensor whole = 0;
  Tensor shortcut = 0;
  if (time) {
    Parted wide = parted(f, made, area);
    wide.first = packed(f, wide.first, 1);
    wide.first = f.concatenate({wide.first, wide.first}, 1);
    if (wide.more) wide.rest = packed(f, wide.rest, 2);
    whole = joined(f, wide);
    Parted means = parted(f, input, area);
    means.first = averaged(f, packed(f, means.first, 1), 4 * in, out);
    if (means.more) means.rest = averaged(f, packed(f, means.rest, 2), 8 * in, out);
    shortcut = joined(f, means);
    area.frames = (area.frames + 1) / 2;
  } else {
    whole = packed(f, made, 1);
    shortcut = averaged(f, packed(f, input, 1), 4 * in, out);
  }
  area.height /= 2;
  area.width /= 2;
  return f.add(whole, shortcut);
}

/// Twice the sides, and with `time` twice the frames behind the first.
inline Tensor doubled(Forward& f, Tensor input, std::int64_t in, std::int64_t out, Encoded& area, bool time) {
  const InModule inside(f, "upsamplers.0", "HunyuanVideo15Upsample");
  const std::int64_t factor = time ? 8 : 4;
  const std::int64_t times = factor * out / in;
  const Tensor made = conv(f, "conv", input, in, out * factor);
  Tensor whole = 0;
  Tensor shortcut = 0;
  if (time) {
    Parted wide = parted(f, made, area);
    wide.first = f.slice(unpacked(f, wide.first, 1, 2 * out), 1, 0, out);
    if (wide.more) wide.rest = unpacked(f, wide.rest, 2, out);
    whole = joined(f, wide);
    Parted more = parted(f, input, area);
    more.first = repeated(f, unpacked(f, more.first, 1, in / 4), times / 2);
    if (more.more) more.rest = repeated(f, unpacked(f, more.rest, 2, in / 8), times);
    shortcut = joined(f, more);
    area.frames = 2 * area.frames - 1;
  } else {
    whole = unpacked(f, made, 1, out);
    shortcut = unpacked(f, repeated(f, input, times), 1, out);
  }
  area.height *= 2;
  area.width *= 2;
  return f.add(whole, shortcut);
}

/// The encoder or the decoder; `area` is of what it reads, then of what it makes.
inline Tensor half(Forward& f, const Model& model, Tensor hidden, Encoded& area, bool decodes) {
  const InModule inside(f, decodes ? "decoder" : "encoder",
                        decodes ? "HunyuanVideo15Decoder3D" : "HunyuanVideo15Encoder3D");
  Sizes widths = model.widths;
  if (decodes) std::reverse(widths.begin(), widths.end());
  std::int64_t in = widths.front();
  if (decodes) {
    hidden = f.add(conv(f, "conv_in", hidden, model.latents, in), repeated(f, hidden, in / model.latents));
    hidden = middle(f, hidden, in, area);
  } else {
    hidden = conv(f, "conv_in", hidden, model.in, in);
  }
  for (std::size_t at = 0; at < widths.size() && !f.failed(); ++at) {
    const InModule block(f, (decodes ? "up_blocks." : "down_blocks.") + std::to_string(at), "HunyuanVideo15Block3D");
    video::blocks(f, decodes ? model.layers + 1 : model.layers, in, widths[at],
                  [&](std::int64_t from, std::int64_t to) { hidden = residual(f, hidden, from, to); });
    in = widths[at];
    const std::int64_t scale = std::int64_t{1} << at;
    if (scale >= model.side || at + 1 == widths.size()) continue;
    const std::int64_t next = (decodes ? model.joins_up : model.joins_down) ? widths[at + 1] : in;
    hidden = decodes ? doubled(f, hidden, in, next, area, scale < model.frame)
                     : halved(f, hidden, in, next, area, scale >= model.side / model.frame);
    in = next;
  }
  if (!decodes) hidden = middle(f, hidden, in, area);
  const std::int64_t out = decodes ? model.out : 2 * model.latents;
  const Tensor open = f.activation("conv_act", norm(f, "norm_out", hidden, in), "silu");
  const Tensor made = conv(f, "conv_out", open, in, out);
  return decodes ? made : f.add(made, averaged(f, hidden, in, out));
}

inline void write(ConfigFields& config, Head, Forward& f) {
  constexpr std::int64_t kMostFrames = 512;
  const Model model = read(config);
  if (!config.status()) return;
  const DenoiserSample sample = denoiser_sample(
      f, {.side = 1, .frame = 1, .patch = model.side, .usual_side = 256, .usual_frames = 5, .usual_text = 0});
  if (sample.frames > kMostFrames) return f.fail("takes at most 512 frames at once; leave some of `frames` out");
  // Whole groups of frames behind the first.
  const std::int64_t frames = (sample.frames - 1) / model.frame * model.frame + 1;
  Encoded area = {sample.height, sample.width, frames};
  const Tensor video = f.sample_input("pixel_values", {model.in, frames, sample.height, sample.width});
  const Tensor latents = video::drawn(f, half(f, model, video, area, false), model.latents);
  const Tensor made = half(f, model, latents, area, true);
  f.doubt({model::Doubt::About::kernels, "no training of such an autoencoder was measured", false});
  denoiser_loss(f, made, {model.out, area.frames, area.height, area.width});
}

inline constexpr auto kClasses = std::to_array<ModelClass>(
    {{.prefix = "Autoencoder", .model_type = "AutoencoderKLHunyuanVideo15", .ending = "KLHunyuanVideo15"},
     {.prefix = "Autoencoder", .model_type = "AutoencoderKLHunyuanImageRefiner", .ending = "KLHunyuanImageRefiner"}});

/// What print(model) shows: a step to the next level makes of a pixel's channels a fourth, or an eighth.
inline void read_tree(TreeFields& t) {
  constexpr std::int64_t kEighth = 8;
  t.take_sizes_alone();
  const Sizes widths = autoencoder_trees::levels(t, ".conv");
  std::int64_t side = 1;
  std::int64_t frame = 1;
  for (std::size_t level = 0; level < std::min<std::size_t>(widths.size(), 16); ++level) {
    const std::string step =
        autoencoder_trees::at("encoder.down_blocks", static_cast<std::int64_t>(level)) + ".downsamplers.0.conv.conv";
    const auto made = t.value(step, "out_channels");
    if (!made) continue;
    side *= 2;
    if (level + 1 < widths.size() && *made * kEighth == widths[level + 1]) frame *= 2;
  }
  t.set("spatial_compression_ratio", side);
  t.set("temporal_compression_ratio", frame);
}

inline constexpr Architecture kArchitecture = {
    .name = "hunyuan15_autoencoder",
    .model_types = names<"AutoencoderKLHunyuanVideo15", "AutoencoderKLHunyuanImageRefiner">,
    .usual_head = Head::none,
    .write = write,
    .classes = kClasses,
    .read_tree = read_tree,
    .depends_on_images = true};

}  // namespace hunyuan15_autoencoder

// AutoencoderKLMochi: an autoencoder of videos whose encoder attends, at each pixel, to earlier frames. As a part of a
// pipeline only its parameters count.
// Source: diffusers 0.40, models/autoencoders/autoencoder_kl_mochi.py; models/attention_processor.py
// (MochiVaeAttnProcessor2_0).

namespace mochi_autoencoder {

constexpr std::int64_t kHeadWidth = 32;
constexpr std::int64_t kFourier = 5;  ///< channels that FourierFeatures makes of each

struct Model {
  Sizes encoder;
  Sizes decoder;
  Sizes layers;  ///< of the first block, of each level, of the last block
  Sizes frames;  ///< how many times fewer there are behind each level
  Sizes sides;
  std::vector<bool> attends;
  std::int64_t in = 3;
  std::int64_t out = 3;
  std::int64_t latents = 12;
};

inline Model read(ConfigFields& config) {
  namespace fields = autoencoder_fields;
  Model model;
  model.encoder = fields::widths(config, "encoder_block_out_channels", {64, 128, 256, 384});
  model.decoder = fields::widths(config, "decoder_block_out_channels", {128, 256, 512, 768});
  const std::size_t levels = model.encoder.size();
  if (model.decoder.size() != levels)
    config.fail("must have as many levels as the encoder", "decoder_block_out_channels");
  model.decoder.resize(levels, 1);
  model.layers = fields::counts(config, "layers_per_block", {3, 3, 4, 6, 3});
  fields::as_long_as(config, "layers_per_block", model.layers, levels + 1);
  model.frames = fields::counts(config, "temporal_expansions", {1, 2, 3}, 8);
  fields::as_long_as(config, "temporal_expansions", model.frames, levels - 1);
  model.sides = fields::counts(config, "spatial_expansions", {2, 2, 2}, 8);
  fields::as_long_as(config, "spatial_expansions", model.sides, levels - 1);
  for (Sizes* sizes : {&model.frames, &model.sides}) {
    for (std::int64_t& size : *sizes) size = std::max<std::int64_t>(size, 1);
  }
  model.attends = fields::flags(config, "add_attention_block", {false, true, true, true, true});
  fields::as_long_as(config, "add_attention_block", model.attends, levels + 1);
  model.in = std::max<std::int64_t>(config.size_or({"in_channels"}, 15) / kFourier, 1);
  model.out = config.size_or({"out_channels"}, 3);
  model.latents = config.size_or({"latent_channels"}, 12);
  const bool small = model.in <= 1 << 8 && model.out <= 1 << 8 && model.latents <= 1 << 14;
  if (!small) config.fail("is larger than gpumem takes", "latent_channels");
  for (const std::int64_t width : model.encoder) {
    if (width % kHeadWidth != 0) config.fail("must be whole heads of 32", "encoder_block_out_channels");
  }
  config.ignore({"act_fn", "latents_mean", "latents_std", "scaling_factor"});
  return model;
}

/// MochiChunkedGroupNorm3D: eight frames at a time, joined again.
inline Tensor norm(Forward& f, const std::string& name, Tensor input, std::int64_t width, std::int64_t frames) {
  const Tensor normed = image_norm(f, name + ".norm_layer", video::as_images(f, input), width, 32);
  return video::as_video(f, f.call("clone", {normed}), frames);
}

/// CogVideoXCausalConv3d, whose cache of the last frames is returned and dropped.
inline Tensor conv(Forward& f, std::string_view name, Tensor input, std::int64_t in, std::int64_t out) {
  const Tensor padded =
      f.call("pad", {input}, {{"padding", Sizes{1, 1, 1, 1, 2, 0}}, {"mode", std::string("replicate")}});
  return video::layer(f, name, padded, in, out, video::kCube, {1, 1, 1}, "CogVideoXCausalConv3d");
}

inline Tensor residual(Forward& f, Tensor input, std::int64_t width, std::int64_t frames) {
  Tensor hidden = f.activation("nonlinearity", norm(f, "norm1", input, width, frames), "silu");
  hidden = conv(f, "conv1", hidden, width, width);
  hidden = f.activation("nonlinearity", norm(f, "norm2", hidden, width, frames), "silu");
  return f.add(conv(f, "conv2", hidden, width, width), input);
}

/// Each pixel's frames among themselves.
inline Tensor attention(Forward& f, const std::string& index, Tensor input, std::int64_t width, const Encoded& area) {
  const Tensor normed = norm(f, "norms." + index, input, width, area.frames);
  const Tensor rows = f.contiguous(f.flatten(f.permute(normed, {0, 3, 4, 2, 1}), 0, 2));
  Tensor mixed = 0;
  {
    const InModule inside(f, "attentions." + index, "Attention");
    const auto heads = [&](std::string_view name) {
      return split_heads(f, f.linear(name, rows, width, width, {.bias = false}), kHeadWidth);
    };
    const auto unit = [&](Tensor x) { return f.call("lp_normalize", {x}, {{"dim", std::int64_t{-1}}}); };
    const Tensor first = heads("to_q");
    const Tensor second = heads("to_k");
    const Tensor value = heads("to_v");
    const Tensor query = unit(first);
    const Tensor key = unit(second);
    const Tensor seen = f.call("scaled_dot_product_attention", {query, key, value}, {{"is_causal", true}});
    mixed = f.linear("to_out.0", merge_heads(f, seen), width, width);
  }
  const Tensor pixels = f.unflatten(mixed, 0, {-1, area.height, area.width});
  return f.add(input, f.permute(pixels, {0, 4, 3, 1, 2}));
}

inline Tensor blocks(Forward& f, Tensor hidden, std::int64_t width, std::int64_t count, bool attends,
                     const Encoded& area) {
  for (std::int64_t index = 0; index < count && !f.failed(); ++index) {
    {
      const InModule inside(f, "resnets." + std::to_string(index), "MochiResnetBlock3D");
      hidden = residual(f, hidden, width, area.frames);
    }
    if (attends) hidden = attention(f, std::to_string(index), hidden, width, area);
  }
  return hidden;
}

/// A linear layer over channels.
inline Tensor projected(Forward& f, std::string_view name, Tensor input, std::int64_t in, std::int64_t out, bool bias) {
  return f.permute(f.linear(name, f.permute(input, {0, 2, 3, 4, 1}), in, out, {.bias = bias}), {0, 4, 1, 2, 3});
}

/// FourierFeatures: the pixels, their sines and cosines at two frequencies, in float32.
inline Tensor waves(Forward& f, Tensor video) {
  const Tensor wide = f.to(video, "float32");
  const Tensor each = f.call("unsqueeze", {wide}, {{"dim", std::int64_t{2}}});
  const Tensor twice =
      f.flatten(f.contiguous(f.call("expand", {each}, {{"shape", Sizes{-1, -1, 2, -1, -1, -1}}})), 1, 2);
  const Tensor turned = f.scale(twice);
  return f.as_type_of(f.concatenate({wide, f.call("sin", {turned}), f.call("cos", {turned})}, 1), video);
}

inline Tensor encoded(Forward& f, const Model& model, Tensor video, Encoded& area) {
  const InModule inside(f, "encoder", "MochiEncoder3D");
  std::int64_t in = model.encoder.front();
  Tensor hidden = projected(f, "proj_in", waves(f, video), kFourier * model.in, in, true);
  {
    const InModule first(f, "block_in", "MochiMidBlock3D");
    hidden = blocks(f, hidden, in, model.layers.front(), model.attends.front(), area);
  }
  for (std::size_t at = 0; at + 1 < model.encoder.size() && !f.failed(); ++at) {
    const InModule block(f, "down_blocks." + std::to_string(at), "MochiDownBlock3D");
    const std::int64_t out = model.encoder[at + 1];
    const Sizes kernel = {model.frames[at], model.sides[at], model.sides[at]};
    const Tensor padded =
        f.call("pad", {hidden}, {{"padding", Sizes{0, 0, 0, 0, kernel[0] - 1, 0}}, {"mode", std::string("replicate")}});
    hidden = video::layer(f, "conv_in", padded, in, out, kernel, kernel, "CogVideoXCausalConv3d");
    area = {area.height / kernel[1], area.width / kernel[1], (area.frames - 1) / kernel[0] + 1};
    hidden = blocks(f, hidden, out, model.layers[at + 1], model.attends[at + 1], area);
    in = out;
  }
  {
    const InModule last(f, "block_out", "MochiMidBlock3D");
    hidden = blocks(f, hidden, in, model.layers.back(), model.attends.back(), area);
  }
  const Tensor open = f.activation("nonlinearity", norm(f, "norm_out", hidden, in, area.frames), "silu");
  return projected(f, "proj_out", open, in, 2 * model.latents, false);
}

inline Tensor decoded(Forward& f, const Model& model, Tensor latents, Encoded& area) {
  const InModule inside(f, "decoder", "MochiDecoder3D");
  const std::size_t levels = model.decoder.size();
  std::int64_t in = model.decoder.back();
  Tensor hidden = video::layer(f, "conv_in", latents, model.latents, in, video::kPoint, {1, 1, 1}, "Conv3d");
  {
    const InModule first(f, "block_in", "MochiMidBlock3D");
    hidden = blocks(f, hidden, in, model.layers.back(), false, area);
  }
  for (std::size_t at = 0; at + 1 < levels && !f.failed(); ++at) {
    const InModule block(f, "up_blocks." + std::to_string(at), "MochiUpBlock3D");
    const std::int64_t out = model.decoder[levels - 2 - at];
    const std::int64_t frames = model.frames[levels - 2 - at];
    const std::int64_t sides = model.sides[levels - 2 - at];
    hidden = blocks(f, hidden, in, model.layers[levels - 1 - at], false, area);
    const Tensor wide = projected(f, "proj", hidden, in, out * frames * sides * sides, true);
    const Tensor parted = f.unflatten(wide, 1, {out, frames, sides, sides});
    const Tensor moved = f.contiguous(f.permute(parted, {0, 1, 5, 2, 6, 3, 7, 4}));
    hidden = f.flatten(f.flatten(f.flatten(moved, 6, 7), 4, 5), 2, 3);
    area = {area.height * sides, area.width * sides, area.frames * frames};
    in = out;
  }
  {
    const InModule last(f, "block_out", "MochiMidBlock3D");
    hidden = blocks(f, hidden, in, model.layers.front(), false, area);
  }
  return projected(f, "proj_out", f.activation("nonlinearity", hidden, "silu"), in, model.out, true);
}

inline void write(ConfigFields& config, Head, Forward& f) {
  constexpr std::int64_t kMostFrames = 512;
  const Model model = read(config);
  if (!config.status()) return;
  std::int64_t sides = 1;
  for (const std::int64_t each : model.sides) sides *= each;
  const DenoiserSample sample = denoiser_sample(
      f, {.side = 1, .frame = 1, .patch = sides, .usual_side = 256, .usual_frames = 7, .usual_text = 0});
  if (sample.frames > kMostFrames) return f.fail("takes at most 512 frames at once; leave some of `frames` out");
  Encoded area = {sample.height, sample.width, sample.frames};
  const Tensor video = f.sample_input("pixel_values", {model.in, area.frames, area.height, area.width});
  const Tensor latents = video::drawn(f, encoded(f, model, video, area), model.latents);
  Tensor made = decoded(f, model, latents, area);
  f.doubt({model::Doubt::About::kernels, "no training of such an autoencoder was measured", false});
  // Frames that the decoder makes in front of the first are dropped.
  if (area.frames > sample.frames) made = f.slice(made, 2, area.frames - sample.frames, sample.frames);
  denoiser_loss(f, made, {model.out, sample.frames, area.height, area.width});
}

inline constexpr auto kClasses =
    std::to_array<ModelClass>({{.prefix = "Autoencoder", .model_type = "AutoencoderKLMochi", .ending = "KLMochi"}});

inline constexpr Architecture kArchitecture = {.name = "mochi_autoencoder",
                                               .model_types = names<"AutoencoderKLMochi">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = autoencoder_trees::read_mochi,
                                               .depends_on_images = true};

}  // namespace mochi_autoencoder

}  // namespace gpumem::architectures
