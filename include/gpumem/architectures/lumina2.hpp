// Lumina-Image 2: blocks over the prompt's tokens, blocks over the image's, then blocks over both in one sequence;
// heads share keys. Each branch has a norm before and one behind it. Source: diffusers 0.38,
// models/transformers/transformer_lumina2.py, models/attention.py (LuminaFeedForward).
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

namespace lumina2 {

inline constexpr std::array<std::string_view, 1> kBlocks = {"Lumina2TransformerBlock"};

struct Model {
  std::int64_t width = 2304;
  std::int64_t heads = 24;
  std::int64_t key_heads = 8;
  std::int64_t layers = 26;
  std::int64_t refiners = 2;
  std::int64_t inner = 9216;
  std::int64_t channels = 16;
  std::int64_t out = 16;
  std::int64_t captions = 1024;
  std::int64_t patch = 2;

  [[nodiscard]] std::int64_t head_width() const { return width / heads; }
  [[nodiscard]] std::int64_t conditions() const { return std::min<std::int64_t>(width, 1024); }
};

inline Model read(ConfigFields& config) {
  Model model;
  model.width = dit_width(config, "hidden_size", 2304);
  model.heads = dit_width(config, "num_attention_heads", 24);
  model.key_heads = dit_width(config, "num_kv_heads", 8);
  model.layers = config.layers_or("num_layers", 26);
  model.refiners = dit_layers(config, "num_refiner_layers", 2);
  model.channels = dit_width(config, "in_channels", 16);
  model.out = dit_width(config, "out_channels", model.channels);
  model.captions = dit_width(config, "cap_feat_dim", 1024);
  model.patch = dit_patch(config);
  const std::int64_t multiple = dit_width(config, "multiple_of", 256);
  const std::int64_t inner = dit_inner(config, "ffn_dim_multiplier", 4 * model.width, 1.0);
  model.inner = (inner + multiple - 1) / multiple * multiple;
  if (model.width % (2 * model.heads) != 0) config.fail("does not divide hidden_size", "num_attention_heads");
  if (model.heads % model.key_heads != 0) config.fail("does not divide num_attention_heads", "num_kv_heads");
  config.ignore({"sample_size", "norm_eps", "scaling_factor", "axes_dim_rope", "axes_lens"});
  return model;
}

inline Tensor norm(Forward& f, const Model& model, std::string_view name, Tensor input) {
  return own_rms_norm(f, name, input, model.width);
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, const PairTables& tables, Tensor mask) {
  const InModule inside(f, "attn", "Attention");
  const std::int64_t each = model.head_width();
  const std::int64_t times = model.heads / model.key_heads;
  const auto heads = [&](std::string_view name, std::int64_t count) {
    return as_heads(f, f.linear(name, input, model.width, count * each, {.bias = false}), each);
  };
  Tensor query = heads("to_q", model.heads);
  Tensor key = heads("to_k", model.key_heads);
  const Tensor value = heads("to_v", model.key_heads);
  query = turn_complex(f, own_rms_norm(f, "norm_q", query, each), tables);
  key = turn_complex(f, own_rms_norm(f, "norm_k", key, each), tables);
  const auto repeated = [&](Tensor tensor) {
    const Tensor view = f.call("expand", {unsqueezed(f, tensor, 3)}, {{"shape", Sizes{-1, -1, -1, times, -1}}});
    return f.flatten(f.call("clone", {view}), 2, 3);
  };
  const Tensor keys = repeated(key);
  const Tensor mixed = attend_heads(f, query, keys, repeated(value), f.as_type_of(mask, query));
  const InModule out(f, "to_out", "ModuleList");
  return f.linear("0", mixed, model.width, model.width, {.bias = false});
}

/// LuminaFeedForward, whose silu is computed in float32.
inline Tensor feed_forward(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "feed_forward", "LuminaFeedForward");
  const Tensor gate = f.linear("linear_1", input, model.width, model.inner, {.bias = false});
  const Tensor open = f.as_type_of(f.call("silu", {f.to(gate, "float32")}), gate);
  const Tensor up = f.linear("linear_3", input, model.width, model.inner, {.bias = false});
  return f.linear("linear_2", f.multiply(open, up), model.inner, model.width, {.bias = false});
}

inline Tensor block(Forward& f, const Model& model, Tensor hidden, const PairTables& tables, Tensor mask,
                    std::optional<Tensor> time) {
  std::vector<Tensor> rows;
  Tensor normed = 0;
  if (time) {
    const InModule inside(f, "norm1", "LuminaRMSNormZero");
    rows = modulation(f, "linear", *time, model.conditions(), model.width, 4);
    normed = f.multiply(norm(f, model, "norm", hidden), f.call("add", {rows[0]}));
  } else {
    normed = norm(f, model, "norm1", hidden);
  }
  const auto joined = [&](Tensor residual, Tensor branch, std::size_t row) {
    return f.add(residual, time ? f.multiply(f.call("tanh", {rows[row]}), branch) : branch);
  };
  const Tensor mixed = norm(f, model, "norm2", attention(f, model, normed, tables, mask));
  const Tensor attended = joined(hidden, mixed, 1);
  Tensor again = norm(f, model, "ffn_norm1", attended);
  if (time) again = f.multiply(again, f.call("add", {rows[2]}));
  return joined(attended, norm(f, model, "ffn_norm2", feed_forward(f, model, again)), 3);
}

inline Tensor last(Forward& f, const Model& model, Tensor hidden, Tensor time, std::int64_t out) {
  const InModule inside(f, "norm_out", "LuminaLayerNormContinuous");
  const Tensor made = f.linear("linear_1", f.activation("silu", time, "silu"), model.conditions(), model.width);
  const Tensor scale = unsqueezed(f, f.call("add", {made}), 1);
  return f.linear("linear_2", f.multiply(bare_norm(f, "norm", hidden, model.width), scale), model.width, out);
}

inline void write(ConfigFields& config, Head, Forward& f) {
  constexpr std::int64_t kSinusoids = 256;
  const Model model = read(config);
  if (!config.status()) return;
  const DenoiserSample sample = denoiser_sample(f, {.side = 8, .patch = model.patch, .usual_text = 256});
  const std::int64_t tokens = sample.height * sample.width / (model.patch * model.patch);
  const std::int64_t area = model.patch * model.patch * model.channels;
  Tensor time = 0;
  Tensor text = text_input(f, sample, model.captions);
  {
    const Tensor sinusoids = timestep_input(f, "timestep", kSinusoids);
    const InModule inside(f, "time_caption_embed", "Lumina2CombinedTimestepCaptionEmbedding");
    time = timestep_embedding(f, "timestep_embedder", sinusoids, kSinusoids, model.conditions());
    const Tensor normed = own_rms_norm(f, "caption_embedder.0", text, model.captions);
    text = f.linear("caption_embedder.1", normed, model.captions, model.width);
  }
  const Tensor latents = f.call("clone", {token_latents(f, tokens, area)});
  Tensor image = f.linear("x_embedder", latents, area, model.width);
  const PairTables text_tables = pair_tables(f, {text}, model.head_width());
  const PairTables image_tables = pair_tables(f, {image}, model.head_width());
  const Tensor text_mask = seen_tokens(f, text);
  text = stack(f, "context_refiner", kBlocks[0], model.refiners, text,
               [&](Tensor x, std::int64_t) { return block(f, model, x, text_tables, text_mask, {}); });
  const Tensor image_mask = seen_tokens(f, image);
  image = stack(f, "noise_refiner", kBlocks[0], model.refiners, image,
                [&](Tensor x, std::int64_t) { return block(f, model, x, image_tables, image_mask, time); });
  Tensor hidden = f.concatenate({text, image}, 1);
  const PairTables tables = pair_tables(f, {hidden}, model.head_width());
  const Tensor mask = seen_tokens(f, hidden);
  hidden = stack(f, "layers", kBlocks[0], model.layers, hidden,
                 [&](Tensor x, std::int64_t) { return block(f, model, x, tables, mask, time); });
  const std::int64_t out = model.patch * model.patch * model.out;
  const Tensor output = f.slice(last(f, model, hidden, time, out), 1, sample.text, Forward::kRest);
  denoiser_loss(f, f.call("clone", {output}), {tokens, out});
}

inline constexpr Architecture kArchitecture = {.name = "lumina2",
                                               .model_types = names<"Lumina2Transformer2DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .blocks = kBlocks};

}  // namespace lumina2

// Z-Image: blocks over the image's tokens, blocks over the prompt's, then blocks over both in one sequence. Each branch
// has a norm before and one behind it. Sequences are padded to multiples of 32 tokens.
// Source: diffusers 0.40, models/transformers/transformer_z_image.py, without images as conditions.

namespace z_image {

inline constexpr std::array<std::string_view, 1> kBlocks = {"ZImageTransformerBlock"};
inline constexpr std::int64_t kPaddedTo = 32;
inline constexpr std::int64_t kConditions = 256;

struct Model {
  std::int64_t width = 3840;
  std::int64_t heads = 30;
  std::int64_t layers = 30;
  std::int64_t refiners = 2;
  std::int64_t channels = 16;
  std::int64_t captions = 2560;
  std::int64_t patch = 2;
  bool head_norm = true;

  [[nodiscard]] std::int64_t head_width() const { return width / heads; }
  [[nodiscard]] std::int64_t inner() const { return static_cast<std::int64_t>(static_cast<double>(width) / 3 * 8); }
  [[nodiscard]] std::int64_t conditions() const { return std::min(width, kConditions); }
};

inline Model read(ConfigFields& config) {
  Model model;
  model.width = dit_width(config, "dim", 3840);
  model.heads = dit_width(config, "n_heads", 30);
  model.layers = config.layers_or("n_layers", 30);
  model.refiners = dit_layers(config, "n_refiner_layers", 2);
  model.channels = dit_width(config, "in_channels", 16);
  model.captions = dit_width(config, "cap_feat_dim", 2560);
  model.patch = dit_list(config, "all_patch_size", {2})[0];
  model.head_norm = config.flag("qk_norm", true);
  const bool plain = dit_list(config, "all_f_patch_size", {1})[0] == 1;
  if (!plain) config.fail("must be 1", "all_f_patch_size");
  if (model.patch > 16) config.fail("is larger than gpumem takes", "all_patch_size");
  if (model.width % (2 * model.heads) != 0) config.fail("does not divide dim", "n_heads");
  if (config.size_or({"n_kv_heads"}, model.heads) != model.heads) config.fail("must be n_heads", "n_kv_heads");
  config.ignore({"norm_eps", "rope_theta", "t_scale", "axes_dims", "axes_lens"});
  return model;
}

inline std::int64_t padded(std::int64_t tokens) { return (tokens + kPaddedTo - 1) / kPaddedTo * kPaddedTo; }

inline Tensor norm(Forward& f, const Model& model, std::string_view name, Tensor input) {
  return own_rms_norm(f, name, input, model.width);
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, const PairTables& tables) {
  const InModule inside(f, "attention", "Attention");
  const std::int64_t each = model.head_width();
  const DitHeadNorm kind = model.head_norm ? DitHeadNorm::own_rms : DitHeadNorm::none;
  const auto heads = [&](std::string_view name) {
    return as_heads(f, f.linear(name, input, model.width, model.width, {.bias = false}), each);
  };
  Tensor query = heads("to_q");
  Tensor key = heads("to_k");
  const Tensor value = heads("to_v");
  query = dit_head_norm(f, "norm_q", query, each, kind);
  key = dit_head_norm(f, "norm_k", key, each, kind);
  query = turn_complex(f, query, tables);
  key = turn_complex(f, key, tables);
  const Tensor mixed = attend_heads(f, query, key, value);
  const InModule out(f, "to_out", "ModuleList");
  return f.linear("0", mixed, model.width, model.width, {.bias = false});
}

/// With conditions a branch's input is scaled, and what it leaves is gated by a tanh.
inline Tensor block(Forward& f, const Model& model, Tensor hidden, const PairTables& tables,
                    std::optional<Tensor> conditions) {
  std::vector<Tensor> rows;
  if (conditions) {
    const Tensor made = f.linear("adaLN_modulation.0", *conditions, model.conditions(), 4 * model.width);
    rows = row_chunks(f, made, 4, model.width);
    for (const std::size_t gate : {1U, 3U}) rows[gate] = f.call("tanh", {rows[gate]});
    for (const std::size_t scale : {0U, 2U}) rows[scale] = f.call("add", {rows[scale]});
  }
  const auto scaled = [&](Tensor tensor, std::size_t row) {
    return conditions ? f.multiply(tensor, rows[row]) : tensor;
  };
  const auto joined = [&](Tensor residual, Tensor branch, std::size_t row) {
    return f.add(residual, conditions ? f.multiply(rows[row], branch) : branch);
  };
  const Tensor normed = scaled(norm(f, model, "attention_norm1", hidden), 0);
  const Tensor mixed = norm(f, model, "attention_norm2", attention(f, model, normed, tables));
  const Tensor attended = joined(hidden, mixed, 1);
  const Tensor again = scaled(norm(f, model, "ffn_norm1", attended), 2);
  const Tensor fed = three_layers(f, "feed_forward", "FeedForward", again, model.width, model.inner());
  return joined(attended, norm(f, model, "ffn_norm2", fed), 3);
}

inline Tensor time_of(Forward& f, const Model& model) {
  constexpr std::int64_t kSinusoids = 256;
  constexpr std::int64_t kMiddle = 1024;
  const Tensor sinusoids = timestep_input(f, "timestep", kSinusoids);
  const InModule inside(f, "t_embedder", "TimestepEmbedder");
  const Tensor open = f.activation("mlp.1", f.linear("mlp.0", sinusoids, kSinusoids, kMiddle), "silu");
  return f.linear("mlp.2", open, kMiddle, model.conditions());
}

inline Tensor text_tokens(Forward& f, const Model& model, std::int64_t tokens) {
  const Tensor prompt = f.sample_input("cap_feats", {tokens, model.captions});
  const Tensor normed = own_rms_norm(f, "cap_embedder.0", prompt, model.captions);
  const Tensor text = f.linear("cap_embedder.1", normed, model.captions, model.width);
  f.parameter("cap_pad_token", {1, model.width});
  return f.call("clone", {text});  // pad_sequence
}

inline Tensor last(Forward& f, const Model& model, Tensor hidden, Tensor time, std::int64_t area) {
  const InModule inside(f, "all_final_layer." + std::to_string(model.patch) + "-1", "FinalLayer");
  const Tensor open = f.activation("adaLN_modulation.0", time, "silu");
  const Tensor scale = f.linear("adaLN_modulation.1", open, model.conditions(), model.width);
  const Tensor rows = unsqueezed(f, f.call("add", {scale}), 1);
  return f.linear("linear", f.multiply(bare_norm(f, "norm_final", hidden, model.width), rows), model.width, area);
}

inline void write(ConfigFields& config, Head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DenoiserSample sample = denoiser_sample(f, {.side = 8, .patch = model.patch, .usual_text = 256});
  const std::int64_t tokens = sample.height * sample.width / (model.patch * model.patch);
  const std::int64_t area = model.patch * model.patch * model.channels;
  const Tensor latents = f.call("clone", {token_latents(f, padded(tokens), area)});
  const Tensor time = time_of(f, model);
  Tensor image = f.linear("all_x_embedder." + std::to_string(model.patch) + "-1", latents, area, model.width);
  f.parameter("x_pad_token", {1, model.width});
  image = f.call("clone", {image});  // pad_sequence
  const PairTables image_tables = pair_tables(f, {image}, model.head_width());
  image = stack(f, "noise_refiner", kBlocks[0], model.refiners, image,
                [&](Tensor x, std::int64_t) { return block(f, model, x, image_tables, time); });
  Tensor text = text_tokens(f, model, padded(sample.text));
  const PairTables text_tables = pair_tables(f, {text}, model.head_width());
  text = stack(f, "context_refiner", kBlocks[0], model.refiners, text,
               [&](Tensor x, std::int64_t) { return block(f, model, x, text_tables, {}); });
  Tensor hidden = f.concatenate({image, text}, 1);
  const PairTables tables = pair_tables(f, {hidden}, model.head_width());
  hidden = stack(f, "layers", kBlocks[0], model.layers, hidden,
                 [&](Tensor x, std::int64_t) { return block(f, model, x, tables, time); });
  const Tensor output = f.slice(last(f, model, hidden, time, area), 1, 0, tokens);
  denoiser_loss(f, f.call("clone", {output}), {tokens, area});
}

inline constexpr Architecture kArchitecture = {.name = "z_image",
                                               .model_types = names<"ZImageTransformer2DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .blocks = kBlocks};

}  // namespace z_image

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

inline constexpr Architecture kArchitecture = {.name = "omnigen",
                                               .model_types = names<"OmniGenTransformer2DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .blocks = kBlocks};

}  // namespace omnigen

}  // namespace gpumem::architectures
