// Input: the config.json of Stable Diffusion 3 or 3.5. Output: its blocks, which a ControlNet of it has, too.
// Source: diffusers 0.38, models/transformers/transformer_sd3.py, models/attention.py (JointTransformerBlock),
// models/attention_processor.py (JointAttnProcessor2_0).
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/denoiser.hpp"
#include "gpumem/architectures/dit_parts.hpp"

namespace gpumem::architectures {

namespace sd3 {

inline constexpr std::array<std::string_view, 1> kBlocks = {"JointTransformerBlock"};

struct Model {
  DitSizes sizes;
  std::int64_t layers = 18;
  std::int64_t patch = 2;
  std::int64_t side = 96;  ///< of the table of positions
  std::int64_t pooled = 2048;
  bool head_norm = false;
  bool keeps_text = false;         ///< the last block of a ControlNet leaves text, too
  std::vector<std::int64_t> dual;  ///< blocks with a second attention
  StreamLengths lengths;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = dit_sizes(config, {.heads = 18, .head_width = 64});
  model.layers = config.layers_or("num_layers", 18);
  model.patch = dit_patch(config);
  model.side = config.size_or({"pos_embed_max_size"}, 96);
  model.pooled = dit_width(config, "pooled_projection_dim", 2048);
  if (model.side > 4096) config.fail("is larger than gpumem takes", "pos_embed_max_size");
  const std::string_view norm = config.text({"qk_norm"}, "");
  model.head_norm = norm == "rms_norm";
  if (!norm.empty() && !model.head_norm) config.fail("is not known", "qk_norm");
  if (const core::JsonValue* list = config.find("dual_attention_layers"); list != nullptr) {
    bool sound = list->is(core::JsonValue::Kind::list);
    for (const core::JsonValue& entry : list->items()) {
      const bool known = sound && entry.is(core::JsonValue::Kind::integer) && entry.integer() >= 0;
      sound = known && entry.integer() < model.layers;
      if (sound) model.dual.push_back(entry.integer());
    }
    if (!sound) config.fail("must be a list of layers", "dual_attention_layers");
  }
  const bool same = config.size_or({"caption_projection_dim"}, model.sizes.width) == model.sizes.width;
  if (!same) config.fail("must be the width of all heads", "caption_projection_dim");
  config.ignore({"sample_size"});
  return model;
}

inline JointAttention attention_of(const Model& model) {
  return {.width = model.sizes.width,
          .head_width = model.sizes.head_width,
          .norm = model.head_norm ? DitHeadNorm::own_rms : DitHeadNorm::none,
          .text_first = false,
          .heads_first = true};
}

inline Tensor fed(Forward& f, const Model& model, Tensor attended, const std::vector<Tensor>& rows,
                  const std::string& suffix) {
  const std::int64_t width = model.sizes.width;
  const Tensor again = modulated(f, bare_norm(f, "norm2" + suffix, attended, width), rows[4], rows[3]);
  const Tensor made = dit_feed_forward(f, "ff" + suffix, again, width, 4 * width, DitActivation::gelu_tanh);
  return gated_sum(f, attended, rows[5], made);
}

/// The attention of image tokens among themselves, with projections of its own.
inline Tensor second_attention(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "attn2", "Attention");
  const std::int64_t each = model.sizes.head_width;
  const DitHeadNorm norm = model.head_norm ? DitHeadNorm::own_rms : DitHeadNorm::none;
  const auto heads = [&](std::string_view name) {
    return as_heads(f, f.linear(name, input, model.sizes.width, model.sizes.width), each);
  };
  Tensor query = heads("to_q");
  Tensor key = heads("to_k");
  const Tensor value = heads("to_v");
  query = dit_head_norm(f, "norm_q", query, each, norm);
  key = dit_head_norm(f, "norm_k", key, each, norm);
  const Tensor mixed = attend_heads(f, query, key, value);
  const InModule out(f, "to_out", "ModuleList");
  return f.linear("0", mixed, model.sizes.width, model.sizes.width);
}

inline TwoStreams block(Forward& f, const Model& model, const TwoStreams& in, Tensor time, std::int64_t index) {
  const std::int64_t width = model.sizes.width;
  const bool last = index + 1 == model.layers && !model.keeps_text;
  const bool dual = std::find(model.dual.begin(), model.dual.end(), index) != model.dual.end();
  const auto rows_of = [&](std::string_view name, std::int64_t count) {
    const InModule inside(f, name, count == 9 ? "SD35AdaLayerNormZeroX" : "AdaLayerNormZero");
    return modulation(f, "linear", time, width, width, count);
  };
  const std::vector<Tensor> image = rows_of("norm1", dual ? 9 : 6);
  const Tensor bare = bare_norm(f, "norm1.norm", in.image, width);
  const Tensor normed = modulated(f, bare, image[1], image[0]);
  const Tensor second = dual ? modulated(f, bare, image[7], image[6]) : normed;
  std::vector<Tensor> text;
  Tensor normed_text = 0;
  if (last) {
    normed_text = continuous_norm(f, "norm1_context", in.text, time, width, width);
  } else {
    text = rows_of("norm1_context", 6);
    normed_text = modulated(f, bare_norm(f, "norm1_context.norm", in.text, width), text[1], text[0]);
  }
  JointAttention options = attention_of(model);
  options.text_leaves = !last;
  const TwoStreams mixed = joint_attention(f, options, {normed, normed_text}, model.lengths);
  Tensor attended = gated_sum(f, in.image, image[2], mixed.image);
  if (dual) attended = gated_sum(f, attended, image[8], second_attention(f, model, second));
  const Tensor image_left = fed(f, model, attended, image, "");
  if (last) return {image_left, in.text};
  return {image_left, fed(f, model, gated_sum(f, in.text, text[2], mixed.text), text, "_context")};
}

inline constexpr std::int64_t kSinusoids = 256;

/// What a step brings.
struct StepInputs {
  Tensor latents = 0;
  Tensor prompt = 0;
  Tensor timestep = 0;
  Tensor pooled = 0;
};

inline StepInputs step_inputs(Forward& f, const Model& model, const DenoiserSample& sample) {
  return {.latents = latent_input(f, sample, model.sizes.channels),
          .prompt = text_input(f, sample, model.sizes.text_width),
          .timestep = timestep_input(f, "timestep", kSinusoids),
          .pooled = f.sample_input("pooled_projections", {model.pooled})};
}

inline Tensor conditions(Forward& f, const Model& model, const StepInputs& inputs) {
  const std::int64_t width = model.sizes.width;
  const InModule inside(f, "time_text_embed", "CombinedTimestepTextProjEmbeddings");
  const Tensor time = timestep_embedding(f, "timestep_embedder", inputs.timestep, kSinusoids, width);
  return f.add(time, text_projection(f, "text_embedder", inputs.pooled, model.pooled, width, "silu"));
}

/// The image's tokens, of latents with these channels.
inline Tensor image_tokens(Forward& f, const Model& model, Tensor latents, std::int64_t channels, std::int64_t places) {
  return patch_embedding(f, "pos_embed", latents, channels, model.sizes.width, model.patch, model.lengths.image,
                         places);
}

/// The blocks, and behind each but the last what a ControlNet `adds`; `left`: what each leaves of the image.
struct Run {
  std::string_view block_class = kBlocks[0];
  std::vector<Tensor> adds = {};
  std::vector<Tensor> left = {};
};
inline void run_blocks(Forward& f, const Model& model, TwoStreams streams, Tensor time, Run& run) {
  const InModule list(f, "transformer_blocks", "ModuleList");
  for (std::int64_t index = 0; index < model.layers && !f.failed(); ++index) {
    {
      const InModule inside(f, std::to_string(index), run.block_class);
      streams = block(f, model, streams, time, index);
    }
    if (!run.adds.empty() && index + 1 < model.layers) {
      const auto at = static_cast<std::size_t>(index) * run.adds.size() / static_cast<std::size_t>(model.layers);
      streams.image = f.add(streams.image, f.as_type_of(run.adds[at], streams.image));
    }
    run.left.push_back(streams.image);
  }
}

inline void predict(Forward& f, const Model& model, const StepInputs& inputs, Run run) {
  const std::int64_t width = model.sizes.width;
  TwoStreams streams;
  streams.image = f.contiguous(image_tokens(f, model, inputs.latents, model.sizes.channels, model.side * model.side));
  const Tensor time = conditions(f, model, inputs);
  streams.text = f.linear("context_embedder", inputs.prompt, model.sizes.text_width, width);
  run_blocks(f, model, streams, time, run);
  if (f.failed()) return;
  const Tensor normed = continuous_norm(f, "norm_out", run.left.back(), time, width, width);
  const std::int64_t out = model.patch * model.patch * model.sizes.out_channels;
  denoiser_loss(f, f.call("clone", {f.linear("proj_out", normed, width, out)}), {model.lengths.image, out});
}

/// A sample, and the tokens that it is; an image larger than the model's positions is a fault.
inline DenoiserSample sample_of(Forward& f, Model& model) {
  const std::int64_t side = std::min<std::int64_t>(8 * model.patch * model.side, 1024);
  const DenoiserSample sample =
      denoiser_sample(f, {.side = 8, .patch = model.patch, .usual_side = side, .usual_text = 333});
  model.lengths = {sample.height * sample.width / (model.patch * model.patch), sample.text};
  const std::int64_t places = model.side * model.side;
  if (model.lengths.image > places) f.fail("has positions for smaller images; give a smaller `image`");
  return sample;
}

}  // namespace sd3

}  // namespace gpumem::architectures
