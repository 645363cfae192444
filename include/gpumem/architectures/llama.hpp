// Llama 1 to 3.3, and the models that are built like it: Mistral, Qwen2 and Qwen2.5, Qwen3, Granite, SmolLM3.
// Source: transformers 4.48 (Qwen3: 4.51; SmolLM3: 4.53, modular_smollm3.py: SmolLM3Config, SmolLM3Attention),
// models/llama/modeling_llama.py and what the others' modular_*.py change in it.
#pragma once

#include <array>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

namespace llama_detail {

/// How a model differs from Llama.
struct Variant {
  std::string_view model_type;
  std::string_view prefix;      ///< of its class names
  bool biased_queries = false;  ///< bias in the projections of queries, keys and values, whatever the config says
  bool normed_heads = false;    ///< an RMS norm on each head's queries and keys
  bool multiplies = false;      ///< by numbers: embeddings, residuals, logits
  std::int64_t unturned = 0;    ///< one layer in so many has no rotary positions, where the config does not say
};
inline constexpr std::array<Variant, 6> kVariants = {
    {{.model_type = "llama", .prefix = "Llama"},
     {.model_type = "mistral", .prefix = "Mistral"},
     {.model_type = "qwen2", .prefix = "Qwen2", .biased_queries = true},
     {.model_type = "qwen3", .prefix = "Qwen3", .normed_heads = true},
     {.model_type = "granite", .prefix = "Granite", .multiplies = true},
     {.model_type = "smollm3", .prefix = "SmolLM3", .unturned = 4}}};
inline constexpr std::array<std::string_view, 6> kModelTypes = {"llama", "mistral", "qwen2",
                                                                "qwen3", "granite", "smollm3"};

struct Model {
  DecoderSizes sizes;
  Variant variant = kVariants[0];
  bool attention_bias = false;
  bool mlp_bias = false;
  std::int64_t unturned = 0;  ///< see Variant

  [[nodiscard]] std::string named(std::string_view part) const { return std::string(variant.prefix).append(part); }
};

inline Model read(ConfigFields& config) {
  Model model;
  const std::string_view type = config.text({"model_type"}, "llama");
  for (const Variant& variant : kVariants) {
    if (variant.model_type == type) model.variant = variant;
  }
  model.sizes = decoder_sizes(config);
  model.attention_bias = config.flag("attention_bias", false);
  model.mlp_bias = config.flag("mlp_bias", false);
  model.unturned = model.variant.unturned;
  if (model.unturned > 0) model.unturned = config.size_or({"no_rope_layer_interval"}, model.unturned);
  config.ignore(
      {"no_rope_layers", "embedding_multiplier", "residual_multiplier", "attention_multiplier", "logits_scaling"});
  return model;
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary, std::int64_t index) {
  const auto joined = [&](Tensor residual, Tensor branch) {
    return f.add(residual, model.variant.multiplies ? f.scale(branch) : branch);
  };
  const std::int64_t width = model.sizes.width;
  const std::string attention = model.named("Attention");
  const std::string norm = model.named("RMSNorm");
  const RotaryAttention options = {
      .class_name = attention,
      .input_bias = model.attention_bias || model.variant.biased_queries,
      .output_bias = model.attention_bias,
      .head_norm = model.variant.normed_heads ? std::string_view(norm) : std::string_view(),
      .turns = model.unturned == 0 || (index + 1) % model.unturned != 0};
  const Tensor normed = f.rms_norm("input_layernorm", input, width, norm);
  const Tensor attended = joined(input, rotary_attention(f, model.sizes, normed, rotary, options));
  const Tensor again = f.rms_norm("post_attention_layernorm", attended, width, norm);
  return joined(attended, gated_feed_forward(f, model.sizes, again, model.named("MLP"), model.mlp_bias));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  Tensor hidden = 0;
  {
    const InModule inside(f, "model", model.named("Model"));
    const Tensor ids = token_ids(f);
    hidden = f.embedding("embed_tokens", ids, s.vocabulary, s.width);
    if (model.variant.multiplies) hidden = f.scale(hidden);
    const Rotary rotary = rotary_tables(f, ids, s.head_width);
    hidden = stack(f, "layers", model.named("DecoderLayer"), s.layers, hidden,
                   [&](Tensor x, std::int64_t index) { return block(f, model, x, rotary, index); });
    hidden = f.rms_norm("norm", hidden, s.width, model.named("RMSNorm"));
  }
  decoder_head(f, config, s, head, hidden, {.scales = model.variant.multiplies});
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Llama", "llama", "model", 3072, 128256},
                                                            {"Mistral", "mistral", "model"},
                                                            {"Qwen2", "qwen2", "model", 2048},
                                                            {"Qwen3", "qwen3", "model", 2560},
                                                            {"Granite", "granite", "model", kAlwaysTied},
                                                            {"SmolLM3", "smollm3", "model", kAlwaysTied}});
/// Published models, by width.
inline constexpr auto kPublished = std::to_array<PublishedHeads>(
    {{2048, 32}, {3072, 24}, {4096, 32}, {5120, 40}, {6656, 52}, {8192, 64}, {16384, 128}});
/// The same of Qwen2, Qwen2.5 and SmolLM3.
inline constexpr auto kWideHeads =
    std::to_array<PublishedHeads>({{896, 14}, {1536, 12}, {2048, 16}, {3584, 28}, {5120, 40}, {8192, 64}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  t.size("intermediate_size", "layers.0.mlp.gate_proj", "out_features");
  t.flag("attention_bias", "layers.0.self_attn.o_proj");
  t.flag("mlp_bias", "layers.0.mlp.gate_proj");
  t.labels();
  const bool wide = t.class_name().starts_with("Qwen2") || t.class_name().starts_with("SmolLM3");
  t.heads({.query = "layers.0.self_attn.q_proj",
           .key = "layers.0.self_attn.k_proj",
           .norm = "layers.0.self_attn.q_norm",
           .published = wide ? std::span<const PublishedHeads>(kWideHeads) : kPublished,
           .usual_width = t.value("layers.0.self_attn.q_proj", "out_features").value_or(0) < 3072 ? 64 : 128});
}

}  // namespace llama_detail

[[nodiscard]] inline const Architecture& llama() {
  static constexpr Architecture kLlama = {.name = "llama",
                                          .model_types = llama_detail::kModelTypes,
                                          .write = llama_detail::write,
                                          .classes = llama_detail::kClasses,
                                          .read_tree = llama_detail::read_tree};
  return kLlama;
}

}  // namespace gpumem::architectures
