#include "gpumem_datasets/adapter_file.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "gpumem/adapt/peft_methods.hpp"
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

/// The linear layers of a class of diffusers' modules: as targets, and by the last parts of their names.
struct ModuleLayers {
  std::string_view name;
  std::string_view targets;
  std::array<std::string_view, 9> leaves;
};
constexpr ModuleLayers kModules[] = {
    {"Attention",
     "to_q+to_k+to_v+to_out.0+add_q_proj+add_k_proj+add_v_proj+to_add_out",
     {"to_q", "to_k", "to_v", "0", "add_q_proj", "add_k_proj", "add_v_proj", "to_add_out"}},
    {"FeedForward", "net.0.proj+net.2", {"proj", "2"}},
    {"Kandinsky5Attention", "to_query+to_key+to_value+out_layer", {"to_query", "to_key", "to_value", "out_layer"}},
    // Of the generator alone, as SimpleTuner loads it.
    {"Cosmos3PackedMoTAttention",
     "add_q_proj+add_k_proj+add_v_proj+to_add_out",
     {"add_q_proj", "add_k_proj", "add_v_proj", "to_add_out"}},
    {"Kandinsky5FeedForward", "in_layer+out_layer", {"in_layer", "out_layer"}},
};

/// A field of an object; null: there is none.
const core::JsonValue* field_of(const core::JsonValue& object, std::string_view key) {
  if (!object.is(core::JsonValue::Kind::object)) return nullptr;
  for (const core::JsonValue& field : object.items()) {
    if (field.key() == key) return &field;
  }
  return nullptr;
}

std::string word_in(const core::JsonValue& object, std::string_view key, std::string_view usual) {
  const core::JsonValue* const field = field_of(object, key);
  return field == nullptr ? std::string(usual) : word_of(*field);
}

/// The options of a job that a LyCORIS config means. Source: LyCORIS 3.4, wrapper.py (apply_preset, create_modules).
std::optional<std::vector<adapt::PeftOption>> lycoris_options(const core::JsonValue& config) {
  if (word_in(config, "algo", "") != "lokr") return std::nullopt;
  const core::JsonValue* const preset = field_of(config, "apply_preset");
  const core::JsonValue* const classes = preset == nullptr ? nullptr : field_of(*preset, "target_module");
  const core::JsonValue* const map = preset == nullptr ? nullptr : field_of(*preset, "module_algo_map");
  if (classes == nullptr || !classes->is(core::JsonValue::Kind::list)) return std::nullopt;
  std::string targets;
  std::string options = "decompose_factor=" + word_in(config, "factor", "-1") +
                        ",full_matrix=" + word_in(config, "full_matrix", "false") +
                        ",bypass_mode=" + word_in(config, "bypass_mode", "false");
  for (const core::JsonValue& name : classes->items()) {
    const auto module = std::ranges::find(kModules, word_of(name), &ModuleLayers::name);
    if (module == std::end(kModules)) return std::nullopt;
    targets += (targets.empty() ? "" : "+") + std::string(module->targets);
    const core::JsonValue* const own = map == nullptr ? nullptr : field_of(*map, module->name);
    const std::string factor = own == nullptr ? std::string() : word_in(*own, "factor", "");
    for (const std::string_view leaf : module->leaves) {
      if (!factor.empty() && !leaf.empty()) options += ",factor_pattern." + std::string(leaf) + "=" + factor;
    }
  }
  return std::vector<adapt::PeftOption>{{"peft", "lokr", "algo"},
                                        {"lora", word_in(config, "linear_dim", "4"), "linear_dim"},
                                        {"lora_targets", std::move(targets), "target_module"},
                                        {"peft_options", std::move(options), "factor"}};
}

core::Status set_options(const std::vector<adapt::PeftOption>& options, const core::CsvCells& cells,
                         job::JobRequest& request) {
  for (const adapt::PeftOption& option : options) {
    const job::JobOption* const row = job::find_option(option.option);
    if (row == nullptr) continue;
    core::Status taken = job::set_option_text(*row, request, option.value);
    if (!taken) return cells.malformed(option.key + " " + taken.error().message);
  }
  return core::Done{};
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
  return adapter_file_detail::set_options(config->options, cells, request);
}

core::Status take_moved_adapter_file(const std::string& file, const core::CsvCells& cells, job::JobRequest& request,
                                     MeasuredRun& run) {
  core::Status taken = take_adapter_file(file, cells, request, run);
  std::string& options = request.training.peft_options;
  if (taken && request.training.peft == model::PeftMethod::psoft) {
    options += options.empty() ? "psoft_svd=lowrank" : ",psoft_svd=lowrank";
  }
  return taken;
}

core::Status take_lycoris_example(const std::string& file, const core::CsvCells& cells, job::JobRequest& request,
                                  MeasuredRun& run) {
  namespace detail = adapter_file_detail;
  const auto text = core::read_regular_file(file, detail::kLargestAdapter);
  if (!text) return text.error();
  const auto document = core::JsonDocument::parse(*text);
  if (!document) return core::Error(document.error()).in_file(file);
  run.refusal = "settings of the method LyCORIS are missing";
  if (!document->root().is(core::JsonValue::Kind::object)) return cells.malformed(run.refusal);
  for (const core::JsonValue& example : document->root().items()) {
    const std::string_view key = example.key();
    if (!run.name.starts_with("st-" + std::string(key.substr(0, key.rfind('.'))) + "-")) continue;
    const core::JsonValue* const config = detail::field_of(example, "_lycoris_config");
    const auto options = config == nullptr ? std::nullopt : detail::lycoris_options(*config);
    if (!options) continue;
    run.refusal.clear();
    return detail::set_options(*options, cells, request);
  }
  return cells.malformed(run.refusal);
}

}  // namespace gpumem::datasets
