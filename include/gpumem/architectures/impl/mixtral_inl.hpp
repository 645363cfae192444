#pragma once

#include "gpumem/architectures/mixtral.hpp"

#include <array>

#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

namespace mixtral_detail {

inline constexpr std::array<std::string_view, 3> kModelTypes = {"mixtral", "qwen2_moe", "qwen3_moe"};

struct Model {
  DecoderSizes sizes;
  std::string_view prefix = "Mixtral";
  std::int64_t experts = 1;
  std::int64_t per_token = 1;
  std::int64_t expert_inner = 1;
  std::int64_t shared_inner = 0;  ///< of the expert that all tokens go to; 0: there is none
  std::int64_t every = 1;         ///< so manieth layers have experts
  bool biased_queries = false;
  bool normed_heads = false;
  bool bias = false;

  [[nodiscard]] std::string named(std::string_view part) const { return std::string(prefix).append(part); }
};

GPUMEM_INLINE Model read(ConfigFields& config) {
  Model model;
  const std::string_view type = config.text({"model_type"}, "mixtral");
  model.prefix = type == "mixtral" ? "Mixtral" : type == "qwen2_moe" ? "Qwen2Moe" : "Qwen3Moe";
  model.sizes = decoder_sizes(config);
  model.experts = config.size({"num_local_experts", "num_experts"});
  model.per_token = config.size({"num_experts_per_tok"});
  model.expert_inner = type == "mixtral" ? model.sizes.inner : config.size({"moe_intermediate_size"});
  model.biased_queries = type == "qwen2_moe" && config.flag("qkv_bias", true);
  model.normed_heads = type == "qwen3_moe";
  if (type == "qwen2_moe") model.shared_inner = config.size({"shared_expert_intermediate_size"});
  model.every = config.size_or({"decoder_sparse_step"}, 1);
  model.bias = config.flag("attention_bias", false);
  constexpr std::int64_t kMostExperts = 4096;
  if (model.experts > kMostExperts) config.fail("no model has so many experts", "num_experts");
  if (model.per_token > model.experts) config.fail("is more than there are experts", "num_experts_per_tok");
  const core::JsonValue* plain = config.find("mlp_only_layers");
  if (plain != nullptr && plain->size() > 0) config.fail("layers without experts are not known", "mlp_only_layers");
  config.ignore({"router_aux_loss_coef", "router_jitter_noise", "output_router_logits", "norm_topk_prob"});
  return model;
}

/// w2(act(w1(x)) * w3(x)), under the names that the model has for them.
GPUMEM_INLINE Tensor expert(Forward& f, const Model& model, Tensor input) {
  const bool mixtral = model.prefix == "Mixtral";
  const std::int64_t width = model.sizes.width;
  const std::int64_t inner = model.expert_inner;
  const Tensor gate = f.linear(mixtral ? "w1" : "gate_proj", input, width, inner, {.bias = false});
  const Tensor open = f.activation("act_fn", gate, model.sizes.activation);
  const Tensor up = f.linear(mixtral ? "w3" : "up_proj", input, width, inner, {.bias = false});
  return f.linear(mixtral ? "w2" : "down_proj", f.multiply(open, up), inner, width, {.bias = false});
}

GPUMEM_INLINE Tensor shared_expert(Forward& f, const Model& model, Tensor input) {
  DecoderSizes sizes = model.sizes;
  sizes.inner = model.shared_inner;
  const Tensor made = gated_feed_forward(f, sizes, input, "Qwen2MoeMLP");
  const Tensor gate = f.linear("shared_expert_gate", input, sizes.width, 1, {.bias = false});
  return f.multiply(f.call("sigmoid", {gate}), made);
}

GPUMEM_INLINE Tensor mixture(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, model.prefix == "Mixtral" ? "block_sparse_moe" : "mlp", model.named("SparseMoeBlock"));
  const Tensor scores = f.linear("gate", input, model.sizes.width, model.experts, {.bias = false});
  const Tensor weights = f.call("softmax", {f.to(scores, "float32")});
  const Tensor chosen = f.as_type_of(f.slice(weights, 2, 0, model.per_token), input);
  Tensor sum = f.call("token_zeros", {input});
  const InModule list(f, "experts", "ModuleList");
  const auto share = [&](Tensor of) {
    return f.call("gather_tokens", {of}, {{"experts", model.experts}, {"per_token", model.per_token}});
  };
  for (std::int64_t index = 0; index < model.experts && !f.failed(); ++index) {
    const InModule one(f, std::to_string(index), model.named("Expert"));
    const Tensor made = expert(f, model, share(input));
    const Tensor weight = share(f.slice(chosen, 2, 0, 1));
    sum = f.call("scatter_tokens", {sum, f.multiply(made, weight)});
  }
  if (model.shared_inner > 0) sum = f.add(sum, shared_expert(f, model, input));
  return sum;
}

GPUMEM_INLINE Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary, std::int64_t index) {
  const std::int64_t width = model.sizes.width;
  const std::string attention = model.named("Attention");
  const std::string norm = model.named("RMSNorm");
  const RotaryAttention options = {.class_name = attention,
                                   .input_bias = model.bias || model.biased_queries,
                                   .output_bias = model.bias,
                                   .head_norm = model.normed_heads ? std::string_view(norm) : std::string_view()};
  const Tensor normed = f.rms_norm("input_layernorm", input, width, norm);
  const Tensor attended = f.add(input, rotary_attention(f, model.sizes, normed, rotary, options));
  const Tensor again = f.rms_norm("post_attention_layernorm", attended, width, norm);
  const bool mixes = (index + 1) % model.every == 0;
  return f.add(attended,
               mixes ? mixture(f, model, again) : gated_feed_forward(f, model.sizes, again, model.named("MLP")));
}

GPUMEM_INLINE void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  f.warn("tokens are taken to be spread evenly over the experts: what one gets depends on the data");
  Tensor hidden = 0;
  {
    const InModule inside(f, "model", model.named("Model"));
    const Tensor ids = token_ids(f);
    hidden = f.embedding("embed_tokens", ids, s.vocabulary, s.width);
    const Rotary rotary = rotary_tables(f, ids, s.head_width);
    hidden = stack(f, "layers", model.named("DecoderLayer"), s.layers, hidden,
                   [&](Tensor x, std::int64_t index) { return block(f, model, x, rotary, index); });
    hidden = f.rms_norm("norm", hidden, s.width, model.named("RMSNorm"));
  }
  decoder_head(f, config, s, head, hidden);
}

}  // namespace mixtral_detail

GPUMEM_INLINE const Architecture& mixtral() {
  static constexpr Architecture kArchitecture = {
      .name = "mixtral", .model_types = mixtral_detail::kModelTypes, .write = mixtral_detail::write};
  return kArchitecture;
}

}  // namespace gpumem::architectures
