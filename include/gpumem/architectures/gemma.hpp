// Gemma 1, 2 and 3 (text): wide heads, norms that multiply in float32, embeddings times a number; Gemma 2 and 3 with a
// norm after each part too, Gemma 2 with logits below a cap, Gemma 3 with normed queries and keys. Source:
// transformers 4.48 and 4.51, models/gemma/modeling_gemma.py, gemma2, gemma3.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

namespace gemma {

struct Model {
  DecoderSizes sizes;
  std::string_view prefix = "Gemma";
  bool normed_behind = false;  ///< Gemma 2 and 3
  bool normed_heads = false;   ///< Gemma 3
  bool bias = false;
  double softcap = 0.0;
  std::int64_t pattern = 2;  ///< every so many layers, one reads all tokens

  [[nodiscard]] std::string named(std::string_view part) const { return std::string(prefix).append(part); }
};

inline Model read(ConfigFields& config) {
  Model model;
  const std::string_view type = config.text({"model_type"}, "gemma");
  model.normed_heads = type == "gemma3_text";
  model.normed_behind = type != "gemma";
  model.prefix = model.normed_heads ? "Gemma3" : model.normed_behind ? "Gemma2" : "Gemma";
  model.sizes = decoder_sizes(config, {.activation = "gelu_pytorch_tanh", .tied = true});
  // Whatever hidden_act says: hidden_activation counts, and is this one in all of them.
  model.sizes.activation = "gelu_pytorch_tanh";
  model.bias = config.flag("attention_bias", false);
  const bool second = model.normed_behind && !model.normed_heads;
  model.softcap = config.number({"final_logit_softcapping"}, second ? 30.0 : 0.0);
  if (model.normed_heads) model.pattern = config.size_or({"sliding_window_pattern", "_sliding_window_pattern"}, 6);
  config.ignore({"query_pre_attn_scalar", "sliding_window_pattern", "cache_implementation", "_sliding_window_pattern"});
  return model;
}

inline Tensor norm(Forward& f, const Model& model, std::string_view name, Tensor input, std::int64_t width) {
  return wide_norm(f, name, model.named("RMSNorm"), input, width);
}

/// Gemma 2 and 3 make a mask in every job: one for all samples, expanded, and copied where samples differ.
inline Tensor full_mask(Forward& f, Tensor ids) {
  const std::vector<core::Dim> all = {core::Dim::batch(), core::Dim::fixed(-1), core::Dim::fixed(-1),
                                      core::Dim::fixed(-1)};
  return f.add(f.call("expand", {f.call("causal_mask", {ids})}, {{"shape", all}}), When::masked);
}

/// A layer that reads a window of tokens makes its own of it: torch.where(sliding_window_mask, min, mask).
inline Tensor windowed(Forward& f, Tensor mask) { return f.call("where", {mask}, {{"mask_stands", true}}); }

inline Tensor attention(Forward& f, const Model& model, Tensor input, const Rotary& rotary,
                        std::optional<Tensor> mask) {
  const InModule inside(f, "self_attn", model.named("Attention"));
  const DecoderSizes& s = model.sizes;
  const auto heads = [&](std::string_view name, std::int64_t count) {
    const Tensor flat = f.linear(name, input, s.width, count * s.head_width, {.bias = model.bias});
    return split_heads(f, flat, s.head_width);
  };
  Tensor query = heads("q_proj", s.heads);
  Tensor key = heads("k_proj", s.kv_heads);
  const Tensor value = heads("v_proj", s.kv_heads);
  if (model.normed_heads) {
    query = norm(f, model, "q_norm", query, s.head_width);
    key = norm(f, model, "k_norm", key, s.head_width);
  }
  const auto [turned_query, turned_key] = turn_heads(f, query, key, rotary, s.head_width, Turning::halves);
  const Heads turned = {turned_query, turned_key, value};
  // Gemma 2 and 3 make their cache, a HybridCache, in evaluation only.
  const Caches caches = model.normed_behind ? Caches::serving : Caches::unless_checkpointed;
  f.cache(turned.key, caches);
  f.cache(turned.value, caches);
  const Tensor attended =
      attend(f, turned, {.groups = s.heads / s.kv_heads, .dropout = s.attention_dropout, .mask = mask});
  const Tensor output = f.linear("o_proj", attended, s.heads * s.head_width, s.width, {.bias = model.bias});
  return f.leave_function(output, {turned.query, turned.key, turned.value, input});
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary, std::optional<Tensor> mask) {
  const std::int64_t width = model.sizes.width;
  const auto behind = [&](std::string_view name, Tensor part) {
    return model.normed_behind ? norm(f, model, name, part, width) : part;
  };
  const Tensor normed = norm(f, model, "input_layernorm", input, width);
  const Tensor mixed = behind("post_attention_layernorm", attention(f, model, normed, rotary, mask));
  const Tensor attended = f.add(input, mixed);
  const std::string_view before = model.normed_behind ? "pre_feedforward_layernorm" : "post_attention_layernorm";
  const Tensor again = norm(f, model, before, attended, width);
  const Tensor fed = gated_feed_forward(f, model.sizes, again, model.named("MLP"));
  return f.add(attended, behind("post_feedforward_layernorm", fed));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (config.find("attn_logit_softcapping") != nullptr) {
    f.warn(
        "attention is taken without its soft cap, which PyTorch's kernel does not have; written out "
        "(attn_implementation=\"eager\") it keeps its scores too");
  }
  if (!config.status()) return;
  const DecoderSizes& s = model.sizes;
  decoder_model(f, config, s, head, {.class_name = model.named("Model"), .head = {.softcap = model.softcap}},
                [&](Tensor ids, Tensor hidden) {
                  hidden = f.scale(hidden);
                  const Rotary rotary = rotary_tables(f, ids, s.head_width);
                  const auto mask =
                      model.normed_behind && f.text_part() == nullptr ? std::optional(full_mask(f, ids)) : std::nullopt;
                  hidden = stack(f, "layers", model.named("DecoderLayer"), s.layers, hidden,
                                 [&](Tensor x, std::int64_t index) {
                                   const bool window = mask && (index + 1) % model.pattern != 0;
                                   return block(f, model, x, rotary, window ? windowed(f, *mask) : mask);
                                 });
                  return norm(f, model, "norm", hidden, s.width);
                });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Gemma", "gemma", "model", kAlwaysTied},
                                                            {"Gemma2", "gemma2", "model", kAlwaysTied},
                                                            {"Gemma3", "gemma3_text", "model", kAlwaysTied},
                                                            {"Gemma3Text", "gemma3_text", "model", kAlwaysTied}});
/// Published models, by width.
inline constexpr auto kPublished = std::to_array<PublishedHeads>({{4608, 32}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  t.size("intermediate_size", "layers.0.mlp.gate_proj", "out_features");
  t.flag("attention_bias", "layers.0.self_attn.q_proj");
  t.labels();
  t.heads({.query = "layers.0.self_attn.q_proj",
           .key = "layers.0.self_attn.k_proj",
           .norm = "layers.0.self_attn.q_norm",
           .published = kPublished,
           .usual_width = 256});
}

inline constexpr Architecture kArchitecture = {.name = "gemma",
                                               .model_types = names<"gemma", "gemma2", "gemma3_text">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree};

}  // namespace gemma

}  // namespace gpumem::architectures
