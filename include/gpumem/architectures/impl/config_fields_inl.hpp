#pragma once

#include "gpumem/architectures/config_fields.hpp"

#include <algorithm>
#include <array>

#include "gpumem/core/json_document.hpp"

namespace gpumem::architectures {

namespace config_fields_detail {

using Kind = core::JsonValue::Kind;

/// Fields of configs that no layer follows from: what tokenizers, generation, initialisation and position scaling read.
inline constexpr std::array<std::string_view, 56> kHarmless = {"_name_or_path",
                                                               "architectures",
                                                               "auto_map",
                                                               "begin_suppress_tokens",
                                                               "bos_token_id",
                                                               "chunk_size_feed_forward",
                                                               "cls_token_id",
                                                               "decoder_start_token_id",
                                                               "dtype",
                                                               "embd_layer_norm_eps",
                                                               "eos_token_id",
                                                               "finetuning_task",
                                                               "forced_bos_token_id",
                                                               "forced_eos_token_id",
                                                               "gradient_checkpointing",
                                                               "id2label",
                                                               "initializer_factor",
                                                               "initializer_range",
                                                               "is_encoder_decoder",
                                                               "label2id",
                                                               "layer_norm_eps",
                                                               "layer_norm_epsilon",
                                                               "layer_types",
                                                               "length_penalty",
                                                               "logit_scale_init_value",
                                                               "mask_token_id",
                                                               "max_length",
                                                               "max_position_embeddings",
                                                               "max_window_layers",
                                                               "min_length",
                                                               "model_max_length",
                                                               "model_type",
                                                               "no_repeat_ngram_size",
                                                               "norm_eps",
                                                               "norm_epsilon",
                                                               "num_beams",
                                                               "original_max_position_embeddings",
                                                               "pad_token_id",
                                                               "pretraining_tp",
                                                               "problem_type",
                                                               "repetition_penalty",
                                                               "rms_norm_eps",
                                                               "rope_local_base_freq",
                                                               "rope_parameters",
                                                               "rope_scaling",
                                                               "rope_theta",
                                                               "rotary_emb_base",
                                                               "sep_token_id",
                                                               "sliding_window",
                                                               "suppress_tokens",
                                                               "task_specific_params",
                                                               "tokenizer_class",
                                                               "torch_dtype",
                                                               "transformers_version",
                                                               "use_cache",
                                                               "use_sliding_window"};

inline bool is_harmless(std::string_view name) {
  return name.starts_with('_') || name.ends_with("_token_id") ||
         std::find(kHarmless.begin(), kHarmless.end(), name) != kHarmless.end();
}

}  // namespace config_fields_detail

GPUMEM_INLINE ConfigFields::ConfigFields(const core::JsonValue& config) {
  fields_.reserve(config.size());
  for (const core::JsonValue& field : config.items()) fields_.push_back({&field, false});
}

GPUMEM_INLINE const core::JsonValue* ConfigFields::find(std::string_view name) {
  for (Field& field : fields_) {
    if (field.value->key() != name) continue;
    field.read = true;
    return field.value->is(config_fields_detail::Kind::null) ? nullptr : field.value;
  }
  return nullptr;
}

GPUMEM_INLINE bool ConfigFields::has(std::string_view name) const {
  return std::any_of(fields_.begin(), fields_.end(), [&](const Field& field) {
    return field.value->key() == name && !field.value->is(config_fields_detail::Kind::null);
  });
}

GPUMEM_INLINE void ConfigFields::ignore(std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) (void)find(name);
}

/// The first of the names that is there; all are marked as read, so that an alias in addition to the name is no
/// surprise.
GPUMEM_INLINE const core::JsonValue* ConfigFields::find_any(std::initializer_list<std::string_view> names) {
  const core::JsonValue* found = nullptr;
  for (const std::string_view name : names) {
    const core::JsonValue* value = find(name);
    if (found == nullptr) found = value;
  }
  return found;
}

GPUMEM_INLINE void ConfigFields::fail(std::string message, std::string_view field) {
  if (fault_) return;
  fault_ = core::Error{core::ErrorCode::malformed_input, std::move(message), {}};
  if (!field.empty()) fault_->place.element = core::pointer_step(field);
}

GPUMEM_INLINE std::optional<std::int64_t> ConfigFields::positive(std::initializer_list<std::string_view> names) {
  const core::JsonValue* value = find_any(names);
  if (value == nullptr) return std::nullopt;
  const bool whole = value->is(config_fields_detail::Kind::integer);
  if (whole && value->integer() >= 1 && value->integer() <= kLargestSize) return value->integer();
  fail("must be a whole number from 1 to " + std::to_string(kLargestSize), value->key());
  return std::nullopt;
}

GPUMEM_INLINE std::int64_t ConfigFields::size(std::initializer_list<std::string_view> names) {
  if (find_any(names) == nullptr) missing_.push_back(*names.begin());
  return positive(names).value_or(1);
}

GPUMEM_INLINE std::int64_t ConfigFields::size_or(std::initializer_list<std::string_view> names,
                                                 std::int64_t otherwise) {
  return positive(names).value_or(otherwise);
}

GPUMEM_INLINE std::int64_t ConfigFields::layers(std::initializer_list<std::string_view> names) {
  const std::int64_t count = size(names);
  if (count <= kMostLayers) return count;
  fail("no model has more than " + std::to_string(kMostLayers) + " layers", find_any(names)->key());
  return 1;
}

GPUMEM_INLINE bool ConfigFields::flag(std::string_view name, bool otherwise) {
  const core::JsonValue* value = find(name);
  if (value == nullptr) return otherwise;
  if (!value->is(config_fields_detail::Kind::boolean)) {
    fail("must be true or false", name);
    return otherwise;
  }
  return value->boolean();
}

GPUMEM_INLINE double ConfigFields::number(std::initializer_list<std::string_view> names, double otherwise) {
  const core::JsonValue* value = find_any(names);
  if (value == nullptr) return otherwise;
  if (value->is(config_fields_detail::Kind::real)) return value->real();
  if (value->is(config_fields_detail::Kind::integer)) return static_cast<double>(value->integer());
  fail("must be a number", value->key());
  return otherwise;
}

GPUMEM_INLINE std::string_view ConfigFields::text(std::initializer_list<std::string_view> names,
                                                  std::string_view otherwise) {
  const core::JsonValue* value = find_any(names);
  if (value == nullptr) return otherwise;
  if (value->is(config_fields_detail::Kind::text)) return value->text();
  fail("must be text", value->key());
  return otherwise;
}

GPUMEM_INLINE core::Status ConfigFields::status() const {
  if (!missing_.empty()) {
    std::string names;
    for (const std::string_view name : missing_) names += (names.empty() ? "" : ", ") + std::string(name);
    return core::Error{core::ErrorCode::missing_information,
                       "does not say its " + names + "; give the config.json as the model's folder has it",
                       {}};
  }
  if (fault_) return *fault_;
  return core::Done{};
}

GPUMEM_INLINE std::vector<std::string_view> ConfigFields::unread() const {
  using config_fields_detail::Kind;
  std::vector<std::string_view> names;
  for (const Field& field : fields_) {
    const core::JsonValue& value = *field.value;
    const bool says = !value.is(Kind::text) && !value.is(Kind::null) &&
                      !(value.is(Kind::boolean) && !value.boolean()) && !(value.is(Kind::list) && value.size() == 0) &&
                      !value.is(0);
    if (!field.read && says && !config_fields_detail::is_harmless(value.key())) names.push_back(value.key());
  }
  return names;
}

}  // namespace gpumem::architectures
