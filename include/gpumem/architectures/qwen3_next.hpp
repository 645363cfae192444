// Qwen3-Next and the text models of Qwen3.5 and 3.6: three of four layers are gated delta nets, the fourth is gated
// attention; experts with a shared one, or a gated feed-forward layer. The module that predicts further tokens (MTP) is
// not part of it, as transformers does not load it.
// Source: transformers 4.57, models/qwen3_next/modeling_qwen3_next.py; 5.2, models/qwen3_5/modeling_qwen3_5.py and
// qwen3_5_moe, whose projections are not interleaved. The kernels are those of causal-conv1d and
// flash-linear-attention (see ops/scan.hpp); without them transformers writes the rule out in float32.
#pragma once

#include <array>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/mamba_mixers.hpp"
#include "gpumem/architectures/mixture.hpp"

namespace gpumem::architectures {

namespace qwen3_next {

struct Model {
  DecoderSizes sizes;
  std::string_view prefix = "Qwen3Next";
  bool interleaves = true;  ///< Qwen3-Next: queries, keys, values and gates of each head are projected side by side
  DeltaNet net;
  std::vector<LayerKind> kinds;
  std::int64_t turned = 2;  ///< elements of a head with rotary positions
  bool bias = false;
  Mixture mixture;
  bool mixes = false;
  bool fused = false;  ///< the experts' weights are one tensor each
  std::int64_t shared_inner = 0;
  std::int64_t every = 1;  ///< every N-th layer has experts
  std::vector<bool> dense;

  [[nodiscard]] std::string named(std::string_view part) const { return std::string(prefix).append(part); }
};

/// One layer in so many is attention, where the config does not list them.
inline std::vector<LayerKind> read_kinds(ConfigFields& config, std::int64_t layers) {
  const std::int64_t interval = config.size_or({"full_attention_interval"}, 4);
  std::vector<LayerKind> kinds = mixer_kinds(config, "layer_types", layers);
  for (std::int64_t at = 0; kinds.size() < static_cast<std::size_t>(layers); ++at) {
    kinds.push_back((at + 1) % interval == 0 ? LayerKind::attention : LayerKind::recurrent);
  }
  return kinds;
}

/// partial_rotary_factor, which newer configs have within rope_parameters.
inline std::int64_t read_turned(ConfigFields& config, const DecoderSizes& sizes) {
  constexpr double kUsual = 0.25;
  double share = config.number({"partial_rotary_factor"}, 0.0);
  if (const core::JsonValue* rope = config.find("rope_parameters"); rope != nullptr && !(share > 0.0)) {
    if (rope->is(core::JsonValue::Kind::object)) {
      ConfigFields fields(*rope);
      share = fields.number({"partial_rotary_factor"}, 0.0);
    }
  }
  const double part = share > 0.0 && share <= 1.0 ? share : kUsual;
  const auto width = static_cast<std::int64_t>(static_cast<double>(sizes.head_width) * part);
  if (width >= 2 && width % 2 == 0) return width;
  config.fail("leaves an odd number of elements of a head for rotary positions", "partial_rotary_factor");
  return 2;
}

inline void read_mixture(ConfigFields& config, Model& model) {
  const DecoderSizes& sizes = model.sizes;
  model.mixture = {.experts = config.size({"num_experts"}),
                   .per_token = config.size({"num_experts_per_tok"}),
                   .inner = config.size({"moe_intermediate_size"}),
                   .expert_class = model.named("MLP")};
  model.shared_inner = config.size({"shared_expert_intermediate_size"});
  model.every = config.size_or({"decoder_sparse_step"}, 1);
  check_mixture(config, model.mixture, sizes.layers, "num_experts", "num_experts_per_tok");
  model.dense.assign(static_cast<std::size_t>(sizes.layers), false);
  const core::JsonValue* plain = config.find("mlp_only_layers");
  if (plain == nullptr || !plain->is(core::JsonValue::Kind::list)) return;
  for (const core::JsonValue& item : plain->items()) {
    const bool known = item.is(core::JsonValue::Kind::integer) && item.integer() >= 0 && item.integer() < sizes.layers;
    if (known) model.dense[static_cast<std::size_t>(item.integer())] = true;
  }
}

inline Model read(ConfigFields& config) {
  Model model;
  const std::string_view type = config.text({"model_type"}, "qwen3_next");
  model.interleaves = type == "qwen3_next";
  model.mixes = type != "qwen3_5_text";
  model.prefix = model.interleaves ? "Qwen3Next" : model.mixes ? "Qwen3_5Moe" : "Qwen3_5";
  // Experts throughout leave no use for intermediate_size, which Qwen3.5's configs then do not have.
  model.sizes = decoder_sizes(config, {.inner_factor = model.mixes ? 4 : 0});
  model.net = read_delta_net(config, {.keys = 16, .values = 32, .key_width = 128, .value_width = 128});
  model.kinds = read_kinds(config, model.sizes.layers);
  model.turned = read_turned(config, model.sizes);
  model.bias = config.flag("attention_bias", false);
  model.fused = config.fuses_experts();
  if (model.sizes.heads * model.sizes.head_width > ConfigFields::kLargestSize / 2) {
    config.fail("makes heads too wide", "head_dim");
  }
  if (!config.flag("attn_output_gate", true)) config.fail("attention without a gate is not known", "attn_output_gate");
  if (model.mixes) read_mixture(config, model);
  config.ignore({"mlp_only_layers", "mtp_num_hidden_layers", "mtp_use_dedicated_embeddings", "mamba_ssm_dtype",
                 "router_aux_loss_coef", "output_router_logits", "norm_topk_prob"});
  return model;
}

/// What a delta net reads: queries, keys and values in one, gates, rates and steps.
struct Projected {
  Tensor mixed = 0;
  Tensor gate = 0;
  Tensor rates = 0;
  Tensor steps = 0;
};

/// fix_query_key_value_ordering: copies of the parts of each head.
inline Projected interleaved(Forward& f, const Model& model, Tensor input) {
  const DeltaNet& n = model.net;
  const std::int64_t width = model.sizes.width;
  const Tensor wide = f.linear("in_proj_qkvz", input, width, 2 * n.key_size() + 2 * n.value_size(), {.bias = false});
  const Tensor narrow = f.linear("in_proj_ba", input, width, 2 * n.values, {.bias = false});
  const std::int64_t of_values = n.times() * n.value_width;
  const std::vector<Tensor> parts =
      f.split(f.unflatten(wide, 2, {n.keys, -1}), 3, {n.key_width, n.key_width, of_values, of_values});
  const std::vector<Tensor> small = f.split(f.unflatten(narrow, 2, {n.keys, -1}), 3, {n.times(), n.times()});
  const Tensor gate = f.flatten(parts[3], 2, 3);
  const Tensor mixed =
      f.concatenate({f.flatten(parts[0], 2, 3), f.flatten(parts[1], 2, 3), f.flatten(parts[2], 2, 3)}, 2);
  return {mixed, gate, f.flatten(small[0], 2, 3), f.flatten(small[1], 2, 3)};
}

inline Projected projected(Forward& f, const Model& model, Tensor input) {
  if (model.interleaves) return interleaved(f, model, input);
  const DeltaNet& n = model.net;
  const auto project = [&](std::string_view name, std::int64_t size) {
    return f.linear(name, input, model.sizes.width, size, {.bias = false});
  };
  const Tensor mixed = project("in_proj_qkv", n.convolved());
  const Tensor gate = project("in_proj_z", n.value_size());
  const Tensor rates = project("in_proj_b", n.values);
  return {mixed, gate, rates, project("in_proj_a", n.values)};
}

inline Tensor delta_net(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "linear_attn", model.named("GatedDeltaNet"));
  const DeltaNet& n = model.net;
  const Projected from = projected(f, model, input);
  const auto rates = [&] { return f.call("sigmoid", {from.rates}); };
  const Tensor made = gated_delta(f, n, from.mixed, rates, [&] { return from.steps; });
  const Tensor gate = f.unflatten(from.gate, 2, {-1, n.value_width});
  const Tensor normed =
      f.layer("norm", "FusedRMSNormGated", "gated_norm", {made, gate}, {{"normalized_shape", n.value_width}});
  return f.linear("out_proj", f.flatten(normed, 2, 3), n.value_size(), model.sizes.width, {.bias = false});
}

/// Queries come with a gate for what attention leaves.
inline Tensor gated_attention(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const InModule inside(f, "self_attn", model.named("Attention"));
  const DecoderSizes& s = model.sizes;
  const std::int64_t each = s.head_width;
  const Linear wide = {.bias = model.bias, .split = Split::columns};
  const auto normed = [&](std::string_view name, Tensor heads) {
    return f.permute(offset_norm(f, name, heads, each, model.named("RMSNorm")), {0, 2, 1, 3});
  };
  const Tensor both = f.unflatten(f.linear("q_proj", input, s.width, 2 * s.heads * each, wide), 2, {-1, 2 * each});
  const std::vector<Tensor> parts = f.split(both, 3, {each, each});
  const Tensor gate = f.flatten(parts[1], 2, 3);
  const Tensor query = normed("q_norm", parts[0]);
  const Tensor flat = f.linear("k_proj", input, s.width, s.kv_heads * each, wide);
  const Tensor key = normed("k_norm", f.unflatten(flat, 2, {-1, each}));
  const Tensor value = split_heads(f, f.linear("v_proj", input, s.width, s.kv_heads * each, wide), each);
  const Heads turned = {rotate(f, query, rotary, each), rotate(f, key, rotary, each), value};
  const Tensor attended = attend_cached(f, s, turned);
  const Tensor open = f.multiply(attended, f.call("sigmoid", {gate}));
  return f.linear("o_proj", open, s.heads * each, s.width, {.bias = model.bias, .split = Split::rows});
}

inline Tensor mixture(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "mlp", model.named("SparseMoeBlock"));
  const std::int64_t width = model.sizes.width;
  const Mixture& m = model.mixture;
  const std::string experts = model.named("Experts");
  const Tensor scores = model.fused ? held_scores(f, "gate", model.named("TopKRouter"), m, width, input)
                                    : f.linear("gate", input, width, m.experts, {.bias = false});
  const Tensor weights = f.call("softmax", {f.to(scores, "float32")});
  const Tensor chosen = f.as_type_of(f.slice(weights, 2, 0, m.per_token), input);
  const auto expert = [&](Tensor rows) { return gated_layer(f, width, m.inner, model.sizes.activation, rows); };
  const GroupedExperts all = {.list_class = experts, .width = width, .activation = model.sizes.activation};
  const Tensor sum = model.fused ? add_grouped_experts(f, m, all, input, chosen)
                                 : add_experts(f, m, input, chosen, f.call("token_zeros", {input}), expert);
  Tensor shared = 0;
  {
    const InModule one(f, "shared_expert", model.named("MLP"));
    shared = gated_layer(f, width, model.shared_inner, model.sizes.activation, input);
  }
  const Tensor gate = f.linear("shared_expert_gate", input, width, 1, {.bias = false});
  return f.add(sum, f.multiply(f.call("sigmoid", {gate}), shared));
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary, std::int64_t index) {
  const std::int64_t width = model.sizes.width;
  const auto at = static_cast<std::size_t>(index);
  const Tensor normed = offset_norm(f, "input_layernorm", input, width, model.named("RMSNorm"));
  const Tensor mixed =
      model.kinds[at] == LayerKind::attention ? gated_attention(f, model, normed, rotary) : delta_net(f, model, normed);
  const Tensor attended = f.add(input, mixed);
  const Tensor again = offset_norm(f, "post_attention_layernorm", attended, width, model.named("RMSNorm"));
  const bool mixes = model.mixes && !model.dense[at] && (index + 1) % model.every == 0;
  return f.add(attended,
               mixes ? mixture(f, model, again) : gated_feed_forward(f, model.sizes, again, model.named("MLP")));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  doubt_kernels(f, "causal-conv1d and flash-linear-attention");
  if (model.mixes) warn_of_routing(f);
  const DecoderBody body = {.class_name = model.named(model.interleaves ? "Model" : "TextModel")};
  decoder_model(f, config, s, head, body, [&](Tensor ids, Tensor hidden) {
    const Rotary rotary = rotary_tables(f, ids, model.turned);
    hidden = stack(f, "layers", model.named("DecoderLayer"), s.layers, hidden,
                   [&](Tensor x, std::int64_t index) { return block(f, model, x, rotary, index); });
    return offset_norm(f, "norm", hidden, s.width, model.named("RMSNorm"));
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Qwen3Next", "qwen3_next", "model"},
                                                            {"Qwen3_5", "qwen3_5_text", "model", 2560},
                                                            {"Qwen3_5Text", "qwen3_5_text", "model", 2560},
                                                            {"Qwen3_5Moe", "qwen3_5_moe_text", "model"},
                                                            {"Qwen3_5MoeText", "qwen3_5_moe_text", "model"}});

/// The heads of a delta net: a step for each of its values, whose norm shows their width.
inline void read_net_of_tree(TreeFields& t, const std::string& net, bool interleaves) {
  const auto out = [&](std::string_view name) { return t.value(net + "." + std::string(name), "out_features"); };
  const std::int64_t values = interleaves ? out("in_proj_ba").value_or(0) / 2 : out("in_proj_b").value_or(0);
  const std::int64_t value_size = t.value(net + ".out_proj", "in_features").value_or(0);
  const std::int64_t key_size = (t.value(net + ".conv1d", "in_channels").value_or(0) - value_size) / 2;
  t.size("linear_conv_kernel_dim", net + ".conv1d", "kernel_size");
  if (values < 1 || value_size % values != 0 || key_size < 1) return;
  const std::int64_t each = value_size / values;
  t.set("linear_num_value_heads", values);
  t.set("linear_value_head_dim", each);
  const std::int64_t key_width = key_size % each == 0 ? each : key_size;
  t.set("linear_num_key_heads", key_size / key_width);
  t.set("linear_key_head_dim", key_width);
  t.assume("keys as wide as values in the delta nets, as published models have");
}

inline void read_mixture_of_tree(TreeFields& t) {
  const std::string mixture = "layers.0.mlp.";
  if (!t.has(mixture + "gate")) return;
  t.size("shared_expert_intermediate_size", mixture + "shared_expert.gate_proj", "out_features");
  const std::string_view type = t.class_name().starts_with("Qwen3Next") ? "qwen3_next" : "qwen3_5_moe_text";
  if (!t.value(mixture + "gate", "out_features")) {
    fused_experts(t, {.model_type = type,
                      .router = mixture + "gate",
                      .list = mixture + "experts",
                      .number = "num_experts",
                      .inner = "moe_intermediate_size"});
    return;
  }
  t.size("num_experts", mixture + "gate", "out_features");
  t.size("moe_intermediate_size", mixture + "experts.0.gate_proj", "out_features");
  const std::int64_t experts = t.value(mixture + "gate", "out_features").value_or(1);
  const std::int64_t width = t.value("embed_tokens", "embedding_dim").value_or(0);
  const std::int64_t inner = t.value(mixture + "experts.0.gate_proj", "out_features").value_or(0);
  choose_experts(t, type, {width, experts, inner}, "num_experts_per_tok");
}

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  t.labels();
  const auto [attention, net] = tree_layer_types(t);
  t.size("intermediate_size", "layers.0.mlp.gate_proj", "out_features");
  read_mixture_of_tree(t);
  if (!net.empty()) read_net_of_tree(t, net, t.class_name().starts_with("Qwen3Next"));
  // Queries come with a gate: half of what is projected.
  const std::int64_t queries = t.value(attention + ".o_proj", "in_features").value_or(0);
  const std::int64_t keys = t.value(attention + ".k_proj", "out_features").value_or(0);
  constexpr std::int64_t kEach = 256;
  const std::int64_t each = queries % kEach == 0 && keys % kEach == 0 ? kEach : keys;
  t.flag("attention_bias", attention + ".q_proj");
  if (each < 1 || queries < each) {
    t.set("num_attention_heads", 1);
    return;
  }
  t.set("num_attention_heads", queries / each);
  t.set("num_key_value_heads", keys / each);
  t.set("head_dim", each);
  t.assume("heads of width " + std::to_string(each) + ", as published models have");
}

inline constexpr Architecture kArchitecture = {.name = "qwen3_next",
                                               .model_types = names<"qwen3_next", "qwen3_5_text", "qwen3_5_moe_text">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree};

}  // namespace qwen3_next

}  // namespace gpumem::architectures
