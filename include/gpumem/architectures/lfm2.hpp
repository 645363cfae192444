// LFM2: layers of a gated short convolution, some of attention, and a gated feed-forward layer after each.
// Source: transformers 4.57, models/lfm2/modeling_lfm2.py: Lfm2ShortConv.cuda_kernels_forward.
#pragma once

#include <array>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/mamba_mixers.hpp"
#include "gpumem/architectures/mixture.hpp"

namespace gpumem::architectures {

namespace lfm2 {

struct Model {
  DecoderSizes sizes;
  std::vector<LayerKind> kinds;
  std::int64_t kernel = 3;
  bool bias = false;  ///< of convolutions and their projections
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

inline Model read(ConfigFields& config) {
  Model model;
  const std::int64_t inner = config.size_or({"block_ff_dim", "intermediate_size"}, 12288);
  const bool tied = config.flag("tie_embedding", true);
  model.sizes = decoder_sizes(config, {.tied = tied, .inner_factor = 1});
  model.sizes.inner = read_inner(config, inner);
  model.sizes.activation = "silu";
  model.kinds = read_kinds(config, model.sizes.layers);
  model.kernel = config.size_or({"conv_L_cache"}, 3);
  model.bias = config.flag("conv_bias", false);
  config.ignore({"block_dim", "block_mlp_init_scale", "block_norm_eps", "block_out_init_scale", "block_use_swiglu",
                 "block_use_xavier_init", "conv_dim", "conv_dim_out", "conv_use_xavier_init", "num_heads",
                 "use_pos_enc", "theta"});
  return model;
}

inline Tensor short_convolution(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "conv", "Lfm2ShortConv");
  const std::int64_t width = model.sizes.width;
  const Tensor made = f.linear("in_proj", input, width, 3 * width, {.bias = model.bias});
  const std::vector<Tensor> parts = f.split(made, 2, {width, width, width});
  const Tensor gated = f.multiply(parts[0], parts[2]);
  const Tensor convolved = f.layer("conv", "Conv1d", "causal_conv1d", {gated},
                                   {{"channels", width}, {"kernel_size", model.kernel}, {"bias", model.bias}});
  return f.linear("out_proj", f.multiply(parts[1], convolved), width, width, {.bias = model.bias});
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const InModule inside(f, "self_attn", "Lfm2Attention");
  const DecoderSizes& s = model.sizes;
  const std::int64_t each = s.head_width;
  const auto heads = [&](std::string_view name, std::int64_t count) {
    return f.unflatten(f.linear(name, input, s.width, count * each, {.bias = false, .split = Split::columns}), 2,
                       {-1, each});
  };
  const auto normed = [&](std::string_view name, Tensor of) {
    return f.permute(f.rms_norm(name, of, each, "Lfm2RMSNorm"), {0, 2, 1, 3});
  };
  const Tensor query = normed("q_layernorm", heads("q_proj", s.heads));
  const Tensor key = normed("k_layernorm", heads("k_proj", s.kv_heads));
  const Tensor value = f.permute(heads("v_proj", s.kv_heads), {0, 2, 1, 3});
  const Heads turned = {rotate(f, query, rotary, each), rotate(f, key, rotary, each), value};
  f.cache(turned.key);
  f.cache(turned.value);
  const Tensor attended = attend(f, turned, {.groups = s.heads / s.kv_heads});
  return f.linear("out_proj", attended, s.heads * each, s.width, {.bias = false, .split = Split::rows});
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  doubt_kernels(f, "causal-conv1d");
  decoder_model(f, config, s, head, {.class_name = "Lfm2Model"}, [&](Tensor ids, Tensor hidden) {
    const Rotary rotary = rotary_tables(f, ids, s.head_width);
    hidden = stack(f, "layers", "Lfm2DecoderLayer", s.layers, hidden, [&](Tensor x, std::int64_t index) {
      const bool attends = model.kinds[static_cast<std::size_t>(index)] == LayerKind::attention;
      const Tensor normed = f.rms_norm("operator_norm", x, s.width, "Lfm2RMSNorm");
      const Tensor mixed =
          f.add(attends ? attention(f, model, normed, rotary) : short_convolution(f, model, normed), x);
      const Tensor again = f.rms_norm("ffn_norm", mixed, s.width, "Lfm2RMSNorm");
      const InModule fed(f, "feed_forward", "Lfm2MLP");
      return f.add(mixed,
                   gated_layer(f, s.width, s.inner, s.activation, again, {.gate = "w1", .up = "w3", .down = "w2"}));
    });
    return f.rms_norm("embedding_norm", hidden, s.width, "Lfm2RMSNorm");
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Lfm2", "lfm2", "model", kAlwaysTied}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
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

inline constexpr Architecture kArchitecture = {
    .name = "lfm2", .model_types = names<"lfm2">, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace lfm2

}  // namespace gpumem::architectures
