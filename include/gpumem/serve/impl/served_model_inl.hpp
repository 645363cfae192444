#pragma once

#include "gpumem/serve/served_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gpumem/architectures/architectures.hpp"
#include "gpumem/architectures/config_fields.hpp"
#include "gpumem/architectures/vision_language.hpp"
#include "gpumem/core/bytes.hpp"
#include "gpumem/core/json.hpp"
#include "gpumem/ops/catalogue.hpp"
#include "gpumem/serve/engine_start.hpp"

namespace gpumem::serve {

namespace served_model_detail {

using Kind = core::JsonValue::Kind;

inline core::Error unknown(std::string message, std::string pointer) {
  return {core::ErrorCode::unknown_format, std::move(message), {.file = {}, .line = 0, .element = std::move(pointer)}};
}

/// Linear layers that every rank has whole: projections into a latent space, and an indexer. Source: vLLM's
/// ReplicatedLinear in models/deepseek_v2.py.
inline bool is_replicated(std::string_view name, std::string_view path) {
  return name == "q_a_proj" || name == "kv_a_proj_with_mqa" || path.find(".indexer.") != std::string_view::npos;
}
/// What a pooling model does without: layers of language modelling. Source: vLLM's models/adapters.py,
/// _create_pooling_model_cls(), and models/bert.py, whose embedding models have no pooler.
inline bool is_language_head(std::string_view path, bool classifies) {
  const std::string_view first = path.substr(0, path.find('.'));
  if (first == "lm_head" || first == "cls" || first == "decoder") return true;
  return !classifies && (first == "head" || path.find(".pooler") != std::string_view::npos);
}
/// vLLM never quantises a router.
inline bool is_router(std::string_view name) {
  return name == "gate" || name == "router" || name == "shared_expert_gate";
}

/// The sizes of the experts of a layer in one tensor; null: the layer is none.
inline const std::vector<std::int64_t>* stacked_sizes(const model::ModelGraph& graph, const model::Layer& layer) {
  if (graph.op(layer) != model::kParameterOp) return nullptr;
  const model::AttributeValue* shape = graph.attributes(layer).find("shape");
  const auto* sizes = shape == nullptr ? nullptr : std::get_if<std::vector<std::int64_t>>(shape);
  return sizes != nullptr && sizes->size() == 3 ? sizes : nullptr;
}
inline bool is_stacked(const model::ModelGraph& graph, const model::Layer& layer) {
  return stacked_sizes(graph, layer) != nullptr;
}

/// Elements of a layer's weight without its bias; 0: it is no linear layer.
inline std::int64_t linear_elements(const model::ModelGraph& graph, const model::Layer& layer) {
  if (layer.parameters == 0 || graph.op(layer) == "embedding") return 0;
  const model::Attributes attributes = graph.attributes(layer);
  const auto in = attributes.integer("in_features");
  const auto out = attributes.integer("out_features");
  if (in && out && *out > 0 && *in <= layer.parameters / *out) return *in * *out;
  return is_stacked(graph, layer) ? layer.parameters : 0;
}

/// Whether the layer is of the tower, or leads out of it: the text model is in a module of this name.
inline bool is_of_tower(const model::ModelGraph& graph, const model::Layer& layer) {
  return graph.name(layer) != "lm_head" && graph.path(layer).find("language_model") == std::string::npos;
}

inline bool is_named_by(std::span<const std::string> parts, std::string_view path) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const std::string& part) { return path.find(part) != std::string_view::npos; });
}

/// The sides of a linear layer, for adapters.
inline void count_sides(const model::ModelGraph& graph, const model::Layer& layer, ServedAdapters& adapters) {
  const model::Attributes attributes = graph.attributes(layer);
  const std::int64_t in = attributes.integer("in_features").value_or(0);
  const std::int64_t out = attributes.integer("out_features").value_or(0);
  const bool by_rows = layer.split == model::TensorSplit::rows;
  const bool by_columns = layer.split == model::TensorSplit::columns;
  adapters.split += (by_columns ? out : 0) + (by_rows ? in : 0);
  adapters.whole += (by_columns ? 0 : out) + (by_rows ? 0 : in);
}

inline void count_layer(const model::ModelGraph& graph, const model::Layer& layer,
                        std::span<const std::string> kept_layers, ServedModel& model) {
  ServedWeights& weights = model.weights;
  const std::int64_t alike = std::max<std::int64_t>(1, layer.expert);  // one stands for all
  const std::int64_t own = core::bounded_product({alike, layer.parameters - layer.tied_parameters});
  if (own <= 0 || (model.pools && is_language_head(graph.path(layer), model.classifies))) return;
  if (model.tower.hidden > 0 && is_of_tower(graph, layer)) {
    const std::int64_t shared = linear_elements(graph, layer);
    model.tower.split += shared;
    model.tower.plain += own - shared;
    return;
  }
  const model::Attributes attributes = graph.attributes(layer);
  const std::int64_t rows =
      attributes.integer("num_embeddings").value_or(attributes.integer("out_features").value_or(0));
  if (rows == model.vocabulary) {
    weights.tables += 1;
    weights.table_columns = std::max(weights.table_columns, own / rows);
    weights.plain += own % rows;
    return;
  }
  const std::int64_t linear =
      is_router(graph.name(layer)) ? 0 : core::bounded_product({alike, linear_elements(graph, layer)});
  const auto add = [](std::int64_t& sum, std::int64_t elements) { sum = core::bounded_sum({sum, elements}); };
  add(is_replicated(graph.name(layer), graph.path(layer)) ? weights.replicated : weights.split, linear);
  add(weights.plain, own - linear);
  const bool of_experts = layer.expert > 0 || is_stacked(graph, layer);
  if (of_experts) add(weights.experts, linear);
  else if (linear > 0) count_sides(graph, layer, model.adapters);
  if (linear > 0 && !kept_layers.empty() && is_named_by(kept_layers, graph.path(layer))) add(weights.kept, linear);
  if (graph.name(layer) == "kv_b_proj") weights.latent_up += linear;
}

inline bool has_rotary(std::string_view architecture) {
  constexpr auto kOthers =
      std::to_array<std::string_view>({"bert", "bloom", "gpt2", "gpt_bigcode", "gpt_neo", "mpt", "opt"});
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
  // Qwen's layers from max_window_layers on; Gemma 2's and gpt-oss' every second one; five of six in Gemma 3; Mistral's
  // all.
  if (switched) {
    model.sliding_layers = model.layers - std::min(model.layers, fields.size_or({"max_window_layers"}, model.layers));
  } else if (model.model_type == "gemma2" || model.model_type == "gpt_oss") {
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

/// Source: vLLM's model_executor/layers/rotary_embedding/: linear_scaling_rope.py and dynamic_ntk_scaling_rope.py keep
/// as many times the positions as the factor says, mrope.py four times; layers with a window have a table of their own
/// where their base is another (models/gemma3.py).
inline std::int64_t rotary_rows(architectures::ConfigFields& fields, std::int64_t positions, bool own_base) {
  double times = 1.0;
  for (const std::string_view name : {"rope_scaling", "rope_parameters"}) {
    const core::JsonValue* scaling = fields.find(name);
    if (scaling == nullptr || !scaling->is(Kind::object)) continue;
    double factor = 1.0;
    bool grows = false;
    for (const core::JsonValue& field : scaling->items()) {
      const bool names_type = field.key() == "rope_type" || field.key() == "type";
      if (names_type && field.is(Kind::text)) grows = field.text() == "linear" || field.text() == "dynamic";
      if (field.key() == "factor" && field.is(Kind::real)) factor = field.real();
      if (field.key() == "factor" && field.is(Kind::integer)) factor = static_cast<double>(field.integer());
      if (field.key() == "mrope_section") times = 4.0;
    }
    if (grows) times = std::clamp(factor, 1.0, 1024.0);
  }
  const auto rows = static_cast<std::int64_t>(static_cast<double>(positions) * times);
  return rows + (own_base ? positions : 0);
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
  model.rotary_rows = rotary_rows(fields, model.max_positions, model.model_type.starts_with("gemma3"));
  read_feed_forward(fields, model);
  read_windows(fields, model);
}

/// Fields of models whose caches or layers are of a kind that has no rules, with what they say.
struct UnservedField {
  std::string_view field;
  std::string_view says;
};
inline constexpr auto kUnserved =
    std::to_array<UnservedField>({{"swa_num_key_value_heads", "layers with a window have other heads"},
                                  {"block_configs", "its layers differ from each other"}});

/// Encoders of which vLLM has a class. Source: model_executor/models/registry.py, _EMBEDDING_MODELS and
/// _SEQUENCE_CLASSIFICATION_MODELS.
inline bool is_served_encoder(architectures::ConfigFields& fields) {
  constexpr auto kServed = std::to_array<std::string_view>({"bert", "roberta", "xlm-roberta", "modernbert"});
  const core::JsonValue* type = fields.find("model_type");
  return type != nullptr && type->is(Kind::text) &&
         std::find(kServed.begin(), kServed.end(), type->text()) != kServed.end();
}

/// The class that the config names first.
inline std::string_view class_of(architectures::ConfigFields& fields) {
  const core::JsonValue* names = fields.find("architectures");
  if (names == nullptr || !names->is(Kind::list) || names->size() == 0) return {};
  const core::JsonValue& first = *names->items().begin();
  return first.is(Kind::text) ? first.text() : std::string_view();
}

/// Whether vLLM takes a class for embeddings or for classes, where nobody says so. Source: config/model.py,
/// _SUFFIX_TO_DEFAULTS.
inline bool classifies(std::string_view name) {
  return name.ends_with("Classification") || name.ends_with("ClassificationModel");
}
inline bool embeds_texts(std::string_view name) {
  constexpr auto kEndings = std::to_array<std::string_view>(
      {"ForTextEncoding", "EmbeddingModel", "ForRewardModeling", "RewardModel", "Model"});
  return !name.ends_with("LMHeadModel") && !name.ends_with("ChatModel") &&
         std::any_of(kEndings.begin(), kEndings.end(), [&](std::string_view end) { return name.ends_with(end); });
}

/// An encoder keeps nothing between steps (EncoderOnlyAttentionSpec). RoBERTa's positions begin behind the padding's.
inline void read_pooling(architectures::ConfigFields& fields, bool caches, ServedModel& model) {
  const std::string_view name = class_of(fields);
  model.classifies = classifies(name);
  model.pools = model.classifies || embeds_texts(name) || !caches;
  if (caches) return;
  model.attention_layers = 0;
  if (model.model_type.ends_with("roberta")) model.max_positions = std::max<std::int64_t>(1, model.max_positions - 2);
}

/// An indexer keeps a vector of 8 bits for each token, with a float32 scale for 128 of them. Source: vLLM's
/// models/deepseek_v2.py, Indexer and DeepseekV32IndexerCache.
inline void read_indexer(architectures::ConfigFields& fields, ServedModel& model) {
  if (!fields.has("index_head_dim")) return;
  const std::int64_t width = fields.size({"index_head_dim"});
  model.index_bytes = width + divided_up(width, 128) * 4;
  model.index_keys = fields.size_or({"index_topk"}, 2048);
}

inline core::Status check_served(const model::ModelGraph& graph, architectures::ConfigFields& fields) {
  constexpr auto kEncoders = std::to_array<std::string_view>({"bart", "t5", "whisper", "megatron_t5"});
  const auto refused = [&](std::string_view why) {
    return unknown("no rules for serving a \"" + std::string(graph.architecture()) + "\": " + std::string(why),
                   "/model_type");
  };
  const bool caches = architectures::keeps_cache(graph);
  const bool halves = std::find(kEncoders.begin(), kEncoders.end(), graph.architecture()) != kEncoders.end();
  if (halves || (!caches && !is_served_encoder(fields))) {
    return refused("known are decoders with a KV cache, and the encoders bert, roberta, xlm-roberta and modernbert");
  }
  for (const UnservedField& each : kUnserved) {
    if (fields.has(each.field)) return refused(each.says);
  }
  return core::Done{};
}

inline void count_weights(const model::ModelGraph& graph, std::span<const std::string> kept_layers,
                          ServedModel& model) {
  for (const model::Layer& layer : graph.layers()) count_layer(graph, layer, kept_layers, model);
  if (model.latent_dim == 0) {
    const core::Checked made = core::Checked(2 * model.attention_layers) * core::Checked(model.hidden) *
                               core::Checked(model.kv_heads) * core::Checked(model.head_dim);
    model.weights.keys_values = std::min(made.value().value_or(INT64_MAX), model.weights.split);
  }
  model.gated = names(graph, "gate_proj") || names(graph, "Wi") || names(graph, "gate_up_proj") || names(graph, "w1") ||
                model.experts > 0;
  if (!has_rotary(graph.architecture())) model.rotary_dim = 0;
  model.doubts.assign(graph.doubts().begin(), graph.doubts().end());
}

}  // namespace served_model_detail

GPUMEM_INLINE core::Result<ServedModel> read_served_model(std::string_view config_json) {
  const core::Result<model::ModelGraph> graph = architectures::read_config_once(config_json, ops::vocabulary());
  if (!graph) return graph.error();
  const core::Result<core::JsonDocument> document =
      core::JsonDocument::parse(config_json, architectures::kConfigLimits);
  if (!document) return document.error();
  architectures::ConfigFields fields(document->root());
  if (const core::Status served = served_model_detail::check_served(*graph, fields); !served) return served.error();
  ServedModel model;
  const std::string outer(fields.text({"model_type"}, ""));
  architectures::ConfigFields* text = &fields;
  if (fields.has("text_config")) {
    text = architectures::text_fields(fields, outer);
    if (text == nullptr) return fields.status().error();
  }
  if (const core::Status served = served_model_detail::check_served(*graph, *text); !served) return served.error();
  model.model_type = text->text({"model_type"}, "");
  served_model_detail::read_sizes(*text, model);
  model.attention_layers = model.layers;
  served_model_detail::read_indexer(*text, model);
  served_model_detail::read_pooling(fields, architectures::keeps_cache(*graph), model);
  model.chunked = text->has("attention_chunk_size");
  model.draft_vocabulary = text->has("draft_vocab_size") ? text->size({"draft_vocab_size"}) : 0;
  core::Status parts = read_states(*graph, *text, model);
  if (parts && graph->doubts(model::Doubt::About::images)) parts = read_tower(fields, outer, model);
  if (core::Status read = fields.status(); !read) return read.error();
  if (core::Status read = text->status(); !read) return read.error();
  if (!parts) return parts.error();
  const core::JsonValue* quantized = fields.find("quantization_config");
  if (quantized == nullptr || !quantized->is(core::JsonValue::Kind::object)) {
    served_model_detail::count_weights(*graph, {}, model);
    return model;
  }
  std::vector<model::Doubt> doubts;
  served_model_detail::count_weights(*graph, kept_layers(*quantized, doubts), model);
  std::erase_if(model.doubts, [](const auto& doubt) { return doubt.about == model::Doubt::About::quantization; });
  model.doubts.insert(model.doubts.end(), doubts.begin(), doubts.end());
  if (const core::Status read = read_quantization(*quantized, model); !read) return read.error();
  return model;
}

}  // namespace gpumem::serve
