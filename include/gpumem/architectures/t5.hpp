// T5, T5 1.1, flan-T5, mT5, and UMT5, whose every layer has a table of distances of its own: encoder and decoder with
// relative positions, attention written out. The decoder gets as many tokens as the encoder. Source: transformers 4.48,
// models/t5/modeling_t5.py.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/bart_parts.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/megatron_arguments.hpp"

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

// T5 of Megatron-Core, of the arguments that its launcher takes, as one JSON object: encoder_num_layers,
// decoder_num_layers, hidden_size. The encoder reads as many tokens as the job says, the decoder decoder_seq_length.
// The model is whole: what a rank holds of it is the layout's matter. Source: Megatron-LM core r0.12,
// core/models/T5/t5_model.py and t5_spec.py, core/transformer/attention.py (CrossAttention),
// core/transformer/transformer_layer.py, pretrain_t5.py.

namespace megatron_t5 {

struct Model {
  std::int64_t vocabulary = 1;
  std::int64_t width = 1;
  std::int64_t heads = 1;
  std::int64_t head_width = 1;
  std::int64_t inner = 1;
  std::int64_t layers = 1;
  std::int64_t decoder_layers = 1;
  std::int64_t decoder_length = 1;
  std::int64_t positions = 1;
  double dropout = 0.1;
  double attention_dropout = 0.1;
  bool tied = true;
  bool bias = true;
  bool fused_gradients = false;  ///< products add a weight's gradient to the main one themselves
  model::RunSettings run = {};

  [[nodiscard]] std::int64_t head_widths() const { return heads * head_width; }
  [[nodiscard]] Linear columns() const {
    return {.bias = bias, .split = Split::columns, .fused_gradient = fused_gradients};
  }
  [[nodiscard]] Linear rows() const { return {.bias = bias, .split = Split::rows, .fused_gradient = fused_gradients}; }
};

/// What is modelled in only one form.
inline void check_forms(ConfigFields& config) {
  if (config.flag("swiglu", false))
    config.fail("is not modelled for Megatron's T5, whose activation is gelu", "swiglu");
  if (config.text({"normalization"}, "LayerNorm") != "LayerNorm") {
    config.fail("must be LayerNorm: nothing else is modelled for Megatron's T5", "normalization");
  }
  if (config.text({"position_embedding_type"}, "learned_absolute") != "learned_absolute") {
    config.fail("must be learned_absolute: nothing else is modelled for Megatron's T5", "position_embedding_type");
  }
  if (config.has("num_experts")) config.fail("is not modelled for Megatron's T5", "num_experts");
}

inline Model read(ConfigFields& config) {
  Model model;
  model.vocabulary = config.size({"padded_vocab_size"});
  model.width = config.size({"hidden_size"});
  model.heads = config.size({"num_attention_heads"});
  model.head_width = config.size_or({"kv_channels"}, std::max<std::int64_t>(model.width / model.heads, 1));
  model.inner = config.size_or({"ffn_hidden_size"}, std::min(4 * model.width, ConfigFields::kLargestSize));
  model.layers = config.layers({"encoder_num_layers"});
  model.decoder_layers = config.layers_or("decoder_num_layers", model.layers);
  model.decoder_length = config.size({"decoder_seq_length"});
  model.positions = config.size({"max_position_embeddings"});
  model.dropout = config.number({"hidden_dropout"}, 0.1);
  model.attention_dropout = config.number({"attention_dropout"}, 0.1);
  model.tied = !config.flag("untie_embeddings_and_output_weights", false);
  model.bias = config.flag("add_bias_linear", true);
  model.fused_gradients = config.flag("gradient_accumulation_fusion", true) &&
                          config.text({"transformer_impl"}, "transformer_engine") == "transformer_engine";
  model.run = run_settings(config);
  check_forms(config);
  ignore_megatron_run(config);
  if (config.size_or({"num_query_groups"}, model.heads) != model.heads) {
    config.fail("is not modelled for Megatron's T5, whose heads have keys of their own", "num_query_groups");
  }
  if (model.head_widths() > ConfigFields::kLargestSize / 3) config.fail("makes heads too wide", "kv_channels");
  return model;
}

/// [N, S, heads d] -> [N, heads, S, d]: a view, of the heads that a rank has.
inline Tensor in_front(Forward& f, const Model& model, Tensor tensor) {
  return f.permute(f.unflatten_heads(tensor, 2, {model.heads, model.head_width}), {0, 2, 1, 3});
}

/// Parts of one product, each of `count` in a head's rows: [N, S, heads, count d] split at the last axis.
inline std::vector<Tensor> packed_heads(Forward& f, const Model& model, std::string_view name, Tensor input,
                                        std::int64_t count) {
  const Tensor packed = f.linear(name, input, model.width, count * model.head_widths(), model.columns());
  const Tensor parted = f.unflatten_heads(packed, 2, {model.heads, count * model.head_width});
  std::vector<Tensor> parts = f.split(parted, 3, Sizes(static_cast<std::size_t>(count), model.head_width));
  for (Tensor& part : parts) part = f.permute(part, {0, 2, 1, 3});
  return parts;
}

inline Tensor attended(Forward& f, const Model& model, const Heads& heads, bool causal) {
  const Tensor mixed = f.call(
      "scaled_dot_product_attention", {heads.query, heads.key, heads.value},
      {{"dropout_p", model.attention_dropout}, {"grouped", true}, {"fused_softmax", true}, {"is_causal", causal}});
  return f.linear("linear_proj", merge_heads(f, mixed), model.head_widths(), model.width, model.rows());
}

/// Causal in the decoder (AttnMaskType.causal of its layers in t5_spec.py).
inline Tensor self_attention(Forward& f, const Model& model, Tensor input, bool causal) {
  const InModule inside(f, "self_attention", "SelfAttention");
  const std::vector<Tensor> parts = packed_heads(f, model, "linear_qkv", input, 3);
  return attended(f, model, {parts[0], parts[1], parts[2]}, causal);
}

inline Tensor cross_attention(Forward& f, const Model& model, Tensor input, Tensor encoded) {
  const InModule inside(f, "cross_attention", "CrossAttention");
  const std::vector<Tensor> parts = packed_heads(f, model, "linear_kv", encoded, 2);
  const Tensor query =
      in_front(f, model, f.linear("linear_q", input, model.width, model.head_widths(), model.columns()));
  return attended(f, model, {query, parts[0], parts[1]}, false);
}

inline Tensor fed(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "mlp", "MLP");
  const Tensor wide = f.linear("linear_fc1", input, model.width, model.inner, model.columns());
  return f.linear("linear_fc2", f.activation("activation_func", wide, "gelu"), model.inner, model.width, model.rows());
}

/// `encoded`: null in the encoder.
inline Tensor block(Forward& f, const Model& model, Tensor input, const Tensor* encoded) {
  const auto joined = [&](Tensor residual, Tensor part) {
    return f.add(residual, f.dropout("dropout", part, model.dropout));
  };
  const bool decodes = encoded != nullptr;
  const Tensor first = f.layer_norm("input_layernorm", input, model.width);
  Tensor hidden = joined(input, self_attention(f, model, first, decodes));
  if (decodes) {
    const Tensor normed = f.layer_norm("pre_cross_attn_layernorm", hidden, model.width);
    hidden = joined(hidden, cross_attention(f, model, normed, *encoded));
  }
  return joined(hidden, fed(f, model, f.layer_norm("pre_mlp_layernorm", hidden, model.width)));
}

/// Encoder and decoder call the same embedding.
inline Tensor embedded(Forward& f, const Model& model, Tensor ids) {
  const InModule inside(f, "embedding", "LanguageModelEmbedding");
  const Tensor words =
      f.embedding("word_embeddings", ids, model.vocabulary, model.width, "Embedding", Split::vocabulary);
  const Tensor numbers = f.positions(ids, model.positions);
  const Tensor sum = f.add(words, f.embedding("position_embeddings", numbers, model.positions, model.width));
  return f.dropout("embedding_dropout", f.enter_sequence(sum), model.dropout);
}

inline Tensor run(Forward& f, const Model& model, std::string_view name, Tensor hidden, std::int64_t layers,
                  const Tensor* encoded) {
  const InModule inside(f, name, "TransformerBlock");
  hidden = stack(f, "layers", "TransformerLayer", layers, hidden,
                 [&](Tensor x, std::int64_t) { return block(f, model, x, encoded); });
  return f.layer_norm("final_layernorm", hidden, model.width);
}

inline void write(ConfigFields& config, Head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  f.run_settings(model.run);
  if (const std::optional<model::Doubt> graphs = cuda_graphs(config)) f.doubt(*graphs);
  const Tensor ids = f.token_input("text_enc");
  const Tensor decoder_ids = f.fixed_token_input("text_dec", model.decoder_length);
  const Tensor encoded = run(f, model, "encoder", embedded(f, model, ids), model.layers, nullptr);
  f.repeat_parameters(true);
  const Tensor again = embedded(f, model, decoder_ids);
  f.repeat_parameters(false);
  const Tensor decoded = run(f, model, "decoder", again, model.decoder_layers, &encoded);
  // T5LMHead: where it shares the embedding's weight, it has a bias of its own.
  const Tensor logits = f.linear("lm_head", decoded, model.width, model.vocabulary,
                                 {.bias = model.tied, .tied = model.tied, .split = Split::columns});
  const Tensor labels = f.fixed_token_input("labels", model.decoder_length);
  const Tensor rows = f.flatten(f.to(logits, "float32"), 0, 1);
  const Tensor loss = f.call("cross_entropy", {rows, labels}, {{"vocabulary_parallel", true}});
  f.leave_function(loss, {logits});
}

inline constexpr Architecture kArchitecture = {
    .name = "megatron_t5", .model_types = names<"megatron_t5">, .write = write};

}  // namespace megatron_t5

// Models with an encoder and a decoder of BART's kind: BART, mBART, Marian (opus-mt), M2M100 (NLLB), Pegasus, PLBart,
// Blenderbot. They differ in where norms stand, and in how they tell positions. The decoder gets as many tokens as the
// encoder. Source: transformers 4.48, models/bart/modeling_bart.py (BartSdpaAttention); 5.16, modeling_*.py of mbart,
// marian, m2m_100, pegasus, plbart, blenderbot and blenderbot_small.

namespace bart {

inline Tensor decoder(Forward& f, const Model& model, Tensor ids, Tensor encoded) {
  const InModule inside(f, "decoder", model.form.prefix);
  const Tensor words = model.decoder_vocabulary > 0
                           ? f.embedding("embed_tokens", ids, model.decoder_vocabulary, model.width)
                           : f.tied_embedding("embed_tokens", ids, model.vocabulary, model.width);
  return blocks(f, model, model.decoder, embedded(f, model, ids, words, true), encoded);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  if ((head != Head::none && head != Head::causal_lm) || config.class_name().ends_with("ForCausalLM"))
    config.fail("only the class of both sides that writes text, and the model without a head, are known");
  Tensor decoded = 0;
  {
    const InModule inside(f, "model", model.form.prefix);
    const Tensor ids = token_ids(f);
    const bool shares = model.decoder_vocabulary == 0;
    Tensor words = shares ? f.embedding("shared", ids, model.vocabulary, model.width) : 0;
    Tensor encoded = 0;
    {
      const InModule side(f, "encoder", model.form.prefix);
      if (!shares) words = f.embedding("embed_tokens", ids, model.vocabulary, model.width);
      encoded = blocks(f, model, model.encoder, embedded(f, model, ids, words, false));
    }
    f.hand_out(encoded);
    decoded = decoder(f, model, f.token_input("decoder_input_ids"), encoded);
  }
  if (head == Head::none) return;
  const std::int64_t answers = model.decoder_vocabulary > 0 ? model.decoder_vocabulary : model.vocabulary;
  const bool biased = model.form.logits_bias;
  Tensor logits =
      f.linear("lm_head", decoded, model.width, answers, {.bias = false, .tied = true, .returned = !biased});
  if (biased) {
    logits = f.add(logits, f.constant("final_logits_bias", {1, answers}, "parameters"));
    f.hand_out(logits);
  }
  token_loss(f, logits, decoded);
}

inline constexpr auto kClasses =
    std::to_array<ModelClass>({{"Bart", "bart", "model", kAlwaysTied},
                               {"MBart", "mbart", "model", kAlwaysTied},
                               {"Marian", "marian", "model", kAlwaysTied},
                               {"M2M100", "m2m_100", "model", kAlwaysTied},
                               {"Pegasus", "pegasus", "model", kAlwaysTied},
                               {"PLBart", "plbart", "model", kAlwaysTied},
                               {"BlenderbotSmall", "blenderbot-small", "model", kAlwaysTied},
                               {"Blenderbot", "blenderbot", "model", kAlwaysTied}});
/// Published models, by width.
inline constexpr auto kPublished =
    std::to_array<PublishedHeads>({{512, 8}, {768, 12}, {1024, 16}, {1280, 32}, {2560, 32}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const bool shares = t.has("shared");
  t.size("vocab_size", shares ? "shared" : "encoder.embed_tokens", "num_embeddings");
  t.size("d_model", shares ? "shared" : "encoder.embed_tokens", "embedding_dim");
  if (!shares) {
    t.set("share_encoder_decoder_embeddings", 0);
    t.size("decoder_vocab_size", "decoder.embed_tokens", "num_embeddings");
  }
  const bool own =
      t.class_name().starts_with("Bart") || t.class_name().starts_with("MBart") || t.class_name().starts_with("PLBart");
  if (const auto rows = t.value("encoder.embed_positions", "num_embeddings")) {
    t.set("max_position_embeddings", own ? *rows - 2 : *rows);
  } else {
    t.set("max_position_embeddings", 1024);
    t.assume("1,024 positions, as M2M100 and NLLB have them");
  }
  tree_sides(t, kPublished, t.value(shares ? "shared" : "encoder.embed_tokens", "embedding_dim").value_or(0));
}

inline constexpr Architecture kArchitecture = {
    .name = "bart", .model_types = kModelTypes, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace bart

}  // namespace gpumem::architectures
