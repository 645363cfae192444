// Autoencoders of videos as frozen parts of a pipeline: AutoencoderKLWan (Wan 2.1 and 2.2), AutoencoderKLQwenImage,
// AutoencoderKLCogVideoX and AutoencoderKLHunyuanVideo; and AutoencoderKLHunyuanImage of images. Those of Wan 2.1 and
// Qwen-Image encode a sample: the first frame, then four frames at a time, with the last two frames that each
// convolution saw (_encode). Of the others only the parameters are known. Source: diffusers 0.38,
// models/autoencoders/autoencoder_kl_wan.py, autoencoder_kl_qwenimage.py, autoencoder_kl_cogvideox.py,
// autoencoder_kl_hunyuan_video.py, autoencoder_kl_hunyuanimage.py (Tencent's own code calls it HYVAE2D).
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "gpumem/architectures/denoiser.hpp"

namespace gpumem::architectures {

namespace video_autoencoders {

/// Writes modules by their parameters alone.
struct Parts {
  Forward& f;

  void conv(std::string_view name, std::int64_t in, std::int64_t out, Sizes kernel) const {
    Sizes shape = {out, in};
    shape.insert(shape.end(), kernel.begin(), kernel.end());
    (void)f.parameter(std::string(name) + ".weight", shape);
    (void)f.parameter(std::string(name) + ".bias", {out});
  }
  void linear(std::string_view name, std::int64_t width) const { conv(name, width, width, {}); }
  void norm(std::string_view name, std::int64_t width, bool bias) const {
    (void)f.parameter(std::string(name) + ".weight", {bias ? 2 * width : width});
  }
};

inline const Sizes kCube = {3, 3, 3};
inline const Sizes kPoint = {1, 1, 1};
inline const Sizes kSquare = {3, 3};
inline const Sizes kTime = {3, 1, 1};
inline const Sizes kPixel = {1, 1};

/// "name0" and so on, each with `write(in, out)`: a stage's residual blocks.
template <typename Write>
void blocks(Forward& f, std::int64_t count, std::int64_t in, std::int64_t out, const Write& write) {
  const InModule list(f, "resnets", "ModuleList");
  for (std::int64_t index = 0; index < count && !f.failed(); ++index) {
    const InModule inside(f, std::to_string(index), "ResnetBlock");
    write(index == 0 ? in : out, out);
  }
}

struct Wan {
  std::vector<std::int64_t> widths;          ///< of the encoder's levels
  std::vector<std::int64_t> decoder_widths;  ///< of the same levels
  std::vector<bool> time;                    ///< which levels halve the frames behind them
  std::int64_t layers = 2;
  std::int64_t latents = 16;
  std::int64_t in = 3;
  std::int64_t out = 3;
  bool residual = false;
};

/// Which levels halve the frames; by default all but the first.
inline std::vector<bool> read_times(ConfigFields& config, std::size_t levels) {
  std::vector<bool> times(levels, true);
  if (levels > 0) times[0] = false;
  const core::JsonValue* list = config.find("temperal_downsample");
  if (list == nullptr) return times;
  if (!list->is(core::JsonValue::Kind::list) || list->size() + 1 < levels) {
    config.fail("must be a list of true and false for all levels but the last", "temperal_downsample");
    return times;
  }
  std::size_t level = 0;
  for (const core::JsonValue& entry : list->items()) {
    if (level == levels) break;
    times[level++] = entry.is(core::JsonValue::Kind::boolean) && entry.boolean();
  }
  return times;
}

inline Wan read_wan(ConfigFields& config) {
  constexpr std::size_t kMostLevels = 8;
  constexpr std::int64_t kMostTimes = 1 << 10;
  Wan wan;
  const std::int64_t base = config.size_or({"base_dim"}, 96);
  const std::int64_t decoder = config.size_or({"decoder_base_dim"}, base);
  const std::vector<std::int64_t> times = config.sizes_or("dim_mult", {1, 2, 4, 4});
  if (times.empty() || times.size() > kMostLevels) config.fail("must have from 1 to 8 entries", "dim_mult");
  for (const std::int64_t each : times) {
    if (each > kMostTimes) config.fail("is more than any model has", "dim_mult");
    wan.widths.push_back(base * std::min(each, kMostTimes));
    wan.decoder_widths.push_back(decoder * std::min(each, kMostTimes));
  }
  wan.time = read_times(config, wan.widths.size());
  wan.layers = config.layers_or("num_res_blocks", 2);
  wan.latents = config.size_or({"z_dim"}, 16);
  wan.in = config.size_or({"in_channels", "input_channels"}, 3);
  wan.out = config.size_or({"out_channels"}, wan.in);
  wan.residual = config.flag("is_residual", false);
  const core::JsonValue* scales = config.find("attn_scales");
  if (scales != nullptr && scales->size() > 0) config.fail("is a variant that is not known", "attn_scales");
  config.ignore({"dropout", "latents_mean", "latents_std", "patch_size", "scale_factor_temporal",
                 "scale_factor_spatial", "clip_output"});
  return wan;
}

inline void wan_block(const Parts& p, std::int64_t in, std::int64_t out) {
  p.norm("norm1", in, false);
  p.conv("conv1", in, out, kCube);
  p.norm("norm2", out, false);
  p.conv("conv2", out, out, kCube);
  if (in != out) p.conv("conv_shortcut", in, out, kPoint);
}

inline void wan_middle(const Parts& p, std::int64_t width) {
  const InModule inside(p.f, "mid_block", "WanMidBlock");
  blocks(p.f, 2, width, width, [&](std::int64_t in, std::int64_t out) { wan_block(p, in, out); });
  p.norm("attentions.0.norm", width, false);
  p.conv("attentions.0.to_qkv", width, 3 * width, kPixel);
  p.conv("attentions.0.proj", width, width, kPixel);
}

inline void write_wan_encoder(const Parts& p, const Wan& wan) {
  const InModule inside(p.f, "encoder", "WanEncoder3d");
  p.conv("conv_in", wan.in, wan.widths.front(), kCube);
  std::int64_t in = wan.widths.front();
  for (std::size_t level = 0; level < wan.widths.size() && !p.f.failed(); ++level) {
    const InModule block(p.f, "down_blocks." + std::to_string(level), "WanDownBlock");
    const std::int64_t out = wan.widths[level];
    blocks(p.f, wan.layers, in, out, [&](std::int64_t from, std::int64_t to) { wan_block(p, from, to); });
    in = out;
    if (level + 1 == wan.widths.size()) break;
    p.conv("downsampler.resample.1", out, out, kSquare);
    if (wan.time[level]) p.conv("downsampler.time_conv", out, out, kTime);
  }
  wan_middle(p, in);
  p.norm("norm_out", in, false);
  p.conv("conv_out", in, 2 * wan.latents, kCube);
}

inline void write_wan_decoder(const Parts& p, const Wan& wan) {
  const InModule inside(p.f, "decoder", "WanDecoder3d");
  const std::size_t levels = wan.decoder_widths.size();
  std::int64_t in = wan.decoder_widths.back();
  p.conv("conv_in", wan.latents, in, kCube);
  wan_middle(p, in);
  for (std::size_t level = 0; level < levels && !p.f.failed(); ++level) {
    const InModule block(p.f, "up_blocks." + std::to_string(level), "WanUpBlock");
    const std::int64_t out = wan.decoder_widths[levels - 1 - level];
    blocks(p.f, wan.layers + 1, in, out, [&](std::int64_t from, std::int64_t to) { wan_block(p, from, to); });
    in = out;
    if (level + 1 == levels) break;
    if (!wan.residual) in = out / 2;
    p.conv("upsampler.resample.1", out, in, kSquare);
    if (wan.time[levels - 2 - level]) p.conv("upsampler.time_conv", out, 2 * out, kTime);
  }
  p.norm("norm_out", in, false);
  p.conv("conv_out", in, wan.out, kCube);
}

/// What the others share: levels of residual blocks with group norms.
struct Levels {
  std::vector<std::int64_t> widths;
  std::int64_t layers = 2;
  std::int64_t latents = 16;
  std::int64_t in = 3;
  std::int64_t out = 3;
  bool spatial = false;  ///< CogVideoX: its decoder's norms read the latents; frames are resampled without weights
  bool attends = false;
};

inline Levels read_levels(ConfigFields& config, bool cog) {
  constexpr std::size_t kMostLevels = 8;
  Levels levels;
  levels.spatial = cog;
  levels.widths = config.sizes_or("block_out_channels", cog ? std::vector<std::int64_t>{128, 256, 256, 512}
                                                            : std::vector<std::int64_t>{128, 256, 512, 512});
  if (levels.widths.empty() || levels.widths.size() > kMostLevels) {
    config.fail("must have from 1 to 8 entries", "block_out_channels");
    levels.widths = {1};
  }
  levels.layers = config.layers_or("layers_per_block", cog ? 3 : 2);
  levels.latents = config.size_or({"latent_channels"}, 16);
  levels.in = config.size_or({"in_channels"}, 3);
  levels.out = config.size_or({"out_channels"}, 3);
  levels.attends = !cog && config.flag("mid_block_add_attention", true);
  for (const std::string_view field : {"use_quant_conv", "use_post_quant_conv"}) {
    if (cog && config.flag(field, false)) config.fail("is a variant that is not known", field);
  }
  config.ignore({"act_fn", "norm_eps", "norm_num_groups", "temporal_compression_ratio", "time_compression_ratio",
                 "spatial_compression_ratio", "sample_height", "sample_width", "sample_size", "sample_tsize",
                 "scaling_factor", "shift_factor", "latents_mean", "latents_std", "force_upcast",
                 "invert_scale_latents", "down_block_types", "up_block_types"});
  return levels;
}

/// A norm, in CogVideoX's decoder with scale and shift from the latents.
inline void level_norm(const Parts& p, const Levels& l, std::string_view name, std::int64_t width, bool decodes) {
  p.norm(name, width, true);
  if (!l.spatial || !decodes) return;
  p.conv(std::string(name) + ".conv_y", l.latents, width, kPoint);
  p.conv(std::string(name) + ".conv_b", l.latents, width, kPoint);
}

inline void level_blocks(const Parts& p, const Levels& l, std::int64_t count, std::int64_t in, std::int64_t out,
                         bool decodes) {
  blocks(p.f, count, in, out, [&](std::int64_t from, std::int64_t to) {
    level_norm(p, l, "norm1", from, decodes);
    p.conv("conv1", from, to, kCube);
    level_norm(p, l, "norm2", to, decodes);
    p.conv("conv2", to, to, kCube);
    if (from != to) p.conv("conv_shortcut", from, to, kPoint);
  });
}

inline void level_middle(const Parts& p, const Levels& l, bool decodes) {
  const InModule inside(p.f, "mid_block", "MidBlock3D");
  const std::int64_t width = l.widths.back();
  level_blocks(p, l, 2, width, width, decodes);
  if (!l.attends) return;
  p.norm("attentions.0.group_norm", width, true);
  for (const std::string_view name : {"to_q", "to_k", "to_v", "to_out.0"}) {
    p.linear("attentions.0." + std::string(name), width);
  }
}

/// The encoder or the decoder.
inline void write_half(const Parts& p, const Levels& l, bool decodes) {
  const InModule inside(p.f, decodes ? "decoder" : "encoder", decodes ? "Decoder3D" : "Encoder3D");
  const std::size_t count = l.widths.size();
  std::int64_t in = decodes ? l.widths.back() : l.widths.front();
  p.conv("conv_in", decodes ? l.latents : l.in, in, kCube);
  for (std::size_t level = 0; level < count && !p.f.failed(); ++level) {
    const InModule block(p.f, "blocks." + std::to_string(level), "Block3D");
    const std::int64_t out = l.widths[decodes ? count - 1 - level : level];
    level_blocks(p, l, decodes ? l.layers + 1 : l.layers, in, out, decodes);
    in = out;
    if (level + 1 < count) p.conv("samplers.0.conv", out, out, l.spatial ? kSquare : kCube);
  }
  level_middle(p, l, decodes);
  level_norm(p, l, "norm_out", in, decodes);
  p.conv("conv_out", in, decodes ? l.out : 2 * l.latents, kCube);
}

/// AutoencoderKLHunyuanImage, an autoencoder of images: a side is halved where pixels become channels.
inline void write_pixel_half(const Parts& p, const Levels& l, std::int64_t shrinks, bool joins, bool decodes) {
  const InModule inside(p.f, decodes ? "decoder" : "encoder", decodes ? "Decoder2D" : "Encoder2D");
  std::vector<std::int64_t> widths = l.widths;
  if (decodes) std::reverse(widths.begin(), widths.end());
  const auto block = [&](std::int64_t from, std::int64_t to) {
    p.norm("norm1", from, true);
    p.conv("conv1", from, to, kSquare);
    p.norm("norm2", to, true);
    p.conv("conv2", to, to, kSquare);
    if (from != to) p.conv("conv_shortcut", from, to, kPixel);
  };
  p.conv("conv_in", decodes ? l.latents : l.in, widths.front(), kSquare);
  {
    const InModule middle(p.f, "mid_block", "MidBlock2D");
    const std::int64_t width = l.widths.back();
    blocks(p.f, 2, width, width, block);
    p.norm("attentions.0.norm", width, true);
    for (const std::string_view name : {"to_q", "to_k", "to_v", "proj"}) {
      p.linear("attentions.0." + std::string(name), width);
    }
  }
  std::int64_t in = widths.front();
  for (std::size_t level = 0; level < widths.size() && !p.f.failed(); ++level) {
    const InModule stage(p.f, "blocks." + std::to_string(level), "Blocks2D");
    blocks(p.f, decodes ? l.layers + 1 : l.layers, in, widths[level], block);
    in = widths[level];
    if (level + 1 == widths.size() || std::int64_t{1} << level >= shrinks) continue;
    const std::int64_t next = joins ? widths[level + 1] : in;
    p.conv(decodes ? "upsampler.conv" : "downsampler.conv", in, decodes ? 4 * next : next / 4, kSquare);
    in = next;
  }
  p.norm("norm_out", in, true);
  p.conv("conv_out", in, decodes ? l.out : 2 * l.latents, kSquare);
}

inline void write_pixels(ConfigFields& config, Forward& f) {
  const Levels levels = read_levels(config, false);
  const std::int64_t shrinks = config.size_or({"spatial_compression_ratio", "ffactor_spatial"}, 32);
  const bool joins = config.flag("downsample_match_channel", true);
  if (!config.status()) return;
  write_pixel_half({f}, levels, shrinks, joins, false);
  write_pixel_half({f}, levels, shrinks, config.flag("upsample_match_channel", true), true);
}

inline void write(ConfigFields& config, Head, Forward& f) {
  const std::string_view type = config.text({"_class_name"}, "");
  const Parts p{f};
  if (type == "AutoencoderKLHunyuanImage" || type == "HYVAE2D") return write_pixels(config, f);
  if (type == "AutoencoderKLWan" || type == "AutoencoderKLQwenImage") {
    const Wan wan = read_wan(config);
    if (!config.status()) return;
    write_wan_encoder(p, wan);
    write_wan_decoder(p, wan);
    p.conv("quant_conv", 2 * wan.latents, 2 * wan.latents, kPoint);
    p.conv("post_quant_conv", wan.latents, wan.latents, kPoint);
    return;
  }
  const bool cog = type == "AutoencoderKLCogVideoX";
  const Levels levels = read_levels(config, cog);
  if (!config.status()) return;
  write_half(p, levels, false);
  write_half(p, levels, true);
  if (cog) return;
  p.conv("quant_conv", 2 * levels.latents, 2 * levels.latents, kPoint);
  p.conv("post_quant_conv", levels.latents, levels.latents, kPoint);
}

/// One part of a video on its way through Wan's encoder, and the frames that the part before has left.
struct WanPass {
  Forward& f;
  std::vector<Tensor> cached = {};         ///< what each convolution saw last
  std::vector<std::int64_t> lengths = {};  ///< frames of these
  std::size_t at = 0;
  bool first = true;

  /// The first part finds nothing cached.
  [[nodiscard]] bool reads_cache() const { return !first; }
};

/// WanRMS_norm of an axis of channels, of images or videos.
inline Tensor wan_norm(Forward& f, std::string_view name, Tensor input, std::int64_t width, bool images) {
  const InModule inside(f, name, "WanRMS_norm");
  const Tensor normed = f.call("lp_normalize", {f.to(input, "float32")}, {{"dim", std::int64_t{1}}});
  const Tensor scaled = f.scale(f.as_type_of(normed, input));
  const Tensor gamma = f.parameter("gamma", images ? Sizes{width, 1, 1} : Sizes{width, 1, 1, 1});
  return f.leave_function(f.call("add", {f.multiply(scaled, gamma)}), {normed, input});
}

inline Tensor wan_layer(Forward& f, std::string_view name, Tensor input, std::int64_t in, std::int64_t out,
                        const Sizes& kernel, const Sizes& stride) {
  return f.layer(name, "WanCausalConv3d", "conv3d", {input},
                 {{"in_channels", in}, {"out_channels", out}, {"kernel_size", kernel}, {"stride", stride}});
}

/// WanCausalConv3d of 3 x 3 x 3 with its cache: the last two frames of its input, with one of before where it has one.
inline Tensor wan_conv(WanPass& pass, std::string_view name, Tensor input, std::int64_t frames, std::int64_t in,
                       std::int64_t out) {
  constexpr std::int64_t kKept = 2;
  Forward& f = pass.f;
  const std::int64_t last = std::min(frames, kKept);
  Tensor kept = f.call("clone", {f.slice(input, 2, frames - last, last)});
  std::int64_t length = last;
  std::int64_t padded = kKept;
  Tensor read = input;
  Tensor before = input;
  if (pass.reads_cache()) {
    before = pass.cached[pass.at];
    const std::int64_t had = pass.lengths[pass.at];
    if (last < kKept) {
      kept = f.concatenate({f.slice(before, 2, had - 1, 1), kept}, 2);
      length = kKept;
    }
    read = f.concatenate({before, input}, 2);
    padded -= had;
    pass.cached[pass.at] = kept;
    pass.lengths[pass.at] = length;
  } else {
    pass.cached.push_back(kept);
    pass.lengths.push_back(length);
  }
  ++pass.at;
  read = f.call("pad", {read}, {{"padding", Sizes{1, 1, 1, 1, padded, 0}}});
  return f.leave_function(wan_layer(f, name, read, in, out, kCube, {1, 1, 1}), {input, before});
}

inline Tensor wan_residual(WanPass& pass, Tensor input, std::int64_t frames, std::int64_t in, std::int64_t out) {
  Forward& f = pass.f;
  const Tensor shortcut =
      in == out ? input : wan_layer(f, "conv_shortcut", f.call("clone", {input}), in, out, kPoint, {1, 1, 1});
  Tensor hidden = f.activation("nonlinearity", wan_norm(f, "norm1", input, in, false), "silu");
  hidden = wan_conv(pass, "conv1", hidden, frames, in, out);
  hidden = f.activation("nonlinearity", wan_norm(f, "norm2", hidden, out, false), "silu");
  return f.add(wan_conv(pass, "conv2", hidden, frames, out, out), shortcut);
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

/// WanResample: half the sides; of all parts but the first half the frames, where the level says so.
inline Tensor wan_halved(WanPass& pass, Tensor input, std::int64_t& frames, std::int64_t width, bool time) {
  Forward& f = pass.f;
  const InModule inside(f, "downsampler", "WanResample");
  const Tensor padded = f.call("pad", {as_images(f, input)}, {{"padding", Sizes{0, 1, 0, 1}}});
  Tensor hidden = as_video(f, image_layer(f, "resample.1", padded, width, width, kSquare, 2), frames);
  if (!time) return hidden;
  if (!pass.reads_cache()) {
    pass.cached.push_back(f.call("clone", {hidden}));
    pass.lengths.push_back(frames);
    ++pass.at;
    return hidden;
  }
  const Tensor before = f.slice(pass.cached[pass.at], 2, pass.lengths[pass.at] - 1, 1);
  const Tensor kept = f.call("clone", {f.slice(hidden, 2, frames - 1, 1)});
  hidden = wan_layer(f, "time_conv", f.concatenate({before, hidden}, 2), width, width, kTime, {2, 1, 1});
  pass.cached[pass.at] = kept;
  pass.lengths[pass.at++] = 1;
  frames /= 2;
  return hidden;
}

inline Tensor wan_attention(Forward& f, Tensor input, std::int64_t frames, std::int64_t width, const Encoded& area) {
  const InModule inside(f, "attentions.0", "WanAttentionBlock");
  const Tensor normed = wan_norm(f, "norm", as_images(f, input), width, true);
  const Tensor all = image_layer(f, "to_qkv", normed, width, 3 * width, kPixel, 1);
  const Tensor rows = f.contiguous(f.permute(f.flatten(all, 2, 3), {0, 2, 1}));
  const std::vector<Tensor> parts = f.split(rows, 2, Sizes(3, width));
  const Tensor mixed = denoiser_attention(f, parts[0], parts[1], parts[2], width);
  const Tensor images = f.unflatten(f.permute(mixed, {0, 2, 1}), 2, {area.height, area.width});
  return f.add(as_video(f, image_layer(f, "proj", images, width, width, kPixel, 1), frames), input);
}

/// WanEncoder3d of one part: latents [N, 2 latents, frames, height, width].
inline Tensor wan_encoded(WanPass& pass, const Wan& wan, Tensor part, std::int64_t frames, const Encoded& size) {
  Forward& f = pass.f;
  const InModule inside(f, "encoder", "WanEncoder3d");
  std::int64_t in = wan.widths.front();
  Tensor hidden = wan_conv(pass, "conv_in", part, frames, wan.in, in);
  std::int64_t sides = 1;
  for (std::size_t level = 0; level < wan.widths.size() && !f.failed(); ++level) {
    const InModule block(f, "down_blocks." + std::to_string(level), "WanDownBlock");
    blocks(f, wan.layers, in, wan.widths[level],
           [&](std::int64_t from, std::int64_t to) { hidden = wan_residual(pass, hidden, frames, from, to); });
    in = wan.widths[level];
    if (level + 1 == wan.widths.size()) break;
    hidden = wan_halved(pass, hidden, frames, in, wan.time[level]);
    sides *= 2;
  }
  {
    const InModule middle(f, "mid_block", "WanMidBlock");
    blocks(f, 1, in, in, [&](std::int64_t, std::int64_t) { hidden = wan_residual(pass, hidden, frames, in, in); });
    hidden = wan_attention(f, hidden, frames, in, {size.height / sides, size.width / sides, frames});
    blocks(f, 1, in, in, [&](std::int64_t, std::int64_t) { hidden = wan_residual(pass, hidden, frames, in, in); });
  }
  hidden = f.activation("nonlinearity", wan_norm(f, "norm_out", hidden, in, false), "silu");
  return wan_conv(pass, "conv_out", hidden, frames, in, 2 * wan.latents);
}

inline void encode(ConfigFields& config, const Encoded& size, Forward& f) {
  constexpr std::int64_t kPart = 4;       // frames
  constexpr std::int64_t kTile = 256;     // tile_sample_min_height and _width
  constexpr std::int64_t kMostParts = 2;  // behind the first one: from the second on, all take as much
  const std::string_view type = config.text({"_class_name"}, "");
  if (type != "AutoencoderKLWan" && type != "AutoencoderKLQwenImage") return write(config, Head::none, f);
  if (config.flag("is_residual", false)) return write(config, Head::none, f);
  const Wan wan = read_wan(config);
  if (!config.status()) return;
  const Tensor whole = f.sample_input("pixel_values", {wan.in, size.frames, size.height, size.width});
  const Encoded tile = size.tile(kTile);
  const Tensor video = read_at_once(f, whole, size, tile);
  WanPass pass{f};
  std::vector<Tensor> latents = {wan_encoded(pass, wan, f.slice(video, 2, 0, 1), 1, tile)};
  f.repeat_parameters(true);
  pass.first = false;
  const std::int64_t parts = (size.frames - 1) / kPart;
  if (parts > kMostParts) {
    f.remark("the video is encoded in " + std::to_string(1 + parts) + " passes, of which " +
             std::to_string(1 + kMostParts) +
             " are counted: enough for the peak, and a step takes longer than is said");
  }
  for (std::int64_t part = 0; part < std::min(kMostParts, parts); ++part) {
    pass.at = 0;
    latents.push_back(wan_encoded(pass, wan, f.slice(video, 2, 1 + kPart * part, kPart), kPart, tile));
  }
  f.repeat_parameters(false);
  Tensor made = latents.size() > 1 ? f.concatenate(latents, 2) : latents[0];
  for (const Tensor kept : pass.cached) made = f.leave_function(made, {kept});  // clear_cache()
  const std::int64_t shrinks = std::int64_t{1} << (wan.widths.size() - 1);
  (void)joined_latents(f, made, size, tile, shrinks);
  const Parts p{f};
  write_wan_decoder(p, wan);
  p.conv("quant_conv", 2 * wan.latents, 2 * wan.latents, kPoint);
  p.conv("post_quant_conv", wan.latents, wan.latents, kPoint);
}

inline constexpr Architecture kArchitecture = {
    .name = "video_autoencoders",
    .model_types = names<"AutoencoderKLWan", "AutoencoderKLQwenImage", "AutoencoderKLCogVideoX",
                         "AutoencoderKLHunyuanVideo", "AutoencoderKLCausal3D", "AutoencoderKLHunyuanImage", "HYVAE2D">,
    .usual_head = Head::none,
    .write = write,
    .parameters_only = true,
    .encode = encode};

}  // namespace video_autoencoders

}  // namespace gpumem::architectures
