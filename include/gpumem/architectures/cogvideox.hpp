// CogVideoX: text and video as one sequence in attention and feed-forward layers, with scales and shifts of their own.
// Source: diffusers 0.38, models/transformers/cogvideox_transformer_3d.py, models/embeddings.py (CogVideoXPatchEmbed),
// models/attention_processor.py (CogVideoXAttnProcessor2_0).
#pragma once

#include <array>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/denoiser.hpp"
#include "gpumem/architectures/dit_parts.hpp"

namespace gpumem::architectures {

namespace cogvideox {

inline constexpr std::array<std::string_view, 1> kBlocks = {"CogVideoXBlock"};

struct Model {
  DitSizes sizes;
  std::int64_t layers = 30;
  std::int64_t time = 512;  ///< width of the timestep's embedding
  std::int64_t offset = 0;  ///< of a second one; 0: there is none
  std::int64_t patch = 2;
  std::int64_t frames = 0;  ///< of a patch (CogVideoX 1.5); 0: patches are cut of each frame
  bool bias = true;
  bool patch_bias = true;
  bool affine = true;
  bool turns = false;  ///< rotary positions, in place of a table
  DitActivation activation = DitActivation::gelu_tanh;
  StreamLengths lengths;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = dit_sizes(config, {.heads = 30, .head_width = 64, .text_field = "text_embed_dim"});
  model.layers = config.layers_or("num_layers", 30);
  model.time = dit_width(config, "time_embed_dim", 512);
  model.offset = config.count_or("ofs_embed_dim", 0);
  model.patch = dit_width(config, "patch_size", 2);
  model.frames = config.count_or("patch_size_t", 0);
  if (model.patch > 16 || model.frames > 16) config.fail("is larger than gpumem takes", "patch_size");
  if (model.offset > 1 << 20) config.fail("is wider than gpumem takes", "ofs_embed_dim");
  model.bias = config.flag("attention_bias", true);
  model.patch_bias = config.flag("patch_bias", true);
  model.affine = config.flag("norm_elementwise_affine", true);
  model.turns = config.flag("use_rotary_positional_embeddings", false);
  const std::string_view activation = config.text({"activation_fn"}, "gelu-approximate");
  if (activation == "gelu") model.activation = DitActivation::gelu;
  else if (activation == "geglu") model.activation = DitActivation::geglu;
  else if (activation != "gelu-approximate") config.fail("is not known", "activation_fn");
  if (config.number({"dropout"}, 0.0) > 0.0) config.fail("is 0 in every published model", "dropout");
  config.ignore({"sample_width", "sample_height", "sample_frames", "temporal_compression_ratio", "max_text_seq_length",
                 "use_learned_positional_embeddings", "flip_sin_to_cos", "freq_shift", "norm_eps", "sample_size",
                 "spatial_interpolation_scale", "temporal_interpolation_scale", "timestep_activation_fn"});
  return model;
}

inline Tensor norm(Forward& f, const Model& model, std::string_view name, Tensor input, std::int64_t width) {
  return f.layer(name, "LayerNorm", "layer_norm", {input},
                 {{"normalized_shape", width}, {"elementwise_affine", model.affine}});
}

struct Scaled {
  TwoStreams streams;
  Tensor image_gate = 0;
  Tensor text_gate = 0;
};

/// CogVideoXLayerNormZero: one norm for both streams.
inline Scaled scaled(Forward& f, const Model& model, std::string_view name, const TwoStreams& in, Tensor time) {
  const InModule inside(f, name, "CogVideoXLayerNormZero");
  const std::int64_t width = model.sizes.width;
  const Tensor open = f.activation("silu", time, "silu");
  const std::vector<Tensor> rows = chunks(f, f.linear("linear", open, model.time, 6 * width), 1, 6, width);
  const auto made = [&](Tensor hidden, Tensor shift, Tensor scale) {
    const Tensor normed = norm(f, model, "norm", hidden, width);
    const Tensor grown = f.multiply(normed, unsqueezed(f, f.call("add", {scale}), 1));
    return f.add(grown, unsqueezed(f, shift, 1));
  };
  Scaled out;
  out.streams.image = made(in.image, rows[0], rows[1]);
  f.repeat_parameters(true);
  out.streams.text = made(in.text, rows[3], rows[4]);
  f.repeat_parameters(false);
  out.image_gate = unsqueezed(f, rows[2], 1);
  out.text_gate = unsqueezed(f, rows[5], 1);
  return out;
}

/// apply_rotary_emb of the video's part of heads [N, heads, S, d], written over it.
inline Tensor turned(Forward& f, const Model& model, Tensor heads, const PairTables& tables) {
  const Tensor text = f.slice(heads, 2, 0, model.lengths.text);
  const Tensor video = f.slice(heads, 2, model.lengths.text, Forward::kRest);
  return f.concatenate({text, turn_pairs(f, video, tables)}, 2);
}

inline TwoStreams attention(Forward& f, const Model& model, const TwoStreams& in, const PairTables* tables) {
  const InModule inside(f, "attn1", "Attention");
  const std::int64_t width = model.sizes.width;
  const std::int64_t each = model.sizes.head_width;
  const Tensor all = f.concatenate({in.text, in.image}, 1);
  const auto heads = [&](std::string_view name) {
    const Tensor made = f.linear(name, all, width, width, {.bias = model.bias});
    return f.permute(as_heads(f, made, each), {0, 2, 1, 3});
  };
  const Tensor first = heads("to_q");
  const Tensor second = heads("to_k");
  const Tensor value = heads("to_v");
  Tensor query = f.layer_norm("norm_q", first, each);
  Tensor key = f.layer_norm("norm_k", second, each);
  if (tables != nullptr) {
    query = turned(f, model, query, *tables);
    key = turned(f, model, key, *tables);
  }
  const Tensor mixed = f.call("scaled_dot_product_attention", {query, key, value});
  const Tensor rows = f.flatten(f.permute(mixed, {0, 2, 1, 3}), 2, 3);
  Tensor left = 0;
  {
    const InModule out(f, "to_out", "ModuleList");
    left = f.linear("0", rows, width, width);
  }
  const std::vector<Tensor> parts = f.split(left, 1, {model.lengths.text, model.lengths.image});
  return {parts[1], parts[0]};
}

inline TwoStreams block(Forward& f, const Model& model, TwoStreams streams, Tensor time, const PairTables* tables) {
  const Scaled first = scaled(f, model, "norm1", streams, time);
  const TwoStreams mixed = attention(f, model, first.streams, tables);
  streams.image = gated_sum(f, streams.image, first.image_gate, mixed.image);
  streams.text = gated_sum(f, streams.text, first.text_gate, mixed.text);
  const Scaled second = scaled(f, model, "norm2", streams, time);
  const Tensor all = f.concatenate({second.streams.text, second.streams.image}, 1);
  const Tensor fed = dit_feed_forward(f, "ff", all, model.sizes.width, 4 * model.sizes.width, model.activation);
  const Tensor video = f.slice(fed, 1, model.lengths.text, Forward::kRest);
  const Tensor text = f.slice(fed, 1, 0, model.lengths.text);
  streams.image = gated_sum(f, streams.image, second.image_gate, video);
  streams.text = gated_sum(f, streams.text, second.text_gate, text);
  return streams;
}

inline Tensor time_of(Forward& f, const Model& model) {
  const Tensor sinusoids = timestep_input(f, "timestep", model.sizes.width);
  const Tensor time = timestep_embedding(f, "time_embedding", sinusoids, model.sizes.width, model.time);
  if (model.offset == 0) return time;
  const Tensor offset = timestep_input(f, "ofs", model.offset);
  return f.add(time, timestep_embedding(f, "ofs_embedding", offset, model.offset, model.offset));
}

/// The frames' patches as a sequence of tokens.
inline Tensor patches(Forward& f, const Model& model, const DenoiserSample& sample) {
  const std::int64_t width = model.sizes.width;
  if (model.frames > 0) {
    const std::int64_t area = model.sizes.channels * model.patch * model.patch * model.frames;
    return f.linear("proj", token_latents(f, model.lengths.image, area), area, width);
  }
  const Tensor latents = f.sample_input("latents", {sample.frames, model.sizes.channels, sample.height, sample.width});
  const Tensor cut = f.layer("proj", "Conv2d", "conv2d", {f.flatten(latents, 0, 1)},
                             {{"in_channels", model.sizes.channels},
                              {"out_channels", width},
                              {"kernel_size", Sizes(2, model.patch)},
                              {"stride", Sizes(2, model.patch)},
                              {"bias", model.patch_bias}});
  const Tensor frames = f.unflatten(f.flatten(cut, 2, 3), 0, {-1, sample.frames});
  return f.flatten(f.permute(frames, {0, 1, 3, 2}), 1, 2);
}

/// CogVideoXPatchEmbed: the prompt's tokens and the video's, with positions from a table where they are not rotary.
inline TwoStreams embedded(Forward& f, const Model& model, const DenoiserSample& sample) {
  const Tensor prompt = text_input(f, sample, model.sizes.text_width);
  const InModule inside(f, "patch_embed", "CogVideoXPatchEmbed");
  const Tensor text = f.linear("text_proj", prompt, model.sizes.text_width, model.sizes.width);
  Tensor all = f.concatenate({text, patches(f, model, sample)}, 1);
  if (!model.turns) {
    const std::int64_t tokens = model.lengths.text + model.lengths.image;
    const Tensor places = f.constant("pos_embedding", {1, tokens, model.sizes.width}, "float32");
    all = f.add(all, f.as_type_of(places, all));
  }
  return {f.slice(all, 1, model.lengths.text, Forward::kRest), f.slice(all, 1, 0, model.lengths.text)};
}

inline Tensor last(Forward& f, const Model& model, Tensor hidden, Tensor time) {
  const std::int64_t width = model.sizes.width;
  const Tensor normed = norm(f, model, "norm_final", hidden, width);
  const InModule inside(f, "norm_out", "AdaLayerNorm");
  const std::vector<Tensor> rows = modulation(f, "linear", time, model.time, width, 2);
  return modulated(f, norm(f, model, "norm", normed, width), rows[1], rows[0]);
}

inline void write(ConfigFields& config, Head, Forward& f) {
  Model model = read(config);
  if (!config.status()) return;
  const DenoiserSample sample = denoiser_sample(
      f, {.side = 8, .frame = 4, .patch = model.patch, .usual_side = 480, .usual_frames = 49, .usual_text = 226});
  const std::int64_t depth = std::max<std::int64_t>(model.frames, 1);
  const std::int64_t frames = (sample.frames + depth - 1) / depth;
  model.lengths = {frames * (sample.height / model.patch) * (sample.width / model.patch), sample.text};
  const Tensor time = time_of(f, model);
  TwoStreams streams = embedded(f, model, sample);
  PairTables tables;
  if (model.turns) {
    tables = pair_tables(f, {streams.image}, model.sizes.head_width);
    tables = {f.permute(tables.cosines, {0, 2, 1, 3}), f.permute(tables.sines, {0, 2, 1, 3})};
  }
  streams = stack(f, "transformer_blocks", kBlocks[0], model.layers, streams, [&](const TwoStreams& x, std::int64_t) {
    return block(f, model, x, time, model.turns ? &tables : nullptr);
  });
  const std::int64_t out = model.sizes.out_channels * model.patch * model.patch * depth;
  const Tensor output = f.linear("proj_out", last(f, model, streams.image, time), model.sizes.width, out);
  denoiser_loss(f, f.call("clone", {output}), {model.lengths.image, out});
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"CogVideoXTransformer3D", "CogVideoXTransformer3DModel"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  constexpr std::int64_t kSmall = 1920;  // the width of CogVideoX 2B, which has a table of positions
  const bool volumes = t.class_of("patch_embed.proj") == "Linear";  // CogVideoX 1.5: patches of two frames
  const std::int64_t side = std::min<std::int64_t>(t.value("patch_embed.proj", "kernel_size").value_or(2), 64);
  const std::int64_t width = denoiser_tree(t, "patch_embed.proj", "proj_out", side * side * (volumes ? 2 : 1));
  t.set("patch_size", side);
  if (volumes) t.set("patch_size_t", 2);
  t.convolution_bias("patch_bias", "patch_embed.proj");
  t.count("num_layers", "transformer_blocks");
  t.size("text_embed_dim", "patch_embed.text_proj", "in_features");
  t.size("time_embed_dim", "time_embedding.linear_1", "out_features");
  t.size("ofs_embed_dim", "ofs_embedding.linear_1", "in_features");
  t.flag("attention_bias", "transformer_blocks.0.attn1.to_q");
  t.flag("norm_elementwise_affine", "norm_final", "elementwise_affine");
  denoiser_heads_tree(t, width, 64, "CogVideoX", "transformer_blocks.0.attn1.norm_q");
  t.set_flag("use_rotary_positional_embeddings", width != kSmall);
  t.assume(width == kSmall ? "a table of positions, as CogVideoX 2B has" : "rotary positions, as CogVideoX 5B has");
}

inline constexpr Architecture kArchitecture = {.name = "cogvideox",
                                               .model_types = names<"CogVideoXTransformer3DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .depends_on_images = true,
                                               .blocks = kBlocks};

}  // namespace cogvideox

// Mochi: blocks with a stream of video tokens and a narrower one of text tokens; norms and scales in float32, gates
// within the norms behind each branch. The last block leaves no text.
// Source: diffusers 0.38, models/transformers/transformer_mochi.py, models/attention_processor.py (MochiAttention).
// Attention goes sample by sample there, over the prompt's tokens without padding; here prompts have none.

namespace mochi {

inline constexpr std::array<std::string_view, 1> kBlocks = {"MochiTransformerBlock"};

struct Model {
  DitSizes sizes;
  std::int64_t layers = 48;
  std::int64_t patch = 2;
  std::int64_t text = 1536;  ///< width of the text's stream
  std::int64_t sinusoids = 256;
  StreamLengths lengths;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = dit_sizes(config, {.channels = 12, .text_field = "text_embed_dim"});
  model.layers = config.layers_or("num_layers", 48);
  model.patch = dit_patch(config);
  model.text = dit_width(config, "pooled_projection_dim", 1536);
  model.sinusoids = dit_width(config, "time_embed_dim", 256);
  if (model.sizes.head_width % 2 != 0) config.fail("must be even", "attention_head_dim");
  if (model.sizes.text_width % 8 != 0) config.fail("must be heads of the pooler, which are 8", "text_embed_dim");
  if (config.text({"activation_fn"}, "swiglu") != "swiglu") config.fail("is not known", "activation_fn");
  config.ignore({"qk_norm", "max_sequence_length"});
  return model;
}

/// RMSNorm without a weight of a float32 copy, times a scale, and back (MochiModulatedRMSNorm, MochiRMSNormZero).
inline Tensor scaled(Forward& f, std::string_view name, Tensor hidden, std::int64_t width, Tensor scale) {
  const Tensor normed = own_rms_norm(f, name, f.to(hidden, "float32"), width, false);
  return f.as_type_of(f.multiply(normed, scale), hidden);
}

inline Tensor grown(Forward& f, Tensor row) { return f.call("add", {f.to(row, "float32")}); }

/// Pairs turned by angles of each head's own, in float32.
inline Tensor turned(Forward& f, Tensor heads, const PairTables& tables) {
  const std::vector<Tensor> pairs = chunks(f, f.unflatten(heads, 3, {-1, 2}), 4, 2, 1);
  const Tensor even = f.to(pairs[0], "float32");
  const Tensor odd = f.to(pairs[1], "float32");
  const auto part = [&](Tensor first, Tensor second, std::string_view op) {
    return f.as_type_of(f.call(op, {f.multiply(even, first), f.multiply(odd, second)}), heads);
  };
  const Tensor first = part(tables.cosines, tables.sines, "sub");
  return f.flatten(f.concatenate({first, part(tables.sines, tables.cosines, "add")}, 4), 3, 4);
}

inline TwoStreams attention(Forward& f, const Model& model, const TwoStreams& in, const PairTables& tables, bool last) {
  const InModule inside(f, "attn1", "MochiAttention");
  const std::int64_t width = model.sizes.width;
  const std::int64_t each = model.sizes.head_width;
  const auto heads = [&](std::string_view name, Tensor from, std::int64_t in_width) {
    return as_heads(f, f.linear(name, from, in_width, width, {.bias = false}), each);
  };
  const auto normed = [&](std::string_view name, Tensor tensor) { return own_rms_norm(f, name, tensor, each); };
  const Tensor query = turned(f, normed("norm_q", heads("to_q", in.image, width)), tables);
  const Tensor key = turned(f, normed("norm_k", heads("to_k", in.image, width)), tables);
  const Tensor value = heads("to_v", in.image, width);
  const Tensor text_query = normed("norm_added_q", heads("add_q_proj", in.text, model.text));
  const Tensor text_key = normed("norm_added_k", heads("add_k_proj", in.text, model.text));
  const Tensor text_value = heads("add_v_proj", in.text, model.text);
  const Tensor mixed = attend_heads(f, f.concatenate({query, text_query}, 1), f.concatenate({key, text_key}, 1),
                                    f.concatenate({value, text_value}, 1));
  const std::vector<Tensor> parts = f.split(f.call("clone", {mixed}), 1, {model.lengths.image, model.lengths.text});
  TwoStreams left = {0, parts[1]};
  {
    const InModule out(f, "to_out", "ModuleList");
    left.image = f.linear("0", parts[0], width, width);
  }
  if (!last) left.text = f.linear("to_add_out", parts[1], width, model.text);
  return left;
}

/// What follows attention in one stream. `rows`: scale, gate, scale, gate.
inline Tensor fed(Forward& f, Tensor residual, Tensor mixed, const std::vector<Tensor>& rows, std::int64_t width,
                  const std::string& suffix) {
  const Tensor attended = f.add(residual, scaled(f, "norm2" + suffix, mixed, width, f.call("tanh", {rows[1]})));
  const Tensor again = scaled(f, "norm3" + suffix, attended, width, grown(f, rows[2]));
  const Tensor made = dit_feed_forward(f, "ff" + suffix, again, width, 4 * width * 2 / 3, DitActivation::swiglu, false);
  return f.add(attended, scaled(f, "norm4" + suffix, made, width, f.call("tanh", {rows[3]})));
}

inline TwoStreams block(Forward& f, const Model& model, const TwoStreams& in, Tensor time, const PairTables& tables,
                        bool last) {
  const std::int64_t width = model.sizes.width;
  const auto rows_of = [&](std::string_view name, std::int64_t out) {
    const InModule inside(f, name, "MochiRMSNormZero");
    const Tensor open = f.activation("silu", time, "silu");
    return row_chunks(f, f.linear("linear", open, width, 4 * out), 4, out);
  };
  const std::vector<Tensor> image = rows_of("norm1", width);
  const Tensor normed = scaled(f, "norm1.norm", in.image, width, grown(f, image[0]));
  std::vector<Tensor> text;
  Tensor normed_text = 0;
  if (last) {
    const InModule inside(f, "norm1_context", "MochiLayerNormContinuous");
    const Tensor made = f.linear("linear_1", f.activation("silu", time, "silu"), width, model.text);
    normed_text = scaled(f, "norm", in.text, model.text, grown(f, unsqueezed(f, made, 1)));
  } else {
    text = rows_of("norm1_context", model.text);
    normed_text = scaled(f, "norm1_context.norm", in.text, model.text, grown(f, text[0]));
  }
  const TwoStreams mixed = attention(f, model, {normed, normed_text}, tables, last);
  const Tensor image_left = fed(f, in.image, mixed.image, image, width, "");
  return {image_left, last ? in.text : fed(f, in.text, mixed.text, text, model.text, "_context")};
}

/// MochiAttentionPool: the mean token asks all tokens.
inline Tensor pooled(Forward& f, const Model& model, Tensor prompt) {
  constexpr std::int64_t kHeads = 8;
  const InModule inside(f, "pooler", "MochiAttentionPool");
  const std::int64_t width = model.sizes.text_width;
  const Tensor mean = f.call("sum", {f.scale(prompt)}, {{"dim", std::int64_t{1}}, {"keepdim", true}});
  const Tensor all = f.concatenate({mean, prompt}, 1);
  const Tensor keys = f.linear("to_kv", all, width, 2 * width);
  const std::vector<Tensor> parts = chunks(f, keys, 2, 2, width);
  const Tensor query = f.linear("to_q", f.slice(all, 1, 0, 1), width, width);
  const auto heads = [&](Tensor tensor) { return as_heads(f, tensor, width / kHeads); };
  const Tensor mixed = attend_heads(f, heads(query), heads(parts[0]), heads(parts[1]));
  return f.linear("to_out", f.flatten(mixed, 1, 2), width, model.sizes.width);
}

inline void write(ConfigFields& config, Head, Forward& f) {
  Model model = read(config);
  if (!config.status()) return;
  const DenoiserSample sample = denoiser_sample(
      f, {.side = 8, .frame = 6, .patch = model.patch, .usual_side = 480, .usual_frames = 85, .usual_text = 256});
  const std::int64_t width = model.sizes.width;
  const std::int64_t each = sample.height * sample.width / (model.patch * model.patch);
  model.lengths = {sample.frames * each, sample.text};
  const Tensor latents = latent_input(f, sample, model.sizes.channels, true);
  const Tensor prompt = text_input(f, sample, model.sizes.text_width);
  const Tensor sinusoids = timestep_input(f, "timestep", model.sinusoids);
  Tensor time = 0;
  TwoStreams streams;
  {
    const InModule inside(f, "time_embed", "MochiCombinedTimestepCaptionEmbedding");
    const Tensor embedded = timestep_embedding(f, "timestep_embedder", sinusoids, model.sinusoids, width);
    const Tensor pool = pooled(f, model, prompt);
    streams.text = f.linear("caption_proj", prompt, model.sizes.text_width, model.text);
    time = f.add(embedded, pool);
  }
  const Tensor frames = f.flatten(f.contiguous(f.permute(latents, {0, 2, 1, 3, 4})), 0, 1);
  const Tensor cut = f.layer("patch_embed.proj", "Conv2d", "conv2d", {frames},
                             {{"in_channels", model.sizes.channels},
                              {"out_channels", width},
                              {"kernel_size", Sizes(2, model.patch)},
                              {"stride", Sizes(2, model.patch)}});
  const Tensor rows = f.permute(f.flatten(cut, 2, 3), {0, 2, 1});
  streams.image = f.flatten(f.unflatten(rows, 0, {-1, sample.frames}), 1, 2);
  f.parameter("pos_frequencies", {3, model.sizes.heads, model.sizes.head_width / 2});
  PairTables tables = pair_tables(f, {streams.image}, width / 2);
  const Sizes by_head = {model.sizes.heads, model.sizes.head_width / 2, 1};
  const auto apart = [&](Tensor table) { return f.unflatten(f.flatten(table, 2, 3), 2, by_head); };
  tables = {apart(tables.cosines), apart(tables.sines)};
  streams =
      stack(f, "transformer_blocks", kBlocks[0], model.layers, streams, [&](const TwoStreams& x, std::int64_t index) {
        return block(f, model, x, time, tables, index + 1 == model.layers);
      });
  const Tensor normed = continuous_norm(f, "norm_out", streams.image, time, width, width);
  const std::int64_t out = model.patch * model.patch * model.sizes.out_channels;
  denoiser_loss(f, f.call("clone", {f.linear("proj_out", normed, width, out)}), {model.lengths.image, out});
}

inline constexpr auto kTreeClasses = std::to_array<ModelClass>({{"MochiTransformer3D", "MochiTransformer3DModel"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const std::int64_t patch = t.value("patch_embed.proj", "kernel_size").value_or(1);
  const std::int64_t width = denoiser_tree(t, "patch_embed.proj", "proj_out", patch * patch);
  t.set("patch_size", patch);
  t.count("num_layers", "transformer_blocks");
  t.size("pooled_projection_dim", "time_embed.caption_proj", "out_features");
  t.size("text_embed_dim", "time_embed.caption_proj", "in_features");
  t.size("time_embed_dim", "time_embed.timestep_embedder.linear_1", "in_features");
  denoiser_heads_tree(t, width, 128, "Mochi");
}

inline constexpr Architecture kArchitecture = {.name = "mochi",
                                               .model_types = names<"MochiTransformer3DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .classes = kTreeClasses,
                                               .read_tree = read_tree,
                                               .depends_on_images = true,
                                               .blocks = kBlocks};

}  // namespace mochi

}  // namespace gpumem::architectures
