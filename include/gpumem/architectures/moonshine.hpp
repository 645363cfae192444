// Moonshine: convolutions over samples of sound, an encoder, and a decoder of tokens, both with rotary positions on a
// part of each head. A job's sequence length counts samples of sound, of which there are 16,000 a second. Heads are
// padded to whole eights before the kernel. Source: transformers 5.16, models/moonshine/modeling_moonshine.py.
#pragma once

#include <array>
#include <string>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

namespace moonshine {

struct Model {
  std::int64_t vocabulary = 32768;
  std::int64_t width = 288;
  std::int64_t inner = 1152;
  std::int64_t positions = 512;  ///< tokens of a text
  std::int64_t rotary = 32;      ///< elements of a head that are turned
  std::int64_t padding = 0;      ///< of a head
  Side encoder;
  Side decoder;
  std::string_view encoder_activation = "gelu";
  std::string_view decoder_activation = "silu";
  double attention_dropout = 0.0;
  bool bias = false;  ///< of queries, keys and values
  bool tied = true;
};

/// NAME_num_hidden_layers and NAME_num_attention_heads.
inline Side read_half(ConfigFields& config, const std::string& name, const Model& model) {
  Side side;
  side.inner = model.inner;
  side.layers = config.layers_or(name + "_num_hidden_layers", 6);
  const std::string heads = name + "_num_attention_heads";
  const std::string shared = name + "_num_key_value_heads";
  side.heads = config.size_or({heads}, 8);
  if (model.width % side.heads != 0) config.fail("does not divide hidden_size", heads);
  if (config.size_or({shared}, side.heads) != side.heads) {
    config.fail("other than " + heads + " is not known", shared);  // its own class cannot run it: queries have kv heads
  }
  return side;
}

inline Model read(ConfigFields& config) {
  Model model;
  model.vocabulary = config.size_or({"vocab_size"}, 32768);
  model.width = config.size_or({"hidden_size"}, 288);
  model.inner = config.size_or({"intermediate_size"}, 1152);
  model.positions = config.size_or({"max_position_embeddings"}, 512);
  check_length(config, model.positions, "max_position_embeddings");
  model.encoder = read_half(config, "encoder", model);
  model.decoder = read_half(config, "decoder", model);
  if (model.encoder.heads != model.decoder.heads) {
    config.fail("other than encoder_num_attention_heads is not known", "decoder_num_attention_heads");
  }
  model.encoder_activation = config.text({"encoder_hidden_act"}, "gelu");
  model.decoder_activation = config.text({"decoder_hidden_act"}, "silu");
  model.attention_dropout = config.number({"attention_dropout"}, 0.0);
  model.bias = config.flag("attention_bias", false);
  model.tied = config.flag("tie_word_embeddings", true);
  const DecoderSizes sizes = {.head_width = model.width / model.decoder.heads};
  model.rotary = rotary_width(config, sizes, {"partial_rotary_factor"}, 0.9);
  const std::int64_t whole = config.size_or({"pad_head_dim_to_multiple_of"}, 1);
  constexpr std::int64_t kMost = 1 << 14;
  if (whole > kMost) config.fail("is more than gpumem takes", "pad_head_dim_to_multiple_of");
  model.padding = (whole - sizes.head_width % whole) % whole;
  config.ignore({"rope_theta", "rope_scaling", "rope_parameters", "apply_spec_augment", "num_hidden_layers"});
  return model;
}

/// How one attention of a layer is called.
struct Looking {
  std::string_view name = "self_attn";
  std::int64_t heads = 1;
  const Rotary* rotary = nullptr;  ///< null: it looks at the other side's states
  bool causal = false;
  bool caches = false;
};

inline Tensor attention(Forward& f, const Model& model, const Looking& at, Tensor input, Tensor source) {
  const InModule inside(f, at.name, "MoonshineAttention");
  const std::int64_t each = model.width / at.heads;
  const auto parted = [&](std::string_view name, Tensor from) {
    return split_heads(f, f.linear(name, from, model.width, model.width, {.bias = model.bias}), each);
  };
  Heads heads = {.query = parted("q_proj", input)};
  heads.key = parted("k_proj", source);
  heads.value = parted("v_proj", source);
  if (at.rotary != nullptr) {
    const auto turned = turn_heads(f, heads.query, heads.key, *at.rotary, each, Turning::pairs);
    heads.query = turned[0];
    heads.key = turned[1];
  }
  if (at.caches) {
    f.cache(heads.key);
    f.cache(heads.value);
  }
  if (model.padding == 0) {
    const Tensor mixed = attend(f, heads, {.dropout = model.attention_dropout, .copies = false, .causal = at.causal});
    return f.linear("o_proj", mixed, model.width, model.width, {.bias = false});
  }
  const auto padded = [&](Tensor x) { return f.call("pad", {x}, {{"padding", Sizes{0, model.padding}}}); };
  const Tensor query = padded(heads.query);
  const Tensor key = padded(heads.key);
  const Tensor mixed = f.call("scaled_dot_product_attention", {query, key, padded(heads.value)},
                              {{"dropout_p", model.attention_dropout}, {"is_causal", at.causal}});
  const Tensor rows = f.contiguous(f.permute(mixed, {0, 2, 1, 3}));
  const Tensor cut = f.contiguous(f.slice(rows, 3, 0, -model.padding));
  return f.linear("o_proj", f.flatten(cut, 2, 3), model.width, model.width, {.bias = false});
}

inline Tensor normed(Forward& f, const Model& model, std::string_view name, Tensor input) {
  return f.layer_norm(name, input, model.width, false);
}

inline Tensor convolved(Forward& f, std::string_view name, Tensor input, const std::array<std::int64_t, 4>& sizes,
                        bool bias) {
  return f.layer(name, "Conv1d", "conv1d", {input},
                 {{"in_channels", sizes[0]},
                  {"out_channels", sizes[1]},
                  {"kernel_size", Sizes(1, sizes[2])},
                  {"stride", Sizes(1, sizes[3])},
                  {"bias", bias}});
}

inline Tensor encoder(Forward& f, const Model& model) {
  const InModule inside(f, "encoder", "MoonshineEncoder");
  const std::int64_t w = model.width;
  const Tensor samples = f.token_input("input_values");
  Tensor sound = f.call("unsqueeze", {f.to(samples, "parameters")}, {{"dim", std::int64_t{1}}});
  sound = f.call("tanh", {convolved(f, "conv1", sound, {1, w, 127, 64}, false)});
  sound =
      f.layer("groupnorm", "GroupNorm", "group_norm", {sound}, {{"num_groups", std::int64_t{1}}, {"num_channels", w}});
  sound = f.activation("gelu", convolved(f, "conv2", sound, {w, 2 * w, 7, 3}, true), "gelu");
  sound = f.activation("gelu", convolved(f, "conv3", sound, {2 * w, w, 3, 2}, true), "gelu");
  const Tensor rows = f.permute(sound, {0, 2, 1});
  const Rotary rotary = rotary_tables(f, rows, model.rotary);
  const Looking self = {.heads = model.encoder.heads, .rotary = &rotary};
  const DecoderSizes sizes = {.width = w, .inner = model.inner, .activation = model.encoder_activation};
  const Tensor hidden =
      stack(f, "layers", "MoonshineEncoderLayer", model.encoder.layers, rows, [&](Tensor x, std::int64_t) {
        const Tensor read = normed(f, model, "input_layernorm", x);
        const Tensor mixed = f.add(x, attention(f, model, self, read, read));
        const Tensor again = normed(f, model, "post_attention_layernorm", mixed);
        return f.add(mixed, feed_forward(f, sizes, again, {.class_name = "MoonshineEncoderMLP"}));
      });
  return normed(f, model, "layer_norm", hidden);
}

inline Tensor decoder(Forward& f, const Model& model, Tensor ids, Tensor encoded) {
  const InModule inside(f, "decoder", "MoonshineDecoder");
  const Tensor words = f.embedding("embed_tokens", ids, model.vocabulary, model.width);
  const Rotary rotary = rotary_tables(f, ids, model.rotary);
  const Looking self = {.heads = model.decoder.heads, .rotary = &rotary, .causal = true, .caches = true};
  const Looking cross = {.name = "encoder_attn", .heads = model.decoder.heads, .caches = true};
  const auto fed = [&](Tensor input) {
    const InModule mlp(f, "mlp", "MoonshineDecoderMLP");
    const Tensor both = f.linear("fc1", input, model.width, 2 * model.inner);
    const std::vector<Tensor> halves = f.split(both, 2, {model.inner, model.inner});
    const Tensor open = f.activation("activation_fn", halves[1], model.decoder_activation);
    return f.linear("fc2", f.multiply(open, halves[0]), model.inner, model.width);
  };
  const Tensor hidden =
      stack(f, "layers", "MoonshineDecoderLayer", model.decoder.layers, words, [&](Tensor x, std::int64_t) {
        const Tensor read = normed(f, model, "input_layernorm", x);
        const Tensor mixed = f.add(x, attention(f, model, self, read, read));
        const Tensor asks = normed(f, model, "post_attention_layernorm", mixed);
        const Tensor crossed = f.add(mixed, attention(f, model, cross, asks, encoded));
        return f.add(crossed, fed(normed(f, model, "final_layernorm", crossed)));
      });
  return normed(f, model, "norm", hidden);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (head != Head::none && head != Head::causal_lm) {
    config.fail("only MoonshineForConditionalGeneration and MoonshineModel are known");
  }
  if (!config.status()) return;
  f.remark(
      "the sequence length counts samples of sound, 16,000 a second; the text has max_position_embeddings tokens, " +
      std::to_string(model.positions));
  Tensor decoded = 0;
  Tensor labels = 0;
  {
    const InModule body(f, head == Head::none ? "" : "model", "MoonshineModel");
    const Tensor encoded = encoder(f, model);
    f.hand_out(encoded);
    labels = f.fixed_token_input("labels", model.positions);
    decoded = decoder(f, model, labels, encoded);
  }
  if (head == Head::none) return;
  const Linear tied = {.bias = false, .tied = model.tied, .returned = true};
  const Tensor logits = f.linear("proj_out", decoded, model.width, model.vocabulary, tied);
  (void)f.call("cross_entropy", {f.flatten(f.to(logits, "float32"), 0, 1), labels}, {{"keeps_type", true}});
}

inline constexpr Architecture kArchitecture = {.name = "moonshine",
                                               .model_types = names<"moonshine">,
                                               .write = write,
                                               .blocks = names<"MoonshineEncoderLayer", "MoonshineDecoderLayer">};

}  // namespace moonshine

}  // namespace gpumem::architectures
