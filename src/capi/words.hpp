// Input: the names and values of gpumem_ask().
// Output: the words of a question, of which each question takes those that it knows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/job/job_options.hpp"

namespace gpumem::capi {

class Words {
 public:
  /// Errors: invalid_argument for null pointers, too many words, and a name that is given twice; "command" and
  /// "setting" may be.
  static core::Result<Words> read(const char* const* names, const char* const* values, std::size_t count);

  /// A word that is not an option of a job, and that is then no longer there.
  std::optional<std::string> take(const std::string& name);
  /// The same of all words of which `is_wanted` says so.
  std::map<std::string, std::string> take_if(bool (*is_wanted)(std::string_view));
  /// Errors: invalid_argument, naming the word.
  core::Result<std::optional<std::int64_t>> take_whole(const std::string& name);

  /// Each "command", in its order.
  [[nodiscard]] const std::vector<std::string>& command() const { return command_; }
  /// Each "setting", KEY=VALUE.
  [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& settings() const { return settings_; }
  /// What is left.
  [[nodiscard]] const std::map<std::string, std::string>& options() const { return options_; }

  // What a question does not take. Errors: invalid_argument, naming the word.
  [[nodiscard]] core::Status refuse_settings() const;
  /// A "command" or a "setting".
  [[nodiscard]] core::Status refuse_program() const;
  /// Any word that is left.
  [[nodiscard]] core::Status refuse_rest() const;

  /// The job that what is left describes. Errors: invalid_argument, malformed_input, naming the option; those of
  /// refuse_program().
  [[nodiscard]] core::Result<job::JobRequest> job() const;

 private:
  std::vector<std::string> command_;
  std::vector<std::pair<std::string, std::string>> settings_;
  std::map<std::string, std::string> options_;
};

}  // namespace gpumem::capi
