#include "command_words.hpp"

#include <algorithm>
#include <utility>

#include "gpumem/core/bytes.hpp"

namespace gpumem::trainer_files {

namespace {
namespace command_words_detail {

bool is_whole(std::string_view word) {
  if (word.starts_with('-')) word.remove_prefix(1);
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char byte) { return byte >= '0' && byte <= '9'; });
}

bool is_real(std::string_view word) { return core::parse_number(word).has_value(); }

std::string key_of(std::string_view word) {
  while (word.starts_with('-') || word.starts_with('+')) word.remove_prefix(1);
  std::string key(word);
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

/// A flag, and not a number below zero.
bool is_flag(std::string_view word) { return word.size() > 1 && word.front() == '-' && !is_real(word); }

/// key=value as hydra, LLaMA-Factory and torchtune take it, and no path or URL.
bool is_pair(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos || equals == 0) return false;
  const auto of_name = [](char byte) {
    const bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9');
    return letter || byte == '_' || byte == '.' || byte == '-' || byte == '+';
  };
  return std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals), of_name);
}

Setting list_of(std::string_view key, std::span<const std::string> words) {
  Setting list;
  list.key = key;
  list.kind = Setting::Kind::list;
  for (const std::string& word : words) list.items.push_back(setting_of_word({}, word));
  return list;
}

}  // namespace command_words_detail
}  // namespace

Setting setting_of_word(std::string_view key, std::string_view word) {
  namespace detail = command_words_detail;
  if (word.starts_with('{')) {
    if (auto object = parse_json_settings(word)) {
      object->key = key;
      return *std::move(object);
    }
  }
  Setting setting;
  setting.key = key;
  setting.word = word;
  setting.kind = Setting::Kind::text;
  if (word == "True" || word == "true" || word == "False" || word == "false") {
    setting.kind = Setting::Kind::boolean;
    setting.word = word == "True" || word == "true" ? "true" : "false";
  } else if (word == "None" || word == "null") {
    setting.kind = Setting::Kind::null;
    setting.word.clear();
  } else if (detail::is_whole(word)) {
    setting.kind = Setting::Kind::integer;
  } else if (detail::is_real(word)) {
    setting.kind = Setting::Kind::real;
  }
  return setting;
}

void put_setting(Setting& root, std::string_view path, Setting value) {
  Setting* place = &root;
  for (std::size_t depth = 0; depth < kDeepestSetting; ++depth) {
    const std::size_t end = std::min(path.find('.'), path.size());
    const std::string_view key = path.substr(0, end);
    if (place->kind != Setting::Kind::object) *place = {Setting::Kind::object, place->key, {}, {}, place->line};
    const auto same = [&](const Setting& item) { return item.key == key; };
    auto found = std::find_if(place->items.begin(), place->items.end(), same);
    if (found == place->items.end()) {
      place->items.push_back({Setting::Kind::null, std::string(key), {}, {}, 0});
      found = place->items.end() - 1;
    }
    if (end == path.size()) {
      value.key = key;
      *found = std::move(value);
      return;
    }
    place = &*found;
    path.remove_prefix(end + 1);
  }
}

void lay_over(Setting& root, const Setting& over) {
  for (const Setting& field : over.items) {
    const auto same = [&](const Setting& item) { return item.key == field.key; };
    const auto found = std::find_if(root.items.begin(), root.items.end(), same);
    if (found == root.items.end()) root.items.push_back(field);
    else if (found->kind == Setting::Kind::object && field.kind == Setting::Kind::object) lay_over(*found, field);
    else *found = field;
  }
}

ProgramWords read_program_words(std::span<const std::string> words) {
  namespace detail = command_words_detail;
  ProgramWords read;
  read.settings.kind = Setting::Kind::object;
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::string_view word = words[at];
    if (word == "--") continue;
    const std::size_t equals = word.find('=');
    if (!detail::is_flag(word) && !detail::is_pair(word)) {
      read.standing_by.emplace_back(word);
      continue;
    }
    if (equals != std::string_view::npos) {
      put_setting(read.settings, detail::key_of(word.substr(0, equals)), setting_of_word({}, word.substr(equals + 1)));
      continue;
    }
    std::size_t end = at + 1;
    while (end < words.size() && words[end] != "--" && !detail::is_flag(words[end]) && !detail::is_pair(words[end])) {
      ++end;
    }
    const std::span<const std::string> values = words.subspan(at + 1, end - at - 1);
    Setting value = values.size() > 1 ? detail::list_of({}, values)
                                      : setting_of_word({}, values.empty() ? std::string_view("true") : values.front());
    put_setting(read.settings, detail::key_of(word), std::move(value));
    at = end - 1;
  }
  return read;
}

}  // namespace gpumem::trainer_files
