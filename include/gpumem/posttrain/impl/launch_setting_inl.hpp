#pragma once

#include "gpumem/posttrain/impl/launch_inl.hpp"
#include "gpumem/posttrain/launch.hpp"

#include <charconv>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpumem::posttrain {

namespace launch_detail {

/// A program's settings, one by one and by their names, and the launch that is made of them.
class SettingReader {
 protected:
  SettingReader(Program program, std::span<const LaunchSetting> settings) : program_(program), settings_(settings) {
    made_.request.options.program = program_;
  }

  /// All whose row says which option they are.
  core::Status take_all() {
    for (const LaunchSetting& setting : settings_) {
      if (core::Status taken = take(setting); !taken) return taken;
    }
    return core::Done{};
  }

  [[nodiscard]] bool of_trl() const { return program_ == Program::trl || program_ == Program::unsloth; }
  [[nodiscard]] bool of_swift() const { return program_ == Program::ms_swift || program_ == Program::megatron; }
  [[nodiscard]] model::TrainingJob& training() { return made_.request.training.training; }
  [[nodiscard]] PostTrainingOptions& options() { return made_.request.options; }
  [[nodiscard]] const AlgorithmRow& algorithm() { return row_of(options().algorithm); }

  core::Status take(const LaunchSetting& setting) {
    const LaunchKey* const row = find_key(program_, setting.key);
    if (row == nullptr) {
      if (!changes_nothing(setting.key)) made_.unknown.push_back(core::shortened(setting.key, 80));
      return core::Done{};
    }
    if (is_variable(setting.value) && row->means != Means::nothing) return core::Done{};  // as if it was not given
    switch (row->means) {
      case Means::training: return take_training(*row, setting);
      case Means::post: return take_post(*row, setting);
      case Means::model: made_.model = setting.value; break;
      case Means::not_modelled:
        if (!is_usual(setting.value, row->option)) say_not_modelled(setting);
        break;
      case Means::named:
      case Means::nothing: break;
    }
    return core::Done{};
  }

  void say_not_modelled(const LaunchSetting& setting) {
    made_.not_modelled.push_back(core::shortened(setting.key, 80) + " " + core::shortened(setting.value, 60));
  }

  core::Status take_training(const LaunchKey& row, const LaunchSetting& setting) {
    if (is_false(setting.value) && row.option != "sequence_parallel") return core::Done{};
    return with_key(set(row.option, setting.value), setting);
  }
  core::Status take_post(const LaunchKey& row, const LaunchSetting& setting) {
    if (is_false(setting.value)) return core::Done{};
    return with_key(set_post_training_option(options(), row.option, setting.value), setting);
  }
  void say_missing(std::string what, std::vector<std::string_view> options, bool required = true) {
    made_.missing.push_back({std::move(what), std::move(options), required});
  }
  static core::Status with_key(core::Status taken, const LaunchSetting& setting) {
    if (taken) return taken;
    return core::Error{
        core::ErrorCode::invalid_argument, core::shortened(setting.key, 60) + ": " + taken.error().message, {}};
  }
  core::Status set(std::string_view name, std::string_view word) {
    const job::JobOption* const option = job::find_option(name);
    if (option == nullptr) return core::Done{};
    return job::set_option_text(*option, made_.request.training, word);
  }
  void refuse(std::string message) {
    if (!fault_) fault_ = core::Error{core::ErrorCode::invalid_argument, std::move(message), {}};
  }
  /// Of a word of ours, which the option takes.
  void want(std::string_view name, std::string_view word) {
    if (core::Status taken = set(name, word); !taken && !fault_) fault_ = taken.error();
  }

  /// The value of a setting; the last one counts. Nothing: it is not given, or a variable of the shell.
  [[nodiscard]] std::optional<std::string_view> value(std::string_view key) const {
    std::optional<std::string_view> found;
    for (const LaunchSetting& setting : settings_) {
      if (setting.key == key && !is_variable(setting.value)) found = setting.value;
    }
    return found;
  }
  [[nodiscard]] std::string_view word(std::initializer_list<std::string_view> keys, std::string_view usual = {}) const {
    for (const std::string_view key : keys) {
      if (const auto found = value(key)) return *found;
    }
    return usual;
  }
  [[nodiscard]] bool on(std::initializer_list<std::string_view> keys, bool usual = false) const {
    return is_true(word(keys, usual ? "true" : "false"));
  }
  [[nodiscard]] std::int64_t whole(std::initializer_list<std::string_view> keys, std::int64_t usual) {
    const std::string_view text = word(keys);
    if (text.empty()) return usual;
    std::int64_t number = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failed == std::errc{} && end == text.data() + text.size() && number >= 0 && number <= INT32_MAX) return number;
    refuse(std::string(*keys.begin()) + ": " + core::quoted(core::shortened(text, 60)) + " is no whole number");
    return usual;
  }

  Program program_;
  std::span<const LaunchSetting> settings_;
  Launch made_;
  std::optional<core::Error> fault_;
};

}  // namespace launch_detail

}  // namespace gpumem::posttrain
