// Input: the fields of a UNet2DConditionModel or UNet2DModel, and of what is made of its way down (ControlNet).
// Output: the sizes of its levels, and the calls of its parts: the way down, the middle, the way up.
// Source: diffusers 0.38, models/unets/unet_2d_condition.py, unet_2d_blocks.py, models/resnet.py: ResnetBlock2D,
// models/transformers/transformer_2d.py, models/attention.py: BasicTransformerBlock, GEGLU.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/denoiser.hpp"

namespace gpumem::architectures {

// Input: the sizes of convolutional blocks on images of latents or pixels, [N, C, H, W].
// Output: the calls of the blocks that diffusers' UNets and autoencoders share.
// Source: diffusers 0.38, models/resnet.py: ResnetBlock2D, models/upsampling.py, models/downsampling.py.

/// The class that enable_gradient_checkpointing() wraps.
inline constexpr std::string_view kResnetBlock = "ResnetBlock2D";

/// Padded so that only the stride makes the image smaller.
inline Tensor image_conv(Forward& f, std::string_view name, Tensor input, std::int64_t in, std::int64_t out,
                         std::int64_t kernel, std::int64_t stride = 1) {
  return f.layer(name, "Conv2d", "conv2d", {input},
                 {{"in_channels", in},
                  {"out_channels", out},
                  {"kernel_size", Sizes(2, kernel)},
                  {"stride", Sizes(2, stride)},
                  {"padding", Sizes(2, kernel / 2)}});
}

inline Tensor image_norm(Forward& f, std::string_view name, Tensor input, std::int64_t channels, std::int64_t groups) {
  return f.layer(name, "GroupNorm", "group_norm", {input}, {{"num_groups", groups}, {"num_channels", channels}});
}

/// What a residual block reads besides its input.
struct ResnetOptions {
  std::int64_t groups = 32;
  std::string_view activation = "silu";
  double dropout = 0.0;
  std::int64_t time_width = 0;  ///< of the timestep's embedding; 0: the block reads none
  Tensor time = 0;
  std::string_view class_name = kResnetBlock;
};

inline Tensor resnet_block(Forward& f, const ResnetOptions& o, std::int64_t index, Tensor input, std::int64_t in,
                           std::int64_t out) {
  const InModule inside(f, std::to_string(index), o.class_name);
  const Tensor normed = image_norm(f, "norm1", input, in, o.groups);
  Tensor hidden = image_conv(f, "conv1", f.activation("nonlinearity", normed, o.activation), in, out, 3);
  if (o.time_width > 0) {
    const Tensor time = f.activation("nonlinearity", o.time, o.activation);
    hidden = f.add(hidden, f.unflatten(f.linear("time_emb_proj", time, o.time_width, out), 1, {out, 1, 1}));
  }
  hidden = f.activation("nonlinearity", image_norm(f, "norm2", hidden, out, o.groups), o.activation);
  hidden = image_conv(f, "conv2", f.dropout("dropout", hidden, o.dropout), out, out, 3);
  const Tensor residual = in == out ? input : image_conv(f, "conv_shortcut", f.contiguous(input), in, out, 1);
  return f.call("div", {f.add(residual, hidden)});
}

/// Attention of all pixels to each other, with a residual around it.
struct PixelAttention {
  std::int64_t channels = 1;
  std::int64_t head_width = 1;
  std::int64_t groups = 32;
  std::int64_t height = 1;
  std::int64_t width = 1;
};

/// Source: models/attention_processor.py: Attention, AttnProcessor2_0 on an image.
inline Tensor pixel_attention(Forward& f, std::int64_t index, const PixelAttention& o, Tensor input) {
  const InModule list(f, "attentions", "ModuleList");
  const InModule inside(f, std::to_string(index), "Attention");
  const std::int64_t channels = o.channels;
  const Tensor normed = image_norm(f, "group_norm", f.flatten(input, 2, 3), channels, o.groups);
  const Tensor rows = f.permute(normed, {0, 2, 1});
  const auto project = [&](std::string_view name) { return f.linear(name, rows, channels, channels); };
  const Tensor query = project("to_q");
  const Tensor key = project("to_k");
  const Tensor value = project("to_v");
  const Tensor attended = denoiser_attention(f, query, key, value, o.head_width);
  Tensor mixed = 0;
  {
    const InModule out(f, "to_out", "ModuleList");
    mixed = f.linear("0", attended, channels, channels);
  }
  const Tensor image = f.unflatten(f.permute(mixed, {0, 2, 1}), 2, {o.height, o.width});
  return f.call("div", {f.add(image, input)});
}

/// Upsample2D: each pixel repeated, to these sizes, and a convolution.
inline Tensor upsample_block(Forward& f, Tensor input, std::int64_t channels, std::int64_t height, std::int64_t width) {
  const InModule list(f, "upsamplers", "ModuleList");
  const InModule sampler(f, "0", "Upsample2D");
  const Tensor larger = f.call("upsample", {input}, {{"size", Sizes{height, width}}});
  return image_conv(f, "conv", larger, channels, channels, 3);
}

namespace unet {

/// The first residual block of the middle is called plainly: at the lowest resolution, what it keeps is small.
inline constexpr std::array<std::string_view, 2> kBlocks = {"BasicTransformerBlock", kResnetBlock};
/// The same within a model that is not checkpointed.
inline constexpr std::array<std::string_view, 2> kPlainBlocks = {"PlainTransformerBlock", "PlainResnetBlock2D"};

/// One resolution.
struct Level {
  bool attends = false;
  std::int64_t width = 1;
  std::int64_t layers = 2;
  std::int64_t depth = 1;  ///< transformer blocks a layer
  std::int64_t heads = 8;
  std::int64_t text = 768;  ///< width of what cross attention reads
};

struct Model {
  std::vector<Level> down;
  std::vector<Level> up;
  bool middle_attends = true;
  bool has_middle = true;
  std::int64_t channels = 4;
  std::int64_t side = 0;  ///< of the latents it was trained with; 0: the config does not say
  std::int64_t out_channels = 4;
  std::int64_t groups = 32;
  std::int64_t kernel_in = 3;
  std::int64_t kernel_out = 3;
  std::int64_t text = 768;          ///< width of the text encoder's embeddings
  std::int64_t text_projected = 0;  ///< what they are projected to first; 0: they are not
  std::int64_t pooled = 0;          ///< width of the pooled text and the sizes that come with the timestep; 0: none
  bool linear_projection = false;
  bool pixels = false;  ///< its attention is of pixels to each other, and there is no text
  std::string_view activation = "silu";
  double dropout = 0.0;
  std::array<std::string_view, 2> blocks = kBlocks;

  [[nodiscard]] std::int64_t embedded() const { return 4 * down.front().width; }
};

inline std::int64_t at(const std::vector<std::int64_t>& list, std::size_t index) {
  return list.empty() ? 1 : list[std::min(index, list.size() - 1)];
}

/// Fields that change the model in ways that nothing here describes.
inline void refuse_variants(ConfigFields& config) {
  const auto refuse = [&](std::string_view field) { config.fail("is a variant that is not known", field); };
  for (const std::string_view field :
       {"num_class_embeds", "class_embed_type", "time_embedding_dim", "time_cond_proj_dim", "time_embedding_act_fn",
        "timestep_post_act", "cross_attention_norm", "reverse_transformer_layers_per_block", "num_attention_heads"}) {
    if (config.find(field) != nullptr) refuse(field);
  }
  for (const std::string_view field : {"dual_cross_attention", "only_cross_attention", "mid_block_only_cross_attention",
                                       "class_embeddings_concat", "upcast_attention", "resnet_skip_time_act"}) {
    const core::JsonValue* value = config.find(field);
    if (value != nullptr && !value->is(core::JsonValue::Kind::boolean)) refuse(field);
    // Upcast attention multiplies the same tensors in float32 only where no fused kernel runs.
    if (value != nullptr && value->is(core::JsonValue::Kind::boolean) && value->boolean() &&
        field != "upcast_attention") {
      refuse(field);
    }
  }
  if (config.text({"time_embedding_type"}, "positional") != "positional") refuse("time_embedding_type");
  if (config.text({"resnet_time_scale_shift"}, "default") != "default") refuse("resnet_time_scale_shift");
  if (config.text({"attention_type"}, "default") != "default") refuse("attention_type");
}

inline std::vector<Level> read_levels(ConfigFields& config, const std::vector<std::string>& types,
                                      std::string_view plain, std::string_view attending) {
  const std::vector<std::int64_t> widths = config.sizes_or("block_out_channels", {320, 640, 1280, 1280});
  const std::vector<std::int64_t> layers = config.sizes_or("layers_per_block", {2});
  const std::vector<std::int64_t> depths = config.sizes_or("transformer_layers_per_block", {1});
  // diffusers takes "attention_head_dim" for the number of heads: an old misnomer.
  const std::vector<std::int64_t> heads = config.sizes_or("attention_head_dim", {8});
  const std::vector<std::int64_t> text = config.sizes_or("cross_attention_dim", {1280});
  std::vector<Level> levels;
  constexpr std::size_t kMostLevels = 16;
  if (types.size() != widths.size() || types.empty() || types.size() > kMostLevels) {
    config.fail("must have from 1 to 16 entries, as many as there are blocks", "block_out_channels");
    return {Level{}};
  }
  for (std::size_t index = 0; index < types.size(); ++index) {
    if (types[index] != plain && types[index] != attending) {
      config.fail("names the block " + core::quoted(types[index]) + ", which is not known", "down_block_types");
    }
    levels.push_back({types[index] == attending, widths[index], at(layers, index), at(depths, index), at(heads, index),
                      at(text, index)});
    if (levels.back().width % levels.back().heads != 0) config.fail("does not divide a width", "attention_head_dim");
    const Level& level = levels.back();
    const bool sound = level.layers <= ConfigFields::kMostLayers && level.depth <= ConfigFields::kMostLayers;
    if (!sound || level.layers * level.depth > ConfigFields::kMostLayers) {
      config.fail("is more than any model has", "layers_per_block");
      return {Level{}};
    }
  }
  return levels;
}

inline void read_conditioning(ConfigFields& config, Model& model) {
  const std::int64_t hidden = config.size_or({"encoder_hid_dim"}, model.text);
  if (config.text({"encoder_hid_dim_type"}, hidden == model.text ? "" : "text_proj") == "text_proj") {
    model.text_projected = model.text;
    model.text = hidden;
  } else if (config.has("encoder_hid_dim_type")) {
    config.fail("is a variant that is not known", "encoder_hid_dim_type");
  }
  const std::string_view added = config.text({"addition_embed_type"}, "");
  if (added == "text_time") model.pooled = config.size({"projection_class_embeddings_input_dim"});
  else if (!added.empty()) config.fail("is a variant that is not known", "addition_embed_type");
  config.ignore({"addition_time_embed_dim", "addition_embed_type_num_heads", "projection_class_embeddings_input_dim"});
}

/// Without a way up of its own; that is as the way down, the other way round.
inline Model read_half(ConfigFields& config) {
  Model model;
  refuse_variants(config);
  const std::vector<std::string> down = config.texts_or(
      "down_block_types", {"CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "DownBlock2D"});
  model.down = read_levels(config, down, "DownBlock2D", "CrossAttnDownBlock2D");
  model.up.assign(model.down.rbegin(), model.down.rend());
  constexpr std::string_view kAttends = "UNetMidBlock2DCrossAttn";
  const std::string_view middle = config.text({"mid_block_type"}, kAttends);
  model.has_middle = !config.is_null("mid_block_type");
  model.middle_attends = middle == kAttends;
  if (!model.middle_attends && middle != "UNetMidBlock2D") config.fail("is not known", "mid_block_type");
  model.channels = config.size_or({"in_channels"}, 4);
  model.out_channels = config.size_or({"out_channels"}, 4);
  model.groups = config.size_or({"norm_num_groups"}, 32);
  model.kernel_in = config.size_or({"conv_in_kernel"}, 3);
  model.kernel_out = config.size_or({"conv_out_kernel"}, 3);
  model.text = model.down.back().text;
  model.linear_projection = config.flag("use_linear_projection", false);
  model.activation = config.text({"act_fn"}, "silu");
  model.dropout = config.number({"dropout"}, 0.0);
  read_conditioning(config, model);
  const core::JsonValue* side = config.find("sample_size");  // of latents; a list where they are not square
  if (side != nullptr && side->is(core::JsonValue::Kind::integer)) model.side = config.size({"sample_size"});
  config.ignore({"sample_size", "center_input_sample", "flip_sin_to_cos", "freq_shift", "downsample_padding",
                 "mid_block_scale_factor", "resnet_out_scale_factor"});
  return model;
}

inline Model read(ConfigFields& config) {
  Model model = read_half(config);
  std::vector<std::string> up = config.texts_or(
      "up_block_types", {"UpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D"});
  std::reverse(up.begin(), up.end());
  model.up = read_levels(config, up, "UpBlock2D", "CrossAttnUpBlock2D");
  std::reverse(model.up.begin(), model.up.end());
  return model;
}

/// What all blocks read.
struct Conditions {
  const Model& model;
  Tensor time = 0;
  Tensor text = 0;
};

inline Tensor resnet(Forward& f, const Conditions& c, std::int64_t index, Tensor input, std::int64_t in,
                     std::int64_t out) {
  return resnet_block(f,
                      {.groups = c.model.groups,
                       .activation = c.model.activation,
                       .dropout = c.model.dropout,
                       .time_width = c.model.embedded(),
                       .time = c.time,
                       .class_name = c.model.blocks[1]},
                      index, input, in, out);
}

/// `source`: what keys and values are made of, [N, S, in].
inline Tensor attention(Forward& f, std::string_view name, Tensor input, const Level& level, Tensor source,
                        std::int64_t in) {
  const InModule inside(f, name, "Attention");
  const std::int64_t width = level.width;
  const Linear plain = {.bias = false};
  const Tensor query = f.linear("to_q", input, width, width, plain);
  const Tensor key = f.linear("to_k", source, in, width, plain);
  const Tensor value = f.linear("to_v", source, in, width, plain);
  const Tensor attended = denoiser_attention(f, query, key, value, width / level.heads);
  const InModule list(f, "to_out", "ModuleList");
  return f.call("div", {f.linear("0", attended, width, width)});
}

inline Tensor feed_forward(Forward& f, Tensor input, std::int64_t width) {
  const InModule inside(f, "ff", "FeedForward");
  const InModule net(f, "net", "ModuleList");
  Tensor gated = 0;
  {
    const InModule first(f, "0", "GEGLU");
    const std::vector<Tensor> halves = f.split(f.linear("proj", input, width, 8 * width), 2, {4 * width, 4 * width});
    gated = f.multiply(halves[0], f.call("gelu", {halves[1]}));
  }
  return f.linear("2", gated, 4 * width, width);
}

inline Tensor transformer_block(Forward& f, const Conditions& c, Tensor input, const Level& level) {
  const std::int64_t width = level.width;
  const Tensor normed = f.layer_norm("norm1", input, width);
  Tensor hidden = f.add(attention(f, "attn1", normed, level, normed, width), input);
  const Tensor again = f.layer_norm("norm2", hidden, width);
  hidden = f.add(attention(f, "attn2", again, level, c.text, level.text), hidden);
  return f.add(feed_forward(f, f.layer_norm("norm3", hidden, width), width), hidden);
}

/// Sizes of an image of latents.
struct Area {
  std::int64_t height = 1;
  std::int64_t width = 1;
};

inline Tensor transformer(Forward& f, const Conditions& c, std::int64_t index, Tensor input, const Level& level,
                          Area area) {
  const InModule inside(f, std::to_string(index), "Transformer2DModel");
  const std::int64_t width = level.width;
  const bool linear = c.model.linear_projection;
  const auto rows = [&](Tensor image) { return f.flatten(f.permute(image, {0, 2, 3, 1}), 1, 2); };
  const auto image = [&](Tensor tokens) {
    return f.contiguous(f.permute(f.unflatten(tokens, 1, {area.height, area.width}), {0, 3, 1, 2}));
  };
  const Tensor normed = image_norm(f, "norm", input, width, c.model.groups);
  Tensor hidden = linear ? f.linear("proj_in", rows(normed), width, width)
                         : rows(image_conv(f, "proj_in", normed, width, width, 1));
  hidden = stack(f, "transformer_blocks", c.model.blocks[0], level.depth, hidden,
                 [&](Tensor x, std::int64_t) { return transformer_block(f, c, x, level); });
  hidden = linear ? image(f.linear("proj_out", hidden, width, width))
                  : image_conv(f, "proj_out", image(hidden), width, width, 1);
  return f.add(hidden, input);
}

/// What the way up reads of the way down.
struct Skip {
  Tensor tensor = 0;
  std::int64_t width = 1;
};

/// What a level has behind a residual block.
inline Tensor attend(Forward& f, const Conditions& c, std::int64_t index, Tensor input, const Level& level, Area area) {
  if (c.model.pixels) {
    const std::int64_t head = level.width / level.heads;
    return pixel_attention(f, index, {level.width, head, c.model.groups, area.height, area.width}, input);
  }
  const InModule list(f, "attentions", "ModuleList");
  return transformer(f, c, index, input, level, area);
}

/// "CrossAttnDownBlock2D", "AttnDownBlock2D", "DownBlock2D".
inline std::string block_class(const Model& model, const Level& level, std::string_view plain) {
  const std::string_view attends = model.pixels ? "Attn" : "CrossAttn";
  return level.attends ? std::string(attends) + std::string(plain) : std::string(plain);
}

/// A stage's layers: residual blocks, each with a transformer behind it where the level attends. `input(layer)`
/// makes a layer's input.
template <typename Input, typename Output>
void stage(Forward& f, const Conditions& c, const Level& level, std::int64_t layers, Area area, const Input& input,
           const Output& output) {
  for (std::int64_t layer = 0; layer < layers && !f.failed(); ++layer) {
    const Skip read = input(layer);
    Tensor hidden = 0;
    {
      const InModule list(f, "resnets", "ModuleList");
      hidden = resnet(f, c, layer, read.tensor, read.width, level.width);
    }
    if (level.attends) hidden = attend(f, c, layer, hidden, level, area);
    output(hidden);
  }
}

inline Tensor down_path(Forward& f, const Conditions& c, Tensor hidden, std::vector<Skip>& skips,
                        std::vector<Area>& areas) {
  const InModule blocks(f, "down_blocks", "ModuleList");
  std::int64_t width = c.model.down.front().width;
  for (std::size_t index = 0; index < c.model.down.size() && !f.failed(); ++index) {
    const Level& level = c.model.down[index];
    const InModule inside(f, std::to_string(index), block_class(c.model, level, "DownBlock2D"));
    stage(
        f, c, level, level.layers, areas.back(),
        [&](std::int64_t) {
          return Skip{hidden, width};
        },
        [&](Tensor made) {
          hidden = made;
          width = level.width;
          skips.push_back({hidden, width});
        });
    if (index + 1 == c.model.down.size()) break;
    const InModule list(f, "downsamplers", "ModuleList");
    const InModule sampler(f, "0", "Downsample2D");
    hidden = image_conv(f, "conv", hidden, width, width, 3, 2);
    skips.push_back({hidden, width});
    areas.push_back({(areas.back().height + 1) / 2, (areas.back().width + 1) / 2});
  }
  return hidden;
}

inline Tensor middle(Forward& f, const Conditions& c, Tensor hidden, Area area) {
  const Level& level = c.model.down.back();
  const bool crosses = c.model.middle_attends && !c.model.pixels;
  const InModule inside(f, "mid_block", crosses ? "UNetMidBlock2DCrossAttn" : "UNetMidBlock2D");
  const auto residual = [&](std::int64_t index) {
    const InModule list(f, "resnets", "ModuleList");
    hidden = resnet(f, c, index, hidden, level.width, level.width);
  };
  residual(0);
  if (c.model.middle_attends) hidden = attend(f, c, 0, hidden, level, area);
  residual(1);
  return hidden;
}

inline Tensor up_path(Forward& f, const Conditions& c, Tensor hidden, std::vector<Skip>& skips,
                      std::vector<Area>& areas) {
  const InModule blocks(f, "up_blocks", "ModuleList");
  std::int64_t width = c.model.up.front().width;
  for (std::size_t index = 0; index < c.model.up.size() && !f.failed(); ++index) {
    const Level& level = c.model.up[index];
    const InModule inside(f, std::to_string(index), block_class(c.model, level, "UpBlock2D"));
    stage(
        f, c, level, level.layers + 1, areas.back(),
        [&](std::int64_t) {
          const Skip skip = skips.back();
          skips.pop_back();
          return Skip{f.concatenate({hidden, skip.tensor}, 1), width + skip.width};
        },
        [&](Tensor made) {
          hidden = made;
          width = level.width;
        });
    if (index + 1 == c.model.up.size()) break;
    areas.pop_back();
    hidden = upsample_block(f, hidden, width, areas.back().height, areas.back().width);
  }
  return hidden;
}

}  // namespace unet

}  // namespace gpumem::architectures
