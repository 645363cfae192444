// YAML by yaml-cpp's events, so that nothing is built that the bounds would refuse. Scalars are typed as PyYAML does
// it, which is what the trainers read their files with (YAML 1.1: yes and no are booleans). Without yaml-cpp
// (GPUMEM_BUILD_YAML) there is only an error.
#include "setting.hpp"

#if defined(GPUMEM_HAS_YAML_CPP)

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <sstream>

#include "gpumem/core/csv.hpp"
#include "gpumem/core/result.hpp"

namespace gpumem::trainer_files {

namespace {

/// Thrown through yaml-cpp's parser to end it, and caught where the parser is called.
struct Refused {
  core::Error error;
};

[[noreturn]] void refuse(const YAML::Mark& mark, std::string message) {
  throw Refused{{core::ErrorCode::malformed_input, std::move(message), {{}, std::int64_t{mark.line} + 1, {}}}};
}

bool is_number(const std::string& word, bool& real) {
  std::size_t at = word.starts_with('-') || word.starts_with('+') ? 1 : 0;
  std::size_t digits = 0;
  for (; at < word.size(); ++at) {
    const char byte = word[at];
    if (std::isdigit(static_cast<unsigned char>(byte)) != 0) {
      ++digits;
    } else if (byte == '.' || ((byte == 'e' || byte == 'E') && digits > 0)) {
      real = true;
      if (byte != '.' && at + 1 < word.size() && (word[at + 1] == '-' || word[at + 1] == '+')) ++at;
    } else {
      return false;
    }
  }
  return digits > 0;
}

/// A whole number's digits may stand in groups, "500_000", which PyYAML reads as one number.
std::string without_groups(const std::string& word) {
  const auto fits = [](char byte) { return byte == '_' || (byte >= '0' && byte <= '9'); };
  std::string plain = word;
  const bool grouped = !word.empty() && word.front() != '_' && std::all_of(word.begin(), word.end(), fits);
  if (grouped) std::erase(plain, '_');
  return plain;
}

/// A scalar without quotes.
Setting plain_scalar(const std::string& text) {
  const std::string word = without_groups(text);
  constexpr std::array<std::string_view, 3> kTrue = {"true", "yes", "on"};
  constexpr std::array<std::string_view, 3> kFalse = {"false", "no", "off"};
  const std::string lower = core::lower_case(word);
  Setting setting;
  if (word.empty() || word == "~" || lower == "null") return setting;
  if (std::find(kTrue.begin(), kTrue.end(), lower) != kTrue.end()) {
    setting.kind = Setting::Kind::boolean;
    setting.word = "true";
  } else if (std::find(kFalse.begin(), kFalse.end(), lower) != kFalse.end()) {
    setting.kind = Setting::Kind::boolean;
    setting.word = "false";
  } else {
    bool real = false;
    const bool number = is_number(word, real);
    setting.kind = !number ? Setting::Kind::text : real ? Setting::Kind::real : Setting::Kind::integer;
    setting.word = word;
  }
  return setting;
}

/// Makes the tree of the events.
class TreeBuilder : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { add(mark, Setting()); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    refuse(mark, "an alias (*name) is not read; write the value out");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t, const std::string& value) override {
    // yaml-cpp tags a plain scalar "?" and a quoted one "!".
    Setting setting = tag == "?" || tag.empty() ? plain_scalar(value) : Setting();
    if (tag != "?" && !tag.empty()) {
      setting.kind = Setting::Kind::text;
      setting.word = value;
    }
    if (awaits_key()) {
      if (open_.back().setting.field(value) != nullptr)
        refuse(mark, "the key " + core::quoted(value) + " is there twice");
      open_.back().key = value;
      return;
    }
    add(mark, std::move(setting));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    open(mark, Setting::Kind::list);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    open(mark, Setting::Kind::object);
  }
  void OnMapEnd() override { close(); }

  [[nodiscard]] Setting take() { return std::move(root_); }

 private:
  struct Open {
    Setting setting;
    std::optional<std::string> key = {};  ///< of the value that comes next
  };

  [[nodiscard]] bool awaits_key() const {
    return !open_.empty() && open_.back().setting.kind == Setting::Kind::object && !open_.back().key;
  }

  void count(const YAML::Mark& mark) {
    if (awaits_key()) refuse(mark, "a key must be a plain text");
    if (++count_ > kMostSettings) refuse(mark, "it holds more values than any trainer's file");
  }

  void open(const YAML::Mark& mark, Setting::Kind kind) {
    count(mark);
    if (open_.size() >= kDeepestSetting) refuse(mark, "it nests deeper than any trainer's file");
    Setting setting;
    setting.kind = kind;
    setting.line = std::int64_t{mark.line} + 1;
    open_.push_back({std::move(setting)});
  }

  void close() {
    Setting done = std::move(open_.back().setting);
    open_.pop_back();
    keep(std::move(done));
  }

  void add(const YAML::Mark& mark, Setting setting) {
    count(mark);
    setting.line = std::int64_t{mark.line} + 1;
    keep(std::move(setting));
  }

  void keep(Setting setting) {
    if (open_.empty()) {
      root_ = std::move(setting);
      return;
    }
    Open& holder = open_.back();
    if (holder.key) setting.key = *std::move(holder.key);
    holder.key.reset();
    holder.setting.items.push_back(std::move(setting));
  }

  Setting root_;
  std::vector<Open> open_;
  std::size_t count_ = 0;
};

}  // namespace

bool reads_yaml() { return true; }

core::Result<Setting> parse_yaml_settings(std::string_view text) {
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    TreeBuilder builder;
    if (!parser.HandleNextDocument(builder)) return core::malformed("it is empty");
    return builder.take();
  } catch (const Refused& refused) {
    return refused.error;
  } catch (const YAML::Exception& error) {
    return core::Error{core::ErrorCode::malformed_input,
                       "is not YAML: " + core::quoted(error.msg),
                       {{}, error.mark.is_null() ? 0 : std::int64_t{error.mark.line} + 1, {}}};
  }
}

}  // namespace gpumem::trainer_files

#else

namespace gpumem::trainer_files {

bool reads_yaml() { return false; }

core::Result<Setting> parse_yaml_settings(std::string_view /*text*/) {
  return core::Error{core::ErrorCode::invalid_argument,
                     "this gpumem was built without yaml-cpp and reads trainers' files in JSON only; build it with "
                     "yaml-cpp (Debian: libyaml-cpp-dev), or write the file as JSON",
                     {}};
}

}  // namespace gpumem::trainer_files

#endif
