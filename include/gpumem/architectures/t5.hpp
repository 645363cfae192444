// T5, T5 1.1, flan-T5, mT5, and UMT5, whose every layer has a table of distances of its own: encoder and decoder with
// relative positions, attention written out. The decoder gets as many tokens as the encoder. Source: transformers 4.48,
// models/t5/modeling_t5.py.
#pragma once

#include <array>
#include <optional>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

namespace t5 {

struct Model {
  std::int64_t vocabulary = 1;
  std::int64_t width = 1;
  std::int64_t heads = 1;
  std::int64_t head_width = 64;
  std::int64_t inner = 1;
  std::int64_t layers = 1;
  std::int64_t decoder_layers = 1;
  std::int64_t buckets = 32;
  double dropout = 0.1;
  std::string_view activation = "relu";
  bool gated = false;
  bool tied = true;
  bool own_biases = false;  ///< each layer has a table of distances of its own

  [[nodiscard]] std::int64_t inner_width() const { return heads * head_width; }
};

inline Model read(ConfigFields& config) {
  Model model;
  model.vocabulary = config.size({"vocab_size"});
  model.width = config.size({"d_model"});
  model.heads = config.size({"num_heads"});
  model.head_width = config.size_or({"d_kv"}, 64);
  model.inner = config.size({"d_ff"});
  model.layers = config.layers({"num_layers"});
  model.decoder_layers = config.layers_or("num_decoder_layers", model.layers);
  model.buckets = config.size_or({"relative_attention_num_buckets"}, 32);
  model.dropout = config.number({"dropout_rate"}, 0.1);
  model.tied = config.flag("tie_word_embeddings", true);
  std::string_view kind = config.text({"feed_forward_proj"}, "relu");
  constexpr std::string_view kGated = "gated-";
  model.gated = kind.starts_with(kGated);
  if (model.gated) kind.remove_prefix(kGated.size());
  model.activation = model.gated && kind == "gelu" ? std::string_view("gelu_new") : kind;
  model.own_biases = config.text({"model_type"}, "") == "umt5";
  config.ignore({"scalable_attention", "relative_attention_max_distance", "n_positions", "is_gated_act", "dense_act_fn",
                 "output_past", "classifier_dropout", "num_hidden_layers", "num_attention_heads", "hidden_size",
                 "tokenizer_class", "scale_decoder_outputs"});
  if (model.inner_width() > ConfigFields::kLargestSize) config.fail("makes heads too wide", "d_kv");
  return model;
}

/// What the layers of a stack share. The first block makes the biases: positions and mask in one.
struct Stack {
  bool decoder = false;
  Tensor ids = 0;
  Tensor mask = 0;
  Tensor cross_mask = 0;
  Tensor encoded = 0;
  std::optional<Tensor> self_bias = {};
  std::optional<Tensor> cross_bias = {};
};

/// [1, heads, S, S] of the table of distances.
inline Tensor position_bias(Forward& f, const Model& model, const Stack& stack) {
  const Tensor distances = f.call("relative_positions", {stack.ids});
  const Tensor values = f.embedding("relative_attention_bias", distances, model.buckets, model.heads);
  return f.call("unsqueeze", {f.permute(values, {2, 0, 1})}, {{"dim", std::int64_t{0}}});
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, Tensor source, Stack& stack, bool cross) {
  const InModule inside(f, cross ? "EncDecAttention" : "SelfAttention", "T5Attention");
  const std::int64_t width = model.inner_width();
  const auto heads = [&](std::string_view name, Tensor from) {
    return split_heads(f, f.linear(name, from, model.width, width, {.bias = false}), model.head_width);
  };
  const Tensor query = heads("q", input);
  const Tensor key = heads("k", source);
  const Tensor value = heads("v", source);
  if (stack.decoder) {
    f.cache(key);
    f.cache(value);
  }
  const Tensor scores = f.call("matmul", {query, f.permute(key, {0, 1, 3, 2})});
  std::optional<Tensor>& bias = cross ? stack.cross_bias : stack.self_bias;
  if (model.own_biases && !cross) bias.reset();
  if (!bias && cross) {
    const Tensor zeros = f.call("relative_zeros", {stack.ids}, {{"heads", model.heads}});
    bias = f.call("add", {f.require_grad(zeros, When::checkpointed), stack.cross_mask});
  }
  if (!bias) bias = f.add(position_bias(f, model, stack), stack.mask);
  const Tensor biased = f.call("add", {scores, *bias}, {{"inplace", true}});
  const Tensor weights = f.as_type_of(f.call("softmax", {f.to(biased, "float32")}), scores);
  const Tensor attended = f.call("matmul", {f.dropout("dropout", weights, model.dropout), value});
  const Tensor output = f.linear("o", merge_heads(f, attended), width, model.width, {.bias = false});
  return f.leave_function(output, {query, key, value, biased});
}

inline Tensor dense(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "DenseReluDense", model.gated ? "T5DenseGatedActDense" : "T5DenseActDense");
  const Linear plain = {.bias = false};
  Tensor hidden = 0;
  if (model.gated) {
    const Tensor gate = f.activation("act", f.linear("wi_0", input, model.width, model.inner, plain), model.activation);
    hidden = f.multiply(gate, f.linear("wi_1", input, model.width, model.inner, plain));
  } else {
    hidden = f.activation("act", f.linear("wi", input, model.width, model.inner, plain), model.activation);
  }
  return f.linear("wo", f.dropout("dropout", hidden, model.dropout), model.inner, model.width, plain);
}

/// One of a block's parts: norm, what it is about, dropout, and the sum with what it read.
template <typename Part>
Tensor part(Forward& f, const Model& model, std::string_view name, std::string_view class_name, Tensor input,
            Part about) {
  const InModule inside(f, name, class_name);
  const Tensor normed = f.rms_norm("layer_norm", input, model.width, "T5LayerNorm");
  return f.add(input, f.dropout("dropout", about(normed), model.dropout));
}

inline Tensor block(Forward& f, const Model& model, Tensor input, Stack& shared) {
  const InModule list(f, "layer", "ModuleList");
  Tensor hidden = part(f, model, "0", "T5LayerSelfAttention", input,
                       [&](Tensor x) { return attention(f, model, x, x, shared, false); });
  if (shared.decoder) {
    hidden = part(f, model, "1", "T5LayerCrossAttention", hidden,
                  [&](Tensor x) { return attention(f, model, x, shared.encoded, shared, true); });
  }
  return part(f, model, shared.decoder ? "2" : "1", "T5LayerFF", hidden, [&](Tensor x) { return dense(f, model, x); });
}

inline Tensor run(Forward& f, const Model& model, Tensor embedded, Stack& shared) {
  Tensor hidden = f.dropout("dropout", embedded, model.dropout);
  hidden = stack(f, "block", "T5Block", shared.decoder ? model.decoder_layers : model.layers, hidden,
                 [&](Tensor x, std::int64_t) { return block(f, model, x, shared); });
  hidden = f.rms_norm("final_layer_norm", hidden, model.width, "T5LayerNorm");
  hidden = f.leave_function(f.dropout("dropout", hidden, model.dropout), {embedded, shared.mask});
  for (const std::optional<Tensor>& bias : {shared.self_bias, shared.cross_bias}) {
    if (bias) hidden = f.leave_function(hidden, {*bias});
  }
  return hidden;
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const Tensor ids = f.token_input("input_ids");
  const Tensor attention_mask = f.token_input("attention_mask");
  const Tensor words = f.embedding("shared", ids, model.vocabulary, model.width);
  Tensor encoded = 0;
  {
    const InModule inside(f, "encoder", "T5Stack");
    Stack shared{.ids = ids, .mask = row_mask(f, attention_mask)};
    encoded = run(f, model, words, shared);
  }
  if (head == Head::encoder) return;
  f.hand_out(encoded);
  const Tensor decoder_ids = f.token_input("decoder_input_ids");
  Tensor decoded = 0;
  {
    const InModule inside(f, "decoder", "T5Stack");
    const Tensor embedded = f.tied_embedding("embed_tokens", decoder_ids, model.vocabulary, model.width);
    const Tensor mask = f.call("causal_mask", {decoder_ids}, {{"padded", true}});
    Stack shared{.decoder = true,
                 .ids = decoder_ids,
                 .mask = mask,
                 .cross_mask = row_mask(f, attention_mask),
                 .encoded = encoded};
    decoded = run(f, model, embedded, shared);
  }
  if (head == Head::none) return;
  // Where the output layer is the embedding, its input is scaled.
  const Tensor read = model.tied ? f.scale(decoded) : decoded;
  const Linear head_of = {.bias = false, .tied = model.tied, .returned = true};
  token_loss(f, f.linear("lm_head", read, model.width, model.vocabulary, head_of), decoded);
}

inline constexpr auto kClasses = std::to_array<ModelClass>(
    {{"T5", "t5", "", kAlwaysTied, 0, "T5DenseGatedActDense"}, {"MT5", "mt5"}, {"UMT5", "umt5"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.size("vocab_size", "shared", "num_embeddings");
  t.size("d_model", "shared", "embedding_dim");
  t.count("num_layers", "encoder.block");
  t.count("num_decoder_layers", "decoder.block");
  const std::string attention = "encoder.block.0.layer.0.SelfAttention.";
  const std::string dense = "encoder.block.0.layer.1.DenseReluDense.";
  const std::int64_t heads = t.value(attention + "relative_attention_bias", "embedding_dim").value_or(0);
  t.size("relative_attention_num_buckets", attention + "relative_attention_bias", "num_embeddings");
  t.size("num_heads", attention + "relative_attention_bias", "embedding_dim");
  if (heads > 0) t.set("d_kv", t.value(attention + "q", "out_features").value_or(0) / heads);
  const bool gated = t.has(dense + "wi_0");
  t.size("d_ff", dense + (gated ? "wi_0" : "wi"), "out_features");
  t.set_string("feed_forward_proj", gated ? "gated-gelu" : "relu");
  t.dropout("dropout_rate", "encoder.dropout");
}

inline constexpr Architecture kArchitecture = {.name = "t5",
                                               .model_types = names<"t5", "mt5", "umt5">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree};

}  // namespace t5

}  // namespace gpumem::architectures
