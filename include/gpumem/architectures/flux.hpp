// FLUX.1 (dev, schnell, Fill), Chroma, LongCat-Image, Ovis-Image, BRIA 3: blocks with a stream of image tokens and one
// of text tokens, then blocks over all tokens. Chroma's scales and shifts come from one network, the others' from a
// layer in each block. FluxControlNetModel: a trained copy of some blocks, which reads an image besides; what its
// blocks make is added behind those of the frozen FLUX.1, whose config.json is the field "_guided" (a pipeline's folder
// has it). Source: diffusers 0.38, models/transformers/transformer_flux.py, transformer_chroma.py,
// transformer_longcat_image.py, transformer_ovis_image.py; examples/dreambooth/train_dreambooth_lora_flux.py (the
// pipeline packs patches of 2 x 2 before the model sees them); models/controlnets/controlnet_flux.py,
// examples/controlnet/train_controlnet_flux.py: both models are checkpointed, and the frozen one is held in the type of
// --mixed_precision.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/denoiser.hpp"
#include "gpumem/architectures/dit_parts.hpp"

namespace gpumem::architectures {

namespace flux {

inline constexpr std::array<std::string_view, 6> kClasses = {
    "FluxTransformer2DModel", "ChromaTransformer2DModel",    "LongCatImageTransformer2DModel",
    "FluxControlNetModel",    "OvisImageTransformer2DModel", "BriaTransformer2DModel"};

enum class Kind : std::uint8_t { flux, chroma, longcat, ovis };

struct Model {
  Kind kind = Kind::flux;
  std::string_view prefix = "Flux";
  DitSizes sizes;
  std::int64_t blocks = 19;
  std::int64_t singles = 38;
  std::int64_t pooled = 768;
  bool guided = false;
  Sizes axes;                  ///< of rotary positions
  std::int64_t channels = 64;  ///< of Chroma's network
  std::int64_t hidden = 5120;
  std::int64_t layers = 5;
  StreamLengths lengths;

  [[nodiscard]] std::string named(std::string_view part) const { return std::string(prefix).append(part); }
  /// The attention's class.
  [[nodiscard]] std::string attention() const { return kind == Kind::chroma ? "FluxAttention" : named("Attention"); }
  [[nodiscard]] std::int64_t turned() const { return axes[0] + axes[1] + axes[2]; }
  [[nodiscard]] std::int64_t rows() const { return 3 * singles + 12 * blocks + 2; }
};

inline Model read(ConfigFields& config) {
  Model model;
  const std::string_view name = config.text({"_class_name"}, kClasses[0]);
  if (name == kClasses[1]) model.kind = Kind::chroma;
  if (name == kClasses[2]) model.kind = Kind::longcat;
  if (name == kClasses[4]) model.kind = Kind::ovis;
  const bool longcat = model.kind == Kind::longcat;
  const bool ovis = model.kind == Kind::ovis;
  const bool bria = name == kClasses[5];  // as LongCat-Image computes
  if (bria) model.kind = Kind::longcat;
  if (bria && config.flag("guidance_embeds", false)) config.fail("is a variant that is not known", "guidance_embeds");
  model.prefix = bria                         ? "Bria"
                 : longcat                    ? "LongCatImage"
                 : ovis                       ? "OvisImage"
                 : model.kind == Kind::chroma ? "Chroma"
                                              : "Flux";
  model.sizes = dit_sizes(config, {.channels = 64, .text_width = longcat ? 3584 : ovis ? 2048 : 4096});
  model.blocks = dit_layers(config, "num_layers", ovis ? 6 : 19);
  model.singles = dit_layers(config, "num_single_layers", ovis ? 27 : 38);
  model.axes = dit_list(config, "axes_dims_rope", {16, 56, 56});
  if (model.turned() != model.sizes.head_width) config.fail("must add up to attention_head_dim", "axes_dims_rope");
  const std::int64_t patch = dit_width(config, "patch_size", 1);
  if (patch > 64) config.fail("is larger than gpumem takes", "patch_size");
  model.sizes.out_channels *= std::min<std::int64_t>(patch * patch, 4096);
  if (model.kind == Kind::chroma) {
    model.channels = dit_width(config, "approximator_num_channels", 64);
    model.hidden = dit_width(config, "approximator_hidden_dim", 5120);
    model.layers = dit_layers(config, "approximator_layers", 5);
  } else if (!ovis) {
    model.pooled = dit_width(config, "pooled_projection_dim", 768);
    model.guided = config.flag("guidance_embeds", false) && !longcat && !bria;
  }
  config.ignore({"guidance_embeds", "rope_theta", "time_theta", "pooled_projection_dim"});
  return model;
}

inline constexpr std::int64_t kSinusoids = 256;

/// The vectors that a step brings.
struct StepVectors {
  Tensor timestep = 0;
  Tensor guidance = 0;
  Tensor pooled = 0;
};

inline StepVectors step_vectors(Forward& f, const Model& model) {
  StepVectors vectors{.timestep = timestep_input(f, "timestep", kSinusoids)};
  if (model.guided) vectors.guidance = timestep_input(f, "guidance", kSinusoids);
  if (model.kind == Kind::flux) vectors.pooled = f.sample_input("pooled_projections", {model.pooled});
  return vectors;
}

/// CombinedTimestepTextProjEmbeddings, with the guidance's where the model is distilled; LongCat has the timestep's.
inline Tensor conditions(Forward& f, const Model& model, const StepVectors& vectors) {
  const std::int64_t width = model.sizes.width;
  const bool flux = model.kind == Kind::flux;
  if (model.kind == Kind::ovis) return timestep_embedding(f, "timestep_embedder", vectors.timestep, kSinusoids, width);
  const InModule inside(f, flux ? "time_text_embed" : "time_embed",
                        !flux ? model.named(model.prefix == "Bria" ? "TimestepProjEmbeddings" : "TimestepEmbeddings")
                        : model.guided ? std::string("CombinedTimestepGuidanceTextProjEmbeddings")
                                       : std::string("CombinedTimestepTextProjEmbeddings"));
  Tensor sum = timestep_embedding(f, "timestep_embedder", vectors.timestep, kSinusoids, width);
  if (model.guided) {
    sum = f.add(sum, timestep_embedding(f, "guidance_embedder", vectors.guidance, kSinusoids, width));
  }
  if (!flux) return sum;
  return f.add(sum, text_projection(f, "text_embedder", vectors.pooled, model.pooled, width, "silu"));
}

/// ChromaApproximator: a row for each scale and shift of the model.
inline Tensor all_modulations(Forward& f, const Model& model) {
  const Tensor rows = f.sample_input("timestep", {model.rows(), model.channels});
  const InModule inside(f, "distilled_guidance_layer", "ChromaApproximator");
  Tensor hidden = f.linear("in_proj", rows, model.channels, model.hidden);
  for (std::int64_t index = 0; index < model.layers && !f.failed(); ++index) {
    const std::string number = std::to_string(index);
    const Tensor normed = torch_rms_norm(f, "norms." + number, hidden, model.hidden);
    hidden = f.add(hidden, text_projection(f, "layers." + number, normed, model.hidden, model.hidden, "silu"));
  }
  return f.linear("out_proj", hidden, model.hidden, model.sizes.width);
}

/// `count` rows of them, each as [N, 1, width].
inline std::vector<Tensor> rows_of(Forward& f, const Model& model, Tensor rows, std::int64_t count) {
  return row_chunks(f, f.flatten(rows, 1, 2), count, model.sizes.width);
}

/// The six scales and shifts of a stream: AdaLayerNormZero's, or Chroma's rows of them.
inline std::vector<Tensor> modulations(Forward& f, const Model& model, Tensor source, std::string_view name,
                                       std::int64_t count) {
  const bool chroma = model.kind == Kind::chroma;
  const InModule inside(f, name, chroma ? "ChromaAdaLayerNormZeroPruned" : "AdaLayerNormZero");
  if (chroma) return rows_of(f, model, source, count);
  return modulation(f, "linear", source, model.sizes.width, model.sizes.width, count);
}

inline JointAttention attention_of(const Model& model, const std::string& class_name, const PairTables& tables) {
  return {
      .class_name = class_name, .width = model.sizes.width, .head_width = model.sizes.head_width, .tables = &tables};
}

inline TwoStreams block(Forward& f, const Model& model, const TwoStreams& in, Tensor image_rows, Tensor text_rows,
                        const PairTables& tables) {
  const std::int64_t width = model.sizes.width;
  const std::vector<Tensor> image = modulations(f, model, image_rows, "norm1", 6);
  const Tensor normed = modulated(f, bare_norm(f, "norm1.norm", in.image, width), image[1], image[0]);
  const std::vector<Tensor> text = modulations(f, model, text_rows, "norm1_context", 6);
  const Tensor normed_text = modulated(f, bare_norm(f, "norm1_context.norm", in.text, width), text[1], text[0]);
  const std::string class_name = model.attention();
  const TwoStreams mixed =
      joint_attention(f, attention_of(model, class_name, tables), {normed, normed_text}, model.lengths);
  const auto fed = [&](Tensor residual, Tensor branch, const std::vector<Tensor>& rows, std::string_view norm,
                       std::string_view layers) {
    const Tensor attended = gated_sum(f, residual, rows[2], branch);
    const Tensor again = modulated(f, bare_norm(f, norm, attended, width), rows[4], rows[3]);
    const DitActivation activation = model.kind == Kind::ovis ? DitActivation::swiglu : DitActivation::gelu_tanh;
    return gated_sum(f, attended, rows[5], dit_feed_forward(f, layers, again, width, 4 * width, activation));
  };
  const Tensor image_left = fed(in.image, mixed.image, image, "norm2", "ff");
  return {image_left, fed(in.text, mixed.text, text, "norm2_context", "ff_context")};
}

/// The feed-forward layer of a block over all tokens; Ovis-Image opens one half by the other.
inline Tensor wide_half(Forward& f, const Model& model, Tensor normed) {
  const std::int64_t width = model.sizes.width;
  if (model.kind != Kind::ovis) {
    return f.layer("act_mlp", "GELU", "gelu", {f.linear("proj_mlp", normed, width, 4 * width)}, {});
  }
  const Tensor wide = f.linear("proj_mlp", normed, width, 8 * width);
  const std::vector<Tensor> halves = f.split(wide, 2, {4 * width, 4 * width});
  return f.multiply(f.activation("act_mlp", halves[1], "silu"), halves[0]);
}

/// Attention and feed-forward layer side by side, over all tokens.
inline Tensor single_block(Forward& f, const Model& model, Tensor hidden, Tensor rows, const PairTables& tables) {
  const std::int64_t width = model.sizes.width;
  const std::vector<Tensor> parts = modulations(f, model, rows, "norm", 3);
  const Tensor normed = modulated(f, bare_norm(f, "norm.norm", hidden, width), parts[1], parts[0]);
  const Tensor active = wide_half(f, model, normed);
  const std::string class_name = model.attention();
  const Tensor mixed = single_attention(f, attention_of(model, class_name, tables), normed, false);
  const Tensor made = f.linear("proj_out", f.concatenate({mixed, active}, 2), 5 * width, width);
  return gated_sum(f, hidden, parts[2], made);
}

/// What a ControlNet adds behind blocks, and what its own blocks leave.
struct Control {
  std::vector<Tensor> added = {};
  std::vector<Tensor> left = {};
};

/// Behind block `index` of `count`: some blocks in a row share a residual.
inline void control(Forward& f, Control& control, std::int64_t index, std::int64_t count, Tensor& image) {
  control.left.push_back(image);
  if (control.added.empty()) return;
  const auto residuals = static_cast<std::int64_t>(control.added.size());
  const std::int64_t sharing = (count + residuals - 1) / residuals;
  const Tensor added = control.added[static_cast<std::size_t>(index / sharing)];
  image = f.add(image, f.as_type_of(added, image));
}

/// FLUX.1 parts and joins the streams in each block; Chroma keeps them joined.
inline Tensor single_blocks(Forward& f, const Model& model, TwoStreams streams, Tensor rows, const PairTables& tables,
                            Control& controlled) {
  const StreamLengths& lengths = model.lengths;
  const bool chroma = model.kind == Kind::chroma;
  Tensor joined = chroma ? f.concatenate({streams.text, streams.image}, 1) : 0;
  const InModule list(f, "single_transformer_blocks", "ModuleList");
  for (std::int64_t index = 0; index < model.singles && !f.failed(); ++index) {
    const Tensor own = chroma ? f.slice(rows, 1, 3 * index, 3) : rows;
    const InModule inside(f, std::to_string(index), model.named("SingleTransformerBlock"));
    if (!chroma) joined = f.concatenate({streams.text, streams.image}, 1);
    joined = single_block(f, model, joined, own, tables);
    if (chroma) continue;
    streams.text = f.slice(joined, 1, 0, lengths.text);
    streams.image = f.slice(joined, 1, lengths.text, Forward::kRest);
    control(f, controlled, index, model.singles, streams.image);
  }
  return chroma ? f.slice(joined, 1, lengths.text, Forward::kRest) : streams.image;
}

inline TwoStreams double_blocks(Forward& f, const Model& model, TwoStreams streams, Tensor rows,
                                const PairTables& tables, Control& controlled) {
  const InModule list(f, "transformer_blocks", "ModuleList");
  for (std::int64_t index = 0; index < model.blocks && !f.failed(); ++index) {
    Tensor image = rows;
    Tensor text = rows;
    if (model.kind == Kind::chroma) {
      const std::int64_t first = 3 * model.singles + 6 * index;
      const Tensor own = f.concatenate({f.slice(rows, 1, first, 6), f.slice(rows, 1, first + 6 * model.blocks, 6)}, 1);
      image = f.slice(own, 1, 0, 6);
      text = f.slice(own, 1, 6, 6);
    }
    {
      const InModule inside(f, std::to_string(index), model.named("TransformerBlock"));
      streams = block(f, model, streams, image, text, tables);
    }
    control(f, controlled, index, model.blocks, streams.image);
  }
  return streams;
}

/// What a sample brings to both models.
struct StepInputs {
  Tensor latents = 0;
  Tensor prompt = 0;
  StepVectors vectors;
};

/// Residuals that a ControlNet adds behind both kinds of blocks.
struct Residuals {
  Control doubles;
  Control singles;
};

/// The blocks, and what a ControlNet adds behind them. `hint`: packed latents of the image that a ControlNet reads.
inline Tensor run_blocks(Forward& f, const Model& model, const StepInputs& inputs, Tensor& rows, Residuals& residuals,
                         std::optional<Tensor> hint = {}) {
  const std::int64_t width = model.sizes.width;
  Tensor image = f.linear("x_embedder", inputs.latents, model.sizes.channels, width);
  if (hint) image = f.add(image, f.linear("controlnet_x_embedder", *hint, model.sizes.channels, width));
  const bool chroma = model.kind == Kind::chroma;
  rows = chroma ? all_modulations(f, model) : conditions(f, model, inputs.vectors);
  Tensor prompt = inputs.prompt;
  if (model.kind == Kind::ovis) prompt = torch_rms_norm(f, "context_embedder_norm", prompt, model.sizes.text_width);
  const Tensor text = f.linear("context_embedder", prompt, model.sizes.text_width, width);
  const PairTables tables = pair_tables(f, {text, image}, model.turned());
  const TwoStreams streams = double_blocks(f, model, {image, text}, rows, tables, residuals.doubles);
  return single_blocks(f, model, streams, rows, tables, residuals.singles);
}

inline Tensor predicted(Forward& f, const Model& model, const StepInputs& inputs, Residuals& residuals) {
  const std::int64_t width = model.sizes.width;
  Tensor rows = 0;
  const Tensor hidden = run_blocks(f, model, inputs, rows, residuals);
  Tensor normed = 0;
  if (model.kind == Kind::chroma) {
    const std::vector<Tensor> last = rows_of(f, model, f.slice(rows, 1, model.rows() - 2, 2), 2);
    normed = modulated(f, bare_norm(f, "norm_out.norm", hidden, width), last[1], last[0]);
  } else {
    normed = continuous_norm(f, "norm_out", hidden, rows, width, width);
  }
  return f.linear("proj_out", normed, width, model.sizes.out_channels);
}

/// The residuals of one kind of blocks.
inline std::vector<Tensor> residuals_of(Forward& f, std::string_view name, const std::vector<Tensor>& left,
                                        std::int64_t width) {
  const InModule list(f, name, "ModuleList");
  std::vector<Tensor> made;
  made.reserve(left.size());
  for (std::size_t at = 0; at < left.size() && !f.failed(); ++at) {
    made.push_back(f.scale(f.linear(std::to_string(at), left[at], width, width)));
    f.hand_out(made.back());  // prepare() makes float32 copies of them
  }
  return made;
}

/// The frozen FLUX.1, by its own config; without it one of the ControlNet's widths, with as many blocks as the
/// published models have.
inline Model read_guided(ConfigFields& config, const Model& model, Forward& f) {
  ConfigFields* const own = config.part("_guided");
  if (own == nullptr) {
    Model frozen = model;
    frozen.blocks = Model{}.blocks;
    frozen.singles = Model{}.singles;
    f.remark("the transformer that it is trained with is frozen, with 19 and 38 blocks of the same widths");
    return frozen;
  }
  Model frozen = read(*own);
  const bool fits = frozen.kind == Kind::flux && frozen.sizes.width == model.sizes.width &&
                    frozen.sizes.channels == model.sizes.channels && frozen.pooled == model.pooled &&
                    frozen.sizes.text_width == model.sizes.text_width;
  if (!fits) config.fail("has other widths than its ControlNet", "_guided");
  f.remark("the transformer that it is trained with is frozen");
  return frozen;
}

/// Variants of a ControlNet that nothing here describes.
inline void refuse_variants(ConfigFields& config) {
  for (const std::string_view field : {"num_mode", "conditioning_embedding_channels"}) {
    if (config.count_or(field, 0) > 0) config.fail("is a variant that is not known", field);
  }
}

/// The ControlNet, then the frozen model.
inline Tensor guided(Forward& f, const Model& model, const Model& frozen, const StepInputs& inputs) {
  const Tensor hint = f.sample_input("controlnet_cond", {model.lengths.image, model.sizes.channels});
  Residuals added;
  {
    const InModule inside(f, "controlnet", kClasses[3]);
    Residuals own;
    Tensor rows = 0;
    (void)run_blocks(f, model, inputs, rows, own, hint);
    added.doubles.added = residuals_of(f, "controlnet_blocks", own.doubles.left, model.sizes.width);
    added.singles.added = residuals_of(f, "controlnet_single_blocks", own.singles.left, model.sizes.width);
  }
  const InModule inside(f, "transformer", kClasses[0]);
  f.run_settings({.lowers_frozen = true});
  f.freeze(true);
  f.outside_autocast(true);
  const Tensor prediction = predicted(f, frozen, inputs, added);
  f.outside_autocast(false);
  f.freeze(false);
  return prediction;
}

inline void write(ConfigFields& config, Head, Forward& f) {
  Model model = read(config);
  const bool controls = config.text({"_class_name"}, kClasses[0]) == kClasses[3];
  if (controls) refuse_variants(config);
  Model frozen = controls ? read_guided(config, model, f) : model;
  const bool edits = config.flag("_edits_image", false);  // FLUX.1 Kontext, by its published name
  if (!config.status()) return;
  const DenoiserSample sample = denoiser_sample(f, {.side = 8, .patch = 2, .usual_text = 512});
  const std::int64_t tokens = sample.height * sample.width / 4;
  model.lengths = {edits ? 2 * tokens : tokens, sample.text};
  if (edits) f.remark("each sample brings the image that it edits, of the same size");
  frozen.lengths = model.lengths;
  StepInputs inputs{.latents = token_latents(f, model.lengths.image, model.sizes.channels),
                    .prompt = text_input(f, sample, model.sizes.text_width),
                    .vectors = {}};
  Model either = model;  // one of the two may be distilled, and read the guidance
  either.guided = model.guided || frozen.guided;
  if (model.kind != Kind::chroma) inputs.vectors = step_vectors(f, either);
  Residuals none;
  const Tensor output = controls ? guided(f, model, frozen, inputs) : predicted(f, model, inputs, none);
  denoiser_loss(f, edits ? f.slice(output, 1, 0, tokens) : output, {tokens, model.sizes.out_channels});
}

inline constexpr auto kTreeClasses =
    std::to_array<ModelClass>({{"FluxTransformer2D", "FluxTransformer2DModel"},
                               {"ChromaTransformer2D", "ChromaTransformer2DModel"},
                               {"LongCatImageTransformer2D", "LongCatImageTransformer2DModel"},
                               {"FluxControlNet", "FluxControlNetModel"},
                               {"OvisImageTransformer2D", "OvisImageTransformer2DModel"}});

/// What print(model) shows: all but the heads, where their norms print no width.
inline void read_tree(TreeFields& t) {
  const std::int64_t width = denoiser_tree(t, "x_embedder", "proj_out");
  t.size("joint_attention_dim", "context_embedder", "in_features");
  t.set("num_layers", t.count_of("transformer_blocks"));
  t.set("num_single_layers", t.count_of("single_transformer_blocks"));
  t.size("pooled_projection_dim", "time_text_embed.text_embedder.linear_1", "in_features");
  t.there("guidance_embeds", "time_text_embed.guidance_embedder");
  t.size("approximator_num_channels", "distilled_guidance_layer.in_proj", "in_features");
  t.size("approximator_hidden_dim", "distilled_guidance_layer.in_proj", "out_features");
  t.count("approximator_layers", "distilled_guidance_layer.layers");
  denoiser_heads_tree(t, width, 128, "FLUX.1", "transformer_blocks.0.attn.norm_q");
  if (t.has("controlnet_x_embedder")) t.take_sizes_alone();  // the model that it is trained with is written too
}

inline constexpr Architecture kArchitecture = {
    .name = "flux",
    .model_types = kClasses,
    .usual_head = Head::none,
    .write = write,
    .classes = kTreeClasses,
    .read_tree = read_tree,
    .depends_on_images = true,
    .blocks = names<"FluxTransformerBlock", "FluxSingleTransformerBlock", "ChromaTransformerBlock",
                    "ChromaSingleTransformerBlock", "LongCatImageTransformerBlock",
                    "LongCatImageSingleTransformerBlock", "OvisImageTransformerBlock",
                    "OvisImageSingleTransformerBlock", "BriaTransformerBlock", "BriaSingleTransformerBlock">};

}  // namespace flux

}  // namespace gpumem::architectures
