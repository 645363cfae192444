// Kandinsky 5 and LongCat-Video.
//
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

inline constexpr auto kClasses =
    std::to_array<ModelClass>({{"Kandinsky5Transformer3D", "Kandinsky5Transformer3DModel"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  constexpr std::int64_t kPatch = 4;
  const std::int64_t channels = t.value("visual_embeddings.in_layer", "in_features").value_or(kPatch) / kPatch;
  const bool continues = channels % 2 == 1 && channels > 1;  // what is known of the video, and where
  t.set_flag("visual_cond", continues);
  t.set("in_visual_dim", std::max<std::int64_t>(continues ? channels / 2 : channels, 1));
  t.part("out_visual_dim", "out_layer.out_layer", "out_features", kPatch);
  t.size("in_text_dim", "text_embeddings.in_layer", "in_features");
  t.size("in_text_dim2", "pooled_text_embeddings.in_layer", "in_features");
  t.size("time_dim", "time_embeddings.in_layer", "out_features");
  t.size("model_dim", "visual_embeddings.in_layer", "out_features");
  t.size("ff_dim", "visual_transformer_blocks.0.feed_forward.in_layer", "out_features");
  t.count("num_text_blocks", "text_transformer_blocks");
  t.count("num_visual_blocks", "visual_transformer_blocks");
  const std::int64_t head =
      t.value("visual_transformer_blocks.0.self_attention.query_norm", "normalized_shape").value_or(64);
  t.list("axes_dims", std::array{std::max<std::int64_t>(head - head / 8 * 6, 1),
                                 std::max<std::int64_t>(head / 8 * 3, 1), std::max<std::int64_t>(head / 8 * 3, 1)});
  t.assume("patches of 2 x 2, and attention to all tokens, which the tree does not print");
}

inline constexpr Architecture kArchitecture = {.name = "kandinsky5",
                                               .model_types = names<"Kandinsky5Transformer3DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .depends_on_images = true,
                                               .blocks = kBlocks};

}  // namespace kandinsky5

// LongCat-Video: blocks of self-attention, attention to the prompt and a gated feed-forward layer; scales, shifts and
// gates of each frame. These and the feed-forward layer run under autocast to float32.
// Source: SimpleTuner 2026-08, helpers/models/longcat_video/transformer.py, its copy of the makers' class.
// Heads of self-attention are handed to diffusers' dispatch_attention_fn() as [N, heads, S, width], which takes them
// for [N, S, heads, width].

namespace longcat_video {

inline constexpr std::array<std::string_view, 1> kBlocks = {"LongCatSingleStreamBlock"};

struct Model {
  std::int64_t channels = 16;
  std::int64_t out = 16;
  std::int64_t width = 4096;
  std::int64_t layers = 48;
  std::int64_t head_width = 128;
  std::int64_t text = 4096;
  std::int64_t inner = 11008;
  std::int64_t time = 512;
  std::int64_t sinusoids = 256;
  Sizes patch = {1, 2, 2};

  [[nodiscard]] std::int64_t patch_elements() const { return patch[0] * patch[1] * patch[2]; }
};

struct Grid {
  std::int64_t frames = 1;
  std::int64_t area = 1;  ///< tokens of a frame

  [[nodiscard]] std::int64_t tokens() const { return frames * area; }
};

inline Model read(ConfigFields& config) {
  Model model;
  model.channels = dit_width(config, "in_channels", 16);
  model.out = dit_width(config, "out_channels", 16);
  model.width = dit_width(config, "hidden_size", 4096);
  model.layers = config.layers_or("depth", 48);
  const std::int64_t heads = dit_width(config, "num_heads", 32);
  if (model.width % heads != 0) config.fail("must divide hidden_size", "num_heads");
  model.head_width = std::max<std::int64_t>(model.width / heads, 1);
  if (model.head_width % 8 != 0) config.fail("must leave heads a multiple of 8 wide", "num_heads");
  model.text = dit_width(config, "caption_channels", 4096);
  // FeedForwardSwiGLU: two thirds, to a multiple of 256.
  constexpr std::int64_t kMultiple = 256;
  const std::int64_t wide = 2 * dit_inner(config, "mlp_ratio", model.width, 4.0) / 3;
  model.inner = (wide + kMultiple - 1) / kMultiple * kMultiple;
  model.time = dit_width(config, "adaln_tembed_dim", 512);
  model.sinusoids = dit_width(config, "frequency_embedding_size", 256);
  model.patch = dit_list(config, "patch_size", {1, 2, 2});
  const bool small = model.patch[0] <= 16 && model.patch[1] <= 16 && model.patch[2] == model.patch[1];
  if (!small) config.fail("must be no larger than 16, and alike in height and width", "patch_size");
  if (config.flag("enable_bsa", false)) config.fail("is not known", "enable_bsa");
  config.ignore({"enable_flashattn3", "enable_flashattn2", "enable_xformers", "bsa_params", "cp_split_hw",
                 "text_tokens_zero_pad", "enable_bsa"});
  return model;
}

/// RMSNorm_FP32: the weight is multiplied in the heads' type.
inline Tensor head_norm(Forward& f, std::string_view name, Tensor heads, std::int64_t width) {
  const InModule inside(f, name, "RMSNorm_FP32");
  const Tensor wide = f.to(heads, "float32");
  const Tensor mean = f.call("mean", {f.call("pow", {wide})}, {{"dim", std::int64_t{-1}}, {"keepdim", true}});
  const Tensor scaled = f.multiply(wide, f.call("rsqrt", {f.call("add", {mean})}));
  return f.multiply(f.as_type_of(scaled, heads), f.parameter("weight", {width}));
}

/// RotaryPositionalEmbedding: of a float32 copy.
inline Tensor turned(Forward& f, Tensor heads, const PairTables& tables) {
  const Tensor wide = f.to(heads, "float32");
  const std::vector<Tensor> parts = chunks(f, f.unflatten(wide, 3, {-1, 2}), 4, 2, 1);
  const Tensor rotated = f.flatten(f.concatenate({f.call("neg", {parts[1]}), parts[0]}, 4), 3, 4);
  return f.as_type_of(f.add(f.multiply(wide, tables.cosines), f.multiply(rotated, tables.sines)), heads);
}

inline Tensor self_attention(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "attn", "Attention");
  const std::int64_t width = model.width;
  const std::vector<Tensor> parts = chunks(f, f.linear("qkv", input, width, 3 * width), 2, 3, width);
  const auto heads = [&](std::size_t at) { return as_heads(f, parts[at], model.head_width); };
  const Tensor query = head_norm(f, "q_norm", heads(0), model.head_width);
  const Tensor key = head_norm(f, "k_norm", heads(1), model.head_width);
  const PairTables tables = pair_tables(f, {input}, model.head_width);  // made anew in each call
  const Tensor first = turned(f, query, tables);
  const Tensor second = turned(f, key, tables);
  const Tensor mixed = f.call("scaled_dot_product_attention", {first, second, heads(2)});
  return f.linear("proj", f.flatten(f.contiguous(mixed), 2, 3), width, width);
}

inline Tensor prompt_attention(Forward& f, const Model& model, Tensor input, Tensor prompt) {
  const InModule inside(f, "cross_attn", "MultiHeadCrossAttention");
  const std::int64_t width = model.width;
  const Tensor asked = as_heads(f, f.linear("q_linear", input, width, width), model.head_width);
  const std::vector<Tensor> parts = chunks(f, f.linear("kv_linear", prompt, width, 2 * width), 2, 2, width);
  const Tensor query = head_norm(f, "q_norm", asked, model.head_width);
  const Tensor key = head_norm(f, "k_norm", as_heads(f, parts[0], model.head_width), model.head_width);
  const auto first = [&](Tensor heads) { return f.permute(heads, {0, 2, 1, 3}); };
  const Tensor keys = f.call("clone", {first(key)});
  const Tensor values = f.call("clone", {first(as_heads(f, parts[1], model.head_width))});
  const Tensor mixed = f.call("scaled_dot_product_attention", {first(query), keys, values});
  // Each sample is asked for itself, and their results are joined.
  const Tensor joined = f.call("clone", {mixed});
  return f.linear("proj", f.flatten(f.contiguous(first(joined)), 2, 3), width, width);
}

/// The rows of each frame, [N, frames, 1, width], in float32.
inline std::vector<Tensor> rows_of(Forward& f, const Model& model, Tensor time, std::int64_t count) {
  const InModule inside(f, "adaLN_modulation", "Sequential");
  f.wide_autocast(true);
  const Tensor made = f.linear("1", f.activation("0", time, "silu"), model.time, count * model.width);
  f.wide_autocast(false);
  return chunks(f, unsqueezed(f, made, 2), 3, count, model.width);
}

/// modulate_fp32: in float32, then in the type of what comes in.
inline Tensor scaled(Forward& f, const Model& model, std::string_view name, Tensor hidden, Tensor shift, Tensor scale,
                     const Grid& grid) {
  const Tensor framed = f.unflatten(f.to(hidden, "float32"), 1, {grid.frames, grid.area});
  const Tensor normed = modulated(f, bare_norm(f, name, framed, model.width), scale, shift);
  return f.flatten(f.as_type_of(normed, hidden), 1, 2);
}

/// x + gate branch in float32, then in the type of x.
inline Tensor joined(Forward& f, Tensor hidden, Tensor gate, Tensor branch, const Grid& grid) {
  const Tensor gated = f.multiply(gate, f.unflatten(branch, 1, {grid.frames, grid.area}));
  return f.as_type_of(f.add(hidden, f.flatten(gated, 1, 2)), hidden);
}

inline Tensor block(Forward& f, const Model& model, Tensor hidden, Tensor prompt, Tensor time, const Grid& grid) {
  const std::vector<Tensor> rows = rows_of(f, model, time, 6);
  const Tensor normed = scaled(f, model, "mod_norm_attn", hidden, rows[0], rows[1], grid);
  hidden = joined(f, hidden, rows[2], self_attention(f, model, normed), grid);
  const Tensor asking = wide_norm(f, "pre_crs_attn_norm", hidden, model.width, true);
  hidden = f.add(hidden, prompt_attention(f, model, asking, prompt));
  hidden = scaled(f, model, "mod_norm_ffn", hidden, rows[3], rows[4], grid);  // what comes in is not added
  f.wide_autocast(true);
  const Tensor fed = three_layers(f, "ffn", "FeedForwardSwiGLU", hidden, model.width, model.inner);
  f.wide_autocast(false);
  return joined(f, hidden, rows[5], fed, grid);
}

/// The timestep of each frame, [N, frames, width], in float32.
inline Tensor frame_times(Forward& f, const Model& model, const Grid& grid) {
  const Tensor sinusoids = f.to(timestep_input(f, "timestep", model.sinusoids), "float32");
  const InModule inside(f, "t_embedder", "TimestepEmbedder");
  f.wide_autocast(true);
  const Tensor open = f.activation("mlp.1", f.linear("mlp.0", sinusoids, model.sinusoids, model.time), "silu");
  const Tensor time = f.linear("mlp.2", open, model.time, model.time);
  f.wide_autocast(false);
  const std::vector<core::Dim> shape = {core::Dim::batch(), core::Dim::fixed(grid.frames),
                                        core::Dim::fixed(model.time)};
  return f.call("clone", {f.call("expand", {unsqueezed(f, time, 1)}, {{"shape", shape}})});
}

inline void write(ConfigFields& config, Head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const std::int64_t width = model.width;
  const DenoiserSample sample = denoiser_sample(
      f, {.side = 8, .frame = 4, .patch = model.patch[1], .usual_side = 480, .usual_frames = 93, .usual_text = 512});
  const Grid grid = {std::max<std::int64_t>(sample.frames / model.patch[0], 1),
                     sample.height / model.patch[1] * (sample.width / model.patch[2])};
  const Tensor latents = latent_input(f, sample, model.channels, true);
  const Tensor cut = f.layer("x_embedder.proj", "Conv3d", "conv3d", {latents},
                             {{"in_channels", model.channels},
                              {"out_channels", width},
                              {"kernel_size", model.patch},
                              {"stride", model.patch}});
  const Tensor hidden = f.permute(f.flatten(cut, 2, 4), {0, 2, 1});
  const Tensor time = frame_times(f, model, grid);
  const Tensor text = text_input(f, sample, model.text);
  Tensor prompt = 0;
  {
    const InModule inside(f, "y_embedder", "CaptionEmbedder");
    const Tensor open = f.activation("y_proj.1", f.linear("y_proj.0", text, model.text, width), "gelu_pytorch_tanh");
    prompt = f.linear("y_proj.2", open, width, width);
  }
  const Tensor all = stack(f, "blocks", kBlocks[0], model.layers, hidden,
                           [&](Tensor x, std::int64_t) { return block(f, model, x, prompt, time, grid); });
  const InModule inside(f, "final_layer", "FinalLayer_FP32");
  const std::vector<Tensor> rows = rows_of(f, model, time, 2);
  const Tensor normed = scaled(f, model, "norm_final", all, rows[0], rows[1], grid);
  const std::int64_t out = model.out * model.patch_elements();
  f.wide_autocast(true);
  const Tensor output = f.linear("linear", normed, width, out);
  f.wide_autocast(false);
  denoiser_loss(f, f.call("clone", {output}), {grid.tokens(), out});
}

inline constexpr Architecture kArchitecture = {.name = "longcat_video",
                                               .model_types = names<"LongCatVideoTransformer3DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .blocks = kBlocks};

}  // namespace longcat_video

}  // namespace gpumem::architectures
