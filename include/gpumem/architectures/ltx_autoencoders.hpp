// AutoencoderKLLTXVideo (LTX-Video) and AutoencoderKLLTX2Video (LTX-2): autoencoders of videos that read pixels of 4 x
// 4 as channels, with norms over channels. As parts of a pipeline only their parameters count. Source: diffusers 0.40,
// models/autoencoders/autoencoder_kl_ltx.py, autoencoder_kl_ltx2.py.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "gpumem/architectures/autoencoder_parts.hpp"
#include "gpumem/architectures/denoiser.hpp"
#include "gpumem/architectures/dit_parts.hpp"

namespace gpumem::architectures {

namespace ltx_autoencoders {

/// How a level of an encoder or a decoder changes the size.
struct Step {
  bool convolves = false;  ///< by a convolution of stride 2, and no shortcut
  std::int64_t frames = 2;
  std::int64_t sides = 2;
};

struct Level {
  std::int64_t width = 1;
  std::int64_t layers = 1;
  bool scales = true;
  Step step = {};
  bool noise = false;
  bool shortcut = false;    ///< around a decoder's change of size
  std::int64_t factor = 1;  ///< channels that a decoder's change of size takes away
};

struct Model {
  bool second = false;  ///< LTX-2
  bool joins = false;   ///< an encoder's levels widen where they shrink (LTX-Video 0.9.5 and later)
  std::int64_t in = 3;
  std::int64_t out = 3;
  std::int64_t latents = 128;
  std::int64_t patch = 4;
  std::vector<Level> down;
  std::vector<Level> up;  ///< in the order in which they run
  std::int64_t down_middle = 4;
  std::int64_t up_middle = 4;
  bool middle_noise = false;
  std::int64_t first_width = 128;
  bool timed = false;
};

/// The same number for each level.
inline Sizes alike(std::size_t levels, std::int64_t value) { return Sizes(levels, value); }

inline Step step_of(ConfigFields& config, std::string_view field, const std::string& name) {
  if (name == "conv") return {true, 2, 2};
  if (name == "spatial") return {false, 1, 2};
  if (name == "temporal") return {false, 2, 1};
  if (name != "spatiotemporal") config.fail("is a variant that is not known", field);
  return {};
}

inline void read_down(ConfigFields& config, Model& model) {
  namespace fields = autoencoder_fields;
  const bool second = model.second;
  Sizes widths =
      fields::widths(config, "block_out_channels", second ? Sizes{256, 512, 1024, 2048} : Sizes{128, 256, 512, 512});
  const std::vector<std::string> types = config.texts_or("down_block_types", {"LTXVideoDownBlock3D"});
  model.joins = second || (!types.empty() && types.back() == "LTXVideo095DownBlock3D");
  model.first_width = second ? model.latents : widths.front();
  // The list of the newer classes of LTX-Video begins with what conv_in makes.
  if (model.joins && !second && widths.size() > 1) widths.erase(widths.begin());
  const std::size_t levels = widths.size();
  Sizes layers = fields::counts(config, "layers_per_block", second ? Sizes{4, 6, 6, 2, 2} : Sizes{4, 3, 3, 3, 4});
  fields::as_long_as(config, "layers_per_block", layers, levels + 1);
  std::vector<bool> scales =
      fields::flags(config, "spatio_temporal_scaling",
                    second ? std::vector<bool>(4, true) : std::vector<bool>{true, true, true, false});
  fields::as_long_as(config, "spatio_temporal_scaling", scales, levels);
  std::vector<std::string> steps = config.texts_or(
      "downsample_type", second ? std::vector<std::string>{"spatial", "temporal", "spatiotemporal", "spatiotemporal"}
                                : std::vector<std::string>(levels, "conv"));
  fields::as_long_as(config, "downsample_type", steps, levels);
  for (std::size_t at = 0; at < levels; ++at) {
    Level level{.width = widths[at], .layers = layers[at], .scales = scales[at]};
    level.step = model.joins ? step_of(config, "downsample_type", steps[at]) : Step{true, 2, 2};
    // An older class widens behind its change of size, to the next level's width.
    if (!model.joins) level.width = widths[std::min(at + 1, levels - 1)];
    model.down.push_back(level);
  }
  model.down_middle = layers[levels];
}

inline void read_up(ConfigFields& config, Model& model) {
  namespace fields = autoencoder_fields;
  const bool second = model.second;
  Sizes widths =
      fields::widths(config, "decoder_block_out_channels", second ? Sizes{256, 512, 1024} : Sizes{128, 256, 512, 512});
  const std::size_t levels = widths.size();
  Sizes layers = fields::counts(config, "decoder_layers_per_block", second ? Sizes{5, 5, 5, 5} : Sizes{4, 3, 3, 3, 4});
  fields::as_long_as(config, "decoder_layers_per_block", layers, levels + 1);
  std::vector<bool> scales =
      fields::flags(config, "decoder_spatio_temporal_scaling",
                    second ? std::vector<bool>(3, true) : std::vector<bool>{true, true, true, false});
  fields::as_long_as(config, "decoder_spatio_temporal_scaling", scales, levels);
  std::vector<bool> noise = fields::flags(config, "decoder_inject_noise", std::vector<bool>(levels + 1, false));
  fields::as_long_as(config, "decoder_inject_noise", noise, levels + 1);
  std::vector<bool> shortcuts = fields::flags(config, "upsample_residual", std::vector<bool>(levels, second));
  fields::as_long_as(config, "upsample_residual", shortcuts, levels);
  Sizes factors = fields::counts(config, "upsample_factor", alike(levels, second ? 2 : 1));
  fields::as_long_as(config, "upsample_factor", factors, levels);
  std::vector<std::string> steps = config.texts_or("upsample_type", std::vector<std::string>(levels, "spatiotemporal"));
  fields::as_long_as(config, "upsample_type", steps, levels);
  for (std::size_t at = levels; at-- > 0;) {
    const std::int64_t factor = std::max<std::int64_t>(factors[at], 1);
    Level level{.width = std::max<std::int64_t>(widths[at] / factor, 1), .layers = layers[at], .scales = scales[at]};
    level.step = step_of(config, "upsample_type", steps[levels - 1 - at]);
    level.noise = noise[at];
    level.shortcut = shortcuts[at];
    level.factor = factor;
    model.up.push_back(level);
  }
  model.up_middle = layers[levels];
  model.middle_noise = noise[levels];
}

inline Model read(ConfigFields& config) {
  Model model;
  model.second = config.text({"_class_name"}, "") == "AutoencoderKLLTX2Video";
  model.in = config.size_or({"in_channels"}, 3);
  model.out = config.size_or({"out_channels"}, 3);
  model.latents = config.size_or({"latent_channels"}, 128);
  model.patch = config.size_or({"patch_size"}, 4);
  model.timed = config.flag("timestep_conditioning", false);
  const bool small = model.in <= 1 << 8 && model.out <= 1 << 8 && model.latents <= 1 << 14 && model.patch <= 16;
  if (!small) config.fail("is larger than gpumem takes", "latent_channels");
  if (config.size_or({"patch_size_t"}, 1) != 1) config.fail("is a variant that is not known", "patch_size_t");
  read_down(config, model);
  read_up(config, model);
  config.ignore({"resnet_norm_eps", "scaling_factor", "encoder_causal", "decoder_causal", "spatial_compression_ratio",
                 "temporal_compression_ratio", "encoder_spatial_padding_mode", "decoder_spatial_padding_mode",
                 "latents_mean", "latents_std"});
  return model;
}

/// A convolution over frames, whose first one is repeated in front of them.
inline Tensor conv(Forward& f, std::string_view name, Tensor input, std::int64_t in, std::int64_t out,
                   std::int64_t stride = 1) {
  const Tensor longer = f.call("pad", {input}, {{"padding", Sizes{0, 0, 0, 0, 2, 0}}});
  return f.layer(name, "LTXVideoCausalConv3d", "conv3d", {longer},
                 {{"in_channels", in},
                  {"out_channels", out},
                  {"kernel_size", video::kCube},
                  {"stride", Sizes(3, stride)},
                  {"padding", Sizes{0, 1, 1}}});
}

/// RMSNorm over channels, without a weight.
inline Tensor norm(Forward& f, const Model& model, std::string_view name, Tensor input, std::int64_t width) {
  if (!model.second) {
    return f.permute(own_rms_norm(f, name, f.permute(input, {0, 2, 3, 4, 1}), width, false), {0, 4, 1, 2, 3});
  }
  const InModule inside(f, name, "PerChannelRMSNorm");
  const Tensor mean = f.call("mean", {f.call("pow", {input})}, {{"dim", std::int64_t{1}}, {"keepdim", true}});
  return f.call("div", {input, f.call("sqrt", {f.call("add", {mean})})});
}

/// What a residual block has besides its convolutions.
struct Extras {
  bool noise = false;
  std::optional<Tensor> time = {};  ///< [N, 4 width, 1, 1, 1]
};

inline Tensor residual(Forward& f, const Model& model, Tensor input, std::int64_t in, std::int64_t out,
                       const Extras& extras) {
  std::vector<Tensor> rows;
  if (extras.time) {
    const Tensor table = f.unflatten(f.parameter("scale_shift_table", {4, in}), 1, {in, 1, 1, 1});
    rows = chunks(f, f.add(f.unflatten(*extras.time, 1, {4, in}), table), 1, 4, 1);
    for (Tensor& row : rows) row = f.call("squeeze", {row}, {{"dim", std::int64_t{1}}});
  }
  const auto half = [&](std::string_view norm_name, std::string_view name, Tensor x, std::int64_t from,
                        std::size_t at) {
    Tensor hidden = norm(f, model, norm_name, x, from);
    if (extras.time) hidden = modulated(f, hidden, rows[at + 1], rows[at]);
    hidden = conv(f, name, f.activation("nonlinearity", hidden, "silu"), from, out);
    if (!extras.noise) return hidden;
    const Tensor scale = f.parameter(at == 0 ? "per_channel_scale1" : "per_channel_scale2", {in, 1, 1, 1});
    return f.add(hidden, f.scale(scale));
  };
  const Tensor made = half("norm2", "conv2", half("norm1", "conv1", input, in, 0), out, 2);
  if (in == out) return f.add(made, input);
  const Tensor rows_last = f.layer_norm("norm3", f.permute(input, {0, 2, 3, 4, 1}), in);
  const Tensor normed = f.permute(rows_last, {0, 4, 1, 2, 3});
  return f.add(made, video::layer(f, "conv_shortcut", normed, in, out, video::kPoint, {1, 1, 1}));
}

/// PixArtAlphaCombinedTimestepSizeEmbeddings of this width, [N, width, 1, 1, 1].
inline Tensor time_of(Forward& f, std::string_view name, Tensor sinusoids, std::int64_t width) {
  constexpr std::int64_t kSinusoids = 256;
  const InModule inside(f, name, "PixArtAlphaCombinedTimestepSizeEmbeddings");
  return f.unflatten(timestep_embedding(f, "timestep_embedder", sinusoids, kSinusoids, width), 1, {width, 1, 1, 1});
}

/// Pixels of frames x sides x sides that become channels, or channels that become pixels.
inline Tensor packed(Forward& f, Tensor x, const Step& step) {
  const Tensor wide = f.unflatten(f.unflatten(x, 4, {-1, step.sides}), 3, {-1, step.sides});
  const Tensor parted = f.unflatten(wide, 2, {-1, step.frames});
  return f.flatten(f.contiguous(f.permute(parted, {0, 1, 3, 5, 7, 2, 4, 6})), 1, 4);
}
inline Tensor unpacked(Forward& f, Tensor x, const Step& step, std::int64_t channels) {
  const Tensor parted = f.unflatten(x, 1, {channels, step.frames, step.sides, step.sides});
  const Tensor moved = f.contiguous(f.permute(parted, {0, 1, 5, 2, 6, 3, 7, 4}));
  return f.flatten(f.flatten(f.flatten(moved, 6, 7), 4, 5), 2, 3);
}

inline void resize(Encoded& area, const Step& step, bool grows) {
  area.height = grows ? area.height * step.sides : area.height / step.sides;
  area.width = grows ? area.width * step.sides : area.width / step.sides;
  if (step.frames == 1) return;
  area.frames = grows ? 2 * area.frames - 1 : (area.frames + 1) / 2;
}

inline Tensor shrunk(Forward& f, Tensor input, std::int64_t in, const Level& level, Encoded& area) {
  const InModule list(f, "downsamplers", "ModuleList");
  resize(area, level.step, false);
  if (level.step.convolves) return conv(f, "0", input, in, in, 2);
  const InModule inside(f, "0", "LTXVideoDownsampler3d");
  const std::int64_t group = level.step.frames * level.step.sides * level.step.sides;
  Tensor longer = input;
  if (level.step.frames > 1) longer = f.concatenate({f.slice(input, 2, 0, 1), input}, 2);
  const std::int64_t share = std::max<std::int64_t>(in * group / level.width, 1);
  const Tensor grouped = f.unflatten(packed(f, longer, level.step), 1, {in * group / share, share});
  const Tensor means = f.call("mean", {grouped}, {{"dim", std::int64_t{2}}});
  return f.add(packed(f, conv(f, "conv", longer, in, level.width / group), level.step), means);
}

inline Tensor grown(Forward& f, Tensor input, std::int64_t width, const Level& level, Encoded& area) {
  const InModule list(f, "upsamplers", "ModuleList");
  const InModule inside(f, "0", "LTXVideoUpsampler3d");
  const std::int64_t group = level.step.frames * level.step.sides * level.step.sides;
  const std::int64_t in = width * level.factor;
  const auto behind = [&](Tensor x) {
    return level.step.frames == 1 ? x : f.slice(x, 2, 1, level.step.frames * area.frames - 1);
  };
  Tensor shortcut = 0;
  if (level.shortcut) {
    const std::int64_t times = std::max<std::int64_t>(group / level.factor, 1);
    const Tensor wide = unpacked(f, input, level.step, std::max<std::int64_t>(in / group, 1));
    shortcut = behind(f.concatenate(std::vector<Tensor>(static_cast<std::size_t>(times), wide), 1));
  }
  Tensor made = behind(unpacked(f, conv(f, "conv", input, in, in * group / level.factor), level.step, width));
  if (level.shortcut) made = f.add(made, shortcut);
  resize(area, level.step, true);
  return made;
}

inline Tensor middle(Forward& f, const Model& model, Tensor hidden, std::int64_t width, std::int64_t layers, bool noise,
                     std::optional<Tensor> sinusoids) {
  const InModule inside(f, "mid_block", "LTXVideoMidBlock3d");
  Extras extras{.noise = noise};
  if (sinusoids) extras.time = time_of(f, "time_embedder", *sinusoids, 4 * width);
  video::blocks(f, layers, width, width,
                [&](auto, auto) { hidden = residual(f, model, hidden, width, width, extras); });
  return hidden;
}

inline Tensor encoded(Forward& f, const Model& model, Tensor video, Encoded& area) {
  const InModule inside(f, "encoder", "LTXVideoEncoder3d");
  const std::int64_t pixels = model.in * model.patch * model.patch;
  std::int64_t in = model.first_width;
  Tensor hidden = packed(f, video, {false, 1, model.patch});
  area = {area.height / model.patch, area.width / model.patch, area.frames};
  hidden = conv(f, "conv_in", hidden, pixels, in);
  for (std::size_t at = 0; at < model.down.size() && !f.failed(); ++at) {
    const Level& level = model.down[at];
    const InModule block(f, "down_blocks." + std::to_string(at), "LTXVideoDownBlock3D");
    video::blocks(f, level.layers, in, in, [&](auto, auto) { hidden = residual(f, model, hidden, in, in, {}); });
    if (level.scales) hidden = shrunk(f, hidden, in, level, area);
    if (!model.joins && in != level.width) {
      const InModule widen(f, "conv_out", "LTXVideoResnetBlock3d");
      hidden = residual(f, model, hidden, in, level.width, {});
    }
    in = level.width;
  }
  hidden = middle(f, model, hidden, in, model.down_middle, false, {});
  const Tensor open = f.activation("conv_act", norm(f, model, "norm_out", hidden, in), "silu");
  const Tensor made = conv(f, "conv_out", open, in, model.latents + 1);
  // One deviation for all channels.
  const Tensor last = f.slice(made, 1, model.latents, 1);
  const Tensor others = f.call("expand", {last}, {{"shape", Sizes{-1, model.latents - 1, -1, -1, -1}}});
  return f.concatenate({made, f.contiguous(others)}, 1);
}

inline Tensor decoded(Forward& f, const Model& model, Tensor latents, Encoded& area, std::optional<Tensor> sinusoids) {
  const InModule inside(f, "decoder", "LTXVideoDecoder3d");
  std::int64_t in = model.up.front().width * model.up.front().factor;
  Tensor hidden = conv(f, "conv_in", latents, model.latents, in);
  if (sinusoids) (void)f.parameter("timestep_scale_multiplier", {1});
  hidden = middle(f, model, hidden, in, model.up_middle, model.middle_noise, sinusoids);
  for (std::size_t at = 0; at < model.up.size() && !f.failed(); ++at) {
    const Level& level = model.up[at];
    const InModule block(f, "up_blocks." + std::to_string(at), "LTXVideoUpBlock3d");
    const std::int64_t from = std::max<std::int64_t>(in / level.factor, 1);
    Extras extras{.noise = level.noise};
    if (sinusoids) extras.time = time_of(f, "time_embedder", *sinusoids, 4 * from);
    if (from != level.width) {
      const InModule widen(f, "conv_in", "LTXVideoResnetBlock3d");
      hidden = residual(f, model, hidden, in, level.width * level.factor, extras);
    }
    if (level.scales) hidden = grown(f, hidden, level.width, level, area);
    video::blocks(f, level.layers, level.width, level.width,
                  [&](auto, auto) { hidden = residual(f, model, hidden, level.width, level.width, extras); });
    in = level.width;
  }
  hidden = norm(f, model, "norm_out", hidden, in);
  if (sinusoids) {
    const Tensor time = f.unflatten(time_of(f, "time_embedder", *sinusoids, 2 * in), 1, {2, in});
    const Tensor table = f.unflatten(f.parameter("scale_shift_table", {2, in}), 1, {in, 1, 1, 1});
    std::vector<Tensor> rows = chunks(f, f.add(time, table), 1, 2, 1);
    for (Tensor& row : rows) row = f.call("squeeze", {row}, {{"dim", std::int64_t{1}}});
    hidden = modulated(f, hidden, rows[1], rows[0]);
  }
  const std::int64_t pixels = model.out * model.patch * model.patch;
  const Tensor made = conv(f, "conv_out", f.activation("conv_act", hidden, "silu"), in, pixels);
  area = {area.height * model.patch, area.width * model.patch, area.frames};
  return unpacked(f, made, {false, 1, model.patch}, model.out);
}

inline void write(ConfigFields& config, Head, Forward& f) {
  constexpr std::int64_t kMostFrames = 512;
  const Model model = read(config);
  if (!config.status()) return;
  std::int64_t sides = model.patch;
  std::int64_t group = 1;
  for (const Level& level : model.down) {
    if (!level.scales) continue;
    sides *= level.step.sides;
    group *= level.step.frames;
  }
  const DenoiserSample sample = denoiser_sample(
      f, {.side = 1, .frame = 1, .patch = sides, .usual_side = 256, .usual_frames = 9, .usual_text = 0});
  if (sample.frames > kMostFrames) return f.fail("takes at most 512 frames at once; leave some of `frames` out");
  const std::int64_t frames = (sample.frames - 1) / group * group + 1;
  Encoded area = {sample.height, sample.width, frames};
  const Tensor video = f.sample_input("pixel_values", {model.in, frames, sample.height, sample.width});
  std::optional<Tensor> sinusoids;
  if (model.timed) sinusoids = timestep_input(f, "timestep", 256);
  const Tensor latents = video::drawn(f, encoded(f, model, video, area), model.latents);
  const Tensor made = decoded(f, model, latents, area, sinusoids);
  f.doubt({model::Doubt::About::kernels, "no training of such an autoencoder was measured", false});
  denoiser_loss(f, made, {model.out, area.frames, area.height, area.width});
}

inline constexpr auto kClasses = std::to_array<ModelClass>(
    {{.prefix = "Autoencoder", .model_type = "AutoencoderKLLTXVideo", .ending = "KLLTXVideo"},
     {.prefix = "Autoencoder", .model_type = "AutoencoderKLLTX2Video", .ending = "KLLTX2Video"}});

/// Where true and false stand for each entry.
inline std::string flags_text(const std::vector<bool>& flags) {
  std::string text;
  for (const bool flag : flags) text += std::string(text.empty() ? "" : ", ") + (flag ? "true" : "false");
  return "[" + text + "]";
}

inline void read_down_tree(TreeFields& t, bool joins) {
  using autoencoder_trees::at;
  constexpr std::int64_t kFrames = 2;
  constexpr std::int64_t kSides = 4;
  const std::int64_t levels = t.count_of("encoder.down_blocks");
  Sizes widths;
  Sizes layers;
  std::vector<bool> scales;
  std::string steps;
  std::string types;
  const auto width_of = [&](std::int64_t level) {
    const std::string block = level < levels ? at("encoder.down_blocks", level) : "encoder.mid_block";
    return t.value(block + ".resnets.0.conv1.conv", "in_channels").value_or(1);
  };
  for (std::int64_t level = 0; level < levels; ++level) {
    const std::string block = at("encoder.down_blocks", level);
    const std::string step = block + ".downsamplers.0.conv.conv";
    const std::int64_t times = width_of(level + 1) / t.value(step, "out_channels").value_or(1);
    const std::string more = level == 0 ? "" : ", ";
    widths.push_back(width_of(level));
    layers.push_back(t.count_of(block + ".resnets"));
    scales.push_back(t.has(block + ".downsamplers"));
    steps += more + (!joins             ? "\"conv\""
                     : times == kSides  ? "\"spatial\""
                     : times == kFrames ? "\"temporal\""
                                        : "\"spatiotemporal\"");
    types += more + "\"" + std::string(t.class_of(block)) + "\"";
  }
  if (joins) widths.push_back(width_of(levels));
  if (t.class_name() == "AutoencoderKLLTX2Video" && !widths.empty()) widths.erase(widths.begin());
  layers.push_back(t.count_of("encoder.mid_block.resnets"));
  t.list("block_out_channels", widths);
  t.list("layers_per_block", layers);
  t.set_text("spatio_temporal_scaling", flags_text(scales));
  t.set_text("downsample_type", "[" + steps + "]");
  t.set_text("down_block_types", "[" + types + "]");
}

/// The decoder's lists begin with the level that runs last.
inline void read_up_tree(TreeFields& t, bool noise) {
  constexpr std::int64_t kPixels = 8;  // of two frames, that channels become
  const std::int64_t levels = t.count_of("decoder.up_blocks");
  Sizes widths;
  Sizes layers;
  Sizes factors;
  std::vector<bool> scales;
  std::vector<bool> shortcuts;
  std::vector<bool> noises;
  for (std::int64_t level = levels; level-- > 0;) {
    const std::string block = autoencoder_trees::at("decoder.up_blocks", level);
    const std::string step = block + ".upsamplers.0.conv.conv";
    const std::int64_t in = t.value(step, "in_channels").value_or(1);
    const std::int64_t made = t.value(step, "out_channels").value_or(kPixels);
    factors.push_back(std::clamp<std::int64_t>(kPixels * in / made, 1, 64));
    widths.push_back(factors.back() * t.value(block + ".resnets.0.conv1.conv", "in_channels").value_or(1));
    layers.push_back(t.count_of(block + ".resnets"));
    scales.push_back(t.has(block + ".upsamplers"));
    shortcuts.push_back(factors.back() > 1);
    noises.push_back(noise);
  }
  layers.push_back(t.count_of("decoder.mid_block.resnets"));
  noises.push_back(false);
  t.list("decoder_block_out_channels", widths);
  t.list("decoder_layers_per_block", layers);
  t.list("upsample_factor", factors);
  t.set_text("decoder_spatio_temporal_scaling", flags_text(scales));
  t.set_text("upsample_residual", flags_text(shortcuts));
  t.set_text("decoder_inject_noise", flags_text(noises));
}

/// What print(model) shows; noise and shortcuts are as published.
inline void read_tree(TreeFields& t) {
  constexpr std::int64_t kColors = 3;
  t.take_sizes_alone();
  const std::string_view last =
      t.class_of(autoencoder_trees::at("encoder.down_blocks", t.count_of("encoder.down_blocks") - 1));
  const bool joins = t.class_name() == "AutoencoderKLLTX2Video" || last == "LTXVideo095DownBlock3D";
  const bool timed = t.has("decoder.time_embedder");
  read_down_tree(t, joins);
  read_up_tree(t, timed && !joins);
  const std::int64_t pixels = t.value("encoder.conv_in.conv", "in_channels").value_or(kColors) / kColors;
  t.set("patch_size", std::max<std::int64_t>(TreeFields::square_side(pixels), 1));
  t.size("latent_channels", "decoder.conv_in.conv", "in_channels");
  t.set_flag("timestep_conditioning", timed);
  t.assume("noise and shortcuts in the decoder, which the tree does not print, as published models have");
}

inline constexpr Architecture kArchitecture = {.name = "ltx_autoencoders",
                                               .model_types = names<"AutoencoderKLLTXVideo", "AutoencoderKLLTX2Video">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .depends_on_images = true};

}  // namespace ltx_autoencoders

}  // namespace gpumem::architectures
