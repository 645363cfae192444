#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/json.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/posttrain/launch.hpp"
#include "gpumem/posttrain/phases.hpp"

namespace gpumem::posttrain {

namespace launch_megatron_detail {

/// What a family's layers have that its config.json does not say.
struct Family {
  std::string_view model_type;
  bool query_bias = false;
  bool normed_heads = false;
  bool sees = false;
};
inline constexpr std::array kFamilies = {
    Family{"llama"},
    Family{"mistral"},
    Family{.model_type = "qwen2", .query_bias = true},
    Family{.model_type = "qwen3", .normed_heads = true},
    Family{.model_type = "qwen3_moe", .normed_heads = true},
    // The language models of those that see; their towers are not Megatron's.
    Family{.model_type = "qwen2_vl", .query_bias = true, .sees = true},
    Family{.model_type = "qwen2_5_vl", .query_bias = true, .sees = true},
    Family{.model_type = "qwen3_vl", .normed_heads = true, .sees = true},
    Family{.model_type = "qwen3_vl_moe", .normed_heads = true, .sees = true},
    // The thinkers of those that speak.
    Family{.model_type = "qwen2_5_omni", .query_bias = true, .sees = true},
    Family{.model_type = "qwen2_5_omni_thinker", .query_bias = true, .sees = true},
    Family{.model_type = "qwen3_omni_moe", .normed_heads = true, .sees = true},
    Family{.model_type = "qwen3_omni_moe_thinker", .normed_heads = true, .sees = true},
};

class Converter {
 public:
  explicit Converter(const core::JsonValue& root)
      : root_(root), thinker_(in(root, "thinker_config")), text_config_(in(whole(), "text_config")) {}

  /// Of the language model, where it has a config of its own; else of the whole.
  [[nodiscard]] const core::JsonValue* find(std::string_view key) const {
    const core::JsonValue* const own = text_config_ == nullptr ? nullptr : in(*text_config_, key);
    return own != nullptr ? own : in(whole(), key);
  }
  /// The model's own type, and whether its embedding is its head.
  [[nodiscard]] const core::JsonValue* of_whole(std::string_view key) const { return in(root_, key); }
  /// Copies a whole number under Megatron's name; false: there is none.
  bool number(std::string_view from, std::string_view to) {
    const core::JsonValue* const value = find(from);
    if (value == nullptr || !value->is(core::JsonValue::Kind::integer)) return false;
    put(to, std::to_string(value->integer()));
    return true;
  }
  void put(std::string_view key, std::string_view value) {
    text_.append(text_.empty() ? "{" : ", ").append("\"").append(key).append("\": ").append(value);
  }
  void flag(std::string_view key, bool value) { put(key, value ? "true" : "false"); }
  [[nodiscard]] std::string take() && { return std::move(text_) + "}"; }

 private:
  /// The model, or the thinker of one that speaks.
  [[nodiscard]] const core::JsonValue& whole() const { return thinker_ == nullptr ? root_ : *thinker_; }
  static const core::JsonValue* in(const core::JsonValue& object, std::string_view key) {
    if (!object.is(core::JsonValue::Kind::object)) return nullptr;
    for (const core::JsonValue& field : object.items()) {
      if (field.key() == key && !field.is(core::JsonValue::Kind::null)) return &field;
    }
    return nullptr;
  }

  const core::JsonValue& root_;
  const core::JsonValue* thinker_;
  const core::JsonValue* text_config_;
  std::string text_;
};

inline bool is_on(const core::JsonValue* value) {
  return value != nullptr && value->is(core::JsonValue::Kind::boolean) && value->boolean();
}

inline std::string known_families() {
  std::vector<std::string_view> names;
  names.reserve(std::size(kFamilies));
  for (const Family& family : kFamilies) names.push_back(family.model_type);
  return core::listed(names);
}

/// Nothing: it is of another.
inline const Family* family_of(const core::JsonValue* type) {
  for (const Family& row : kFamilies) {
    if (type != nullptr && type->is(row.model_type)) return &row;
  }
  return nullptr;
}

/// What every such model is made with: TransformerEngine, RMS norms, SwiGLU, rotary positions, no dropout.
inline void put_usual(Converter& to, const Family& family) {
  for (const std::string_view on : {"swiglu", "group_query_attention", "moe_grouped_gemm", "bf16"}) to.flag(on, true);
  to.flag("add_bias_linear", false);
  to.flag("add_qkv_bias", family.query_bias);
  to.flag("qk_layernorm", family.normed_heads);
  to.put("normalization", "\"RMSNorm\"");
  to.put("position_embedding_type", "\"rope\"");
  to.put("transformer_impl", "\"transformer_engine\"");
  to.put("hidden_dropout", "0.0");
  to.put("attention_dropout", "0.0");
}

}  // namespace launch_megatron_detail

GPUMEM_INLINE std::string part_names(FrozenParts parts, std::string_view before, std::string_view between) {
  constexpr std::string_view kTowers[] = {"model.visual",
                                          "model.vision_tower",
                                          "model.vision_model",
                                          "model.audio_tower",
                                          "vision_model",
                                          "vision_tower",
                                          "model.vision_encoder",
                                          "model.image_tower",
                                          "model.video_tower",
                                          "visual",
                                          "model.sam_model",
                                          "model.qwen2_model",
                                          "vision"};
  constexpr std::string_view kAligners[] = {"model.visual.merger",
                                            "model.visual.deepstack_merger_list",
                                            "model.multi_modal_projector",
                                            "model.connector",
                                            "multi_modal_projector",
                                            "mm_projector",
                                            "mlp1",
                                            "model.embed_vision",
                                            "model.embed_audio",
                                            "model.vision_projection",
                                            "model.projector",
                                            "model.merger",
                                            "visual.merger",
                                            "visual.deepstack_merger_list",
                                            "model.aligner",
                                            "projector"};
  std::string text;
  const auto add = [&](std::span<const std::string_view> names) {
    for (const std::string_view name : names) text.append(text.empty() ? "" : between).append(before).append(name);
  };
  if (parts.towers) add(kTowers);
  if (parts.aligners) add(kAligners);
  return text;
}

GPUMEM_INLINE std::string parts_of(const model::ModelGraph& graph, std::string_view names) {
  std::string found;
  while (!names.empty()) {
    const std::size_t comma = std::min(names.find(','), names.size());
    const std::string name(names.substr(0, comma));
    names.remove_prefix(std::min(comma + 1, names.size()));
    const auto layers = graph.layers();
    const bool has = std::any_of(layers.begin(), layers.end(), [&](const model::Layer& layer) {
      const std::string path(graph.path(layer));
      return layer.parameters > 0 && (path == name || path.starts_with(name + "."));
    });
    if (has) found += (found.empty() ? "" : ",") + name;
  }
  return found;
}

GPUMEM_INLINE std::int64_t tower_parameters(const model::ModelGraph& graph) {
  // Each once: an aligner may be within a tower.
  const std::string names = part_names({}, "", ",") + ",audio_tower,";  // of Omni models, which is held
  std::int64_t parameters = 0;
  for (const model::Layer& layer : graph.layers()) {
    const std::string path(graph.path(layer));
    bool within = false;
    for (std::size_t at = 0; at < names.size() && !within; at = names.find(',', at) + 1) {
      const std::string_view name = std::string_view(names).substr(at, names.find(',', at) - at);
      within = path.starts_with(name) && path.size() > name.size() && path[name.size()] == '.';
    }
    if (within) parameters = core::bounded_sum({parameters, layer.parameters});
  }
  return parameters;
}

GPUMEM_INLINE std::int64_t kept_of_frozen_tower(const Decided& decided, analysis::Analysis& policy) {
  constexpr std::int64_t kBytes = 2;
  const bool frozen = decided.policy.freeze.find("vis") != std::string::npos && decided.policy.images != 0;
  const bool keeps = decided.program.value == Program::ms_swift && decided.policy.activation_checkpointing;
  if (!frozen || !keeps) return 0;
  const auto pass = policy.forward_pass();
  if (!pass) return 0;
  const connect::WiredGraph& wired = (*pass)->wired;
  const model::ModelGraph& graph = wired.graph();
  std::string block;  // "model.visual.blocks.3."
  std::int64_t bytes = 0;
  for (std::size_t at = 0; at < graph.layers().size(); ++at) {
    const std::string path(graph.path(graph.layers()[at]));
    const bool sees = path.starts_with("model.visual.") || path.starts_with("model.vision_");
    const std::size_t digit = path.find_first_of("0123456789");
    if (!sees || digit == std::string::npos || digit == 0 || path[digit - 1] != '.') continue;
    const std::size_t end = path.find('.', digit);
    if (end == std::string::npos || path.compare(0, end + 1, block) == 0) continue;
    block = path.substr(0, end + 1);
    // A block begins with a norm, whose output is as large as what it reads.
    const auto outputs = wired.outputs(at);
    const auto elements = outputs.empty() ? std::nullopt : outputs[0].elements(decided.policy.batch_size);
    if (!elements || graph.op(graph.layers()[at]).find("norm") == std::string_view::npos) continue;
    bytes = core::bounded_sum({bytes, core::bounded_product({elements->value().value_or(0), kBytes})});
  }
  return bytes;
}

GPUMEM_INLINE core::Result<std::string> megatron_arguments_of(std::string_view config_json,
                                                              std::int64_t expert_tensor_parallel) {
  namespace detail = launch_megatron_detail;
  const auto document = core::JsonDocument::parse(config_json);
  if (!document) return document.error();
  detail::Converter to(document->root());
  if (to.find("model_type") == nullptr && to.find("num_layers") != nullptr) return std::string(config_json);
  const core::JsonValue* const type = to.of_whole("model_type");
  const detail::Family* family = detail::family_of(type);
  if (family == nullptr) {
    const bool named = type != nullptr && type->is(core::JsonValue::Kind::text);
    return core::Error{core::ErrorCode::unknown_format,
                       "has the model type " + core::quoted(named ? core::shortened(type->text(), 40) : std::string()) +
                           ", of which Megatron's form is not known here; known are " + detail::known_families(),
                       {}};
  }
  constexpr std::pair<std::string_view, std::string_view> kSizes[] = {
      {"num_hidden_layers", "num_layers"},      {"hidden_size", "hidden_size"},
      {"intermediate_size", "ffn_hidden_size"}, {"num_attention_heads", "num_attention_heads"},
      {"vocab_size", "padded_vocab_size"},      {"max_position_embeddings", "max_position_embeddings"}};
  for (const auto& [from, name] : kSizes) {
    if (to.number(from, name)) continue;
    return core::Error{core::ErrorCode::malformed_input, "has no " + std::string(from), {}};
  }
  if (!to.number("num_key_value_heads", "num_query_groups")) to.number("num_attention_heads", "num_query_groups");
  to.number("head_dim", "kv_channels");
  detail::put_usual(to, *family);
  to.flag(
      "untie_embeddings_and_output_weights",
      !detail::is_on(family->sees && to.of_whole("tie_word_embeddings") != nullptr ? to.of_whole("tie_word_embeddings")
                                                                                   : to.find("tie_word_embeddings")));
  if (to.number("num_experts", "num_experts")) {
    to.number("num_experts_per_tok", "moe_router_topk");
    to.number("moe_intermediate_size", "moe_ffn_hidden_size");
    to.put("moe_token_dispatcher_type", "\"alltoall\"");
    if (expert_tensor_parallel > 0) to.put("expert_tensor_parallel_size", std::to_string(expert_tensor_parallel));
  }
  return std::move(to).take();
}

GPUMEM_INLINE std::optional<std::string> megatron_form(std::string_view config_json, std::string_view fields) {
  namespace detail = launch_megatron_detail;
  const auto document = core::JsonDocument::parse(config_json);
  if (!document) return std::nullopt;
  const detail::Family* family = detail::family_of(detail::Converter(document->root()).of_whole("model_type"));
  if (family == nullptr || family->sees) return std::nullopt;
  auto arguments = megatron_arguments_of(config_json, 1);
  if (!arguments) return std::nullopt;
  arguments->pop_back();
  return arguments->append(", ").append(fields).append("}");
}

}  // namespace gpumem::posttrain
