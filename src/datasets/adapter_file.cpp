#include "gpumem_datasets/adapter_file.hpp"

#include <optional>
#include <vector>

#include "gpumem/adapt/peft_config.hpp"
#include "gpumem/core/file.hpp"
#include "gpumem/core/json.hpp"
#include "gpumem/job/job_options.hpp"

namespace gpumem::datasets {

namespace {
namespace adapter_file_detail {

constexpr std::size_t kLargestAdapter = std::size_t{1} << 20;

std::string word_of(const core::JsonValue& value) {
  using Kind = core::JsonValue::Kind;
  switch (value.kind()) {
    case Kind::boolean: return value.boolean() ? "true" : "false";
    case Kind::integer: return std::to_string(value.integer());
    case Kind::real: return std::to_string(value.real());
    case Kind::text: return std::string(value.text());
    case Kind::list: {
      std::string text;
      for (const core::JsonValue& item : value.items()) text += (text.empty() ? "" : "+") + word_of(item);
      return text;
    }
    case Kind::null:
    case Kind::beyond_int64:
    case Kind::object: break;
  }
  return {};
}

/// The fields of "resolved", or of "experiment_file", or of the file itself.
core::Result<std::vector<adapt::PeftSetting>> settings_of(const std::string& path) {
  using Kind = core::JsonValue::Kind;
  const auto text = core::read_regular_file(path, kLargestAdapter);
  if (!text) return text.error();
  const auto document = core::JsonDocument::parse(*text);
  if (!document) return core::Error(document.error()).in_file(path);
  const core::JsonValue* config = &document->root();
  const auto inside = [&](std::string_view key) {
    for (const core::JsonValue& field : document->root().items()) {
      if (field.key() == key && field.is(Kind::object)) config = &field;
    }
  };
  if (config->is(Kind::object)) {
    inside("experiment_file");
    inside("resolved");
  }
  std::vector<adapt::PeftSetting> settings;
  if (!config->is(Kind::object)) return settings;
  for (const core::JsonValue& field : config->items()) {
    const std::string key(field.key());
    if (!field.is(Kind::object)) {
      if (!field.is(Kind::null)) settings.push_back({key, word_of(field)});
      continue;
    }
    for (const core::JsonValue& inner : field.items()) {
      settings.push_back({key + "." + std::string(inner.key()), word_of(inner)});
    }
  }
  return settings;
}

}  // namespace adapter_file_detail
}  // namespace

core::Status take_adapter_file(const std::string& file, const core::CsvCells& cells, job::JobRequest& request,
                               MeasuredRun& run) {
  const auto settings = adapter_file_detail::settings_of(file);
  if (!settings) return settings.error();
  const std::optional<adapt::PeftConfig> config = adapt::peft_config(*settings);
  if (!config) return cells.malformed("its adapter's file has no peft_type");
  std::string missing;
  for (const std::string& text : config->not_modelled) missing += (missing.empty() ? "" : ", ") + text;
  for (const std::string& key : config->unknown) missing += (missing.empty() ? "" : ", ") + key;
  if (!missing.empty()) {
    run.refusal = "not modelled: " + missing;
    return cells.malformed(run.refusal);
  }
  for (const adapt::PeftOption& option : config->options) {
    const job::JobOption* const row = job::find_option(option.option);
    if (row == nullptr) continue;
    core::Status taken = job::set_option_text(*row, request, option.value);
    if (!taken) return cells.malformed(option.key + " " + taken.error().message);
  }
  return core::Done{};
}

}  // namespace gpumem::datasets
