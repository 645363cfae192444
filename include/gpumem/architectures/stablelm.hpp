// StableLM 2 and StableLM 3B-4E1T: Llama's block with layer norms, and rotary positions on part of each head.
// Source: transformers 4.48, models/stablelm/modeling_stablelm.py (StableLmSdpaAttention).
#pragma once

#include <array>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

namespace stablelm {

struct Model {
  DecoderSizes sizes;
  double dropout = 0.0;
  std::int64_t rotary_width = 1;
  bool bias = false;
  bool parallel = false;      ///< attention and feed-forward layer side by side
  bool normed_heads = false;  ///< each head by a norm of its own
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config);
  model.dropout = config.number({"hidden_dropout"}, 0.0);
  model.rotary_width = rotary_width(config, model.sizes, {"partial_rotary_factor", "rope_pct"}, 0.25);
  model.bias = config.flag("use_qkv_bias", false);
  model.parallel = config.flag("use_parallel_residual", false);
  model.normed_heads = config.flag("qk_layernorm", false);
  return model;
}

/// StableLmLayerNormPerHead.
inline Tensor norm_each_head(Forward& f, std::string_view name, Tensor heads, std::int64_t count, std::int64_t width) {
  const InModule inside(f, name, "StableLmLayerNormPerHead");
  const std::vector<Tensor> parts = f.split(heads, 1, Sizes(static_cast<std::size_t>(count), 1));
  std::vector<Tensor> normed;
  {
    const InModule list(f, "norms", "ModuleList");
    for (const Tensor head : parts) normed.push_back(f.layer_norm(std::to_string(normed.size()), head, width, false));
  }
  return f.concatenate(normed, 1);
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const InModule inside(f, "self_attn", "StableLmSdpaAttention");
  const DecoderSizes& s = model.sizes;
  const auto heads = [&](std::string_view name, std::int64_t count, std::string_view norm) {
    const Tensor flat = f.linear(name, input, s.width, count * s.head_width, {.bias = model.bias});
    const Tensor parted = split_heads(f, flat, s.head_width);
    return model.normed_heads && !norm.empty() ? norm_each_head(f, norm, parted, count, s.head_width) : parted;
  };
  const Tensor query = heads("q_proj", s.heads, "q_layernorm");
  const Tensor key = heads("k_proj", s.kv_heads, "k_layernorm");
  const Tensor value = heads("v_proj", s.kv_heads, "");
  Heads turned = {rotate(f, query, rotary, s.head_width), rotate(f, key, rotary, s.head_width), value};
  turned.value = f.cache(turned.key, turned.value);
  const std::int64_t groups = s.heads / s.kv_heads;
  const auto copied = [&](Tensor tensor) { return f.contiguous(tensor, When::masked); };
  const Heads read = {copied(turned.query), copied(repeat_heads(f, turned.key, groups, true)),
                      copied(repeat_heads(f, turned.value, groups, true))};
  const Tensor attended = attend(f, read, {.in_kernel = true, .dropout = s.attention_dropout, .copies = false});
  const Tensor output = f.linear("o_proj", attended, s.heads * s.head_width, s.width, {.bias = false});
  return f.leave_function(output, {turned.query, turned.key, turned.value, input});
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const std::int64_t width = model.sizes.width;
  const Tensor normed = f.layer_norm("input_layernorm", input, width);
  const Tensor mixed = attention(f, model, normed, rotary);
  const auto fed = [&](Tensor x) {
    return f.dropout("dropout", gated_feed_forward(f, model.sizes, x, "StableLmMLP"), model.dropout);
  };
  if (model.parallel) {
    const Tensor beside = fed(normed);  // before the sums, which C++ may call in any order
    return f.add(f.add(input, mixed), beside);
  }
  const Tensor attended = f.add(input, mixed);
  return f.add(fed(f.layer_norm("post_attention_layernorm", attended, width)), attended);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DecoderSizes& s = model.sizes;
  decoder_model(f, config, s, head, {.class_name = "StableLmModel"}, [&](Tensor ids, Tensor hidden) {
    const Rotary rotary = rotary_tables(f, ids, model.rotary_width);
    hidden = stack(f, "layers", "StableLmDecoderLayer", s.layers, hidden,
                   [&](Tensor x, std::int64_t) { return block(f, model, x, rotary); });
    return f.layer_norm("norm", hidden, s.width);
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"StableLm", "stablelm", "model"}});
/// Published models, by width.
inline constexpr auto kPublished = std::to_array<PublishedHeads>({{2048, 32}, {2560, 32}, {5120, 32}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  t.size("intermediate_size", "layers.0.mlp.gate_proj", "out_features");
  t.flag("use_qkv_bias", "layers.0.self_attn.q_proj");
  t.set_flag("use_parallel_residual", !t.has("layers.0.post_attention_layernorm"));
  t.there("qk_layernorm", "layers.0.self_attn.q_layernorm");
  t.dropout("hidden_dropout", "layers.0.dropout");
  t.dropout("attention_dropout", "layers.0.self_attn.attention_dropout");
  t.labels();
  t.heads({.query = "layers.0.self_attn.q_proj", .key = "layers.0.self_attn.k_proj", .published = kPublished});
}

inline constexpr Architecture kArchitecture = {
    .name = "stablelm", .model_types = names<"stablelm">, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace stablelm

// StarCoder2: Llama's attention with biases, layer norms, a plain feed-forward layer.
// Source: transformers 4.48, models/starcoder2/modeling_starcoder2.py.

namespace starcoder2 {

struct Model {
  DecoderSizes sizes;
  double dropout = 0.0;
  double embedding_dropout = 0.0;
  bool bias = true;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config, {.activation = "gelu_pytorch_tanh", .tied = true});
  model.dropout = config.number({"residual_dropout"}, 0.0);
  model.embedding_dropout = config.number({"embedding_dropout"}, 0.0);
  model.bias = config.flag("use_bias", true);
  return model;
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const InModule inside(f, "self_attn", "Starcoder2Attention");
  const DecoderSizes& s = model.sizes;
  const auto [query, key, value] = project_heads(f, s, input, {.bias = model.bias});
  Heads turned = {rotate(f, query, rotary, s.head_width), rotate(f, key, rotary, s.head_width), value};
  const Tensor attended = attend_cached(f, s, turned);
  const Tensor output = f.linear("o_proj", attended, s.heads * s.head_width, s.width, {.bias = model.bias});
  return f.dropout("residual_dropout", output, model.dropout);
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const std::int64_t width = model.sizes.width;
  const Tensor attended = f.add(input, attention(f, model, f.layer_norm("input_layernorm", input, width), rotary));
  const Tensor again = f.layer_norm("post_attention_layernorm", attended, width);
  return f.add(attended, feed_forward(f, model.sizes, again,
                                      {.class_name = "Starcoder2MLP",
                                       .widen = "c_fc",
                                       .narrow = "c_proj",
                                       .bias = model.bias,
                                       .dropout = model.dropout}));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DecoderSizes& s = model.sizes;
  decoder_model(f, config, s, head, {.class_name = "Starcoder2Model"}, [&](Tensor ids, Tensor hidden) {
    hidden = f.dropout("embedding_dropout", hidden, model.embedding_dropout);
    const Rotary rotary = rotary_tables(f, ids, s.head_width);
    hidden = stack(f, "layers", "Starcoder2DecoderLayer", s.layers, hidden,
                   [&](Tensor x, std::int64_t) { return block(f, model, x, rotary); });
    return f.layer_norm("norm", hidden, s.width);
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Starcoder2", "starcoder2", "model", kAlwaysTied}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  t.size("intermediate_size", "layers.0.mlp.c_fc", "out_features");
  t.flag("use_bias", "layers.0.self_attn.q_proj");
  t.labels();
  t.heads({.query = "layers.0.self_attn.q_proj", .key = "layers.0.self_attn.k_proj", .usual_width = 128});
}

inline constexpr Architecture kArchitecture = {.name = "starcoder2",
                                               .model_types = names<"starcoder2">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree};

}  // namespace starcoder2

// Nemotron and Minitron: layer norms whose weight is counted from one, a feed-forward layer with a squared ReLU and no
// gate, positions on part of each head.
// Source: transformers 4.48, models/nemotron/modeling_nemotron.py.

namespace nemotron {

struct Model {
  DecoderSizes sizes;
  std::int64_t rotary_width = 2;
  bool attention_bias = false;
  bool mlp_bias = false;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config, {.activation = "relu2"});
  model.rotary_width =
      rotary_width(config, model.sizes, {"partial_rotary_factor", "rope_percent", "rope_percentage"}, 0.5);
  model.attention_bias = config.flag("attention_bias", false);
  model.mlp_bias = config.flag("mlp_bias", false);
  return model;
}

/// layer_norm with 1 + weight, a tensor as narrow as the model.
inline Tensor norm(Forward& f, const Model& model, std::string_view name, Tensor input) {
  return f.layer(name, "NemotronLayerNorm1P", "layer_norm", {input},
                 {{"normalized_shape", model.sizes.width}, {"bias", true}});
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const RotaryAttention options = {
      .class_name = "NemotronAttention", .input_bias = model.attention_bias, .output_bias = model.attention_bias};
  const Tensor normed = norm(f, model, "input_layernorm", input);
  const Tensor attended = f.add(input, rotary_attention(f, model.sizes, normed, rotary, options));
  const Tensor again = norm(f, model, "post_attention_layernorm", attended);
  return f.add(attended, feed_forward(f, model.sizes, again,
                                      {.class_name = "NemotronMLP",
                                       .widen = "up_proj",
                                       .narrow = "down_proj",
                                       .activation = "act_fn",
                                       .bias = model.mlp_bias,
                                       .split = true}));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  decoder_model(f, config, s, head, {.class_name = "NemotronModel"}, [&](Tensor ids, Tensor hidden) {
    const Rotary rotary = rotary_tables(f, ids, model.rotary_width);
    hidden = stack(f, "layers", "NemotronDecoderLayer", s.layers, hidden,
                   [&](Tensor x, std::int64_t) { return block(f, model, x, rotary); });
    return norm(f, model, "norm", hidden);
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Nemotron", "nemotron", "model"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  t.size("intermediate_size", "layers.0.mlp.up_proj", "out_features");
  t.flag("attention_bias", "layers.0.self_attn.q_proj");
  t.flag("mlp_bias", "layers.0.mlp.up_proj");
  t.labels();
  t.heads({.query = "layers.0.self_attn.q_proj", .key = "layers.0.self_attn.k_proj", .usual_width = 128});
}

inline constexpr Architecture kArchitecture = {
    .name = "nemotron", .model_types = names<"nemotron">, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace nemotron

// InternLM2 and 2.5: Llamas whose queries, keys and values are one projection, group by group. Source:
// internlm/internlm2_5-7b and OpenGVLab/InternVL (@2410d1d), internlm2/modeling_internlm2.py.

namespace internlm2 {

struct Model {
  DecoderSizes sizes;
  bool bias = false;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config);
  model.bias = config.flag("bias", true);
  return model;
}

/// Of each group its queries, its key and its value lie side by side; only the queries must be copied to be heads.
inline Tensor attention(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const InModule inside(f, "attention", "InternLM2Attention");
  const DecoderSizes& s = model.sizes;
  const std::int64_t queries = s.heads / s.kv_heads;
  const std::int64_t all = s.heads + 2 * s.kv_heads;
  const Tensor packed = f.linear("wqkv", input, s.width, all * s.head_width, {.bias = model.bias});
  const Tensor groups = f.unflatten(packed, 2, {s.kv_heads, queries + 2, s.head_width});
  const Tensor copied = f.call("clone", {f.slice(groups, 3, 0, queries)});
  const Tensor query = f.permute(f.flatten(copied, 2, 3), {0, 2, 1, 3});
  const auto head = [&](std::int64_t part) { return f.permute(f.select(groups, 3, part), {0, 2, 1, 3}); };
  const Tensor value = head(queries + 1);
  const auto turned = turn_heads(f, query, head(queries), rotary, s.head_width, Turning::halves);
  const Tensor mixed = attend_cached(f, s, {turned[0], turned[1], value}, {.copies = false});
  return f.linear("wo", mixed, s.heads * s.head_width, s.width, {.bias = model.bias});
}

inline Tensor fed(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "feed_forward", "InternLM2MLP");
  const DecoderSizes& s = model.sizes;
  const Tensor open = f.activation("act_fn", f.linear("w1", input, s.width, s.inner, {.bias = false}), s.activation);
  const Tensor up = f.linear("w3", input, s.width, s.inner, {.bias = false});
  return f.linear("w2", f.multiply(open, up), s.inner, s.width, {.bias = false});
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const std::int64_t width = model.sizes.width;
  const Tensor normed = f.rms_norm("attention_norm", input, width, "InternLM2RMSNorm");
  const Tensor attended = f.add(input, attention(f, model, normed, rotary));
  return f.add(attended, fed(f, model, f.rms_norm("ffn_norm", attended, width, "InternLM2RMSNorm")));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  const DecoderBody body = {
      .class_name = "InternLM2Model", .embedding = "tok_embeddings", .head = {.name = "output", .floats = true}};
  decoder_model(f, config, s, head, body, [&](Tensor ids, Tensor hidden) {
    const Rotary rotary = rotary_tables(f, ids, s.head_width);
    hidden = stack(f, "layers", "InternLM2DecoderLayer", s.layers, hidden,
                   [&](Tensor x, std::int64_t) { return block(f, model, x, rotary); });
    return f.rms_norm("norm", hidden, s.width, "InternLM2RMSNorm");
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"InternLM2", "internlm2", "model"}});
/// Published models, by width.
inline constexpr auto kPublished = std::to_array<PublishedHeads>({{2048, 16}, {4096, 32}, {6144, 48}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const std::int64_t width = t.body("tok_embeddings", "layers");
  t.size("intermediate_size", "layers.0.feed_forward.w1", "out_features");
  t.flag("bias", "layers.0.attention.wo");
  t.labels();
  const std::int64_t packed = t.value("layers.0.attention.wqkv", "out_features").value_or(0);
  const std::int64_t each = t.heads_of_width({.published = kPublished, .usual_width = 128}, width);
  if (each > 0 && packed > width) t.set("num_key_value_heads", (packed - width) / 2 / each);
}

inline constexpr Architecture kArchitecture = {.name = "internlm2",
                                               .model_types = names<"internlm2">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree};

}  // namespace internlm2

}  // namespace gpumem::architectures
