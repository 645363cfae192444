// Llama 1 to 3.3, and the models that are built like it: Mistral, Qwen2 and Qwen2.5, Qwen3, Granite, SmolLM3, Seed-OSS,
// ERNIE 4.5, Hunyuan, Helium, Arcee, MiMo, CWM, InternLM and InternLM3, Ministral, HyperCLOVA X, nanochat, BitNet, Jais
// 2, Orion, XVERSE.
// Source: transformers 4.48 (Qwen3: 4.51; SmolLM3: 4.53, modular_smollm3.py: SmolLM3Config, SmolLM3Attention; Arcee:
// 4.53; ERNIE 4.5: 4.54; Seed-OSS, Hunyuan: 4.56; CWM, Ministral: 4.57; HyperCLOVA X, nanochat, BitNet: 5.16),
// models/llama/modeling_llama.py and what the others' modular_*.py change in it; MiMo: modeling_mimo.py of MiMo-7B;
// Jais 2: 5.0; InternLM3: modeling_internlm3.py of internlm3-8b-instruct; modeling_internlm.py of internlm-7b,
// modeling_orion.py of Orion-14B-Base, modeling_xverse.py of XVERSE-7B.
#pragma once

#include <array>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

namespace llama {

/// How a model differs from Llama.
struct Variant {
  std::string_view model_type;
  std::string_view prefix;      ///< of its class names
  bool biased_queries = false;  ///< bias in the projections of queries, keys and values, whatever the config says
  bool normed_heads = false;    ///< an RMS norm on each head's queries and keys
  bool multiplies = false;      ///< by numbers: embeddings, residuals, logits
  std::int64_t unturned = 0;    ///< one layer in so many has no rotary positions, where the config does not say
  Turning turning = Turning::halves;
  HeadNorm norm_place = HeadNorm::each;
  std::string_view query_norm = "q_norm";
  std::string_view key_norm = "k_norm";
  bool plain_norms = false;            ///< no norm has weights, and one stands before the blocks too
  bool normed_behind = false;          ///< a norm after each half of a block, where the config says so
  bool scales_queries = false;         ///< by a figure of their position
  bool ungated = false;                ///< the feed-forward layer has no gate
  bool sub_norms = false;              ///< a norm before the last projection of each half of a block
  bool layer_norms = false;            ///< in place of RMS norms
  bool biases = false;                 ///< where the config does not say
  std::string_view widen = "up_proj";  ///< of such a one
  std::string_view narrow = "down_proj";
  std::string_view activation = "act_fn";
  std::string_view bias = "attention_bias";         ///< the field of the projections' bias
  std::string_view output_bias = "attention_bias";  ///< the field of the output projection's; empty: it has none
  std::string_view mlp_bias = "mlp_bias";
};
inline constexpr auto kVariants = std::to_array<Variant>(
    {{.model_type = "llama", .prefix = "Llama"},
     {.model_type = "mistral", .prefix = "Mistral"},
     {.model_type = "ministral3", .prefix = "Ministral3", .scales_queries = true},
     {.model_type = "ministral", .prefix = "Ministral", .bias = "", .output_bias = "", .mlp_bias = ""},
     {.model_type = "qwen2", .prefix = "Qwen2", .biased_queries = true, .output_bias = "", .mlp_bias = ""},
     {.model_type = "qwen3", .prefix = "Qwen3", .normed_heads = true},
     {.model_type = "granite", .prefix = "Granite", .multiplies = true},
     {.model_type = "hyperclovax", .prefix = "HyperCLOVAX", .multiplies = true, .normed_behind = true},
     {.model_type = "smollm3", .prefix = "SmolLM3", .unturned = 4},
     {.model_type = "seed_oss", .prefix = "SeedOss", .output_bias = "attention_out_bias"},
     {.model_type = "ernie4_5",
      .prefix = "Ernie4_5",
      .turning = Turning::wide_pairs,
      .bias = "use_bias",
      .output_bias = "use_bias",
      .mlp_bias = "use_bias"},
     {.model_type = "hunyuan_v1_dense",
      .prefix = "HunYuanDenseV1",
      .normed_heads = true,
      .norm_place = HeadNorm::turned,
      .query_norm = "query_layernorm",
      .key_norm = "key_layernorm",
      .mlp_bias = ""},
     {.model_type = "nanochat",
      .prefix = "NanoChat",
      .normed_heads = true,
      .norm_place = HeadNorm::turned,
      .plain_norms = true,
      .ungated = true,
      .widen = "fc1",
      .narrow = "fc2",
      .activation = "activation_fn",
      .mlp_bias = ""},
     {.model_type = "bitnet", .prefix = "BitNet", .sub_norms = true, .mlp_bias = ""},
     {.model_type = "helium", .prefix = "Helium", .turning = Turning::pairs, .output_bias = ""},
     {.model_type = "arcee", .prefix = "Arcee", .ungated = true},
     {.model_type = "mimo", .prefix = "MiMo", .biased_queries = true, .output_bias = "", .mlp_bias = ""},
     {.model_type = "cwm", .prefix = "Cwm"},
     {.model_type = "jais2", .prefix = "Jais2", .ungated = true, .layer_norms = true, .biases = true},
     {.model_type = "orion", .prefix = "Orion", .layer_norms = true},
     {.model_type = "xverse", .prefix = "Xverse", .bias = "", .output_bias = "", .mlp_bias = ""},
     {.model_type = "internlm",
      .prefix = "InternLM",
      .biases = true,
      .bias = "bias",
      .output_bias = "bias",
      .mlp_bias = ""},
     {.model_type = "internlm3",
      .prefix = "InternLM3",
      .bias = "qkv_bias",
      .output_bias = "bias",
      .mlp_bias = "bias"}});
inline constexpr auto kModelTypes = model_types_of(kVariants);

struct Model {
  DecoderSizes sizes;
  Variant variant = kVariants[0];
  bool attention_bias = false;
  bool output_bias = false;
  bool mlp_bias = false;
  bool head_bias = false;           ///< of the language model's head
  bool normed_behind = false;       ///< see Variant
  double softcap = 0.0;             ///< of the logits
  double residual_dropout = 0.0;    ///< behind attention and feed-forward layer
  std::int64_t unturned = 0;        ///< see Variant
  std::int64_t further_tokens = 0;  ///< layers that predict further tokens: held, and not called in training

  [[nodiscard]] std::string named(std::string_view part) const { return std::string(variant.prefix).append(part); }
  /// The class of the norms within the halves of a block; empty: there are none.
  [[nodiscard]] std::string_view sub_norm() const { return variant.sub_norms ? "BitNetRMSNorm" : ""; }
};

inline Model read(ConfigFields& config) {
  Model model;
  const std::string_view type = config.text({"model_type"}, "llama");
  for (const Variant& variant : kVariants) {
    if (variant.model_type == type) model.variant = variant;
  }
  const Variant& variant = model.variant;
  const auto flag = [&](std::string_view name, bool otherwise) {
    return !name.empty() && config.flag(name, otherwise);
  };
  const bool seed = type == "seed_oss";
  model.sizes = decoder_sizes(config, {.activation = variant.ungated || variant.sub_norms ? "relu2" : "silu"});
  model.attention_bias = flag(variant.bias, seed || variant.biases);
  model.output_bias = flag(variant.output_bias, variant.biases);
  model.mlp_bias = flag(variant.mlp_bias, variant.biases);
  model.head_bias = type == "ernie4_5" && model.mlp_bias;
  model.normed_behind = variant.normed_behind && config.flag("use_post_norm", true);
  if (type == "nanochat") model.softcap = config.number({"final_logit_softcapping"}, 15.0);
  model.unturned = variant.unturned;
  if (model.unturned > 0) model.unturned = config.size_or({"no_rope_layer_interval"}, model.unturned);
  if (seed) model.residual_dropout = config.number({"residual_dropout"}, 0.1);
  if (seed) model.sizes.attention_dropout = config.number({"attention_dropout"}, 0.1);
  const core::JsonValue* further = type == "mimo" ? config.find("num_nextn_predict_layers") : nullptr;
  if (further != nullptr && !further->is(0)) model.further_tokens = config.layers({"num_nextn_predict_layers"});
  if (type == "ernie4_5") model.sizes.attention_dropout = 0.0;
  config.ignore({"rotary", "max_sequence_length", "no_rope_layers", "embedding_multiplier", "residual_multiplier",
                 "attention_multiplier", "logits_scaling"});
  return model;
}

inline Tensor fed(Forward& f, const Model& model, Tensor input) {
  const std::string name = model.named("MLP");
  if (model.variant.ungated) {
    return feed_forward(f, model.sizes, input,
                        {.class_name = name,
                         .widen = model.variant.widen,
                         .narrow = model.variant.narrow,
                         .activation = model.variant.activation,
                         .bias = model.mlp_bias,
                         .split = true});
  }
  const Tensor made = gated_feed_forward(f, model.sizes, input, name, model.mlp_bias, model.sub_norm());
  if (!(model.residual_dropout > 0.0)) return made;
  return f.call("dropout", {made}, {{"p", model.residual_dropout}});
}

inline Tensor norm_of(Forward& f, const Model& model, std::string_view name, Tensor input) {
  if (model.variant.layer_norms) return f.layer_norm(name, input, model.sizes.width);
  const std::string class_name = model.named("RMSNorm");
  return model.variant.plain_norms ? plain_norm(f, name, class_name, input, model.sizes.width)
                                   : f.rms_norm(name, input, model.sizes.width, class_name);
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary, std::int64_t index) {
  const auto joined = [&](Tensor residual, Tensor branch, std::string_view norm_behind) {
    if (model.normed_behind) branch = norm_of(f, model, norm_behind, branch);
    return f.add(residual, model.variant.multiplies ? f.scale(branch) : branch);
  };
  const std::string attention = model.named("Attention");
  const std::string norm = model.named("RMSNorm");
  const RotaryAttention options = {
      .class_name = attention,
      .input_bias = model.attention_bias || model.variant.biased_queries,
      .output_bias = model.output_bias,
      .head_norm = model.variant.normed_heads ? std::string_view(norm) : std::string_view(),
      .turns = model.unturned == 0 || (index + 1) % model.unturned != 0,
      .norm_place = model.variant.norm_place,
      .query_norm = model.variant.query_norm,
      .key_norm = model.variant.key_norm,
      .plain_norms = model.variant.plain_norms,
      .turning = model.variant.turning,
      .output_dropout = model.residual_dropout,
      .scales_queries = model.variant.scales_queries,
      .sub_norm = model.sub_norm()};
  const Tensor normed = norm_of(f, model, "input_layernorm", input);
  const Tensor attended = joined(input, rotary_attention(f, model.sizes, normed, rotary, options), "post_norm1");
  const Tensor again = norm_of(f, model, "post_attention_layernorm", attended);
  return joined(attended, fed(f, model, again), "post_norm2");
}

/// Blocks that predict further tokens (MTP), which MiMo's model holds and its forward() does not call: no gradient.
inline void further_token_blocks(Forward& f, const Model& model) {
  const DecoderSizes& s = model.sizes;
  const InModule list(f, "mtp_layers", "ModuleList");
  for (std::int64_t index = 0; index < model.further_tokens && !f.failed(); ++index) {
    const InModule inside(f, std::to_string(index), model.named("MTPLayers"));
    const auto held = [&](const std::string& name, const Sizes& shape) { f.parameter(name + ".weight", shape, true); };
    for (const char* norm :
         {"input_layernorm", "post_attention_layernorm", "token_layernorm", "hidden_layernorm", "final_layernorm"}) {
      held(norm, {s.width});
    }
    held("input_proj", {s.width, 2 * s.width});
    const std::int64_t queries = s.heads * s.head_width;
    const std::int64_t keys = s.kv_heads * s.head_width;
    held("self_attn.q_proj", {queries, s.width});
    for (const char* name : {"self_attn.k_proj", "self_attn.v_proj"}) held(name, {keys, s.width});
    f.parameter("self_attn.q_proj.bias", {queries}, true);
    for (const char* name : {"self_attn.k_proj.bias", "self_attn.v_proj.bias"}) f.parameter(name, {keys}, true);
    held("self_attn.o_proj", {s.width, queries});
    for (const char* name : {"mlp.gate_proj", "mlp.up_proj"}) held(name, {s.inner, s.width});
    held("mlp.down_proj", {s.width, s.inner});
  }
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  const LanguageHead on_top = {.bias = model.head_bias, .softcap = model.softcap, .scales = model.variant.multiplies};
  const DecoderBody body = {.class_name = model.named("Model"), .head = on_top};
  decoder_model(f, config, s, head, body, [&](Tensor ids, Tensor hidden) {
    if (model.variant.multiplies) hidden = f.scale(hidden);
    const Rotary rotary = rotary_tables(f, ids, s.head_width);
    if (model.variant.plain_norms) hidden = norm_of(f, model, "norm", hidden);
    hidden = stack(f, "layers", model.named("DecoderLayer"), s.layers, hidden,
                   [&](Tensor x, std::int64_t index) { return block(f, model, x, rotary, index); });
    hidden = norm_of(f, model, "norm", hidden);
    if (model.further_tokens > 0) further_token_blocks(f, model);
    return hidden;
  });
}

inline constexpr auto kClasses =
    std::to_array<ModelClass>({{"Llama", "llama", "model", 3072, 128256},
                               {"Mistral", "mistral", "model"},
                               {"Ministral", "ministral", "model"},
                               {"Qwen2", "qwen2", "model", 2048},
                               {"Qwen3", "qwen3", "model", 2560},
                               {"Granite", "granite", "model", kAlwaysTied},
                               {"SmolLM3", "smollm3", "model", kAlwaysTied},
                               {"SeedOss", "seed_oss", "model"},
                               {"Ernie4_5", "ernie4_5", "model", kAlwaysTied},
                               {"HunYuanDenseV1", "hunyuan_v1_dense", "model", kAlwaysTied},
                               {"BitNet", "bitnet", "model", kAlwaysTied},
                               {"Helium", "helium", "model"},
                               {"Arcee", "arcee", "model"},
                               {"MiMo", "mimo", "model"},
                               {"Cwm", "cwm", "model"},
                               {"InternLM3", "internlm3", "model"},
                               {"HyperCLOVAX", "hyperclovax", "model"},
                               {"NanoChat", "nanochat", "model"},
                               {"Jais2", "jais2", "model"},
                               {"Orion", "orion", "model"},
                               {"Xverse", "xverse", "model"},
                               {"InternLM", "internlm", "model"}});
/// Published models, by width.
inline constexpr auto kPublished = std::to_array<PublishedHeads>(
    {{1024, 16}, {2048, 32}, {3072, 24}, {4096, 32}, {5120, 40}, {6656, 52}, {8192, 64}, {16384, 128}});
/// The same of Qwen2, Qwen2.5 and SmolLM3.
inline constexpr auto kWideHeads =
    std::to_array<PublishedHeads>({{896, 14}, {1536, 12}, {2048, 16}, {3584, 28}, {5120, 40}, {8192, 64}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  const bool ungated = !t.has("layers.0.mlp.gate_proj");
  const std::string_view name = t.class_name();
  const bool nano = name.starts_with("NanoChat");
  const std::string_view widen = nano ? "layers.0.mlp.fc1" : "layers.0.mlp.up_proj";
  t.size("intermediate_size", ungated ? widen : "layers.0.mlp.gate_proj", "out_features");
  if (name.starts_with("HyperCLOVAX")) {
    t.set_flag("use_post_norm", t.value("layers.0.post_norm1", "normalized_shape").has_value());
  }
  // Of these the output projection says less than the queries'.
  const bool apart = name.starts_with("SeedOss") || name.starts_with("Helium");
  t.flag("attention_bias", apart ? "layers.0.self_attn.q_proj" : "layers.0.self_attn.o_proj");
  t.flag("attention_out_bias", "layers.0.self_attn.o_proj");
  t.flag("use_bias", "layers.0.self_attn.o_proj");
  t.flag("bias", "layers.0.self_attn.o_proj");
  t.flag("mlp_bias", "layers.0.mlp.up_proj");
  t.count("num_nextn_predict_layers", "mtp_layers");
  if (name.starts_with("SeedOss")) t.assume("dropouts of 0.1, as the published model has");
  t.labels();
  const bool turned = name.starts_with("HunYuan");
  const bool wide = name.starts_with("Qwen2") || name.starts_with("SmolLM3");
  const bool narrow = name.starts_with("Llama") || name.starts_with("Mistral") || name.starts_with("Granite");
  const std::int64_t queries = t.value("layers.0.self_attn.q_proj", "out_features").value_or(0);
  t.heads({.query = "layers.0.self_attn.q_proj",
           .key = "layers.0.self_attn.k_proj",
           .norm = turned ? "layers.0.self_attn.query_layernorm" : "layers.0.self_attn.q_norm",
           .published = wide     ? std::span<const PublishedHeads>(kWideHeads)
                        : narrow ? std::span<const PublishedHeads>(kPublished)
                                 : std::span<const PublishedHeads>(),
           .usual_width = (narrow || wide) && queries < 3072 ? 64 : 128});
}

/// What the config lacks to describe a decoder with gated feed-forward layers and RMS norms, as Llama is one.
inline std::vector<std::string> missing_of(const ConfigFields& config) {
  constexpr std::array<std::string_view, 6> kFields = {"hidden_size",       "num_hidden_layers", "num_attention_heads",
                                                       "intermediate_size", "vocab_size",        "rms_norm_eps"};
  std::vector<std::string> missing;
  for (const std::string_view name : kFields) {
    if (!config.has(name)) missing.emplace_back(name);
  }
  return missing;
}

inline constexpr Architecture kArchitecture = {
    .name = "llama", .model_types = kModelTypes, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace llama

// Apertus: Llama's attention with normed heads, and a feed-forward layer without a gate whose activation (xIELU) learns
// two numbers.
// Source: transformers 4.57, models/apertus/modeling_apertus.py; activations.py: XIELUActivation._xielu_python, which
// runs where the package xielu is not installed.

namespace apertus {

struct Model {
  DecoderSizes sizes;
  bool bias = false;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config, {.activation = "xielu"});
  model.bias = config.flag("attention_bias", false);
  config.ignore({"qk_norm", "post_norm", "mlp_bias"});
  return model;
}

/// where(x > 0, a x x + b x, (expm1(min(x, e)) - x) c + b x): a and c are learned.
inline Tensor xielu(Forward& f, Tensor x) {
  const InModule inside(f, "act_fn", "XIELUActivation");
  const Tensor above = f.call("softplus", {f.parameter("alpha_p", {1})});
  const Tensor below = f.call("add", {f.call("softplus", {f.parameter("alpha_n", {1})})});
  const Tensor square = f.multiply(f.multiply(x, above), x);
  const Tensor positive = f.add(square, f.scale(x));
  const Tensor bent = f.call("sub", {f.call("exp", {f.call("clamp", {x})}), x});
  const Tensor negative = f.add(f.multiply(bent, below), f.scale(x));
  return f.call("where", {positive, negative});
}

inline Tensor fed(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "mlp", "ApertusMLP");
  const DecoderSizes& s = model.sizes;
  const Tensor wide = f.linear("up_proj", input, s.width, s.inner, {.bias = false, .split = Split::columns});
  const Tensor open = s.activation == "xielu" ? xielu(f, wide) : f.activation("act_fn", wide, s.activation);
  return f.linear("down_proj", open, s.inner, s.width, {.bias = false, .split = Split::rows});
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const std::int64_t width = model.sizes.width;
  const RotaryAttention options = {.class_name = "ApertusAttention",
                                   .input_bias = model.bias,
                                   .output_bias = model.bias,
                                   .head_norm = "ApertusRMSNorm"};
  const Tensor normed = f.rms_norm("attention_layernorm", input, width, "ApertusRMSNorm");
  const Tensor attended = f.add(input, rotary_attention(f, model.sizes, normed, rotary, options));
  const Tensor again = f.rms_norm("feedforward_layernorm", attended, width, "ApertusRMSNorm");
  return f.add(attended, fed(f, model, again));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  decoder_model(f, config, s, head, {.class_name = "ApertusModel"}, [&](Tensor ids, Tensor hidden) {
    const Rotary rotary = rotary_tables(f, ids, s.head_width);
    hidden = stack(f, "layers", "ApertusDecoderLayer", s.layers, hidden,
                   [&](Tensor x, std::int64_t) { return block(f, model, x, rotary); });
    return f.rms_norm("norm", hidden, s.width, "ApertusRMSNorm");
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Apertus", "apertus", "model"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  t.labels();
  const std::string attention = "layers.0.self_attn.";
  t.size("intermediate_size", "layers.0.mlp.up_proj", "out_features");
  t.flag("attention_bias", attention + "q_proj");
  t.heads({.query = "layers.0.self_attn.q_proj",
           .key = "layers.0.self_attn.k_proj",
           .norm = "layers.0.self_attn.q_norm",
           .usual_width = 128});
}

inline constexpr Architecture kArchitecture = {
    .name = "apertus", .model_types = names<"apertus">, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace apertus

// DiffLlama: Llama's heads in pairs, whose attention is subtracted. Each half of the values is read by all heads.
// Source: transformers 5.16, models/diffllama/modeling_diffllama.py; before, values were joined for one call.

namespace diffllama {

struct Model {
  DecoderSizes sizes;
  bool bias = false;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config);
  model.bias = config.flag("attention_bias", false);
  if (model.sizes.kv_heads % 2 != 0) config.fail("must be even", "num_key_value_heads");
  config.ignore({"lambda_std_dev"});
  return model;
}

/// exp of the sum of the products of two learned vectors.
inline Tensor weight_of(Forward& f, std::string_view queries, std::string_view keys, std::int64_t width, Tensor like) {
  const Tensor products = f.multiply(f.parameter(queries, {width}), f.parameter(keys, {width}));
  const Tensor sum = f.call("sum", {products}, {{"dim", std::int64_t{-1}}, {"keepdim", true}});
  return f.as_type_of(f.call("exp", {sum}), like);
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const InModule inside(f, "self_attn", "DiffLlamaAttention");
  const DecoderSizes& s = model.sizes;
  const std::int64_t each = s.head_width;
  const auto [query, key, value] = project_heads(f, s, input, {.bias = model.bias});
  const std::array<Tensor, 2> both_turned = turn_heads(f, query, key, rotary, each, Turning::halves);
  const Tensor turned = both_turned[0];
  const Tensor turned_key = both_turned[1];
  const Tensor held = f.cache(turned_key, value);
  const std::vector<Tensor> halves = f.split(held, 1, {s.kv_heads / 2, s.kv_heads / 2});
  const auto mixed = [&](Tensor half) {
    return f.unflatten(attend(f, {turned, turned_key, half}, {.groups = s.heads / s.kv_heads}), 2, {-1, each});
  };
  const Tensor first_values = f.concatenate({halves[0], halves[0]}, 1);  // Tensor.repeat
  const Tensor second_values = f.concatenate({halves[1], halves[1]}, 1);
  const Tensor first = mixed(first_values);
  const Tensor both = f.concatenate({first, mixed(second_values)}, 3);
  const std::vector<Tensor> pairs = f.split(both, 2, {s.heads / 2, s.heads / 2});
  const Tensor more = weight_of(f, "lambda_q1", "lambda_k1", each, turned);
  const Tensor less = weight_of(f, "lambda_q2", "lambda_k2", each, turned);
  const Tensor weight = f.call("add", {f.call("sub", {more, less})});
  const Tensor apart = f.call("sub", {pairs[0], f.multiply(pairs[1], weight)});
  const Tensor normed = f.scale(f.layer("groupnorm", "RMSNorm", "rms_norm", {apart},
                                        {{"normalized_shape", 2 * each}, {"elementwise_affine", false}}));
  const Tensor output = f.linear("o_proj", f.flatten(normed, 2, 3), s.heads * each, s.width, {.bias = model.bias});
  return f.leave_function(output, {turned, turned_key, held, first_values, second_values, first, both, input});
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const std::int64_t width = model.sizes.width;
  const Tensor normed = f.rms_norm("input_layernorm", input, width, "DiffLlamaRMSNorm");
  const Tensor attended = f.add(input, attention(f, model, normed, rotary));
  const Tensor again = f.rms_norm("post_attention_layernorm", attended, width, "DiffLlamaRMSNorm");
  return f.add(attended, gated_feed_forward(f, model.sizes, again, "DiffLlamaMLP"));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  decoder_model(f, config, s, head, {.class_name = "DiffLlamaModel"}, [&](Tensor ids, Tensor hidden) {
    const Rotary rotary = rotary_tables(f, ids, s.head_width);
    hidden = stack(f, "layers", "DiffLlamaDecoderLayer", s.layers, hidden,
                   [&](Tensor x, std::int64_t) { return block(f, model, x, rotary); });
    return f.rms_norm("norm", hidden, s.width, "DiffLlamaRMSNorm");
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"DiffLlama", "diffllama", "model"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  t.labels();
  t.size("intermediate_size", "layers.0.mlp.gate_proj", "out_features");
  t.flag("attention_bias", "layers.0.self_attn.q_proj");
  const std::int64_t pair = t.value("layers.0.self_attn.groupnorm", "normalized_shape").value_or(128);
  t.heads({.query = "layers.0.self_attn.q_proj", .key = "layers.0.self_attn.k_proj", .usual_width = pair / 2});
}

inline constexpr Architecture kArchitecture = {.name = "diffllama",
                                               .model_types = names<"diffllama">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree};

}  // namespace diffllama

}  // namespace gpumem::architectures
