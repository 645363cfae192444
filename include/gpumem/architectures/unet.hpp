// UNet2DConditionModel: Stable Diffusion 1.x, 2.x and XL, Kolors. Source: as unet_parts.hpp has it.
#pragma once

#include <array>
#include <string_view>

#include "gpumem/architectures/unet_parts.hpp"

namespace gpumem::architectures {

namespace unet_detail {

inline constexpr std::array<std::string_view, 1> kModelTypes = {"UNet2DConditionModel"};

inline void write(ConfigFields& config, Head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DenoiserSample sample = sample_of(f, model);
  const StepInputs inputs = step_inputs(f, model, sample);
  const Tensor prediction = write_rest(f, model, write_half(f, model, sample, inputs));
  denoiser_loss(f, prediction, {model.out_channels, sample.height, sample.width});
}

}  // namespace unet_detail

[[nodiscard]] inline const Architecture& unet() {
  static constexpr Architecture kArchitecture = {.name = "unet",
                                                 .model_types = unet_detail::kModelTypes,
                                                 .usual_head = Head::none,
                                                 .write = unet_detail::write,
                                                 .blocks = unet_detail::kBlocks};
  return kArchitecture;
}

}  // namespace gpumem::architectures
