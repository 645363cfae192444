// HiDream-I1: blocks with a stream of image tokens and one of text tokens, then blocks over all tokens; the image's
// feed-forward layer is a mixture of experts. Each block reads another layer of Llama 3 besides.
// Source: diffusers 0.38, models/transformers/transformer_hidream_image.py. Experts are taken to get as many tokens
// each. What its class leaves open (patch_size, caption_channels, llama_layers) is as in the published models.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/denoiser.hpp"
#include "gpumem/architectures/dit_parts.hpp"

namespace gpumem::architectures {

namespace hidream {

inline constexpr std::array<std::string_view, 1> kBlocks = {"HiDreamBlock"};

struct Model {
  DitSizes sizes;
  std::int64_t blocks = 16;
  std::int64_t singles = 32;
  std::int64_t patch = 2;
  std::int64_t pooled = 2048;
  std::int64_t experts = 4;
  std::int64_t used = 2;
  Sizes captions = {4096, 4096};  ///< widths of T5's and of Llama's features
  std::int64_t image = 1;         ///< tokens
  std::int64_t text = 1;          ///< of each text encoder

  /// HiDreamImageFeedForwardSwiGLU: two thirds, made a multiple of 256.
  [[nodiscard]] static std::int64_t inner(std::int64_t hidden) { return (2 * hidden / 3 + 255) / 256 * 256; }
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = dit_sizes(config, {.heads = 20, .channels = 64, .text_width = 4096, .text_field = "text_width"});
  model.blocks = dit_layers(config, "num_layers", 16);
  model.singles = dit_layers(config, "num_single_layers", 32);
  model.patch = dit_patch(config);
  model.pooled = dit_width(config, "text_emb_dim", 2048);
  model.experts = config.count_or("num_routed_experts", 4);
  model.used = config.count_or("num_activated_experts", 2);
  model.captions = dit_list(config, "caption_channels", {4096, 4096});
  if (model.experts > 256 || model.used > model.experts || (model.experts > 0 && model.used == 0)) {
    config.fail("must be from 1 to the routed experts, of which gpumem takes 256", "num_activated_experts");
  }
  constexpr std::int64_t kMostExperts = 1 << 14;  // of all blocks: each is some layers of the graph
  if (model.experts * (model.blocks + model.singles) > kMostExperts) {
    config.fail("no model has this many experts", "num_routed_experts");
  }
  config.ignore({"axes_dims_rope", "max_resolution", "llama_layers", "force_inference_output"});
  return model;
}

/// Two products of a 2 x 2 matrix for each pair, in float32. `matrices`: [1, S, 1, 2 width].
inline Tensor turned(Forward& f, Tensor heads, Tensor matrices, std::int64_t width) {
  const Tensor pairs = f.unflatten(f.to(heads, "float32"), 3, {width / 2, 1, 2});
  const Tensor all = f.unflatten(matrices, 3, {width / 2, 2, 2});
  const auto product = [&](std::int64_t column) {
    return f.multiply(f.select(pairs, 5, column), f.select(all, 5, column));
  };
  const Tensor first = product(0);
  return f.as_type_of(f.flatten(f.add(first, product(1)), 3, 4), heads);
}

inline std::array<Tensor, 3> projected(Forward& f, const Model& model, Tensor input, const std::string& suffix) {
  const std::int64_t width = model.sizes.width;
  const auto flat = [&](const std::string& name) { return f.linear(name + suffix, input, width, width); };
  const Tensor query = torch_rms_norm(f, "q_rms_norm" + suffix, flat("to_q"), width);
  const Tensor key = torch_rms_norm(f, "k_rms_norm" + suffix, flat("to_k"), width);
  std::array<Tensor, 3> heads = {query, key, flat("to_v")};
  for (Tensor& tensor : heads) tensor = as_heads(f, tensor, model.sizes.head_width);
  return heads;
}

inline Tensor attend(Forward& f, const Model& model, std::array<Tensor, 3> heads, Tensor matrices) {
  heads[0] = turned(f, heads[0], matrices, model.sizes.head_width);
  heads[1] = turned(f, heads[1], matrices, model.sizes.head_width);
  return attend_heads(f, heads[0], heads[1], heads[2]);
}

inline TwoStreams joint(Forward& f, const Model& model, const TwoStreams& in, Tensor matrices) {
  const InModule inside(f, "attn1", "HiDreamAttention");
  const std::int64_t width = model.sizes.width;
  std::array<Tensor, 3> heads = projected(f, model, in.image, "");
  const std::array<Tensor, 3> text = projected(f, model, in.text, "_t");
  for (std::size_t at = 0; at < heads.size(); ++at) heads[at] = f.concatenate({heads[at], text[at]}, 1);
  const Tensor mixed = attend(f, model, heads, matrices);
  const std::vector<Tensor> parts = f.split(mixed, 1, {model.image, 3 * model.text});
  const Tensor image = f.linear("to_out", parts[0], width, width);
  return {image, f.linear("to_out_t", parts[1], width, width)};
}

/// MOEFeedForwardSwiGLU: each token copied for each of its experts, rows gathered by expert and put back.
inline Tensor mixture(Forward& f, const Model& model, Tensor input, std::int64_t tokens) {
  const std::int64_t width = model.sizes.width;
  if (model.experts == 0) {
    return three_layers(f, "ff_i", "HiDreamImageFeedForwardSwiGLU", input, width, Model::inner(4 * width));
  }
  const InModule inside(f, "ff_i", "MOEFeedForwardSwiGLU");
  const Tensor logits = f.linear("gate", input, width, model.experts, {.bias = false, .class_name = "MoEGate"});
  const Tensor weights = f.slice(f.call("softmax", {logits}), 2, 0, model.used);
  const std::vector<Tensor> copies(static_cast<std::size_t>(model.used), input);
  const Tensor repeated = f.concatenate(copies, 1);
  std::vector<Tensor> made;
  std::int64_t from = 0;
  const InModule list(f, "experts", "ModuleList");
  for (std::int64_t expert = 0; expert < model.experts; ++expert) {
    const std::int64_t to = model.used * tokens * (expert + 1) / model.experts;
    const Tensor rows = f.call("clone", {f.slice(repeated, 1, from, std::max<std::int64_t>(to - from, 1))});
    f.part_of_expert(static_cast<std::uint32_t>(expert + 1));
    made.push_back(
        three_layers(f, std::to_string(expert), "HiDreamImageFeedForwardSwiGLU", rows, width, Model::inner(4 * width)));
    f.part_of_expert(0);
    from = to;
  }
  const Tensor outputs = f.unflatten(f.concatenate(made, 1), 1, {tokens, model.used});
  const Tensor weighted = f.multiply(outputs, unsqueezed(f, weights, 3));
  return f.call("sum", {weighted}, {{"dim", std::int64_t{2}}});
}

inline Tensor fed_image(Forward& f, const Model& model, Tensor input, std::int64_t tokens) {
  const Tensor made = mixture(f, model, input, tokens);
  if (model.experts == 0) return made;
  const std::int64_t width = model.sizes.width;
  return f.add(made, three_layers(f, "ff_i.shared_experts", "HiDreamImageFeedForwardSwiGLU", input, width,
                                  Model::inner(2 * width)));
}

inline std::vector<Tensor> rows_of(Forward& f, const Model& model, Tensor time, std::int64_t count) {
  const InModule inside(f, "adaLN_modulation", "Sequential");
  const Tensor open = f.activation("0", time, "silu");
  const Tensor made = f.linear("1", open, model.sizes.width, count * model.sizes.width);
  return row_chunks(f, made, count, model.sizes.width);
}

inline Tensor scaled(Forward& f, const Model& model, std::string_view name, Tensor hidden, Tensor shift, Tensor scale) {
  return modulated(f, bare_norm(f, name, hidden, model.sizes.width), scale, shift);
}

inline TwoStreams double_block(Forward& f, const Model& model, const TwoStreams& in, Tensor time, Tensor matrices) {
  const InModule inside(f, "block", "HiDreamImageTransformerBlock");
  const std::int64_t width = model.sizes.width;
  const std::vector<Tensor> r = rows_of(f, model, time, 12);
  const Tensor normed = scaled(f, model, "norm1_i", in.image, r[0], r[1]);
  const Tensor normed_text = scaled(f, model, "norm1_t", in.text, r[6], r[7]);
  const TwoStreams mixed = joint(f, model, {normed, normed_text}, matrices);
  const Tensor image = gated_sum(f, in.image, r[2], mixed.image);
  const Tensor text = gated_sum(f, in.text, r[8], mixed.text);
  const Tensor again = scaled(f, model, "norm3_i", image, r[3], r[4]);
  const Tensor again_text = scaled(f, model, "norm3_t", text, r[9], r[10]);
  const Tensor made = f.multiply(r[5], fed_image(f, model, again, model.image));
  const Tensor made_text = f.multiply(
      r[11], three_layers(f, "ff_t", "HiDreamImageFeedForwardSwiGLU", again_text, width, Model::inner(4 * width)));
  return {f.add(made, image), f.add(made_text, text)};
}

inline Tensor single_block(Forward& f, const Model& model, Tensor hidden, Tensor time, Tensor matrices) {
  const InModule inside(f, "block", "HiDreamImageSingleTransformerBlock");
  const std::int64_t width = model.sizes.width;
  const std::vector<Tensor> r = rows_of(f, model, time, 6);
  const Tensor normed = scaled(f, model, "norm1_i", hidden, r[0], r[1]);
  Tensor mixed = 0;
  {
    const InModule attention(f, "attn1", "HiDreamAttention");
    mixed = f.linear("to_out", attend(f, model, projected(f, model, normed, ""), matrices), width, width);
  }
  const Tensor attended = gated_sum(f, hidden, r[2], mixed);
  const Tensor again = scaled(f, model, "norm3_i", attended, r[3], r[4]);
  return f.add(f.multiply(r[5], fed_image(f, model, again, model.image + 3 * model.text)), attended);
}

inline Tensor time_of(Forward& f, const Model& model) {
  constexpr std::int64_t kSinusoids = 256;
  const std::int64_t width = model.sizes.width;
  const Tensor sinusoids = timestep_input(f, "timestep", kSinusoids);
  const Tensor time = timestep_embedding(f, "t_embedder.timestep_embedder", sinusoids, kSinusoids, width);
  const Tensor pooled = f.sample_input("pooled_embeds", {model.pooled});
  return f.add(time, timestep_embedding(f, "p_embedder.pooled_embedder", pooled, model.pooled, width));
}

/// The prompt as each block reads it, and at the end as T5 gives it.
inline std::vector<Tensor> captions_of(Forward& f, const Model& model) {
  const std::int64_t width = model.sizes.width;
  const std::int64_t blocks = model.blocks + model.singles;
  const Tensor llama = f.sample_input("encoder_hidden_states_llama3", {blocks, model.text, model.captions[1]});
  const Tensor t5 = f.sample_input("encoder_hidden_states_t5", {model.text, model.captions[0]});
  std::vector<Tensor> made;
  const InModule list(f, "caption_projection", "ModuleList");
  for (std::int64_t index = 0; index < blocks; ++index) {
    made.push_back(f.linear(std::to_string(index) + ".linear", f.select(llama, 1, index), model.captions[1], width,
                            {.bias = false}));
  }
  made.push_back(f.linear(std::to_string(blocks) + ".linear", t5, model.captions[0], width, {.bias = false}));
  return made;
}

inline Tensor blocks_of(Forward& f, const Model& model, Tensor image, Tensor time) {
  const std::vector<Tensor> captions = captions_of(f, model);
  Tensor kept = f.concatenate({captions.back(), captions[captions.size() - 2]}, 1);
  const Tensor first = f.concatenate({kept, captions[0]}, 1);
  const auto table = [&](Tensor tokens) {
    return f.call("rotary_table", {tokens}, {{"width", 2 * model.sizes.head_width}, {"dtype", std::string("float32")}});
  };
  const Tensor matrices = f.permute(f.concatenate({table(image), table(first)}, 2), {0, 2, 1, 3});
  {
    const InModule list(f, "double_stream_blocks", "ModuleList");
    for (std::int64_t index = 0; index < model.blocks && !f.failed(); ++index) {
      const Tensor text = f.concatenate({kept, captions[static_cast<std::size_t>(index)]}, 1);
      TwoStreams left;
      {
        const InModule inside(f, std::to_string(index), kBlocks[0]);
        left = double_block(f, model, {image, text}, time, matrices);
      }
      image = left.image;
      kept = f.slice(left.text, 1, 0, 2 * model.text);
    }
  }
  Tensor hidden = f.concatenate({image, kept}, 1);
  const InModule list(f, "single_stream_blocks", "ModuleList");
  for (std::int64_t index = 0; index < model.singles && !f.failed(); ++index) {
    const auto at = static_cast<std::size_t>(model.blocks + index);
    hidden = f.concatenate({hidden, captions[at]}, 1);
    {
      const InModule inside(f, std::to_string(index), kBlocks[0]);
      hidden = single_block(f, model, hidden, time, matrices);
    }
    hidden = f.slice(hidden, 1, 0, model.image + 2 * model.text);
  }
  return f.slice(hidden, 1, 0, model.image);
}

inline void write(ConfigFields& config, Head, Forward& f) {
  Model model = read(config);
  if (!config.status()) return;
  if (model.blocks + model.singles == 0) return f.fail("has no blocks");
  const DenoiserSample sample = denoiser_sample(f, {.side = 8, .patch = model.patch, .usual_text = 128});
  model.image = sample.height * sample.width / (model.patch * model.patch);
  model.text = sample.text;
  const std::int64_t width = model.sizes.width;
  const std::int64_t area = model.patch * model.patch * model.sizes.channels;
  const Tensor latents = f.call("clone", {token_latents(f, model.image, area)});
  const Tensor image = f.linear("x_embedder.proj", latents, area, width);
  const Tensor time = time_of(f, model);
  const Tensor hidden = blocks_of(f, model, image, time);
  const InModule inside(f, "final_layer", "HiDreamImageOutEmbed");
  const std::vector<Tensor> last = rows_of(f, model, time, 2);
  const Tensor normed = scaled(f, model, "norm_final", hidden, last[0], last[1]);
  const std::int64_t out = model.patch * model.patch * model.sizes.out_channels;
  denoiser_loss(f, f.call("clone", {f.linear("linear", normed, width, out)}), {model.image, out});
}

inline constexpr auto kTreeClasses =
    std::to_array<ModelClass>({{"HiDreamImageTransformer2D", "HiDreamImageTransformer2DModel"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  constexpr std::int64_t kPatch = 4;
  const std::int64_t blocks = t.count_of("double_stream_blocks") + t.count_of("single_stream_blocks");
  const std::int64_t width = denoiser_tree(t, "x_embedder.proj", "final_layer.linear", kPatch);
  const auto captions = [&](std::int64_t at) {
    return t.value("caption_projection." + std::to_string(at) + ".linear", "in_features").value_or(1);
  };
  t.set("num_layers", t.count_of("double_stream_blocks"));
  t.set("num_single_layers", t.count_of("single_stream_blocks"));
  t.size("text_emb_dim", "p_embedder.pooled_embedder.linear_1", "in_features");
  t.list("caption_channels", std::array{captions(blocks), captions(0)});
  t.set("num_routed_experts", t.count_of("double_stream_blocks.0.block.ff_i.experts"));
  denoiser_heads_tree(t, width, 128, "HiDream");
  t.assume("patches of 2 x 2, and two experts for each token");
}

inline constexpr Architecture kArchitecture = {.name = "hidream",
                                               .model_types = names<"HiDreamImageTransformer2DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .classes = kTreeClasses,
                                               .read_tree = read_tree,
                                               .depends_on_images = true,
                                               .blocks = kBlocks};

}  // namespace hidream

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

inline constexpr auto kClasses = std::to_array<ModelClass>({{"ZImageTransformer2D", "ZImageTransformer2DModel"}});

/// What print(model) shows: all but the heads, which are 128 wide.
inline void read_tree(TreeFields& t) {
  constexpr std::int64_t kHead = 128;
  constexpr std::int64_t kPatches = 4;
  const std::int64_t width = t.value("cap_embedder.1", "out_features").value_or(kHead);
  t.set("dim", width);
  t.set("n_heads", std::max<std::int64_t>(width / kHead, 1));
  t.size("cap_feat_dim", "cap_embedder.1", "in_features");
  t.count("n_layers", "layers");
  t.count("n_refiner_layers", "noise_refiner");
  t.set("in_channels", std::max<std::int64_t>(t.value("all_x_embedder.2-1", "in_features").value_or(0) / kPatches, 1));
  t.there("qk_norm", "layers.0.attention.norm_q");
  t.assume("heads of width 128, as Z-Image has");
}

inline constexpr Architecture kArchitecture = {.name = "z_image",
                                               .model_types = names<"ZImageTransformer2DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .depends_on_images = true,
                                               .blocks = kBlocks};

}  // namespace z_image

}  // namespace gpumem::architectures
