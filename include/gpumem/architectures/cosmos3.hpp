// Cosmos 3: a language model and a generator of images and videos of as many blocks, which ask the same attention: each
// block has projections, norms and a feed-forward layer for text tokens, and others for tokens of latents, which see
// both. Each sample is a sequence of its own there; here samples are rows of a batch, which hold as much.
// Source: diffusers 0.41.dev0 (58eb52c), models/transformers/transformer_cosmos3.py. With `_code` simpletuner:
// SimpleTuner 2026-08, helpers/models/cosmos3/transformer.py (forward_gen_only): the generator alone, which reads keys
// and values of the text that were made beforehand.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/denoiser.hpp"
#include "gpumem/architectures/dit_parts.hpp"

namespace gpumem::architectures {

namespace cosmos3 {

inline constexpr std::array<std::string_view, 1> kBlocks = {"Cosmos3VLTextMoTDecoderLayer"};

struct Model {
  std::int64_t width = 4096;
  std::int64_t inner = 12288;
  std::int64_t layers = 36;
  std::int64_t heads = 32;
  std::int64_t key_heads = 8;
  std::int64_t each = 128;
  std::int64_t vocabulary = 151936;
  std::int64_t patch = 2;
  std::int64_t patch_width = 192;  ///< of a token of latents
  bool bias = false;
  bool squares = false;        ///< a rectifier and its square in place of a gate; norms that multiply in float32
  bool norms_text = true;      ///< queries and keys of text
  bool norms_for_gen = false;  ///< keys of text as tokens of latents see them
  bool reasons = true;         ///< it has the language model
  std::int64_t unused = 0;     ///< parameters of sounds and of actions, which no sample brings here

  [[nodiscard]] std::int64_t head_width() const { return heads * each; }
};

/// DomainAwareLinear holds a weight and a bias for each kind of robot.
inline std::int64_t other_parameters(ConfigFields& config, const Model& model) {
  std::int64_t count = 0;
  if (config.flag("action_gen", false)) {
    const std::int64_t actions = dit_width(config, "action_dim", 64);
    const std::int64_t kinds = dit_width(config, "num_embodiment_domains", 32);
    constexpr std::int64_t kMostKinds = 1 << 12;
    if (kinds > kMostKinds) config.fail("is more than gpumem takes", "num_embodiment_domains");
    else count += kinds * (2 * actions * model.width + actions + model.width) + model.width;
  }
  if (config.flag("sound_gen", false)) {
    const std::int64_t sounds = dit_width(config, "sound_dim", 64);
    count += 2 * sounds * model.width + sounds + 2 * model.width;
  }
  return count;
}

inline Model read(ConfigFields& config) {
  Model model;
  model.width = dit_width(config, "hidden_size", 4096);
  model.inner = dit_width(config, "intermediate_size", 12288);
  model.layers = config.layers_or("num_hidden_layers", 36);
  model.heads = dit_width(config, "num_attention_heads", 32);
  model.key_heads = dit_width(config, "num_key_value_heads", 8);
  model.each = dit_width(config, "head_dim", 128);
  model.vocabulary = config.size_or({"vocab_size"}, 151936);
  model.patch = dit_width(config, "latent_patch_size", 2);
  model.patch_width = dit_width(config, "patch_latent_dim", 192);
  model.bias = config.flag("attention_bias", false);
  const std::string_view activation = config.text({"hidden_act"}, "silu");
  model.squares = activation == "relu2";
  if (!model.squares && activation != "silu") config.fail("is not known", "hidden_act");
  model.norms_text = config.flag("qk_norm_for_text", true);
  model.norms_for_gen = config.flag("use_und_k_norm_for_gen", false) && !model.norms_text;
  model.reasons = dit_code(config) == DitCode::diffusers && config.flag("load_reasoning_layers", true);
  model.unused = other_parameters(config, model);
  if (model.patch > 16) config.fail("is larger than gpumem takes", "latent_patch_size");
  if (model.head_width() > 1 << 20) config.fail("is wider than gpumem takes", "head_dim");
  if (model.each % 2 != 0) config.fail("must be even", "head_dim");
  if (model.heads % model.key_heads != 0) config.fail("does not divide num_attention_heads", "num_key_value_heads");
  config.ignore({"attention_dropout", "base_fps", "enable_fps_modulation", "latent_channel", "rms_norm_eps",
                 "unified_3d_mrope_reset_spatial_ids", "unified_3d_mrope_temporal_modality_margin", "rope_scaling",
                 "rope_theta", "sound_latent_fps"});
  config.ignore({"timestep_scale", "rope_axes_dim", "backbone_type", "temporal_compression_factor",
                 "temporal_compression_factor_sound", "freeze_und", "use_cache", "use_moe", "joint_attn_implementation",
                 "action_dim", "max_action_dim", "qk_norm", "qk_norm_for_diffusion", "position_embedding_type",
                 "video_temporal_causal", "sound_dim", "num_embodiment_domains"});
  return model;
}

/// RMSNorm, or Cosmos3NemotronRMSNorm, which multiplies by a copy of its weight in float32.
inline Tensor norm(Forward& f, const Model& model, std::string_view name, Tensor input, std::int64_t width) {
  if (!model.squares) return own_rms_norm(f, name, input, width);
  const InModule inside(f, name, "Cosmos3NemotronRMSNorm");
  const Tensor wide = f.to(input, "float32");
  const Tensor mean = f.call("mean", {f.call("pow", {wide})}, {{"dim", std::int64_t{-1}}, {"keepdim", true}});
  const Tensor scaled = f.multiply(wide, f.call("rsqrt", {f.call("add", {mean})}));
  return f.as_type_of(f.multiply(f.to(f.parameter("weight", {width}), "float32"), scaled), input);
}

/// Cosmos3VLTextMLP.
inline Tensor fed(Forward& f, const Model& model, std::string_view name, Tensor input) {
  const InModule inside(f, name, "Cosmos3VLTextMLP");
  const auto wide = [&](std::string_view layer) {
    return f.linear(layer, input, model.width, model.inner, {.bias = false});
  };
  Tensor open = 0;
  if (model.squares) {
    open = f.call("square", {f.call("relu", {wide("up_proj")})});
  } else {
    const Tensor gate = f.activation("act_fn", wide("gate_proj"), "silu");
    open = f.multiply(gate, wide("up_proj"));
  }
  return f.linear("down_proj", open, model.inner, model.width, {.bias = false});
}

/// Names of one stream's layers.
struct Names {
  std::string_view query, key, value, out, query_norm, key_norm, before, behind, mlp;
};
inline constexpr Names kText = {
    "to_q", "to_k", "to_v", "to_out", "norm_q", "norm_k", "input_layernorm", "post_attention_layernorm", "mlp"};
inline constexpr Names kLatents = {"add_q_proj",
                                   "add_k_proj",
                                   "add_v_proj",
                                   "to_add_out",
                                   "norm_added_q",
                                   "norm_added_k",
                                   "input_layernorm_moe_gen",
                                   "post_attention_layernorm_moe_gen",
                                   "mlp_moe_gen"};

inline std::array<Tensor, 3> heads_of(Forward& f, const Model& model, const Names& names, Tensor input) {
  const auto heads = [&](std::string_view layer, std::int64_t count) {
    return as_heads(f, f.linear(layer, input, model.width, count * model.each, {.bias = model.bias}), model.each);
  };
  const Tensor query = heads(names.query, model.heads);
  const Tensor key = heads(names.key, model.key_heads);
  return {query, key, heads(names.value, model.key_heads)};
}

inline Tensor left_by(Forward& f, const Model& model, const Names& names, Tensor mixed) {
  return f.linear(names.out, mixed, model.head_width(), model.width, {.bias = model.bias});
}

/// What tokens of latents see of the text.
struct Seen {
  Tensor key = 0;
  Tensor value = 0;
};

inline Tensor latents_attention(Forward& f, const Model& model, const std::array<Tensor, 3>& latents, const Seen& text,
                                const PairTables& tables) {
  const auto turned = [&](std::string_view name, Tensor heads) {
    return turn_halves(f, norm(f, model, name, heads, model.each), tables, model.each);
  };
  const Tensor query = turned(kLatents.query_norm, latents[0]);
  const Tensor key = f.concatenate({text.key, turned(kLatents.key_norm, latents[1])}, 1);
  return attend_fewer_heads(f, query, key, f.concatenate({text.value, latents[2]}, 1));
}

inline Tensor behind_attention(Forward& f, const Model& model, const Names& names, Tensor hidden, Tensor mixed) {
  const Tensor sum = f.add(hidden, mixed);
  return f.add(sum, fed(f, model, names.mlp, norm(f, model, names.behind, sum, model.width)));
}

struct Tables {
  PairTables text;
  PairTables latents;
};

/// TwoStreams::image are tokens of latents.
inline TwoStreams block(Forward& f, const Model& model, const TwoStreams& in, const Tables& tables) {
  const Tensor text = norm(f, model, kText.before, in.text, model.width);
  const Tensor latents = norm(f, model, kLatents.before, in.image, model.width);
  TwoStreams mixed;
  {
    const InModule inside(f, "self_attn", "Cosmos3PackedMoTAttention");
    const std::array<Tensor, 3> own = heads_of(f, model, kText, text);
    const std::array<Tensor, 3> others = heads_of(f, model, kLatents, latents);
    const auto normed = [&](std::string_view name, Tensor heads) {
      return model.norms_text ? norm(f, model, name, heads, model.each) : heads;
    };
    const auto turned = [&](Tensor heads) { return turn_halves(f, heads, tables.text, model.each); };
    const Tensor query = turned(normed(kText.query_norm, own[0]));
    const Tensor bare = normed(kText.key_norm, own[1]);
    const Tensor shown = model.norms_for_gen ? norm(f, model, "k_norm_und_for_gen", bare, model.each) : bare;
    const Tensor key = turned(bare);
    const Seen seen = {turned(shown), own[2]};
    const Tensor read = attend_fewer_heads(f, query, key, own[2], true);
    const Tensor made = latents_attention(f, model, others, seen, tables.latents);
    mixed.text = left_by(f, model, kText, read);
    mixed.image = left_by(f, model, kLatents, made);
  }
  const Tensor left = behind_attention(f, model, kText, in.text, mixed.text);
  return {behind_attention(f, model, kLatents, in.image, mixed.image), left};
}

/// The generator alone: keys and values of the text come with the sample.
inline Tensor generating_block(Forward& f, const Model& model, Tensor hidden, const Seen& seen,
                               const PairTables& tables) {
  const Tensor normed = norm(f, model, kLatents.before, hidden, model.width);
  Tensor mixed = 0;
  {
    const InModule inside(f, "self_attn", "Cosmos3PackedMoTAttention");
    mixed = latents_attention(f, model, heads_of(f, model, kLatents, normed), seen, tables);
    mixed = left_by(f, model, kLatents, mixed);
  }
  return behind_attention(f, model, kLatents, hidden, mixed);
}

/// Tokens of latents, each with its own embedding of the timestep.
inline Tensor latent_tokens(Forward& f, const Model& model, std::int64_t tokens) {
  constexpr std::int64_t kSinusoids = 256;
  const Tensor latents = f.call("clone", {token_latents(f, tokens, model.patch_width)});
  const Tensor projected = f.linear("proj_in", latents, model.patch_width, model.width);
  const Tensor sinusoids = f.sample_input("timesteps", {tokens, kSinusoids});
  const Tensor time = timestep_embedding(f, "time_embedder", sinusoids, kSinusoids, model.width);
  return f.add(projected, f.as_type_of(time, projected));
}

inline PairTables tables_of(Forward& f, const Model& model, Tensor tokens) {
  return pair_tables(f, {tokens}, model.each, kOwnType);
}

inline void write(ConfigFields& config, Head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DenoiserSample sample = denoiser_sample(f, {.side = 16, .frame = 4, .patch = model.patch, .usual_text = 512});
  const std::int64_t tokens = sample.frames * (sample.height / model.patch) * (sample.width / model.patch);
  if (model.unused > 0) (void)f.parameter("other_modalities", {model.unused}, true);
  Tensor left = 0;
  if (model.reasons) {
    const Tensor ids = f.fixed_token_input("input_ids", sample.text);
    const Tensor embedded = f.embedding("embed_tokens", ids, model.vocabulary, model.width);
    (void)f.parameter("lm_head.weight", {model.vocabulary, model.width}, true);
    const Tensor joined = f.concatenate({embedded, latent_tokens(f, model, tokens)}, 1);
    const std::vector<Tensor> parts = f.split(joined, 1, {sample.text, tokens});
    const Tables tables = {tables_of(f, model, parts[0]), tables_of(f, model, parts[1])};
    TwoStreams streams = {parts[1], parts[0]};
    streams = stack(f, "layers", kBlocks[0], model.layers, streams,
                    [&](const TwoStreams& x, std::int64_t) { return block(f, model, x, tables); });
    const Tensor text = norm(f, model, "norm", streams.text, model.width);
    const Tensor all = f.concatenate({text, norm(f, model, "norm_moe_gen", streams.image, model.width)}, 1);
    left = f.call("clone", {f.slice(all, 1, sample.text, tokens)});
  } else {
    const Tensor hidden = f.call("clone", {latent_tokens(f, model, tokens)});
    const PairTables tables = tables_of(f, model, hidden);
    const Tensor held =
        f.sample_input("reasoner_keys_and_values", {model.layers, 2, sample.text, model.key_heads, model.each});
    const Tensor made = stack(f, "layers", kBlocks[0], model.layers, hidden, [&](Tensor x, std::int64_t layer) {
      const Tensor own = f.select(held, 1, layer);
      return generating_block(f, model, x, {f.select(own, 1, 0), f.select(own, 1, 1)}, tables);
    });
    left = f.call("clone", {norm(f, model, "norm_moe_gen", made, model.width)});
  }
  const Tensor output = f.linear("proj_out", left, model.width, model.patch_width);
  denoiser_loss(f, f.call("clone", {output}), {tokens, model.patch_width});
}

inline constexpr auto kTreeClasses = std::to_array<ModelClass>(
    {{.prefix = "Cosmos3Omni", .model_type = "Cosmos3OmniTransformer", .ending = "Transformer"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  constexpr std::int64_t kHead = 128;
  t.size("hidden_size", "proj_in", "out_features");
  t.size("patch_latent_dim", "proj_in", "in_features");
  t.size("intermediate_size", "layers.0.mlp_moe_gen.up_proj", "out_features");
  t.count("num_hidden_layers", "layers");
  t.part("num_attention_heads", "layers.0.self_attn.add_q_proj", "out_features", kHead);
  t.part("num_key_value_heads", "layers.0.self_attn.add_k_proj", "out_features", kHead);
  t.set("head_dim", kHead);
  t.size("vocab_size", "embed_tokens", "num_embeddings");
  t.flag("attention_bias", "layers.0.self_attn.add_q_proj");
  if (!t.has("layers.0.mlp_moe_gen.gate_proj")) t.set_string("hidden_act", "relu2");
  t.there("qk_norm_for_text", "layers.0.self_attn.norm_q");
  t.there("use_und_k_norm_for_gen", "layers.0.self_attn.k_norm_und_for_gen");
  t.there("load_reasoning_layers", "embed_tokens");
  t.assume("heads of width 128 and patches of 2 x 2, as Cosmos 3 has");
}

inline constexpr Architecture kArchitecture = {.name = "cosmos3",
                                               .model_types = names<"Cosmos3OmniTransformer">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .classes = kTreeClasses,
                                               .read_tree = read_tree,
                                               .depends_on_images = true,
                                               .blocks = kBlocks};

}  // namespace cosmos3

// Cosmos (Predict 1 and 2): self-attention, attention to the prompt and a feed-forward layer; scales, shifts and gates
// come from low-rank layers in each block.
// Source: diffusers 0.38, models/transformers/transformer_cosmos.py, without images as conditions.

namespace cosmos {

inline constexpr std::array<std::string_view, 1> kBlocks = {"CosmosTransformerBlock"};

struct Model {
  DitSizes sizes;
  std::int64_t layers = 28;
  std::int64_t inner = 16384;
  std::int64_t low = 256;  ///< rank of the layers of scales, shifts and gates
  Sizes most = {128, 240, 240};
  Sizes patch = {1, 2, 2};
  bool padding = true;              ///< one more channel says which pixels are padding
  bool places = true;               ///< learned positions
  std::int64_t projected_from = 0;  ///< the width of the prompt before a layer of its own; 0: there is none

  [[nodiscard]] std::int64_t patch_elements() const { return patch[0] * patch[1] * patch[2]; }
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = dit_sizes(config, {.heads = 32, .text_width = 1024, .text_field = "text_embed_dim"});
  model.layers = config.layers_or("num_layers", 28);
  model.inner = dit_inner(config, "mlp_ratio", model.sizes.width, 4.0);
  model.low = dit_width(config, "adaln_lora_dim", 256);
  model.most = dit_list(config, "max_size", {128, 240, 240});
  model.patch = dit_list(config, "patch_size", {1, 2, 2});
  model.padding = config.flag("concat_padding_mask", true);
  model.places = !config.is_null("extra_pos_embed_type");
  if (config.text({"extra_pos_embed_type"}, "learnable") != "learnable") {
    config.fail("is not known", "extra_pos_embed_type");
  }
  if (config.flag("use_crossattn_projection", false)) {
    model.projected_from = dit_width(config, "crossattn_proj_in_channels", 1024);
  }
  const bool small = model.patch[0] <= 16 && model.patch[1] <= 16 && model.patch[2] == model.patch[1];
  if (!small) config.fail("must be no larger than 16, and alike in height and width", "patch_size");
  if (model.sizes.head_width % 2 != 0) config.fail("must be even", "attention_head_dim");
  if (config.has("img_context_dim_in")) config.fail("is not known", "img_context_dim_in");
  config.ignore({"rope_scale", "crossattn_proj_in_channels", "encoder_hidden_states_channels", "img_context_dim_in",
                 "controlnet_block_every_n", "img_context_num_tokens", "img_context_dim_out"});
  return model;
}

/// CosmosAdaLayerNormZero: silu, two layers, and the timestep's own scales and shifts added.
inline std::vector<Tensor> rows_of(Forward& f, const Model& model, Tensor time, Tensor shared, std::int64_t count) {
  const std::int64_t width = model.sizes.width;
  const Tensor open = f.activation("activation", time, "silu");
  const Tensor low = f.linear("linear_1", open, width, model.low, {.bias = false});
  const Tensor made = f.linear("linear_2", low, model.low, count * width, {.bias = false});
  const Tensor more = count == 3 ? shared : f.slice(shared, 1, 0, count * width);
  return row_chunks(f, f.add(made, more), count, width);
}

inline Tensor attention(Forward& f, const Model& model, std::string_view name, Tensor input, Tensor source,
                        std::int64_t source_width, const PairTables* tables) {
  const InModule inside(f, name, "Attention");
  const std::int64_t width = model.sizes.width;
  const std::int64_t each = model.sizes.head_width;
  const auto heads = [&](std::string_view layer, Tensor from, std::int64_t in) {
    return as_heads(f, f.linear(layer, from, in, width, {.bias = false}), each);
  };
  const Tensor first = heads("to_q", input, width);
  const Tensor second = heads("to_k", source, source_width);
  const Tensor value = heads("to_v", source, source_width);
  Tensor query = own_rms_norm(f, "norm_q", first, each);
  Tensor key = own_rms_norm(f, "norm_k", second, each);
  if (tables != nullptr) {
    query = turn_pairs(f, query, *tables, true);
    key = turn_pairs(f, key, *tables, true);
  }
  // repeat_interleave copies, also where heads are repeated once.
  const Tensor keys = f.call("clone", {key});
  const Tensor mixed = attend_heads(f, query, keys, f.call("clone", {value}));
  const InModule out(f, "to_out", "ModuleList");
  return f.linear("0", mixed, width, width, {.bias = false});
}

inline Tensor block(Forward& f, const Model& model, Tensor hidden, Tensor prompt, Tensor time, Tensor shared,
                    const PairTables& tables, std::optional<Tensor> places) {
  const std::int64_t width = model.sizes.width;
  if (places) hidden = f.add(hidden, *places);
  const auto branch = [&](std::string_view norm, const auto& compute) {
    std::vector<Tensor> rows;
    Tensor normed = 0;
    {
      const InModule inside(f, norm, "CosmosAdaLayerNormZero");
      rows = rows_of(f, model, time, shared, 3);
      normed = modulated(f, bare_norm(f, "norm", hidden, width), rows[1], rows[0]);
    }
    hidden = gated_sum(f, hidden, rows[2], compute(normed));
  };
  branch("norm1", [&](Tensor x) { return attention(f, model, "attn1", x, x, width, &tables); });
  branch("norm2", [&](Tensor x) { return attention(f, model, "attn2", x, prompt, model.sizes.text_width, nullptr); });
  branch("norm3",
         [&](Tensor x) { return dit_feed_forward(f, "ff", x, width, model.inner, DitActivation::gelu, false); });
  return hidden;
}

/// CosmosLearnablePositionalEmbed: the sum of three tables, of length one.
inline Tensor places_of(Forward& f, const Model& model, const Sizes& lengths) {
  const InModule inside(f, "learnable_pos_embed", "CosmosLearnablePositionalEmbed");
  const std::int64_t width = model.sizes.width;
  const std::array<std::string_view, 3> names = {"pos_emb_t", "pos_emb_h", "pos_emb_w"};
  std::array<Tensor, 3> spread{};
  for (std::size_t at = 0; at < spread.size(); ++at) {
    const std::int64_t held = std::max<std::int64_t>(model.most[at] / model.patch[at], 1);
    if (lengths[at] > held) f.fail("has positions for smaller videos; give a smaller `image` or fewer `frames`");
    if (f.failed()) return 0;
    Sizes shape = {1, 1, 1, 1, width};
    shape[at + 1] = lengths[at];
    const Tensor part = f.slice(f.parameter(names[at], {held, width}), 0, 0, lengths[at]);
    const std::vector<core::Dim> each = {core::Dim::batch(), core::Dim::fixed(lengths[0]), core::Dim::fixed(lengths[1]),
                                         core::Dim::fixed(lengths[2]), core::Dim::fixed(width)};
    spread[at] = f.call(
        "clone", {f.call("expand", {f.unflatten(part, 0, Sizes(shape.begin(), shape.end() - 1))}, {{"shape", each}})});
  }
  const Tensor sum = f.flatten(f.add(f.add(spread[0], spread[1]), spread[2]), 1, 3);
  const Tensor length = f.call("vector_norm", {sum}, {{"dim", std::int64_t{-1}}, {"keepdim", true}});
  return f.as_type_of(f.call("div", {sum, f.call("add", {length})}), sum);
}

inline void write(ConfigFields& config, Head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const std::int64_t width = model.sizes.width;
  const DenoiserSample sample = denoiser_sample(
      f, {.side = 8, .frame = 8, .patch = model.patch[1], .usual_side = 704, .usual_frames = 121, .usual_text = 512});
  const Sizes grid = {std::max<std::int64_t>(sample.frames / model.patch[0], 1), sample.height / model.patch[1],
                      sample.width / model.patch[2]};
  const std::int64_t tokens = grid[0] * grid[1] * grid[2];
  const std::int64_t area = model.patch_elements() * (model.sizes.channels + (model.padding ? 1 : 0));
  const Tensor latents = f.call("clone", {token_latents(f, tokens, area)});
  std::optional<Tensor> places;
  if (model.places) places = places_of(f, model, grid);
  if (f.failed()) return;
  Tensor hidden = f.linear("patch_embed.proj", latents, area, width, {.bias = false});
  const PairTables tables = pair_tables(f, {hidden}, model.sizes.head_width);
  const Tensor sinusoids = timestep_input(f, "timestep", width);
  Tensor time = 0;
  Tensor shared = 0;
  {
    const InModule inside(f, "time_embed", "CosmosEmbedding");
    const Tensor open = f.activation("t_embedder.activation",
                                     f.linear("t_embedder.linear_1", sinusoids, width, width, {.bias = false}), "silu");
    shared = f.linear("t_embedder.linear_2", open, width, 3 * width, {.bias = false});
    time = own_rms_norm(f, "norm", sinusoids, width);
  }
  Tensor prompt = text_input(f, sample, model.projected_from == 0 ? model.sizes.text_width : model.projected_from);
  if (model.projected_from > 0) {
    prompt = f.call("gelu", {f.linear("crossattn_proj.0", prompt, model.projected_from, model.sizes.text_width)});
  }
  hidden = stack(f, "transformer_blocks", kBlocks[0], model.layers, hidden,
                 [&](Tensor x, std::int64_t) { return block(f, model, x, prompt, time, shared, tables, places); });
  Tensor normed = 0;
  {
    const InModule inside(f, "norm_out", "CosmosAdaLayerNorm");
    const std::vector<Tensor> rows = rows_of(f, model, time, shared, 2);
    normed = modulated(f, bare_norm(f, "norm", hidden, width), rows[1], rows[0]);
  }
  const std::int64_t out = model.patch_elements() * model.sizes.out_channels;
  const Tensor output = f.linear("proj_out", normed, width, out, {.bias = false});
  denoiser_loss(f, f.call("clone", {output}), {tokens, out});
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"CosmosTransformer3D", "CosmosTransformer3DModel"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  constexpr std::int64_t kPatch = 4;
  const std::int64_t channels = t.value("patch_embed.proj", "in_features").value_or(kPatch) / kPatch;
  const bool masked = channels % 2 == 1 && channels > 1;  // a channel more says which pixels are padding
  const std::int64_t width = t.value("patch_embed.proj", "out_features").value_or(0);
  t.set("in_channels", masked ? channels - 1 : channels);
  t.set_flag("concat_padding_mask", masked);
  t.part("out_channels", "proj_out", "out_features", kPatch);
  t.count("num_layers", "transformer_blocks");
  t.ratio("mlp_ratio", "transformer_blocks.0.ff.net.0.proj", "out_features", width);
  t.size("adaln_lora_dim", "transformer_blocks.0.norm1.linear_1", "out_features");
  t.size("text_embed_dim", "transformer_blocks.0.attn2.to_k", "in_features");
  if (!t.has("learnable_pos_embed")) t.set_text("extra_pos_embed_type", "null");
  t.there("use_crossattn_projection", "crossattn_proj");
  t.size("crossattn_proj_in_channels", "crossattn_proj.0", "in_features");
  t.size("img_context_dim_in", "img_context_proj.0", "in_features");
  denoiser_heads_tree(t, width, 128, "Cosmos");
  t.assume("patches of 2 x 2 of one frame, as Cosmos has");
}

inline constexpr Architecture kArchitecture = {.name = "cosmos",
                                               .model_types = names<"CosmosTransformer3DModel">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .depends_on_images = true,
                                               .blocks = kBlocks};

}  // namespace cosmos

}  // namespace gpumem::architectures
