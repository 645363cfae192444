// Input: the commands as they are parsed. Output: the same as plain rows: each command with its options, for
// completion, manual pages and tests of the documentation. It takes longer than most estimates, so nothing else asks
// for it.
#pragma once

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "option_values.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace gpumem::cli {

/// An option, or an argument that stands without one.
struct OptionRow {
  std::vector<std::string> names;  ///< "-o", "--out"; of an argument its only name, "summary"
  std::string help;
  std::string value;  ///< what stands for its value: "N", "TEXT"; empty: it takes none
  std::string usual;  ///< the default; empty: there is none
  bool required = false;
  bool repeats = false;
  bool optional_value = false;  ///< it may stand alone, or with a value behind "="
  bool of_job = false;          ///< one of job::job_options()
  OptionValues values;

  /// The name that people write: the long one.
  [[nodiscard]] const std::string& name() const { return names.back(); }
};

struct CommandRow {
  std::string name;  ///< "estimate", "model show"; empty: the program itself
  std::string help;
  std::string footer;
  std::vector<OptionRow> options;
  std::vector<OptionRow> arguments;
  std::vector<CommandRow> commands;
};

/// Whether the user's own command follows the options, after "--".
[[nodiscard]] constexpr bool takes_command(std::string_view command) {
  constexpr std::string_view kTheirs[] = {"run",      "serve", "posttrain", "request", "place",
                                          "estimate", "fit",   "check",     "advise",  "plan"};
  return std::find(std::begin(kTheirs), std::end(kTheirs), command) != std::end(kTheirs);
}

/// What stands for an option's value in help: "N" for any number without a fraction, "X" for one with, or its own word.
[[nodiscard]] std::string value_name(const CLI::Option& option);

/// A command, or the program, with what is added to its parser.
[[nodiscard]] CommandRow row_of(const CLI::App& parser, const std::string& name);

/// The program with all of its commands.
[[nodiscard]] CommandRow command_table();

/// Every command that does something, in order: "estimate", ..., "model show", but not "model".
[[nodiscard]] std::vector<const CommandRow*> all_commands(const CommandRow& program);

}  // namespace gpumem::cli
