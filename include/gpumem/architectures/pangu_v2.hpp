// openPangu V2: compressed keys and values (MLA) behind learned ones that every token sees, norms before and behind
// each part, several residual streams, short convolutions over tokens on what attention compresses and makes (MoME),
// windows or an indexer in the layers that the config names, experts after the first layers. Source: openPangu's own
// code for transformers, modeling_pangu_v2_moe.py (PanguV2MoEAttention, PanguV2MoEMHC, PanguV2MoEDecoderLayer), and for
// its convolutions and indexer the PyTorch code of its vLLM adapter (PanguTorchMOMEConv, PanguTorchIndexer). Attention
// is written out. Layers that predict further tokens are not part of it.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/hyper_connections.hpp"
#include "gpumem/architectures/latent_attention.hpp"
#include "gpumem/architectures/mixture.hpp"

namespace gpumem::architectures {

namespace pangu_v2 {

inline constexpr std::string_view kNorm = "PanguV2MoERMSNorm";

struct Model {
  DecoderSizes sizes;
  LatentAttention attention;
  std::int64_t learned = 0;         ///< keys and values that are parameters
  std::int64_t kernel = 0;          ///< of the convolutions; 0: there are none
  std::vector<bool> chooses;        ///< by layer: an indexer chooses the keys
  std::vector<bool> normed_behind;  ///< by layer: a norm of all streams behind it
  Mixture mixture;
  std::int64_t shared = 1;
  std::int64_t dense = 0;
  bool corrects = false;
  HyperConnections streams;
};

/// The layers that a list of numbers names.
inline std::vector<bool> named_layers(ConfigFields& config, std::string_view field, std::int64_t layers) {
  std::vector<bool> named(static_cast<std::size_t>(layers), false);
  const core::JsonValue* list = config.find(field);
  if (list == nullptr || !list->is(core::JsonValue::Kind::list)) return named;
  for (const core::JsonValue& layer : list->items()) {
    const bool sound = layer.is(core::JsonValue::Kind::integer) && layer.integer() >= 0;
    // Those behind the last one predict further tokens.
    if (!sound) config.fail("must be a list of layers", field);
    else if (layer.integer() < layers) named[static_cast<std::size_t>(layer.integer())] = true;
  }
  return named;
}

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config);
  const DecoderSizes& s = model.sizes;
  model.attention = {.width = s.width,
                     .heads = s.heads,
                     .query_rank = config.size({"q_lora_rank"}),
                     .kv_rank = config.size({"kv_lora_rank"}),
                     .plain_width = config.size({"qk_nope_head_dim"}),
                     .rotary_width = config.size({"qk_rope_head_dim"}),
                     .value_width = config.size({"v_head_dim"}),
                     .dropout = s.attention_dropout,
                     .index_heads = config.size_or({"index_n_heads"}, 1),
                     .index_width = config.size_or({"index_head_dim"}, 128),
                     .class_name = "PanguV2MoEAttention",
                     .norm_class = std::string(kNorm)};
  check_latent_attention(config, model.attention, "qk_nope_head_dim");
  model.learned = config.count_or("param_sink_number", 0);
  model.kernel = config.flag("use_mome", false) ? config.count_or("router_sliding_window", 0) : 0;
  model.chooses = named_layers(config, "dsa_layers", s.layers);
  model.normed_behind = named_layers(config, "block_post_layernorm_idx", s.layers);
  model.mixture = {.experts = config.size({"n_routed_experts"}),
                   .per_token = config.size({"num_experts_per_tok"}),
                   .inner = config.size({"moe_intermediate_size"}),
                   .expert_class = "PanguV2MoEMLP"};
  check_mixture(config, model.mixture, s.layers, "n_routed_experts", "num_experts_per_tok");
  model.shared = config.size_or({"n_shared_experts"}, 1);
  model.dense = config.count_or("first_k_dense_replace", 0);
  model.corrects = config.flag("router_enable_expert_bias", false);
  model.streams = {.width = s.width,
                   .streams = config.flag("use_mhc", true) ? config.size_or({"mhc_num_stream"}, 1) : 1,
                   .rounds = config.size_or({"mhc_recur_norm"}, 1),
                   .class_name = "PanguV2MoEMHC",
                   .matrix = "phi",
                   .offsets = "branch_beta",
                   .factors = "branch_alpha",
                   .as_linear = true,
                   .in_float = true};
  constexpr std::int64_t kMost = ConfigFields::kLargestSize / 64;
  const bool wide = model.learned > kMost || model.kernel > 64 || model.streams.streams > 16 ||
                    model.streams.rounds > 64 || s.width > kMost || model.shared > kMost / model.mixture.inner ||
                    model.attention.index_heads > kMost / model.attention.index_width;
  if (wide) config.fail("is more than any model has", "hidden_size");
  check_rounds(config, model.streams, s.layers, "mhc_recur_norm");
  if (!config.flag("sandwich_norm", true)) config.fail("must be true", "sandwich_norm");
  if (!config.flag("mhc_use_gamma", true)) config.fail("must be true", "mhc_use_gamma");
  config.ignore({"index_topk", "norm_topk_prob", "num_nextn_predict_layers", "param_sink_with_value",
                 "rope_interleaved", "routed_scaling_factor", "sliding_window_list", "swa_layers",
                 "router_sliding_window"});
  return model;
}

inline Tensor norm(Forward& f, std::string_view name, Tensor input, std::int64_t width) {
  return f.rms_norm(name, input, width, kNorm);
}

/// A short convolution in float32, added to what it reads; it has no activation.
inline Tensor convolved(Forward& f, const Model& model, std::string_view name, Tensor input, std::int64_t channels) {
  if (model.kernel == 0) return input;
  const InModule inside(f, name, "PanguTorchMOMEConv");
  const Tensor wide = f.to(input, "float32");
  const Tensor rows = f.contiguous(f.permute(wide, {0, 2, 1}));
  const Tensor made = f.layer("conv", "Conv1d", "conv1d", {rows},
                              {{"in_channels", channels},
                               {"out_channels", channels},
                               {"groups", channels},
                               {"kernel_size", Sizes(1, model.kernel)},
                               {"padding", Sizes(1, model.kernel - 1)},
                               {"bias", false}});
  const Tensor kept = f.slice(made, 2, 0, model.kernel > 1 ? 1 - model.kernel : Forward::kRest);
  return f.as_type_of(f.add(f.permute(kept, {0, 2, 1}), wide), input);
}

/// The mask of an indexer, which runs without gradients: places alone leave it.
inline Tensor indexed(Forward& f, const Model& model, Tensor input, Tensor narrow) {
  const LatentAttention& a = model.attention;
  const InModule inside(f, "indexer", "PanguTorchIndexer");
  f.without_gradients(true);
  const Tensor tokens = f.detached(input);
  const Tensor query =
      f.linear("wq_b", f.detached(narrow), a.query_rank, a.index_heads * a.index_width, {.bias = false});
  const Tensor key = norm(f, "k_norm", f.linear("wk", tokens, a.width, a.index_width, {.bias = false}), a.index_width);
  const Tensor weights = f.linear("weights_proj", tokens, a.width, a.index_heads, {.bias = false});
  f.without_gradients(false);
  return f.call("indexed_mask", {query, key, weights}, {{"heads", a.index_heads}, {"width", a.index_width}});
}

/// Learned keys and values in front of the tokens', the same for each sample: compressed ones, which the tokens' own
/// layers widen.
inline Heads with_learned(Forward& f, const Model& model, Heads heads) {
  if (model.learned == 0) return heads;
  const LatentAttention& a = model.attention;
  const Tensor compressed = f.parameter("param_sink_compressed_kv", {model.learned, a.kv_rank});
  const Tensor turned = f.parameter("param_sink_k_pe", {model.learned, 1, a.rotary_width});
  f.repeat_parameters(true);
  const Tensor latent = norm(f, "kv_a_layernorm", compressed, a.kv_rank);
  const Tensor wide =
      f.linear("kv_b_proj", latent, a.kv_rank, a.heads * (a.plain_width + a.value_width), {.bias = false});
  f.repeat_parameters(false);
  const std::vector<Tensor> kv = f.split(wide, 1, {a.heads * a.plain_width, a.heads * a.value_width});
  const auto of_heads = [&](Tensor rows, std::int64_t width) {
    return f.permute(f.unflatten(rows, 1, {a.heads, width}), {1, 0, 2});
  };
  const std::vector<core::Dim> every = {core::Dim::fixed(-1), core::Dim::fixed(a.heads), core::Dim::fixed(-1)};
  const Tensor positions = f.permute(f.call("expand", {turned}, {{"shape", every}}), {1, 0, 2});
  const std::vector<core::Dim> samples = {core::Dim::batch(), core::Dim::fixed(-1), core::Dim::fixed(-1),
                                          core::Dim::fixed(-1)};
  const auto joined = [&](Tensor learned, Tensor of) {
    const Tensor one = f.call("unsqueeze", {learned}, {{"dim", std::int64_t{0}}});
    return f.concatenate({f.call("expand", {one}, {{"shape", samples}}), of}, 2);
  };
  heads.key = joined(f.concatenate({of_heads(kv[0], a.plain_width), positions}, 2), heads.key);
  heads.value = joined(of_heads(kv[1], a.value_width), heads.value);
  return heads;
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, const Rotary& rotary, bool chooses) {
  const LatentAttention& a = model.attention;
  const InModule inside(f, "self_attn", a.class_name);
  const Linear plain = {.bias = false};
  const Linear split = {.bias = false, .split = Split::columns};
  const Tensor made =
      convolved(f, model, "qa_conv", f.linear("q_a_proj", input, a.width, a.query_rank, plain), a.query_rank);
  const Tensor narrow = norm(f, "q_a_layernorm", made, a.query_rank);
  const Tensor flat = f.linear("q_b_proj", narrow, a.query_rank, a.heads * a.key_width(), split);
  const std::vector<Tensor> query = f.split(split_heads(f, flat, a.key_width()), 3, {a.plain_width, a.rotary_width});
  const Tensor all = f.linear("kv_a_proj_with_mqa", input, a.width, a.kv_rank + a.rotary_width, plain);
  const std::vector<Tensor> parts = f.split(all, 2, {a.kv_rank, a.rotary_width});
  const Tensor latent =
      norm(f, "kv_a_layernorm", convolved(f, model, "compresskv_conv", parts[0], a.kv_rank), a.kv_rank);
  const Tensor wide = f.linear("kv_b_proj", latent, a.kv_rank, a.heads * (a.plain_width + a.value_width), split);
  const std::vector<Tensor> kv = f.split(wide, 2, {a.heads * a.plain_width, a.heads * a.value_width});
  const Tensor one = f.expand_heads(f.call("unsqueeze", {parts[1]}, {{"dim", std::int64_t{1}}}), {-1, a.heads, -1, -1});
  const Tensor turned_query = rotate(f, query[1], rotary, a.rotary_width);
  const Tensor turned_key = rotate(f, one, rotary, a.rotary_width);
  const Heads heads = {f.concatenate({query[0], turned_query}, 3),
                       f.concatenate({split_heads(f, kv[0], a.plain_width), turned_key}, 3),
                       split_heads(f, kv[1], a.value_width)};
  f.cache(heads.key);
  f.cache(heads.value);
  if (chooses) (void)indexed(f, model, input, narrow);
  const Heads ready = with_learned(f, model, heads);
  const Tensor mixed = merge_heads(f, f.call("scaled_dot_product_attention", {ready.query, ready.key, ready.value},
                                             {{"dropout_p", a.dropout}, {"backend", std::string("math")}}));
  const std::int64_t out = a.heads * a.value_width;
  return f.linear("o_proj", convolved(f, model, "o_conv", mixed, out), out, a.width,
                  {.bias = false, .split = Split::rows});
}

inline Tensor mixture(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "mlp", "PanguV2MoESparseMoeBlock");
  const Mixture& m = model.mixture;
  const std::int64_t width = model.sizes.width;
  const Tensor scores = f.to(f.linear("gate", input, width, m.experts, {.bias = false}), "float32");
  if (model.corrects) (void)f.parameter("e_score_correction_bias", {m.experts});
  const Tensor weights = f.scale(f.slice(f.call("sigmoid", {scores}), 2, 0, m.per_token));
  const auto expert = [&](Tensor rows) { return gated_layer(f, width, m.inner, model.sizes.activation, rows); };
  const Tensor sum = add_experts(f, m, input, f.as_type_of(weights, input), f.call("token_zeros", {input}), expert);
  const InModule shared(f, "shared_experts", "PanguV2MoEMLP");
  return f.add(sum, gated_layer(f, width, model.shared * m.inner, model.sizes.activation, input));
}

/// `part` between its norms, in the streams or added to the one that there is.
template <typename Part>
Tensor around(Forward& f, const Model& model, std::string_view streams_name, std::string_view before,
              std::string_view behind, Tensor streams, Part part) {
  const std::int64_t width = model.sizes.width;
  const bool mixes = model.streams.streams > 1;
  Mixed mixed;
  if (mixes) mixed = enter_streams(f, model.streams, streams_name, streams);
  const Tensor made = norm(f, behind, part(norm(f, before, mixes ? mixed.input : streams, width)), width);
  return mixes ? leave_streams(f, model.streams, mixed, made, streams) : f.add(streams, made);
}

inline Tensor block(Forward& f, const Model& model, Tensor streams, const Rotary& rotary, std::int64_t index) {
  const auto at = static_cast<std::size_t>(index);
  const Tensor attended = around(f, model, "attn_mhc_module", "input_layernorm", "post_attention_layernorm", streams,
                                 [&](Tensor input) { return attention(f, model, input, rotary, model.chooses[at]); });
  const Tensor fed =
      around(f, model, "mlp_mhc_module", "pre_mlp_layernorm", "post_mlp_layernorm", attended, [&](Tensor input) {
        return index >= model.dense ? mixture(f, model, input)
                                    : gated_feed_forward(f, model.sizes, input, "PanguV2MoEMLP");
      });
  const std::int64_t count = model.streams.streams;
  if (!model.normed_behind[at] || count == 1) return fed;
  const Tensor normed = norm(f, "block_post_layernorm", f.flatten(fed, 2, 3), count * model.sizes.width);
  return f.unflatten(normed, 2, {count, model.sizes.width});
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  warn_of_routing(f);
  f.doubt({model::Doubt::About::model_type,
           "no library has openPangu V2's training code: convolutions and indexer are taken from an inference port"});
  decoder_model(f, config, s, head, {.class_name = "PanguV2MoEModel"}, [&](Tensor ids, Tensor hidden) {
    const bool mixes = model.streams.streams > 1;
    const Rotary rotary = rotary_tables(f, ids, model.attention.rotary_width);
    if (mixes) hidden = first_streams(f, hidden, model.streams.streams, false);
    hidden = stack(f, "layers", "PanguV2MoEDecoderLayer", s.layers, hidden,
                   [&](Tensor x, std::int64_t index) { return block(f, model, x, rotary, index); });
    HyperConnections last = model.streams;
    last.offsets = "branch_beta_pre";
    last.factors = "branch_alpha_pre";
    if (mixes) hidden = last_stream(f, last, "merge_mhc_module", "PanguV2MoEMHC", hidden);
    return norm(f, "norm", hidden, s.width);
  });
}

inline constexpr Architecture kArchitecture = {
    .name = "pangu_v2", .model_types = names<"pangu_v2_moe">, .write = write};

}  // namespace pangu_v2

// Decoders that their publishers' own code holds: EXAONE 3 and 3.5, TeleChat 2.
//
// EXAONE 3: Llama's calls in GPT-2's modules.
// Source: modeling_exaone.py of LGAI-EXAONE/EXAONE-3.5-7.8B-Instruct.

namespace exaone {

/// The names that both families have for the fields of a decoder.
inline DecoderSizes sizes_of(ConfigFields& config, std::string_view layers, std::string_view heads,
                             std::string_view inner) {
  DecoderSizes s;
  s.vocabulary = config.size({"vocab_size"});
  s.width = config.size({"hidden_size"});
  s.layers = config.layers({layers, "num_hidden_layers"});
  s.heads = config.size({heads, "num_attention_heads"});
  s.kv_heads = config.size_or({"num_key_value_heads"}, s.heads);
  s.inner = config.size({inner, "intermediate_size"});
  s.activation = config.text({"activation_function", "hidden_act"}, "silu");
  s.attention_dropout = config.number({"attention_dropout"}, 0.0);
  s.tied = config.flag("tie_word_embeddings", false);
  s.head_width = config.size_or({"head_dim"}, std::max<std::int64_t>(s.width / s.heads, 1));
  if (s.width % s.heads != 0) config.fail("does not divide hidden_size", heads);
  if (s.heads % s.kv_heads != 0) config.fail("does not divide the heads", "num_key_value_heads");
  return s;
}

inline Tensor block(Forward& f, const DecoderSizes& s, Tensor input, const Rotary& rotary) {
  const Linear plain = {.bias = false};
  const Tensor normed = f.rms_norm("ln_1", input, s.width, "ExaoneRMSNorm");
  Tensor mixed = 0;
  {
    const InModule outer(f, "attn", "ExaoneAttention");
    const InModule inside(f, "attention", "ExaoneSdpaAttention");
    const auto [query, key, value] = project_heads(f, s, normed, plain);
    const std::array<Tensor, 2> turned = turn_heads(f, query, key, rotary, s.head_width, Turning::halves);
    const Tensor attended = attend_cached(f, s, {turned[0], turned[1], value});
    mixed = f.linear("out_proj", attended, s.heads * s.head_width, s.width, {.bias = false, .split = Split::rows});
  }
  const Tensor attended = f.add(input, mixed);
  const Tensor again = f.rms_norm("ln_2", attended, s.width, "ExaoneRMSNorm");
  const InModule inside(f, "mlp", "ExaoneGatedMLP");
  const Linear columns = {.bias = false, .split = Split::columns};
  const Tensor open = f.activation("act", f.linear("c_fc_0", again, s.width, s.inner, columns), s.activation);
  const Tensor up = f.linear("c_fc_1", again, s.width, s.inner, columns);
  const Linear rows = {.bias = false, .split = Split::rows};
  return f.add(attended, f.linear("c_proj", f.multiply(open, up), s.inner, s.width, rows));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const DecoderSizes s = sizes_of(config, "num_layers", "num_attention_heads", "intermediate_size");
  const double dropout = config.number({"embed_dropout"}, 0.0);
  if (!config.status()) return;
  const DecoderBody body = {.module = "transformer",
                            .class_name = "ExaoneModel",
                            .embedding = "wte",
                            .head = {.floats = true}};  // logits.float(), whatever the release
  decoder_model(f, config, s, head, body, [&](Tensor ids, Tensor hidden) {
    hidden = f.dropout("drop", hidden, dropout);
    const Rotary rotary = rotary_tables(f, ids, s.head_width);
    hidden =
        stack(f, "h", "ExaoneBlock", s.layers, hidden, [&](Tensor x, std::int64_t) { return block(f, s, x, rotary); });
    return f.rms_norm("ln_f", hidden, s.width, "ExaoneRMSNorm");
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>(
    {{.prefix = "Exaone", .model_type = "exaone", .body = "transformer", .tied_up_to = 2560}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("wte", "h");
  t.labels();
  t.size("intermediate_size", "h.0.mlp.c_fc_0", "out_features");
  t.heads({.query = "h.0.attn.attention.q_proj", .key = "h.0.attn.attention.k_proj", .usual_width = 128});
}

inline constexpr Architecture kArchitecture = {
    .name = "exaone", .model_types = names<"exaone">, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace exaone

// TeleChat and TeleChat 2: keys and values of one layer, biases on the last layer of each half of a block.
// Source: modeling_telechat2.py of Tele-AI/TeleChat2-7B-32K; flash_attn is taken to be installed.

namespace telechat {

inline Tensor block(Forward& f, const DecoderSizes& s, Tensor input, const Rotary& rotary, double dropout) {
  const std::int64_t queries = s.heads * s.head_width;
  const std::int64_t keys = s.kv_heads * s.head_width;
  const Tensor normed = f.rms_norm("input_layernorm", input, s.width, "MixedFusedRMSNorm");
  Tensor mixed = 0;
  {
    const InModule inside(f, "self_attention", "TelechatAttention");
    const Linear columns = {.bias = false, .split = Split::columns};
    const Tensor query = split_heads(f, f.linear("query", normed, s.width, queries, columns), s.head_width);
    const Tensor both = f.linear("key_value", normed, s.width, 2 * keys, columns);
    // Each head's key lies beside its value.
    const std::vector<Tensor> parts = f.split(split_heads(f, both, 2 * s.head_width), 3, {s.head_width, s.head_width});
    const std::array<Tensor, 2> turned = turn_heads(f, query, parts[0], rotary, s.head_width, Turning::halves);
    const Tensor attended = attend_cached(f, s, {turned[0], turned[1], parts[1]});
    mixed = f.linear("dense", attended, queries, s.width, {.split = Split::rows});
  }
  const Tensor attended = f.add(input, f.dropout("dropout", mixed, dropout));
  const Tensor again = f.rms_norm("post_attention_layernorm", attended, s.width, "MixedFusedRMSNorm");
  const InModule inside(f, "mlp", "TelechatMLP");
  const Linear columns = {.bias = false, .split = Split::columns};
  const Tensor open = f.call("silu", {f.linear("gate_proj", again, s.width, s.inner, columns)});
  const Tensor up = f.linear("up_proj", again, s.width, s.inner, columns);
  const Tensor fed = f.linear("down_proj", f.multiply(open, up), s.inner, s.width, {.split = Split::rows});
  return f.add(attended, f.dropout("dropout", fed, dropout));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const DecoderSizes s = exaone::sizes_of(config, "n_layer", "n_head", "ffn_hidden_size");
  const double dropout = config.number({"hidden_dropout"}, 0.0);
  if (config.flag("embed_layernorm", false)) config.fail("is false in the published models", "embed_layernorm");
  config.ignore({"base_seqlen", "training_seqlen", "logn", "flash_attn", "apply_residual_connection_post_layernorm",
                 "attention_softmax_in_fp32", "bias_dropout_fusion", "masked_softmax_fusion", "offset_alibi",
                 "seq_length", "slow_but_exact", "skip_bias_add", "skip_bias_add_qkv", "unk_token_id"});
  if (!config.status()) return;
  const DecoderBody body = {.module = "transformer", .class_name = "TelechatModel", .embedding = "word_embeddings"};
  decoder_model(f, config, s, head, body, [&](Tensor ids, Tensor hidden) {
    const Rotary rotary = rotary_tables(f, ids, s.head_width);
    hidden = stack(f, "h", "TelechatBlock", s.layers, hidden,
                   [&](Tensor x, std::int64_t) { return block(f, s, x, rotary, dropout); });
    return f.rms_norm("ln_f", hidden, s.width, "MixedFusedRMSNorm");
  });
}

inline constexpr auto kClasses =
    std::to_array<ModelClass>({{.prefix = "TeleChat2", .model_type = "telechat", .body = "transformer"},
                               {.prefix = "Telechat", .model_type = "telechat", .body = "transformer"},
                               {.prefix = "TeleChat", .model_type = "telechat", .body = "transformer"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("word_embeddings", "h");
  t.labels();
  t.size("intermediate_size", "h.0.mlp.gate_proj", "out_features");
  constexpr std::int64_t kHead = 128;
  t.heads({.query = "h.0.self_attention.query", .usual_width = kHead});
  // The layer of keys and values has two of each.
  const std::int64_t both = t.value("h.0.self_attention.key_value", "out_features").value_or(0);
  if (both >= 2 * kHead) t.set("num_key_value_heads", both / (2 * kHead));
}

inline constexpr Architecture kArchitecture = {.name = "telechat",
                                               .model_types = names<"telechat", "telechat2">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree};

}  // namespace telechat

}  // namespace gpumem::architectures
