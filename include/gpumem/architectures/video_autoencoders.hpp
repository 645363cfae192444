// AutoencoderKLWan (Wan 2.1 and 2.2) and AutoencoderKLQwenImage, autoencoders of videos. As a part of a pipeline one
// encodes a sample: the first frame, then four frames at a time, with the last two frames that each convolution saw
// (_encode); its decoder is held. By itself it is trained to give its videos back, one frame of latents after the
// other. Source: diffusers 0.38, models/autoencoders/autoencoder_kl_wan.py, autoencoder_kl_qwenimage.py.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "gpumem/architectures/autoencoder_parts.hpp"
#include "gpumem/architectures/denoiser.hpp"

namespace gpumem::architectures {

namespace video_autoencoders {

using namespace video;  // NOLINT: names of one room

struct Wan {
  std::vector<std::int64_t> widths;          ///< of the encoder's levels
  std::vector<std::int64_t> decoder_widths;  ///< of the same levels
  std::vector<bool> time;                    ///< which levels halve the frames behind them
  std::int64_t layers = 2;
  std::int64_t latents = 16;
  std::int64_t in = 3;
  std::int64_t out = 3;
  std::int64_t patch = 1;  ///< pixels of a side that are channels
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
  wan.patch = std::min<std::int64_t>(config.size_or({"patch_size"}, 1), 16);
  const core::JsonValue* scales = config.find("attn_scales");
  if (scales != nullptr && scales->size() > 0) config.fail("is a variant that is not known", "attn_scales");
  config.ignore(
      {"dropout", "latents_mean", "latents_std", "scale_factor_temporal", "scale_factor_spatial", "clip_output"});
  return wan;
}

/// One part of a video on its way through Wan's encoder, and the frames that the part before has left.
struct WanPass {
  Forward& f;
  std::vector<Tensor> cached = {};         ///< what each convolution saw last
  std::vector<std::int64_t> lengths = {};  ///< frames of these
  std::size_t at = 0;
  bool first = true;
  std::int64_t part = 0;  ///< what reads several frames is called from the second part on

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
  return f.leave_function(layer(f, name, read, in, out, kCube, {1, 1, 1}), {input, before});
}

inline Tensor wan_residual(WanPass& pass, Tensor input, std::int64_t frames, std::int64_t in, std::int64_t out) {
  Forward& f = pass.f;
  const Tensor shortcut =
      in == out ? input : layer(f, "conv_shortcut", f.call("clone", {input}), in, out, kPoint, {1, 1, 1});
  Tensor hidden = f.activation("nonlinearity", wan_norm(f, "norm1", input, in, false), "silu");
  hidden = wan_conv(pass, "conv1", hidden, frames, in, out);
  hidden = f.activation("nonlinearity", wan_norm(f, "norm2", hidden, out, false), "silu");
  return f.add(wan_conv(pass, "conv2", hidden, frames, out, out), shortcut);
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
  f.repeat_parameters(pass.part > 1);
  hidden = layer(f, "time_conv", f.concatenate({before, hidden}, 2), width, width, kTime, {2, 1, 1});
  f.repeat_parameters(true);
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

/// WanResample of a decoder: of all parts but the first twice the frames, where the level says so, and twice the sides.
inline Tensor wan_doubled(WanPass& pass, Tensor input, std::int64_t& frames, std::int64_t in, std::int64_t out,
                          bool time, const Encoded& area) {
  Forward& f = pass.f;
  const InModule inside(f, "upsampler", "WanResample");
  if (time && !pass.reads_cache()) {
    pass.cached.push_back(input);
    pass.lengths.push_back(0);
    ++pass.at;
  } else if (time) {
    const Tensor kept = f.call("clone", {f.slice(input, 2, frames - 1, 1)});
    const std::int64_t had = pass.lengths[pass.at];
    const Tensor whole = had > 0 ? f.concatenate({pass.cached[pass.at], input}, 2) : input;
    const Tensor padded = f.call("pad", {whole}, {{"padding", Sizes{0, 0, 0, 0, 2 - had, 0}}});
    f.repeat_parameters(pass.part > 1);
    const Tensor both = layer(f, "time_conv", padded, in, 2 * in, kTime, {1, 1, 1});
    f.repeat_parameters(true);
    input = f.flatten(f.contiguous(f.permute(f.unflatten(both, 1, {2, in}), {0, 2, 3, 1, 4, 5})), 2, 3);
    pass.cached[pass.at] = kept;
    pass.lengths[pass.at++] = 1;
    frames *= 2;
  }
  const Tensor wide =
      f.call("upsample", {f.to(as_images(f, input), "float32")}, {{"size", Sizes{area.height, area.width}}});
  const Tensor padded = f.call("pad", {f.as_type_of(wide, input)}, {{"padding", Sizes{1, 1, 1, 1}}});
  return as_video(f, image_layer(f, "resample.1", padded, in, out, kSquare, 1), frames);
}

/// Two residual blocks with attention between them.
inline Tensor wan_middle(WanPass& pass, Tensor hidden, std::int64_t frames, std::int64_t width, const Encoded& area) {
  Forward& f = pass.f;
  const InModule middle(f, "mid_block", "WanMidBlock");
  blocks(f, 1, width, width, [&](auto, auto) { hidden = wan_residual(pass, hidden, frames, width, width); });
  hidden = wan_attention(f, hidden, frames, width, area);
  const InModule list(f, "resnets", "ModuleList");
  const InModule inside(f, "1", "ResnetBlock");
  return wan_residual(pass, hidden, frames, width, width);
}

/// WanDecoder3d of one frame of latents [N, latents, 1, height, width] to frames of this size; `frames` are then these.
inline Tensor wan_decoded(WanPass& pass, const Wan& wan, Tensor part, const Encoded& size, std::int64_t& frames) {
  Forward& f = pass.f;
  const InModule inside(f, "decoder", "WanDecoder3d");
  const std::size_t levels = wan.decoder_widths.size();
  std::int64_t in = wan.decoder_widths.back();
  std::int64_t sides = std::int64_t{1} << (levels - 1);
  frames = 1;
  Tensor hidden = wan_conv(pass, "conv_in", part, 1, wan.latents, in);
  hidden = wan_middle(pass, hidden, 1, in, {size.height / sides, size.width / sides, 1});
  for (std::size_t level = 0; level < levels && !f.failed(); ++level) {
    const InModule block(f, "up_blocks." + std::to_string(level), "WanUpBlock");
    const std::int64_t out = wan.decoder_widths[levels - 1 - level];
    blocks(f, wan.layers + 1, in, out,
           [&](std::int64_t from, std::int64_t to) { hidden = wan_residual(pass, hidden, frames, from, to); });
    in = out;
    if (level + 1 == levels) break;
    sides /= 2;
    if (!wan.residual) in = out / 2;
    hidden = wan_doubled(pass, hidden, frames, out, in, wan.time[levels - 2 - level],
                         {size.height / sides, size.width / sides, 1});
  }
  hidden = f.activation("nonlinearity", wan_norm(f, "norm_out", hidden, in, false), "silu");
  return wan_conv(pass, "conv_out", hidden, frames, in, wan.out);
}

constexpr std::int64_t kPart = 4;  ///< frames that Wan's encoder reads at once

/// Latents of a video's parts: the first frame, then `parts` of four frames.
inline Tensor wan_latents(WanPass& pass, const Wan& wan, Tensor video, const Encoded& size, std::int64_t parts) {
  Forward& f = pass.f;
  std::vector<Tensor> latents = {wan_encoded(pass, wan, f.slice(video, 2, 0, 1), 1, size)};
  f.repeat_parameters(true);
  pass.first = false;
  for (std::int64_t part = 0; part < parts && !f.failed(); ++part) {
    pass.at = 0;
    pass.part = part + 1;
    latents.push_back(wan_encoded(pass, wan, f.slice(video, 2, 1 + kPart * part, kPart), kPart, size));
  }
  f.repeat_parameters(false);
  return latents.size() > 1 ? f.concatenate(latents, 2) : latents[0];
}

/// Of one frame, what reads several of them is held and not called.
inline void hold_time(Forward& f, const Wan& wan) {
  for (std::size_t level = 0; level + 1 < wan.widths.size(); ++level) {
    const std::int64_t in = wan.widths[level];
    const std::int64_t out = wan.decoder_widths[level + 1];
    if (!wan.time[level]) continue;
    (void)f.parameter("encoder.time_conv" + std::to_string(level), {3 * in * in + in});
    (void)f.parameter("decoder.time_conv" + std::to_string(level), {6 * out * out + 2 * out});
  }
}

/// Video to latents and back, as it is trained by itself.
inline void write_wan(ConfigFields& config, Forward& f) {
  constexpr std::int64_t kMostParts = 128;
  const Wan wan = read_wan(config);
  const std::int64_t shrinks = std::int64_t{1} << (wan.widths.size() - 1);
  if (!config.status()) return;
  DenoiserSample size = denoiser_sample(
      f, {.side = 1, .frame = 1, .patch = shrinks * wan.patch, .usual_side = 256, .usual_frames = 5, .usual_text = 0});
  size.height /= wan.patch;
  size.width /= wan.patch;
  if (wan.residual) {
    f.doubt({model::Doubt::About::kernels, "shortcuts that repeat and average channels are not counted", false});
  }
  const std::int64_t parts = (size.frames - 1) / kPart;
  if (parts > kMostParts) return f.fail("takes at most 513 frames at once; leave some of `frames` out");
  if (parts == 0) hold_time(f, wan);
  const Encoded area = {size.height, size.width, 1};
  const Tensor video = f.sample_input("pixel_values", {wan.in, size.frames, size.height, size.width});
  WanPass encoder{f};
  const Tensor moments = wan_latents(encoder, wan, video, area, parts);
  const std::int64_t both = 2 * wan.latents;
  const Tensor latents = drawn(f, layer(f, "quant_conv", moments, both, both, kPoint, {1, 1, 1}), wan.latents);
  const Tensor read = layer(f, "post_quant_conv", latents, wan.latents, wan.latents, kPoint, {1, 1, 1});
  WanPass decoder{f};
  std::vector<Tensor> made;
  std::int64_t all = 0;
  for (std::int64_t part = 0; part <= parts && !f.failed(); ++part) {
    std::int64_t frames = 1;
    decoder.at = 0;
    decoder.part = part;
    made.push_back(wan_decoded(decoder, wan, f.slice(read, 2, part, 1), area, frames));
    all += frames;
    decoder.first = false;
    f.repeat_parameters(true);
  }
  f.repeat_parameters(false);
  if (made.empty()) return;
  const Tensor whole = made.size() > 1 ? f.concatenate(made, 2) : made[0];
  denoiser_loss(f, whole, {wan.out, all, size.height, size.width});
}

inline void write(ConfigFields& config, Head, Forward& f) { write_wan(config, f); }

/// All that `call` makes, as one frozen parameter.
template <typename Call>
void hold_all(Forward& f, std::string_view name, Call call) {
  model::GraphBuilder apart("config_json");
  Forward dry(apart, f.vocabulary());
  call(dry);
  const core::Result<model::ModelGraph> graph = std::move(apart).build();
  if (!graph) return f.fail("has a decoder that cannot be counted: " + graph.error().message);
  (void)f.parameter(name, {graph->parameters()}, true);
}

inline void encode(ConfigFields& config, const Encoded& size, Forward& f) {
  constexpr std::int64_t kTile = 256;     // tile_sample_min_height and _width
  constexpr std::int64_t kMostParts = 2;  // behind the first one: from the second on, all take as much
  if (config.flag("is_residual", false)) {
    return hold_all(f, "weight", [&](Forward& dry) { write_wan(config, dry); });
  }
  const Wan wan = read_wan(config);
  if (!config.status()) return;
  const Tensor whole = f.sample_input("pixel_values", {wan.in, size.frames, size.height, size.width});
  const Encoded tile = size.tile(kTile);
  const Tensor video = read_at_once(f, whole, size, tile);
  WanPass pass{f};
  const std::int64_t parts = (size.frames - 1) / kPart;
  if (parts > kMostParts) {
    f.remark("the video is encoded in " + std::to_string(1 + parts) + " passes, of which " +
             std::to_string(1 + kMostParts) +
             " are counted: enough for the peak, and a step takes longer than is said");
  }
  Tensor made = wan_latents(pass, wan, video, tile, std::min(kMostParts, parts));
  for (const Tensor kept : pass.cached) made = f.leave_function(made, {kept});  // clear_cache()
  const std::int64_t shrinks = std::int64_t{1} << (wan.widths.size() - 1);
  (void)joined_latents(f, made, size, tile, shrinks);
  hold_all(f, "decoder.weight", [&](Forward& dry) {
    WanPass decoder{dry};
    std::int64_t frames = 1;
    const Tensor latents = dry.sample_input("latents", {wan.latents, 1, size.height / shrinks, size.width / shrinks});
    const Tensor read = layer(dry, "post_quant_conv", latents, wan.latents, wan.latents, kPoint, {1, 1, 1});
    (void)wan_decoded(decoder, wan, read, size, frames);
    const std::int64_t both = 2 * wan.latents;
    (void)dry.parameter("quant_conv.weight", {both * both + both});
    for (std::size_t level = 0; level + 1 < wan.widths.size(); ++level) {
      const std::int64_t width = wan.decoder_widths[level + 1];  // what reads several frames is not called for one
      if (wan.time[level]) (void)dry.parameter("time_conv" + std::to_string(level), {6 * width * width + 2 * width});
    }
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>(
    {{.prefix = "Autoencoder", .model_type = "AutoencoderKLWan", .ending = "KLWan"},
     {.prefix = "Autoencoder", .model_type = "AutoencoderKLQwenImage", .ending = "KLQwenImage"}});

/// What print(model) shows. Wan 2.2 has a module for each level, the others one list of blocks and steps.
inline void read_tree(TreeFields& t) {
  t.take_sizes_alone();
  const bool qwen = t.class_name() == "AutoencoderKLQwenImage";
  const bool residual = t.has("encoder.down_blocks.0.resnets");
  autoencoder_trees::Steps found = autoencoder_trees::steps(t, qwen ? "QwenImageResidualBlock" : "WanResidualBlock");
  if (residual) {
    found = {{}, {}, t.count_of("encoder.down_blocks.0.resnets")};
    for (std::int64_t level = 0; level < t.count_of("encoder.down_blocks"); ++level) {
      const std::string block = autoencoder_trees::at("encoder.down_blocks", level);
      found.widths.push_back(t.value(block + ".resnets.0.conv1", "out_channels").value_or(1));
      if (t.has(block + ".downsampler")) found.steps.push_back(block + ".downsampler");
    }
  }
  const std::int64_t base = t.value("encoder.conv_in", "out_channels").value_or(1);
  for (std::int64_t& width : found.widths) width = std::max<std::int64_t>(width / base, 1);
  const std::int64_t last = found.widths.empty() ? 1 : found.widths.back();
  std::string times;
  for (const std::string& step : found.steps) {
    times += std::string(times.empty() ? "" : ", ") + (t.has(step + ".time_conv") ? "true" : "false");
  }
  t.set("base_dim", base);
  t.part("decoder_base_dim", "decoder.conv_in", "out_channels", last);
  t.list("dim_mult", found.widths);
  t.set("num_res_blocks", std::max<std::int64_t>(found.layers, 1));
  t.set_text("temperal_downsample", "[" + times + "]");
  t.size("z_dim", "decoder.conv_in", "in_channels");
  t.size("in_channels", "encoder.conv_in", "in_channels");
  t.size("out_channels", "decoder.conv_out", "out_channels");
  t.set_flag("is_residual", residual);
  const std::int64_t pixels = t.value("encoder.conv_in", "in_channels").value_or(3) / 3;
  t.set("patch_size", std::max<std::int64_t>(TreeFields::square_side(pixels), 1));
}

inline constexpr Architecture kArchitecture = {.name = "video_autoencoders",
                                               .model_types = names<"AutoencoderKLWan", "AutoencoderKLQwenImage">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .depends_on_images = true,
                                               .encode = encode};

}  // namespace video_autoencoders

}  // namespace gpumem::architectures
