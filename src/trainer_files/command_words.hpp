// Input: the words of a program's command line, and its file of settings.
// Output: one Setting tree of both, as the formats of trainers' files read it; words win over the file.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "setting.hpp"

namespace gpumem::trainer_files {

/// The words that a program gets.
struct ProgramWords {
  Setting settings;                      ///< an object: --key value, --key=value, --flag, key=value, a.b=value
  std::vector<std::string> standing_by;  ///< words that stand for themselves: a file, a subcommand
};

/// Bounds of a command line; none that people write comes near them.
inline constexpr std::size_t kMostWords = 2'000;
inline constexpr std::size_t kLongestCommandWord = 65'536;

/// "torchrun" of "/usr/bin/torchrun".
[[nodiscard]] constexpr std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// The words of a command line as a shell takes it apart, without what it would put in their place.
[[nodiscard]] std::vector<std::string> shell_words(std::string_view line);

/// Several words behind one key are a list. '-' in a key is '_', and a leading '+' (hydra) is left out.
[[nodiscard]] ProgramWords read_program_words(std::span<const std::string> words);

/// The value of a word: "True" and "true" are a boolean, digits a number, "None" is null, {...} JSON.
[[nodiscard]] Setting setting_of_word(std::string_view key, std::string_view word);

/// Writes the setting at "optimizer.params.lr", in place of what is there.
void put_setting(Setting& root, std::string_view path, Setting value);

/// Writes every field of `over` over `root`: objects field by field, all else as a whole.
void lay_over(Setting& root, const Setting& over);

}  // namespace gpumem::trainer_files
