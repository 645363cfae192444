#pragma once

#include "gpumem/serve/served_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "gpumem/architectures/architectures.hpp"
#include "gpumem/architectures/config_fields.hpp"
#include "gpumem/core/bytes.hpp"
#include "gpumem/core/json.hpp"
#include "gpumem/ops/catalogue.hpp"

namespace gpumem::serve {

namespace served_model_detail {

using Kind = core::JsonValue::Kind;

inline core::Error unknown(std::string message, std::string pointer) {
  return {core::ErrorCode::unknown_format, std::move(message), {.file = {}, .line = 0, .element = std::move(pointer)}};
}

/// The object of this name; null: there is none.
inline const core::JsonValue* object_in(const core::JsonValue& config, std::string_view name) {
  for (const core::JsonValue& field : config.items()) {
    if (field.key() == name && field.is(Kind::object)) return &field;
  }
  return nullptr;
}

/// Bits of a linear layer's weights, and how many share a scale.
inline core::Status read_quantization(const core::JsonValue& quantization, ServedModel& model) {
  const core::JsonValue* weights = &quantization;
  std::string_view method;
  for (const core::JsonValue& field : quantization.items()) {
    if (field.key() == "quant_method" && field.is(Kind::text)) method = field.text();
    if (field.key() != "config_groups" || !field.is(Kind::object) || field.size() != 1) continue;
    if (const core::JsonValue* of = object_in(*field.items().begin(), "weights")) weights = of;
  }
  for (const core::JsonValue& field : weights->items()) {
    if (!field.is(Kind::integer)) continue;
    if (field.key() == "num_bits" || field.key() == "bits" || field.key() == "w_bit") {
      model.weight_bits = field.integer();
    }
    if ((field.key() == "group_size" || field.key() == "q_group_size") && field.integer() > 0) {
      model.group_size = field.integer();
    }
  }
  if (method == "fp8") model.weight_bits = 8;
  if (method == "compressed-tensors" && model.weight_bits == 0) {
    model.weight_bits = 8;
    model.doubts.push_back({model::Doubt::About::quantization,
                            "quantization_config does not say of how many bits the weights are: 8 were taken"});
  }
  const bool known = method == "compressed-tensors" || method == "gptq" || method == "awq" || method == "fp8";
  if (known && (model.weight_bits == 4 || model.weight_bits == 8)) return core::Done{};
  return unknown(
      "no rules for this quantisation; known: compressed-tensors with one group, gptq, awq and fp8, of 4 or 8 "
      "bits",
      "/quantization_config");
}

/// Linear layers that every rank has whole. Source: vLLM's ReplicatedLinear in models/deepseek_v2.py.
inline bool is_latent(std::string_view name) { return name == "q_a_proj" || name == "kv_a_proj_with_mqa"; }
/// vLLM never quantises a router.
inline bool is_router(std::string_view name) {
  return name == "gate" || name == "router" || name == "shared_expert_gate";
}

/// Elements of a layer's weight without its bias; 0: it is no linear layer.
inline std::int64_t linear_elements(const model::ModelGraph& graph, const model::Layer& layer) {
  if (layer.parameters == 0 || graph.op(layer) == "embedding") return 0;
  const model::Attributes attributes = graph.attributes(layer);
  const auto in = attributes.integer("in_features");
  const auto out = attributes.integer("out_features");
  if (in && out && *out > 0 && *in <= layer.parameters / *out) return *in * *out;
  // The experts of a layer in one tensor.
  const model::AttributeValue* shape = graph.op(layer) == model::kParameterOp ? attributes.find("shape") : nullptr;
  const auto* sizes = shape == nullptr ? nullptr : std::get_if<std::vector<std::int64_t>>(shape);
  return sizes != nullptr && sizes->size() == 3 ? layer.parameters : 0;
}

inline void count_layer(const model::ModelGraph& graph, const model::Layer& layer, ServedModel& model) {
  ServedWeights& weights = model.weights;
  const std::int64_t own = layer.parameters - layer.tied_parameters;
  if (own <= 0) return;
  const model::Attributes attributes = graph.attributes(layer);
  const std::int64_t rows =
      attributes.integer("num_embeddings").value_or(attributes.integer("out_features").value_or(0));
  if (rows == model.vocabulary) {
    weights.tables += 1;
    weights.table_columns = std::max(weights.table_columns, own / rows);
    weights.plain += own % rows;
    return;
  }
  const std::int64_t linear = is_router(graph.name(layer)) ? 0 : linear_elements(graph, layer);
  (is_latent(graph.name(layer)) ? weights.replicated : weights.split) += linear;
  weights.plain += own - linear;
  if (graph.name(layer) == "kv_b_proj") weights.latent_up += linear;
}

inline bool has_rotary(std::string_view architecture) {
  constexpr auto kOthers = std::to_array<std::string_view>({"bloom", "gpt2", "gpt_bigcode", "gpt_neo", "mpt", "opt"});
  return std::find(kOthers.begin(), kOthers.end(), architecture) == kOthers.end();
}

inline bool names(const model::ModelGraph& graph, std::string_view name) {
  return std::any_of(graph.layers().begin(), graph.layers().end(),
                     [&](const model::Layer& layer) { return graph.name(layer) == name; });
}

/// Layers that read only a window, where the config or the class says so.
inline void read_windows(architectures::ConfigFields& fields, ServedModel& model) {
  if (!fields.has("sliding_window")) return;
  const bool switched = model.model_type.starts_with("qwen");
  if (switched && !fields.flag("use_sliding_window", false)) return;
  model.sliding_window = fields.size({"sliding_window"});
  if (model.sliding_window >= model.max_positions) return;
  if (const core::JsonValue* types = fields.find("layer_types"); types != nullptr && types->is(Kind::list)) {
    for (const core::JsonValue& type : types->items()) {
      model.sliding_layers += type.is(Kind::text) && type.text() == "sliding_attention" ? 1 : 0;
    }
    model.sliding_layers = std::min(model.sliding_layers, model.layers);
    return;
  }
  // Qwen's layers from max_window_layers on; Gemma 2's every second one; five of six in Gemma 3; Mistral's all.
  if (switched) {
    model.sliding_layers = model.layers - std::min(model.layers, fields.size_or({"max_window_layers"}, model.layers));
  } else if (model.model_type == "gemma2") {
    model.sliding_layers = (model.layers + 1) / 2;
  } else if (model.model_type.starts_with("gemma3")) {
    model.sliding_layers = model.layers - model.layers / fields.size_or({"sliding_window_pattern"}, 6);
  } else {
    model.sliding_layers = model.layers;
  }
}

inline void read_attention(architectures::ConfigFields& fields, ServedModel& model) {
  model.heads = fields.size({"num_attention_heads", "n_head", "n_heads", "num_heads"});
  const bool one_key = fields.flag("multi_query", false) && !fields.flag("new_decoder_architecture", false);
  model.kv_heads =
      fields.size_or({"num_key_value_heads", "num_kv_heads", "multi_query_group_num"}, one_key ? 1 : model.heads);
  if (one_key) model.kv_heads = 1;
  model.head_dim = fields.size_or({"head_dim", "kv_channels"}, std::max<std::int64_t>(1, model.hidden / model.heads));
  if (fields.has("kv_lora_rank")) {
    model.latent_dim = fields.size({"kv_lora_rank"}) + fields.size({"qk_rope_head_dim"});
    model.rotary_dim = fields.size({"qk_rope_head_dim"});
    return;
  }
  const double share = std::clamp(fields.number({"partial_rotary_factor", "rotary_pct"}, 1.0), 0.0, 1.0);
  model.rotary_dim = static_cast<std::int64_t>(static_cast<double>(model.head_dim) * share);
}

inline void read_feed_forward(architectures::ConfigFields& fields, ServedModel& model) {
  model.experts = fields.size_or({"num_local_experts", "num_experts", "n_routed_experts"}, 0);
  model.experts_per_token = model.experts > 0 ? fields.size_or({"num_experts_per_tok", "moe_topk", "moe_top_k"}, 1) : 0;
  const std::int64_t dense =
      fields.size_or({"intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size"}, 4 * model.hidden);
  model.intermediate = model.experts > 0 ? fields.size_or({"moe_intermediate_size"}, dense) : dense;
}

inline void read_sizes(architectures::ConfigFields& fields, ServedModel& model) {
  model.layers = fields.layers({"num_hidden_layers", "n_layer", "n_layers", "num_layers"});
  model.hidden = fields.size({"hidden_size", "n_embd", "d_model"});
  model.vocabulary = fields.size({"vocab_size", "padded_vocab_size"});
  model.max_positions =
      fields.size({"max_position_embeddings", "n_positions", "max_seq_len", "max_sequence_length", "seq_length"});
  read_attention(fields, model);
  read_feed_forward(fields, model);
  read_windows(fields, model);
}

/// Fields of models whose caches or layers are of a kind that has no rules, with what they say.
struct UnservedField {
  std::string_view field;
  std::string_view says;
};
inline constexpr auto kUnserved =
    std::to_array<UnservedField>({{"index_head_dim", "an indexer has a cache of its own"},
                                  {"swa_num_key_value_heads", "layers with a window have other heads"},
                                  {"block_configs", "its layers differ from each other"},
                                  {"attention_chunk_size", "attention is in chunks"}});

inline core::Status check_served(const model::ModelGraph& graph, const architectures::ConfigFields& fields) {
  constexpr auto kEncoders = std::to_array<std::string_view>({"bart", "t5", "whisper", "megatron_t5"});
  const auto refused = [&](std::string_view why) {
    return unknown("no rules for serving a \"" + std::string(graph.architecture()) + "\": " + std::string(why),
                   "/model_type");
  };
  const bool caches = architectures::keeps_cache(graph);
  if (!caches || std::find(kEncoders.begin(), kEncoders.end(), graph.architecture()) != kEncoders.end()) {
    return refused("only decoders with a KV cache are known");
  }
  if (architectures::keeps_state(graph)) return refused("its layers hold states besides a KV cache");
  const auto of_images = [](const model::Doubt& doubt) { return doubt.about == model::Doubt::About::images; };
  if (std::ranges::any_of(graph.doubts(), of_images))
    return refused("the profiling pass of an image tower is not known");
  for (const UnservedField& each : kUnserved) {
    if (fields.has(each.field)) return refused(each.says);
  }
  return core::Done{};
}

inline void count_weights(const model::ModelGraph& graph, ServedModel& model) {
  for (const model::Layer& layer : graph.layers()) count_layer(graph, layer, model);
  if (model.latent_dim == 0) {
    const core::Checked made = core::Checked(2 * model.layers) * core::Checked(model.hidden) *
                               core::Checked(model.kv_heads) * core::Checked(model.head_dim);
    model.weights.keys_values = std::min(made.value().value_or(INT64_MAX), model.weights.split);
  }
  model.gated = names(graph, "gate_proj") || names(graph, "gate_up_proj") || names(graph, "w1") || model.experts > 0;
  if (!has_rotary(graph.architecture())) model.rotary_dim = 0;
  model.doubts.assign(graph.doubts().begin(), graph.doubts().end());
}

}  // namespace served_model_detail

GPUMEM_INLINE core::Result<ServedModel> read_served_model(std::string_view config_json) {
  const core::Result<model::ModelGraph> graph = architectures::read_config(config_json, ops::vocabulary());
  if (!graph) return graph.error();
  const core::Result<core::JsonDocument> document =
      core::JsonDocument::parse(config_json, architectures::kConfigLimits);
  if (!document) return document.error();
  architectures::ConfigFields fields(document->root());
  if (const core::Status served = served_model_detail::check_served(*graph, fields); !served) return served.error();
  ServedModel model;
  model.model_type = fields.text({"model_type"}, "");
  served_model_detail::read_sizes(fields, model);
  if (core::Status read = fields.status(); !read) return read.error();
  served_model_detail::count_weights(*graph, model);
  if (const core::JsonValue* of = fields.find("quantization_config");
      of != nullptr && of->is(core::JsonValue::Kind::object)) {
    std::erase_if(model.doubts, [](const auto& doubt) { return doubt.about == model::Doubt::About::quantization; });
    if (const core::Status read = served_model_detail::read_quantization(*of, model); !read) return read.error();
  }
  return model;
}

}  // namespace gpumem::serve
