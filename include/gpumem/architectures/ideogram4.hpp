// Ideogram 4: one packed sequence of text and image tokens, each with features of both kinds; a mask of which tokens
// see each other, as large as the square of the sequence. Source: diffusers 0.40,
// models/transformers/transformer_ideogram4.py. With `_code` simpletuner: SimpleTuner 2026-08,
// helpers/models/ideogram/transformer.py and model.py: one layer makes queries, keys and values, norms are single
// kernels, and the text's features are projected when they are cached.
#pragma once

#include <array>
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

inline constexpr Architecture kArchitecture = {.name = "ideogram4",
                                               .model_types = names<"Ideogram4Transformer2DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .blocks = kBlocks};

}  // namespace ideogram4

}  // namespace gpumem::architectures
