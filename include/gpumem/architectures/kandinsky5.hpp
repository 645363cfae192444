// Kandinsky 5: blocks over the prompt's tokens, then blocks of self-attention, attention to the prompt and a
// feed-forward layer over the video's. Norms, scales, shifts and gates are computed in float32. Source: diffusers 0.38,
// models/transformers/transformer_kandinsky.py, with dense attention (attention_type regular).
#pragma once

#include <array>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/denoiser.hpp"
#include "gpumem/architectures/dit_parts.hpp"

namespace gpumem::architectures {

namespace kandinsky5 {

inline constexpr std::array<std::string_view, 2> kBlocks = {"Kandinsky5TransformerEncoderBlock",
                                                            "Kandinsky5TransformerDecoderBlock"};

struct Model {
  std::int64_t channels = 4;  ///< of what the model reads
  std::int64_t out = 4;
  std::int64_t text = 3584;
  std::int64_t pooled = 768;
  std::int64_t time = 512;
  std::int64_t width = 2048;
  std::int64_t inner = 5120;
  std::int64_t head_width = 64;
  std::int64_t text_layers = 2;
  std::int64_t layers = 32;
  Sizes patch = {1, 2, 2};

  [[nodiscard]] std::int64_t patch_elements() const { return patch[0] * patch[1] * patch[2]; }
};

inline Model read(ConfigFields& config) {
  Model model;
  model.channels = dit_width(config, "in_visual_dim", 4);
  if (config.flag("visual_cond", false)) model.channels = 2 * model.channels + 1;
  model.out = dit_width(config, "out_visual_dim", 4);
  model.text = dit_width(config, "in_text_dim", 3584);
  model.pooled = dit_width(config, "in_text_dim2", 768);
  model.time = dit_width(config, "time_dim", 512);
  model.width = dit_width(config, "model_dim", 2048);
  model.inner = dit_width(config, "ff_dim", 5120);
  const Sizes axes = dit_list(config, "axes_dims", {16, 24, 24});
  model.head_width = axes[0] + axes[1] + axes[2];
  model.text_layers = dit_layers(config, "num_text_blocks", 2);
  model.layers = config.layers_or("num_visual_blocks", 32);
  model.patch = dit_list(config, "patch_size", {1, 2, 2});
  const bool small = model.patch[0] <= 16 && model.patch[1] <= 16 && model.patch[2] == model.patch[1];
  if (!small) config.fail("must be no larger than 16, and alike in height and width", "patch_size");
  if (model.head_width % 2 != 0 || model.width % model.head_width != 0) {
    config.fail("must add up to an even part of model_dim", "axes_dims");
  }
  if (config.text({"attention_type"}, "regular") != "regular") {
    config.fail("is sparse attention, which gpumem does not know", "attention_type");
  }
  config.ignore({"attention_causal", "attention_local", "attention_glob", "attention_window", "attention_P",
                 "attention_wT", "attention_wW", "attention_wH", "attention_add_sta", "attention_method"});
  return model;
}

/// Kandinsky5Modulation: [N, 1, count width] in parts.
inline std::vector<Tensor> rows_of(Forward& f, const Model& model, std::string_view name, Tensor time,
                                   std::int64_t count) {
  const InModule inside(f, name, "Kandinsky5Modulation");
  const Tensor open = f.activation("activation", time, "silu");
  return row_chunks(f, f.linear("out_layer", open, model.time, count * model.width), count, model.width);
}

/// (norm(x.float()) (scale.float() + 1) + shift.float()), in the type of x.
inline Tensor scaled(Forward& f, const Model& model, std::string_view name, Tensor hidden, Tensor shift, Tensor scale) {
  const Tensor normed = bare_norm(f, name, f.to(hidden, "float32"), model.width);
  return f.as_type_of(modulated(f, normed, f.to(scale, "float32"), f.to(shift, "float32")), hidden);
}

inline Tensor joined(Forward& f, Tensor hidden, Tensor gate, Tensor branch) {
  const Tensor wide = f.to(hidden, "float32");
  const Tensor gated = f.multiply(f.to(gate, "float32"), f.to(branch, "float32"));
  return f.as_type_of(f.add(wide, gated), hidden);
}

/// Each pair times a matrix of its own, in float32. `matrices`: [1, S, 1, 2 width].
inline Tensor turned(Forward& f, const Model& model, Tensor heads, Tensor matrices) {
  const Tensor pairs = f.to(f.unflatten(heads, 3, {model.head_width / 2, 1, 2}), "float32");
  const Tensor products = f.multiply(f.unflatten(matrices, 3, {model.head_width / 2, 2, 2}), pairs);
  const Tensor sums = f.call("sum", {products}, {{"dim", std::int64_t{-1}}});
  return f.as_type_of(f.flatten(sums, 3, 4), heads);
}

inline Tensor attention(Forward& f, const Model& model, std::string_view name, Tensor input, Tensor source,
                        std::optional<Tensor> matrices) {
  const InModule inside(f, name, "Kandinsky5Attention");
  const std::int64_t each = model.head_width;
  const auto heads = [&](std::string_view layer, Tensor from) {
    return as_heads(f, f.linear(layer, from, model.width, model.width), each);
  };
  const auto normed = [&](std::string_view layer, Tensor tensor) {
    return f.as_type_of(torch_rms_norm(f, layer, f.to(tensor, "float32"), each), tensor);
  };
  const Tensor first = heads("to_query", input);
  const Tensor second = heads("to_key", source);
  const Tensor value = heads("to_value", source);
  Tensor query = normed("query_norm", first);
  Tensor key = normed("key_norm", second);
  if (matrices) {
    query = turned(f, model, query, *matrices);
    key = turned(f, model, key, *matrices);
  }
  return f.linear("out_layer", attend_heads(f, query, key, value), model.width, model.width);
}

inline Tensor feed_forward(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "feed_forward", "Kandinsky5FeedForward");
  const Tensor wide = f.linear("in_layer", input, model.width, model.inner, {.bias = false});
  return f.linear("out_layer", f.layer("activation", "GELU", "gelu", {wide}, {}), model.inner, model.width,
                  {.bias = false});
}

inline Tensor text_block(Forward& f, const Model& model, Tensor text, Tensor time, Tensor matrices) {
  const std::vector<Tensor> rows = rows_of(f, model, "text_modulation", time, 6);
  const Tensor normed = scaled(f, model, "self_attention_norm", text, rows[0], rows[1]);
  const Tensor attended = joined(f, text, rows[2], attention(f, model, "self_attention", normed, normed, matrices));
  const Tensor again = scaled(f, model, "feed_forward_norm", attended, rows[3], rows[4]);
  return joined(f, attended, rows[5], feed_forward(f, model, again));
}

inline Tensor visual_block(Forward& f, const Model& model, Tensor hidden, Tensor text, Tensor time, Tensor matrices) {
  const std::vector<Tensor> rows = rows_of(f, model, "visual_modulation", time, 9);
  const Tensor normed = scaled(f, model, "self_attention_norm", hidden, rows[0], rows[1]);
  const Tensor own = joined(f, hidden, rows[2], attention(f, model, "self_attention", normed, normed, matrices));
  const Tensor asking = scaled(f, model, "cross_attention_norm", own, rows[3], rows[4]);
  const Tensor told = joined(f, own, rows[5], attention(f, model, "cross_attention", asking, text, {}));
  const Tensor again = scaled(f, model, "feed_forward_norm", told, rows[6], rows[7]);
  return joined(f, told, rows[8], feed_forward(f, model, again));
}

/// Kandinsky5TextEmbeddings.
inline Tensor embedded_text(Forward& f, std::string_view name, Tensor text, std::int64_t in, std::int64_t out) {
  const InModule inside(f, name, "Kandinsky5TextEmbeddings");
  const Tensor made = f.linear("in_layer", text, in, out);
  return f.as_type_of(f.layer_norm("norm", made, out), made);
}

inline Tensor time_of(Forward& f, const Model& model) {
  const Tensor sinusoids = timestep_input(f, "timestep", model.width);
  Tensor time = 0;
  {
    const InModule inside(f, "time_embeddings", "Kandinsky5TimeEmbeddings");
    const Tensor open = f.activation("activation", f.linear("in_layer", sinusoids, model.width, model.time), "silu");
    time = f.linear("out_layer", open, model.time, model.time);
  }
  const Tensor pooled = f.sample_input("pooled_projections", {model.pooled});
  return f.add(time, embedded_text(f, "pooled_text_embeddings", pooled, model.pooled, model.time));
}

inline Tensor matrices_of(Forward& f, const Model& model, Tensor tokens) {
  const Tensor table =
      f.call("rotary_table", {tokens}, {{"width", 2 * model.head_width}, {"dtype", std::string("float32")}});
  return f.permute(table, {0, 2, 1, 3});
}

inline void write(ConfigFields& config, Head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DenoiserSample sample = denoiser_sample(
      f, {.side = 8, .frame = 4, .patch = model.patch[1], .usual_side = 512, .usual_frames = 121, .usual_text = 256});
  const std::int64_t tokens =
      sample.frames / model.patch[0] * (sample.height / model.patch[1]) * (sample.width / model.patch[2]);
  const std::int64_t area = model.patch_elements() * model.channels;
  const Tensor prompt = text_input(f, sample, model.text);
  Tensor text = embedded_text(f, "text_embeddings", prompt, model.text, model.width);
  const Tensor time = time_of(f, model);
  const Tensor latents = f.call("clone", {token_latents(f, tokens, area)});
  Tensor hidden = f.linear("visual_embeddings.in_layer", latents, area, model.width);
  const Tensor text_matrices = matrices_of(f, model, text);
  text = stack(f, "text_transformer_blocks", kBlocks[0], model.text_layers, text,
               [&](Tensor x, std::int64_t) { return text_block(f, model, x, time, text_matrices); });
  const Tensor matrices = matrices_of(f, model, hidden);
  hidden = stack(f, "visual_transformer_blocks", kBlocks[1], model.layers, hidden,
                 [&](Tensor x, std::int64_t) { return visual_block(f, model, x, text, time, matrices); });
  const InModule inside(f, "out_layer", "Kandinsky5OutLayer");
  const std::vector<Tensor> last = rows_of(f, model, "modulation", time, 2);
  const Tensor normed = scaled(f, model, "norm", hidden, last[0], last[1]);
  const std::int64_t out = model.patch_elements() * model.out;
  denoiser_loss(f, f.call("clone", {f.linear("out_layer", normed, model.width, out)}), {tokens, out});
}

inline constexpr Architecture kArchitecture = {.name = "kandinsky5",
                                               .model_types = names<"Kandinsky5Transformer3DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .blocks = kBlocks};

}  // namespace kandinsky5

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
