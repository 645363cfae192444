// Jamba: layers of Mamba, one in eight of attention without positions, and a feed-forward layer or experts after each.
// Convolution and scan are functions of their own here, since steps, B and C go through norms between them.
// Source: transformers 4.57, models/jamba/modeling_jamba.py; arXiv:2403.19887.
#pragma once

#include <array>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/mamba_mixers.hpp"
#include "gpumem/architectures/mixture.hpp"

namespace gpumem::architectures {

namespace jamba {

/// Which layers are of a kind: those from `offset` on, one in `period`.
struct Every {
  std::int64_t period = 1;
  std::int64_t offset = 0;

  [[nodiscard]] bool holds(std::int64_t layer) const { return layer % period == offset; }
};

struct Model {
  DecoderSizes sizes;
  MambaMixer mixer;
  Every attention;
  Every experts;
  Mixture mixture;
  bool fused = false;  ///< the experts' weights are one tensor each, as transformers 5 has them
};

inline Every read_every(ConfigFields& config, std::string_view period, std::string_view offset, std::int64_t usual,
                        std::int64_t usual_offset) {
  const core::JsonValue* first = config.find(offset);
  const bool at_once = first != nullptr && first->is(0);
  const Every every = {config.size_or({period}, usual), at_once ? 0 : config.size_or({offset}, usual_offset)};
  if (every.offset >= every.period && every.period > 0) config.fail("must be below " + std::string(period), offset);
  return every;
}

inline Model read(ConfigFields& config) {
  constexpr std::int64_t kRankShare = 16;
  Model model;
  model.sizes = decoder_sizes(config);
  const DecoderSizes& s = model.sizes;
  const core::JsonValue* rank = config.find("mamba_dt_rank");
  const std::int64_t usual_rank = (s.width + kRankShare - 1) / kRankShare;
  model.mixer = {
      .name = "mamba",
      .class_name = "JambaMambaMixer",
      .norm_class = "JambaRMSNorm",
      .width = s.width,
      .inner = mamba_mixers_detail::product(config.size_or({"mamba_expand"}, 2), s.width),
      .state = config.size_or({"mamba_d_state"}, 16),
      .rank = rank == nullptr || rank->is("auto") ? usual_rank : config.size_or({"mamba_dt_rank"}, usual_rank),
      .kernel = config.size_or({"mamba_d_conv"}, 4),
      .convolution_bias = config.flag("mamba_conv_bias", true),
      .bias = config.flag("mamba_proj_bias", false),
      .fused = false};
  constexpr std::int64_t kMost = ConfigFields::kLargestSize / 4;
  if (model.mixer.inner > kMost || model.mixer.state > kMost || model.mixer.rank > kMost) {
    config.fail("makes the mixer too wide", "mamba_d_state");
  }
  model.attention = read_every(config, "attn_layer_period", "attn_layer_offset", 8, 4);
  model.experts = read_every(config, "expert_layer_period", "expert_layer_offset", 2, 1);
  model.mixture = {.experts = config.size_or({"num_experts"}, 16),
                   .per_token = config.size_or({"num_experts_per_tok"}, 2),
                   .inner = s.inner,
                   .expert_class = "JambaMLP"};
  model.fused = config.fuses_experts();
  check_mixture(config, model.mixture, s.layers, "num_experts", "num_experts_per_tok");
  config.ignore({"use_mamba_kernels", "num_logits_to_keep", "router_aux_loss_coef", "output_router_logits"});
  return model;
}

inline Tensor attention(Forward& f, const Model& model, Tensor input) {
  const RotaryAttention options = {.class_name = "JambaAttention", .turns = false};
  return rotary_attention(f, model.sizes, input, Rotary{}, options);
}

inline Tensor mixture(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "feed_forward", "JambaSparseMoeBlock");
  return softmax_experts(f, model.mixture, model.sizes.width, model.sizes.activation, "router", input, {},
                         model.fused ? "JambaExperts" : "");
}

inline Tensor fed(Forward& f, const Model& model, Tensor input, std::int64_t index) {
  if (model.mixture.experts > 1 && model.experts.holds(index)) return mixture(f, model, input);
  const InModule inside(f, "feed_forward", "JambaMLP");
  return gated_layer(f, model.sizes.width, model.sizes.inner, model.sizes.activation, input);
}

/// Each layer's class says what it mixes tokens with.
inline Tensor layers(Forward& f, const Model& model, Tensor hidden) {
  const InModule list(f, "layers", "ModuleList");
  const std::int64_t width = model.sizes.width;
  for (std::int64_t index = 0; index < model.sizes.layers && !f.failed(); ++index) {
    const bool attends = model.attention.holds(index);
    const InModule one(f, std::to_string(index), attends ? "JambaAttentionDecoderLayer" : "JambaMambaDecoderLayer");
    const Tensor normed = f.rms_norm("input_layernorm", hidden, width, "JambaRMSNorm");
    const Tensor mixed = attends ? attention(f, model, normed) : mamba_mixer(f, model.mixer, normed);
    const Tensor attended = f.add(hidden, mixed);
    const Tensor again = f.rms_norm("pre_ff_layernorm", attended, width, "JambaRMSNorm");
    hidden = f.add(attended, fed(f, model, again, index));
  }
  return hidden;
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  doubt_kernels(f, "mamba-ssm and causal-conv1d");
  if (model.mixture.experts > 1) warn_of_routing(f);
  decoder_model(f, config, s, head, {.class_name = "JambaModel"}, [&](Tensor, Tensor hidden) {
    hidden = layers(f, model, hidden);
    return f.rms_norm("final_layernorm", hidden, s.width, "JambaRMSNorm");
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Jamba", "jamba", "model"}});
/// Published models, by width.
inline constexpr auto kPublished = std::to_array<PublishedHeads>({{2560, 20}, {4096, 32}, {8192, 64}});

/// The first layer of a kind, and how far the next is.
inline void every_of_tree(TreeFields& t, std::string_view period, std::string_view offset, std::string_view part) {
  std::int64_t first = -1;
  std::int64_t second = -1;
  const std::int64_t layers = std::min(t.count_of("layers"), ConfigFields::kMostLayers);
  for (std::int64_t at = 0; at < layers && second < 0; ++at) {
    if (!t.has("layers." + std::to_string(at) + std::string(part))) continue;
    (first < 0 ? first : second) = at;
  }
  const std::int64_t step = first < 0 ? layers + 1 : second < 0 ? std::max(layers, first + 1) : second - first;
  t.set(period, step);
  t.set(offset, first < 0 ? layers : first);
}

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  t.labels();
  every_of_tree(t, "attn_layer_period", "attn_layer_offset", ".self_attn");
  every_of_tree(t, "expert_layer_period", "expert_layer_offset", ".feed_forward.router");
  const auto first_with = [&](std::string_view part) {
    for (std::int64_t at = 0; at < std::min(t.count_of("layers"), ConfigFields::kMostLayers); ++at) {
      std::string path = "layers." + std::to_string(at) + std::string(part);
      if (t.has(path)) return path;
    }
    return std::string();
  };
  const std::string mamba = first_with(".mamba");
  tree_mamba(t, mamba, "mamba_d_state", "mamba_dt_rank", "mamba_d_conv");
  t.flag("mamba_proj_bias", mamba + ".in_proj");
  t.flag("mamba_conv_bias", mamba + ".conv1d");
  const std::int64_t width = t.value("embed_tokens", "embedding_dim").value_or(1);
  t.set("mamba_expand", std::max<std::int64_t>(t.value(mamba + ".out_proj", "in_features").value_or(1) / width, 1));
  const std::string router = first_with(".feed_forward.router");
  t.size("num_experts", router, "out_features");
  if (router.empty()) t.set("num_experts", 1);
  t.set("num_experts_per_tok", router.empty() ? 1 : 2);
  if (!router.empty()) t.assume("2 experts a token, as published models have");
  // Experts of one tensor each print no size; they are as wide as the other layers' feed-forward.
  const bool listed = !first_with(".feed_forward.experts.0.gate_proj").empty();
  if (!router.empty() && !listed) t.fuse_experts();
  const std::string plain = first_with(".feed_forward.gate_proj");
  t.size("intermediate_size", plain.empty() ? first_with(".feed_forward.experts.0.gate_proj") : plain, "out_features");
  const std::string attention = first_with(".self_attn");
  if (attention.empty()) return t.set("num_attention_heads", 1);
  t.heads({.query = attention + ".q_proj", .key = attention + ".k_proj", .published = kPublished, .usual_width = 128});
}

inline constexpr Architecture kArchitecture = {
    .name = "jamba", .model_types = names<"jamba">, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace jamba

// LFM2: layers of a gated short convolution, some of attention, and a gated feed-forward layer after each. LFM2-MoE has
// experts in place of that layer from the third layer on.
// Source: transformers 4.57, models/lfm2/modeling_lfm2.py: Lfm2ShortConv.cuda_kernels_forward; 5.16, models/lfm2_moe.

namespace lfm2 {

struct Model {
  DecoderSizes sizes;
  std::vector<LayerKind> kinds;
  std::int64_t kernel = 3;
  bool bias = false;  ///< of convolutions and their projections
  bool mixes = false;
  std::int64_t dense = 0;  ///< the first layers have no experts
  Mixture mixture;
  bool biases_choice = true;  ///< a buffer of the experts' block is added to the scores that choose

  [[nodiscard]] std::string named(std::string_view part) const {
    return std::string(mixes ? "Lfm2Moe" : "Lfm2").append(part);
  }
};

/// full_attn_idxs: which layers are attention; all, where nothing says so.
inline std::vector<LayerKind> read_kinds(ConfigFields& config, std::int64_t layers) {
  const std::vector<bool> listed = config.layers_listed("full_attn_idxs", layers);
  std::vector<LayerKind> kinds = mixer_kinds(config, "layer_types", layers);
  if (kinds.empty() && !listed.empty()) return kinds_of(listed, LayerKind::attention);
  if (kinds.empty()) kinds.assign(static_cast<std::size_t>(layers), LayerKind::attention);
  return kinds;
}

/// Lfm2MLP: two thirds, times a factor, rounded up to a multiple.
inline std::int64_t read_inner(ConfigFields& config, std::int64_t inner) {
  const bool adjusts = config.flag("block_auto_adjust_ff_dim", true);
  const double factor = config.number({"block_ffn_dim_multiplier"}, 1.0);
  const std::int64_t multiple = config.size_or({"block_multiple_of"}, 256);
  if (!adjusts) return inner;
  const std::int64_t share = 2 * inner / 3;
  constexpr std::int64_t kMost = ConfigFields::kLargestSize / 2;
  const double wanted = static_cast<double>(share) * factor;
  if (!(wanted >= 1.0) || wanted > static_cast<double>(kMost)) {
    config.fail("makes the feed-forward layers too wide", "block_ffn_dim_multiplier");
    return 1;
  }
  const std::int64_t rounded = (static_cast<std::int64_t>(wanted) + multiple - 1) / multiple * multiple;
  if (rounded > ConfigFields::kLargestSize) config.fail("makes the feed-forward layers too wide", "block_multiple_of");
  return std::min(rounded, ConfigFields::kLargestSize);
}

/// Lfm2MoeConfig's defaults.
inline void read_mixture(ConfigFields& config, Model& model) {
  model.dense = config.count_or("num_dense_layers", 2);
  // What a tree does not tell is missing.
  const auto size = [&](std::string_view field, std::int64_t usual) {
    return config.fuses_experts() ? config.size({field}) : config.size_or({field}, usual);
  };
  model.mixture = {.experts = size("num_experts", 32),
                   .per_token = size("num_experts_per_tok", 4),
                   .inner = size("moe_intermediate_size", 1792)};
  model.biases_choice = config.flag("use_expert_bias", true);
  check_mixture(config, model.mixture, model.sizes.layers, "num_experts", "num_experts_per_tok");
  config.ignore({"routed_scaling_factor", "norm_topk_prob"});
}

inline Model read(ConfigFields& config) {
  Model model;
  model.mixes = config.text({"model_type"}, "lfm2") == "lfm2_moe";
  const std::int64_t inner = config.size_or({"block_ff_dim", "intermediate_size"}, model.mixes ? 7168 : 12288);
  const bool tied = config.flag("tie_embedding", true);
  model.sizes = decoder_sizes(config, {.tied = tied, .inner_factor = 1});
  model.sizes.inner = model.mixes ? inner : read_inner(config, inner);
  model.sizes.activation = "silu";
  model.kinds = read_kinds(config, model.sizes.layers);
  model.kernel = config.size_or({"conv_L_cache"}, 3);
  model.bias = config.flag("conv_bias", false);
  if (model.mixes) read_mixture(config, model);
  config.ignore({"block_dim", "block_mlp_init_scale", "block_norm_eps", "block_out_init_scale", "block_use_swiglu",
                 "block_use_xavier_init", "conv_dim", "conv_dim_out", "conv_use_xavier_init", "num_heads",
                 "use_pos_enc", "theta"});
  return model;
}

inline Tensor short_convolution(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "conv", model.named("ShortConv"));
  const std::int64_t width = model.sizes.width;
  const Tensor made = f.linear("in_proj", input, width, 3 * width, {.bias = model.bias});
  const std::vector<Tensor> parts = f.split(made, 2, {width, width, width});
  const Tensor gated = f.multiply(parts[0], parts[2]);
  const Tensor convolved = f.layer("conv", "Conv1d", "causal_conv1d", {gated},
                                   {{"channels", width}, {"kernel_size", model.kernel}, {"bias", model.bias}});
  return f.linear("out_proj", f.multiply(parts[1], convolved), width, width, {.bias = model.bias});
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const InModule inside(f, "self_attn", model.named("Attention"));
  const DecoderSizes& s = model.sizes;
  const std::int64_t each = s.head_width;
  const auto heads = [&](std::string_view name, std::int64_t count) {
    return f.unflatten(f.linear(name, input, s.width, count * each, {.bias = false, .split = Split::columns}), 2,
                       {-1, each});
  };
  const auto normed = [&](std::string_view name, Tensor of) {
    return f.permute(f.rms_norm(name, of, each, model.named("RMSNorm")), {0, 2, 1, 3});
  };
  const Tensor query = normed("q_layernorm", heads("q_proj", s.heads));
  const Tensor key = normed("k_layernorm", heads("k_proj", s.kv_heads));
  const Tensor value = f.permute(heads("v_proj", s.kv_heads), {0, 2, 1, 3});
  Heads turned = {rotate(f, query, rotary, each), rotate(f, key, rotary, each), value};
  turned.value = f.cache(turned.key, turned.value);
  const Tensor attended = attend(f, turned, {.groups = s.heads / s.kv_heads});
  return f.linear("out_proj", attended, s.heads * each, s.width, {.bias = false, .split = Split::rows});
}

/// The feed-forward layer, or experts that the sigmoid of their scores chooses, in the model's type.
inline Tensor fed(Forward& f, const Model& model, Tensor input, std::int64_t index) {
  const DecoderSizes& s = model.sizes;
  const Mixture& m = model.mixture;
  const bool mixes = model.mixes && index >= model.dense;
  const InModule inside(f, "feed_forward", model.named(mixes ? "SparseMoeBlock" : "MLP"));
  if (!mixes) return gated_layer(f, s.width, s.inner, s.activation, input, {.gate = "w1", .up = "w3", .down = "w2"});
  if (model.biases_choice) f.constant("expert_bias", {m.experts}, "float32");
  const Tensor scores = held_scores(f, "gate", model.named("TopKRouter"), m, s.width, input);
  const Tensor chosen = f.slice(f.call("sigmoid", {scores}), 2, 0, m.per_token);
  const std::string experts = model.named("Experts");
  const GroupedExperts all = {.list_class = experts, .width = s.width, .activation = s.activation};
  return add_grouped_experts(f, m, all, input, f.scale(chosen));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  doubt_kernels(f, "causal-conv1d");
  if (model.mixes) warn_of_routing(f);
  decoder_model(f, config, s, head, {.class_name = model.named("Model")}, [&](Tensor ids, Tensor hidden) {
    const Rotary rotary = rotary_tables(f, ids, s.head_width);
    hidden = stack(f, "layers", model.named("DecoderLayer"), s.layers, hidden, [&](Tensor x, std::int64_t index) {
      const bool attends = model.kinds[static_cast<std::size_t>(index)] == LayerKind::attention;
      const Tensor normed = f.rms_norm("operator_norm", x, s.width, model.named("RMSNorm"));
      const Tensor mixed =
          f.add(attends ? attention(f, model, normed, rotary) : short_convolution(f, model, normed), x);
      const Tensor again = f.rms_norm("ffn_norm", mixed, s.width, model.named("RMSNorm"));
      return f.add(mixed, fed(f, model, again, index));
    });
    return f.rms_norm("embedding_norm", hidden, s.width, model.named("RMSNorm"));
  });
}

inline constexpr auto kClasses =
    std::to_array<ModelClass>({{"Lfm2", "lfm2", "model", kAlwaysTied}, {"Lfm2Moe", "lfm2_moe", "model", kAlwaysTied}});

/// Of LFM2-MoE: the layers before the first with experts, and what these are.
inline void read_experts(TreeFields& t) {
  const std::int64_t layers = std::min(t.count_of("layers"), ConfigFields::kMostLayers);
  const auto block = [](std::int64_t at) { return "layers." + std::to_string(at) + ".feed_forward"; };
  std::int64_t first = 0;
  while (first < layers && !t.has(block(first) + ".experts")) ++first;
  t.set("num_dense_layers", first);
  fused_experts(t, {.model_type = "lfm2_moe",
                    .router = block(first) + ".gate",
                    .list = block(first) + ".experts",
                    .number = "num_experts",
                    .inner = "moe_intermediate_size"});
}

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  if (t.class_name().starts_with("Lfm2Moe")) read_experts(t);
  std::string attention;
  std::string convolution;
  std::string indices;
  for (std::int64_t at = 0; at < std::min(t.count_of("layers"), ConfigFields::kMostLayers); ++at) {
    const std::string layer = "layers." + std::to_string(at);
    const bool attends = t.has(layer + ".self_attn.q_proj");
    if (attends && attention.empty()) attention = layer + ".self_attn";
    if (!attends && convolution.empty()) convolution = layer + ".conv";
    if (attends) indices += (indices.empty() ? "" : ", ") + std::to_string(at);
  }
  t.set_text("full_attn_idxs", "[" + indices + "]");
  t.size("block_ff_dim", "layers.0.feed_forward.w1", "out_features");
  t.set_flag("block_auto_adjust_ff_dim", false);
  t.size("conv_L_cache", convolution + ".conv", "kernel_size");
  t.flag("conv_bias", convolution + ".in_proj");
  t.set_flag("tie_embedding", true);
  if (attention.empty()) return t.set("num_attention_heads", 1);
  t.heads({.query = attention + ".q_proj", .key = attention + ".k_proj", .norm = attention + ".q_layernorm"});
}

inline constexpr Architecture kArchitecture = {.name = "lfm2",
                                               .model_types = names<"lfm2", "lfm2_moe">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree};

}  // namespace lfm2

}  // namespace gpumem::architectures
