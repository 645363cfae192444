// Ideogram 4: one packed sequence of text and image tokens, each with features of both kinds; a mask of which tokens
// see each other, as large as the square of the sequence. Source: diffusers 0.40,
// models/transformers/transformer_ideogram4.py. With `_code` simpletuner: SimpleTuner 2026-08,
// helpers/models/ideogram/transformer.py and model.py: one layer makes queries, keys and values, norms are single
// kernels, and the text's features are projected when they are cached.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/denoiser.hpp"
#include "gpumem/architectures/dit_parts.hpp"

namespace gpumem::architectures {

namespace ideogram4 {

inline constexpr std::array<std::string_view, 1> kBlocks = {"Ideogram4TransformerBlock"};

struct Model {
  DitSizes sizes;
  std::int64_t layers = 34;
  std::int64_t inner = 12288;
  std::int64_t conditions = 512;
  bool copied = false;  ///< SimpleTuner's copy of the class
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = dit_sizes(
      config, {.heads = 18, .head_width = 256, .channels = 128, .text_width = 53248, .text_field = "llm_features_dim"});
  model.layers = config.layers_or("num_layers", 34);
  model.inner = dit_width(config, "intermediate_size", 12288);
  model.conditions = dit_width(config, "adaln_dim", 512);
  model.copied = dit_code(config) == DitCode::simpletuner;
  if (model.sizes.head_width % 2 != 0) config.fail("must be even", "attention_head_dim");
  config.ignore({"rope_theta", "mrope_section", "norm_eps"});
  return model;
}

inline Tensor norm(Forward& f, const Model& model, std::string_view name, Tensor input, std::int64_t width) {
  return model.copied ? torch_rms_norm(f, name, input, width) : own_rms_norm(f, name, input, width);
}

/// Queries, keys and values, [N, S, heads, width].
inline std::array<Tensor, 3> projected(Forward& f, const Model& model, Tensor input) {
  const std::int64_t width = model.sizes.width;
  const std::int64_t each = model.sizes.head_width;
  const Linear plain = {.bias = false};
  std::array<Tensor, 3> made{};
  if (model.copied) {
    const std::vector<Tensor> parts = f.split(f.linear("qkv", input, width, 3 * width, plain), 2, Sizes(3, width));
    for (std::size_t at = 0; at < made.size(); ++at) made[at] = as_heads(f, parts[at], each);
    return made;
  }
  constexpr std::array<std::string_view, 3> kNames = {"to_q", "to_k", "to_v"};
  for (std::size_t at = 0; at < made.size(); ++at) {
    made[at] = as_heads(f, f.linear(kNames[at], input, width, width, plain), each);
  }
  return made;
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, const PairTables& tables) {
  const InModule inside(f, "attention", "Ideogram4Attention");
  const std::int64_t width = model.sizes.width;
  const std::int64_t each = model.sizes.head_width;
  const auto [first, second, value] = projected(f, model, input);
  Tensor query = norm(f, model, "norm_q", first, each);
  Tensor key = norm(f, model, "norm_k", second, each);
  query = turn_halves(f, query, tables, each);
  key = turn_halves(f, key, tables, each);
  // PyTorch makes numbers of a mask of booleans in each call.
  const Tensor mask = f.call("causal_mask", {input}, {{"padded", true}});
  const Tensor mixed = attend_heads(f, query, key, value, mask);
  if (model.copied) return f.linear("o", mixed, width, width, {.bias = false});
  const InModule out(f, "to_out", "ModuleList");
  return f.linear("0", mixed, width, width, {.bias = false});
}

inline Tensor block(Forward& f, const Model& model, Tensor hidden, Tensor conditions, const PairTables& tables) {
  const std::int64_t width = model.sizes.width;
  const Tensor made = f.linear("adaln_modulation", conditions, model.conditions, 4 * width);
  std::vector<Tensor> rows = chunks(f, made, 2, 4, width);
  for (const std::size_t gate : {1U, 3U}) rows[gate] = f.call("tanh", {rows[gate]});
  for (const std::size_t scale : {0U, 2U}) rows[scale] = f.call("add", {rows[scale]});
  const Tensor normed = f.multiply(norm(f, model, "attention_norm1", hidden, width), rows[0]);
  const Tensor mixed = norm(f, model, "attention_norm2", attention(f, model, normed, tables), width);
  const Tensor attended = gated_sum(f, hidden, rows[1], mixed);
  const Tensor again = f.multiply(norm(f, model, "ffn_norm1", attended, width), rows[2]);
  const Tensor fed = three_layers(f, "feed_forward", "Ideogram4MLP", again, width, model.inner);
  return gated_sum(f, attended, rows[3], norm(f, model, "ffn_norm2", fed, width));
}

inline Tensor conditions_of(Forward& f, const Model& model) {
  const std::int64_t width = model.sizes.width;
  const Tensor sinusoids = timestep_input(f, "timestep", width);
  Tensor time = 0;
  {
    const InModule inside(f, "t_embedding", "Ideogram4EmbedScalar");
    time = f.linear("mlp_out", f.call("silu", {f.linear("mlp_in", sinusoids, width, width)}), width, width);
  }
  return f.call("silu", {f.linear("adaln_proj", unsqueezed(f, time, 1), width, model.conditions)});
}

/// The text's features at the model's width. SimpleTuner's copy holds the projection, and is given what it made.
inline Tensor projected_text(Forward& f, const Model& model, Tensor text) {
  const std::int64_t width = model.sizes.width;
  const std::int64_t from = model.sizes.text_width;
  if (!model.copied) return f.linear("llm_cond_proj", norm(f, model, "llm_cond_norm", text, from), from, width);
  (void)f.parameter("llm_cond_proj.weight", {from + 1, width}, true);
  (void)f.parameter("llm_cond_norm.weight", {from}, true);
  return text;
}

/// Features of both kinds for every token, those of the other kind zero.
inline Tensor tokens_of(Forward& f, const Model& model, std::int64_t tokens) {
  const std::int64_t width = model.sizes.width;
  const Tensor latents = token_latents(f, tokens, model.sizes.channels);
  const Tensor features =
      f.sample_input("encoder_hidden_states", {tokens, model.copied ? width : model.sizes.text_width});
  const Tensor text = f.scale(features);
  const Tensor image = f.scale(f.linear("input_proj", f.scale(latents), model.sizes.channels, width));
  const Tensor projected = projected_text(f, model, text);
  const Tensor told = f.scale(model.copied ? f.as_type_of(projected, image) : projected);
  const Tensor sum = f.add(image, told);
  const Tensor kinds = f.sample_input("indicator", {tokens});
  return f.add(sum, f.embedding("embed_image_indicator", kinds, 2, width));
}

inline void write(ConfigFields& config, Head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const std::int64_t width = model.sizes.width;
  const DenoiserSample sample = denoiser_sample(f, {.side = 16, .usual_text = 256});
  const std::int64_t tokens = sample.height * sample.width + sample.text;
  const Tensor conditions = conditions_of(f, model);
  Tensor hidden = tokens_of(f, model, tokens);
  const auto table = [&]() {
    const Tensor made = f.call("rotary_table", {hidden}, {{"width", model.sizes.head_width}, {"padded", true}});
    return f.as_type_of(f.permute(made, {0, 2, 1, 3}), hidden);
  };
  const Tensor cosines = table();
  const PairTables tables = {cosines, table()};
  f.call("causal_mask", {hidden}, {{"padded", true}, {"dtype", std::string("bool")}});
  hidden = stack(f, "layers", kBlocks[0], model.layers, hidden,
                 [&](Tensor x, std::int64_t) { return block(f, model, x, conditions, tables); });
  const InModule inside(f, "final_layer", "Ideogram4FinalLayer");
  const Tensor made = f.linear("adaln_modulation", f.call("silu", {conditions}), model.conditions, width);
  const Tensor scale = f.call("add", {made});
  const Tensor normed = f.multiply(bare_norm(f, "norm_final", hidden, width), scale);
  denoiser_loss(f, f.linear("linear", normed, width, model.sizes.channels), {tokens, model.sizes.channels});
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Ideogram4Transformer2D", "Ideogram4Transformer2DModel"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const std::int64_t width = denoiser_tree(t, "input_proj", "final_layer.linear");
  t.count("num_layers", "layers");
  t.size("intermediate_size", "layers.0.feed_forward.w1", "out_features");
  t.size("adaln_dim", "adaln_proj", "out_features");
  t.size("llm_features_dim", "llm_cond_proj", "in_features");
  denoiser_heads_tree(t, width, 256, "Ideogram 4");
}

inline constexpr Architecture kArchitecture = {.name = "ideogram4",
                                               .model_types = names<"Ideogram4Transformer2DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .depends_on_images = true,
                                               .blocks = kBlocks};

}  // namespace ideogram4

// Krea 2: features of several layers of the text encoder, fused by a small transformer; then one sequence of text and
// image tokens, whose attention is gated and whose heads share keys.
// Source: diffusers 0.40, models/transformers/transformer_krea2.py. Prompts hold padding, so attention has a mask.

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

inline constexpr auto kTreeClasses = std::to_array<ModelClass>({{"Krea2Transformer2D", "Krea2Transformer2DModel"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  constexpr std::int64_t kHead = 128;
  const std::string text = "text_fusion.refiner_blocks.0.";
  const std::int64_t width = denoiser_tree(t, "img_in", "final_layer.linear");
  t.part("num_key_value_heads", "transformer_blocks.0.attn.to_k", "out_features", kHead);
  t.size("intermediate_size", "transformer_blocks.0.ff.gate", "out_features");
  t.count("num_layers", "transformer_blocks");
  t.size("text_hidden_dim", "txt_in.linear_1", "in_features");
  t.part("text_num_attention_heads", text + "attn.to_q", "out_features", kHead);
  t.part("text_num_key_value_heads", text + "attn.to_k", "out_features", kHead);
  t.size("text_intermediate_size", text + "ff.gate", "out_features");
  t.size("num_text_layers", "text_fusion.projector", "in_features");
  t.count("num_layerwise_text_blocks", "text_fusion.layerwise_blocks");
  t.count("num_refiner_text_blocks", "text_fusion.refiner_blocks");
  t.size("timestep_embed_dim", "time_embed.linear_1", "in_features");
  denoiser_heads_tree(t, width, kHead, "Krea 2");
}

inline constexpr Architecture kArchitecture = {.name = "krea2",
                                               .model_types = names<"Krea2Transformer2DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .classes = kTreeClasses,
                                               .read_tree = read_tree,
                                               .depends_on_images = true,
                                               .blocks = kBlocks};

}  // namespace krea2

}  // namespace gpumem::architectures
