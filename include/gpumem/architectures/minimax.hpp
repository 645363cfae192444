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

namespace minimax {

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
  decoder_model(f, config, s, head, {.class_name = "MiniMaxModel"}, [&](Tensor ids, Tensor embedded) {
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

inline constexpr Architecture kArchitecture = {
    .name = "minimax", .model_types = kModelTypes, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace minimax

// MiniMax-M3 (text): normed heads with positions on a part of them, an indexer that chooses blocks of keys in most
// layers, clamped gates, experts and one that all tokens go to after the first layers.
// Source: transformers 5.x (@01a05aad6d830cacea098be78be92b0e0df6b2f0), models/minimax_m3_vl/modeling_minimax_m3_vl.py;
// its experts multiply all at once (integrations/moe.py). Layers that predict further tokens are not part of it.

namespace minimax_m3 {

inline constexpr std::string_view kNorm = "MiniMaxM3VLRMSNorm";

struct Model {
  DecoderSizes sizes;
  std::int64_t turned = 64;  ///< elements of a head with positions
  std::int64_t dense_inner = 1;
  std::int64_t shared_inner = 1;
  std::int64_t index_heads = 4;
  std::int64_t index_width = 128;
  std::vector<bool> mixes;    ///< by layer: it has experts
  std::vector<bool> chooses;  ///< by layer: an indexer chooses its keys
  Mixture mixture;
};

/// As transformers writes it since it has the class, and as the published config does (`sparse_attention_config`).
inline void read_indexer(ConfigFields& config, Model& model) {
  const std::int64_t layers = model.sizes.layers;
  model.index_heads = config.size_or({"index_n_heads"}, 4);
  model.index_width = config.size_or({"index_head_dim"}, 128);
  config.ignore({"index_block_size", "index_topk_blocks", "index_init_blocks", "index_local_blocks"});
  model.chooses = config.layers_with("layer_types", layers, std::string_view("minimax_m3_sparse"),
                                     std::string_view("full_attention"));
  if (ConfigFields* own = config.part("sparse_attention_config"); own != nullptr) {
    model.index_heads = own->size_or({"sparse_num_index_heads"}, model.index_heads);
    model.index_width = own->size_or({"sparse_index_dim"}, model.index_width);
    if (model.chooses.empty()) model.chooses = own->layers_with("sparse_attention_freq", layers, 1, 0);
    own->ignore({"sparse_attention_freq", "sparse_block_size", "sparse_disable_index_value", "sparse_init_block",
                 "sparse_local_block", "sparse_score_type", "sparse_topk_blocks", "use_sparse_attention"});
  }
  for (auto at = static_cast<std::int64_t>(model.chooses.size()); at < layers; ++at) model.chooses.push_back(at >= 3);
}

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config);
  const DecoderSizes& s = model.sizes;
  model.turned = config.size_or({"rotary_dim"}, s.head_width);
  model.dense_inner = config.size_or({"dense_intermediate_size"}, s.inner);
  model.mixture = {.experts = config.size({"num_local_experts"}),
                   .per_token = config.size({"num_experts_per_tok"}),
                   .inner = s.inner};
  check_mixture(config, model.mixture, s.layers, "num_local_experts", "num_experts_per_tok");
  const std::int64_t shared = config.size_or({"n_shared_experts"}, 1);
  model.shared_inner = config.size_or({"shared_intermediate_size"}, s.inner);
  constexpr std::int64_t kMost = ConfigFields::kLargestSize / 4;
  if (model.shared_inner > kMost / shared || model.dense_inner > kMost || s.inner > kMost) {
    config.fail("is too wide", "shared_intermediate_size");
  }
  model.shared_inner *= shared;
  model.mixes = config.layers_with("mlp_layer_types", s.layers, std::string_view("sparse"), std::string_view("dense"));
  if (model.mixes.empty()) model.mixes = config.layers_with("moe_layer_freq", s.layers, 1, 0);
  const std::int64_t dense = config.count_or("first_k_dense_replace", 3);
  for (auto at = static_cast<std::int64_t>(model.mixes.size()); at < s.layers; ++at) model.mixes.push_back(at >= dense);
  read_indexer(config, model);
  if (model.index_heads > kMost / model.index_width) config.fail("is too wide", "sparse_attention_config");
  if (model.turned > s.head_width || model.turned % 2 != 0) config.fail("does not fit a head", "rotary_dim");
  if (config.flag("attention_output_gate", false)) config.fail("is not known", "attention_output_gate");
  config.ignore({"moe_intermediate_size", "num_mtp_modules", "num_nextn_predict_layers", "partial_rotary_factor",
                 "qk_norm_type", "routed_scaling_factor", "scoring_func", "swiglu_alpha", "swiglu_limit",
                 "use_gemma_norm", "use_qk_norm", "use_routing_bias", "router_jitter_noise", "router_aux_loss_coef",
                 "output_router_logits"});
  return model;
}

inline Tensor norm(Forward& f, std::string_view name, Tensor input, std::int64_t width) {
  return wide_norm(f, name, kNorm, input, width);
}

/// The mask of the chosen blocks of keys: places alone leave the indexer, so nothing of it gets a gradient.
inline Tensor indexed(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "indexer", "MiniMaxM3VLIndexer");
  f.without_gradients(true);
  const Tensor tokens = f.detached(input);
  const auto heads = [&](std::string_view name, std::string_view normed, std::int64_t count) {
    const Tensor flat = f.linear(name, tokens, model.sizes.width, count * model.index_width, {.bias = false});
    return f.flatten(norm(f, normed, f.unflatten(flat, 2, {-1, model.index_width}), model.index_width), 2, 3);
  };
  const Tensor query = heads("q_proj", "q_norm", model.index_heads);
  const Tensor key = heads("k_proj", "k_norm", 1);
  f.without_gradients(false);
  return f.call("indexed_mask", {query, key},
                {{"heads", model.index_heads}, {"width", model.index_width}, {"expands", "heads"}});
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, const Rotary& rotary, bool chooses) {
  const InModule inside(f, "self_attn", chooses ? "MiniMaxM3VLSparseAttention" : "MiniMaxM3VLAttention");
  const DecoderSizes& s = model.sizes;
  const std::optional<Tensor> mask = chooses ? std::optional(indexed(f, model, input)) : std::nullopt;
  const auto heads = [&](std::string_view name, std::int64_t count) {
    const Linear linear = {.bias = false, .split = Split::columns};
    return split_heads(f, f.linear(name, input, s.width, count * s.head_width, linear), s.head_width);
  };
  const Tensor query = norm(f, "q_norm", heads("q_proj", s.heads), s.head_width);
  const Tensor key = norm(f, "k_norm", heads("k_proj", s.kv_heads), s.head_width);
  const Heads ready = {rotate(f, query, rotary, s.head_width), rotate(f, key, rotary, s.head_width),
                       heads("v_proj", s.kv_heads)};
  const Tensor mixed = attend_cached(f, s, ready, {.mask = mask});
  return f.linear("o_proj", mixed, s.heads * s.head_width, s.width, {.bias = false, .split = Split::rows});
}

/// Gates and values are one product, of which these are halves.
inline Tensor fed(Forward& f, const Model& model, std::string_view name, Tensor input, std::int64_t inner) {
  const InModule inside(f, name, "MiniMaxM3VLDenseMLP");
  const std::int64_t width = model.sizes.width;
  const Tensor wide = f.linear("gate_up_proj", input, width, 2 * inner, {.bias = false});
  const std::vector<Tensor> halves = f.split(wide, 2, {inner, inner});
  return f.linear("down_proj", clamped_gate(f, halves[0], halves[1]), inner, width, {.bias = false});
}

inline Tensor mixture(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "mlp", "MiniMaxM3VLSparseMoeBlock");
  const Mixture& m = model.mixture;
  const std::int64_t width = model.sizes.width;
  f.constant("e_score_correction_bias", {m.experts}, "float32");
  Tensor weights = 0;
  {
    const InModule gate(f, "gate", "MiniMaxM3VLTopKRouter");
    const Tensor scores = f.call("linear_function", {input, f.parameter("weight", {m.experts, width})});
    weights = f.scale(f.slice(f.call("sigmoid", {f.to(scores, "float32")}), 2, 0, m.per_token));
  }
  const GroupedExperts all = {.list_class = "MiniMaxM3VLExperts", .width = width};
  const Tensor sum = add_grouped_experts(f, m, all, input, weights, [&](Tensor wide) {
    const std::vector<Tensor> halves = f.split(wide, 1, {m.inner, m.inner});
    return clamped_gate(f, halves[0], halves[1]);
  });
  return f.add(sum, fed(f, model, "shared_experts", input, model.shared_inner));
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary, std::int64_t index) {
  const auto at = static_cast<std::size_t>(index);
  const std::int64_t width = model.sizes.width;
  const Tensor normed = norm(f, "input_layernorm", input, width);
  const Tensor attended = f.add(input, attention(f, model, normed, rotary, model.chooses[at]));
  const Tensor again = norm(f, "post_attention_layernorm", attended, width);
  return f.add(attended, model.mixes[at] ? mixture(f, model, again) : fed(f, model, "mlp", again, model.dense_inner));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  warn_of_routing(f);
  decoder_model(f, config, s, head, {.class_name = "MiniMaxM3VLTextModel"}, [&](Tensor ids, Tensor embedded) {
    const Rotary rotary = rotary_tables(f, ids, model.turned);
    const Tensor hidden = stack(f, "layers", "MiniMaxM3VLDecoderLayer", s.layers, embedded,
                                [&](Tensor x, std::int64_t index) { return block(f, model, x, rotary, index); });
    return norm(f, "norm", hidden, s.width);
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>(
    {{"MiniMaxM3VLText", "minimax_m3_vl_text", "model"}, {"MiniMaxM3", "minimax_m3", "model"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  t.heads({.query = "layers.0.self_attn.q_proj",
           .key = "layers.0.self_attn.k_proj",
           .norm = "layers.0.self_attn.q_norm",
           .usual_width = 128});
  std::string kinds;
  const std::int64_t dense = layers_before_experts(t, ".mlp.shared_experts");
  for (std::int64_t at = 0; at < std::min(t.count_of("layers"), ConfigFields::kMostLayers); ++at) {
    const bool chooses = t.has("layers." + std::to_string(at) + ".self_attn.indexer");
    kinds += std::string(at == 0 ? "" : ", ") + (chooses ? R"("minimax_m3_sparse")" : R"("full_attention")");
  }
  t.set_text("layer_types", "[" + kinds + "]");
  const std::string mixture = "layers." + std::to_string(dense) + ".mlp.";
  t.set("first_k_dense_replace", dense);
  t.half("dense_intermediate_size", "layers.0.mlp.gate_up_proj", "out_features");
  t.half("shared_intermediate_size", mixture + "shared_experts.gate_up_proj", "out_features");
  fused_experts(t, {.model_type = "minimax_m3", .router = mixture + "gate", .list = mixture + "experts"});
  t.set("rotary_dim", 64);
  t.assume("64 elements of a head with positions, as the published model has");
}

inline constexpr Architecture kArchitecture = {.name = "minimax_m3",
                                               .model_types = names<"minimax_m3", "minimax_m3_vl_text">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree};

}  // namespace minimax_m3

}  // namespace gpumem::architectures
