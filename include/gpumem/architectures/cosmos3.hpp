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
  config.ignore({"attention_dropout",
                 "base_fps",
                 "enable_fps_modulation",
                 "latent_channel",
                 "rms_norm_eps",
                 "unified_3d_mrope_reset_spatial_ids",
                 "unified_3d_mrope_temporal_modality_margin",
                 "rope_scaling",
                 "rope_theta",
                 "sound_latent_fps",
                 "timestep_scale",
                 "rope_axes_dim",
                 "backbone_type",
                 "temporal_compression_factor",
                 "temporal_compression_factor_sound",
                 "freeze_und",
                 "use_cache",
                 "use_moe",
                 "joint_attn_implementation",
                 "action_dim",
                 "max_action_dim",
                 "qk_norm",
                 "qk_norm_for_diffusion",
                 "position_embedding_type",
                 "video_temporal_causal",
                 "sound_dim",
                 "num_embodiment_domains"});
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

inline constexpr Architecture kArchitecture = {.name = "cosmos3",
                                               .model_types = names<"Cosmos3OmniTransformer">,
                                               .usual_head = Head::none,
                                               .write = write,
                                               .blocks = kBlocks};

}  // namespace cosmos3

}  // namespace gpumem::architectures
