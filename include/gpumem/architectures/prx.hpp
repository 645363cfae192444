// PRX: blocks whose image tokens ask the image's and the prompt's, which has keys and values alone; scales, shifts and
// gates come from a layer in each block.
// Source: diffusers 0.40, models/transformers/transformer_prx.py. A mask of the prompt's padding is not counted. DiT:
// see its namespace.
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

namespace prx {

inline constexpr std::array<std::string_view, 1> kBlocks = {"PRXBlock"};
inline constexpr std::int64_t kSinusoids = 256;

struct Model {
  std::int64_t channels = 16;
  std::int64_t patch = 2;
  std::int64_t text = 2304;
  std::int64_t width = 1792;
  std::int64_t head_width = 64;
  std::int64_t layers = 16;
  std::int64_t inner = 6272;
  std::int64_t bottleneck = 0;  ///< between two layers that read the patches; 0: one layer reads them
  bool sized = false;           ///< the image's size is told, too
};

inline Model read(ConfigFields& config) {
  Model model;
  model.channels = dit_width(config, "in_channels", 16);
  model.patch = dit_width(config, "patch_size", 2);
  model.text = dit_width(config, "context_in_dim", 2304);
  model.width = dit_width(config, "hidden_size", 1792);
  const std::int64_t heads = dit_width(config, "num_heads", 28);
  model.head_width = std::max<std::int64_t>(model.width / heads, 1);
  if (model.width % heads != 0) config.fail("must be whole heads", "hidden_size");
  if (model.head_width % 2 != 0) config.fail("must have heads of an even width", "hidden_size");
  model.layers = config.layers_or("depth", 16);
  model.inner = dit_inner(config, "mlp_ratio", model.width, 3.5);
  model.bottleneck = std::min<std::int64_t>(config.count_or("bottleneck_size", 0), 1 << 20);
  model.sized = config.flag("resolution_embeds", false);
  std::int64_t turned = 0;
  for (const std::int64_t axis : dit_list(config, "axes_dim", {32, 32})) turned += axis;
  if (turned != model.head_width) config.fail("must add up to the width of a head", "axes_dim");
  if (model.patch > 64 || model.channels > 1 << 12) config.fail("is larger than gpumem takes", "patch_size");
  config.ignore({"theta", "time_factor", "time_max_period"});
  return model;
}

/// MLPEmbedder.
inline Tensor embedded(Forward& f, std::string_view name, Tensor sinusoids, std::int64_t width) {
  const InModule inside(f, name, "MLPEmbedder");
  const Tensor open = f.activation("silu", f.linear("in_layer", sinusoids, kSinusoids, width), "silu");
  return f.linear("out_layer", open, width, width);
}

inline Tensor attention(Forward& f, const Model& model, Tensor image, Tensor text, const PairTables& tables) {
  const InModule inside(f, "attention", "PRXAttention");
  const std::int64_t width = model.width;
  const std::int64_t each = model.head_width;
  const std::vector<Tensor> parts =
      f.split(f.linear("img_qkv_proj", image, width, 3 * width, {.bias = false}), 2, Sizes(3, width));
  const Tensor query = own_rms_norm(f, "norm_q", as_heads(f, parts[0], each), each);
  const Tensor key = own_rms_norm(f, "norm_k", as_heads(f, parts[1], each), each);
  const std::vector<Tensor> told =
      f.split(f.linear("txt_kv_proj", text, width, 2 * width, {.bias = false}), 2, Sizes(2, width));
  const Tensor text_key = own_rms_norm(f, "norm_added_k", as_heads(f, told[0], each), each);
  const Tensor asking = turn_pairs(f, query, tables);
  const Tensor asked = turn_pairs(f, key, tables);
  const Tensor keys = f.concatenate({text_key, asked}, 1);
  const Tensor values = f.concatenate({as_heads(f, told[1], each), as_heads(f, parts[2], each)}, 1);
  const Tensor mixed = attend_heads(f, asking, keys, values);
  const InModule out(f, "to_out", "ModuleList");
  return f.linear("0", mixed, width, width, {.bias = false});
}

inline Tensor block(Forward& f, const Model& model, Tensor hidden, Tensor text, Tensor time, const PairTables& tables) {
  const std::int64_t width = model.width;
  std::vector<Tensor> rows;
  {
    const InModule inside(f, "modulation", "Modulation");
    const Tensor all = f.linear("lin", f.call("silu", {time}), width, 6 * width);
    rows = row_chunks(f, all, 6, width);
  }
  const Tensor normed = modulated(f, bare_norm(f, "img_pre_norm", hidden, width), rows[1], rows[0]);
  hidden = gated_sum(f, hidden, rows[2], attention(f, model, normed, text, tables));
  const Tensor again = modulated(f, bare_norm(f, "post_attention_layernorm", hidden, width), rows[4], rows[3]);
  const Linear plain = {.bias = false};
  const Tensor open =
      f.activation("mlp_act", f.linear("gate_proj", again, width, model.inner, plain), "gelu_pytorch_tanh");
  const Tensor wide = f.multiply(open, f.linear("up_proj", again, width, model.inner, plain));
  return gated_sum(f, hidden, rows[5], f.linear("down_proj", wide, model.inner, width, plain));
}

inline Tensor image_tokens(Forward& f, const Model& model, Tensor patches, std::int64_t area) {
  if (model.bottleneck == 0) return f.linear("img_in", patches, area, model.width);
  const InModule inside(f, "img_in", "Sequential");
  return f.linear("1", f.linear("0", patches, area, model.bottleneck), model.bottleneck, model.width);
}

inline void write(ConfigFields& config, Head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  // Latents of FLUX.1's autoencoder, of DC-AE's, or pixels.
  const std::int64_t side = model.channels == 3 ? 1 : model.channels == 32 ? 32 : 8;
  const DenoiserSample sample =
      denoiser_sample(f, {.side = side, .patch = model.patch, .usual_side = 1024, .usual_text = 256});
  const std::int64_t tokens = sample.height * sample.width / (model.patch * model.patch);
  const std::int64_t area = model.channels * model.patch * model.patch;
  f.remark("prompts have no padding: a mask of it would lie in each block");
  const Tensor patches = f.call("clone", {token_latents(f, tokens, area)});
  const Tensor prompt = text_input(f, sample, model.text);
  const Tensor sinusoids = timestep_input(f, "timestep", kSinusoids);
  const Tensor sizes = model.sized ? timestep_input(f, "sizes", kSinusoids) : 0;
  const Tensor text = f.linear("txt_in", prompt, model.text, model.width);
  Tensor hidden = image_tokens(f, model, patches, area);
  const PairTables tables = pair_tables(f, {hidden}, model.head_width);
  Tensor time = embedded(f, "time_in", sinusoids, model.width);
  if (model.sized) {
    const InModule inside(f, "resolution_embedder", "PRXResolutionEmbedder");
    time = f.add(time, embedded(f, "mlp", sizes, model.width));
  }
  hidden = stack(f, "blocks", kBlocks[0], model.layers, hidden,
                 [&](Tensor x, std::int64_t) { return block(f, model, x, text, time, tables); });
  const InModule last(f, "final_layer", "FinalLayer");
  const Tensor shifts = f.linear("adaLN_modulation.1", f.call("silu", {time}), model.width, 2 * model.width);
  const std::vector<Tensor> rows = row_chunks(f, shifts, 2, model.width);
  const Tensor normed = modulated(f, bare_norm(f, "norm_final", hidden, model.width), rows[1], rows[0]);
  denoiser_loss(f, f.call("clone", {f.linear("linear", normed, model.width, area)}), {tokens, area});
}

inline constexpr Architecture kArchitecture = {.name = "prx",
                                               .model_types = names<"PRXTransformer2DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .blocks = kBlocks};

}  // namespace prx

// DiT: blocks that read a class in place of a prompt; each embeds the timestep and the class by itself.
// Source: diffusers 0.40, models/transformers/dit_transformer_2d.py, models/attention.py (BasicTransformerBlock),
// models/normalization.py (AdaLayerNormZero), models/embeddings.py (CombinedTimestepLabelEmbeddings).

namespace dit {

inline constexpr std::array<std::string_view, 1> kBlocks = {"BasicTransformerBlock"};
inline constexpr std::int64_t kSinusoids = 256;

struct Model {
  DitSizes sizes;
  std::int64_t layers = 28;
  std::int64_t patch = 2;
  std::int64_t side = 32;
  std::int64_t classes = 1000;
  bool bias = true;
  bool affine = false;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = dit_sizes(config, {.heads = 16, .head_width = 72, .channels = 4});
  model.layers = config.layers_or("num_layers", 28);
  model.patch = dit_patch(config);
  model.side = config.size_or({"sample_size"}, 32);
  model.classes = dit_width(config, "num_embeds_ada_norm", 1000);
  model.bias = config.flag("attention_bias", true);
  model.affine = config.flag("norm_elementwise_affine", false);
  if (model.side < model.patch || model.side > 4096) config.fail("is larger than gpumem takes", "sample_size");
  if (config.text({"norm_type"}, "ada_norm_zero") != "ada_norm_zero") config.fail("is not known", "norm_type");
  if (config.text({"activation_fn"}, "gelu-approximate") != "gelu-approximate") {
    config.fail("is not known", "activation_fn");
  }
  config.ignore({"dropout", "norm_num_groups", "upcast_attention", "norm_eps"});
  return model;
}

/// What a step brings beside the latents.
struct Told {
  Tensor sinusoids = 0;
  Tensor label = 0;
};

inline Tensor embedded(Forward& f, const Model& model, const Told& told) {
  const std::int64_t width = model.sizes.width;
  const InModule inside(f, "emb", "CombinedTimestepLabelEmbeddings");
  const Tensor time = timestep_embedding(f, "timestep_embedder", told.sinusoids, kSinusoids, width);
  const InModule table(f, "class_embedder", "LabelEmbedding");
  // One row more, for labels that are dropped.
  const Tensor label = f.embedding("embedding_table", told.label, model.classes + 1, width);
  return f.add(time, f.flatten(label, 1, 2));
}

inline Tensor block(Forward& f, const Model& model, Tensor hidden, const Told& told) {
  const std::int64_t width = model.sizes.width;
  std::vector<Tensor> rows;
  Tensor normed = 0;
  {
    const InModule inside(f, "norm1", "AdaLayerNormZero");
    rows = modulation(f, "linear", embedded(f, model, told), width, width, 6);
    normed = modulated(f, bare_norm(f, "norm", hidden, width), rows[1], rows[0]);
  }
  const PlainAttention options = {
      .width = width, .inner = width, .head_width = model.sizes.head_width, .source_width = width, .bias = model.bias};
  const Tensor mixed = f.add(f.multiply(rows[2], plain_attention(f, options, normed, normed)), hidden);
  const Tensor again = modulated(f, affine_norm(f, "norm3", mixed, width, model.affine), rows[4], rows[3]);
  const Tensor fed = dit_feed_forward(f, "ff", again, width, 4 * width, DitActivation::gelu_tanh);
  return f.add(f.multiply(rows[5], fed), mixed);
}

/// The first block's embeddings once more, of which the last norm is made.
inline Tensor first_embedded(Forward& f, const Model& model, const Told& told) {
  f.repeat_parameters(true);
  const InModule list(f, "transformer_blocks", "ModuleList");
  const InModule first(f, "0", kBlocks[0]);
  const InModule norm(f, "norm1", "AdaLayerNormZero");
  const Tensor made = embedded(f, model, told);
  f.repeat_parameters(false);
  return made;
}

inline void write(ConfigFields& config, Head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const std::int64_t width = model.sizes.width;
  const DenoiserSample sample =
      denoiser_sample(f, {.side = 8, .patch = model.patch, .usual_side = 8 * model.side, .usual_text = 0});
  const std::int64_t tokens = sample.height * sample.width / (model.patch * model.patch);
  const Tensor latents = latent_input(f, sample, model.sizes.channels);
  const Told told = {.sinusoids = timestep_input(f, "timestep", kSinusoids),
                     .label = f.fixed_token_input("class_labels", 1)};
  const std::int64_t places = (model.side / model.patch) * (model.side / model.patch);
  Tensor hidden = patch_embedding(f, latents, model.sizes.channels, width, model.patch, tokens, places);
  hidden = stack(f, "transformer_blocks", kBlocks[0], model.layers, hidden,
                 [&](Tensor x, std::int64_t) { return block(f, model, x, told); });
  const std::vector<Tensor> rows = modulation(f, "proj_out_1", first_embedded(f, model, told), width, width, 2);
  const Tensor normed = modulated(f, bare_norm(f, "norm_out", hidden, width), rows[1], rows[0]);
  const std::int64_t out = model.patch * model.patch * model.sizes.out_channels;
  const Tensor output = f.call("clone", {f.linear("proj_out_2", normed, width, out)});
  // Where the model predicts a variance too, the loss reads the first half.
  const bool twice = model.sizes.out_channels == 2 * model.sizes.channels;
  const Tensor half = twice ? f.slice(output, 2, 0, out / 2) : output;
  denoiser_loss(f, half, {tokens, twice ? out / 2 : out});
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"DiTTransformer2D", "DiTTransformer2DModel"}});

/// What print(model) shows: all but the heads, which are 72 wide, and the size of the samples that it is for.
inline void read_tree(TreeFields& t) {
  constexpr std::int64_t kHead = 72;
  t.set_string("_class_name", "DiTTransformer2DModel");
  const std::int64_t patch = t.value("pos_embed.proj", "kernel_size").value_or(1);
  const std::int64_t width = t.value("pos_embed.proj", "out_channels").value_or(0);
  t.size("in_channels", "pos_embed.proj", "in_channels");
  t.set("patch_size", patch);
  t.set("attention_head_dim", kHead);
  t.set("num_attention_heads", std::max<std::int64_t>(width / kHead, 1));
  t.count("num_layers", "transformer_blocks");
  t.flag("attention_bias", "transformer_blocks.0.attn1.to_q");
  t.flag("norm_elementwise_affine", "transformer_blocks.0.norm3", "elementwise_affine");
  const auto labels = t.value("transformer_blocks.0.norm1.emb.class_embedder.embedding_table", "num_embeddings");
  t.set("num_embeds_ada_norm", std::max<std::int64_t>(labels.value_or(1001) - 1, 1));
  const std::int64_t out = t.value("proj_out_2", "out_features").value_or(0);
  t.set("out_channels", std::max<std::int64_t>(out / (patch * patch), 1));
  t.assume("heads of width 72 and samples of 256 pixels, as DiT-XL has");
}

inline constexpr Architecture kArchitecture = {.name = "dit",
                                               .model_types = names<"DiTTransformer2DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .depends_on_images = true,
                                               .blocks = kBlocks};

}  // namespace dit

}  // namespace gpumem::architectures
