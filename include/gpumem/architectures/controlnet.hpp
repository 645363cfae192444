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

inline void write(ConfigFields& config, Head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DenoiserSample sample = sample_of(f, model);
  const StepInputs inputs = step_inputs(f, model, sample);
  const Tensor prediction = write_rest(f, model, write_half(f, model, sample, inputs));
  denoiser_loss(f, prediction, {model.out_channels, sample.height, sample.width});
}

inline constexpr Architecture kArchitecture = {.name = "unet",
                                               .model_types = names<"UNet2DConditionModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .blocks = kBlocks};

}  // namespace unet

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

inline constexpr Architecture kArchitecture = {.name = "controlnet",
                                               .model_types = kModelTypes,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .blocks = unet::kBlocks};

}  // namespace controlnet

}  // namespace gpumem::architectures
