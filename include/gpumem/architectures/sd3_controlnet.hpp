// SD3ControlNetModel: a trained copy of some blocks, which reads an image's latents besides; what its blocks make is
// added behind those of the frozen model, whose config.json is the field "_guided" (a pipeline's folder has it).
// Source: diffusers 0.40, models/controlnets/controlnet_sd3.py, examples/controlnet/train_controlnet_sd3.py: the
// ControlNet alone is checkpointed, and the frozen model is held in the type of --mixed_precision.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/sd3_parts.hpp"

namespace gpumem::architectures {

namespace sd3_controlnet {

using sd3::Model;

inline constexpr std::string_view kPlainBlock = "PlainJointTransformerBlock";  ///< of what is not checkpointed

/// The frozen model, by its own config; without it one of the ControlNet's widths, with as many blocks as heads, as the
/// published models have.
inline Model read_guided(ConfigFields& config, const Model& model, Forward& f) {
  ConfigFields* const own = config.part("_guided");
  if (own == nullptr) {
    Model frozen = model;
    frozen.keeps_text = false;
    frozen.layers = std::min<std::int64_t>(model.sizes.heads, ConfigFields::kMostLayers);
    frozen.dual.clear();
    f.remark("the transformer that it is trained with is frozen, with " + std::to_string(frozen.layers) +
             " blocks of the same widths");
    return frozen;
  }
  Model frozen = sd3::read(*own);
  const bool fits = frozen.sizes.width == model.sizes.width && frozen.sizes.channels == model.sizes.channels &&
                    frozen.pooled == model.pooled && frozen.sizes.text_width == model.sizes.text_width &&
                    frozen.patch == model.patch;
  if (!fits) config.fail("has other widths than its ControlNet", "_guided");
  f.remark("the transformer that it is trained with is frozen");
  return frozen;
}

inline void refuse_variants(ConfigFields& config) {
  if (config.is_null("joint_attention_dim")) config.fail("is a variant that is not known", "joint_attention_dim");
  if (!config.flag("use_pos_embed", true)) config.fail("is a variant that is not known", "use_pos_embed");
  config.ignore({"pos_embed_type", "force_zeros_for_pooled_projection"});
}

/// What it adds behind the frozen blocks. `channels`: of the image's latents, and of what else it reads.
inline std::vector<Tensor> residuals(Forward& f, const Model& model, const sd3::StepInputs& inputs, Tensor hint,
                                     std::int64_t channels) {
  const InModule inside(f, "controlnet", "SD3ControlNetModel");
  const std::int64_t width = model.sizes.width;
  TwoStreams streams;
  streams.image = sd3::image_tokens(f, model, inputs.latents, model.sizes.channels, model.side * model.side);
  const Tensor time = sd3::conditions(f, model, inputs);
  streams.text = f.linear("context_embedder", inputs.prompt, model.sizes.text_width, width);
  {
    const InModule input(f, "pos_embed_input", "PatchEmbed");
    streams.image = f.add(streams.image, sd3::image_tokens(f, model, hint, channels, 0));
  }
  sd3::Run run;
  sd3::run_blocks(f, model, streams, time, run);
  std::vector<Tensor> made;
  const InModule list(f, "controlnet_blocks", "ModuleList");
  for (std::size_t at = 0; at < run.left.size() && !f.failed(); ++at) {
    made.push_back(f.scale(f.linear(std::to_string(at), run.left[at], width, width)));
    f.hand_out(made.back());  // prepare() makes float32 copies of them
  }
  return made;
}

inline void write(ConfigFields& config, Head, Forward& f) {
  Model model = sd3::read(config);
  model.keeps_text = true;
  refuse_variants(config);
  const std::int64_t channels =
      model.sizes.channels + std::min<std::int64_t>(config.count_or("extra_conditioning_channels", 0), 1 << 12);
  Model frozen = read_guided(config, model, f);
  if (!config.status()) return;
  f.run_settings({.lowers_frozen = true});
  const DenoiserSample sample = sd3::sample_of(f, model);
  frozen.lengths = model.lengths;
  if (f.failed()) return;
  const sd3::StepInputs inputs = sd3::step_inputs(f, model, sample);
  const Tensor hint = f.sample_input("controlnet_cond", {channels, sample.height, sample.width});
  std::vector<Tensor> added = residuals(f, model, inputs, hint, channels);
  const InModule inside(f, "transformer", "SD3Transformer2DModel");
  f.freeze(true);
  f.outside_autocast(true);
  sd3::predict(f, frozen, inputs, {.block_class = kPlainBlock, .adds = std::move(added)});
  f.outside_autocast(false);
  f.freeze(false);
}

inline constexpr Architecture kArchitecture = {.name = "sd3_controlnet",
                                               .model_types = names<"SD3ControlNetModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .blocks = sd3::kBlocks};

}  // namespace sd3_controlnet

}  // namespace gpumem::architectures
