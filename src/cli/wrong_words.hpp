// Input: the words of a command line that cannot be parsed. Output: what is wrong with them, and which help has the
// right ones.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpumem::cli {

/// The `position`-th word that is no option, the first of which names the command. Empty: there is none.
[[nodiscard]] std::string_view word_at(const std::vector<std::string>& words, std::size_t position);

/// The command that the words name: "model show" of `app`, or `app` itself.
[[nodiscard]] const CLI::App& command_of(const CLI::App& app, const std::vector<std::string>& words);

/// About a word where a command is expected, if no command has that name. Nothing: there is no such word.
[[nodiscard]] std::optional<std::string> unknown_command(const CLI::App& app, const std::vector<std::string>& words);

/// About words that `app` has refused.
[[nodiscard]] std::string what_is_wrong(const CLI::App& app, const CLI::ParseError& wrong);

}  // namespace gpumem::cli
