// AutoencoderDC (DC-AE, of Sana): an autoencoder of images that makes sides very small, with shortcuts around each
// change of size that move pixels to channels. As a part of a pipeline only its parameters count.
// Source: diffusers 0.40, models/autoencoders/autoencoder_dc.py; models/attention_processor.py
// (SanaMultiscaleLinearAttention), transformers/sana_transformer.py (GLUMBConv).
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "gpumem/architectures/autoencoder_parts.hpp"
#include "gpumem/architectures/denoiser.hpp"
#include "gpumem/architectures/dit_parts.hpp"
#include "gpumem/architectures/unet_parts.hpp"

namespace gpumem::architectures {

namespace deep_autoencoder {

/// One half: its levels, the first of which has the most pixels.
struct Half {
  Sizes widths;
  Sizes layers;
  std::vector<bool> attends;       ///< levels of EfficientViT's blocks
  std::vector<Sizes> scales = {};  ///< kernels of each level's attention besides the pixels themselves
};

struct Model {
  std::int64_t in = 3;
  std::int64_t latents = 32;
  std::int64_t head_width = 32;
  Half encoder;
  Half decoder;
  bool shuffles_down = true;  ///< else by a convolution's stride
  bool shuffles_up = true;    ///< else pixels are repeated before the convolution
  bool shortcut_out = true;
  bool shortcut_in = true;
};

/// Kernels of each level's attention: a list of lists.
inline std::vector<Sizes> scales_of(ConfigFields& config, std::string_view name, std::size_t levels) {
  std::vector<Sizes> made(levels);
  for (std::size_t level = 3; level < levels; ++level) made[level] = {5};
  const core::JsonValue* list = config.find(name);
  if (list == nullptr) return made;
  bool sound = list->is(core::JsonValue::Kind::list) && list->size() >= levels;
  std::size_t level = 0;
  for (const core::JsonValue& entry : list->items()) {
    if (level == levels || !sound) break;
    made[level].clear();
    sound = entry.is(core::JsonValue::Kind::list) && entry.size() <= 4;
    for (const core::JsonValue& kernel : entry.items()) {
      sound = sound && kernel.is(core::JsonValue::Kind::integer) && kernel.integer() > 0 && kernel.integer() < 32;
      if (sound) made[level].push_back(kernel.integer());
    }
    ++level;
  }
  if (!sound) config.fail("must be a list of kernels for each level", name);
  return made;
}

/// A name for each level, or one for all.
inline std::vector<std::string> names_of(ConfigFields& config, const std::string& field, const std::string& usual,
                                         std::size_t levels) {
  const core::JsonValue* said = config.peek(field);
  if (said != nullptr && said->is(core::JsonValue::Kind::text)) {
    return std::vector<std::string>(levels, std::string(config.text({field}, usual)));
  }
  std::vector<std::string> names = config.texts_or(field, std::vector<std::string>(levels, usual));
  autoencoder_fields::as_long_as(config, field, names, levels);
  return names;
}

inline Half half_of(ConfigFields& config, const std::string& side, Sizes layers) {
  Half half;
  half.widths = autoencoder_fields::widths(config, side + "_block_out_channels", {128, 256, 512, 512, 1024, 1024});
  half.layers = autoencoder_fields::counts(config, side + "_layers_per_block", std::move(layers));
  const std::size_t levels = half.widths.size();
  if (levels < 2) config.fail("must have two levels or more", side + "_block_out_channels");
  autoencoder_fields::as_long_as(config, side + "_layers_per_block", half.layers, levels);
  const std::string types = side + "_block_types";
  const std::vector<std::string> names = names_of(config, types, "ResBlock", levels);
  for (const std::string& name : names) {
    if (name != "ResBlock" && name != "EfficientViTBlock") config.fail("is a variant that is not known", types);
    half.attends.push_back(name == "EfficientViTBlock");
  }
  half.scales = scales_of(config, side + "_qkv_multiscales", levels);
  return half;
}

inline Model read(ConfigFields& config) {
  Model model;
  model.in = config.size_or({"in_channels"}, 3);
  model.latents = config.size_or({"latent_channels"}, 32);
  model.head_width = dit_width(config, "attention_head_dim", 32);
  model.encoder = half_of(config, "encoder", {2, 2, 2, 3, 3, 3});
  model.decoder = half_of(config, "decoder", {3, 3, 3, 3, 3, 3});
  model.shuffles_down = config.text({"downsample_block_type"}, "pixel_unshuffle") == "pixel_unshuffle";
  model.shuffles_up = config.text({"upsample_block_type"}, "pixel_shuffle") == "pixel_shuffle";
  model.shortcut_out = config.flag("encoder_out_shortcut", true);
  model.shortcut_in = config.flag("decoder_in_shortcut", true);
  const bool small = model.in <= 1 << 12 && model.latents <= 1 << 14;
  if (!small) config.fail("is larger than gpumem takes", "latent_channels");
  for (const std::string& norm : names_of(config, "decoder_norm_types", "rms_norm", model.decoder.widths.size())) {
    if (norm != "rms_norm") config.fail("is a variant that is not known", "decoder_norm_types");
  }
  config.ignore({"decoder_act_fns", "decoder_conv_act_fn", "scaling_factor"});
  return model;
}

/// RMSNorm over channels, which are moved to the end for it.
inline Tensor channel_norm(Forward& f, const std::string& name, Tensor images, std::int64_t width) {
  const Tensor normed = own_rms_norm(f, name, f.permute(images, {0, 2, 3, 1}), width);
  return f.permute(f.add(normed, f.parameter(name + ".bias", {width})), {0, 3, 1, 2});
}

inline Tensor grouped_conv(Forward& f, std::string_view name, Tensor input, std::int64_t in, std::int64_t out,
                           std::int64_t kernel, std::int64_t groups, bool bias) {
  return f.layer(name, "Conv2d", "conv2d", {input},
                 {{"in_channels", in},
                  {"out_channels", out},
                  {"kernel_size", Sizes(2, kernel)},
                  {"padding", Sizes(2, kernel / 2)},
                  {"groups", groups},
                  {"bias", bias}});
}

inline Tensor residual(Forward& f, Tensor input, std::int64_t width) {
  const Tensor open = f.activation("nonlinearity", image_conv(f, "conv1", input, width, width, 3), "silu");
  return f.add(channel_norm(f, "norm", grouped_conv(f, "conv2", open, width, width, 3, 1, false), width), input);
}

/// SanaMultiscaleLinearAttention, of more pixels than a head is wide: in float32.
inline Tensor linear_attention(Forward& f, const Model& model, const Sizes& scales, Tensor input, std::int64_t width,
                               const Encoded& area) {
  const InModule inside(f, "attn", "SanaMultiscaleLinearAttention");
  const std::int64_t each = model.head_width;
  const std::int64_t heads = std::max<std::int64_t>(width / each, 1);
  const std::int64_t inner = heads * each;
  const Tensor rows = f.permute(input, {0, 2, 3, 1});
  const auto projected = [&](std::string_view name) { return f.linear(name, rows, width, inner, {.bias = false}); };
  const Tensor query_rows = projected("to_q");
  const Tensor key_rows = projected("to_k");
  const Tensor joined = f.concatenate({query_rows, key_rows, projected("to_v")}, 3);
  const Tensor images = f.permute(joined, {0, 3, 1, 2});
  std::vector<Tensor> all = {images};
  for (std::size_t at = 0; at < scales.size(); ++at) {
    const InModule scale(f, "to_qkv_multiscale." + std::to_string(at), "SanaMultiscaleAttentionProjection");
    const Tensor seen = grouped_conv(f, "proj_in", images, 3 * inner, 3 * inner, scales[at], 3 * inner, false);
    all.push_back(grouped_conv(f, "proj_out", seen, 3 * inner, 3 * inner, 1, 3 * heads, false));
  }
  const std::int64_t times = 1 + static_cast<std::int64_t>(scales.size());
  const Tensor wide = f.to(f.concatenate(all, 1), "float32");
  const Tensor parted = f.unflatten(f.flatten(wide, 2, 3), 1, {times * heads, 3 * each});
  const std::vector<Tensor> parts = f.split(parted, 2, Sizes(3, each));
  const Tensor query = f.call("relu", {parts[0]});
  const Tensor key = f.call("relu", {parts[1]});
  const Tensor ones = f.call("pad", {parts[2]}, {{"padding", Sizes{0, 0, 0, 1}}});
  const Tensor scores = f.call("matmul", {ones, f.permute(key, {0, 1, 3, 2})});
  const Tensor mixed = f.call("matmul", {scores, query});
  const Tensor sums = f.call("add", {f.slice(mixed, 2, each, 1)});
  const Tensor made = f.as_type_of(f.call("div", {f.slice(mixed, 2, 0, each), sums}), input);
  const Tensor pixels = f.unflatten(f.flatten(made, 1, 2), 2, {area.height, area.width});
  const Tensor left = f.linear("to_out", f.permute(pixels, {0, 2, 3, 1}), times * inner, width, {.bias = false});
  return f.add(channel_norm(f, "norm_out", f.permute(left, {0, 3, 1, 2}), width), input);
}

/// GLUMBConv.
inline Tensor gated_convs(Forward& f, Tensor input, std::int64_t width) {
  const InModule inside(f, "conv_out", "GLUMBConv");
  const std::int64_t inner = 4 * width;
  const Tensor wide = f.activation("nonlinearity", image_conv(f, "conv_inverted", input, width, 2 * inner, 1), "silu");
  const std::vector<Tensor> parts =
      chunks(f, grouped_conv(f, "conv_depth", wide, 2 * inner, 2 * inner, 3, 2 * inner, true), 1, 2, inner);
  const Tensor open = f.multiply(parts[0], f.call("silu", {parts[1]}));
  return f.add(channel_norm(f, "norm", grouped_conv(f, "conv_point", open, inner, width, 1, 1, false), width), input);
}

inline Tensor level(Forward& f, const Model& model, const Half& half, std::size_t at, Tensor hidden,
                    const Encoded& area) {
  const std::int64_t width = half.widths[at];
  for (std::int64_t index = 0; index < half.layers[at] && !f.failed(); ++index) {
    const InModule block(f, std::to_string(index), half.attends[at] ? "EfficientViTBlock" : "ResBlock");
    hidden = half.attends[at] ? gated_convs(f, linear_attention(f, model, half.scales[at], hidden, width, area), width)
                              : residual(f, hidden, width);
  }
  return hidden;
}

inline Tensor unshuffled(Forward& f, Tensor x) {
  const Tensor parted = f.unflatten(f.unflatten(x, 3, {-1, 2}), 2, {-1, 2});
  return f.flatten(f.contiguous(f.permute(parted, {0, 1, 3, 5, 2, 4})), 1, 3);
}

inline Tensor shuffled(Forward& f, Tensor x) {
  return f.call("pixel_shuffle", {x}, {{"upscale_factor", std::int64_t{2}}});
}

/// Means of as many channels as there are for each that is left.
inline Tensor averaged(Forward& f, Tensor x, std::int64_t from, std::int64_t to) {
  const Tensor parted = f.unflatten(x, 1, {to, std::max<std::int64_t>(from / to, 1)});
  return f.call("mean", {parted}, {{"dim", std::int64_t{2}}});
}

inline Tensor repeated(Forward& f, Tensor x, std::int64_t from, std::int64_t to) {
  const std::int64_t times = std::max<std::int64_t>(to / from, 1);
  const Tensor each = f.call("unsqueeze", {x}, {{"dim", std::int64_t{2}}});
  return f.flatten(f.contiguous(f.call("expand", {each}, {{"shape", Sizes{-1, -1, times, -1, -1}}})), 1, 2);
}

inline Tensor halved(Forward& f, const Model& model, std::string_view name, Tensor input, std::int64_t in,
                     std::int64_t out, bool shortcut) {
  const InModule inside(f, name, "DCDownBlock2d");
  const Tensor made = model.shuffles_down ? unshuffled(f, image_conv(f, "conv", input, in, out / 4, 3))
                                          : image_conv(f, "conv", input, in, out, 3, 2);
  return shortcut ? f.add(made, averaged(f, unshuffled(f, input), 4 * in, out)) : made;
}

inline Tensor doubled(Forward& f, const Model& model, std::string_view name, Tensor input, std::int64_t in,
                      std::int64_t out, const Encoded& area, bool shortcut) {
  const InModule inside(f, name, "DCUpBlock2d");
  Tensor made = 0;
  if (model.shuffles_up) {
    made = shuffled(f, image_conv(f, "conv", input, in, 4 * out, 3));
  } else {
    const Tensor larger = f.call("upsample", {input}, {{"size", Sizes{2 * area.height, 2 * area.width}}});
    made = image_conv(f, "conv", larger, in, out, 3);
  }
  return shortcut ? f.add(made, shuffled(f, repeated(f, input, in, 4 * out))) : made;
}

/// Levels that have layers: the first one may have none, and its convolution is then one that changes the size.
inline bool begins_whole(const Half& half) { return half.layers[0] > 0; }

inline Tensor encoded(Forward& f, const Model& model, Tensor image, Encoded& area) {
  const InModule inside(f, "encoder", "Encoder");
  const Half& half = model.encoder;
  const std::size_t levels = half.widths.size();
  const auto shrink = [&] { area = {area.height / 2, area.width / 2, 1}; };
  Tensor hidden = 0;
  if (begins_whole(half)) {
    hidden = image_conv(f, "conv_in", image, model.in, half.widths[0], 3);
  } else {
    hidden = halved(f, model, "conv_in", image, model.in, half.widths[1], false);
    shrink();
  }
  for (std::size_t at = 0; at < levels && !f.failed(); ++at) {
    const InModule block(f, "down_blocks." + std::to_string(at), "Sequential");
    hidden = level(f, model, half, at, hidden, area);
    if (at + 1 == levels || half.layers[at] == 0) continue;
    hidden = halved(f, model, std::to_string(half.layers[at]), hidden, half.widths[at], half.widths[at + 1], true);
    shrink();
  }
  const std::int64_t last = half.widths.back();
  const Tensor latents = image_conv(f, "conv_out", hidden, last, model.latents, 3);
  return model.shortcut_out ? f.add(latents, averaged(f, hidden, last, model.latents)) : latents;
}

inline Tensor decoded(Forward& f, const Model& model, Tensor latents, Encoded area) {
  const InModule inside(f, "decoder", "Decoder");
  const Half& half = model.decoder;
  const std::size_t levels = half.widths.size();
  const auto grow = [&] { area = {2 * area.height, 2 * area.width, 1}; };
  const std::int64_t first = half.widths.back();
  Tensor hidden = image_conv(f, "conv_in", latents, model.latents, first, 3);
  if (model.shortcut_in) hidden = f.add(hidden, repeated(f, latents, model.latents, first));
  for (std::size_t at = levels; at-- > 0 && !f.failed();) {
    const InModule block(f, "up_blocks." + std::to_string(at), "Sequential");
    if (at + 1 < levels && half.layers[at] > 0) {
      hidden = doubled(f, model, "0", hidden, half.widths[at + 1], half.widths[at], area, true);
      grow();
    }
    const InModule list(f, "blocks", "Sequential");
    hidden = level(f, model, half, at, hidden, area);
  }
  const std::int64_t width = half.widths[begins_whole(half) ? 0 : 1];
  hidden = f.activation("conv_act", channel_norm(f, "norm_out", hidden, width), "relu");
  if (begins_whole(half)) return image_conv(f, "conv_out", hidden, width, model.in, 3);
  return doubled(f, model, "conv_out", hidden, width, model.in, area, false);
}

/// How many times the sides are halved.
inline std::int64_t times_halved(const Half& half) {
  std::int64_t times = begins_whole(half) ? 0 : 1;
  for (std::size_t at = 0; at + 1 < half.widths.size(); ++at) times += half.layers[at] > 0 ? 1 : 0;
  return times;
}

inline void write(ConfigFields& config, Head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const std::int64_t shrinks = std::int64_t{1} << times_halved(model.encoder);
  const DenoiserSample sample = denoiser_sample(f, {.side = 1, .patch = shrinks, .usual_side = 512, .usual_text = 0});
  Encoded area = {sample.height, sample.width, 1};
  const Tensor image = f.sample_input("pixel_values", {model.in, sample.height, sample.width});
  const Tensor latents = encoded(f, model, image, area);
  const Tensor made = decoded(f, model, latents, area);
  f.doubt({model::Doubt::About::kernels, "no training of such an autoencoder was measured", false});
  if (times_halved(model.decoder) != times_halved(model.encoder)) {
    return f.fail("has a decoder whose sides are not those of its encoder");
  }
  denoiser_loss(f, made, {model.in, sample.height, sample.width});
}

inline constexpr auto kClasses =
    std::to_array<ModelClass>({{.prefix = "Autoencoder", .model_type = "AutoencoderDC", .ending = "DC"}});

/// One side of the printed tree: of each level its channels, its blocks, and the kernels of their attention.
inline void read_half(TreeFields& t, const std::string& side, const std::string& list) {
  Sizes widths;
  Sizes layers;
  std::string types;
  std::string scales;
  for (std::int64_t level = 0; level < t.count_of(list); ++level) {
    const std::string blocks = autoencoder_trees::at(list, level);
    const std::int64_t all = t.count_of(blocks);
    const bool up = t.class_of(blocks + ".0") == "DCUpBlock2d";
    const bool down = all > 0 && t.class_of(autoencoder_trees::at(blocks, all - 1)) == "DCDownBlock2d";
    const std::string block = autoencoder_trees::at(blocks, up ? 1 : 0);
    const bool attends = t.class_of(block) == "EfficientViTBlock";
    const std::string more = level == 0 ? "" : ", ";
    std::string kernels;
    for (std::int64_t scale = 0; scale < t.count_of(block + ".attn.to_qkv_multiscale"); ++scale) {
      const std::string path = autoencoder_trees::at(block + ".attn.to_qkv_multiscale", scale) + ".proj_in";
      kernels += (scale == 0 ? "" : ", ") + std::to_string(t.value(path, "kernel_size").value_or(1));
    }
    widths.push_back(attends ? t.value(block + ".attn.to_q", "in_features").value_or(1)
                             : t.value(block + ".conv1", "out_channels").value_or(1));
    layers.push_back(all - (up || down ? 1 : 0));
    types += more + (attends ? "\"EfficientViTBlock\"" : "\"ResBlock\"");
    scales.append(more).append("[").append(kernels).append("]");
  }
  t.list(side + "_block_out_channels", widths);
  t.list(side + "_layers_per_block", layers);
  t.set_text(side + "_block_types", "[" + types + "]");
  t.set_text(side + "_qkv_multiscales", "[" + scales + "]");
}

/// What print(model) shows: all but the heads, which are 32 wide.
inline void read_tree(TreeFields& t) {
  t.take_sizes_alone();
  read_half(t, "encoder", "encoder.down_blocks");
  read_half(t, "decoder", "decoder.up_blocks");
  t.size("in_channels", "encoder.conv_in", "in_channels");
  t.size("latent_channels", "decoder.conv_in", "in_channels");
  const std::string last = autoencoder_trees::at("encoder.down_blocks.0", t.count_of("encoder.down_blocks.0") - 1);
  const bool strides = t.value(last + ".conv", "stride").value_or(1) > 1;
  t.set_string("downsample_block_type", strides ? "Conv" : "pixel_unshuffle");
  const std::int64_t width = t.value("decoder.up_blocks.0.1.conv1", "out_channels").value_or(0);
  const bool repeats = t.value("decoder.up_blocks.0.0.conv", "out_channels").value_or(0) == width;
  t.set_string("upsample_block_type", repeats ? "interpolate" : "pixel_shuffle");
  t.assume("heads of width 32, as DC-AE has");
}

inline constexpr Architecture kArchitecture = {.name = "deep_autoencoder",
                                               .model_types = names<"AutoencoderDC">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .depends_on_images = true};

}  // namespace deep_autoencoder

}  // namespace gpumem::architectures
