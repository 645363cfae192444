// DeepSeek-V2, V3 and V3.2, and what is built like them: Kimi K2, GLM-5, GLM-4.7-Flash, openPangu Ultra, Youtu-LLM,
// A.X-K1, MiniCPM3, Mistral 4, and the text models of DeepSeek-OCR and DeepSeek-VL2, some with Llama's attention.
// Attention over keys and values that are compressed (MLA), routed experts and shared ones after the first dense
// layers. The module that predicts further tokens (MTP) is not part of it, as transformers does not load it. Which
// groups experts are chosen from changes no memory here. V3.2 and GLM-5 choose keys with an indexer. Source:
// transformers 4.51, models/deepseek_v3/modeling_deepseek_v3.py; arXiv:2412.19437 for the sizes. V2 turns its positions
// as complex numbers; it is taken as V3 here. transformers 5: deepseek_v32, glm_moe_dsa, glm4_moe_lite, whose experts
// are one tensor each; 5.16: mistral4; Kimi K2 is taken as 5 has DeepSeek-V3. openPangu: the norms of its sandwich.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/latent_attention.hpp"
#include "gpumem/architectures/mixture.hpp"

namespace gpumem::architectures {

namespace deepseek {

struct Variant {
  std::string_view model_type;
  std::string_view prefix;  ///< of its class names
  bool corrects = true;     ///< a bias of the scores that choose the experts
  bool counts_bias = true;  ///< it is a parameter; else a buffer
  bool grouped = false;     ///< the experts' weights are one tensor each
  bool indexes = false;     ///< an indexer chooses the keys
  bool dense = false;       ///< no layer has experts, and the head's weight is the embedding's
  bool normed = false;      ///< a norm behind the experts
  bool multiplies = false;  ///< by numbers: embeddings, residuals, what the head reads; positions turn halves
  bool softmax = false;     ///< of scores in the model's type; queries are scaled by their positions
  bool plain = false;       ///< Llama's attention; of DeepSeek-V2 where `use_mla` says so
  bool biased = false;      ///< feed-forward layers and shared experts may have biases (`mlp_bias`)
};
inline constexpr auto kVariants = std::to_array<Variant>(
    {{.model_type = "deepseek_v2", .prefix = "DeepseekV2", .corrects = false, .biased = true},
     {.model_type = "deepseek_ocr2_text",
      .prefix = "DeepseekOcr2Text",
      .corrects = false,
      .grouped = true,
      .plain = true,
      .biased = true},
     {.model_type = "deepseek_v3", .prefix = "DeepseekV3"},
     {.model_type = "kimi_k2", .prefix = "DeepseekV3", .grouped = true},
     {.model_type = "deepseek_v32", .prefix = "DeepseekV32", .counts_bias = false, .grouped = true, .indexes = true},
     {.model_type = "glm_moe_dsa", .prefix = "GlmMoeDsa", .counts_bias = false, .grouped = true, .indexes = true},
     {.model_type = "glm4_moe_lite", .prefix = "Glm4MoeLite", .counts_bias = false, .grouped = true},
     {.model_type = "youtu", .prefix = "Youtu", .dense = true},
     {.model_type = "axk1", .prefix = "AXK1", .counts_bias = false, .grouped = true, .normed = true},
     {.model_type = "minicpm3", .prefix = "MiniCPM3", .dense = true, .multiplies = true},
     {.model_type = "mistral4", .prefix = "Mistral4", .corrects = false, .grouped = true, .softmax = true},
     {.model_type = "pangu_ultra_moe", .prefix = "PanguUltraMoE", .corrects = false}});
inline constexpr auto kModelTypes = model_types_of(kVariants);

/// DeepSeek-V3's where no row has this model type.
constexpr Variant variant_of(std::string_view type) {
  Variant usual;
  for (const Variant& variant : kVariants) {
    if (variant.model_type == type) return variant;
    if (variant.model_type == "deepseek_v3") usual = variant;
  }
  return usual;
}

struct Model {
  DecoderSizes sizes;
  Variant variant = variant_of("deepseek_v3");
  LatentAttention attention;  ///< its bias is that of Llama's attention too
  Mixture mixture;
  std::int64_t shared = 0;            ///< experts that all tokens go to
  std::vector<bool> mixes;            ///< by layer: it has experts
  std::vector<bool> takes_over = {};  ///< by layer: the keys that an earlier one chose
  bool corrects = false;              ///< V3: a bias of the scores that choose the experts
  bool sandwich = false;              ///< norms behind each part too
  bool mlp_bias = false;

  [[nodiscard]] std::string named(std::string_view part) const { return std::string(variant.prefix).append(part); }
};

inline LatentAttention read_attention(ConfigFields& config, const Model& model) {
  const DecoderSizes& s = model.sizes;
  const bool mistral = model.variant.softmax;
  const bool halves = model.variant.multiplies || (mistral && !config.flag("rope_interleave", true));
  LatentAttention attention = read_latent_attention(config, s, model.variant.multiplies ? s.width / s.heads : 0);
  attention.halves = halves;
  attention.scales_queries = mistral;
  attention.index_heads = model.variant.indexes ? config.size({"index_n_heads"}) : 0;
  attention.index_width = model.variant.indexes ? config.size({"index_head_dim"}) : 1;
  attention.class_name = model.named("Attention");
  attention.norm_class = model.named("RMSNorm");
  if (attention.index_heads > ConfigFields::kLargestSize / attention.index_width)
    config.fail("makes the indexer too wide", "index_n_heads");
  return attention;
}

/// Which layers have experts: after the first dense ones every N-th, or as a list says.
inline std::vector<bool> mixing_layers(ConfigFields& config, const Model& model) {
  const std::int64_t layers = model.sizes.layers;
  const std::int64_t dense = config.count_or("first_k_dense_replace", 0);
  const std::int64_t every = config.size_or({"moe_layer_freq"}, 1);
  std::vector<bool> mixes =
      config.layers_with("mlp_layer_types", layers, std::string_view("sparse"), std::string_view("dense"));
  if (!mixes.empty()) return mixes;
  for (std::int64_t at = 0; at < layers; ++at) mixes.push_back(at >= dense && at % every == 0);
  return mixes;
}

/// Which layers take over the keys that an earlier layer's indexer chose (GlmMoeDsaConfig).
inline std::vector<bool> sharing_layers(ConfigFields& config, std::int64_t layers) {
  std::vector<bool> shares =
      config.layers_with("indexer_types", layers, std::string_view("shared"), std::string_view("full"));
  const std::int64_t every = config.size_or({"index_topk_freq"}, 1);
  const std::int64_t offset = config.count_or("index_skip_topk_offset", 2);
  const bool listed = !shares.empty();
  for (std::int64_t index = 0; !listed && index < layers; ++index) {
    shares.push_back(std::max<std::int64_t>(index - offset + 1, 0) % every != 0);
  }
  if (!shares.empty()) shares[0] = false;  // there is none before it
  return shares;
}

inline Model read(ConfigFields& config) {
  Model model;
  model.variant = variant_of(config.text({"model_type"}, "deepseek_v3"));
  model.sizes = decoder_sizes(config, {.tied = model.variant.dense});
  model.variant.plain = model.variant.plain || !config.flag("use_mla", true);
  if (model.variant.plain) {
    config.ignore({"kv_lora_rank", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"});
    model.attention.bias = config.flag("attention_bias", false);
  } else {
    model.attention = read_attention(config, model);
  }
  model.mlp_bias = model.variant.biased && config.flag("mlp_bias", false);
  model.mixes.resize(static_cast<std::size_t>(model.sizes.layers), false);
  const bool fused = config.fuses_experts();  // as transformers 5, where the bias is a buffer
  model.variant.grouped = model.variant.grouped || fused;
  model.variant.counts_bias = model.variant.counts_bias && !fused;
  model.corrects = model.variant.corrects && config.text({"topk_method"}, "noaux_tc") == "noaux_tc";
  model.sandwich = config.flag("sandwich_norm", false);
  if (fused || config.has("n_routed_experts")) {
    model.mixture = {.experts = config.size({"n_routed_experts"}),
                     .per_token = config.size({"num_experts_per_tok"}),
                     .inner = config.size({"moe_intermediate_size"}),
                     .expert_class = model.named("MLP")};
    check_mixture(config, model.mixture, model.sizes.layers, "n_routed_experts", "num_experts_per_tok");
    model.shared = config.count_or("n_shared_experts", 0);
    model.mixes = mixing_layers(config, model);
    if (model.shared * model.mixture.inner > ConfigFields::kLargestSize)
      config.fail("makes the shared experts too wide", "n_shared_experts");
  }
  if (model.variant.indexes) model.takes_over = sharing_layers(config, model.sizes.layers);
  if (model.variant.indexes)  // layer_types: that of the only attention there is
    config.ignore({"index_topk", "index_topk_pattern", "index_share_for_mtp_iteration", "layer_types"});
  if (model.variant.multiplies) config.ignore({"scale_emb", "scale_depth", "dim_model_base"});
  config.ignore({"aux_loss_alpha", "ep_size", "n_group", "norm_topk_prob", "num_nextn_predict_layers",
                 "routed_scaling_factor", "scoring_func", "seq_aux", "topk_group", "rope_interleave", "topk_method",
                 "qk_head_dim", "indexer_rope_interleave", "embedding_initializer_range", "moe_router_dtype",
                 "partial_rotary_factor"});
  return model;
}

/// Mistral 4's router: a softmax in the model's type.
inline Tensor softmax_weights(Forward& f, const Model& model, Tensor input) {
  const Mixture& m = model.mixture;
  const Tensor scores = held_scores(f, "gate", model.named("TopkRouter"), m, model.sizes.width, input);
  return f.scale(f.slice(f.call("softmax", {scores}), 2, 0, m.per_token));
}

/// Weights of the experts that are chosen, in float32.
inline Tensor expert_weights(Forward& f, const Model& model, Tensor wide) {
  const Mixture& m = model.mixture;
  const InModule gate(f, "gate", model.named("TopkRouter"));
  const Tensor matrix = f.to(f.parameter("weight", {m.experts, model.sizes.width}), "float32");
  const Tensor scores = f.call("sigmoid", {f.call("linear_function", {wide, matrix})});
  constexpr std::string_view kBias = "e_score_correction_bias";
  if (model.corrects && model.variant.counts_bias) (void)f.parameter(kBias, {m.experts});
  else if (model.corrects) f.constant(kBias, {m.experts}, "float32");
  return f.scale(f.slice(scores, 2, 0, m.per_token));
}

/// Scores and weights of the experts are float32, and so is the sum.
inline Tensor mixture(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "mlp", model.named("MoE"));
  const std::int64_t width = model.sizes.width;
  const Mixture& m = model.mixture;
  const Tensor wide = model.variant.softmax ? input : f.to(input, "float32");
  const Tensor weights = model.variant.softmax ? softmax_weights(f, model, input) : expert_weights(f, model, wide);
  Tensor sum = 0;
  if (model.variant.grouped) {
    const std::string list = model.named("Experts");
    const GroupedExperts all = {.list_class = list, .width = width, .activation = model.sizes.activation};
    sum = add_grouped_experts(f, m, all, input, weights);
  } else {
    const auto expert = [&](Tensor rows) {
      return gated_layer(f, width, m.inner, model.sizes.activation, rows, {.bias = model.mlp_bias});
    };
    sum = f.as_type_of(add_experts(f, m, input, weights, f.call("token_zeros", {wide}), expert), input);
  }
  if (model.shared > 0) {
    const InModule shared(f, "shared_experts", model.named("MLP"));
    sum = f.add(sum,
                gated_layer(f, width, model.shared * m.inner, model.sizes.activation, input, {.bias = model.mlp_bias}));
  }
  return model.variant.normed ? f.rms_norm("post_mlp_layernorm", sum, width, model.named("RMSNorm")) : sum;
}

/// `mask`: of the last indexer.
inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary, std::int64_t index,
                    std::optional<Tensor>& mask) {
  const auto at = static_cast<std::size_t>(index);
  const auto norm = [&](std::string_view name, Tensor tensor) {
    return f.rms_norm(name, tensor, model.sizes.width, model.named("RMSNorm"));
  };
  const auto behind = [&](std::string_view name, Tensor part) {
    if (model.variant.multiplies) return f.scale(part);
    return model.sandwich ? norm(name, part) : part;
  };
  const Tensor normed = norm("input_layernorm", input);
  Tensor mixed = 0;
  if (model.variant.plain) {
    const std::string name = model.named("Attention");
    const bool bias = model.attention.bias;
    mixed =
        rotary_attention(f, model.sizes, normed, rotary, {.class_name = name, .input_bias = bias, .output_bias = bias});
  } else {
    const bool takes_over = !model.takes_over.empty() && model.takes_over[at];
    const Attended made =
        latent_attention(f, model.attention, normed, rotary, takes_over ? mask : std::optional<Tensor>());
    mask = made.mask;
    mixed = made.output;
  }
  const Tensor attended = f.add(input, behind("post_attention_layernorm", mixed));
  const Tensor again = norm(model.sandwich ? "pre_mlp_layernorm" : "post_attention_layernorm", attended);
  const Tensor fed = model.mixes[at] ? mixture(f, model, again)
                                     : gated_feed_forward(f, model.sizes, again, model.named("MLP"), model.mlp_bias);
  return f.add(attended, behind("post_mlp_layernorm", fed));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DecoderSizes& s = model.sizes;
  if (std::find(model.mixes.begin(), model.mixes.end(), true) != model.mixes.end()) warn_of_routing(f);
  decoder_model(f, config, s, head, {.class_name = model.named("Model")}, [&](Tensor ids, Tensor hidden) {
    if (model.variant.multiplies) hidden = f.scale(hidden);
    const Rotary rotary = rotary_tables(f, ids, model.variant.plain ? s.head_width : model.attention.rotary_width);
    std::optional<Tensor> mask;
    hidden = stack(f, "layers", model.named("DecoderLayer"), s.layers, hidden,
                   [&](Tensor x, std::int64_t index) { return block(f, model, x, rotary, index, mask); });
    hidden = f.rms_norm("norm", hidden, s.width, model.named("RMSNorm"));
    return model.variant.multiplies ? f.scale(hidden) : hidden;
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"DeepseekV2", "deepseek_v2", "model"},
                                                            {"DeepseekV3", "deepseek_v3", "model"},
                                                            {"DeepseekV32", "deepseek_v32", "model"},
                                                            {"GlmMoeDsa", "glm_moe_dsa", "model"},
                                                            {"Glm4MoeLite", "glm4_moe_lite", "model"},
                                                            {"Youtu", "youtu", "model", kAlwaysTied},
                                                            {"AXK1", "axk1", "model"},
                                                            {"MiniCPM3", "minicpm3", "model", kAlwaysTied},
                                                            {"Mistral4", "mistral4", "model"},
                                                            {"PanguUltraMoE", "pangu_ultra_moe", "model"}});

/// The indexer of each layer that has one.
inline void read_indexer(TreeFields& t) {
  const std::string indexer = "layers.0.self_attn.indexer.";
  const std::int64_t width = t.value(indexer + "wk", "out_features").value_or(0);
  const std::int64_t all = t.value(indexer + "wq_b", "out_features").value_or(0);
  if (width == 0) return;
  t.set("index_head_dim", width);
  t.set("index_n_heads", all / width);
  std::string types;
  for (std::int64_t layer = 0; layer < t.count_of("layers"); ++layer) {
    const bool own = t.has("layers." + std::to_string(layer) + ".self_attn.indexer");
    types += (types.empty() ? "" : ", ") + std::string(own ? "\"full\"" : "\"shared\"");
  }
  t.set_text("indexer_types", "[" + types + "]");
}

/// The model type of the class that the tree prints.
inline std::string_view type_of_tree(const TreeFields& t) {
  const auto is_its = [&](const ModelClass& row) {
    if (!t.class_name().starts_with(row.prefix)) return false;
    const std::string_view rest = t.class_name().substr(row.prefix.size());
    return rest.starts_with("For") || rest == "Model";
  };
  const auto row = std::find_if(kClasses.begin(), kClasses.end(), is_its);
  return row == kClasses.end() ? std::string_view() : row->model_type;
}

/// Experts that are one tensor each. Returns an expert's inner size; 0: nothing tells.
inline std::int64_t read_fused(TreeFields& t, const std::string& mixture) {
  const bool low = t.has("layers.0.self_attn.q_b_proj");
  return fused_experts(t, {.model_type = type_of_tree(t),
                           .router = mixture + "gate",
                           .list = mixture + "experts",
                           .number = "n_routed_experts",
                           .inner = "moe_intermediate_size",
                           .query = low ? "layers.0.self_attn.q_b_proj" : "layers.0.self_attn.q_proj"});
}

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  tree_latent_attention(t, "layers.0.self_attn");
  t.there("sandwich_norm", "layers.0.pre_mlp_layernorm");
  read_indexer(t);
  std::int64_t dense = 0;
  const std::int64_t layers = t.count_of("layers");
  while (dense < layers && t.has("layers." + std::to_string(dense) + ".mlp.gate_proj")) ++dense;
  t.size("intermediate_size", "layers.0.mlp.gate_proj", "out_features");
  if (dense == 0) t.size("intermediate_size", "layers.0.mlp.shared_experts.gate_proj", "out_features");
  const std::string mixture = "layers." + std::to_string(dense) + ".mlp.";
  if (dense == layers || !t.has(mixture + "experts")) return;
  t.set("first_k_dense_replace", dense);
  const bool grouped = !t.has(mixture + "experts.0.gate_proj");
  const std::int64_t inner =
      grouped ? read_fused(t, mixture) : t.value(mixture + "experts.0.gate_proj", "out_features").value_or(1);
  const std::int64_t shared = t.value(mixture + "shared_experts.gate_proj", "out_features").value_or(0);
  t.set("n_shared_experts", shared / std::max<std::int64_t>(inner, 1));
  if (grouped) return;
  t.count("n_routed_experts", mixture + "experts");
  t.size("moe_intermediate_size", mixture + "experts.0.gate_proj", "out_features");
  const std::int64_t width = t.value("embed_tokens", "embedding_dim").value_or(0);
  choose_experts(t, type_of_tree(t), {width, t.count_of(mixture + "experts"), inner}, "num_experts_per_tok");
}

inline constexpr Architecture kArchitecture = {
    .name = "deepseek", .model_types = kModelTypes, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace deepseek

// LongCat-Flash: each block has attention and a feed-forward layer twice, and experts whose result is added at its end.
// Some of the experts hand on what they get. Source: transformers 4.57, models/longcat_flash/modeling_longcat_flash.py,
// a loop over the experts; 5.16 holds them in one tensor, in which those that hand on have weights too.

namespace longcat {

struct Model {
  DecoderSizes sizes;
  LatentAttention attention;
  Mixture mixture;          ///< of all experts
  std::int64_t routed = 1;  ///< of them, those that compute
};

inline Model read(ConfigFields& config) {
  Model model;
  config.complete(
      R"({"num_layers": 28, "num_hidden_layers": 56, "ffn_hidden_size": 12288, "intermediate_size": 12288})");
  model.sizes = decoder_sizes(config);
  DecoderSizes& s = model.sizes;
  s.layers = config.layers({"num_layers"});
  s.inner = config.size({"ffn_hidden_size"});
  model.attention = read_latent_attention(config, s);
  model.attention.query_rank = config.size({"q_lora_rank"});
  model.attention.class_name = "LongcatFlashMLA";
  model.attention.norm_class = "LongcatFlashRMSNorm";
  model.attention.scales_parts = true;
  model.routed = config.size({"n_routed_experts"});
  model.mixture = {.experts = model.routed + config.count_or("zero_expert_num", 256),
                   .per_token = config.size({"moe_topk", "num_experts_per_tok"}),
                   .inner = config.size({"expert_ffn_hidden_size", "moe_intermediate_size"}),
                   .expert_class = "LongcatFlashMLP"};
  check_mixture(config, model.mixture, s.layers, "n_routed_experts", "moe_topk");
  if (config.text({"zero_expert_type"}, "identity") != "identity") config.fail("is not known", "zero_expert_type");
  config.ignore({"routed_scaling_factor", "qk_head_dim", "mla_scale_q_lora", "mla_scale_kv_lora", "router_bias",
                 "num_nextn_predict_layers", "attention_method", "norm_topk_prob"});
  return model;
}

/// Scores, weights and the sum are float32.
inline Tensor mixture(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "mlp", "LongcatFlashMoE");
  const Mixture& m = model.mixture;
  const std::int64_t width = model.sizes.width;
  const Tensor wide = f.to(input, "float32");
  Tensor weights = 0;
  {
    const InModule router(f, "router", "LongcatFlashTopkRouter");
    const Tensor scores = f.linear("classifier", wide, width, m.experts, {.bias = false});
    f.constant("e_score_correction_bias", {m.experts}, "float32");
    weights = f.scale(f.slice(f.call("softmax", {scores}), 2, 0, m.per_token));
  }
  const InModule list(f, "experts", "ModuleList");
  const auto share = [&](Tensor of) {
    return f.call("gather_tokens", {of}, {{"experts", m.experts}, {"per_token", m.per_token}});
  };
  Tensor sum = f.call("token_zeros", {wide});
  const std::int64_t first = f.calls_one_expert() ? model.routed - 1 : 0;
  const std::int64_t last = f.calls_one_expert() ? model.routed : m.experts;
  for (std::int64_t index = first; index < last && !f.failed(); ++index) {
    Tensor made = share(input);
    if (index < model.routed) {
      const InModule one(f, std::to_string(index), m.expert_class);
      f.part_of_expert(static_cast<std::uint32_t>(index + 1));
      made = gated_layer(f, width, m.inner, model.sizes.activation, made);
      f.part_of_expert(0);
    }
    sum = f.call("scatter_tokens", {sum, f.multiply(made, share(f.slice(weights, 2, 0, 1)))});
  }
  return f.as_type_of(sum, input);
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const std::int64_t width = model.sizes.width;
  Tensor hidden = input;
  Tensor shortcut = 0;
  for (const std::string_view half : {"0", "1"}) {
    const auto inside = [&](std::string_view list, const auto& call) {
      const InModule open(f, list, "ModuleList");
      return call();
    };
    const auto norm = [&](std::string_view list) {
      return inside(list, [&] { return f.rms_norm(half, hidden, width, "LongcatFlashRMSNorm"); });
    };
    LatentAttention attention = model.attention;
    attention.name = half;
    const Tensor normed = norm("input_layernorm");
    hidden = f.add(hidden, inside("self_attn", [&] { return latent_attention(f, attention, normed, rotary); }));
    const Tensor again = norm("post_attention_layernorm");
    if (half == "0") shortcut = mixture(f, model, again);
    hidden = f.add(hidden, inside("mlps", [&] {
                     const InModule one(f, half, "LongcatFlashMLP");
                     return gated_layer(f, width, model.sizes.inner, model.sizes.activation, again);
                   }));
  }
  return f.add(hidden, shortcut);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DecoderSizes& s = model.sizes;
  warn_of_routing(f);
  decoder_model(f, config, s, head, {.class_name = "LongcatFlashModel"}, [&](Tensor ids, Tensor hidden) {
    const Rotary rotary = rotary_tables(f, ids, model.attention.rotary_width);
    hidden = stack(f, "layers", "LongcatFlashDecoderLayer", s.layers, hidden,
                   [&](Tensor x, std::int64_t) { return block(f, model, x, rotary); });
    return f.rms_norm("norm", hidden, s.width, "LongcatFlashRMSNorm");
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"LongcatFlash", "longcat_flash", "model"}});

/// What print(model) of transformers 4 shows, whose experts are modules.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  t.count("num_layers", "layers");
  tree_latent_attention(t, "layers.0.self_attn.0");
  t.size("ffn_hidden_size", "layers.0.mlps.0.gate_proj", "out_features");
  t.size("expert_ffn_hidden_size", "layers.0.mlp.experts.0.gate_proj", "out_features");
  const std::int64_t all = t.value("layers.0.mlp.router.classifier", "out_features").value_or(0);
  std::int64_t routed = 0;
  while (routed < all && t.has("layers.0.mlp.experts." + std::to_string(routed) + ".gate_proj")) ++routed;
  if (routed == 0) return;
  constexpr std::int64_t kChosen = 12;
  t.set("n_routed_experts", routed);
  t.set_text("zero_expert_num", std::to_string(all - routed));
  t.set("moe_topk", std::min(kChosen, all));
  t.assume(std::to_string(std::min(kChosen, all)) + " experts a token, as published models have");
}

inline constexpr Architecture kArchitecture = {.name = "longcat",
                                               .model_types = names<"longcat_flash">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree};

}  // namespace longcat

}  // namespace gpumem::architectures
