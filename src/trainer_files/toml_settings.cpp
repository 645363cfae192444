// TOML 1.0, as kohya's sd-scripts, musubi-tuner and diffusion-pipe read it (Python's toml): tables, lists of tables,
// dotted keys, texts, numbers, lists, tables in a line. A date is a text. Files are untrusted: depth and number of
// values are bounded.
#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/result.hpp"
#include "setting.hpp"

namespace gpumem::trainer_files {

namespace {
namespace toml_settings_detail {

bool is_bare(char byte) { return std::isalnum(static_cast<unsigned char>(byte)) != 0 || byte == '_' || byte == '-'; }

/// A word that stands without quotes: a number, a truth value, a date.
Setting plain_value(std::string word) {
  Setting setting;
  setting.kind = Setting::Kind::text;
  if (word == "true" || word == "false") {
    setting.kind = Setting::Kind::boolean;
  } else {
    std::string digits = word;
    std::erase(digits, '_');
    if (digits.starts_with('+')) digits.erase(0, 1);
    if (core::parse_whole(digits)) setting.kind = Setting::Kind::integer;
    else if (core::parse_number(digits)) setting.kind = Setting::Kind::real;
    if (setting.kind != Setting::Kind::text) word = std::move(digits);
  }
  setting.word = std::move(word);
  return setting;
}

class TomlReader {
 public:
  explicit TomlReader(std::string_view text) : text_(text) { root_.kind = Setting::Kind::object; }

  core::Result<Setting> read() {
    while (!fault_) {
      skip(true);
      if (at_ >= text_.size()) return std::move(root_);
      if (peek() == '[') read_header();
      else read_pair(*table());
      end_line();
    }
    return *std::move(fault_);
  }

 private:
  using Path = std::vector<std::string>;

  [[nodiscard]] char peek(std::size_t offset = 0) const {
    return at_ + offset < text_.size() ? text_[at_ + offset] : '\0';
  }
  [[nodiscard]] bool is_at(std::string_view word) const { return text_.substr(at_).starts_with(word); }

  void step(std::size_t bytes = 1) { at_ = std::min(at_ + bytes, text_.size()); }

  void fail(std::string message) {
    if (!fault_) fault_ = {core::ErrorCode::malformed_input, std::move(message), {{}, line_, {}}};
    at_ = text_.size();
  }

  /// Blanks and comments; with `lines` their ends as well.
  void skip(bool lines) {
    while (at_ < text_.size()) {
      const char byte = text_[at_];
      if (byte == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (byte == ' ' || byte == '\t' || byte == '\r') {
        ++at_;
      } else if (byte == '\n' && lines) {
        ++at_;
        ++line_;
      } else {
        return;
      }
    }
  }

  void end_line() {
    skip(false);
    if (at_ < text_.size() && peek() != '\n') fail("has more on the line than a key and its value");
  }

  Path read_path() {
    Path path;
    while (!fault_) {
      skip(false);
      if (peek() == '"' || peek() == '\'') {
        path.push_back(read_text().word);
      } else {
        const std::size_t begin = at_;
        while (at_ < text_.size() && is_bare(text_[at_])) ++at_;
        if (at_ == begin) fail("has no key where one is expected");
        path.emplace_back(text_.substr(begin, at_ - begin));
      }
      skip(false);
      if (path.size() > kDeepestSetting) fail("is nested too deep");
      if (peek() != '.') break;
      ++at_;
    }
    return path;
  }

  /// The last table of a list of tables is the one that later headers mean.
  Setting* entered(Setting& place, const std::string& key) {
    const auto same = [&](const Setting& item) { return item.key == key; };
    auto found = std::find_if(place.items.begin(), place.items.end(), same);
    if (found == place.items.end()) {
      count();
      place.items.push_back({Setting::Kind::object, key, {}, {}, line_});
      found = place.items.end() - 1;
    }
    if (found->kind == Setting::Kind::list && !found->items.empty()) return &found->items.back();
    if (found->kind != Setting::Kind::object) fail("has " + core::quoted(key) + " as a value and as a table");
    return &*found;
  }

  /// Each header is looked up anew, since lists grow.
  Setting* table() {
    Setting* place = &root_;
    for (const std::string& key : header_) {
      place = entered(*place, key);
      if (place->kind != Setting::Kind::object) fail("has a table within a list of values");
    }
    return place;
  }

  void read_header() {
    const bool list = is_at("[[");
    step(list ? 2 : 1);
    Path path = read_path();
    if (!is_at(list ? "]]" : "]")) return fail("has a table's name without its bracket");
    step(list ? 2 : 1);
    header_ = path;
    if (!list || fault_) return;
    header_.pop_back();
    Setting& place = *table();
    header_ = path;
    const auto same = [&](const Setting& item) { return item.key == path.back(); };
    auto found = std::find_if(place.items.begin(), place.items.end(), same);
    if (found == place.items.end()) {
      place.items.push_back({Setting::Kind::list, path.back(), {}, {}, line_});
      found = place.items.end() - 1;
    }
    if (found->kind != Setting::Kind::list) return fail("has " + core::quoted(path.back()) + " twice");
    count();
    found->items.push_back({Setting::Kind::object, {}, {}, {}, line_});
  }

  void read_pair(Setting& into, std::size_t depth = 0) {
    const Path path = read_path();
    skip(false);
    if (peek() != '=') return fail("has a key without a value");
    ++at_;
    skip(false);
    Setting* place = &into;
    for (std::size_t step = 0; step + 1 < path.size() && !fault_; ++step) place = entered(*place, path[step]);
    Setting value = read_value(depth);
    if (fault_) return;
    value.key = path.back();
    const auto same = [&](const Setting& item) { return item.key == value.key; };
    if (std::any_of(place->items.begin(), place->items.end(), same)) {
      return fail("has " + core::quoted(value.key) + " twice");
    }
    place->items.push_back(std::move(value));
  }

  Setting read_value(std::size_t depth) {
    count();
    if (depth > kDeepestSetting) fail("is nested too deep");
    if (fault_) return {};
    const std::int64_t line = line_;
    Setting value;
    if (peek() == '"' || peek() == '\'') value = read_text();
    else if (peek() == '[') value = read_list(depth);
    else if (peek() == '{') value = read_inline(depth);
    else value = plain_value(read_word());
    value.line = line;
    return value;
  }

  std::string read_word() {
    const std::size_t begin = at_;
    const std::size_t end = std::min(text_.find_first_of(",]}#\r\n", at_), text_.size());
    at_ = end;
    std::string word(text_.substr(begin, end - begin));
    while (word.ends_with(' ') || word.ends_with('\t')) word.pop_back();
    if (word.empty()) fail("has a key without a value");
    return word;
  }

  Setting read_list(std::size_t depth) {
    Setting list{Setting::Kind::list, {}, {}, {}, line_};
    ++at_;
    while (!fault_) {
      skip(true);
      if (peek() == ']') break;
      if (at_ >= text_.size()) fail("has a list without its end");
      list.items.push_back(read_value(depth + 1));
      skip(true);
      if (peek() == ',') ++at_;
      else if (peek() != ']') fail("has a list without a comma between its values");
    }
    step();
    return list;
  }

  Setting read_inline(std::size_t depth) {
    Setting object{Setting::Kind::object, {}, {}, {}, line_};
    ++at_;
    while (!fault_) {
      skip(true);
      if (peek() == '}') break;
      if (at_ >= text_.size()) fail("has a table without its end");
      read_pair(object, depth + 1);
      skip(true);
      if (peek() == ',') ++at_;
      else if (peek() != '}') fail("has a table without a comma between its keys");
    }
    step();
    return object;
  }

  /// Behind a backslash. A line that ends in one goes on behind the next blanks.
  void read_escape(std::string& into) {
    ++at_;
    constexpr std::string_view kCodes = "btnfr\"\\";
    constexpr std::string_view kBytes = "\b\t\n\f\r\"\\";
    const std::size_t code = kCodes.find(peek());
    if (peek() == '\n' || peek() == ' ' || peek() == '\r') {
      skip(true);
    } else {
      // Letters by their number stay as they are written: no setting that is read has any.
      if (code != std::string_view::npos && peek() != '\0') into += kBytes[code];
      else into += peek();
      step();
    }
  }

  Setting read_text() {
    const char quote = peek();
    const std::string thrice(3, quote);
    const bool long_text = is_at(thrice);
    const std::string_view end = long_text ? std::string_view(thrice) : std::string_view(thrice).substr(0, 1);
    step(end.size());
    Setting setting;
    setting.kind = Setting::Kind::text;
    while (at_ < text_.size() && !is_at(end)) {
      if (peek() == '\n' && !long_text) fail("has a text without its end");
      if (at_ >= text_.size()) break;
      if (peek() == '\n') ++line_;
      if (peek() == '\\' && quote == '"') read_escape(setting.word);
      else setting.word += text_[at_++];
    }
    if (at_ >= text_.size()) fail("has a text without its end");
    step(end.size());
    return setting;
  }

  void count() {
    if (++values_ > kMostSettings) fail("has more than " + std::to_string(kMostSettings) + " values");
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
  std::size_t values_ = 0;
  Setting root_;
  Path header_;
  std::optional<core::Error> fault_;
};

/// A line of a key with '=' behind it, or a table's name: what no YAML begins with.
bool is_toml_line(std::string_view line) {
  while (line.starts_with(' ') || line.starts_with('\t')) line.remove_prefix(1);
  if (line.starts_with('[')) {
    line = line.substr(0, line.find('#'));
    while (line.ends_with('\r') || line.ends_with(' ') || line.ends_with('\t')) line.remove_suffix(1);
    return line.ends_with(']') && line.find(',') == std::string_view::npos;
  }
  std::size_t end = 0;
  while (end < line.size() && (is_bare(line[end]) || line[end] == '.' || line[end] == '"')) ++end;
  const std::size_t sign = line.find_first_not_of(" \t", end);
  return end > 0 && sign != std::string_view::npos && line[sign] == '=';
}

}  // namespace toml_settings_detail
}  // namespace

bool is_toml(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin != std::string_view::npos && line[begin] != '#') return toml_settings_detail::is_toml_line(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

core::Result<Setting> parse_toml_settings(std::string_view text) {
  return toml_settings_detail::TomlReader(text).read();
}

}  // namespace gpumem::trainer_files
