// PRX, and behind it OmniGen and LTX-Video. PRX: blocks whose image tokens ask the image's and the prompt's, which has
// keys and values alone; scales, shifts and gates come from a layer in each block. Source: diffusers 0.40,
// models/transformers/transformer_prx.py. A mask of the prompt's padding is not counted.
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

inline constexpr auto kTreeClasses = std::to_array<ModelClass>({{"PRXTransformer2D", "PRXTransformer2DModel"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  constexpr std::int64_t kHead = 64;
  constexpr std::int64_t kPatch = 4;
  const std::int64_t width = t.value("txt_in", "out_features").value_or(kHead);
  t.part("in_channels", t.has("img_in.0") ? "img_in.0" : "img_in", "in_features", kPatch);
  t.size("bottleneck_size", "img_in.0", "out_features");
  t.size("context_in_dim", "txt_in", "in_features");
  t.set("hidden_size", width);
  t.set("num_heads", std::max<std::int64_t>(width / kHead, 1));
  t.count("depth", "blocks");
  t.ratio("mlp_ratio", "blocks.0.gate_proj", "out_features", width);
  t.there("resolution_embeds", "resolution_in");
  t.assume("heads of width 64 and patches of 2 x 2, as PRX has");
}

inline constexpr Architecture kArchitecture = {.name = "prx",
                                               .model_types = names<"PRXTransformer2DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .classes = kTreeClasses,
                                               .read_tree = read_tree,
                                               .depends_on_images = true,
                                               .blocks = kBlocks};

}  // namespace prx

// OmniGen: a language model's decoder over the prompt's tokens, one of the timestep and the image's, with a mask that
// is as large as the square of the sequence. Source: diffusers 0.38, models/transformers/transformer_omnigen.py,
// without images as conditions.

namespace omnigen {

inline constexpr std::array<std::string_view, 1> kBlocks = {"OmniGenBlock"};

struct Model {
  std::int64_t width = 3072;
  std::int64_t heads = 32;
  std::int64_t key_heads = 32;
  std::int64_t layers = 32;
  std::int64_t inner = 8192;
  std::int64_t channels = 4;
  std::int64_t patch = 2;
  std::int64_t vocabulary = 32064;
  std::int64_t side = 192;
  std::int64_t sinusoids = 256;

  [[nodiscard]] std::int64_t head_width() const { return width / heads; }
};

inline Model read(ConfigFields& config) {
  Model model;
  model.width = dit_width(config, "hidden_size", 3072);
  model.heads = dit_width(config, "num_attention_heads", 32);
  model.key_heads = dit_width(config, "num_key_value_heads", 32);
  model.layers = config.layers_or("num_layers", 32);
  model.inner = dit_width(config, "intermediate_size", 8192);
  model.channels = dit_width(config, "in_channels", 4);
  model.patch = dit_patch(config);
  model.vocabulary = config.size_or({"vocab_size"}, 32064);
  model.side = config.size_or({"pos_embed_max_size"}, 192);
  model.sinusoids = dit_width(config, "time_step_dim", 256);
  if (model.width % (2 * model.heads) != 0) config.fail("does not divide hidden_size", "num_attention_heads");
  if (model.key_heads != model.heads) config.fail("must be num_attention_heads", "num_key_value_heads");
  if (model.side > 4096) config.fail("is larger than gpumem takes", "pos_embed_max_size");
  config.ignore({"rms_norm_eps", "pad_token_id", "max_position_embeddings", "original_max_position_embeddings",
                 "rope_base", "rope_scaling", "flip_sin_to_cos", "downscale_freq_shift", "timestep_activation_fn"});
  return model;
}

inline Tensor block(Forward& f, const Model& model, Tensor hidden, const PairTables& tables, Tensor mask) {
  const std::int64_t each = model.head_width();
  const Tensor normed = own_rms_norm(f, "input_layernorm", hidden, model.width);
  Tensor mixed = 0;
  {
    const InModule inside(f, "self_attn", "Attention");
    const auto heads = [&](std::string_view name) {
      return as_heads(f, f.linear(name, normed, model.width, model.width, {.bias = false}), each);
    };
    Tensor query = heads("to_q");
    Tensor key = heads("to_k");
    const Tensor value = heads("to_v");
    query = turn_pairs(f, query, tables, true);
    key = turn_pairs(f, key, tables, true);
    mixed = attend_heads(f, query, key, value, mask);
    const InModule out(f, "to_out", "ModuleList");
    mixed = f.linear("0", mixed, model.width, model.width, {.bias = false});
  }
  const Tensor attended = f.add(hidden, mixed);
  const Tensor again = own_rms_norm(f, "post_attention_layernorm", attended, model.width);
  const InModule inside(f, "mlp", "OmniGenFeedForward");
  const Tensor wide = f.linear("gate_up_proj", again, model.width, 2 * model.inner, {.bias = false});
  const std::vector<Tensor> parts = chunks(f, wide, 2, 2, model.inner);
  const Tensor open = f.multiply(parts[1], f.activation("activation_fn", parts[0], "silu"));
  return f.add(attended, f.linear("down_proj", open, model.inner, model.width, {.bias = false}));
}

inline Tensor image_tokens(Forward& f, const Model& model, const DenoiserSample& sample, std::int64_t tokens) {
  const Tensor latents = latent_input(f, sample, model.channels);
  const InModule inside(f, "patch_embedding", "OmniGenPatchEmbed");
  const Tensor cut = f.layer("output_image_proj", "Conv2d", "conv2d", {latents},
                             {{"in_channels", model.channels},
                              {"out_channels", model.width},
                              {"kernel_size", Sizes(2, model.patch)},
                              {"stride", Sizes(2, model.patch)}});
  f.parameter("input_image_proj.weight", {model.width, model.channels, model.patch, model.patch});
  f.parameter("input_image_proj.bias", {model.width});
  const Tensor table = f.constant("pos_embed", {1, model.side * model.side, model.width}, "parameters");
  const Tensor places = f.call("clone", {f.slice(table, 1, 0, tokens)});
  return f.add(f.permute(f.flatten(cut, 2, 3), {0, 2, 1}), places);
}

inline void write(ConfigFields& config, Head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DenoiserSample sample = denoiser_sample(f, {.side = 8, .patch = model.patch, .usual_text = 256});
  const std::int64_t tokens = sample.height * sample.width / (model.patch * model.patch);
  if (tokens > model.side * model.side) f.fail("has positions for smaller images; give a smaller `image`");
  if (f.failed()) return;
  const Tensor image = image_tokens(f, model, sample, tokens);
  const Tensor sinusoids = timestep_input(f, "timestep", model.sinusoids);
  const Tensor token = timestep_embedding(f, "time_token", sinusoids, model.sinusoids, model.width);
  const Tensor time = timestep_embedding(f, "t_embedder", sinusoids, model.sinusoids, model.width);
  const Tensor ids = f.sample_input("input_ids", {sample.text});
  const Tensor text = f.embedding("embed_tokens", ids, model.vocabulary, model.width);
  Tensor hidden = f.concatenate({text, unsqueezed(f, token, 1), image}, 1);
  const Tensor mask = f.call("causal_mask", {hidden}, {{"padded", true}});
  const PairTables tables = pair_tables(f, {hidden}, model.head_width());
  hidden = stack(f, "layers", kBlocks[0], model.layers, hidden,
                 [&](Tensor x, std::int64_t) { return block(f, model, x, tables, mask); });
  hidden = own_rms_norm(f, "norm", hidden, model.width);
  hidden = f.slice(hidden, 1, sample.text + 1, Forward::kRest);
  Tensor normed = 0;
  {
    const InModule inside(f, "norm_out", "AdaLayerNorm");
    const std::vector<Tensor> rows = modulation(f, "linear", time, model.width, model.width, 2);
    normed = modulated(f, bare_norm(f, "norm", hidden, model.width), rows[1], rows[0]);
  }
  const std::int64_t out = model.patch * model.patch * model.channels;
  denoiser_loss(f, f.call("clone", {f.linear("proj_out", normed, model.width, out)}), {tokens, out});
}

inline constexpr auto kTreeClasses = std::to_array<ModelClass>({{"OmniGenTransformer2D", "OmniGenTransformer2DModel"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  constexpr std::int64_t kHead = 96;
  const std::int64_t width = t.body("embed_tokens", "layers");
  t.set("num_layers", std::max<std::int64_t>(t.count_of("layers"), 1));
  t.set("num_attention_heads", std::max<std::int64_t>(width / kHead, 1));
  t.set("num_key_value_heads", std::max<std::int64_t>(width / kHead, 1));
  t.half("intermediate_size", "layers.0.mlp.gate_up_proj", "out_features");
  t.size("in_channels", "patch_embedding.output_image_proj", "in_channels");
  t.size("patch_size", "patch_embedding.output_image_proj", "kernel_size");
  t.size("time_step_dim", "time_token.linear_1", "in_features");
  t.assume("heads of width 96, as OmniGen has");
}

inline constexpr Architecture kArchitecture = {.name = "omnigen",
                                               .model_types = names<"OmniGenTransformer2DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .classes = kTreeClasses,
                                               .read_tree = read_tree,
                                               .depends_on_images = true,
                                               .blocks = kBlocks};

}  // namespace omnigen

// LTX-Video 0.9: self-attention, attention to the prompt and a feed-forward layer, with one table of scales, shifts and
// gates a block. Rotary positions turn whole queries and keys, before they are parted into heads.
// Source: diffusers 0.38, models/transformers/transformer_ltx.py.

namespace ltx {

inline constexpr std::array<std::string_view, 1> kBlocks = {"LTXVideoTransformerBlock"};

struct Model {
  DitSizes sizes;
  std::int64_t layers = 28;
  std::int64_t cross = 2048;
  bool bias = true;
  bool out_bias = true;
  bool affine = false;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = dit_sizes(config, {.heads = 32, .head_width = 64, .channels = 128, .text_field = "caption_channels"});
  model.layers = config.layers_or("num_layers", 28);
  model.cross = dit_width(config, "cross_attention_dim", 2048);
  model.bias = config.flag("attention_bias", true);
  model.out_bias = config.flag("attention_out_bias", true);
  model.affine = config.flag("norm_elementwise_affine", false);
  if (model.cross != model.sizes.width) config.fail("must be the width of all heads", "cross_attention_dim");
  if (model.sizes.width % 2 != 0) config.fail("must be even", "attention_head_dim");
  if (config.text({"activation_fn"}, "gelu-approximate") != "gelu-approximate")
    config.fail("is not known", "activation_fn");
  const bool plain = dit_width(config, "patch_size", 1) == 1 && dit_width(config, "patch_size_t", 1) == 1;
  if (!plain) config.fail("must be 1", "patch_size");
  config.ignore({"qk_norm", "norm_eps"});
  return model;
}

inline Tensor attention(Forward& f, const Model& model, std::string_view name, Tensor input, Tensor source,
                        const PairTables* tables, std::optional<Tensor> mask) {
  const InModule inside(f, name, "LTXAttention");
  const std::int64_t width = model.sizes.width;
  const std::int64_t each = model.sizes.head_width;
  const auto projected = [&](std::string_view layer, Tensor from) {
    return f.linear(layer, from, width, width, {.bias = model.bias});
  };
  const Tensor first = projected("to_q", input);
  const Tensor second = projected("to_k", source);
  const Tensor value = projected("to_v", source);
  Tensor query = torch_rms_norm(f, "norm_q", first, width);
  Tensor key = torch_rms_norm(f, "norm_k", second, width);
  const auto turned = [&](Tensor tensor) {
    return f.flatten(turn_pairs(f, as_heads(f, tensor, width), *tables), 2, 3);
  };
  if (tables != nullptr) {
    query = turned(query);
    key = turned(key);
  }
  const Tensor mixed =
      attend_heads(f, as_heads(f, query, each), as_heads(f, key, each), as_heads(f, value, each), mask);
  const InModule out(f, "to_out", "ModuleList");
  return f.linear("0", mixed, width, width, {.bias = model.out_bias});
}

inline Tensor block(Forward& f, const Model& model, Tensor hidden, Tensor prompt, Tensor mask, Tensor rows,
                    const PairTables& tables) {
  const std::int64_t width = model.sizes.width;
  const Tensor bare = own_rms_norm(f, "norm1", hidden, width, model.affine);
  const std::vector<Tensor> parts = table_rows(f, rows, 6, width);
  const Tensor normed = modulated(f, bare, parts[1], parts[0]);
  const Tensor own = f.add(hidden, f.multiply(attention(f, model, "attn1", normed, normed, &tables, {}), parts[2]));
  const Tensor told = f.add(own, attention(f, model, "attn2", own, prompt, nullptr, mask));
  const Tensor again = modulated(f, own_rms_norm(f, "norm2", told, width, model.affine), parts[4], parts[3]);
  const Tensor fed = dit_feed_forward(f, "ff", again, width, 4 * width, DitActivation::gelu_tanh);
  return f.add(told, f.multiply(fed, parts[5]));
}

inline void write(ConfigFields& config, Head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const std::int64_t width = model.sizes.width;
  const DenoiserSample sample =
      denoiser_sample(f, {.side = 32, .frame = 8, .usual_side = 512, .usual_frames = 49, .usual_text = 128});
  const std::int64_t tokens = sample.frames * sample.height * sample.width;
  const Tensor latents = token_latents(f, tokens, model.sizes.channels);
  Tensor prompt = text_input(f, sample, model.sizes.text_width);
  const Tensor mask = prompt_mask(f, prompt);
  const Tensor table =
      f.call("rotary_table", {latents}, {{"width", width}, {"padded", true}, {"dtype", std::string("float32")}});
  const Tensor cosines = f.permute(table, {0, 2, 1, 3});
  const Tensor other =
      f.call("rotary_table", {latents}, {{"width", width}, {"padded", true}, {"dtype", std::string("float32")}});
  const PairTables tables = {cosines, f.permute(other, {0, 2, 1, 3})};
  Tensor hidden = f.linear("proj_in", latents, model.sizes.channels, width);
  const SingleRows rows = single_rows(f, width, {.name = "time_embed"});
  prompt = text_projection(f, "caption_projection", prompt, model.sizes.text_width, width, "gelu_pytorch_tanh");
  hidden = stack(f, "transformer_blocks", kBlocks[0], model.layers, hidden,
                 [&](Tensor x, std::int64_t) { return block(f, model, x, prompt, mask, rows.rows, tables); });
  const std::vector<Tensor> last = table_rows(f, unsqueezed(f, rows.time, 1), 2, width);
  const Tensor normed = modulated(f, bare_norm(f, "norm_out", hidden, width), last[1], last[0]);
  denoiser_loss(f, f.linear("proj_out", normed, width, model.sizes.out_channels), {tokens, model.sizes.out_channels});
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"LTXVideoTransformer3D", "LTXVideoTransformer3DModel"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  constexpr std::int64_t kHeads = 32;
  const std::int64_t width = denoiser_tree(t, "proj_in", "proj_out");
  t.set("num_attention_heads", kHeads);
  t.set("attention_head_dim", std::max<std::int64_t>(width / kHeads, 1));
  t.count("num_layers", "transformer_blocks");
  t.size("cross_attention_dim", "transformer_blocks.0.attn2.to_k", "in_features");
  t.size("caption_channels", "caption_projection.linear_1", "in_features");
  t.flag("attention_bias", "transformer_blocks.0.attn1.to_q");
  t.flag("attention_out_bias", "transformer_blocks.0.attn1.to_out.0");
  t.assume("32 heads, as LTX-Video has");
}

inline constexpr Architecture kArchitecture = {.name = "ltx",
                                               .model_types = names<"LTXVideoTransformer3DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .depends_on_images = true,
                                               .blocks = kBlocks};

}  // namespace ltx

}  // namespace gpumem::architectures
