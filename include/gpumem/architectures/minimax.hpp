// MiniMax-Text-01: layers of lightning attention, a linear one computed block by block, and one in eight of softmax
// attention; experts after each. What a layer adds to is its normed input, times a number.
// Source: transformers 4.57, models/minimax/modeling_minimax.py; arXiv:2501.08313.
#pragma once

#include <array>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/mamba_mixers.hpp"
#include "gpumem/architectures/mixture.hpp"

namespace gpumem::architectures {

namespace minimax_detail {

/// As transformers has it, and as the published model's own code does.
inline constexpr std::array<std::string_view, 2> kModelTypes = {"minimax", "minimax_text_01"};
inline constexpr GatedNames kExpertNames = {.gate = "w1", .up = "w3", .down = "w2"};

struct Model {
  DecoderSizes sizes;
  Mixture mixture;
  std::vector<LayerKind> kinds;
  std::int64_t block = 256;  ///< tokens
  std::int64_t turned = 1;   ///< elements of a head with rotary positions
};

/// layer_types, or attn_type_list with a 1 for softmax attention; as MiniMaxConfig has it, every second layer.
inline std::vector<LayerKind> read_kinds(ConfigFields& config, std::int64_t layers) {
  std::vector<LayerKind> kinds = mixer_kinds(config, "layer_types", layers);
  std::vector<bool> softmax = config.layers_with("attn_type_list", layers, 1, 0);
  if (!kinds.empty() || !config.status()) return kinds;
  for (std::int64_t at = 0; at < layers; ++at) {
    const bool full = softmax.empty() ? at % 2 == 0 : softmax[static_cast<std::size_t>(at)];
    kinds.push_back(full ? LayerKind::attention : LayerKind::recurrent);
  }
  return kinds;
}

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config);
  const DecoderSizes& s = model.sizes;
  model.mixture = {.experts = config.size_or({"num_local_experts"}, 8),
                   .per_token = config.size_or({"num_experts_per_tok"}, 2),
                   .inner = s.inner,
                   .expert_class = "MiniMaxBlockSparseTop2MLP"};
  check_mixture(config, model.mixture, s.layers, "num_local_experts", "num_experts_per_tok");
  model.kinds = read_kinds(config, s.layers);
  model.block = config.size_or({"block_size"}, model.block);
  const std::int64_t turned = config.size_or({"rotary_dim"}, s.head_width);
  if (turned % 2 != 0) config.fail("leaves an odd number of elements of a head for rotary positions", "rotary_dim");
  model.turned = std::min(turned, s.head_width);
  config.ignore({"full_attn_alpha_factor", "full_attn_beta_factor", "linear_attn_alpha_factor",
                 "linear_attn_beta_factor", "mlp_alpha_factor", "mlp_beta_factor", "layernorm_full_attention_alpha",
                 "layernorm_full_attention_beta", "layernorm_linear_attention_alpha", "layernorm_linear_attention_beta",
                 "layernorm_mlp_alpha", "layernorm_mlp_beta", "postnorm", "router_jitter_noise", "router_aux_loss_coef",
                 "output_router_logits", "shared_intermediate_size", "shared_moe_mode"});
  return model;
}

/// The gate of what it leaves is a projection of its input.
inline Tensor lightning_attention(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "self_attn", "MiniMaxLightningAttention");
  const DecoderSizes& s = model.sizes;
  const std::int64_t inner = s.heads * s.head_width;
  for (const char* buffer : {"query_decay", "key_decay"}) {
    f.constant(buffer, {s.heads, model.block, 1}, "parameters");
  }
  f.constant("diagonal_decay", {1, s.heads, model.block, model.block}, "parameters");
  const Tensor projected = f.linear("qkv_proj", input, s.width, 3 * inner, {.bias = false});
  const Tensor packed =
      f.unflatten_heads(f.activation("act_fn", projected, s.activation), 2, {s.heads, 3 * s.head_width});
  const std::vector<Tensor> parts = f.split(packed, 3, {s.head_width, s.head_width, s.head_width});
  const auto heads = [&](Tensor part) { return f.permute(part, {0, 2, 1, 3}); };
  const Tensor query = heads(parts[0]);
  const Tensor key = heads(parts[1]);
  const Tensor value = heads(parts[2]);
  const Tensor mixed = merge_heads(f, f.call("lightning_attention", {query, key, value}, {{"block", model.block}}));
  const Tensor normed = f.rms_norm("norm", mixed, inner, "MiniMaxRMSNorm");
  const Tensor gate = f.call("sigmoid", {f.linear("output_gate", input, s.width, inner, {.bias = false})});
  const Tensor output = f.linear("out_proj", f.multiply(gate, normed), inner, s.width, {.bias = false});
  return f.leave_function(output, {packed, input});
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary, LayerKind kind) {
  const std::int64_t width = model.sizes.width;
  const auto joined = [&](Tensor residual, Tensor branch) {
    const Tensor own = f.scale(residual);
    return f.add(own, f.scale(branch));
  };
  const Tensor normed = f.rms_norm("input_layernorm", input, width, "MiniMaxRMSNorm");
  const Tensor mixed = kind == LayerKind::attention
                           ? rotary_attention(f, model.sizes, normed, rotary, {.class_name = "MiniMaxAttention"})
                           : lightning_attention(f, model, normed);
  const Tensor again = f.rms_norm("post_attention_layernorm", joined(normed, mixed), width, "MiniMaxRMSNorm");
  const InModule inside(f, "block_sparse_moe", "MiniMaxSparseMoeBlock");
  const Tensor fed = softmax_experts(f, model.mixture, width, model.sizes.activation, "gate", again, kExpertNames);
  return joined(again, fed);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  warn_of_routing(f);
  decoder_model(f, config, s, head, "MiniMaxModel", [&](Tensor ids, Tensor embedded) {
    const Rotary rotary = rotary_tables(f, ids, model.turned);
    const Tensor hidden = stack(f, "layers", "MiniMaxDecoderLayer", s.layers, embedded, [&](Tensor x, std::int64_t at) {
      return block(f, model, x, rotary, model.kinds[static_cast<std::size_t>(at)]);
    });
    return f.rms_norm("norm", hidden, s.width, "MiniMaxRMSNorm");
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"MiniMax", "minimax", "model"}});

/// What print(model) shows. Layers of lightning attention show queries, keys and values in one.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  t.labels();
  const std::string experts = "layers.0.block_sparse_moe.experts";
  t.count("num_local_experts", experts);
  t.size("intermediate_size", experts + ".0.w1", "out_features");
  t.set("num_experts_per_tok", std::min<std::int64_t>(2, std::max<std::int64_t>(t.count_of(experts), 1)));
  t.assume("2 experts a token, as the published model has");
  std::string kinds;
  std::string attention;
  for (std::int64_t at = 0; at < std::min(t.count_of("layers"), ConfigFields::kMostLayers); ++at) {
    const std::string mixer = "layers." + std::to_string(at) + ".self_attn";
    const bool full = t.has(mixer + ".q_proj");
    if (full && attention.empty()) attention = mixer;
    kinds.append(kinds.empty() ? "" : ", ").append(full ? "\"full_attention\"" : "\"linear_attention\"");
  }
  t.set_text("layer_types", "[" + kinds + "]");
  if (attention.empty()) return t.set("num_attention_heads", 1);
  t.heads({.query = attention + ".q_proj", .key = attention + ".k_proj", .usual_width = 128});
}

}  // namespace minimax_detail

[[nodiscard]] inline const Architecture& minimax() {
  static constexpr Architecture kArchitecture = {.name = "minimax",
                                                 .model_types = minimax_detail::kModelTypes,
                                                 .write = minimax_detail::write,
                                                 .classes = minimax_detail::kClasses,
                                                 .read_tree = minimax_detail::read_tree};
  return kArchitecture;
}

}  // namespace gpumem::architectures
