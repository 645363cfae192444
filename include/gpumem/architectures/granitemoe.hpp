// GraniteMoe (Granite 3.0 and PowerMoE): Granite's decoder, whose experts hold their weights in one tensor. The tokens
// are copied in the order of their experts; each expert multiplies its own rows of them.
// Source: transformers 4.48, models/granitemoe/modeling_granitemoe.py; arXiv:2408.13359.
#pragma once

#include <array>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/mixture.hpp"

namespace gpumem::architectures {

namespace granitemoe_detail {

inline constexpr std::array<std::string_view, 1> kModelTypes = {"granitemoe"};

struct Model {
  DecoderSizes sizes;
  Mixture mixture;
  bool bias = false;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config);
  model.mixture = {.experts = config.size({"num_local_experts"}),
                   .per_token = config.size({"num_experts_per_tok"}),
                   .inner = model.sizes.inner};
  model.bias = config.flag("attention_bias", false);
  check_mixture(config, model.mixture, model.sizes.layers, "num_local_experts", "num_experts_per_tok");
  config.ignore({"embedding_multiplier", "residual_multiplier", "attention_multiplier", "logits_scaling",
                 "router_aux_loss_coef", "output_router_logits"});
  return model;
}

/// GraniteMoeParallelExperts: F.linear of each expert's rows with its part of the weight, put together again.
inline Tensor parallel_experts(Forward& f, const Model& model, std::string_view name, Tensor rows, std::int64_t in,
                               std::int64_t out) {
  const InModule inside(f, name, "GraniteMoeParallelExperts");
  const std::int64_t experts = model.mixture.experts;
  const Tensor weight = f.parameter("weight", {experts, out, in});
  const Tensor parts = f.call("expert_rows", {rows});
  std::vector<Tensor> made;
  for (std::int64_t index = 0; index < experts && !f.failed(); ++index) {
    const Tensor own = f.call("expert_share", {parts}, {{"experts", experts}});
    made.push_back(f.call("matmul", {own, f.permute(f.select(weight, 0, index), {1, 0})}));
  }
  return f.concatenate(made, 0);
}

/// GraniteMoeMoE.
inline Tensor mixture(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "block_sparse_moe", "GraniteMoeMoE");
  const Mixture& m = model.mixture;
  const std::int64_t width = model.sizes.width;
  Tensor scores = 0;
  {
    const InModule router(f, "router", "GraniteMoeTopKGating");
    scores = f.to(f.linear("layer", input, width, m.experts, {.bias = false}), "float32");
  }
  const Tensor gates = f.as_type_of(f.call("softmax", {f.slice(scores, 2, 0, m.per_token)}), input);
  const auto sorted = [&](Tensor of) {
    return f.call("gather_tokens", {of}, {{"experts", m.experts}, {"per_token", m.per_token}, {"ranks", m.experts}});
  };
  const Tensor weights = sorted(f.slice(gates, 2, 0, 1));
  const Tensor wide = parallel_experts(f, model, "input_linear", sorted(input), width, 2 * m.inner);
  const std::vector<Tensor> halves = f.split(wide, 1, {m.inner, m.inner});
  const Tensor active = f.multiply(f.activation("activation", halves[0], model.sizes.activation), halves[1]);
  const Tensor made = parallel_experts(f, model, "output_linear", active, m.inner, width);
  const Tensor weighted = f.multiply(made, weights);
  const Tensor zeros = f.call("token_zeros", {input});
  const Tensor sum = f.call("scatter_tokens", {zeros, weighted}, {{"copies", true}});
  return f.leave_function(sum, {zeros, weighted, scores, weights});
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const std::int64_t width = model.sizes.width;
  const RotaryAttention options = {
      .class_name = "GraniteMoeAttention", .input_bias = model.bias, .output_bias = model.bias};
  const Tensor normed = f.rms_norm("input_layernorm", input, width, "GraniteMoeRMSNorm");
  const Tensor attended = f.add(input, f.scale(rotary_attention(f, model.sizes, normed, rotary, options)));
  const Tensor again = f.rms_norm("post_attention_layernorm", attended, width, "GraniteMoeRMSNorm");
  return f.add(attended, f.scale(mixture(f, model, again)));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  warn_of_routing(f);
  Tensor hidden = 0;
  {
    const InModule inside(f, "model", "GraniteMoeModel");
    const Tensor ids = token_ids(f);
    hidden = f.scale(f.embedding("embed_tokens", ids, s.vocabulary, s.width));
    const Rotary rotary = rotary_tables(f, ids, s.head_width);
    hidden = stack(f, "layers", "GraniteMoeDecoderLayer", s.layers, hidden,
                   [&](Tensor x, std::int64_t) { return block(f, model, x, rotary); });
    hidden = f.rms_norm("norm", hidden, s.width, "GraniteMoeRMSNorm");
  }
  decoder_head(f, config, s, head, hidden, {.scales = true});
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"GraniteMoe", "granitemoe", "model", kAlwaysTied}});
/// Published models, by width.
inline constexpr auto kPublished = std::to_array<PublishedHeads>({{1024, 16}, {1536, 24}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  t.flag("attention_bias", "layers.0.self_attn.q_proj");
  t.size("num_local_experts", "layers.0.block_sparse_moe.router.layer", "out_features");
  t.heads({.query = "layers.0.self_attn.q_proj", .key = "layers.0.self_attn.k_proj", .published = kPublished});
  // The experts' weights are one parameter, which is not printed.
  t.set("intermediate_size", 512);
  t.set("num_experts_per_tok", 8);
  t.assume("experts 512 wide and 8 of them a token, as published models have");
}

}  // namespace granitemoe_detail

[[nodiscard]] inline const Architecture& granitemoe() {
  static constexpr Architecture kArchitecture = {.name = "granitemoe",
                                                 .model_types = granitemoe_detail::kModelTypes,
                                                 .write = granitemoe_detail::write,
                                                 .classes = granitemoe_detail::kClasses,
                                                 .read_tree = granitemoe_detail::read_tree};
  return kArchitecture;
}

}  // namespace gpumem::architectures
