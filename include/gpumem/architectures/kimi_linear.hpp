// Kimi Linear: three of four layers are delta attention (KDA), whose decays differ by channel, the fourth is attention
// over compressed keys and values without positions; routed experts and shared ones after the first dense layers. Kimi
// K3's text model is one with gates behind both, experts that are narrower than the model, and residuals of blocks of
// layers, which each layer attends to.
// Source: transformers 5.6, models/kimi_linear/modeling_kimi_linear.py; arXiv:2510.26692. The kernels are those of
// causal-conv1d and flash-linear-attention (see ops/scan.hpp). Kimi K3: its own modeling_kimi_linear.py (KimiGatedMLA,
// KimiSparseMoeBlock, KimiAttentionResidual) as torchtitan's port for training has it.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/latent_attention.hpp"
#include "gpumem/architectures/mamba_mixers.hpp"
#include "gpumem/architectures/mixture.hpp"

namespace gpumem::architectures {

namespace kimi_linear {

/// Delta attention: as many heads of keys as of values, and as wide.
struct DeltaAttention {
  std::int64_t heads = 1;
  std::int64_t width = 1;
  std::int64_t kernel = 4;

  [[nodiscard]] std::int64_t size() const { return heads * width; }
};

struct Model {
  DecoderSizes sizes;
  DeltaAttention delta;
  LatentAttention attention;
  std::vector<LayerKind> kinds;
  Mixture mixture;
  std::int64_t shared = 1;          ///< experts that all tokens go to
  std::int64_t dense = 1;           ///< the first layers, this many, have no experts
  bool wide_gates = false;          ///< behind delta attention, of one projection
  std::int64_t routed_width = 0;    ///< that routed experts read; 0: the model's
  bool norms_routed = false;        ///< what they leave
  std::int64_t residual_block = 0;  ///< layers whose sum is one residual; 0: each layer adds to the only one
};

/// Layers counted from 1, as checkpoints list them.
inline void mark(ConfigFields& lists, std::string_view field, LayerKind kind, std::vector<LayerKind>& kinds) {
  const std::vector<bool> listed = lists.layers_listed(field, static_cast<std::int64_t>(kinds.size()), 1);
  for (std::size_t at = 0; at < listed.size(); ++at) {
    if (listed[at]) kinds[at] = kind;
  }
}

inline void read_delta(ConfigFields& config, Model& model) {
  const auto layers = static_cast<std::size_t>(model.sizes.layers);
  constexpr std::int64_t kInterval = 4;
  model.delta = {.heads = config.size_or({"linear_num_heads"}, 32),
                 .width = config.size_or({"linear_head_dim"}, 128),
                 .kernel = config.size_or({"linear_conv_kernel_dim"}, 4)};
  model.kinds = mixer_kinds(config, "layer_types", model.sizes.layers);
  std::vector<LayerKind> usual(layers, LayerKind::recurrent);
  for (std::size_t at = kInterval - 1; at < layers; at += kInterval) usual[at] = LayerKind::attention;
  if (ConfigFields* own = config.part("linear_attn_config"); own != nullptr) {
    ConfigFields& fields = *own;
    model.delta = {.heads = fields.size_or({"num_heads"}, model.delta.heads),
                   .width = fields.size_or({"head_dim"}, model.delta.width),
                   .kernel = fields.size_or({"short_conv_kernel_size"}, model.delta.kernel)};
    mark(fields, "kda_layers", LayerKind::recurrent, usual);
    mark(fields, "full_attn_layers", LayerKind::attention, usual);
    model.wide_gates = fields.flag("use_full_rank_gate", false);
    fields.ignore({"gate_lower_bound"});
  }
  if (model.kinds.empty()) model.kinds = std::move(usual);
  using mamba_mixers_detail::product;
  const bool wide = product(model.delta.heads, model.delta.width) > ConfigFields::kLargestSize / 8;
  if (wide || model.delta.kernel > ConfigFields::kLargestSize / 8) config.fail("is too wide", "linear_attn_config");
}

inline void read_attention(ConfigFields& config, Model& model) {
  const DecoderSizes& sizes = model.sizes;
  model.attention = read_latent_attention(config, sizes);
  model.attention.gates = config.flag("mla_use_output_gate", false);
  model.attention.class_name = "KimiLinearAttention";
  model.attention.norm_class = "KimiLinearRMSNorm";
}

/// What Kimi K3 has besides.
inline void read_k3(ConfigFields& config, Model& model) {
  model.routed_width = config.count_or("routed_expert_hidden_size", 0);
  model.norms_routed = config.flag("latent_moe_use_norm", false);
  model.residual_block = config.count_or("attn_res_block_size", 0);
  constexpr std::int64_t kMostBlocks = 256;
  if (model.residual_block > 0 && model.sizes.layers / model.residual_block > kMostBlocks) {
    config.fail("makes more blocks than any model has", "attn_res_block_size");
  }
  config.ignore({"activation_situ_beta", "activation_situ_linear_beta"});
}

inline Model read(ConfigFields& config) {
  Model model;
  config.complete(R"({"head_dim": 128})");  // which no layer here reads
  model.sizes = decoder_sizes(config, {.inner_factor = 4});
  read_delta(config, model);
  read_attention(config, model);
  model.mixture = {.experts = config.size({"num_experts", "num_local_experts", "n_routed_experts"}),
                   .per_token = config.size({"num_experts_per_token", "num_experts_per_tok"}),
                   .inner = config.size({"moe_intermediate_size"}),
                   .expert_class = "KimiLinearMLP"};
  // Narrow experts are one tensor a layer, so a graph has no layers of each.
  read_k3(config, model);
  check_mixture(config, model.mixture, model.routed_width > 0 ? 1 : model.sizes.layers, "num_experts",
                "num_experts_per_token");
  model.shared = config.size_or({"num_shared_experts", "n_shared_experts"}, 1);
  if (mamba_mixers_detail::product(model.shared, model.mixture.inner) > ConfigFields::kLargestSize) {
    config.fail("makes the shared experts too wide", "num_shared_experts");
  }
  const core::JsonValue* dense = config.find("first_k_dense_replace");
  model.dense = dense != nullptr && dense->is(0) ? 0 : config.size_or({"first_k_dense_replace"}, 1);
  config.ignore({"moe_layer_freq", "moe_renormalize", "moe_router_activation_func", "num_expert_group", "n_group",
                 "topk_group", "topk_method", "use_grouped_topk", "routed_scaling_factor", "num_nextn_predict_layers",
                 "mla_use_nope", "router_aux_loss_coef", "output_router_logits"});
  return model;
}

/// KimiLinearDeltaAttention.
inline Tensor delta_attention(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "self_attn", "KimiLinearDeltaAttention");
  const DeltaAttention& d = model.delta;
  const std::int64_t width = model.sizes.width;
  const auto project = [&](std::string_view name, Tensor from, std::int64_t in, std::int64_t out) {
    return f.linear(name, from, in, out, {.bias = false});
  };
  const auto heads = [&](Tensor flat) { return f.unflatten(flat, 2, {-1, d.width}); };
  const Tensor query = project("q_proj", input, width, d.size());
  const Tensor key = project("k_proj", input, width, d.size());
  const Tensor mixed = f.concatenate({query, key, project("v_proj", input, width, d.size())}, 2);
  const Tensor convolved = mamba_mixers_detail::convolution(f, mixed, 3 * d.size(), d.kernel, false);
  const std::vector<Tensor> parts = f.split(convolved, 2, {d.size(), d.size(), d.size()});
  const Tensor narrow = project("forget_gate_down", input, width, d.width);
  const Tensor forget = heads(project("forget_gate_up", narrow, d.width, d.size()));
  const Tensor biased = f.add(f.to(forget, "float32"), f.parameter("dt_bias", {d.heads, d.width}));
  const Tensor decays = f.call("neg", {f.call("exp", {f.parameter("A_log", {d.heads, 1})})});
  const Tensor steps = f.multiply(f.call("softplus", {biased}), decays);
  const Tensor rates = f.call("sigmoid", {f.to(project("beta_proj", input, width, d.heads), "float32")});
  const Tensor made = f.call("gated_delta_rule", {heads(parts[0]), heads(parts[1]), heads(parts[2]), steps, rates},
                             {{"per_channel", true}});
  const auto narrow_gate = [&] {
    return project("output_gate_up", project("output_gate_down", input, width, d.width), d.width, d.size());
  };
  const Tensor gate = heads(model.wide_gates ? project("g_proj", input, width, d.size()) : narrow_gate());
  const Tensor normed =
      f.layer("o_norm", "KimiLinearRMSNormGated", "gated_norm", {made, gate}, {{"normalized_shape", d.width}});
  return project("o_proj", f.flatten(normed, 2, 3), d.size(), width);
}

/// SiTU: beta tanh(x / beta) sigmoid(x), and the values below a bound by another tanh.
inline Tensor situ_gate(Forward& f, Tensor gate, Tensor up) {
  const Tensor bent = f.scale(f.call("tanh", {f.scale(gate)}));
  const Tensor open = f.multiply(bent, f.call("sigmoid", {gate}));
  return f.multiply(open, f.scale(f.call("tanh", {f.scale(up)})));
}

/// A gated feed-forward layer, in the module that is open.
inline Tensor fed(Forward& f, const Model& model, std::int64_t width, std::int64_t inner, Tensor input) {
  if (model.sizes.activation != "situ") return gated_layer(f, width, inner, model.sizes.activation, input);
  const Tensor gate = f.linear("gate_proj", input, width, inner, {.bias = false});
  const Tensor up = f.linear("up_proj", input, width, inner, {.bias = false});
  return f.linear("down_proj", situ_gate(f, gate, up), inner, width, {.bias = false});
}

/// Scores and weights of the experts are float32, and so is the sum. The bias that corrects the choice is a buffer.
inline Tensor expert_weights(Forward& f, const Model& model, Tensor wide) {
  const Mixture& m = model.mixture;
  const InModule gate(f, "gate", "KimiLinearTopkRouter");
  const Tensor matrix = f.to(f.parameter("weight", {m.experts, model.sizes.width}), "float32");
  const Tensor scores = f.call("sigmoid", {f.call("linear_function", {wide, matrix})});
  (void)f.constant("e_score_correction_bias", {m.experts}, "float32");
  return f.scale(f.slice(scores, 2, 0, m.per_token));
}

/// Kimi K3's routed experts: of a narrower copy of the tokens, all at once.
inline Tensor narrow_experts(Forward& f, const Model& model, Tensor input, Tensor weights) {
  const Mixture& m = model.mixture;
  const std::int64_t width = model.sizes.width;
  const Tensor narrow = f.linear("routed_expert_down_proj", input, width, model.routed_width, {.bias = false});
  const GroupedExperts all = {.list_class = "KimiK3Experts", .width = model.routed_width};
  Tensor made = add_grouped_experts(f, m, all, narrow, weights, [&](Tensor rows) {
    const std::vector<Tensor> halves = f.split(rows, 1, {m.inner, m.inner});
    return situ_gate(f, halves[0], halves[1]);
  });
  if (model.norms_routed) made = f.rms_norm("routed_expert_norm", made, model.routed_width, "KimiLinearRMSNorm");
  return f.linear("routed_expert_up_proj", made, model.routed_width, width, {.bias = false});
}

inline Tensor mixture(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "mlp", "KimiLinearMoE");
  const std::int64_t width = model.sizes.width;
  const Mixture& m = model.mixture;
  const Tensor wide = f.to(input, "float32");
  const Tensor weights = expert_weights(f, model, wide);
  const auto expert = [&](Tensor rows) { return fed(f, model, width, m.inner, rows); };
  const Tensor sum =
      model.routed_width > 0
          ? narrow_experts(f, model, input, weights)
          : f.as_type_of(add_experts(f, m, input, weights, f.call("token_zeros", {wide}), expert), input);
  const InModule shared(f, "shared_experts", "KimiLinearMLP");
  return f.add(sum, fed(f, model, width, model.shared * m.inner, input));
}

/// A layer's attention of normed tokens.
inline Tensor attended(Forward& f, const Model& model, Tensor normed, const Rotary& rotary, std::int64_t index) {
  const bool attends = model.kinds[static_cast<std::size_t>(index)] == LayerKind::attention;
  return attends ? latent_attention(f, model.attention, normed, rotary) : delta_attention(f, model, normed);
}

/// A layer's feed-forward part of normed tokens.
inline Tensor fed_forward(Forward& f, const Model& model, Tensor normed, std::int64_t index) {
  if (index >= model.dense) return mixture(f, model, normed);
  const InModule inside(f, "mlp", "KimiLinearMLP");
  return fed(f, model, model.sizes.width, model.sizes.inner, normed);
}

/// Kimi K3's residuals: the sum of each block of layers before, and that of the layers of this one.
struct Residuals {
  std::vector<Tensor> blocks = {};  ///< [N, S, 1, width]
  std::optional<Tensor> sum = {};
};

/// A mean of all residuals, weighed by a softmax of their scores; in float32.
inline Tensor mixed_residuals(Forward& f, const Model& model, const Residuals& residuals, std::string_view name) {
  const std::int64_t width = model.sizes.width;
  std::vector<Tensor> all = residuals.blocks;
  all.push_back(f.call("unsqueeze", {*residuals.sum}, {{"dim", std::int64_t{2}}}));
  const Tensor values = f.concatenate(all, 2);
  const Tensor normed = f.rms_norm(std::string(name) + "_norm", values, width, "KimiLinearRMSNorm");
  const Tensor scores = f.to(f.linear(std::string(name) + "_proj", normed, width, 1, {.bias = false}), "float32");
  const Tensor weights = f.call("softmax", {scores}, {{"dim", std::int64_t{2}}});
  const Tensor products = f.multiply(weights, f.to(values, "float32"));
  return f.as_type_of(f.call("sum", {products}, {{"dim", std::int64_t{2}}}), values);
}

/// A layer that reads the residuals of blocks.
inline Residuals residual_block(Forward& f, const Model& model, Residuals residuals, const Rotary& rotary,
                                std::int64_t index) {
  const std::int64_t width = model.sizes.width;
  const auto norm = [&](std::string_view name, Tensor tensor) {
    return f.rms_norm(name, tensor, width, "KimiLinearRMSNorm");
  };
  const Tensor input =
      residuals.blocks.empty() ? *residuals.sum : mixed_residuals(f, model, residuals, "self_attention_res");
  const bool ends = index % model.residual_block == 0;
  if (ends) residuals.blocks.push_back(f.call("unsqueeze", {*residuals.sum}, {{"dim", std::int64_t{2}}}));
  const Tensor mixed = attended(f, model, norm("input_layernorm", input), rotary, index);
  residuals.sum = ends ? mixed : f.add(*residuals.sum, mixed);
  const Tensor again = norm("post_attention_layernorm", mixed_residuals(f, model, residuals, "mlp_res"));
  residuals.sum = f.add(*residuals.sum, fed_forward(f, model, again, index));
  return residuals;
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary, std::int64_t index) {
  const std::int64_t width = model.sizes.width;
  const Tensor normed = f.rms_norm("input_layernorm", input, width, "KimiLinearRMSNorm");
  const Tensor mixed = f.add(input, attended(f, model, normed, rotary, index));
  const Tensor again = f.rms_norm("post_attention_layernorm", mixed, width, "KimiLinearRMSNorm");
  return f.add(mixed, fed_forward(f, model, again, index));
}

/// All layers of a model whose layers read the residuals of blocks.
inline Tensor residual_layers(Forward& f, const Model& model, Tensor embedded, const Rotary& rotary) {
  Residuals residuals = {.sum = embedded};
  residuals =
      stack(f, "layers", "KimiLinearDecoderLayer", model.sizes.layers, residuals,
            [&](Residuals x, std::int64_t index) { return residual_block(f, model, std::move(x), rotary, index); });
  return mixed_residuals(f, model, residuals, "output_attn_res");
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  doubt_kernels(f, "causal-conv1d and flash-linear-attention");
  warn_of_routing(f);
  decoder_model(f, config, s, head, {.class_name = "KimiLinearModel"}, [&](Tensor ids, Tensor hidden) {
    const Rotary rotary = rotary_tables(f, ids, model.attention.rotary_width);
    const auto layer = [&](Tensor x, std::int64_t index) { return block(f, model, x, rotary, index); };
    hidden = model.residual_block > 0 ? residual_layers(f, model, hidden, rotary)
                                      : stack(f, "layers", "KimiLinearDecoderLayer", s.layers, hidden, layer);
    return f.rms_norm("norm", hidden, s.width, "KimiLinearRMSNorm");
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"KimiLinear", "kimi_linear", "model"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  std::string kinds;
  std::string delta;
  std::string attention;
  std::int64_t dense = -1;
  const std::int64_t layers = std::min(t.count_of("layers"), ConfigFields::kMostLayers);
  for (std::int64_t at = 0; at < layers; ++at) {
    const std::string layer = "layers." + std::to_string(at);
    const bool attends = t.has(layer + ".self_attn.kv_b_proj");
    if (attends && attention.empty()) attention = layer + ".self_attn";
    if (!attends && delta.empty()) delta = layer + ".self_attn";
    kinds += std::string(kinds.empty() ? "" : ", ") + (attends ? R"("full_attention")" : R"("linear_attention")");
    if (dense < 0 && t.has(layer + ".mlp.experts")) dense = at;
  }
  t.set_text("layer_types", "[" + kinds + "]");
  t.set("linear_head_dim", t.value(delta + ".forget_gate_down", "out_features").value_or(128));
  t.size("linear_num_heads", delta + ".beta_proj", "out_features");
  t.size("linear_conv_kernel_dim", delta + ".conv1d", "kernel_size");
  if (!attention.empty()) tree_latent_attention(t, attention);
  t.size("intermediate_size", "layers.0.mlp.gate_proj", "out_features");
  t.set("first_k_dense_replace", std::max<std::int64_t>(dense, 0));
  const std::string mixture = "layers." + std::to_string(std::max<std::int64_t>(dense, 0)) + ".mlp.";
  t.count("num_experts", mixture + "experts");
  t.size("moe_intermediate_size", mixture + "experts.0.gate_proj", "out_features");
  const std::int64_t inner = t.value(mixture + "experts.0.gate_proj", "out_features").value_or(1);
  const std::int64_t shared = t.value(mixture + "shared_experts.gate_proj", "out_features").value_or(inner);
  t.set("num_shared_experts", std::max<std::int64_t>(shared / inner, 1));
  t.set("num_experts_per_token", 8);
  t.assume("8 experts a token, as published models have");
}

inline constexpr Architecture kArchitecture = {.name = "kimi_linear",
                                               .model_types = names<"kimi_linear">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree};

}  // namespace kimi_linear

}  // namespace gpumem::architectures
