// Input: the table of commands. Output: manual pages as roff (man(7)), which man and groff read: gpumem(1), and one a
// command, gpumem-estimate(1).
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "command_table.hpp"

namespace gpumem::cli {

/// What the table does not say of a command.
struct ManualText {
  std::string_view command;                       ///< empty: the program itself
  std::string_view description;                   ///< paragraphs, a blank line between them
  std::array<std::string_view, 3> examples = {};  ///< as many as are not empty
  std::array<std::string_view, 3> see_also = {};  ///< other commands
};
/// One row a command, in the order of the table.
[[nodiscard]] std::span<const ManualText> manual_texts();

/// The page of a command ("model show"), or of the program itself (""). Empty: there is no such command.
[[nodiscard]] std::string manual_page(const CommandRow& program, std::string_view command);
/// "gpumem-model-show.1".
[[nodiscard]] std::string manual_file(std::string_view command);

struct ManOptions {
  std::vector<std::string> command;  ///< the words of it; empty: the program itself
  std::string out;                   ///< write every page to this folder; empty: print one
};
int run_man(const ManOptions& options);

}  // namespace gpumem::cli
