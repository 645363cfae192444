// UNet2DConditionModel: Stable Diffusion 1.x, 2.x and XL, Kolors. Source: as unet_parts.hpp has it.
//
// ControlNetModel of Stable Diffusion 1.x, 2.x and XL: a trained copy of a UNet's way down and middle, which reads an
// image besides; what it makes is added to the skips of the frozen UNet. The field "_guided" is the UNet's config.json
// (a pipeline's folder has it). Without it the ControlNet's own tells the UNet too: the way up is as the way down, the
// other way round (from_unet).
// Source: diffusers 0.38, models/controlnets/controlnet.py; examples/controlnet/train_controlnet.py and
// train_controlnet_sdxl.py: the UNet is held in the type of --mixed_precision, runs outside of autocast, and is
// checkpointed in the example of XL alone.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/architectures/unet_parts.hpp"

namespace gpumem::architectures {

namespace unet {

/// The tensors that a step brings.
struct StepInputs {
  Tensor latents = 0;
  Tensor timestep = 0;
  Tensor text = 0;
  Tensor added = 0;  ///< pooled text and sizes, where the model reads them
};

/// The timestep's embedding, with that of the pooled text and the image's sizes (get_aug_embed, "text_time").
inline Tensor embed_time(Forward& f, const Model& model, const StepInputs& inputs) {
  const std::int64_t width = model.down.front().width;
  const Tensor time = timestep_embedding(f, "time_embedding", inputs.timestep, width, model.embedded());
  if (model.pooled == 0) return time;
  return f.add(time, timestep_embedding(f, "add_embedding", inputs.added, model.pooled, model.embedded()));
}

/// The size of a sample, where the config does not say it: that of Stable Diffusion 1.5, or of XL.
inline DenoiserSample sample_of(Forward& f, const Model& model) {
  constexpr std::int64_t kUsualSide = 64;
  constexpr std::int64_t kUsualSideXl = 128;
  const std::int64_t usual = model.pooled > 0 ? kUsualSideXl : kUsualSide;
  const std::int64_t side = model.side > 0 ? model.side : usual;
  return denoiser_sample(f, {.side = 8, .usual_side = 8 * side, .usual_text = 77});
}

inline StepInputs step_inputs(Forward& f, const Model& model, const DenoiserSample& sample) {
  StepInputs inputs;
  inputs.latents = latent_input(f, sample, model.channels);
  inputs.timestep = timestep_input(f, "timestep", model.down.front().width);
  if (model.pooled > 0) inputs.added = f.sample_input("added_cond_kwargs", {model.pooled});
  inputs.text = text_input(f, sample, model.text);
  return inputs;
}

/// What the way down and the middle made.
struct Half {
  Conditions conditions;
  Tensor hidden = 0;
  std::int64_t width = 1;
  std::vector<Skip> skips = {};
  std::vector<Area> areas = {};
};

/// `hint`: is added to what the first convolution makes; nothing is without one.
inline Half write_half(Forward& f, const Model& model, const DenoiserSample& sample, const StepInputs& inputs,
                       std::optional<Tensor> hint = {}) {
  const std::int64_t width = model.down.front().width;
  Half half{.conditions = {model, embed_time(f, model, inputs), inputs.text}, .width = width};
  if (model.text_projected > 0) {
    half.conditions.text = f.linear("encoder_hid_proj", inputs.text, model.text, model.text_projected);
  }
  half.hidden = image_conv(f, "conv_in", inputs.latents, model.channels, width, model.kernel_in);
  if (hint) half.hidden = f.add(half.hidden, *hint);
  half.skips = {{half.hidden, width}};
  half.areas = {{sample.height, sample.width}};
  half.hidden = down_path(f, half.conditions, half.hidden, half.skips, half.areas);
  if (model.has_middle) half.hidden = middle(f, half.conditions, half.hidden, half.areas.back());
  return half;
}

/// The way up, and what leaves the model.
inline Tensor write_rest(Forward& f, const Model& model, Half half) {
  Tensor hidden = up_path(f, half.conditions, half.hidden, half.skips, half.areas);
  hidden = f.activation("conv_act", image_norm(f, "conv_norm_out", hidden, half.width, model.groups), "silu");
  return image_conv(f, "conv_out", hidden, half.width, model.out_channels, model.kernel_out);
}

inline void write(ConfigFields& config, Head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DenoiserSample sample = sample_of(f, model);
  const StepInputs inputs = step_inputs(f, model, sample);
  const Tensor prediction = write_rest(f, model, write_half(f, model, sample, inputs));
  denoiser_loss(f, prediction, {model.out_channels, sample.height, sample.width});
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"UNet2DCondition", "UNet2DConditionModel"}});

/// One word a level, as configs list them.
inline std::string quoted_list(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "\"" : ", \"") + word + "\"";
  return "[" + all + "]";
}

/// The classes of the levels of a way, and the widths of the way down.
inline void tree_levels(TreeFields& t) {
  std::vector<std::string> down;
  std::vector<std::string> up;
  std::vector<std::int64_t> widths;
  for (std::int64_t at = 0; at < t.count_of("down_blocks"); ++at) {
    const std::string block = "down_blocks." + std::to_string(at);
    down.emplace_back(t.class_of(block));
    widths.push_back(t.value(block + ".resnets.0.conv1", "out_channels").value_or(1));
    if (t.has("up_blocks")) up.emplace_back(t.class_of("up_blocks." + std::to_string(at)));
  }
  t.set_text("down_block_types", quoted_list(down));
  if (!up.empty()) t.set_text("up_block_types", quoted_list(up));
  t.list("block_out_channels", widths);
  t.count("layers_per_block", "down_blocks.0.resnets");
  if (t.has("mid_block")) t.set_string("mid_block_type", t.class_of("mid_block"));
  else t.set_text("mid_block_type", "null");
  t.size("in_channels", "conv_in", "in_channels");
  t.size("out_channels", "conv_out", "out_channels");
  t.size("norm_num_groups", "down_blocks.0.resnets.0.norm1", "num_groups");
}

/// What print(model) shows: all but the heads, which are 8 in Stable Diffusion 1.x, and 64 wide in later ones.
inline void read_tree(TreeFields& t) {
  constexpr std::int64_t kHead = 64;
  constexpr std::int64_t kFirstHeads = 8;
  tree_levels(t);
  std::vector<std::int64_t> depths;
  std::vector<std::int64_t> heads;
  const bool linear = t.class_of("mid_block.attentions.0.proj_in") == "Linear";
  std::int64_t text = t.value("mid_block.attentions.0.transformer_blocks.0.attn2.to_k", "in_features").value_or(0);
  for (std::int64_t at = 0; at < t.count_of("down_blocks"); ++at) {
    const std::string block = "down_blocks." + std::to_string(at);
    const std::string first = block + ".attentions.0.transformer_blocks";
    depths.push_back(std::max<std::int64_t>(t.count_of(first), 1));
    const std::int64_t width = t.value(block + ".resnets.0.conv1", "out_channels").value_or(kHead);
    heads.push_back(linear ? std::max<std::int64_t>(width / kHead, 1) : kFirstHeads);
    text = t.value(first + ".0.attn2.to_k", "in_features").value_or(text);
  }
  t.list("transformer_layers_per_block", depths);
  t.list("attention_head_dim", heads);
  t.assume(linear ? "heads of width 64, as Stable Diffusion 2 and XL have" : "8 heads, as Stable Diffusion 1 has");
  if (text > 0) t.set("cross_attention_dim", text);
  t.set_flag("use_linear_projection", linear);
  t.size("conv_in_kernel", "conv_in", "kernel_size");
  t.size("conv_out_kernel", "conv_out", "kernel_size");
  t.size("encoder_hid_dim", "encoder_hid_proj", "in_features");
  if (!t.has("add_embedding")) return;
  t.set_string("addition_embed_type", "text_time");
  t.size("projection_class_embeddings_input_dim", "add_embedding.linear_1", "in_features");
}

inline constexpr Architecture kArchitecture = {.name = "unet",
                                               .model_types = names<"UNet2DConditionModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .depends_on_images = true,
                                               .blocks = kBlocks};

}  // namespace unet

// UNet2DModel, of DDPM: a UNet of pixels (or latents) that reads no text, whose pixels see each other at some levels.
// Source: diffusers 0.38, models/unets/unet_2d.py, unet_2d_blocks.py: AttnDownBlock2D, AttnUpBlock2D, UNetMidBlock2D;
// examples/unconditional_image_generation/train_unconditional.py.

namespace unet_2d {

using unet::Model;

inline constexpr std::array<std::string_view, 1> kBlocks = {kResnetBlock};

inline void refuse_variants(ConfigFields& config) {
  const auto only = [&](std::string_view field, std::string_view usual) {
    if (config.text({field}, usual) != usual) config.fail("is a variant that is not known", field);
  };
  only("time_embedding_type", "positional");
  only("resnet_time_scale_shift", "default");
  only("downsample_type", "conv");
  only("upsample_type", "conv");
  for (const std::string_view field : {"class_embed_type", "num_class_embeds", "time_embedding_dim"}) {
    if (config.has(field)) config.fail("is a variant that is not known", field);
  }
  config.ignore({"center_input_sample", "freq_shift", "flip_sin_to_cos", "mid_block_scale_factor", "downsample_padding",
                 "norm_eps", "num_train_timesteps", "sample_size"});
}

inline std::vector<unet::Level> levels_of(ConfigFields& config, const std::vector<std::int64_t>& widths,
                                          const std::vector<std::string>& types, std::string_view field,
                                          std::string_view plain) {
  const std::int64_t layers = config.size_or({"layers_per_block"}, 2);
  // Here it is the width of a head. A null means one head.
  const std::int64_t head = config.is_null("attention_head_dim") ? 0 : config.size_or({"attention_head_dim"}, 8);
  constexpr std::size_t kMostLevels = 8;
  if (types.size() != widths.size() || types.empty() || types.size() > kMostLevels) {
    config.fail("must have from 1 to 8 entries, as many as there are blocks", "block_out_channels");
    return {unet::Level{}};
  }
  constexpr std::int64_t kMostBlocks = 256;
  if (layers > kMostBlocks) config.fail("is more than gpumem takes", "layers_per_block");
  std::vector<unet::Level> levels;
  for (std::size_t index = 0; index < types.size(); ++index) {
    const bool attends = types[index] == "Attn" + std::string(plain);
    if (!attends && types[index] != plain) {
      config.fail("names the block " + core::quoted(types[index]) + ", which is not known", field);
    }
    const std::int64_t width = widths[index];
    if (head > 0 && width % head != 0) config.fail("does not divide a width", "attention_head_dim");
    levels.push_back({.attends = attends, .width = width, .layers = layers, .heads = head > 0 ? width / head : 1});
  }
  return levels;
}

inline Model read(ConfigFields& config) {
  Model model;
  refuse_variants(config);
  std::vector<std::int64_t> widths = config.sizes_or("block_out_channels", {224, 448, 672, 896});
  const std::vector<std::string> down =
      config.texts_or("down_block_types", {"DownBlock2D", "AttnDownBlock2D", "AttnDownBlock2D", "AttnDownBlock2D"});
  model.down = levels_of(config, widths, down, "down_block_types", "DownBlock2D");
  const std::vector<std::string> up =
      config.texts_or("up_block_types", {"AttnUpBlock2D", "AttnUpBlock2D", "AttnUpBlock2D", "UpBlock2D"});
  std::reverse(widths.begin(), widths.end());
  model.up = levels_of(config, widths, up, "up_block_types", "UpBlock2D");
  model.has_middle = !config.is_null("mid_block_type");
  if (model.has_middle && config.text({"mid_block_type"}, "UNetMidBlock2D") != "UNetMidBlock2D") {
    config.fail("is not known", "mid_block_type");
  }
  model.middle_attends = config.flag("add_attention", true);
  model.channels = config.size_or({"in_channels"}, 3);
  model.out_channels = config.size_or({"out_channels"}, 3);
  model.groups = config.size_or({"norm_num_groups"}, 32);
  if (config.size_or({"attn_norm_num_groups"}, model.groups) != model.groups) {
    config.fail("must be norm_num_groups", "attn_norm_num_groups");
  }
  model.activation = config.text({"act_fn"}, "silu");
  model.dropout = config.number({"dropout"}, 0.0);
  model.pixels = true;
  return model;
}

inline void write(ConfigFields& config, Head, Forward& f) {
  const Model model = read(config);
  const core::JsonValue* side = config.find("sample_size");
  const bool says = side != nullptr && side->is(core::JsonValue::Kind::integer);
  const std::int64_t usual = says ? config.size({"sample_size"}) : 64;  // --resolution of the example
  if (!config.status()) return;
  const std::int64_t halvings = std::int64_t{1} << (model.down.size() - 1);
  const DenoiserSample sample =
      denoiser_sample(f, {.side = 1, .patch = halvings, .usual_side = usual, .usual_text = 0});
  unet::StepInputs inputs;
  inputs.latents = latent_input(f, sample, model.channels);
  inputs.timestep = timestep_input(f, "timestep", model.down.front().width);
  const Tensor prediction = unet::write_rest(f, model, unet::write_half(f, model, sample, inputs));
  denoiser_loss(f, prediction, {model.out_channels, sample.height, sample.width});
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"UNet2D", "UNet2DModel"}});

/// What print(model) shows: all but the heads, which are 8 wide where a config does not say otherwise.
inline void read_tree(TreeFields& t) {
  unet::tree_levels(t);
  t.set_flag("add_attention", t.has("mid_block.attentions.0"));
  t.assume("heads of width 8, as the class has");
}

inline constexpr Architecture kArchitecture = {.name = "unet_2d",
                                               .model_types = names<"UNet2DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .depends_on_images = true,
                                               .blocks = kBlocks};

}  // namespace unet_2d

namespace controlnet {

using unet::Half;
using unet::Model;
using unet::StepInputs;

inline constexpr std::array<std::string_view, 1> kModelTypes = {"ControlNetModel"};

struct Hint {
  std::int64_t channels = 3;
  std::vector<std::int64_t> widths = {16, 32, 96, 256};
};

inline Hint read_hint(ConfigFields& config) {
  // A width more halves the image once more. Latents are an eighth of it, as four widths make it.
  constexpr std::size_t kWidths = 4;
  Hint hint;
  hint.channels = config.size_or({"conditioning_channels"}, 3);
  hint.widths = config.sizes_or("conditioning_embedding_out_channels", hint.widths);
  if (hint.widths.size() != kWidths) {
    config.fail("must have 4 entries: with others the image is not made as small as the latents",
                "conditioning_embedding_out_channels");
    hint.widths = {1};
  }
  if (config.flag("global_pool_conditions", false)) {
    config.fail("is a variant that is not known", "global_pool_conditions");
  }
  config.ignore({"controlnet_conditioning_channel_order"});
  return hint;
}

/// ControlNetConditioningEmbedding: from pixels to the size of latents.
inline Tensor hint_features(Forward& f, const Hint& hint, const DenoiserSample& sample, std::int64_t width) {
  constexpr std::int64_t kSide = 8;  // pixels a pixel of latents
  const Tensor image =
      f.sample_input("conditioning_pixel_values", {hint.channels, kSide * sample.height, kSide * sample.width});
  const InModule inside(f, "controlnet_cond_embedding", "ControlNetConditioningEmbedding");
  Tensor hidden = f.call("silu", {image_conv(f, "conv_in", image, hint.channels, hint.widths[0], 3)});
  {
    const InModule list(f, "blocks", "ModuleList");
    for (std::size_t at = 0; at + 1 < hint.widths.size() && !f.failed(); ++at) {
      const std::int64_t in = hint.widths[at];
      hidden = f.call("silu", {image_conv(f, std::to_string(2 * at), hidden, in, in, 3)});
      hidden = f.call("silu", {image_conv(f, std::to_string(2 * at + 1), hidden, in, hint.widths[at + 1], 3, 2)});
    }
  }
  return image_conv(f, "conv_out", hidden, hint.widths.back(), width, 3);
}

/// What is added to each skip, and to what leaves the middle, at the end.
inline std::vector<Tensor> residuals_of(Forward& f, const Half& half) {
  std::vector<Tensor> made;
  made.reserve(half.skips.size() + 1);
  {
    const InModule list(f, "controlnet_down_blocks", "ModuleList");
    for (std::size_t at = 0; at < half.skips.size() && !f.failed(); ++at) {
      const auto& [tensor, width] = half.skips[at];
      made.push_back(image_conv(f, std::to_string(at), tensor, width, width, 1));
    }
  }
  const std::int64_t width = half.skips.back().width;
  made.push_back(image_conv(f, "controlnet_mid_block", half.hidden, width, width, 1));
  for (Tensor& residual : made) {
    residual = f.scale(residual);
    f.hand_out(residual);  // prepare() makes float32 copies of them
  }
  return made;
}

inline std::vector<Tensor> controlnet(Forward& f, const Model& model, const Hint& hint, const DenoiserSample& sample,
                                      const StepInputs& inputs) {
  const InModule inside(f, "controlnet", kModelTypes[0]);
  const Tensor features = hint_features(f, hint, sample, model.down.front().width);
  return residuals_of(f, unet::write_half(f, model, sample, inputs, features));
}

/// The frozen UNet's prediction.
inline Tensor guided_unet(Forward& f, Model model, const DenoiserSample& sample, const StepInputs& inputs,
                          const std::vector<Tensor>& residuals) {
  const InModule inside(f, "unet", "UNet2DConditionModel");
  const bool checkpointed = model.pooled > 0;
  if (!checkpointed) model.blocks = unet::kPlainBlocks;
  f.freeze(true);
  f.outside_autocast(true);
  Half half = unet::write_half(f, model, sample, inputs);
  for (std::size_t at = 0; at < half.skips.size(); ++at) {
    half.skips[at].tensor = f.add(half.skips[at].tensor, f.as_type_of(residuals[at], half.skips[at].tensor));
  }
  half.hidden = f.add(half.hidden, f.as_type_of(residuals.back(), half.hidden));
  const Tensor prediction = unet::write_rest(f, model, std::move(half));
  f.outside_autocast(false);
  f.freeze(false);
  return prediction;
}

/// The frozen UNet, by its own config or by the ControlNet's.
inline Model read_guided(ConfigFields& config, const Model& model, Forward& f) {
  ConfigFields* const own = config.part("_guided");
  if (own == nullptr) {
    f.remark("the UNet that it is trained with is frozen, and of the same sizes");
    return model;
  }
  Model guided = unet::read(*own);
  const auto alike = [](const unet::Level& left, const unet::Level& right) {
    return left.width == right.width && left.layers == right.layers && left.text == right.text;
  };
  const bool levels = std::equal(guided.down.begin(), guided.down.end(), model.down.begin(), model.down.end(), alike);
  const bool fits =
      levels && guided.channels == model.channels && guided.text == model.text && guided.pooled == model.pooled;
  if (!fits) config.fail("has other widths than its ControlNet", "_guided");
  f.remark("the UNet that it is trained with is frozen");
  return guided;
}

inline void write(ConfigFields& config, Head, Forward& f) {
  const Model model = unet::read_half(config);
  const Hint hint = read_hint(config);
  const Model frozen = read_guided(config, model, f);
  if (!config.status()) return;
  f.run_settings({.lowers_frozen = true});
  const DenoiserSample sample = unet::sample_of(f, model);
  const StepInputs inputs = unet::step_inputs(f, model, sample);
  const std::vector<Tensor> residuals = controlnet(f, model, hint, sample, inputs);
  if (f.failed()) return;
  const Tensor prediction = guided_unet(f, frozen, sample, inputs, residuals);
  denoiser_loss(f, prediction, {frozen.out_channels, sample.height, sample.width});
}

inline constexpr auto kTreeClasses = std::to_array<ModelClass>({{"ControlNet", "ControlNetModel"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  unet::read_tree(t);
  std::vector<std::int64_t> widths = {t.value("controlnet_cond_embedding.conv_in", "out_channels").value_or(1)};
  for (std::int64_t at = 1; at < t.count_of("controlnet_cond_embedding.blocks"); at += 2) {
    const std::string block = "controlnet_cond_embedding.blocks." + std::to_string(at);
    widths.push_back(t.value(block, "out_channels").value_or(1));
  }
  t.list("conditioning_embedding_out_channels", widths);
  t.size("conditioning_channels", "controlnet_cond_embedding.conv_in", "in_channels");
  t.take_sizes_alone();  // the UNet that it is trained with is written too
}

inline constexpr Architecture kArchitecture = {.name = "controlnet",
                                               .model_types = kModelTypes,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .classes = kTreeClasses,
                                               .read_tree = read_tree,
                                               .depends_on_images = true,
                                               .blocks = unet::kBlocks};

}  // namespace controlnet

}  // namespace gpumem::architectures
