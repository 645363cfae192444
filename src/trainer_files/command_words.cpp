#include "command_words.hpp"

#include <algorithm>
#include <utility>

#include "gpumem/core/bytes.hpp"
#include "gpumem/posttrain/launch.hpp"

namespace gpumem::trainer_files {

namespace {
namespace command_words_detail {

bool is_whole(std::string_view word) {
  if (word.starts_with('-')) word.remove_prefix(1);
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char byte) { return byte >= '0' && byte <= '9'; });
}

bool is_real(std::string_view word) { return core::parse_number(word).has_value(); }

Setting list_of(std::string_view key, std::span<const std::string> words) {
  Setting list;
  list.key = key;
  list.kind = Setting::Kind::list;
  for (const std::string& word : words) list.items.push_back(setting_of_word({}, word));
  return list;
}

}  // namespace command_words_detail
}  // namespace

std::vector<std::string> shell_words(std::string_view line) {
  std::vector<std::string> words;
  bool within = false;
  char quote = 0;
  for (std::size_t at = 0; at < line.size(); ++at) {
    char letter = line[at];
    const bool blank = letter == ' ' || letter == '\n' || letter == '\t';
    if (quote == 0 && blank) {
      within = false;
      continue;
    }
    if (!within) words.emplace_back();
    within = true;
    if (letter == quote || (quote == 0 && (letter == '\'' || letter == '"'))) {
      quote = quote == 0 ? letter : '\0';
      continue;
    }
    if (letter == '\\' && quote != '\'' && at + 1 < line.size()) letter = line[++at];
    if (letter != '\n') words.back() += letter;
  }
  return words;
}

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
  posttrain::ProgramWords program = posttrain::read_program(words);
  ProgramWords read;
  read.settings.kind = Setting::Kind::object;
  for (const auto& [key, values] : program.settings) {
    Setting value = values.size() > 1 ? detail::list_of({}, values)
                                      : setting_of_word({}, values.empty() ? std::string_view("true") : values.front());
    put_setting(read.settings, key, std::move(value));
  }
  read.standing_by = std::move(program.standing);
  return read;
}

}  // namespace gpumem::trainer_files
