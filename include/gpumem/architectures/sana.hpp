// Image transformers whose blocks have one table of scales, shifts and gates: PixArt, and Sana after it.
#pragma once

#include <array>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/denoiser.hpp"
#include "gpumem/architectures/dit_parts.hpp"

namespace gpumem::architectures {

// PixArt-alpha and PixArt-sigma: self-attention, attention to the prompt and a feed-forward layer, with one table of
// scales, shifts and gates a block. Prompts are padded to one length, so attention to them has a mask.
// Source: diffusers 0.38, models/transformers/pixart_transformer_2d.py, models/attention.py (BasicTransformerBlock with
// ada_norm_single).

namespace pixart {

inline constexpr std::array<std::string_view, 1> kBlocks = {"BasicTransformerBlock"};

struct Model {
  DitSizes sizes;
  std::int64_t layers = 28;
  std::int64_t patch = 2;
  std::int64_t side = 128;
  std::int64_t cross = 1152;
  std::int64_t captions = 0;  ///< width of the text encoder's embeddings; 0: they come as wide as the model
  bool bias = true;
  bool affine = false;
  bool sized = false;

  [[nodiscard]] std::int64_t places() const { return (side / patch) * (side / patch); }
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = dit_sizes(config, {.heads = 16, .head_width = 72, .channels = 4, .text_field = "caption_channels"});
  if (!config.has("out_channels")) model.sizes.out_channels = 8;
  model.layers = config.layers_or("num_layers", 28);
  model.patch = dit_width(config, "patch_size", 2);
  model.side = config.size_or({"sample_size"}, 128);
  model.cross = dit_width(config, "cross_attention_dim", 1152);
  model.captions = config.has("caption_channels") ? model.sizes.text_width : 0;
  model.bias = config.flag("attention_bias", true);
  model.affine = config.flag("norm_elementwise_affine", false);
  model.sized = config.flag("use_additional_conditions", model.side == 128);
  if (model.patch > 16 || model.side < model.patch || model.side > 4096) {
    config.fail("is larger than gpumem takes, or smaller than patch_size", "sample_size");
  }
  if (model.captions == 0 && model.cross != model.sizes.width) {
    config.fail("must be the width of all heads where captions are not projected", "cross_attention_dim");
  }
  if (config.text({"activation_fn"}, "gelu-approximate") != "gelu-approximate")
    config.fail("is not known", "activation_fn");
  config.ignore({"dropout", "norm_num_groups", "num_embeds_ada_norm", "upcast_attention", "norm_type", "norm_eps",
                 "interpolation_scale", "attention_type", "double_self_attention", "only_cross_attention",
                 "use_linear_projection", "num_vector_embeds"});
  return model;
}

inline Tensor norm(Forward& f, const Model& model, std::string_view name, Tensor input) {
  return affine_norm(f, name, input, model.sizes.width, model.affine);
}

inline Tensor block(Forward& f, const Model& model, Tensor hidden, Tensor prompt, Tensor mask, Tensor rows) {
  const std::int64_t width = model.sizes.width;
  const std::vector<Tensor> parts = table_rows(f, rows, 6, width);
  PlainAttention options = {
      .width = width, .inner = width, .head_width = model.sizes.head_width, .source_width = width, .bias = model.bias};
  const Tensor normed = modulated(f, norm(f, model, "norm1", hidden), parts[1], parts[0]);
  const Tensor own = f.add(f.multiply(parts[2], plain_attention(f, options, normed, normed)), hidden);
  options.name = "attn2";
  options.source_width = model.cross;
  options.mask = mask;
  const Tensor told = f.add(plain_attention(f, options, own, prompt), own);
  const Tensor again = modulated(f, norm(f, model, "norm2", told), parts[4], parts[3]);
  const Tensor fed = dit_feed_forward(f, "ff", again, width, 4 * width, DitActivation::gelu_tanh);
  return f.add(f.multiply(parts[5], fed), told);
}

inline void write(ConfigFields& config, Head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const std::int64_t width = model.sizes.width;
  const DenoiserSample sample =
      denoiser_sample(f, {.side = 8, .patch = model.patch, .usual_side = 8 * model.side, .usual_text = 300});
  const std::int64_t tokens = sample.height * sample.width / (model.patch * model.patch);
  const Tensor latents = latent_input(f, sample, model.sizes.channels);
  Tensor prompt = text_input(f, sample, model.captions == 0 ? model.cross : model.captions);
  const Tensor mask = prompt_mask(f, prompt);
  Tensor hidden =
      patch_embedding(f, "pos_embed", latents, model.sizes.channels, width, model.patch, tokens, model.places());
  const SingleRows rows = single_rows(f, width, {.sized = model.sized});
  if (model.captions > 0) {
    prompt = text_projection(f, "caption_projection", prompt, model.captions, width, "gelu_pytorch_tanh");
  }
  hidden = stack(f, "transformer_blocks", kBlocks[0], model.layers, hidden,
                 [&](Tensor x, std::int64_t) { return block(f, model, x, prompt, mask, rows.rows); });
  const std::vector<Tensor> last = table_rows(f, unsqueezed(f, rows.time, 1), 2, width);
  const Tensor normed = modulated(f, bare_norm(f, "norm_out", hidden, width), last[1], last[0]);
  loss_of_patches(f, "proj_out", normed, model.sizes, model.patch, tokens);
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"PixArtTransformer2D", "PixArtTransformer2DModel"}});

/// What print(model) shows: all but the heads, which are 72 wide, and the size of the samples that it is for.
inline void read_tree(TreeFields& t) {
  constexpr std::int64_t kHead = 72;
  const bool sized = t.has("adaln_single.emb.resolution_embedder");
  const std::int64_t patch = t.value("pos_embed.proj", "kernel_size").value_or(1);
  const std::int64_t width = t.value("pos_embed.proj", "out_channels").value_or(0);
  t.size("in_channels", "pos_embed.proj", "in_channels");
  t.set("patch_size", patch);
  t.set("attention_head_dim", kHead);
  t.set("num_attention_heads", std::max<std::int64_t>(width / kHead, 1));
  t.count("num_layers", "transformer_blocks");
  t.size("cross_attention_dim", "transformer_blocks.0.attn2.to_k", "in_features");
  t.size("caption_channels", "caption_projection.linear_1", "in_features");
  t.flag("attention_bias", "transformer_blocks.0.attn1.to_q");
  t.flag("norm_elementwise_affine", "transformer_blocks.0.norm1", "elementwise_affine");
  t.set_flag("use_additional_conditions", sized);
  t.set("sample_size", sized ? 128 : 64);
  t.set("out_channels", std::max<std::int64_t>(t.value("proj_out", "out_features").value_or(0) / (patch * patch), 1));
  t.assume("heads of width 72 and samples of " + std::string(sized ? "1024" : "512") + " pixels, as PixArt has");
}

inline constexpr Architecture kArchitecture = {.name = "pixart",
                                               .model_types = names<"PixArtTransformer2DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .depends_on_images = true,
                                               .blocks = kBlocks};

}  // namespace pixart

// Sana and Sana-Video: linear attention in float32 among image tokens, attention to the prompt, and convolutions in
// place of a feed-forward layer.
// Source: diffusers 0.38, models/transformers/sana_transformer.py, transformer_sana_video.py,
// models/attention_processor.py (SanaLinearAttnProcessor2_0). With `_code` simpletuner: SimpleTuner 2026-08,
// helpers/models/sana/transformer.py: a norm before the attention to the prompt, and convolutions whose weights take
// the type of what they are first called with, under autocast float32.

namespace sana {

inline constexpr std::array<std::string_view, 2> kClasses = {"SanaTransformer2DModel", "SanaVideoTransformer3DModel"};
inline constexpr std::array<std::string_view, 2> kBlocks = {"SanaTransformerBlock", "SanaVideoTransformerBlock"};

struct Model {
  DitSizes sizes;
  bool video = false;
  std::int64_t layers = 20;
  std::int64_t cross_heads = 20;
  std::int64_t cross_head_width = 112;
  std::int64_t cross = 2240;
  std::int64_t inner = 5600;  ///< channels of the convolutions' gate
  std::int64_t side = 32;     ///< of a table of positions; 0: there is none
  Sizes patch = {1, 1, 1};
  bool bias = false;
  bool affine = false;
  bool guided = false;
  bool norms = false;
  bool copied = false;  ///< SimpleTuner's copy of the class

  [[nodiscard]] std::int64_t patch_elements() const { return patch[0] * patch[1] * patch[2]; }
};

/// Tokens: frames, rows and columns of patches.
struct Grid {
  std::int64_t frames = 1;
  std::int64_t height = 1;
  std::int64_t width = 1;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.video = config.text({"_class_name"}, kClasses[0]) == kClasses[1];
  model.sizes = dit_sizes(config, {.heads = model.video ? 20 : 70,
                                   .head_width = model.video ? 112 : 32,
                                   .channels = model.video ? 16 : 32,
                                   .text_width = 2304,
                                   .text_field = "caption_channels"});
  model.layers = config.layers_or("num_layers", 20);
  model.cross_heads = dit_width(config, "num_cross_attention_heads", 20);
  model.cross_head_width = dit_width(config, "cross_attention_head_dim", 112);
  model.cross = dit_width(config, "cross_attention_dim", 2240);
  model.inner = dit_inner(config, "mlp_ratio", model.sizes.width, 2.5);
  model.bias = config.flag("attention_bias", false);
  model.affine = config.flag("norm_elementwise_affine", false);
  model.guided = config.flag("guidance_embeds", false);
  model.copied = dit_code(config) == DitCode::simpletuner;
  const std::string_view norm = config.text({"qk_norm"}, model.video ? "rms_norm_across_heads" : "");
  model.norms = norm == "rms_norm_across_heads";
  if (!norm.empty() && !model.norms) config.fail("is not known", "qk_norm");
  const bool places = config.find("interpolation_scale") != nullptr;
  model.side = config.size_or({"sample_size"}, 32);
  if (model.side > 4096) config.fail("is larger than gpumem takes", "sample_size");
  if (!places || model.video) model.side = 0;
  if (model.video) {
    model.patch = dit_list(config, "patch_size", {1, 2, 2});
  } else {
    const std::int64_t patch = dit_width(config, "patch_size", 1);
    model.patch = {1, patch, patch};
  }
  if (model.patch[0] > 16 || model.patch[1] > 16 || model.patch[2] > 16) {
    config.fail("is larger than gpumem takes", "patch_size");
  }
  const bool wide = model.cross_heads * model.cross_head_width <= 1 << 20;
  if (!wide) config.fail("is wider than gpumem takes", "cross_attention_head_dim");
  if (model.cross != model.sizes.width) config.fail("must be the width of all heads", "cross_attention_dim");
  config.ignore({"dropout", "norm_eps", "guidance_embeds_scale", "timestep_scale", "rope_max_seq_len"});
  return model;
}

/// [N, heads, width, S] in float32, where a rectified tensor [N, S, heads, width] is given.
inline Tensor wide_columns(Forward& f, Tensor heads) { return f.to(f.permute(heads, {0, 2, 3, 1}), "float32"); }

/// SanaLinearAttnProcessor2_0: values, and a row of ones for the sum of weights, times keys, times queries.
inline Tensor linear_attention(Forward& f, const Model& model, Tensor query, Tensor key, Tensor value) {
  const std::int64_t each = model.sizes.head_width;
  const Tensor ones = f.layer("pad", {}, "pad", {wide_columns(f, value)}, {{"padding", Sizes{0, 0, 0, 1}}});
  const Tensor keys = f.to(f.permute(key, {0, 2, 1, 3}), "float32");
  const Tensor scores = f.call("matmul", {ones, keys});
  const Tensor mixed = f.call("matmul", {scores, wide_columns(f, query)});
  const Tensor sums = f.call("add", {f.slice(mixed, 2, each, 1)});
  return f.call("div", {f.slice(mixed, 2, 0, each), sums});
}

/// SanaLinearAttnProcessor3_0: queries and keys are turned for the products, and not for the sum of weights.
inline Tensor turned_linear_attention(Forward& f, const Model& model, Tensor query, Tensor key, Tensor value,
                                      const PairTables& tables) {
  const auto turned = [&](Tensor heads) { return write_pairs(f, heads, tables, model.sizes.head_width); };
  const Tensor turned_query = wide_columns(f, turned(query));
  const Tensor turned_key = f.to(f.permute(turned(key), {0, 2, 1, 3}), "float32");
  const Tensor sum = f.call("sum", {f.permute(key, {0, 2, 3, 1})}, {{"dim", std::int64_t{-1}}, {"keepdim", true}});
  const Tensor weights = f.call("matmul", {f.permute(sum, {0, 1, 3, 2}), f.permute(query, {0, 2, 3, 1})});
  const Tensor inverse = f.call("rsqrt", {f.call("add", {weights})});
  const Tensor scores = f.call("matmul", {wide_columns(f, value), turned_key});
  return f.multiply(f.call("matmul", {scores, turned_query}), inverse);
}

inline Tensor self_attention(Forward& f, const Model& model, Tensor input, const PairTables* tables) {
  const InModule inside(f, "attn1", "Attention");
  const std::int64_t width = model.sizes.width;
  const auto projected = [&](std::string_view name) {
    return f.linear(name, input, width, width, {.bias = model.bias});
  };
  Tensor query = projected("to_q");
  Tensor key = projected("to_k");
  const Tensor value = as_heads(f, projected("to_v"), model.sizes.head_width);
  if (model.norms) {
    query = own_rms_norm(f, "norm_q", query, width);
    key = own_rms_norm(f, "norm_k", key, width);
  }
  query = f.call("relu", {as_heads(f, query, model.sizes.head_width)});
  key = f.call("relu", {as_heads(f, key, model.sizes.head_width)});
  const Tensor mixed = tables != nullptr ? turned_linear_attention(f, model, query, key, value, *tables)
                                         : linear_attention(f, model, query, key, value);
  const Tensor rows = f.as_type_of(f.permute(f.flatten(mixed, 1, 2), {0, 2, 1}), input);
  const InModule out(f, "to_out", "ModuleList");
  return f.linear("0", rows, width, width);
}

struct Convolution {
  std::int64_t in = 0;
  std::int64_t out = 0;
  Sizes kernel = {1, 1};
  std::int64_t groups = 1;
  bool bias = true;
};

inline Tensor convolution(Forward& f, const Model& model, std::string_view name, Tensor input,
                          const Convolution& sizes) {
  return f.layer(name, "Conv2d", "conv2d", {input},
                 {{"in_channels", sizes.in},
                  {"out_channels", sizes.out},
                  {"kernel_size", sizes.kernel},
                  {"padding", Sizes{sizes.kernel[0] / 2, sizes.kernel[1] / 2}},
                  {"groups", sizes.groups},
                  {"bias", sizes.bias},
                  {"own_type", model.copied}});
}

/// GLUMBConv and GLUMBTempConv: [N, S, width] seen as images.
inline Tensor convolved(Forward& f, const Model& model, const Grid& grid, Tensor input) {
  const InModule inside(f, "ff", model.video ? "GLUMBTempConv" : "GLUMBConv");
  const std::int64_t width = model.sizes.width;
  const std::int64_t wide = 2 * model.inner;
  Tensor images = f.unflatten(input, 1, {grid.frames, grid.height, grid.width});
  images = f.permute(f.flatten(images, 0, 1), {0, 3, 1, 2});
  if (model.copied) images = f.contiguous(images);
  Tensor hidden = convolution(f, model, "conv_inverted", images, {width, wide});
  hidden = f.activation("nonlinearity", hidden, "silu");
  hidden = convolution(f, model, "conv_depth", hidden, {wide, wide, {3, 3}, wide});
  const std::vector<Tensor> parts = chunks(f, hidden, 1, 2, model.inner);
  hidden = f.multiply(parts[0], f.call("silu", {parts[1]}));
  hidden = convolution(f, model, "conv_point", hidden, {model.inner, width, {1, 1}, 1, false});
  if (!model.video) return f.permute(f.flatten(hidden, 2, 3), {0, 2, 1});
  const Tensor frames = f.unflatten(f.flatten(hidden, 2, 3), 0, {-1, grid.frames});
  const Tensor columns = f.permute(frames, {0, 2, 1, 3});
  const Tensor sum = f.add(columns, convolution(f, model, "conv_temp", columns, {width, width, {3, 1}, 1, false}));
  return f.flatten(f.permute(sum, {0, 2, 3, 1}), 1, 2);
}

inline Tensor norm(Forward& f, const Model& model, std::string_view name, Tensor input) {
  return affine_norm(f, name, input, model.sizes.width, model.affine);
}

inline Tensor block(Forward& f, const Model& model, const Grid& grid, Tensor hidden, Tensor prompt, Tensor mask,
                    Tensor rows, const PairTables* tables) {
  const std::int64_t width = model.sizes.width;
  const std::vector<Tensor> parts = table_rows(f, rows, 6, width);
  const Tensor scaled = modulated(f, bare_norm(f, "norm1", hidden, width), parts[1], parts[0]);
  const Tensor normed = f.as_type_of(scaled, hidden);
  const Tensor own = gated_sum(f, hidden, parts[2], self_attention(f, model, normed, tables));
  const PlainAttention options = {.name = "attn2",
                                  .width = width,
                                  .inner = model.cross_heads * model.cross_head_width,
                                  .head_width = model.cross_head_width,
                                  .source_width = model.cross,
                                  .norms = model.norms,
                                  .mask = mask};
  const Tensor asks = model.copied ? f.as_type_of(norm(f, model, "cross_norm", own), own) : own;
  const Tensor told = f.add(plain_attention(f, options, asks, prompt), own);
  const Tensor again = modulated(f, norm(f, model, "norm2", told), parts[4], parts[3]);
  return gated_sum(f, told, parts[5], convolved(f, model, grid, again));
}

inline Tensor patches(Forward& f, const Model& model, const DenoiserSample& sample, std::int64_t tokens) {
  const std::int64_t width = model.sizes.width;
  const Tensor latents = latent_input(f, sample, model.sizes.channels, model.video);
  if (model.video) {
    const Tensor cut = f.layer("patch_embedding", "Conv3d", "conv3d", {latents},
                               {{"in_channels", model.sizes.channels},
                                {"out_channels", width},
                                {"kernel_size", model.patch},
                                {"stride", model.patch}});
    return f.permute(f.flatten(cut, 2, 4), {0, 2, 1});
  }
  const std::int64_t side = model.side / model.patch[1];
  return patch_embedding(f, "patch_embed", latents, model.sizes.channels, width, model.patch[1], tokens, side * side);
}

inline void write(ConfigFields& config, Head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const std::int64_t width = model.sizes.width;
  const DenoiserSample sample = denoiser_sample(f, {.side = model.video ? 8 : 32,
                                                    .frame = model.video ? 4 : 0,
                                                    .patch = model.patch[1],
                                                    .usual_side = model.video ? 480 : 1024,
                                                    .usual_frames = model.video ? 81 : 1,
                                                    .usual_text = 300});
  const Grid grid = {sample.frames / model.patch[0], sample.height / model.patch[1], sample.width / model.patch[2]};
  const std::int64_t tokens = grid.frames * grid.height * grid.width;
  Tensor hidden = patches(f, model, sample, tokens);
  PairTables tables;
  if (model.video) tables = pair_tables(f, {hidden}, model.sizes.head_width);
  const SingleRows rows = single_rows(f, width, {.name = "time_embed", .guided = model.guided});
  Tensor prompt = text_input(f, sample, model.sizes.text_width);
  const Tensor mask = prompt_mask(f, prompt);
  prompt = text_projection(f, "caption_projection", prompt, model.sizes.text_width, width, "gelu_pytorch_tanh");
  prompt = own_rms_norm(f, "caption_norm", prompt, width);
  hidden =
      stack(f, "transformer_blocks", kBlocks[model.video ? 1 : 0], model.layers, hidden, [&](Tensor x, std::int64_t) {
        return block(f, model, grid, x, prompt, mask, rows.rows, model.video ? &tables : nullptr);
      });
  const std::vector<Tensor> last = table_rows(f, unsqueezed(f, rows.time, 1), 2, width);
  const Tensor normed = modulated(f, bare_norm(f, "norm_out.norm", hidden, width), last[1], last[0]);
  const std::int64_t out = model.patch_elements() * model.sizes.out_channels;
  denoiser_loss(f, f.call("clone", {f.linear("proj_out", normed, width, out)}), {tokens, out});
}

inline constexpr auto kTreeClasses = std::to_array<ModelClass>(
    {{"SanaTransformer2D", "SanaTransformer2DModel"}, {"SanaVideoTransformer3D", "SanaVideoTransformer3DModel"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  constexpr std::int64_t kHead = 112;  // of SANA-Video, and of the attention to the prompt
  constexpr std::int64_t kSmallHead = 72;
  constexpr std::int64_t kOwnHead = 32;
  const bool video = t.class_name() == kClasses[1];
  const std::string_view patches = video ? "patch_embedding" : "patch_embed.proj";
  std::vector<std::int64_t> sides;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    sides.push_back(std::min<std::int64_t>(t.value(patches, "kernel_size", axis).value_or(1), 64));
  }
  const std::int64_t area = video ? sides[0] * sides[1] * sides[2] : sides[0] * sides[0];
  const std::int64_t width = denoiser_tree(t, patches, "proj_out", area);
  if (video) t.list("patch_size", sides);
  else t.set("patch_size", sides[0]);
  t.count("num_layers", "transformer_blocks");
  const std::int64_t cross = width % kHead == 0 ? kHead : kSmallHead;
  t.set("num_cross_attention_heads", std::max<std::int64_t>(width / cross, 1));
  t.set("cross_attention_head_dim", cross);
  t.size("cross_attention_dim", "transformer_blocks.0.attn2.to_k", "in_features");
  t.size("caption_channels", "caption_projection.linear_1", "in_features");
  t.ratio("mlp_ratio", "transformer_blocks.0.ff.conv_point", "in_channels", width);
  t.flag("attention_bias", "transformer_blocks.0.attn1.to_q");
  t.flag("norm_elementwise_affine", "transformer_blocks.0.norm1", "elementwise_affine");
  t.there("guidance_embeds", "time_embed.guidance_embedder");
  if (t.has("transformer_blocks.0.attn1.norm_q")) t.set_string("qk_norm", "rms_norm_across_heads");
  denoiser_heads_tree(t, width, video ? kHead : kOwnHead, "SANA");
  t.assume("heads of width " + std::to_string(cross) + " for the prompt, and no table of positions");
}

inline constexpr Architecture kArchitecture = {.name = "sana",
                                               .model_types = kClasses,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .classes = kTreeClasses,
                                               .read_tree = read_tree,
                                               .depends_on_images = true,
                                               .blocks = kBlocks};

}  // namespace sana

}  // namespace gpumem::architectures
