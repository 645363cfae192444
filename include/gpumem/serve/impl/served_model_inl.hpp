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

/// A part of the names of layers: "self_attn" of "re:.*self_attn.*" and of "*.self_attn*"; empty: the pattern says more
/// than that.
inline std::string plain_part(std::string_view pattern) {
  if (pattern.starts_with("re:")) pattern.remove_prefix(3);
  std::string part;
  for (const char each : pattern) {
    if (each != '\\' && each != '^' && each != '$') part.push_back(each);
  }
  for (const std::string_view any : {".*", "*", "."}) {
    if (part.starts_with(any)) part.erase(0, any.size());
    if (part.ends_with(any)) part.erase(part.size() - any.size());
  }
  return part.find_first_of("[](){}|?+*") == std::string::npos ? part : std::string();
}

/// Layers that stay as they are, by parts of their names. Source: the lists of compressed-tensors, AWQ and fp8, and
/// ModelOpt.
inline std::vector<std::string> kept_layers(const core::JsonValue& quantization, std::vector<model::Doubt>& doubts) {
  constexpr std::size_t kMostPatterns = 4096;
  std::vector<std::string> parts;
  for (const core::JsonValue& field : quantization.items()) {
    const bool listed =
        field.key() == "ignore" || field.key() == "modules_to_not_convert" || field.key() == "exclude_modules";
    if (!listed || !field.is(Kind::list)) continue;
    for (const core::JsonValue& item : field.items()) {
      if (!item.is(Kind::text) || parts.size() == kMostPatterns) continue;
      std::string part = plain_part(item.text());
      if (!part.empty()) {
        parts.push_back(std::move(part));
      } else {
        doubts.push_back({model::Doubt::About::quantization,
                          "layers that quantization_config leaves out by a "
                          "pattern that is not read: " +
                              core::shortened(item.text(), 40)});
      }
    }
  }
  return parts;
}

/// NVFP4: 16 weights share a scale of one byte.
inline void read_nvfp4(ServedModel& model) {
  model.weight_bits = 4;
  model.group_size = 16;
  model.scale_bytes = 1;
}

/// Bits of a linear layer's weights, and how many share a scale.
inline core::Status read_quantization(const core::JsonValue& quantization, ServedModel& model) {
  const core::JsonValue* weights = &quantization;
  std::string_view method;
  std::string_view algorithm;
  for (const core::JsonValue& field : quantization.items()) {
    if (field.key() == "quant_method" && field.is(Kind::text)) method = field.text();
    if (field.key() == "quant_algo" && field.is(Kind::text)) algorithm = field.text();
    if (field.key() != "config_groups" || !field.is(Kind::object) || field.size() != 1) continue;
    if (const core::JsonValue* of = object_in(*field.items().begin(), "weights")) weights = of;
  }
  if (method == "mxfp4") {
    model.held = HeldWeights::mxfp4_experts;
    return core::Done{};
  }
  model.held = HeldWeights::packed;
  bool floats = false;
  for (const core::JsonValue& field : weights->items()) {
    floats = floats || (field.key() == "type" && field.is(Kind::text) && field.text() == "float");
    if (!field.is(Kind::integer)) continue;
    if (field.key() == "num_bits" || field.key() == "bits" || field.key() == "w_bit") {
      model.weight_bits = field.integer();
    }
    if ((field.key() == "group_size" || field.key() == "q_group_size") && field.integer() > 0) {
      model.group_size = field.integer();
    }
  }
  if (method == "fp8" || algorithm == "FP8") model.weight_bits = 8;
  if (algorithm == "NVFP4" || (floats && model.weight_bits == 4 && model.group_size == 16)) read_nvfp4(model);
  if (method == "compressed-tensors" && model.weight_bits == 0) {
    model.weight_bits = 8;
    model.doubts.push_back({model::Doubt::About::quantization,
                            "quantization_config does not say of how many bits the weights are: 8 were taken"});
  }
  constexpr auto kMethods =
      std::to_array<std::string_view>({"compressed-tensors", "gptq", "awq", "fp8", "modelopt", "modelopt_fp4"});
  const bool known = std::find(kMethods.begin(), kMethods.end(), method) != kMethods.end();
  if (known && (model.weight_bits == 4 || model.weight_bits == 8)) return core::Done{};
  return unknown(
      "no rules for this quantisation; known: mxfp4 of gpt-oss, and compressed-tensors with one group, gptq, awq, "
      "modelopt and fp8, of 4 or 8 bits",
      "/quantization_config");
}

/// Linear layers that every rank has whole. Source: vLLM's ReplicatedLinear in models/deepseek_v2.py.
inline bool is_latent(std::string_view name) { return name == "q_a_proj" || name == "kv_a_proj_with_mqa"; }
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
  const std::int64_t own = layer.parameters - layer.tied_parameters;
  if (own <= 0) return;
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
  const std::int64_t linear = is_router(graph.name(layer)) ? 0 : linear_elements(graph, layer);
  (is_latent(graph.name(layer)) ? weights.replicated : weights.split) += linear;
  weights.plain += own - linear;
  const bool of_experts = layer.expert > 0 || is_stacked(graph, layer);
  if (of_experts) weights.experts += linear;
  else if (linear > 0) count_sides(graph, layer, model.adapters);
  if (linear > 0 && !kept_layers.empty() && is_named_by(kept_layers, graph.path(layer))) weights.kept += linear;
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
    std::to_array<UnservedField>({{"index_head_dim", "an indexer has a cache of its own"},
                                  {"swa_num_key_value_heads", "layers with a window have other heads"},
                                  {"block_configs", "its layers differ from each other"},
                                  {"attention_chunk_size", "attention is in chunks"}});

inline bool reads_images(const model::ModelGraph& graph) {
  return std::any_of(graph.doubts().begin(), graph.doubts().end(),
                     [](const model::Doubt& doubt) { return doubt.about == model::Doubt::About::images; });
}

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
  for (const UnservedField& each : kUnserved) {
    if (fields.has(each.field)) return refused(each.says);
  }
  return core::Done{};
}

/// How many modules of the graph hold a layer that carries a state.
inline std::int64_t recurrent_modules(const model::ModelGraph& graph) {
  std::set<std::uint32_t> modules;
  for (const model::Layer& layer : graph.layers()) {
    const model::OpTraits* op = graph.op_traits(layer);
    if (op != nullptr && op->family == model::OpFamily::recurrent) modules.insert(layer.scope);
  }
  return static_cast<std::int64_t>(modules.size());
}

/// Layers whose keys and values a cache holds: each hands on two tensors.
inline std::int64_t attention_layers(const model::ModelGraph& graph) {
  return std::count_if(graph.layers().begin(), graph.layers().end(),
                       [&](const model::Layer& layer) { return graph.attributes(layer).find("cache") != nullptr; }) /
         2;
}

/// What a layer with a state keeps of each sequence. Source: vLLM's model_executor/layers/mamba/mamba_utils.py:
/// MambaStateShapeCalculator.gated_delta_net_state_shape(), mamba2_state_shape() and
/// mamba1_state_shape(), and MambaStateDtypeCalculator.
inline core::Status read_states(const model::ModelGraph& graph, architectures::ConfigFields& fields,
                                ServedModel& model) {
  ServedStates& states = model.states;
  states.layers = recurrent_modules(graph);
  if (states.layers == 0) return core::Done{};
  model.attention_layers = std::min(model.layers, attention_layers(graph));
  const auto product = [](std::initializer_list<std::int64_t> sizes) {
    core::Checked all(1);
    for (const std::int64_t size : sizes) all = all * core::Checked(size);
    return all.value().value_or(INT64_MAX);
  };
  const std::int64_t kept = fields.size_or({"linear_conv_kernel_dim", "mamba_d_conv", "conv_kernel"}, 4) - 1;
  if (fields.has("linear_num_value_heads")) {
    const std::int64_t values = fields.size({"linear_num_value_heads"});
    const std::int64_t key_width = fields.size({"linear_key_head_dim"});
    const std::int64_t value_width = fields.size({"linear_value_head_dim"});
    const std::int64_t keys = product({2, fields.size({"linear_num_key_heads"}), key_width});
    states.convolved = product({keys + product({values, value_width}), kept});
    states.carried = product({values, value_width, key_width});
    states.in_float32 = fields.text({"mamba_ssm_dtype"}, "") == "float32";
    return core::Done{};
  }
  if (model.model_type == "jamba") {
    const std::int64_t wide = product({fields.size_or({"mamba_expand"}, 2), model.hidden});
    states.convolved = product({wide, kept});
    states.carried = product({wide, fields.size_or({"mamba_d_state"}, 16)});
    return core::Done{};
  }
  const std::int64_t heads = fields.size_or({"mamba_n_heads", "mamba_num_heads"}, 0);
  if (heads == 0) return unknown("no rules for the state that its layers hold besides a KV cache", "/model_type");
  const std::int64_t inner = product({heads, fields.size({"mamba_d_head", "mamba_head_dim"})});
  const std::int64_t width = fields.size({"mamba_d_state", "ssm_state_size"});
  const std::int64_t groups = fields.size_or({"mamba_n_groups", "n_groups"}, 1);
  states.convolved = product({inner + product({2, groups, width}), kept});
  states.carried = product({inner, width});
  states.in_float32 = fields.text({"mamba_ssm_cache_dtype"}, "") == "float32";
  return core::Done{};
}

/// What the profiling pass gives the tower: the image that takes most tokens. Source: vLLM's models/pixtral.py,
/// PixtralHFEncoderInfo; models/gemma3_mm.py; models/llava.py: get_image_size_with_most_features(). Of Qwen's it is
/// 16,384 tokens (models/qwen2_vl.py, IMAGE_MAX... of the processor's max_pixels).
inline core::Status read_tower(architectures::ConfigFields& fields, std::string_view type, ServedModel& model) {
  architectures::ConfigFields* vision = fields.part("vision_config");
  if (vision == nullptr) return unknown("the sizes of its image tower are not in \"vision_config\"", "/vision_config");
  ServedTower& tower = model.tower;
  tower.hidden = vision->size_or({"hidden_size", "embed_dim"}, 1024);
  tower.intermediate = vision->size_or({"intermediate_size"}, 4 * tower.hidden);
  const std::int64_t patch = vision->size_or({"patch_size"}, 14);
  if (type.starts_with("qwen")) {
    constexpr std::int64_t kMostTokens = 16384;
    const std::int64_t merge = vision->size_or({"spatial_merge_size"}, 2);
    const std::int64_t frames = vision->size_or({"temporal_patch_size"}, 2);
    tower.tokens = kMostTokens;
    tower.patches = kMostTokens * std::min<std::int64_t>(merge, 64) * std::min<std::int64_t>(merge, 64);
    tower.pixels = tower.patches * 3 * std::min<std::int64_t>(frames, 64) * std::min<std::int64_t>(patch * patch, 4096);
    return core::Done{};
  }
  constexpr std::int64_t kWidest = 16384;
  const std::int64_t side = std::min(vision->size({"image_size"}), kWidest);
  const std::int64_t patches = std::max<std::int64_t>(1, side / patch);
  tower.patches = patches * patches;
  tower.pixels = 3 * side * side;
  if (type == "gemma3") {
    tower.tokens = fields.size_or({"mm_tokens_per_image"}, 256);
  } else if (type == "mistral3") {
    const std::int64_t merged = std::max<std::int64_t>(1, patches / fields.size_or({"spatial_merge_size"}, 2));
    tower.tokens = merged * merged;
  } else if (type == "llava") {
    tower.tokens = tower.patches;
  } else {
    return unknown("the profiling pass of its image tower is not known", "/vision_config");
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
  core::Status parts = served_model_detail::read_states(*graph, *text, model);
  if (parts && served_model_detail::reads_images(*graph)) {
    parts = served_model_detail::read_tower(fields, outer, model);
  }
  if (core::Status read = fields.status(); !read) return read.error();
  if (core::Status read = text->status(); !read) return read.error();
  if (!parts) return parts.error();
  const core::JsonValue* quantized = fields.find("quantization_config");
  if (quantized == nullptr || !quantized->is(core::JsonValue::Kind::object)) {
    served_model_detail::count_weights(*graph, {}, model);
    return model;
  }
  std::vector<model::Doubt> doubts;
  served_model_detail::count_weights(*graph, served_model_detail::kept_layers(*quantized, doubts), model);
  std::erase_if(model.doubts, [](const auto& doubt) { return doubt.about == model::Doubt::About::quantization; });
  model.doubts.insert(model.doubts.end(), doubts.begin(), doubts.end());
  if (const core::Status read = served_model_detail::read_quantization(*quantized, model); !read) return read.error();
  return model;
}

}  // namespace gpumem::serve
