// PixArt-alpha and PixArt-sigma: self-attention, attention to the prompt and a feed-forward layer, with one table of
// scales, shifts and gates a block. Prompts are padded to one length, so attention to them has a mask.
// Source: diffusers 0.38, models/transformers/pixart_transformer_2d.py, models/attention.py (BasicTransformerBlock with
// ada_norm_single).
#pragma once

#include <array>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/denoiser.hpp"
#include "gpumem/architectures/dit_parts.hpp"

namespace gpumem::architectures {

namespace pixart_detail {

inline constexpr std::array<std::string_view, 1> kClasses = {"PixArtTransformer2DModel"};
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
  return f.layer(name, "LayerNorm", "layer_norm", {input},
                 {{"normalized_shape", model.sizes.width}, {"elementwise_affine", model.affine}});
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
  Tensor hidden = patch_embedding(f, latents, model.sizes.channels, width, model.patch, tokens, model.places());
  const SingleRows rows = single_rows(f, width, {.sized = model.sized});
  if (model.captions > 0) {
    prompt = text_projection(f, "caption_projection", prompt, model.captions, width, "gelu_pytorch_tanh");
  }
  hidden = stack(f, "transformer_blocks", kBlocks[0], model.layers, hidden,
                 [&](Tensor x, std::int64_t) { return block(f, model, x, prompt, mask, rows.rows); });
  const std::vector<Tensor> last = table_rows(f, unsqueezed(f, rows.time, 1), 2, width);
  const Tensor normed = modulated(f, bare_norm(f, "norm_out", hidden, width), last[1], last[0]);
  const std::int64_t out = model.patch * model.patch * model.sizes.out_channels;
  const Tensor output = f.call("clone", {f.linear("proj_out", normed, width, out)});
  // Where the model predicts a variance too, the loss reads the first half.
  const bool twice = model.sizes.out_channels == 2 * model.sizes.channels;
  const Tensor read = twice ? f.slice(output, 2, 0, out / 2) : output;
  denoiser_loss(f, read, {tokens, twice ? out / 2 : out});
}

}  // namespace pixart_detail

[[nodiscard]] inline const Architecture& pixart() {
  static constexpr Architecture kArchitecture = {.name = "pixart",
                                                 .model_types = pixart_detail::kClasses,
                                                 .usual_head = Head::none,
                                                 .write = pixart_detail::write,
                                                 .blocks = pixart_detail::kBlocks};
  return kArchitecture;
}

// LTX-Video 0.9: self-attention, attention to the prompt and a feed-forward layer, with one table of scales, shifts and
// gates a block. Rotary positions turn whole queries and keys, before they are parted into heads.
// Source: diffusers 0.38, models/transformers/transformer_ltx.py.

namespace ltx_detail {

inline constexpr std::array<std::string_view, 1> kClasses = {"LTXVideoTransformer3DModel"};
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

}  // namespace ltx_detail

[[nodiscard]] inline const Architecture& ltx() {
  static constexpr Architecture kArchitecture = {.name = "ltx",
                                                 .model_types = ltx_detail::kClasses,
                                                 .usual_head = Head::none,
                                                 .write = ltx_detail::write,
                                                 .blocks = ltx_detail::kBlocks};
  return kArchitecture;
}

}  // namespace gpumem::architectures
