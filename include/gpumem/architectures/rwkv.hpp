// RWKV-4: blocks of time mixing, whose kernel keeps keys, values and its output, and of channel mixing; both read each
// token mixed with the one before.
// Source: transformers 4.57, models/rwkv/modeling_rwkv.py: RwkvLinearAttention; arXiv:2305.13048.
#pragma once

#include <array>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/mamba_mixers.hpp"

namespace gpumem::architectures {

namespace rwkv_detail {

inline constexpr std::array<std::string_view, 1> kModelTypes = {"rwkv"};

struct Model {
  DecoderSizes sizes;
  std::int64_t mixed = 1;  ///< width of time mixing
};

inline Model read(ConfigFields& config) {
  Model model;
  DecoderSizes& s = model.sizes;
  s.vocabulary = config.size({"vocab_size"});
  s.width = config.size({"hidden_size"});
  s.layers = config.layers({"num_hidden_layers"});
  s.tied = config.flag("tie_word_embeddings", false);
  s.inner = config.size_or({"intermediate_size"}, std::min(4 * s.width, ConfigFields::kLargestSize));
  model.mixed = config.size_or({"attention_hidden_size"}, s.width);
  config.ignore({"context_length", "rescale_every"});
  return model;
}

/// hidden * mix + shifted * (1 - mix).
inline Tensor mix(Forward& f, std::string_view name, Tensor input, Tensor shifted, std::int64_t width) {
  const Tensor share = f.parameter(name, {1, 1, width});
  const Tensor own = f.multiply(input, share);
  return f.add(own, f.multiply(shifted, f.call("sub", {share})));
}

inline Tensor time_mixing(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "attention", "RwkvSelfAttention");
  const std::int64_t width = model.sizes.width;
  const Tensor decay = f.parameter("time_decay", {model.mixed});
  const Tensor first = f.parameter("time_first", {model.mixed});
  const Tensor shifted = f.call("clone", {input});
  const Tensor key = mix(f, "time_mix_key", input, shifted, width);
  const Tensor value = mix(f, "time_mix_value", input, shifted, width);
  const Tensor gate = mix(f, "time_mix_receptance", input, shifted, width);
  const auto project = [&](std::string_view name, Tensor from) {
    return f.linear(name, from, width, model.mixed, {.bias = false});
  };
  const Tensor keys = project("key", key);
  const Tensor values = project("value", value);
  const Tensor open = f.call("sigmoid", {project("receptance", gate)});
  const Tensor scanned = f.call("linear_scan", {keys, values, decay, first}, {{"kept", std::int64_t{4}}});
  return f.linear("output", f.multiply(open, scanned), model.mixed, width, {.bias = false});
}

inline Tensor channel_mixing(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "feed_forward", "RwkvFeedForward");
  const DecoderSizes& s = model.sizes;
  const Tensor shifted = f.call("clone", {input});
  const Tensor key = mix(f, "time_mix_key", input, shifted, s.width);
  const Tensor gate = mix(f, "time_mix_receptance", input, shifted, s.width);
  const Tensor wide = f.call("square", {f.call("relu", {f.linear("key", key, s.width, s.inner, {.bias = false})})});
  const Tensor value = f.linear("value", wide, s.inner, s.width, {.bias = false});
  const Tensor open = f.call("sigmoid", {f.linear("receptance", gate, s.width, s.width, {.bias = false})});
  return f.multiply(open, value);
}

inline Tensor block(Forward& f, const Model& model, Tensor input, std::int64_t index) {
  const std::int64_t width = model.sizes.width;
  if (index == 0) input = f.layer_norm("pre_ln", input, width);
  const Tensor mixed = f.add(input, time_mixing(f, model, f.layer_norm("ln1", input, width)));
  return f.add(mixed, channel_mixing(f, model, f.layer_norm("ln2", mixed, width)));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  doubt_kernels(f, "RWKV that transformers compiles with ninja");
  Tensor hidden = 0;
  {
    const InModule inside(f, "rwkv", "RwkvModel");
    const Tensor ids = token_ids(f);
    hidden = f.embedding("embeddings", ids, s.vocabulary, s.width);
    hidden = stack(f, "blocks", "RwkvBlock", s.layers, hidden,
                   [&](Tensor x, std::int64_t index) { return block(f, model, x, index); });
    hidden = f.layer_norm("ln_out", hidden, s.width);
  }
  decoder_head(f, config, s, head, hidden, {.name = "head"});
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Rwkv", "rwkv", "rwkv"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embeddings", "blocks");
  t.size("attention_hidden_size", "blocks.0.attention.key", "out_features");
  t.size("intermediate_size", "blocks.0.feed_forward.key", "out_features");
}

}  // namespace rwkv_detail

[[nodiscard]] inline const Architecture& rwkv() {
  static constexpr Architecture kArchitecture = {.name = "rwkv",
                                                 .model_types = rwkv_detail::kModelTypes,
                                                 .write = rwkv_detail::write,
                                                 .classes = rwkv_detail::kClasses,
                                                 .read_tree = rwkv_detail::read_tree};
  return kArchitecture;
}

}  // namespace gpumem::architectures
