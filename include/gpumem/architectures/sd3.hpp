// Stable Diffusion 3 and 3.5: blocks with a stream of image tokens and one of text tokens. The last block leaves no
// text. In some blocks of 3.5 medium the image tokens attend to each other a second time.
// Source: diffusers 0.38, models/transformers/transformer_sd3.py, models/attention.py (JointTransformerBlock),
// models/attention_processor.py (JointAttnProcessor2_0).
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/denoiser.hpp"
#include "gpumem/architectures/dit_parts.hpp"
#include "gpumem/architectures/sd3_parts.hpp"

namespace gpumem::architectures {

namespace sd3 {

inline void write(ConfigFields& config, Head, Forward& f) {
  Model model = read(config);
  if (!config.status()) return;
  const DenoiserSample sample = sample_of(f, model);
  if (!f.failed()) predict(f, model, step_inputs(f, model, sample), {});
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"SD3Transformer2D", "SD3Transformer2DModel"}});

/// What print(model) shows: all but the heads, which are 64 wide. The table of positions is a buffer, as published.
inline void read_tree(TreeFields& t) {
  constexpr std::int64_t kHead = 64;
  constexpr std::int64_t kSideOfLarge = 192;
  constexpr std::int64_t kSideOfMedium = 384;
  const std::int64_t width = t.value("pos_embed.proj", "out_channels").value_or(0);
  t.size("in_channels", "pos_embed.proj", "in_channels");
  t.size("patch_size", "pos_embed.proj", "kernel_size");
  t.count("num_layers", "transformer_blocks");
  t.set("attention_head_dim", kHead);
  t.set("num_attention_heads", std::max<std::int64_t>(width / kHead, 1));
  t.set("caption_projection_dim", std::max<std::int64_t>(width, 1));
  t.size("joint_attention_dim", "context_embedder", "in_features");
  t.size("pooled_projection_dim", "time_text_embed.text_embedder.linear_1", "in_features");
  const std::int64_t patch = t.value("pos_embed.proj", "kernel_size").value_or(1);
  t.part("out_channels", "proj_out", "out_features", patch * patch);
  if (t.has("transformer_blocks.0.attn.norm_q")) t.set_string("qk_norm", "rms_norm");
  std::vector<std::int64_t> dual;
  for (std::int64_t at = 0; at < t.count_of("transformer_blocks"); ++at) {
    if (t.has("transformer_blocks." + std::to_string(at) + ".attn2")) dual.push_back(at);
  }
  if (!dual.empty()) t.list("dual_attention_layers", dual);
  t.set("pos_embed_max_size", dual.empty() ? kSideOfLarge : kSideOfMedium);
  t.assume("heads of width 64 and a table of positions as published models have");
}

inline constexpr Architecture kArchitecture = {.name = "sd3",
                                               .model_types = names<"SD3Transformer2DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .depends_on_images = true,
                                               .blocks = kBlocks};

}  // namespace sd3

// AuraFlow: blocks with a stream of image tokens and one of text tokens, then blocks over all tokens; no biases, norms
// in float32.
// Source: diffusers 0.38, models/transformers/auraflow_transformer_2d.py, models/attention_processor.py
// (AuraFlowAttnProcessor2_0).

namespace auraflow {

inline constexpr std::array<std::string_view, 2> kBlocks = {"AuraFlowJointTransformerBlock",
                                                            "AuraFlowSingleTransformerBlock"};
inline constexpr std::int64_t kRegisters = 8;  ///< learned tokens before the prompt's

struct Model {
  DitSizes sizes;
  std::int64_t blocks = 4;
  std::int64_t singles = 32;
  std::int64_t patch = 2;
  std::int64_t places = 1024;
  StreamLengths lengths;

  /// find_multiple(2 / 3 of four widths, 256)
  [[nodiscard]] std::int64_t inner() const { return (8 * sizes.width / 3 + 255) / 256 * 256; }
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = dit_sizes(config, {.heads = 12, .head_width = 256, .channels = 4, .text_width = 2048});
  model.blocks = dit_layers(config, "num_mmdit_layers", 4);
  model.singles = dit_layers(config, "num_single_dit_layers", 32);
  model.patch = dit_patch(config);
  model.places = config.size_or({"pos_embed_max_size"}, 1024);
  const bool same = config.size_or({"caption_projection_dim"}, 3072) == model.sizes.width;
  if (!same) config.fail("must be the width of all heads", "caption_projection_dim");
  config.ignore({"sample_size"});
  return model;
}

inline Tensor norm(Forward& f, const Model& model, std::string_view name, Tensor input) {
  return wide_norm(f, name, input, model.sizes.width, false);
}

inline std::vector<Tensor> rows_of(Forward& f, const Model& model, std::string_view name, Tensor time) {
  const InModule inside(f, name, "AdaLayerNormZero");
  return modulation(f, "linear", time, model.sizes.width, model.sizes.width, 6, false);
}

inline Tensor feed_forward(Forward& f, const Model& model, std::string_view name, Tensor input) {
  const InModule inside(f, name, "AuraFlowFeedForward");
  const std::int64_t width = model.sizes.width;
  const Tensor open = f.call("silu", {f.linear("linear_1", input, width, model.inner(), {.bias = false})});
  const Tensor up = f.linear("linear_2", input, width, model.inner(), {.bias = false});
  return f.linear("out_projection", f.multiply(open, up), model.inner(), width, {.bias = false});
}

/// What follows attention. The last sum takes the block's input, not what attention left.
inline Tensor fed(Forward& f, const Model& model, Tensor residual, Tensor mixed, const std::vector<Tensor>& rows,
                  const std::string& suffix) {
  const Tensor normed = norm(f, model, "norm2" + suffix, gated_sum(f, residual, rows[2], mixed));
  const Tensor made = feed_forward(f, model, "ff" + suffix, modulated(f, normed, rows[4], rows[3]));
  return gated_sum(f, residual, rows[5], made);
}

inline JointAttention attention_of(const Model& model) {
  return {
      .width = model.sizes.width, .head_width = model.sizes.head_width, .bias = false, .norm = DitHeadNorm::wide_layer};
}

inline TwoStreams joint_block(Forward& f, const Model& model, const TwoStreams& in, Tensor time) {
  const std::vector<Tensor> image = rows_of(f, model, "norm1", time);
  const Tensor normed = modulated(f, norm(f, model, "norm1.norm", in.image), image[1], image[0]);
  const std::vector<Tensor> text = rows_of(f, model, "norm1_context", time);
  const Tensor normed_text = modulated(f, norm(f, model, "norm1_context.norm", in.text), text[1], text[0]);
  const TwoStreams mixed = joint_attention(f, attention_of(model), {normed, normed_text}, model.lengths);
  const Tensor image_left = fed(f, model, in.image, mixed.image, image, "");
  return {image_left, fed(f, model, in.text, mixed.text, text, "_context")};
}

inline Tensor single_block(Forward& f, const Model& model, Tensor hidden, Tensor time) {
  const std::vector<Tensor> rows = rows_of(f, model, "norm1", time);
  const Tensor normed = modulated(f, norm(f, model, "norm1.norm", hidden), rows[1], rows[0]);
  return fed(f, model, hidden, single_attention(f, attention_of(model), normed, true), rows, "");
}

/// AuraFlowPatchEmbed: patches and their learned positions, of which the middle is taken.
inline Tensor patches(Forward& f, const Model& model) {
  const std::int64_t area = model.patch * model.patch * model.sizes.channels;
  const Tensor latents = token_latents(f, model.lengths.image, area);
  const InModule inside(f, "pos_embed", "AuraFlowPatchEmbed");
  const Tensor cut = f.linear("proj", f.call("clone", {latents}), area, model.sizes.width);
  const Tensor table = f.parameter("pos_embed", {1, model.places, model.sizes.width});
  return f.add(cut, f.call("clone", {f.slice(table, 1, 0, model.lengths.image)}));
}

inline Tensor text_tokens(Forward& f, const Model& model, const DenoiserSample& sample) {
  const Tensor prompt = text_input(f, sample, model.sizes.text_width);
  const Tensor text = f.linear("context_embedder", prompt, model.sizes.text_width, model.sizes.width, {.bias = false});
  const Tensor registers = f.parameter("register_tokens", {1, kRegisters, model.sizes.width});
  const std::vector<core::Dim> each = {core::Dim::batch(), core::Dim::fixed(-1), core::Dim::fixed(-1)};
  return f.concatenate({f.contiguous(f.call("expand", {registers}, {{"shape", each}})), text}, 1);
}

inline void write(ConfigFields& config, Head, Forward& f) {
  constexpr std::int64_t kSinusoids = 256;
  Model model = read(config);
  if (!config.status()) return;
  // Where the job says no size, the largest square that has positions.
  std::int64_t side = 1;
  while ((side + 1) * (side + 1) <= model.places && 8 * model.patch * side < 1024) ++side;
  const DenoiserSample sample =
      denoiser_sample(f, {.side = 8, .patch = model.patch, .usual_side = 8 * model.patch * side, .usual_text = 256});
  model.lengths = {sample.height * sample.width / (model.patch * model.patch), sample.text + kRegisters};
  if (model.lengths.image > model.places) f.fail("has positions for smaller images; give a smaller `image`");
  if (f.failed()) return;
  const std::int64_t width = model.sizes.width;
  TwoStreams streams;
  streams.image = patches(f, model);
  const Tensor sinusoids = timestep_input(f, "timestep", kSinusoids);
  const Tensor time = timestep_embedding(f, "time_step_proj", sinusoids, kSinusoids, width);
  streams.text = text_tokens(f, model, sample);
  streams = stack(f, "joint_transformer_blocks", kBlocks[0], model.blocks, streams,
                  [&](const TwoStreams& x, std::int64_t) { return joint_block(f, model, x, time); });
  Tensor hidden = f.concatenate({streams.text, streams.image}, 1);
  hidden = stack(f, "single_transformer_blocks", kBlocks[1], model.singles, hidden,
                 [&](Tensor x, std::int64_t) { return single_block(f, model, x, time); });
  hidden = f.slice(hidden, 1, model.lengths.text, Forward::kRest);
  {
    const InModule inside(f, "norm_out", "AuraFlowPreFinalBlock");
    const std::vector<Tensor> rows = modulation(f, "linear", time, width, width, 2, false);
    hidden = modulated(f, hidden, rows[0], rows[1]);
  }
  const std::int64_t out = model.patch * model.patch * model.sizes.out_channels;
  const Tensor output = f.linear("proj_out", hidden, width, out, {.bias = false});
  denoiser_loss(f, f.call("clone", {output}), {model.lengths.image, out});
}

inline constexpr auto kTreeClasses =
    std::to_array<ModelClass>({{"AuraFlowTransformer2D", "AuraFlowTransformer2DModel"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  constexpr std::int64_t kPatch = 4;
  const std::int64_t width = denoiser_tree(t, "pos_embed.proj", "proj_out", kPatch);
  t.count("num_mmdit_layers", "joint_transformer_blocks");
  t.count("num_single_dit_layers", "single_transformer_blocks");
  t.size("joint_attention_dim", "context_embedder", "in_features");
  t.size("caption_projection_dim", "context_embedder", "out_features");
  t.set("pos_embed_max_size", 9216);
  denoiser_heads_tree(t, width, 256, "AuraFlow", "single_transformer_blocks.0.attn.norm_q");
  t.assume("9216 positions and patches of 2 x 2, as AuraFlow 0.3 has");
}

inline constexpr Architecture kArchitecture = {.name = "auraflow",
                                               .model_types = names<"AuraFlowTransformer2DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .classes = kTreeClasses,
                                               .read_tree = read_tree,
                                               .depends_on_images = true,
                                               .blocks = kBlocks};

}  // namespace auraflow

// Qwen-Image: blocks with a stream of image tokens and one of text tokens; rotary positions as complex numbers.
// Source: diffusers 0.38, models/transformers/transformer_qwenimage.py. Prompts are taken to be without padding: then
// no mask is passed.

namespace qwen_image {

inline constexpr std::array<std::string_view, 1> kBlocks = {"QwenImageTransformerBlock"};

struct Model {
  DitSizes sizes;
  std::int64_t layers = 60;
  std::int64_t patch = 2;
  StreamLengths lengths;
};

struct Tables {
  PairTables image;
  PairTables text;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = dit_sizes(config, {.channels = 64, .text_width = 3584});
  model.layers = config.layers_or("num_layers", 60);
  model.patch = dit_patch(config);
  model.sizes.out_channels = dit_width(config, "out_channels", 16);
  // QwenImageTransformer2DModel takes no guidance, whatever the field says.
  config.ignore({"guidance_embeds", "axes_dims_rope", "pooled_projection_dim"});
  return model;
}

inline std::vector<Tensor> rows_of(Forward& f, const Model& model, std::string_view name, Tensor time) {
  const InModule inside(f, name, "Sequential");
  const Tensor open = f.activation("0", time, "silu");
  const Tensor made = f.linear("1", open, model.sizes.width, 6 * model.sizes.width);
  return row_chunks(f, made, 6, model.sizes.width);
}

inline TwoStreams block(Forward& f, const Model& model, const TwoStreams& in, Tensor time, const Tables& tables) {
  const std::int64_t width = model.sizes.width;
  const std::vector<Tensor> image = rows_of(f, model, "img_mod", time);
  const std::vector<Tensor> text = rows_of(f, model, "txt_mod", time);
  const Tensor normed = modulated(f, bare_norm(f, "img_norm1", in.image, width), image[1], image[0]);
  const Tensor normed_text = modulated(f, bare_norm(f, "txt_norm1", in.text, width), text[1], text[0]);
  const TwoStreams mixed = joint_attention(f,
                                           {.width = width,
                                            .head_width = model.sizes.head_width,
                                            .norm = DitHeadNorm::own_rms,
                                            .tables = &tables.image,
                                            .text_tables = &tables.text},
                                           {normed, normed_text}, model.lengths);
  const Tensor attended = gated_sum(f, in.image, image[2], mixed.image);
  const Tensor attended_text = gated_sum(f, in.text, text[2], mixed.text);
  const auto fed = [&](Tensor hidden, const std::vector<Tensor>& rows, std::string_view norm, std::string_view layers) {
    const Tensor again = modulated(f, bare_norm(f, norm, hidden, width), rows[4], rows[3]);
    const Tensor made = dit_feed_forward(f, layers, again, width, 4 * width, DitActivation::gelu_tanh);
    return gated_sum(f, hidden, rows[5], made);
  };
  const Tensor image_left = fed(attended, image, "img_norm2", "img_mlp");
  return {image_left, fed(attended_text, text, "txt_norm2", "txt_mlp")};
}

inline void write(ConfigFields& config, Head, Forward& f) {
  constexpr std::int64_t kSinusoids = 256;
  Model model = read(config);
  const bool edits = config.flag("_edits_image", false);  // Qwen-Image-Edit, by its published name
  if (!config.status()) return;
  const DenoiserSample sample = denoiser_sample(f, {.side = 8, .patch = 2, .usual_text = 256});
  const std::int64_t tokens = sample.height * sample.width / 4;
  model.lengths = {edits ? 2 * tokens : tokens, sample.text};
  if (edits) f.remark("each sample brings the image that it edits, of the same size");
  const std::int64_t width = model.sizes.width;
  const Tensor latents = token_latents(f, model.lengths.image, model.sizes.channels);
  const Tensor prompt = text_input(f, sample, model.sizes.text_width);
  const Tensor image = f.linear("img_in", latents, model.sizes.channels, width);
  const Tensor normed_prompt = own_rms_norm(f, "txt_norm", prompt, model.sizes.text_width);
  const Tensor text = f.linear("txt_in", normed_prompt, model.sizes.text_width, width);
  Tensor time = 0;
  {
    const Tensor sinusoids = timestep_input(f, "timestep", kSinusoids);
    const InModule inside(f, "time_text_embed", "QwenTimestepProjEmbeddings");
    time = timestep_embedding(f, "timestep_embedder", sinusoids, kSinusoids, width);
  }
  const std::int64_t each = model.sizes.head_width;
  const Tables tables = {pair_tables(f, {image}, each), pair_tables(f, {text}, each)};
  TwoStreams streams = {image, text};
  streams = stack(f, "transformer_blocks", kBlocks[0], model.layers, streams,
                  [&](const TwoStreams& x, std::int64_t) { return block(f, model, x, time, tables); });
  const Tensor normed = continuous_norm(f, "norm_out", streams.image, time, width, width);
  const std::int64_t out = model.patch * model.patch * model.sizes.out_channels;
  const Tensor output = f.linear("proj_out", normed, width, out);
  denoiser_loss(f, edits ? f.slice(output, 1, 0, tokens) : output, {tokens, out});
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"QwenImageTransformer2D", "QwenImageTransformer2DModel"}});

/// What print(model) shows: all but the heads, which are 128 wide, and patches of 2 x 2 latents.
inline void read_tree(TreeFields& t) {
  constexpr std::int64_t kHead = 128;
  constexpr std::int64_t kPatches = 4;
  t.size("in_channels", "img_in", "in_features");
  t.size("joint_attention_dim", "txt_in", "in_features");
  t.count("num_layers", "transformer_blocks");
  t.set("attention_head_dim", kHead);
  t.set("num_attention_heads", std::max<std::int64_t>(t.value("img_in", "out_features").value_or(0) / kHead, 1));
  t.set("out_channels", std::max<std::int64_t>(t.value("proj_out", "out_features").value_or(0) / kPatches, 1));
  t.assume("heads of width 128, as Qwen-Image has");
}

inline constexpr Architecture kArchitecture = {.name = "qwen_image",
                                               .model_types = names<"QwenImageTransformer2DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .depends_on_images = true,
                                               .blocks = kBlocks};

}  // namespace qwen_image

// SD3ControlNetModel: a trained copy of some blocks, which reads an image's latents besides; what its blocks make is
// added behind those of the frozen model, whose config.json is the field "_guided" (a pipeline's folder has it).
// Source: diffusers 0.40, models/controlnets/controlnet_sd3.py, examples/controlnet/train_controlnet_sd3.py: the
// ControlNet alone is checkpointed, and the frozen model is held in the type of --mixed_precision.

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

inline constexpr auto kTreeClasses = std::to_array<ModelClass>({{"SD3ControlNet", "SD3ControlNetModel"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  sd3::read_tree(t);
  const std::int64_t channels = t.value("pos_embed.proj", "in_channels").value_or(0);
  t.set("out_channels", std::max<std::int64_t>(channels, 1));
  const std::int64_t more = t.value("pos_embed_input.proj", "in_channels").value_or(channels) - channels;
  if (more > 0) t.set("extra_conditioning_channels", more);
  t.take_sizes_alone();  // the model that it is trained with is written too
}

inline constexpr Architecture kArchitecture = {.name = "sd3_controlnet",
                                               .model_types = names<"SD3ControlNetModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .classes = kTreeClasses,
                                               .read_tree = read_tree,
                                               .depends_on_images = true,
                                               .blocks = sd3::kBlocks};

}  // namespace sd3_controlnet

}  // namespace gpumem::architectures
