// GPT of Megatron-Core, with experts or without, BERT, hybrid models with Mamba-2's mixers, and by t5.hpp its
// T5, of the arguments that its launcher takes, as one JSON object: num_layers, hidden_size, swiglu. The model is
// whole: what a rank holds of it is the layout's matter. Attention is TransformerEngine's fused one. Experts are taken
// to get their tokens one after the other. Source: Megatron-LM core r0.12, megatron/training/arguments.py,
// core/models/gpt/gpt_model.py, core/models/bert/bert_model.py, core/models/mamba/mamba_model.py,
// core/transformer/transformer_layer.py.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/latent_attention.hpp"
#include "gpumem/architectures/mamba_mixers.hpp"
#include "gpumem/architectures/megatron_arguments.hpp"
#include "gpumem/architectures/mixture.hpp"

namespace gpumem::architectures {

namespace megatron {

struct Model {
  DecoderSizes sizes;
  std::int64_t positions = 0;  ///< rows of a table of learned positions; 0: there is none
  std::int64_t rotary_width = 0;
  double dropout = 0.1;
  bool rms = false;
  bool gated = false;
  bool bias = true;
  bool query_bias = false;  ///< of queries, keys and values, where the others have none
  bool normed_heads = false;
  bool latent = false;
  LatentAttention attention;
  Mixture mixture;
  std::int64_t shared_inner = 0;
  std::vector<bool> mixes;  ///< by layer
  bool corrects = false;    ///< a bias of the scores that choose the experts
  model::RunSettings run = {};
  std::int64_t expert_ranks = 0;  ///< tensor parallel ranks that share an expert's weights; 0: all
  std::int64_t taken = 1000;      ///< rows that an expert takes, in thousandths of its even share
  bool grouped = false;           ///< TransformerEngine multiplies all experts of a rank at once
  bool sends = false;             ///< ranks send each other the rows of their experts ("alltoall")
  bool float32_routing = false;   ///< weights of the experts' results
  bool fused_gradients = false;   ///< products add a weight's gradient to the main one themselves
  bool float32_softmax = false;   ///< where attention is written out, which no kernel fuses then
  bool bert = false;              ///< segments among the embeddings, a head of two layers, and a second loss
  std::string pattern = {};       ///< of a hybrid: a letter a layer; empty: it is none
  Mamba2Mixer mixer;
  bool lower_loss = false;              ///< TransformerEngine's cross entropy, of logits that are not cast
  std::int64_t predictions = 0;         ///< further tokens, each by a layer of its own (MTP)
  bool one_predicts = false;            ///< one layer is called for all of them
  std::string prediction_pattern = {};  ///< of such a layer of a hybrid
};

inline void read_experts(ConfigFields& config, Model& model) {
  const bool any = config.has("num_experts");
  model.mixes.assign(static_cast<std::size_t>(model.sizes.layers), false);
  if (any) {
    model.mixture = {.experts = config.size({"num_experts"}),
                     .per_token = config.size_or({"moe_router_topk"}, 2),
                     .inner = config.size_or({"moe_ffn_hidden_size"}, model.sizes.inner),
                     .expert_class = "MLP"};
    check_mixture(config, model.mixture, model.sizes.layers, "num_experts", "moe_router_topk");
    model.mixes = mixing_layers(config, model.sizes.layers);
    model.shared_inner = config.size_or({"moe_shared_expert_intermediate_size"}, 0);
    model.corrects = config.flag("moe_router_enable_expert_bias", false);
    if (config.has("expert_tensor_parallel_size")) model.expert_ranks = config.size({"expert_tensor_parallel_size"});
    model.grouped = config.flag("moe_grouped_gemm", false) &&
                    config.text({"transformer_impl"}, "transformer_engine") == "transformer_engine";
    model.sends = config.text({"moe_token_dispatcher_type"}, "allgather") == "alltoall";
    model.float32_routing = config.text({"moe_router_dtype"}, "bf16") == "fp32";
  }
  config.ignore({"moe_ffn_hidden_size", "moe_router_topk", "moe_layer_freq", "moe_router_enable_expert_bias"});
}

inline void read_attention(ConfigFields& config, Model& model) {
  DecoderSizes& s = model.sizes;
  s.head_width = config.size_or({"kv_channels"}, std::max<std::int64_t>(s.width / s.heads, 1));
  const bool groups = config.flag("group_query_attention", config.has("num_query_groups"));
  const std::int64_t given = config.size_or({"num_query_groups"}, s.heads);
  s.kv_heads = groups ? given : s.heads;
  if (s.heads % s.kv_heads != 0) config.fail("does not divide num_attention_heads", "num_query_groups");
  if (s.heads * s.head_width > ConfigFields::kLargestSize / 3) config.fail("makes heads too wide", "kv_channels");
  const bool rotary = config.text({"position_embedding_type"}, "learned_absolute") == "rope";
  model.latent = config.flag("multi_latent_attention", false);
  model.rotary_width = rotary ? rotary_width(config, s, {"rotary_percent"}, 1.0) : 0;
  model.normed_heads = config.flag("qk_layernorm", false);
  model.query_bias = config.flag("add_qkv_bias", false);
  if (!model.latent) return;
  model.attention = {.width = s.width,
                     .heads = s.heads,
                     .query_rank = config.size_or({"q_lora_rank"}, 0),
                     .kv_rank = config.size_or({"kv_lora_rank"}, 32),
                     .plain_width = config.size_or({"qk_head_dim"}, 128),
                     .rotary_width = config.size_or({"qk_pos_emb_head_dim"}, 64),
                     .value_width = config.size_or({"v_head_dim"}, 128),
                     .dropout = s.attention_dropout,
                     .caches = false,
                     .fused_softmax = true,
                     .class_name = "MLASelfAttention",
                     .norm_class = "RMSNorm"};
  check_latent_attention(config, model.attention, "qk_head_dim");
}

/// Whether these are letters of a hybrid's layers: M a mixer, * attention, - an MLP, E experts.
inline bool are_layers(std::string_view letters) {
  return letters.find_first_not_of("M*-E") == std::string_view::npos && !letters.empty();
}

/// The layers of a hybrid, '|' at the end of each pipeline stage; then, each behind a '/', those of the layer that
/// predicts one more token, which are the same each time. Where there are more stages than the pipeline has ranks, each
/// rank has several. Source: Megatron-LM of August 2026, core/models/hybrid/hybrid_layer_allocation.py
/// (parse_hybrid_pattern); training/arguments.py (virtual_pipeline_model_parallel_size).
inline void read_pattern(ConfigFields& config, std::string_view field, Model& model) {
  const std::string_view text = config.text({field}, "");
  const std::string_view layers = text.substr(0, text.find('/'));
  model.pattern = layers;
  const auto stages = std::erase(model.pattern, '|') + 1;
  std::string counts;
  std::int64_t of_stage = 0;
  for (const char letter : layers) {
    if (letter == '|') counts += std::to_string(std::exchange(of_stage, 0)) + ",";
    else ++of_stage;
  }
  if (stages > 1) model.run.pipeline_layers = counts + std::to_string(of_stage);
  const auto ranks = static_cast<std::size_t>(config.size_or({"pipeline_model_parallel_size"}, 1));
  if (ranks > 1 && stages % ranks == 0) model.run.virtual_stages = static_cast<std::int64_t>(stages / ranks);
  if (layers.size() < text.size()) {
    const std::string_view further = text.substr(layers.size() + 1);
    model.prediction_pattern = further.substr(0, further.find('/'));
    model.predictions = std::count(text.begin(), text.end(), '/');
    const std::size_t each = model.prediction_pattern.size() + 1;
    for (std::size_t at = layers.size(); at < text.size(); at += each) {
      const bool same = text.substr(at + 1, each - 1) == model.prediction_pattern && each > 1;
      if (!same) return config.fail("must have the same layers behind each /, which predict a further token", field);
    }
  }
  if (!are_layers(model.pattern) || (model.predictions > 0 && !are_layers(model.prediction_pattern))) {
    return config.fail("has a letter that is not one of M, *, E, -, | and /", field);
  }
  if (static_cast<std::int64_t>(model.pattern.size()) != model.sizes.layers) {
    config.fail("must have a letter for each of num_layers", field);
  }
}

/// Source: core/ssm/mamba_mixer.py: MambaMixer.__init__; training/arguments.py: --mamba-state-dim and its like.
inline void read_hybrid(ConfigFields& config, Model& model) {
  for (const std::string_view field : {"hybrid_layer_pattern", "hybrid_override_pattern"}) {
    if (config.has(field) && model.pattern.empty()) read_pattern(config, field, model);
  }
  if (model.pattern.empty()) return;
  const std::int64_t width = model.sizes.width;
  Mamba2Mixer& m = model.mixer;
  m = {.class_name = "MambaMixer",
       .norm_class = "ExtendedRMSNorm",
       .width = width,
       .chunk = 128,
       .shared = true,
       .norms_apart = true};
  m.head_width = config.size_or({"mamba_head_dim"}, 64);
  m.heads = config.size_or({"mamba_num_heads"}, std::max<std::int64_t>(2 * width / m.head_width, 1));
  m.groups = config.size_or({"mamba_num_groups"}, 8);
  m.state = config.size_or({"mamba_state_dim"}, 128);
  check_mamba2(config, m, "mamba_num_heads", "mamba_num_groups");
  config.ignore({"is_hybrid_model", "spec", "hybrid_attention_ratio", "hybrid_mlp_ratio"});
}

/// Source: core/transformer/transformer_config.py (mtp_num_layers, mtp_use_repeated_layer).
inline void read_predictions(ConfigFields& config, Model& model) {
  constexpr std::int64_t kMost = 64;
  const std::int64_t said = config.size_or({"mtp_num_layers"}, std::max<std::int64_t>(model.predictions, 1));
  const bool any = config.has("mtp_num_layers") || model.predictions > 0;
  const bool differs = model.predictions > 0 && model.predictions != said;
  if (any && (differs || said > kMost)) {
    config.fail("must be the number of / in the layers' pattern, and at most " + std::to_string(kMost),
                "mtp_num_layers");
  }
  model.predictions = any ? said : 0;
  const auto each = std::max<std::int64_t>(static_cast<std::int64_t>(model.prediction_pattern.size()), 1);
  if (each > ConfigFields::kMostLayers / kMost) config.fail("has too many layers behind a /", "hybrid_layer_pattern");
  if (config.has("num_experts")) {
    check_mixture(config, model.mixture, model.sizes.layers + model.predictions * std::min(each, kMost), "num_experts",
                  "moe_router_topk");
  }
  model.one_predicts = config.flag("mtp_use_repeated_layer", false);
  config.ignore({"mtp_loss_scaling_factor"});
}

inline Model read(ConfigFields& config) {
  Model model;
  DecoderSizes& s = model.sizes;
  model.bert = config.text({"_model_family"}, "gpt") == "bert";
  s.vocabulary = config.size({"padded_vocab_size"});
  s.width = config.size({"hidden_size"});
  s.layers = config.layers({"num_layers"});
  s.heads = config.size({"num_attention_heads"});
  s.attention_dropout = config.number({"attention_dropout"}, 0.1);
  model.dropout = config.number({"hidden_dropout"}, 0.1);
  model.gated = config.flag("swiglu", false);
  const bool squared = config.flag("squared_relu", false);
  s.activation = squared ? "relu2" : "gelu";
  const std::int64_t usual = model.gated ? s.width * 8 / 3 / 64 * 64 : s.width * 4;
  s.inner = config.size_or({"ffn_hidden_size"}, std::clamp<std::int64_t>(usual, 1, ConfigFields::kLargestSize / 2));
  if (s.inner > ConfigFields::kLargestSize / 2) config.fail("is too wide", "ffn_hidden_size");
  s.tied = !config.flag("untie_embeddings_and_output_weights", false);
  model.rms = config.text({"normalization"}, "LayerNorm") == "RMSNorm";
  model.bias = config.flag("add_bias_linear", true);
  if (config.text({"position_embedding_type"}, "learned_absolute") == "learned_absolute") {
    model.positions = config.size({"max_position_embeddings"});
  }
  read_attention(config, model);
  read_experts(config, model);
  model.fused_gradients = config.flag("gradient_accumulation_fusion", true) &&
                          config.text({"transformer_impl"}, "transformer_engine") == "transformer_engine";
  model.float32_softmax = softmax_in_float32(config);
  model.lower_loss =
      config.flag("cross_entropy_loss_fusion", false) && config.text({"cross_entropy_fusion_impl"}, "native") == "te";
  model.run = stages_of(config);
  model.taken = rows_taken(model.run);
  read_hybrid(config, model);
  read_predictions(config, model);
  ignore_megatron_run(config);
  return model;
}

inline Tensor norm(Forward& f, const Model& model, std::string_view name, Tensor input, std::int64_t width) {
  if (!model.rms) return f.layer_norm(name, input, width);
  return f.layer(name, "RMSNorm", "rms_norm", {input}, {{"normalized_shape", width}, {"fused", true}});
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const InModule inside(f, "self_attention", "SelfAttention");
  const DecoderSizes& s = model.sizes;
  const std::int64_t each = s.heads / s.kv_heads;
  const std::int64_t packed_width = s.kv_heads * (each + 2) * s.head_width;
  const Tensor packed = f.linear(
      "linear_qkv", input, s.width, packed_width,
      {.bias = model.bias || model.query_bias, .split = Split::columns, .fused_gradient = model.fused_gradients});
  const Tensor parted = f.unflatten_heads(packed, 2, {s.kv_heads, (each + 2) * s.head_width});
  const std::vector<Tensor> parts = f.split(parted, 3, {each * s.head_width, s.head_width, s.head_width});
  Tensor query = f.unflatten(f.flatten(parts[0], 2, 3), 2, {-1, s.head_width});
  Tensor key = parts[1];
  if (model.normed_heads) {
    query = norm(f, model, "q_layernorm", query, s.head_width);
    key = norm(f, model, "k_layernorm", key, s.head_width);
  }
  const auto in_front = [&](Tensor tensor) { return f.permute(tensor, {0, 2, 1, 3}); };
  Heads heads = {in_front(query), in_front(key), in_front(parts[2])};
  if (model.rotary_width > 0) {
    heads.query = rotate(f, heads.query, rotary, s.head_width);
    heads.key = rotate(f, heads.key, rotary, s.head_width);
  }
  const Tensor mixed = f.call("scaled_dot_product_attention", {heads.query, heads.key, heads.value},
                              {{"dropout_p", s.attention_dropout},
                               {"grouped", true},
                               {"fused_softmax", true},
                               {"float32_softmax", model.float32_softmax},
                               {"is_causal", !model.bert}});
  return f.linear("linear_proj", merge_heads(f, mixed), s.heads * s.head_width, s.width,
                  {.bias = model.bias, .split = Split::rows, .fused_gradient = model.fused_gradients});
}

/// linear_fc2(act(linear_fc1(x))), in the module that is open. SwiGLU is one kernel that keeps what it reads.
inline Tensor fed(Forward& f, const Model& model, Tensor input, std::int64_t inner) {
  const std::int64_t width = model.sizes.width;
  const Tensor wide = f.linear("linear_fc1", input, width, model.gated ? 2 * inner : inner,
                               {.bias = model.bias, .split = Split::columns, .fused_gradient = model.fused_gradients});
  const Tensor active = model.gated ? f.call("glu", {wide}, {{"dim", std::int64_t{-1}}})
                                    : f.activation("activation_func", wide, model.sizes.activation);
  return f.linear("linear_fc2", active, inner, width,
                  {.bias = model.bias, .split = Split::rows, .fused_gradient = model.fused_gradients});
}

/// The same of an expert's rows, each times its weight before the second product: in one kernel with SwiGLU, else a
/// product of its own in the wider of both types, and a copy of that in the narrower. Source: core r0.12 to 0.16,
/// core/transformer/moe/experts.py: TEGroupedMLP.forward(), bias_act_func(); core/fusions/fused_bias_swiglu.py:
/// WeightedSwiGLUFunction.
inline Tensor expert_fed(Forward& f, const Model& model, Tensor rows, Tensor weights) {
  const std::int64_t width = model.sizes.width;
  const std::int64_t inner = model.mixture.inner;
  const bool whole = model.expert_ranks == 1;
  Linear linear = {.bias = model.bias,
                   .split = whole ? Split::whole : Split::columns,
                   .fused_gradient = model.fused_gradients,
                   .grouped = model.grouped,
                   .tensor_ranks = whole ? 0 : model.expert_ranks};
  const Tensor wide = f.linear("linear_fc1", rows, width, model.gated ? 2 * inner : inner, linear);
  linear.split = whole ? Split::whole : Split::rows;
  // What "moe_act" among recompute_modules runs again: the second product then reads what is not kept.
  const InModule again(f, "moe_act", {});
  if (model.gated)
    return f.linear("linear_fc2", f.call("glu", {wide, weights}, {{"dim", std::int64_t{-1}}}), inner, width, linear);
  const Tensor active = f.activation("activation_func", wide, model.sizes.activation);
  return f.linear("linear_fc2", f.as_type_of(f.multiply(active, weights), active), inner, width, linear);
}

/// Each expert's rows are copied out of all tokens, and what it makes of them is added to the sum. Grouped products
/// make the rows of all experts before any of them is added. `sends`: the rows that a rank sends, those that it gets,
/// and its results in the order of the ranks that they go back to have names while they are needed no more. Source:
/// core r0.13 to 0.19, core/transformer/moe/moe_layer.py: MoELayer.forward() (custom_forward); experts.py:
/// TEGroupedMLP; token_dispatcher.py: MoEAlltoAllTokenDispatcher (combine_preprocess()).
inline Tensor add_experts(Forward& f, const Model& model, Tensor input, Tensor weights, Tensor sum) {
  const Mixture& m = model.mixture;
  const InModule list(f, "experts", model.grouped ? "TEGroupedMLP" : "SequentialMLP");
  const Tensor sent = model.sends ? sent_rows(f, m, input, model.taken, false) : input;
  const Tensor got = model.sends ? sent_rows(f, m, input, model.taken, true) : input;
  const auto share = [&](Tensor of) {
    return f.call("gather_tokens", {of}, {{"experts", m.experts}, {"per_token", m.per_token}, {"taken", model.taken}});
  };
  std::vector<Tensor> made;
  const auto visit = [&](std::int64_t index, bool adds) {
    const InModule one(f, std::to_string(index), m.expert_class);
    f.part_of_expert(static_cast<std::uint32_t>(index + 1));
    if (adds) sum = f.call("scatter_tokens", {sum, made[static_cast<std::size_t>(index)]}, {{"scatters", true}});
    else made.push_back(expert_fed(f, model, share(input), share(f.slice(weights, 2, 0, 1))));
    f.part_of_expert(0);
  };
  for (std::int64_t index = 0; index < m.experts && !f.failed(); ++index) {
    visit(index, false);
    if (!model.grouped) visit(index, true);
  }
  const Tensor back = model.sends && model.grouped ? sent_rows(f, m, input, model.taken, false) : input;
  for (std::int64_t index = 0; model.grouped && index < m.experts && !f.failed(); ++index) visit(index, true);
  return model.sends ? f.leave_function(sum, {sent, got, back}) : sum;
}

inline Tensor mixture(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "mlp", "MoELayer");
  const Mixture& m = model.mixture;
  const Tensor scores = f.linear("router", input, model.sizes.width, m.experts, {.bias = false});
  if (model.corrects) f.constant("router.expert_bias", {m.experts}, "float32");
  const Tensor weights = f.call("softmax", {f.to(scores, "float32")});
  const Tensor best = f.slice(weights, 2, 0, m.per_token);
  const Tensor chosen = model.float32_routing ? best : f.as_type_of(best, input);
  const Tensor sum = add_experts(f, model, input, chosen, f.call("token_zeros", {input}));
  if (model.shared_inner == 0) return sum;
  const InModule shared(f, "shared_experts", "SharedExpertMLP");
  return f.add(sum, fed(f, model, input, model.shared_inner));
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary, std::int64_t index) {
  const std::int64_t width = model.sizes.width;
  const auto joined = [&](Tensor residual, Tensor part) {
    return f.add(residual, f.dropout("dropout", part, model.dropout));
  };
  const Tensor normed = norm(f, model, "input_layernorm", input, width);
  const Tensor mixed =
      model.latent ? latent_attention(f, model.attention, normed, rotary) : attention(f, model, normed, rotary);
  const Tensor attended = joined(input, mixed);
  const Tensor again = norm(f, model, "pre_mlp_layernorm", attended, width);
  if (model.mixes[static_cast<std::size_t>(index)]) return joined(attended, mixture(f, model, again));
  const InModule inside(f, "mlp", "MLP");
  return joined(attended, fed(f, model, again, model.sizes.inner));
}

/// A layer of a hybrid has one part of a block: core/ssm/mamba_layer.py, and transformer layers without the other part.
inline Tensor hybrid_block(Forward& f, const Model& model, Tensor input, const Rotary& rotary, char kind) {
  const std::int64_t width = model.sizes.width;
  const auto joined = [&](Tensor part) { return f.add(input, f.dropout("dropout", part, model.dropout)); };
  const bool feeds = kind == '-' || kind == 'E';
  const Tensor normed = norm(f, model,
                             feeds         ? "pre_mlp_layernorm"
                             : kind == 'M' ? "norm"
                                           : "input_layernorm",
                             input, width);
  if (kind == 'M') return joined(mamba2_mixer(f, model.mixer, normed));
  if (kind == '*') return joined(attention(f, model, normed, rotary));
  if (kind == 'E') return joined(mixture(f, model, normed));
  const InModule inside(f, "mlp", "MLP");
  return joined(fed(f, model, normed, model.sizes.inner));
}

/// BertLMHead, and what the second loss is of: a pooled state, and whether the sentences are in order.
inline Tensor bert_head(Forward& f, const Model& model, Tensor hidden) {
  const InModule inside(f, "lm_head", "BertLMHead");
  const std::int64_t width = model.sizes.width;
  return f.layer_norm("layer_norm", f.activation("gelu", f.linear("dense", hidden, width, width), "gelu"), width);
}

inline Tensor order_loss(Forward& f, const Model& model, Tensor hidden) {
  const std::int64_t width = model.sizes.width;
  const Tensor pooled = f.linear("pooler.dense", f.slice(hidden, 1, 0, 1), width, width);
  const Tensor order = f.linear("binary_head", f.activation("tanh", pooled, "tanh"), width, 2);
  return f.call("cross_entropy", {f.flatten(f.to(order, "float32"), 0, 1), f.fixed_token_input("is_random", 1)});
}

inline Tensor embedded(Forward& f, const Model& model, Tensor ids) {
  const InModule inside(f, "embedding", "LanguageModelEmbedding");
  const DecoderSizes& s = model.sizes;
  Tensor words = f.embedding("word_embeddings", ids, s.vocabulary, s.width, "Embedding", Split::vocabulary);
  if (model.positions > 0) {
    const Tensor numbers = f.positions(ids, model.positions);
    words = f.add(words, f.embedding("position_embeddings", numbers, model.positions, s.width));
  }
  if (model.bert) words = f.add(words, f.embedding("tokentype_embeddings", f.token_input("types"), 2, s.width));
  // [N, S] -> [S, N], copied.
  return f.dropout("embedding_dropout", f.enter_sequence(words), model.dropout);
}

/// The layers of a pattern, or blocks; `at` counts them.
inline Tensor any_block(Forward& f, const Model& model, Tensor input, const Rotary& rotary, std::string_view pattern,
                        std::int64_t at) {
  if (pattern.empty()) return block(f, model, input, rotary, at);
  return hybrid_block(f, model, input, rotary, pattern[static_cast<std::size_t>(at)]);
}

/// A head's logits, and their loss. Names for the logits end when the loss is returned. `again`: it was called before.
inline Tensor head_loss(Forward& f, const Model& model, Tensor hidden, bool again) {
  const Linear output = {.bias = model.bert, .tied = model.sizes.tied || again, .split = Split::columns};
  const Tensor logits = f.linear("output_layer", hidden, model.sizes.width, model.sizes.vocabulary, output);
  const Tensor loss = vocabulary_parallel_loss(f, model.lower_loss ? logits : f.to(logits, "float32"));
  return f.leave_function(loss, {logits});
}

/// The layer that predicts one more token, of the hidden states and the embeddings of the tokens after these. It has
/// the last block's parts, the word embeddings again, and is on the pipeline's last stage. Source: Megatron-LM of
/// August 2026, core/transformer/multi_token_prediction.py (MultiTokenPredictionLayer).
inline Tensor predicted(Forward& f, const Model& model, Tensor words, Tensor hidden, const Rotary& rotary,
                        std::int64_t index) {
  const InModule block(f, "mtp", "MultiTokenPredictionBlock");
  const InModule list(f, "layers", "ModuleList");
  const InModule layer(f, std::to_string(model.one_predicts ? 0 : index), "MultiTokenPredictionLayer");
  const std::int64_t width = model.sizes.width;
  f.repeat_parameters(model.one_predicts && index > 0);
  const Tensor normed = norm(f, model, "enorm", words, width);
  const Tensor both = f.concatenate({normed, norm(f, model, "hnorm", hidden, width)}, 2);
  const Linear joining = {.bias = false, .split = Split::columns, .fused_gradient = model.fused_gradients};
  Tensor made = f.join_features(f.linear("eh_proj", both, 2 * width, width, joining));
  {
    // No block of the decoder, which a pipeline's stages share.
    const InModule inside(f, "mtp_model_layer", {});
    const bool hybrid = !model.prediction_pattern.empty();
    const std::int64_t first = hybrid ? 0 : model.sizes.layers - 1;
    const auto count = hybrid ? static_cast<std::int64_t>(model.prediction_pattern.size()) : std::int64_t{1};
    for (std::int64_t at = first; at < first + count; ++at) {
      made = any_block(f, model, made, rotary, model.prediction_pattern, at);
    }
  }
  made = norm(f, model, "final_layernorm", made, width);
  f.repeat_parameters(false);
  return made;
}

/// The losses of all further tokens, which come before the main one; `hidden` becomes what the main head reads: its
/// part of one tensor that the states of all heads are copied to. Source: the same (MultiTokenPredictionBlock,
/// process_mtp_loss).
inline std::vector<Tensor> prediction_losses(Forward& f, const Model& model, Tensor ids, Tensor& hidden,
                                             const Rotary& rotary) {
  std::vector<Tensor> states;
  for (std::int64_t index = 0; index < model.predictions && !f.failed(); ++index) {
    f.repeat_parameters(true);
    const Tensor words = embedded(f, model, ids);
    states.push_back(predicted(f, model, words, index > 0 ? states.back() : hidden, rotary, index));
  }
  if (!states.empty()) hidden = f.call("clone", {hidden});
  std::vector<Tensor> losses;
  losses.reserve(states.size());
  for (const Tensor state : states) {
    losses.push_back(head_loss(f, model, state, !losses.empty()));
  }
  return losses;
}

inline void write(ConfigFields& config, Head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  f.run_settings(model.run);
  if (const std::optional<model::Doubt> graphs = cuda_graphs(config)) f.doubt(*graphs);
  const DecoderSizes& s = model.sizes;
  if (std::find(model.mixes.begin(), model.mixes.end(), true) != model.mixes.end()) warn_of_routing(f);
  const Tensor ids = f.token_input("input_ids");
  Tensor hidden = embedded(f, model, ids);
  const std::int64_t turned = model.latent ? model.attention.rotary_width : model.rotary_width;
  Rotary rotary;
  {
    const InModule inside(f, "decoder", "TransformerBlock");
    rotary = turned > 0 ? rotary_tables(f, ids, turned) : Rotary{};
    hidden = stack(f, "layers", "TransformerLayer", s.layers, hidden,
                   [&](Tensor x, std::int64_t index) { return any_block(f, model, x, rotary, model.pattern, index); });
    hidden = norm(f, model, "final_layernorm", hidden, s.width);
  }
  std::vector<Tensor> losses = prediction_losses(f, model, ids, hidden, rotary);
  if (model.bert) losses.push_back(order_loss(f, model, hidden));
  if (model.bert) hidden = bert_head(f, model, hidden);
  Tensor loss = head_loss(f, model, hidden, model.predictions > 0);
  for (const Tensor other : losses) loss = f.add(loss, other);
}

inline constexpr Architecture kArchitecture = {
    .name = "megatron", .model_types = names<"megatron_gpt">, .write = write};

}  // namespace megatron

}  // namespace gpumem::architectures
