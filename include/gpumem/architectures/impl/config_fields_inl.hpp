#pragma once

#include "gpumem/architectures/config_fields.hpp"

#include <algorithm>
#include <array>

#include "gpumem/core/json.hpp"

namespace gpumem::architectures {

namespace config_fields_detail {

using Kind = core::JsonValue::Kind;

/// Fields of configs that no layer follows from: what tokenizers, generation, initialisation and position scaling read.
inline constexpr auto kHarmless = std::to_array<std::string_view>({"_name_or_path",
                                                                   "architectures",
                                                                   "auto_map",
                                                                   "begin_suppress_tokens",
                                                                   "bos_token_id",
                                                                   "chunk_size_feed_forward",
                                                                   "cls_token_id",
                                                                   "decoder_start_token_id",
                                                                   "dtype",
                                                                   "embd_layer_norm_eps",
                                                                   "encoder_no_repeat_ngram_size",
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
                                                                   "num_beam_groups",
                                                                   "num_beams",
                                                                   "num_return_sequences",
                                                                   "original_max_position_embeddings",
                                                                   "output_attentions",
                                                                   "output_hidden_states",
                                                                   "pad_token_id",
                                                                   "pretraining_tp",
                                                                   "problem_type",
                                                                   "repetition_penalty",
                                                                   "return_dict",
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
                                                                   "temperature",
                                                                   "tokenizer_class",
                                                                   "top_k",
                                                                   "top_p",
                                                                   "torch_dtype",
                                                                   "transformers_version",
                                                                   "typical_p",
                                                                   "use_cache",
                                                                   "use_sliding_window"});

inline bool is_harmless(std::string_view name) {
  return name.starts_with('_') || name.ends_with("_token_id") || name.ends_with("_token_index") ||
         std::find(kHarmless.begin(), kHarmless.end(), name) != kHarmless.end();
}

/// Whether a field is there for something: not null, false, 0 or an empty list.
inline bool says(const core::JsonValue& value) {
  if (value.is(Kind::null) || value.is(0)) return false;
  if (value.is(Kind::boolean)) return value.boolean();
  return !(value.is(Kind::list) || value.is(Kind::object)) || value.size() > 0;
}

/// What is in the names of fields that say how large parts of a model are which a plain decoder does not have.
inline constexpr auto kParts = std::to_array<std::string_view>({"adapter",
                                                                "altup",
                                                                "audio",
                                                                "block_config",
                                                                "compress",
                                                                "conv",
                                                                "delta",
                                                                "encoder_",
                                                                "expert",
                                                                "hc_",
                                                                "hybrid",
                                                                "index_",
                                                                "latent",
                                                                "laurel",
                                                                "layers_block",
                                                                "linear_",
                                                                "mamba",
                                                                "medusa",
                                                                "mhc",
                                                                "moe",
                                                                "mtp",
                                                                "nextn",
                                                                "override_pattern",
                                                                "per_layer",
                                                                "rank",
                                                                "sink",
                                                                "ssm",
                                                                "state",
                                                                "stream",
                                                                "swa_",
                                                                "text_config",
                                                                "tower",
                                                                "v_head_dim",
                                                                "vision"});
/// Of positions, tokens and lengths: no parameters follow from these.
inline constexpr auto kSizeless =
    std::to_array<std::string_view>({"rope", "rotary", "token", "window", "_length", "seed", "max_position"});

template <std::size_t Count>
bool names_any(std::string_view name, const std::array<std::string_view, Count>& words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return name.find(word) != std::string_view::npos; });
}

/// The kinds of layers that a plain decoder has; others hold states of their own.
inline bool has_other_layers(const core::JsonValue& types) {
  if (!types.is(Kind::list)) return true;
  for (const core::JsonValue& type : types.items()) {
    if (!type.is("full_attention") && !type.is("sliding_attention") && !type.is("chunked_attention")) return true;
  }
  return false;
}

/// A number with a fraction scales something, a flag switches something, and a text chooses something, unless it is a
/// pattern of layers: none is as large as a layer.
inline bool is_part(const core::JsonValue& value, bool known_type) {
  const std::string_view name = value.key();
  if (name == "layer_types") return has_other_layers(value);
  if (is_harmless(name) || name == "quantization_config" || value.is(Kind::real) || value.is(Kind::boolean)) {
    return false;
  }
  if (value.is(Kind::text)) return name.find("pattern") != std::string_view::npos;
  if (names_any(name, kParts)) return true;
  if (known_type || value.is(1)) return false;
  return !names_any(name, kSizeless);
}

}  // namespace config_fields_detail

GPUMEM_INLINE ConfigFields::ConfigFields(const core::JsonValue& config) {
  fields_.reserve(config.size());
  for (const core::JsonValue& field : config.items()) fields_.push_back({&field, false});
}

GPUMEM_INLINE const core::JsonValue* ConfigFields::add(std::string_view fields) {
  auto added = std::make_shared<Added>(Added{std::string(fields)});
  core::Result<core::JsonDocument> document = core::JsonDocument::parse(added->text, kConfigLimits);
  if (!document || !document->root().is(config_fields_detail::Kind::object)) {
    fail("has fields that gpumem itself adds and cannot read");
    return nullptr;
  }
  added->document = *std::move(document);
  added_.push_back(std::move(added));
  return &added_.back()->document->root();
}

GPUMEM_INLINE ConfigFields* ConfigFields::part(std::string_view name, std::string_view usual) {
  const core::JsonValue* object = find(name);
  if (object == nullptr) return nullptr;
  if (!object->is(config_fields_detail::Kind::object)) {
    fail("must be an object", name);
    return nullptr;
  }
  ConfigFields& made = parts_.emplace_back(*object);
  made.name_ = name;
  made.fuses_experts_ = fuses_experts_;
  made.lists_experts_ = lists_experts_;
  if (!usual.empty()) made.complete(usual);
  return &made;
}

GPUMEM_INLINE ConfigFields* ConfigFields::part_or_usual(std::string_view name) {
  if (!has(name)) replace("{\"" + std::string(name) + "\": {}}");
  return part(name);
}

GPUMEM_INLINE void ConfigFields::complete(std::string_view usual) {
  const core::JsonValue* fields = add(usual);
  if (fields == nullptr) return;
  for (const core::JsonValue& field : fields->items()) {
    const auto same = [&](const Field& there) { return there.value->key() == field.key(); };
    if (std::none_of(fields_.begin(), fields_.end(), same)) fields_.push_back({&field, true});
  }
}

GPUMEM_INLINE void ConfigFields::replace(std::string_view fields) {
  const core::JsonValue* added = add(fields);
  if (added == nullptr) return;
  for (const core::JsonValue& field : added->items()) {
    std::erase_if(fields_, [&](const Field& there) { return there.value->key() == field.key(); });
    fields_.push_back({&field, true});
  }
}

GPUMEM_INLINE void ConfigFields::ignore_those_of(const ConfigFields& part) {
  for (const Field& field : part.fields_) (void)find(field.value->key());
}

GPUMEM_INLINE const core::JsonValue* ConfigFields::find(std::string_view name) {
  for (Field& field : fields_) {
    if (field.value->key() != name) continue;
    field.read = true;
    return field.value->is(config_fields_detail::Kind::null) ? nullptr : field.value;
  }
  return nullptr;
}

GPUMEM_INLINE const core::JsonValue* ConfigFields::find_within(std::string_view name) {
  const core::JsonValue* found = find(name);
  for (ConfigFields& part : parts_) {
    const core::JsonValue* inner = part.find_within(name);
    if (found == nullptr) found = inner;
  }
  return found;
}

GPUMEM_INLINE bool ConfigFields::is_null(std::string_view name) const {
  return std::any_of(fields_.begin(), fields_.end(), [&](const Field& field) {
    return field.value->key() == name && field.value->is(config_fields_detail::Kind::null);
  });
}

GPUMEM_INLINE const core::JsonValue* ConfigFields::peek(std::string_view name) const {
  for (const Field& field : fields_) {
    if (field.value->key() == name && !field.value->is(config_fields_detail::Kind::null)) return field.value;
  }
  return nullptr;
}

GPUMEM_INLINE bool ConfigFields::turns_off(std::string_view name) const {
  const core::JsonValue* value = peek(name);
  if (value != nullptr && value->is(config_fields_detail::Kind::boolean) && !value->boolean()) return true;
  const core::JsonValue* text = peek("text_config");
  const bool is_object = text != nullptr && text->is(config_fields_detail::Kind::object);
  return is_object && ConfigFields(*text).turns_off(name);
}

GPUMEM_INLINE bool ConfigFields::has(std::string_view name) const { return peek(name) != nullptr; }

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

GPUMEM_INLINE std::string_view ConfigFields::class_name() {
  const core::JsonValue* classes = find("architectures");
  if (classes == nullptr || !classes->is(core::JsonValue::Kind::list) || classes->size() == 0) return {};
  const core::JsonValue& first = *classes->items().begin();
  return first.is(core::JsonValue::Kind::text) ? first.text() : std::string_view();
}

GPUMEM_INLINE std::int64_t ConfigFields::layers_or(std::string_view name, std::int64_t otherwise) {
  return has(name) ? layers({name}) : otherwise;
}

GPUMEM_INLINE std::int64_t ConfigFields::count_or(std::string_view name, std::int64_t otherwise) {
  const core::JsonValue* value = find(name);
  if (value != nullptr && value->is(0)) return 0;
  return size_or({name}, otherwise);
}

GPUMEM_INLINE std::int64_t ConfigFields::size_of_layers(std::string_view name, std::int64_t otherwise) {
  const core::JsonValue* value = find(name);
  if (value == nullptr || !value->is(config_fields_detail::Kind::list)) return count_or(name, otherwise);
  std::optional<std::int64_t> all;
  for (const core::JsonValue& entry : value->items()) {
    const bool whole = entry.is(config_fields_detail::Kind::integer);
    const bool sound = whole && entry.integer() >= 1 && entry.integer() <= kLargestSize;
    if (!sound || all.value_or(entry.integer()) != entry.integer()) {
      fail("must be one size for all layers", name);
      return otherwise;
    }
    all = entry.integer();
  }
  return all.value_or(otherwise);
}

GPUMEM_INLINE std::vector<bool> ConfigFields::layers_listed(std::string_view name, std::int64_t layers,
                                                            std::int64_t first) {
  const core::JsonValue* list = find(name);
  if (list == nullptr || !list->is(config_fields_detail::Kind::list)) return {};
  std::vector<bool> listed(static_cast<std::size_t>(layers), false);
  for (const core::JsonValue& item : list->items()) {
    const bool whole = item.is(config_fields_detail::Kind::integer);
    if (whole && item.integer() >= first && item.integer() < layers + first) {
      listed[static_cast<std::size_t>(item.integer() - first)] = true;
    } else {
      fail("names a layer that the model does not have", name);
    }
  }
  return listed;
}

GPUMEM_INLINE std::vector<std::int64_t> ConfigFields::sizes_or(std::string_view name,
                                                               std::vector<std::int64_t> otherwise) {
  const core::JsonValue* value = find(name);
  if (value == nullptr) return otherwise;
  if (!value->is(config_fields_detail::Kind::list)) return {size_or({name}, 1)};
  std::vector<std::int64_t> sizes;
  for (const core::JsonValue& entry : value->items()) {
    const bool whole = entry.is(config_fields_detail::Kind::integer);
    if (!whole || entry.integer() < 1 || entry.integer() > kLargestSize) {
      fail("must be a list of whole numbers from 1 to " + std::to_string(kLargestSize), name);
      return otherwise;
    }
    sizes.push_back(entry.integer());
  }
  return sizes;
}

GPUMEM_INLINE std::vector<std::string> ConfigFields::texts_or(std::string_view name,
                                                              std::vector<std::string> otherwise) {
  const core::JsonValue* value = find(name);
  if (value == nullptr) return otherwise;
  std::vector<std::string> texts;
  if (value->is(config_fields_detail::Kind::list)) {
    for (const core::JsonValue& entry : value->items()) {
      if (entry.is(config_fields_detail::Kind::text)) texts.emplace_back(entry.text());
    }
  }
  if (!texts.empty() && texts.size() == value->size()) return texts;
  fail("must be a list of texts", name);
  return otherwise;
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
  if (!type_.empty() && *names.begin() == "model_type") return type_;
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
  for (const ConfigFields& part : parts_) {
    if (const core::Status read = part.status(); !read) {
      const bool missing = read.error().code == core::ErrorCode::missing_information;
      core::Error error = core::below(part.name_, read.error());
      if (missing) error.message = "in its " + part.name_ + " " + error.message;
      return error;
    }
  }
  return core::Done{};
}

GPUMEM_INLINE std::vector<std::string> ConfigFields::unread() const {
  using config_fields_detail::Kind;
  std::vector<std::string> names;
  for (const Field& field : fields_) {
    const core::JsonValue& value = *field.value;
    if (field.read || value.is(Kind::text) || !config_fields_detail::says(value)) continue;
    if (!config_fields_detail::is_harmless(value.key())) names.emplace_back(value.key());
  }
  for (const ConfigFields& part : parts_) {
    for (const std::string& name : part.unread()) names.push_back(part.name_ + "." + name);
  }
  return names;
}

GPUMEM_INLINE std::vector<std::string> ConfigFields::unread_parts(bool known_type) const {
  std::vector<std::string> names;
  for (const Field& field : fields_) {
    const core::JsonValue& value = *field.value;
    if (field.read || !config_fields_detail::says(value)) continue;
    if (config_fields_detail::is_part(value, known_type)) names.emplace_back(value.key());
  }
  for (const ConfigFields& part : parts_) {
    for (const std::string& name : part.unread_parts(known_type)) names.push_back(part.name_ + "." + name);
  }
  return names;
}

GPUMEM_INLINE std::optional<double> size_in_name(std::string_view name) {
  constexpr double kMillion = 1e6;
  constexpr double kBillion = 1e9;
  const auto digit = [&](std::size_t at) { return at < name.size() && name[at] >= '0' && name[at] <= '9'; };
  const auto part_of_word = [&](std::size_t at) {
    const char byte = at < name.size() ? name[at] : ' ';
    return digit(at) || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '.' || byte == '_';
  };
  std::optional<double> most;
  for (std::size_t at = 0; at < name.size(); ++at) {
    if (!digit(at) || (at > 0 && part_of_word(at - 1))) continue;
    double value = 0.0;
    std::size_t end = at;
    for (; digit(end) && end < at + 4; ++end) value = value * 10.0 + (name[end] - '0');
    if (end < name.size() && (name[end] == 'x' || name[end] == 'X') && digit(end + 1)) return std::nullopt;
    if (end + 1 < name.size() && name[end] == '.' && digit(end + 1)) {
      double place = 0.1;
      for (++end; digit(end); ++end, place /= 10.0) value += place * (name[end] - '0');
    }
    const char unit = end < name.size() ? name[end] : ' ';
    const bool billions = unit == 'b' || unit == 'B';
    if (!billions && unit != 'm' && unit != 'M') continue;
    if (billions && digit(end + 1) && !part_of_word(end + 2)) value += 0.1 * (name[++end] - '0');
    const char after = end + 1 < name.size() ? name[end + 1] : ' ';
    if (part_of_word(end + 1) && after != '_' && after != '.') continue;
    most = std::max(most.value_or(0.0), value * (billions ? kBillion : kMillion));
  }
  return most > 0.0 ? most : std::nullopt;
}

}  // namespace gpumem::architectures
