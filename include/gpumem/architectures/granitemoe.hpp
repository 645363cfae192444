// GraniteMoe (Granite 3.0 and PowerMoE): Granite's decoder, whose experts hold their weights in one tensor. The tokens
// are copied in the order of their experts; each expert multiplies its own rows of them. GraniteMoeHybrid
// (Granite 4.0): most layers are Mamba-2's, attention usually has no positions, and each layer has a feed-forward layer
// that all tokens go to, beside the experts or without any; GraniteMoeShared has that one beside its experts. Source:
// transformers 4.48, models/granitemoe/modeling_granitemoe.py; 4.57,
// models/granitemoehybrid/modeling_granitemoehybrid.py; arXiv:2408.13359.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/mamba_mixers.hpp"
#include "gpumem/architectures/mixture.hpp"

namespace gpumem::architectures {

namespace granitemoe {

struct Model {
  DecoderSizes sizes;
  std::string_view prefix = "GraniteMoe";
  Mixture mixture;
  bool bias = false;
  bool hybrid = false;
  bool fused = false;             ///< the experts' weights are one tensor each, as transformers 5 has them
  bool turns = true;              ///< by rotary positions
  std::int64_t shared_inner = 0;  ///< of the feed-forward layer of all tokens
  std::vector<LayerKind> kinds;
  Mamba2Mixer mixer;

  [[nodiscard]] std::string named(std::string_view part) const { return std::string(prefix).append(part); }
};

inline Mamba2Fields mixer_fields() {
  return {.heads = "mamba_n_heads",
          .head_width = "mamba_d_head",
          .groups = "mamba_n_groups",
          .state = "mamba_d_state",
          .kernel = "mamba_d_conv",
          .chunk = "mamba_chunk_size",
          .bias = "mamba_proj_bias",
          .convolution_bias = "mamba_conv_bias",
          .usual = {.name = "mamba",
                    .class_name = "GraniteMoeHybridMambaLayer",
                    .norm_class = "GraniteMoeHybridRMSNormGated",
                    .heads = 128,
                    .head_width = 64,
                    .groups = 1,
                    .state = 256}};
}

/// num_local_experts of dense models is 0.
inline void read_mixture(ConfigFields& config, Model& model) {
  const core::JsonValue* experts = config.find("num_local_experts");
  model.mixture.experts = 0;
  model.fused = config.fuses_experts();
  if (model.hybrid && !model.fused && (experts == nullptr || experts->is(0))) {
    config.ignore({"num_experts_per_tok", "router_aux_loss_coef"});
    return;
  }
  model.mixture = {.experts = config.size({"num_local_experts"}),
                   .per_token = config.size({"num_experts_per_tok"}),
                   .inner = model.sizes.inner};
  check_mixture(config, model.mixture, model.sizes.layers, "num_local_experts", "num_experts_per_tok");
}

inline void read_hybrid(ConfigFields& config, Model& model) {
  const auto layers = static_cast<std::size_t>(model.sizes.layers);
  model.kinds = mixer_kinds(config, "layer_types", model.sizes.layers);
  std::vector<LayerKind> older = mixer_kinds(config, "layers_block_type", model.sizes.layers);
  if (model.kinds.empty()) model.kinds = std::move(older);
  if (model.kinds.empty()) model.kinds.assign(layers, LayerKind::recurrent);
  model.mixer = mamba2_sizes(config, mixer_fields());
  model.mixer.width = model.sizes.width;
  model.shared_inner = config.size_or({"shared_intermediate_size"}, 1024);
  model.turns = config.text({"position_embedding_type"}, "nope") == "rope";
  config.ignore({"mamba_expand", "normalization_function", "time_step_limit", "time_step_min", "time_step_max"});
}

inline Model read(ConfigFields& config) {
  Model model;
  model.hybrid = config.text({"model_type"}, "granitemoe") == "granitemoehybrid";
  if (model.hybrid) model.prefix = "GraniteMoeHybrid";
  const bool shares = config.text({"model_type"}, "granitemoe") == "granitemoeshared";
  if (shares) model.prefix = "GraniteMoeShared";
  model.sizes = decoder_sizes(config, {.inner_factor = model.hybrid ? 1 : 0});
  model.bias = config.flag("attention_bias", false);
  read_mixture(config, model);
  if (model.hybrid) read_hybrid(config, model);
  if (shares) model.shared_inner = config.count_or("shared_intermediate_size", 0);
  config.ignore({"embedding_multiplier", "residual_multiplier", "attention_multiplier", "logits_scaling",
                 "router_aux_loss_coef", "output_router_logits"});
  return model;
}

/// GraniteMoeParallelExperts: F.linear of each expert's rows with its part of the weight, put together again.
inline Tensor parallel_experts(Forward& f, std::string_view class_name, std::int64_t experts, std::string_view name,
                               Tensor rows, std::int64_t in, std::int64_t out) {
  const InModule inside(f, name, class_name);
  const Tensor weight = f.parameter("weight", {experts, out, in});
  const Tensor parts = f.call("expert_rows", {rows});
  std::vector<Tensor> made;
  for (std::int64_t index = 0; index < experts && !f.failed(); ++index) {
    const Tensor own = f.call("expert_share", {parts}, {{"experts", experts}});
    made.push_back(f.call("matmul", {own, f.permute(f.select(weight, 0, index), {1, 0})}));
  }
  return f.concatenate(made, 0);
}

/// GraniteMoeMoE of transformers 5.17.
inline Tensor fused_mixture(Forward& f, const Model& model, Tensor input) {
  const Mixture& m = model.mixture;
  const std::int64_t width = model.sizes.width;
  const std::string experts = model.named("Experts");
  const Tensor scores = held_scores(f, "router", model.named("TopKRouter"), m, width, input);
  const Tensor gates = f.call("softmax", {f.to(f.slice(scores, 2, 0, m.per_token), "float32")});
  return add_grouped_experts(f, m, {.list_class = experts, .width = width, .activation = model.sizes.activation}, input,
                             f.as_type_of(gates, input));
}

/// GraniteMoeMoE.
inline Tensor mixture(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "block_sparse_moe", model.named("MoE"));
  if (model.fused) return fused_mixture(f, model, input);
  const Mixture& m = model.mixture;
  const std::int64_t width = model.sizes.width;
  Tensor scores = 0;
  {
    const InModule router(f, "router", model.named("TopKGating"));
    scores = f.to(f.linear("layer", input, width, m.experts, {.bias = false}), "float32");
  }
  const Tensor gates = f.as_type_of(f.call("softmax", {f.slice(scores, 2, 0, m.per_token)}), input);
  const auto sorted = [&](Tensor of) {
    return f.call("gather_tokens", {of}, {{"experts", m.experts}, {"per_token", m.per_token}, {"ranks", m.experts}});
  };
  const Tensor weights = sorted(f.slice(gates, 2, 0, 1));
  const auto product = [&](std::string_view name, Tensor rows, std::int64_t in, std::int64_t out) {
    return parallel_experts(f, model.named("ParallelExperts"), m.experts, name, rows, in, out);
  };
  const Tensor wide = product("input_linear", sorted(input), width, 2 * m.inner);
  const std::vector<Tensor> halves = f.split(wide, 1, {m.inner, m.inner});
  const Tensor active = f.multiply(f.activation("activation", halves[0], model.sizes.activation), halves[1]);
  const Tensor made = product("output_linear", active, m.inner, width);
  const Tensor weighted = f.multiply(made, weights);
  const Tensor zeros = f.call("token_zeros", {input});
  const Tensor sum = f.call("scatter_tokens", {zeros, weighted}, {{"copies", true}});
  return f.leave_function(sum, {zeros, weighted, scores, weights});
}

/// GraniteMoeHybridMLP.
inline Tensor shared_layer(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "shared_mlp", model.named("MLP"));
  const std::int64_t inner = model.shared_inner;
  const Tensor wide = f.linear("input_linear", input, model.sizes.width, 2 * inner, {.bias = false});
  const std::vector<Tensor> halves = f.split(wide, 2, {inner, inner});
  const Tensor active = f.multiply(f.activation("activation", halves[0], model.sizes.activation), halves[1]);
  return f.linear("output_linear", active, inner, model.sizes.width, {.bias = false});
}

inline Tensor mixed(Forward& f, const Model& model, Tensor input, const Rotary& rotary, std::int64_t index) {
  const bool attends = !model.hybrid || model.kinds[static_cast<std::size_t>(index)] == LayerKind::attention;
  if (!attends) return mamba2_mixer(f, model.mixer, input);
  const std::string name = model.named("Attention");
  return rotary_attention(
      f, model.sizes, input, rotary,
      {.class_name = name, .input_bias = model.bias, .output_bias = model.bias, .turns = model.turns});
}

inline Tensor fed(Forward& f, const Model& model, Tensor input) {
  if (model.shared_inner == 0) return mixture(f, model, input);
  if (model.mixture.experts == 0) return shared_layer(f, model, input);
  const Tensor routed = mixture(f, model, input);
  return f.add(routed, shared_layer(f, model, input));
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary, std::int64_t index) {
  const std::int64_t width = model.sizes.width;
  const Tensor normed = f.rms_norm("input_layernorm", input, width, model.named("RMSNorm"));
  const Tensor attended = f.add(input, f.scale(mixed(f, model, normed, rotary, index)));
  const Tensor again = f.rms_norm("post_attention_layernorm", attended, width, model.named("RMSNorm"));
  return f.add(attended, f.scale(fed(f, model, again)));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  if (model.mixture.experts > 0) warn_of_routing(f);
  const bool scans = std::ranges::find(model.kinds, LayerKind::recurrent) != model.kinds.end();
  if (scans) doubt_kernels(f, "mamba-ssm and causal-conv1d");
  const DecoderBody body = {.class_name = model.named("Model"), .head = {.scales = true}};
  decoder_model(f, config, s, head, body, [&](Tensor ids, Tensor hidden) {
    hidden = f.scale(hidden);
    const Rotary rotary = model.turns ? rotary_tables(f, ids, s.head_width) : Rotary{};
    hidden = stack(f, "layers", model.named("DecoderLayer"), s.layers, hidden,
                   [&](Tensor x, std::int64_t index) { return block(f, model, x, rotary, index); });
    return f.rms_norm("norm", hidden, s.width, model.named("RMSNorm"));
  });
}

inline constexpr auto kClasses =
    std::to_array<ModelClass>({{"GraniteMoe", "granitemoe", "model", kAlwaysTied},
                               {"GraniteMoeHybrid", "granitemoehybrid", "model", kAlwaysTied}});
/// Published models, by width.
inline constexpr auto kPublished =
    std::to_array<PublishedHeads>({{1024, 16}, {1536, 24}, {768, 12}, {2048, 32}, {2560, 40}, {4096, 32}});

inline constexpr std::string_view kRouter = "layers.0.block_sparse_moe.router.layer";

/// Experts of transformers 5, and the router that chooses them.
inline void read_fused(TreeFields& t, std::string_view type) {
  const std::string mixture = "layers.0.block_sparse_moe.";
  fused_experts(t, {.model_type = type, .router = mixture + "router", .list = mixture + "experts"});
}

/// Experts whose router is a layer that shows their number. Their weights are parameters, which are not printed: they
/// are those that the tree counts, else those of the published model of these sizes, and the reader names the fields
/// that are missing where there is none.
inline void read_routed(TreeFields& t, std::string_view type, std::int64_t experts) {
  const std::string mixture = "layers.0.block_sparse_moe.";
  t.set("num_local_experts", experts);
  const std::int64_t width = t.value("embed_tokens", "embedding_dim").value_or(0);
  const std::int64_t held = t.held(mixture + "input_linear") + t.held(mixture + "output_linear");
  if (const auto counted = counted_experts(width, experts * width, held, false)) {
    t.set("intermediate_size", counted->inner);
    return choose_experts(t, type, *counted, "num_experts_per_tok");
  }
  const PublishedExperts* const row = published_experts(t, type);
  if (row == nullptr || row->experts != experts) return;
  t.set("intermediate_size", row->inner);
  t.set("num_experts_per_tok", row->chosen);
  t.assume("experts " + std::to_string(row->inner) + " wide and " + std::to_string(row->chosen) +
           " of them a token, as published models have");
}

/// What a tree of Granite 4.0 shows.
inline void read_hybrid_tree(TreeFields& t) {
  std::string kinds;
  std::string mamba;
  std::string attention;
  for (std::int64_t at = 0; at < std::min(t.count_of("layers"), ConfigFields::kMostLayers); ++at) {
    const std::string layer = "layers." + std::to_string(at);
    const bool attends = t.has(layer + ".self_attn.q_proj");
    if (attends && attention.empty()) attention = layer + ".self_attn";
    if (!attends && mamba.empty()) mamba = layer + ".mamba";
    kinds += std::string(kinds.empty() ? "" : ", ") + (attends ? R"("attention")" : R"("mamba")");
  }
  t.set_text("layer_types", "[" + kinds + "]");
  if (!mamba.empty()) tree_mamba2(t, mamba, mixer_fields(), 1);
  const std::int64_t experts = t.value(kRouter, "out_features").value_or(0);
  if (experts > 0) read_routed(t, "granitemoehybrid", experts);
  else if (t.has("layers.0.block_sparse_moe.experts")) read_fused(t, "granitemoehybrid");
  else t.set("num_local_experts", 0);
  t.size("shared_intermediate_size", "layers.0.shared_mlp.output_linear", "in_features");
  t.flag("attention_bias", attention + ".q_proj");
  t.set_string("position_embedding_type", mamba.empty() ? "rope" : "nope");
  if (attention.empty()) return t.set("num_attention_heads", 1);
  t.heads({.query = attention + ".q_proj", .key = attention + ".k_proj", .published = kPublished});
}

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  if (t.class_name().starts_with("GraniteMoeHybrid")) return read_hybrid_tree(t);
  t.flag("attention_bias", "layers.0.self_attn.q_proj");
  t.heads({.query = "layers.0.self_attn.q_proj", .key = "layers.0.self_attn.k_proj", .published = kPublished});
  const auto experts = t.value(kRouter, "out_features");
  if (!experts) return read_fused(t, "granitemoe");
  read_routed(t, "granitemoe", *experts);
}

inline constexpr Architecture kArchitecture = {
    .name = "granitemoe",
    .model_types = names<"granitemoe", "granitemoeshared", "granitemoehybrid">,
    .write = write,
    .classes = kClasses,
    .read_tree = read_tree};

}  // namespace granitemoe

// JetMoE: experts feed forward as GraniteMoe's do, and others make the queries and read what attention leaves: each
// token has as many queries a head of keys as it has experts. Source: transformers 4.48,
// models/jetmoe/modeling_jetmoe.py; 5.16, the same.

namespace jetmoe {

struct Model {
  DecoderSizes sizes;
  Mixture mixture;

  /// Of one expert's queries, and of all keys.
  [[nodiscard]] std::int64_t projected() const { return sizes.kv_heads * sizes.head_width; }
};

inline Model read(ConfigFields& config) {
  Model model;
  config.complete(R"({"num_key_value_heads": 16})");
  // Nothing reads num_attention_heads: there are as many as heads of keys, for each expert of a token.
  const std::int64_t heads = config.size({"num_key_value_heads"}) * config.size_or({"num_experts_per_tok"}, 2);
  const std::int64_t channels = config.size_or({"head_dim", "kv_channels"}, 128);
  config.replace("{\"num_attention_heads\": " + std::to_string(heads) + ", \"head_dim\": " + std::to_string(channels) +
                 "}");
  model.sizes = decoder_sizes(config, {.tied = true});
  const DecoderSizes& s = model.sizes;
  model.mixture = {.experts = config.size_or({"num_local_experts"}, 8),
                   .per_token = config.size_or({"num_experts_per_tok"}, 2),
                   .inner = s.inner};
  check_mixture(config, model.mixture, s.layers, "num_local_experts", "num_experts_per_tok");
  if (s.heads > ConfigFields::kLargestSize / 4 / s.head_width) config.fail("makes heads too wide", "kv_channels");
  config.ignore({"aux_loss_coef", "output_router_logits"});
  return model;
}

/// The weights of a token's experts.
inline Tensor gates(Forward& f, const Model& model, Tensor input) {
  const Mixture& m = model.mixture;
  const InModule router(f, "router", "JetMoeTopKGating");
  const Tensor scores = f.to(f.linear("layer", input, model.sizes.width, m.experts, {.bias = false}), "float32");
  return f.as_type_of(f.call("softmax", {f.slice(scores, 2, 0, m.per_token)}), input);
}

/// Rows of tokens in the order of their experts, `per_token` of each.
inline Tensor sorted(Forward& f, const Model& model, Tensor of, std::int64_t per_token) {
  const std::int64_t experts = model.mixture.experts;
  return f.call("gather_tokens", {of}, {{"experts", experts}, {"per_token", per_token}, {"ranks", experts}});
}

inline Tensor product(Forward& f, const Model& model, std::string_view name, Tensor rows, std::int64_t in,
                      std::int64_t out) {
  return granitemoe::parallel_experts(f, "JetMoeParallelExperts", model.mixture.experts, name, rows, in, out);
}

/// The experts' rows times their weights, summed by token, and a bias.
inline Tensor reduced(Forward& f, const Model& model, Tensor made, Tensor weights, Tensor like) {
  const Tensor weighted = f.multiply(made, sorted(f, model, f.slice(weights, 2, 0, 1), model.mixture.per_token));
  const Tensor sum = f.call("scatter_tokens", {f.call("token_zeros", {like}), weighted}, {{"copies", true}});
  return f.add(sum, f.parameter("bias", {model.sizes.width}));
}

/// JetMoeAttention: queries in the order of the tokens, one expert's after the other's; keys are repeated for each.
inline Tensor attention(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const InModule inside(f, "self_attention", "JetMoeAttention");
  const DecoderSizes& s = model.sizes;
  const std::int64_t chosen = model.mixture.per_token;
  Tensor weights = 0;
  Tensor rows = 0;
  {
    const InModule experts(f, "experts", "JetMoeMoA");
    weights = gates(f, model, input);
    rows = product(f, model, "input_linear", sorted(f, model, input, chosen), s.width, model.projected());
  }
  const Tensor packed = f.linear("kv_proj", input, s.width, 2 * model.projected(), {.bias = false});
  const std::vector<Tensor> parts = f.split(packed, 2, {model.projected(), model.projected()});
  const Tensor each = f.call("unsqueeze", {parts[0]}, {{"dim", std::int64_t{2}}});
  const Tensor all = f.call("expand", {each}, {{"shape", Sizes{-1, -1, chosen, -1}}});
  const Tensor queries = f.call("scatter_tokens", {f.call("token_zeros", {all}), rows}, {{"copies", true}});
  const Tensor query = rotate(f, split_heads(f, f.flatten(queries, 2, 3), s.head_width), rotary, s.head_width);
  const Tensor key = rotate(f, split_heads(f, parts[0], s.head_width), rotary, s.head_width);
  Tensor value = split_heads(f, parts[1], s.head_width);
  value = f.cache(key, value);
  const Heads ready = {query, repeat_heads(f, key, chosen), repeat_heads(f, value, chosen)};
  const Tensor attended = attend(f, ready, {.dropout = s.attention_dropout});
  const Tensor by_expert = f.flatten(f.unflatten(attended, 2, {chosen, -1}), 1, 2);
  const InModule experts(f, "experts", "JetMoeMoA");
  const Tensor made = product(f, model, "output_linear", sorted(f, model, by_expert, 1), model.projected(), s.width);
  return reduced(f, model, made, weights, input);
}

inline Tensor mixture(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "mlp", "JetMoeMoE");
  const Mixture& m = model.mixture;
  const std::int64_t width = model.sizes.width;
  const Tensor weights = gates(f, model, input);
  const Tensor wide = product(f, model, "input_linear", sorted(f, model, input, m.per_token), width, 2 * m.inner);
  const std::vector<Tensor> halves = f.split(wide, 1, {m.inner, m.inner});
  const Tensor active = f.multiply(f.activation("activation", halves[0], model.sizes.activation), halves[1]);
  return reduced(f, model, product(f, model, "output_linear", active, m.inner, width), weights, input);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  warn_of_routing(f);
  decoder_model(f, config, s, head, {.class_name = "JetMoeModel"}, [&](Tensor ids, Tensor embedded) {
    const Rotary rotary = rotary_tables(f, ids, s.head_width);
    const auto norm = [&](std::string_view name, Tensor of) { return f.rms_norm(name, of, s.width, "JetMoeRMSNorm"); };
    const auto block = [&](Tensor x, std::int64_t) {
      const Tensor attended = f.add(x, attention(f, model, norm("input_layernorm", x), rotary));
      return f.add(attended, mixture(f, model, norm("post_attention_layernorm", attended)));
    };
    return norm("norm", stack(f, "layers", "JetMoeDecoderLayer", s.layers, embedded, block));
  });
}

inline constexpr Architecture kArchitecture = {.name = "jetmoe", .model_types = names<"jetmoe">, .write = write};

}  // namespace jetmoe

// MiniCPM 1, 2 and 4: Llamas whose embeddings, residuals and logits are times numbers; positions are turned in float32.
// InfLLM's sparse attention of MiniCPM 4 is off unless the config has a sparse_config.
// Source: openbmb/MiniCPM-2B-sft-bf16 and MiniCPM4-8B, modeling_minicpm.py: MiniCPMSdpaAttention, MiniCPMDecoderLayer.

namespace minicpm {

inline Tensor attention(Forward& f, const DecoderSizes& s, Tensor input, const Rotary& rotary) {
  const InModule inside(f, "self_attn", "MiniCPMSdpaAttention");
  const Heads heads = project_heads(f, s, input, {.bias = false});
  const auto turn = [&](Tensor of) { return f.as_type_of(rotate(f, f.to(of, "float32"), rotary, s.head_width), of); };
  const Tensor attended = attend_cached(f, s, {turn(heads.query), turn(heads.key), heads.value});
  return f.linear("o_proj", attended, s.heads * s.head_width, s.width, {.bias = false});
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const DecoderSizes s = decoder_sizes(config, {.tied = true});
  config.ignore({"scale_emb", "scale_depth", "dim_model_base", "mup_denominator"});
  if (config.find("sparse_config") != nullptr) config.fail("is not known", "sparse_config");
  if (config.find("num_experts") != nullptr && config.count_or("num_experts", 0) > 0)
    config.fail("is not known", "num_experts");
  if (!config.status()) return;
  const DecoderBody body = {.class_name = "MiniCPMModel", .head = {.scales = true, .floats = true}};
  decoder_model(f, config, s, head, body, [&](Tensor ids, Tensor hidden) {
    const auto table = [&] {
      return f.call("rotary_table", {ids}, {{"width", s.head_width}, {"dtype", std::string("float32")}});
    };
    const Tensor cosines = table();
    const Rotary rotary = {.cosines = cosines, .sines = table(), .width = s.head_width};
    hidden = stack(f, "layers", "MiniCPMDecoderLayer", s.layers, f.scale(hidden), [&](Tensor x, std::int64_t) {
      const Tensor normed = f.rms_norm("input_layernorm", x, s.width, "MiniCPMRMSNorm");
      const Tensor sum = f.add(x, f.scale(attention(f, s, normed, rotary)));
      const Tensor again = f.rms_norm("post_attention_layernorm", sum, s.width, "MiniCPMRMSNorm");
      return f.add(sum, f.scale(gated_feed_forward(f, s, again, "MiniCPMMLP")));
    });
    return f.rms_norm("norm", hidden, s.width, "MiniCPMRMSNorm");
  });
}

/// Of the published models only the largest does not tie.
inline constexpr auto kClasses = std::to_array<ModelClass>({{"MiniCPM", "minicpm", "model", 2304}});
/// Published models, by width: MiniCPM4-0.5B, MiniCPM-1B, MiniCPM-2B and MiniCPM4-8B.
inline constexpr auto kPublished = std::to_array<PublishedHeads>({{1024, 16}, {1536, 24}, {2304, 36}, {4096, 32}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  t.size("intermediate_size", "layers.0.mlp.gate_proj", "out_features");
  t.labels();
  t.heads({.query = "layers.0.self_attn.q_proj", .key = "layers.0.self_attn.k_proj", .published = kPublished});
}

inline constexpr Architecture kArchitecture = {
    .name = "minicpm", .model_types = names<"minicpm">, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace minicpm

}  // namespace gpumem::architectures
