// Bamba and Falcon-H1: layers of Mamba-2 and of attention, each with a gated feed-forward layer. In Bamba a layer is
// one or the other; in Falcon-H1 both read the same norm side by side, and their results are added.
// Source: transformers 4.57, models/bamba/modeling_bamba.py, models/falcon_h1/modeling_falcon_h1.py; arXiv:2507.22448.
#pragma once

#include <array>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/mamba_mixers.hpp"

namespace gpumem::architectures {

namespace bamba {

inline Mamba2Fields mixer_fields(std::string_view prefix) {
  return {.heads = "mamba_n_heads",
          .head_width = "mamba_d_head",
          .groups = "mamba_n_groups",
          .state = "mamba_d_state",
          .kernel = "mamba_d_conv",
          .chunk = "mamba_chunk_size",
          .bias = "mamba_proj_bias",
          .convolution_bias = "mamba_conv_bias",
          .usual = {.name = "mamba",
                    .class_name = std::string(prefix) + "Mixer",
                    .norm_class = std::string(prefix) + "RMSNormGated",
                    .heads = 128,
                    .head_width = 64,
                    .groups = 1,
                    .state = 256}};
}

struct Model {
  DecoderSizes sizes;
  std::string_view prefix = "Bamba";
  bool parallel = false;  ///< Falcon-H1
  std::vector<LayerKind> kinds;
  Mamba2Mixer mixer;
  std::int64_t turned = 2;  ///< elements of a head with rotary positions
  bool bias = false;
  bool mlp_bias = false;

  [[nodiscard]] std::string named(std::string_view part) const { return std::string(prefix).append(part); }
};

/// attn_layer_indices: which layers are attention.
inline std::vector<LayerKind> read_kinds(ConfigFields& config, std::int64_t layers, bool parallel) {
  const std::vector<bool> listed = config.layers_listed("attn_layer_indices", layers);
  std::vector<LayerKind> kinds = mixer_kinds(config, "layer_types", layers);
  if (parallel) kinds.assign(static_cast<std::size_t>(layers), LayerKind::both);
  if (kinds.empty() && !listed.empty()) return kinds_of(listed, LayerKind::attention);
  if (kinds.empty()) kinds.assign(static_cast<std::size_t>(layers), LayerKind::recurrent);
  return kinds;
}

inline void read_multipliers(ConfigFields& config) {
  config.ignore({"attention_in_multiplier", "attention_out_multiplier", "embedding_multiplier", "key_multiplier",
                 "lm_head_multiplier", "mlp_multipliers", "ssm_in_multiplier", "ssm_multipliers", "ssm_out_multiplier",
                 "mamba_norm_before_gate", "mamba_use_mlp", "mamba_expand", "num_logits_to_keep", "z_loss_coefficient",
                 "time_step_limit", "time_step_min", "time_step_max"});
}

inline Model read(ConfigFields& config) {
  Model model;
  model.parallel = config.text({"model_type"}, "bamba") == "falcon_h1";
  model.prefix = model.parallel ? "FalconH1" : "Bamba";
  // FalconH1Config's own values; no published model has both.
  if (model.parallel) config.complete(R"({"vocab_size": 128000, "intermediate_size": 14336})");
  model.sizes = decoder_sizes(config);
  model.kinds = read_kinds(config, model.sizes.layers, model.parallel);
  const std::int64_t inner = config.size_or({"mamba_d_ssm"}, 0);
  model.mixer = mamba2_sizes(config, mixer_fields(model.prefix));
  model.mixer.width = model.sizes.width;
  model.mixer.multiplies = model.parallel;
  if (inner > 0 && inner != model.mixer.inner()) config.fail("is not mamba_n_heads x mamba_d_head", "mamba_d_ssm");
  if (model.parallel && !config.flag("mamba_rms_norm", true)) model.mixer.norm_class.clear();
  model.mixer.output_bias = config.flag("projectors_bias", model.mixer.output_bias);
  const double usual_share = model.parallel ? 1.0 : 0.5;
  model.turned = rotary_width(config, model.sizes, {"partial_rotary_factor"}, usual_share);
  model.bias = config.flag("attention_bias", false);
  model.mlp_bias = config.flag("mlp_bias", false);
  read_multipliers(config);
  return model;
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const InModule inside(f, "self_attn", model.named("Attention"));
  const DecoderSizes& s = model.sizes;
  const std::int64_t each = s.head_width;
  const Linear wide = {.bias = model.bias, .split = Split::columns};
  const auto projected = [&](std::string_view name, std::int64_t count) {
    return f.linear(name, input, s.width, count * each, wide);
  };
  const Tensor query = split_heads(f, projected("q_proj", s.heads), each);
  const Tensor flat = projected("k_proj", s.kv_heads);
  const Tensor key = split_heads(f, model.parallel ? f.scale(flat) : flat, each);
  const Tensor value = split_heads(f, projected("v_proj", s.kv_heads), each);
  const Heads turned = {rotate(f, query, rotary, each), rotate(f, key, rotary, each), value};
  f.cache(turned.key);
  f.cache(turned.value);
  const Tensor attended = attend(f, turned, {.groups = s.heads / s.kv_heads, .dropout = s.attention_dropout});
  return f.linear("o_proj", attended, s.heads * each, s.width, {.bias = model.bias, .split = Split::rows});
}

/// Falcon-H1 multiplies the gate before its activation, and the result.
inline Tensor feed_forward_layer(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "feed_forward", model.named("MLP"));
  const DecoderSizes& s = model.sizes;
  const Linear wide = {.bias = model.mlp_bias, .split = Split::columns};
  const auto scaled = [&](Tensor tensor) { return model.parallel ? f.scale(tensor) : tensor; };
  const Tensor gate = scaled(f.linear("gate_proj", input, s.width, s.inner, wide));
  const Tensor open = f.activation("act_fn", gate, s.activation);
  const Tensor up = f.linear("up_proj", input, s.width, s.inner, wide);
  return scaled(
      f.linear("down_proj", f.multiply(open, up), s.inner, s.width, {.bias = model.mlp_bias, .split = Split::rows}));
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary, LayerKind kind) {
  const std::int64_t width = model.sizes.width;
  const Tensor normed = f.rms_norm("input_layernorm", input, width, model.named("RMSNorm"));
  Tensor mixed = 0;
  if (kind == LayerKind::both) {
    const Tensor scanned = f.scale(mamba2_mixer(f, model.mixer, normed));
    mixed = f.add(scanned, f.scale(attention(f, model, f.scale(normed), rotary)));
  } else {
    mixed = kind == LayerKind::attention ? attention(f, model, normed, rotary) : mamba2_mixer(f, model.mixer, normed);
  }
  const Tensor attended = f.add(input, mixed);
  const Tensor again = f.rms_norm("pre_ff_layernorm", attended, width, model.named("RMSNorm"));
  return f.add(attended, feed_forward_layer(f, model, again));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const bool says_sizes = config.has("vocab_size") && config.has("intermediate_size");
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  if (!says_sizes) {
    f.doubt({model::Doubt::About::fields,
             "vocab_size and intermediate_size are not both in the config: they are taken as FalconH1Config has them"});
  }
  doubt_kernels(f, "mamba-ssm and causal-conv1d");
  decoder_model(f, config, s, head, {.class_name = model.named("Model"), .head = {.scales = model.parallel}},
                [&](Tensor ids, Tensor hidden) {
                  if (model.parallel) hidden = f.scale(hidden);
                  const Rotary rotary = rotary_tables(f, ids, model.turned);
                  hidden = stack(f, "layers", model.named("DecoderLayer"), s.layers, hidden,
                                 [&](Tensor x, std::int64_t index) {
                                   return block(f, model, x, rotary, model.kinds[static_cast<std::size_t>(index)]);
                                 });
                  return f.rms_norm("final_layernorm", hidden, s.width, model.named("RMSNorm"));
                });
}

inline constexpr auto kClasses =
    std::to_array<ModelClass>({{"Bamba", "bamba", "model"}, {"FalconH1", "falcon_h1", "model"}});
/// Published models, by width.
inline constexpr auto kPublished =
    std::to_array<PublishedHeads>({{1024, 8}, {1280, 10}, {2048, 8}, {2560, 10}, {3072, 12}, {5120, 20}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  t.labels();
  const bool parallel = t.class_name().starts_with("FalconH1");
  t.size("intermediate_size", "layers.0.feed_forward.gate_proj", "out_features");
  t.flag("mlp_bias", "layers.0.feed_forward.gate_proj");
  std::string mamba;
  std::string attention;
  std::string indices;
  for (std::int64_t at = 0; at < std::min(t.count_of("layers"), ConfigFields::kMostLayers); ++at) {
    const std::string layer = "layers." + std::to_string(at);
    const bool attends = t.has(layer + ".self_attn.q_proj");
    if (attends && attention.empty()) attention = layer + ".self_attn";
    if (mamba.empty() && t.has(layer + ".mamba.in_proj")) mamba = layer + ".mamba";
    if (attends) indices += (indices.empty() ? "" : ", ") + std::to_string(at);
  }
  if (!parallel) t.set_text("attn_layer_indices", "[" + indices + "]");
  tree_mamba2(t, mamba, mixer_fields(parallel ? "FalconH1" : "Bamba"), 1);
  t.there("mamba_rms_norm", mamba + ".norm");
  t.flag("projectors_bias", mamba + ".out_proj");
  t.flag("attention_bias", attention + ".q_proj");
  if (attention.empty()) return t.set("num_attention_heads", 1);
  t.heads({.query = attention + ".q_proj",
           .key = attention + ".k_proj",
           .published = parallel ? std::span<const PublishedHeads>(kPublished) : std::span<const PublishedHeads>(),
           .usual_width = 128});
}

inline constexpr Architecture kArchitecture = {.name = "bamba",
                                               .model_types = names<"bamba", "falcon_h1">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree};

}  // namespace bamba

}  // namespace gpumem::architectures
