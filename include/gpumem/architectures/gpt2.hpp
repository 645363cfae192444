// GPT-2: learned positions, one projection for queries, keys and values, plain feed-forward layers, dropout.
// Source: transformers 4.48, models/gpt2/modeling_gpt2.py.
#pragma once

#include <array>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

namespace gpt2 {

struct Model {
  DecoderSizes sizes;
  std::int64_t positions = 1;
  double embedding_dropout = 0.1;
  double attention_dropout = 0.1;
  double dropout = 0.1;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config, {.activation = "gelu_new", .tied = true, .inner_factor = 4});
  model.positions = config.size({"n_positions", "n_ctx", "max_position_embeddings"});
  model.embedding_dropout = config.number({"embd_pdrop"}, 0.1);
  model.attention_dropout = config.number({"attn_pdrop"}, 0.1);
  model.dropout = config.number({"resid_pdrop"}, 0.1);
  if (config.flag("add_cross_attention", false))
    config.fail("cross attention is not known here", "add_cross_attention");
  config.ignore({"scale_attn_weights", "scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn", "summary_type",
                 "summary_use_proj", "summary_activation", "summary_proj_to_labels", "summary_first_dropout"});
  return model;
}

inline Tensor attention(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "attn", "GPT2Attention");
  const DecoderSizes& s = model.sizes;
  // The causal mask of torch.tril, which eager attention reads.
  f.constant("bias", {1, 1, model.positions, model.positions}, "bool");
  const Tensor packed = f.linear("c_attn", input, s.width, 3 * s.width, {.class_name = "Conv1D"});
  const std::vector<Tensor> parts = f.split(packed, 2, Sizes(3, s.width));
  const Heads heads = {split_heads(f, parts[0], s.head_width), split_heads(f, parts[1], s.head_width),
                       split_heads(f, parts[2], s.head_width)};
  f.cache(heads.key);
  f.cache(heads.value);
  const Tensor attended = attend(f, heads, {.dropout = model.attention_dropout});
  const Tensor output = f.linear("c_proj", attended, s.width, s.width, {.class_name = "Conv1D"});
  return f.dropout("resid_dropout", output, model.dropout);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DecoderSizes& s = model.sizes;
  Tensor hidden = 0;
  {
    const InModule inside(f, "transformer", "GPT2Model");
    hidden = gpt2_body(f, s,
                       {.block_class = "GPT2Block",
                        .feed_forward_class = "GPT2MLP",
                        .positions = model.positions,
                        .embedding_dropout = model.embedding_dropout,
                        .dropout = model.dropout,
                        .linear_class = "Conv1D"},
                       [&](Tensor input) { return attention(f, model, input); });
  }
  decoder_head(f, config, s, head, hidden, {.upcasts = false});
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"GPT2", "gpt2", "transformer", kAlwaysTied}});
/// Published models, by width.
inline constexpr auto kPublished = std::to_array<PublishedHeads>({{768, 12}, {1024, 16}, {1280, 20}, {1600, 25}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const std::int64_t width = t.body("wte", "h");
  t.size("n_positions", "wpe", "num_embeddings");
  t.size("n_inner", "h.0.mlp.c_fc", "out_features");
  t.dropout("attn_pdrop", "h.0.attn.attn_dropout");
  t.labels();
  t.heads_of_width({.published = kPublished}, width);
}

inline constexpr Architecture kArchitecture = {
    .name = "gpt2", .model_types = names<"gpt2">, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace gpt2

// GPT-BigCode (SantaCoder, StarCoder): GPT-2's block with plain linear layers, and one head of keys and values for all.
// Source: transformers 4.48, models/gpt_bigcode/modeling_gpt_bigcode.py (GPTBigCodeSdpaAttention).

namespace gpt_bigcode {

struct Model {
  DecoderSizes sizes;
  std::int64_t positions = 1;
  double embedding_dropout = 0.1;
  double dropout = 0.1;
  bool shared_keys = true;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config, {.activation = "gelu_pytorch_tanh", .tied = true, .inner_factor = 4});
  model.sizes.attention_dropout = config.number({"attn_pdrop"}, 0.1);
  model.positions = config.size({"n_positions", "max_position_embeddings"});
  model.embedding_dropout = config.number({"embd_pdrop"}, 0.1);
  model.dropout = config.number({"resid_pdrop"}, 0.1);
  model.shared_keys = config.flag("multi_query", true);
  if (config.flag("add_cross_attention", false))
    config.fail("cross attention is not known here", "add_cross_attention");
  config.ignore({"attention_softmax_in_fp32", "scale_attention_softmax_in_fp32", "scale_attn_weights", "summary_type",
                 "summary_use_proj", "summary_activation", "summary_proj_to_labels", "summary_first_dropout",
                 "inference_runner", "pre_allocate_kv_cache", "validate_runner_input", "num_key_value_heads",
                 "pad_key_length"});
  return model;
}

inline Tensor attention(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "attn", "GPTBigCodeSdpaAttention");
  const DecoderSizes& s = model.sizes;
  const std::int64_t both = 2 * s.head_width;
  Heads heads;
  if (model.shared_keys) {
    const Tensor packed = f.linear("c_attn", input, s.width, s.width + both);
    const std::vector<Tensor> parts = f.split(packed, 2, {s.width, both});
    f.cache(parts[1], Caches::always);
    const std::vector<Tensor> pair = f.split(parts[1], 2, {s.head_width, s.head_width});
    // One head, seen as many: the kernel reads it through a stride of 0.
    const auto shared = [&](Tensor one) {
      const Tensor head = f.call("unsqueeze", {one}, {{"dim", std::int64_t{1}}});
      return f.call("expand", {head}, {{"shape", Sizes{-1, s.heads, -1, -1}}});
    };
    heads.query = split_heads(f, parts[0], s.head_width);
    heads.key = shared(pair[0]);
    heads.value = shared(pair[1]);
  } else {
    const Tensor packed = split_heads(f, f.linear("c_attn", input, s.width, 3 * s.width), 3 * s.head_width);
    const std::vector<Tensor> parts = f.split(packed, 3, {s.head_width, both});
    f.cache(parts[1], Caches::always);
    const std::vector<Tensor> pair = f.split(parts[1], 3, {s.head_width, s.head_width});
    heads = {parts[0], pair[0], pair[1]};
  }
  const Tensor attended = attend(f, heads, {.dropout = s.attention_dropout, .copies = false});
  return f.dropout("resid_dropout", f.linear("c_proj", attended, s.width, s.width), model.dropout);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DecoderSizes& s = model.sizes;
  Tensor hidden = 0;
  {
    const InModule inside(f, "transformer", "GPTBigCodeModel");
    f.constant("bias", {model.positions, model.positions}, "bool");
    hidden = gpt2_body(f, s,
                       {.block_class = "GPTBigCodeBlock",
                        .feed_forward_class = "GPTBigCodeMLP",
                        .positions = model.positions,
                        .embedding_dropout = model.embedding_dropout,
                        .dropout = model.dropout},
                       [&](Tensor input) { return attention(f, model, input); });
  }
  // The logits are held while backward runs. What holds them is not found in the model's code; published runs of a
  // whole and of an adapted santacoder, with two forms of the loss, hold just these and, under autocast, their float32
  // copy.
  decoder_head(f, config, s, head, hidden, {.upcasts = false, .outlives_loss = true});
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"GPTBigCode", "gpt_bigcode", "transformer", kAlwaysTied}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const std::int64_t width = t.body("wte", "h");
  t.size("n_positions", "wpe", "num_embeddings");
  t.size("n_inner", "h.0.mlp.c_fc", "out_features");
  t.dropout("attn_pdrop", "h.0.attn.attn_dropout");
  t.labels();
  const std::int64_t both = t.value("h.0.attn.c_attn", "out_features").value_or(0) - width;
  // All queries share a key and a value, which are a head wide each.
  const bool shared = both > 1 && both < 2 * width;
  t.set_flag("multi_query", shared);
  if (shared && width % (both / 2) == 0) t.set("num_attention_heads", width / (both / 2));
  if (!shared) t.heads_of_width({}, width);
}

inline constexpr Architecture kArchitecture = {.name = "gpt_bigcode",
                                               .model_types = names<"gpt_bigcode">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree};

}  // namespace gpt_bigcode

// GPT-Neo: GPT-2's block with unbiased queries, keys and values, and attention written out in float32.
// Source: transformers 4.48, models/gpt_neo/modeling_gpt_neo.py.

namespace gpt_neo {

struct Model {
  DecoderSizes sizes;
  std::int64_t positions = 1;
  double embedding_dropout = 0.0;
  double dropout = 0.0;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config, {.activation = "gelu_new", .tied = true, .inner_factor = 4});
  model.positions = config.size({"max_position_embeddings"});
  model.embedding_dropout = config.number({"embed_dropout"}, 0.0);
  model.dropout = config.number({"resid_dropout"}, 0.0);
  config.ignore({"attention_layers", "attention_types", "window_size", "classifier_dropout", "summary_type",
                 "summary_use_proj", "summary_activation", "summary_proj_to_labels", "summary_first_dropout"});
  return model;
}

inline Tensor attention(Forward& f, const Model& model, Tensor input) {
  const InModule outer(f, "attn", "GPTNeoAttention");
  const InModule inside(f, "attention", "GPTNeoSelfAttention");
  const DecoderSizes& s = model.sizes;
  f.constant("bias", {1, 1, model.positions, model.positions}, "bool");
  const auto heads = [&](std::string_view name) {
    return split_heads(f, f.linear(name, input, s.width, s.width, {.bias = false}), s.head_width);
  };
  const Tensor query = heads("q_proj");
  const Tensor key = heads("k_proj");
  const Tensor value = heads("v_proj");
  f.cache(key);
  f.cache(value);
  const Tensor turned = f.permute(f.to(key, "float32"), {0, 1, 3, 2});
  const Tensor scores = f.call("where", {f.call("matmul", {f.to(query, "float32"), turned})}, {{"mask_stands", true}});
  const Tensor weights = f.as_type_of(f.call("softmax", {scores}), value);
  const Tensor dropped = f.dropout("attn_dropout", weights, s.attention_dropout);
  const Tensor attended = merge_heads(f, f.call("matmul", {dropped, value}));
  return f.dropout("resid_dropout", f.linear("out_proj", attended, s.width, s.width), model.dropout);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DecoderSizes& s = model.sizes;
  Tensor hidden = 0;
  {
    const InModule inside(f, "transformer", "GPTNeoModel");
    hidden = gpt2_body(f, s,
                       {.block_class = "GPTNeoBlock",
                        .feed_forward_class = "GPTNeoMLP",
                        .positions = model.positions,
                        .embedding_dropout = model.embedding_dropout,
                        .dropout = model.dropout},
                       [&](Tensor input) { return attention(f, model, input); });
  }
  decoder_head(f, config, s, head, hidden, {.retyped = true});
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"GPTNeo", "gpt_neo", "transformer", kAlwaysTied}});
/// Published models, by width.
inline constexpr auto kPublished = std::to_array<PublishedHeads>({{768, 12}, {2048, 16}, {2560, 20}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const std::int64_t width = t.body("wte", "h");
  t.size("max_position_embeddings", "wpe", "num_embeddings");
  t.size("intermediate_size", "h.0.mlp.c_fc", "out_features");
  t.dropout("attention_dropout", "h.0.attn.attention.attn_dropout");
  t.labels();
  t.heads_of_width({.published = kPublished}, width);
}

inline constexpr Architecture kArchitecture = {
    .name = "gpt_neo", .model_types = names<"gpt_neo">, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace gpt_neo

}  // namespace gpumem::architectures
