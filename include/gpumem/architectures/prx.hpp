// PRX: blocks whose image tokens ask the image's and the prompt's, which has keys and values alone; scales, shifts and
// gates come from a layer in each block.
// Source: diffusers 0.40, models/transformers/transformer_prx.py. A mask of the prompt's padding is not counted.
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

}  // namespace gpumem::architectures
