// Mochi: blocks with a stream of video tokens and a narrower one of text tokens; norms and scales in float32, gates
// within the norms behind each branch. The last block leaves no text.
// Source: diffusers 0.38, models/transformers/transformer_mochi.py, models/attention_processor.py (MochiAttention).
// Attention goes sample by sample there, over the prompt's tokens without padding; here prompts have none.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/denoiser.hpp"
#include "gpumem/architectures/dit_parts.hpp"

namespace gpumem::architectures {

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

inline constexpr Architecture kArchitecture = {.name = "mochi",
                                               .model_types = names<"MochiTransformer3DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .blocks = kBlocks};

}  // namespace mochi

}  // namespace gpumem::architectures
