#pragma once

#include "gpumem/summary/model_folder.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>

#include "gpumem/core/csv.hpp"
#include "gpumem/core/json.hpp"
#include "gpumem/summary/published_configs.hpp"
#include "gpumem/summary/published_images.hpp"
#include "gpumem/summary/published_rows.hpp"
#include "gpumem/summary/published_vision.hpp"

namespace gpumem::summary {

namespace published_models_detail {

/// The next of the words with a space between them; they are then without it.
inline std::string_view next_word(std::string_view& words) {
  const std::size_t end = std::min(words.find(' '), words.size());
  const std::string_view word = words.substr(0, end);
  words.remove_prefix(std::min(end + 1, words.size()));
  return word;
}

/// The one of these names that is this name; empty: none is. Case does not count, as on the hub.
inline std::string_view named_by(std::string_view names, std::string_view name) {
  const std::string asked = core::lower_case(name);
  while (!names.empty()) {
    const std::string_view one = next_word(names);
    if (core::lower_case(one) == asked) return one;
  }
  return {};
}

/// How long the first of these fields is: to the next comma that is in no list and in no object. No text of theirs
/// holds a bracket or a comma.
inline std::size_t field_length(std::string_view fields) {
  int depth = 0;
  for (std::size_t at = 0; at < fields.size(); ++at) {
    const char letter = fields[at];
    if (letter == '[' || letter == '{') ++depth;
    if (letter == ']' || letter == '}') --depth;
    if (letter == ',' && depth == 0) return at;
  }
  return fields.size();
}

/// The family's fields that the row does not have itself, then the row's.
inline std::string fields_of(const PublishedFamily& family, const PublishedRow& row) {
  std::string text(row.fields);
  for (std::string_view rest = family.fields; !rest.empty();) {
    const std::size_t end = field_length(rest);
    const std::string_view field = rest.substr(0, end);
    const std::string key(field.substr(0, field.find(':') + 1));
    if (row.fields.find(key) == std::string_view::npos) text += (text.empty() ? "" : ", ") + std::string(field);
    rest.remove_prefix(std::min(end + 2, rest.size()));
  }
  return text;
}

/// A row's size that the family's fields name goes there; others are fields of their own.
inline std::string config_of(const PublishedFamily& family, const PublishedRow& row, std::string_view name) {
  std::string text = "{\"_published\": \"" + std::string(name) + "\", " + fields_of(family, row);
  std::string_view sizes = row.sizes;
  for (std::string_view keys = family.keys; !keys.empty();) {
    const std::string key(next_word(keys));
    const std::string size(next_word(sizes));
    const std::string place = "{" + key + "}";
    bool placed = false;
    for (std::size_t at = text.find(place); at != std::string::npos; at = text.find(place, at)) {
      text.replace(at, place.size(), size);
      placed = true;
    }
    if (!placed) text.append(", \"").append(key).append("\": ").append(size);
  }
  return text + "}";
}

/// Calls `of(families, rows)` for each table of models until one gives something.
template <typename Of>
auto first_of_tables(Of of) {
  const std::span<const PublishedFamily> families = kFamilies;
  auto found = of(families, std::span<const PublishedRow>(kRows));
  if (!found) found = of(std::span<const PublishedFamily>(kPartFamilies), std::span<const PublishedRow>(kPartRows));
  if (!found) found = of(families, std::span<const PublishedRow>(kApartRows));
  if (!found) found = of(families, std::span<const PublishedRow>(kImageRows));
  return found;
}

inline std::optional<PublishedModel> of_its_maker(std::string_view name) {
  const auto in_table = [&](std::span<const PublishedFamily> families, std::span<const PublishedRow> rows) {
    std::optional<PublishedModel> found;
    for (const PublishedRow& row : rows) {
      const std::string_view published = named_by(row.names, name);
      if (published.empty()) continue;
      const auto family =
          std::ranges::find_if(families, [&](const PublishedFamily& one) { return one.name == row.family; });
      found = PublishedModel{published, row.parameters, config_of(*family, row, published)};
      break;
    }
    return found;
  };
  return first_of_tables(in_table);
}

/// Owners on the hub, and on ModelScope, that publish copies of models under their makers' names.
inline constexpr auto kCopiers =
    std::to_array<std::string_view>({"unsloth", "nousresearch", "llm-research", "ai-modelscope", "openai-mirror",
                                     "mistral-community", "zhipuai", "nv-community", "alpindale", "casperhansen",
                                     "hugging-quants", "techxgenus", "thebloke", "axolotl-quants", "tencent-hunyuan"});

/// What a copy is called without its owner, in lower case, and whether bitsandbytes stored it in four bits.
struct CopiedName {
  std::string name;
  bool four_bits = false;
};

/// The maker's checkpoint has fewer bits of its own (gpt-oss, DeepSeek-V3), which a copy in four bits has not. No such
/// field holds another object.
inline void drop_quantization(std::string& config) {
  const std::size_t begin = config.find(", \"quantization_config\": {");
  if (begin != std::string::npos) config.erase(begin, config.find('}', begin) + 1 - begin);
}

inline std::string without_owner(std::string_view name) {
  constexpr std::string_view kMeta = "meta-";        // of Llama's makers, who call their models both ways
  constexpr std::string_view kTransformers = "-hf";  // of models that were first published in another form
  std::string plain = core::lower_case(name.substr(name.find('/') + 1));
  if (plain.starts_with(kMeta)) plain.erase(0, kMeta.size());
  if (plain.ends_with(kTransformers)) plain.resize(plain.size() - kTransformers.size());
  return plain;
}

inline std::optional<CopiedName> copied_name(std::string_view name) {
  const std::string owner = core::lower_case(name.substr(0, std::min(name.find('/'), name.size())));
  if (std::find(kCopiers.begin(), kCopiers.end(), owner) == kCopiers.end()) return std::nullopt;
  CopiedName copy{without_owner(name)};
  for (const std::string_view ending : {"-unsloth-bnb-4bit", "-bnb-4bit", "-bnb-nf4-bf16"}) {
    if (!copy.name.ends_with(ending)) continue;
    copy.name.resize(copy.name.size() - ending.size());
    copy.four_bits = true;
  }
  return copy;
}

/// How makers call checkpoints of fewer bits beside the whole one, and what their configs then say.
struct StoredForm {
  std::string_view ending;
  std::string_view field;
};
inline constexpr StoredForm kStoredForms[] = {
    {"-AWQ", R"(, "quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128}})"},
    {"-GPTQ-Int4", R"(, "quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128}})"},
    {"-GPTQ", R"(, "quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128}})"},
    {"-FP8", R"(, "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}})"}};

/// Nothing: this is no such name, or the whole model's is not known.
inline std::optional<PublishedModel> stored_in_fewer_bits(std::string_view name) {
  for (const StoredForm& form : kStoredForms) {
    if (!name.ends_with(form.ending)) continue;
    auto published = published_model(name.substr(0, name.size() - form.ending.size()));
    const bool whole = published && published->config.find("\"quantization_config\"") == std::string::npos;
    if (whole) published->config.replace(published->config.size() - 1, 1, form.field);
    return published;
  }
  return std::nullopt;
}

/// A model that is named without its owner ("Qwen3-8B"), as people say it. Nothing: none is called that, or models of
/// several makers are.
inline std::optional<PublishedModel> named_without_owner(std::string_view name) {
  if (name.empty() || name.find('/') != std::string_view::npos) return std::nullopt;
  const std::string asked = without_owner(name);
  std::optional<PublishedModel> found;
  for (const std::string_view one : published_model_names()) {
    if (without_owner(one) != asked) continue;
    auto model = of_its_maker(one);
    if (found && model && found->parameters != model->parameters) return std::nullopt;
    if (!found) found = std::move(model);
  }
  return found;
}

/// How classes of transformers end. "Model" is the body alone; GPT-2's "LMHeadModel" ends so too, and comes first. The
/// class of a model that speaks holds its thinker, which has a class of its own ("Qwen2_5OmniThinkerFor...").
inline constexpr std::string_view kHeads[] = {"ThinkerForConditionalGeneration",
                                              "ThinkerForSequenceClassification",
                                              "ForCausalLM",
                                              "ForConditionalGeneration",
                                              "ForMaskedLM",
                                              "ForSequenceClassification",
                                              "ForTokenClassification",
                                              "ForQuestionAnswering",
                                              "ForCTC",
                                              "ForPreTraining",
                                              "ForAudioClassification",
                                              "ForAudioFrameClassification",
                                              "ForImageClassification",
                                              "LMHeadModel",
                                              "Model"};

/// Whether a word is written as heads are: "ForCTC".
inline bool is_head(std::string_view word) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  const bool known = std::ranges::find(kHeads, word) != std::end(kHeads);
  const bool alike = word.starts_with("For") && word.size() > 3 && word[3] >= 'A' && word[3] <= 'Z';
  return known || (alike && word.find_first_not_of(kLetters) == std::string_view::npos);
}

/// The heads, for a message.
inline std::string all_heads() {
  std::string names;
  for (const std::string_view head : kHeads) names.append(names.empty() ? "" : ", ").append(head);
  return names;
}

/// The class that a config names first, as a part of its text. Empty: it names none, or writes it with escapes.
inline std::string_view class_in(std::string_view config) {
  const auto document = core::JsonDocument::parse(config, {.python_numbers = true});
  if (!document || !document->root().is(core::JsonValue::Kind::object)) return {};
  for (const core::JsonValue& field : document->root().items()) {
    if (field.key() != "architectures" || !field.is(core::JsonValue::Kind::list) || field.size() == 0) continue;
    const core::JsonValue& first = *field.items().begin();
    if (!first.is(core::JsonValue::Kind::text)) return {};
    const std::size_t at = config.find("\"" + std::string(first.text()) + "\"", config.find("\"architectures\""));
    return at == std::string_view::npos ? std::string_view() : config.substr(at + 1, first.text().size());
  }
  return {};
}

}  // namespace published_models_detail

GPUMEM_INLINE NamedModel named_model(const std::string& name) {
  const std::size_t colon = name.rfind(':');
  if (colon == std::string::npos || colon == 0 || name.front() == '{') return {name};
  const std::string_view behind = std::string_view(name).substr(colon + 1);
  std::error_code ignored;
  if (!published_models_detail::is_head(behind) || std::filesystem::exists(name, ignored)) return {name};
  return {name.substr(0, colon), behind};
}

GPUMEM_INLINE core::Result<std::string> with_head(std::string_view config, std::string_view head) {
  namespace detail = published_models_detail;
  if (std::ranges::find(detail::kHeads, head) == std::end(detail::kHeads)) {
    return core::Error{
        core::ErrorCode::invalid_argument,
        "cannot get the head " + core::quoted(head) + ", which is not known; heads are " + detail::all_heads(),
        {}};
  }
  const std::string_view named = detail::class_in(config);
  for (const std::string_view ending : published_models_detail::kHeads) {
    if (!named.ends_with(ending) || named.size() == ending.size()) continue;
    const auto begin = static_cast<std::size_t>(named.data() - config.data()) + named.size() - ending.size();
    return std::string(config).replace(begin, ending.size(), head);
  }
  const std::string whose = named.empty() ? "names no class of transformers (architectures)"
                                          : "names the class " + core::quoted(named) + ", whose head is not known,";
  return core::Error{core::ErrorCode::missing_information,
                     whose + " so that " + std::string(head) + " can take no head's place; write the class with it",
                     {}};
}

GPUMEM_INLINE std::optional<std::string> head_with_speech(std::string_view config, std::string_view head, bool held) {
  constexpr std::string_view kSpeaking[] = {"qwen2_5_omni", "qwen3_omni_moe"};
  constexpr std::string_view kThinker = "_thinker";
  constexpr std::string_view kClasses = "ForSequenceClassification";
  const auto document = core::JsonDocument::parse(config, {.python_numbers = true});
  if (!document || !document->root().is(core::JsonValue::Kind::object)) return std::nullopt;
  std::string_view whole;
  bool talks = false;
  for (const core::JsonValue& field : document->root().items()) {
    talks = talks || field.key() == "talker_config";
    if (field.key() == "model_type" && field.is(core::JsonValue::Kind::text)) whole = field.text();
  }
  // Published sizes have the talker beside the thinker's; a thinker that somebody saved has none.
  if (talks && whole.ends_with(kThinker)) whole.remove_suffix(kThinker.size());
  if (std::ranges::find(kSpeaking, whole) == std::end(kSpeaking)) return std::nullopt;
  const std::string_view named = published_models_detail::class_in(config);
  if (named.empty() && !held) return std::nullopt;
  std::string made(head);
  if (made.empty()) made = named.ends_with(kClasses) ? kClasses : std::string_view("ForConditionalGeneration");
  if (!held && made != "Model") made.insert(0, "Thinker");
  return made;
}

GPUMEM_INLINE std::string named_with_speech(const std::string& name, std::string_view head, bool held) {
  if (name.empty() || name == "-" || !named_model(name).head.empty()) return name;
  const bool is_text = name.front() == '{';
  std::string place = is_text ? std::string() : path_of_model(name);
  if (!is_text && is_model_folder(place)) place += "/config.json";
  core::Result<std::string> text =
      is_text ? core::Result<std::string>(name) : core::read_regular_file(place, kLargestConfig);
  if (auto published = text ? std::nullopt : published_model(name)) text = std::move(published->config);
  const auto made = text ? head_with_speech(*text, head, held) : std::nullopt;
  if (!made) return name;
  if (!is_text) return name + ":" + *made;
  const core::Result<std::string> changed = with_head(name, *made);
  return changed ? *changed : name;
}

GPUMEM_INLINE std::vector<std::string_view> published_model_names() {
  namespace detail = published_models_detail;
  std::vector<std::string_view> all;
  (void)detail::first_of_tables(
      [&](std::span<const detail::PublishedFamily>, std::span<const detail::PublishedRow> rows) {
        for (const detail::PublishedRow& row : rows) {
          for (std::string_view names = row.names; !names.empty();) all.push_back(detail::next_word(names));
        }
        return false;  // go on to the next table
      });
  return all;
}

GPUMEM_INLINE std::vector<std::string_view> published_models_like(std::string_view part, std::size_t most) {
  const std::string asked = core::lower_case(part);
  std::vector<std::string_view> found;
  if (asked.empty()) return found;
  for (const std::string_view name : published_model_names()) {
    if (found.size() < most && core::lower_case(name).find(asked) != std::string::npos) found.push_back(name);
  }
  return found;
}

GPUMEM_INLINE std::optional<PublishedModel> published_model(std::string_view name) {
  namespace detail = published_models_detail;
  constexpr std::string_view kFourBits =
      R"(, "quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": true}})";
  if (auto published = detail::of_its_maker(name)) return published;
  if (auto published = detail::named_without_owner(name)) return published;
  const std::optional<detail::CopiedName> copy = detail::copied_name(name);
  if (!copy) return detail::stored_in_fewer_bits(name);
  for (const std::string_view original : published_model_names()) {
    if (detail::without_owner(original) != copy->name) continue;
    auto published = detail::of_its_maker(original);
    if (published && copy->four_bits) {
      detail::drop_quantization(published->config);
      published->config.replace(published->config.size() - 1, 1, kFourBits);
    }
    return published;
  }
  return detail::stored_in_fewer_bits(name);
}

}  // namespace gpumem::summary
