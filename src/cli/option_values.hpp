// Input: an option of a command. Output: the values that it takes, as far as they can be listed: names of GPUs,
// estimators, choices; files or folders.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpumem::cli {

enum class Paths : std::uint8_t { none, files, folders };

struct OptionValues {
  std::vector<std::string> words;
  Paths paths = Paths::none;
  bool operator==(const OptionValues&) const = default;
};

/// `option`: "--gpu", or the name of an argument, "summary".
[[nodiscard]] OptionValues values_of(std::string_view command, std::string_view option);

/// A row of the list of those that are no options of a job, for tests: every row is of an option that there is.
struct ValuesRow {
  std::string_view command;  ///< empty: of every command
  std::string_view option;
  Paths paths = Paths::none;
  std::vector<std::string> (*words)() = nullptr;
};
[[nodiscard]] std::span<const ValuesRow> values_rows();

}  // namespace gpumem::cli
