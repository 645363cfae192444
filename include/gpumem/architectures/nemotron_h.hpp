// Nemotron-H and Nemotron 3 (Nano, Super, Ultra): each layer is one of a Mamba-2 mixer, attention without positions, a
// feed-forward layer of relu squared, or experts of it, in Super and Ultra behind a projection that all experts share.
// Source: transformers 5.3, models/nemotron_h/modeling_nemotron_h.py and configuration_nemotron_h.py; arXiv:2504.03624.
// The module that predicts further tokens (MTP) is not part of it, as transformers does not load it.
#pragma once

#include <array>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/mamba_mixers.hpp"
#include "gpumem/architectures/mixture.hpp"

namespace gpumem::architectures {

namespace nemotron_h {

inline Mamba2Fields mixer_fields() {
  return {.heads = "mamba_num_heads",
          .head_width = "mamba_head_dim",
          .groups = "n_groups",
          .state = "ssm_state_size",
          .kernel = "conv_kernel",
          .chunk = "chunk_size",
          .bias = "mamba_proj_bias",
          .convolution_bias = "use_conv_bias",
          .usual = {.name = "mixer",
                    .class_name = "NemotronHMamba2Mixer",
                    .norm_class = "MambaRMSNormGated",
                    .heads = 128,
                    .head_width = 64,
                    .groups = 8,
                    .state = 128,
                    .chunk = 128,
                    .shared = true}};
}

struct Model {
  DecoderSizes sizes;
  std::vector<LayerKind> kinds;
  Mamba2Mixer mixer;
  bool bias = false;  ///< of attention
  bool mlp_bias = false;
  Mixture mixture;
  std::int64_t shared_inner = 0;  ///< of the expert that all tokens go to
  std::int64_t latent = 0;        ///< width that the experts read; 0: the hidden states'
};

/// A letter a layer.
inline std::vector<LayerKind> read_pattern(ConfigFields& config) {
  std::vector<LayerKind> kinds;
  for (const char letter : config.text({"hybrid_override_pattern"}, "")) {
    switch (letter) {
      case 'M': kinds.push_back(LayerKind::recurrent); break;
      case '*': kinds.push_back(LayerKind::attention); break;
      case 'E': kinds.push_back(LayerKind::experts); break;
      case '-': kinds.push_back(LayerKind::feed_forward); break;
      default: config.fail("has a letter that is not one of M, *, E and -", "hybrid_override_pattern"); return kinds;
    }
  }
  return kinds;
}

inline std::vector<LayerKind> read_kinds(ConfigFields& config) {
  static constexpr auto kNames = std::to_array<LayerKindName>({{"mamba", LayerKind::recurrent},
                                                               {"linear_attention", LayerKind::recurrent},
                                                               {"attention", LayerKind::attention},
                                                               {"full_attention", LayerKind::attention},
                                                               {"moe", LayerKind::experts},
                                                               {"mlp", LayerKind::feed_forward}});
  std::vector<LayerKind> kinds = read_pattern(config);
  for (const std::string_view field : {"layers_block_type", "layer_types"}) {
    std::vector<LayerKind> listed = layer_kinds(config, field, kNames);
    if (kinds.empty()) kinds = std::move(listed);
  }
  if (kinds.empty()) config.fail("or layers_block_type must say what each layer is", "hybrid_override_pattern");
  if (static_cast<std::int64_t>(kinds.size()) > ConfigFields::kMostLayers) {
    config.fail("no model has this many layers", "hybrid_override_pattern");
  }
  return kinds;
}

inline void read_mixture(ConfigFields& config, Model& model) {
  const auto experts = static_cast<std::int64_t>(std::ranges::count(model.kinds, LayerKind::experts));
  if (experts > 0) {
    model.mixture = {.experts = config.size({"n_routed_experts"}),
                     .per_token = config.size({"num_experts_per_tok"}),
                     .inner = config.size({"moe_intermediate_size"}),
                     .expert_class = "NemotronHMLP"};
    model.shared_inner = config.size({"moe_shared_expert_intermediate_size"});
    model.latent = config.size_or({"moe_latent_size"}, 0);
    check_mixture(config, model.mixture, experts, "n_routed_experts", "num_experts_per_tok");
  }
  config.ignore({"n_routed_experts", "num_experts_per_tok", "moe_intermediate_size", "n_shared_experts",
                 "moe_shared_expert_intermediate_size", "moe_latent_size", "moe_shared_expert_overlap", "n_group",
                 "topk_group", "norm_topk_prob", "routed_scaling_factor", "num_nextn_predict_layers",
                 "mtp_layers_block_type", "mtp_hybrid_override_pattern"});
}

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes.vocabulary = config.size({"vocab_size"});
  model.sizes.width = config.size({"hidden_size"});
  model.kinds = read_kinds(config);
  model.sizes.layers = static_cast<std::int64_t>(model.kinds.size());
  const std::int64_t said = config.size_or({"num_hidden_layers"}, model.sizes.layers);
  if (said != model.sizes.layers && !model.kinds.empty()) {
    config.fail("is not the number of layers that the pattern has", "num_hidden_layers");
  }
  model.sizes.heads = config.size({"num_attention_heads"});
  model.sizes.kv_heads = config.size_or({"num_key_value_heads"}, model.sizes.heads);
  model.sizes.head_width = config.size_or({"head_dim", "attention_head_dim"}, 128);
  model.sizes.inner = config.size({"intermediate_size"});
  model.sizes.activation = config.text({"mlp_hidden_act"}, "relu2");
  model.sizes.tied = config.flag("tie_word_embeddings", false);
  model.sizes.attention_dropout = config.number({"attention_dropout"}, 0.0);
  if (model.sizes.heads % model.sizes.kv_heads != 0) config.fail("does not divide the heads", "num_key_value_heads");
  if (model.sizes.heads * model.sizes.head_width > ConfigFields::kLargestSize) config.fail("is too wide", "head_dim");
  model.mixer = mamba2_sizes(config, mixer_fields());
  model.mixer.width = model.sizes.width;
  // Source: NemotronHMamba2Mixer.__init__: use_bias, which mamba_proj_bias does not change.
  model.mixer.input_bias = config.flag("use_bias", false);
  model.mixer.output_bias = model.mixer.input_bias;
  model.bias = config.flag("attention_bias", false);
  model.mlp_bias = config.flag("mlp_bias", false);
  read_mixture(config, model);
  if (config.flag("residual_in_fp32", false)) config.fail("float32 residuals are not known", "residual_in_fp32");
  config.ignore({"expand", "mamba_ssm_cache_dtype", "time_step_limit", "time_step_rank", "time_step_min",
                 "time_step_max", "time_step_floor", "num_logits_to_keep", "rescale_prenorm_residual",
                 "use_mamba_kernels", "hidden_dropout", "partial_rotary_factor"});
  return model;
}

/// down_proj(act(up_proj(x))), in the module that is open.
inline Tensor plain_layer(Forward& f, const Model& model, Tensor input, std::int64_t width, std::int64_t inner) {
  const Tensor wide = f.linear("up_proj", input, width, inner, {.bias = model.mlp_bias, .split = Split::columns});
  const Tensor active = f.activation("act_fn", wide, model.sizes.activation);
  return f.linear("down_proj", active, inner, width, {.bias = model.mlp_bias, .split = Split::rows});
}

inline Tensor attention(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "mixer", "NemotronHAttention");
  const DecoderSizes& s = model.sizes;
  const auto [query, key, value] = project_heads(f, s, input, {.bias = model.bias, .split = Split::columns});
  f.cache(key);
  f.cache(value);
  const Tensor attended =
      attend(f, {query, key, value}, {.groups = s.heads / s.kv_heads, .dropout = s.attention_dropout});
  return f.linear("o_proj", attended, s.heads * s.head_width, s.width, {.bias = model.bias, .split = Split::rows});
}

/// Scores and weights of the experts are float32, and so is the sum. The bias that corrects the choice is a buffer.
inline Tensor mixture(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "mixer", "NemotronHMoE");
  const std::int64_t width = model.sizes.width;
  const Mixture& m = model.mixture;
  Tensor weights = 0;
  {
    const InModule gate(f, "gate", "NemotronHTopkRouter");
    const Tensor matrix = f.to(f.parameter("weight", {m.experts, width}), "float32");
    const Tensor scores = f.call("sigmoid", {f.call("linear_function", {f.to(input, "float32"), matrix})});
    (void)f.constant("e_score_correction_bias", {m.experts}, "float32");
    weights = f.scale(f.slice(scores, 2, 0, m.per_token));
  }
  const bool narrows = model.latent > 0;
  const std::int64_t read = narrows ? model.latent : width;
  const Tensor rows = narrows ? f.linear("fc1_latent_proj", input, width, read, {.bias = model.mlp_bias}) : input;
  const auto expert = [&](Tensor own) { return plain_layer(f, model, own, read, m.inner); };
  const Tensor zeros = f.call("token_zeros", {f.to(rows, "float32")});
  Tensor sum = f.as_type_of(add_experts(f, m, rows, weights, zeros, expert), input);
  if (narrows) sum = f.linear("fc2_latent_proj", sum, read, width, {.bias = model.mlp_bias});
  const InModule shared(f, "shared_experts", "NemotronHMLP");
  return f.add(sum, plain_layer(f, model, input, width, model.shared_inner));
}

inline Tensor mixed(Forward& f, const Model& model, Tensor input, LayerKind kind) {
  if (kind == LayerKind::recurrent) return mamba2_mixer(f, model.mixer, input);
  if (kind == LayerKind::attention) return attention(f, model, input);
  if (kind == LayerKind::experts) return mixture(f, model, input);
  const InModule inside(f, "mixer", "NemotronHMLP");
  return plain_layer(f, model, input, model.sizes.width, model.sizes.inner);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  // Source: NemotronHMamba2Mixer.cuda_kernels_forward: one function only if no token is masked and nothing is cached.
  doubt_kernels(f, "mamba-ssm and causal-conv1d",
                "; they are taken as one function, as without padding and a cache: else convolution, scan and norm run "
                "one by one and keep several times as much");
  if (std::ranges::find(model.kinds, LayerKind::experts) != model.kinds.end()) warn_of_routing(f);
  const DecoderBody body = {.class_name = "NemotronHModel", .embedding = "embeddings"};
  decoder_model(f, config, s, head, body, [&](Tensor, Tensor hidden) {
    hidden = stack(f, "layers", "NemotronHBlock", s.layers, hidden, [&](Tensor x, std::int64_t index) {
      const Tensor normed = f.rms_norm("norm", x, s.width, "NemotronHRMSNorm");
      return f.add(x, mixed(f, model, normed, model.kinds[static_cast<std::size_t>(index)]));
    });
    return f.rms_norm("norm_f", hidden, s.width, "NemotronHRMSNorm");
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"NemotronH", "nemotron_h", "model"}});

inline void read_mixture_of_tree(TreeFields& t, const std::string& mixer) {
  t.flag("mlp_bias", mixer + ".experts.0.up_proj");
  // Of experts that are one tensor each (transformers 5) a tree shows no size.
  if (t.has(mixer + ".experts.0")) t.count("n_routed_experts", mixer + ".experts");
  t.size("moe_intermediate_size", mixer + ".experts.0.up_proj", "out_features");
  t.size("moe_shared_expert_intermediate_size", mixer + ".shared_experts.up_proj", "out_features");
  t.size("moe_latent_size", mixer + ".fc1_latent_proj", "out_features");
  const std::int64_t chosen = t.has(mixer + ".fc1_latent_proj") ? 22 : 6;
  t.set("num_experts_per_tok", std::min(chosen, std::max<std::int64_t>(t.count_of(mixer + ".experts"), 1)));
  t.assume(std::to_string(chosen) + " experts a token, as published models have");
}

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embeddings", "layers");
  t.labels();
  std::string pattern;
  std::string attention;
  const auto mixer_of = [](std::int64_t layer) { return "layers." + std::to_string(layer) + ".mixer"; };
  for (std::int64_t at = 0; at < std::min(t.count_of("layers"), ConfigFields::kMostLayers); ++at) {
    const std::string mixer = mixer_of(at);
    const char kind = t.has(mixer + ".in_proj")   ? 'M'
                      : t.has(mixer + ".q_proj")  ? '*'
                      : t.has(mixer + ".experts") ? 'E'
                                                  : '-';
    const bool first = pattern.find(kind) == std::string::npos;
    pattern += kind;
    if (!first) continue;
    if (kind == 'M') tree_mamba2(t, mixer, mixer_fields(), 8);
    if (kind == 'M') t.flag("use_bias", mixer + ".in_proj");
    if (kind == '*') attention = mixer;
    if (kind == 'E') read_mixture_of_tree(t, mixer);
    if (kind == '-') t.flag("mlp_bias", mixer + ".up_proj");
    if (kind == '-') t.size("intermediate_size", mixer + ".up_proj", "out_features");
  }
  t.set_string("hybrid_override_pattern", pattern);
  if (pattern.find('-') == std::string::npos) t.set("intermediate_size", 1);
  if (attention.empty()) return t.set("num_attention_heads", 1);
  t.flag("attention_bias", attention + ".q_proj");
  t.heads({.query = attention + ".q_proj", .key = attention + ".k_proj", .usual_width = 128});
}

inline constexpr Architecture kArchitecture = {.name = "nemotron_h",
                                               .model_types = names<"nemotron_h">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree};

}  // namespace nemotron_h

}  // namespace gpumem::architectures
