// gpt-oss: attention with a learned sink for each head, which PyTorch's kernel does not have, so that it is written
// out; experts that are one tensor each, with biases and a gate that is clamped. A checkpoint in MXFP4 is dequantised
// to be trained.
// Source: transformers 4.56, models/gpt_oss/modeling_gpt_oss.py (eager_attention_forward, GptOssExperts); 5.0,
// integrations/moe.py.
#pragma once

#include <array>
#include <string>
#include <utility>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/mixture.hpp"

namespace gpumem::architectures {

namespace gpt_oss {

struct Model {
  DecoderSizes sizes;
  Mixture mixture;
  bool bias = true;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config);
  model.mixture = {.experts = config.size({"num_local_experts", "num_experts"}),
                   .per_token = config.size({"num_experts_per_tok", "experts_per_token"}),
                   .inner = model.sizes.inner};
  model.bias = config.flag("attention_bias", true);
  check_mixture(config, model.mixture, model.sizes.layers, "num_local_experts", "num_experts_per_tok");
  if (model.mixture.inner > ConfigFields::kLargestSize / 2) config.fail("is too wide", "intermediate_size");
  config.ignore({"router_aux_loss_coef", "output_router_logits", "swiglu_limit", "initial_context_length"});
  return model;
}

/// first cos - second sin, second cos + first sin: tables as wide as half a head.
inline Tensor turned(Forward& f, Tensor heads, const Rotary& rotary) {
  const Tensor first = f.slice(heads, 3, 0, rotary.width);
  const Tensor second = f.slice(heads, 3, rotary.width, Forward::kRest);
  const Tensor one = f.call("sub", {f.multiply(first, rotary.cosines), f.multiply(second, rotary.sines)});
  const Tensor other = f.add(f.multiply(second, rotary.cosines), f.multiply(first, rotary.sines));
  return f.concatenate({one, other}, 3);
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, const Rotary& rotary, Tensor mask) {
  const InModule inside(f, "self_attn", "GptOssAttention");
  const DecoderSizes& s = model.sizes;
  const auto heads = [&](std::string_view name, std::int64_t count) {
    const Linear linear = {.bias = model.bias, .split = Split::columns};
    return split_heads(f, f.linear(name, input, s.width, count * s.head_width, linear), s.head_width);
  };
  const Tensor query = heads("q_proj", s.heads);
  const Tensor key = heads("k_proj", s.kv_heads);
  const Tensor value = heads("v_proj", s.kv_heads);
  const Heads ready = {turned(f, query, rotary), turned(f, key, rotary), value};
  f.cache(ready.key);
  f.cache(ready.value);
  const Tensor sinks = f.parameter("sinks", {s.heads});
  const Tensor attended =
      sink_attention(f, ready, sinks, mask, {.groups = s.heads / s.kv_heads, .dropout = s.attention_dropout});
  return f.linear("o_proj", attended, s.heads * s.head_width, s.width, {.bias = model.bias, .split = Split::rows});
}

/// (up + 1) gate sigmoid(1.702 gate), of clamped elements that take turns in what the product made.
inline Tensor gated(Forward& f, Tensor wide) {
  const auto every_second = [&](std::int64_t start) {
    return f.call("slice", {wide}, {{"dim", std::int64_t{1}}, {"start", start}, {"step", std::int64_t{2}}});
  };
  const Tensor gate = every_second(0);
  return clamped_gate(f, gate, every_second(1));
}

inline Tensor mixture(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "mlp", "GptOssMLP");
  const Mixture& m = model.mixture;
  const std::int64_t width = model.sizes.width;
  Tensor weights = 0;
  {
    const InModule router(f, "router", "GptOssTopKRouter");
    const Tensor matrix = f.parameter("weight", {m.experts, width});
    const Tensor bias = f.parameter("bias", {m.experts});
    const Tensor scores = f.call("linear_function", {input, matrix, bias});
    weights = f.call("softmax", {f.slice(scores, 2, 0, m.per_token)});
  }
  const GroupedExperts all = {.list_class = "GptOssExperts", .width = width, .transposed = false, .bias = true};
  return add_grouped_experts(f, m, all, input, weights, [&](Tensor wide) { return gated(f, wide); });
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary, Tensor mask) {
  const auto norm = [&](std::string_view name, Tensor tensor) {
    return f.rms_norm(name, tensor, model.sizes.width, "GptOssRMSNorm");
  };
  const Tensor mixed = attention(f, model, norm("input_layernorm", input), rotary, mask);
  const Tensor attended = f.add(input, mixed);
  return f.add(attended, mixture(f, model, norm("post_attention_layernorm", attended)));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  if (s.head_width % 2 != 0) f.fail("heads of an odd width cannot be turned");
  warn_of_routing(f);
  decoder_model(f, config, s, head, {.class_name = "GptOssModel"}, [&](Tensor ids, Tensor hidden) {
    const Rotary rotary = rotary_tables(f, ids, s.head_width / 2);
    // One mask of all tokens and one of the near ones, for every second layer.
    const Tensor all = f.call("causal_mask", {ids}, {{"padded", true}});
    const Tensor near = f.call("causal_mask", {ids}, {{"padded", true}});
    hidden = stack(f, "layers", "GptOssDecoderLayer", s.layers, hidden, [&](Tensor x, std::int64_t index) {
      return block(f, model, x, rotary, index % 2 == 0 ? near : all);
    });
    return f.rms_norm("norm", hidden, s.width, "GptOssRMSNorm");
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"GptOss", "gpt_oss", "model"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  t.flag("attention_bias", "layers.0.self_attn.q_proj");
  t.heads({.query = "layers.0.self_attn.q_proj", .key = "layers.0.self_attn.k_proj", .usual_width = 64});
  fused_experts(
      t, {.model_type = "gpt_oss", .router = "layers.0.mlp.router", .list = "layers.0.mlp.experts", .biases = true});
}

inline constexpr Architecture kArchitecture = {
    .name = "gpt_oss", .model_types = names<"gpt_oss">, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace gpt_oss

}  // namespace gpumem::architectures
