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

}  // namespace gpumem::architectures
