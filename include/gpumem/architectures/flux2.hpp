// FLUX.2 (dev, klein): blocks with a stream of image tokens and one of text tokens, then blocks over all tokens whose
// attention and feed-forward layer share their projections. All blocks share three layers of scales and shifts.
// Source: diffusers 0.38, models/transformers/transformer_flux2.py; PEFT, method_comparison/image-gen.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/denoiser.hpp"
#include "gpumem/architectures/dit_parts.hpp"

namespace gpumem::architectures {

namespace flux2 {

inline constexpr std::array<std::string_view, 2> kBlocks = {"Flux2TransformerBlock", "Flux2SingleTransformerBlock"};

struct Model {
  DitSizes sizes;
  std::int64_t blocks = 8;
  std::int64_t singles = 48;
  std::int64_t sinusoids = 256;
  std::int64_t inner = 1;
  std::int64_t turned = 128;
  bool guided = true;
  StreamLengths lengths;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = dit_sizes(config, {.heads = 48, .channels = 128, .text_width = 15360});
  model.blocks = dit_layers(config, "num_layers", 8);
  model.singles = dit_layers(config, "num_single_layers", 48);
  model.sinusoids = dit_width(config, "timestep_guidance_channels", 256);
  model.inner = dit_inner(config, "mlp_ratio", model.sizes.width, 3.0);
  const Sizes axes = dit_list(config, "axes_dims_rope", {32, 32, 32, 32});
  model.turned = axes[0] + axes[1] + axes[2] + axes[3];
  if (model.turned != model.sizes.head_width) config.fail("must add up to attention_head_dim", "axes_dims_rope");
  model.guided = config.flag("guidance_embeds", true);
  const std::int64_t patch = dit_width(config, "patch_size", 1);
  if (patch > 64) config.fail("is larger than gpumem takes", "patch_size");
  model.sizes.out_channels *= std::min<std::int64_t>(patch * patch, 4096);
  config.ignore({"rope_theta", "eps"});
  return model;
}

inline Tensor conditions(Forward& f, const Model& model) {
  const InModule inside(f, "time_guidance_embed", "Flux2TimestepGuidanceEmbeddings");
  const auto embedded = [&](std::string_view input, std::string_view name) {
    const Tensor sinusoids = timestep_input(f, input, model.sinusoids);
    return timestep_embedding(f, name, sinusoids, model.sinusoids, model.sizes.width, {.bias = false});
  };
  const Tensor timestep = embedded("timestep", "timestep_embedder");
  return model.guided ? f.add(timestep, embedded("guidance", "guidance_embedder")) : timestep;
}

/// Flux2Modulation: [N, count width], which each block cuts.
inline Tensor shared_modulation(Forward& f, const Model& model, std::string_view name, Tensor rows,
                                std::int64_t count) {
  const InModule inside(f, name, "Flux2Modulation");
  const Tensor open = f.activation("act_fn", rows, "silu");
  return f.linear("linear", open, model.sizes.width, count * model.sizes.width, {.bias = false});
}

inline std::vector<Tensor> cut(Forward& f, const Model& model, Tensor shared, std::int64_t count) {
  return chunks(f, unsqueezed(f, shared, 1), 2, count, model.sizes.width);
}

/// Flux2SwiGLU: silu of the first half times the second one.
inline Tensor gated(Forward& f, const Model& model, Tensor wide) {
  const Tensor open = f.activation("gate_fn", f.slice(wide, 2, 0, model.inner), "silu");
  return f.multiply(open, f.slice(wide, 2, model.inner, Forward::kRest));
}

inline Tensor feed_forward(Forward& f, const Model& model, std::string_view name, Tensor input) {
  const InModule inside(f, name, "Flux2FeedForward");
  const Tensor wide = f.linear("linear_in", input, model.sizes.width, 2 * model.inner, {.bias = false});
  return f.linear("linear_out", gated(f, model, wide), model.inner, model.sizes.width, {.bias = false});
}

inline TwoStreams block(Forward& f, const Model& model, const TwoStreams& in, Tensor image_rows, Tensor text_rows,
                        const PairTables& tables) {
  const std::int64_t width = model.sizes.width;
  const std::vector<Tensor> image = cut(f, model, image_rows, 6);
  const std::vector<Tensor> text = cut(f, model, text_rows, 6);
  const Tensor normed = modulated(f, bare_norm(f, "norm1", in.image, width), image[1], image[0]);
  const Tensor normed_text = modulated(f, bare_norm(f, "norm1_context", in.text, width), text[1], text[0]);
  const TwoStreams mixed = joint_attention(f,
                                           {.class_name = "Flux2Attention",
                                            .width = width,
                                            .head_width = model.sizes.head_width,
                                            .bias = false,
                                            .tables = &tables},
                                           {normed, normed_text}, model.lengths);
  const auto fed = [&](Tensor residual, Tensor branch, const std::vector<Tensor>& rows, std::string_view norm,
                       std::string_view layers) {
    const Tensor attended = gated_sum(f, residual, rows[2], branch);
    const Tensor again = modulated(f, bare_norm(f, norm, attended, width), rows[4], rows[3]);
    return gated_sum(f, attended, rows[5], feed_forward(f, model, layers, again));
  };
  const Tensor image_left = fed(in.image, mixed.image, image, "norm2", "ff");
  return {image_left, fed(in.text, mixed.text, text, "norm2_context", "ff_context")};
}

/// Flux2ParallelSelfAttention: one projection to queries, keys, values and the feed-forward layer's two halves.
inline Tensor parallel_attention(Forward& f, const Model& model, Tensor input, const PairTables& tables) {
  const InModule inside(f, "attn", "Flux2ParallelSelfAttention");
  const std::int64_t width = model.sizes.width;
  const std::int64_t each = model.sizes.head_width;
  const Tensor all = f.linear("to_qkv_mlp_proj", input, width, 3 * width + 2 * model.inner, {.bias = false});
  const std::vector<Tensor> parts = f.split(all, 2, {3 * width, 2 * model.inner});
  const std::vector<Tensor> heads = chunks(f, parts[0], 2, 3, width);
  const Tensor query = torch_rms_norm(f, "norm_q", as_heads(f, heads[0], each), each);
  const Tensor key = torch_rms_norm(f, "norm_k", as_heads(f, heads[1], each), each);
  const Tensor turned = turn_pairs(f, query, tables);
  const Tensor mixed = attend_heads(f, turned, turn_pairs(f, key, tables), as_heads(f, heads[2], each));
  const Tensor joined = f.concatenate({mixed, gated(f, model, parts[1])}, 2);
  return f.linear("to_out", joined, width + model.inner, width, {.bias = false});
}

inline Tensor single_block(Forward& f, const Model& model, Tensor hidden, Tensor rows, const PairTables& tables) {
  const std::vector<Tensor> parts = cut(f, model, rows, 3);
  const Tensor normed = modulated(f, bare_norm(f, "norm", hidden, model.sizes.width), parts[1], parts[0]);
  return gated_sum(f, hidden, parts[2], parallel_attention(f, model, normed, tables));
}

inline Tensor blocks(Forward& f, const Model& model, TwoStreams streams, const std::array<Tensor, 3>& rows,
                     const PairTables& tables) {
  streams = stack(f, "transformer_blocks", kBlocks[0], model.blocks, streams,
                  [&](const TwoStreams& x, std::int64_t) { return block(f, model, x, rows[0], rows[1], tables); });
  Tensor joined = f.concatenate({streams.text, streams.image}, 1);
  const InModule list(f, "single_transformer_blocks", "ModuleList");
  for (std::int64_t index = 0; index < model.singles && !f.failed(); ++index) {
    const InModule inside(f, std::to_string(index), kBlocks[1]);
    joined = single_block(f, model, joined, rows[2], tables);
  }
  return f.slice(joined, 1, model.lengths.text, Forward::kRest);
}

inline void write(ConfigFields& config, Head, Forward& f) {
  Model model = read(config);
  if (!config.status()) return;
  const DenoiserSample sample = denoiser_sample(f, {.side = 16, .usual_text = 512});
  model.lengths = {sample.height * sample.width, sample.text};
  const std::int64_t width = model.sizes.width;
  const Tensor latents = token_latents(f, model.lengths.image, model.sizes.channels);
  const Tensor prompt = text_input(f, sample, model.sizes.text_width);
  const Tensor rows = conditions(f, model);
  const Tensor image_rows = shared_modulation(f, model, "double_stream_modulation_img", rows, 6);
  const Tensor text_rows = shared_modulation(f, model, "double_stream_modulation_txt", rows, 6);
  const Tensor single_rows = shared_modulation(f, model, "single_stream_modulation", rows, 3);
  const Tensor image = f.linear("x_embedder", latents, model.sizes.channels, width, {.bias = false});
  const Tensor text = f.linear("context_embedder", prompt, model.sizes.text_width, width, {.bias = false});
  const PairTables tables = pair_tables(f, {text, image}, model.turned);
  const Tensor hidden = blocks(f, model, {image, text}, {image_rows, text_rows, single_rows}, tables);
  const Tensor normed = continuous_norm(f, "norm_out", hidden, rows, width, width, false);
  const Tensor output = f.linear("proj_out", normed, width, model.sizes.out_channels, {.bias = false});
  denoiser_loss(f, output, {model.lengths.image, model.sizes.out_channels});
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Flux2Transformer2D", "Flux2Transformer2DModel"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const std::int64_t width = denoiser_tree(t, "x_embedder", "proj_out");
  t.size("joint_attention_dim", "context_embedder", "in_features");
  t.count("num_layers", "transformer_blocks");
  t.count("num_single_layers", "single_transformer_blocks");
  t.size("timestep_guidance_channels", "time_guidance_embed.timestep_embedder.linear_1", "in_features");
  t.ratio("mlp_ratio", "transformer_blocks.0.ff.linear_out", "in_features", width);
  t.there("guidance_embeds", "time_guidance_embed.guidance_embedder");
  denoiser_heads_tree(t, width, 128, "FLUX.2", "transformer_blocks.0.attn.norm_q");
}

inline constexpr Architecture kArchitecture = {.name = "flux2",
                                               .model_types = names<"Flux2Transformer2DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .depends_on_images = true,
                                               .blocks = kBlocks};

}  // namespace flux2

// CogView 4: the same of images, with norms of queries and keys that have no weights, one layer for all twelve scales,
// shifts and gates of a block, and a feed-forward layer that is called for each stream by itself.
// Source: diffusers 0.41.dev0, models/transformers/transformer_cogview4.py, models/embeddings.py
// (CogView3CombinedTimestepSizeEmbeddings). No mask is passed, as in its pipeline.

namespace cogview4 {

inline constexpr std::array<std::string_view, 1> kBlocks = {"CogView4TransformerBlock"};

struct Model {
  DitSizes sizes;
  std::int64_t layers = 30;
  std::int64_t time = 512;
  std::int64_t condition = 256;
  std::int64_t patch = 2;
  std::int64_t side = 128;  ///< of the latents it was trained for
  StreamLengths lengths = {};
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = dit_sizes(config, {.heads = 64, .head_width = 40, .text_field = "text_embed_dim"});
  model.layers = config.layers_or("num_layers", 30);
  model.time = dit_width(config, "time_embed_dim", 512);
  model.condition = dit_width(config, "condition_dim", 256);
  model.patch = dit_patch(config);
  model.side = dit_width(config, "sample_size", 128);
  if (model.sizes.head_width % 4 != 0) config.fail("must be a multiple of four", "attention_head_dim");
  config.ignore({"pos_embed_max_size", "rope_axes_dim"});
  return model;
}

inline Tensor head_norm(Forward& f, std::string_view name, Tensor heads, Tensor like, std::int64_t width) {
  return f.as_type_of(bare_norm(f, name, heads, width), like);
}

/// The image's part of heads [N, heads, S, d] is turned, and written over it.
inline Tensor turned(Forward& f, const Model& model, Tensor heads, const PairTables& tables) {
  const Tensor text = f.slice(heads, 2, 0, model.lengths.text);
  const Tensor image = f.slice(heads, 2, model.lengths.text, Forward::kRest);
  return f.concatenate({text, turn_pairs(f, image, tables, true)}, 2);
}

inline TwoStreams attention(Forward& f, const Model& model, const TwoStreams& in, const PairTables& tables) {
  const InModule inside(f, "attn1", "Attention");
  const std::int64_t width = model.sizes.width;
  const std::int64_t each = model.sizes.head_width;
  const Tensor all = f.concatenate({in.text, in.image}, 1);
  const auto heads = [&](std::string_view name) {
    return f.permute(as_heads(f, f.linear(name, all, width, width), each), {0, 2, 1, 3});
  };
  const Tensor first = heads("to_q");
  const Tensor second = heads("to_k");
  const Tensor value = heads("to_v");
  const Tensor query = turned(f, model, head_norm(f, "norm_q", first, in.text, each), tables);
  const Tensor key = turned(f, model, head_norm(f, "norm_k", second, in.text, each), tables);
  const Tensor mixed = f.call("scaled_dot_product_attention", {query, key, value});
  const Tensor rows = f.as_type_of(f.flatten(f.permute(mixed, {0, 2, 1, 3}), 2, 3), query);
  Tensor left = 0;
  {
    const InModule out(f, "to_out", "ModuleList");
    left = f.linear("0", rows, width, width);
  }
  const std::vector<Tensor> parts = f.split(left, 1, {model.lengths.text, model.lengths.image});
  return {parts[1], parts[0]};
}

inline TwoStreams block(Forward& f, const Model& model, TwoStreams streams, Tensor time, const PairTables& tables) {
  const std::int64_t width = model.sizes.width;
  std::vector<Tensor> rows;
  TwoStreams normed;
  {
    const InModule inside(f, "norm1", "CogView4AdaLayerNormZero");
    const Tensor image = f.as_type_of(bare_norm(f, "norm", streams.image, width), streams.image);
    const Tensor text = f.as_type_of(bare_norm(f, "norm_context", streams.text, width), streams.text);
    rows = row_chunks(f, f.linear("linear", time, model.time, 12 * width), 12, width);
    normed = {modulated(f, image, rows[2], rows[0]), modulated(f, text, rows[3], rows[1])};
  }
  const TwoStreams mixed = attention(f, model, normed, tables);
  streams.image = gated_sum(f, streams.image, rows[4], mixed.image);
  streams.text = gated_sum(f, streams.text, rows[5], mixed.text);
  const Tensor image = modulated(f, bare_norm(f, "norm2", streams.image, width), rows[8], rows[6]);
  const Tensor text = modulated(f, bare_norm(f, "norm2_context", streams.text, width), rows[9], rows[7]);
  const auto fed = [&](Tensor tokens) {
    return dit_feed_forward(f, "ff", tokens, width, 4 * width, DitActivation::gelu_tanh);
  };
  const Tensor of_image = fed(image);
  f.repeat_parameters(true);
  const Tensor of_text = fed(text);
  f.repeat_parameters(false);
  streams.image = gated_sum(f, streams.image, rows[10], of_image);
  streams.text = gated_sum(f, streams.text, rows[11], of_text);
  return streams;
}

/// The timestep, and the sizes of the image and of its cut.
inline Tensor time_of(Forward& f, const Model& model) {
  const Tensor sinusoids = timestep_input(f, "timestep", model.sizes.width);
  const Tensor sizes = f.sample_input("conditions", {6 * model.condition});
  const InModule inside(f, "time_condition_embed", "CogView3CombinedTimestepSizeEmbeddings");
  const Tensor time = timestep_embedding(f, "timestep_embedder", sinusoids, model.sizes.width, model.time);
  return f.add(time, text_projection(f, "condition_embedder", sizes, 6 * model.condition, model.time, "silu"));
}

inline TwoStreams embedded(Forward& f, const Model& model, const DenoiserSample& sample) {
  const std::int64_t area = model.sizes.channels * model.patch * model.patch;
  const Tensor prompt = text_input(f, sample, model.sizes.text_width);
  const Tensor latents = f.call("clone", {token_latents(f, model.lengths.image, area)});
  const InModule inside(f, "patch_embed", "CogView4PatchEmbed");
  TwoStreams streams;
  streams.image = f.linear("proj", latents, area, model.sizes.width);
  streams.text = f.linear("text_proj", prompt, model.sizes.text_width, model.sizes.width);
  return streams;
}

inline void write(ConfigFields& config, Head, Forward& f) {
  Model model = read(config);
  if (!config.status()) return;
  const std::int64_t width = model.sizes.width;
  const DenoiserSample sample =
      denoiser_sample(f, {.side = 8, .patch = model.patch, .usual_side = 8 * model.side, .usual_text = 224});
  model.lengths = {sample.height * sample.width / (model.patch * model.patch), sample.text};
  TwoStreams streams = embedded(f, model, sample);
  PairTables tables = pair_tables(f, {streams.image}, model.sizes.head_width);
  tables = {f.permute(tables.cosines, {0, 2, 1, 3}), f.permute(tables.sines, {0, 2, 1, 3})};
  const Tensor time = f.call("silu", {time_of(f, model)});
  streams = stack(f, "transformer_blocks", kBlocks[0], model.layers, streams,
                  [&](const TwoStreams& x, std::int64_t) { return block(f, model, x, time, tables); });
  Tensor normed = 0;
  {
    const InModule inside(f, "norm_out", "CogView4AdaLayerNormContinuous");
    const std::vector<Tensor> rows = row_chunks(f, f.linear("linear", time, model.time, 2 * width), 2, width);
    normed = modulated(f, bare_norm(f, "norm", streams.image, width), rows[0], rows[1]);
  }
  const std::int64_t out = model.sizes.out_channels * model.patch * model.patch;
  const Tensor output = f.linear("proj_out", normed, width, out);
  denoiser_loss(f, f.call("clone", {output}), {model.lengths.image, out});
}

inline constexpr auto kTreeClasses =
    std::to_array<ModelClass>({{"CogView4Transformer2D", "CogView4Transformer2DModel"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  constexpr std::int64_t kSizes = 6;  // of an image, each as wide as condition_dim
  const std::int64_t width = denoiser_tree(t, "patch_embed.proj", "proj_out", 4);
  t.count("num_layers", "transformer_blocks");
  t.size("text_embed_dim", "patch_embed.text_proj", "in_features");
  t.size("time_embed_dim", "time_condition_embed.timestep_embedder.linear_1", "out_features");
  t.part("condition_dim", "time_condition_embed.condition_embedder.linear_1", "in_features", kSizes);
  denoiser_heads_tree(t, width, 40, "CogView4", "transformer_blocks.0.attn1.norm_q");
}

inline constexpr Architecture kArchitecture = {.name = "cogview4",
                                               .model_types = names<"CogView4Transformer2DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .classes = kTreeClasses,
                                               .read_tree = read_tree,
                                               .depends_on_images = true,
                                               .blocks = kBlocks};

}  // namespace cogview4

// Mage-Flow: the blocks of Qwen-Image (sd3.hpp) over samples of a batch that lie one behind the other: scales, shifts
// and gates are copied for each token, and the text is not turned. Source: SimpleTuner 2026-08,
// helpers/models/mageflow/vendor/models/mage_flow.py, modules/mage_layers.py, which are Microsoft's; the config.json of
// microsoft/Mage-Flow (transformer) has the class's own defaults.

namespace mage_flow {

inline constexpr std::array<std::string_view, 1> kBlocks = {"MageFlowTransformerBlock"};

struct Model {
  std::int64_t width = 3072;
  std::int64_t heads = 24;
  std::int64_t layers = 12;
  std::int64_t channels = 128;
  std::int64_t out = 128;
  std::int64_t text_width = 2560;
  StreamLengths lengths;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.width = dit_width(config, "hidden_size", 3072);
  model.heads = config.size_or({"num_heads", "num_attention_heads"}, 24);
  model.layers = config.size_or({"depth", "num_layers"}, 12);
  model.channels = dit_width(config, "in_channels", 128);
  model.out = dit_width(config, "out_channels", 128);
  model.text_width = dit_width(config, "context_in_dim", 2560);
  if (model.layers > ConfigFields::kMostLayers) config.fail("is more layers than gpumem takes", "depth");
  if (model.width % (2 * model.heads) != 0) config.fail("must be of heads of an even width", "hidden_size");
  if (dit_width(config, "patch_size", 1) != 1) config.fail("must be 1", "patch_size");
  config.ignore({"axes_dim",
                 "checkpoint",
                 "vec_in_dim",
                 "mlp_ratio",
                 "depth_single_blocks",
                 "theta",
                 "qkv_bias",
                 "guidance_embed",
                 "rope_type",
                 "time_type",
                 "double_block_type",
                 "vec_type",
                 "apply_text_rotary_emb",
                 "txt_max_length",
                 "max_sequence_length",
                 "param_dtype",
                 "packing",
                 "schedule_mode",
                 "static_shift",
                 "use_time_shift",
                 "attn_type"});
  return model;
}

/// repeat_interleave() of a sample's row for its tokens.
inline Tensor spread(Forward& f, Tensor row, std::int64_t tokens, std::int64_t width) {
  const std::vector<core::Dim> shape = {core::Dim::batch(), core::Dim::fixed(tokens), core::Dim::fixed(width)};
  return f.call("clone", {f.call("expand", {row}, {{"shape", shape}})});
}

inline std::vector<Tensor> rows_of(Forward& f, const Model& model, std::string_view name, Tensor time) {
  const InModule inside(f, name, "Sequential");
  const Tensor open = f.activation("0", time, "silu");
  return row_chunks(f, f.linear("1", open, model.width, 6 * model.width), 6, model.width);
}

inline TwoStreams block(Forward& f, const Model& model, const TwoStreams& in, Tensor time, const PairTables& tables) {
  const std::int64_t width = model.width;
  const std::vector<Tensor> image = rows_of(f, model, "img_mod", time);
  const std::vector<Tensor> text = rows_of(f, model, "txt_mod", time);
  std::array<Tensor, 2> gates{};
  const auto scaled = [&](std::string_view name, Tensor hidden, const std::vector<Tensor>& rows, std::size_t at,
                          std::int64_t tokens, Tensor& gate) {
    const Tensor normed = bare_norm(f, name, hidden, width);
    const Tensor shift = spread(f, rows[at], tokens, width);
    const Tensor scale = spread(f, rows[at + 1], tokens, width);
    gate = spread(f, rows[at + 2], tokens, width);
    return modulated(f, normed, scale, shift);
  };
  const Tensor normed = scaled("img_norm1", in.image, image, 0, model.lengths.image, gates[0]);
  const Tensor normed_text = scaled("txt_norm1", in.text, text, 0, model.lengths.text, gates[1]);
  const TwoStreams mixed = joint_attention(f,
                                           {.width = width,
                                            .head_width = width / model.heads,
                                            .norm = DitHeadNorm::own_rms,
                                            .tables = &tables,
                                            .packed = true},
                                           {normed, normed_text}, model.lengths);
  const auto fed = [&](Tensor hidden, const std::vector<Tensor>& rows, std::string_view norm, std::string_view layers,
                       std::int64_t tokens) {
    Tensor gate = 0;
    const Tensor again = scaled(norm, hidden, rows, 3, tokens, gate);
    const Tensor made = dit_feed_forward(f, layers, again, width, 4 * width, DitActivation::gelu_tanh);
    return gated_sum(f, hidden, gate, made);
  };
  const Tensor attended = gated_sum(f, in.image, gates[0], mixed.image);
  const Tensor attended_text = gated_sum(f, in.text, gates[1], mixed.text);
  const Tensor left = fed(attended, image, "img_norm2", "img_mlp", model.lengths.image);
  return {left, fed(attended_text, text, "txt_norm2", "txt_mlp", model.lengths.text)};
}

inline void write(ConfigFields& config, Head, Forward& f) {
  constexpr std::int64_t kSinusoids = 256;
  Model model = read(config);
  if (!config.status()) return;
  const DenoiserSample sample = denoiser_sample(f, {.side = 16, .usual_text = 256});
  model.lengths = {sample.height * sample.width, sample.text};
  const std::int64_t width = model.width;
  const Tensor latents = token_latents(f, model.lengths.image, model.channels);
  const Tensor prompt = text_input(f, sample, model.text_width);
  const Tensor image = f.linear("img_in", latents, model.channels, width);
  const Tensor normed_prompt = own_rms_norm(f, "txt_norm", prompt, model.text_width);
  const Tensor sinusoids = timestep_input(f, "timestep", kSinusoids);
  Tensor time = 0;
  {
    const InModule inside(f, "time_text_embed", "MageFlowTimestepProjEmbeddings");
    time = timestep_embedding(f, "timestep_embedder", sinusoids, kSinusoids, width);
  }
  const Tensor text = f.linear("txt_in", normed_prompt, model.text_width, width);
  const PairTables tables = pair_tables(f, {image}, width / model.heads);
  const TwoStreams streams = stack(f, "transformer_blocks", kBlocks[0], model.layers, TwoStreams{image, text},
                                   [&](const TwoStreams& x, std::int64_t) { return block(f, model, x, time, tables); });
  Tensor normed = 0;
  {
    const InModule inside(f, "norm_out", "AdaLayerNormContinuous");
    const std::vector<Tensor> rows = modulation(f, "linear", time, width, width, 2);
    const Tensor bare = bare_norm(f, "norm", streams.image, width);
    const Tensor scale = spread(f, rows[0], model.lengths.image, width);
    normed = modulated(f, bare, scale, spread(f, rows[1], model.lengths.image, width));
  }
  denoiser_loss(f, f.linear("proj_out", normed, width, model.out), {model.lengths.image, model.out});
}

inline constexpr Architecture kArchitecture = {.name = "mage_flow",
                                               .model_types = names<"MageFlowTransformer2DModel", "MageFlow">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .blocks = kBlocks};

}  // namespace mage_flow

}  // namespace gpumem::architectures
