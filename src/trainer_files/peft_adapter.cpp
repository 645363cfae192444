#include "peft_adapter.hpp"

#include <vector>

#include "gpumem/adapt/peft_methods.hpp"

namespace gpumem::trainer_files {

namespace {
namespace peft_adapter_detail {

bool sniff(const Setting& root) { return root.field("peft_type") != nullptr; }

std::string word_of(const Setting& setting) {
  if (setting.kind != Setting::Kind::list) return setting.word;
  std::string text;
  for (const Setting& item : setting.items) text += (text.empty() ? "" : "+") + word_of(item);
  return text;
}

std::vector<adapt::PeftSetting> settings_of(const Setting& root) {
  std::vector<adapt::PeftSetting> settings;
  for (const Setting& field : root.items) {
    if (field.kind == Setting::Kind::null) continue;
    if (field.kind != Setting::Kind::object) {
      settings.push_back({field.key, word_of(field)});
      continue;
    }
    for (const Setting& inner : field.items) settings.push_back({field.key + "." + inner.key, word_of(inner)});
  }
  return settings;
}

void read(TrainerReading& from) {
  for (const Setting& field : from.root().items) from.know(field.key);
  const auto config = adapt::peft_config(settings_of(from.root()));
  if (!config) return from.job().not_modelled.push_back("peft_type");
  if (from.job().model.empty()) from.job().model = config->base_model;
  for (const adapt::PeftOption& option : config->options) from.want(option.option, option.value, option.key);
  for (const std::string& text : config->not_modelled) from.job().not_modelled.push_back(text);
  for (const std::string& key : config->unknown) from.job().unknown.push_back(key);
}

}  // namespace peft_adapter_detail
}  // namespace

const TrainerFormat& peft_adapter() {
  static constexpr TrainerFormat kFormat = {"peft-adapter", "PEFT's adapter_config.json", &peft_adapter_detail::sniff,
                                            &peft_adapter_detail::read};
  return kFormat;
}

}  // namespace gpumem::trainer_files
