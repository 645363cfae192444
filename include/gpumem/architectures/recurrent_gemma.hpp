// RecurrentGemma (Griffin): two layers of a gated linear recurrence to one of attention to a window, each with a gated
// feed-forward layer. The recurrence is plain PyTorch, token by token.
// Source: transformers 4.57, models/recurrent_gemma/modeling_recurrent_gemma.py; arXiv:2402.19427.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/mixture.hpp"

namespace gpumem::architectures {

namespace recurrent_gemma {

inline constexpr std::string_view kNorm = "RecurrentGemmaRMSNorm";

struct Model {
  DecoderSizes sizes;
  std::vector<std::string> kinds;  ///< "recurrent" or "attention", again and again
  std::int64_t channels = 1;       ///< of the recurrence
  std::int64_t kernel = 4;
  std::int64_t turned = 2;  ///< elements of a head with rotary positions
  bool bias = false;        ///< of queries, keys and values
  double softcap = 0.0;

  [[nodiscard]] std::int64_t own() const { return channels / sizes.heads; }  ///< channels of a head's gates
};

inline Model read(ConfigFields& config) {
  constexpr std::int64_t kMostKernel = 1 << 12;
  Model model;
  model.sizes = decoder_sizes(config, {.activation = "gelu_pytorch_tanh", .tied = true});
  DecoderSizes& s = model.sizes;
  s.activation = config.text({"hidden_activation"}, "gelu_pytorch_tanh");
  s.attention_dropout = config.number({"attention_dropout"}, 0.0);
  s.inner = std::max<std::int64_t>(s.inner / 2, 1);
  model.channels = config.size_or({"lru_width"}, s.width);
  model.kernel = config.size_or({"conv1d_width"}, 4);
  model.kinds =
      config.texts_or("block_types", config.texts_or("_block_types", {"recurrent", "recurrent", "attention"}));
  for (const std::string& kind : model.kinds) {
    if (kind != "recurrent" && kind != "attention")
      config.fail("names a kind of layer that is not known", "block_types");
  }
  if (model.kinds.empty()) config.fail("names no layers", "block_types");
  if (model.channels % s.heads != 0) config.fail("is not a number of channels for each head", "lru_width");
  if (model.kernel > kMostKernel) config.fail("is wider than any convolution", "conv1d_width");
  model.turned = rotary_width(config, s, {"partial_rotary_factor"}, 0.5);
  model.bias = config.flag("attention_bias", false);
  model.softcap = config.number({"logits_soft_cap"}, 30.0);
  config.ignore({"attention_window_size", "w_init_variance_scale", "final_w_init_variance_scale"});
  return model;
}

/// The sigmoid of each head's channels times its own matrix.
inline Tensor gate(Forward& f, const Model& model, const std::string& name, Tensor heads) {
  const std::int64_t count = model.sizes.heads;
  const Tensor weight = f.parameter(name + "_weight", {count, model.own(), model.own()});
  const Tensor bias =
      f.call("unsqueeze", {f.parameter(name + "_bias", {count, model.own()})}, {{"dim", std::int64_t{1}}});
  const Tensor made = f.add(f.call("matmul", {heads, weight}), bias);
  return f.call("sigmoid", {merge_heads(f, made)});
}

/// RecurrentGemmaRglru, of [N, S, channels].
inline Tensor recurrence(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "rg_lru", "RecurrentGemmaRglru");
  const Tensor decay = f.parameter("recurrent_param", {model.channels});
  const Tensor heads = split_heads(f, f.contiguous(input), model.own());
  const Tensor opened = gate(f, model, "input_gate", heads);
  const Tensor forgets = gate(f, model, "recurrent_gate", heads);
  const Tensor rate = f.multiply(f.scale(forgets), f.call("softplus", {decay}));
  const Tensor kept = f.call("exp", {rate});
  const Tensor squared = f.call("exp", {f.scale(rate)});
  const Tensor gated = f.multiply(input, opened);
  // Where a text begins, the multiplier is 1.
  const Tensor root = f.call("sqrt", {f.call("sub", {squared})});
  const Tensor multiplier = f.call("add", {f.scale(root)});
  const Tensor normed = f.multiply(gated, multiplier);
  const Tensor states = f.call("gated_recurrence", {normed, f.scale(kept)});
  return f.leave_function(states, {heads, opened, kept, rate, squared, gated, multiplier, normed});
}

inline Tensor recurrent_block(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "temporal_block", "RecurrentGemmaRecurrentBlock");
  const std::int64_t width = model.sizes.width;
  const Tensor open =
      f.activation("act_fn", f.linear("linear_y", input, width, model.channels), model.sizes.activation);
  const Tensor planes = f.permute(f.linear("linear_x", input, width, model.channels), {0, 2, 1});
  const Tensor made = f.layer("conv_1d", "Conv1d", "conv1d", {planes},
                              {{"in_channels", model.channels},
                               {"out_channels", model.channels},
                               {"groups", model.channels},
                               {"kernel_size", Sizes(1, model.kernel)},
                               {"padding", Sizes(1, model.kernel - 1)},
                               {"bias", true}});
  const Tensor within = f.slice(made, 2, 0, model.kernel > 1 ? 1 - model.kernel : Forward::kRest);
  const Tensor mixed = recurrence(f, model, f.permute(within, {0, 2, 1}));
  const Tensor output = f.linear("linear_out", f.multiply(mixed, open), model.channels, width);
  return f.leave_function(output, {open, mixed, input});
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, Tensor ids, Tensor mask) {
  const InModule inside(f, "temporal_block", "RecurrentGemmaSdpaAttention");
  const DecoderSizes& s = model.sizes;
  const std::int64_t each = s.head_width;
  const auto heads = [&](std::string_view name, std::int64_t count) {
    return split_heads(f, f.linear(name, input, s.width, count * each, {.bias = model.bias}), each);
  };
  const Heads made = {heads("q_proj", s.heads), heads("k_proj", s.kv_heads), heads("v_proj", s.kv_heads)};
  const Rotary rotary = rotary_tables(f, ids, model.turned);  // each layer makes its own
  const Tensor query = rotate(f, made.query, rotary, each);
  const Heads turned = {query, rotate(f, made.key, rotary, each), made.value};
  const Tensor attended =
      attend(f, turned, {.groups = s.heads / s.kv_heads, .dropout = s.attention_dropout, .mask = mask});
  const Tensor output = f.linear("o_proj", attended, s.heads * each, s.width);
  return f.leave_function(output, {turned.query, turned.key, turned.value, input});
}

inline Tensor block(Forward& f, const Model& model, Tensor input, Tensor ids, Tensor mask, std::int64_t index) {
  const DecoderSizes& s = model.sizes;
  const bool attends = model.kinds[static_cast<std::size_t>(index) % model.kinds.size()] == "attention";
  const Tensor normed = wide_norm(f, "temporal_pre_norm", kNorm, input, s.width);
  const Tensor mixed = attends ? attention(f, model, normed, ids, mask) : recurrent_block(f, model, normed);
  const Tensor residual = f.add(mixed, input);
  const Tensor again = wide_norm(f, "channel_pre_norm", kNorm, residual, s.width);
  Tensor fed = 0;
  {
    const InModule inside(f, "mlp_block", "RecurrentGemmaMlp");
    fed = gated_layer(f, s.width, s.inner, s.activation, again, {.bias = true});
  }
  return f.add(fed, residual);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  Tensor hidden = 0;
  {
    const InModule inside(f, "model", "RecurrentGemmaModel");
    const Tensor ids = token_ids(f);
    const Tensor embedded = f.embedding("embed_tokens", ids, s.vocabulary, s.width);
    const Tensor mask = f.call("causal_mask", {ids}, {{"padded", true}});
    hidden = stack(f, "layers", "RecurrentGemmaDecoderLayer", s.layers, f.scale(embedded),
                   [&](Tensor x, std::int64_t index) { return block(f, model, x, ids, mask, index); });
    hidden = f.leave_function(wide_norm(f, "final_norm", kNorm, hidden, s.width), {mask});
  }
  decoder_head(f, config, s, head, hidden, {.softcap = model.softcap});
}

inline constexpr auto kClasses =
    std::to_array<ModelClass>({{"RecurrentGemma", "recurrent_gemma", "model", kAlwaysTied}});
/// Published models, by width.
inline constexpr auto kPublished = std::to_array<PublishedHeads>({{2560, 10}, {4096, 16}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const std::int64_t width = t.body("embed_tokens", "layers");
  t.labels();
  if (const auto inner = t.value("layers.0.mlp_block.gate_proj", "out_features"))
    t.set("intermediate_size", 2 * *inner);
  std::string kinds;
  std::string attention;
  std::string recurrent;
  for (std::int64_t at = 0; at < std::min(t.count_of("layers"), ConfigFields::kMostLayers); ++at) {
    const std::string mixer = "layers." + std::to_string(at) + ".temporal_block";
    const bool attends = t.has(mixer + ".q_proj");
    if (attends && attention.empty()) attention = mixer;
    if (!attends && recurrent.empty()) recurrent = mixer;
    kinds.append(kinds.empty() ? "" : ", ").append(attends ? "\"attention\"" : "\"recurrent\"");
  }
  t.set_text("block_types", "[" + kinds + "]");
  t.size("lru_width", recurrent + ".linear_x", "out_features");
  t.size("conv1d_width", recurrent + ".conv_1d", "kernel_size");
  if (attention.empty()) return (void)t.heads_of_width({.published = kPublished, .usual_width = 256}, width);
  t.flag("attention_bias", attention + ".q_proj");
  t.heads({.query = attention + ".q_proj", .key = attention + ".k_proj", .published = kPublished, .usual_width = 256});
}

inline constexpr Architecture kArchitecture = {.name = "recurrent_gemma",
                                               .model_types = names<"recurrent_gemma">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree};

}  // namespace recurrent_gemma

}  // namespace gpumem::architectures
