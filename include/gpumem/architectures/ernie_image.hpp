// ERNIE-Image: one sequence of image and text tokens. All blocks share scales, shifts and gates, which are copied out
// to every token first and applied in float32. Source: diffusers 0.40, models/transformers/transformer_ernie_image.py.
// Tokens are the first axis there; here samples are, which takes as much.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/denoiser.hpp"
#include "gpumem/architectures/dit_parts.hpp"

namespace gpumem::architectures {

namespace ernie_image {

inline constexpr std::array<std::string_view, 1> kBlocks = {"ErnieImageSharedAdaLNBlock"};

struct Model {
  std::int64_t width = 3072;
  std::int64_t heads = 24;
  std::int64_t layers = 24;
  std::int64_t inner = 8192;
  std::int64_t channels = 128;
  std::int64_t out = 128;
  std::int64_t patch = 1;
  std::int64_t text = 2560;
  bool head_norm = true;

  [[nodiscard]] std::int64_t head_width() const { return width / heads; }
};

inline Model read(ConfigFields& config) {
  Model model;
  model.width = dit_width(config, "hidden_size", 3072);
  model.heads = dit_width(config, "num_attention_heads", 24);
  model.layers = config.layers_or("num_layers", 24);
  model.inner = dit_width(config, "ffn_hidden_size", 8192);
  model.channels = dit_width(config, "in_channels", 128);
  model.out = dit_width(config, "out_channels", 128);
  model.patch = dit_width(config, "patch_size", 1);
  model.text = dit_width(config, "text_in_dim", 2560);
  model.head_norm = config.flag("qk_layernorm", true);
  if (model.width % (2 * model.heads) != 0) config.fail("does not divide hidden_size", "num_attention_heads");
  if (model.patch > 16) config.fail("is larger than gpumem takes", "patch_size");
  config.ignore({"rope_axes_dim", "rope_theta", "eps"});
  return model;
}

/// x cos + rotate_half(x) sin in the model's type, with cosines and sines made of the angles each time.
inline Tensor turned(Forward& f, Tensor heads, const PairTables& angles, std::int64_t width) {
  const Tensor cosines = f.as_type_of(f.call("cos", {angles.cosines}), heads);
  const Tensor sines = f.as_type_of(f.call("sin", {angles.cosines}), heads);
  const std::vector<Tensor> halves = chunks(f, heads, 3, 2, width / 2);
  const Tensor rotated = f.concatenate({f.call("neg", {halves[1]}), halves[0]}, 3);
  const Tensor made = f.add(f.multiply(heads, cosines), f.multiply(rotated, sines));
  return f.call("clone", {made});  // torch.cat with what is not turned: nothing
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, const PairTables& angles, Tensor mask) {
  const InModule inside(f, "self_attention", "ErnieImageAttention");
  const std::int64_t each = model.head_width();
  const auto heads = [&](std::string_view name) {
    return as_heads(f, f.linear(name, input, model.width, model.width, {.bias = false}), each);
  };
  Tensor query = heads("to_q");
  Tensor key = heads("to_k");
  const Tensor value = heads("to_v");
  if (model.head_norm) {
    query = torch_rms_norm(f, "norm_q", query, each);
    key = torch_rms_norm(f, "norm_k", key, each);
  }
  query = turned(f, query, angles, each);
  key = turned(f, key, angles, each);
  const Tensor mixed = attend_heads(f, query, key, value, mask);
  const InModule out(f, "to_out", "ModuleList");
  return f.linear("0", mixed, model.width, model.width, {.bias = false});
}

/// (x.float() (1 + scale.float()) + shift.float()), in the type of x.
inline Tensor scaled(Forward& f, Tensor hidden, Tensor scale, Tensor shift) {
  const Tensor grown = f.multiply(f.to(hidden, "float32"), f.call("add", {f.to(scale, "float32")}));
  return f.as_type_of(f.add(grown, f.to(shift, "float32")), hidden);
}

inline Tensor joined(Forward& f, Tensor residual, Tensor branch, Tensor gate) {
  const Tensor gated = f.multiply(f.to(gate, "float32"), f.to(branch, "float32"));
  return f.add(residual, f.as_type_of(gated, residual));
}

inline Tensor block(Forward& f, const Model& model, Tensor hidden, const std::vector<Tensor>& rows,
                    const PairTables& angles, Tensor mask) {
  const Tensor normed = scaled(f, own_rms_norm(f, "adaLN_sa_ln", hidden, model.width), rows[1], rows[0]);
  const Tensor attended = joined(f, hidden, attention(f, model, normed, angles, mask), rows[2]);
  const Tensor again = scaled(f, own_rms_norm(f, "adaLN_mlp_ln", attended, model.width), rows[4], rows[3]);
  Tensor fed = 0;
  {
    const InModule inside(f, "mlp", "ErnieImageFeedForward");
    const Tensor up = f.linear("up_proj", again, model.width, model.inner, {.bias = false, .out_of_order = true});
    const Tensor open = f.call("gelu", {f.linear("gate_proj", again, model.width, model.inner, {.bias = false})});
    fed = f.linear("linear_fc2", f.multiply(up, open), model.inner, model.width, {.bias = false});
  }
  return joined(f, attended, fed, rows[5]);
}

/// Scales, shifts and gates of a sample, each copied out to all its tokens.
inline std::vector<Tensor> spread_rows(Forward& f, const Model& model, Tensor time, std::int64_t tokens) {
  std::vector<Tensor> rows;
  {
    const InModule inside(f, "adaLN_modulation", "Sequential");
    const Tensor open = f.activation("0", time, "silu");
    rows = row_chunks(f, f.linear("1", open, model.width, 6 * model.width), 6, model.width);
  }
  for (Tensor& row : rows) {
    row = f.contiguous(f.call("expand", {row}, {{"shape", Sizes{-1, tokens, -1}}}));
  }
  return rows;
}

inline Tensor image_tokens(Forward& f, const Model& model, const DenoiserSample& sample) {
  const Tensor latents = latent_input(f, sample, model.channels);
  const InModule inside(f, "x_embedder", "ErnieImagePatchEmbedDynamic");
  const Tensor cut = f.layer("proj", "Conv2d", "conv2d", {latents},
                             {{"in_channels", model.channels},
                              {"out_channels", model.width},
                              {"kernel_size", Sizes(2, model.patch)},
                              {"stride", Sizes(2, model.patch)}});
  return f.contiguous(f.permute(f.flatten(cut, 2, 3), {0, 2, 1}));
}

inline void write(ConfigFields& config, Head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DenoiserSample sample = denoiser_sample(f, {.side = 16, .patch = model.patch, .usual_text = 256});
  const Tensor image = image_tokens(f, model, sample);
  const Tensor prompt = text_input(f, sample, model.text);
  const bool same = model.text == model.width;
  const Tensor text =
      f.contiguous(same ? prompt : f.linear("text_proj", prompt, model.text, model.width, {.bias = false}));
  Tensor hidden = f.concatenate({image, text}, 1);
  const std::int64_t pictured = sample.height * sample.width / (model.patch * model.patch);
  const std::int64_t tokens = pictured + sample.text;
  const Tensor angles =
      f.permute(f.call("rotary_table", {hidden},
                       {{"width", model.head_width()}, {"padded", true}, {"dtype", std::string("float32")}}),
                {0, 2, 1, 3});
  const Tensor mask = seen_tokens(f, hidden);
  const Tensor sinusoids = timestep_input(f, "timestep", model.width);
  const Tensor time = timestep_embedding(f, "time_embedding", sinusoids, model.width, model.width);
  const std::vector<Tensor> rows = spread_rows(f, model, time, tokens);
  hidden = stack(f, "layers", kBlocks[0], model.layers, hidden, [&](Tensor x, std::int64_t) {
    return block(f, model, x, rows, {angles, angles}, f.as_type_of(mask, x));
  });
  Tensor normed = 0;
  {
    const InModule inside(f, "final_norm", "ErnieImageAdaLNContinuous");
    const std::vector<Tensor> last =
        row_chunks(f, f.linear("linear", time, model.width, 2 * model.width), 2, model.width);
    normed = modulated(f, bare_norm(f, "norm", hidden, model.width), last[0], last[1]);
  }
  const std::int64_t out = model.patch * model.patch * model.out;
  const Tensor output = f.slice(f.linear("final_linear", normed, model.width, out), 1, 0, pictured);
  denoiser_loss(f, f.call("clone", {output}), {pictured, out});
}

inline constexpr auto kClasses =
    std::to_array<ModelClass>({{"ErnieImageTransformer2D", "ErnieImageTransformer2DModel"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const std::int64_t patch = t.value("x_embedder.proj", "kernel_size").value_or(1);
  const std::int64_t width = denoiser_tree(t, "x_embedder.proj", "final_linear", patch * patch);
  const auto printed = t.value("layers.0.self_attention.norm_q", "normalized_shape");
  const std::int64_t head = printed.value_or(128);
  t.set("patch_size", patch);
  t.set("hidden_size", std::max<std::int64_t>(width, 1));
  t.set("num_attention_heads", std::max<std::int64_t>(width / head, 1));
  t.count("num_layers", "layers");
  t.size("ffn_hidden_size", "layers.0.mlp.gate_proj", "out_features");
  t.set("text_in_dim", t.value("text_proj", "in_features").value_or(std::max<std::int64_t>(width, 1)));
  t.there("qk_layernorm", "layers.0.self_attention.norm_q");
  if (!printed) t.assume("heads of width 128, as ERNIE-Image has");
}

inline constexpr Architecture kArchitecture = {.name = "ernie_image",
                                               .model_types = names<"ErnieImageTransformer2DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .depends_on_images = true,
                                               .blocks = kBlocks};

}  // namespace ernie_image

// i1 of ZLab: a stream of image tokens and one of text tokens, which is a small transformer's; blocks on the way down
// hand what they leave to those on the way up. No timestep is read. Norms are written out in float32.
// Source: SimpleTuner 2026-08, helpers/models/zlab_i1/transformer.py, model.py.

namespace zlab_i1 {

inline constexpr std::array<std::string_view, 1> kBlocks = {"i1DiTBlock"};

struct Model {
  std::int64_t width = 2016;
  std::int64_t heads = 28;
  std::int64_t depth = 29;
  std::int64_t inner = 5376;
  std::int64_t channels = 32;
  std::int64_t patch = 2;
  std::int64_t side = 64;  ///< tokens of a side of what it was trained for
  std::int64_t text_width = 2304;
  std::int64_t text = 256;
  StreamLengths lengths = {};

  [[nodiscard]] std::int64_t head_width() const { return width / heads; }
};

inline Model read(ConfigFields& config) {
  Model model;
  model.width = dit_width(config, "hidden_size", 2016);
  model.heads = dit_width(config, "num_heads", 28);
  model.depth = config.layers_or("depth", 29);
  const std::int64_t wide = dit_inner(config, "mlp_ratio", model.width, 4.0);
  model.inner = static_cast<std::int64_t>(2.0 / 3.0 * static_cast<double>(wide));
  model.channels = dit_width(config, "in_channels", 32);
  model.patch = dit_patch(config);
  model.side = std::max<std::int64_t>(dit_width(config, "input_size", 128) / model.patch, 1);
  model.text_width = dit_width(config, "text_embed_dim", 2304);
  model.text = dit_width(config, "text_num_tokens", 256);
  if (model.side > 4096) config.fail("is larger than gpumem takes", "input_size");
  if (model.width % (2 * model.heads) != 0) config.fail("does not divide hidden_size", "num_heads");
  if (model.head_width() < 8) config.fail("leaves heads that are too narrow for their positions", "num_heads");
  if (model.inner < 1) config.fail("leaves no feed-forward layer", "mlp_ratio");
  config.ignore({"head_dim", "image_resolution", "rope_theta"});
  return model;
}

inline Tensor norm(Forward& f, std::string_view name, Tensor input, std::int64_t width) {
  const InModule inside(f, name, "RMSNorm");
  const Tensor wide = f.to(input, "float32");
  const Tensor mean = f.call("mean", {f.call("pow", {wide})}, {{"dim", std::int64_t{-1}}, {"keepdim", true}});
  const Tensor scaled = f.multiply(wide, f.call("rsqrt", {f.call("add", {mean})}));
  return f.as_type_of(f.multiply(scaled, f.to(f.parameter("scale", {width}), "float32")), input);
}

/// Queries, keys and values of one layer, [N, S, heads, width] each; queries and keys normed.
inline std::array<Tensor, 3> heads_of(Forward& f, const Model& model, std::string_view name, Tensor input) {
  const Tensor all =
      f.unflatten(f.linear(name, input, model.width, 3 * model.width), 2, {3, model.heads, model.head_width()});
  std::array<Tensor, 3> made{};
  for (std::size_t at = 0; at < made.size(); ++at) made[at] = f.select(all, 2, static_cast<std::int64_t>(at));
  return made;
}

inline Tensor feed_forward(Forward& f, const Model& model, std::string_view name, Tensor input) {
  const InModule inside(f, name, "SwiGLUFFN");
  const std::vector<Tensor> halves = chunks(f, f.linear("w12", input, model.width, 2 * model.inner), 2, 2, model.inner);
  return f.linear("w3", f.multiply(f.call("silu", {halves[0]}), halves[1]), model.inner, model.width);
}

/// TextEncoderAdapterTransformer: two layers over the prompt's tokens.
inline Tensor text_tokens(Forward& f, const Model& model, Tensor prompt) {
  const InModule inside(f, "text_encoder_adapter", "TextEncoderAdapterTransformer");
  const Tensor absent = f.parameter("learnable_null_caption", {1, model.text, model.text_width});
  // The trainer brings latents and prompts in the weights' type.
  Tensor hidden = f.linear("connector_in", f.as_type_of(prompt, absent), model.text_width, model.width);
  const auto layer = [&](std::string_view first, std::string_view second, std::string_view attention,
                         std::string_view fed) {
    const Tensor normed = norm(f, first, hidden, model.width);
    Tensor mixed = 0;
    {
      const InModule attends(f, attention, "Attention");
      const std::array<Tensor, 3> heads = heads_of(f, model, "qkv", normed);
      const Tensor query = norm(f, "q_norm", heads[0], model.head_width());
      const Tensor key = norm(f, "k_norm", heads[1], model.head_width());
      mixed = f.linear("proj", attend_heads(f, query, key, heads[2]), model.width, model.width);
    }
    hidden = f.add(hidden, mixed);
    hidden = f.add(hidden, feed_forward(f, model, fed, norm(f, second, hidden, model.width)));
  };
  layer("connector_norm1", "connector_norm2", "connector_attn", "connector_mlp");
  layer("connector_norm3", "connector_norm4", "connector_attn2", "connector_mlp2");
  return hidden;
}

/// _apply_multimodal_rope: pairs in float32, with tables of half a head.
inline Tensor turned(Forward& f, Tensor heads, const PairTables& tables) {
  const std::vector<Tensor> pairs = chunks(f, f.unflatten(f.to(heads, "float32"), 3, {-1, 2}), 4, 2, 1);
  const auto half = [&](Tensor table) { return unsqueezed(f, table, 4); };
  const Tensor cosines = half(tables.cosines);
  const Tensor sines = half(tables.sines);
  const Tensor even = f.call("sub", {f.multiply(pairs[0], cosines), f.multiply(pairs[1], sines)});
  const Tensor odd = f.add(f.multiply(pairs[0], sines), f.multiply(pairs[1], cosines));
  return f.as_type_of(f.flatten(f.concatenate({even, odd}, 4), 3, 4), heads);
}

/// MultimodalRopeEmbedder: tables of half a head's time, row and column, which it holds as frozen parameters.
inline void tables_of(Forward& f, const Model& model) {
  const std::int64_t each = model.head_width();
  const std::int64_t time = each / 2 - each / 2 % 2;
  const std::int64_t row = (each - time) / 2 - (each - time) / 2 % 2;
  const std::array<Sizes, 3> sizes = {Sizes{model.text + 1, time / 2}, Sizes{model.side, row / 2},
                                      Sizes{model.side, (each - time - row) / 2}};
  const InModule inside(f, "rope_embedder", "MultimodalRopeEmbedder");
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    (void)f.parameter("cos_tables." + std::to_string(axis), sizes[axis], true);
    (void)f.parameter("sin_tables." + std::to_string(axis), sizes[axis], true);
  }
}

struct Conditions {
  PairTables image = {};
  PairTables text = {};
  Tensor mask = 0;       ///< of all tokens, [N, 1, 1, S]
  Tensor kept = 0;       ///< the same as numbers, [N, S, 1]
  Tensor kept_text = 0;  ///< of the prompt's tokens
};

inline TwoStreams attention(Forward& f, const Model& model, const TwoStreams& in, const Conditions& c) {
  const InModule inside(f, "attn", "MMDiTAttention");
  const std::array<Tensor, 3> image = heads_of(f, model, "qkv_image", in.image);
  const std::array<Tensor, 3> text = heads_of(f, model, "qkv_text", in.text);
  const auto ready = [&](std::string_view name, std::size_t at) {
    const Tensor of_image = turned(f, norm(f, name, image[at], model.head_width()), c.image);
    f.repeat_parameters(true);
    const Tensor of_text = turned(f, norm(f, name, text[at], model.head_width()), c.text);
    f.repeat_parameters(false);
    return f.concatenate({of_image, of_text}, 1);
  };
  const Tensor query = ready("q_norm", 0);
  const Tensor key = ready("k_norm", 1);
  const Tensor value = f.concatenate({image[2], text[2]}, 1);
  const Tensor attended = attend_heads(f, query, key, value, c.mask);
  const Tensor mixed = f.multiply(attended, f.as_type_of(c.kept, attended));
  const Tensor of_image = f.slice(mixed, 1, 0, model.lengths.image);
  const Tensor of_text = f.slice(mixed, 1, model.lengths.image, Forward::kRest);
  return {f.linear("proj_image", of_image, model.width, model.width),
          f.linear("proj_text", of_text, model.width, model.width)};
}

inline TwoStreams block(Forward& f, const Model& model, TwoStreams in, const Conditions& c, const TwoStreams* skip) {
  const auto normed = [&](std::string_view name, Tensor input) { return norm(f, name, input, model.width); };
  if (skip != nullptr) {
    in.image = f.linear("skip_linear_image", f.concatenate({in.image, skip->image}, 2), 2 * model.width, model.width);
    in.text = f.linear("skip_linear_text", f.concatenate({in.text, skip->text}, 2), 2 * model.width, model.width);
  }
  const Tensor image = normed("norm1", in.image);
  f.repeat_parameters(true);
  const Tensor text = normed("norm1", in.text);
  f.repeat_parameters(false);
  const TwoStreams mixed = attention(f, model, {image, text}, c);
  const auto joined = [&](Tensor residual, Tensor branch, std::string_view name, bool again) {
    f.repeat_parameters(again);
    const Tensor made = normed(name, branch);
    f.repeat_parameters(false);
    return f.add(residual, made);
  };
  in.image = joined(in.image, mixed.image, "norm3", false);
  in.text = joined(in.text, mixed.text, "norm3", true);
  in.image = joined(in.image, feed_forward(f, model, "mlp_image", normed("norm2", in.image)), "norm4", false);
  f.repeat_parameters(true);
  const Tensor last = normed("norm2", in.text);
  f.repeat_parameters(false);
  in.text = joined(in.text, feed_forward(f, model, "mlp_text", last), "norm4", true);
  in.text = f.multiply(in.text, f.as_type_of(c.kept_text, in.text));
  return in;
}

inline TwoStreams blocks(Forward& f, const Model& model, TwoStreams streams, const Conditions& c) {
  std::vector<TwoStreams> skips;
  const std::int64_t half = model.depth / 2;
  streams = stack(f, "in_blocks", kBlocks[0], half, streams, [&](const TwoStreams& x, std::int64_t) {
    skips.push_back(block(f, model, x, c, nullptr));
    return skips.back();
  });
  {
    const InModule middle(f, "mid_block", kBlocks[0]);
    streams = block(f, model, streams, c, nullptr);
  }
  return stack(f, "out_blocks", kBlocks[0], half, streams, [&](const TwoStreams& x, std::int64_t) {
    const TwoStreams skip = skips.back();
    skips.pop_back();
    return block(f, model, x, c, &skip);
  });
}

inline void write(ConfigFields& config, Head, Forward& f) {
  constexpr std::int64_t kSinusoids = 256;
  Model model = read(config);
  if (!config.status()) return;
  const DenoiserSample sample = denoiser_sample(
      f, {.side = 8, .patch = model.patch, .usual_side = 8 * model.patch * model.side, .usual_text = model.text});
  model.lengths = {sample.height * sample.width / (model.patch * model.patch), sample.text};
  const Tensor places = f.parameter("pos_embed", {1, model.side * model.side, model.width});
  const Tensor latents = f.as_type_of(latent_input(f, sample, model.channels), places);
  const Tensor cut = f.layer("x_embedder.proj", "Conv2d", "conv2d", {latents},
                             {{"in_channels", model.channels},
                              {"out_channels", model.width},
                              {"kernel_size", Sizes(2, model.patch)},
                              {"stride", Sizes(2, model.patch)}});
  const bool whole = model.lengths.image == model.side * model.side;
  const Tensor own = whole ? places : f.constant("places", {1, model.lengths.image, model.width}, "parameters");
  TwoStreams streams;
  streams.image = f.add(f.permute(f.flatten(cut, 2, 3), {0, 2, 1}), own);
  {
    const InModule inside(f, "t_embedder", "TimestepEmbedder");  // is never called
    for (const auto& [name, in] : {std::pair("linear1", kSinusoids), std::pair("linear2", model.width)}) {
      (void)f.parameter(std::string(name) + ".weight", {model.width, in}, true);
      (void)f.parameter(std::string(name) + ".bias", {model.width}, true);
    }
  }
  const Tensor prompt = text_input(f, sample, model.text_width);
  streams.text = text_tokens(f, model, prompt);
  tables_of(f, model);
  Conditions c;
  c.image = pair_tables(f, {streams.image}, model.head_width() / 2);
  c.text = pair_tables(f, {streams.text}, model.head_width() / 2);
  c.mask = seen_tokens(f, f.concatenate({streams.image, streams.text}, 1));
  c.kept = f.sample_input("key_mask", {model.lengths.image + model.lengths.text, 1});
  c.kept_text = f.sample_input("text_mask", {model.lengths.text, 1});
  streams = blocks(f, model, streams, c);
  const InModule inside(f, "final_layer", "FinalLayerNoAdaLN");
  const std::int64_t out = model.patch * model.patch * model.channels;
  const Tensor output = f.linear("linear", norm(f, "norm_final", streams.image, model.width), model.width, out);
  denoiser_loss(f, f.call("clone", {output}), {model.lengths.image, out});
}

inline constexpr Architecture kArchitecture = {.name = "zlab_i1",
                                               .model_types = names<"ZlabI1Transformer2DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .blocks = kBlocks};

}  // namespace zlab_i1

}  // namespace gpumem::architectures
