#include "words.hpp"

#include <iterator>
#include <string_view>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/result.hpp"
#include "sized.hpp"

namespace gpumem::capi {

core::Result<Words> Words::read(const char* const* names, const char* const* values, std::size_t count) {
  const auto given_names = texts_of(names, count, "names");
  if (!given_names) return given_names.error();
  const auto given_values = texts_of(values, count, "values");
  if (!given_values) return given_values.error();
  Words words;
  for (std::size_t index = 0; index < count; ++index) {
    const std::string& name = (*given_names)[index];
    const std::string& value = (*given_values)[index];
    if (name == "command") {
      words.command_.push_back(value);
    } else if (name == "setting") {
      const std::size_t equals = value.find('=');
      if (equals == std::string::npos) return refused("a setting is KEY=VALUE, and " + core::quoted(value) + " is not");
      words.settings_.emplace_back(value.substr(0, equals), value.substr(equals + 1));
    } else if (!words.options_.emplace(name, value).second) {
      return refused(core::quoted(name) + " is given twice");
    }
  }
  return words;
}

std::optional<std::string> Words::take(const std::string& name) {
  const auto node = options_.extract(name);
  return node.empty() ? std::nullopt : std::optional(node.mapped());
}

std::map<std::string, std::string> Words::take_if(bool (*is_wanted)(std::string_view)) {
  std::map<std::string, std::string> taken;
  for (auto word = options_.begin(); word != options_.end();) {
    const auto next = std::next(word);
    if (is_wanted(word->first)) taken.insert(options_.extract(word));
    word = next;
  }
  return taken;
}

core::Result<std::optional<std::int64_t>> Words::take_whole(const std::string& name) {
  const std::optional<std::string> word = take(name);
  if (!word) return std::optional<std::int64_t>();
  const std::optional<std::int64_t> number = core::parse_whole(*word);
  if (!number) return refused(name + " is " + core::quoted(*word) + "; it must be a whole number of 64 bits");
  return number;
}

core::Status Words::refuse_settings() const {
  if (settings_.empty()) return core::Done{};
  return refused("this question takes no `setting`: it is about no program");
}

core::Status Words::refuse_program() const {
  if (!command_.empty()) return refused("this question takes no `command`: it is about no program");
  return refuse_settings();
}

core::Status Words::refuse_rest() const {
  if (!options_.empty()) return refused("this question takes no word " + core::quoted(options_.begin()->first));
  return refuse_program();
}

core::Result<job::JobRequest> Words::job() const {
  if (const core::Status alone = refuse_program(); !alone) return alone.error();
  job::JobRequest request;
  for (const auto& [name, value] : options_) {
    const job::JobOption* option = job::find_option(name);
    if (option == nullptr) return refused("a job has no option " + core::quoted(name));
    if (auto taken = job::set_option_text(*option, request, value); !taken) return taken.error();
  }
  return request;
}

}  // namespace gpumem::capi
