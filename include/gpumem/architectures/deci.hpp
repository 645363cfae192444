// Llamas of code that is not transformers': DeciLM, Baichuan and ChatGLM.
//
// DeciLM (Llama-Nemotron Super and Ultra): Llamas whose blocks were chosen one by one: groups of keys and widths of the
// feed-forward layer differ, and a block may lack either part, or have one linear layer in its place.
// Source: modeling_decilm.py and configuration_decilm.py of Llama-3_3-Nemotron-Super-49B-v1 (block_configs,
// _ffn_mult_to_intermediate_size); arXiv:2411.19146.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

namespace deci {

/// What a block has in a place.
enum class Part : std::uint8_t { whole, linear, none };

struct Block {
  Part attention = Part::whole;
  Part feed_forward = Part::whole;
  std::int64_t kv_heads = 1;
  std::int64_t inner = 1;
};

struct Model {
  DecoderSizes sizes;
  std::vector<Block> blocks;
  bool attention_bias = false;
  bool mlp_bias = false;
};

/// A field of an object within the config; null: it is not there, or is null.
inline const core::JsonValue* field(const core::JsonValue& object, std::string_view name) {
  if (!object.is(core::JsonValue::Kind::object)) return nullptr;
  for (const core::JsonValue& each : object.items()) {
    if (each.key() == name) return each.is(core::JsonValue::Kind::null) ? nullptr : &each;
  }
  return nullptr;
}

inline bool flagged(const core::JsonValue& object, std::string_view name) {
  const core::JsonValue* value = field(object, name);
  return value != nullptr && value->is(core::JsonValue::Kind::boolean) && value->boolean();
}

inline Part part_of(const core::JsonValue& object) {
  if (flagged(object, "no_op")) return Part::none;
  return flagged(object, "replace_with_linear") ? Part::linear : Part::whole;
}

/// A size within the config; 0: it is not there, or none that a config may have.
inline std::int64_t size_in(const core::JsonValue& object, std::string_view name) {
  const core::JsonValue* value = field(object, name);
  const bool whole = value != nullptr && value->is(core::JsonValue::Kind::integer);
  const std::int64_t size = whole ? value->integer() : 0;
  return size >= 1 && size <= ConfigFields::kLargestSize ? size : 0;
}

/// Two thirds of so many widths, in whole multiples of 256.
inline std::int64_t inner_of(const core::JsonValue& object, std::int64_t width) {
  if (const std::int64_t given = size_in(object, "intermediate_size"); given > 0) return given;
  constexpr std::int64_t kMultiple = 256;
  constexpr double kMost = 64.0;
  const core::JsonValue* times = field(object, "ffn_mult");
  if (times == nullptr) return 0;
  const double factor = times->is(core::JsonValue::Kind::real)      ? times->real()
                        : times->is(core::JsonValue::Kind::integer) ? static_cast<double>(times->integer())
                                                                    : 0.0;
  if (!(factor > 0.0) || factor > kMost) return 0;
  const auto whole = static_cast<std::int64_t>(2.0 * factor * static_cast<double>(width) / 3.0);
  const std::int64_t inner = (whole + kMultiple - 1) / kMultiple * kMultiple;
  return inner <= ConfigFields::kLargestSize ? inner : 0;
}

inline Block read_block(ConfigFields& config, const core::JsonValue& entry, const DecoderSizes& sizes) {
  Block block;
  const core::JsonValue* attention = field(entry, "attention");
  const core::JsonValue* fed = field(entry, "ffn");
  if (attention == nullptr || fed == nullptr) {
    config.fail("must say each block's attention and ffn", "block_configs");
    return block;
  }
  block.attention = part_of(*attention);
  block.feed_forward = part_of(*fed);
  const std::int64_t group = size_in(*attention, "n_heads_in_group");
  block.kv_heads = size_in(*attention, "num_key_value_heads");
  if (block.kv_heads == 0 && group > 0) block.kv_heads = sizes.heads / group;
  block.inner = inner_of(*fed, sizes.width);
  const bool heads = block.kv_heads > 0 && sizes.heads % block.kv_heads == 0;
  if (block.attention == Part::whole && !heads) config.fail("has no groups that divide the heads", "block_configs");
  if (block.feed_forward == Part::whole && block.inner == 0) config.fail("has no ffn_mult", "block_configs");
  for (const std::string_view other : {"window_length", "num_sink_tokens", "sparsify", "mamba", "llama4"}) {
    if (field(*attention, other) != nullptr) config.fail("has attention that is not known", "block_configs");
  }
  if (field(*fed, "moe") != nullptr) config.fail("has experts, which are not known", "block_configs");
  return block;
}

inline Model read(ConfigFields& config) {
  Model model;
  config.ignore({"intermediate_size", "num_key_value_heads", "num_key_value_heads_per_layer"});
  DecoderSizes& sizes = model.sizes;
  sizes.vocabulary = config.size({"vocab_size"});
  sizes.width = config.size({"hidden_size"});
  sizes.layers = config.layers({"num_hidden_layers"});
  sizes.heads = config.size({"num_attention_heads"});
  sizes.head_width = config.size_or({"head_dim"}, std::max<std::int64_t>(sizes.width / sizes.heads, 1));
  if (!config.has("head_dim") && sizes.width % sizes.heads != 0) {
    config.fail("does not divide hidden_size", "num_attention_heads");
  }
  sizes.attention_dropout = config.number({"attention_dropout"}, 0.0);
  sizes.activation = config.text({"hidden_act"}, "silu");
  sizes.tied = config.flag("tie_word_embeddings", false);
  if (sizes.heads * sizes.head_width > ConfigFields::kLargestSize) config.fail("makes heads too wide", "head_dim");
  model.attention_bias = config.flag("attention_bias", false);
  model.mlp_bias = config.flag("mlp_bias", false);
  const core::JsonValue* blocks = config.find("block_configs");
  const bool listed = blocks != nullptr && blocks->is(core::JsonValue::Kind::list);
  if (!listed || static_cast<std::int64_t>(blocks->size()) != sizes.layers) {
    config.fail("must say of each layer what it is", "block_configs");
    return model;
  }
  for (const core::JsonValue& entry : blocks->items()) model.blocks.push_back(read_block(config, entry, sizes));
  return model;
}

inline Tensor attended(Forward& f, const Model& model, const Block& block, Tensor input, const Rotary& rotary) {
  if (block.attention == Part::none) return input;
  const Tensor normed = f.rms_norm("input_layernorm", input, model.sizes.width, "DeciLMRMSNorm");
  if (block.attention == Part::linear) {
    const InModule inside(f, "self_attn", "DeciLMLinearAttention");
    return f.add(input, f.linear("linear_attn", normed, model.sizes.width, model.sizes.width, {.bias = false}));
  }
  DecoderSizes sizes = model.sizes;
  sizes.kv_heads = block.kv_heads;
  const RotaryAttention options = {
      .class_name = "DeciLMAttention", .input_bias = model.attention_bias, .output_bias = model.attention_bias};
  return f.add(input, rotary_attention(f, sizes, normed, rotary, options));
}

inline Tensor fed(Forward& f, const Model& model, const Block& block, Tensor input) {
  if (block.feed_forward == Part::none) return input;
  const Tensor normed = f.rms_norm("post_attention_layernorm", input, model.sizes.width, "DeciLMRMSNorm");
  if (block.feed_forward == Part::linear) {
    const InModule inside(f, "mlp", "DeciLMLinearMLP");
    return f.add(input, f.linear("linear_mlp", normed, model.sizes.width, model.sizes.width, {.bias = false}));
  }
  DecoderSizes sizes = model.sizes;
  sizes.inner = block.inner;
  return f.add(input, gated_feed_forward(f, sizes, normed, "DeciLMMLP", model.mlp_bias));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  decoder_model(f, config, s, head, {.class_name = "DeciLMModel"}, [&](Tensor ids, Tensor hidden) {
    const Rotary rotary = rotary_tables(f, ids, s.head_width);
    hidden = stack(f, "layers", "DeciLMDecoderLayer", s.layers, hidden, [&](Tensor x, std::int64_t index) {
      const Block& block = model.blocks[static_cast<std::size_t>(index)];
      return fed(f, model, block, attended(f, model, block, x, rotary));
    });
    return f.rms_norm("norm", hidden, s.width, "DeciLMRMSNorm");
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"DeciLM", "nemotron-nas", "model"}});

/// What a printed block shows, as an entry of block_configs. The head's width is that of the published models.
inline std::string block_entry(const TreeFields& t, const std::string& block, std::int64_t each) {
  const auto out = [&](std::string_view name) {
    return t.value(block + std::string(name), "out_features").value_or(0);
  };
  const auto part = [](bool whole, bool linear) {
    return std::string(whole ? "" : linear ? "\"replace_with_linear\": true, " : "\"no_op\": true, ");
  };
  const std::int64_t keys = out("self_attn.k_proj");
  const std::int64_t inner = out("mlp.gate_proj");
  return "{\"attention\": {" + part(keys > 0, t.has(block + "self_attn.linear_attn")) +
         "\"num_key_value_heads\": " + std::to_string(keys / each) + "}, \"ffn\": {" +
         part(inner > 0, t.has(block + "mlp.linear_mlp")) + "\"intermediate_size\": " + std::to_string(inner) + "}}";
}

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  constexpr std::int64_t kHead = 128;
  std::string blocks;
  std::int64_t queries = 0;
  for (std::int64_t layer = 0; layer < t.count_of("layers"); ++layer) {
    const std::string block = "layers." + std::to_string(layer) + ".";
    queries = std::max(queries, t.value(block + "self_attn.q_proj", "out_features").value_or(0));
    blocks += (blocks.empty() ? "" : ", ") + block_entry(t, block, kHead);
  }
  t.set_text("block_configs", "[" + blocks + "]");
  t.set("num_attention_heads", std::max<std::int64_t>(queries / kHead, 1));
  t.set("head_dim", kHead);
  t.assume("heads of width 128, as published models have");
  t.labels();
}

inline constexpr Architecture kArchitecture = {.name = "deci",
                                               .model_types = names<"nemotron-nas", "deci">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree};

}  // namespace deci

// Baichuan and Baichuan 2: Llamas whose queries, keys and values are one projection. Those of 7 B have rotary positions
// in float32; those of 13 B a bias that falls with the distance (ALiBi) and attention written out. The head of
// Baichuan 2 norms its weight in each pass.
// Source: baichuan-inc/Baichuan2-7B-Base and Baichuan2-13B-Base, modeling_baichuan.py: Attention, BaichuanAttention,
// get_alibi_mask, NormHead; baichuan-inc/Baichuan-7B and Baichuan-13B-Base, the same file.

namespace baichuan {

struct Model {
  DecoderSizes sizes;
  bool turns = true;  ///< rotary positions; else ALiBi
  bool norms_weight = false;

  [[nodiscard]] std::string_view attention_class() const { return turns ? "Attention" : "BaichuanAttention"; }
  [[nodiscard]] std::string_view block_class() const { return turns ? "DecoderLayer" : "BaichuanLayer"; }
};

/// Only the models of 7 B have a number of positions, only Baichuan 2 a weight of its z-loss.
inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config);
  model.turns = config.find("max_position_embeddings") != nullptr;
  model.norms_weight = config.find("z_loss_weight") != nullptr;
  config.ignore({"model_max_length"});
  return model;
}

/// What one pass computes of positions alone.
struct Positions {
  Tensor ids = 0;
  Tensor mask = 0;  ///< with ALiBi [N, heads, S, S]
};

/// Of float32 copies, by tables that each layer picks anew.
inline std::array<Tensor, 2> turned(Forward& f, const Model& model, Tensor query, Tensor key, Tensor ids) {
  const std::int64_t each = model.sizes.head_width;
  const auto table = [&] {
    return f.call("rotary_table", {ids}, {{"width", each}, {"dtype", std::string("float32")}});
  };
  const Tensor cosines = table();
  const Rotary rotary = {.cosines = cosines, .sines = table(), .width = each};
  const auto turn = [&](Tensor heads) { return f.as_type_of(rotate(f, f.to(heads, "float32"), rotary, each), heads); };
  const Tensor turned_query = turn(query);
  return {turned_query, turn(key)};
}

/// Scores, their sum with the mask, and the weights in the model's own type.
inline Tensor attended_by_distance(Forward& f, const Heads& heads, Tensor mask) {
  const Tensor scores = f.scale(f.call("matmul", {heads.query, f.permute(heads.key, {0, 1, 3, 2})}));
  const Tensor bounded = f.call("clamp", {f.add(scores, mask)});
  return merge_heads(f, f.call("matmul", {f.call("softmax", {bounded}), heads.value}));
}

/// Tensor parallel ranks each have all of it: no framework says how they share W_pack, whose rows are queries, keys and
/// values one after the other.
inline Tensor attention(Forward& f, const Model& model, Tensor input, const Positions& positions) {
  const InModule inside(f, "self_attn", model.attention_class());
  const DecoderSizes& s = model.sizes;
  const Tensor packed = f.linear("W_pack", input, s.width, 3 * s.width, {.bias = false});
  const Tensor parted = f.unflatten(packed, 2, {3, s.width});
  const auto heads = [&](std::int64_t part) { return split_heads(f, f.select(parted, 2, part), s.head_width); };
  Heads made = {heads(0), heads(1), heads(2)};
  if (model.turns) {
    const std::array<Tensor, 2> both = turned(f, model, made.query, made.key, positions.ids);
    made = {both[0], both[1], made.value};
  }
  f.cache(made.key);
  f.cache(made.value);
  const Tensor attended = model.turns ? attend(f, made, {.copies = false, .mask = positions.mask})
                                      : attended_by_distance(f, made, positions.mask);
  const Tensor output = f.linear("o_proj", attended, s.width, s.width, {.bias = false});
  return f.leave_function(output, {packed, made.query, made.key, input});
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Positions& positions) {
  const std::int64_t width = model.sizes.width;
  const Tensor attended =
      f.add(input, attention(f, model, f.rms_norm("input_layernorm", input, width, "RMSNorm"), positions));
  const Tensor again = f.rms_norm("post_attention_layernorm", attended, width, "RMSNorm");
  return f.add(attended, gated_feed_forward(f, model.sizes, again, "MLP"));
}

/// The mask of padding, and with ALiBi its sum with the biases of all heads.
inline Tensor mask_of(Forward& f, const Model& model, Tensor ids) {
  if (model.turns) return f.call("causal_mask", {ids}, {{"padded", true}});
  const Tensor distances = f.call("rotary_table", {ids}, {{"width", model.sizes.heads}});
  const Tensor biases = f.add(f.call("causal_mask", {ids}), f.permute(distances, {0, 3, 1, 2}));
  return f.add(f.call("causal_mask", {ids}, {{"padded", true}}), biases);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  f.doubt({model::Doubt::About::kernels,
           "xformers is taken not to be installed; with it Baichuan's attention is a kernel that keeps less", false});
  const DecoderBody body = {.class_name = "BaichuanModel", .head = {.norms_weight = model.norms_weight}};
  decoder_model(f, config, s, head, body, [&](Tensor ids, Tensor hidden) {
    const Positions positions = {ids, mask_of(f, model, ids)};
    hidden = stack(f, "layers", model.block_class(), s.layers, hidden,
                   [&](Tensor x, std::int64_t) { return block(f, model, x, positions); });
    return f.leave_function(f.rms_norm("norm", hidden, s.width, "RMSNorm"), {positions.mask});
  });
}

inline constexpr auto kClasses =
    std::to_array<ModelClass>({{"Baichuan", "baichuan", "model"}, {"BaiChuan", "baichuan", "model"}});
/// Published models, by width.
inline constexpr auto kPublished = std::to_array<PublishedHeads>({{4096, 32}, {5120, 40}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const std::int64_t width = t.body("embed_tokens", "layers");
  t.size("intermediate_size", "layers.0.mlp.gate_proj", "out_features");
  t.labels();
  if (t.has("layers.0.self_attn.rotary_emb") || width < 5120) t.set("max_position_embeddings", 4096);
  if (!t.value("/lm_head", "out_features")) t.set("z_loss_weight", 0);  // NormHead prints no sizes
  t.heads_of_width({.published = kPublished, .usual_width = 128}, width);
}

inline constexpr Architecture kArchitecture = {
    .name = "baichuan", .model_types = names<"baichuan">, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace baichuan

// ChatGLM2, ChatGLM3 and GLM-4-9B as their own code has them: queries, keys and values in one projection, half of each
// head turned in pairs, gate and values in another; tables and norms as the models of transformers that followed.
// Source: THUDM/chatglm3-6b and glm-4-9b, modeling_chatglm.py: SelfAttention, CoreAttention, MLP, GLMBlock,
// ChatGLMForConditionalGeneration. ChatGLM's first model, whose fields are others, is not known.

namespace chatglm {

inline DecoderSizes read(ConfigFields& config) {
  DecoderSizes s;
  s.vocabulary = config.size({"padded_vocab_size", "vocab_size"});
  s.width = config.size({"hidden_size"});
  s.layers = config.layers({"num_layers", "num_hidden_layers"});
  s.heads = config.size({"num_attention_heads"});
  s.head_width = config.size_or({"kv_channels"}, s.heads > 0 ? std::max<std::int64_t>(s.width / s.heads, 1) : 1);
  s.kv_heads = config.flag("multi_query_attention", false) ? config.size({"multi_query_group_num"}) : s.heads;
  s.inner = config.size({"ffn_hidden_size"});
  s.activation = "silu";
  s.attention_dropout = config.number({"attention_dropout"}, 0.0);
  if (s.kv_heads > 0 && s.heads % s.kv_heads != 0)
    config.fail("does not divide num_attention_heads", "multi_query_group_num");
  if (!config.flag("rmsnorm", true)) config.fail("other than true is not known", "rmsnorm");
  if (config.flag("fp32_residual_connection", false)) config.fail("is not known", "fp32_residual_connection");
  if (config.flag("apply_residual_connection_post_layernorm", false)) {
    config.fail("is not known", "apply_residual_connection_post_layernorm");
  }
  config.ignore({"apply_query_key_layer_scaling", "attention_softmax_in_fp32", "bias_dropout_fusion", "hidden_dropout",
                 "layernorm_epsilon", "original_rope", "post_layer_norm", "pre_seq_len", "prefix_projection",
                 "quantization_bit", "rope_ratio", "seq_length", "interleaved_qkv", "classifier_dropout", "use_cache",
                 "vocab_size", "num_hidden_layers"});
  return s;
}

inline Tensor attention(Forward& f, const DecoderSizes& s, Tensor input, const Rotary& rotary, bool bias, bool plain) {
  const InModule inside(f, "self_attention", "SelfAttention");
  const std::int64_t queries = s.heads * s.head_width;
  const std::int64_t keys = s.kv_heads * s.head_width;
  const Tensor packed = f.linear("query_key_value", input, s.width, queries + 2 * keys, {.bias = bias});
  const std::vector<Tensor> parts = f.split(packed, 2, {queries, keys, keys});
  const auto heads = [&](std::size_t part) { return split_heads(f, parts[part], s.head_width); };
  const auto turn = [&](Tensor of) { return f.contiguous(rotate(f, of, rotary, s.head_width)); };
  const Tensor attended = attend_cached(f, s, {turn(heads(0)), turn(heads(1)), heads(2)});
  return f.linear("dense", attended, queries, s.width, {.bias = plain});
}

inline Tensor fed(Forward& f, const DecoderSizes& s, Tensor input, bool bias) {
  const InModule inside(f, "mlp", "MLP");
  const Tensor wide = f.linear("dense_h_to_4h", input, s.width, 2 * s.inner, {.bias = bias});
  const std::vector<Tensor> halves = f.split(wide, 2, {s.inner, s.inner});
  const Tensor gated = f.multiply(f.call("silu", {halves[0]}), halves[1]);
  return f.linear("dense_4h_to_h", gated, s.inner, s.width, {.bias = bias});
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const DecoderSizes s = read(config);
  const bool plain = config.flag("add_bias_linear", false);
  const bool bias = config.flag("add_qkv_bias", false) || plain;
  // Configs name the body's class, and mean the whole model: auto_map gives the latter for both.
  if (head == Head::none) head = Head::causal_lm;
  if (head != Head::causal_lm) config.fail("the head of the class is not known; ForConditionalGeneration is");
  if (!config.status()) return;
  Tensor hidden = 0;
  {
    const InModule inside(f, "transformer", "ChatGLMModel");
    const Tensor ids = token_ids(f);
    {
      const InModule words(f, "embedding", "Embedding");
      hidden = f.embedding("word_embeddings", ids, s.vocabulary, s.width);
    }
    const Rotary rotary = rotary_tables(f, ids, std::max<std::int64_t>(s.head_width / 2, 1));
    const InModule encoder(f, "encoder", "GLMTransformer");
    hidden = stack(f, "layers", "GLMBlock", s.layers, hidden, [&](Tensor x, std::int64_t) {
      const Tensor normed = f.rms_norm("input_layernorm", x, s.width, "RMSNorm");
      const Tensor sum = f.add(x, attention(f, s, normed, rotary, bias, plain));
      return f.add(sum, fed(f, s, f.rms_norm("post_attention_layernorm", sum, s.width, "RMSNorm"), plain));
    });
    hidden = f.rms_norm("final_layernorm", hidden, s.width, "RMSNorm");
  }
  const InModule outer(f, "transformer", "ChatGLMModel");
  decoder_head(f, config, s, head, hidden, {.name = "output_layer", .retyped = true});
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"ChatGLM", "chatglm", "transformer"}});

/// What print(model) shows. The projection of queries, keys and values is as wide as all of them.
inline void read_tree(TreeFields& t) {
  constexpr std::int64_t kHead = 128;
  constexpr std::string_view kAttention = "encoder.layers.0.self_attention";
  const std::string attention(kAttention);
  t.size("padded_vocab_size", "embedding.word_embeddings", "num_embeddings");
  t.size("hidden_size", "embedding.word_embeddings", "embedding_dim");
  t.count("num_layers", "encoder.layers");
  t.size("ffn_hidden_size", "encoder.layers.0.mlp.dense_4h_to_h", "in_features");
  t.flag("add_qkv_bias", attention + ".query_key_value");
  t.flag("add_bias_linear", attention + ".dense");
  t.dropout("attention_dropout", attention + ".core_attention.attention_dropout");
  const std::int64_t queries = t.value(attention + ".dense", "in_features").value_or(0);
  const std::int64_t all = t.value(attention + ".query_key_value", "out_features").value_or(0);
  if (queries < kHead || all <= queries) return;
  t.set("num_attention_heads", queries / kHead);
  t.set("kv_channels", kHead);
  t.set_flag("multi_query_attention", true);
  t.set("multi_query_group_num", std::max<std::int64_t>((all - queries) / (2 * kHead), 1));
  t.assume("heads of width 128, as published models have");
}

inline constexpr Architecture kArchitecture = {.name = "chatglm",
                                               .model_types = names<"chatglm">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .blocks = names<"GLMBlock">};

}  // namespace chatglm

}  // namespace gpumem::architectures
