#include "setting.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "gpumem/core/json.hpp"

namespace gpumem::trainer_files {

namespace {

using core::JsonValue;

/// The shortest text that is read as the same number.
std::string real_word(double number) {
  std::array<char, 32> text{};
  const auto [stop, fault] = std::to_chars(text.data(), text.data() + text.size(), number);
  return fault == std::errc() ? std::string(text.data(), stop) : std::string();
}

Setting to_setting(const JsonValue& value) {
  Setting setting;
  setting.key = value.key();
  switch (value.kind()) {
    case JsonValue::Kind::null: break;
    case JsonValue::Kind::boolean:
      setting.kind = Setting::Kind::boolean;
      setting.word = value.boolean() ? "true" : "false";
      break;
    case JsonValue::Kind::integer:
      setting.kind = Setting::Kind::integer;
      setting.word = std::to_string(value.integer());
      break;
    case JsonValue::Kind::beyond_int64:
      setting.kind = Setting::Kind::integer;
      setting.word = std::to_string(value.unsigned_integer());
      break;
    case JsonValue::Kind::real:
      setting.kind = Setting::Kind::real;
      setting.word = real_word(value.real());
      break;
    case JsonValue::Kind::text:
      setting.kind = Setting::Kind::text;
      setting.word = value.text();
      break;
    case JsonValue::Kind::list:
    case JsonValue::Kind::object:
      setting.kind = value.is(JsonValue::Kind::list) ? Setting::Kind::list : Setting::Kind::object;
      for (const JsonValue& item : value.items()) setting.items.push_back(to_setting(item));
      break;
  }
  return setting;
}

}  // namespace

const Setting* Setting::field(std::string_view name) const {
  if (kind != Kind::object) return nullptr;
  const auto found = std::find_if(items.begin(), items.end(), [&](const Setting& item) { return item.key == name; });
  return found == items.end() ? nullptr : &*found;
}

const Setting* Setting::at(std::string_view path) const {
  const Setting* found = this;
  while (found != nullptr && !path.empty()) {
    const std::size_t end = std::min(path.find('.'), path.size());
    found = found->field(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return found;
}

core::Result<Setting> parse_json_settings(std::string_view text) {
  const auto document = core::JsonDocument::parse(text, {.depth = kDeepestSetting, .values = kMostSettings});
  if (!document) return document.error();
  return to_setting(document->root());
}

core::Result<Setting> parse_settings(std::string_view text) {
  if (text.size() > kLargestTrainerFile) {
    return core::malformed("a trainer's file of more than " + std::to_string(kLargestTrainerFile) +
                           " bytes is not read");
  }
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  const bool is_json = begin != std::string_view::npos && text[begin] == '{';
  const auto read = is_json ? &parse_json_settings : is_toml(text) ? &parse_toml_settings : &parse_yaml_settings;
  core::Result<Setting> root = read(text);
  if (root && root->kind != Setting::Kind::object) {
    return core::malformed("a trainer's file holds one object of settings; this one holds something else");
  }
  return root;
}

}  // namespace gpumem::trainer_files
