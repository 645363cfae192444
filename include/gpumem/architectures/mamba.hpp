// Mamba, Falcon Mamba and Mamba-2: blocks of a norm and a mixer, without attention; in Mamba and Mamba-2 the stream
// between blocks is float32 where the config says so. Falcon Mamba norms steps, B and C without weights, within its
// kernels.
// Source: transformers 4.57, models/mamba/modeling_mamba.py, falcon_mamba, mamba2; arXiv:2312.00752, 2405.21060.
#pragma once

#include <array>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/mamba_mixers.hpp"

namespace gpumem::architectures {

namespace mamba {

inline Mamba2Fields mixer_fields() {
  return {.heads = "num_heads",
          .head_width = "head_dim",
          .groups = "n_groups",
          .state = "state_size",
          .kernel = "conv_kernel",
          .chunk = "chunk_size",
          .bias = "use_bias",
          .convolution_bias = "use_conv_bias",
          .usual = {.name = "mixer",
                    .class_name = "Mamba2Mixer",
                    .norm_class = "MambaRMSNormGated",
                    .heads = 128,
                    .head_width = 64,
                    .groups = 8,
                    .state = 128}};
}

struct Model {
  DecoderSizes sizes;
  std::string_view prefix = "Mamba";
  bool second = false;  ///< Mamba-2
  MambaMixer first_mixer;
  Mamba2Mixer second_mixer;
  bool wide_residuals = true;  ///< float32

  [[nodiscard]] std::string named(std::string_view part) const { return std::string(prefix).append(part); }
};

/// time_step_rank: a number, or "auto" for a sixteenth of the width.
inline std::int64_t read_rank(ConfigFields& config, std::int64_t width) {
  constexpr std::int64_t kShare = 16;
  const core::JsonValue* rank = config.find("time_step_rank");
  const std::int64_t usual = (width + kShare - 1) / kShare;
  return rank == nullptr || rank->is("auto") ? usual : config.size_or({"time_step_rank"}, usual);
}

inline void read_first(ConfigFields& config, Model& model) {
  const DecoderSizes& s = model.sizes;
  const std::int64_t expand = config.size_or({"expand"}, 2);
  const std::int64_t usual = mamba_mixers_detail::product(expand, s.width);
  model.first_mixer = {.class_name = model.named("Mixer"),
                       .width = s.width,
                       .inner = config.size_or({"intermediate_size", "d_inner"}, usual),
                       .state = config.size_or({"state_size"}, 16),
                       .rank = read_rank(config, s.width),
                       .kernel = config.size_or({"conv_kernel"}, 4),
                       .convolution_bias = config.flag("use_conv_bias", true),
                       .bias = config.flag("use_bias", false)};
  constexpr std::int64_t kMost = ConfigFields::kLargestSize / 4;
  const MambaMixer& m = model.first_mixer;
  if (m.inner > kMost || m.state > kMost || m.rank > kMost) config.fail("makes the mixer too wide", "state_size");
}

inline Model read(ConfigFields& config) {
  Model model;
  const std::string_view type = config.text({"model_type"}, "mamba");
  model.second = type == "mamba2";
  model.prefix = model.second ? "Mamba2" : type == "mamba" ? "Mamba" : "FalconMamba";
  model.sizes.vocabulary = config.size({"vocab_size"});
  model.sizes.width = config.size({"hidden_size", "d_model"});
  model.sizes.layers = config.layers({"num_hidden_layers", "n_layer"});
  model.sizes.tied = config.flag("tie_word_embeddings", type == "mamba");
  model.wide_residuals = config.flag("residual_in_fp32", true);
  if (model.second) {
    model.second_mixer = mamba2_sizes(config, mixer_fields());
    model.second_mixer.width = model.sizes.width;
    if (!config.flag("rms_norm", true)) config.fail("mixers without a norm are not known", "rms_norm");
  } else {
    read_first(config, model);
  }
  config.ignore({"expand",
                 "intermediate_size",
                 "time_step_rank",
                 "time_step_limit",
                 "time_step_min",
                 "time_step_max",
                 "time_step_floor",
                 "time_step_scale",
                 "time_step_init_scheme",
                 "rescale_prenorm_residual",
                 "use_mambapy",
                 "use_falcon_mambapy",
                 "use_associative_scan",
                 "mixer_rms_eps",
                 "hidden_act",
                 "d_inner",
                 "ssm_cfg",
                 "fused_add_norm",
                 "norm_before_gate",
                 "pad_vocab_size_multiple",
                 "bos_token_id"});
  return model;
}

/// The stream leaves its type for the norm's, and is added to in float32.
inline Tensor block(Forward& f, const Model& model, Tensor input, Tensor embedded) {
  const Tensor narrow = f.as_type_of(input, embedded);
  const Tensor normed = f.rms_norm("norm", narrow, model.sizes.width, model.named("RMSNorm"));
  const Tensor residual = model.wide_residuals ? f.to(input, "float32") : input;
  return f.add(residual,
               model.second ? mamba2_mixer(f, model.second_mixer, normed) : mamba_mixer(f, model.first_mixer, normed));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  doubt_kernels(f, "mamba-ssm and causal-conv1d");
  Tensor hidden = 0;
  Tensor narrowed = 0;
  {
    const InModule inside(f, "backbone", model.named("Model"));
    const Tensor ids = token_ids(f);
    const Tensor embedded = f.embedding("embeddings", ids, s.vocabulary, s.width);
    hidden = stack(f, "layers", model.named("Block"), s.layers, embedded,
                   [&](Tensor x, std::int64_t) { return block(f, model, x, embedded); });
    hidden = f.rms_norm("norm_f", hidden, s.width, model.named("RMSNorm"));
    narrowed = f.as_type_of(hidden, embedded);
  }
  decoder_head(f, config, s, head, hidden, {.narrowed = narrowed});
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Mamba", "mamba", "backbone", kAlwaysTied},
                                                            {"FalconMamba", "falcon_mamba", "backbone"},
                                                            {"Mamba2", "mamba2", "backbone"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embeddings", "layers");
  if (t.class_name().starts_with("Mamba2")) return tree_mamba2(t, "layers.0.mixer", mixer_fields(), 8);
  tree_mamba(t, "layers.0.mixer", "state_size", "time_step_rank", "conv_kernel");
  t.size("intermediate_size", "layers.0.mixer.out_proj", "in_features");
  t.flag("use_bias", "layers.0.mixer.in_proj");
  t.flag("use_conv_bias", "layers.0.mixer.conv1d");
}

inline constexpr Architecture kArchitecture = {.name = "mamba",
                                               .model_types = names<"mamba", "falcon_mamba", "mamba2">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree};

}  // namespace mamba

// RWKV-4: blocks of time mixing, whose kernel keeps keys, values and its output, and of channel mixing; both read each
// token mixed with the one before.
// Source: transformers 4.57, models/rwkv/modeling_rwkv.py: RwkvLinearAttention; arXiv:2305.13048.

namespace rwkv {

struct Model {
  DecoderSizes sizes;
  std::int64_t mixed = 1;  ///< width of time mixing
};

inline Model read(ConfigFields& config) {
  Model model;
  DecoderSizes& s = model.sizes;
  s.vocabulary = config.size({"vocab_size"});
  s.width = config.size({"hidden_size"});
  s.layers = config.layers({"num_hidden_layers"});
  s.tied = config.flag("tie_word_embeddings", false);
  s.inner = config.size_or({"intermediate_size"}, std::min(4 * s.width, ConfigFields::kLargestSize));
  model.mixed = config.size_or({"attention_hidden_size"}, s.width);
  config.ignore({"context_length", "rescale_every"});
  return model;
}

/// hidden * mix + shifted * (1 - mix).
inline Tensor mix(Forward& f, std::string_view name, Tensor input, Tensor shifted, std::int64_t width) {
  const Tensor share = f.parameter(name, {1, 1, width});
  const Tensor own = f.multiply(input, share);
  return f.add(own, f.multiply(shifted, f.call("sub", {share})));
}

inline Tensor time_mixing(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "attention", "RwkvSelfAttention");
  const std::int64_t width = model.sizes.width;
  const Tensor decay = f.parameter("time_decay", {model.mixed});
  const Tensor first = f.parameter("time_first", {model.mixed});
  const Tensor shifted = f.call("clone", {input});
  const Tensor key = mix(f, "time_mix_key", input, shifted, width);
  const Tensor value = mix(f, "time_mix_value", input, shifted, width);
  const Tensor gate = mix(f, "time_mix_receptance", input, shifted, width);
  const auto project = [&](std::string_view name, Tensor from) {
    return f.linear(name, from, width, model.mixed, {.bias = false});
  };
  const Tensor keys = project("key", key);
  const Tensor values = project("value", value);
  const Tensor open = f.call("sigmoid", {project("receptance", gate)});
  const Tensor scanned = f.call("linear_scan", {keys, values, decay, first}, {{"kept", std::int64_t{4}}});
  return f.linear("output", f.multiply(open, scanned), model.mixed, width, {.bias = false});
}

inline Tensor channel_mixing(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "feed_forward", "RwkvFeedForward");
  const DecoderSizes& s = model.sizes;
  const Tensor shifted = f.call("clone", {input});
  const Tensor key = mix(f, "time_mix_key", input, shifted, s.width);
  const Tensor gate = mix(f, "time_mix_receptance", input, shifted, s.width);
  const Tensor wide = f.call("square", {f.call("relu", {f.linear("key", key, s.width, s.inner, {.bias = false})})});
  const Tensor value = f.linear("value", wide, s.inner, s.width, {.bias = false});
  const Tensor open = f.call("sigmoid", {f.linear("receptance", gate, s.width, s.width, {.bias = false})});
  return f.multiply(open, value);
}

inline Tensor block(Forward& f, const Model& model, Tensor input, std::int64_t index) {
  const std::int64_t width = model.sizes.width;
  if (index == 0) input = f.layer_norm("pre_ln", input, width);
  const Tensor mixed = f.add(input, time_mixing(f, model, f.layer_norm("ln1", input, width)));
  return f.add(mixed, channel_mixing(f, model, f.layer_norm("ln2", mixed, width)));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  doubt_kernels(f, "RWKV that transformers compiles with ninja");
  const DecoderBody body = {
      .module = "rwkv", .class_name = "RwkvModel", .embedding = "embeddings", .head = {.name = "head"}};
  decoder_model(f, config, s, head, body, [&](Tensor, Tensor hidden) {
    hidden = stack(f, "blocks", "RwkvBlock", s.layers, hidden,
                   [&](Tensor x, std::int64_t index) { return block(f, model, x, index); });
    return f.layer_norm("ln_out", hidden, s.width);
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Rwkv", "rwkv", "rwkv"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embeddings", "blocks");
  t.size("attention_hidden_size", "blocks.0.attention.key", "out_features");
  t.size("intermediate_size", "blocks.0.feed_forward.key", "out_features");
}

inline constexpr Architecture kArchitecture = {
    .name = "rwkv", .model_types = names<"rwkv">, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace rwkv

}  // namespace gpumem::architectures
