#pragma once

#include <algorithm>
#include <array>

#include "gpumem/architectures/config_fields.hpp"
#include "gpumem/core/json_document.hpp"
#include "gpumem/serve/served_model.hpp"

namespace gpumem::serve {

namespace detail {

/// What a model type's class fixes and its config does not say.
struct ServedFamily {
  std::string_view model_type;
  bool tied = false;
  bool qkv_bias = false;
  bool head_norms = false;
  std::int64_t norms_per_layer = 2;
  std::int64_t sliding_every = 0;  ///< 2: every second layer reads a window; 0: none
};

inline constexpr std::array kServedFamilies = {
    ServedFamily{.model_type = "llama"},
    ServedFamily{.model_type = "mistral"},
    ServedFamily{.model_type = "qwen2", .qkv_bias = true},
    ServedFamily{.model_type = "qwen3", .head_norms = true},
    ServedFamily{.model_type = "phi3"},
    ServedFamily{.model_type = "granite"},
    ServedFamily{.model_type = "gemma", .tied = true},
    ServedFamily{.model_type = "gemma2", .tied = true, .norms_per_layer = 4, .sliding_every = 2},
    ServedFamily{.model_type = "mixtral"},
    ServedFamily{.model_type = "qwen3_moe", .head_norms = true},
};

inline core::Error unknown_model(std::string_view type) {
  std::string known;
  for (const ServedFamily& family : kServedFamilies)
    known += (known.empty() ? "" : ", ") + std::string(family.model_type);
  return {core::ErrorCode::unknown_format,
          "no rules for serving a model of type \"" + core::shortened(type, 60) + "\"; known: " + known,
          {.file = {}, .line = 0, .element = "/model_type"}};
}

/// Bits of a linear layer's weights, and how many share a scale.
inline core::Status read_quantization(const core::JsonValue& quantization, ServedModel& model) {
  using Kind = core::JsonValue::Kind;
  if (!quantization.is(Kind::object)) return core::malformed("quantization_config is not an object");
  const core::JsonValue* weights = &quantization;
  std::string_view method;
  for (const core::JsonValue& field : quantization.items()) {
    if (field.key() == "quant_method" && field.is(Kind::text)) method = field.text();
    if (field.key() != "config_groups" || !field.is(Kind::object) || field.size() != 1) continue;
    for (const core::JsonValue& part : (*field.items().begin()).items())
      if (part.key() == "weights" && part.is(Kind::object)) weights = &part;
  }
  for (const core::JsonValue& field : weights->items()) {
    if (!field.is(Kind::integer)) continue;
    if (field.key() == "num_bits" || field.key() == "bits") model.weight_bits = field.integer();
    if (field.key() == "group_size" && field.integer() > 0) model.group_size = field.integer();
  }
  if (method == "fp8") model.weight_bits = 8;
  const bool known = method == "compressed-tensors" || method == "gptq" || method == "awq" || method == "fp8";
  if (known && (model.weight_bits == 4 || model.weight_bits == 8)) return core::Done{};
  return core::Error{
      core::ErrorCode::unknown_format,
      "no rules for this quantisation (known: compressed-tensors with one group, gptq, awq and fp8, of 4 "
      "or 8 bits)",
      {.file = {}, .line = 0, .element = "/quantization_config"}};
}

/// Layers that read only a window, where the config or the class says so.
inline void read_windows(architectures::ConfigFields& fields, const ServedFamily& family, ServedModel& model) {
  if (family.sliding_every == 0) {
    // Qwen's configs name a window that use_sliding_window switches off; Mistral's and Phi's windows count.
    const bool qwen = family.model_type.starts_with("qwen");
    const bool on = qwen ? fields.flag("use_sliding_window", false) : fields.has("sliding_window");
    if (!on) return;
    if (qwen) return fields.fail("no rules for sliding windows of this model", "use_sliding_window");
    model.sliding_window = fields.size({"sliding_window"});
    model.sliding_layers = model.sliding_window < model.max_positions ? model.layers : 0;
    return;
  }
  model.sliding_window = fields.size({"sliding_window"});
  model.sliding_layers = (model.layers + family.sliding_every - 1) / family.sliding_every;
}

}  // namespace detail

GPUMEM_INLINE core::Result<ServedModel> read_served_model(std::string_view config_json) {
  core::Result<core::JsonDocument> document = core::JsonDocument::parse(config_json);
  if (!document) return document.error();
  if (!document->root().is(core::JsonValue::Kind::object)) return core::malformed("a config.json must be an object");
  architectures::ConfigFields fields(document->root());
  ServedModel model;
  model.model_type = fields.text({"model_type"}, "");
  const auto family = std::find_if(detail::kServedFamilies.begin(), detail::kServedFamilies.end(),
                                   [&](const auto& known) { return known.model_type == model.model_type; });
  if (family == detail::kServedFamilies.end()) return detail::unknown_model(model.model_type);
  model.layers = fields.layers({"num_hidden_layers"});
  model.hidden = fields.size({"hidden_size"});
  model.heads = fields.size({"num_attention_heads"});
  model.kv_heads = fields.size_or({"num_key_value_heads"}, model.heads);
  model.head_dim = fields.size_or({"head_dim"}, std::max<std::int64_t>(1, model.hidden / model.heads));
  model.vocabulary = fields.size({"vocab_size"});
  model.max_positions = fields.size({"max_position_embeddings"});
  model.experts = fields.size_or({"num_local_experts", "num_experts"}, 0);
  model.experts_per_token = model.experts > 0 ? fields.size({"num_experts_per_tok"}) : 0;
  model.intermediate =
      model.model_type == "qwen3_moe" ? fields.size({"moe_intermediate_size"}) : fields.size({"intermediate_size"});
  model.rotary_dim = static_cast<std::int64_t>(static_cast<double>(model.head_dim) *
                                               std::clamp(fields.number({"partial_rotary_factor"}, 1.0), 0.0, 1.0));
  model.tied = fields.flag("tie_word_embeddings", family->tied);
  model.qkv_bias = family->qkv_bias || fields.flag("attention_bias", false);
  model.head_norms = family->head_norms;
  model.norms_per_layer = family->norms_per_layer;
  detail::read_windows(fields, *family, model);
  const core::JsonValue* quantization = fields.find("quantization_config");
  if (const core::Status read = fields.status(); !read) return read.error();
  if (quantization != nullptr)
    if (const core::Status read = detail::read_quantization(*quantization, model); !read) return read.error();
  return model;
}

}  // namespace gpumem::serve
