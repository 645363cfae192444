// T5 of Megatron-Core, of the arguments that its launcher takes, as one JSON object: encoder_num_layers,
// decoder_num_layers, hidden_size. The encoder reads as many tokens as the job says, the decoder decoder_seq_length.
// The model is whole: what a rank holds of it is the layout's matter. Source: Megatron-LM core r0.12,
// core/models/T5/t5_model.py and t5_spec.py, core/transformer/attention.py (CrossAttention),
// core/transformer/transformer_layer.py, pretrain_t5.py.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/megatron_arguments.hpp"

namespace gpumem::architectures {

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

}  // namespace gpumem::architectures
