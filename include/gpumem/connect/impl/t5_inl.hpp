#pragma once

#include <array>

#include "gpumem/connect/forward.hpp"
#include "gpumem/connect/t5.hpp"

namespace gpumem::connect {

namespace t5_detail {

inline constexpr std::array<std::string_view, 2> kModels = {"T5ForConditionalGeneration", "T5EncoderModel"};
inline constexpr std::int64_t kHeadWidth = 64;

/// What the layers of a stack share.
struct Stack {
  bool decoder = false;
  std::int64_t tokens = 0;
  std::int64_t heads = 0;
  Tensor mask = ForwardWiring::kNoMask;
  Tensor self_bias = ForwardWiring::kNoMask;   ///< made by the first block
  Tensor cross_bias = ForwardWiring::kNoMask;  ///< made by the first block
  Tensor cross_mask = ForwardWiring::kNoMask;
  Tensor encoded = 0;
};

/// [1, heads, S, S] of a table of 32 distances; without a table, zeros.
GPUMEM_INLINE Tensor position_bias(ForwardWiring& wiring, const Module& module, const Stack& stack) {
  if (!module.has_layer("relative_attention_bias")) {
    return wiring.constant("position_bias", {1, stack.heads, stack.tokens, stack.tokens}, core::DType::float32);
  }
  const Tensor distances = wiring.constant("relative_position", {stack.tokens, stack.tokens}, core::DType::int64);
  const Tensor values = wiring.layer(module, "relative_attention_bias", {distances});
  return wiring.node("unsqueeze", {wiring.permute(values, {2, 0, 1})}, {{"dim", std::int64_t{0}}});
}

GPUMEM_INLINE Tensor attention(ForwardWiring& wiring, const Module& module, Tensor input, Tensor source, Tensor mask,
                               Tensor& bias, const Stack& stack, double dropout) {
  const InModule inside(wiring, module);
  const std::int64_t width = wiring.required(module, "q", "out_features");
  const auto heads = [&](std::string_view name, Tensor from) {
    return wiring.split_heads(wiring.layer(module, name, {from}), stack.heads, width / stack.heads);
  };
  const Tensor query = heads("q", input);
  const Tensor key = heads("k", source);
  const Tensor value = heads("v", source);
  if (stack.decoder) {
    wiring.returned(key);
    wiring.returned(value);
  }
  const Tensor scores = wiring.node("matmul", {query, wiring.permute(key, {0, 1, 3, 2})});
  if (bias == ForwardWiring::kNoMask) bias = wiring.add(position_bias(wiring, module, stack), mask);
  const Tensor biased = wiring.node("add", {scores, bias}, {{"inplace", true}});
  const Tensor weights = wiring.dropout(wiring.node("softmax", {biased}), dropout);
  const Tensor attended = wiring.node("matmul", {weights, value});
  return wiring.layer(module, "o", {wiring.merge_heads(attended, width)});
}

GPUMEM_INLINE Tensor dense(ForwardWiring& wiring, const Module& module, Tensor input) {
  const InModule inside(wiring, module);
  Tensor hidden = 0;
  if (module.has_layer("wi_0")) {
    const Tensor gate = wiring.layer(module, "act", {wiring.layer(module, "wi_0", {input})});
    hidden = wiring.node("mul", {gate, wiring.layer(module, "wi_1", {input})});
  } else {
    hidden = wiring.layer(module, "act", {wiring.layer(module, "wi", {input})});
  }
  return wiring.layer(module, "wo", {wiring.optional_layer(module, "dropout", {hidden})});
}

/// One of a block's parts: norm, what it is about, dropout, and the sum with what it read.
GPUMEM_INLINE Tensor part(ForwardWiring& wiring, const Module& module, Tensor input, Stack& stack) {
  const InModule inside(wiring, module);
  const Tensor normed = wiring.layer(module, "layer_norm", {input});
  const double dropout = wiring.probability(module, "dropout");
  Tensor result = 0;
  if (module.has_child("SelfAttention")) {
    result =
        attention(wiring, module.child("SelfAttention"), normed, normed, stack.mask, stack.self_bias, stack, dropout);
  } else if (module.has_child("EncDecAttention")) {
    result = attention(wiring, module.child("EncDecAttention"), normed, stack.encoded, stack.cross_mask,
                       stack.cross_bias, stack, dropout);
  } else {
    result = dense(wiring, module.child("DenseReluDense"), normed);
  }
  return wiring.add(input, wiring.optional_layer(module, "dropout", {result}));
}

GPUMEM_INLINE Tensor run_stack(ForwardWiring& wiring, const Module& module, Tensor embedded, Stack& stack) {
  Tensor hidden = wiring.optional_layer(module, "dropout", {embedded});
  for (const Module& block : module.child("block").children()) {
    const InModule inside(wiring, block);
    for (const Module& each : block.child("layer").children()) hidden = part(wiring, each, hidden, stack);
  }
  hidden = wiring.layer(module, "final_layer_norm", {hidden});
  return wiring.optional_layer(module, "dropout", {hidden});
}

/// Heads: as many as the table of distances has columns, or 64 wide.
GPUMEM_INLINE std::int64_t heads_of(ForwardWiring& wiring, const Module& stack) {
  const auto blocks = stack.child("block").children();
  if (blocks.empty()) return wiring.missing(stack, "block"), 1;
  const auto parts = blocks.front().child("layer").children();
  if (parts.empty()) return wiring.missing(blocks.front(), "layer"), 1;
  const Module attention = parts.front().child("SelfAttention");
  if (attention.has_layer("relative_attention_bias")) {
    return wiring.required(attention, "relative_attention_bias", "embedding_dim");
  }
  return std::max<std::int64_t>(wiring.required(attention, "q", "out_features") / kHeadWidth, 1);
}

GPUMEM_INLINE Tensor encoder(ForwardWiring& wiring, const Module& model, Tensor ids, Tensor attention_mask) {
  const Module module = model.child("encoder");
  const Tensor embedded = wiring.layer(model, "shared", {ids});
  const InModule inside(wiring, module);
  Stack stack{.tokens = wiring.sequence_length(), .heads = heads_of(wiring, module)};
  stack.mask = wiring.row_mask(attention_mask);
  return run_stack(wiring, module, embedded, stack);
}

GPUMEM_INLINE Tensor decoder(ForwardWiring& wiring, const Module& model, Tensor ids, Tensor attention_mask,
                             Tensor encoded) {
  const Module module = model.child("decoder");
  const InModule inside(wiring, module);
  const Tensor embedded = wiring.layer(module, "embed_tokens", {ids});
  Stack stack{.decoder = true, .tokens = wiring.sequence_length(), .heads = heads_of(wiring, module)};
  stack.encoded = encoded;
  stack.mask = wiring.expanded_mask(attention_mask, stack.tokens);
  stack.cross_mask = wiring.row_mask(attention_mask);
  return run_stack(wiring, module, embedded, stack);
}

GPUMEM_INLINE bool recognises(const model::ModelGraph& graph) { return holds_class(graph, kModels); }

GPUMEM_INLINE core::Result<model::ModelGraph> connect_model(const model::TrainingJob& job, const ops::Catalogue& ops) {
  const ModuleIndex index(*job.graph);
  const Module model = *find_model(index, kModels);
  ForwardWiring wiring(job, ops);
  const Tensor ids = wiring.token_input("input_ids");
  const Tensor attention_mask = wiring.token_input("attention_mask");
  {
    const InModule inside(wiring, model);
    const Tensor encoded = encoder(wiring, model, ids, attention_mask);
    if (model.has_child("decoder")) {
      const Tensor decoded = decoder(wiring, model, wiring.token_input("decoder_input_ids"), attention_mask, encoded);
      wiring.returned(encoded);
      // Where the output layer is the embedding, its input is scaled.
      wiring.layer(model, "lm_head", {model.tied("lm_head") ? wiring.scale(decoded) : decoded});
    }
  }
  return std::move(wiring).finish();
}

}  // namespace t5_detail

GPUMEM_INLINE const Family& t5() {
  static constexpr Family kFamily = {"t5", t5_detail::recognises, t5_detail::connect_model};
  return kFamily;
}

}  // namespace gpumem::connect
