// Apertus: Llama's attention with normed heads, and a feed-forward layer without a gate whose activation (xIELU) learns
// two numbers.
// Source: transformers 4.57, models/apertus/modeling_apertus.py; activations.py: XIELUActivation._xielu_python, which
// runs where the package xielu is not installed.
#pragma once

#include <array>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

namespace apertus {

struct Model {
  DecoderSizes sizes;
  bool bias = false;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config, {.activation = "xielu"});
  model.bias = config.flag("attention_bias", false);
  config.ignore({"qk_norm", "post_norm", "mlp_bias"});
  return model;
}

/// where(x > 0, a x x + b x, (expm1(min(x, e)) - x) c + b x): a and c are learned.
inline Tensor xielu(Forward& f, Tensor x) {
  const InModule inside(f, "act_fn", "XIELUActivation");
  const Tensor above = f.call("softplus", {f.parameter("alpha_p", {1})});
  const Tensor below = f.call("add", {f.call("softplus", {f.parameter("alpha_n", {1})})});
  const Tensor square = f.multiply(f.multiply(x, above), x);
  const Tensor positive = f.add(square, f.scale(x));
  const Tensor bent = f.call("sub", {f.call("exp", {f.call("clamp", {x})}), x});
  const Tensor negative = f.add(f.multiply(bent, below), f.scale(x));
  return f.call("where", {positive, negative});
}

inline Tensor fed(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "mlp", "ApertusMLP");
  const DecoderSizes& s = model.sizes;
  const Tensor wide = f.linear("up_proj", input, s.width, s.inner, {.bias = false, .split = Split::columns});
  const Tensor open = s.activation == "xielu" ? xielu(f, wide) : f.activation("act_fn", wide, s.activation);
  return f.linear("down_proj", open, s.inner, s.width, {.bias = false, .split = Split::rows});
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const std::int64_t width = model.sizes.width;
  const RotaryAttention options = {.class_name = "ApertusAttention",
                                   .input_bias = model.bias,
                                   .output_bias = model.bias,
                                   .head_norm = "ApertusRMSNorm"};
  const Tensor normed = f.rms_norm("attention_layernorm", input, width, "ApertusRMSNorm");
  const Tensor attended = f.add(input, rotary_attention(f, model.sizes, normed, rotary, options));
  const Tensor again = f.rms_norm("feedforward_layernorm", attended, width, "ApertusRMSNorm");
  return f.add(attended, fed(f, model, again));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  decoder_model(f, config, s, head, {.class_name = "ApertusModel"}, [&](Tensor ids, Tensor hidden) {
    const Rotary rotary = rotary_tables(f, ids, s.head_width);
    hidden = stack(f, "layers", "ApertusDecoderLayer", s.layers, hidden,
                   [&](Tensor x, std::int64_t) { return block(f, model, x, rotary); });
    return f.rms_norm("norm", hidden, s.width, "ApertusRMSNorm");
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Apertus", "apertus", "model"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  t.labels();
  const std::string attention = "layers.0.self_attn.";
  t.size("intermediate_size", "layers.0.mlp.up_proj", "out_features");
  t.flag("attention_bias", attention + "q_proj");
  t.heads({.query = "layers.0.self_attn.q_proj",
           .key = "layers.0.self_attn.k_proj",
           .norm = "layers.0.self_attn.q_norm",
           .usual_width = 128});
}

inline constexpr Architecture kArchitecture = {
    .name = "apertus", .model_types = names<"apertus">, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace apertus

}  // namespace gpumem::architectures
