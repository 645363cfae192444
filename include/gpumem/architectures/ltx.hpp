// LTX-Video 0.9: self-attention, attention to the prompt and a feed-forward layer, with one table of scales, shifts and
// gates a block. Rotary positions turn whole queries and keys, before they are parted into heads.
// Source: diffusers 0.38, models/transformers/transformer_ltx.py.
#pragma once

#include <array>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/denoiser.hpp"
#include "gpumem/architectures/dit_parts.hpp"

namespace gpumem::architectures {

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
