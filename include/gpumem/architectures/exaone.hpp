// Decoders that their publishers' own code holds: EXAONE 3 and 3.5, TeleChat 2.
//
// EXAONE 3: Llama's calls in GPT-2's modules.
// Source: modeling_exaone.py of LGAI-EXAONE/EXAONE-3.5-7.8B-Instruct.
#pragma once

#include <array>
#include <string>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/mixture.hpp"

namespace gpumem::architectures {

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
  t.heads({.query = "h.0.self_attention.query", .usual_width = 128});
  // The layer of keys and values has two of each.
  const std::int64_t both = t.value("h.0.self_attention.key_value", "out_features").value_or(0);
  if (both >= 2 * 128) t.set("num_key_value_heads", both / (2 * 128));
}

inline constexpr Architecture kArchitecture = {.name = "telechat",
                                               .model_types = names<"telechat", "telechat2">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree};

}  // namespace telechat

}  // namespace gpumem::architectures
