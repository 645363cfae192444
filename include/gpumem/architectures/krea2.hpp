// Krea 2: features of several layers of the text encoder, fused by a small transformer; then one sequence of text and
// image tokens, whose attention is gated and whose heads share keys.
// Source: diffusers 0.40, models/transformers/transformer_krea2.py. Prompts hold padding, so attention has a mask.
#pragma once

#include <array>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/denoiser.hpp"
#include "gpumem/architectures/dit_parts.hpp"

namespace gpumem::architectures {

namespace krea2 {

inline constexpr std::array<std::string_view, 1> kBlocks = {"Krea2TransformerBlock"};

/// Sizes of one kind of block.
struct Sides {
  std::int64_t width = 1;
  std::int64_t heads = 1;
  std::int64_t key_heads = 1;
  std::int64_t inner = 1;

  [[nodiscard]] std::int64_t head_width() const { return width / heads; }
};

struct Model {
  Sides image;
  Sides text;
  std::int64_t layers = 28;
  std::int64_t channels = 64;
  std::int64_t sinusoids = 256;
  std::int64_t tapped = 12;  ///< layers of the text encoder
  std::int64_t layerwise = 2;
  std::int64_t refiners = 2;
};

inline Model read(ConfigFields& config) {
  Model model;
  const DitSizes sizes =
      dit_sizes(config, {.heads = 48, .channels = 64, .text_width = 2560, .text_field = "text_hidden_dim"});
  model.channels = sizes.channels;
  model.image = {sizes.width, sizes.heads, dit_width(config, "num_key_value_heads", 12),
                 dit_width(config, "intermediate_size", 16384)};
  model.text = {sizes.text_width, dit_width(config, "text_num_attention_heads", 20),
                dit_width(config, "text_num_key_value_heads", 20), dit_width(config, "text_intermediate_size", 6912)};
  model.layers = config.layers_or("num_layers", 28);
  model.sinusoids = dit_width(config, "timestep_embed_dim", 256);
  model.tapped = dit_width(config, "num_text_layers", 12);
  model.layerwise = dit_layers(config, "num_layerwise_text_blocks", 2);
  model.refiners = dit_layers(config, "num_refiner_text_blocks", 2);
  if (model.tapped > 1024) config.fail("is more layers than gpumem takes", "num_text_layers");
  if (sizes.head_width % 2 != 0) config.fail("must be even", "attention_head_dim");
  if (model.image.heads % model.image.key_heads != 0) config.fail("does not divide the heads", "num_key_value_heads");
  const bool whole = model.text.width % model.text.heads == 0 && model.text.heads % model.text.key_heads == 0;
  if (!whole) config.fail("does not divide text_hidden_dim, or not evenly by its keys", "text_num_attention_heads");
  config.ignore({"axes_dims_rope", "rope_theta", "norm_eps"});
  return model;
}

/// Krea2RMSNorm: of a float32 copy, and back.
inline Tensor norm(Forward& f, std::string_view name, Tensor input, std::int64_t width) {
  return f.as_type_of(torch_rms_norm(f, name, f.to(input, "float32"), width), input);
}

inline Tensor attention(Forward& f, const Sides& sides, Tensor input, const PairTables* tables,
                        std::optional<Tensor> mask) {
  const InModule inside(f, "attn", "Krea2Attention");
  const std::int64_t each = sides.head_width();
  const std::int64_t times = sides.heads / sides.key_heads;
  const auto heads = [&](std::string_view name, std::int64_t count) {
    return as_heads(f, f.linear(name, input, sides.width, count * each, {.bias = false}), each);
  };
  Tensor query = heads("to_q", sides.heads);
  Tensor key = heads("to_k", sides.key_heads);
  Tensor value = heads("to_v", sides.key_heads);
  const Tensor gate = f.linear("to_gate", input, sides.width, sides.width, {.bias = false});
  query = norm(f, "norm_q", query, each);
  key = norm(f, "norm_k", key, each);
  if (tables != nullptr) {
    query = turn_pairs(f, query, *tables);
    key = turn_pairs(f, key, *tables);
  }
  const auto repeated = [&](Tensor tensor) {
    const Tensor view = f.call("expand", {unsqueezed(f, tensor, 3)}, {{"shape", Sizes{-1, -1, -1, times, -1}}});
    return f.flatten(f.call("clone", {view}), 2, 3);
  };
  if (times > 1) {
    key = repeated(key);
    value = repeated(value);
  }
  if (mask) mask = f.as_type_of(*mask, query);
  const Tensor mixed = f.multiply(attend_heads(f, query, key, value, mask), f.call("sigmoid", {gate}));
  const InModule out(f, "to_out", "ModuleList");
  return f.linear("0", mixed, sides.width, sides.width, {.bias = false});
}

inline Tensor feed_forward(Forward& f, const Sides& sides, Tensor input) {
  const InModule inside(f, "ff", "Krea2SwiGLU");
  const Tensor open = f.call("silu", {f.linear("gate", input, sides.width, sides.inner, {.bias = false})});
  const Tensor up = f.linear("up", input, sides.width, sides.inner, {.bias = false});
  return f.linear("down", f.multiply(open, up), sides.inner, sides.width, {.bias = false});
}

inline Tensor text_block(Forward& f, const Sides& sides, Tensor hidden, std::optional<Tensor> mask) {
  const Tensor attended = f.add(hidden, attention(f, sides, norm(f, "norm1", hidden, sides.width), nullptr, mask));
  return f.add(attended, feed_forward(f, sides, norm(f, "norm2", attended, sides.width)));
}

/// Krea2TextFusion: blocks across the text encoder's layers, for each token by itself, one layer of them all, and
/// blocks across the tokens.
inline Tensor fused_text(Forward& f, const Model& model, const DenoiserSample& sample, Tensor mask) {
  const Sides& sides = model.text;
  const Tensor features = f.rows_input("encoder_hidden_states", sample.text, {model.tapped, sides.width});
  const InModule inside(f, "text_fusion", "Krea2TextFusion");
  Tensor hidden = stack(f, "layerwise_blocks", "Krea2TextFusionBlock", model.layerwise, features,
                        [&](Tensor x, std::int64_t) { return text_block(f, sides, x, {}); });
  hidden = f.permute(f.unflatten(hidden, 0, {-1, sample.text}), {0, 1, 3, 2});
  hidden = f.flatten(f.linear("projector", hidden, model.tapped, 1, {.bias = false}), 2, 3);
  return stack(f, "refiner_blocks", "Krea2TextFusionBlock", model.refiners, hidden,
               [&](Tensor x, std::int64_t) { return text_block(f, sides, x, mask); });
}

inline Tensor block(Forward& f, const Model& model, Tensor hidden, Tensor rows, const PairTables& tables, Tensor mask) {
  const Sides& sides = model.image;
  const std::vector<Tensor> parts = table_rows(f, rows, 6, sides.width);
  const auto scaled = [&](std::string_view name, Tensor tensor, Tensor scale, Tensor shift) {
    return f.add(f.multiply(f.call("add", {scale}), norm(f, name, tensor, sides.width)), shift);
  };
  const Tensor normed = scaled("norm1", hidden, parts[0], parts[1]);
  const Tensor attended = gated_sum(f, hidden, parts[2], attention(f, sides, normed, &tables, mask));
  const Tensor again = scaled("norm2", attended, parts[3], parts[4]);
  return gated_sum(f, attended, parts[5], feed_forward(f, sides, again));
}

inline Tensor text_tokens(Forward& f, const Model& model, Tensor text) {
  const InModule inside(f, "txt_in", "Krea2TextProjection");
  const Tensor normed = norm(f, "norm", text, model.text.width);
  const Tensor open = f.call("gelu", {f.linear("linear_1", normed, model.text.width, model.image.width)});
  return f.linear("linear_2", open, model.image.width, model.image.width);
}

inline void write(ConfigFields& config, Head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const std::int64_t width = model.image.width;
  const DenoiserSample sample = denoiser_sample(f, {.side = 8, .patch = 2, .usual_text = 512});
  const std::int64_t tokens = sample.height * sample.width / 4;
  const Tensor sinusoids = unsqueezed(f, timestep_input(f, "timestep", model.sinusoids), 1);
  Tensor time = 0;
  {
    const InModule inside(f, "time_embed", "Krea2TimestepEmbedding");
    time =
        f.linear("linear_2", f.call("gelu", {f.linear("linear_1", sinusoids, model.sinusoids, width)}), width, width);
  }
  const Tensor rows =
      f.unflatten(f.flatten(f.linear("time_mod_proj", f.call("gelu", {time}), width, 6 * width), 1, 2), 1, {6, width});
  const Tensor prompt = f.sample_input("encoder_attention_mask", {sample.text});
  const Tensor text_mask = seen_tokens(f, prompt);
  const Tensor text = text_tokens(f, model, fused_text(f, model, sample, text_mask));
  const Tensor latents = token_latents(f, tokens, model.channels);
  Tensor hidden = f.concatenate({text, f.linear("img_in", latents, model.channels, width)}, 1);
  const PairTables tables = pair_tables(f, {hidden}, model.image.head_width());
  const Tensor mask = seen_tokens(f, hidden);
  hidden = stack(f, "transformer_blocks", kBlocks[0], model.layers, hidden,
                 [&](Tensor x, std::int64_t) { return block(f, model, x, rows, tables, mask); });
  const Tensor image = f.slice(hidden, 1, sample.text, Forward::kRest);
  const InModule inside(f, "final_layer", "Krea2FinalLayer");
  const std::vector<Tensor> last = table_rows(f, time, 2, width);
  const Tensor normed = f.add(f.multiply(f.call("add", {last[0]}), norm(f, "norm", image, width)), last[1]);
  denoiser_loss(f, f.linear("linear", normed, width, model.channels), {tokens, model.channels});
}

inline constexpr Architecture kArchitecture = {.name = "krea2",
                                               .model_types = names<"Krea2Transformer2DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .blocks = kBlocks};

}  // namespace krea2

}  // namespace gpumem::architectures
