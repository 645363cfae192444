#pragma once

#include "gpumem/architectures/deepseek.hpp"

#include <array>

#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/mixture.hpp"

namespace gpumem::architectures {

namespace deepseek_detail {

inline constexpr std::array<std::string_view, 2> kModelTypes = {"deepseek_v2", "deepseek_v3"};

struct Model {
  DecoderSizes sizes;
  std::string_view prefix = "DeepseekV3";
  std::int64_t query_rank = 0;    ///< of the queries' compression; 0: they are not compressed
  std::int64_t kv_rank = 1;       ///< of keys and values
  std::int64_t plain_width = 1;   ///< of a head's queries and keys without positions
  std::int64_t rotary_width = 2;  ///< and with
  std::int64_t value_width = 1;
  bool bias = false;
  Mixture mixture;
  std::int64_t shared = 0;  ///< experts that all tokens go to
  std::int64_t dense = 0;   ///< so many first layers have no experts
  std::int64_t every = 1;   ///< behind them, so manieth layers have experts
  bool corrects = false;    ///< V3: a bias of the scores that choose the experts

  [[nodiscard]] std::int64_t key_width() const { return plain_width + rotary_width; }
  [[nodiscard]] std::string named(std::string_view part) const { return std::string(prefix).append(part); }
};

/// A count that may be 0 or null, as first_k_dense_replace is.
GPUMEM_INLINE std::int64_t count_or(ConfigFields& config, std::string_view name, std::int64_t otherwise) {
  const core::JsonValue* value = config.find(name);
  if (value != nullptr && value->is(0)) return 0;
  return config.size_or({name}, otherwise);
}

GPUMEM_INLINE Model read(ConfigFields& config) {
  Model model;
  const bool third = config.text({"model_type"}, "deepseek_v3") == "deepseek_v3";
  model.prefix = third ? "DeepseekV3" : "DeepseekV2";
  model.sizes = decoder_sizes(config);
  model.query_rank = config.size_or({"q_lora_rank"}, 0);
  model.kv_rank = config.size({"kv_lora_rank"});
  model.plain_width = config.size({"qk_nope_head_dim"});
  model.rotary_width = config.size({"qk_rope_head_dim"});
  model.value_width = config.size({"v_head_dim"});
  model.bias = config.flag("attention_bias", false);
  const std::int64_t most = ConfigFields::kLargestSize / std::max<std::int64_t>(model.sizes.heads, 1);
  if (model.key_width() > most || model.value_width > most || model.plain_width + model.value_width > most) {
    config.fail("makes heads too wide", "qk_nope_head_dim");
  }
  if (model.rotary_width % 2 != 0)
    config.fail("leaves rotary positions no even number of elements of a head", "qk_rope_head_dim");
  model.dense = model.sizes.layers;
  model.corrects = third && config.text({"topk_method"}, "noaux_tc") == "noaux_tc";
  if (config.has("n_routed_experts")) {
    model.mixture = {.experts = config.size({"n_routed_experts"}),
                     .per_token = config.size({"num_experts_per_tok"}),
                     .inner = config.size({"moe_intermediate_size"}),
                     .expert_class = model.named("MLP")};
    check_mixture(config, model.mixture, "n_routed_experts", "num_experts_per_tok");
    model.shared = count_or(config, "n_shared_experts", 0);
    model.dense = count_or(config, "first_k_dense_replace", 0);
    model.every = config.size_or({"moe_layer_freq"}, 1);
    if (model.shared * model.mixture.inner > ConfigFields::kLargestSize)
      config.fail("makes the shared experts too wide", "n_shared_experts");
  }
  config.ignore({"aux_loss_alpha", "ep_size", "n_group", "norm_topk_prob", "num_nextn_predict_layers",
                 "routed_scaling_factor", "scoring_func", "seq_aux", "topk_group", "rope_interleave", "topk_method"});
  return model;
}

/// The elements of each head in the order of their pairs, copied, and turned.
GPUMEM_INLINE Tensor turned(Forward& f, Tensor heads, const Rotary& rotary) {
  const Tensor pairs = f.permute(f.unflatten(heads, 3, {-1, 2}), {0, 1, 2, 4, 3});
  return rotate(f, f.flatten(pairs, 3, 4), rotary, rotary.width);
}

GPUMEM_INLINE Tensor queries(Forward& f, const Model& model, Tensor input) {
  const DecoderSizes& s = model.sizes;
  const std::int64_t width = s.heads * model.key_width();
  if (model.query_rank == 0)
    return split_heads(f, f.linear("q_proj", input, s.width, width, {.bias = false}), model.key_width());
  const Tensor narrow = f.linear("q_a_proj", input, s.width, model.query_rank, {.bias = model.bias});
  const Tensor normed = f.rms_norm("q_a_layernorm", narrow, model.query_rank, model.named("RMSNorm"));
  return split_heads(f, f.linear("q_b_proj", normed, model.query_rank, width, {.bias = false}), model.key_width());
}

GPUMEM_INLINE Tensor attention(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const InModule inside(f, "self_attn", model.named("Attention"));
  const DecoderSizes& s = model.sizes;
  const std::vector<Tensor> query = f.split(queries(f, model, input), 3, {model.plain_width, model.rotary_width});
  const Tensor narrow =
      f.linear("kv_a_proj_with_mqa", input, s.width, model.kv_rank + model.rotary_width, {.bias = model.bias});
  const std::vector<Tensor> compressed = f.split(narrow, 2, {model.kv_rank, model.rotary_width});
  const Tensor normed = f.rms_norm("kv_a_layernorm", compressed[0], model.kv_rank, model.named("RMSNorm"));
  const std::int64_t each = model.plain_width + model.value_width;
  const Tensor wide = f.linear("kv_b_proj", normed, model.kv_rank, s.heads * each, {.bias = false});
  const std::vector<Tensor> made = f.split(split_heads(f, wide, each), 3, {model.plain_width, model.value_width});
  // One key with positions stands for all heads.
  const Tensor one = f.call("unsqueeze", {compressed[1]}, {{"dim", std::int64_t{1}}});
  const Tensor turned_query = turned(f, query[1], rotary);
  const Tensor turned_key = turned(f, one, rotary);
  const Tensor every = f.call("expand", {turned_key}, {{"shape", Sizes{-1, s.heads, -1, -1}}});
  const Heads heads = {f.concatenate({query[0], turned_query}, 3), f.concatenate({made[0], every}, 3), made[1]};
  f.cache(heads.key);
  f.cache(heads.value);
  const Tensor attended = attend(f, heads, {.dropout = s.attention_dropout});
  return f.linear("o_proj", attended, s.heads * model.value_width, s.width, {.bias = model.bias});
}

/// Scores and weights of the experts are float32, and so is the sum.
GPUMEM_INLINE Tensor mixture(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "mlp", model.named("MoE"));
  const std::int64_t width = model.sizes.width;
  const Mixture& m = model.mixture;
  const Tensor wide = f.to(input, "float32");
  Tensor weights = 0;
  {
    const InModule gate(f, "gate", model.named("TopkRouter"));
    const Tensor matrix = f.to(f.parameter("weight", {m.experts, width}), "float32");
    const Tensor scores = f.call("sigmoid", {f.call("linear_function", {wide, matrix})});
    if (model.corrects) (void)f.parameter("e_score_correction_bias", {m.experts});
    weights = f.scale(f.slice(scores, 2, 0, m.per_token));
  }
  const auto expert = [&](Tensor rows) { return gated_layer(f, width, m.inner, model.sizes.activation, rows); };
  const Tensor sum = f.as_type_of(add_experts(f, m, input, weights, f.call("token_zeros", {wide}), expert), input);
  if (model.shared == 0) return sum;
  const InModule shared(f, "shared_experts", model.named("MLP"));
  return f.add(sum, gated_layer(f, width, model.shared * m.inner, model.sizes.activation, input));
}

GPUMEM_INLINE Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary, std::int64_t index) {
  const std::int64_t width = model.sizes.width;
  const std::string norm = model.named("RMSNorm");
  const Tensor normed = f.rms_norm("input_layernorm", input, width, norm);
  const Tensor attended = f.add(input, attention(f, model, normed, rotary));
  const Tensor again = f.rms_norm("post_attention_layernorm", attended, width, norm);
  const bool mixes = index >= model.dense && index % model.every == 0;
  return f.add(attended,
               mixes ? mixture(f, model, again) : gated_feed_forward(f, model.sizes, again, model.named("MLP")));
}

GPUMEM_INLINE void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DecoderSizes& s = model.sizes;
  if (model.dense < s.layers) warn_of_routing(f);
  Tensor hidden = 0;
  {
    const InModule inside(f, "model", model.named("Model"));
    const Tensor ids = token_ids(f);
    hidden = f.embedding("embed_tokens", ids, s.vocabulary, s.width);
    const Rotary rotary = rotary_tables(f, ids, model.rotary_width);
    hidden = stack(f, "layers", model.named("DecoderLayer"), s.layers, hidden,
                   [&](Tensor x, std::int64_t index) { return block(f, model, x, rotary, index); });
    hidden = f.rms_norm("norm", hidden, s.width, model.named("RMSNorm"));
  }
  decoder_head(f, config, s, head, hidden);
}

}  // namespace deepseek_detail

GPUMEM_INLINE const Architecture& deepseek() {
  static constexpr Architecture kArchitecture = {
      .name = "deepseek", .model_types = deepseek_detail::kModelTypes, .write = deepseek_detail::write};
  return kArchitecture;
}

}  // namespace gpumem::architectures
